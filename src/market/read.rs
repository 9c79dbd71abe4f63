//! Reads of a series: its stored rows, and where its candles are.
//!
//! It finds and measures rows without looking into them, and shares their bytes instead of copying
//! them.

use super::chart::Pieces;
use super::chunk::{CHUNK_SLOTS, chunk_of, chunks_of, place_of, places_of, slot_of};
use super::forming::FormingCandle;
use super::rollup::numbers;
use super::series::{LeavingChunk, Series};
use crate::decimal::Decimal;
use crate::record::Candle;
use std::cmp::Reverse;
use std::ops::Range;

impl Series {
    /// The number of stored candles in these slots, and their bytes with the comma after each, oldest
    /// first: shared, and the range that belongs here. Marks their chunks as read at `second`.
    pub(super) fn pieces(&self, slots: &Range<i64>, second: u32) -> (usize, Pieces) {
        self.touch(second);
        let (mut rows, mut pieces) = (0, Vec::new());
        for (id, chunk) in self.chunks.range(chunks_of(slots)) {
            let places = places_of(*id, slots);
            let count = chunk.count_in(&places);
            if count > 0 {
                chunk.touch(second);
                rows += count;
                pieces.push((chunk.rows().clone(), chunk.bytes_of(&places)));
            }
        }
        (rows, pieces)
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

    /// The slots of the candles among these, stored or forming, oldest first.
    pub(super) fn candle_slots(&self, slots: Range<i64>) -> impl DoubleEndedIterator<Item = i64> {
        let forming = self.forming_in(&slots).iter();
        self.row_slots(slots).chain(forming.map(|forming| forming.slot))
    }

    /// The slot of the oldest stored candle among these.
    pub fn next_candle(&self, slots: Range<i64>) -> Option<i64> {
        self.row_slots(slots).next()
    }

    /// The slots of the stored candles among these, oldest first.
    pub(super) fn row_slots(&self, slots: Range<i64>) -> impl DoubleEndedIterator<Item = i64> {
        let chunks = self.chunks.range(chunks_of(&slots));
        chunks.flat_map(move |(id, chunk)| {
            chunk.places(places_of(*id, &slots)).map(|place| slot_of(*id, place))
        })
    }

    /// The stored candles of these slots, oldest first.
    pub fn candles(&self, slots: &Range<i64>) -> Vec<(i64, Candle)> {
        let candle = |slot: i64| {
            let row = self.chunks.get(&chunk_of(slot))?.row(place_of(slot))?;
            let numbers = numbers(row).map(|digits| Decimal::parse(digits).ok());
            let [Some(open), Some(high), Some(low), Some(close), Some(volume)] = numbers else {
                return None;
            };
            let open_time = self.open_of(slot);
            Some((slot, Candle { open_time, open, high, low, close, volume }))
        };
        self.row_slots(slots.clone()).filter_map(candle).collect()
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

    /// The chunk to evict next. It is the oldest that no client waits for; if clients wait for all, the
    /// one wanted longest ago. Never the newest.
    pub(super) fn next_to_leave(&self) -> Option<LeavingChunk> {
        let (newest, _) = self.chunks.last_key_value()?;
        let older = || self.chunks.range(..newest);
        // The place of the newest wish for a chunk.
        let wish =
            |id: &i64| self.wanted.iter().position(|(slots, _)| chunks_of(slots).contains(id));
        let unwanted = older().find(|(id, _)| wish(id).is_none());
        let (id, chunk) = unwanted.or_else(|| older().min_by_key(|(id, _)| Reverse(wish(id))))?;
        let is_oldest = self.chunks.first_key_value().is_some_and(|(oldest, _)| oldest == id);
        let until = (id + 1) * CHUNK_SLOTS;
        Some(LeavingChunk {
            read: chunk.read(),
            end: self.open_of(until),
            series: self.key(),
            from: if is_oldest { i64::MIN } else { id * CHUNK_SLOTS },
            until,
        })
    }
}
