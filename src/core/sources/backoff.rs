//! The state of a source, and its back-off after failures.
//!
//! [`Backoff`] owns the count of failures in a row, the end of the running back-off, and the steps of
//! [`SourceState`]. A source is up while quotes of it are served; it backs off after a failure; if the quotes
//! that came last grow stale before others come, it is down.

use crate::core::context::Context;
use crate::core::sources::fault::Fault;
use crate::core::stats::{SourceState, on_wall};
use crate::http::RetryAfter;
use crate::log_targets::SOURCE;
use crate::market::SourceId;
use crate::rng::Rng;
use crate::time::Mono;
use std::time::Duration;

/// Longest that an exchange's `Retry-After` is obeyed: a day. A ban can last that long.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// See the module's page.
pub struct Backoff {
    source: SourceId,
    failures: u32,
    /// When the running back-off began.
    since: Mono,
    /// Until when nothing is requested.
    pub until: Mono,
    /// When quotes last came; before that, when the source began.
    quotes_at: Mono,
    rng: Rng,
}

impl Backoff {
    /// No back-off. `seed` is that of the jitter.
    pub fn new(source: SourceId, seed: u64, now: Mono) -> Backoff {
        Backoff { source, failures: 0, since: now, until: now, quotes_at: now, rng: Rng::new(seed) }
    }

    /// Continues the failures of another source of the same exchange, and its back-off if that ends later.
    pub fn continue_from(&mut self, other: &Backoff, cx: &mut Context) {
        self.failures = self.failures.max(other.failures);
        if other.until > self.until {
            (self.since, self.until) = (other.since, other.until);
            let status = &mut cx.stats[self.source];
            status.state = SourceState::Backoff;
            status.failing_since.get_or_insert(cx.now.unix);
            status.backoff_until = Some(on_wall(self.until, cx.now));
        }
    }

    /// True after a failure, until quotes or the first market list have come.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Quotes have come, which ends the run of failures. A good response of another kind does not.
    pub fn quotes_received(&mut self, cx: &mut Context) {
        cx.stats[self.source].quotes_at = Some(cx.now.unix);
        self.quotes_at = cx.now.mono;
        self.recovered(cx);
    }

    /// Ends the run of failures: quotes or the first market list have come.
    pub fn recovered(&mut self, cx: &mut Context) {
        let status = &mut cx.stats[self.source];
        let failures = std::mem::take(&mut self.failures);
        if failures > 0 {
            log::info!(target: SOURCE, "answers again source={} failures={failures}", status.id);
        }
        let is_first = !status.quotes_polled && status.state != SourceState::Up;
        if is_first && self.until <= cx.now.mono {
            // The list has come, or a response whose quotes are not all in the market yet.
            status.leave_backoff(SourceState::Starting);
        }
        if status.state == SourceState::Down && cx.now.mono < self.stale_at(cx) {
            // The exchange has asked for a pause, and what it still sent is fresh.
            cx.stats[self.source].state = SourceState::Backoff;
        }
    }

    /// Quotes are served from now on. If the exchange has asked for a pause meanwhile, that holds.
    pub fn quotes_served(&self, cx: &mut Context) {
        if self.until <= cx.now.mono {
            cx.stats[self.source].leave_backoff(SourceState::Up);
        }
    }

    /// When a source that backs off counts as down, whether it is asked again before or not.
    pub fn down_at(&self, cx: &Context) -> Option<Mono> {
        let backs_off = cx.stats[self.source].state == SourceState::Backoff;
        backs_off.then(|| self.stale_at(cx))
    }

    /// When the quotes that came last grow stale.
    fn stale_at(&self, cx: &Context) -> Mono {
        self.quotes_at + cx.config.sources[self.source.index()].stale_after
    }

    /// Time has passed.
    pub fn handle_timeout(&self, cx: &mut Context) {
        if self.down_at(cx).is_some_and(|at| at <= cx.now.mono) {
            cx.stats[self.source].state = SourceState::Down;
        }
    }

    /// Counts the failure of a request that began at `began`, and sets the wait before the next one:
    /// `pollMs`, doubled with each failure in a row, at most `limits.backoffMaxMs`, less up to a tenth so
    /// that many daemons do not come back at once. A longer wait that the exchange asks for counts
    /// instead, up to [`RETRY_AFTER_MAX`].
    pub fn failed(&mut self, fault: &Fault, began: Mono, cx: &mut Context) {
        // What was requested before this back-off began fails of the same trouble: it counts once.
        if self.failures == 0 || began >= self.since {
            self.failures = self.failures.saturating_add(1);
            self.since = cx.now.mono;
        }
        let poll = cx.config.sources[self.source.index()].poll;
        let doubled = poll * 2u32.saturating_pow((self.failures - 1).min(16));
        let step = doubled.min(cx.config.limits.backoff_max);
        let step = step - Duration::from_micros(self.rng.below(step.as_micros() as u64 / 10));
        let asked = fault.retry_after().map(|after| match after {
            RetryAfter::Seconds(seconds) => Duration::from_secs(seconds),
            RetryAfter::Date(date) => {
                Duration::from_millis((date - cx.exchange_time(self.source)).max(0) as u64)
            }
        });
        let wait = asked.unwrap_or(step).max(step).min(RETRY_AFTER_MAX);
        // What failed at the same time does not shorten what the exchange has asked for.
        self.until = self.until.max(cx.now.mono + wait);
        let is_stale = self.stale_at(cx) <= cx.now.mono;
        let status = &mut cx.stats[self.source];
        status.state = match is_stale {
            true => SourceState::Down,
            false => SourceState::Backoff,
        };
        status.failing_since.get_or_insert(cx.now.unix);
        status.backoff_until = Some(on_wall(self.until, cx.now));
        log::debug!(
            target: SOURCE,
            "back-off source={} failures={} state={} wait_ms={} asked_for_ms={}",
            status.id,
            self.failures,
            status.state.name(),
            self.until.since(cx.now.mono).as_millis(),
            asked.map_or(0, |asked| asked.as_millis()),
        );
    }
}
