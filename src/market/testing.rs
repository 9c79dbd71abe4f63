//! Makings of the tests of this room: configurations, records and a seeded generator.

use crate::config::{Config, Data, History, Limits, SourceConfig};
use crate::decimal::Decimal;
use crate::record::{Candle, MarketInfo, MarketRules, Ticker};
use crate::time::UnixMs;
use std::time::Duration;

pub(super) fn decimal(text: &str) -> Decimal {
    Decimal::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A source that tracks `symbols` and what is quoted in `quote_assets`; stale after 15 s, frozen
/// after 300 s.
pub(super) fn source(id: &str, symbols: &[&str], quote_assets: &[&str]) -> SourceConfig {
    SourceConfig {
        id: id.to_string(),
        dialect: "binance".to_string(),
        url: None,
        symbols: symbols.iter().map(|text| text.to_string()).collect(),
        quote_assets: quote_assets.iter().map(|text| text.to_string()).collect(),
        poll: Duration::from_secs(2),
        stale_after: Duration::from_secs(15),
        frozen_after: Duration::from_secs(300),
        timeout: Duration::from_secs(5),
    }
}

pub(super) fn config(sources: Vec<SourceConfig>) -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        ecosystem_listen: None,
        base_path: String::new(),
        ecosystem_base_path: String::new(),
        data: Data::Memory,
        sources,
        history: History::default(),
        demo: None,
        categories: Vec::new(),
        ecosystem: None,
        limits: Limits::default(),
    }
}

/// The market `BASE/QUOTE` with the ticker id `BASEQUOTE`; a `!` in front makes it inactive.
pub(super) fn info(text: &str) -> MarketInfo {
    let name = text.trim_start_matches('!');
    let (base, quote) = name.split_once('/').expect("BASE/QUOTE");
    MarketInfo {
        ticker_id: [base, quote].concat().into(),
        candle_id: None,
        base: base.into(),
        quote: quote.into(),
        active: !text.starts_with('!'),
        rules: MarketRules::default(),
    }
}

/// A ticker of which only the last price is known.
pub(super) fn ticker(last: &str) -> Ticker {
    Ticker {
        last: decimal(last),
        bid: None,
        ask: None,
        bid_volume: None,
        ask_volume: None,
        open: None,
        high: None,
        low: None,
        change: None,
        percentage: None,
        base_volume: None,
        quote_volume: None,
        timestamp: None,
    }
}

/// Numbers from a seed (Sebastiano Vigna, "splitmix64").
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The next number of a seeded sequence (Sebastiano Vigna, "splitmix64.c").
pub(crate) fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A candle of whole numbers: open, high, low, close.
pub(crate) fn candle(open_ms: i64, prices: [i64; 4], volume: i64) -> Candle {
    let [open, high, low, close] = prices.map(Decimal::from);
    Candle {
        open_time: UnixMs(open_ms),
        open,
        high,
        low,
        close,
        volume: Decimal::from(volume),
    }
}
