//! What is read of a series: its stored rows, and where its candles are.
//!
//! Owns nothing. It never looks into a row to find or to measure it, and never copies one: what
//! it hands out is shared.

use super::chunk::{CHUNK_SLOTS, Chunk, chunks_of, places_of};
use super::forming::FormingCandle;
use super::rollup::fields;
use super::series::Series;
use crate::decimal::Decimal;
use crate::record::Candle;
use std::ops::Range;
use std::sync::Arc;

pub use crate::record::Edge;

/// Some stored candles in a row, found without looking at their rows.
#[derive(Clone, Debug, Default)]
pub struct RowRange {
    /// From the first one's slot to behind the last one's; empty when there is none.
    pub slots: Range<i64>,
    /// How many.
    pub rows: usize,
    /// Their bytes, the comma behind each included.
    pub bytes: usize,
    /// The bytes, oldest first: shared, and the part that belongs to the range. They stay as they
    /// are for as long as somebody holds them, whatever becomes of the series.
    pub pieces: Vec<(Arc<[u8]>, Range<usize>)>,
}

impl RowRange {
    /// Takes from chunk after chunk, from one end of the range, until the limit is reached.
    fn gather<'a>(
        &mut self,
        chunks: impl Iterator<Item = (&'a i64, &'a Chunk)>,
        slots: &Range<i64>,
        limit: usize,
        keep: Edge,
        second: u32,
    ) {
        // A chunk between the outermost two lies in the range whole.
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
    /// Finds at most `limit` stored candles of these slots. `second` marks their chunks as read
    /// then.
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

    /// The forming's candles in these slots, oldest first.
    pub(super) fn forming_in(&self, slots: &Range<i64>) -> &[FormingCandle] {
        let first = self
            .forming
            .partition_point(|forming| forming.slot < slots.start);
        let behind = self
            .forming
            .partition_point(|forming| forming.slot < slots.end);
        &self.forming[first..behind.max(first)]
    }

    /// The newest candle's slot among these, stored or of the forming.
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

    /// The oldest candle's slot among these, stored or of the forming.
    pub(super) fn first_candle(&self, slots: Range<i64>) -> Option<i64> {
        if slots.is_empty() {
            return None;
        }
        let stored = self.next_candle(slots.clone());
        stored.or_else(|| self.forming_in(&slots).first().map(|forming| forming.slot))
    }

    /// Whether there is a candle in this slot.
    pub fn has_candle(&self, slot: i64) -> bool {
        self.next_candle(slot..slot + 1).is_some()
    }

    /// The oldest stored candle's slot among these.
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
            places
                .map(|place| first + i64::from(place))
                .collect::<Vec<_>>()
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

    /// The rows of these slots, one by one, oldest first: stored ones, then the forming's. `second`
    /// marks the chunks as read then.
    pub(super) fn rows(&self, slots: Range<i64>, second: u32) -> impl Iterator<Item = &[u8]> {
        self.touch(second);
        let chunks = chunks_of(&slots);
        let forming = self
            .forming_in(&slots)
            .iter()
            .map(|forming| &forming.row()[..]);
        let stored = self.chunks.range(chunks).flat_map(move |(id, chunk)| {
            chunk.touch(second);
            chunk.rows_in(places_of(*id, &slots))
        });
        stored.chain(forming)
    }

    /// The chunk that may be evicted: the oldest that nobody waits for, or where there is none, that
    /// nobody but those who asked first wait for. Second of its last read, and its slots. Never the
    /// newest.
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

    /// The first chunk before `end` that has no part in the newest wishes, so many of them.
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
