//! Charts against a naive recomputation: sets of slots, a map of candles, no chunk, no cursor.
//!
//! One seed is one run. `MARKETD_SEED=n cargo test market::model` replays the run `n` alone.

use super::builder::ChartBuilder;
use super::chart::{ChartInfo, ChartPlan, ChartSpec};
use super::report::{Evidence, Reported};
use super::series::{MAX_PROVISIONAL, Series, SeriesKey};
use super::symbol::{SourceId, SymbolId};
use super::testing::all_of;
use super::window::needed;
use crate::decimal::Decimal;
use crate::interval::{Interval, Stored};
use crate::record::Candle;
use crate::rng::Rng;
use crate::time::UnixMs;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// 2024-02-21, a Wednesday: month ends, a leap day and many Mondays follow.
const BEGIN: UnixMs = UnixMs(1_708_473_600_000);

/// The state that a series must have, slot by slot.
struct Naive {
    base: Stored,
    stored: BTreeMap<i64, Candle>,
    covered: BTreeSet<i64>,
    forming: BTreeMap<i64, Candle>,
    frontier: i64,
}

/// One row. Its text is `None` if the volume has too many digits.
struct Row {
    open: UnixMs,
    text: Option<[String; 5]>,
}

struct Random(Rng);

impl Random {
    fn below(&mut self, n: i64) -> i64 {
        self.0.below(n.max(1) as u64) as i64
    }

    fn one_in(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }

    fn decimal(&mut self, huge: bool) -> Decimal {
        let text = if huge && self.one_in(3) {
            format!("{}{}.{:0>30}1", 1 + self.below(9), "7".repeat(29), self.below(999))
        } else {
            let places = self.below(9) as usize;
            format!("{}.{:0>places$}", 1 + self.below(1500), self.below(10_i64.pow(places as u32)))
        };
        Decimal::parse(text.as_bytes()).expect("a decimal")
    }

    fn candle(&mut self, open_time: UnixMs, huge: bool) -> Candle {
        let mut prices: Vec<Decimal> = (0..4).map(|_| self.decimal(huge)).collect();
        prices.sort();
        let [low, open, close, high] = prices.try_into().expect("four of them");
        let (open, close) = if self.one_in(2) { (close, open) } else { (open, close) };
        let volume = if self.one_in(8) { Decimal::ZERO } else { self.decimal(huge) };
        Candle { open_time, open, high, low, close, volume }
    }
}

impl Naive {
    fn ingest_whole(&mut self, asked: Range<i64>, candles: &[Reported], now: UnixMs) {
        let present = self.base.slot_of(now);
        let open_from = (candles.iter())
            .filter(|reported| reported.is_forming)
            .map(|reported| self.base.slot_of(reported.candle.open_time))
            .filter(|slot| *slot >= present - 1)
            .fold(present, i64::min);
        for slot in asked.start..asked.end.min(open_from) {
            self.covered.insert(slot);
            self.stored.remove(&slot);
            self.forming.remove(&slot);
        }
        for Reported { candle, .. } in candles {
            let slot = self.base.slot_of(candle.open_time);
            if slot < open_from {
                self.stored.insert(slot, candle.clone());
            } else {
                self.forming.insert(slot, candle.clone());
            }
        }
        self.frontier = self.frontier.max(present);
        self.settle();
    }

    fn tick(&mut self, price: &Decimal, at: UnixMs) {
        let slot = self.base.slot_of(at);
        let newest = self.forming.keys().max().copied();
        if self.covered.last().is_some_and(|last| slot <= *last) || newest > Some(slot) {
            return;
        }
        let candle = self.forming.entry(slot).or_insert_with(|| Candle {
            open_time: self.base.open_of(slot),
            open: price.clone(),
            high: price.clone(),
            low: price.clone(),
            close: price.clone(),
            volume: Decimal::ZERO,
        });
        candle.high = candle.high.clone().max(price.clone());
        candle.low = candle.low.clone().min(price.clone());
        candle.close = price.clone();
        self.frontier = self.frontier.max(slot);
        self.settle();
    }

