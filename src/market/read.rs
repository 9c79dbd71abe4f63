//! Reads of a series: its stored rows, and where its candles are.
//!
//! It finds and measures rows without looking into them, and shares their bytes instead of copying
//! them.

use super::chunk::{CHUNK_SLOTS, Chunk, chunk_of, chunks_of, place_of, places_of, slot_of};
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
    /// Their bytes with the comma after each, oldest first: shared, and the range that belongs here.
    /// They stay as they are while anyone holds them.
    pub pieces: Vec<(Arc<[u8]>, Range<usize>)>,
}

impl Series {
    /// Finds at most `limit` stored candles in these slots, and marks their chunks as read at
    /// `second`.
    pub fn range(&self, slots: Range<i64>, limit: usize, keep: Edge, second: u32) -> RowRange {
        self.touch(second);
        let mut found = RowRange::default();
        let mut chunks = self.chunks.range(chunks_of(&slots));
        while found.rows < limit
            && let Some((id, chunk)) = match keep {
                Edge::Oldest => chunks.next(),
                Edge::Newest => chunks.next_back(),
            }
        {
            let places = places_of(*id, &slots);
            let Some(places) = chunk.cut(places, limit - found.rows, keep) else {
                continue;
            };
            chunk.touch(second);
            let (start, end) = (slot_of(*id, places.start), slot_of(*id, places.end));
            found.slots = match found.rows {
                0 => start..end,
                _ => found.slots.start.min(start)..found.slots.end.max(end),
            };
            found.rows += chunk.count_in(&places);
            found.pieces.push((chunk.rows().clone(), chunk.bytes_of(&places)));
        }
        if keep == Edge::Newest {
            found.pieces.reverse();
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
        let forming = self.forming_in(&slots).last().map(|forming| forming.slot);
        forming.or_else(|| self.row_slots(slots).next_back())
    }

    /// The slot of the oldest candle among these, stored or forming.
    pub(super) fn first_candle(&self, slots: Range<i64>) -> Option<i64> {
        let forming = self.forming_in(&slots).first().map(|forming| forming.slot);
        self.next_candle(slots).or(forming)
    }

    /// The slot of the oldest stored candle among these.
    pub fn next_candle(&self, slots: Range<i64>) -> Option<i64> {
        self.row_slots(slots).next()
    }

    /// The slots of the stored candles among these, oldest first.
    pub(super) fn row_slots(&self, slots: Range<i64>) -> impl DoubleEndedIterator<Item = i64> {
        let chunks = self.chunks.range(chunks_of(&slots));
        chunks.flat_map(move |(id, chunk)| {
            chunk.places(&places_of(*id, &slots)).map(|place| slot_of(*id, place))
        })
    }

    /// The stored candles of these slots, oldest first.
    pub fn candles(&self, slots: &Range<i64>) -> Vec<(i64, Candle)> {
        let stored = self.row_slots(slots.clone());
        let candle = |slot: i64| Some((slot, self.candle_of(slot)?));
        stored.filter_map(candle).collect()
    }

    fn candle_of(&self, slot: i64) -> Option<Candle> {
        let row = self.chunks.get(&chunk_of(slot))?.row(place_of(slot))?;
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
