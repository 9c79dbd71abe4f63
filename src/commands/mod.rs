//! The commands: what marketd does besides serving. Each command does one thing and ends.
//!
//! A command returns its result, or an error of one line. `main` chooses the exit code. Commands run without
//! the loop, and may block.

pub mod healthcheck;
#[cfg(feature = "sqlite")]
pub mod history;