    fn forget_before(&mut self, slot: i64) {
        self.covered.retain(|other| *other >= slot);
        self.stored.retain(|other, _| *other >= slot);
    }

    fn settle(&mut self) {
        if let Some(last) = self.covered.last() {
            self.forming.retain(|slot, _| slot > last);
        }
        while self.forming.len() > MAX_PROVISIONAL + 1 {
            self.forming.pop_first();
        }
    }

    /// The slots of the bucket that opens at `open`.
    fn slots(&self, interval: Interval, open: UnixMs) -> Range<i64> {
        self.base.slot_of(open)..self.base.slot_of(interval.end_of(open))
    }

    /// Every row that could be served, oldest first.
    fn rows(&self, interval: Interval, fill: bool) -> Vec<Row> {
        let all: BTreeMap<i64, &Candle> =
            self.stored.iter().chain(&self.forming).map(|(s, c)| (*s, c)).collect();
        let mut rows = Vec::new();
        let (Some(first), Some(last)) = (all.keys().next(), all.keys().last()) else {
            return rows;
        };
        let (mut open, last) =
            (interval.open_of(self.base.open_of(*first)), self.base.open_of(*last));
        let mut previous: Option<String> = None;
        while open <= last {
            let slots = self.slots(interval, open);
            let inside: Vec<&Candle> =
                slots.clone().filter_map(|slot| all.get(&slot).copied()).collect();
            let closed = slots.clone().all(|slot| self.covered.contains(&slot));
            let known = slots
                .clone()
                .all(|slot| self.covered.contains(&slot) || self.forming.contains_key(&slot));
            let newest = slots.end > self.frontier
                && slots.end > self.covered.last().map_or(i64::MIN, |s| s + 1);
            let text = if inside.is_empty() && closed {
                let flat = previous.clone().filter(|_| fill);
                flat.map(|close| {
                    [close.clone(), close.clone(), close.clone(), close, "0".to_string()]
                })
            } else if !inside.is_empty() && (closed || known || newest) {
                let row = merged(&inside);
                previous = row.as_ref().map(|row| row[3].clone());
                rows.push(Row { open, text: row });
                None
            } else {
                previous = None;
                None
            };
            if text.is_some() {
                rows.push(Row { open, text });
            }
            open = interval.end_of(open);
        }
        rows.retain(|row| self.base.slot_of(row.open) >= 0);
        rows
    }

    /// The slots from which this chart may take candles. Outside the needed ones, these follow each other up to
    /// the first that is not covered; the newest are not waited for.
    fn reach(&self, spec: &ChartSpec, now: UnixMs, keep: i64) -> Range<i64> {
        let Range { mut start, mut end } = needed(spec, now, keep);
        let is_known = (start..end).any(|slot| self.covered.contains(&slot));
        let present = self.base.slot_of(now);
        if spec.from.is_none() {
            start = match self.covered.range(..start).next_back() {
                Some(known) if !is_known => known + 1,
                None if !is_known => return i64::MIN..i64::MAX,
                _ => start,
            };
            while self.covered.contains(&(start - 1)) {
                start -= 1;
            }
            let forming = spec.interval.open_of(self.base.open_of(present));
            return start.min(self.base.slot_of(forming))..i64::MAX;
        }
        end = match self.covered.range(end..).next() {
            Some(known) if !is_known => *known,
            None if !is_known => return i64::MIN..i64::MAX,
            _ => end,
        };
        while end < present - 2 && self.covered.contains(&end) {
            end += 1;
        }
        i64::MIN..if end < present - 2 { end } else { i64::MAX }
    }

