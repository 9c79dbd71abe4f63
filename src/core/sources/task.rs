//! What is asked of an exchange, one request each.
//!
//! Owns the kinds of requests and what they have in common. It never says when one is due.

use crate::market::{Market, SeriesKey, SymbolId};
use std::ops::Range;
use std::time::Duration;

/// What is asked of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Its market list.
    Markets,
    /// Its clock.
    Time,
    /// All its tickers.
    Tickers,
    /// The ticker of one market.
    Ticker(SymbolId),
    /// The figures of 24 hours of one market, where its ticker lacks them.
    Stats(SymbolId),
    /// Candles of these slots.
    Candles {
        /// Of which series.
        series: SeriesKey,
        /// Slots of the series' interval.
        slots: Range<i64>,
    },
}

impl Task {
    /// Whether it brings quotes.
    pub fn is_quotes(&self) -> bool {
        matches!(self, Task::Tickers | Task::Ticker(_))
    }

    /// Whether both ask for the same kind of thing.
    pub fn is_like(&self, other: &Task) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// How long a request of this kind may take. A market list is up to a hundred times the size of
/// anything else, and nobody waits for it.
pub fn time_for(task: &Task, timeout: Duration) -> Duration {
    match task {
        Task::Markets => timeout * 4,
        _ => timeout,
    }
}

/// A task in words, for the log and the metrics.
pub fn describe(task: &Task, market: &Market) -> String {
    match task {
        Task::Markets => "market list".to_string(),
        Task::Time => "clock".to_string(),
        Task::Tickers => "quotes".to_string(),
        Task::Ticker(symbol) => {
            format!("quote of {}", market.catalog.name(*symbol).as_str())
        }
        Task::Stats(symbol) => {
            format!("24 hours of {}", market.catalog.name(*symbol).as_str())
        }
        Task::Candles { series, .. } => {
            let symbol = market.catalog.name(series.symbol).as_str();
            format!("{} candles of {symbol}", series.interval.name())
        }
    }
}
