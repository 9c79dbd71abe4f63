//! The health log: one line at each change of the service's health, and reminders of what lasts.
//!
//! Owns what was logged. A reason that lasts is logged again with a doubling pause, so that an outage of
//! hours is more than one line at its beginning. A reason that comes and goes all the time does not flood the
//! log: a few changes are logged at once, and after these one line in two minutes, with the number of
//! changes.

use super::{Reason, reasons, state};
use crate::core::stats::Status;
use crate::log_targets::{HEALTH, quoted};
use crate::market::Quotes;
use crate::time::{Mono, Now, UnixMs};
use std::time::Duration;

/// From the beginning of a reason to the line that repeats it. Each further pause is twice as long.
const REMIND_FIRST: Duration = Duration::from_secs(60);

/// The longest pause between two such lines, so that the last hour of a log has every outage in it.
const REMIND_MAX: Duration = Duration::from_secs(3600);

/// The pause that each line about a change earns.
const PAUSE: Duration = Duration::from_secs(120);

/// A line need not wait for the pauses of the last seven lines. A restart of one source takes four lines, and
/// so does an outage of two sources.
const SAVED: Duration = Duration::from_secs(7 * 120);

/// See the module's page.
#[derive(Debug)]
pub struct HealthLog {
    lasting: Vec<Lasting>,
    /// The reasons of the last line about a change.
    logged: Vec<Reason>,
    /// When all pauses that lines have earned are over.
    quiet_until: Mono,
    /// Changes since the last line about one.
    untold: u64,
    /// How often the state or its reasons have changed.
    changes: u64,
}

/// A current reason.
#[derive(Clone, Copy, Debug)]
struct Lasting {
    reason: Reason,
    since: UnixMs,
    remind_at: Mono,
    pause: Duration,
}

impl Lasting {
    fn new(reason: Reason, now: Now) -> Lasting {
        Lasting { reason, since: now.unix, remind_at: now.mono + REMIND_FIRST, pause: REMIND_FIRST }
    }

    /// True if the reason is to be repeated now. The next pause is longer.
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
    /// Logs what has changed, and what lasts. Returns true if there was something.
    pub fn update(&mut self, status: &Status, quotes: &Quotes, now: Now) -> bool {
        let lines = self.lines(status, quotes, now);
        for (level, line) in &lines {
            log::log!(target: HEALTH, *level, "{line}");
        }
        !lines.is_empty()
    }

    /// The log of a service that has just started, which needs no line.
    pub fn new(status: &Status, quotes: &Quotes) -> HealthLog {
        let now = status.started;
        let lasting = reasons(status, quotes).map(|reason| Lasting::new(reason, now));
        let lasting: Vec<Lasting> = lasting.collect();
        let logged = lasting.iter().map(|it| it.reason).collect();
        HealthLog { lasting, logged, quiet_until: now.mono, untold: 0, changes: 0 }
    }

    /// How often the state or its reasons have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// When the last change is to be logged. If it is logged: when a reason is to be repeated.
    pub fn next_due(&self) -> Option<Mono> {
        let trouble = self.lasting.iter().filter(|it| it.reason.code.is_trouble());
        if self.is_logged() {
            trouble.map(|it| it.remind_at).min()
        } else {
            Some(Mono(self.quiet_until.0.saturating_sub(SAVED.as_micros() as u64)))
        }
    }

    /// True if the last line tells the current reasons.
    fn is_logged(&self) -> bool {
        self.lasting.iter().map(|it| &it.reason).eq(&self.logged)
    }

    /// The lines that are due: one if anything has changed, else one for each reason that is to be repeated.
    fn lines(&mut self, status: &Status, quotes: &Quotes, now: Now) -> Vec<(log::Level, String)> {
        let known = self.lasting.iter().map(|it| it.reason);
        if !known.eq(reasons(status, quotes)) {
            (self.changes, self.untold) = (self.changes + 1, self.untold + 1);
            let before = std::mem::take(&mut self.lasting);
            let lasting = reasons(status, quotes).map(|reason| {
                let known = before.iter().find(|it| it.reason == reason);
                known.copied().unwrap_or_else(|| Lasting::new(reason, now))
            });
            self.lasting = lasting.collect();
        }
        if self.is_logged() {
            let due = self.lasting.iter_mut().filter_map(|it| {
                let is_due = it.is_due(now);
                is_due.then_some((log::Level::Warn, reminder(it, status, quotes, now)))
            });
            return due.collect();
        }
        if self.quiet_until > now.mono + SAVED && !status.stopping {
            return Vec::new();
        }
        self.quiet_until = self.quiet_until.max(now.mono) + PAUSE;
        self.logged = self.lasting.iter().map(|it| it.reason).collect();
        vec![self.change(status, quotes)]
    }

