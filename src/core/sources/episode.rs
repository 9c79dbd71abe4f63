//! The log of something that fails and recovers: one line when it begins, one when it ends.
//!
//! [`Episode`] owns what was logged, and the count of failures. On average it allows one line in two
//! minutes (the health log allows as many), so what fails every second time does not flood the log: failures
//! without a line count in the next one.
//! [`Warnings`] owns those of a source that answers.

use crate::core::context::Context;
use crate::log_targets::SOURCE;
use crate::market::SourceId;
use crate::time::Mono;
use std::time::Duration;

/// The pause that each line earns.
const PAUSE: Duration = Duration::from_secs(120);

/// The most kinds of faults that one episode tells.
const CODES: usize = 4;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Episode {
    /// Failures since the last line about an end.
    failures: u64,
    /// The faults that were logged since then.
    codes: Vec<String>,
    /// The next episode is not logged before this.
    quiet_until: Mono,
}

impl Episode {
    /// Takes in a failure. Returns the failures so far, if they are to be logged: this fault is new, and the
    /// last line was long ago.
    pub fn failed(&mut self, code: &str, now: Mono) -> Option<u64> {
        self.failures += 1;
        let is_known = self.codes.iter().any(|it| it == code) || self.codes.len() >= CODES;
        if is_known || now < self.quiet_until {
            return None;
        }
        self.codes.push(code.to_string());
        self.pause(now);
        Some(self.failures)
    }

    /// All is well. Returns the failures, if that is to be logged: their begin was.
    pub fn ended(&mut self, now: Mono) -> Option<u64> {
        if std::mem::take(&mut self.codes).is_empty() {
            return None;
        }
        self.pause(now);
        Some(std::mem::take(&mut self.failures))
    }

    fn pause(&mut self, now: Mono) {
        self.quiet_until = self.quiet_until.max(now) + PAUSE;
    }
}

/// What is wrong with a source though its requests are answered.
#[derive(Debug, Default)]
pub struct Warnings {
    slow_rounds: Episode,
    spending_others: Episode,
}

impl Warnings {
    /// Shows and logs whether rounds of quotes take too long, by how long they take, and whether others spend
    /// the budget, by the units that they spent.
    pub fn watch(
        &mut self,
        source: SourceId,
        round: Option<Duration>,
        others: Option<u64>,
        cx: &mut Context,
    ) {
        let (now, status) = (cx.now.mono, &mut cx.stats[source]);
        let stale_after = cx.config.sources[source.index()].stale_after;
        status.round_ms = round.map(|took| took.as_millis() as u64);
        status.is_round_slow = round.is_some_and(|took| took > stale_after);
        status.spent_by_others = others;
        let (id, ms) = (&status.id, status.round_ms.unwrap_or(0));
        if status.is_round_slow && self.slow_rounds.failed("", now).is_some() {
            let stale_ms = stale_after.as_millis();
            log::warn!(target: SOURCE, "round too slow source={id} ms={ms} stale_after_ms={stale_ms}");
        } else if !status.is_round_slow && self.slow_rounds.ended(now).is_some() {
            log::info!(target: SOURCE, "round in time source={id} ms={ms}");
        }
        if let Some(units) = others {
            if self.spending_others.failed("", now).is_some() {
                log::warn!(target: SOURCE, "budget spent by others source={id} units={units}");
            }
        } else if self.spending_others.ended(now).is_some() {
            log::info!(target: SOURCE, "budget spent alone source={id}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begin_and_an_end_are_one_line_each_with_a_count() {
        let mut episode = Episode::default();
        assert_eq!(episode.ended(Mono(0)), None);
        assert_eq!(episode.failed("status 503", Mono(0)), Some(1));
        for at in 1..1000 {
            assert_eq!(episode.failed("status 503", Mono(at * 1_000_000)), None);
        }
        assert_eq!(episode.failed("status 500", Mono(1000 * 1_000_000)), Some(1001));
        assert_eq!(episode.ended(Mono(1001 * 1_000_000)), Some(1001));
        assert_eq!(episode.ended(Mono(1002 * 1_000_000)), None);
    }

    #[test]
    fn what_fails_every_second_time_for_a_day_is_a_line_in_two_minutes_and_no_failure_is_lost() {
        let (mut episode, mut lines, mut counted) = (Episode::default(), 0, 0);
        for second in 0..86_400 / 2 {
            let at = Mono(second * 2_000_000);
            lines += u64::from(episode.failed("status 503", at).is_some());
            if let Some(failures) = episode.ended(at + Duration::from_secs(1)) {
                lines += 1;
                counted += failures;
            }
        }
        assert!((650..=722).contains(&lines), "{lines}");
        assert!(counted > 43_200 - 240, "{counted}");
    }
}
