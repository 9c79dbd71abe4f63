//! Binance as its clients see it: `FakeExchange` with that exchange's addresses, parameters,
//! rows and errors, from recorded bodies or made-up markets.
//!
//! What it knows of the real one: a range of candles is cut from its begin, both ends are included and
//! compared with open times, 500 rows are the default and 1000 the most; an unknown market is error
//! -1121 with status 400. `tests/fakes` has a stricter one, which judges each request.

use super::exchange::{Asked, FakeExchange, locked};
use super::generated::{FIRST_MS, Generated, INTERVALS};
use super::json::Json;
use super::naive::{Row, rows_of};
use super::reply::Reply;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, RangeInclusive};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Path of the tickers.
pub const TICKERS: &str = "/api/v3/ticker/24hr";
/// Path of the candles.
pub const KLINES: &str = "/api/v3/klines";
/// Path of the market list.
pub const MARKETS: &str = "/api/v3/exchangeInfo";
/// Path of the clock.
pub const TIME: &str = "/api/v3/time";

const DEFAULT_ROWS: usize = 500;
const MOST_ROWS: usize = 1000;

/// A running fake Binance. It is a [`FakeExchange`]: faults are ordered and requests counted there.
pub struct Binance {
    exchange: FakeExchange,
    book: Arc<Mutex<Book>>,
}

/// What time the exchange says it is, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTime {
    /// The real time and so much more.
    Offset(i64),
    /// Always this.
    Fixed(i64),
}

struct Book {
    time: ServerTime,
    /// When it was last asked for this time. The `Date` of its answers goes on from then, also where the time
    /// in their bodies is fixed.
    told_at: std::time::Instant,
    generated: Generated,
    /// Names and prices of the tickers, in place of the made-up ones.
    prices: Option<Vec<(String, String)>>,
    /// Symbols and states of what is listed, in place of the made-up markets.
    markets: Option<Vec<(String, String)>>,
    /// By market and interval, oldest first: open time and row.
    klines: HashMap<(String, String), BTreeMap<i64, String>>,
    /// By market: fields of its ticker in place of the right ones, as JSON.
    patches: HashMap<String, Vec<(String, String)>>,
}

impl Binance {
    /// An exchange without any market.
    pub fn empty() -> Binance {
        Binance::generated(0, 0)
    }

    /// An exchange with so many made-up markets, at the real time.
    pub fn generated(count: usize, seed: u64) -> Binance {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Binance::generated_on(any, count, seed).expect("the loopback has a free port")
    }

    /// The same on a given address.
    pub fn generated_on(addr: SocketAddr, count: usize, seed: u64) -> io::Result<Binance> {
        let book = Arc::new(Mutex::new(Book {
            time: ServerTime::Offset(0),
            told_at: std::time::Instant::now(),
            generated: Generated::new(count, seed),
            prices: None,
            markets: None,
            klines: HashMap::new(),
            patches: HashMap::new(),
        }));
        let answering = Arc::clone(&book);
        let answer = move |asked: &Asked| locked(&answering).answer(asked);
        Ok(Binance { exchange: FakeExchange::start_on(addr, answer)?, book })
    }

    /// What `--source` takes: `binance=http://IP:PORT`.
    pub fn source(&self) -> String {
        format!("binance={}", self.exchange.url())
    }

    /// Another clock.
    pub fn set_time(&self, time: ServerTime) {
        let mut book = locked(&self.book);
        (book.time, book.told_at) = (time, std::time::Instant::now());
    }

    /// The exchange's time now, in milliseconds.
    pub fn now(&self) -> i64 {
        locked(&self.book).now()
    }

    /// Tickers of these names and prices, without other figures, in place of the made-up ones.
    pub fn set_prices(&self, prices: &[(&str, &str)]) {
        locked(&self.book).prices = Some(owned(prices));
    }

    /// A market list of these symbols and states in place of the made-up one.
    pub fn set_markets(&self, markets: &[(&str, &str)]) {
        locked(&self.book).markets = Some(owned(markets));
    }

