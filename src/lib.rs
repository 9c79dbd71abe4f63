//! marketd serves market data.
#![forbid(unsafe_op_in_unsafe_fn)]

pub mod config;
pub mod decimal;
pub mod demo;
pub mod exchange;
pub mod http;
pub mod interval;
pub mod market;
pub mod net;
pub mod record;
pub mod rng;
pub mod server;
pub mod table;
pub mod time;
