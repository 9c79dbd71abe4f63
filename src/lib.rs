//! marketd serves market data.
#![forbid(unsafe_op_in_unsafe_fn)]

pub mod config;
pub mod decimal;
pub mod demo;
pub mod exchange;
pub mod interval;
pub mod market;
pub mod record;
pub mod table;
pub mod time;
