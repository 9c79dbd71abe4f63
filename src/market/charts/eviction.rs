//! The order in which chunks are evicted.
//!
//! Owns the chunks that may be evicted, as far as the series were looked at.

use crate::market::series::{Series, SeriesKey};
use crate::time::UnixMs;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;

/// Series that one call of [`Charts::trim`] looks at for their oldest chunks: as long.
pub(super) const SCANNED_AT_ONCE: usize = 128;

/// The chunk of a series that may leave: when it was last read, its end in time, whose it is, and
/// the slot behind it. The least leaves first.
pub(super) type Candidate = (u32, UnixMs, SeriesKey, i64);

/// Which chunks leave next, as far as that has been looked at.
#[derive(Debug, Default)]
pub(super) struct EvictionQueue {
    /// At most one of each series.
    pub(super) chunks: BinaryHeap<Reverse<Candidate>>,
    /// The last series that was looked at.
    pub(super) scanned: Option<SeriesKey>,
    /// Whether every series was.
    pub(super) is_whole: bool,
    /// Chunks that have left since.
    pub(super) gone: usize,
}

impl EvictionQueue {
    /// Looks at some more series for their oldest chunks.
    pub(super) fn scan(&mut self, series: &BTreeMap<SeriesKey, Series>) {
        let behind = (self.scanned).map_or(Bound::Unbounded, Bound::Excluded);
        let mut looked = 0;
        let rest = series.range((behind, Bound::Unbounded));
        for (key, series) in rest.take(SCANNED_AT_ONCE) {
            looked += 1;
            self.scanned = Some(*key);
            self.chunks.extend(candidate(series).map(Reverse));
        }
        self.is_whole = looked < SCANNED_AT_ONCE;
    }
}

/// The chunk of a series that may be evicted.
pub(super) fn candidate(series: &Series) -> Option<Candidate> {
    let (read, slots) = series.next_to_leave()?;
    let key = series.key();
    Some((read, key.interval.open_of(slots.end), key, slots.end))
}
