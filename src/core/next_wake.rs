//! The next wake-up: what the sources, their quotes, failover, the health log and the history want next.

use super::api::health_log::HealthLog;
use super::context::Context;
use super::history::History;
use super::sources::Sources;
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

impl NextWake {
    /// Of what these want.
    pub fn of(sources: &Sources, history: &History, health: &HealthLog, cx: &Context) -> NextWake {
        // Who is stopping asks nothing more of exchanges.
        let sources_due = sources.due().filter(|_| !cx.stats.stopping);
        let all = [
            sources_due,
            cx.market.quotes.next_flip(),
            sources.failover_due(),
            health.next_due(),
            history.due(),
        ];
        NextWake {
            due: all.into_iter().flatten().min().unwrap_or(NEVER),
            has_work: history.has_work() || sources.has_work(),
            staged: sources.staged(),
        }
    }
}
