//! The counters in the text format of Prometheus ("Exposition formats", text version 0.0.4).
//!
//! Names follow its rules: base units (seconds, bytes), `_total` on counters, one HELP and one
//! TYPE a family, labels only from closed sets (sources, statuses, reasons).

use super::View;
use crate::market::SourceId;
use crate::server::durations::{Histogram, POLL_BOUNDS_US, REQUEST_BOUNDS_US};
use crate::server::status::TURN_BOUNDS;
use crate::server::{CloseReason, ProcessFacts, SourceState, SourceStatus};
use std::fmt::{Display, Write};

/// All families.
pub fn text(view: &View<'_>) -> String {
    let mut page = Page(String::with_capacity(8 * 1024));
    process(view, &mut page);
    quotes(view, &mut page);
    charts(view, &mut page);
    history(view, &mut page);
    backfill(view, &mut page);
    upstreams(view, &mut page);
    http(view, &mut page);
    durations(view, &mut page);
    queues(view, &mut page);
    turns(view, &mut page);
    page.0
}

/// The text so far.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP marketd_{name} {help}"));
        self.line(format_args!("# TYPE marketd_{name} {kind}"));
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.0, "{line}").expect("a string takes every character");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.line(format_args!("marketd_{name} {value}"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.one(name, "gauge", help, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.one(name, "counter", help, value);
    }

    /// One histogram, in seconds; `labels` stand in front of the bound.
    fn histogram<const N: usize>(
        &mut self,
        (name, labels): (&str, &str),
        bounds_us: &[u64; N],
        histogram: &Histogram<N>,
    ) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut sum = 0;
        for (bound, count) in bounds_us.iter().zip(histogram.counts) {
            sum += count;
            let bound = MicroSeconds(*bound);
            self.line(format_args!(
                "marketd_{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {sum}"
            ));
        }
        let count = sum + histogram.above;
        self.line(format_args!(
            "marketd_{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}"
        ));
        let braces = match labels {
            "" => String::new(),
            labels => format!("{{{labels}}}"),
        };
        let sum = MicroSeconds(histogram.sum_us);
        self.line(format_args!("marketd_{name}_sum{braces} {sum}"));
        self.line(format_args!("marketd_{name}_count{braces} {count}"));
    }

    /// One line a source: its id is checked to be `[a-z0-9-]`, which needs no escaping.
    fn by_source<V: Display>(
        &mut self,
        view: &View<'_>,
        (name, kind, help): (&str, &str, &str),
        value: impl Fn(&SourceStatus) -> Option<V>,
    ) {
        self.family(name, kind, help);
        for source in &view.status.sources {
            if let Some(value) = value(source) {
                let id = &source.id;
                self.line(format_args!("marketd_{name}{{source=\"{id}\"}} {value}"));
            }
        }
    }
}

/// Milliseconds as seconds, exactly.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Microseconds as seconds, exactly.
struct MicroSeconds(u64);

impl Display for MicroSeconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

fn process(view: &View<'_>, page: &mut Page) {
    let facts = view
        .facts
        .map_or_else(ProcessFacts::default, |facts| facts());
    let version = env!("CARGO_PKG_VERSION");
    page.family("build_info", "gauge", "Version of marketd.");
    page.line(format_args!(
        "marketd_build_info{{version=\"{version}\"}} 1"
    ));
    let started = Seconds(view.status.started.unix.0.unsigned_abs());
    let help = "When marketd started, in seconds since the Unix epoch.";
    page.gauge("start_time_seconds", help, started);
    let uptime = view.now.mono.since(view.status.started.mono);
    let uptime = Seconds(uptime.as_millis() as u64);
    page.gauge("uptime_seconds", "Time since the start.", uptime);
    if let Some(bytes) = facts.rss_bytes {
        page.gauge("resident_memory_bytes", "Resident memory.", bytes);
    }
    if let Some(count) = facts.open_fds {
        page.gauge("open_fds", "Open file descriptors.", count);
    }
}

