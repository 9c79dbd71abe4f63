//! A sink: who takes the records of a response as they are read.
//!
//! Owns the order of events between a reader and whoever uses what it reads.

use super::error::Reject;
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;

/// Who takes what an answer holds. Nothing may be believed before [`Reading::finish`](super::Reading::finish) is `Ok`.
pub trait Sink {
    /// True if this ticker is useful. Where not, its numbers are not even looked at.
    fn wants(&mut self, ticker_id: &str) -> bool;
    /// A ticker that was wanted.
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker);
    /// Figures of 24 hours that were wanted. They come for [`Call::Stats`](super::Call::Stats) alone: who does not
    /// ask so needs no place for them.
    fn stats(&mut self, _ticker_id: &str, _stats: Stats) {}
    /// A candle; `closed` is the exchange's own word, where it gives one.
    fn candle(&mut self, candle: Candle, closed: Option<bool>);
    /// A market of the list.
    fn market(&mut self, info: MarketInfo);
    /// The response's own time, for tickers of it that were given without one: it stood behind them.
    fn stamp(&mut self, _time: UnixMs) {}
    /// The exchange's clock.
    fn time(&mut self, time: UnixMs);
    /// An item that is wrong; the others go on.
    fn rejected(&mut self, reason: Reject<'_>);
}
