//! A chunk: a run of 128 slots, and the rendered rows of the candles in it. Also a forming candle with its
//! row.
//!
//! A chunk owns the bytes of its rows. They never change, because responses may share them. A new chunk,
//! built in a [`Draft`], replaces a chunk.
//!
//! Invariant: there is one end for each present candle, the ends increase, and the last one is the
//! length of the rows.

use crate::decimal::{Decimal, MAX_DIGITS};
use crate::record::Candle;
use crate::time::UnixMs;
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Slots of a chunk: as many as a `u128` has bits, so that one number tells which slots have a
/// candle. The rows of a chunk are about 7 KB, and their ends fit in 16 bits however long the
/// decimals are.
pub const CHUNK_SLOTS: i64 = 128;

/// The longest row: `[time,` with 19 digits, five decimals with a point, four commas, `],`.
const MAX_ROW: usize = 21 + 5 * (MAX_DIGITS + 1) + 4 + 2;
const _: () = assert!(MAX_ROW * CHUNK_SLOTS as usize <= u16::MAX as usize);

/// The memory of a chunk without its rows and ends: the struct, its place in the tree, and the
/// overhead of two allocations.
const OVERHEAD: usize = size_of::<Chunk>() + 2 * size_of::<i64>() + 48;

/// 128 slots and the rows of their candles.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Bit `n` is set if place `n` has a candle.
    present: u128,
    /// Where each row ends, one entry for each candle.
    ends: Box<[u16]>,
    /// Rows `[t,o,h,l,c,v],` one after another, shared with responses. The reference counter is
    /// atomic, so that a market may be built on one thread and used on another.
    pub(super) rows: Arc<[u8]>,
    /// The version of its series when it was built: no two chunks of a series with the same number have the
    /// same.
    pub(super) version: u64,
    /// Second of the last read. It is atomic, because copies of a series share chunks, also on another
    /// thread.
    read: AtomicU32,
}

/// A new chunk that is being filled, place after place.
#[derive(Debug, Default)]
pub(super) struct Draft {
    present: u128,
    ends: Vec<u16>,
    rows: Vec<u8>,
}

/// The number of the chunk that holds a slot.
pub(super) fn chunk_of(slot: i64) -> i64 {
    slot.div_euclid(CHUNK_SLOTS)
}

/// The place of a slot in its chunk.
pub(super) fn place_of(slot: i64) -> u32 {
    slot.rem_euclid(CHUNK_SLOTS) as u32
}

/// The places of the chunk `id` that are in a range of slots.
pub(super) fn places_of(id: i64, slots: &Range<i64>) -> Range<u32> {
    let base = id * CHUNK_SLOTS;
    let clip = |slot: i64| slot.saturating_sub(base).clamp(0, CHUNK_SLOTS) as u32;
    clip(slots.start)..clip(slots.end)
}

/// The slot of a place.
pub(super) fn slot_of(id: i64, place: u32) -> i64 {
    id * CHUNK_SLOTS + i64::from(place)
}

/// The numbers of the chunks that a range of slots touches.
pub(super) fn chunks_of(slots: &Range<i64>) -> Range<i64> {
    let start = chunk_of(slots.start);
    start..chunk_of(slots.end.saturating_add(CHUNK_SLOTS - 1)).max(start)
}

/// A time as the second that marks a chunk as read.
pub(super) fn seconds(time: UnixMs) -> u32 {
    (time.0 / 1000).clamp(0, i64::from(u32::MAX)) as u32
}

/// Appends the row of a candle: `[t,o,h,l,c,v],`.
pub(super) fn render(candle: &Candle, out: &mut Vec<u8>) {
    out.push(b'[');
    Decimal::from(candle.open_time.0).write(out);
    let numbers = [&candle.open, &candle.high, &candle.low, &candle.close];
    for number in numbers.into_iter().chain([&candle.volume]) {
        out.push(b',');
        number.write(out);
    }
    out.extend_from_slice(b"],");
}

/// The bits of these places.
fn mask(places: &Range<u32>) -> u128 {
    let below = |place: u32| 1u128.checked_shl(place).map_or(u128::MAX, |bit| bit - 1);
    below(places.end) & !below(places.start)
}

