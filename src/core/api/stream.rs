//! `/api/v1/stream`: its parameters, its head, and the text of its events.
//!
//! Owns the wire format (WHATWG HTML, 9.2). What is sent when is decided by `clients::streams`. Every event
//! is written without its empty line, so that its id can follow once it is known.
//!
//! # To add an event
//!
//! 1. Here: a function that appends it with `write_event`. If each client chooses what it reads of it: the
//!    parameter in `read`, and a field of [`StreamRequest`].
//! 2. In `clients::streams::stream`: what all readers are told is rendered once in `SharedEvents`, under a
//!    version, as the status is; what each of them chooses has a place in `EventStream`, as quotes and charts
//!    have. `EventStream::write` appends it.
//! 3. In `clients::streaming`: `Streams::has_changes` sees that it has changed, and `Streams::note_changes`
//!    queues its readers. For what all are told, `EventStream::has_events` must know it too, and
//!    `Streams::open` renders it for the first reader. For what each chooses, `Streams::step` removes the
//!    readers that have ended. If a client that comes back must not miss a change, its version joins the ids
//!    ([`Position`]).
//! 4. Its description, and its parameter, in `openapi.json` under `/api/v1/stream`; its row in
//!    `src/docs/http-api.md`.
//! 5. A test in `tests/loopback/stream.rs`; its name in `tests/sim/listeners.rs` and
//!    `src/page/feed.js`, which know all events.

use super::chart::Followed;
use super::error::{Error, echo};
use super::health;
use super::outcome::{Outcome, Position, StreamRequest, StreamedSymbols};
use super::params::{ApiRequest, decimals, items};
use super::records::fragment;
use super::symbols::{check_tracked, look_up};
use super::view::View;
use crate::http::{Cache, ContentType, EndlessBody, Head, Responder};
use crate::interval::Interval;
use crate::json::{Decimals, Ready, Value, json};
use crate::market::{Quote, SourceId, SymbolId};
use std::collections::HashSet;

pub use super::symbols::served_quote;

/// Tells nginx, and other proxies that read this field, not to buffer the stream.
const FIELDS: &[u8] = b"X-Accel-Buffering: no\r\n";

/// Reads a request for `/api/v1/stream`.
pub fn read(call: &ApiRequest<'_>) -> Result<Outcome, Error> {
    let [symbols, charts, style, source] =
        call.params(["symbols", "charts", "decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, call.source(&source)?);
    if symbols.is_none() && charts.is_none() {
        let message = "\"symbols\" or \"charts\" is required: lists like BTC/USDT,ETH/USDT, or *, and \
                       BTC/USDT:1m,ETH/USDT:1h.";
        return Err(Error::bad("missing_parameter", "symbols", message));
    }
    let symbols = match symbols.as_deref() {
        None => StreamedSymbols::Named(Box::default()),
        Some(text) if text.trim_ascii() == b"*" => StreamedSymbols::All,
        Some(text) => StreamedSymbols::Named(read_symbols(call, text, source)?),
    };
    let charts = match charts.as_deref() {
        None => Vec::new(),
        Some(text) => read_charts(call, text, source)?,
    };
    let mut fields = call.request.fields;
    let last_id = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"last-event-id"));
    let resumed = last_id.and_then(|(_, id)| Position::read(id, call.view.boot, charts.len()));
    Ok(Outcome::Stream(Box::new(StreamRequest {
        symbols,
        charts,
        source,
        decimals,
        resumed,
        body: EndlessBody(call.request.version),
    })))
}

fn read_symbols(
    call: &ApiRequest<'_>,
    text: &[u8],
    source: Option<SourceId>,
) -> Result<Box<[SymbolId]>, Error> {
    let most = call.view.config.limits.stream_symbols;
    let items = items(text, "symbols", most)?;
    let mut seen = HashSet::with_capacity(items.len());
    let mut symbols = Vec::with_capacity(items.len());
    for item in items {
        let symbol = look_up(call.view, item).map_err(|error| error.about("symbols"))?;
        check_tracked(call.view, symbol, source)?;
        if seen.insert(symbol) {
            symbols.push(symbol);
        }
    }
    Ok(symbols.into())
}

/// Reads charts: a symbol, a colon and an interval each.
fn read_charts(
    call: &ApiRequest<'_>,
    text: &[u8],
    source: Option<SourceId>,
) -> Result<Vec<(SymbolId, Interval)>, Error> {
    let items = items(text, "charts", call.view.config.limits.stream_charts)?;
    let mut charts = Vec::with_capacity(items.len());
    for item in items {
        let colon = item.iter().rposition(|byte| *byte == b':');
        let (name, interval) = item.split_at(colon.unwrap_or(item.len()));
        let interval = interval.strip_prefix(b":").unwrap_or_default();
        let symbol = look_up(call.view, name.trim_ascii()).map_err(|it| it.about("charts"))?;
        let Some(interval) = Interval::parse(interval.trim_ascii()) else {
            let good = Interval::ALL.map(Interval::name).join(" ");
            let item = echo(item);
            let message =
                format!("Invalid chart \"{item}\": expected SYMBOL:INTERVAL, with one of {good}.");
            return Err(Error::bad("invalid_interval", "charts", message));
        };
        let followed = Followed { symbol, interval, source };
        // Where nothing has been collected yet, the stream waits for it.
        if let Err(error) = followed.series(call.view)
            && error.status != 503
        {
            return Err(error);
        }
        if !charts.contains(&(symbol, interval)) {
            charts.push((symbol, interval));
        }
    }
    Ok(charts)
}

/// Writes the head of a stream. Returns true if events may follow.
pub fn begin(responder: &mut Responder<'_>, body: EndlessBody) -> bool {
    let content_type = ContentType::EventStream;
    let head = Head { content_type, fields: FIELDS, ..Head::json(None, Cache::NoStore) };
    responder.begin_endless(&head, body)
}

/// Appends how many milliseconds a client is to wait before it connects again.
pub fn write_retry(out: &mut Vec<u8>, wait_ms: u64) {
    out.extend_from_slice(format!("retry: {wait_ms}\n\n").as_bytes());
}

/// Appends the last event of a stream that marketd ends.
pub fn write_bye(out: &mut Vec<u8>, wait_ms: u64) {
    out.extend_from_slice(b"event: bye\ndata: {}\n");
    write_retry(out, wait_ms);
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
    (row, is_closed): (&[u8], bool),
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
