//! The head of a chart's response: its tag, how long it may be cached, and its `Chart-` fields.

use super::request::{ChartRequest, SECONDS_BELOW};
use crate::core::api::view::View;
use crate::http::{Cache, Head};
use crate::json::Decimals;
use crate::market::{ChartInfo, ChartPlan, REREAD, SeriesKey, floor_slot};
use crate::time::UnixMs;

/// Seconds for which a chart may be cached that no poll will change.
const SETTLED_S: u32 = 3600;

/// The head of a chart's response.
pub fn head<'a>(
    view: &View<'_>,
    request: &ChartRequest,
    key: SeriesKey,
    plan: &ChartPlan,
    fields: &'a [u8],
) -> Head<'a> {
    let etag = view.tag(plan.made_of(), Decimals::of(request.spec.quoted).variant());
    let cache = match is_settled(view, request, key, plan.info()) {
        true => Cache::MaxAge(SETTLED_S),
        false => view.until_poll(key.source),
    };
    Head { fields, ..Head::json(Some(etag), cache) }
}

/// The `Chart-` fields, and a link to the next page.
pub fn fields(
    view: &View<'_>,
    request: &ChartRequest,
    key: SeriesKey,
    info: &ChartInfo,
) -> Vec<u8> {
    let (interval, source) = (request.spec.interval.name(), view.id_of(key.source));
    let mut fields = format!("Chart-Interval: {interval}\r\nChart-Source: {source}\r\n");
    if let Some(closed) = info.last_closed {
        fields += &format!("Chart-Last-Closed: {}\r\n", closed.0);
    }
    let (gaps, coverage) = (info.gaps, coverage(info));
    fields += &format!("Chart-Gaps: {gaps}\r\nChart-Coverage: {coverage}\r\n");
    if let Some(from) = info.next_from {
        fields += &format!("Link: {}\r\n", link(view, request, from));
    }
    fields.into_bytes()
}

/// Whether the exchange has spoken of all of the range.
pub fn coverage(info: &ChartInfo) -> &'static str {
    match info.complete {
        true => "complete",
        false => "partial",
    }
}

/// A link to the page that begins at `from` (RFC 8288): the same request from there.
fn link(view: &View<'_>, request: &ChartRequest, from: UnixMs) -> String {
    let name = view.market.catalog.name(request.symbol);
    let spec = &request.spec;
    let (base, quote, interval) = (name.base(), name.quote(), spec.interval.name());
    let begin = in_ms(from);
    let mut link = format!("<?symbol={base}-{quote}&interval={interval}&from={begin}");
    if let Some(to) = spec.to {
        link += &format!("&to={}", in_ms(to));
    }
    link += &format!("&limit={}", spec.limit);
    if spec.fill_previous {
        link += "&fill=previous";
    }
    if spec.quoted {
        link += "&decimals=string";
    }
    if let Some(source) = request.source {
        link += &format!("&source={}", view.id_of(source));
    }
    link + ">; rel=\"next\""
}

/// A time as the parameters are read back: before 1973 in seconds, since it would be taken for seconds.
fn in_ms(time: UnixMs) -> i64 {
    match time.0 < SECONDS_BELOW {
        true => time.0 / 1000,
        false => time.0,
    }
}

/// True if the same address has the same chart for the next hour, so that caches may keep it.
fn is_settled(view: &View<'_>, request: &ChartRequest, key: SeriesKey, info: &ChartInfo) -> bool {
    // A range without an end ends where the limit cuts it.
    let (Some(end), Some(closed)) = (request.spec.to.or(info.next_from), info.last_closed) else {
        return false;
    };
    let interval = request.spec.interval;
    let is_past = interval.open_of(end) < interval.step(closed, -REREAD);
    info.complete
        && info.settled
        && is_past
        && !hangs_on_the_past(view, request, key)
        && stays_kept(view, request, key, info)
}

/// True if there are, or may be, flat candles before the first stored row. Their price is the close before
/// the range, which changes when older candles become known or are dropped.
fn hangs_on_the_past(view: &View<'_>, request: &ChartRequest, key: SeriesKey) -> bool {
    let spec = &request.spec;
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

/// True if all candles of the chart are still kept when the caches drop it. Without `from`, the newest
/// `limit` candles are asked for; if there are fewer, the first one may be the oldest that is kept.
fn stays_kept(view: &View<'_>, request: &ChartRequest, key: SeriesKey, info: &ChartInfo) -> bool {
    let keep = view.market.charts.keep(key.interval);
    let later = view.exchange_time(key.source) + i64::from(SETTLED_S) * 1000;
    let is_full = request.spec.from.is_some() || info.rows >= request.spec.limit;
    is_full && info.depends.start >= floor_slot(key.interval, later, keep)
}
