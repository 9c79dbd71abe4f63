//! `/api/v1/metrics` in JSON, and the same counters at `/metrics` for Prometheus.

use super::{Error, Outcome, View, prometheus};
use crate::http::{Cache, ContentType, Head, Responder};
use crate::market::SourceId;
use crate::server::{ProcessFacts, SourceStatus};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metrics<'a> {
    quotes_collected: u64,
    cached_entries: usize,
    charts_stored: u64,
    candles_stored: u64,
    started_at: i64,
    uptime_ms: u64,
    version: &'static str,
    quotes: Quotes,
    charts: Charts,
    history: History,
    upstreams: Vec<Upstream<'a>>,
    http: Http,
    process: Process,
}

#[derive(Serialize)]
struct Quotes {
    collected: u64,
    rejected: u64,
    stale: usize,
    symbols: usize,
    failovers: u64,
    returns: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Charts {
    series: usize,
    candles: usize,
    written: u64,
    updated: u64,
    gaps: u64,
    evicted: u64,
    bytes: usize,
    persist_errors: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Upstream<'a> {
    id: &'a str,
    state: &'static str,
    polls: u64,
    ok: u64,
    errors: u64,
    timeouts: u64,
    rate_limited: u64,
    last_success_at: Option<i64>,
    last_error_at: Option<i64>,
    last_error: Option<&'a str>,
    last_latency_ms: Option<u64>,
    bytes_received: u64,
    next_poll_at: Option<i64>,
    backoff_until: Option<i64>,
    budget_spent: u64,
    budget_left: u64,
    failovers: u64,
    returns: u64,
    stale: usize,
    frozen: bool,
    backfill: Backfill,
}

/// In candles of all series that are followed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Backfill {
    wanted: u64,
    done: u64,
    per_minute: u64,
    ends_at: Option<i64>,
}

/// The history file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct History {
    enabled: bool,
    usable: bool,
    inserted: u64,
    updated: u64,
    evicted: u64,
    bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Http {
    requests: u64,
    in_flight: u64,
    status: Classes,
    not_modified: u64,
    bad_requests: u64,
    timeouts: u64,
    rejected: u64,
    rate_limited: u64,
    bytes_pending: u64,
    bytes_out: u64,
    connections_open: u64,
    connections_total: u64,
}

#[derive(Serialize)]
struct Classes {
    #[serde(rename = "2xx")]
    success: u64,
    #[serde(rename = "3xx")]
    redirection: u64,
    #[serde(rename = "4xx")]
    client_error: u64,
    #[serde(rename = "5xx")]
    server_error: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    rss_bytes: Option<u64>,
    open_fds: Option<u64>,
    loop_max_stall_ms: serde_json::Number,
}

/// The counters as JSON.
pub fn json(view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let body = serde_json::to_vec(&metrics(view));
    send(ContentType::Json, &body.unwrap_or_default(), responder)
}

/// The counters as Prometheus text.
pub fn text(view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    send(
        ContentType::Prometheus,
        prometheus::text(view).as_bytes(),
        responder,
    )
}

fn send(
    content_type: ContentType,
    body: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let head = Head {
        content_type,
        ..Head::json(None, Cache::NoStore)
    };
    // To make it takes eight times as long as to copy it.
    responder.weigh(8 * body.len());
    responder.send(&head, body);
    Ok(Outcome::Answered)
}

fn metrics<'a>(view: &View<'a>) -> Metrics<'a> {
    let quotes = view.market.quotes.counts();
    let charts = view.market.charts.counts();
    let (http, sources) = (&view.status.http, &view.status.sources);
    let [success, redirection, client_error, server_error] = http.classes;
    let (charts_stored, candles_stored) = stored(view);
    Metrics {
        quotes_collected: quotes.collected,
        cached_entries: quotes.cached,
        charts_stored,
        candles_stored,
        started_at: view.status.started.unix.0,
        uptime_ms: view.now.mono.since(view.status.started.mono).as_millis() as u64,
        version: env!("CARGO_PKG_VERSION"),
        quotes: Quotes {
            collected: quotes.collected,
            rejected: quotes.rejected,
            stale: quotes.stale,
            symbols: quotes.symbols,
            failovers: sources.iter().map(|source| source.failovers).sum(),
            returns: sources.iter().map(|source| source.returns).sum(),
        },
        charts: Charts {
            series: charts.series,
            candles: charts.candles,
            written: charts.written,
            updated: charts.updated,
            gaps: charts.gaps,
            evicted: charts.evicted,
            bytes: charts.bytes,
            persist_errors: view.status.history.persist_errors,
        },
        history: history(view),
        upstreams: (sources.iter().enumerate())
            .map(|(at, source)| upstream(SourceId(at as u16), source, view))
            .collect(),
        http: Http {
            requests: http.requests,
            in_flight: http.in_flight,
            status: Classes {
                success,
                redirection,
                client_error,
                server_error,
            },
            not_modified: http.not_modified,
            bad_requests: http.bad_requests,
            timeouts: http.timeouts,
            rejected: http.rejected,
            rate_limited: http.rate_limited,
            bytes_pending: http.pending,
            bytes_out: http.bytes_out,
            connections_open: http.open,
            connections_total: http.total,
        },
        process: process(view),
    }
}

/// Series and candles that are stored: in the file, or in memory where there is none.
pub(super) fn stored(view: &View<'_>) -> (u64, u64) {
    let history = &view.status.history;
    let charts = view.market.charts.counts();
    match history.enabled {
        true => (history.stored.series() as u64, history.stored.candles()),
        false => (charts.series as u64, charts.candles as u64),
    }
}

fn upstream<'a>(id: SourceId, source: &'a SourceStatus, view: &View<'a>) -> Upstream<'a> {
    Upstream {
        id: &source.id,
        state: source.state.name(),
        polls: source.polls,
        ok: source.ok,
        errors: source.errors,
        timeouts: source.timeouts,
        rate_limited: source.rate_limited,
        last_success_at: source.last_success_at.map(|at| at.0),
        last_error_at: source.last_error_at.map(|at| at.0),
        last_error: source.last_error.as_deref(),
        last_latency_ms: source.last_latency_ms,
        bytes_received: source.bytes_received,
        next_poll_at: source.next_poll_at.map(|at| at.0),
        backoff_until: source.backoff_until.map(|at| at.0),
        budget_spent: source.budget_spent,
        budget_left: source.budget_left,
        failovers: source.failovers,
        returns: source.returns,
        stale: view.market.quotes.stale_of(id),
        frozen: view.market.quotes.frozen(id),
        backfill: Backfill {
            wanted: source.backfill.wanted,
            done: source.backfill.done,
            per_minute: source.backfill.per_minute,
            ends_at: source.backfill.ends_at.map(|at| at.0),
        },
    }
}

fn history(view: &View<'_>) -> History {
    let history = &view.status.history;
    History {
        enabled: history.enabled,
        usable: history.enabled && !history.unusable,
        inserted: history.inserted,
        updated: history.updated,
        evicted: history.evicted,
        bytes: history.bytes,
    }
}

fn process(view: &View<'_>) -> Process {
    let facts = view
        .facts
        .map_or_else(ProcessFacts::default, |facts| facts());
    let stall_us = view.status.turns.longest_us(view.now);
    // Exact thousandths without binary floating point: the digits are written and read back as
    // a JSON number.
    let text = format!("{}.{:03}", stall_us / 1000, stall_us % 1000);
    Process {
        rss_bytes: facts.rss_bytes,
        open_fds: facts.open_fds,
        loop_max_stall_ms: serde_json::from_str(&text).unwrap_or_else(|_| 0.into()),
    }
}
