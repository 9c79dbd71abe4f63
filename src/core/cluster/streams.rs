//! The streams of the engine, and what is read of them: plain data.

use crate::market::SourceId;
use std::fmt;

/// The name of an entry of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    /// The engine's time of it.
    pub ms: u64,
    /// Its number within the millisecond.
    pub number: u64,
}

impl EntryId {
    /// Reads `ms-number`.
    pub fn parse(text: &[u8]) -> Option<EntryId> {
        let (ms, number) = std::str::from_utf8(text).ok()?.split_once('-')?;
        Some(EntryId { ms: ms.parse().ok()?, number: number.parse().ok()? })
    }

    /// The one before it: reading behind that begins with this one.
    pub fn before(self) -> EntryId {
        match self.number.checked_sub(1) {
            Some(number) => EntryId { number, ..self },
            None => EntryId { ms: self.ms.saturating_sub(1), number: u64::MAX },
        }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

/// A stream that is read.
pub struct StreamKey {
    /// The name of its key.
    pub name: String,
    /// The source that it is about.
    pub source: SourceId,
    /// True if it has requests for candles, false if it has entries.
    pub is_ask: bool,
}

/// An entry that was read and not applied.
pub struct Unread {
    /// The source that it is about.
    pub source: SourceId,
    /// True for a request.
    pub is_ask: bool,
    /// Its place.
    pub id: EntryId,
    /// What it holds.
    pub bytes: Vec<u8>,
}
