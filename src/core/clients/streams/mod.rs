//! What the readers of streams are told: each one's stream, and what all of them share.
//!
//! - `stream`: one reader's stream; what has changed, and what was sent.
//! - `quotes`, `charts`: who reads what, and what of it is rendered for all readers.
//!
//! `streaming` decides when a stream is written to.

mod charts;
mod events;
mod places;
mod quotes;
mod readers;
mod stream;

pub use quotes::QuoteReaders;
pub use stream::{EventStream, Told};
