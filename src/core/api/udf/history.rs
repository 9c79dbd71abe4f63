//! `/udf/history`: candles in columns.
//!
//! A client never asks again for slots that are newer than the oldest candle that it got. A client that is
//! told that there is no data stops. So a response says only what the exchange has confirmed. The newest
//! candles are an exception: they are sent as in a chart, also while the exchange has not confirmed the slots
//! behind them, because the client asks for the newest candles again by itself.
//!
//! A response is made from a chart, which waits for its candles as any other chart does. If an exchange has
//! no candle in the range, older candles are looked for, one stretch after another, until the deadline of the
//! request or the end of what is kept. If candles are unknown at the deadline, the response has only newer
//! candles, or `nextTime`, so that the client asks again. The rows are turned into columns, in parts.

use super::{MarketOfSource, VARIANT, given, read_symbol};
use crate::core::api::body::Body;
use crate::core::api::chart::{
    self, ChartRequest, ChartResponse, SeriesView, last_stretch, read_resolution,
};
use crate::core::api::outcome::{Advance, Deferred, InParts, Outcome, SeriesSlots, send_fault};
use crate::core::api::request::ApiRequest;
use crate::core::api::view::{ParamValue, View, count, whole_number};
use crate::core::compressed_cache::CacheKey;
use crate::fingerprint::Part;
use crate::http::{Error, Head, Responder};
use crate::interval::Interval;
use crate::json::Object;
use crate::market::{ChartBody, ChartInfo, ChartSpec};
use crate::time::{Mono, UnixMs};
use std::ops::Range;
use std::sync::Arc;

/// The most candles of one response.
const MAX_BARS: usize = 5000;

/// The candles of a response if the request has neither a number of candles nor the beginning of a range.
const DEFAULT_BARS: usize = 500;

/// Bytes of rows that are turned into columns in one part: some 0.05 ms.
const PART_BYTES: usize = 32 * 1024;

/// What comes before each column.
const COLUMNS: [&[u8]; 6] = [
    b"{\"s\":\"ok\",\"t\":[",
    b"],\"o\":[",
    b"],\"h\":[",
    b"],\"l\":[",
    b"],\"c\":[",
    b"],\"v\":[",
];

/// A response under way.
struct History {
    chart: ChartResponse,
    goal: Goal,
    /// When the request was read.
    begun: Mono,
    /// The slots that were waited for last. If they are still missing, they do not come.
    last: Option<Range<i64>>,
    /// True if the response waits until its deadline: without the missing candles, the client would ask again
    /// at once.
    is_patient: bool,
    /// True if nothing of what is sent is unknown.
    is_complete: bool,
    /// What is sent, once that is known.
    answer: Option<Answer>,
}

/// What a response says.
enum Answer {
    /// Candles, which are turned into columns.
    Bars(Bars),
    /// There is no candle. The time is `nextTime`, where the client asks next.
    NoData(Option<UnixMs>),
}

/// Candles that are turned into columns, once it is known which are sent.
struct Bars {
    chart: Arc<ChartBody>,
    /// Only candles from this time on are sent.
    since: UnixMs,
    /// The next piece of the chart.
    next: usize,
    columns: [Vec<u8>; 6],
}

/// What the chart is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// All candles from `from` to `to`.
    Range,
    /// A number of candles before `to`.
    Back,
    /// The newest candle before an empty range.
    Older,
}

/// Responds to `/udf/history`.
pub fn history(call: &ApiRequest<'_>, view: &View<'_>) -> Outcome {
    let [symbol, resolution, from, to, countback] =
        call.params(["symbol", "resolution", "from", "to", "countback"])?.map(given);
    let (symbol, source) = read_symbol(view, &symbol)?;
    let interval = read_resolution(resolution.as_deref().unwrap_or_default())?;
    let (from, to) = (read_seconds(&from, "from")?, read_seconds(&to, "to")?);
    let error = Error::bad("invalid_limit", "countback", "");
    let countback = count(&countback, error, 0..=usize::MAX)?.filter(|count| *count > 0);
    if countback.is_none() && from.zip(to).is_some_and(|(from, to)| from > to) {
        let message = "\"from\" must not be later than \"to\".";
        return Err(Error::bad("invalid_range", "from", message));
    }
    // `to` is exclusive in this protocol; the end of a chart is inclusive.
    let to = to.map(|to| to - 1);
    let (goal, from, limit) = match (countback, from) {
        (None, Some(from)) => {
            (Goal::Range, Some(clipped(view, (symbol, source), interval, from, to)), MAX_BARS)
        }
        _ => (Goal::Back, None, countback.unwrap_or(DEFAULT_BARS).min(MAX_BARS)),
    };
    let spec = ChartSpec { interval, from, to, limit, fill_previous: false, quoted: false };
    let request = ChartRequest { symbol, spec, source };
    let key = chart::choose(view, &request)?;
    Ok(Some(Deferred::InParts(Box::new(History {
        chart: ChartResponse::new(view, request, key),
        goal,
        begun: view.now().mono,
        last: None,
        answer: None,
        is_patient: false,
        is_complete: false,
    }))))
}

