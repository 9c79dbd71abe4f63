//! The shelf: what the archive works on, lent for the length of a call.

use super::Action;
use super::status::{HistoryStatus, SourceStatus};
use crate::config::Config;
use crate::market::Market;
use std::collections::VecDeque;

/// The parts of the core that the archive works on.
#[cfg_attr(
    not(feature = "sqlite"),
    expect(dead_code, reason = "without a file, nothing is taken from it")
)]
pub struct Shelf<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Where candles and quotes come from and go to.
    pub market: &'a mut Market,
    /// The public record.
    pub status: &'a mut HistoryStatus,
    /// Those of the sources, whose clocks count.
    pub sources: &'a [SourceStatus],
    /// What the driver is to do.
    pub actions: &'a mut VecDeque<Action>,
}
