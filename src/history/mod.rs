//! The messages between the core and the disk thread: plain data in both directions.
//!
//! The core sends a [`DiskJob`], and the disk thread sends a [`Reply`] back. One job writes a [`Batch`]:
//! everything that one flush writes. The errors are [`OpenError`] and [`StoreError`]. The messages are in a
//! layer below `core`, which decides what is stored, and `store`, which stores it, so that these do not
//! import each other.
//!
//! Series are named by texts, because the market's numbers for them differ in each run.

mod error;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use error::{APPLICATION_ID, LOG_SET_ASIDE, OpenError, StoreError, Unusable, VERSION};

use crate::interval::Stored;
use crate::record::{Candle, Edge, MarketRules, Ticker};
use crate::time::UnixMs;
use rangemap::RangeSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most candles of one read. They take the disk thread some two milliseconds, and 200 KB of memory.
pub const PAGE: usize = 2048;

/// A job for the disk thread. Jobs are done in the order in which they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskJob {
    /// Load the contents of the file without the candles. The replies are [`Reply::Heads`], [`Reply::Quotes`]
    /// and [`Reply::Markets`] in parts, then [`Reply::Loaded`]. The time for this does not depend on the
    /// number of candles.
    Load,
    /// Read candles. The reply is [`Reply::Rows`].
    Read(ReadJob),
    /// Write a batch in one transaction. The reply is [`Reply::Written`].
    Write(Box<Batch>),
    /// Do all earlier jobs, move the log into the file, close the file, and end. The reply is
    /// [`Reply::Stopped`].
    Stop,
}

/// A request for candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadJob {
    /// The caller's number, which the reply repeats.
    pub ticket: u64,
    /// The series.
    pub series: SeriesName,
    /// The slots. The range may be wider than what is stored.
    pub slots: Range<i64>,
    /// Most candles, at most [`PAGE`].
    pub limit: usize,
    /// Which candles to return if there are more.
    pub keep: Edge,
}

/// A message from the disk thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The file is open. This is the first reply, or it follows a [`Reply::Failed`] whose reason has gone
    /// away. Everything loaded before is still valid, unless the reason was [`Unusable::Gone`].
    Opened(Opened),
    /// The file cannot be used; see [`OpenError::is_refusal`] and [`OpenError::may_pass`]. From now on, all
    /// jobs fail with [`StoreError::NotOpen`]. The reply is sent again only if the reason changes.
    Failed(OpenError),
    /// Some of the stored series, in the order of their creation.
    Heads(Vec<SeriesHead>),
    /// Some of the saved quotes.
    Quotes(Vec<(QuoteName, SavedQuote)>),
    /// Some of the markets' rules, as the exchange last published them.
    Markets(Vec<(QuoteName, MarketRules)>),
    /// The end of a load, or the error that ended it early.
    Loaded(Result<Loaded, StoreError>),
    /// The candles of a [`DiskJob::Read`].
    Rows {
        /// The number of the [`ReadJob`].
        ticket: u64,
        /// The candles, or why they could not be read.
        result: Result<Rows, StoreError>,
    },
    /// The result of a [`DiskJob::Write`].
    Written {
        /// The batch comes back.
        batch: Box<Batch>,
        /// `Ok` if the whole batch is on disk and synced. After an error, none of it was written.
        result: Result<Written, StoreError>,
    },
    /// The thread has ended. An error says why the log could not be moved into the file. All acknowledged
    /// writes are safe in the log.
    Stopped(Result<(), StoreError>),
}

/// An opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// True if the file was created.
    pub created: bool,
    /// Used bytes of the file. Free pages do not count.
    pub bytes: u64,
    /// True if there was a write-ahead log without its file. It was renamed, see
    /// [`LOG_SET_ASIDE`].
    pub log_set_aside: bool,
    /// The former version of its tables, if an earlier marketd made the file and the tables were upgraded.
    pub upgraded_from: Option<u32>,
}

/// A stored series without its candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesHead {
    /// The series.
    pub series: SeriesName,
    /// Covered slots: sorted ranges that do not touch.
    pub covered: Vec<Range<i64>>,
    /// Its candles.
    pub extent: Extent,
}

/// The first and the last candle of a series in the file, and how many it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Slot of the oldest candle.
    pub first: Option<i64>,
    /// Slot of the newest candle.
    pub last: Option<i64>,
    /// Number of candles. Each write updates it. It is wrong if a person has deleted rows.
    pub count: u64,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Number of series.
    pub series: usize,
    /// Number of quotes.
    pub quotes: usize,
    /// Number of invalid rows, which were skipped.
    pub unsound: u64,
}

/// Candles that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The slots that this page covers: all requested slots, or the part at [`ReadJob::keep`]'s end that
    /// the limit allows. The rest needs another read.
    pub slots: Range<i64>,
    /// The covered parts of these slots, in order. Nothing is known about the other slots, even if the caller
    /// believes that they are covered: a missing candle in them does not mean that nobody traded.
    pub covered: Vec<Range<i64>>,
    /// The candles, oldest first. Each is sound, aligned and in a covered slot.
    pub candles: Vec<Candle>,
    /// Slots with invalid rows, which were skipped. The caller should forget these slots, so that they are
    /// requested from the exchange again.
    pub unsound: Vec<i64>,
}

