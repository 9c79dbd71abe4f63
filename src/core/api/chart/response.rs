//! The response with a chart: its tag, how long it may be cached, its `Chart-` fields, and its rows.

use super::{ChartRequest, ChartResponse};
use crate::core::api::body;
use crate::core::api::outcome::Deferred;
use crate::core::api::view::View;
use crate::core::compressed_cache::CacheKey;
use crate::http::{Cache, ETag, Head, Responder};
use crate::json::Decimals;
use crate::market::{ChartBody, ChartInfo, REREAD, floor_slot};
use crate::time::UnixMs;
use std::borrow::Cow;

/// Seconds for which a chart that no poll will change may be cached.
const SETTLED_S: u32 = 3600;

impl ChartResponse {
    /// Sends the chart that was made.
    pub(super) fn send(
        &self,
        view: &View<'_>,
        body: &ChartBody,
        responder: &mut Responder<'_>,
    ) -> Option<Deferred> {
        let (request, key, info) = (&self.request, &self.key, &body.info);
        let fields = match info.next_from {
            None => Cow::Borrowed(body.written(|| self.fields(view, info))),
            Some(_) => Cow::Owned(self.fields(view, info)),
        };
        let variant = Decimals::quoted_if(request.spec.quoted).variant();
        let etag = ETag::new(body.made_of.number(), variant);
        let cache = match self.is_settled(view, info) {
            true => Cache::MaxAge(SETTLED_S),
            false => view.until_candles([key.source], info.complete),
        };
        let head = Head { fields: &fields, ..Head::json(Some(etag), cache) };
        let cache_key = || CacheKey::new("/api/ecosystem/chart", (key, &request.spec));
        body::send(view, responder, head, cache_key, body.body_len(), |out| {
            out.bytes().push(b'[');
            out.share_all(body.pieces(), body.body_len() - 2);
            out.bytes().push(b']');
        })
    }

    /// The `Chart-` fields, and a link to the next page.
    fn fields(&self, view: &View<'_>, info: &ChartInfo) -> Vec<u8> {
        let interval = self.request.spec.interval.name();
        let source = view.id_of(self.key.source);
        let mut fields = format!("Chart-Interval: {interval}\r\nChart-Source: {source}\r\n");
        if let Some(closed) = info.last_closed {
            fields += &format!("Chart-Last-Closed: {}\r\n", closed.0);
        }
        let (gaps, coverage) = (info.gaps, coverage(info));
        fields += &format!("Chart-Gaps: {gaps}\r\nChart-Coverage: {coverage}\r\n");
        if let Some(from) = info.next_from {
            fields += &format!("Link: {}\r\n", self.link(view, from));
        }
        fields.into_bytes()
    }

    /// A link to the page that begins at `from` (RFC 8288): the same request from there.
    fn link(&self, view: &View<'_>, from: UnixMs) -> String {
        let ChartRequest { symbol, spec, source, .. } = &self.request;
        let name = view.market.catalog.name(*symbol);
        let (base, quote, interval) = (name.base(), name.quote(), spec.interval.name());
        let (begin, limit) = (as_parameter(from), spec.limit);
        let to = spec.to.map(|to| format!("&to={}", as_parameter(to))).unwrap_or_default();
        let fill = if spec.fill_previous { "&fill=previous" } else { "" };
        let decimals = if spec.quoted { "&decimals=string" } else { "" };
        let source = source.map(|source| format!("&source={}", view.id_of(source)));
        let more = [&to, &*format!("&limit={limit}"), fill, decimals, &source.unwrap_or_default()];
        let more = more.concat();
        format!("<?symbol={base}-{quote}&interval={interval}&from={begin}{more}>; rel=\"next\"")
    }

    /// True if the same address has the same chart for the next hour, so that caches may keep it.
    fn is_settled(&self, view: &View<'_>, info: &ChartInfo) -> bool {
        let spec = &self.request.spec;
        // A range without an end ends where the limit cuts it.
        let (Some(end), Some(closed)) = (spec.to.or(info.next_from), info.last_closed) else {
            return false;
        };
        let is_past = spec.interval.open_of(end) < spec.interval.step(closed, -REREAD);
        let is_made = info.complete && info.settled && is_past;
        is_made
            && !self.has_flat_ends(view, info, end)
            && self.stays_kept(view, info)
            && self.stays_chosen(view)
    }

    /// True if no source that comes before the one of the chart can have its candles.
    fn stays_chosen(&self, view: &View<'_>) -> bool {
        let ChartRequest { symbol, source, .. } = &self.request;
        let sources = view.sources_for(*symbol, source).iter();
        let mut able = sources.filter(|it| view.has_interval(**it, self.key.interval));
        able.next() == Some(&self.key.source)
    }

    /// True if the chart begins or ends with flat candles, or may do so. The price of the first ones is the
    /// close before them, which changes when older candles become known or are dropped. The last ones are
    /// shown while a newer candle is known, which a killed process may have had only in memory.
    fn has_flat_ends(&self, view: &View<'_>, info: &ChartInfo, end: UnixMs) -> bool {
        let spec = &self.request.spec;
        let interval = spec.interval;
        let first = spec.from.map(|from| match interval.open_of(from) {
            open if open < from => interval.step(open, 1),
            open => open,
        });
        let last = info.next_from.map_or(end, |next| interval.step(next, -1));
        let series = view.market.charts.get(self.key);
        let has_candle = |time| {
            let open = interval.open_of(time);
            let slot_of = |time| self.key.interval.slot_of(time);
            let bucket = slot_of(open)..slot_of(interval.end_of(open));
            series.is_some_and(|series| series.next_candle(bucket).is_some())
        };
        spec.fill_previous && !(first.or(info.first).is_some_and(has_candle) && has_candle(last))
    }

    /// True if all candles of the chart are still kept when the caches drop it. Without `from`, the newest
    /// `limit` candles are asked for; if there are fewer, the first one may be the oldest that is kept.
    fn stays_kept(&self, view: &View<'_>, info: &ChartInfo) -> bool {
        let (spec, base) = (&self.request.spec, self.key.interval);
        let keep = view.market.charts.keep(base);
        let later = view.exchange_time(self.key.source) + i64::from(SETTLED_S) * 1000;
        let is_full = spec.from.is_some() || info.rows >= spec.limit;
        is_full && info.oldest >= floor_slot(base, later, keep)
    }
}

/// `complete` or `partial`: see [`ChartInfo::complete`].
pub fn coverage(info: &ChartInfo) -> &'static str {
    if info.complete { "complete" } else { "partial" }
}

/// A time as the parameters take it: in seconds before 1973, else in milliseconds.
fn as_parameter(time: UnixMs) -> i64 {
    if time.0 < crate::time::SECONDS_BELOW { time.0 / 1000 } else { time.0 }
}