fn quotes(view: &View<'_>, page: &mut Page) {
    let counts = view.market.quotes.counts();
    page.counter(
        "quotes_collected_total",
        "Tickers applied.",
        counts.collected,
    );
    page.counter("quotes_rejected_total", "Tickers refused.", counts.rejected);
    page.gauge("quotes_cached", "Quotes held.", counts.cached);
    page.gauge("quotes_stale", "Quotes held that are stale.", counts.stale);
    page.gauge("quote_symbols", "Symbols with a quote.", counts.symbols);
}

fn charts(view: &View<'_>, page: &mut Page) {
    let counts = view.market.charts.counts();
    let (series, candles) = super::metrics::stored(view);
    let help = "Candle series stored: in the history file, or in memory where there is none.";
    page.gauge("charts_stored", help, series);
    let help = "Closed candles stored: in the history file, or in memory where there is none.";
    page.gauge("candles_stored", help, candles);
    page.gauge("chart_series", "Candle series followed.", counts.series);
    page.gauge("chart_candles", "Closed candles held.", counts.candles);
    page.gauge(
        "chart_gaps",
        "Slots without a candle among those answered.",
        counts.gaps,
    );
    page.gauge("chart_bytes", "Bytes of rendered candles.", counts.bytes);
    page.counter(
        "chart_candles_written_total",
        "Candles stored.",
        counts.written,
    );
    page.counter(
        "chart_candles_updated_total",
        "Candles revised.",
        counts.updated,
    );
    page.counter(
        "chart_candles_evicted_total",
        "Candles dropped.",
        counts.evicted,
    );
    page.counter(
        "chart_persist_errors_total",
        "Writes of history that failed.",
        view.status.history.persist_errors,
    );
}

fn history(view: &View<'_>, page: &mut Page) {
    let history = &view.status.history;
    page.gauge(
        "history_usable",
        "Whether the history file can be used; 0 where there is none.",
        u64::from(history.enabled && !history.unusable),
    );
    page.gauge("history_bytes", "Size of the history file.", history.bytes);
    page.counter(
        "history_candles_inserted_total",
        "Candles written to the history file.",
        history.inserted,
    );
    page.counter(
        "history_candles_updated_total",
        "Candles revised in the history file.",
        history.updated,
    );
    page.counter(
        "history_candles_evicted_total",
        "Candles that left the history file for their age.",
        history.evicted,
    );
}

fn backfill(view: &View<'_>, page: &mut Page) {
    let help = "Candles of history that the configuration wants.";
    let wanted = ("source_backfill_wanted_candles", "gauge", help);
    page.by_source(view, wanted, |source| Some(source.backfill.wanted));
    let help = "Candles of history that are known.";
    let done = ("source_backfill_done_candles", "gauge", help);
    page.by_source(view, done, |source| Some(source.backfill.done));
}

