//! The candles of one market in one stored interval.
//!
//! [`Series`] owns the closed candles that the exchange confirmed, as rendered rows (`chunk.rs`), and the
//! forming candles, which are newer. A closed slot can be:
//!
//! ```text
//! covered    memory has its candle, or knows that nobody traded (`interval_set.rs`)
//! archived   the history file has its candle, or knows that nobody traded
//! unknown    neither covered nor archived: it may be requested
//! silent     requested, but no response was a proof (`silence.rs`)
//! unsettled  the exchange may still revise its candle: it is requested again
//! ```
//!
//! A slot is often both covered and archived. A slot that was evicted from memory, or not read since the
//! start, is only archived, if the file holds it. Unless the file keeps the series, unknown slots before
//! [`Series::forgotten_before`] are requested only for a client.
//!
//! A candle of the exchange replaces the candle that quotes made for its slot. A forming candle is
//! never served as a closed one. The same version gives the same rows at any time.
//!
//! Invariant: a row lies in a covered slot, and every forming candle is newer than all covered
//! slots.

use super::chart::Recent;
use super::chunk::{CHUNK_SLOTS, Chunk, FormingCandle, places_of, seconds};
use super::interval_set::IntervalSet;
use super::report::IngestCounts;
use super::silence::Silences;
use super::symbol::{SourceId, SymbolId};
use crate::decimal::Decimal;
use crate::history::Extent;
use crate::interval::Stored;
use crate::record::Candle;
use crate::time::UnixMs;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// The most provisional candles of one series: four hours of minutes in which quotes arrive but no
/// candles. A dropped candle leaves a hole until the exchange answers.
pub const MAX_PROVISIONAL: usize = 240;

/// Seconds for which slots stay wanted: longer than any client waits.
pub(super) const WANTED: u32 = 10;

/// The most wanted ranges of one series: more than clients request at once. Above it, the oldest
/// range is forgotten.
const WANTS: usize = 8;

/// How long after a trade a response may first tell of it: some exchanges renew tickers every 2 seconds.
const QUOTE_LATE_MS: i64 = 3000;

/// By how much the exchange's clock may be ahead of what is known of it.
const CLOCK_ERROR_MS: i64 = 1000;

/// The source, the market and the interval of a series. Keys are ordered by source, then symbol, so
/// the three intervals of a market are neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey {
    /// The source.
    pub source: SourceId,
    /// The market.
    pub symbol: SymbolId,
    /// The interval.
    pub interval: Stored,
}

/// A chunk that may be evicted, and the slots that go with it. The least in the derived order is evicted
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeavingChunk {
    /// Second of its last read.
    pub(super) read: u32,
    /// When its last slot ends.
    pub(super) end: UnixMs,
    pub(super) series: SeriesKey,
    pub(super) from: i64,
    pub(super) until: i64,
}

/// The candles of one market in one stored interval.
#[derive(Clone, Debug, Default)]
pub struct Series {
    key: SeriesKey,
    /// Shared with copies.
    pub(super) chunks: BTreeMap<i64, Arc<Chunk>>,
    pub(super) covered: IntervalSet,
    pub(super) archived: IntervalSet,
    /// Slots that were requested, but about which nothing is proven.
    pub(super) silences: Silences,
    /// Slots that are not covered, but in which quotes show a trade.
    pub(super) traded: IntervalSet,
    /// Slots whose candles may still be revised. A candle is settled once a response had it together
    /// with a candle that is newer by more than [`REREAD`](super::REREAD) slots. This set is not
    /// stored: after a restart it has the last slots of each archived stretch.
    pub(super) unsettled: IntervalSet,
    /// The newest candle that was in the file at the begin, or when memory dropped it.
    pub(super) newest_stored: Option<i64>,
    /// If the exchange's clock is in doubt: the first slot that may not have ended yet.
    pub(super) doubted_from: Option<i64>,
    /// Slots before the oldest known candle: a response began with that candle and left them out.
    pub(super) told_before: Option<Range<i64>>,
    /// Oldest first. The last one is still forming, or has ended without a newer quote.
    pub(super) forming: Vec<FormingCandle>,
    /// The newest slot that is known to have begun, from the times of responses and quotes.
    pub(super) frontier: i64,
    count: usize,
    bytes: usize,
    pub(super) version: u64,
    pub(super) forgotten: Option<i64>,
    /// Second of the last read.
    read: Cell<u32>,
    /// Slots that clients wait for, each range with the second of the request. The newest request
    /// is first.
    pub(super) wanted: VecDeque<(Range<i64>, u32)>,
    /// The chunk that is queued to be evicted.
    pub(super) leaving: Option<LeavingChunk>,
    /// The last chart body. It is dropped when a row changes, because it holds the rows.
    pub(super) recent: RefCell<Option<Box<Recent>>>,
}

