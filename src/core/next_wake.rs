//! The next wake-up: what the sources, their quotes, failover, the health log and the history want next.
//!
//! Every turn of the loop asks for it several times, and most turns serve clients and change none of
//! it: so the core keeps it until one of those that it is about has acted.

use super::Core;
use super::sources::Poller;
use crate::time::Mono;

/// The latest moment stands for never.
pub const NEVER: Mono = Mono(u64::MAX);

/// See the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextWake {
    /// When time is to be told to one of them.
    pub due: Mono,
    /// Whether one of them has something to do that takes long.
    pub has_work: bool,
    /// Responses that have been read and are not yet wholly in the market.
    pub staged: usize,
}

impl Core {
    /// The next wake-up, worked out where it is not known.
    ///
    /// Invariant: what is kept is what would be worked out now. Whoever lets a part of it act forgets
    /// it; debug builds look each time.
    #[inline]
    pub(super) fn next_wake(&self) -> NextWake {
        let Some(known) = self.next_wake.get() else {
            return self.plan();
        };
        debug_assert_eq!(known, self.work_out(), "somebody acted and did not say so");
        known
    }

    /// Whether nobody wants to be told that it is `now`.
    #[inline]
    pub(super) fn is_quiet(&self, now: Mono) -> bool {
        self.next_wake.get().is_some() && self.next_wake().due > now
    }

    #[cold]
    fn plan(&self) -> NextWake {
        let next = self.work_out();
        self.next_wake.set(Some(next));
        next
    }

    fn work_out(&self) -> NextWake {
        let pollers = &self.sources.pollers;
        let wakes = pollers.iter().filter_map(Poller::wake_at);
        // Who is stopping asks nothing more of exchanges.
        let wakes = wakes.filter(|_| !self.stats.stopping);
        let others = [
            self.market.quotes.next_flip(),
            self.sources.failover.next_due(),
            self.health.next_due(),
            self.history.due(),
        ];
        NextWake {
            due: wakes
                .chain(others.into_iter().flatten())
                .min()
                .unwrap_or(NEVER),
            has_work: self.history.has_work() || pollers.iter().any(Poller::has_work),
            staged: pollers.iter().map(Poller::staged).sum(),
        }
    }
}
