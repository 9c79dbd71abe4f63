//! What holds for every dialect, for each of them, and for a made-up one.

mod bodies;
mod dialects;
mod files;
mod habits;
mod schema;
pub(super) mod testing;
