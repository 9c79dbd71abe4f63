//! The range of a chart: the slots that a request needs, how far the chart may go beyond them, and what is
//! reported about them.
//!
//! It never waits for missing candles: it reports what is missing.
//!
//! A *bucket* is a candle of the requested interval. It is made of *slots*, which are candles of
//! the stored interval.

use super::chart::{ChartInfo, ChartSpec};
use super::interval_set::IntervalSet;
use super::series::Series;
use crate::interval::{Interval, Stored};
use crate::time::{MAX_TIME, UnixMs};
use std::ops::Range;

/// The oldest slot of the kept window: `keep` slots before the slot of `now`, but not before the
/// epoch.
pub fn floor_slot(interval: Stored, now: UnixMs, keep: i64) -> i64 {
    interval.slot_of(now).saturating_sub(keep).max(0)
}

/// The newest closed slots of a followed series, which the next refresh brings within a second. Until then
/// each has a candle made from quotes, so no client waits for them, and a chart goes on behind them.
pub const NEWEST: i64 = 2;

/// The most buckets of a computed range, about 80,000 years in months. It keeps the calendar from
/// overflow, whatever the limit of a request.
const MOST_BUCKETS: usize = 1_000_000;

/// The base slots that must be covered for a complete response. More may be needed once the candles are
/// known. They are `limit` buckets in the requested direction, clipped to the kept window, and to the slots
/// that have ended by `now` on the exchange's clock. `keep` is in base slots.
pub fn needed(spec: &ChartSpec, now: UnixMs, keep: i64) -> Range<i64> {
    Window::new(spec).needed(spec, now, keep)
}

/// The buckets that may be in the response to a request, before its limit applies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// First slot of the first bucket.
    pub(super) start: i64,
    /// The slot after the last bucket.
    pub(super) end: i64,
    /// True if the limit keeps the oldest buckets.
    pub(super) keeps_oldest: bool,
}

impl Window {
    pub(super) fn new(spec: &ChartSpec) -> Window {
        let (interval, base) = (spec.interval, spec.interval.base());
        let slot_of = |time: UnixMs| base.slot_of(time.clamp(UnixMs(0), MAX_TIME));
        let start = spec.from.map_or(0, |from| {
            let slot = slot_of(from);
            let late = base.open_of(slot) < from;
            interval.bucket_from(slot + i64::from(late))
        });
        let end = match spec.to {
            Some(to) if to < UnixMs(0) => start,
            to => interval.bucket_of(slot_of(to.unwrap_or(MAX_TIME))).end,
        };
        Window { start, end: end.max(start), keeps_oldest: spec.from.is_some() }
    }

    /// See [`needed`].
    pub(super) fn needed(&self, spec: &ChartSpec, now: UnixMs, keep: i64) -> Range<i64> {
        let (base, present) = (spec.interval.base(), spec.interval.base().slot_of(now));
        let limit = spec.limit.min(MOST_BUCKETS) as i64;
        let floor = spec.interval.bucket_from(floor_slot(base, now, keep));
        let (start, end) = if self.keeps_oldest {
            let start = self.start.max(floor);
            let end = spec.interval.bucket_after(start, limit);
            (start, end.min(self.end))
        } else {
            let end = self.end.min(spec.interval.bucket_of(present).end);
            let start = spec.interval.bucket_after(end, -limit);
            (start.max(floor), end)
        };
        let end = end.min(present);
        start.min(end)..end
    }

    /// The part of the window from which a chart may take candles. Outside of the needed slots, it ends
    /// before the first unknown slot: a candle behind an unknown slot need not be the next candle. If all
    /// needed slots are unknown, the chart takes the nearest known candles.
    pub(super) fn reach(
        self,
        series: Option<&Series>,
        spec: &ChartSpec,
        now: UnixMs,
        keep: i64,
    ) -> Window {
        let Some(series) = series else {
            return self;
        };
        let (interval, covered) = (spec.interval, series.covered());
        let (needed, present) = (self.needed(spec, now, keep), series.interval().slot_of(now));
        let is_known = covered.within(needed.clone()).next().is_some();
        if self.keeps_oldest {
            let next = covered.within(needed.end..i64::MAX).next();
            let unread = match next.filter(|it| !is_known || it.start == needed.end) {
                Some(next) => next.end,
                None if is_known => needed.end,
                None => return self,
            };
            let goes_on = unread >= present - NEWEST;
            let end = if goes_on { self.end } else { interval.bucket_of(unread).start };
            return Window { end: end.min(self.end), ..self };
        }
        let before = covered.within(0..needed.start).next_back();
        let read = match before.filter(|it| !is_known || it.end == needed.start) {
            Some(before) => before.start,
            None if is_known => needed.start,
            None => return self,
        };
        let forming = interval.bucket_of(present).start;
        Window { start: interval.bucket_from(read).min(forming), ..self }
    }
}

