//! `/api/v1/stream`: its parameters, its head, and the text of its events.
//!
//! Owns the wire format (WHATWG HTML, 9.2). `clients::streams` decides what is sent when. Every event but
//! `alive` and `bye` is written without its empty line, so that its id can follow once it is known.
//!
//! # To add an event
//!
//! 1. Here: a function that appends it with `write_event`. If each client chooses what it reads of the event:
//!    the parameter in `read`, and a field of [`StreamRequest`].
//! 2. In `clients::streams::stream`: an event for all readers is rendered once in `SharedEvents`, under a
//!    version, like the status. An event that readers choose has a place in `EventStream`, like quotes and
//!    charts. `EventStream::write` appends the event.
//! 3. In `clients::streaming`: `Streams::has_changes` sees that the event has changed, and
//!    `Streams::note_changes` queues its readers. If the event is for all readers, `EventStream::has_events`
//!    must know it too, and `Streams::open` renders it for the first reader. If readers choose it,
//!    `Streams::closed` removes the readers that have ended. If a client that comes back must not miss a
//!    change, the event's version joins the ids ([`Position`]).
//! 4. Its description, and its parameter, in `openapi.json` under `/api/v1/stream`; its row in
//!    `src/docs/http-api.md`.
//! 5. A test in `tests/loopback/stream.rs`; its name in `tests/sim/listeners.rs` and `src/page/hub.js`, which
//!    know all events.

use super::chart::Followed;
use super::health;
use super::outcome::{ChartPlace, Deferred, Outcome, Position, StreamRequest, StreamedSymbols};
use super::quotes::missing;
use super::records::fragment;
use super::request::ApiRequest;
use super::view::{View, decimals, items, look_up};
use crate::http::{Cache, ContentType, EndlessBody, Error, Head, Responder, echo};
use crate::interval::Interval;
use crate::json::{Decimals, Object, Ready, Value, json};
use crate::market::{Lookup, Quote, SourceId, SymbolId};
use crate::time::UnixMs;
use std::collections::{BTreeMap, HashSet};

/// Tells nginx, and other proxies that read this field, not to buffer the stream.
const FIELDS: &[u8] = b"X-Accel-Buffering: no\r\n";

/// The code of an unknown symbol.
pub const UNKNOWN: &str = "symbol_not_found";

/// Reads a request for `/api/v1/stream`.
pub fn read(call: &ApiRequest<'_>, view: &View<'_>) -> Outcome {
    let [symbols, charts, style, source] =
        call.params(["symbols", "charts", "decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, view.named_source(&source)?);
    if symbols.is_none() && charts.is_none() {
        let message = "\"symbols\" or \"charts\" is required: lists like BTC/USDT,ETH/USDT, or *, and \
                       BTC/USDT:1m,ETH/USDT:1h.";
        return Err(Error::bad("missing_parameter", "symbols", message));
    }
    let mut names = Names { view, source, unknown: BTreeMap::new(), is_served: false, error: None };
    let mut charts = match charts.as_deref() {
        None => Vec::new(),
        Some(text) => read_charts(&mut names, text)?,
    };
    let symbols = match symbols.as_deref() {
        None => StreamedSymbols::Named(Box::default()),
        Some(text) if text.trim_ascii() == b"*" => StreamedSymbols::All,
        Some(text) => StreamedSymbols::Named(read_symbols(&mut names, text, charts.len())?),
    };
    let Names { unknown, is_served, error, .. } = names;
    if let Some(error) = error
        && !is_served
        && !matches!(symbols, StreamedSymbols::All)
    {
        return Err(error);
    }
    let last_id = call.request.fields.get("last-event-id");
    let resumed = last_id.and_then(|id| Position::read(id, view.boot, charts.len()));
    for (chart, closed) in charts.iter_mut().zip(resumed.iter().flat_map(|it| &it.closes)) {
        chart.closed = *closed;
    }
    Ok(Some(Deferred::Stream(Box::new(StreamRequest {
        charts,
        symbols,
        unknown,
        source,
        decimals,
        resumed,
        body: EndlessBody(call.request.version),
    }))))
}

/// Reads the names of a list. One that nobody serves does not end a stream that has another one.
struct Names<'v> {
    view: &'v View<'v>,
    source: Option<SourceId>,
    /// By place: the names that stand for no symbol yet.
    unknown: BTreeMap<usize, Box<[u8]>>,
    /// True if one of the symbols is served.
    is_served: bool,
    /// Why the last name that is not served is not served.
    error: Option<Error>,
}

impl Names<'_> {
    /// The symbol that a name at this place stands for, if it ever did.
    fn read(
        &mut self,
        place: usize,
        name: &[u8],
        param: &'static str,
    ) -> Result<Option<SymbolId>, Error> {
        let view = self.view;
        let served = look_up(view, name).map_err(|error| error.about(param));
        let served = served.and_then(|it| view.check_tracked(it, self.source).map(|()| it));
        match served {
            Ok(symbol) => {
                self.is_served = true;
                return Ok(Some(symbol));
            }
            Err(error) if error.status == 404 => self.error = Some(error),
            Err(error) => return Err(error),
        }
        match view.market.catalog.find_any(name) {
            Lookup::Known(symbol) => Ok(Some(symbol)),
            Lookup::Unknown | Lookup::Malformed => {
                self.unknown.insert(place, name.into());
                Ok(None)
            }
        }
    }
}

