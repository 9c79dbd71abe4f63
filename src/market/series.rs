//! The candles of one market in one stored interval.
//!
//! Owns three things: the closed candles that the exchange confirmed, as rendered rows
//! (`chunk.rs`); the slots for which it has answered, with a candle or without (`spans.rs`); and
//! the *tail*, which is newer than both: candles made from quotes, and the forming one.
//!
//! It never blends: what the exchange says about a slot replaces what quotes made of it. It never
//! serves a made-up candle as a closed one, and what it serves is a function of what it was told,
//! not of the time of asking: the same version is the same answer.
//!
//! Invariant: a row lies in a covered slot, and every slot of the tail is behind all covered ones.

use super::chunk::{CHUNK_SLOTS, Chunk, Draft, chunk_of, chunks_of, places_of, render};
use super::spans::Spans;
use super::{SourceId, SymbolId};
use crate::decimal::Decimal;
use crate::interval::Stored;
use crate::record::Candle;
use crate::time::UnixMs;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub use super::chunk::Edge;

/// Most provisional candles of one series: four hours of minutes without an answer about
/// candles while quotes go on. What falls out is a hole until the exchange answers.
pub const MAX_PROVISIONAL: usize = 240;

/// What a series is of. Ordered by source, then symbol: the three intervals of a market are
/// neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey {
    /// Whose candles.
    pub source: SourceId,
    /// Of which market.
    pub symbol: SymbolId,
    /// In which interval.
    pub interval: Stored,
}

/// See the module's page.
#[derive(Debug)]
pub struct Series {
    key: SeriesKey,
    pub(super) chunks: BTreeMap<i64, Chunk>,
    pub(super) covered: Spans,
    /// Oldest first; the last one is forming or, when no quote came since, was.
    pub(super) tail: Vec<Tail>,
    /// The newest slot that is known to have begun, from the clocks that came with answers and
    /// quotes.
    pub(super) frontier: i64,
    count: usize,
    bytes: usize,
    pub(super) version: u64,
    closed_version: u64,
    pub(super) forgotten: Option<i64>,
}

/// A candle that is not confirmed as closed.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) slot: i64,
    pub(super) candle: Candle,
    /// Rendered at the first read after a change.
    row: OnceCell<Arc<[u8]>>,
}

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

impl Tail {
    pub(super) fn new(slot: i64, candle: Candle) -> Tail {
        let row = OnceCell::new();
        Tail { slot, candle, row }
    }

    /// Its row: `[t,o,h,l,c,v],`.
    pub(super) fn row(&self) -> &Arc<[u8]> {
        self.row.get_or_init(|| {
            let mut row = Vec::with_capacity(96);
            render(&self.candle, &mut row);
            row.into()
        })
    }
}

impl Series {
    /// A series of which nothing is known. Versions count from `version`: a series that comes
    /// back after it left must not repeat one.
    pub fn new(key: SeriesKey, version: u64) -> Series {
        Series {
            key,
            chunks: BTreeMap::new(),
            covered: Spans::new(),
            tail: Vec::new(),
            frontier: i64::MIN,
            count: 0,
            bytes: 0,
            version,
            closed_version: version,
            forgotten: None,
        }
    }

    /// What it is of.
    pub fn key(&self) -> SeriesKey {
        self.key
    }

    /// The interval of its candles.
    pub fn interval(&self) -> Stored {
        self.key.interval
    }

    /// Slots about which the exchange has answered. Closed ones only.
    pub fn covered(&self) -> &Spans {
        &self.covered
    }

    /// Grows with every change of what is served.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Grows with every change of the stored candles or the coverage.
    pub fn closed_version(&self) -> u64 {
        self.closed_version
    }

    /// Stored candles.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What they take in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Covered slots without a candle.
    pub fn gaps(&self) -> u64 {
        let covered: u64 = (self.covered.iter())
            .map(|span| span.end.abs_diff(span.start))
            .sum();
        covered - self.count as u64
    }

    /// Open time of the oldest stored candle.
    pub fn first_closed(&self) -> Option<UnixMs> {
        let (id, chunk) = self.chunks.first_key_value()?;
        let place = chunk.first_in(&(0..CHUNK_SLOTS as u32))?;
        Some(self.open_of(id * CHUNK_SLOTS + i64::from(place)))
    }

