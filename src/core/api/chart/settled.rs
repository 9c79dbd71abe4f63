//! Whether a chart's response stays as it is, so that caches may keep it for an hour.
//!
//! Owns that decision. It never looks at candles of its own accord: the chart's builder tells what the
//! response is made of.

use super::asked::Asked;
use super::{SETTLED_S, exchange_time};
use crate::core::api::View;
use crate::market::{ChartInfo, REREAD, SeriesKey, floor_slot};

/// Whether the same address says the same for the next hour.
pub(super) fn is_settled(view: &View<'_>, asked: &Asked, key: SeriesKey, info: &ChartInfo) -> bool {
    // A range without an end ends where the limit has cut it.
    let (Some(end), Some(closed)) = (asked.spec.to.or(info.next_from), info.last_closed) else {
        return false;
    };
    let interval = asked.spec.interval;
    let is_past = interval.open_of(end) < interval.step(closed, -REREAD);
    info.complete
        && info.settled
        && is_past
        && !hangs_on_the_past(view, asked, key)
        && stays_kept(view, asked, key, info)
}

/// Whether flat candles stand before the first stored row, or may: they hang on the close before the
/// range, which comes and goes with what is known of older candles.
fn hangs_on_the_past(view: &View<'_>, asked: &Asked, key: SeriesKey) -> bool {
    let spec = &asked.spec;
    let Some(from) = spec.from.filter(|_| spec.fill_previous) else {
        return false;
    };
    let interval = spec.interval;
    let open = match interval.open_of(from) {
        open if open == from => open,
        open => interval.step(open, 1),
    };
    let slot_of = |time| key.interval.slot_of(time);
    let first = slot_of(open)..slot_of(interval.end_of(open));
    let series = view.market.charts.get(key);
    series.is_none_or(|series| series.next_candle(first).is_none())
}

/// Whether all that an answer is about is still kept when the caches let go of it. Without a begin, the
/// newest so many are asked for: of fewer, the first one may be the last that is kept.
fn stays_kept(view: &View<'_>, asked: &Asked, key: SeriesKey, info: &ChartInfo) -> bool {
    let keep = view.market.charts.keep(key.interval);
    let later = exchange_time(view, key) + i64::from(SETTLED_S) * 1000;
    let is_full = asked.spec.from.is_some() || info.rows >= asked.spec.limit;
    is_full && info.depends.start >= floor_slot(key.interval, later, keep)
}
