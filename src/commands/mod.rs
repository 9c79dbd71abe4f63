//! What marketd does besides serving: commands that do one thing and end.
//!
//! Each returns the exit code, or the error that a person can mend. They run without the loop, and may
//! wait.

pub mod healthcheck;
#[cfg(feature = "sqlite")]
pub mod history;
