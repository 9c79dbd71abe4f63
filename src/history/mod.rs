//! The messages between the core and the disk thread: plain data in both directions.
//!
//! The core sends a [`DiskJob`], and the disk thread sends a [`Reply`] back. One job writes a [`Batch`]. The
//! errors are [`OpenError`] and [`StoreError`]. The messages are in the lowest layer so that `core`, which
//! decides what is stored, and `store`, which stores it, do not import each other.
//!
//! Series are named by texts, because the market's numbers for them differ in each run.

mod batch;
mod error;
mod messages;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use batch::{Batch, Changes, QuoteName, SavedQuote, SeriesName};
pub use error::{OpenError, StoreError, Unusable};
pub use messages::{
    DiskJob, Extent, Loaded, Opened, PAGE, ReadJob, Reply, Rows, SeriesHead, Unwritten, Written,
    WrittenSeries,
};

/// Marks the file as marketd's among all SQLite files: `mktd`.
pub const APPLICATION_ID: u32 = 0x6d6b_7464;

/// The version of the tables that this build writes.
pub const VERSION: u32 = 3;

/// The suffix of a write-ahead log whose history file was removed. A person who has moved the file can
/// rename the log back to its name.
pub const LOG_SET_ASIDE: &str = "-wal-left";
