//! `/health`, `/health/live` and `/health/ready`: the state of the service and the reasons for it. The health
//! log (`log`) tells them too.
//!
//! Owns the closed set of reasons, and decides which of them hold now. It changes nothing.
//!
//! Invariant: the state is `ok` if and only if there is no reason. Finding the reasons looks at each source,
//! and at the quotes of a frozen one.

pub mod log;
mod message;

use super::outcome::{Outcome, Prepared};
use super::view::View;
use crate::core::stats::{Backfill, SourceState, Status};
use crate::exchange::RequestKind;
use crate::http::{Cache, Head, Responder};
use crate::json::{Array, json};
use crate::market::{QuoteCounts, Quotes, SourceId};
use crate::named::named;

/// Which of the three addresses is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For people and monitoring: 503 while nothing can be served.
    Whole,
    /// For a supervisor: 200 as long as the loop turns.
    Live,
    /// For a balancer: 503 also while every quote is stale.
    Ready,
}

/// Room for the body without reasons: 200 bytes of text, and six numbers of at most 20 digits.
const BODY_BYTES: usize = 340;

impl Prepared for Kind {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let state = state(view.status, &view.market.quotes);
        let is_healthy = match self {
            Kind::Whole => is_serving(state),
            Kind::Live => true,
            Kind::Ready => is_ready(state, &view.market.quotes.counts()),
        };
        let head = Head {
            status: if is_healthy { 200 } else { 503 },
            fields: if is_healthy { b"" } else { b"Retry-After: 1\r\n" },
            ..Head::json(None, Cache::NoStore)
        };
        with_body(view, state, |body| responder.send(&head, body));
        Ok(None)
    }
}

/// Appends the body of `/health`.
pub fn write_body(view: &View<'_>, out: &mut Vec<u8>) {
    let state = state(view.status, &view.market.quotes);
    with_body(view, state, |body| out.extend_from_slice(body));
}

/// Passes the body to `send`. Only the reasons are written with the JSON writer and a buffer on the heap:
/// balancers ask all the time, and the whole body would take a sixth longer that way.
#[inline]
fn with_body(view: &View<'_>, state: State, send: impl FnOnce(&[u8])) {
    let mut figures = [0; BODY_BYTES];
    let length = write_figures(view, state, &mut figures);
    let figures = &figures[..length];
    if state == State::Ok {
        return send(figures);
    }
    let mut body = figures.to_vec();
    write_reasons(view, &mut body);
    send(&body);
}

fn is_serving(state: State) -> bool {
    matches!(state, State::Ok | State::Degraded)
}

fn is_ready(state: State, quotes: &QuoteCounts) -> bool {
    is_serving(state) && quotes.fresh > 0
}

/// Writes the body up to the reasons, or to its end if there are none. Returns its length.
#[inline]
fn write_figures(view: &View<'_>, state: State, body: &mut [u8; BODY_BYTES]) -> usize {
    const CACHED: &str =
        concat!(",\"version\":\"", env!("CARGO_PKG_VERSION"), "\",\"quotes\":{\"cached\":");
    let quotes = view.market.quotes.counts();
    let (mut up, mut total) = (0, 0);
    for (_, source) in view.status.running() {
        (up, total) = (up + u64::from(source.state == SourceState::Up), total + 1);
    }
    let uptime_ms = if is_ready(state, &quotes) {
        "\",\"live\":true,\"ready\":true,\"uptimeMs\":"
    } else {
        "\",\"live\":true,\"ready\":false,\"uptimeMs\":"
    };
    let uptime = view.now().mono.since(view.status.started.mono);
    let figures = [
        (uptime_ms, uptime.as_millis() as u64),
        (CACHED, quotes.cached as u64),
        (",\"fresh\":", quotes.fresh as u64),
        (",\"stale\":", quotes.stale as u64),
        ("},\"upstreams\":{\"up\":", up),
        (",\"total\":", total),
    ];
    let mut length = 0;
    let mut push = |text: &[u8]| {
        body[length..length + text.len()].copy_from_slice(text);
        length += text.len();
    };
    push(b"{\"status\":\"");
    push(state.name().as_bytes());
    for (text, figure) in figures {
        push(text.as_bytes());
        push(itoa::Buffer::new().format(figure).as_bytes());
    }
    push(b"},\"reasons\":");
    push(if state == State::Ok { b"[]}" } else { b"" });
    length
}

