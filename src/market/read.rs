//! Reads of a series: its stored rows, and where its candles are.
//!
//! It finds and measures rows without looking into them, and shares their bytes instead of copying
//! them.

use super::chunk::{CHUNK_SLOTS, Chunk, chunks_of, places_of};
use super::forming::FormingCandle;
use super::rollup::fields;
use super::series::Series;
use crate::decimal::Decimal;
use crate::record::Candle;
use std::ops::Range;
use std::sync::Arc;

pub use crate::record::Edge;

/// Some consecutive stored candles.
#[derive(Clone, Debug, Default)]
pub struct RowRange {
    /// From the first slot to the slot after the last; empty if there is no candle.
    pub slots: Range<i64>,
    /// The number of candles.
    pub rows: usize,
    /// Their size in bytes, with the comma after each.
    pub bytes: usize,
    /// The bytes, oldest first: shared, and the range that belongs here. They stay as they are
    /// while anyone holds them.
    pub pieces: Vec<(Arc<[u8]>, Range<usize>)>,
}

impl RowRange {
    /// Collects chunk after chunk, from one end of the range, up to the limit.
    fn gather<'a>(
        &mut self,
        chunks: impl Iterator<Item = (&'a i64, &'a Chunk)>,
        slots: &Range<i64>,
        limit: usize,
        keep: Edge,
        second: u32,
    ) {
        // A chunk that is not the first or the last lies fully inside the range.
        let outer = chunks_of(slots);
        let (mut rows, mut bytes) = (0, 0);
        let (mut begin, mut end) = (None, None);
        for (id, chunk) in chunks {
            let left = limit - rows;
            let cut = if outer.start < *id && *id < outer.end - 1 && chunk.count() <= left {
                chunk.all()
            } else {
                match chunk.cut(places_of(*id, slots), left, keep) {
                    Some(cut) => cut,
                    None => continue,
                }
            };
            chunk.touch(second);
            rows += cut.count;
            bytes += cut.bytes.len();
            end = Some((*id, cut.places));
            begin = begin.or(end);
            self.pieces.push((chunk.rows().clone(), cut.bytes));
            if rows == limit {
                break;
            }
        }
        (self.rows, self.bytes) = (rows, bytes);
        let (oldest, newest) = match keep {
            Edge::Oldest => (begin, end),
            Edge::Newest => (end, begin),
        };
        if let (Some((first, (place, _))), Some((last, (_, end)))) = (oldest, newest) {
            let start = first * CHUNK_SLOTS + i64::from(place);
            self.slots = start..last * CHUNK_SLOTS + i64::from(end) + 1;
        }
    }
}

impl Series {
    /// Finds at most `limit` stored candles in these slots, and marks their chunks as read at
    /// `second`.
    pub fn range(&self, slots: Range<i64>, limit: usize, keep: Edge, second: u32) -> RowRange {
        self.touch(second);
        if slots.is_empty() || limit == 0 {
            return RowRange::default();
        }
        let expected = limit / CHUNK_SLOTS as usize + 3;
        let mut found = RowRange {
            pieces: Vec::with_capacity(expected.min(self.chunks.len() + 1)),
            ..RowRange::default()
        };
        let chunks = self.chunks.range(chunks_of(&slots));
        match keep {
            Edge::Oldest => found.gather(chunks, &slots, limit, keep, second),
            Edge::Newest => {
                found.gather(chunks.rev(), &slots, limit, keep, second);
                found.pieces.reverse();
            }
        }
        found
    }

    /// The forming candles in these slots, oldest first.
    pub(super) fn forming_in(&self, slots: &Range<i64>) -> &[FormingCandle] {
        let place = |slot| self.forming.partition_point(|it| it.slot < slot);
        let (first, behind) = (place(slots.start), place(slots.end));
        &self.forming[first..behind.max(first)]
    }

    /// The candle of this slot, if it is forming.
    pub fn forming(&self, slot: i64) -> Option<&Candle> {
        let forming = self.forming_in(&(slot..slot + 1)).first();
        forming.map(|forming| &forming.candle)
    }

    /// The slot of the newest candle among these, stored or forming.
    pub(super) fn last_candle(&self, slots: Range<i64>) -> Option<i64> {
        if slots.is_empty() {
            return None;
        }
        if let Some(forming) = self.forming_in(&slots).last() {
            return Some(forming.slot);
        }
        (self.chunks.range(chunks_of(&slots)).rev()).find_map(|(id, chunk)| {
            let place = chunk.last_in(&places_of(*id, &slots))?;
            Some(id * CHUNK_SLOTS + i64::from(place))
        })
    }

