//! A series as charts look at it: which slots a chart is made from, and which of them are not there.
//!
//! ```text
//! needed     the slots that a chart is made from, as far as is known before it is made
//! newest     the closed slots that no client waits for: the next refresh brings them
//! uncovered  from the first slot that memory does not have to the last
//! missing    the uncovered part of what is needed, unless it comes without a request
//! further    the next candles in the file, for a chart with too few rows
//! nearest    the next candles in the file, for a chart of which memory knows nothing
//! ```

use crate::core::api::view::View;
use crate::interval::Interval;
use crate::market::{
    ChartBody, ChartBuilder, ChartSpec, Charts, IntervalSet, NEWEST, Series, SeriesKey, floor_slot,
    needed,
};
use crate::time::UnixMs;
use std::ops::Range;
use std::sync::Arc;

/// Slots in which further candles are looked for at a time: as many as a chart may have.
const STRETCH: i64 = 5000;

/// The last stretch of these slots, which is looked at next.
pub fn last_stretch(slots: Range<i64>) -> Range<i64> {
    slots.start.max(slots.end - STRETCH)..slots.end
}

/// A series as it is now.
pub struct SeriesView<'v> {
    key: SeriesKey,
    /// `None` if it is not open.
    pub series: Option<&'v Series>,
    charts: &'v Charts,
    /// The time of its exchange.
    pub now: UnixMs,
    /// How many of its candles are kept.
    keep: i64,
}

impl<'v> SeriesView<'v> {
    /// The series with this key.
    pub fn new(view: &View<'v>, key: SeriesKey) -> SeriesView<'v> {
        let charts = &view.market.charts;
        let (series, keep) = (charts.get(key), charts.keep(key.interval));
        SeriesView { key, series, charts, now: view.exchange_time(key.source), keep }
    }

    /// The newest slot that has begun.
    pub fn present(&self) -> i64 {
        self.key.interval.slot_of(self.now)
    }

    /// The oldest slot that is kept.
    pub fn floor(&self) -> i64 {
        floor_slot(self.key.interval, self.now, self.keep)
    }

    /// The slots that a chart is made from, as far as is known before it is made.
    pub fn needed(&self, spec: &ChartSpec) -> Range<i64> {
        needed(spec, self.now, self.keep)
    }

    /// A chart of stored rows as they are. `None` if it needs a builder.
    pub fn body(&self, spec: &ChartSpec) -> Option<Arc<ChartBody>> {
        ChartBody::recent(self.series, spec, self.now, self.keep)
    }

    /// A chart of any other rows, as the series is now.
    pub fn builder(&self, spec: ChartSpec) -> ChartBuilder<'v> {
        ChartBuilder::new(self.series, spec, self.now, self.keep)
    }

    /// These slots without the slots that have just closed, unless the file holds them.
    pub fn without_newest(&self, slots: Range<i64>) -> Range<i64> {
        let stored = self.charts.archived(self.key).and_then(|slots| slots.last());
        let newest = (self.present() - NEWEST).max(stored.map_or(0, |last| last + 1));
        slots.start..slots.end.min(newest).max(slots.start)
    }

    /// From the first slot that is not covered to the last. `None` if all are.
    pub fn uncovered(&self, slots: Range<i64>) -> Option<Range<i64>> {
        let missing = self.all_uncovered(slots);
        Some(missing.first()?.start..missing.last()?.end)
    }

    /// The last of these slots that are not covered, as far as they follow each other. `None` if all are.
    pub fn newest_uncovered(&self, slots: Range<i64>) -> Option<Range<i64>> {
        self.all_uncovered(slots).pop()
    }

    /// The last of these slots of which no answer of the exchange tells, as far as they follow each other.
    /// `None` if there are none. One answer is enough for the buckets of `interval` before the first candle,
    /// but not for the bucket with that candle.
    pub fn newest_untold(&self, slots: Range<i64>, interval: Interval) -> Option<Range<i64>> {
        let mut untold = IntervalSet::from_iter(self.all_uncovered(slots));
        if let Some(told) = self.series.and_then(Series::told_before_first) {
            let bucket = interval.open_of(self.key.interval.open_of(told.end));
            untold.remove(told.start..self.key.interval.slot_of(bucket).max(told.start));
        }
        untold.iter().next_back()
    }