    /// `degraded reasons=source_down:one,quotes_stale`.
    fn change(&mut self, status: &Status, quotes: &Quotes) -> (log::Level, String) {
        let told = |Lasting { reason, .. }: &Lasting| match reason.source {
            Some(id) => format!("{}:{}", reason.code.name(), status[id].id),
            None => reason.code.name().to_string(),
        };
        let reasons = self.lasting.iter().map(told).collect::<Vec<_>>().join(",");
        let reasons = if reasons.is_empty() { "-" } else { &reasons };
        let mut line = format!("{} reasons={reasons}", state(status, quotes).name());
        let untold = std::mem::take(&mut self.untold);
        if untold > 1 {
            line += &format!(" changes={untold}");
        }
        let is_trouble = self.lasting.iter().any(|it| it.reason.code.is_trouble());
        let level = if is_trouble { log::Level::Warn } else { log::Level::Info };
        (level, line)
    }
}

fn reminder(lasting: &Lasting, status: &Status, quotes: &Quotes, now: Now) -> String {
    let Lasting { reason, since, .. } = lasting;
    let source = reason.source.map(|id| &*status[id].id);
    let (code, source) = (reason.code.name(), source.unwrap_or("-"));
    let message = reason.message(status, quotes, now);
    format!("still reason={code} source={source} since={since} message={}", quoted(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::api::health::tests::Bench;
    use crate::core::stats::SourceState;

    /// Time passes, and these lines are logged.
    #[track_caller]
    fn check(bench: &mut Bench, log: &mut HealthLog, seconds: u64, expected: &[&str]) {
        let time = Duration::from_secs(seconds);
        bench.now.mono = bench.now.mono + time;
        bench.now.unix = bench.now.unix + time.as_millis() as i64;
        let lines = log.lines(&bench.status, &bench.quotes, bench.now);
        let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, expected);
    }

    fn start() -> (Bench, HealthLog) {
        let bench = Bench::new();
        let log = HealthLog::new(&bench.status, &bench.quotes);
        (bench, log)
    }

    #[test]
    fn each_change_is_one_line_and_nothing_is_said_in_between() {
        let (mut bench, mut log) = start();
        check(&mut bench, &mut log, 0, &[]);
        bench.up();
        check(&mut bench, &mut log, 1, &["ok reasons=-"]);
        check(&mut bench, &mut log, 1, &[]);
        bench.status.sources[1].state = SourceState::Backoff;
        check(&mut bench, &mut log, 1, &["degraded reasons=source_backoff:two"]);
        check(&mut bench, &mut log, 1, &[]);
        bench.status.sources[1].state = SourceState::Down;
        bench.status.history.write_failed = true;
        let both = "degraded reasons=history_write_failed,source_down:two";
        check(&mut bench, &mut log, 1, &[both]);
        bench.status.history.write_failed = false;
        check(&mut bench, &mut log, 60, &["degraded reasons=source_down:two"]);
        bench.status.sources[1].state = SourceState::Up;
        check(&mut bench, &mut log, 1, &["ok reasons=-"]);
        bench.status.stopping = true;
        check(&mut bench, &mut log, 1, &["stopping reasons=stopping"]);
    }

    #[test]
    fn what_comes_and_goes_is_a_few_lines_with_counts_and_the_last_state_is_told() {
        let (mut bench, mut log) = start();
        bench.up();
        check(&mut bench, &mut log, 0, &["ok reasons=-"]);
        let (mut lines, mut counted) = (0, 0);
        for second in 1..600 {
            bench.status.sources[1].state = match second % 2 {
                1 => SourceState::Backoff,
                _ => SourceState::Up,
            };
            bench.now.mono = bench.now.mono + Duration::from_secs(1);
            let told = log.lines(&bench.status, &bench.quotes, bench.now);
            lines += told.len();
            for (_, line) in told.iter().filter(|_| lines > 7) {
                let count = line.rsplit_once(" changes=").and_then(|(_, count)| count.parse().ok());
                counted += count.unwrap_or(1);
            }
        }
        assert!((11..=13).contains(&lines), "{lines}");
        assert!((600 - 120 - 8..=600).contains(&counted), "{counted}");
        for seconds in [1, 120] {
            bench.status.sources[1].state = SourceState::Up;
            bench.now.mono = bench.now.mono + Duration::from_secs(seconds);
            log.lines(&bench.status, &bench.quotes, bench.now);
            let due = log.next_due().map(|at| at.since(bench.now.mono));
            assert!(log.is_logged() == due.is_none() && due <= Some(PAUSE), "{due:?}");
        }
        assert!(log.is_logged(), "the last state is told");
        assert_eq!(log.changes(), 601);
    }

    #[test]
    fn a_reminder_waits_for_a_change_that_is_not_told_yet() {
        let (mut bench, mut log) = start();
        bench.up();
        check(&mut bench, &mut log, 0, &["ok reasons=-"]);
        bench.status.sources[0].state = SourceState::Down;
        let down = "degraded reasons=source_down:one";
        let both = "degraded reasons=source_down:one,source_backoff:two";
        check(&mut bench, &mut log, 1, &[down]);
        bench.status.sources[1].state = SourceState::Backoff;
        check(&mut bench, &mut log, 58, &[both]);
        let states = [(SourceState::Up, down), (SourceState::Backoff, both)];
        for (state, line) in states.into_iter().cycle().take(5) {
            bench.status.sources[1].state = state;
            check(&mut bench, &mut log, 0, &[line]);
        }
        for state in [SourceState::Backoff, SourceState::Up, SourceState::Backoff] {
            bench.status.sources[1].state = state;
            check(&mut bench, &mut log, 0, &[]);
        }
        assert!(!log.is_logged());
        check(&mut bench, &mut log, 1, &[]);
        let due = log.next_due().expect("the change is to be told");
        assert!(due > bench.now.mono, "what is due now would have been told now");
        let pause = due.since(bench.now.mono).as_secs();
        check(&mut bench, &mut log, pause, &[&format!("{both} changes=3")]);
        assert!(log.next_due() <= Some(bench.now.mono), "then the reminder");
    }

    #[test]
    fn an_outage_is_told_again_after_1_2_4_minutes_up_to_an_hour() {
        let (mut bench, mut log) = start();
        bench.up();
        check(&mut bench, &mut log, 0, &["ok reasons=-"]);
        bench.status.sources[0].state = SourceState::Down;
        bench.status.sources[0].last_error = Some("quotes: \"no\nanswer\"".to_string());
        bench.status.history.unusable = true;
        bench.status.history.why = "it is damaged".to_string();
        check(&mut bench, &mut log, 0, &["degraded reasons=history_unusable,source_down:one"]);
        let since = bench.now.unix;
        let source = format!(
            "still reason=source_down source=one since={since} message=\"No request has succeeded \
             since the start at {since}. Last error: quotes: \\\"no\\nanswer\\\"\""
        );
        let history = format!(
            "still reason=history_unusable source=- since={since} message=\"The history file cannot \
             be used: it is damaged.\""
        );
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let pause = minutes * 60;
            assert_eq!(log.next_due(), Some(bench.now.mono + Duration::from_secs(pause)));
            check(&mut bench, &mut log, pause - 1, &[]);
            check(&mut bench, &mut log, 1, &[&history, &source]);
        }
        // What is new begins anew; what lasts goes on.
        bench.status.history.unusable = false;
        check(&mut bench, &mut log, 59, &["degraded reasons=source_down:one"]);
        check(&mut bench, &mut log, 60, &[]);
        bench.status.history.unusable = true;
        bench.status.history.why = "it is damaged".to_string();
        check(&mut bench, &mut log, 0, &["degraded reasons=history_unusable,source_down:one"]);
        let pause = log.next_due().map(|at| at.since(bench.now.mono));
        assert_eq!(pause, Some(REMIND_FIRST));
    }

    #[test]
    fn a_start_and_an_end_are_not_repeated() {
        let (mut bench, mut log) = start();
        check(&mut bench, &mut log, 86_400, &[]);
        assert_eq!(log.next_due(), None);
        bench.up();
        bench.status.stopping = true;
        check(&mut bench, &mut log, 1, &["stopping reasons=stopping"]);
        assert_eq!(log.next_due(), None);
    }
}
