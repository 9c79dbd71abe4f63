//! Chart plans: the quick way to make a chart body.
//!
//! Owns no rows. A [`ChartPlan`] measures stored rows without reading them, so that the length is
//! known before the first byte is written, and shares their bytes. Every other chart is made row by
//! row by a [`ChartBuilder`](super::builder::ChartBuilder).

use super::chart::{ChartPlan, ChartSpec, Recent};
use super::chunk::seconds;
use super::series::Series;
use super::window::{FoundRows, Window};
use crate::fingerprint::{Fingerprint, Part};
use crate::time::UnixMs;
use std::ops::Range;
use std::sync::Arc;

/// Seconds after which a plan is made again in any case, which marks its chunks as read.
const RECENT_S: u32 = 16;

impl ChartPlan {
    /// True if a chart is made of stored rows as they are.
    pub fn fits(spec: &ChartSpec) -> bool {
        spec.interval.is_stored() && !spec.fill_previous && !spec.quoted
    }

    /// The bytes of memory that a chart of this kind takes alone: stored rows are those of the series.
    pub fn held(&self, spec: &ChartSpec) -> usize {
        let rows = if ChartPlan::fits(spec) { 0 } else { self.body_len() };
        rows + size_of_val(self.pieces())
    }

    /// Finds the rows of a chart. `None` if the chart needs a
    /// [`ChartBuilder`](super::builder::ChartBuilder). `now` is the exchange's clock, `keep` the
    /// kept window in base slots.
    pub fn new(
        series: Option<&Series>,
        spec: &ChartSpec,
        now: UnixMs,
        keep: i64,
    ) -> Option<ChartPlan> {
        if !ChartPlan::fits(spec) {
            return None;
        }
        debug_assert!(series.is_none_or(|series| series.interval() == spec.interval.base()));
        let window = Window::new(spec);
        let Some(series) = series else {
            let info = FoundRows::default().info(None, spec, now, keep);
            return Some(ChartPlan::of(Vec::new(), Fingerprint::default(), info));
        };
        let mut candles = series.candle_slots(window.start..window.end);
        // What the limit cuts off begins, or ends, with one more candle.
        let slots = match window.keeps_oldest {
            true => window.start..candles.nth(spec.limit).unwrap_or(window.end),
            false => candles.nth_back(spec.limit).map_or(window.start, |it| it + 1)..window.end,
        };
        let (stored, mut pieces) = series.pieces(&slots, now);
        let forming = series.forming_in(&slots);
        pieces.extend(forming.iter().map(|it| (it.row().clone(), 0..it.row().len())));
        let first = series.candle_slots(slots.clone()).next();
        let found = FoundRows {
            rows: stored + forming.len(),
            begin: first,
            first,
            last: series.candle_slots(slots.clone()).next_back(),
            closed: stored as u64,
        };
        let info = found.info(Some(series), spec, now, keep);
        Some(ChartPlan::of(pieces, made_of(series, &slots), info))
    }

    /// Like [`ChartPlan::new`], but reuses the last plan of the series while it would not change:
    /// many clients ask for the same chart.
    pub fn recent(
        series: Option<&Series>,
        spec: &ChartSpec,
        now: UnixMs,
        keep: i64,
    ) -> Option<Arc<ChartPlan>> {
        let Some(series) = series else {
            return ChartPlan::new(None, spec, now, keep).map(Arc::new);
        };
        let made_for = (spec.clone(), keep, series.version(), series.interval().slot_of(now));
        let second = seconds(now);
        let mut recent = series.recent.borrow_mut();
        if let Some(recent) = &*recent
            && recent.made_for == made_for
            && second.wrapping_sub(recent.second) < RECENT_S
        {
            return Some(recent.plan.clone());
        }
        let plan = Arc::new(ChartPlan::new(Some(series), spec, now, keep)?);
        *recent = Some(Box::new(Recent { made_for, second, plan: plan.clone() }));
        Some(plan)
    }
}

