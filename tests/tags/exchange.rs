//! A thin exchange in Binance's dialect: few of its minutes have a trade, its list of markets
//! changes, and it revises candles. It answers from its state alone, and keeps no connection.

use crate::support::Rng;
use crate::support::chance::mix;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Milliseconds of the stored intervals.
const INTERVALS: [(&str, i64); 3] = [("1m", 60_000), ("1h", 3_600_000), ("1d", 86_400_000)];

/// Rows of one page.
const PAGE: usize = 1000;

/// See the module's page.
pub struct Exchange {
    seed: u64,
    /// Listed, by base asset; the quote asset is USDT. The value is what its rules are made of.
    pub listed: BTreeMap<String, u64>,
    /// Listed and not trading.
    pub halted: BTreeSet<String>,
    /// Last prices, of those that have one.
    pub prices: BTreeMap<String, u64>,
    /// Counts the revisions of a candle.
    revised: BTreeMap<(String, i64, i64), u64>,
    /// Whether it answers at all.
    pub is_up: bool,
}

impl Exchange {
    pub fn new(seed: u64, markets: usize) -> Exchange {
        let names = (0..markets).map(|at| format!("M{at:03}"));
        let listed: BTreeMap<String, u64> = names.map(|name| (name, 1)).collect();
        Exchange {
            seed,
            prices: listed.keys().map(|name| (name.clone(), 100)).collect(),
            listed,
            halted: BTreeSet::new(),
            revised: BTreeMap::new(),
            is_up: true,
        }
    }

    /// Changes something. Few different values, so that a state may come back.
    pub fn change(&mut self, rng: &mut Rng, now_ms: i64) {
        let at = rng.below(self.listed.len() as u64) as usize;
        let name = self.listed.keys().nth(at).cloned().unwrap_or_default();
        match rng.below(12) {
            0 => self.is_up = !self.is_up,
            1 if self.listed.len() > 200 => drop(self.listed.remove(&name)),
            2 => drop(self.listed.insert(format!("M{:03}", rng.below(400)), 1)),
            3 => drop(self.listed.insert(name, 1 + rng.below(3))),
            4 if !self.halted.remove(&name) => drop(self.halted.insert(name)),
            5 => drop(self.prices.remove(&name)),
            6 | 7 => {
                let (_, length) = INTERVALS[rng.below(2) as usize];
                let slot = now_ms / length - rng.between(0, 5);
                *self.revised.entry(("M000".into(), length, slot)).or_default() += 1;
            }
            _ => drop(self.prices.insert(name, 95 + rng.below(10))),
        }
        if rng.chance(1, 2) {
            self.prices.insert("M000".into(), 95 + rng.below(10));
        }
        // A silence long enough that quotes become stale, and no longer.
        self.is_up |= rng.chance(1, 3);
    }

    /// The body of an answer.
    pub fn answer(&self, target: &str, now_ms: i64) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path {
            "/api/v3/time" => format!("{{\"serverTime\":{now_ms}}}"),
            "/api/v3/exchangeInfo" => self.markets(),
            "/api/v3/ticker/24hr" => self.tickers(now_ms),
            "/api/v3/klines" => self.candles(query, now_ms),
            other => panic!("nobody answers {other}"),
        }
    }

    fn markets(&self) -> String {
        let market = |(base, rules): (&String, &u64)| {
            let status = match self.halted.contains(base) {
                true => "BREAK",
                false => "TRADING",
            };
            format!(
                "{{\"symbol\":\"{base}USDT\",\"status\":\"{status}\",\"baseAsset\":\"{base}\",\
                 \"quoteAsset\":\"USDT\",\"filters\":[{{\"filterType\":\"NOTIONAL\",\
                 \"minNotional\":\"{rules}\"}}]}}"
            )
        };
        let markets: Vec<String> = self.listed.iter().map(market).collect();
        format!("{{\"symbols\":[{}]}}", markets.join(","))
    }

    fn tickers(&self, now_ms: i64) -> String {
        let ticker = |(base, price): (&String, &u64)| {
            format!(
                "{{\"symbol\":\"{base}USDT\",\"lastPrice\":\"{price}\",\"closeTime\":{now_ms}}}"
            )
        };
        let tickers: Vec<String> = self.prices.iter().map(ticker).collect();
        format!("[{}]", tickers.join(","))
    }

    fn candles(&self, query: &str, now_ms: i64) -> String {
        let param = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let number = |name| param(name).and_then(|it| it.parse().ok()).expect("a number");
        let (from, to): (i64, i64) = (number("startTime"), number("endTime"));
        let name = param("symbol").and_then(|it| it.strip_suffix("USDT"));
        let name = name.expect("a market in USDT");
        let interval = param("interval").expect("an interval");
        let found = INTERVALS.iter().find(|(known, _)| *known == interval);
        let (_, length) = found.expect("a stored one");
        let slots = -(-from).div_euclid(*length)..=to.min(now_ms).div_euclid(*length);
        let rows = slots.filter_map(|slot| self.candle(name, *length, slot));
        let rows: Vec<String> = rows.take(PAGE).collect();
        format!("[{}]", rows.join(","))
    }

    /// The candle of a slot: in one of four, someone has traded.
    fn candle(&self, name: &str, length: i64, slot: i64) -> Option<String> {
        let key = (name.to_string(), length, slot);
        let revision = self.revised.get(&key).copied().unwrap_or(0);
        let mut chance = mix(self.seed ^ slot as u64 ^ (length as u64) << 32);
        for byte in name.bytes() {
            chance = mix(chance ^ u64::from(byte));
        }
        if !(chance % 4 + revision).is_multiple_of(4) {
            return None;
        }
        let (open, close) = (90 + (chance >> 8) % 20, 90 + (chance >> 16) % 20);
        let (high, low) = (open.max(close) + revision, open.min(close));
        let mut row = String::new();
        let written = write!(
            row,
            "[{},\"{open}\",\"{high}\",\"{low}\",\"{close}\",\"{}\",0,\"0\",0,\"0\",\"0\",\"0\"]",
            slot * length,
            1 + revision
        );
        written.expect("a text takes every character");
        Some(row)
    }
}
