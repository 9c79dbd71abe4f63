//! The health of the service: its state, the reasons for it, and what the log was told of both.
//!
//! Owns the closed set of reasons, the judgement which of them hold now, and the line that the log
//! gets at each change. Trouble that lasts is repeated in the log with a doubling pause, so that an
//! outage of hours is not one line at its beginning. It changes nothing that it judges.
//!
//! Invariant: the state is `ok` if and only if no reason holds. The judgement looks once at each
//! source and at nothing else that grows.

use crate::core::stats::{SourceState, Status};
use crate::log_targets::HEALTH;
use crate::market::{Quotes, SourceId};
use crate::time::{Mono, Now, UnixMs};
use std::time::Duration;

/// From the beginning of some trouble to the first line that repeats it; each further one takes
/// twice as long.
const REMIND_FIRST: Duration = Duration::from_secs(60);

/// Longest pause between two lines that repeat the same trouble: whoever reads the last hour of a
/// log finds every outage in it.
const REMIND_MAX: Duration = Duration::from_secs(3600);

/// Characters of an exchange's last error that a message repeats.
const ERROR_CHARS: usize = 200;

/// The state of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Everything is as it should be.
    Ok,
    /// Requests are served, and something is wrong.
    Degraded,
    /// No quote has been collected or restored yet.
    Starting,
    /// A signal has asked for the end.
    Stopping,
}

impl State {
    /// The word that `/health` and the log use.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Degraded => "degraded",
            State::Starting => "starting",
            State::Stopping => "stopping",
        }
    }
}

/// Why the service is not `ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A signal has asked for the end.
    Stopping,
    /// No quote has been collected or restored yet.
    Starting,
    /// No quote of this source has come yet, and nothing has failed.
    SourceStarting,
    /// The last request for quotes of this source failed, and its quotes are not all stale yet.
    SourceBackoff,
    /// This source fails for longer than its quotes stay fresh.
    SourceDown,
    /// This source answers, and none of its figures has changed for `frozenAfterMs`.
    SourceFrozen,
    /// There are quotes, and every one of them is stale.
    QuotesStale,
    /// The history file cannot be used.
    HistoryUnusable,
    /// The history file has gone while it was in use, and the new one does not hold all of it yet.
    HistoryLost,
    /// The last write to the history file failed.
    HistoryWriteFailed,
}

impl Code {
    /// The word that `/health` and the log use.
    pub fn name(self) -> &'static str {
        match self {
            Code::Stopping => "stopping",
            Code::Starting => "starting",
            Code::SourceStarting => "source_starting",
            Code::SourceBackoff => "source_backoff",
            Code::SourceDown => "source_down",
            Code::SourceFrozen => "source_frozen",
            Code::QuotesStale => "quotes_stale",
            Code::HistoryUnusable => "history_unusable",
            Code::HistoryLost => "history_lost",
            Code::HistoryWriteFailed => "history_write_failed",
        }
    }

    /// Whether somebody may have to do something about it. The others belong to every start and end.
    fn is_trouble(self) -> bool {
        !matches!(self, Code::Stopping | Code::Starting | Code::SourceStarting)
    }
}

/// One reason, and the source that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What is the matter.
    pub code: Code,
    /// `None`: it is about the service as a whole.
    pub source: Option<SourceId>,
}

/// Every reason that holds now, in a fixed order.
pub fn reasons<'a>(status: &'a Status, quotes: &'a Quotes) -> impl Iterator<Item = Reason> + 'a {
    let counts = quotes.counts();
    let history = &status.history;
    let of_all = |code: Code, holds: bool| holds.then_some(Reason { code, source: None });
    let whole = [
        of_all(Code::Stopping, status.stopping),
        of_all(Code::Starting, counts.cached == 0),
        of_all(Code::QuotesStale, counts.cached > 0 && counts.fresh == 0),
        of_all(Code::HistoryUnusable, history.unusable),
        of_all(Code::HistoryLost, history.lost),
        of_all(Code::HistoryWriteFailed, history.write_failed),
    ];
    let sources = status.sources.iter().enumerate();
    let of_sources = sources.filter_map(|(at, source)| {
        let id = SourceId(at as u16);
        let code = match source.state {
            SourceState::Starting => Code::SourceStarting,
            SourceState::Backoff => Code::SourceBackoff,
            SourceState::Down => Code::SourceDown,
            SourceState::Up if quotes.frozen(id) => Code::SourceFrozen,
            SourceState::Up => return None,
        };
        Some(Reason {
            code,
            source: Some(id),
        })
    });
    whole.into_iter().flatten().chain(of_sources)
}

