//! A chart's body made row by row, over as many turns as it takes.
//!
//! Owns the slow ways: candles rolled up from shorter ones, flat candles in gaps, decimals as
//! strings. Each step does a bounded amount of work. It never makes a candle of slots that are
//! not all known, except the one that is forming.
//!
//! Stages: *locating* the first row, for the newest so many (looks at which candles there are, not
//! into them) -> *making* rows, oldest first -> done. A series whose closed candles change on the
//! way is begun again, a few times; after that, a row is what it was when it was made.

use super::chart::{ChartInfo, ChartSpec, Outcome, Window};
use super::chunk::seconds;
use super::rollup::{Rollup, fields};
use super::series::Series;
use super::target::{Standing, standing, target_after, target_of, targets_between};
use crate::decimal::Decimal;
use crate::time::UnixMs;
use std::ops::Range;

/// Times that a body is begun again because its series changed. Closed candles come once in an
/// interval, or in pages some tenths of a second apart; a body takes less.
const MAX_RESTARTS: u8 = 2;

/// What looking at one target costs, in rows rolled up: two searches in a tree.
const TARGET_COST: usize = 6;

/// See the module's page.
#[derive(Clone, Debug)]
pub struct ChartMaker {
    spec: ChartSpec,
    now: UnixMs,
    keep: i64,
    stage: Stage,
    rows: Rows,
    /// The series' version and closed version when this was begun.
    begun: Option<(u64, u64)>,
    restarts: u8,
    info: Option<ChartInfo>,
}

#[derive(Clone, Debug)]
enum Stage {
    Begin,
    Locating(Locating),
    Making(Making),
}

/// Walking back from the newest candle.
#[derive(Clone, Debug)]
struct Locating {
    /// All targets from this slot on were looked at.
    cursor: i64,
    /// The next candle that was found, or where flat candles end: they lie below this slot.
    above: i64,
    /// Rows from `start` on.
    rows: usize,
    /// First slot of the oldest target that makes a row, so far.
    start: i64,
}

/// Walking forth.
#[derive(Clone, Debug)]
struct Making {
    /// First slot of the next target.
    cursor: i64,
    /// Close of the candle before it, when all between is known to be empty.
    previous: Option<Vec<u8>>,
}

/// What is looked at in one step.
struct View<'a> {
    series: &'a Series,
    spec: &'a ChartSpec,
    window: Window,
    second: u32,
    /// First slot of the newest candle's target: no flat candle from there on.
    newest: i64,
}

/// The body as far as it is made.
#[derive(Clone, Debug)]
struct Rows {
    body: Vec<u8>,
    /// Volume of the next row.
    volume: Vec<u8>,
    outcome: Outcome,
    quoted: bool,
}

impl ChartMaker {
    /// Begins a body. `now` is the exchange's clock, `keep` the kept window in base slots.
    pub fn new(spec: ChartSpec, now: UnixMs, keep: i64) -> ChartMaker {
        ChartMaker {
            now,
            keep,
            stage: Stage::Begin,
            rows: Rows::new(spec.quoted),
            begun: None,
            restarts: 0,
            info: None,
            spec,
        }
    }

    /// Works on for about as long as it takes to roll up `budget_rows` stored candles; says
    /// whether the body is done. The series is handed in anew for each step; `None`: it is not,
    /// or no longer, there.
    pub fn step(&mut self, series: Option<&Series>, budget_rows: usize) -> bool {
        if self.info.is_some() {
            return true;
        }
        if let Some(series) = series {
            debug_assert_eq!(series.interval(), self.spec.interval.base());
            self.watch(series);
            if !self.work(series, budget_rows.max(TARGET_COST)) {
                return false;
            }
        }
        self.finish(series);
        true
    }

    /// The body and what is said beside it; `None` before it is done.
    pub fn finished(self) -> Option<(Vec<u8>, ChartInfo)> {
        Some((self.rows.body, self.info?))
    }

