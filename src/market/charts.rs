//! All candle series, and the memory they may use.
//!
//! [`Charts`] owns every open series, by key, and the counters over them. It never opens more series than its
//! limit. Once [`Charts::trim`] is done, it holds no more bytes than its limit, or only the newest chunk of
//! every series.
//!
//! The caller decides which series are wanted and what is fetched for them.

use super::chunk::seconds;
use super::interval_set::IntervalSet;
use super::report::{CandleResponse, CandleService, Evidence, IngestCounts, Reported};
use super::series::{LeavingChunk, Series, SeriesKey};
use super::silence::TOGETHER;
use super::symbol::{SourceId, SymbolId};
use super::window::floor_slot;
use crate::config::{HistoryConfig, Limits};
use crate::decimal::Decimal;
use crate::history::Changes;
use crate::interval::Stored;
use crate::place_set::PlaceSet;
use crate::record::Candle;
use crate::time::{Mono, UnixMs};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range, RangeInclusive};

/// The most chunks that one call of [`Charts::trim`] evicts: about 50 microseconds.
const EVICTED_AT_ONCE: usize = 16;

/// Seconds that a series stays open after a read, even if another series is wanted. Otherwise two
/// clients with more charts than the limit would cause endless refetching.
const STAYS: u32 = 60;

/// All candle series.
#[derive(Debug, Default)]
pub struct Charts {
    series: BTreeMap<SeriesKey, Series>,
    /// The archived slots of series that are not open.
    unopened: BTreeMap<SeriesKey, IntervalSet>,
    /// By service: the newest slot with a candle of any market, and when its response was requested.
    alive: BTreeMap<(SourceId, Stored, CandleService), (i64, Mono)>,
    /// Sources whose clock is in doubt, and from when on.
    in_doubt: BTreeMap<SourceId, UnixMs>,
    max_series: usize,
    max_bytes: usize,
    history: HistoryConfig,
    /// Sum over all series.
    bytes: usize,
    /// The next chunk to evict of each series, as it was when it was queued. Since then, the chunk may have
    /// been read, or another chunk of the series may come first.
    leaving: BTreeSet<LeavingChunk>,
    /// The first version of the next series to open.
    next_version: u64,
    /// The counters since the start.
    totals: ChartCounts,
    /// The symbols with a series that has changed or closed, by index.
    pub touched: PlaceSet,
}

/// Counters over all series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChartCounts {
    /// Open series.
    pub series: usize,
    /// Stored candles.
    pub candles: usize,
    /// The size of the series in memory, in bytes.
    pub bytes: usize,
    /// Slots for which the exchange had no candle.
    pub gaps: u64,
    /// Candles stored since the start.
    pub written: u64,
    /// Candles changed since the start.
    pub updated: u64,
    /// Candles evicted for space or age since the start.
    pub evicted: u64,
}

impl Charts {
    /// No series yet.
    pub fn new(limits: &Limits, history: &HistoryConfig) -> Charts {
        let mut charts = Charts { history: *history, ..Charts::default() };
        charts.reconfigure(limits);
        charts
    }

    /// Opens a series, if it is not open. Returns false if the limit is reached.
    pub fn open(&mut self, key: SeriesKey) -> bool {
        if self.series.contains_key(&key) {
            return true;
        }
        if self.series.len() >= self.max_series {
            return false;
        }
        let mut series = Series::new(key, self.next_version);
        series.archived = self.unopened.remove(&key).unwrap_or_default();
        series.doubt_clock(self.in_doubt.get(&key.source).copied());
        self.series.insert(key, series);
        true
    }

    /// Closes one series to make place for another: the least recently read one for which
    /// `may_leave` is true. `None` if all of these were read in the last `STAYS` seconds.
    pub fn make_place(
        &mut self,
        now: UnixMs,
        may_leave: impl Fn(&SeriesKey) -> bool,
    ) -> Option<SeriesKey> {
        let of_age = |series: &&Series| series.read().saturating_add(STAYS) <= seconds(now);
        let candidates = (self.series.values()).filter(|series| may_leave(&series.key()));
        let oldest = candidates.filter(of_age).min_by_key(|series| series.read());
        let key = oldest?.key();
        self.close(key);
        Some(key)
    }