impl Series {
    /// A series of which nothing is known. Its versions begin with `version`, because a series that
    /// is opened again must not repeat a version.
    pub fn new(key: SeriesKey, version: u64) -> Series {
        Series { key, frontier: i64::MIN, version, ..Series::default() }
    }

    /// The source, the market and the interval.
    pub fn key(&self) -> SeriesKey {
        self.key
    }

    /// Second of the last read.
    pub(super) fn read(&self) -> u32 {
        self.read.get()
    }

    /// Marks the series as read now. Returns the second.
    pub fn touch(&self, now: UnixMs) -> u32 {
        self.read.set(seconds(now));
        self.read.get()
    }

    /// Marks slots that a client now waits for. They are evicted last, so that the first ones are still there
    /// when the last ones arrive.
    pub fn want(&mut self, slots: Range<i64>, now: UnixMs) {
        self.want_no_longer(now);
        self.wanted.truncate(WANTS - 1);
        self.wanted.push_front((slots, seconds(now)));
    }

    /// Forgets ranges that were wanted too long ago.
    pub(super) fn want_no_longer(&mut self, now: UnixMs) {
        self.wanted.retain(|(_, since)| since.saturating_add(WANTED) >= seconds(now));
    }

    /// The interval of its candles.
    pub fn interval(&self) -> Stored {
        self.key.interval
    }

    /// The closed slots whose candle is in memory, and those in which nobody traded.
    pub fn covered(&self) -> &IntervalSet {
        &self.covered
    }

    /// The slots that the history file holds.
    pub fn archived(&self) -> &IntervalSet {
        &self.archived
    }

    /// Increases with every change of what is served.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number of stored candles.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The size of the stored candles in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory that a copy of the series takes. A copy shares the rows.
    pub(super) fn copied(&self) -> usize {
        let sets = [&self.covered, &self.archived, &self.traded, &self.unsettled];
        let ranges = sets.map(IntervalSet::len).iter().sum::<usize>();
        self.chunks.len() * size_of::<(i64, Arc<Chunk>)>()
            + ranges * size_of::<Range<i64>>()
            + self.silences.held()
            + size_of_val(&*self.forming)
    }

    /// The number of covered slots without a candle.
    pub fn gaps(&self) -> u64 {
        self.covered.covered(i64::MIN..i64::MAX) - self.count() as u64
    }

    /// The number of stored candles, and the first and last slot.
    pub fn extent(&self) -> Extent {
        let slots = || self.row_slots(i64::MIN..i64::MAX);
        Extent { first: slots().next(), last: slots().next_back(), count: self.count as u64 }
    }

    /// The end of the newest slots that were evicted for space or age. Unless the file keeps the series,
    /// slots before it are fetched again only for a client: otherwise they would evict others.
    pub fn forgotten_before(&self) -> Option<i64> {
        self.forgotten
    }

    /// Applies a quote to the forming candle, and drops later forming candles. Returns true if anything
    /// changed. Ignores a quote for a confirmed slot, or for the slot just before the forming one.
    ///
    /// `at` is the exchange's clock when the quote came, not the quote's own time, which may be
    /// hours old in a quiet market.
    pub fn tick(&mut self, price: &Decimal, at: UnixMs) -> bool {
        let slot = self.interval().slot_of(at);
        let confirmed = self.covered.last().is_some_and(|last| slot <= last);
        if confirmed || slot < 0 || !price.is_positive() {
            return false;
        }
        match self.forming.last_mut() {
            Some(last) if last.slot == slot => {
                let candle = &mut last.candle;
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
                last.row.take();
            }
            // The quote came a moment late.
            Some(last) if last.slot == slot + 1 => return false,
            _ => {
                // Later candles were made while the clock was wrong.
                self.forming.retain(|forming| forming.slot < slot);
                if slot + 1 < self.frontier {
                    self.frontier = slot;
                }
                let candle = Candle {
                    open_time: self.open_of(slot),
                    open: price.clone(),
                    high: price.clone(),
                    low: price.clone(),
                    close: price.clone(),
                    volume: Decimal::ZERO,
                };
                self.forming.push(FormingCandle { slot, candle, row: OnceCell::new() });
                self.trim_forming();
            }
        }
        self.version += 1;
        self.advance(slot);
        true
    }

    /// Notes that quotes received at these times show a trade in between. If the trade was surely in the slot
    /// of the second one, it is noted there; otherwise the call has no effect.
    pub fn note_trade(&mut self, since: UnixMs, at: UnixMs) {
        let [earliest, slot, latest] = [since - QUOTE_LATE_MS, at, at + CLOCK_ERROR_MS]
            .map(|time| self.interval().slot_of(time));
        if earliest != slot || slot != latest || self.covered.covers(slot..slot + 1) {
            return;
        }
        if self.traded.insert(slot..slot + 1).is_err() {
            let oldest = self.traded.iter().next();
            oldest.map(|oldest| self.traded.remove(oldest));
            let _ = self.traded.insert(slot..slot + 1);
        }
    }

