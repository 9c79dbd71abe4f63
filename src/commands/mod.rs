//! What marketd does besides serving: commands that do one thing and end.
//!
//! Each returns its result, or an error in one line; `main` chooses the exit code. They run without the
//! loop, and may block.

pub mod healthcheck;
#[cfg(feature = "sqlite")]
pub mod history;
