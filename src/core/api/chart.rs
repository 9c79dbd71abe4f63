//! `/api/ecosystem/chart`: its parameters (`asked`), the choice of a series, its head (`headers`), and charts
//! of several markets in one response (`several`).
//!
//! A chart that is stored as requested, without a missing candle, is sent at once. Any other becomes a
//! [`DeferredChart`]: it waits for candles that are only in the file or were never requested from the
//! exchange, at most as long as `limits.chartWaitMs` allows, and is then made in parts.

mod asked;
mod headers;
mod newest;
mod several;

use super::body;
use super::body::share;
use super::compressed_cache::CacheKey;
use super::error::Error;
use super::outcome::{Candles, Deferred, Outcome, Prepared, send_error};
use super::symbols::untracked;
use super::view::View;
use crate::http::Responder;
use crate::interval::Interval;
use crate::market::{
    ChartBuilder, ChartInfo, ChartPlan, Series, SeriesKey, SourceId, floor_slot, needed,
};
use crate::time::UnixMs;
use asked::Known;
pub use asked::{Asked, prepare};
pub use newest::Followed;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Closed slots at the end of a followed series that no client waits for: the next refresh is due within a
/// second, and until then each has a candle made from quotes.
const UNSETTLED: i64 = 2;

/// Stored rows that one part of a chart is made from: some 0.15 ms.
const ROWS_A_PART: usize = 1024;

/// Slots of a stretch that is read from the file where a chart has too few candles.
const STRETCH: i64 = 5000;

/// What one part costs, as a number of bytes of a response.
const PART_BYTES: usize = 64 * 1024;

/// A chart that waits for candles, or is made in parts.
pub struct DeferredChart {
    /// What was requested.
    pub asked: Asked,
    /// The series that it is made from.
    pub key: SeriesKey,
    /// The slots that it is made from.
    needed: Range<i64>,
    /// From the first to the last slot that was not covered when it was requested.
    wanted: Option<Range<i64>>,
    builder: Option<ChartBuilder>,
}

impl Prepared for Asked {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
        if let Some((key, plan)) = known_plan(view, self) {
            return Ok(send_plan(view, self, key, &plan, responder));
        }
        let key = choose(view, self)?;
        let (chart, plan) = DeferredChart::new(view, self, key);
        let mut chart = Box::new(chart);
        if let Some(plan) = plan
            && !chart.reaches_back(view, plan.info())
        {
            self.known.set(known(view, self, key));
            return Ok(send_plan(view, self, key, &plan, responder));
        }
        if chart.wanted.is_none() && chart.step(view) {
            responder.weigh(PART_BYTES);
            return Ok(chart.finish(view, responder));
        }
        Ok(Outcome::Deferred(chart))
    }
}

impl DeferredChart {
    /// A chart of this series, and its plan if that is all there is to be known.
    pub fn new(
        view: &View<'_>,
        asked: &Asked,
        key: SeriesKey,
    ) -> (DeferredChart, Option<Arc<ChartPlan>>) {
        let series = view.market.charts.get(key);
        let (now, keep) = now_and_keep(view, key);
        let plan = ChartPlan::recent(series, &asked.spec, now, keep);
        let needed = needed(&asked.spec, now, keep);
        let wants_newest = asked.spec.from.is_none_or(|from| from <= now)
            && needed.end == key.interval.slot_of(now)
            && !is_followed(series, key, now);
        let is_whole = |plan: &Arc<ChartPlan>| plan.info().complete && !wants_newest;
        let depends = plan.as_ref().map_or(0..0, |plan| plan.info().depends.clone());
        let whole = plan.filter(is_whole);
        let wanted = if whole.is_some() {
            None
        } else if wants_newest {
            // The forming candle comes with the newest closed one, so it is requested too.
            uncovered(series, &(needed.start.min(needed.end - 1)..needed.end))
        } else {
            // In a market with few trades, a chart may depend on slots before those that were requested.
            uncovered(series, &settled(key, now, needed.clone()))
                .or_else(|| uncovered(series, &settled(key, now, depends)))
        };
        let chart = DeferredChart { needed, wanted, asked: asked.clone(), key, builder: None };
        (chart, whole)
    }

