//! The chart builder: makes a chart body row by row, over as many turns as it takes.
//!
//! Owns what a chart plan cannot do: candles rolled up from shorter ones, flat candles in gaps,
//! decimals as strings. Each step does a bounded amount of work. It never makes a candle from a
//! bucket that is not fully known, except the forming one.
//!
//! Stages: *locating* the first row, if the newest rows are asked for (it looks at which candles
//! exist, not into them) -> *making* rows, oldest first -> done. If closed candles of the series
//! change meanwhile, it starts again, a few times; after that, each row stays as it was made, and only slots
//! that were covered at every step count as known: what was told later may have no row. The
//! fingerprint includes the version that each row was made from, so a body that mixes versions has
//! a fingerprint of its own.

use super::body::ChartRows;
use super::chart::{ChartInfo, ChartPlan, ChartSpec};
use super::chunk::seconds;
use super::interval_set::IntervalSet;
use super::known::BucketState;
use super::rollup::Rollup;
use super::series::Series;
use super::window::Window;
use crate::fingerprint::Part;
use crate::time::UnixMs;
use std::ops::Range;

/// How often a body is started again because its series changed. Closed candles arrive once an
/// interval, or in pages some tenths of a second apart; a body takes less.
const MAX_RESTARTS: u8 = 2;

/// The cost of visiting one bucket, in rows rolled up: two searches in a tree.
const BUCKET_COST: usize = 6;

/// A chart body in the making.
#[derive(Clone, Debug)]
pub struct ChartBuilder {
    spec: ChartSpec,
    now: UnixMs,
    keep: i64,
    stage: Stage,
    rows: ChartRows,
    /// The series' closed version at the last step.
    closed: Option<u64>,
    /// The slots that were covered at each step since the start.
    covered: IntervalSet,
    restarts: u8,
    info: Option<ChartInfo>,
}

#[derive(Clone, Debug)]
enum Stage {
    Begin,
    Locating(Locating),
    Making(Making),
}

/// Walks back from the newest candle.
#[derive(Clone, Debug)]
struct Locating {
    /// All buckets from this slot on were visited.
    cursor: i64,
    /// The next candle found, or where flat candles end: they lie before this slot.
    above: i64,
    /// Rows from `start` on.
    rows: usize,
    /// First slot of the oldest bucket so far that makes a row.
    start: i64,
}

/// Walks forward and makes rows.
#[derive(Clone, Debug)]
struct Making {
    /// First slot of the next bucket.
    cursor: i64,
    /// Close of the candle before it, if all slots between are known to be empty.
    previous: Option<Vec<u8>>,
}

/// What one step works on.
struct View<'a> {
    series: &'a Series,
    spec: &'a ChartSpec,
    /// The slots that the chart may claim to know.
    covered: &'a IntervalSet,
    window: Window,
    second: u32,
    /// First slot of the newest candle's bucket. No flat candle follows it.
    newest: i64,
}

impl ChartBuilder {
    /// Starts a body. `now` is the exchange's clock, `keep` the kept window in base slots.
    pub fn new(spec: ChartSpec, now: UnixMs, keep: i64) -> ChartBuilder {
        ChartBuilder {
            now,
            keep,
            stage: Stage::Begin,
            rows: ChartRows::new(spec.quoted),
            closed: None,
            covered: IntervalSet::default(),
            restarts: 0,
            info: None,
            spec,
        }
    }

    /// The bytes of memory that its rows take.
    pub fn held(&self) -> usize {
        self.rows.held()
    }

    /// Works for about as long as it takes to roll up `budget_rows` stored candles. Returns true if
    /// the body is done. The series is passed in for each step; `None` if it is not, or no longer,
    /// open: then the body ends as it is, and claims nothing.
    pub fn step(&mut self, series: Option<&Series>, budget_rows: usize) -> bool {
        if self.info.is_some() {
            return true;
        }
        match series {
            Some(series) => {
                debug_assert_eq!(series.interval(), self.spec.interval.base());
                self.watch(series);
                if !self.work(series, budget_rows.max(BUCKET_COST)) {
                    return false;
                }
            }
            None => self.covered = IntervalSet::default(),
        }
        let found = &self.rows.found;
        self.info = Some(found.info(series, &self.covered, &self.spec, self.now, self.keep));
        true
    }

    /// The chart; `None` before it is done.
    pub fn finished(self) -> Option<ChartPlan> {
        Some(self.rows.finish(self.info?))
    }