    /// Open time of the newest candle that the exchange has confirmed as closed.
    pub fn last_closed(&self) -> Option<UnixMs> {
        self.last_row().map(|slot| self.open_of(slot))
    }

    /// Slots below this one were evicted for want of room or for their age. To fetch them again
    /// unasked would only evict others.
    pub fn forgotten_before(&self) -> Option<i64> {
        self.forgotten
    }

    /// The newest slot that is known to have begun.
    pub(super) fn frontier(&self) -> i64 {
        self.frontier
    }

    /// Takes a quote: the forming candle follows its price. Says whether anything changed. A
    /// quote of a slot that is confirmed or has been left is ignored.
    pub fn tick(&mut self, price: &Decimal, at: UnixMs) -> bool {
        let slot = self.interval().slot_of(at);
        let confirmed = self.covered.last().is_some_and(|last| slot <= last);
        if confirmed || slot < 0 || !price.is_positive() {
            return false;
        }
        match self.tail.last_mut() {
            Some(last) if last.slot == slot => {
                if !follow(&mut last.candle, price) {
                    return false;
                }
                last.row.take();
            }
            // A quote that came late by a moment.
            Some(last) if last.slot == slot + 1 => return false,
            _ => {
                // What lies further ahead was made while the clock was wrong.
                self.tail.retain(|tail| tail.slot < slot);
                let candle = Candle {
                    open_time: self.open_of(slot),
                    open: price.clone(),
                    high: price.clone(),
                    low: price.clone(),
                    close: price.clone(),
                    volume: Decimal::ZERO,
                };
                self.tail.push(Tail::new(slot, candle));
                self.settle_tail();
            }
        }
        self.version += 1;
        self.advance(slot);
        true
    }

