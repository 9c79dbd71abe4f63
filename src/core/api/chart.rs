//! `/api/ecosystem/chart`: its parameters (`request`), the choice of a series, its response (`response`), and
//! charts of several markets in one response (`several`); and the newest candles of a chart, for streams
//! ([`Followed`]).
//!
//! A chart that need not wait is sent at once, if it is short or stored as requested. Any other is deferred:
//! it waits for candles that are only in the file or were never requested from the exchange, at most as long
//! as `limits.chartWaitMs` allows, and is then made in parts.

mod request;
mod response;
mod series;
mod several;

use super::outcome::{Advance, Deferred, InParts, Outcome, Prepared, SeriesSlots, send_error};
use super::view::View;
use crate::http::{Error, Responder};
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{ChartBody, ChartBuilder, ChartInfo, ChartSpec, SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
pub use request::{ChartRequest, prepare, read_resolution};
pub use series::{SeriesView, last_stretch};
use std::ops::Range;
use std::sync::Arc;

/// Stored rows that one part of a chart is made from: some 0.15 ms.
const ROWS_A_PART: usize = 1024;

/// What one part costs, as a number of bytes of a response.
const PART_BYTES: usize = 64 * 1024;

/// Candles that decide which source a chart is from: the same as for a request without a limit.
const CHOSEN_BY: usize = 500;

/// Most parts of work to find the newest candle. More parts are needed only if many candles in a row are
/// incomplete. Then no candle is sent.
const MOST_PARTS: usize = 8;

/// A chart that is sent once it is made. It may wait for candles, or be made in parts.
pub struct ChartResponse {
    /// What was requested.
    pub request: ChartRequest,
    /// The series that it is made from.
    pub key: SeriesKey,
    /// The slots that it is made from.
    needed: Range<i64>,
    /// The slots that it waits for.
    wanted: Vec<Range<i64>>,
    builder: Option<ChartBuilder<'static>>,
    /// What was made. `None` before that, and if the market has gone.
    pub body: Option<Arc<ChartBody>>,
}

impl Prepared for ChartRequest {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let key = choose(view, self)?;
        let mut chart = Box::new(ChartResponse::new(view, self.clone(), key));
        // Nothing of a longer chart is made before its turn, so that it holds no rows until then.
        let is_short = chart.needed.clone().count() <= ROWS_A_PART;
        let may_begin = chart.wanted.is_empty() && (is_short || ChartBody::fits(&self.spec));
        if !may_begin || chart.step(view) != Advance::Done {
            return Ok(Some(Deferred::InParts(chart)));
        }
        if !ChartBody::fits(&self.spec) {
            responder.weigh(PART_BYTES);
        }
        Ok(chart.finish(view, responder))
    }
}

impl ChartResponse {
    /// A chart of this series.
    pub fn new(view: &View<'_>, request: ChartRequest, key: SeriesKey) -> ChartResponse {
        let (series, spec) = (SeriesView::new(view, key), &request.spec);
        let wanted = match series.body(spec) {
            Some(body) if series.is_whole(spec, &body) => None,
            _ => series.missing(spec),
        };
        let nearest = wanted.as_ref().and_then(|_| series.nearest(spec));
        let (needed, wanted) = (series.needed(spec), wanted.into_iter().collect());
        let mut chart = ChartResponse { needed, wanted, request, key, builder: None, body: None };
        nearest.into_iter().for_each(|slots| chart.add(slots));
        chart
    }

    fn add(&mut self, slots: Range<i64>) {
        let needed = &self.needed;
        self.needed = needed.start.min(slots.start)..needed.end.max(slots.end);
        self.wanted.push(slots);
    }

    /// Waits for these slots next.
    pub fn wait_for(&mut self, slots: Range<i64>) {
        self.wanted.clear();
        self.add(slots);
    }

    /// Makes a part of it. Returns true if that was the last one.
    fn build(&mut self, view: &View<'_>) -> bool {
        let spec = &self.request.spec;
        if ChartBody::fits(spec) {
            return true;
        }
        if let Some(builder) = &mut self.builder {
            return builder.step(ROWS_A_PART);
        }
        let mut builder = SeriesView::new(view, self.key).builder(spec.clone());
        let is_done = builder.step(ROWS_A_PART);
        self.builder = Some(builder.detached());
        is_done
    }

    /// Why there is no chart: since the request came, the market has gone.
    pub fn error(&self, view: &View<'_>) -> Error {
        choose(view, &self.request).err().unwrap_or(Error::INTERNAL)
    }
}

impl InParts for ChartResponse {
    fn needs(&self) -> Vec<SeriesSlots> {
        vec![(self.key, self.needed.clone())]
    }

    fn missing(&self, view: &View<'_>) -> Vec<SeriesSlots> {
        let wanted = self.wanted.iter().cloned();
        let series = SeriesView::new(view, self.key);
        let missing = wanted.filter_map(|wanted| series.uncovered(wanted));
        missing.map(|slots| (self.key, slots)).collect()
    }

    fn choose_again(&mut self, view: &View<'_>) {
        if let Ok(key) = choose(view, &self.request)
            && key != self.key
        {
            *self = ChartResponse::new(view, self.request.clone(), key);
        }
    }

    fn held(&self) -> usize {
        let built = self.builder.as_ref().map_or(0, ChartBuilder::held);
        let of_body = self.body.as_ref().map_or(0, |body| body.held(&self.request.spec));
        size_of::<ChartResponse>() + built + of_body
    }