/// Appends the reasons and the end of the body.
fn write_reasons(view: &View<'_>, out: &mut Vec<u8>) {
    let (status, quotes) = (view.status, &view.market.quotes);
    let mut array = Array::open(out);
    for reason in reasons(status, quotes) {
        json!(array.item(), {
            "code": reason.code.name(),
            "source": reason.source.map(|id| &*status[id].id),
            "message": reason.message(status, quotes, view.now()).as_str(),
        });
    }
    array.close();
    out.push(b'}');
}

named! {
    /// The state of the service, by its name in `/health` and the log.
    pub enum State {
        /// Nothing is wrong.
        Ok "ok"
        /// Requests are served, and something is wrong.
        Degraded "degraded"
        /// No quote has been collected or restored yet.
        Starting "starting"
        /// A signal has asked marketd to stop.
        Stopping "stopping"
    }
}

named! {
    /// Why the service is not `ok`, by the name in `/health` and the log.
    pub enum Code {
        /// A signal has asked marketd to stop.
        Stopping "stopping"
        /// No quote has been collected or restored yet.
        Starting "starting"
        /// No quote of this source has come yet, and nothing has failed.
        SourceStarting "source_starting"
        /// This source has failed, and no quotes of it have come since. Not all of its quotes are stale yet.
        SourceBackoff "source_backoff"
        /// This source has failed for longer than its quotes stay fresh.
        SourceDown "source_down"
        /// This source responds, but none of its figures has changed for `frozenAfterMs`.
        SourceFrozen "source_frozen"
        /// The candles of this source cannot be fetched.
        SourceCandles "source_candles"
        /// The market list of this source cannot be fetched, so the last one stays in use.
        SourceMarkets "source_markets"
        /// The 24-hour figures of this source's markets cannot be fetched.
        SourceStats "source_stats"
        /// A round of quotes of this source, market by market, takes longer than its quotes stay fresh.
        SourceRound "source_round"
        /// Another program or source spends the budget of this source's exchange.
        SourceBudget "source_budget"
        /// The witnesses of this exchange's time disagree, or there is none.
        SourceClockInDoubt "source_clock_in_doubt"
        /// There are quotes, and every one of them is stale.
        QuotesStale "quotes_stale"
        /// The history file cannot be used.
        HistoryUnusable "history_unusable"
        /// The history file was removed while it was in use, and the new one does not have all candles yet.
        HistoryLost "history_lost"
        /// The last write to the history file failed, or takes very long.
        HistoryWriteFailed "history_write_failed"
        /// Lines of the log cannot be written: its reader is too slow, or the disk is full.
        LogLosesLines "log_loses_lines"
        /// The configuration that was last read again has a fault, and the one before it holds.
        ReloadRefused "reload_refused"
        /// The engine that the nodes of the cluster share cannot be used.
        ClusterDown "cluster_down"
        /// An entry of another node of the cluster has a newer format.
        ClusterFormat "cluster_format"
        /// Another node of the cluster has the name of this one.
        ClusterName "cluster_name"
        /// The clocks of this node and of the cluster's engine differ.
        ClusterClock "cluster_clock"
        /// This node collects the source for itself, although the engine can be used.
        ClusterAlone "cluster_alone"
    }
}

impl Code {
    /// True if somebody may have to act. The other reasons belong to every start and stop.
    pub fn is_trouble(self) -> bool {
        !matches!(self, Code::Stopping | Code::Starting | Code::SourceStarting)
    }

    /// The kind of requests that fails, and what it fetches.
    fn kind(self) -> Option<(RequestKind, &'static str)> {
        match self {
            Code::SourceCandles => Some((RequestKind::Candles, "Candles")),
            Code::SourceMarkets => Some((RequestKind::List, "The market list")),
            Code::SourceStats => Some((RequestKind::Stats, "24-hour figures")),
            _ => None,
        }
    }
}

/// A reason, and the source that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The reason.
    pub code: Code,
    /// `None` if it is about the whole service.
    pub source: Option<SourceId>,
}