/// Reads symbols. `first`: the place of the first one. A symbol that was named before is `None`.
fn read_symbols(
    names: &mut Names<'_>,
    text: &[u8],
    first: usize,
) -> Result<Box<[Option<SymbolId>]>, Error> {
    let items = items(text, "symbols", names.view.config.limits.stream_symbols)?;
    let (mut seen, mut texts) = (HashSet::with_capacity(items.len()), HashSet::new());
    let read = |(place, item)| {
        if texts.insert(item) {
            Ok(names.read(place, item, "symbols")?.filter(|symbol| seen.insert(*symbol)))
        } else {
            Ok(None)
        }
    };
    (first..).zip(items).map(read).collect()
}

/// Reads charts: a symbol, a colon and an interval each. One that was named before has no symbol.
fn read_charts(names: &mut Names<'_>, text: &[u8]) -> Result<Vec<ChartPlace>, Error> {
    let view = names.view;
    let items = items(text, "charts", view.config.limits.stream_charts)?;
    let (mut charts, mut texts) = (Vec::<ChartPlace>::new(), HashSet::new());
    for (place, item) in items.into_iter().enumerate() {
        let mut parts = item.rsplitn(2, |byte| *byte == b':').map(<[u8]>::trim_ascii);
        let interval = parts.next().and_then(Interval::parse);
        let Some((interval, name)) = interval.zip(parts.next()) else {
            let good = Interval::ALL.map(Interval::name).join(" ");
            let item = echo(item);
            let message =
                format!("Invalid chart \"{item}\": expected SYMBOL:INTERVAL, with one of {good}.");
            return Err(Error::bad("invalid_interval", "charts", message));
        };
        let symbol = if texts.insert(item) { names.read(place, name, "charts")? } else { None };
        // If nothing has been collected yet, the stream waits for it.
        if let Some(symbol) = symbol
            && let Err(error) = (Followed { symbol, interval, source: names.source }).series(view)
            && error.status == 400
        {
            return Err(error);
        }
        let is_same = |it: &ChartPlace| it.symbol == symbol && it.interval == interval;
        let symbol = symbol.filter(|_| !charts.iter().any(is_same));
        charts.push(ChartPlace { symbol, interval, closed: None });
    }
    Ok(charts)
}

/// Writes the head of a stream. Returns true if events may follow.
pub fn begin(responder: &mut Responder<'_>, body: EndlessBody) -> bool {
    let content_type = ContentType::EVENT_STREAM;
    let head = Head { content_type, fields: FIELDS, ..Head::json(None, Cache::NoStore) };
    responder.begin_endless(&head, body)
}

/// Appends how many milliseconds a client is to wait before it connects again. This must be a part of an
/// event: if it stood alone, some clients would take it for an event.
pub fn write_retry(out: &mut Vec<u8>, wait_ms: u64) {
    out.extend_from_slice(format!("retry: {wait_ms}\n").as_bytes());
}

/// Appends the last event of a stream that marketd ends, and its end.
pub fn write_bye(out: &mut Vec<u8>, wait_ms: u64) {
    write_event(out, "bye", Ready(b"{}"));
    write_retry(out, wait_ms);
    out.push(b'\n');
}

/// Appends an event. Its data has no line end.
fn write_event(out: &mut Vec<u8>, name: &str, data: impl Value) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    data.write(out);
    out.push(b'\n');
}

/// Appends a quote, as its own address has it.
pub fn write_quote(out: &mut Vec<u8>, view: &View<'_>, quote: &Quote, decimals: Decimals) {
    write_event(out, "quote", Ready(&fragment(view, quote, decimals)));
}

/// Appends that a symbol is not served, and why. `interval`: if only a chart is gone, the chart's interval.
pub fn write_gone(out: &mut Vec<u8>, symbol: &str, interval: Option<Interval>, code: &str) {
    write_event(out, "gone", |out: &mut Vec<u8>| {
        let mut object = Object::open(out);
        object.put("symbol", symbol);
        if let Some(interval) = interval {
            object.put("interval", interval.name());
        }
        object.put("code", code);
        object.close();
    });
}

/// Why a symbol has no quote now: the code of the error at its own address.
pub fn why_gone(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> &'static str {
    if is_served(view, symbol, source) { missing(view, symbol, source).code } else { UNKNOWN }
}

/// Why a chart has no candles now, unless it waits for them.
pub fn why_chart_gone(view: &View<'_>, chart: &Followed) -> Option<&'static str> {
    if !is_served(view, chart.symbol, chart.source) {
        return Some(UNKNOWN);
    }
    chart.series(view).err().filter(|error| error.status != 503).map(|error| error.code)
}

/// True if `source` tracks the symbol or, if no source is given, any source.
pub fn is_served(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> bool {
    view.market.catalog.is_known(symbol) && view.check_tracked(symbol, source).is_ok()
}

/// Appends that the stream is open, though nothing changes.
pub fn write_alive(out: &mut Vec<u8>, now: UnixMs) {
    write_event(out, "alive", |out: &mut Vec<u8>| json!(out, { "time": now }));
    out.push(b'\n');
}

/// Appends the health of the service, as its own address has it.
pub fn write_status(out: &mut Vec<u8>, view: &View<'_>) {
    write_event(out, "status", |out: &mut Vec<u8>| health::write_body(view, out));
}

/// Appends a candle. `row`: as a chart has it.
pub fn write_candle(
    out: &mut Vec<u8>,
    view: &View<'_>,
    chart: &Followed,
    source: SourceId,
    row: &[u8],
    is_closed: bool,
) {
    write_event(out, "candle", |out: &mut Vec<u8>| {
        json!(out, {
            "symbol": view.market.catalog.name(chart.symbol).as_str(),
            "interval": chart.interval.name(),
            "source": view.id_of(source),
            "candle": Ready(row),
            "closed": is_closed,
        });
    });
}
