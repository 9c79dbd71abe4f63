//! What every part of the core works on, beside its own state: one [`Context`], which the core owns.

use crate::config::Config;
use crate::core::{Action, Status};
use crate::log_targets::SOURCE;
use crate::market::{Market, SourceId};
use crate::time::{Now, UnixMs};
use std::collections::VecDeque;
use std::time::Duration;

/// The wall clock has moved against the monotonic one when it did so by more than this: reading one
/// after the other takes less, also on a busy machine, and both are slewed together.
const CLOCKS_MOVED_MS: i64 = 2000;

/// What belongs to no single part. [`Core`](crate::core::Core) owns it, and lends it with each call.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// Quotes, markets and candles.
    pub market: Market,
    /// The figures that metrics and health report.
    pub stats: Status,
    /// What the driver is to do.
    pub actions: VecDeque<Action>,
    /// The time of this call.
    pub now: Now,
    /// What the wall clock shows when the monotonic one is zero, in milliseconds.
    wall_zero: i64,
}

impl Context {
    /// A context without actions.
    pub fn new(config: Config, market: Market, stats: Status, now: Now) -> Context {
        Context { config, market, stats, actions: VecDeque::new(), now, wall_zero: wall_zero(now) }
    }

    /// The exchange's time now, as far as it is known.
    pub fn exchange_time(&self, source: SourceId) -> UnixMs {
        self.stats[source].exchange_time(self.now)
    }

    /// True if the wall clock has moved against the monotonic one since the last call, by more than
    /// clocks do: the machine slept, or a clock was set. Then the quotes are older than they look.
    pub fn clocks_moved(&mut self) -> bool {
        let zero = wall_zero(self.now);
        let moved_ms = zero - self.wall_zero;
        if moved_ms.abs() <= CLOCKS_MOVED_MS {
            return false;
        }
        self.wall_zero = zero;
        log::warn!(target: SOURCE, "wall clock moved ms={moved_ms}");
        if let Ok(by_ms) = u64::try_from(moved_ms) {
            let by = Duration::from_millis(by_ms);
            self.market.quotes.aged(by, self.now.mono);
        }
        true
    }
}

/// What the wall clock shows when the monotonic one is zero, in milliseconds.
fn wall_zero(now: Now) -> i64 {
    now.unix.0 - (now.mono.0 / 1000) as i64
}
