//! A sink that collects all records of one response.

use crate::exchange::{Explained, Reject, Sink};
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;
use std::collections::HashMap;

/// How many of a kind are shown.
pub(super) const SHOWN: usize = 5;

/// The records of one response.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) tickers: Vec<(String, Ticker)>,
    pub(super) stats: Option<Stats>,
    pub(super) candles: Vec<Candle>,
    pub(super) markets: Vec<MarketInfo>,
    pub(super) times: Vec<UnixMs>,
    pub(super) stamp: Option<UnixMs>,
    pub(super) rejected: Vec<String>,
    /// The items as they were sent.
    pub(super) explained: Vec<Explained>,
    /// The ids of the market list, once it is known, and the assets of each.
    pub(super) listed: HashMap<String, [String; 2]>,
    /// True if tickers of other markets are counted alone.
    pub(super) is_of_all: bool,
    pub(super) unlisted: usize,
    /// The first ids of those.
    pub(super) others: Vec<String>,
}

/// The symbol of a market.
pub(super) fn symbol(market: &MarketInfo) -> String {
    format!("{}/{}", market.base, market.quote)
}

impl Kept {
    /// What the symbols of markets would be that can have none.
    pub(super) fn odd(&self) -> impl Iterator<Item = String> {
        let is_odd = |asset: &str| {
            !(1..=20).contains(&asset.len())
                || !asset.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit())
        };
        let odd = self.markets.iter().filter(move |it| is_odd(&it.base) || is_odd(&it.quote));
        odd.map(symbol)
    }

    fn is_listed(&mut self, id: &str) -> bool {
        let is_listed = !self.is_of_all || self.listed.is_empty() || self.listed.contains_key(id);
        self.unlisted += usize::from(!is_listed);
        if !is_listed && self.others.len() < SHOWN {
            self.others.push(id.to_owned());
        }
        is_listed
    }
}

impl Sink for Kept {
    fn wants(&mut self, ticker_id: &str) -> bool {
        self.is_listed(ticker_id)
    }
    fn assets(&self, ticker_id: &str) -> Option<[&str; 2]> {
        self.listed.get(ticker_id).map(|both| both.each_ref().map(String::as_str))
    }
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker) {
        self.tickers.push((ticker_id.to_owned(), ticker));
    }
    fn stats(&mut self, _: &str, stats: Stats) {
        self.stats = Some(stats);
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
    fn explained(&mut self, item: Explained) {
        self.explained.push(item);
    }
    fn rejected(&mut self, reason: Reject<'_>) {
        if reason.id.is_none_or(|id| self.is_listed(id)) {
            self.rejected.push(reason.to_string());
        }
    }
}
