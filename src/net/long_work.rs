//! Work that can wait: reading from exchanges, the core's long work, and answers of the disk thread.
//!
//! Owns how much of it a turn does. It is done in slices.

use super::driver::{Driver, TURN_BUDGET, UPSTREAM_SLICE};
use crate::time::Now;
use std::time::Duration;

/// Time for this work in each turn, however busy the clients are. The largest slice takes about as
/// long, so small slices get as much time as large ones.
const MIN_LONG_WORK: Duration = Duration::from_micros(100);

impl Driver {
    /// True if there is work that can wait.
    fn has_long_work(&self) -> bool {
        !self.queues.upstream.is_empty() || self.core.has_work() || self.history.ready
    }

    /// Does slice after slice until the turn's budget is used up. Returns true if more is left.
    pub(super) fn long_work(&mut self, now: Now) -> bool {
        if !self.has_long_work() {
            return false;
        }
        // Some in each turn, so that clients cannot starve the exchanges.
        let least = self.clock.mono() + MIN_LONG_WORK;
        while self.has_long_work() {
            // The three kinds take turns, also across turns of the loop. The clock is read after each
            // slice.
            self.next_slice = (self.next_slice + 1) % 3;
            let done = match self.next_slice {
                0 => self.move_upstream(now),
                1 => self.work_core(now),
                _ => self.take_answer(now),
            };
            if !done {
                continue;
            }
            // Also late in a turn, a response is sent as soon as it is made: it takes memory until then.
            self.carry_out(now);
            let time = self.clock.mono();
            self.pace.took = time.since(now.mono);
            if self.pace.took >= TURN_BUDGET && time >= least {
                return true;
            }
        }
        false
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

    fn take_answer(&mut self, now: Now) -> bool {
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