/// The beginning of a range, or of its newest candles if it has too many.
fn clipped(
    view: &View<'_>,
    (symbol, source): MarketOfSource,
    interval: Interval,
    from: UnixMs,
    to: Option<UnixMs>,
) -> UnixMs {
    let source = view.sources_for(symbol, &source).first();
    let now = source.map_or(view.now().unix, |source| view.exchange_time(*source));
    let end = to.unwrap_or(now).min(now);
    from.max(interval.step(interval.open_of(end), 1 - MAX_BARS as i64))
}

/// Reads seconds since 1970. A negative number, which libraries compute, counts as 0.
fn read_seconds(value: &ParamValue<'_>, param: &'static str) -> Result<Option<UnixMs>, Error> {
    let read = |text: &[u8]| match text.strip_prefix(b"-") {
        None => whole_number(text).map(|seconds| UnixMs(seconds.saturating_mul(1000))),
        Some(digits) => whole_number(digits).map(|_| UnixMs(0)),
    };
    let error = || {
        let message = format!("\"{param}\" must be whole seconds since 1970.");
        Error::bad("invalid_time", param, message)
    };
    value.as_deref().map(|text| read(text).ok_or_else(error)).transpose()
}

impl InParts for History {
    fn needs(&self) -> Vec<SeriesSlots> {
        self.chart.needs()
    }

    fn missing(&self, view: &View<'_>) -> Vec<SeriesSlots> {
        self.chart.missing(view)
    }

    fn is_patient(&self) -> bool {
        self.is_patient
    }

    fn choose_again(&mut self, view: &View<'_>) {
        self.chart.choose_again(view);
        self.last = None;
    }

    fn held(&self) -> usize {
        let columns = match &self.answer {
            Some(Answer::Bars(bars)) => bars.held(),
            _ => 0,
        };
        self.chart.held() + columns
    }

    fn step(&mut self, view: &View<'_>) -> Advance {
        if let Some(Answer::Bars(bars)) = &mut self.answer {
            return bars.step();
        }
        match (self.chart.step(view), self.chart.body.take()) {
            (Advance::Done, Some(chart)) => self.go_on(view, chart),
            (advance, _) => advance,
        }
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<Deferred> {
        let key = self.chart.key;
        let mut body = Body::default();
        match self.answer {
            Some(Answer::Bars(bars)) => bars.write(&mut body),
            Some(Answer::NoData(older)) => body.text(&no_data(older)),
            None => return send_fault(&self.chart.error(view).message, responder),
        }
        let head = Head::json(None, view.until_candles([key.source], self.is_complete));
        let cache_key = CacheKey::new("/udf/history", (key, &self.chart.request.spec));
        body.send(view, responder, head, VARIANT, cache_key)
    }
}

impl History {
    /// The chart is made: looks for older candles, waits for those that are missing, or begins the response.
    fn go_on(&mut self, view: &View<'_>, chart: Arc<ChartBody>) -> Advance {
        let info = &chart.info;
        let newest = self.newest_unknown(view, info, i64::MAX);
        let unknown = match &newest {
            // The library asks for the newest candles again by itself.
            Some(slots) if self.is_behind(view, slots, info) => {
                self.newest_unknown(view, info, slots.start)
            }
            unknown => unknown.clone(),
        };
        // The library also asks for what is before the first candle that it got, and for what is before
        // `nextTime`. So only candles behind the unknown slots are sent (`since`), or `nextTime` is in the
        // unknown slots (`again`).
        let (base, interval) = (self.chart.key.interval, self.chart.request.spec.interval);
        let since = unknown.as_ref().map_or(UnixMs(0), |slots| base.open_of(slots.end));
        let again = newest.as_ref();
        let again = again.map(|slots| interval.open_of(base.open_of(slots.end - 1)));
        let last = info.last.filter(|last| *last >= since);
        if let Some(slots) = newest.clone().map(last_stretch)
            && self.may_wait(view, &slots)
        {
            self.is_patient = last.is_none();
            self.chart.wait_for(slots);
            return Advance::Waits;
        }
        // While the exchange's clock is in doubt, another witness may tell a later time. By that time, there
        // may be candles that are newer than all known ones.
        let (now, latest) =
            (view.exchange_time(self.chart.key.source), view.latest_time(self.chart.key.source));
        let to = self.chart.request.spec.to.map_or(latest, |to| to.min(latest));
        let doubted = (to > now).then(|| interval.open_of(to));
        self.is_complete = newest.is_none() && doubted.is_none();
        let answer = match (self.goal, last) {
            (Goal::Older, older) => Answer::NoData(older.or(again).max(doubted)),
            (_, Some(_)) => Answer::Bars(Bars::new(chart, since)),
            (Goal::Range, None) if again.is_none() => {
                self.look_for_older(view);
                return Advance::Waits;
            }
            (_, None) => Answer::NoData(again.max(doubted)),
        };
        match self.answer.insert(answer) {
            Answer::Bars(_) => Advance::More,
            Answer::NoData(_) => Advance::Done,
        }
    }