    fn all_uncovered(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        match self.series {
            Some(series) => series.covered().missing(slots),
            None => Some(slots).filter(|slots| !slots.is_empty()).into_iter().collect(),
        }
    }

    /// True if a chart ends with the newest candles, and these come by request only: nobody has requested
    /// them before.
    pub fn lacks_newest(&self, spec: &ChartSpec) -> bool {
        let last = self.series.and_then(|series| series.covered().last());
        last.is_none_or(|last| last + 1 < self.present() - NEWEST)
            && spec.from.is_none_or(|from| from <= self.now)
            && self.needed(spec).end == self.present()
    }

    /// True if a chart lacks no candle.
    pub fn is_whole(&self, spec: &ChartSpec, body: &ChartBody) -> bool {
        body.info.complete && !self.lacks_newest(spec)
    }

    /// The next candles in the file for a chart with fewer candles than its limit: those before its first
    /// slot, or behind the slot where it ends. It is short because nobody traded in some slots, and takes no
    /// candle from behind slots that nobody has read. The exchange is not asked for more than the needed
    /// slots. `None` if the chart has enough candles, or the file does not go on there.
    pub fn further(&self, spec: &ChartSpec, body: &ChartBody) -> Option<Range<i64>> {
        if body.info.rows >= spec.limit {
            return None;
        }
        let stored = self.charts.archived(self.key)?;
        if spec.from.is_some() {
            let behind = self.key.interval.slot_of(body.info.next_from?)..self.end(spec);
            let unread = self.all_uncovered(behind).into_iter().next()?;
            let part = stored.within(unread.clone()).next()?;
            return (part.start == unread.start)
                .then(|| part.start..part.end.min(part.start + STRETCH));
        }
        let first = body.info.first.map_or(i64::MAX, |time| self.key.interval.slot_of(time));
        let unread = self.newest_uncovered(self.floor()..first.min(self.needed(spec).start))?;
        let part = stored.within(unread.clone()).next_back()?;
        (part.end == unread.end).then(|| last_stretch(part))
    }

    /// The candles in the file that a chart shows if nothing is known of its needed slots: the next ones from
    /// its begin on, or the newest before its end. As many as it needs. `None` if memory has some of these
    /// slots.
    pub fn nearest(&self, spec: &ChartSpec) -> Option<Range<i64>> {
        let needed = self.needed(spec);
        let has_some = |series: &Series| series.covered().within(needed.clone()).next().is_some();
        if self.series.is_some_and(has_some) {
            return None;
        }
        let (stored, most) = (self.charts.archived(self.key)?, needed.end - needed.start);
        if spec.from.is_some() {
            let part = stored.within(needed.start..self.end(spec)).next()?;
            return Some(part.start..part.end.min(part.start + most));
        }
        let part = stored.within(self.floor()..needed.end).next_back()?;
        Some(part.start.max(part.end - most)..part.end)
    }

    /// The end of the closed slots that a request may get.
    fn end(&self, spec: &ChartSpec) -> i64 {
        let to = spec.to.map_or(self.now, |to| to.min(self.now));
        spec.interval.bucket_of(self.key.interval.slot_of(to)).end.min(self.present())
    }

    /// The slots that a chart lacks. `None` if there are none, or if they come by themselves.
    pub fn missing(&self, spec: &ChartSpec) -> Option<Range<i64>> {
        let needed = self.needed(spec);
        self.uncovered(if self.lacks_newest(spec) {
            // The forming candle comes with the newest closed one, so it is requested too.
            needed.start.min(needed.end - 1)..needed.end
        } else {
            self.without_newest(needed)
        })
    }
}