    /// Applies new limits. [`Charts::trim`] evicts excess bytes. [`Charts::make_place`] closes excess series
    /// one at a time.
    pub fn reconfigure(&mut self, limits: &Limits) {
        (self.max_series, self.max_bytes) = (limits.candle_series, limits.candle_bytes);
    }

    /// Closes this source's series of symbols that it no longer tracks.
    pub fn retain(&mut self, source: SourceId, is_tracked: impl Fn(SymbolId) -> bool) {
        let mut left = self.open_keys(source);
        left.retain(|key| !is_tracked(key.symbol));
        left.into_iter().for_each(|key| self.close(key));
    }

    /// The open series of a source.
    pub fn open_keys(&self, source: SourceId) -> Vec<SeriesKey> {
        self.series.range(keys_of(source)).map(|(key, _)| *key).collect()
    }

    /// Closes a series and drops its candles. They do not count as evicted.
    pub fn close(&mut self, key: SeriesKey) {
        if let Some(series) = self.series.remove(&key) {
            self.touched.insert(key.symbol.index());
            if !series.archived.is_empty() {
                self.unopened.insert(key, series.archived.clone());
            }
            self.bytes -= series.bytes();
            if let Some(chunk) = series.leaving {
                self.leaving.remove(&chunk);
            }
            self.next_version = self.next_version.max(series.version() + 1);
        }
    }

    /// One series, if it is open.
    pub fn get(&self, key: SeriesKey) -> Option<&Series> {
        self.series.get(&key)
    }

    /// One series to change, if it is open. Changes that add or drop candles go through the
    /// functions of [`Charts`].
    pub fn get_mut(&mut self, key: SeriesKey) -> Option<&mut Series> {
        self.series.get_mut(&key)
    }

    /// The first series after this one, in the order of keys.
    pub fn behind(&self, key: Option<SeriesKey>) -> Option<&Series> {
        let behind = key.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.series.range((behind, Bound::Unbounded));
        rest.next().map(|(_, series)| series)
    }

    /// How many slots of this interval are kept, counted back from now.
    pub fn keep(&self, interval: Stored) -> i64 {
        self.history.depth(interval).keep
    }

    /// Applies a slice of a response: see [`Series::ingest`].
    pub fn ingest(
        &mut self,
        key: SeriesKey,
        slots: Range<i64>,
        candles: &[Reported],
        evidence: &Evidence,
        closed_before: UnixMs,
        changes: Option<&mut Changes>,
    ) -> Option<IngestCounts> {
        let floor = floor_slot(key.interval, closed_before, self.keep(key.interval));
        let written = self.change(key, |series| {
            series.want_no_longer(closed_before);
            let mut written = series.ingest(slots, candles, evidence, closed_before, changes);
            written.evicted += series.forget_before(floor);
            written
        })?;
        self.touched.insert(key.symbol.index());
        if *evidence != Evidence::History {
            self.totals.written += written.written as u64;
            self.totals.updated += written.updated as u64;
        }
        self.totals.evicted += written.evicted as u64;
        Some(written)
    }

    /// Raises `response.alive` to the newest slot that responses of other markets prove: responses that were
    /// requested a moment before. Also notes what this response proves.
    pub fn hear(&mut self, key: SeriesKey, response: &mut CandleResponse) {
        let service = (key.source, key.interval, response.service);
        let others = self.alive(service, response.at).unwrap_or(i64::MIN);
        if response.alive >= others {
            self.alive.insert(service, (response.alive, response.at));
        }
        response.alive = response.alive.max(others);
    }

    /// The newest slot with a candle of any market, in responses of a service for candles of this interval
    /// that were requested a moment before `at`.
    pub fn alive(&self, service: (SourceId, Stored, CandleService), at: Mono) -> Option<i64> {
        let (slot, heard) = *self.alive.get(&service)?;
        (at.since(heard) <= TOGETHER).then_some(slot)
    }

    /// Applies candles from the archive, which holds these slots. Slots that have been covered
    /// meanwhile stay as they are. `now` is the exchange's clock.
    pub fn ingest_archived(
        &mut self,
        key: SeriesKey,
        slots: Range<i64>,
        candles: Vec<Candle>,
        now: UnixMs,
    ) {
        let reported = candles.into_iter().map(|candle| Reported { candle, is_forming: false });
        self.ingest(key, slots, &reported.collect::<Vec<_>>(), &Evidence::History, now, None);
    }

