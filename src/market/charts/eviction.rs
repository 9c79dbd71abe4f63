//! The order in which chunks are evicted.
//!
//! Owns a queue with at most one chunk of each series. The series are scanned in slices.

use crate::market::series::{Series, SeriesKey};
use crate::time::UnixMs;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;

/// The most series that one call of `Charts::trim` scans: about 50 microseconds.
pub(super) const SCANNED_AT_ONCE: usize = 128;

/// The chunk of a series that may be evicted: when it was last read, its end in time, its series,
/// and the slot after it. The least is evicted first.
pub(super) type Candidate = (u32, UnixMs, SeriesKey, i64);

/// The chunks to evict next, as far as the series were scanned.
#[derive(Debug, Default)]
pub(super) struct EvictionQueue {
    /// At most one of each series.
    pub(super) chunks: BinaryHeap<Reverse<Candidate>>,
    /// The last series that was scanned.
    pub(super) scanned: Option<SeriesKey>,
    /// True if every series was scanned.
    pub(super) is_whole: bool,
    /// Chunks evicted since.
    pub(super) gone: usize,
}

impl EvictionQueue {
    /// Scans some more series for their oldest chunks.
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
