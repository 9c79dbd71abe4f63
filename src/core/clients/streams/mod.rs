//! What the readers of streams are told: each one's stream, and what all of them share.
//!
//! - `stream`: one reader's stream; what has changed, and what was sent.
//! - `events`: the text of what a reader is sent at a time.
//! - `readers`: who reads what.
//! - `charts`: the charts that are followed, and their events, which are rendered for all readers.
//!
//! `streaming` decides when a stream is written to.

mod charts;
mod events;
mod readers;
mod stream;

pub use readers::QuoteReaders;
pub use stream::{EventStream, SharedEvents};