/// The state of the service now.
pub fn state(status: &Status, quotes: &Quotes) -> State {
    if status.stopping {
        State::Stopping
    } else if quotes.counts().cached == 0 {
        State::Starting
    } else if reasons(status, quotes).next().is_some() {
        State::Degraded
    } else {
        State::Ok
    }
}

impl Reason {
    /// The same as a sentence for people.
    pub fn message(self, status: &Status, quotes: &Quotes, now: Now) -> String {
        let source = self.source.map(|id| &status.sources[id.index()]);
        let mut text = match (self.code, source) {
            (Code::Stopping, _) => "The service is stopping.".to_string(),
            (Code::Starting, _) => "No quote has been collected or restored yet.".to_string(),
            (Code::QuotesStale, _) => "Every quote is stale.".to_string(),
            (Code::HistoryUnusable, _) => {
                format!("The history file cannot be used: {}.", status.history.why)
            }
            (Code::HistoryLost, _) => {
                "The history file has gone; a new one is written from memory.".to_string()
            }
            (Code::HistoryWriteFailed, _) => {
                let why = &status.history.why;
                format!("The last write to the history file failed, and is tried again: {why}.")
            }
            (Code::SourceStarting, _) => "No quote of this source has come yet.".to_string(),
            (Code::SourceFrozen, _) => {
                let since = self.source.and_then(|id| quotes.last_change(id));
                let since = wall(since.unwrap_or(now.mono), now);
                format!("No figure of this source has changed since {since}.")
            }
            (Code::SourceBackoff | Code::SourceDown, None) => String::new(),
            (Code::SourceBackoff, Some(source)) => {
                let since = source.failing_since.unwrap_or(now.unix);
                match source.backoff_until {
                    Some(until) => format!("Failing since {since}; next try at {until}."),
                    None => format!("Failing since {since}."),
                }
            }
            (Code::SourceDown, Some(source)) => match (source.quotes_at, source.last_success_at) {
                (Some(at), _) => format!("No good answer with quotes since {at}."),
                (None, Some(_)) => "It answers, but never with quotes.".to_string(),
                (None, None) => {
                    let started = status.started.unix;
                    format!("Never reached since the start at {started}.")
                }
            },
        };
        let fails = matches!(self.code, Code::SourceBackoff | Code::SourceDown);
        if let Some(error) = source.and_then(|it| it.last_error.as_deref())
            && fails
        {
            text.push_str(" Last error: ");
            text.extend(error.chars().take(ERROR_CHARS));
        }
        text
    }
}

/// A moment of the monotonic clock, as the wall clock shows it.
fn wall(at: Mono, now: Now) -> UnixMs {
    crate::core::stats::on_wall(at, now)
}

/// What the log was told, and when it is told again.
#[derive(Debug)]
pub struct HealthLog {
    state: State,
    lasting: Vec<Lasting>,
}

/// A reason since it began to hold.
#[derive(Clone, Copy, Debug)]
struct Lasting {
    reason: Reason,
    since: UnixMs,
    remind_at: Mono,
    pause: Duration,
}

impl Lasting {
    fn new(reason: Reason, now: Now) -> Lasting {
        Lasting {
            reason,
            since: now.unix,
            remind_at: now.mono + REMIND_FIRST,
            pause: REMIND_FIRST,
        }
    }

    /// Whether it is to be repeated now; then the next time is further away.
    fn is_due(&mut self, now: Now) -> bool {
        if !self.reason.code.is_trouble() || now.mono < self.remind_at {
            return false;
        }
        self.pause = (self.pause * 2).min(REMIND_MAX);
        self.remind_at = now.mono + self.pause;
        true
    }
}