    /// Starts again if closed candles changed since the last step. After too many restarts it
    /// continues, from the close that now precedes the next row.
    fn watch(&mut self, series: &Series) {
        let closed = series.closed_version();
        match self.closed.replace(closed) {
            Some(before) if before == closed => {}
            None => self.covered = series.covered().clone(),
            Some(_) if self.restarts < MAX_RESTARTS => {
                self.restarts += 1;
                self.stage = Stage::Begin;
                self.rows = ChartRows::new(self.spec.quoted);
                self.covered = series.covered().clone();
            }
            Some(_) => {
                self.covered.retain(series.covered());
                if let Stage::Making(making) = &mut self.stage {
                    let view = View::new(series, &self.spec, &self.covered, self.now);
                    making.previous = view.close_before(making.cursor);
                }
            }
        }
    }

    /// Returns true if all rows are made.
    fn work(&mut self, series: &Series, mut budget: usize) -> bool {
        let view = View::new(series, &self.spec, &self.covered, self.now);
        loop {
            match &mut self.stage {
                Stage::Begin => {
                    self.rows.made_of.add(Part::Source(series.key().source.0));
                    self.stage = view.begin();
                }
                Stage::Locating(locating) => match locating.walk(&view, &mut budget) {
                    Some(start) => self.stage = view.making_from(start),
                    None => return false,
                },
                Stage::Making(making) => return making.walk(&view, &mut self.rows, &mut budget),
            }
        }
    }
}

impl<'a> View<'a> {
    fn new(
        series: &'a Series,
        spec: &'a ChartSpec,
        covered: &'a IntervalSet,
        now: UnixMs,
    ) -> View<'a> {
        let newest = series.candle_slots(0..i64::MAX).next_back();
        View {
            series,
            spec,
            covered,
            window: Window::new(spec),
            second: seconds(now),
            newest: newest.map_or(0, |slot| spec.interval.bucket_of(slot).start),
        }
    }

    fn begin(&self) -> Stage {
        match self.window.keeps_oldest {
            true => self.making_from(self.window.start),
            false => Stage::Locating(Locating {
                cursor: self.window.end,
                above: self.window.end.min(self.newest),
                rows: 0,
                start: self.window.start,
            }),
        }
    }

    fn making_from(&self, start: i64) -> Stage {
        Stage::Making(Making { cursor: start, previous: self.close_before(start) })
    }

    /// The close of flat rows from this slot on: of the last closed candle before it, if the slots
    /// between are known to be empty.
    fn close_before(&self, start: i64) -> Option<Vec<u8>> {
        if !self.spec.fill_previous {
            return None;
        }
        let slot = self.series.candle_slots(0..start).next_back()?;
        let bucket = self.bucket_of(slot);
        let is_empty = self.series.covered().covers(bucket.end..start);
        let is_closed = self.series.state_of(&bucket) == BucketState::Closed;
        if !is_empty || !is_closed {
            return None;
        }
        let (prices, _) = self.candle(&bucket, &mut Vec::new())?;
        Some(prices[3].to_vec())
    }

    fn bucket_of(&self, slot: i64) -> Range<i64> {
        self.spec.interval.bucket_of(slot)
    }

    /// The number of flat candles after this bucket and before the slot `above`, and where they
    /// end.
    fn flats_behind(&self, bucket: &Range<i64>, above: i64) -> (usize, i64) {
        if !self.spec.fill_previous || above <= bucket.end {
            return (0, bucket.end);
        }
        let span = self.series.covered().within(bucket.end..above).next();
        match span {
            Some(span) if span.start == bucket.end => {
                let end = self.bucket_of(span.end).start;
                let count = self.spec.interval.buckets_in(bucket.end..end);
                (count.max(0) as usize, end)
            }
            _ => (0, bucket.end),
        }
    }

    /// Open, high, low and close of a bucket, and the number of its stored rows. The volume is
    /// written to `volume`. `None` if the volume has too many digits.
    fn candle(&self, bucket: &Range<i64>, volume: &mut Vec<u8>) -> Option<([&'a [u8]; 4], usize)> {
        volume.clear();
        let mut rows = self.series.rows(bucket.clone(), self.second);
        let first = rows.next()?;
        let (mut rollup, mut count) = (Rollup::new(first), 1);
        for row in rows {
            rollup.add(row);
            count += 1;
        }
        let (prices, sum) = rollup.finish()?;
        sum.write(volume);
        Some((prices, count))
    }
}

impl Locating {
    /// Returns the first slot of the first row; `None` if the budget is used up.
    fn walk(&mut self, view: &View<'_>, budget: &mut usize) -> Option<i64> {
        loop {
            *budget = budget.checked_sub(BUCKET_COST)?;
            let slot = view.series.candle_slots(view.window.start..self.cursor).next_back();
            let bucket = slot.map(|slot| view.bucket_of(slot));
            let Some(bucket) = bucket.filter(|bucket| bucket.start >= view.window.start) else {
                return Some(self.start);
            };
            self.cursor = bucket.start;
            if view.series.state_of(&bucket) != BucketState::Unknown {
                let left = view.spec.limit - self.rows;
                let (flats, end) = view.flats_behind(&bucket, self.above);
                if flats >= left {
                    return Some(view.spec.interval.bucket_after(end, -(left as i64)));
                }
                self.rows += flats + 1;
                self.start = bucket.start;
                if self.rows >= view.spec.limit {
                    return Some(self.start);
                }
            }
            self.above = bucket.start;
        }
    }
}