/// A batch that is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Candles that were added.
    pub inserted: u64,
    /// Candles whose numbers changed.
    pub updated: u64,
    /// Candles that were deleted.
    pub removed: u64,
    /// How many of the deleted candles an eviction deleted ([`Changes::evict`]).
    pub evicted: u64,
    /// Used bytes of the file, once the log has been moved into it. Free pages do not count.
    pub bytes: u64,
    /// The series of the batch that have changed, with their new extents.
    pub extents: Vec<(SeriesName, Extent)>,
}

/// Everything that a flush writes, with the names of its series and quotes.
///
/// A batch that could not be written is merged with later changes by key ([`Batch::absorb`]). So while the
/// disk is full, the memory of the batch depends on what changed, not on how often it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Changes by series.
    pub series: BTreeMap<SeriesName, Changes>,
    /// Quotes to save. Each replaces the saved one.
    pub quotes: BTreeMap<QuoteName, SavedQuote>,
    /// Rules of markets to save. They replace the saved ones.
    pub markets: BTreeMap<QuoteName, MarketRules>,
}

impl Batch {
    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let is_quiet = self.quotes.is_empty() && self.markets.is_empty();
        is_quiet && self.series.values().all(Changes::is_empty)
    }

    /// The size in candles, ranges, quotes and markets. A caller that keeps a batch should bound
    /// its weight.
    pub fn weight(&self) -> usize {
        let series: usize = self.series.values().map(Changes::weight).sum();
        series + self.quotes.len() + self.markets.len()
    }

    /// The changes of a series.
    pub fn of(&mut self, series: &SeriesName) -> &mut Changes {
        // The entry nearly always exists: only a new one costs a copy of the name.
        if !self.series.contains_key(series) {
            self.series.insert(series.clone(), Changes::default());
        }
        self.series.get_mut(series).expect("inserted just above")
    }

    /// Merges a later batch into this one. Writing the result has the same effect as writing both in
    /// their order.
    pub fn absorb(&mut self, later: Batch) {
        for (name, changes) in later.series {
            self.series.entry(name).or_default().absorb(changes);
        }
        self.quotes.extend(later.quotes);
        self.markets.extend(later.markets);
    }
}

/// The changes of one series: first some slots are forgotten, then some are covered, then candles are
/// written. A slot that is both forgotten and covered loses its stored candle, unless the changes have a new
/// one.
///
/// Invariant: each candle is in a covered slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    forgotten: RangeSet<i64>,
    covered: RangeSet<i64>,
    /// By slot; `None` if the exchange no longer has a candle.
    candles: BTreeMap<i64, Option<Candle>>,
}

impl Changes {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.forgotten.is_empty() && self.covered.is_empty()
    }

    /// Its size in candles and ranges.
    pub fn weight(&self) -> usize {
        self.candles.len() + self.forgotten.len() + self.covered.len()
    }

    /// The slots that lose their coverage and their candles, in order.
    pub fn forgotten(&self) -> impl Iterator<Item = Range<i64>> {
        self.forgotten.iter().cloned()
    }

    /// The slots that become covered after that, in order.
    pub fn covered(&self) -> impl Iterator<Item = Range<i64>> {
        self.covered.iter().cloned()
    }

    /// All slots that are forgotten or covered.
    pub fn ranges(&self) -> impl Iterator<Item = Range<i64>> {
        self.forgotten().chain(self.covered())
    }

    /// The candles by slot, in order; `None` for a candle to delete.
    pub fn candles(&self) -> impl Iterator<Item = (i64, Option<&Candle>)> {
        (self.candles.iter()).map(|(slot, candle)| (*slot, candle.as_ref()))
    }

    /// Notes a response of the exchange for these slots. Stored candles in these slots stay, unless
    /// `candles` has an entry for them: a candle replaces the stored one, and `None` deletes it.
    pub fn answered(
        &mut self,
        slots: Range<i64>,
        candles: impl IntoIterator<Item = (i64, Option<Candle>)>,
    ) {
        for (slot, candle) in candles {
            debug_assert!(slots.contains(&slot), "a candle of a response is in its range");
            self.candles.insert(slot, candle);
        }
        if !slots.is_empty() {
            self.covered.insert(slots);
        }
    }

    /// Deletes these slots: their coverage and their candles.
    pub fn forget(&mut self, slots: Range<i64>) {
        if !slots.is_empty() {
            while let Some((&slot, _)) = self.candles.range(slots.clone()).next() {
                self.candles.remove(&slot);
            }
            self.covered.remove(slots.clone());
            self.forgotten.insert(slots);
        }
    }

    /// Deletes all slots before this one because of their age. No other change of the core has a range
    /// without a lower end.
    pub fn evict(&mut self, before: i64) {
        self.forget(i64::MIN..before);
    }

    /// Merges later changes into these.
    pub fn absorb(&mut self, later: Changes) {
        later.forgotten().for_each(|slots| self.forget(slots));
        self.covered.extend(later.covered);
        self.candles.extend(later.candles);
    }
}

/// The name of a stored series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
    /// The interval of its candles.
    pub interval: Stored,
}

/// The name of a stored quote, or of the stored rules of a market.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuoteName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
}

/// The last quote of a market, which is kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedQuote {
    /// The figures.
    pub ticker: Ticker,
    /// When the last poll with this quote was received.
    pub received_at: UnixMs,
}