    /// These candles, an array of rows as Binance sends them, in place of the made-up ones of one
    /// market and interval.
    #[track_caller]
    pub fn set_klines(&self, id: &str, interval: &str, body: &str) {
        let body = Json::parse(body).expect("candles are an array");
        let keyed = body.items().iter().map(|row| {
            let open = row[0].integer().expect("a candle begins with its open time");
            (open, row.to_string())
        });
        let rows = keyed.collect();
        locked(&self.book).klines.insert((id.to_string(), interval.to_string()), rows);
    }

    /// From now on the ticker of `id` has this JSON as its `field`:
    /// `patch_ticker("BTCUSDT", "lastPrice", r#""NaN""#)`. A field that it does not have is added.
    pub fn patch_ticker(&self, id: &str, field: &str, json: &str) {
        let mut book = locked(&self.book);
        let patches = book.patches.entry(id.to_string()).or_default();
        patches.retain(|(patched, _)| patched != field);
        patches.push((field.to_string(), json.to_string()));
    }

    /// Right tickers again.
    pub fn unpatch(&self) {
        locked(&self.book).patches.clear();
    }

    /// Canonical names of the made-up markets, in order.
    pub fn symbols(&self) -> Vec<String> {
        let book = locked(&self.book);
        book.generated.markets().iter().map(|market| market.symbol()).collect()
    }

    /// The candles of a market that open within these times, both included, as they are now.
    pub fn candles(&self, id: &str, interval: &str, from: i64, to: i64) -> Vec<Row> {
        let book = locked(&self.book);
        let rows = book.klines(id.to_string(), interval.to_string(), from..=to, usize::MAX);
        rows_of(&Json::parse(&format!("[{}]", rows.join(","))).expect("rows are JSON"))
    }
}

impl Deref for Binance {
    type Target = FakeExchange;
    fn deref(&self) -> &FakeExchange {
        &self.exchange
    }
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| (one.to_string(), other.to_string())).collect()
}