    /// Begins again when closed candles changed since the last step.
    fn watch(&mut self, series: &Series) {
        let versions = (series.version(), series.closed_version());
        let (_, closed) = *self.begun.get_or_insert(versions);
        if closed != series.closed_version() && self.restarts < MAX_RESTARTS {
            self.restarts += 1;
            self.begun = Some(versions);
            self.stage = Stage::Begin;
            self.rows = Rows::new(self.spec.quoted);
        }
    }

    /// Says whether all rows are made.
    fn work(&mut self, series: &Series, mut budget: usize) -> bool {
        let view = View::new(series, &self.spec, self.now);
        loop {
            match &mut self.stage {
                Stage::Begin => self.stage = view.begin(),
                Stage::Locating(locating) => match locating.walk(&view, &mut budget) {
                    Some(making) => self.stage = Stage::Making(making),
                    None => return false,
                },
                Stage::Making(making) => return making.walk(&view, &mut self.rows, &mut budget),
            }
        }
    }

    fn finish(&mut self, series: Option<&Series>) {
        self.rows.close();
        let outcome = &self.rows.outcome;
        let window = Window::new(&self.spec);
        let mut info = outcome.info(series, (&self.spec, &window), self.now, self.keep);
        if info.version != self.begun.map(|(version, _)| version) {
            info.version = None;
        }
        self.info = Some(info);
    }
}

impl<'a> View<'a> {
    fn new(series: &'a Series, spec: &'a ChartSpec, now: UnixMs) -> View<'a> {
        let newest = series.last_candle(0..i64::MAX);
        View {
            series,
            spec,
            window: Window::new(spec),
            second: seconds(now),
            newest: newest.map_or(0, |slot| target_of(spec.interval, slot).start),
        }
    }

    fn begin(&self) -> Stage {
        if !self.window.oldest {
            return Stage::Locating(Locating {
                cursor: self.window.end,
                above: self.window.end.min(self.newest),
                rows: 0,
                start: self.window.start,
            });
        }
        let start = self.window.start;
        let before = self.spec.fill_previous.then(|| {
            let slot = self.series.last_candle(0..start)?;
            let target = self.target_of(slot);
            let empty = self.series.covered().covers(target.end..start);
            (empty && standing(self.series, &target) == Standing::Closed).then_some(target)
        });
        Stage::Making(Making {
            cursor: start,
            previous: before.flatten().and_then(|target| self.close_of(&target)),
        })
    }

    fn target_of(&self, slot: i64) -> Range<i64> {
        target_of(self.spec.interval, slot)
    }

    /// How many flat candles follow this target, below the slot `above`; and where they end.
    fn flats_behind(&self, target: &Range<i64>, above: i64) -> (usize, i64) {
        if !self.spec.fill_previous || above <= target.end {
            return (0, target.end);
        }
        let span = self.series.covered().within(target.end..above).next();
        match span {
            Some(span) if span.start == target.end => {
                let end = self.target_of(span.end).start;
                let count = targets_between(self.spec.interval, target.end..end);
                (count.max(0) as usize, end)
            }
            _ => (0, target.end),
        }
    }

    /// Open, high, low and close of a target, and how many rows it is made of; its volume is
    /// written to `volume`. `None`: the volume cannot be held exactly.
    fn candle(&self, target: &Range<i64>, volume: &mut Vec<u8>) -> Option<([&'a [u8]; 4], usize)> {
        volume.clear();
        let mut rows = self.series.rows(target.clone(), self.second);
        let first = rows.next()?;
        if self.spec.interval.is_stored() {
            let [open, high, low, close, stored] = fields(first);
            volume.extend_from_slice(stored);
            return Some(([open, high, low, close], 1));
        }
        let (mut rollup, mut count) = (Rollup::new(first), 1);
        for row in rows {
            rollup.add(row);
            count += 1;
        }
        let (prices, sum) = rollup.finish()?;
        sum.write(volume);
        Some((prices, count))
    }

    fn close_of(&self, target: &Range<i64>) -> Option<Vec<u8>> {
        let (prices, _) = self.candle(target, &mut Vec::new())?;
        Some(prices[3].to_vec())
    }
}

