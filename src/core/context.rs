//! What a part of the core borrows to work on.

use crate::config::Config;
use crate::core::{Action, Status};
use crate::market::Market;
use crate::time::Now;
use std::collections::VecDeque;

/// The parts of the core that have no owner among its parts, for the length of one call.
pub struct Context<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Quotes, markets and candles.
    pub market: &'a mut Market,
    /// The figures that metrics and health report.
    pub stats: &'a mut Status,
    /// What the driver is to do.
    pub actions: &'a mut VecDeque<Action>,
    /// The time of this turn.
    pub now: Now,
}
