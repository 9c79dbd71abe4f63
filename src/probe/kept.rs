//! What an answer brought, all of it.

use crate::exchange::{Reject, Sink};
use crate::record::{Candle, MarketInfo, Ticker};
use crate::time::UnixMs;

/// Everything that an answer brought.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) tickers: Vec<(String, Ticker)>,
    pub(super) candles: Vec<Candle>,
    pub(super) markets: Vec<MarketInfo>,
    pub(super) times: Vec<UnixMs>,
    pub(super) stamp: Option<UnixMs>,
    pub(super) rejected: Vec<String>,
}

impl Sink for Kept {
    fn wants(&mut self, _: &str) -> bool {
        true
    }
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker) {
        self.tickers.push((ticker_id.to_owned(), ticker));
    }
    fn candle(&mut self, candle: Candle, _: Option<bool>) {
        self.candles.push(candle);
    }
    fn market(&mut self, info: MarketInfo) {
        self.markets.push(info);
    }
    fn stamp(&mut self, time: UnixMs) {
        self.stamp = Some(time);
    }
    fn time(&mut self, time: UnixMs) {
        self.times.push(time);
    }
    fn rejected(&mut self, reason: Reject<'_>) {
        self.rejected.push(reason.to_string());
    }
}