impl Locating {
    /// `None`: the budget is used up.
    fn walk(&mut self, view: &View<'_>, budget: &mut usize) -> Option<Making> {
        loop {
            *budget = budget.checked_sub(TARGET_COST)?;
            let slot = view.series.last_candle(view.window.start..self.cursor);
            let target = slot.map(|slot| view.target_of(slot));
            let Some(target) = target.filter(|target| target.start >= view.window.start) else {
                return Some(self.found(self.start, None));
            };
            self.cursor = target.start;
            if standing(view.series, &target) != Standing::Unknown {
                let left = view.spec.limit - self.rows;
                let (flats, end) = view.flats_behind(&target, self.above);
                if flats >= left {
                    let start = target_after(view.spec.interval, end, -(left as i64));
                    return Some(self.found(start, view.close_of(&target)));
                }
                self.rows += flats + 1;
                self.start = target.start;
                if self.rows >= view.spec.limit {
                    return Some(self.found(self.start, None));
                }
            }
            self.above = target.start;
        }
    }

    fn found(&self, cursor: i64, previous: Option<Vec<u8>>) -> Making {
        Making { cursor, previous }
    }
}

impl Making {
    /// Says whether all rows are made; if not, the budget is used up.
    fn walk(&mut self, view: &View<'_>, rows: &mut Rows, budget: &mut usize) -> bool {
        let (series, end) = (view.series, view.window.end);
        while self.cursor < end && rows.outcome.rows < view.spec.limit {
            let Some(left) = budget.checked_sub(TARGET_COST) else {
                return false;
            };
            *budget = left;
            let slot = series.first_candle(self.cursor..end);
            let target = slot.map(|slot| view.target_of(slot));
            if let Some(close) = &self.previous
                && self.cursor < view.newest
                && target
                    .as_ref()
                    .is_none_or(|target| target.start > self.cursor)
            {
                let flat = view.target_of(self.cursor);
                if series.covered().covers(flat.clone()) {
                    let open = view.window.base.open_of(flat.start);
                    rows.volume.clear();
                    rows.volume.push(b'0');
                    rows.push(open, [close; 4]);
                    rows.count(flat.start, Standing::Closed);
                    self.cursor = flat.end;
                    continue;
                }
            }
            let Some(target) = target else {
                break;
            };
            self.make(view, &target, rows, budget);
            self.cursor = target.end;
        }
        true
    }

    /// Makes the row of a target that holds a candle.
    fn make(&mut self, view: &View<'_>, target: &Range<i64>, rows: &mut Rows, budget: &mut usize) {
        self.previous = None;
        let standing = standing(view.series, target);
        if standing == Standing::Unknown || target.start < view.window.start {
            return;
        }
        rows.outcome.begin.get_or_insert(target.start);
        rows.outcome.closed += u64::from(standing == Standing::Closed);
        let Some((prices, count)) = view.candle(target, &mut rows.volume) else {
            return;
        };
        *budget = budget.saturating_sub(count);
        rows.push(view.window.base.open_of(target.start), prices);
        rows.count(target.start, standing);
        if view.spec.fill_previous {
            self.previous = Some(prices[3].to_vec());
        }
    }
}

impl Rows {
    fn new(quoted: bool) -> Rows {
        Rows {
            body: b"[".to_vec(),
            volume: Vec::new(),
            outcome: Outcome::default(),
            quoted,
        }
    }