/// Every current reason, in a fixed order.
pub fn reasons<'a>(status: &'a Status, quotes: &'a Quotes) -> impl Iterator<Item = Reason> + 'a {
    let counts = quotes.counts();
    let history = &status.history;
    let cluster = status.cluster.as_ref();
    let whole = [
        (Code::Stopping, status.stopping),
        (Code::Starting, counts.cached == 0),
        (Code::QuotesStale, counts.cached > 0 && counts.fresh == 0),
        (Code::HistoryUnusable, history.unusable),
        (Code::HistoryLost, history.lost),
        (Code::HistoryWriteFailed, history.write_failed),
        (Code::LogLosesLines, status.log.loses()),
        (Code::ReloadRefused, status.reloads.refused_at.is_some()),
        (Code::ClusterDown, cluster.is_some_and(|it| !it.is_up)),
        (Code::ClusterFormat, cluster.is_some_and(|it| it.format.is_some())),
        (Code::ClusterName, cluster.is_some_and(|it| it.taken_name.is_some())),
        (Code::ClusterClock, cluster.is_some_and(|it| it.clock_off_ms.is_some())),
    ];
    let of_sources = status.running().flat_map(move |(id, source)| {
        let shared = cluster.filter(|it| it.is_up).and_then(|it| it.sources.get(id.index()));
        let (state, doubt) = (source.state, source.clock_doubt.as_ref());
        let fails = |kind: RequestKind| source.kind_failing_since[kind as usize].is_some();
        let codes = [
            (Code::SourceStarting, state == SourceState::Starting),
            (Code::SourceBackoff, state == SourceState::Backoff),
            (Code::SourceDown, state == SourceState::Down),
            (Code::SourceFrozen, state == SourceState::Up && quotes.frozen(id)),
            (Code::SourceClockInDoubt, doubt.is_some_and(|it| it.is_told())),
            (Code::SourceCandles, fails(RequestKind::Candles)),
            (Code::SourceMarkets, fails(RequestKind::List)),
            (Code::SourceStats, fails(RequestKind::Stats)),
            (Code::SourceRound, source.is_round_slow),
            (Code::SourceBudget, source.spent_by_others.is_some()),
            (Code::ClusterAlone, shared.is_some_and(|it| it.alone.is_some())),
        ];
        codes.into_iter().filter(|(_, holds)| *holds).map(move |(code, _)| (code, Some(id)))
    });
    let whole = whole.into_iter().filter(|(_, holds)| *holds).map(|(code, _)| (code, None));
    whole.chain(of_sources).map(|(code, source)| Reason { code, source })
}

/// The current state of the service.
pub fn state(status: &Status, quotes: &Quotes) -> State {
    if status.stopping {
        State::Stopping
    } else if quotes.is_empty() {
        State::Starting
    } else if reasons(status, quotes).next().is_some() {
        State::Degraded
    } else {
        State::Ok
    }
}

