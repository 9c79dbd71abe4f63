//! What nodes of a cluster tell each other, as plain data, and the bounds of it.

use crate::interval::Stored;
use crate::record::{Candle, Stats, Ticker};
use crate::time::UnixMs;
use std::fmt;
use std::ops::Range;

/// The version that is written, and the newest that is read.
pub const VERSION: u8 = 1;

/// What one node tells the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The state of the source.
    pub head: EntryHead,
    /// What has come.
    pub body: Update,
}

/// The state of the source at its collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryHead {
    /// The lease under which the entry was written.
    pub epoch: u64,
    /// Milliseconds from the receipt of the body to the writing of the entry.
    pub waited_ms: u64,
    /// When the body was received.
    pub received: UnixMs,
    /// The exchange's time at the writing of the entry; `None`: it is in doubt.
    pub exchange_time: Option<UnixMs>,
    /// The state of the source, as its index in `SourceState`.
    pub state: u8,
    /// What is left of the source's back-off, in milliseconds.
    pub rest_ms: u64,
}

/// What has come of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Some tickers of a poll, by their ids at the exchange.
    Quotes {
        /// True for the first part of a poll of all quotes, or of a round.
        is_first: bool,
        /// True for the last part.
        is_last: bool,
        /// The tickers.
        tickers: Vec<(Box<str>, Ticker)>,
    },
    /// The 24-hour figures of one market, by its id at the exchange, where its ticker lacks them.
    Stats(Box<str>, Box<Stats>),
    /// Candles of one series.
    Candles(SentCandles),
    /// The state of the source has changed: its last error.
    Status(Option<Box<str>>),
    /// The node has let the source go: another may collect it. The run that gets it, if it was given away.
    Released(Option<Box<str>>),
}

impl Entry {
    /// Splits it in the middle, if it can be: keeps the first part, and returns the second.
    pub fn split(&mut self) -> Option<Entry> {
        let body = match &mut self.body {
            Update::Quotes { is_last, tickers, .. } if tickers.len() > 1 => {
                let tickers = tickers.split_off(tickers.len() / 2);
                let is_last = std::mem::take(is_last);
                Update::Quotes { is_first: false, is_last, tickers }
            }
            Update::Candles(page) if page.is_dated => {
                let Range { start, end } = page.series.slots;
                let middle =
                    page.series.interval.slot_of(page.rows.get(page.rows.len() / 2)?.0.open_time);
                if !(start + 1..end).contains(&middle) {
                    return None;
                }
                let mut second = page.clone();
                (page.series.slots.end, second.series.slots.start) = (middle, middle);
                let is_before =
                    |row: &(Candle, bool)| page.series.interval.slot_of(row.0.open_time) < middle;
                second.rows.retain(|row| !is_before(row));
                page.rows.retain(is_before);
                Update::Candles(second)
            }
            _ => return None,
        };
        Some(Entry { head: self.head.clone(), body })
    }
}

/// Slots of one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesPart {
    /// The canonical name of the market.
    pub symbol: Box<str>,
    /// The interval.
    pub interval: Stored,
    /// The slots.
    pub slots: Range<i64>,
}

/// A page of candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentCandles {
    /// The series, and the slots that were asked for.
    pub series: SeriesPart,
    /// The exchange's time when it was asked: a candle that had ended by then is closed.
    pub closed_before: UnixMs,
    /// False if a row came without its time.
    pub is_dated: bool,
    /// Reserved: always false, and not read. Version 1 of the format has this bit.
    pub is_full: bool,
    /// True if every slot without a candle is known to be empty.
    pub is_proven: bool,
    /// The candles, each with true if the exchange says that it is not closed yet.
    pub rows: Vec<(Candle, bool)>,
}

/// Why bytes are not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// The bytes are of this version, which is newer than [`VERSION`].
    Newer(u8),
    /// The bytes are damaged, or exceed a bound.
    Malformed,
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryError::Newer(version) => write!(f, "newer format {version}"),
            EntryError::Malformed => f.write_str("malformed"),
        }
    }
}
