//! The table of metrics: every figure that marketd reports about itself.
//!
//! # To add a metric
//!
//! 1. Count it where it happens: most counters are fields of `core::stats`, some of the market or of the
//!    process. `figures` says what a row can read.
//! 2. Add one row here: its key in `/api/v1/metrics`, its name at `/metrics` without `marketd_`, one
//!    sentence, and how it is read. A row with an empty key, or an empty name, is not on that page.
//! 3. If it has a key: add its value to the example of `/api/v1/metrics` in `openapi.json`. If it has a
//!    name: `UPDATE_DOCS=1 cargo test --test docs` adds its line to the table in `src/docs/operations.md`.
//!    Its key goes into the shape of the page in `tests/loopback/contract.rs`, too. Tests fail until all
//!    are there. Both pages and the schema in `/openapi.json` are made from the rows.
//!
//! Rows appear in the order of the table. Names follow the rules of Prometheus: base units (seconds,
//! bytes), `_total` on counters, labels from closed sets only (sources, statuses, reasons).

use super::figures::Figures;
use crate::core::api::endpoint::Endpoint;
use crate::core::{CloseReason, SourceState};
use crate::durations::Histogram;
use crate::time::UnixMs;
use ReadMetric::*;

/// A row.
pub struct Metric {
    /// Its key in `/api/v1/metrics`. Empty if it is not there.
    pub key: &'static str,
    /// Its name at `/metrics` without `marketd_`. Empty if it is not there.
    pub name: &'static str,
    /// Its type at `/metrics`.
    pub kind: &'static str,
    /// What it means, in one sentence.
    pub help: &'static str,
    /// How it is read.
    pub read: ReadMetric,
}

