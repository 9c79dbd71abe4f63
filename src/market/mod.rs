//! Market data: the markets, who tracks them, their quotes and their candles.
//!
//! Owns [`Market`], which holds the catalog, the quotes and the charts. Callers pass in what
//! exchanges answered and what time it is, and ask questions.
//!
//! It never does I/O, never reads a clock, and knows neither HTTP nor any exchange's JSON.
//!
//! Everything is indexed by two small numbers, [`SymbolId`] and [`SourceId`]. Both are assigned
//! once and keep their meaning while the process lives.

mod body;
mod builder;
mod catalog;
mod chart;
mod charts;
mod chunk;
mod forming;
mod ids;
mod ingest;
mod interval_set;
mod known;
#[cfg(test)]
mod model;
mod plan;
mod quote;
mod read;
mod report;
mod rollup;
mod series;
mod silence;
mod state;
mod stored_series;
mod symbol;
#[cfg(test)]
pub(crate) mod testing;
mod touched;
mod window;
mod write;

pub use builder::ChartBuilder;
pub use catalog::{Catalog, Category, EcosystemEntry, ListChange, Listing};
pub use chart::{ChartInfo, ChartPlan, ChartSpec};
pub use charts::{ChartCounts, Charts};
pub use ids::{SourceId, SymbolId};
pub use interval_set::{IntervalSet, MAX_INTERVALS};
pub use quote::{Awaited, Quote, QuoteCounts, QuoteTurn, Quotes};
pub use report::{Answer, Evidence, IngestCounts, Reported};
pub use series::{Series, SeriesKey};
pub use silence::{LEAST_PAGE, REREAD, TOGETHER, refresh_ms};
pub use state::Market;
pub use stored_series::StoredSeries;
pub use symbol::{Lookup, SymbolName};
pub use touched::Touched;
pub use window::{floor_slot, needed};