/// The state of the service in one line for people, which the service manager shows. It changes when a source
/// changes its state, and with the backfill.
pub fn status_line(status: &Status) -> String {
    if status.stopping {
        return "Stopping".to_string();
    }
    let all = || status.running().map(|(_, source)| source);
    let up = all().filter(|it| it.state == SourceState::Up).count();
    let mut line = format!("{up} of {} sources up", all().count());
    for source in all().filter(|it| it.state != SourceState::Up) {
        line += &format!(", {} {}", source.id, source.state.name());
    }
    let sum = |of: fn(&Backfill) -> u64| all().map(|it| of(&it.backfill)).sum::<u64>();
    let (wanted, done) = (sum(|it| it.wanted), sum(|it| it.done));
    if done < wanted {
        line += &format!(", backfill {} %", 100 * done / wanted);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceConfig;
    use crate::core::LogFigures;
    use crate::core::stats::{ClockDoubt, SourceStatus};
    use crate::market::SymbolId;
    use crate::record::Ticker;
    use crate::time::{Mono, Now, UnixMs};
    use message::ERROR_CHARS;
    use std::time::Duration;

    /// Two sources, in virtual time.
    pub struct Bench {
        pub status: Status,
        pub quotes: Quotes,
        pub now: Now,
    }

    impl Bench {
        pub fn new() -> Bench {
            let now = Now { mono: Mono(1_000_000), unix: UnixMs(1_700_000_000_000) };
            let sources = ["one", "two"]
                .map(|id| SourceConfig { id: id.to_string(), ..SourceConfig::new("binance") });
            let status = Status::new(sources.iter().map(|it| &*it.id), now);
            let quotes = Quotes::new(&sources);
            Bench { status, quotes, now }
        }

        pub fn up(&mut self) {
            let ticker = Ticker::of_last(crate::decimal::Decimal::from(1));
            let taken = (self.quotes).apply(SourceId(0), SymbolId(0), ticker, self.now);
            assert!(taken.is_ok());
            for source in &mut self.status.sources {
                source.state = SourceState::Up;
            }
        }
    }

    #[test]
    fn the_log_loses_lines_until_none_was_lost_for_a_minute() {
        let mut bench = Bench::new();
        bench.up();
        let mut check = |seconds: u64, lost: u64, is_full: bool, expected: &[Code]| {
            bench.now.mono = bench.now.mono + Duration::from_secs(seconds);
            bench.status.log.note(LogFigures { lost, is_full }, bench.now.mono);
            let codes = reasons(&bench.status, &bench.quotes).map(|it| it.code);
            assert_eq!(codes.collect::<Vec<_>>(), expected);
            bench.status.log.due().since(bench.now.mono).as_secs()
        };
        let loses = [Code::LogLosesLines];
        check(0, 0, false, &[]);
        assert_eq!(check(1, 3, true, &loses), 60);
        // A reader that stands still for an hour, with nothing to log.
        assert_eq!(check(3600, 3, true, &loses), 60);
        assert_eq!(check(59, 3, false, &loses), 1);
        assert_eq!(check(0, 4, false, &loses), 60);
        check(60, 4, false, &[]);
    }

    #[test]
    fn every_reason_has_a_sentence_and_holds_exactly_when_the_state_is_not_ok() {
        let mut bench = Bench::new();
        let all = |bench: &Bench| -> Vec<Reason> {
            let all: Vec<Reason> = reasons(&bench.status, &bench.quotes).collect();
            let is_ok = state(&bench.status, &bench.quotes) == State::Ok;
            assert_eq!(is_ok, all.is_empty());
            for reason in &all {
                let text = reason.message(&bench.status, &bench.quotes, bench.now);
                assert!(text.ends_with('.') || text.contains("Last error: "), "{text}");
                assert_eq!(reason.source.is_some(), reason.code.name().starts_with("source_"));
            }
            all
        };
        let codes = |bench: &Bench| all(bench).iter().map(|it| it.code).collect::<Vec<_>>();
        use Code::*;
        assert_eq!(codes(&bench), [Starting, SourceStarting, SourceStarting]);
        bench.up();
        assert_eq!(codes(&bench), []);
        let states = [SourceState::Backoff, SourceState::Down];
        for (source, state) in bench.status.sources.iter_mut().zip(states) {
            source.state = state;
            source.last_error = Some("é".repeat(ERROR_CHARS));
        }
        assert_eq!(codes(&bench), [SourceBackoff, SourceDown]);
        for at in [None, Some(bench.now.unix)] {
            bench.status.sources[1].quotes_at = at;
            bench.status.sources[1].last_success_at = Some(bench.now.unix);
            all(&bench);
        }
        bench.up();
        bench.status.sources[0].clock_doubt = Some(ClockDoubt { why: "?".into(), earliest: 0 });
        assert_eq!(codes(&bench), [SourceClockInDoubt]);
        bench.status.sources[0].clock_doubt = None;
        bench.now.mono = bench.now.mono + Duration::from_secs(86_400);
        bench.quotes.end_poll(SourceId(0), bench.now);
        assert_eq!(codes(&bench), [QuotesStale, SourceFrozen]);
        let status = &mut bench.status.sources[1];
        let kinds = [RequestKind::Candles, RequestKind::List, RequestKind::Stats];
        for kind in kinds {
            status.kind_failing_since[kind as usize] = Some(bench.now.unix);
            status.kind_errors[kind as usize] = Some(format!("{}: no date", kind.name()));
        }
        status.is_round_slow = true;
        status.spent_by_others = Some(620);
        status.last_error = Some("quotes: empty".to_string());
        let of_second = [SourceCandles, SourceMarkets, SourceStats, SourceRound, SourceBudget];
        assert_eq!(codes(&bench), [&[QuotesStale, SourceFrozen], &of_second[..]].concat());
        let told = all(&bench).into_iter().filter(|it| it.code.kind().is_some());
        for (kind, reason) in kinds.iter().zip(told) {
            let text = reason.message(&bench.status, &bench.quotes, bench.now);
            let error = format!(". Last error: {}: no date", kind.name());
            assert!(text.ends_with(&error), "{text}");
        }
        bench.status.sources[1] = SourceStatus::new("two");
        bench.status.sources[1].state = SourceState::Up;
        bench.status.history.unusable = true;
        bench.status.history.write_failed = true;
        bench.status.stopping = true;
        bench.status.log.note(LogFigures { lost: 1, is_full: false }, bench.now.mono);
        bench.status.reloads.refused_at = Some(bench.now.unix);
        let whole = [Stopping, QuotesStale, HistoryUnusable, HistoryWriteFailed, LogLosesLines];
        assert_eq!(codes(&bench), [&whole[..], &[ReloadRefused, SourceFrozen]].concat());
    }
}
