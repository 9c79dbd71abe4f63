//! History: what the core and the disk thread say to each other, plain data both ways.
//!
//! Owns the words: [`Job`] goes down, [`Answer`] comes up, [`Batch`] is what a flush writes, and
//! the two errors are what can go wrong. They stand in the lowest row so that `server`, which
//! decides what is stored, and `store`, which stores it, need not know each other.
//!
//! It never names a file handle and never acts. Series are named by texts, because the numbers
//! that the market gives them do not survive the process.

mod batch;
mod error;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use batch::{Batch, Changes, Fate};
pub use error::{OpenError, StoreError};

use crate::interval::Stored;
use crate::record::{Candle, Edge, MarketRules, Ticker};
use crate::time::UnixMs;
use std::ops::Range;

/// Marks the file as marketd's among all SQLite files: `mktd`.
pub const APPLICATION_ID: u32 = 0x6d6b_7464;

/// Version of the tables that this build writes.
pub const VERSION: u32 = 2;

/// Behind the name of a history file: its write-ahead log, when the file itself had gone. A person
/// who has moved the file can put the two together again.
pub const LOG_SET_ASIDE: &str = "-wal-left";

/// Candles that one read answers at most: some two milliseconds of the disk thread, before it
/// comes to the next job, and 200 KB on their way to the loop.
pub const PAGE: usize = 2048;

/// What a stored series is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
    /// Its interval.
    pub interval: Stored,
}

/// What a stored quote, or a market's stored rules, are of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuoteName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
}

/// The last quote of a source, as it is kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedQuote {
    /// The figures.
    pub ticker: Ticker,
    /// When the last successful poll that contained it was received.
    pub received_at: UnixMs,
}

/// What the disk thread is to do. Jobs are done in the order in which they were sent; only
/// evictions are put off, and cut up, so that nothing waits for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Tell what the file holds: [`Answer::Heads`], [`Answer::Quotes`] and [`Answer::Markets`] in
    /// pieces, then [`Answer::Loaded`]. Candles are not among it: their number does not matter for the time
    /// that this takes.
    Load,
    /// Read candles: [`Answer::Rows`].
    Read(Read),
    /// Write, in one transaction: [`Answer::Written`].
    Write {
        /// The caller's number, which comes back with the answer.
        number: u64,
        /// What to write.
        batch: Box<Batch>,
    },
    /// Forget all slots of a series before this one, some rows at a time: [`Answer::Evicted`].
    Evict {
        /// Which series.
        series: SeriesName,
        /// The first slot that stays.
        before: i64,
    },
    /// Finish: everything sent before is done, the log is moved into the file and emptied, the
    /// file is closed: [`Answer::Stopped`]. Evictions under way are left for the next run.
    Stop,
}

/// Candles that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The caller's number, which comes back with the answer.
    pub ticket: u64,
    /// Which series.
    pub series: SeriesName,
    /// Which slots, half-open. Wider than what is stored is fine.
    pub slots: Range<i64>,
    /// Most rows; above [`PAGE`] it is taken as that.
    pub limit: usize,
    /// From which end, when there are more.
    pub keep: Edge,
}

/// What the disk thread says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The file is open. Comes first, or after an [`Answer::Failed`] that has passed: what was
    /// loaded before still holds, since nobody else writes.
    Opened(Opened),
    /// The file cannot be used; see [`OpenError::is_refusal`] and [`OpenError::may_pass`]. All
    /// jobs are answered with [`StoreError::NotOpen`] from now on. Told again only when the reason
    /// has become another one.
    Failed(OpenError),
    /// Some of the stored series, in the order of their creation.
    Heads(Vec<Head>),
    /// Some of the saved quotes.
    Quotes(Vec<(QuoteName, SavedQuote)>),
    /// Some of the markets' rules, as the exchange last told them.
    Markets(Vec<(QuoteName, MarketRules)>),
    /// All series, quotes and markets have been told, or the error that cut it short.
    Loaded(Result<Loaded, StoreError>),
    /// The candles that were asked for.
    Rows {
        /// The number of the [`Read`].
        ticket: u64,
        /// They, or why not.
        result: Result<Rows, StoreError>,
    },
    /// What became of a batch.
    Written {
        /// The number of the [`Job::Write`].
        number: u64,
        /// On disk, synced; or as if it had never been sent.
        result: Result<Written, Unwritten>,
    },
    /// What became of an eviction. On an error some of the slots may be gone, the oldest first.
    Evicted {
        /// Which series.
        series: SeriesName,
        /// The first slot that stays.
        before: i64,
        /// What left, and what is left.
        result: Result<Evicted, StoreError>,
    },
    /// The thread has ended. An error is what kept the log from being emptied; nothing that was
    /// acknowledged is lost by that.
    Stopped(Result<(), StoreError>),
}

/// A file that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Whether it was made just now.
    pub created: bool,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// True if a write-ahead log without its file lay there. It has been renamed, see
    /// [`LOG_SET_ASIDE`].
    pub log_set_aside: bool,
}

/// A stored series without its candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which series.
    pub series: SeriesName,
    /// Slots that the exchange has answered for: sorted, apart from each other.
    pub covered: Vec<Range<i64>>,
    /// Its candles.
    pub extent: Extent,
}

/// How many candles of a series the file holds, and from where to where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Slot of the oldest candle.
    pub first: Option<i64>,
    /// Slot of the newest candle.
    pub last: Option<i64>,
    /// How many candles: kept along with each write, and wrong where somebody has deleted rows by
    /// hand.
    pub count: u64,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Series told.
    pub series: usize,
    /// Quotes told.
    pub quotes: usize,
    /// Rows that make no sense, and were passed over.
    pub unsound: u64,
}

/// Candles that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Which series.
    pub series: SeriesName,
    /// What this answers for: all that was asked, or the part of it at [`Read::keep`]'s end that
    /// the limit has left. The rest is another read.
    pub slots: Range<i64>,
    /// The parts of these slots that the exchange has answered for, in order. Nothing is known of
    /// the others, whatever the caller believes: they are no slots without a candle.
    pub covered: Vec<Range<i64>>,
    /// Oldest first. Each is sound, aligned, and lies in a covered slot.
    pub candles: Vec<Candle>,
    /// Slots whose rows are no sound candles, or not what was written, and were passed over. What
    /// is known of them is nothing: whoever asked should forget them, to ask the exchange again.
    pub unsound: Vec<i64>,
}

/// A batch that is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Candles in slots that had none.
    pub inserted: u64,
    /// Candles whose numbers changed.
    pub updated: u64,
    /// Candles that were deleted.
    pub removed: u64,
    /// Size of the file in bytes, once the log has been moved into it.
    pub bytes: u64,
    /// What the file holds now of each series that the batch was about.
    pub extents: Vec<(SeriesName, Extent)>,
}

/// Old candles that have left the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// How many.
    pub count: u64,
    /// What the file holds now of their series.
    pub extent: Extent,
}

/// A batch that is not on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Why.
    pub error: StoreError,
    /// The batch, back in the caller's hands.
    pub batch: Box<Batch>,
}