    fn step(&mut self, view: &View<'_>) -> Advance {
        if !self.build(view) {
            return Advance::More;
        }
        let (symbol, series) = (self.request.symbol, SeriesView::new(view, self.key));
        self.body = match self.builder.take() {
            Some(builder) => builder.finished().map(Arc::new),
            None => series.body(&self.request.spec),
        };
        let is_gone = match self.request.source {
            named @ Some(_) => view.check_tracked(symbol, named).is_err(),
            None => !view.market.catalog.sources_of(symbol).contains(&self.key.source),
        };
        if is_gone {
            // The source does not track the market any more. Another source may have the candles.
            self.body = None;
            let Ok(key) = choose(view, &self.request) else {
                return Advance::Done;
            };
            *self = ChartResponse::new(view, self.request.clone(), key);
            return Advance::Waits;
        }
        let further = self.body.as_ref().and_then(|body| series.further(&self.request.spec, body));
        // Slots that were waited for in vain are not waited for again.
        let is_new = |it: &Range<i64>| it.start < self.needed.start || it.end > self.needed.end;
        if let Some(further) = further.filter(is_new) {
            self.wait_for(further);
            return Advance::Waits;
        }
        Advance::Done
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<Deferred> {
        match &self.body {
            Some(body) => self.send(view, body, responder),
            None => send_error(&self.error(view), responder),
        }
    }
}

/// The series that the chart is made from: of the first source in the order of failover that knows the whole
/// range, from memory or the file, or else of the source that knows most of it.
pub fn choose(view: &View<'_>, request: &ChartRequest) -> Result<SeriesKey, Error> {
    let (symbol, spec) = (request.symbol, &request.spec);
    let (catalog, charts) = (&view.market.catalog, &view.market.charts);
    let sources = view.sources_for(symbol, &request.source);
    view.check_tracked(symbol, request.source)?;
    let interval = spec.interval.base();
    let key_of = |source| SeriesKey { source, symbol, interval };
    // If an exchange has been unreachable since the start, the file is enough.
    let is_archived =
        |source| charts.archived(key_of(source)).is_some_and(|slots| !slots.is_empty());
    let is_known = |source: &SourceId| catalog.has_list(*source) || is_archived(*source);
    if !sources.iter().any(is_known) {
        let name = catalog.name(symbol).as_str();
        let message = format!("Nothing about \"{name}\" has been collected yet.");
        let error = Error::new(503, "quote_not_ready", message);
        return Err(error.about("symbol").retry_after(1));
    }
    let has_candles = |source: &&SourceId| view.has_interval(**source, interval);
    if !sources.iter().any(|source| has_candles(&source)) {
        let name = spec.interval.name();
        let good = view.intervals(sources).map(Interval::name);
        let good = good.collect::<Vec<_>>().join(", ");
        let message =
            format!("No source of this market has candles of {name}: expected one of {good}.");
        return Err(Error::bad("invalid_interval", "interval", message));
    }
    if let [source] = sources {
        return Ok(key_of(*source));
    }
    let mut best: Option<(u64, SeriesKey)> = None;
    for &source in sources.iter().filter(has_candles) {
        let key = key_of(source);
        let series = SeriesView::new(view, key);
        let slots = series.without_newest(series.needed(spec));
        let known = charts.known(key, slots.clone());
        let is_there = series.series.is_some() || known > 0;
        if is_there && known >= slots.end.abs_diff(slots.start) {
            return Ok(key);
        }
        if best.is_none_or(|(most, _)| known > most) {
            best = Some((known, key));
        }
    }
    let (_, key) = best.expect("one of them has candles");
    Ok(key)
}

/// A chart whose newest candles are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Followed {
    /// Of this market.
    pub symbol: SymbolId,
    /// The interval of its candles.
    pub interval: Interval,
    /// Of this source, if given.
    pub source: Option<SourceId>,
}

impl Followed {
    /// The series that its candles are from now, by the rules of a request for the newest ones.
    pub fn series(&self, view: &View<'_>) -> Result<SeriesKey, Error> {
        let spec = self.spec(Decimals::Number, None, CHOSEN_BY);
        choose(view, &ChartRequest { symbol: self.symbol, spec, source: self.source })
    }

    /// The slots that are missing for the newest candle. `None` if it comes without a request.
    pub fn missing(&self, view: &View<'_>, key: SeriesKey) -> Option<Range<i64>> {
        SeriesView::new(view, key).missing(&self.spec(Decimals::Number, None, 1))
    }

    /// The newest candles, oldest first, at most `limit` of them: the last ones, or if `from` is given, the
    /// first ones from there up to `to`.
    pub fn rows(
        &self,
        view: &View<'_>,
        key: SeriesKey,
        range: Option<(UnixMs, UnixMs)>,
        limit: usize,
        decimals: Decimals,
    ) -> Option<(Vec<u8>, ChartInfo)> {
        let at = SeriesView::new(view, key);
        at.series?;
        let mut builder = at.builder(self.spec(decimals, range, limit));
        let mut parts = 0..MOST_PARTS;
        parts.find(|_| builder.step(ROWS_A_PART))?;
        let body = builder.finished()?;
        let mut bytes = Vec::new();
        body.write(&mut bytes);
        Some((bytes, body.info.clone()))
    }

    fn spec(&self, decimals: Decimals, range: Option<(UnixMs, UnixMs)>, limit: usize) -> ChartSpec {
        ChartSpec {
            interval: self.interval,
            from: range.map(|(from, _)| from),
            to: range.map(|(_, to)| to),
            limit,
            fill_previous: false,
            quoted: decimals == Decimals::String,
        }
    }
}
