//! What can wait: exchanges and the core's long work, in slices.
//!
//! Owns how much of it a turn does. It decides nothing else.

use super::{Driver, UPSTREAM_SLICE};
use crate::time::Now;
use std::time::Duration;

/// Time for exchanges and the core's long work in each turn, however busy the clients are: as long
/// as the largest slice of either takes, so that many small ones come as far.
const LONG_LEAST: Duration = Duration::from_micros(100);

impl Driver {
    /// Whether there is something to do that can wait.
    pub(super) fn has_long_work(&self) -> bool {
        !self.upstream.is_empty() || self.core.has_work() || self.history.ready
    }

    /// Exchanges and the core's long work, slice after slice, until the turn's budget is used up.
    pub(super) fn long_work(&mut self, now: Now) {
        if !self.has_long_work() {
            return;
        }
        // Some of each a turn, so that clients cannot starve the exchanges.
        let least = self.clock.mono() + LONG_LEAST;
        loop {
            if let Some(key) = self.upstream.pop_front() {
                self.pump(key, UPSTREAM_SLICE, now);
                self.carry_out(now);
            }
            if self.core.has_work() {
                self.core.work(now);
                self.carry_out(now);
            }
            if self.history.ready
                && let Some(answer) = self.history.answer()
            {
                self.core.stored(answer, now);
                self.carry_out(now);
            }
            let idle = !self.has_long_work();
            if idle || (self.is_over(now) && self.clock.mono() >= least) {
                return;
            }
        }
    }
}