    /// Changes an open series, and updates the sum of bytes and the eviction queue.
    fn change<T>(&mut self, key: SeriesKey, change: impl FnOnce(&mut Series) -> T) -> Option<T> {
        let series = self.series.get_mut(&key)?;
        self.bytes -= series.bytes();
        let result = change(series);
        self.bytes += series.bytes();
        if series.leaving.is_none() {
            series.leaving = series.next_to_leave();
            self.leaving.extend(series.leaving);
        }
        Some(result)
    }

    /// Applies a quote to every open series of a market. Returns true if any changed.
    pub fn tick(
        &mut self,
        source: SourceId,
        symbol: SymbolId,
        price: &Decimal,
        at: UnixMs,
    ) -> bool {
        let mut changed = false;
        for (_, series) in self.series.range_mut(keys(source, symbol..=symbol)) {
            changed |= series.tick(price, at);
        }
        if changed {
            self.touched.insert(symbol.index());
        }
        changed
    }

    /// Notes that quotes of a market tell of a trade between these times: see [`Series::note_trade`].
    pub fn note_trade(&mut self, source: SourceId, symbol: SymbolId, since: UnixMs, at: UnixMs) {
        for (_, series) in self.series.range_mut(keys(source, symbol..=symbol)) {
            series.note_trade(since, at);
        }
    }

    /// Evicts chunks while there are too many bytes. Of the oldest chunks of all series, the least
    /// recently read one goes first. Its coverage goes too, so that a later request fetches it
    /// again. One call does a slice of the work. Returns true if there is more to do.
    ///
    /// A series loses its oldest chunk first, so that it gets no hole in its middle. The chunks that clients
    /// wait for are evicted last: otherwise the slots fetched for an old chart would be evicted before the
    /// chart is made.
    pub fn trim(&mut self) -> bool {
        for _ in 0..EVICTED_AT_ONCE {
            if self.bytes <= self.max_bytes {
                return false;
            }
            let Some(chunk) = self.leaving.pop_first() else {
                return false;
            };
            let evicted = self.change(chunk.series, |series| {
                series.leaving = None;
                match series.next_to_leave() == Some(chunk) {
                    true => series.forget(chunk.from..chunk.until),
                    false => 0,
                }
            });
            self.totals.evicted += evicted.expect("only open series have one queued") as u64;
        }
        self.bytes > self.max_bytes
    }

    /// Notes from which time on the clock of a source is in doubt, or `None` if it is known. Charts that end
    /// later depend on the clock.
    pub fn doubt_clock(&mut self, source: SourceId, from: Option<UnixMs>) {
        match from {
            Some(from) => drop(self.in_doubt.insert(source, from)),
            None => drop(self.in_doubt.remove(&source)),
        }
        for (_, series) in self.series.range_mut(keys_of(source)) {
            series.doubt_clock(from);
        }
    }

    /// Hides the slots from this time on, to which a source's clock went back.
    pub fn hide_from(&mut self, source: SourceId, time: UnixMs) {
        for key in self.open_keys(source) {
            self.change(key, |series| series.hide_from(key.interval.slot_of(time)));
            self.touched.insert(key.symbol.index());
        }
        for (key, archived) in self.unopened.range_mut(keys_of(source)) {
            archived.remove(key.interval.slot_of(time)..i64::MAX);
        }
    }

    /// The archived slots of a series, open or not.
    pub fn archived(&self, key: SeriesKey) -> Option<&IntervalSet> {
        let series = self.series.get(&key).map(|series| &series.archived);
        series.or_else(|| self.unopened.get(&key))
    }

    /// The archived slots of all series.
    pub fn archives(&self) -> impl Iterator<Item = (SeriesKey, &IntervalSet)> {
        let open = self.series.iter();
        let open = open.map(|(key, series)| (*key, &series.archived));
        open.chain(self.unopened.iter().map(|(key, spans)| (*key, spans)))
    }

    /// Marks slots of a series as archived.
    pub fn archive(&mut self, key: SeriesKey, slots: Range<i64>) {
        // If there are too many ranges, these slots are fetched from the exchange again when they
        // are wanted.
        let _ = match self.series.get_mut(&key) {
            Some(series) => series.archived.insert(slots),
            None => self.unopened.entry(key).or_default().insert(slots),
        };
    }

