//! Chart bodies of stored rows: the quick way to make a chart.
//!
//! Such a [`ChartBody`] shares the bytes of stored rows. It measures them without reading them, so that the
//! length is known before the first byte is written. Every other chart is made row by row by a
//! [`ChartBuilder`](super::builder::ChartBuilder).

use super::chart::{ChartBody, ChartSpec, Recent};
use super::chunk::seconds;
use super::series::Series;
use super::window::{FoundRows, Window};
use crate::fingerprint::{Fingerprint, Part};
use crate::time::UnixMs;
use std::ops::Range;
use std::sync::Arc;

/// Seconds after which a body is always made again: making it marks its chunks as read.
const RECENT_S: u32 = 16;

impl ChartBody {
    /// True if a chart consists of stored rows as they are.
    pub fn fits(spec: &ChartSpec) -> bool {
        spec.interval.is_stored() && !spec.fill_previous && !spec.quoted
    }

    /// The bytes of memory that this chart takes by itself. Stored rows do not count: the series owns them.
    pub fn held(&self, spec: &ChartSpec) -> usize {
        let rows = if ChartBody::fits(spec) { 0 } else { self.body_len() };
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
    ) -> Option<ChartBody> {
        if !ChartBody::fits(spec) {
            return None;
        }
        debug_assert!(series.is_none_or(|series| series.interval() == spec.interval.base()));
        let Some(series) = series else {
            let reach = Window::new(spec).end;
            let info = FoundRows::default().info(None, spec, reach, now, keep);
            return Some(ChartBody::of(Vec::new(), Fingerprint::default(), info));
        };
        let window = Window::new(spec).reach(Some(series), spec, now, keep);
        let mut candles = series.candle_slots(window.start..window.end);
        // The limit cuts the range at the first candle that is one too many.
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
        let info = found.info(Some(series), spec, window.end, now, keep);
        Some(ChartBody::of(pieces, made_of(series, &slots), info))
    }

    /// Like [`ChartBody::new`], but reuses the last body of the series as long as a new one would
    /// be equal: many clients request the same chart.
    pub fn recent(
        series: Option<&Series>,
        spec: &ChartSpec,
        now: UnixMs,
        keep: i64,
    ) -> Option<Arc<ChartBody>> {
        let Some(series) = series else {
            return ChartBody::new(None, spec, now, keep).map(Arc::new);
        };
        let made_for = (spec.clone(), keep, series.version(), series.interval().slot_of(now));
        let second = seconds(now);
        let mut recent = series.recent.borrow_mut();
        if let Some(recent) = &*recent
            && recent.made_for == made_for
            && second.wrapping_sub(recent.second) < RECENT_S
        {
            return Some(recent.body.clone());
        }
        let body = Arc::new(ChartBody::new(Some(series), spec, now, keep)?);
        *recent = Some(Box::new(Recent { made_for, second, body: body.clone() }));
        Some(body)
    }
}

/// The fingerprint of a chart of these slots: the range of stored rows, and the range of forming
/// candles.
fn made_of(series: &Series, slots: &Range<i64>) -> Fingerprint {
    let mut made_of = Fingerprint::default();
    made_of.add(Part::Source(series.key().source.0));
    let mut stored = series.row_slots(slots.clone());
    if let Some(first) = stored.next() {
        series.add_stored(slots, &mut made_of);
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
    use crate::market::testing::{all_of, chart, key, known, minute, minutes};
    use crate::market::{SeriesKey, SourceId};
    use crate::time::MAX_TIME;

    fn spec(interval: Interval, from: Option<i64>, to: Option<i64>, limit: usize) -> ChartSpec {
        ChartSpec { from: from.map(minute), to: to.map(minute), limit, ..all_of(interval) }
    }

    #[test]
    fn without_a_series_there_is_an_empty_body() {
        let spec = spec(Interval::M1, None, None, 10);
        let body = ChartBody::new(None, &spec, minute(100), 50).expect("stored rows");
        assert_eq!((body.text(), body.body_len()), ("[]".to_string(), 2));
        assert_eq!(body.info.oldest, 91);
        assert!(!body.info.complete);
        assert!(body.pieces().is_empty());
    }

    #[test]
    fn rows_of_another_source_or_version_are_made_of_something_else() {
        let of = |source, times| {
            let key = SeriesKey { source: SourceId(source), ..key(Stored::M1) };
            let mut series = Series::new(key, 0);
            for _ in 0..times {
                known(&mut series, 0..9, &minutes(0..9), minute(9));
                known(&mut series, 0..9, &minutes(0..8), minute(9));
            }
            made_of(&series, &(0..9))
        };
        assert_ne!(of(0, 1), of(1, 1));
        assert_ne!(of(0, 1), of(0, 2));
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