impl HealthLog {
    /// Tells the log what has changed, and what lasts. `true`: there was something.
    pub fn tell(&mut self, status: &Status, quotes: &Quotes, now: Now) -> bool {
        let lines = self.lines(status, quotes, now);
        for (level, line) in &lines {
            log::log!(target: HEALTH, *level, "{line}");
        }
        !lines.is_empty()
    }

    /// Of a service that has just started: that it starts needs no line.
    pub fn new(status: &Status, quotes: &Quotes) -> HealthLog {
        let now = status.started;
        let lasting = reasons(status, quotes).map(|reason| Lasting::new(reason, now));
        HealthLog {
            state: state(status, quotes),
            lasting: lasting.collect(),
        }
    }

    /// When something is to be repeated.
    pub fn next_due(&self) -> Option<Mono> {
        let trouble = self.lasting.iter().filter(|it| it.reason.code.is_trouble());
        trouble.map(|it| it.remind_at).min()
    }

    /// Lines for the log that are due: one where anything has changed, and one for each reason that
    /// is to be repeated.
    fn lines(&mut self, status: &Status, quotes: &Quotes, now: Now) -> Vec<(log::Level, String)> {
        let told = self.lasting.iter().map(|it| it.reason);
        if told.eq(reasons(status, quotes)) {
            let due = self.lasting.iter_mut().filter_map(|it| {
                let is_due = it.is_due(now);
                is_due.then_some((log::Level::Warn, reminder(it, status, quotes, now)))
            });
            return due.collect();
        }
        self.state = state(status, quotes);
        let before = std::mem::take(&mut self.lasting);
        let lasting = reasons(status, quotes).map(|reason| {
            let known = before.iter().find(|it| it.reason == reason);
            known.copied().unwrap_or_else(|| Lasting::new(reason, now))
        });
        self.lasting = lasting.collect();
        vec![self.change(status)]
    }

    /// `degraded reasons=source_down:one,quotes_stale`.
    fn change(&self, status: &Status) -> (log::Level, String) {
        let mut line = format!("{} reasons=", self.state.name());
        for (at, Lasting { reason, .. }) in self.lasting.iter().enumerate() {
            line.push_str(if at > 0 { "," } else { "" });
            line.push_str(reason.code.name());
            if let Some(id) = reason.source {
                line.push(':');
                line.push_str(&status.sources[id.index()].id);
            }
        }
        if self.lasting.is_empty() {
            line.push('-');
        }
        let is_trouble = self.lasting.iter().any(|it| it.reason.code.is_trouble());
        let level = match is_trouble {
            true => log::Level::Warn,
            false => log::Level::Info,
        };
        (level, line)
    }
}

