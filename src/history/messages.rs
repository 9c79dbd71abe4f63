//! Jobs for the disk thread, and its answers.

use super::batch::{Batch, QuoteName, SavedQuote, SeriesName};
use super::error::{OpenError, StoreError};
use crate::record::{Candle, Edge, MarketRules};
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
    Write {
        /// The caller's number, which the answer repeats.
        number: u64,
        /// The batch.
        batch: Box<Batch>,
    },
    /// Do all earlier jobs, move the log into the file, close the file, and end. The reply is
    /// [`Reply::Stopped`].
    Stop,
}

/// A request for candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadJob {
    /// The caller's number, which the answer repeats.
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
    /// The file is open. This is the first answer, or it follows a [`Reply::Failed`] whose reason
    /// has gone away. Everything loaded before is still valid, because no other process writes.
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
        /// The number of the [`DiskJob::Write`].
        number: u64,
        /// `Ok` if the whole batch is on disk and synced. After an error, none of it was written.
        result: Result<Written, Unwritten>,
    },
    /// The thread has ended. An error says why the log could not be moved into the file. No
    /// acknowledged write is lost by that.
    Stopped(Result<(), StoreError>),
}

/// An opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// True if the file was created.
    pub created: bool,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// True if there was a write-ahead log without its file. It was renamed, see
    /// [`LOG_SET_ASIDE`](super::LOG_SET_ASIDE).
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
    /// The series.
    pub series: SeriesName,
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
    /// How many of the deleted candles an eviction deleted ([`Changes::evict`](super::Changes::evict)).
    pub evicted: u64,
    /// Size of the file in bytes, once the log has been moved into it.
    pub bytes: u64,
    /// The series of the batch.
    pub series: Vec<WrittenSeries>,
}

/// A series of a batch that is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSeries {
    /// The name of the series.
    pub name: SeriesName,
    /// The slots that were forgotten.
    pub forgotten: Vec<Range<i64>>,
    /// The slots that were covered after that.
    pub covered: Vec<Range<i64>>,
    /// Its new extent.
    pub extent: Extent,
}

/// A batch that could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The reason.
    pub error: StoreError,
    /// The batch.
    pub batch: Box<Batch>,
}
