//! `/api/ecosystem/chart`: its parameters, the choice of a series, and what stands in its headers.
//!
//! A chart that is stored as it is asked for, and wholly covered, is answered at once. Any other
//! becomes a [`LongChart`]: it waits for candles that were never asked of the exchange, for as
//! long as the limit allows, and is then made in parts.

mod asked;
mod settled;

use super::error::{Error, send_error};
use super::outcome::{Long, Outcome};
use super::packed::{self, Question, ToPack};
use super::symbols::untracked;
use super::view::View;
use crate::fingerprint::Fingerprint;
use crate::http::{Cache, Head, Responder};
use crate::json::{Decimals, Value as _};
use crate::market::{ChartBuilder, ChartInfo, ChartPlan, Series, SeriesKey, SourceId, needed};
use crate::time::UnixMs;
pub use asked::{Asked, read};
use asked::{Known, SECONDS_BELOW};
use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// How long caches may keep a chart that no poll will change.
const SETTLED_S: u32 = 3600;

/// Closed slots at the end of a followed series that no client waits for: the next refresh is due
/// within a second, and until then quotes have made a candle for each.
const UNSETTLED: i64 = 2;

/// Base rows of one part of a chart that is made row by row: some 0.3 ms.
const ROWS_A_PART: usize = 2048;

/// What one part costs, as a number of bytes that are copied.
const PART_BYTES: usize = 64 * 1024;

/// A chart that waits for candles, or is made in parts.
pub struct LongChart {
    asked: Asked,
    key: SeriesKey,
    /// The slots that it is made of.
    needed: Range<i64>,
    /// The hull of those, or of slots before them, that are not covered.
    wanted: Option<Range<i64>>,
    maker: Option<ChartBuilder>,
}

/// Answers a chart.
pub fn chart(
    view: &View<'_>,
    asked: &Asked,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    if let Some((key, plan)) = known_plan(view, asked) {
        return Ok(send_plan(view, asked, key, &plan, responder).into());
    }
    let key = choose(view, asked)?;
    let series = view.market.charts.get(key);
    let (now, keep) = (
        exchange_time(view, key),
        view.market.charts.keep(key.interval),
    );
    let plan = ChartPlan::recent(series, &asked.spec, now, keep);
    let needed = needed(&asked.spec, now, keep);
    let wants_newest = asked.spec.from.is_none_or(|from| from <= now)
        && needed.end == key.interval.slot_of(now)
        && !is_followed(series, key, now);
    let depends = match plan {
        Some(plan) if plan.info().complete && !wants_newest => {
            asked.known.set(known(view, asked, key));
            return Ok(send_plan(view, asked, key, &plan, responder).into());
        }
        Some(plan) => plan.info().depends.clone(),
        None => 0..0,
    };
    let wanted = if wants_newest {
        // Even the forming candle is still to be asked for: it comes with the newest closed one.
        uncovered(series, &(needed.start.min(needed.end - 1)..needed.end))
    } else {
        // In a market where few trade, a chart may reach beyond the slots that were asked for.
        uncovered(series, &settled(key, now, needed.clone()))
            .or_else(|| uncovered(series, &settled(key, now, depends)))
    };
    let mut long = Box::new(LongChart {
        needed,
        wanted,
        asked: asked.clone(),
        key,
        maker: None,
    });
    if long.wanted.is_none() && long.step(view) {
        responder.weigh(PART_BYTES);
        return Ok(long.finish(view, responder).into());
    }
    Ok(Outcome::Later(long))
}

impl Long for LongChart {
    fn wants(&self) -> Option<(SeriesKey, Range<i64>)> {
        Some((self.key, self.wanted.clone()?))
    }

    fn needs(&self) -> Option<(SeriesKey, Range<i64>)> {
        Some((self.key, self.needed.clone()))
    }

    fn lacks(&self, view: &View<'_>) -> Option<(SeriesKey, Range<i64>)> {
        let wanted = self.wanted.as_ref()?;
        let missing = uncovered(view.market.charts.get(self.key), wanted)?;
        Some((self.key, missing))
    }