    /// Marks slots of a series as not archived.
    pub fn unarchive(&mut self, key: SeriesKey, slots: Range<i64>) {
        let series = self.series.get_mut(&key).map(|series| &mut series.archived);
        if let Some(archived) = series.or_else(|| self.unopened.get_mut(&key)) {
            archived.remove(slots);
        }
    }

    /// Forgets all archived slots, because the file cannot be read.
    pub fn forget_archives(&mut self) {
        self.unopened.clear();
        for series in self.series.values_mut() {
            series.archived = IntervalSet::default();
        }
    }

    /// How many of these slots the exchange has reported.
    pub fn known(&self, key: SeriesKey, slots: Range<i64>) -> u64 {
        match self.series.get(&key) {
            Some(series) => {
                let unknown = series.unknown(slots.clone());
                let unknown: u64 = unknown.iter().map(|it| it.end.abs_diff(it.start)).sum();
                slots.end.abs_diff(slots.start) - unknown
            }
            None => (self.unopened.get(&key)).map_or(0, |spans| spans.covered(slots)),
        }
    }

    /// The counters. Visits every series.
    pub fn counts(&self) -> ChartCounts {
        let mut counts = ChartCounts { series: self.series.len(), ..self.totals };
        for series in self.series.values() {
            counts.candles += series.count();
            counts.bytes += series.bytes();
            counts.gaps += series.gaps();
        }
        debug_assert_eq!(counts.bytes, self.bytes);
        counts
    }
}

/// The keys of a source's series of these symbols.
fn keys(source: SourceId, symbols: RangeInclusive<SymbolId>) -> RangeInclusive<SeriesKey> {
    let key = |symbol: &SymbolId, interval| SeriesKey { source, symbol: *symbol, interval };
    key(symbols.start(), Stored::M1)..=key(symbols.end(), Stored::D1)
}

