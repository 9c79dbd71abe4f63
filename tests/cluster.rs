//! Nodes of a cluster around a real `redis-server`, from the outside: what dies, stalls, lies or comes back
//! between them, and what their clients and the exchanges see of it.
//!
//! Each test has a server of its own. Where none is installed, the tests say so and pass.
#![cfg(all(feature = "cluster", feature = "sqlite"))]

mod charts;
mod drills;
mod ends;
mod engine;
mod refused;
mod roles;
mod world;