fn upstreams(view: &View<'_>, page: &mut Page) {
    page.family(
        "source_state",
        "gauge",
        "1 for the state that the source is in.",
    );
    for source in &view.status.sources {
        use SourceState::{Backoff, Down, Starting, Up};
        for state in [Starting, Up, Backoff, Down] {
            let (id, name) = (&source.id, state.name());
            let value = u8::from(source.state == state);
            page.line(format_args!(
                "marketd_source_state{{source=\"{id}\",state=\"{name}\"}} {value}"
            ));
        }
    }
    let polls = ("source_polls_total", "counter", "Requests sent.");
    page.by_source(view, polls, |source| Some(source.polls));
    let ok = (
        "source_successes_total",
        "counter",
        "Requests answered well.",
    );
    page.by_source(view, ok, |source| Some(source.ok));
    let errors = ("source_errors_total", "counter", "Requests that failed.");
    page.by_source(view, errors, |source| Some(source.errors));
    let timeouts = (
        "source_timeouts_total",
        "counter",
        "Requests that timed out.",
    );
    page.by_source(view, timeouts, |source| Some(source.timeouts));
    let limited = (
        "source_rate_limited_total",
        "counter",
        "Requests refused as too many.",
    );
    page.by_source(view, limited, |source| Some(source.rate_limited));
    let bytes = ("source_received_bytes_total", "counter", "Bytes received.");
    page.by_source(view, bytes, |source| Some(source.bytes_received));
    let rejected = ("source_items_rejected_total", "counter", "Items refused.");
    page.by_source(view, rejected, |source| Some(source.rejected));
    let spent = (
        "source_budget_spent_total",
        "counter",
        "Units of the exchange's limit spent.",
    );
    page.by_source(view, spent, |source| Some(source.budget_spent));
    let left = (
        "source_budget_left",
        "gauge",
        "Units that may be spent at once.",
    );
    page.by_source(view, left, |source| Some(source.budget_left));
    let failovers = (
        "source_failovers_total",
        "counter",
        "Symbols that another source took over.",
    );
    page.by_source(view, failovers, |source| Some(source.failovers));
    let returns = (
        "source_returns_total",
        "counter",
        "Symbols that came back to the source.",
    );
    page.by_source(view, returns, |source| Some(source.returns));
    upstream_quotes(view, page);
    upstream_times(view, page);
}

/// How the quotes of each source are.
fn upstream_quotes(view: &View<'_>, page: &mut Page) {
    let quotes = &view.market.quotes;
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(SourceId) -> usize| {
        page.family(name, "gauge", help);
        for (at, source) in view.status.sources.iter().enumerate() {
            let (id, value) = (&source.id, value(SourceId(at as u16)));
            page.line(format_args!("marketd_{name}{{source=\"{id}\"}} {value}"));
        }
    };
    let help = "Quotes of the source that are stale.";
    gauge("source_quotes_stale", help, &|id| quotes.stale_of(id));
    let help = "Whether the source answers and none of its figures changes.";
    gauge("source_frozen", help, &|id| usize::from(quotes.frozen(id)));
}

/// When each source did, or will do, what.
fn upstream_times(view: &View<'_>, page: &mut Page) {
    let help = "When a request was last answered well, in seconds since the Unix epoch.";
    let success = ("source_last_success_timestamp_seconds", "gauge", help);
    page.by_source(view, success, |source| {
        Some(Seconds(source.last_success_at?.0.unsigned_abs()))
    });
    let help = "When a request last failed, in seconds since the Unix epoch.";
    let error = ("source_last_error_timestamp_seconds", "gauge", help);
    page.by_source(view, error, |source| {
        Some(Seconds(source.last_error_at?.0.unsigned_abs()))
    });
    let help = "When quotes are polled next, in seconds since the Unix epoch.";
    let next = ("source_next_poll_timestamp_seconds", "gauge", help);
    page.by_source(view, next, |source| {
        Some(Seconds(source.next_poll_at?.0.unsigned_abs()))
    });
    let help = "Until when nothing is asked, in seconds since the Unix epoch.";
    let backoff = ("source_backoff_until_timestamp_seconds", "gauge", help);
    page.by_source(view, backoff, |source| {
        Some(Seconds(source.backoff_until?.0.unsigned_abs()))
    });
    let latency = (
        "source_last_latency_seconds",
        "gauge",
        "Duration of the last good request.",
    );
    page.by_source(view, latency, |source| {
        Some(Seconds(source.last_latency_ms?))
    });
}

