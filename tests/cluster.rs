//! Nodes of a cluster around a real `redis-server`, from the outside: what dies, stalls, lies or comes back
//! between them, and what their clients and the exchanges see of it.
//!
//! Each test has a server of its own. Where none is installed, the tests say so and pass.
#![cfg(all(feature = "cluster", feature = "sqlite"))]

mod support;

#[path = "cluster/charts.rs"]
mod charts;
#[path = "cluster/ends.rs"]
mod ends;
#[path = "cluster/engine.rs"]
mod engine;
#[path = "cluster/entries.rs"]
mod entries;
#[path = "cluster/refused.rs"]
mod refused;
#[path = "cluster/roles.rs"]
mod roles;
#[path = "cluster/world.rs"]
mod world;
