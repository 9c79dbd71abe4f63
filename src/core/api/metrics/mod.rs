//! `/api/v1/metrics` in JSON, and the same figures at `/metrics` for Prometheus. Both are made from one
//! table, and so is the schema of the JSON in `/openapi.json`. To add a metric: see [`table`].

mod figures;
mod render;
mod table;

pub use render::{json, prometheus, schema};
