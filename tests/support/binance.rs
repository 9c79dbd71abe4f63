//! Binance as its clients see it: `FakeExchange` with that exchange's addresses, parameters,
//! rows and errors, from recorded bodies or made-up markets.
//!
//! What it knows of the real one: a range of candles is cut from its begin, both ends are included and
//! compared with open times, 500 rows are the default and 1000 the most; an unknown market is error
//! -1121 with status 400. `tests/fakes` has a stricter one, which judges each request.

use super::exchange::{Asked, FakeExchange, locked};
use super::generated::{FIRST_MS, Generated, INTERVALS};
use super::json::{Json, raw_items, raw_members};
use super::naive::{Row, rows_of};
use super::reply::{Body, Reply};
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
    /// In place of the made-up ones.
    tickers: Option<String>,
    /// In place of the made-up one.
    markets: Option<Arc<[u8]>>,
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
            tickers: None,
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

    /// This array of tickers in place of the made-up ones.
    pub fn set_tickers(&self, body: &str) {
        locked(&self.book).tickers = Some(body.to_string());
    }

    /// This market list in place of the made-up one.
    pub fn set_markets(&self, body: &str) {
        locked(&self.book).markets = Some(Arc::from(body.as_bytes()));
    }

    /// These candles, an array of rows as Binance sends them, in place of the made-up ones of one
    /// market and interval.
    #[track_caller]
    pub fn set_klines(&self, id: &str, interval: &str, body: &str) {
        let rows = raw_items(body).expect("candles are an array");
        let keyed = rows.into_iter().map(|row| {
            let fields = raw_items(row.get()).expect("a candle is an array");
            let open = fields.first().and_then(|field| field.get().parse().ok());
            (open.expect("a candle begins with its open time"), row.get().to_string())
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

    /// The array of all tickers as it would be sent now.
    pub fn tickers_body(&self) -> String {
        locked(&self.book).tickers()
    }
}

impl Deref for Binance {
    type Target = FakeExchange;
    fn deref(&self) -> &FakeExchange {
        &self.exchange
    }
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
            MARKETS => Reply::with_body(200, Body::from(self.markets())),
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
        if self.patches.is_empty() {
            return match &self.tickers {
                Some(body) => body.clone(),
                None => self.generated.tickers(self.now()),
            };
        }
        let now = self.now();
        let texts: Vec<String> = match &self.tickers {
            Some(body) => listed(body).into_iter().map(|(_, text)| text.to_string()).collect(),
            None => self.generated.markets().iter().map(|market| market.ticker(now)).collect(),
        };
        let patched = texts.iter().map(|text| self.patched(text));
        format!("[{}]", patched.collect::<Vec<_>>().join(","))
    }

    fn ticker(&self, id: &str) -> Option<String> {
        let made_up = || self.generated.find(id).map(|market| market.ticker(self.now()));
        let found = match &self.tickers {
            Some(body) => {
                let same = listed(body).into_iter().find(|(listed, _)| listed == id);
                same.map(|(_, text)| text.to_string())
            }
            None => made_up(),
        };
        Some(self.patched(&found?))
    }

    fn patched(&self, ticker: &str) -> String {
        let mut members = raw_members(ticker).unwrap_or_default();
        let id = members.iter().find(|(key, _)| key == "symbol");
        let id = id.map_or("", |(_, id)| id.get().trim_matches('"'));
        let Some(patches) = self.patches.get(id) else {
            return ticker.to_string();
        };
        members.retain(|(key, _)| !patches.iter().any(|(patched, _)| patched == key));
        let kept = members.iter().map(|(key, value)| (key.as_str(), value.get()));
        let new = patches.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let parts = kept.chain(new).map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
    }

    fn markets(&self) -> Arc<[u8]> {
        match &self.markets {
            Some(body) => Arc::clone(body),
            None => self.generated.exchange_info(self.now()).into_bytes().into(),
        }
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
        let named = format!("\"symbol\":\"{id}\"");
        let in_list = |body: &[u8]| body.windows(named.len()).any(|part| part == named.as_bytes());
        self.generated.find(id).is_some()
            || self.klines.keys().any(|(known, _)| known == id)
            || self.ticker(id).is_some()
            || self.markets.as_deref().is_some_and(in_list)
    }
}

/// The elements of an array of tickers with their names. An element that has none, or a body
/// that is no array, is left out: a test may have meant it so.
fn listed(body: &str) -> Vec<(String, &str)> {
    let items = raw_items(body).unwrap_or_default();
    let named = items.into_iter().filter_map(|item| {
        let members = raw_members(item.get()).ok()?;
        let (_, id) = members.into_iter().find(|(key, _)| key == "symbol")?;
        Some((id.get().trim_matches('"').to_string(), item.get()))
    });
    named.collect()
}