impl Making {
    /// Returns true if all rows are made, false if the budget is used up.
    fn walk(&mut self, view: &View<'_>, rows: &mut ChartRows, budget: &mut usize) -> bool {
        let (series, end) = (view.series, view.window.end);
        while self.cursor < end && rows.found.rows < view.spec.limit {
            let Some(left) = budget.checked_sub(BUCKET_COST) else {
                return false;
            };
            *budget = left;
            let slot = series.candle_slots(self.cursor..end).next();
            let bucket = slot.map(|slot| view.bucket_of(slot));
            if let Some(close) = &self.previous
                && self.cursor < view.newest
                && bucket.as_ref().is_none_or(|bucket| bucket.start > self.cursor)
            {
                let flat = view.bucket_of(self.cursor);
                if series.covered().covers(flat.clone()) {
                    let open = series.open_of(flat.start);
                    rows.volume.clear();
                    rows.volume.push(b'0');
                    rows.push((flat.start, open), [close; 4]);
                    rows.made_of.add(Part::Stored(series.closed_version()));
                    rows.made_of.add(Part::Flat(flat.start));
                    self.cursor = flat.end;
                    continue;
                }
            }
            let Some(bucket) = bucket else {
                break;
            };
            self.make(view, &bucket, rows, budget);
            self.cursor = bucket.end;
        }
        true
    }

