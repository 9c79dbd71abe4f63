//! A sink: the receiver of the records of a response as they are read.

use super::error::Reject;
use super::explain::Explained;
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;

/// The receiver of the records of a response. They must not be used before
/// [`Reading::finish`](super::Reading::finish) returns `Ok`.
pub trait Sink {
    /// True if this ticker is wanted. If not, its numbers are not read. It may be asked again about a
    /// ticker that comes in pieces.
    fn wants(&mut self, ticker_id: &str) -> bool;
    /// A ticker has come, wanted or not.
    fn seen(&mut self) {}
    /// Base and quote of the market of the ticker that was last wanted, by their common names, if known.
    fn assets(&self, _ticker_id: &str) -> Option<[&str; 2]> {
        None
    }
    /// A ticker that was wanted.
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker);
    /// Wanted figures of 24 hours. They come for [`Call::Stats`](super::Call::Stats) only.
    fn stats(&mut self, _ticker_id: &str, _stats: Stats) {}
    /// A candle. `is_forming`: the exchange says that it is not closed yet.
    fn candle(&mut self, candle: Candle, is_forming: bool);
    /// A market of the list.
    fn market(&mut self, info: MarketInfo);
    /// The time of all tickers of the response that have none of their own. It comes after them.
    fn stamp(&mut self, _time: UnixMs) {}
    /// The exchange's clock.
    fn time(&mut self, time: UnixMs);
    /// What an item is, wrong or not, if the reading [explains](super::Reading::explain) it.
    fn explained(&mut self, _item: Explained) {}
    /// A wrong item. The others go on.
    fn rejected(&mut self, reason: Reject<'_>);
}