/// The rows found for a request. All slots are base slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FoundRows {
    /// Rows of the body.
    pub(super) rows: usize,
    /// First slot of the first known bucket. It is before `first` if this bucket has no row because its
    /// volume has too many digits.
    pub(super) begin: Option<i64>,
    /// First slot of the first row's bucket.
    pub(super) first: Option<i64>,
    /// First slot of the last row's bucket.
    pub(super) last: Option<i64>,
    /// The number of buckets that have a candle and are fully confirmed by the exchange, with a row or
    /// without.
    pub(super) closed: u64,
}

impl FoundRows {
    /// The information about the chart of a series, which takes candles up to the slot `reach`. `now` is the
    /// exchange's clock, `keep` the kept window in base slots.
    pub(super) fn info(
        &self,
        series: Option<&Series>,
        spec: &ChartSpec,
        reach: i64,
        now: UnixMs,
        keep: i64,
    ) -> ChartInfo {
        let nothing = IntervalSet::default();
        let covered = series.map_or(&nothing, Series::covered);
        let window = Window::new(spec);
        let (interval, base) = (spec.interval, spec.interval.base());
        let (needed, present) = (window.needed(spec, now, keep), base.slot_of(now));
        let closed_end = window.end.min(present);
        // The limit has cut off rows if a candle or an unknown slot follows.
        let rows_end = self.last.map(|slot| interval.bucket_of(slot).end);
        let cut = rows_end.filter(|rows_end| {
            let rest = *rows_end..window.end;
            // Flat rows go on up to the newest candle, even if it is after the window.
            let until = if spec.fill_previous && !rest.is_empty() { i64::MAX } else { rest.end };
            let has_candle =
                || series.is_some_and(|s| s.candle_slots(rest.start..until).next().is_some());
            let is_full = window.keeps_oldest && self.rows >= spec.limit;
            is_full && (!covered.covers(*rows_end..closed_end.max(*rows_end)) || has_candle())
        });
        // The next page begins behind the last row, also if the chart does not reach the end of the window.
        let next = cut.or((reach < window.end).then(|| rows_end.unwrap_or(reach)));
        // The closed slots of the answered range, in which gaps are counted.
        let start =
            if window.keeps_oldest { window.start } else { self.begin.unwrap_or(needed.start) };
        let end = cut.unwrap_or(closed_end).min(closed_end);
        let oldest = if window.keeps_oldest { needed.start } else { start.min(needed.start) };
        // The closed slots of the requested range, with those older than the kept window. Without a row it is
        // unknown where the market begins.
        let asked_from = match (window.keeps_oldest, self.begin) {
            (true, _) => window.start,
            (false, None) => 0,
            (false, Some(_)) => oldest,
        };
        let asked = asked_from.min(end)..end;
        let answered = start..next.map_or(end, |next| next.min(end)).max(start);
        let is_late = |from: i64| cut.unwrap_or(window.end) > from;
        let in_doubt = series.is_none_or(|series| series.doubted_from.is_some_and(is_late));
        let open_of = |slot: i64| base.open_of(slot);
        ChartInfo {
            rows: self.rows,
            first: self.first.map(open_of),
            last: self.last.map(open_of),
            gaps: whole_buckets(covered, answered, interval).saturating_sub(self.closed),
            settled: series.is_some_and(|series| series.is_settled(&asked)),
            complete: !in_doubt
                && covered.covers(asked)
                && covered.covers(oldest..end.max(needed.end)),
            oldest,
            last_closed: series.and_then(|series| last_closed(series, interval)),
            next_from: next.map(open_of),
        }
    }
}

/// The number of buckets in this range that are fully covered.
fn whole_buckets(covered: &IntervalSet, range: Range<i64>, interval: Interval) -> u64 {
    let spans = covered.within(range);
    spans.map(|span| interval.buckets_in(whole_part(&span, interval)) as u64).sum()
}

/// The slots of the buckets that lie completely in these slots.
fn whole_part(slots: &Range<i64>, interval: Interval) -> Range<i64> {
    let start = interval.bucket_from(slots.start);
    start..interval.bucket_of(slots.end).start.max(start)
}

/// Open time of the newest bucket that has a candle and is fully covered.
fn last_closed(series: &Series, interval: Interval) -> Option<UnixMs> {
    let base = interval.base();
    series.covered().iter().rev().find_map(|span| {
        // No forming candle lies in a covered slot.
        let slot = series.candle_slots(whole_part(&span, interval)).next_back()?;
        Some(base.open_of(interval.bucket_of(slot).start))
    })
}