impl Chunk {
    /// The number of candles.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.rows.len() + size_of_val(&*self.ends) + OVERHEAD
    }

    /// Second of the last read.
    pub(super) fn read(&self) -> u32 {
        self.read.load(Ordering::Relaxed)
    }

    /// Sets the second of the last read.
    pub(super) fn touch(&self, second: u32) {
        self.read.store(second, Ordering::Relaxed);
    }

    /// The number of candles in these places.
    pub(super) fn count_in(&self, places: &Range<u32>) -> usize {
        (self.present & mask(places)).count_ones() as usize
    }

    /// The places among these that have a candle.
    pub(super) fn places(
        &self,
        places: Range<u32>,
    ) -> impl DoubleEndedIterator<Item = u32> + use<> {
        let present = self.present;
        places.filter(move |place| present >> place & 1 == 1)
    }

    /// The row in this place.
    pub(super) fn row(&self, place: u32) -> Option<&[u8]> {
        self.rows_in(place..place + 1).next()
    }

    /// The rows of these places, one by one.
    pub(super) fn rows_in(&self, places: Range<u32>) -> impl Iterator<Item = &[u8]> {
        let first = self.rank(places.start);
        let ends = &self.ends[first..first + self.count_in(&places)];
        let mut begin = self.offset(places.start);
        ends.iter().map(move |end| {
            let row = &self.rows[begin..usize::from(*end)];
            begin = usize::from(*end);
            row
        })
    }

    /// Where the rows of these places are in [`Chunk::rows`].
    pub(super) fn bytes_of(&self, places: &Range<u32>) -> Range<usize> {
        self.offset(places.start)..self.offset(places.end)
    }

    /// The number of candles before this place.
    fn rank(&self, place: u32) -> usize {
        self.count_in(&(0..place))
    }

    /// Where the first row at or after this place begins.
    fn offset(&self, place: u32) -> usize {
        match self.rank(place) {
            0 => 0,
            rank => usize::from(self.ends[rank - 1]),
        }
    }

    /// The invariant in the module comment, in debug builds.
    fn check(&self) {
        debug_assert_eq!(self.present.count_ones() as usize, self.ends.len());
        debug_assert!(self.ends.windows(2).all(|pair| pair[0] < pair[1]));
        let end = self.ends.last().copied().unwrap_or(0);
        debug_assert_eq!(usize::from(end), self.rows.len());
    }
}

impl Draft {
    /// Copies the rows of these places from a chunk. They must come after all places filled so far.
    pub(super) fn copy(&mut self, chunk: &Chunk, places: Range<u32>) {
        let bytes = chunk.bytes_of(&places);
        let first = chunk.rank(places.start);
        let ends = &chunk.ends[first..first + chunk.count_in(&places)];
        let (from, to) = (bytes.start, self.rows.len());
        self.ends.extend(ends.iter().map(|end| (usize::from(*end) - from + to) as u16));
        self.rows.extend_from_slice(&chunk.rows[bytes]);
        self.present |= chunk.present & mask(&places);
    }

    /// Appends a candle and returns its row. The place must come after all places filled so far.
    pub(super) fn push(&mut self, place: u32, candle: &Candle) -> &[u8] {
        debug_assert!(self.present >> place == 0);
        let begin = self.rows.len();
        render(candle, &mut self.rows);
        self.present |= 1 << place;
        self.ends.push(self.rows.len() as u16);
        &self.rows[begin..]
    }

    /// The finished chunk; `None` if it has no candle.
    pub(super) fn build(&self, read: u32) -> Option<Chunk> {
        if self.ends.is_empty() {
            return None;
        }
        let chunk = Chunk {
            present: self.present,
            ends: self.ends.as_slice().into(),
            rows: self.rows.as_slice().into(),
            version: 0,
            read: read.into(),
        };
        chunk.check();
        Some(chunk)
    }
}

/// A candle that the exchange has not confirmed as closed. Its numbers follow the quotes until the exchange
/// reports it. When it has ended, it stays as a provisional candle until the exchange confirms it.
#[derive(Clone, Debug)]
pub(super) struct FormingCandle {
    pub(super) slot: i64,
    pub(super) candle: Candle,
    /// Rendered at the first read after a change.
    pub(super) row: OnceCell<Arc<[u8]>>,
}

impl FormingCandle {
    /// The rendered row: `[t,o,h,l,c,v],`.
    pub(super) fn row(&self) -> &Arc<[u8]> {
        self.row.get_or_init(|| {
            let mut row = Vec::with_capacity(96);
            render(&self.candle, &mut row);
            row.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rows_fit() {
        let longest = Decimal::parse(format!("{}.5", "9".repeat(63)).as_bytes());
        let longest = longest.expect("64 digits are allowed");
        let mut draft = Draft::default();
        for place in 0..CHUNK_SLOTS {
            let candle = Candle {
                open_time: UnixMs(i64::MAX),
                open: longest.clone(),
                high: longest.clone(),
                low: longest.clone(),
                close: longest.clone(),
                volume: longest.clone(),
            };
            assert_eq!(draft.push(place as u32, &candle).len(), MAX_ROW);
        }
        let chunk = draft.build(0).expect("128 rows");
        assert_eq!(chunk.row(127).map(<[u8]>::len), Some(MAX_ROW));
    }
}