    /// The slot of the oldest candle among these, stored or forming.
    pub(super) fn first_candle(&self, slots: Range<i64>) -> Option<i64> {
        if slots.is_empty() {
            return None;
        }
        let stored = self.next_candle(slots.clone());
        stored.or_else(|| self.forming_in(&slots).first().map(|forming| forming.slot))
    }

    /// True if there is a candle in this slot.
    pub fn has_candle(&self, slot: i64) -> bool {
        self.next_candle(slot..slot + 1).is_some()
    }

    /// The slot of the oldest stored candle among these.
    pub fn next_candle(&self, slots: Range<i64>) -> Option<i64> {
        (self.chunks.range(chunks_of(&slots))).find_map(|(id, chunk)| {
            let place = chunk.first_in(&places_of(*id, &slots))?;
            Some(id * CHUNK_SLOTS + i64::from(place))
        })
    }

    /// The slots of the stored candles among these, oldest first.
    pub(super) fn row_slots(&self, slots: &Range<i64>) -> Vec<i64> {
        let chunks = self.chunks.range(chunks_of(slots));
        let in_chunk = |(id, chunk): (&i64, &'_ Chunk)| {
            let first = *id * CHUNK_SLOTS;
            let places = places_of(*id, slots).filter(|place| chunk.row(*place).is_some());
            places.map(|place| first + i64::from(place)).collect::<Vec<_>>()
        };
        chunks.flat_map(in_chunk).collect()
    }

    /// The stored candles of these slots, oldest first.
    pub fn candles(&self, slots: &Range<i64>) -> Vec<(i64, Candle)> {
        let mut candles = Vec::new();
        for (id, chunk) in self.chunks.range(chunks_of(slots)) {
            for place in places_of(*id, slots) {
                let slot = id * CHUNK_SLOTS + i64::from(place);
                let candle = chunk.row(place).and_then(|row| self.candle_of(slot, row));
                candles.extend(candle.map(|candle| (slot, candle)));
            }
        }
        candles
    }

    fn candle_of(&self, slot: i64, row: &[u8]) -> Option<Candle> {
        let [open, high, low, close, volume] = fields(row);
        let decimal = |digits| Decimal::parse(digits).ok();
        Some(Candle {
            open_time: self.interval().open_of(slot),
            open: decimal(open)?,
            high: decimal(high)?,
            low: decimal(low)?,
            close: decimal(close)?,
            volume: decimal(volume)?,
        })
    }

    /// The rows of these slots, oldest first, stored ones before forming ones. Marks the chunks as
    /// read at `second`.
    pub(super) fn rows(&self, slots: Range<i64>, second: u32) -> impl Iterator<Item = &[u8]> {
        self.touch(second);
        let chunks = chunks_of(&slots);
        let forming = self.forming_in(&slots).iter();
        let forming = forming.map(|forming| &forming.row()[..]);
        let stored = self.chunks.range(chunks).flat_map(move |(id, chunk)| {
            chunk.touch(second);
            chunk.rows_in(places_of(*id, &slots))
        });
        stored.chain(forming)
    }

    /// The chunk to evict next: when it was last read, and its slots. It is the oldest that no
    /// client waits for; if clients wait for all, the one wanted longest ago. Never the newest.
    pub(super) fn next_to_leave(&self) -> Option<(u32, Range<i64>)> {
        let (newest, _) = self.chunks.last_key_value()?;
        let mut wishes = (0..=self.wanted.len()).rev();
        let (id, chunk) = wishes.find_map(|wishes| self.first_beside(wishes, *newest))?;
        let begin = match self.chunks.first_key_value() {
            Some((oldest, _)) if oldest == id => i64::MIN,
            _ => id * CHUNK_SLOTS,
        };
        Some((chunk.read(), begin..(id + 1) * CHUNK_SLOTS))
    }

    /// The first chunk before `end` that is not in the newest `wishes` wanted ranges.
    fn first_beside(&self, wishes: usize, end: i64) -> Option<(&i64, &Chunk)> {
        let wished = |id: i64| {
            let mut wished = self.wanted.iter().take(wishes);
            wished.find_map(|(slots, _)| Some(chunks_of(slots)).filter(|it| it.contains(&id)))
        };
        let mut from = i64::MIN;
        loop {
            let found = self.chunks.range(from.min(end)..end).next()?;
            match wished(*found.0) {
                Some(chunks) => from = chunks.end,
                None => return Some(found),
            }
        }
    }
}
