//! What can wait: exchanges and the core's long work, in slices.
//!
//! Owns how much of it a turn does. It decides nothing else.

use super::{Driver, TURN_BUDGET, UPSTREAM_SLICE};
use crate::time::Now;
use std::time::Duration;

/// Time for exchanges and the core's long work in each turn, however busy the clients are: as long
/// as the largest slice of either takes, so that many small ones come as far.
const LONG_LEAST: Duration = Duration::from_micros(100);

impl Driver {
    /// Whether there is something to do that can wait.
    pub(super) fn has_long_work(&self) -> bool {
        !self.queues.upstream.is_empty() || self.core.has_work() || self.history.ready
    }

    /// Exchanges and the core's long work, slice after slice, until the turn's budget is used up.
    pub(super) fn long_work(&mut self, now: Now) {
        if !self.has_long_work() {
            return;
        }
        // Some of it in each turn, so that clients cannot starve the exchanges.
        let least = self.clock.mono() + LONG_LEAST;
        while self.has_long_work() {
            // A slice of one kind between two looks at the clock; in the next turn it goes on with the
            // next kind.
            self.next_slice = (self.next_slice + 1) % 3;
            let done = match self.next_slice {
                0 => self.move_upstream(now),
                1 => self.work_core(now),
                _ => self.hear_history(now),
            };
            if !done {
                continue;
            }
            self.carry_out(now);
            let time = self.clock.mono();
            self.pace.took = time.since(now.mono);
            if self.pace.took >= TURN_BUDGET && time >= least {
                return;
            }
        }
    }

    fn move_upstream(&mut self, now: Now) -> bool {
        let Some(key) = self.queues.upstream.pop_front() else {
            return false;
        };
        self.pump(key, UPSTREAM_SLICE, now);
        true
    }

    fn work_core(&mut self, now: Now) -> bool {
        let has_work = self.core.has_work();
        if has_work {
            self.core.work(now);
        }
        has_work
    }

    fn hear_history(&mut self, now: Now) -> bool {
        if !self.history.ready {
            return false;
        }
        let answer = self.history.answer();
        let has_come = answer.is_some();
        if let Some(answer) = answer {
            self.core.stored(answer, now);
        }
        has_come
    }
}