    /// Appends a row: open time, open, high, low, close; its volume is already here.
    fn push(&mut self, open: UnixMs, prices: [&[u8]; 4]) {
        let body = &mut self.body;
        body.push(b'[');
        Decimal::from(open.0).write(body);
        for number in prices.into_iter().chain([&self.volume[..]]) {
            body.push(b',');
            if self.quoted {
                body.push(b'"');
                body.extend_from_slice(number);
                body.push(b'"');
            } else {
                body.extend_from_slice(number);
            }
        }
        body.extend_from_slice(b"],");
    }

    fn count(&mut self, slot: i64, standing: Standing) {
        let outcome = &mut self.outcome;
        outcome.rows += 1;
        outcome.begin.get_or_insert(slot);
        outcome.first.get_or_insert(slot);
        outcome.last = Some(slot);
        outcome.touches_tail |= standing == Standing::Open;
    }

    fn close(&mut self) {
        if self.body.last() == Some(&b',') {
            self.body.pop();
        }
        self.body.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::{Interval, Stored};
    use crate::market::testing::{all_of, chart, key, minute, minutes};

    fn series(slots: Range<i64>) -> Series {
        let mut series = Series::new(key(Stored::M1), 0);
        series.answered(
            slots.clone(),
            &minutes(slots.clone()),
            minute(slots.end),
            None,
        );
        series
    }

    #[test]
    fn the_smallest_budget_makes_progress() {
        let series = series(0..600);
        let (body, _) = chart(&series, &all_of(Interval::M5), minute(600));
        let mut maker = ChartMaker::new(all_of(Interval::M5), minute(600), 1000);
        let mut steps = 1;
        while !maker.step(Some(&series), 0) {
            steps += 1;
            assert!(steps < 1000, "it never ends");
        }
        let (made, info) = maker.finished().expect("it is done");
        assert_eq!(String::from_utf8_lossy(&made), body);
        assert_eq!(info.version, Some(series.version()));
    }

    #[test]
    fn a_series_that_changes_on_the_way_is_begun_again_a_few_times() {
        let mut series = series(0..600);
        let mut maker = ChartMaker::new(all_of(Interval::M5), minute(600), 1000);
        assert!(!maker.step(Some(&series), 200));
        let slots = 600..605;
        series.answered(slots.clone(), &minutes(slots), minute(605), None);
        while !maker.step(Some(&series), 200) {}
        let (made, info) = maker.finished().expect("it is done");
        let (body, _) = chart(&series, &all_of(Interval::M5), minute(605));
        assert_eq!(String::from_utf8_lossy(&made), body);
        assert_eq!(info.version, Some(series.version()));
    }

    #[test]
    fn a_series_that_never_rests_still_gets_its_chart() {
        let mut series = series(0..600);
        let mut maker = ChartMaker::new(all_of(Interval::M5), minute(600), 1000);
        let mut slot = 600;
        while !maker.step(Some(&series), 100) {
            series.answered(slot..slot + 1, &minutes([slot]), minute(slot + 1), None);
            slot += 1;
            assert!(slot < 1000, "it never ends");
        }
        let (made, info) = maker.finished().expect("it is done");
        assert_eq!(info.version, None, "of no one moment");
        let times = String::from_utf8_lossy(&made).matches("],[").count();
        assert_eq!(times + 1, info.rows);
        assert!(info.rows >= 120);
    }

    #[test]
    fn a_series_that_leaves_on_the_way_ends_the_body() {
        let series = series(0..600);
        let mut maker = ChartMaker::new(all_of(Interval::M5), minute(600), 1000);
        assert!(!maker.step(Some(&series), 1000));
        assert!(maker.step(None, 1000));
        let (made, info) = maker.finished().expect("it is done");
        assert!(made.ends_with(b"]"));
        assert_eq!((info.complete, info.version), (false, None));
    }

    #[test]
    fn an_unfinished_body_is_not_handed_out() {
        let maker = ChartMaker::new(all_of(Interval::M5), minute(600), 1000);
        assert!(maker.finished().is_none());
    }
}