/// The keys of all series of a source.
fn keys_of(source: SourceId) -> RangeInclusive<SeriesKey> {
    keys(source, SymbolId(0)..=SymbolId(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Depth;
    use crate::interval::Interval;
    use crate::market::chart::ChartBody;
    use crate::market::report::AllRows;
    use crate::market::series::WANTED;
    use crate::market::testing::{all_of, covered, minute, minutes, slots};

    fn charts(series: usize, bytes: usize, keep: i64) -> Charts {
        let limits = Limits { candle_series: series, candle_bytes: bytes, ..Limits::default() };
        let history = HistoryConfig { m1: Depth { keep, backfill: 0 }, ..HistoryConfig::default() };
        Charts::new(&limits, &history)
    }

    fn minutes_of(symbol: u32) -> SeriesKey {
        *keys(SourceId(0), SymbolId(symbol)..=SymbolId(symbol)).start()
    }

    /// Opens the minutes of a market, which has a candle in each of these slots.
    fn fill(charts: &mut Charts, symbol: u32, slots: Range<i64>) -> Option<IngestCounts> {
        charts.open(minutes_of(symbol));
        let (candles, now) = (minutes(slots.clone()), minute(slots.end));
        charts.ingest_whole(minutes_of(symbol), slots, &candles, now, None)
    }

    #[test]
    fn there_are_never_more_series_than_the_cap() {
        let mut charts = charts(2, 1 << 20, 1000);
        assert!(charts.open(minutes_of(1)));
        assert!(charts.open(minutes_of(2)));
        assert!(charts.open(minutes_of(2)), "it is open");
        assert!(!charts.open(minutes_of(3)));
        assert_eq!(charts.ingest_whole(minutes_of(3), 0..1, &[], minute(1), None), None);
        charts.close(minutes_of(1));
        assert!(charts.open(minutes_of(3)));
    }

    #[test]
    fn candles_of_another_market_tell_that_they_go_on_for_half_a_minute() {
        let mut charts = charts(2, 1 << 20, 1000);
        let mut hear_from = |service, symbol, newest: i64, second: u64| {
            let candles = minutes(newest..newest + 1);
            let asked = 0..newest + 1;
            let at = Mono(second * 1_000_000);
            let mut response =
                CandleResponse::of(&asked, &candles, &AllRows::of(Stored::M1, &candles), at);
            response.service = service;
            charts.hear(minutes_of(symbol), &mut response);
            response.alive
        };
        let mut hear =
            |symbol, newest, second| hear_from(CandleService::Newest, symbol, newest, second);
        assert_eq!(hear(1, 100, 0), 100);
        assert_eq!((hear(2, 40, 1), hear(2, 40, 30)), (100, 100));
        assert_eq!((hear(2, 40, 31), hear(1, 20, 60)), (40, 40));
        assert_eq!(hear(1, 20, 62), 20);
        assert_eq!((hear(1, 101, 63), hear(2, 40, 64)), (101, 101));
        let mut hear =
            |symbol, newest, second| hear_from(CandleService::Archive, symbol, newest, second);
        assert_eq!((hear(2, 40, 65), hear(1, 30, 66)), (40, 40));
    }

    #[test]
    fn the_series_that_was_not_read_for_longest_makes_place() {
        let mut charts = charts(3, 1 << 20, 1000);
        for symbol in 1..=3 {
            charts.open(minutes_of(symbol));
            let series = charts.get(minutes_of(symbol)).expect("it is open");
            series.touch(minute(i64::from(symbol)));
        }
        let place = |charts: &mut Charts, at, pinned| {
            charts.make_place(minute(at), |key| *key != minutes_of(pinned))
        };
        // A client has read the first series since.
        ChartBody::new(charts.get(minutes_of(1)), &all_of(Interval::M1), minute(4), 1000);
        assert_eq!(place(&mut charts, 2, 9), None, "all were read within a minute");
        assert_eq!(place(&mut charts, 6, 2), Some(minutes_of(3)));
        assert_eq!(place(&mut charts, 6, 9), Some(minutes_of(2)));
        assert!(charts.open(minutes_of(7)) && charts.open(minutes_of(8)));
        assert!(!charts.open(minutes_of(9)));
    }

    #[test]
    fn a_series_that_comes_back_does_not_repeat_a_version() {
        let mut charts = charts(2, 1 << 20, 1000);
        fill(&mut charts, 1, 0..9);
        let version = charts.get(minutes_of(1)).map(Series::version);
        charts.close(minutes_of(1));
        assert_eq!(charts.counts().bytes, 0);
        charts.open(minutes_of(1));
        assert!(charts.get(minutes_of(1)).map(Series::version) > version);
    }

    #[test]
    fn what_leaves_the_window_of_time_leaves_at_once() {
        let mut charts = charts(2, 1 << 20, 300);
        let written = fill(&mut charts, 1, 0..1000);
        assert_eq!(written.map(|written| written.evicted), Some(700));
        let series = charts.get(minutes_of(1)).expect("it is open");
        assert_eq!(covered(series), [(700, 1000)]);
        assert_eq!(series.forgotten_before(), Some(700));
        fill(&mut charts, 1, 1000..1001);
        let kept = slots(
            charts.get(minutes_of(1)).expect("it is open"),
            &all_of(Interval::M1),
            minute(1001),
        );
        assert_eq!(kept, (701..1001).collect::<Vec<_>>());
        let counts = charts.counts();
        assert_eq!((counts.candles, counts.evicted, counts.gaps), (300, 701, 0));
    }

    #[test]
    fn room_is_made_by_the_chunk_that_was_not_read_for_longest() {
        let mut charts = charts(2, 90_000, 100_000);
        for symbol in [1, 2] {
            fill(&mut charts, symbol, 0..1024);
        }
        assert!(!charts.trim(), "there is room");
        // A client reads the first series after the second one was filled.
        let series = charts.get(minutes_of(1));
        let later = minute(2000);
        ChartBody::new(series, &all_of(Interval::M1), later, 100_000).expect("stored rows");
        charts.max_bytes = charts.bytes / 2 + 1000;
        while charts.trim() {}
        let count = |symbol| charts.get(minutes_of(symbol)).map(Series::count);
        assert_eq!((count(1), count(2)), (Some(896), Some(128)));
        assert!(charts.counts().bytes <= charts.max_bytes);
        let unread = charts.get(minutes_of(2)).expect("it is open");
        assert_eq!(covered(unread), [(896, 1024)]);
        assert_eq!(charts.counts().evicted, 1024);
        // The newest chunk of a series never leaves.
        charts.max_bytes = 0;
        while charts.trim() {}
        assert_eq!(charts.counts().candles, 2 * 128);
    }

    #[test]
    fn what_somebody_waits_for_leaves_last_also_where_one_series_takes_all_the_room() {
        let mut charts = charts(1, 1 << 30, 100_000);
        let key = minutes_of(1);
        fill(&mut charts, 1, 1024..2048);
        charts.max_bytes = charts.bytes;
        let mut bring = |slots: Range<i64>, second: i64| {
            let now = minute(2048) + second * 1000;
            charts.get_mut(key).expect("it is open").want(slots.clone(), now);
            charts.ingest_whole(key, slots.clone(), &minutes(slots), now, None);
            while charts.trim() {}
            assert!(charts.bytes <= charts.max_bytes);
            covered(charts.get(key).expect("it is open"))
        };
        // The new slots touch the known ones.
        assert_eq!(bring(768..1024, 0), [(768, 1024), (1280, 2048)]);
        // The new slots are apart, and no client waits for the former ones any more.
        let later = i64::from(WANTED) + 1;
        assert_eq!(bring(0..128, later), [(0, 128), (896, 1024), (1280, 2048)]);
        // Two clients wait at a time.
        let held = bring(256..384, later);
        assert_eq!(held, [(0, 128), (256, 384), (1280, 2048)]);
        // A client waits for all slots: the oldest are evicted.
        let held = bring(384..2048, later);
        assert_eq!(held, [(1024, 2048)]);
    }

    #[test]
    fn room_is_made_slice_by_slice_over_all_series() {
        let count = 257;
        let mut charts = charts(count as usize, 1 << 30, 100_000);
        for symbol in 0..count {
            fill(&mut charts, symbol, 0..256);
        }
        charts.max_bytes = charts.bytes - 1;
        // The first series is read when its chunk is about to be evicted, so the chunk stays.
        let first = charts.get(minutes_of(0));
        ChartBody::new(first, &all_of(Interval::M1), minute(300), 100_000).expect("stored rows");
        assert!(!charts.trim());
        let count_of = |symbol| charts.get(minutes_of(symbol)).map(Series::count);
        assert_eq!((count_of(0), count_of(1)), (Some(256), Some(128)));
        charts.max_bytes = 0;
        let mut before = charts.totals.evicted;
        while charts.trim() {
            assert!(charts.totals.evicted - before <= 128 * EVICTED_AT_ONCE as u64);
            before = charts.totals.evicted;
        }
        assert_eq!(charts.totals.evicted, u64::from(count) * 128);
        // A series that was closed while its chunk was about to be evicted is skipped.
        fill(&mut charts, 0, 256..512);
        charts.close(minutes_of(0));
        while charts.trim() {}
        assert_eq!(charts.totals.evicted, u64::from(count) * 128);
    }

    #[test]
    fn a_quote_reaches_every_open_interval_of_its_market_alone() {
        let mut charts = charts(9, 1 << 20, 1000);
        let keys =
            |symbol: u32| Stored::ALL.map(|interval| SeriesKey { interval, ..minutes_of(symbol) });
        for key in keys(1).into_iter().chain(keys(2)) {
            charts.open(key);
        }
        let price = Decimal::from(5);
        assert!(charts.tick(SourceId(0), SymbolId(1), &price, minute(7)));
        assert!(!charts.tick(SourceId(1), SymbolId(1), &price, minute(7)));
        assert!(!charts.tick(SourceId(0), SymbolId(3), &price, minute(7)));
        let versions: Vec<bool> =
            charts.series.values().map(|series| series.version() > 0).collect();
        assert_eq!(versions, [true, true, true, false, false, false]);
    }

    #[test]
    fn a_candle_costs_four_bytes_beside_its_row() {
        let mut charts = charts(1, 1 << 30, 1_000_000);
        let slots = 27_000_000..27_012_800;
        fill(&mut charts, 1, slots.clone());
        let mut rows = Vec::new();
        let series = charts.get(minutes_of(1));
        let all = crate::market::chart::ChartSpec { limit: 100_000, ..all_of(Interval::M1) };
        let body = ChartBody::new(series, &all, minute(slots.end), 1_000_000);
        body.expect("stored rows").write(&mut rows);
        let counts = charts.counts();
        assert_eq!(counts.candles, 12_800);
        let beside = counts.bytes - rows.len();
        assert!(beside < 4 * counts.candles, "{beside} bytes in all");
    }
}