    /// Waits for these slots next.
    pub fn wait_for(&mut self, slots: Range<i64>) {
        let needed = &self.needed;
        self.needed = needed.start.min(slots.start)..needed.end.max(slots.end);
        self.wanted = Some(slots);
    }

    /// Waits for older candles if the chart has fewer than its limit, because nobody traded in some of its
    /// slots, and the file holds those right before. `false`: it need not.
    fn reaches_back(&mut self, view: &View<'_>, info: &ChartInfo) -> bool {
        let spec = &self.asked.spec;
        if info.rows >= spec.limit || spec.from.is_some() {
            return false;
        }
        let (now, keep) = now_and_keep(view, self.key);
        let older = floor_slot(self.key.interval, now, keep)..self.needed.start;
        let stored = view.market.charts.get(self.key).and_then(|series| {
            let unread = series.covered().missing(older).pop()?;
            let stored = series.archived().within(unread.clone()).last()?;
            (stored.end == unread.end).then_some(stored)
        });
        let Some(slots) = stored else {
            return false;
        };
        self.wait_for(slots.start.max(slots.end - STRETCH)..slots.end);
        true
    }

    /// The chart that was made; `None` before it is done.
    pub fn made(&mut self, view: &View<'_>) -> Option<Arc<ChartPlan>> {
        if let Some(builder) = self.builder.take() {
            return builder.finished().map(Arc::new);
        }
        let series = view.market.charts.get(self.key);
        let (now, keep) = now_and_keep(view, self.key);
        ChartPlan::recent(series, &self.asked.spec, now, keep)
    }
}

impl Deferred for DeferredChart {
    fn needs(&self) -> Vec<Candles> {
        vec![(self.key, self.needed.clone())]
    }

    fn missing(&self, view: &View<'_>) -> Vec<Candles> {
        let wanted = self.wanted.iter();
        let series = view.market.charts.get(self.key);
        let missing = wanted.filter_map(|wanted| uncovered(series, wanted));
        missing.map(|slots| (self.key, slots)).collect()
    }

    fn step(&mut self, view: &View<'_>) -> bool {
        let spec = &self.asked.spec;
        if ChartPlan::fits(spec) {
            return true;
        }
        let series = view.market.charts.get(self.key);
        let (now, keep) = now_and_keep(view, self.key);
        let new = || ChartBuilder::new(spec.clone(), now, keep);
        self.builder.get_or_insert_with(new).step(series, ROWS_A_PART)
    }

    fn finish(mut self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let symbol = self.asked.symbol;
        let having = view.market.catalog.sources_of(symbol);
        let is_gone = match self.asked.source {
            Some(source) => untracked(view, symbol, source).is_some(),
            None => !having.contains(&self.key.source),
        };
        if is_gone {
            // Its candles are gone with the source, which a reload has ended: another one may have them.
            let outcome = self.asked.respond(view, responder);
            return outcome.unwrap_or_else(|error| send_error(&error, responder));
        }
        let Some(plan) = self.made(view) else {
            return send_error(&Error::internal(), responder);
        };
        if self.reaches_back(view, plan.info()) {
            return Outcome::Deferred(self);
        }
        send_plan(view, &self.asked, self.key, &plan, responder)
    }
}

/// The series and the plan that the last response was made from, if both are still right: the series has
/// not changed, and no slot has begun since.
fn known_plan(view: &View<'_>, asked: &Asked) -> Option<(SeriesKey, Arc<ChartPlan>)> {
    let Known { key, version, present } = asked.known.get()?;
    let (now, keep) = now_and_keep(view, key);
    let series = view.market.charts.get(key)?;
    if series.version() != version || key.interval.slot_of(now) != present {
        return None;
    }
    let plan = ChartPlan::recent(Some(series), &asked.spec, now, keep)?;
    Some((key, plan))
}