fn reminder(lasting: &Lasting, status: &Status, quotes: &Quotes, now: Now) -> String {
    let Lasting { reason, since, .. } = lasting;
    let source = reason.source.map(|id| &*status.sources[id.index()].id);
    let (code, source) = (reason.code.name(), source.unwrap_or("-"));
    let message = reason.message(status, quotes, now);
    format!("still reason={code} source={source} since={since} message={message:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceConfig;
    use crate::market::SymbolId;
    use crate::record::Ticker;

    /// Two sources, in virtual time.
    struct Bench {
        status: Status,
        quotes: Quotes,
        log: HealthLog,
        now: Now,
    }

    impl Bench {
        fn new() -> Bench {
            let now = Now {
                mono: Mono(1_000_000),
                unix: UnixMs(1_700_000_000_000),
            };
            let sources = ["one", "two"].map(|id| SourceConfig {
                id: id.to_string(),
                ..SourceConfig::of("binance")
            });
            let status = Status::new(sources.iter().map(|it| &*it.id), now);
            let quotes = Quotes::new(&sources);
            Bench {
                log: HealthLog::new(&status, &quotes),
                status,
                quotes,
                now,
            }
        }

        /// Time passes, and these lines are logged.
        #[track_caller]
        fn check(&mut self, seconds: u64, expected: &[&str]) {
            let time = Duration::from_secs(seconds);
            self.now.mono = self.now.mono + time;
            self.now.unix = self.now.unix + time.as_millis() as i64;
            let lines = self.log.lines(&self.status, &self.quotes, self.now);
            let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
            assert_eq!(lines, expected);
        }

        fn up(&mut self) {
            let ticker = Ticker::of_last(crate::decimal::Decimal::from(1));
            let taken = (self.quotes).apply(SourceId(0), SymbolId(0), ticker, self.now);
            assert!(taken.is_ok());
            for source in &mut self.status.sources {
                source.state = SourceState::Up;
            }
        }
    }

    #[test]
    fn each_change_is_one_line_and_nothing_is_said_in_between() {
        let mut bench = Bench::new();
        bench.check(0, &[]);
        bench.up();
        bench.check(1, &["ok reasons=-"]);
        bench.check(1, &[]);
        bench.status.sources[1].state = SourceState::Backoff;
        bench.check(1, &["degraded reasons=source_backoff:two"]);
        bench.check(1, &[]);
        bench.status.sources[1].state = SourceState::Down;
        bench.status.history.write_failed = true;
        let both = "degraded reasons=history_write_failed,source_down:two";
        bench.check(1, &[both]);
        bench.status.history.write_failed = false;
        bench.check(1, &["degraded reasons=source_down:two"]);
        bench.status.sources[1].state = SourceState::Up;
        bench.check(1, &["ok reasons=-"]);
        bench.status.stopping = true;
        bench.check(1, &["stopping reasons=stopping"]);
    }

    #[test]
    fn an_outage_is_told_again_after_1_2_4_minutes_up_to_an_hour() {
        let mut bench = Bench::new();
        bench.up();
        bench.check(0, &["ok reasons=-"]);
        bench.status.sources[0].state = SourceState::Down;
        bench.status.sources[0].last_error = Some("quotes: \"no\nanswer\"".to_string());
        bench.status.history.unusable = true;
        bench.status.history.why = "it is damaged".to_string();
        bench.check(0, &["degraded reasons=history_unusable,source_down:one"]);
        let since = bench.now.unix;
        let source = format!(
            "still reason=source_down source=one since={since} message=\"Never reached since the \
             start at {since}. Last error: quotes: \\\"no\\nanswer\\\"\""
        );
        let history = format!(
            "still reason=history_unusable source=- since={since} message=\"The history file cannot \
             be used: it is damaged.\""
        );
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let pause = minutes * 60;
            assert_eq!(
                bench.log.next_due(),
                Some(bench.now.mono + Duration::from_secs(pause))
            );
            bench.check(pause - 1, &[]);
            bench.check(1, &[&history, &source]);
        }
        // What is new begins anew; what lasts goes on.
        bench.status.history.unusable = false;
        bench.check(59, &["degraded reasons=source_down:one"]);
        bench.check(60, &[]);
        bench.status.history.unusable = true;
        bench.status.history.why = "it is damaged".to_string();
        bench.check(0, &["degraded reasons=history_unusable,source_down:one"]);
        let pause = bench.log.next_due().map(|at| at.since(bench.now.mono));
        assert_eq!(pause, Some(REMIND_FIRST));
    }

    #[test]
    fn a_start_and_an_end_are_not_repeated() {
        let mut bench = Bench::new();
        bench.check(86_400, &[]);
        assert_eq!(bench.log.next_due(), None);
        bench.up();
        bench.status.stopping = true;
        bench.check(1, &["stopping reasons=stopping"]);
        assert_eq!(bench.log.next_due(), None);
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
                assert!(
                    text.ends_with('.') || text.contains("Last error: "),
                    "{text}"
                );
                assert_eq!(
                    reason.source.is_some(),
                    reason.code.name().starts_with("source_")
                );
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
        bench.now.mono = bench.now.mono + Duration::from_secs(86_400);
        bench.quotes.end_poll(SourceId(0), bench.now);
        assert_eq!(codes(&bench), [QuotesStale, SourceFrozen]);
        bench.status.history.unusable = true;
        bench.status.history.write_failed = true;
        bench.status.stopping = true;
        assert_eq!(
            codes(&bench),
            [
                Stopping,
                QuotesStale,
                HistoryUnusable,
                HistoryWriteFailed,
                SourceFrozen
            ]
        );
    }
}