/// One ticker with a price and nothing else.
pub fn ticker(id: &str, last: &str) -> String {
    format!(r#"{{"symbol":"{id}","lastPrice":"{last}"}}"#)
}

fn error(code: i32, message: &str) -> Reply {
    Reply::status(400, format!(r#"{{"code":{code},"msg":"{message}"}}"#))
}

impl Book {
    fn answer(&mut self, asked: &Asked) -> Reply {
        if asked.method != "GET" && asked.method != "HEAD" {
            return Reply::status(405, "");
        }
        if asked.path() == TIME {
            self.told_at = std::time::Instant::now();
        }
        let date = match self.time {
            ServerTime::Fixed(now) => (now, self.told_at),
            ServerTime::Offset(_) => (self.now(), std::time::Instant::now()),
        };
        let reply = match asked.path() {
            TICKERS => self.answer_tickers(asked),
            KLINES => self.answer_klines(asked),
            MARKETS => Reply::json(self.markets()),
            TIME => Reply::json(format!(r#"{{"serverTime":{}}}"#, self.now())),
            "/api/v3/ping" => Reply::json("{}"),
            _ => Reply::not_found(),
        };
        reply.dated(date.0, date.1)
    }

    fn now(&self) -> i64 {
        match self.time {
            ServerTime::Fixed(now) => now,
            ServerTime::Offset(more) => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                since.map_or(0, |since| since.as_millis() as i64) + more
            }
        }
    }

    fn answer_tickers(&self, asked: &Asked) -> Reply {
        let unknown = || error(-1121, "Invalid symbol.");
        if let Some(id) = asked.param("symbol") {
            return self.ticker(&id).map_or_else(unknown, Reply::json);
        }
        let Some(list) = asked.param("symbols") else {
            return Reply::json(self.tickers());
        };
        let Ok(ids) = serde_json::from_str::<Vec<String>>(&list) else {
            return error(-1102, "Mandatory parameter 'symbols' was malformed.");
        };
        let found: Option<Vec<String>> = ids.iter().map(|id| self.ticker(id)).collect();
        found.map_or_else(unknown, |found| Reply::json(format!("[{}]", found.join(","))))
    }

    fn tickers(&self) -> String {
        let (now, made_up) = (self.now(), self.generated.markets().iter());
        let texts: Vec<String> = match &self.prices {
            None => made_up.map(|it| self.patched(&it.id(), it.ticker(now))).collect(),
            Some(all) => all.iter().map(|(id, last)| self.patched(id, ticker(id, last))).collect(),
        };
        format!("[{}]", texts.join(","))
    }

    fn ticker(&self, id: &str) -> Option<String> {
        let text = match &self.prices {
            None => self.generated.find(id)?.ticker(self.now()),
            Some(all) => ticker(id, &all.iter().find(|it| it.0 == id)?.1),
        };
        Some(self.patched(id, text))
    }

    /// The text of a ticker with what is in place of its right fields.
    fn patched(&self, id: &str, mut text: String) -> String {
        for (field, json) in self.patches.get(id).into_iter().flatten() {
            let mark = format!(",\"{field}\":");
            let begin = text.find(&mark).unwrap_or(text.len() - 1);
            let behind = (begin + 1).min(text.len() - 1);
            let end = text[behind..].find([',', '}']).expect("a ticker has an end");
            text.replace_range(begin..behind + end, &format!("{mark}{json}"));
        }
        text
    }

    fn markets(&self) -> String {
        let listed = |(symbol, status): &(String, String)| {
            let (base, quote) = symbol.split_once('/').expect("a canonical symbol");
            format!(
                r#"{{"symbol":"{base}{quote}","status":"{status}","baseAsset":"{base}","quoteAsset":"{quote}","filters":[]}}"#
            )
        };
        let Some(markets) = &self.markets else {
            return self.generated.exchange_info(self.now());
        };
        let listed: Vec<String> = markets.iter().map(listed).collect();
        format!(r#"{{"serverTime":1,"symbols":[{}]}}"#, listed.join(","))
    }

    fn answer_klines(&self, asked: &Asked) -> Reply {
        let (Some(id), Some(interval)) = (asked.param("symbol"), asked.param("interval")) else {
            return error(-1102, "Mandatory parameter was not sent.");
        };
        if !self.knows(&id) {
            return error(-1121, "Invalid symbol.");
        }
        let number = |name: &str| asked.param(name).and_then(|text| text.parse::<i64>().ok());
        let range = number("startTime").unwrap_or(0)..=number("endTime").unwrap_or(i64::MAX);
        let most = number("limit").map_or(DEFAULT_ROWS, |limit| (limit as usize).min(MOST_ROWS));
        Reply::json(format!("[{}]", self.klines(id, interval, range, most).join(",")))
    }

    /// The oldest rows that open within a range.
    fn klines(
        &self,
        id: String,
        interval: String,
        range: RangeInclusive<i64>,
        most: usize,
    ) -> Vec<String> {
        let market = self.generated.find(&id);
        let length = INTERVALS.iter().find(|(name, _)| *name == interval);
        if let Some(rows) = self.klines.get(&(id, interval)) {
            let inside = rows.iter().filter(|(open, _)| range.contains(open));
            return inside.take(most).map(|(_, row)| row.clone()).collect();
        }
        let (Some(market), Some((_, length))) = (market, length) else {
            return Vec::new();
        };
        let (now, begin) = (self.now(), (*range.start()).max(FIRST_MS));
        let first = (begin + length - 1).div_euclid(*length) * length;
        let opens = (first..=now.min(*range.end())).step_by(*length as usize).take(most);
        opens.map(|open| market.kline(*length, open, now)).collect()
    }

    /// Whether any part of the exchange speaks of this market.
    fn knows(&self, id: &str) -> bool {
        let mut listed = self.markets.iter().flatten();
        self.klines.keys().any(|(known, _)| known == id)
            || self.ticker(id).is_some()
            || listed.any(|(symbol, _)| symbol.replace('/', "") == id)
    }
}
