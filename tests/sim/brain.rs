//! What the made-up exchange knows: the figures of made-up markets, taken apart.
//!
//! Owns a memory of items that were made once. They are a pure function of seed, market and time,
//! so all runs of one test thread share it and none can change it. It never decides what is sent:
//! [`super::exchange`] does, and may bend it.

use crate::support::chance::mix;
use crate::support::generated::{GeneratedMarket, UNIT};
use crate::support::naive::{length_ms, plain};
use crate::support::{FIGURES, Json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The markets that have candles: base, quote, and the price around which each moves.
const TRADED: [(&str, &str, u64); 7] = [
    ("BTC", "USDT", 64_000 * UNIT),
    ("ETH", "USDT", 3100 * UNIT),
    ("DOGE", "USDT", UNIT / 7),
    ("SHIB", "USDT", 1234),
    ("ETH", "BTC", UNIT / 20),
    ("SOL", "BTC", UNIT / 500),
    ("BTC", "EUR", 59_000 * UNIT),
];

/// What a ticker calls the figures of a quote, in their order.
const MEMBERS: &str = "lastPrice bidPrice askPrice bidQty askQty openPrice highPrice lowPrice \
                       priceChange priceChangePercent volume quoteVolume";

/// What is to be served of one ticker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// By served name; `None`: null.
    pub named: Vec<(&'static str, Option<String>)>,
    pub timestamp: Option<i64>,
}

impl Figures {
    /// Reads the exchange's members, by its names.
    pub fn of(member: impl Fn(&str) -> Option<String>) -> Figures {
        let read = |(ours, theirs)| (ours, member(theirs).map(|text| plain(&text)));
        let mut named: Vec<_> = FIGURES.into_iter().zip(MEMBERS.split(' ')).map(read).collect();
        // A price of zero is none, and nothing is offered at no price.
        for (price, volume) in [(1, Some(3)), (2, Some(4)), (5, None), (6, None), (7, None)] {
            if named[price].1.as_deref() == Some("0") {
                named[price].1 = None;
            }
            if let (None, Some(volume)) = (&named[price].1, volume) {
                named[volume].1 = None;
            }
        }
        Figures { named, timestamp: member("closeTime").and_then(|text| text.parse().ok()) }
    }

    /// The figure of that served name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.named.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value.as_deref())
    }
}

/// One ticker as it is sent, and what it says.
#[derive(Clone, Debug)]
pub struct Ticker {
    pub text: String,
    pub figures: Figures,
}

/// One candle as it is sent, and what it says: open, high, low, close, volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub open_ms: i64,
    pub text: String,
    pub figures: [String; 5],
}

/// By seed, market, interval and slot.
type Rows = HashMap<(u64, usize, &'static str, i64), Rc<Row>>;

thread_local! {
    static TICKERS: RefCell<HashMap<(u64, usize, i64), Rc<Ticker>>> = RefCell::default();
    static ROWS: RefCell<Rows> = RefCell::default();
}

/// See the module's page.
#[derive(Debug)]
pub struct Brain {
    seed: u64,
    pub markets: Vec<GeneratedMarket>,
}

impl Brain {
    /// One with so many markets beside those that have candles.
    pub fn new(seed: u64, extra: usize) -> Brain {
        let traded = TRADED.iter().map(|(base, quote, level)| (base.to_string(), *quote, *level));
        let others = (0..extra).map(|n| (format!("W{n:03}"), "USDT", 1000 * UNIT));
        let markets = traded.chain(others).enumerate().map(|(at, (base, quote, level))| {
            GeneratedMarket::new(base, quote, level, mix(seed ^ mix(at as u64)))
        });
        Brain { seed, markets: markets.collect() }
    }

    /// The market of that id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.markets.iter().position(|market| market.id() == id)
    }

    /// What a market is worth at this time of the exchange's clock.
    pub fn ticker(&self, market: usize, at_ms: i64) -> Rc<Ticker> {
        let second = at_ms.div_euclid(1000);
        let made = || {
            let text = self.markets[market].ticker(second * 1000);
            Rc::new(Ticker { figures: figures_of(&text), text })
        };
        TICKERS.with_borrow_mut(|known| {
            known.entry((self.seed, market, second)).or_insert_with(made).clone()
        })
    }

    /// Whether a market has candles at all.
    pub fn has_candles(&self, market: usize) -> bool {
        market < TRADED.len()
    }

    /// The candle of a slot that has begun at this time of the exchange's clock.
    pub fn row(&self, market: usize, interval: &'static str, slot: i64, at_ms: i64) -> Rc<Row> {
        let length = length_ms(interval).expect("a stored interval");
        let (open, made) = (slot * length, &self.markets[market]);
        let made = || Rc::new(row_of(&made.kline(length, open, at_ms)));
        if open + length > at_ms {
            return made();
        }
        let key = (self.seed, market, interval, slot);
        ROWS.with_borrow_mut(|known| known.entry(key).or_insert_with(made).clone())
    }

    /// The list's entry of a market: whether it is active, and the least worth of an order.
    pub fn listing(&self, market: usize, active: bool, least: u64) -> String {
        let status = if active { "\"TRADING\"" } else { "\"BREAK\"" };
        let info = self.markets[market].info().replace("\"TRADING\"", status);
        info.replace("\"minNotional\":\"5.0", &format!("\"minNotional\":\"{least}.0"))
    }
}

/// What a ticker's text says.
pub fn figures_of(text: &str) -> Figures {
    let json = Json::parse(text).expect("a ticker is JSON");
    Figures::of(|name| json.get(name).and_then(Json::text).map(str::to_string))
}

/// A row's text, taken apart.
pub fn row_of(text: &str) -> Row {
    let json = Json::parse(text).expect("a row is JSON");
    let figure = |at: usize| plain(json[at].text().expect("a number"));
    Row {
        open_ms: json[0].integer().expect("an open time"),
        text: text.to_string(),
        figures: [figure(1), figure(2), figure(3), figure(4), figure(5)],
    }
}
