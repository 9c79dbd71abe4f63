//! What the made-up exchange knows: the demo exchange's figures, taken apart.
//!
//! Owns a memory of items that were made once. They are a pure function of seed, market and time,
//! so all runs of one test thread share it and none can change it. It never decides what is sent:
//! [`super::exchange`] does, and may bend it.

use super::naive::Figures;
use crate::support::Json;
use crate::support::naive::plain;
use marketd::demo::Demo;
use marketd::time::UnixMs;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Markets that the demo exchange has and the simulation uses: its id, base and quote.
const REAL: [(&str, &str, &str); 7] = [
    ("BTCUSDT", "BTC", "USDT"),
    ("ETHUSDT", "ETH", "USDT"),
    ("DOGEUSDT", "DOGE", "USDT"),
    ("SHIBUSDT", "SHIB", "USDT"),
    ("ETHBTC", "ETH", "BTC"),
    ("SOLBTC", "SOL", "BTC"),
    ("BTCEUR", "BTC", "EUR"),
];

/// One market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Market {
    /// The exchange's own name of it.
    pub id: String,
    pub base: String,
    pub quote: String,
}

impl Market {
    /// The canonical symbol.
    pub fn symbol(&self) -> String {
        format!("{}/{}", self.base, self.quote)
    }
}

/// The markets of a run: the real ones, and so many that are mere arithmetic.
pub fn markets(extra: usize) -> Vec<Market> {
    let market = |id: &str, base: &str, quote: &str| Market {
        id: id.to_string(),
        base: base.to_string(),
        quote: quote.to_string(),
    };
    let real = REAL.iter().map(|(id, base, quote)| market(id, base, quote));
    let made = (0..extra).map(|n| {
        let base = format!("W{n:03}");
        market(&format!("{base}USDT"), &base, "USDT")
    });
    real.chain(made).collect()
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
    demo: Demo,
    seed: u64,
    pub markets: Vec<Market>,
}

impl Brain {
    pub fn new(seed: u64, extra: usize) -> Brain {
        Brain { demo: Demo::new(seed), seed, markets: markets(extra) }
    }

    /// The market of that id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.markets.iter().position(|market| market.id == id)
    }

    /// What a market is worth at this time of the exchange's clock.
    pub fn ticker(&self, market: usize, at_ms: i64) -> Rc<Ticker> {
        let second = at_ms.div_euclid(1000);
        let key = (self.seed, market, second);
        if let Some(known) = TICKERS.with_borrow(|known| known.get(&key).cloned()) {
            return known;
        }
        let id = &self.markets[market].id;
        let text = if market < REAL.len() {
            self.ask("/api/v3/ticker/24hr", &format!("symbol={id}"), at_ms)
        } else {
            // A price of four digits that moves by a cent or so every second.
            let cents = 100_000 + (market as i64 * 37 + second * 7 + second * second % 11) % 9000;
            let price = format!("{}.{:02}", cents / 100, cents % 100);
            format!(
                "{{\"symbol\":\"{id}\",\"priceChange\":\"1.50\",\"priceChangePercent\":\"0.150\",\
                 \"lastPrice\":\"{price}\",\"bidPrice\":\"{price}\",\"bidQty\":\"1.0\",\
                 \"askPrice\":\"{price}\",\"askQty\":\"2.0\",\"openPrice\":\"1000.00\",\
                 \"highPrice\":\"1100.00\",\"lowPrice\":\"900.00\",\"volume\":\"12345.0\",\
                 \"quoteVolume\":\"12345678.90\",\"closeTime\":{}}}",
                second * 1000
            )
        };
        let ticker = Rc::new(Ticker { figures: figures_of(&text), text });
        TICKERS.with_borrow_mut(|known| known.insert(key, ticker.clone()));
        ticker
    }

    /// Whether a market has candles at all. Those that are mere arithmetic have none.
    pub fn has_candles(&self, market: usize) -> bool {
        market < REAL.len()
    }

    /// The candle of a slot that has begun at this time of the exchange's clock.
    pub fn row(&self, market: usize, interval: &'static str, slot: i64, at_ms: i64) -> Rc<Row> {
        let length = crate::support::naive::length_ms(interval).expect("a stored interval");
        if slot < at_ms.div_euclid(length) {
            return self.closed_row(market, interval, slot, length);
        }
        let open = slot * length;
        let rows = self.read_rows(market, interval, (open, open), at_ms);
        rows.into_iter().next().expect("it has begun")
    }

    /// Made in blocks, with the clock far ahead, so that all of them are closed.
    fn closed_row(&self, market: usize, interval: &'static str, slot: i64, length: i64) -> Rc<Row> {
        const BLOCK: i64 = 64;
        let key = |slot: i64| (self.seed, market, interval, slot);
        if let Some(known) = ROWS.with_borrow(|rows| rows.get(&key(slot)).cloned()) {
            return known;
        }
        let begin = slot - slot.rem_euclid(BLOCK);
        let range = (begin * length, (begin + BLOCK - 1) * length);
        let rows = self.read_rows(market, interval, range, i64::MAX);
        ROWS.with_borrow_mut(|known| {
            for row in rows {
                known.insert(key(row.open_ms / length), row);
            }
            known[&key(slot)].clone()
        })
    }

    fn read_rows(
        &self,
        market: usize,
        interval: &'static str,
        (from, to): (i64, i64),
        at_ms: i64,
    ) -> Vec<Rc<Row>> {
        let id = &self.markets[market].id;
        let query =
            format!("symbol={id}&interval={interval}&startTime={from}&endTime={to}&limit=1000");
        let body = self.ask("/api/v3/klines", &query, at_ms);
        let raw = crate::support::json::raw_items(&body).expect("a list of rows");
        raw.into_iter().map(|raw| Rc::new(row_of(raw.get()))).collect()
    }

    /// The list's entry of a market.
    pub fn listing(&self, market: usize, active: bool) -> String {
        let Market { id, base, quote } = &self.markets[market];
        let status = if active { "TRADING" } else { "BREAK" };
        format!(
            "{{\"symbol\":\"{id}\",\"status\":\"{status}\",\"baseAsset\":\"{base}\",\
             \"quoteAsset\":\"{quote}\",\"filters\":[{{\"filterType\":\"PRICE_FILTER\",\
             \"minPrice\":\"0.01\",\"maxPrice\":\"1000000.00\",\"tickSize\":\"0.01\"}},\
             {{\"filterType\":\"LOT_SIZE\",\"minQty\":\"0.001\",\"maxQty\":\"9000.0\",\
             \"stepSize\":\"0.001\"}}],\"isSpotTradingAllowed\":true}}"
        )
    }

    /// What the demo exchange answers.
    fn ask(&self, path: &str, query: &str, at_ms: i64) -> String {
        let mut body = Vec::new();
        let now = UnixMs(at_ms);
        let status = self.demo.respond(path.as_bytes(), query.as_bytes(), now, &mut body);
        let body = String::from_utf8(body).expect("the demo writes text");
        assert_eq!(status, 200, "{path}?{query}: {body}");
        body
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
