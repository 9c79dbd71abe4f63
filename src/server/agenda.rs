//! The next wake-up: what the sources, their quotes, failover, the health log and the history want next.
//!
//! Every turn of the loop asks for it several times, and most turns serve clients and change none of
//! it: so the core keeps it until one of those that it is about has acted.

use super::archive::Archive;
use super::failover::Failover;
use super::health::HealthLog;
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
    /// Responses that have been read and are not yet wholly in the market.
    pub staged: usize,
}

impl Agenda {
    /// What these want. `flip`: when a quote becomes stale. Who is stopping asks nothing more of
    /// exchanges.
    pub fn of(
        pollers: &[Poller],
        (flip, is_stopping): (Option<Mono>, bool),
        failover: &Failover,
        health: &HealthLog,
        archive: &Archive,
    ) -> Agenda {
        let wakes = pollers.iter().filter_map(Poller::wake_at);
        let wakes = wakes.filter(|_| !is_stopping);
        let others = [flip, failover.next_due(), health.next_due(), archive.due()];
        Agenda {
            due: wakes
                .chain(others.into_iter().flatten())
                .min()
                .unwrap_or(NEVER),
            has_work: archive.has_work() || pollers.iter().any(Poller::has_work),
            staged: pollers.iter().map(Poller::staged).sum(),
        }
    }
}
