//! A sink that collects all records of one response.

use crate::exchange::{Reject, Sink};
use crate::record::{Candle, MarketInfo, Ticker};
use crate::time::UnixMs;
use std::collections::HashSet;

/// The records of one response.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) tickers: Vec<(String, Ticker)>,
    pub(super) candles: Vec<Candle>,
    pub(super) markets: Vec<MarketInfo>,
    pub(super) times: Vec<UnixMs>,
    pub(super) stamp: Option<UnixMs>,
    pub(super) rejected: Vec<String>,
    /// The ids of the market list, once it is known. Tickers of other markets are counted alone.
    pub(super) listed: HashSet<String>,
    pub(super) unlisted: usize,
}

impl Kept {
    fn is_listed(&mut self, id: &str) -> bool {
        let is_listed = self.listed.is_empty() || self.listed.contains(id);
        self.unlisted += usize::from(!is_listed);
        is_listed
    }
}

impl Sink for Kept {
    fn wants(&mut self, ticker_id: &str) -> bool {
        self.is_listed(ticker_id)
    }
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker) {
        self.tickers.push((ticker_id.to_owned(), ticker));
    }
    fn candle(&mut self, candle: Candle, _: bool) {
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
        if reason.id.is_none_or(|id| self.is_listed(id)) {
            self.rejected.push(reason.to_string());
        }
    }
}
