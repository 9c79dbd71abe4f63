//! The next wake-up: what the sources, the quotes, failover, the health log, the history and the cluster
//! want next.

use super::api::health_log::HealthLog;
use super::cluster::Cluster;
use super::context::Context;
use super::history::History;
use super::sources::Sources;
use crate::time::Mono;
use std::cell::Cell;

/// See the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextWake {
    /// When one of them is to be told that time has passed.
    pub due: Mono,
    /// True if one of them has a job to step.
    pub has_work: bool,
    /// Responses that are read and not yet completely in the market.
    pub staged: usize,
}

impl NextWake {
    /// Of what these want.
    pub fn of(
        sources: &Sources,
        history: &History,
        health: &HealthLog,
        cluster: Option<&Cluster>,
        cx: &Context,
    ) -> NextWake {
        let staged = sources.staged();
        let is_reading = cluster.is_some_and(|it| it.has_work(staged));
        // At the end nothing more is requested from exchanges.
        let sources_due = sources.due().filter(|_| !cx.stats.stopping);
        let all = [
            sources_due,
            cx.market.quotes.next_flip(),
            sources.failover_due(),
            health.next_due(),
            history.due(),
            cluster.and_then(Cluster::due),
        ];
        NextWake {
            due: all.into_iter().flatten().min().unwrap_or(Mono::NEVER),
            has_work: history.has_work() || sources.has_work() || is_reading,
            staged,
        }
    }
}

/// The next wake-up, computed when it is not known.
///
/// Invariant: the cached value equals a recomputation. Every change of what it is computed from must call
/// [`CachedWake::forget`]; debug builds compare each time.
#[derive(Default)]
pub struct CachedWake(Cell<Option<NextWake>>);

impl CachedWake {
    /// The next wake-up.
    #[inline]
    pub fn get(&self, compute: impl Fn() -> NextWake) -> NextWake {
        let known = self.0.get();
        debug_assert!(
            known.is_none_or(|it| it == compute()),
            "a change did not forget the next wake-up"
        );
        known.unwrap_or_else(|| {
            let next = compute();
            self.0.set(Some(next));
            next
        })
    }

    /// It is not known any more.
    pub fn forget(&self) {
        self.0.set(None);
    }

    /// True if it is known, and later than this.
    #[inline]
    pub fn is_after(&self, now: Mono) -> bool {
        self.0.get().is_some_and(|it| it.due > now)
    }
}