    /// Makes the row of a bucket that holds a candle.
    fn make(
        &mut self,
        view: &View<'_>,
        bucket: &Range<i64>,
        rows: &mut ChartRows,
        budget: &mut usize,
    ) {
        self.previous = None;
        let state = view.series.state_of(bucket);
        if state == BucketState::Unknown || bucket.start < view.window.start {
            return;
        }
        rows.found.begin.get_or_insert(bucket.start);
        let is_known = state == BucketState::Closed && view.covered.covers(bucket.clone());
        rows.found.closed += u64::from(is_known);
        let Some((prices, count)) = view.candle(bucket, &mut rows.volume) else {
            return;
        };
        *budget = budget.saturating_sub(count);
        let open = view.series.open_of(bucket.start);
        rows.push((bucket.start, open), prices);
        rows.made_of.add(match state {
            BucketState::Closed => Part::Stored(view.series.closed_version()),
            _ => Part::Series(view.series.version()),
        });
        rows.made_of.add(Part::Row(bucket.start));
        if view.spec.fill_previous && state == BucketState::Closed {
            self.previous = Some(prices[3].to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::fingerprint::Fingerprint;
    use crate::interval::{Interval, Stored};
    use crate::market::testing::{all_of, chart, key, known, minute, minutes};

    fn series(slots: Range<i64>) -> Series {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(slots.clone(), &minutes(slots.clone()), minute(slots.end), None);
        series
    }

    /// The body and what it is made of, made in steps as small as they get.
    fn made(mut builder: ChartBuilder, series: &Series) -> (String, Fingerprint) {
        let mut steps = 1;
        while !builder.step(Some(series), 0) {
            steps += 1;
            assert!(steps < 1000, "it never ends");
        }
        let plan = builder.finished().expect("it is done");
        (plan.text(), plan.made_of())
    }

    fn builder(spec: &ChartSpec) -> ChartBuilder {
        ChartBuilder::new(spec.clone(), minute(600), 1000)
    }

    #[test]
    fn the_smallest_budget_makes_progress() {
        let series = series(0..600);
        let spec = all_of(Interval::M5);
        let (body, _) = chart(&series, &spec, minute(600));
        let mut at_once = builder(&spec);
        assert!(at_once.step(Some(&series), usize::MAX));
        let made_of = at_once.finished().expect("it is done").made_of();
        assert_eq!(made(builder(&spec), &series), (body, made_of));
    }

    #[test]
    fn a_series_that_changes_on_the_way_is_begun_again_a_few_times() {
        let mut series = series(0..600);
        let spec = all_of(Interval::M5);
        let mut builder = builder(&spec);
        assert!(!builder.step(Some(&series), 200));
        let slots = 600..605;
        series.ingest_whole(slots.clone(), &minutes(slots), minute(605), None);
        let (body, _) = chart(&series, &spec, minute(605));
        let fresh = made(self::builder(&spec), &series);
        assert_eq!(fresh.0, body);
        assert_eq!(made(builder, &series), fresh);
    }

    #[test]
    fn a_chart_does_not_claim_what_became_known_behind_its_rows() {
        // What the exchange has told last lies before the rows that were made by then.
        let mut series = Series::new(key(Stored::M1), 0);
        let tell = |series: &mut Series, slots: Range<i64>| {
            series.ingest_whole(slots.clone(), &minutes(slots), minute(600), None);
        };
        tell(&mut series, 0..50);
        tell(&mut series, 150..590);
        let mut builder = builder(&all_of(Interval::M5));
        for slot in 590..592 {
            while builder.rows.found.rows < 20 {
                assert!(!builder.step(Some(&series), 50));
            }
            tell(&mut series, slot..slot + 1);
            assert!(!builder.step(Some(&series), 0));
        }
        while builder.rows.found.rows < 20 {
            assert!(!builder.step(Some(&series), 50));
        }
        tell(&mut series, 50..150);
        while !builder.step(Some(&series), 50) {}
        let plan = builder.finished().expect("it is done");
        let info = plan.info();
        assert_eq!(info.rows, 98, "10 before what came late, and 88 behind it");
        assert!(!info.complete, "{info:?}");
        assert_eq!(info.gaps, 0, "that nobody traded there is not known");
    }

    #[test]
    fn a_series_that_never_rests_still_gets_its_chart_and_that_has_a_name_of_its_own() {
        let mut series = series(0..600);
        let mut builder = builder(&all_of(Interval::M5));
        let mut slot = 600;
        while !builder.step(Some(&series), 100) {
            series.ingest_whole(slot..slot + 1, &minutes([slot]), minute(slot + 1), None);
            slot += 1;
            assert!(slot < 1000, "it never ends");
        }
        let plan = builder.finished().expect("it is done");
        let (made_of, rows) = (plan.made_of(), plan.info().rows);
        assert_eq!(plan.text().matches("],[").count() + 1, rows);
        assert!(rows >= 120);
        let (_, of_one_moment) = made(self::builder(&all_of(Interval::M5)), &series);
        assert_ne!(made_of, of_one_moment);
    }

    #[test]
    fn a_flat_row_has_the_close_that_stands_before_it_when_it_is_made() {
        let mut spec = all_of(Interval::M1);
        (spec.fill_previous, spec.from) = (true, Some(minute(10)));
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(0..600, &minutes([10, 599]), minute(600), None);
        let mut builder = builder(&spec);
        // A late trade is booked in another slot between two steps, more often than it is begun again.
        let mut late = Vec::new();
        for slot in [20, 21, 22, 23] {
            assert!(!builder.step(Some(&series), 100 * BUCKET_COST));
            late.push(slot);
            let booked = [10, 599].into_iter().chain(late.iter().copied());
            series.ingest_whole(0..600, &minutes(booked), minute(600), None);
        }
        let (body, _) = made(builder, &series);
        let flat = |slot: i64, close: i64| {
            format!("[{},{close},{close},{close},{close},0]", slot * 60_000)
        };
        assert!(body.contains(&flat(500, 24)), "the close of 23 is 24");
        assert!(!body.contains(&flat(500, 11)), "11 was the close of 10");
    }

    #[test]
    fn flat_rows_that_a_quote_lets_appear_change_what_a_body_is_made_of() {
        let mut spec = all_of(Interval::M1);
        (spec.fill_previous, spec.from, spec.to) = (true, Some(minute(10)), Some(minute(30)));
        let mut series = Series::new(key(Stored::M1), 0);
        known(&mut series, 0..40, &minutes([10, 20]), minute(45));
        let before = made(builder(&spec), &series);
        let closed = series.closed_version();
        series.tick(&Decimal::from(5), minute(40));
        assert_eq!(series.closed_version(), closed);
        let after = made(builder(&spec), &series);
        assert_ne!(before.0, after.0);
        assert_ne!(before.1, after.1);
        // Another quote does not touch them.
        series.tick(&Decimal::from(6), minute(40));
        assert_eq!(made(builder(&spec), &series), after);
    }

    #[test]
    fn a_series_that_leaves_on_the_way_ends_the_body() {
        let series = series(0..600);
        let mut builder = builder(&all_of(Interval::M5));
        assert!(!builder.step(Some(&series), 1000));
        assert!(builder.step(None, 1000));
        let plan = builder.finished().expect("it is done");
        assert!(plan.text().ends_with("]"));
        assert!(!plan.info().complete);
    }

    #[test]
    fn an_unfinished_body_is_not_handed_out() {
        assert!(builder(&all_of(Interval::M5)).finished().is_none());
    }
}