    /// Finds at most `limit` stored candles of these slots. `second` marks their chunks as read
    /// then.
    pub fn range(&self, slots: Range<i64>, limit: usize, keep: Edge, second: u32) -> RowRange {
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

    /// The tail's candles in these slots, oldest first.
    pub(super) fn tail(&self, slots: &Range<i64>) -> &[Tail] {
        let first = self.tail.partition_point(|tail| tail.slot < slots.start);
        let behind = self.tail.partition_point(|tail| tail.slot < slots.end);
        &self.tail[first..behind.max(first)]
    }

    /// The newest candle's slot among these, stored or of the tail.
    pub(super) fn last_candle(&self, slots: Range<i64>) -> Option<i64> {
        if slots.is_empty() {
            return None;
        }
        if let Some(tail) = self.tail(&slots).last() {
            return Some(tail.slot);
        }
        (self.chunks.range(chunks_of(&slots)).rev()).find_map(|(id, chunk)| {
            let place = chunk.last_in(&places_of(*id, &slots))?;
            Some(id * CHUNK_SLOTS + i64::from(place))
        })
    }

    /// The oldest candle's slot among these, stored or of the tail.
    pub(super) fn first_candle(&self, slots: Range<i64>) -> Option<i64> {
        if slots.is_empty() {
            return None;
        }
        let stored = (self.chunks.range(chunks_of(&slots))).find_map(|(id, chunk)| {
            let place = chunk.first_in(&places_of(*id, &slots))?;
            Some(id * CHUNK_SLOTS + i64::from(place))
        });
        stored.or_else(|| self.tail(&slots).first().map(|tail| tail.slot))
    }

    /// The newest stored candle's slot.
    pub(super) fn last_row(&self) -> Option<i64> {
        let (id, chunk) = self.chunks.last_key_value()?;
        let place = chunk.last_in(&(0..CHUNK_SLOTS as u32))?;
        Some(id * CHUNK_SLOTS + i64::from(place))
    }

    /// The rows of these slots, one by one, oldest first: stored ones, then the tail's. `second`
    /// marks the chunks as read then.
    pub(super) fn rows(&self, slots: Range<i64>, second: u32) -> impl Iterator<Item = &[u8]> {
        let chunks = chunks_of(&slots);
        let tail = self.tail(&slots).iter().map(|tail| &tail.row()[..]);
        let stored = self.chunks.range(chunks).flat_map(move |(id, chunk)| {
            chunk.touch(second);
            chunk.rows_in(places_of(*id, &slots))
        });
        stored.chain(tail)
    }

    /// Forgets all slots before this one. Answers how many candles left.
    pub fn forget_before(&mut self, slot: i64) -> usize {
        if !self.covered.remove(i64::MIN..slot) {
            return 0;
        }
        let before = self.count;
        while let Some((id, chunk)) = self.chunks.first_key_value() {
            let id = *id;
            if id > chunk_of(slot) || chunk.count_in(&places_of(id, &(i64::MIN..slot))) == 0 {
                break;
            }
            let mut rest = Draft::default();
            rest.copy(chunk, places_of(id, &(slot..i64::MAX)));
            let rest = rest.build(chunk.read());
            self.set_chunk(id, rest);
        }
        self.forgotten = self.forgotten.max(Some(slot));
        self.bump_closed();
        self.check();
        before - self.count
    }

    /// The oldest chunk, if it may be evicted: second of its last read, and the slot behind it.
    pub(super) fn oldest_chunk(&self) -> Option<(u32, i64)> {
        if self.chunks.len() < 2 {
            return None;
        }
        let (id, chunk) = self.chunks.first_key_value()?;
        Some((chunk.read(), (id + 1) * CHUNK_SLOTS))
    }

    pub(super) fn open_of(&self, slot: i64) -> UnixMs {
        self.interval().open_of(slot)
    }

    pub(super) fn set_chunk(&mut self, id: i64, chunk: Option<Chunk>) {
        if let Some(chunk) = &chunk {
            self.count += chunk.count();
            self.bytes += chunk.bytes();
        }
        let old = match chunk {
            Some(chunk) => self.chunks.insert(id, chunk),
            None => self.chunks.remove(&id),
        };
        if let Some(old) = old {
            self.count -= old.count();
            self.bytes -= old.bytes();
        }
    }

    /// Lets go of the tail's candles that are confirmed or too many.
    pub(super) fn settle_tail(&mut self) {
        let before = self.tail.len();
        let last = self.covered.last();
        self.tail.retain(|tail| Some(tail.slot) > last);
        let excess = self.tail.len().saturating_sub(MAX_PROVISIONAL + 1);
        self.tail.drain(..excess);
        if self.tail.len() != before {
            self.version += 1;
        }
    }

    /// A derived candle stops to be the forming one when its last slot has passed: that is a
    /// change of what is served, though no number changed.
    pub(super) fn advance(&mut self, slot: i64) {
        if slot > self.frontier {
            self.frontier = slot;
            self.version += 1;
        }
    }

    pub(super) fn bump_closed(&mut self) {
        self.version += 1;
        self.closed_version += 1;
    }

    /// The invariant of the module's page.
    pub(super) fn check(&self) {
        debug_assert!(self.tail.windows(2).all(|pair| pair[0].slot < pair[1].slot));
        let last = self.covered.last();
        debug_assert!(self.tail.iter().all(|tail| Some(tail.slot) > last));
        debug_assert!(self.tail.len() <= MAX_PROVISIONAL + 1);
        let chunks = || self.chunks.values();
        debug_assert_eq!(chunks().map(Chunk::count).sum::<usize>(), self.count);
        debug_assert_eq!(chunks().map(Chunk::bytes).sum::<usize>(), self.bytes);
        debug_assert!(self.chunks.iter().all(|(id, chunk)| {
            let slots = id * CHUNK_SLOTS..(id + 1) * CHUNK_SLOTS;
            let inside: usize = (self.covered.within(slots))
                .map(|span| chunk.count_in(&places_of(*id, &span)))
                .sum();
            inside == chunk.count() && inside > 0
        }));
    }
}

/// Lets a candle follow a price; says whether that changed it.
fn follow(candle: &mut Candle, price: &Decimal) -> bool {
    if candle.close == *price {
        return false;
    }
    if *price > candle.high {
        candle.high = price.clone();
    }
    if *price < candle.low {
        candle.low = price.clone();
    }
    candle.close = price.clone();
    true
}