/// How a metric is read, and its type. Durations and times are in seconds at `/metrics` and in milliseconds
/// in JSON.
pub enum ReadMetric {
    /// A number of things or bytes.
    Count(fn(&Figures<'_>) -> u64),
    /// The same; null if it is not known.
    MaybeCount(fn(&Figures<'_>) -> Option<u64>),
    /// Yes or no.
    Flag(fn(&Figures<'_>) -> bool),
    /// A time.
    Time(fn(&Figures<'_>) -> UnixMs),
    /// The same; null if it has never happened.
    MaybeTime(fn(&Figures<'_>) -> Option<UnixMs>),
    /// Milliseconds.
    Millis(fn(&Figures<'_>) -> u64),
    /// The same; null if there are none.
    MaybeMillis(fn(&Figures<'_>) -> Option<u64>),
    /// Microseconds.
    Micros(fn(&Figures<'_>) -> u64),
    /// A text. At `/metrics`, a label of the figure 1.
    Text(for<'a> fn(&Figures<'a>) -> &'a str),
    /// The same; null if there is none.
    MaybeText(for<'a> fn(&Figures<'a>) -> Option<&'a str>),
    /// One of these words. At `/metrics`, a label of as many figures, of which one is 1.
    OneOf(&'static [&'static str], fn(&Figures<'_>) -> &'static str),
    /// A number for each value of this label. The values never change.
    Each(&'static str, fn(&Figures<'_>, TellCount<'_>)),
    /// Histograms, each with the labels that distinguish it from others of the name.
    Durations(fn(&Figures<'_>, TellDurations<'_>)),
    /// An object of these.
    Object(&'static [Metric]),
    /// An object of these, if this holds; else null, and nothing at `/metrics`.
    MaybeObject(fn(&Figures<'_>) -> bool, &'static [Metric]),
    /// A list with an object of these for each source.
    Sources(&'static [Metric]),
}

/// Takes the values of a label, each with its number.
pub type TellCount<'a> = &'a mut dyn FnMut(&str, u64);

/// Takes labels, each with its histogram.
pub type TellDurations<'a> = &'a mut dyn FnMut(&str, &Histogram);

/// All rows.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    counter("quotesCollected", "quotes_collected_total", "Tickers applied.", Count(|it| it.quotes.collected)),
    gauge("cachedEntries", "quotes_cached", "Quotes held.", Count(|it| it.quotes.cached as u64)),
    gauge("chartsStored", "charts_stored",
        "Candle series stored: in the history file, or in memory where there is none.",
        Count(|it| it.stored().0)),
    gauge("candlesStored", "candles_stored",
        "Closed candles stored: in the history file, or in memory where there is none.",
        Count(|it| it.stored().1)),
    gauge("startedAt", "start_time_seconds", "When marketd started.", Time(|it| it.view.status.started.unix)),
    gauge("uptimeMs", "uptime_seconds", "Time since the start.",
        Millis(|it| it.view.now.mono.since(it.view.status.started.mono).as_millis() as u64)),
    gauge("version", "build_info", "Version of marketd.", Text(|_| env!("CARGO_PKG_VERSION"))),
    object("quotes", "Quotes of all sources.", QUOTES),
    object("charts", "Candles in memory.", CHARTS),
    object("history", "The history file.", HISTORY),
    sources("upstreams", "The sources.", SOURCE),
    shown("cluster", "The cluster; null where there is none.",
        MaybeObject(|it| it.view.status.cluster.is_some(), CLUSTER)),
    object("http", "Clients and their requests.", HTTP),
    object("streams", "Streams of clients.", STREAMS),
    object("process", "The process and its event loop.", PROCESS),
];

#[rustfmt::skip]
const QUOTES: &[Metric] = &[
    shown("collected", "Tickers applied.", Count(|it| it.quotes.collected)),
    counter("rejected", "quotes_rejected_total", "Tickers refused.", Count(|it| it.quotes.rejected)),
    gauge("stale", "quotes_stale", "Quotes held that are stale.", Count(|it| it.quotes.stale as u64)),
    gauge("symbols", "quote_symbols", "Symbols with a quote.", Count(|it| it.quotes.symbols as u64)),
    shown("failovers", "Quotes that another source took over.", Count(|it| it.sum(|of| of.failovers))),
    shown("returns", "Quotes that came back to the first source.", Count(|it| it.sum(|of| of.returns))),
];

#[rustfmt::skip]
const CHARTS: &[Metric] = &[
    gauge("series", "chart_series", "Candle series followed.", Count(|it| it.charts.series as u64)),
    gauge("candles", "chart_candles", "Closed candles held.", Count(|it| it.charts.candles as u64)),
    counter("written", "chart_candles_written_total", "Candles put into memory.",
        Count(|it| it.charts.written)),
    counter("updated", "chart_candles_updated_total", "Candles revised.", Count(|it| it.charts.updated)),
    gauge("gaps", "chart_gaps", "Slots without a candle among those answered.", Count(|it| it.charts.gaps)),
    counter("evicted", "chart_candles_evicted_total", "Candles dropped.", Count(|it| it.charts.evicted)),
    gauge("bytes", "chart_bytes", "Bytes of rendered candles.", Count(|it| it.charts.bytes as u64)),
    counter("persistErrors", "chart_persist_errors_total", "Writes to the history file that failed.",
        Count(|it| it.history.persist_errors)),
];

#[rustfmt::skip]
const HISTORY: &[Metric] = &[
    shown("enabled", "Whether there is to be one.", Flag(|it| it.history.enabled)),
    shown("usable", "Whether the history file can be used; no where there is none.",
        Flag(|it| it.usable().unwrap_or(false))),
    gauge("", "history_usable", "Whether the history file can be used. Left out where there is none.",
        MaybeCount(|it| it.usable().map(u64::from))),
    gauge("", "history_write_failed",
        "Whether the last write of history failed, or has been under way for more than 10 seconds.",
        Flag(|it| it.history.write_failed)),
    counter("inserted", "history_candles_inserted_total", "Candles written to the history file.",
        Count(|it| it.history.inserted)),
    counter("updated", "history_candles_updated_total", "Candles revised in the history file.",
        Count(|it| it.history.updated)),
    counter("evicted", "history_candles_evicted_total", "Candles that left the history file for their age.",
        Count(|it| it.history.evicted)),
    gauge("bytes", "history_bytes", "Size of the history file.", Count(|it| it.history.bytes)),
];

#[rustfmt::skip]
const SOURCE: &[Metric] = &[
    shown("id", "Its id in the configuration.", Text(|it| &it.source().id)),
    gauge("state", "source_state",
        "The state of the source. `starting`: no quotes have come yet, and the last request did not fail. \
         `up`: quotes are served. `backoff`: a request failed, and the next one waits. `down`: the same, and \
         no quotes have come for `staleAfterMs`, counted from the start where none ever came.",
        OneOf(&SourceState::NAMES, |it| it.source().state.name())),
    counter("polls", "source_polls_total", "Requests sent, of every kind.", Count(|it| it.source().polls)),
    counter("ok", "source_successes_total", "Requests answered well.", Count(|it| it.source().ok)),
    counter("errors", "source_errors_total", "Requests that failed.", Count(|it| it.source().errors)),
    counter("timeouts", "source_timeouts_total", "Requests that timed out.",
        Count(|it| it.source().timeouts)),
    counter("rateLimited", "source_rate_limited_total", "Requests that the exchange refused as too many.",
        Count(|it| it.source().rate_limited)),
    gauge("lastSuccessAt", "source_last_success_timestamp_seconds", "When a request was last answered well.",
        MaybeTime(|it| it.source().last_success_at)),
    gauge("lastErrorAt", "source_last_error_timestamp_seconds", "When a request last failed.",
        MaybeTime(|it| it.source().last_error_at)),
    shown("lastError", "Why it failed.", MaybeText(|it| it.source().last_error.as_deref())),
    gauge("lastLatencyMs", "source_last_latency_seconds", "Duration of the last request answered well.",
        MaybeMillis(|it| it.source().last_latency_ms)),
    counter("bytesReceived", "source_received_bytes_total", "Bytes received.",
        Count(|it| it.source().bytes_received)),
    gauge("nextPollAt", "source_next_poll_timestamp_seconds", "When quotes are polled next.",
        MaybeTime(|it| it.source().next_poll_at)),
    gauge("backoffUntil", "source_backoff_until_timestamp_seconds", "Until when nothing is asked.",
        MaybeTime(|it| it.source().backoff_until)),
    counter("", "source_items_rejected_total", "Items of responses that were refused.",
        Count(|it| it.source().rejected)),
    counter("budgetSpent", "source_budget_spent_total", "Units of the exchange's limit spent.",
        Count(|it| it.source().budget_spent)),
    gauge("budgetLeft", "source_budget_left", "Units of the exchange's limit that may be spent at once.",
        Count(|it| it.source().budget_left)),
    counter("failovers", "source_failovers_total", "Symbols that another source took over.",
        Count(|it| it.source().failovers)),
    counter("returns", "source_returns_total", "Symbols that came back to the source.",
        Count(|it| it.source().returns)),
    gauge("stale", "source_quotes_stale", "Quotes of the source that are stale.",
        Count(|it| it.view.market.quotes.stale_of(it.id()) as u64)),
    gauge("frozen", "source_frozen",
        "Whether its polls succeed and none of its figures has changed for `frozenAfterMs`.",
        Flag(|it| it.view.market.quotes.frozen(it.id()))),
    histogram("source_poll_duration_seconds",
        "From a request's first byte to its response's last, of those answered well.",
        Durations(|it, tell| tell("", &it.source().latencies))),
    object("backfill", "Candles of the past, fetched unasked.", BACKFILL),
];

#[rustfmt::skip]
const BACKFILL: &[Metric] = &[
    gauge("wanted", "source_backfill_wanted_candles", "Candles of history that the configuration wants.",
        Count(|it| it.source().backfill.wanted)),
    gauge("done", "source_backfill_done_candles", "Candles of history that are known.",
        Count(|it| it.source().backfill.done)),
    shown("perMinute", "Candles fetched in the last minute; 0 when there is nothing to fetch.",
        Count(|it| it.source().backfill.per_minute)),
    shown("endsAt", "When all are known at this pace.", MaybeTime(|it| it.source().backfill.ends_at)),
];

#[rustfmt::skip]
const CLUSTER: &[Metric] = &[
    shown("node", "The name of this node.", Text(|it| &it.cluster().node)),
    shown("engine", "Whether the engine that the nodes share can be used.",
        OneOf(&["up", "down"], |it| if it.cluster().is_up { "up" } else { "down" })),
    gauge("", "cluster_engine_up", "Whether the engine that the nodes share can be used.",
        Flag(|it| it.cluster().is_up)),
    counter("", "cluster_published_total", "Entries, lists and requests that the other nodes were told.",
        Count(|it| it.cluster().published)),
    counter("", "cluster_dropped_total", "What the other nodes could not be told.",
        Count(|it| it.cluster().dropped)),
    counter("", "cluster_applied_total", "Entries of other nodes that were applied.",
        Count(|it| it.cluster().applied)),
    counter("", "cluster_fenced_total", "Entries that the engine refused, because the lease was lost.",
        Count(|it| it.cluster().fenced)),
    sources("sources", "What this node does for each source.", CLUSTER_SOURCE),
];

#[rustfmt::skip]
const CLUSTER_SOURCE: &[Metric] = &[
    shown("id", "Its id in the configuration.", Text(|it| &it.source().id)),
    shown("role", "Whether this node collects it, or follows the node that does.",
        OneOf(&["collector", "follower"], |it| {
            if it.cluster_source().collects { "collector" } else { "follower" }
        })),
    gauge("", "cluster_collector", "Whether this node collects the source.",
        Flag(|it| it.cluster_source().collects)),
    gauge("epoch", "cluster_epoch", "The newest lease of the source that this node knows.",
        Count(|it| it.cluster_source().epoch)),
    gauge("lagMs", "cluster_lag_seconds", "Age of the last entry of its collector when it was applied.",
        MaybeMillis(|it| it.cluster_source().lag_ms)),
];

#[rustfmt::skip]
const HTTP: &[Metric] = &[
    counter("requests", "http_requests_total", "Requests read.", Count(|it| it.http.requests)),
    gauge("inFlight", "http_requests_in_flight", "Requests being answered.", Count(|it| it.http.in_flight)),
    counter("status", "http_responses_total", "Responses by class of status.",
        Each("class", |it, tell| {
            let [success, redirection, client_error, server_error] = it.http.classes;
            tell("2xx", success);
            tell("3xx", redirection);
            tell("4xx", client_error);
            tell("5xx", server_error);
        })),
    counter("notModified", "http_not_modified_total", "Responses 304.", Count(|it| it.http.not_modified)),
    counter("badRequests", "http_bad_requests_total", "Requests not understood.",
        Count(|it| it.http.bad_requests)),
    counter("timeouts", "http_timeouts_total", "Connections closed by a deadline while they were in use.",
        Count(|it| it.http.timeouts)),
    counter("rejected", "http_rejected_total", "Connections turned away.", Count(|it| it.http.rejected)),
    counter("rateLimited", "http_rate_limited_total", "Requests turned back by the rate limit.",
        Count(|it| it.http.rate_limited)),
    counter("", "http_rate_limit_forgotten_total", "Client addresses that the rate limit forgot for others.",
        Count(|it| it.http.rates_forgotten)),
    gauge("bytesPending", "http_pending_bytes", "Bytes of responses that clients have not taken.",
        Count(|it| it.http.pending)),
    gauge("", "http_held_bytes", "Bytes of requests that are not whole or not answered.",
        Count(|it| it.http.held)),
    counter("bytesOut", "http_sent_bytes_total", "Bytes sent.", Count(|it| it.http.bytes_out)),
    gauge("connectionsOpen", "http_connections", "Open client connections.", Count(|it| it.http.open)),
    gauge("", "http_packed_bytes", "Bytes of compressed bodies that are kept.",
        Count(|it| it.view.status.packed_bytes as u64)),
    counter("connectionsTotal", "http_connections_total", "Client connections since the start.",
        Count(|it| it.http.total)),
    counter("", "http_closes_total", "Closed client connections by reason.",
        Each("reason", |it, tell| {
            CloseReason::all().for_each(|reason| tell(reason.name(), it.http.closes[reason as usize]));
        })),
    histogram("http_request_duration_seconds",
        "From a request's last byte to its response; within one turn of the loop, that turn.",
        Durations(|it, tell| {
            for (endpoint, class, histogram) in it.http.durations.counted() {
                let labels = format!("route=\"{}\",class=\"{class}xx\"", Endpoint::NAMES[endpoint]);
                tell(&labels, histogram);
            }
        })),
];

#[rustfmt::skip]
const STREAMS: &[Metric] = &[
    gauge("open", "streams_open", "Open streams.", Count(|it| it.streams.open)),
    counter("opened", "streams_opened_total", "Streams since the start.", Count(|it| it.streams.opened)),
    counter("refused", "streams_refused_total", "Streams refused at a limit.",
        Count(|it| it.streams.refused)),
    counter("events", "stream_events_total", "Events written to streams.", Count(|it| it.streams.events)),
    counter("conflated", "stream_conflated_total",
        "Changes that a reader was not told of, because a newer one came first.",
        Count(|it| it.streams.conflated)),
    counter("closes", "stream_closes_total", "Ended streams by the reason that their connection closed.",
        Each("reason", |it, tell| {
            let closes = it.streams.closes;
            CloseReason::all().for_each(|reason| tell(reason.name(), closes[reason as usize]));
        })),
];

#[rustfmt::skip]
const PROCESS: &[Metric] = &[
    gauge("rssBytes", "resident_memory_bytes", "Resident memory.", MaybeCount(|it| it.facts.rss_bytes)),
    gauge("openFds", "open_fds", "Open file descriptors.", MaybeCount(|it| it.facts.open_fds)),
    // Under the names that every process has (prometheus.io, "Writing client libraries").
    counter("", "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
        Micros(|it| it.facts.cpu_us)),
    gauge("", "process_resident_memory_bytes", "Resident memory size in bytes.",
        MaybeCount(|it| it.facts.rss_bytes)),
    gauge("", "process_open_fds", "Number of open file descriptors.", MaybeCount(|it| it.facts.open_fds)),
    gauge("", "process_max_fds", "Maximum number of open file descriptors.",
        MaybeCount(|it| it.facts.max_fds)),
    gauge("", "process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
        Time(|it| it.view.status.started.unix)),
    gauge("", "queue_depth", "What waits for a later turn of the loop, at the end of the last one.",
        Each("queue", |it, tell| {
            let queues = &it.view.status.queues;
            tell("clients", queues.clients as u64);
            tell("upstreams", queues.upstreams as u64);
            tell("answers_held", queues.held as u64);
            tell("answers_running", queues.running as u64);
            tell("bodies_packing", queues.packing as u64);
            tell("polls_staged", queues.staged as u64);
        })),
    histogram("loop_turn_seconds", "Turns of the event loop, from wake-up to sleep.",
        Durations(|it, tell| tell("", &it.view.status.turns.durations))),
    gauge("loopMaxStallMs", "loop_max_stall_seconds", "Longest turn of the last minute.",
        Micros(|it| u64::from(it.view.status.turns.longest_us(it.view.now)))),
];

type Str = &'static str;

const fn metric(key: Str, name: Str, kind: Str, help: Str, read: ReadMetric) -> Metric {
    Metric { key, name, kind, help, read }
}

const fn counter(key: Str, name: Str, help: Str, read: ReadMetric) -> Metric {
    metric(key, name, "counter", help, read)
}

const fn gauge(key: Str, name: Str, help: Str, read: ReadMetric) -> Metric {
    metric(key, name, "gauge", help, read)
}

const fn histogram(name: Str, help: Str, read: ReadMetric) -> Metric {
    metric("", name, "histogram", help, read)
}

/// A row of `/api/v1/metrics` alone.
const fn shown(key: Str, help: Str, read: ReadMetric) -> Metric {
    metric(key, "", "", help, read)
}

const fn object(key: Str, help: Str, rows: &'static [Metric]) -> Metric {
    shown(key, help, Object(rows))
}

const fn sources(key: Str, help: Str, rows: &'static [Metric]) -> Metric {
    shown(key, help, Sources(rows))
}