    fn step(&mut self, view: &View<'_>) -> bool {
        let series = view.market.charts.get(self.key);
        let now = exchange_time(view, self.key);
        let keep = view.market.charts.keep(self.key.interval);
        let spec = &self.asked.spec;
        if self.maker.is_none() && ChartPlan::new(series, spec, now, keep).is_some() {
            return true;
        }
        let maker = (self.maker).get_or_insert_with(|| ChartBuilder::new(spec.clone(), now, keep));
        maker.step(series, ROWS_A_PART)
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<ToPack> {
        let LongChart {
            asked, key, maker, ..
        } = *self;
        let Some(maker) = maker else {
            let series = view.market.charts.get(key);
            let keep = view.market.charts.keep(key.interval);
            let now = exchange_time(view, key);
            let Some(plan) = ChartPlan::new(series, &asked.spec, now, keep) else {
                send_error(&Error::internal(), responder);
                return None;
            };
            return send_plan(view, &asked, key, &plan, responder);
        };
        let Some((body, made_of, info)) = maker.finished() else {
            send_error(&Error::internal(), responder);
            return None;
        };
        let fields = fields(view, &asked, key, &info);
        let head = head(view, &asked, key, (&info, made_of), &fields);
        let question = || Question::Chart(key, asked.spec.clone());
        let length = body.len();
        packed::send(view, responder, head, question, length, |out| {
            out.give(body)
        })
    }
}

/// The first choice of a series that has answered this before, if it would do so again: neither
/// has changed, and no slot has begun since.
fn known_plan(view: &View<'_>, asked: &Asked) -> Option<(SeriesKey, Arc<ChartPlan>)> {
    let Known {
        key,
        version,
        present,
    } = asked.known.get()?;
    let now = exchange_time(view, key);
    let series = view.market.charts.get(key)?;
    if series.version() != version || key.interval.slot_of(now) != present {
        return None;
    }
    let keep = view.market.charts.keep(key.interval);
    let plan = ChartPlan::recent(Some(series), &asked.spec, now, keep)?;
    Some((key, plan))
}

/// What is to be remembered of a choice. Nothing, where another source may come before it later,
/// or where the asked time is still to come.
fn known(view: &View<'_>, asked: &Asked, key: SeriesKey) -> Option<Known> {
    let first = view.market.catalog.sources_of(asked.symbol).first();
    let now = exchange_time(view, key);
    let holds = first == Some(&key.source) && asked.spec.from.is_none_or(|from| from <= now);
    let series = view.market.charts.get(key).filter(|_| holds)?;
    Some(Known {
        key,
        version: series.version(),
        present: key.interval.slot_of(now),
    })
}

fn send_plan(
    view: &View<'_>,
    asked: &Asked,
    key: SeriesKey,
    plan: &ChartPlan,
    responder: &mut Responder<'_>,
) -> Option<ToPack> {
    let fields = match plan.info().next_from {
        None => Cow::Borrowed(plan.written(|| fields(view, asked, key, plan.info()))),
        Some(_) => Cow::Owned(fields(view, asked, key, plan.info())),
    };
    let said = (plan.info(), plan.made_of());
    let head = head(view, asked, key, said, &fields);
    let question = || Question::Chart(key, asked.spec.clone());
    packed::send(view, responder, head, question, plan.body_len(), |out| {
        out.bytes().push(b'[');
        out.share_all(plan.pieces(), plan.body_len() - 2);
        out.bytes().push(b']');
    })
}

/// The time on the clock of the exchange that a series is of.
fn exchange_time(view: &View<'_>, key: SeriesKey) -> UnixMs {
    view.status.sources[key.source.index()].exchange_time(view.now)
}

/// These slots without those that have only just closed.
fn settled(key: SeriesKey, now: UnixMs, slots: Range<i64>) -> Range<i64> {
    let end = slots.end.min(key.interval.slot_of(now) - UNSETTLED);
    slots.start..end.max(slots.start)
}

/// Whether the newest candles of a series come by themselves: it has been asked for before.
fn is_followed(series: Option<&Series>, key: SeriesKey, now: UnixMs) -> bool {
    let last = series.and_then(|series| series.covered().last());
    last.is_some_and(|last| last + 1 >= key.interval.slot_of(now) - UNSETTLED)
}

/// From the first slot that is not covered to the last. `None`: all are.
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

/// The series that answers: of the first source in the order of failover that knows the range, from
/// memory or the file, else of the one that knows most of it.
fn choose(view: &View<'_>, asked: &Asked) -> Result<SeriesKey, Error> {
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
    let key_of = |source| SeriesKey {
        source,
        symbol: asked.symbol,
        interval: asked.spec.interval.base(),
    };
    // While an exchange is away since before the start, the file speaks for it.
    let has_told = |source: &SourceId| {
        let archived = view.market.charts.archived(key_of(*source));
        catalog.has_list(*source) || archived.is_some_and(|slots| !slots.is_empty())
    };
    if !sources.iter().any(has_told) {
        let name = catalog.name(asked.symbol).as_str();
        let message = format!("Nothing about \"{name}\" has been collected yet.");
        let mut error = Error::new(503, "quote_not_ready", message);
        error.param = Some("symbol");
        error.retry_after = Some(1);
        return Err(error);
    }
    if let [source] = sources {
        return Ok(key_of(*source));
    }
    let mut best: Option<(u64, SeriesKey)> = None;
    for &source in sources {
        let key = key_of(source);
        let keep = view.market.charts.keep(key.interval);
        let now = exchange_time(view, key);
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
    let (_, key) = best.expect("a known symbol has a source");
    Ok(key)
}

/// What stands in the head of a chart's answer.
fn head<'a>(
    view: &View<'_>,
    asked: &Asked,
    key: SeriesKey,
    (info, made_of): (&ChartInfo, Fingerprint),
    fields: &'a [u8],
) -> Head<'a> {
    let decimals = match asked.spec.quoted {
        true => Decimals::String,
        false => Decimals::Number,
    };
    let etag = view.tag(made_of, decimals.variant());
    let cache = match settled::is_settled(view, asked, key, info) {
        true => Cache::MaxAge(SETTLED_S),
        false => view.until_poll(key.source),
    };
    Head {
        fields,
        ..Head::json(Some(etag), cache)
    }
}

