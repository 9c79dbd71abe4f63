//! An entry: what a node of a cluster tells the others, as plain data.

use crate::interval::Stored;
use crate::record::{Candle, Stats, Ticker};
use crate::time::UnixMs;
use std::fmt;
use std::ops::Range;

/// The version that is written, and the newest version that can be read.
pub const VERSION: u8 = 1;

/// One message of a source's collector to the other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The state of the source.
    pub head: EntryHead,
    /// The new data.
    pub body: Update,
}

/// The state of the source at its collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryHead {
    /// The lease under which the entry was written.
    pub epoch: u64,
    /// Milliseconds between the receipt of the exchange's response and the writing of the entry.
    pub waited_ms: u64,
    /// When the exchange's response was received.
    pub received: UnixMs,
    /// The exchange's time when the entry was written. `None` if it is in doubt.
    pub exchange_time: Option<UnixMs>,
    /// The state of the source, as its index in `SourceState`.
    pub state: u8,
    /// The remaining back-off of the source, in milliseconds.
    pub rest_ms: u64,
}

/// New data of a source.
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
    /// The 24-hour figures of one market that its ticker lacks, with its id at the exchange.
    Stats(Box<str>, Box<Stats>),
    /// Candles of one series.
    Candles(SentCandles),
    /// The state of the source has changed. Has its last error.
    Status(Option<Box<str>>),
    /// The node has given the source up, and another node may collect it. If it was given to a certain node,
    /// has the id of that node's run.
    Released(Option<Box<str>>),
}

impl Entry {
    /// Splits the entry in the middle, if possible: keeps the first part, and returns the second.
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
                page.goes_on = true;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesPart {
    /// The canonical name of the market.
    pub symbol: Box<str>,
    /// The interval.
    pub interval: Stored,
    /// The slots.
    pub slots: Range<i64>,
}

/// A page of candles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentCandles {
    /// The series, and the requested slots.
    pub series: SeriesPart,
    /// The exchange's time of the request: a candle that had ended by then is closed.
    pub closed_before: UnixMs,
    /// Of a response: the requested slots between its oldest and its newest row. A slot in between without a
    /// candle is empty.
    pub between: Range<i64>,
    /// False if a row came without its time.
    pub is_dated: bool,
    /// True if the response was not cut, so that it could have had candles of all requested slots.
    pub is_whole: bool,
    /// True if the response comes from the exchange's archive.
    pub is_archived: bool,
    /// True if it answers a request: every slot without a candle is known to be empty.
    pub is_answer: bool,
    /// True if the exchange does not revise these slots any more.
    pub is_final: bool,
    /// True if another page of the same answer or response follows. After the last page of an answer, the
    /// collector has no more of what was asked for.
    pub goes_on: bool,
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
