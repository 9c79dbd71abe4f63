//! The agenda: what the pollers, their quotes, failover and the archive want next.
//!
//! Every turn of the loop asks for it several times, and most turns serve clients and change none
//! of it: so it is kept, until one of those that it is about has been let act.
//!
//! Invariant: what is kept is what would be worked out now. Whoever lets one of them act says so
//! ([`Rest::upset_agenda`]); debug builds look each time.

use super::Rest;
use super::poller::Poller;
use crate::time::Mono;

/// The latest moment stands for never.
pub const NEVER: Mono = Mono(u64::MAX);

/// See the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agenda {
    /// When time is to be told to one of them.
    pub due: Mono,
    /// Whether one of them has something to do that takes long.
    pub has_work: bool,
    /// Answers that have been read and are not yet wholly in the market.
    pub staged: usize,
}

impl Rest {
    /// The agenda, worked out where it is not known.
    #[inline]
    pub(super) fn agenda(&self) -> Agenda {
        let Some(agenda) = self.agenda.get() else {
            return self.plan();
        };
        debug_assert_eq!(agenda, self.work_out(), "somebody acted and did not say so");
        agenda
    }

    /// Whether nobody wants to be told that it is `now`.
    #[inline]
    pub(super) fn is_quiet(&self, now: Mono) -> bool {
        self.agenda.get().is_some() && self.agenda().due > now
    }

    /// Something has acted: what it wants next may have changed.
    pub(super) fn upset_agenda(&mut self) {
        self.agenda.set(None);
    }

    #[cold]
    fn plan(&self) -> Agenda {
        let agenda = self.work_out();
        self.agenda.set(Some(agenda));
        agenda
    }

    fn work_out(&self) -> Agenda {
        let wakes = self.pollers.iter().filter_map(Poller::wake_at);
        // Who is stopping asks nothing more.
        let wakes = wakes.filter(|_| !self.status.stopping);
        let flip = self.market.quotes.next_flip();
        let others = [
            flip,
            self.failover.next_due(),
            self.health.next_due(),
            self.archive.due(),
        ];
        Agenda {
            due: wakes
                .chain(others.into_iter().flatten())
                .min()
                .unwrap_or(NEVER),
            has_work: self.archive.has_work() || self.pollers.iter().any(Poller::has_work),
            staged: self.pollers.iter().map(Poller::staged).sum(),
        }
    }
}
