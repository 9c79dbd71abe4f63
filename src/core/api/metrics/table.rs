//! The table of metrics: every figure that marketd reports about itself.
//!
//! # To add a metric
//!
//! 1. Count it where it happens, mostly in a field of `core::stats`. All responses pass `count` of
//!    `core/clients/responses.rs`: kept, deferred and compressed ones, and errors. It knows the endpoint, the
//!    status and the duration. What else it needs comes through `complete`: `respond`, `write` (of deferred
//!    and compressed responses and of streams) and `fail` have a `Responder`, `repeat` has the bytes of a
//!    kept response. What is known earlier is counted where it is known: `requests` where a response begins
//!    (`respond`, `repeat`, `fail`), refusals in `admission.rs` and `accepting.rs`. It must be cheap:
//!    `scripts/instructions.sh` (with valgrind) has a limit for each kind of request. An endpoint only reads,
//!    so it cannot count. Clients of the demo exchange (`Service::Demo`) count for nothing.
//! 2. Add a row: its key in `/api/v1/metrics`, its name at `/metrics` without `marketd_` (unless it begins
//!    with `process_`), one sentence, and how it is read from [`Figures`]. An empty key, or an empty name,
//!    leaves it out of that page.
//! 3. If it has a key, add its value to the example of `/api/v1/metrics` in `openapi.json`, in the same
//!    place. `cargo test --test daemon loopback::described` compares it.
//! 4. Let `UPDATE_DOCS=1 cargo test --lib metrics` add it to the `schema.json` beside this file and
//!    to `src/docs/operations.md`. Add a line to `src/docs/changelog.md` before `Exchanges:`.
//!    `src/page/service.js` shows the figures that people look at first; most are not there.
//! 5. Test what it counts: of requests in `tests/loopback/http.rs`, otherwise beside the code that counts. If
//!    responses for quotes are counted, request the same quote five times: the fifth response is the first
//!    one that the head cache sends. `cargo test --test daemon -- loopback:: docs::` runs the tests.
//! 6. Run `scripts/check.sh`: format, lints, and all tests.
//!
//! Responses of each endpoint are counted already, by its route, in `http_request_duration_seconds_count`.
//!
//! Both pages, and the schema in `/openapi.json`, are made from the rows.
//!
//! Rows appear in the order of the table. Names follow the rules of Prometheus: base units (seconds,
//! bytes), `_total` on counters and on nothing else, labels from closed sets only (sources, statuses,
//! reasons).

use super::figures::Figures;
use crate::core::api::endpoint::Endpoint;
use crate::core::{CloseReason, SourceState};
use crate::durations::Histogram;
use crate::exchange::RequestKind;
use crate::time::UnixMs;
use ReadMetric::*;

