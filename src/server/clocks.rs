//! The machine's two clocks, as far as they move against each other.
//!
//! Notices a suspend, a paused virtual machine and a wall clock that is set, and tells everything
//! that depends on the time.

use super::Rest;
use crate::log_targets::SOURCE;
use crate::market::SourceId;
use crate::time::Now;
use std::time::Duration;

/// The wall clock has moved against the monotonic one when it did so by more than this: reading one
/// after the other takes less, also on a busy machine, and both are slewed together.
const CLOCKS_MOVED_MS: i64 = 2000;

impl Rest {
    /// Sets the date of responses, and compares the machine's clocks once a second: no smaller move of
    /// one against the other matters.
    #[inline]
    pub(super) fn set_time(&mut self, now: Now) {
        if self.stamp.refresh(now.unix) {
            self.watch_clocks(now);
        }
    }

    /// Notices when the machine's clocks move against each other: it slept, or one was set. Nothing that
    /// was said before is as new as it looks, and nobody knows what time it is at the exchanges.
    #[cold]
    fn watch_clocks(&mut self, now: Now) {
        let zero = wall_zero(now);
        let moved = zero - self.wall_zero;
        if moved.abs() > CLOCKS_MOVED_MS {
            self.wall_zero = zero;
            self.clocks_moved(moved, now);
        }
    }

    fn clocks_moved(&mut self, ms: i64, now: Now) {
        log::warn!(
            target: SOURCE,
            "the wall clock moved by {ms} ms: asking the exchanges for their time"
        );
        if ms > 0 {
            let by = Duration::from_millis(ms.unsigned_abs());
            self.market.quotes.aged(by, now.mono);
        }
        for at in 0..self.pollers.len() {
            self.with_poller(SourceId(at as u16), |poller, desk| {
                poller.clocks_moved(desk, now)
            });
        }
        self.watch_failover(now.mono);
    }
}

/// What the wall clock shows when the monotonic one is zero, in milliseconds.
pub(super) fn wall_zero(now: Now) -> i64 {
    now.unix.0 - (now.mono.0 / 1000) as i64
}