    /// The newest slots before `end` that are not covered, among the slots that the response tells of. With a
    /// candle, the response tells of all slots from the first candle on; without, of all slots that are kept.
    fn newest_unknown(&self, view: &View<'_>, info: &ChartInfo, end: i64) -> Option<Range<i64>> {
        let key = self.chart.key;
        let at = SeriesView::new(view, key);
        let needed = at.needed(&self.chart.request.spec);
        let start = match (self.goal, info.first) {
            (Goal::Range, _) => needed.start,
            (_, Some(first)) => key.interval.slot_of(first),
            (_, None) => at.floor(),
        };
        let end = needed.end.min(end);
        let slots = at.without_newest(start.min(end)..end);
        at.newest_untold(slots, self.chart.request.spec.interval)
    }

    /// True if three things hold: the newest candles are wanted; these slots end with the newest closed slot
    /// that a client waits for; the chart ends before these slots. They mean that the exchange has not
    /// answered since the last candle of the chart.
    fn is_behind(&self, view: &View<'_>, slots: &Range<i64>, info: &ChartInfo) -> bool {
        let (key, to) = (self.chart.key, self.chart.request.spec.to);
        let at = SeriesView::new(view, key);
        to.is_none_or(|to| to >= at.now)
            && slots.end == at.without_newest(slots.start..at.present()).end
            && info.last.is_some_and(|last| key.interval.slot_of(last) < slots.start)
    }

    /// True if the deadline has not passed and the last wait was not for the same slots. The first wait is
    /// always allowed, so that its candles are there when the client asks again.
    fn may_wait(&mut self, view: &View<'_>, slots: &Range<i64>) -> bool {
        let until = self.begun + view.config.limits.chart_wait;
        match self.last.replace(slots.clone()) {
            None => true,
            Some(last) => last != *slots && view.now().mono < until,
        }
    }

    /// The range has no candle: looks for the newest candle before the range.
    fn look_for_older(&mut self, view: &View<'_>) {
        let ChartRequest { symbol, spec, source, .. } = &self.chart.request;
        let to = spec.from.map(|from| from - 1);
        let spec = ChartSpec { from: None, to, limit: 1, ..spec.clone() };
        let request = ChartRequest { symbol: *symbol, spec, source: *source };
        self.chart = ChartResponse::new(view, request, self.chart.key);
        self.goal = Goal::Older;
    }
}

/// The body that says that there is no candle, and when the newest candle before the range was.
fn no_data(older: Option<UnixMs>) -> Vec<u8> {
    let mut text = Vec::with_capacity(64);
    let mut object = Object::open(&mut text);
    object.put("s", "no_data");
    if let Some(older) = older {
        object.put("nextTime", older.0.div_euclid(1000));
    }
    object.close();
    text
}

impl Bars {
    fn new(chart: Arc<ChartBody>, since: UnixMs) -> Bars {
        let room = chart.body_len() / COLUMNS.len();
        let columns = COLUMNS.map(|_| Vec::with_capacity(room + room / 4));
        Bars { chart, since, next: 0, columns }
    }

    fn held(&self) -> usize {
        self.columns.iter().map(Vec::capacity).sum::<usize>() + size_of_val(self.chart.pieces())
    }

    /// Turns some rows.
    fn step(&mut self) -> Advance {
        let mut left = PART_BYTES;
        while let Some((rows, range)) = self.chart.pieces().get(self.next) {
            if left == 0 {
                return Advance::More;
            }
            self.next += 1;
            left = left.saturating_sub(range.len());
            turn_rows(&rows[range.clone()], self.since, &mut self.columns);
        }
        Advance::Done
    }

    fn write(self, body: &mut Body) {
        body.part(Part::Text(&self.chart.made_of.number().to_le_bytes()));
        body.part(Part::From(self.since.0));
        for (before, column) in COLUMNS.into_iter().zip(self.columns) {
            body.fixed(before);
            body.give(column);
        }
        body.fixed(b"]}");
    }
}

/// Appends the fields of the rows from this time on to the columns: times in seconds, and the other fields as
/// they are.
fn turn_rows(rows: &[u8], since: UnixMs, columns: &mut [Vec<u8>; 6]) {
    let mut rest = rows;
    while let Some(end) = memchr::memchr(b']', rest) {
        let row = &rest[1..end];
        // Behind the comma, if another row follows.
        rest = rest.get(end + 2..).unwrap_or_default();
        let mut fields = row.split(|byte| *byte == b',');
        let open = fields.next().unwrap_or_default();
        if whole_number(open).is_none_or(|open| open < since.0) {
            continue;
        }
        let second = &open[..open.len().saturating_sub(3)];
        let second = if second.is_empty() { b"0" } else { second };
        let fields = std::iter::once(second).chain(fields);
        for (column, field) in columns.iter_mut().zip(fields) {
            if !column.is_empty() {
                column.push(b',');
            }
            column.extend_from_slice(field);
        }
    }
}