    /// Compares every way to make this chart with the naive rows.
    fn check(&self, series: &Series, spec: &ChartSpec, now: UnixMs, keep: i64, why: &str) {
        let why = format!("{why} {spec:?} now {now} keep {keep}");
        let mut rows = self.rows(spec.interval, spec.fill_previous);
        rows.retain(|row| {
            spec.from.is_none_or(|from| row.open >= from) && spec.to.is_none_or(|to| row.open <= to)
        });
        let reach = self.reach(spec, now, keep);
        rows.retain(|row| {
            let slots = self.slots(spec.interval, row.open);
            reach.start <= slots.start && slots.end <= reach.end
        });
        let more = rows.len() > spec.limit;
        let mut begin = None;
        if spec.from.is_some() {
            rows.retain(|row| row.text.is_some());
            rows.truncate(spec.limit);
        } else {
            rows.drain(..rows.len().saturating_sub(spec.limit));
            begin = rows.first().map(|row| row.open);
            rows.retain(|row| row.text.is_some());
        }
        let text = |row: &Row| {
            let numbers = row.text.as_ref().expect("only these were kept");
            let quote = if spec.quoted { "\"" } else { "" };
            let numbers: String =
                numbers.iter().map(|number| format!(",{quote}{number}{quote}")).collect();
            format!("[{}{numbers}]", row.open.0)
        };
        let texts: Vec<String> = rows.iter().map(text).collect();
        let body = format!("[{}]", texts.join(","));

        let mut builder = ChartBuilder::new(Some(series), spec.clone(), now, keep);
        // The builder makes progress even with the smallest budget.
        let budget = spec.limit % 8;
        while !builder.step(budget) {}
        let made = builder.finished().expect("it says so");
        let info = &made.info;
        assert_eq!(made.text(), body, "{why}");
        assert_eq!(made.body_len(), body.len(), "{why}");
        self.check_info(&rows, (more, begin), info, spec, now, keep, &why);
        for spec in [spec, &all_of(series.interval().interval()), spec] {
            let bytes = |plan: &ChartPlan| {
                let mut out = Vec::new();
                plan.write(&mut out);
                (out, plan.info.clone())
            };
            let plan = ChartPlan::new(Some(series), spec, now, keep);
            let recent = ChartPlan::recent(Some(series), spec, now, keep);
            let recent = recent.as_deref().map(bytes);
            assert_eq!(plan.as_ref().map(bytes), recent, "{why}");
        }
        if let Some(plan) = ChartPlan::new(Some(series), spec, now, keep) {
            let mut out = b"head".to_vec();
            assert_eq!(plan.body_len(), body.len(), "{why}");
            assert_eq!(&plan.info, info, "{why}");
            plan.write(&mut out);
            assert_eq!(String::from_utf8_lossy(&out[4..]), body, "{why}");
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all that an answer is made of")]
    fn check_info(
        &self,
        rows: &[Row],
        (more, begin): (bool, Option<UnixMs>),
        info: &ChartInfo,
        spec: &ChartSpec,
        now: UnixMs,
        keep: i64,
        why: &str,
    ) {
        let interval = spec.interval;
        let (first, last) = (rows.first().map(|row| row.open), rows.last().map(|row| row.open));
        assert_eq!((info.rows, info.first, info.last), (rows.len(), first, last), "{why}");
        let present = self.base.slot_of(now);
        let floor = (present - keep).max(0);

        // What is worth asking for, bucket by bucket.
        let mut wanted = BTreeSet::new();
        let mut open = interval.open_of(spec.to.unwrap_or(now).min(now));
        let mut count = 0;
        if let Some(from) = spec.from {
            open = interval.open_of(from.max(self.base.open_of(floor)));
            if open < from || self.base.slot_of(open) < floor {
                open = interval.end_of(open);
            }
            while count < spec.limit && spec.to.is_none_or(|to| open <= to) && open <= now {
                wanted.extend(self.slots(interval, open));
                open = interval.end_of(open);
                count += 1;
            }
        } else {
            while count < spec.limit && self.base.slot_of(open) >= floor {
                wanted.extend(self.slots(interval, open));
                open = interval.step(open, -1);
                count += 1;
            }
        }
        wanted.retain(|slot| *slot < present);
        let asked: BTreeSet<i64> = needed(spec, now, keep).collect();
        assert_eq!(asked, wanted, "{why}");

        // The answered range, slot by slot.
        let end_of_range =
            spec.to.map_or(i64::MAX, |to| self.slots(interval, interval.open_of(to)).end);
        let closed_end = end_of_range.min(present);
        let behind = last.map(|open| self.slots(interval, open).end);
        let unknown_behind = behind
            .is_some_and(|behind| (behind..closed_end).any(|slot| !self.covered.contains(&slot)));
        let cut = spec.from.is_some()
            && rows.len() >= spec.limit
            && (more || unknown_behind || self.hidden_behind(behind, end_of_range));
        let reach = self.reach(spec, now, keep).end;
        let bucket = |slot| self.base.slot_of(interval.open_of(self.base.open_of(slot)));
        let reach = (reach < i64::MAX).then(|| bucket(reach)).filter(|slot| *slot < end_of_range);
        let cut = behind.filter(|_| cut);
        let next = cut.or(reach.and(behind.or(reach)));
        assert_eq!(info.next_from, next.map(|slot| self.base.open_of(slot)), "{why}");
        let start = match (spec.from, begin) {
            (Some(from), _) => {
                let from = from.max(self.base.open_of(floor));
                let open = interval.open_of(from);
                let open = if open < from { interval.end_of(open) } else { open };
                self.base.slot_of(open)
            }
            (None, Some(first)) => self.base.slot_of(first),
            (None, None) => asked.first().copied().unwrap_or(present),
        };
        let end = cut.unwrap_or(closed_end).min(closed_end);
        let oldest = match (spec.from, begin) {
            (Some(from), _) => {
                let from = from.max(UnixMs(0));
                let open = interval.open_of(from);
                let late = open < from;
                self.base.slot_of(if late { interval.end_of(open) } else { open })
            }
            (None, None) => 0,
            (None, Some(_)) => start,
        };
        let complete = (oldest..end)
            .chain(asked)
            .filter(|slot| *slot < closed_end)
            .all(|slot| self.covered.contains(&slot));
        assert_eq!(info.complete, complete, "{why} {start} {end}");

        let range_start = match spec.from {
            Some(from) => from,
            None => begin.unwrap_or(self.base.open_of(start)),
        };
        let mut gaps = 0;
        let least = self.covered.first().map_or(range_start, |slot| self.base.open_of(*slot));
        let mut open = interval.open_of(range_start.max(least));
        let end = next.map_or(end, |next| next.min(end));
        while self.slots(interval, open).end <= end {
            let slots = || self.slots(interval, open);
            let empty = slots()
                .all(|slot| self.covered.contains(&slot) && !self.stored.contains_key(&slot));
            gaps += u64::from(open >= range_start && empty);
            open = interval.end_of(open);
        }
        assert_eq!(info.gaps, gaps, "{why}");
        let last_closed = self
            .stored
            .keys()
            .rev()
            .map(|slot| interval.open_of(self.base.open_of(*slot)))
            .find(|open| self.slots(interval, *open).all(|slot| self.covered.contains(&slot)));
        assert_eq!(info.last_closed, last_closed, "{why}");
    }

    /// True if a candle without a row follows the last row.
    fn hidden_behind(&self, behind: Option<i64>, end: i64) -> bool {
        behind.is_some_and(|behind| {
            self.stored.range(behind..end.max(behind)).next().is_some()
                || self.forming.range(behind..end.max(behind)).next().is_some()
        })
    }
}

/// Open, high, low, close and volume of several candles.
fn merged(candles: &[&Candle]) -> Option<[String; 5]> {
    let (first, rest) = candles.split_first()?;
    let high = candles.iter().map(|candle| &candle.high).max()?;
    let low = candles.iter().map(|candle| &candle.low).min()?;
    let volume = rest
        .iter()
        .try_fold(first.volume.clone(), |sum, candle| sum.checked_add(&candle.volume))?;
    let close = &candles.last()?.close;
    Some([&first.open, high, low, close, &volume].map(Decimal::to_string))
}

fn run(seed: u64) {
    let mut random = Random(Rng::new(seed));
    let base = Stored::ALL[random.below(3) as usize];
    let huge = random.one_in(4);
    let key = SeriesKey { source: SourceId(0), symbol: SymbolId(0), interval: base };
    let mut series = Series::new(key, 0);
    let mut naive = Naive {
        base,
        stored: BTreeMap::new(),
        covered: BTreeSet::new(),
        forming: BTreeMap::new(),
        frontier: i64::MIN,
    };
    let first = base.slot_of(BEGIN);
    let length = 40 + random.below(400);
    let density = 1 + random.below(6);
    let truth: BTreeMap<i64, Candle> = (first..first + length + 2)
        .filter(|_| !random.one_in(density))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|slot| (slot, random.candle(base.open_of(slot), huge)))
        .collect();
    let mut now = base.open_of(first + random.below(length));
    for step in 0..24 {
        let present = base.slot_of(now);
        let why = format!("seed {seed} step {step}");
        match random.below(5) {
            0 => {
                now = (now + random.below(20) * base.length_ms() + random.below(base.length_ms()))
                    .min(base.open_of(first + length));
            }
            1 | 2 => {
                let start = first + random.below(present - first + 1);
                let asked = start..start + random.below(120);
                let change = random.one_in(4);
                let flags = random.one_in(3);
                let mut candles: Vec<Reported> = truth
                    .range(asked.clone())
                    .filter(|(slot, _)| **slot <= present)
                    .filter(|_| !(change && random.one_in(9)))
                    .map(|(slot, candle)| Reported {
                        candle: candle.clone(),
                        is_forming: flags && *slot >= present,
                    })
                    .collect();
                if change && let Some(any) = candles.first_mut() {
                    any.candle = random_again(&any.candle);
                }
                if random.one_in(2) {
                    candles.reverse();
                }
                let before = (series.version(), series.count());
                // The rules of silence are not part of this test.
                let written = series.ingest(asked.clone(), &candles, &Evidence::Proven, now, None);
                naive.ingest_whole(asked, &candles, now);
                assert_eq!(written.rejected, 0, "{why}");
                let change = written.written as i64 - written.removed as i64;
                assert_eq!(series.count() as i64, before.1 as i64 + change, "{why}");
            }
            3 => {
                for _ in 0..random.below(12) {
                    let price = random.decimal(huge);
                    series.tick(&price, now);
                    naive.tick(&price, now);
                    if random.one_in(2) {
                        now = (now + random.below(base.length_ms()))
                            .min(base.open_of(first + length));
                    }
                }
            }
            _ if random.one_in(4) => {
                let slot = first + random.below(length);
                series.forget_before(slot);
                naive.forget_before(slot);
            }
            _ => {}
        }
        assert_eq!(series.count(), naive.stored.len(), "{why}");
        for _ in 0..6 {
            let intervals: Vec<Interval> =
                Interval::ALL.into_iter().filter(|interval| interval.base() == base).collect();
            let mut time = || {
                let time =
                    base.open_of(first - 50 + random.below(length + 100)) + random.below(3) - 1;
                random.one_in(2).then_some(time)
            };
            let (from, to) = (time(), time());
            if from.is_some() && to.is_some() && from > to {
                continue;
            }
            let quoted = random.one_in(4);
            let spec = ChartSpec {
                interval: intervals[random.below(intervals.len() as i64) as usize],
                from,
                to,
                limit: if huge { 5000 } else { 1 + random.below(60) as usize },
                fill_previous: random.one_in(3),
                quoted,
            };
            let keep = 1 + random.below(2 * length);
            naive.check(&series, &spec, now, keep, &why);
        }
    }
}

/// The same candle with another close.
fn random_again(candle: &Candle) -> Candle {
    Candle { close: candle.low.clone(), ..candle.clone() }
}

#[test]
fn charts_equal_a_naive_recomputation() {
    match std::env::var("MARKETD_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => run(seed),
        None => (0..400).for_each(run),
    }
}