/// What is remembered of the choice of a series. Nothing if another source may come before it later, or if
/// the requested time is in the future.
fn known(view: &View<'_>, asked: &Asked, key: SeriesKey) -> Option<Known> {
    let first = view.market.catalog.sources_of(asked.symbol).first();
    let now = view.exchange_time(key.source);
    let holds = first == Some(&key.source) && asked.spec.from.is_none_or(|from| from <= now);
    let series = view.market.charts.get(key).filter(|_| holds)?;
    Some(Known { key, version: series.version(), present: key.interval.slot_of(now) })
}

fn send_plan(
    view: &View<'_>,
    asked: &Asked,
    key: SeriesKey,
    plan: &ChartPlan,
    responder: &mut Responder<'_>,
) -> Outcome {
    let fields = match plan.info().next_from {
        None => Cow::Borrowed(plan.written(|| headers::fields(view, asked, key, plan.info()))),
        Some(_) => Cow::Owned(headers::fields(view, asked, key, plan.info())),
    };
    let head = headers::head(view, asked, key, plan, &fields);
    let cache_key = || CacheKey::of("/api/ecosystem/chart", (key, &asked.spec));
    body::send(view, responder, head, cache_key, plan.body_len(), |out| {
        share(plan, out);
    })
}

/// The time of the exchange that a series is of, and how many of its candles are kept.
pub fn now_and_keep(view: &View<'_>, key: SeriesKey) -> (UnixMs, i64) {
    let keep = view.market.charts.keep(key.interval);
    (view.exchange_time(key.source), keep)
}

/// These slots without those that have just closed.
pub fn settled(key: SeriesKey, now: UnixMs, slots: Range<i64>) -> Range<i64> {
    let end = slots.end.min(key.interval.slot_of(now) - UNSETTLED);
    slots.start..end.max(slots.start)
}

/// True if the newest candles of a series come without a request: it was requested before.
fn is_followed(series: Option<&Series>, key: SeriesKey, now: UnixMs) -> bool {
    let last = series.and_then(|series| series.covered().last());
    last.is_some_and(|last| last + 1 >= key.interval.slot_of(now) - UNSETTLED)
}

/// From the first slot that is not covered to the last. `None` if all are.
fn uncovered(series: Option<&Series>, slots: &Range<i64>) -> Option<Range<i64>> {
    if slots.is_empty() {
        return None;
    }
    let Some(series) = series else {
        return Some(slots.clone());
    };
    let missing = series.covered().missing(slots.clone());
    Some(missing.first()?.start..missing.last()?.end)
}

/// The series that the chart is made from: of the first source in the order of failover that knows the
/// range, from memory or the file, or else of the one that knows most of it.
pub fn choose(view: &View<'_>, asked: &Asked) -> Result<SeriesKey, Error> {
    let catalog = &view.market.catalog;
    let all = catalog.sources_of(asked.symbol);
    let sources = match &asked.source {
        Some(source) => std::slice::from_ref(source),
        None => all,
    };
    let untracked = |source| untracked(view, asked.symbol, source);
    if let Some(error) = asked.source.and_then(untracked) {
        return Err(error);
    }
    let key_of =
        |source| SeriesKey { source, symbol: asked.symbol, interval: asked.spec.interval.base() };
    // If an exchange has been unreachable since the start, the file is enough.
    let is_known = |source: &SourceId| {
        let archived = view.market.charts.archived(key_of(*source));
        catalog.has_list(*source) || archived.is_some_and(|slots| !slots.is_empty())
    };
    if !sources.iter().any(is_known) {
        let name = catalog.name(asked.symbol).as_str();
        let message = format!("Nothing about \"{name}\" has been collected yet.");
        let error = Error::new(503, "quote_not_ready", message);
        return Err(error.about("symbol").retry_after(1));
    }
    let base = asked.spec.interval.base();
    let has_candles = |source: &&SourceId| view.has_interval(**source, base);
    if !sources.iter().any(|source| has_candles(&source)) {
        let name = asked.spec.interval.name();
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
        let (now, keep) = now_and_keep(view, key);
        let slots = settled(key, now, needed(&asked.spec, now, keep));
        let charts = &view.market.charts;
        let known = charts.known(key, slots.clone());
        let is_there = charts.get(key).is_some() || known > 0;
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
