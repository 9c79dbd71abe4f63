//! Recorded bodies: the names of their calls, and what stands for what was not recorded.

use crate::exchange::Call;
use crate::record::{MarketInfo, MarketRules};
use crate::time::UnixMs;

/// True of a time that only a wrong unit gives: before 2009, or after 2100.
pub(super) fn is_absurd(time: UnixMs) -> bool {
    !(1_230_768_000_000..4_102_444_800_000).contains(&time.0)
}

/// The name of a call in `--body`.
pub(super) fn name_of(call: &Call<'_>) -> &'static str {
    match call {
        Call::Time => "time",
        Call::Markets => "markets",
        Call::Tickers => "tickers",
        Call::Several { .. } | Call::Ticker { .. } => "ticker",
        Call::Stats { .. } => "stats",
        Call::Candles { interval, .. } => interval.name(),
    }
}

/// The market in place of one of a list.
pub(super) fn unnamed() -> MarketInfo {
    MarketInfo {
        ticker_id: Box::default(),
        candle_id: None,
        base: Box::default(),
        quote: Box::default(),
        rules: MarketRules::default(),
        active: true,
    }
}