fn http(view: &View<'_>, page: &mut Page) {
    let http = &view.status.http;
    page.counter("http_requests_total", "Requests read.", http.requests);
    page.gauge(
        "http_requests_in_flight",
        "Requests being answered.",
        http.in_flight,
    );
    page.family(
        "http_responses_total",
        "counter",
        "Answers by class of status.",
    );
    for (class, count) in (2..).zip(http.classes) {
        page.line(format_args!(
            "marketd_http_responses_total{{class=\"{class}xx\"}} {count}"
        ));
    }
    page.counter("http_not_modified_total", "Answers 304.", http.not_modified);
    page.counter(
        "http_bad_requests_total",
        "Requests not understood.",
        http.bad_requests,
    );
    page.counter(
        "http_timeouts_total",
        "Connections ended by a deadline.",
        http.timeouts,
    );
    page.counter(
        "http_rejected_total",
        "Connections turned away.",
        http.rejected,
    );
    page.counter(
        "http_rate_limited_total",
        "Requests turned back by the rate limit.",
        http.rate_limited,
    );
    page.counter(
        "http_rate_limit_forgotten_total",
        "Client addresses that the rate limit forgot for others.",
        http.rates_forgotten,
    );
    page.gauge(
        "http_pending_bytes",
        "Bytes of answers that clients have not taken.",
        http.pending,
    );
    page.gauge(
        "http_held_bytes",
        "Bytes of requests that are not whole or not answered.",
        http.held,
    );
    page.counter("http_sent_bytes_total", "Bytes sent.", http.bytes_out);
    page.gauge("http_connections", "Open client connections.", http.open);
    let help = "Bytes of bodies in gzip that are kept.";
    page.gauge("http_packed_bytes", help, view.status.packed_bytes);
    page.counter(
        "http_connections_total",
        "Client connections since the start.",
        http.total,
    );
    page.family(
        "http_closes_total",
        "counter",
        "Closed client connections by reason.",
    );
    for reason in CloseReason::all() {
        let (name, count) = (reason.name(), http.closes[reason as usize]);
        page.line(format_args!(
            "marketd_http_closes_total{{reason=\"{name}\"}} {count}"
        ));
    }
}

/// How long requests took: those of clients, and those to exchanges.
fn durations(view: &View<'_>, page: &mut Page) {
    let name = "http_request_duration_seconds";
    let help = "From a request's last byte to its answer; within one turn of the loop, that turn.";
    page.family(name, "histogram", help);
    for (endpoint, class, histogram) in view.status.http.durations.counted() {
        let route = endpoint.name();
        let labels = format!("route=\"{route}\",class=\"{class}xx\"");
        page.histogram((name, &labels), &REQUEST_BOUNDS_US, histogram);
    }
    let name = "source_poll_duration_seconds";
    let help = "From a request's first byte to its answer's last, of those answered well.";
    page.family(name, "histogram", help);
    for source in &view.status.sources {
        let labels = format!("source=\"{}\"", source.id);
        page.histogram((name, &labels), &POLL_BOUNDS_US, &source.latencies);
    }
}

/// What waited at the end of the last turn.
fn queues(view: &View<'_>, page: &mut Page) {
    let queues = &view.status.queues;
    let name = "queue_depth";
    let help = "What waits for a later turn of the loop, at the end of the last one.";
    page.family(name, "gauge", help);
    for (queue, depth) in [
        ("clients", queues.clients),
        ("upstreams", queues.upstreams),
        ("answers_held", queues.held),
        ("answers_running", queues.running),
        ("bodies_packing", queues.packing),
        ("polls_staged", queues.staged),
    ] {
        page.line(format_args!("marketd_{name}{{queue=\"{queue}\"}} {depth}"));
    }
}

fn turns(view: &View<'_>, page: &mut Page) {
    let turns = &view.status.turns;
    let name = "loop_turn_seconds";
    page.family(
        name,
        "histogram",
        "Turns of the event loop, from wake-up to sleep.",
    );
    page.histogram((name, ""), &TURN_BOUNDS, &turns.durations);
    let longest = MicroSeconds(u64::from(turns.longest_us(view.now)));
    page.gauge(
        "loop_max_stall_seconds",
        "Longest turn of the last minute.",
        longest,
    );
}