    /// Forgets all slots before this one. Returns the number of candles dropped.
    pub fn forget_before(&mut self, slot: i64) -> usize {
        self.traded.remove(i64::MIN..slot);
        self.unsettled.remove(i64::MIN..slot);
        self.silences.remove(&(i64::MIN..slot));
        self.forget(i64::MIN..slot)
    }

    /// Forgets these slots: see [`Series::forgotten_before`]. Returns the number of candles dropped.
    pub(super) fn forget(&mut self, slots: Range<i64>) -> usize {
        if !self.covered.remove(slots.clone()) {
            return 0;
        }
        let mut dropped = IngestCounts::default();
        let newest_in = |part| self.row_slots(part).next_back();
        let newest = self.archived.within(slots.clone()).rev().find_map(newest_in);
        self.newest_stored = self.newest_stored.max(newest);
        self.store(&slots, &[], 0, &mut dropped);
        self.forgotten = self.forgotten.max(Some(slots.end));
        // A slot that the file lacks, too, is unknown now, and is requested like other unknown slots.
        for lost in self.archived.missing(slots) {
            self.silences.remove(&lost);
            self.unsettled.remove(lost);
        }
        self.version += 1;
        self.check();
        dropped.removed
    }

    /// Hides the slots from this one on, because the exchange's clock went back before it. Memory drops them,
    /// and they count as unknown. The file keeps them until the exchange has sent them again.
    pub(super) fn hide_from(&mut self, slot: i64) {
        let hidden = slot..i64::MAX;
        let sets = [&mut self.archived, &mut self.covered, &mut self.unsettled, &mut self.traded];
        sets.into_iter().for_each(|slots| _ = slots.remove(hidden.clone()));
        self.silences = Silences::default();
        self.forming.retain(|forming| forming.slot < slot);
        self.store(&hidden, &[], 0, &mut IngestCounts::default());
        self.frontier = self.frontier.min(slot);
        self.forgotten = self.forgotten.filter(|forgotten| *forgotten < slot);
        self.version += 1;
        self.check();
    }

    pub(super) fn open_of(&self, slot: i64) -> UnixMs {
        self.interval().open_of(slot)
    }

    /// Each change of chunks is followed by a new version.
    pub(super) fn set_chunk(&mut self, id: i64, mut chunk: Option<Chunk>) {
        *self.recent.get_mut() = None;
        if let Some(chunk) = &mut chunk {
            chunk.version = self.version;
            self.bytes += chunk.bytes();
            self.count += chunk.count();
        }
        let old = match chunk {
            Some(chunk) => self.chunks.insert(id, chunk.into()),
            None => self.chunks.remove(&id),
        };
        if let Some(old) = old {
            self.bytes -= old.bytes();
            self.count -= old.count();
        }
    }

    /// Drops forming candles that are confirmed, and the oldest ones if there are too many.
    pub(super) fn trim_forming(&mut self) {
        let before = self.forming.len();
        let last = self.covered.last();
        self.forming.retain(|forming| Some(forming.slot) > last);
        let excess = self.forming.len().saturating_sub(MAX_PROVISIONAL + 1);
        self.forming.drain(..excess);
        if self.forming.len() != before {
            self.version += 1;
        }
    }

    /// Advances the newest slot. That can change what is served although no number changes: a
    /// rolled-up candle stops forming when its last slot has passed.
    pub(super) fn advance(&mut self, slot: i64) {
        if slot > self.frontier {
            self.frontier = slot;
            self.version += 1;
        }
    }

