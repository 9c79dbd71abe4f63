//! The log of something that fails and recovers: one line when it begins, one when it ends.
//!
//! [`Episode`] owns what was logged, and the count of failures. On average it allows one line a minute, so what
//! fails every second time does not flood the log: failures without a line count in the next one.

use crate::time::Mono;
use std::time::Duration;

/// The pause that each line earns.
const PAUSE: Duration = Duration::from_secs(60);

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
    fn what_fails_every_second_time_for_a_day_is_a_line_a_minute_and_no_failure_is_lost() {
        let (mut episode, mut lines, mut counted) = (Episode::default(), 0, 0);
        for second in 0..86_400 / 2 {
            let at = Mono(second * 2_000_000);
            lines += u64::from(episode.failed("status 503", at).is_some());
            if let Some(failures) = episode.ended(at + Duration::from_secs(1)) {
                lines += 1;
                counted += failures;
            }
        }
        assert!((1300..=1442).contains(&lines), "{lines}");
        assert!(counted > 43_200 - 120, "{counted}");
    }
}
