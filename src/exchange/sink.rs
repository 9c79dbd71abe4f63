//! The sink: receives the records of a response as they are read.

use super::error::Reject;
use super::explain::Explained;
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;

/// The receiver of the records of a response. They must not be used before
/// [`Reading::finish`](super::Reading::finish) returns `Ok`.
pub trait Sink {
    /// Returns true if this ticker is wanted. The numbers of an unwanted ticker are not read. It may be
    /// called again for a ticker that comes in pieces.
    fn wants(&mut self, ticker_id: &str) -> bool;
    /// Notes that a ticker has come, wanted or not.
    fn seen(&mut self) {}
    /// Base and quote of the ticker's market by their common names, if known.
    fn assets(&self, _ticker_id: &str) -> Option<[&str; 2]> {
        None
    }
    /// Takes a wanted ticker.
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker);
    /// Takes wanted figures of 24 hours. They come only for [`Call::Stats`](super::Call::Stats).
    fn stats(&mut self, _ticker_id: &str, _stats: Stats) {}
    /// Takes a candle. `is_forming` is true if the exchange says that it is not closed yet.
    fn candle(&mut self, candle: Candle, is_forming: bool);
    /// Takes a market of the list.
    fn market(&mut self, info: MarketInfo);
    /// Takes the time of all tickers of the response that have no time of their own. It comes after
    /// the tickers.
    fn stamp(&mut self, _time: UnixMs) {}
    /// Takes the time by the exchange's clock.
    fn time(&mut self, time: UnixMs);
    /// Takes the explanation of an item, wrong or not, if the reading
    /// [explains](super::Reading::explain).
    fn explained(&mut self, _item: Explained) {}
    /// Takes the reason why an item was rejected. The other items are not affected.
    fn rejected(&mut self, reason: Reject<'_>);
}