fn fields(view: &View<'_>, asked: &Asked, key: SeriesKey, info: &ChartInfo) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"Chart-Interval: ");
    out.extend_from_slice(asked.spec.interval.name().as_bytes());
    out.extend_from_slice(b"\r\nChart-Source: ");
    out.extend_from_slice(view.config.sources[key.source.index()].id.as_bytes());
    if let Some(closed) = info.last_closed {
        out.extend_from_slice(b"\r\nChart-Last-Closed: ");
        closed.write(&mut out);
    }
    out.extend_from_slice(b"\r\nChart-Gaps: ");
    info.gaps.write(&mut out);
    out.extend_from_slice(match info.complete {
        true => b"\r\nChart-Coverage: complete\r\n",
        false => b"\r\nChart-Coverage: partial\r\n".as_slice(),
    });
    if let Some(from) = info.next_from {
        out.extend_from_slice(b"Link: ");
        out.extend_from_slice(&link(view, asked, from));
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A link to the page that begins at `from` (RFC 8288): the same question, asked from there.
fn link(view: &View<'_>, asked: &Asked, from: UnixMs) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let name = view.market.catalog.name(asked.symbol);
    let spec = &asked.spec;
    let (base, quote, interval) = (name.base(), name.quote(), spec.interval.name());
    let written = write!(
        out,
        "<?symbol={base}-{quote}&interval={interval}&from={}",
        in_ms(from)
    );
    written.expect("a vector takes every byte");
    if let Some(to) = spec.to {
        out.extend_from_slice(format!("&to={}", in_ms(to)).as_bytes());
    }
    out.extend_from_slice(format!("&limit={}", spec.limit).as_bytes());
    if spec.fill_previous {
        out.extend_from_slice(b"&fill=previous");
    }
    if spec.quoted {
        out.extend_from_slice(b"&decimals=string");
    }
    if let Some(source) = asked.source {
        let id = &view.config.sources[source.index()].id;
        out.extend_from_slice(format!("&source={id}").as_bytes());
    }
    out.extend_from_slice(b">; rel=\"next\"");
    out
}

/// A time as the parameters are read back: before 1973 in seconds, since it would be taken for
/// them.
fn in_ms(time: UnixMs) -> i64 {
    match time.0 < SECONDS_BELOW {
        true => time.0 / 1000,
        false => time.0,
    }
}