/// The fingerprint of a chart of these slots: the stored rows between two slots, and the forming
/// candles between two others.
fn made_of(series: &Series, slots: &Range<i64>) -> Fingerprint {
    let mut made_of = Fingerprint::default();
    made_of.add(Part::Source(series.key().source.0));
    let mut stored = series.row_slots(slots.clone());
    if let Some(first) = stored.next() {
        made_of.add(Part::Stored(series.closed_version()));
        made_of.add(Part::From(first));
        made_of.add(Part::Before(stored.next_back().unwrap_or(first) + 1));
    }
    let forming = series.forming_in(slots);
    if let (Some(first), Some(last)) = (forming.first(), forming.last()) {
        made_of.add(Part::Series(series.version()));
        made_of.add(Part::From(first.slot));
        made_of.add(Part::Before(last.slot + 1));
    }
    made_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::interval::{Interval, Stored};
    use crate::market::testing::{all_of, chart, key, known, minute, minutes, slots};
    use crate::market::window::{MAX_TIME, needed};
    use std::ops::Range;

    const DAY: i64 = 1440;

    fn spec(interval: Interval, from: Option<i64>, to: Option<i64>, limit: usize) -> ChartSpec {
        ChartSpec { from: from.map(minute), to: to.map(minute), limit, ..all_of(interval) }
    }

    #[test]
    fn what_is_needed_goes_from_the_asked_end() {
        let check = |interval, from, to, limit, expected: Range<i64>| {
            let spec = spec(interval, from, to, limit);
            let needed = needed(&spec, minute(1000) + 7, 600);
            assert_eq!(needed, expected, "{spec:?}");
        };
        check(Interval::M1, None, None, 100, 901..1000);
        check(Interval::M1, None, Some(800), 100, 701..801);
        check(Interval::M1, None, Some(5000), 100, 901..1000);
        check(Interval::M1, None, None, 5000, 400..1000);
        check(Interval::M1, Some(800), None, 100, 800..900);
        check(Interval::M1, Some(950), None, 100, 950..1000);
        check(Interval::M1, Some(100), None, 100, 400..500);
        check(Interval::M1, Some(800), Some(810), 100, 800..811);
        check(Interval::M1, Some(800), Some(810), 5, 800..805);
        check(Interval::M1, Some(100), Some(200), 5, 201..201);
        check(Interval::M1, Some(2000), Some(2001), 5, 1000..1000);
        // Whole buckets; one that the window of time cuts is none.
        check(Interval::M5, None, None, 2, 995..1000);
        check(Interval::M5, None, Some(993), 2, 985..995);
        check(Interval::M5, Some(991), None, 1, 995..1000);
        check(Interval::M15, Some(0), None, 1, 405..420);
        check(Interval::M1, None, None, usize::MAX, 400..1000);
    }

    #[test]
    fn gaps_are_what_the_exchange_did_not_have_and_holes_what_nobody_asked() {
        let mut series = Series::new(key(Stored::M1), 0);
        let some = minutes((100..130).filter(|slot| slot % 10 > 1));
        known(&mut series, 100..130, &some, minute(200));
        series.ingest_whole(140..160, &minutes(140..160), minute(200), None);
        let check = |spec: &ChartSpec, rows: usize, gaps: u64, complete: bool| {
            let (_, info) = chart(&series, spec, minute(160));
            let got = (info.rows, info.gaps, info.complete);
            assert_eq!(got, (rows, gaps, complete), "{spec:?}");
        };
        let m1 = |from, to, limit| spec(Interval::M1, Some(from), Some(to), limit);
        check(&m1(102, 109, 500), 8, 0, true);
        check(&m1(100, 129, 500), 24, 6, true);
        check(&m1(100, 129, 8), 8, 2, true);
        check(&m1(100, 130, 500), 24, 6, false);
        check(&m1(130, 139, 500), 0, 0, false);
        check(&m1(140, 170, 500), 20, 0, true);
        check(&m1(170, 180, 500), 0, 0, true);
        check(&spec(Interval::M1, None, None, 20), 20, 0, true);
        check(&spec(Interval::M1, None, None, 21), 21, 0, false);
        check(&spec(Interval::M1, None, Some(131), 8), 8, 0, false);
        check(&spec(Interval::M1, None, Some(129), 9), 9, 2, true);
        let m5 = |from, to| spec(Interval::M5, Some(from), Some(to), 500);
        check(&m5(100, 125), 6, 0, true);
        check(&m5(100, 135), 6, 0, false);
    }

    #[test]
    fn a_cut_range_names_its_next_page_and_pages_join() {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(
            0..300,
            &minutes((0..300).filter(|slot| slot % 7 > 0)),
            minute(300),
            None,
        );
        for interval in [Interval::M1, Interval::M5, Interval::M30] {
            for fill_previous in [false, true] {
                let mut request = spec(interval, Some(10), Some(290), 9);
                request.fill_previous = fill_previous;
                let mut paged = Vec::new();
                loop {
                    paged.extend(slots(&series, &request, minute(300)));
                    let (_, info) = chart(&series, &request, minute(300));
                    let Some(next) = info.next_from else {
                        break;
                    };
                    request.from = Some(next);
                }
                request.from = Some(minute(10));
                request.limit = 5000;
                let whole = slots(&series, &request, minute(300));
                assert_eq!(paged, whole, "{interval:?} {fill_previous}");
            }
        }
    }

    #[test]
    fn a_roll_up_of_a_partly_known_span_is_left_out_but_for_the_forming_one() {
        let check = |covered: &[(i64, i64)], ticks: Range<i64>, now: i64, expected: &[i64]| {
            let mut series = Series::new(key(Stored::M1), 0);
            for (start, end) in covered {
                series.ingest_whole(*start..*end, &minutes(*start..*end), minute(now), None);
            }
            for slot in ticks.clone() {
                series.tick(&Decimal::from(5), minute(slot));
            }
            let rows = slots(&series, &all_of(Interval::M5), minute(now));
            assert_eq!(rows, expected, "{covered:?} {ticks:?} {now}");
        };
        check(&[(0, 10)], 0..0, 10, &[0, 5]);
        check(&[(0, 8)], 0..0, 8, &[0, 5]);
        check(&[(1, 8)], 0..0, 8, &[5]);
        check(&[(0, 4), (5, 10)], 0..0, 10, &[5]);
        // Ended, and not answered to its end: unknown.
        check(&[(0, 8)], 0..0, 10, &[0]);
        // Ended, and quotes tell the rest until the exchange does.
        check(&[(0, 8)], 8..11, 10, &[0, 5, 10]);
        check(&[(0, 8)], 9..11, 10, &[0, 10]);
        check(&[], 3..7, 6, &[5]);
        check(&[], 0..7, 6, &[0, 5]);
    }

    #[test]
    fn weeks_and_months_are_whole_calendar_weeks_and_months() {
        // 2024-01-29 is a Monday; February has 29 days; all of 2024-02-01..2024-04-01 is known.
        let day = |text: &str| {
            let mut day = 19_700;
            while !Stored::D1.open_of(day).to_string().starts_with(text) {
                day += 1;
            }
            day
        };
        let mut series = Series::new(key(Stored::D1), 0);
        let asked = day("2024-01-31")..day("2024-04-02");
        let candles: Vec<_> = (minutes(asked.clone()).into_iter())
            .map(|mut reported| {
                reported.candle.open_time = UnixMs(reported.candle.open_time.0 * DAY);
                reported
            })
            .collect();
        let now = Stored::D1.open_of(day("2024-04-02"));
        series.ingest_whole(asked, &candles, now, None);
        let opens = |interval| -> Vec<String> {
            let days = slots(&series, &all_of(interval), now);
            let open = |day| Stored::D1.open_of(day).to_string()[..10].to_string();
            days.into_iter().map(open).collect()
        };
        assert_eq!(opens(Interval::Month1), ["2024-02-01", "2024-03-01", "2024-04-01"]);
        let weeks = opens(Interval::W1);
        assert_eq!(weeks.first().map(String::as_str), Some("2024-02-05"));
        assert_eq!(weeks.last().map(String::as_str), Some("2024-04-01"));
        assert_eq!(weeks.len(), 9);
        let (body, info) = chart(&series, &all_of(Interval::Month1), now);
        let february = day("2024-02-01");
        let expected = format!(
            "[[{},{february},{},{},{},58],",
            february * DAY * 60_000,
            february + 28 + 9,
            february - 1,
            february + 28 + 1
        );
        assert!(body.starts_with(&expected), "{body} {expected}");
        let march = Stored::D1.open_of(day("2024-03-01"));
        assert_eq!(info.last_closed, Some(march));
    }

    #[test]
    fn flat_candles_stand_where_the_exchange_had_none_and_nowhere_else() {
        let mut series = Series::new(key(Stored::M1), 0);
        known(&mut series, 10..20, &minutes([12, 15]), minute(40));
        known(&mut series, 30..40, &minutes([33]), minute(40));
        series.tick(&Decimal::from(5), minute(41));
        let check = |from: Option<i64>, to: Option<i64>, limit: usize, expected: &[i64]| {
            let mut spec = spec(Interval::M1, from, to, limit);
            spec.fill_previous = true;
            assert_eq!(slots(&series, &spec, minute(41)), expected, "{spec:?}");
        };
        let all = [12, 13, 14, 15, 16, 17, 18, 19, 33, 34, 35, 36, 37, 38, 39, 41];
        check(None, None, 500, &all);
        check(None, None, 3, &all[13..]);
        check(None, None, 9, &all[7..]);
        check(None, Some(14), 2, &[13, 14]);
        check(Some(13), Some(14), 2, &[13, 14]);
        check(Some(14), None, 3, &[14, 15, 16]);
        check(Some(20), Some(32), 3, &[]);
        check(None, Some(11), 3, &[]);
        // What follows a candle that is not known whole is not known to go on from it.
        let mut part = Series::new(key(Stored::M1), 0);
        known(&mut part, 13..30, &minutes([14, 28]), minute(40));
        let mut five = spec(Interval::M5, Some(20), None, 500);
        five.fill_previous = true;
        assert_eq!(slots(&part, &five, minute(41)), [25]);
        let mut spec = spec(Interval::M1, Some(13), Some(15), 5);
        (spec.fill_previous, spec.quoted) = (true, true);
        let flat = |time| format!(r#"[{time},"13","13","13","13","0"]"#);
        let expected =
            format!(r#"[{},{},[900000,"15","24","14","16","2"]]"#, flat(780_000), flat(840_000));
        assert_eq!(chart(&series, &spec, minute(41)).0, expected);
    }

    #[test]
    fn without_a_series_there_is_an_empty_body() {
        let spec = spec(Interval::M1, None, None, 10);
        let plan = ChartPlan::new(None, &spec, minute(100), 50).expect("stored rows");
        let mut body = Vec::new();
        plan.write(&mut body);
        assert_eq!((body.as_slice(), plan.body_len()), (&b"[]"[..], 2));
        assert_eq!(plan.info.depends, 91..100);
        assert!(!plan.info.complete);
        assert!(plan.pieces().is_empty());
    }

    #[test]
    fn the_farthest_times_do_no_harm() {
        let now = UnixMs(1_700_000_000_000);
        let far = [i64::MIN, -1, 0, MAX_TIME.0, MAX_TIME.0 + 1, i64::MAX];
        for interval in Interval::ALL {
            let mut series = Series::new(key(interval.base()), 0);
            series.tick(&Decimal::from(5), now);
            for (from, to) in far.iter().flat_map(|from| far.map(|to| (*from, to))) {
                for limit in [1, usize::MAX] {
                    let spec = ChartSpec {
                        from: Some(UnixMs(from)),
                        to: Some(UnixMs(to)),
                        limit,
                        ..all_of(interval)
                    };
                    let (body, _) = chart(&series, &spec, now);
                    let inside = from <= 0 && to >= MAX_TIME.0;
                    assert_eq!(body != "[]", inside, "{spec:?}");
                }
            }
        }
    }
}