/// A row.
pub struct Metric {
    /// Its key in `/api/v1/metrics`. Empty if it is not there.
    pub key: &'static str,
    /// Its name at `/metrics` without `marketd_`. Empty if it is not there.
    pub name: &'static str,
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
    /// A count; null if it is not known.
    MaybeCount(fn(&Figures<'_>) -> Option<u64>),
    /// Yes or no.
    Flag(fn(&Figures<'_>) -> bool),
    /// A time.
    Time(fn(&Figures<'_>) -> UnixMs),
    /// A time; null if it has never happened.
    MaybeTime(fn(&Figures<'_>) -> Option<UnixMs>),
    /// Milliseconds.
    Millis(fn(&Figures<'_>) -> u64),
    /// Milliseconds; null if there are none.
    MaybeMillis(fn(&Figures<'_>) -> Option<u64>),
    /// Microseconds.
    Micros(fn(&Figures<'_>) -> u64),
    /// A text. At `/metrics`, a label of the figure 1.
    Text(for<'a> fn(&Figures<'a>) -> &'a str),
    /// A text; null if there is none.
    MaybeText(for<'a> fn(&Figures<'a>) -> Option<&'a str>),
    /// One of these words. At `/metrics`, each word is the label of a figure: 1 for this word, 0 for others.
    OneOf(&'static [&'static str], fn(&Figures<'_>) -> &'static str),
    /// A number for each value of this label. The values never change.
    Each(&'static str, fn(&Figures<'_>) -> Vec<(&'static str, u64)>),
    /// Histograms, each with the labels that distinguish it from others of the name.
    Durations(for<'a> fn(&Figures<'a>) -> Vec<(String, &'a Histogram)>),
    /// An object of these metrics.
    Object(&'static [Metric]),
    /// An object of these metrics, if this holds; else null, and nothing at `/metrics`.
    MaybeObject(fn(&Figures<'_>) -> bool, &'static [Metric]),
    /// A list with an object of these metrics for each source.
    Sources(&'static [Metric]),
}

/// All rows.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    metric("quotesCollected", "quotes_collected_total", "Tickers applied.", Count(|it| it.quotes.collected)),
    metric("cachedEntries", "quotes_cached", "Quotes held.", Count(|it| it.quotes.cached as u64)),
    metric("chartsStored", "charts_stored",
        "Candle series stored: in the history file, or in memory where there is none.",
        Count(|it| it.stored().0)),
    metric("candlesStored", "candles_stored",
        "Closed candles stored: in the history file, or in memory where there is none.",
        Count(|it| it.stored().1)),
    metric("startedAt", "start_time_seconds", "When marketd started.",
        Time(|it| it.view.status.started.unix)),
    metric("uptimeMs", "uptime_seconds", "Time since the start.",
        Millis(|it| it.view.now().mono.since(it.view.status.started.mono).as_millis() as u64)),
    metric("version", "build_info", "Version of marketd.", Text(|_| env!("CARGO_PKG_VERSION"))),
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
    metric("rejected", "quotes_rejected_total", "Tickers refused.", Count(|it| it.quotes.rejected)),
    metric("stale", "quotes_stale", "Quotes held that are stale.", Count(|it| it.quotes.stale as u64)),
    metric("symbols", "quote_symbols", "Symbols with a quote.", Count(|it| it.quotes.symbols as u64)),
    shown("failovers", "Quotes that another source took over.", Count(|it| it.sum(|of| of.failovers))),
    shown("returns", "Quotes that came back to the first source.", Count(|it| it.sum(|of| of.returns))),
];

#[rustfmt::skip]
const CHARTS: &[Metric] = &[
    metric("series", "chart_series", "Candle series followed.", Count(|it| it.charts.series as u64)),
    metric("candles", "chart_candles", "Closed candles held.", Count(|it| it.charts.candles as u64)),
    metric("written", "chart_candles_written_total", "Candles put into memory.",
        Count(|it| it.charts.written)),
    metric("updated", "chart_candles_updated_total", "Candles revised.", Count(|it| it.charts.updated)),
    metric("gaps", "chart_gaps", "Covered slots without a candle.", Count(|it| it.charts.gaps)),
    metric("evicted", "chart_candles_evicted_total", "Candles dropped.", Count(|it| it.charts.evicted)),
    metric("bytes", "chart_bytes", "Bytes of rendered candles.", Count(|it| it.charts.bytes as u64)),
    metric("persistErrors", "chart_persist_errors_total", "Writes to the history file that failed.",
        Count(|it| it.history.persist_errors)),
];

#[rustfmt::skip]
const HISTORY: &[Metric] = &[
    shown("enabled", "Whether a history file is configured.", Flag(|it| it.history.enabled)),
    shown("usable", "Whether the history file can be used; false if none is configured.",
        Flag(|it| it.usable().unwrap_or(false))),
    metric("", "history_usable", "Whether the history file can be used. Absent if none is configured.",
        MaybeCount(|it| it.usable().map(u64::from))),
    metric("", "history_write_failed",
        "Whether the last write of history failed, or has been under way for more than 10 seconds.",
        Flag(|it| it.history.write_failed)),
    metric("inserted", "history_candles_inserted_total", "Candles written to the history file.",
        Count(|it| it.history.inserted)),
    metric("updated", "history_candles_updated_total", "Candles revised in the history file.",
        Count(|it| it.history.updated)),
    metric("evicted", "history_candles_evicted_total", "Candles that left the history file for their age.",
        Count(|it| it.history.evicted)),
    metric("bytes", "history_bytes", "Size of the history file without its free pages.",
        Count(|it| it.history.bytes)),
];

#[rustfmt::skip]
const SOURCE: &[Metric] = &[
    shown("id", "The id of the source in the configuration.", Text(|it| &it.source().id)),
    metric("state", "source_state",
        "The state of the source. `starting`: no quotes have come yet, and the last request did not fail. \
         `up`: quotes are served. `backoff`: a request failed, and the next one waits. `down`: as `backoff`, \
         and no quotes have come for `staleAfterMs`, counted from the start if none ever came.",
        OneOf(SourceState::NAMES, |it| it.source().state.name())),
    metric("polls", "source_polls_total", "Requests sent, of every kind.", Count(|it| it.source().polls)),
    metric("ok", "source_successes_total", "Requests answered well.", Count(|it| it.source().ok)),
    metric("errors", "source_errors_total", "Requests that failed.", Count(|it| it.source().errors)),
    metric("timeouts", "source_timeouts_total", "Requests that timed out.",
        Count(|it| it.source().timeouts)),
    metric("rateLimited", "source_rate_limited_total", "Requests that the exchange refused as too many.",
        Count(|it| it.source().rate_limited)),
    metric("lastSuccessAt", "source_last_success_timestamp_seconds", "When a request was last answered well.",
        MaybeTime(|it| it.source().last_success_at)),
    metric("lastErrorAt", "source_last_error_timestamp_seconds", "When a request last failed.",
        MaybeTime(|it| it.source().last_error_at)),
    shown("lastError", "Why that request failed.", MaybeText(|it| it.source().last_error.as_deref())),
    metric("lastLatencyMs", "source_last_latency_seconds", "Duration of the last request answered well.",
        MaybeMillis(|it| it.source().last_latency_ms)),
    metric("bytesReceived", "source_received_bytes_total", "Bytes received.",
        Count(|it| it.source().bytes_received)),
    metric("bytesSent", "source_sent_bytes_total", "Bytes of requests.", Count(|it| it.source().bytes_sent)),
    shown("plan",
        "How many tickers a request for quotes brings: `all`, `several` or `one`. Empty until one is due.",
        Text(|it| it.source().plan)),
    metric("nextPollAt", "source_next_poll_timestamp_seconds", "When quotes are polled next.",
        MaybeTime(|it| it.source().next_poll_at)),
    metric("backoffUntil", "source_backoff_until_timestamp_seconds", "Until when nothing is asked.",
        MaybeTime(|it| it.source().backoff_until)),
    metric("", "source_items_rejected_total", "Items of responses that were refused.",
        Count(|it| it.source().rejected)),
    metric("budgetSpent", "source_budget_spent_total", "Units of the exchange's limit spent.",
        Count(|it| it.source().budget_spent)),
    metric("budgetLeft", "source_budget_left", "Units of the exchange's limit that may be spent at once.",
        Count(|it| it.source().budget_left)),
    metric("failing", "source_failing",
        "Failures in a row by kind of request, as far as they made the kind wait; 0 if it does not fail.",
        Each("kind", |it| RequestKind::NAMES.iter().copied().zip(it.source().failing).collect())),
    metric("roundMs", "source_round_seconds",
        "Duration of the last round of quotes, or of the running one if longer; 0 if all come at once.",
        Millis(|it| it.source().round_ms.unwrap_or(0))),
    metric("spentByOthers", "source_budget_spent_by_others",
        "Units of the exchange's limit that others have spent within its period, if these are many; else 0.",
        Count(|it| it.source().spent_by_others.unwrap_or(0))),
    metric("failovers", "source_failovers_total", "Symbols that another source took over.",
        Count(|it| it.source().failovers)),
    metric("returns", "source_returns_total", "Symbols that came back to the source.",
        Count(|it| it.source().returns)),
    metric("stale", "source_quotes_stale", "Quotes of the source that are stale.",
        Count(|it| it.view.market.quotes.stale_of(it.id()) as u64)),
    metric("frozen", "source_frozen",
        "Whether its polls succeed and none of its figures has changed for `frozenAfterMs`.",
        Flag(|it| it.view.market.quotes.frozen(it.id()))),
    metric("clockInDoubt", "source_clock_in_doubt",
        "Whether the exchange's time is in doubt, so that no candle closes.",
        Flag(|it| it.source().clock_doubt.is_some())),
    metric("", "source_poll_duration_seconds",
        "From a request's first byte to its response's last, of requests answered well.",
        Durations(|it| vec![(String::new(), &it.source().latencies)])),
    object("backfill", "Backfill: candles of the past that are fetched without a request.", BACKFILL),
];

#[rustfmt::skip]
const BACKFILL: &[Metric] = &[
    metric("wanted", "source_backfill_wanted_candles",
        "Candles of history to be read: `backfill`, and what has come since a series began, at most `keep`.",
        Count(|it| it.source().backfill.wanted)),
    metric("done", "source_backfill_done_candles", "Candles of history that are known.",
        Count(|it| it.source().backfill.done)),
    shown("perMinute", "Candles fetched in the last minute; 0 when there is nothing to fetch.",
        Count(|it| it.source().backfill.per_minute)),
    shown("endsAt", "When all wanted candles are known at this pace.",
        MaybeTime(|it| it.source().backfill.ends_at)),
];

#[rustfmt::skip]
const CLUSTER: &[Metric] = &[
    shown("node", "The name of this node.", Text(|it| &it.cluster().node)),
    shown("engine", "Whether the engine that the nodes share can be used.",
        OneOf(&["up", "down"], |it| if it.cluster().is_up { "up" } else { "down" })),
    metric("", "cluster_engine_up", "Whether the engine that the nodes share can be used.",
        Flag(|it| it.cluster().is_up)),
    metric("", "cluster_published_total", "Entries, lists and requests that the other nodes were told.",
        Count(|it| it.cluster().published)),
    metric("", "cluster_dropped_total", "Entries, lists and requests that the other nodes could not be told.",
        Count(|it| it.cluster().dropped)),
    metric("", "cluster_applied_total", "Entries of other nodes that were applied.",
        Count(|it| it.cluster().applied)),
    metric("", "cluster_fenced_total", "Entries that the engine refused, because the lease was lost.",
        Count(|it| it.cluster().fenced)),
    sources("sources", "What this node does for each source.", CLUSTER_SOURCE),
];

#[rustfmt::skip]
const CLUSTER_SOURCE: &[Metric] = &[
    shown("id", "The id of the source in the configuration.", Text(|it| &it.source().id)),
    shown("role", "Whether this node collects the source for all, follows, or collects it for itself.",
        OneOf(&["collector", "follower", "alone"], |it| it.cluster_source().role)),
    metric("", "cluster_collector", "Whether this node collects the source.",
        Flag(|it| it.cluster_source().role == "collector")),
    metric("", "cluster_alone", "Whether this node collects the source without a lease.",
        Flag(|it| it.cluster_source().role == "alone")),
    metric("epoch", "cluster_epoch", "The newest lease of the source that this node knows.",
        Count(|it| it.cluster_source().epoch)),
    metric("lagMs", "cluster_lag_seconds", "Age of the last entry of its collector when it was applied.",
        MaybeMillis(|it| it.cluster_source().lag_ms)),
];

#[rustfmt::skip]
const HTTP: &[Metric] = &[
    metric("requests", "http_requests_total", "Requests that got a response, also unreadable ones.",
        Count(|it| it.http.requests)),
    metric("inFlight", "http_requests_in_flight", "Requests being answered.",
        Count(|it| it.http.held.in_flight)),
    metric("status", "http_responses_total", "Responses by class of status.",
        Each("class", |it| ["2xx", "3xx", "4xx", "5xx"].into_iter().zip(it.http.classes).collect())),
    metric("notModified", "http_not_modified_total", "Responses 304.", Count(|it| it.http.not_modified)),
    metric("badRequests", "http_bad_requests_total", "Requests not understood.",
        Count(|it| it.http.bad_requests)),
    metric("timeouts", "http_timeouts_total", "Connections closed by a deadline while they were in use.",
        Count(|it| it.http.timeouts)),
    metric("rejected", "http_rejected_total",
        "Requests refused because of too many connections, and connections dropped at once.",
        Count(|it| it.http.rejected)),
    metric("rateLimited", "http_rate_limited_total", "Requests turned back by the rate limit.",
        Count(|it| it.http.rate_limited)),
    metric("", "http_rate_limit_forgotten_total", "Client addresses that the rate limit forgot for others.",
        Count(|it| it.http.rates_forgotten)),
    metric("bytesPending", "http_pending_bytes", "Bytes of responses that clients have not taken.",
        Count(|it| it.http.held.pending)),
    metric("", "http_making_bytes",
        "Bytes of responses that are being made in several turns.", Count(|it| it.http.held.making)),
    metric("", "http_stream_bytes", "Bytes that streams take besides their unsent bytes.",
        Count(|it| it.http.held.streams)),
    metric("", "http_held_bytes", "Bytes of requests that are not whole or not answered.",
        Count(|it| it.http.held.requests)),
    metric("bytesOut", "http_sent_bytes_total", "Bytes sent.", Count(|it| it.http.bytes_out)),
    metric("connectionsOpen", "http_connections_open", "Open client connections.", Count(|it| it.http.open)),
    metric("", "http_packed_bytes", "Bytes of compressed bodies that are kept.",
        Count(|it| it.view.compressed.bytes as u64)),
    metric("", "http_joined_bytes", "Bytes of charts that are kept joined into one buffer (an upper bound).",
        Count(|it| it.view.status.joined_bytes as u64)),
    metric("connectionsTotal", "http_connections_total", "Client connections since the start.",
        Count(|it| it.http.total)),
    metric("", "http_closes_total", "Closed client connections by reason.",
        Each("reason", |it| CloseReason::NAMES.iter().copied().zip(it.http.closes).collect())),
    metric("", "http_request_duration_seconds",
        "From a request's last byte to its response; if both are in one turn of the loop, the whole turn.",
        Durations(|it| {
            let labels = |endpoint, class| {
                format!("route=\"{}\",class=\"{class}xx\"", Endpoint::NAMES[endpoint])
            };
            let counted = it.http.durations.counted();
            counted.map(|(endpoint, class, it)| (labels(endpoint, class), it)).collect()
        })),
];

#[rustfmt::skip]
const STREAMS: &[Metric] = &[
    metric("open", "streams_open", "Open streams.", Count(|it| it.streams.open)),
    metric("opened", "streams_opened_total", "Streams since the start.", Count(|it| it.streams.opened)),
    metric("refused", "streams_refused_total", "Streams refused, at a limit or during the shutdown.",
        Count(|it| it.streams.refused)),
    metric("events", "stream_events_total", "Events written to streams.", Count(|it| it.streams.events)),
    metric("conflated", "stream_conflated_total",
        "Changes that a reader was not told of, because a newer one came first.",
        Count(|it| it.streams.conflated)),
    metric("closes", "stream_closes_total", "Ended streams by the reason that their connection closed.",
        Each("reason", |it| {
            CloseReason::NAMES.iter().copied().zip(it.streams.closes).collect()
        })),
];

#[rustfmt::skip]
const PROCESS: &[Metric] = &[
    metric("rssBytes", "resident_memory_bytes", "Resident memory.", MaybeCount(|it| it.facts.rss_bytes)),
    metric("openFds", "open_fds", "Open file descriptors.", MaybeCount(|it| it.facts.open_fds)),
    // Under the names that every process has (prometheus.io, "Writing client libraries").
    metric("", "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
        Micros(|it| it.facts.cpu_us)),
    metric("", "process_resident_memory_bytes", "Resident memory size in bytes.",
        MaybeCount(|it| it.facts.rss_bytes)),
    metric("", "process_open_fds", "Number of open file descriptors.", MaybeCount(|it| it.facts.open_fds)),
    metric("", "process_max_fds", "Maximum number of open file descriptors.",
        MaybeCount(|it| it.facts.max_fds)),
    metric("", "process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
        Time(|it| it.view.status.started.unix)),
    metric("", "queue_depth", "What waits for a later turn of the loop, at the end of the last one.",
        Each("queue", |it| {
            let queues = &it.view.status.queues;
            vec![
                ("clients", queues.clients as u64),
                ("upstreams", queues.upstreams as u64),
                ("answers_held", queues.waiting as u64),
                ("answers_running", queues.in_parts as u64),
                ("bodies_packing", queues.compressing as u64),
                ("polls_staged", queues.staged as u64),
            ]
        })),
    metric("", "loop_turn_seconds", "Turns of the event loop, from wake-up to sleep.",
        Durations(|it| vec![(String::new(), &it.view.status.turns.durations)])),
    metric("logLinesLost", "log_lines_lost_total",
        "Lines of the log that could not be written, and were lost.",
        Count(|it| it.view.status.log.lost)),
    metric("", "config_last_reload_successful",
        "1 if the last reload succeeded, or there was none; else 0.",
        Flag(|it| it.view.status.reloads.refused_at.is_none())),
    metric("", "config_reloads_total", "Configurations that were read again.",
        Each("result", |it| {
            let reloads = &it.view.status.reloads;
            vec![("taken", reloads.taken), ("refused", reloads.refused)]
        })),
    metric("loopMaxStallMs", "loop_max_stall_seconds", "Longest turn of the last minute.",
        Micros(|it| u64::from(it.view.status.turns.longest_us(it.view.now())))),
];

type Str = &'static str;

const fn metric(key: Str, name: Str, help: Str, read: ReadMetric) -> Metric {
    Metric { key, name, help, read }
}

/// A row of `/api/v1/metrics` alone.
const fn shown(key: Str, help: Str, read: ReadMetric) -> Metric {
    metric(key, "", help, read)
}

const fn object(key: Str, help: Str, rows: &'static [Metric]) -> Metric {
    shown(key, help, Object(rows))
}

const fn sources(key: Str, help: Str, rows: &'static [Metric]) -> Metric {
    shown(key, help, Sources(rows))
}

#[cfg(test)]
mod tests {
    use super::super::{Page, write_rows};
    use super::*;
    use crate::core::api::view::View;
    use crate::core::testing::{NOW, config_of, context};
    use crate::json::Object;
    use std::collections::BTreeSet;

    /// The rules of `promtool check metrics`, and those of the naming of metrics. The type follows from the
    /// ending `_total`.
    #[test]
    fn names_and_sentences_hold_to_the_rules_of_prometheus() {
        let (mut families, mut lists) = (BTreeSet::new(), vec![METRICS]);
        while let Some(rows) = lists.pop() {
            for Metric { name, help, read, .. } in rows {
                if let Object(rows) | MaybeObject(_, rows) | Sources(rows) = read {
                    lists.push(rows);
                } else if !name.is_empty() {
                    // OpenMetrics calls a counter's family by its name without the ending.
                    let family = name.strip_suffix("_total").unwrap_or(name);
                    assert!(families.insert(family), "{name} is there twice");
                    assert!(help.ends_with('.') && help.len() > 8, "{name}: {help}");
                    let plain =
                        |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
                    assert!(name.bytes().all(plain), "{name}");
                    // Base units, in full, and no type in the name.
                    for word in name.split('_') {
                        let units =
                            ["ms", "us", "milliseconds", "minutes", "kb", "megabytes", "percent"];
                        let types =
                            ["counter", "gauge", "histogram", "summary", "count", "sum", "bucket"];
                        assert!(!units.contains(&word) && !types.contains(&word), "{name}");
                    }
                }
            }
        }
        assert!(families.len() > 90, "{}", families.len());
    }

    #[test]
    fn each_kind_of_figure_has_its_text_on_both_pages() {
        const ROWS: &[Metric] = &[
            metric("polls", "polls_total", "Polls.", Count(|_| 3)),
            metric("open", "process_open", "Open.", Flag(|_| true)),
            metric("round", "round_seconds", "Round.", Millis(|_| 1500)),
            metric("never", "never_seconds", "Never.", MaybeMillis(|_| None)),
            metric("cpu", "cpu_seconds", "CPU.", Micros(|_| 1230)),
            metric("version", "build_info", "Version.", Text(|_| "7")),
            metric("state", "state", "State.", OneOf(&["up", "down"], |_| "down")),
            metric(
                "status",
                "responses",
                "Status.",
                Each("class", |_| vec![("2xx", 1), ("4xx", 2)]),
            ),
        ];
        let cx = context(config_of("binance"), NOW);
        let view = View::new(&cx);
        let figures = Figures::new(&view);
        let mut json = Vec::new();
        write_rows(Object::open(&mut json), ROWS, &figures);
        let wanted = "{\"polls\":3,\"open\":true,\"round\":1500,\"never\":null,\"cpu\":1.23,\
             \"version\":\"7\",\"state\":\"down\",\"status\":{\"2xx\":1,\"4xx\":2}}";
        assert_eq!(String::from_utf8_lossy(&json), wanted);
        let mut page = Page(String::new());
        page.rows(ROWS, &[figures]);
        let mut turns = Histogram::new(&[100, 2_500_000]);
        for (took_us, count) in [(99, 2), (2_000_000, 1), (3_000_000, 1)] {
            turns.note(took_us, count);
        }
        page.histogram("turn_seconds", &["", "a=\"b\""], &turns);
        let wanted = "\
# HELP marketd_polls_total Polls.
# TYPE marketd_polls_total counter
marketd_polls_total 3
# HELP process_open Open.
# TYPE process_open gauge
process_open 1
# HELP marketd_round_seconds Round.
# TYPE marketd_round_seconds gauge
marketd_round_seconds 1.500
# HELP marketd_never_seconds Never.
# TYPE marketd_never_seconds gauge
# HELP marketd_cpu_seconds CPU.
# TYPE marketd_cpu_seconds gauge
marketd_cpu_seconds 0.001230
# HELP marketd_build_info Version.
# TYPE marketd_build_info gauge
marketd_build_info{version=\"7\"} 1
# HELP marketd_state State.
# TYPE marketd_state gauge
marketd_state{state=\"up\"} 0
marketd_state{state=\"down\"} 1
# HELP marketd_responses Status.
# TYPE marketd_responses gauge
marketd_responses{class=\"2xx\"} 1
marketd_responses{class=\"4xx\"} 2
marketd_turn_seconds_bucket{a=\"b\",le=\"0.000100\"} 2
marketd_turn_seconds_bucket{a=\"b\",le=\"2.500000\"} 3
marketd_turn_seconds_bucket{a=\"b\",le=\"+Inf\"} 4
marketd_turn_seconds_sum{a=\"b\"} 5.000198
marketd_turn_seconds_count{a=\"b\"} 4
";
        assert_eq!(page.0, wanted);
    }
}