    /// The invariant in the module comment, in debug builds.
    pub(super) fn check(&self) {
        debug_assert!(self.forming.windows(2).all(|pair| pair[0].slot < pair[1].slot));
        let last = self.covered.last();
        debug_assert!(self.forming.iter().all(|forming| Some(forming.slot) > last));
        debug_assert!(self.forming.len() <= MAX_PROVISIONAL + 1);
        let chunks = || self.chunks.values();
        debug_assert_eq!(chunks().map(|it| it.count()).sum::<usize>(), self.count);
        debug_assert_eq!(chunks().map(|it| it.bytes()).sum::<usize>(), self.bytes);
        debug_assert!(self.chunks.iter().all(|(id, chunk)| {
            let slots = id * CHUNK_SLOTS..(id + 1) * CHUNK_SLOTS;
            let inside: usize = (self.covered.within(slots))
                .map(|span| chunk.count_in(&places_of(*id, &span)))
                .sum();
            inside == chunk.count() && inside > 0
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::market::testing::{all_of, chart, covered, key, known, minute, minutes, slots};

    fn price(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).expect("a price")
    }

    fn body(series: &Series) -> String {
        let now = minute(series.frontier);
        chart(series, &all_of(series.interval().interval()), now).0
    }

    #[test]
    fn quotes_of_confirmed_or_left_slots_and_absurd_ones_change_nothing() {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(10..12, &minutes([10, 11]), minute(12), None);
        series.tick(&price("5"), minute(14));
        let version = series.version();
        for (text, at) in [
            ("5", minute(11)),
            ("5", minute(13) + 59_999),
            ("0", minute(14)),
            ("-1", minute(14)),
            ("1", UnixMs(-1)),
        ] {
            assert!(!series.tick(&price(text), at), "{text} at {at}");
        }
        assert_eq!(series.version(), version);
        assert_eq!(series.extent().last, Some(11));
    }

    #[test]
    fn provisional_candles_are_bounded() {
        let mut series = Series::new(key(Stored::M1), 0);
        for slot in 0..1000 {
            series.tick(&price("3"), minute(slot));
        }
        let kept = slots(&series, &all_of(Interval::M1), minute(999));
        let first = 999 - MAX_PROVISIONAL as i64;
        assert_eq!(kept, (first..1000).collect::<Vec<_>>());
        assert!(series.covered().is_empty());
    }

    #[test]
    fn what_lies_ahead_of_a_clock_that_went_back_is_hidden_until_it_is_told_again() {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(0..300, &minutes(0..300), minute(300), None);
        series.tick(&price("3"), minute(301));
        series.archived.insert(0..300).expect("one range");
        series.hide_from(290);
        assert_eq!(covered(&series), [(0, 290)]);
        assert_eq!(series.unknown(0..300), vec![290..300; 1]);
        assert_eq!(series.count(), 290);
        assert!(series.tick(&price("4"), minute(290)), "time goes on");
        let newest = slots(&series, &all_of(Interval::M1), minute(290)).pop();
        assert_eq!(newest, Some(290));
        series.ingest_whole(288..292, &minutes(288..292), minute(292), None);
        assert_eq!(covered(&series), [(0, 292)]);
        series.hide_from(0);
        assert_eq!((series.count(), series.bytes()), (0, 0));
        assert_eq!(body(&series), "[]");
        // A series with quotes alone goes back to an earlier slot, too.
        series.tick(&price("3"), minute(2000));
        assert!(series.tick(&price("4"), minute(14)));
        let newest = slots(&series, &all_of(Interval::M1), minute(14)).pop();
        assert_eq!(newest, Some(14));
    }

    #[test]
    fn the_version_changes_with_every_change_of_what_is_served_and_only_then() {
        let mut series = Series::new(key(Stored::M1), 7);
        let mut seen = series.version();
        let mut step = |series: &Series, served: bool, what: &str| {
            assert_eq!(series.version() > seen, served, "{what}");
            seen = series.version();
        };
        series.ingest_whole(0..3, &minutes(0..3), minute(3), None);
        step(&series, true, "first candles");
        series.ingest_whole(0..3, &minutes(0..3), minute(3), None);
        step(&series, false, "the same again");
        series.tick(&price("3"), minute(3));
        step(&series, true, "a quote");
        series.tick(&price("3"), minute(3));
        step(&series, false, "the same quote");
        series.ingest_whole(0..3, &minutes(0..3), minute(4), None);
        step(&series, true, "a slot later: a roll-up may have ended");
        known(&mut series, 3..4, &[], minute(4));
        step(&series, true, "no trade in 3");
        known(&mut series, 0..4, &minutes([0, 2]), minute(4));
        step(&series, true, "1 is gone");
        assert_eq!(series.forget_before(1), 1);
        step(&series, true, "0 left");
        assert_eq!(series.forget_before(1), 0);
        step(&series, false, "nothing is left to leave");
        assert_eq!((series.count(), series.gaps()), (1, 2));
        assert_eq!(series.forgotten_before(), Some(1));
        assert_eq!(series.next_candle(0..9), Some(2));
    }

    #[test]
    fn what_a_client_still_reads_outlives_its_candles() {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(0..300, &minutes(0..300), minute(300), None);
        let (rows, pieces) = series.pieces(&(150..200), minute(0));
        assert_eq!(rows, 50);
        series.forget_before(300);
        assert_eq!((series.count(), series.bytes()), (0, 0));
        let rows = pieces.iter().map(|(rows, part)| &rows[part.clone()]);
        assert_eq!(rows.collect::<Vec<_>>().concat().split(|byte| *byte == b'[').count(), 51);
        let (rows, part) = &pieces[0];
        assert!(rows[part.clone()].starts_with(b"[9000000,150,159,149,151,2],"));
    }
}
