//! What holds for every dialect, for each of them, and for a made-up one.

mod dialects;
mod exchanges;
mod files;
mod habits;
pub(super) mod sample;
mod schema;
pub(super) mod testing;
