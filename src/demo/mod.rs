//! The demo exchange: a simulated exchange with the part of Binance's REST API that marketd and clients of
//! public data read. Its tickers and markets have the members that Binance's dialect names, except the filter
//! `MIN_NOTIONAL`: it sends `NOTIONAL`, which has more information.
//!
//! [`Demo`] has 24 markets, whose prices and volumes are a pure function of seed, market and time.
//! [`Demo::serve`] takes one GET request, returns the head and appends the body. It reads no clock and does
//! no I/O. The bytes of a closed candle are always the same, in this process and in the next. A
//! [`DemoScript`] replaces some of the data, and says which requests fail.
//!
//! Candles are generated from long to short. A day has an open, close, high, low and volume (`assets`,
//! `generator`). A day is divided into hours, an hour into minutes, and a minute into seconds (`candle`). The
//! parts always make exactly the whole. So any candle takes at most three divisions, and candles of all
//! lengths agree: a forming candle is the sum of its seconds so far, its close is the ticker's last price,
//! and the ticker's figures are of exactly the last 86,400 seconds. Only `quoteVolume` is estimated: it is
//! the volume at the mean of four prices. `generator` turns candles into records, which `bodies` writes.
//!
//! Bounds: a price changes by at most 1 % and six ticks from one second to the next (typically by
//! a hundredth of that), and never leaves its band (`BTC/USDT`: 71,250 to 118,750 at midnight, and
//! at most 2 % more between two midnights).

mod assets;
mod bodies;
mod candle;
mod generator;
mod replay;
mod script;
#[cfg(test)]
mod tests;

pub use replay::{RecordedMarket, RecordedMarkets};
pub use script::{DemoScript, Failure};

use crate::interval::Interval;
use crate::json::{Array, List, Value as _, json};
use crate::record::Ticker;
use crate::time::{Now, UnixMs, digits};
use assets::MARKETS;
use bodies::{DemoListing, Prices};
use generator::Generator;
use std::collections::BTreeSet;
use std::time::Duration;

/// Rows of a page of candles if the request has no `limit` (Binance, "Kline/Candlestick data").
const DEFAULT_ROWS: i64 = 500;
/// Most rows of a page, whatever the `limit` (the same source).
const MAX_ROWS: i64 = 1000;
/// The end of the year 9999, which is the latest time. A later time counts as this one.
const LAST_MS: i64 = 253_402_300_799_999;

const TICKERS: &[u8] = b"/api/v3/ticker/24hr";
const KLINES: &[u8] = b"/api/v3/klines";
const MARKET_LIST: &[u8] = b"/api/v3/exchangeInfo";
const TIME: &[u8] = b"/api/v3/time";
const PING: &[u8] = b"/api/v3/ping";

/// The demo exchange.
#[derive(Clone, Debug)]
pub struct Demo {
    seed: u64,
    script: DemoScript,
    /// The recorded markets that it plays instead of generated ones, by the id of a source. Requests for a
    /// path below `/ID` are for that source, requests without an id for the first.
    replay: Vec<(String, RecordedMarkets)>,
    /// The weight of the requests of this minute, and the number of the minute on the monotonic
    /// clock.
    used: (u32, i64),
}

/// A response without its body.
#[derive(Debug)]
pub struct DemoHead {
    /// The status.
    pub status: u16,
    /// Header fields, each with its line end.
    pub fields: String,
    /// How much later the response is sent.
    pub delay: Duration,
}

impl Demo {
    /// The exchange with this seed. The same seed has the same prices at the same time.
    pub fn new(seed: u64) -> Demo {
        Demo { seed, script: DemoScript::default(), replay: Vec::new(), used: (0, 0) }
    }

    /// Follows this script from now on. Returns the time that it sets the clock to.
    pub fn follow(&mut self, script: DemoScript) -> Option<UnixMs> {
        let before = std::mem::replace(&mut self.script, script);
        self.script.at.filter(|at| before.at != Some(*at))
    }

    /// Plays the markets of a source from now on.
    pub fn replay(&mut self, source: String, markets: RecordedMarkets) {
        self.replay.push((source, markets));
    }

    /// Responds to one GET request like [`Demo::respond`], unless the script makes it fail. `None` closes the
    /// connection without a response.
    pub fn serve(
        &mut self,
        whole: &[u8],
        query: &[u8],
        now: Now,
        body: &mut Vec<u8>,
    ) -> Option<DemoHead> {
        let (_, path) = parts(whole);
        let minute = now.mono.as_ms() / 60_000;
        let before = if self.used.1 == minute { self.used.0 } else { 0 };
        self.used = (before.saturating_add(weight(path, query)), minute);
        let failure = self.failure(path).unwrap_or_default();
        let mut fields = format!("X-MBX-USED-WEIGHT-1M: {}\r\n", self.used.0);
        if let Some(seconds) = failure.retry_after {
            fields += &format!("Retry-After: {seconds}\r\n");
        }
        let status = match failure {
            Failure { drop: true, .. } => return None,
            Failure { status: Some(status), .. } => {
                let code: i64 = if matches!(status, 418 | 429) { -1003 } else { -1000 };
                json!(body, { "code": code, "msg": "This failure is scripted." });
                status
            }
            Failure { empty: true, .. } => {
                body.extend_from_slice(match path {
                    MARKET_LIST => br#"{"symbols":[]}"#,
                    TIME => b"{}",
                    _ => b"[]",
                });
                200
            }
            _ => self.respond(whole, query, now.unix, body),
        };
        Some(DemoHead { status, fields, delay: failure.delay })
    }

    /// How a request for this path fails, if the script says so. Uses up one of its `times`.
    fn failure(&mut self, path: &[u8]) -> Option<Failure> {
        let fail = &mut self.script.fail;
        let failure = match path {
            TICKERS => &mut fail.quotes,
            KLINES => &mut fail.candles,
            MARKET_LIST => &mut fail.markets,
            TIME => &mut fail.time,
            _ => return None,
        };
        let failure = failure.as_mut()?;
        if let Some(times) = &mut failure.times {
            *times = times.checked_sub(1)?;
        }
        Some(failure.clone())
    }

    /// Responds to one GET request of Binance's REST API: appends the JSON body to `body` and
    /// returns the status. `path` and `query` are raw, and the query has no question mark. Unknown
    /// parameters are ignored. Only `%22` in `symbols` is decoded, because no other value needs escapes.
    ///
    /// The status is 200; 400 for a parameter that is missing or invalid; 404 for an unknown path.
    /// The body of an error has the form of Binance's errors, `{"code","msg"}`.
    pub fn respond(&self, path: &[u8], query: &[u8], now: UnixMs, body: &mut Vec<u8>) -> u16 {
        let now = UnixMs(now.0.clamp(0, LAST_MS));
        let Err((status, code, message)) = self.write_body(path, query, now, body) else {
            return 200;
        };
        json!(body, { "code": code, "msg": message.as_str() });
        status
    }

    /// Writes the body of a response, or nothing if the request is refused.
    fn write_body(
        &self,
        path: &[u8],
        query: &[u8],
        now: UnixMs,
        body: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let (source, path) = parts(path);
        let wanted = || self.wanted(source, query);
        match path {
            TICKERS => {
                let wanted = wanted()?;
                let found = wanted.iter().filter_map(|it| Some((it, self.ticker(it, now)?)));
                let mut found = found.map(|(listing, ticker)| {
                    move |out: &mut Vec<u8>| bodies::ticker(&listing.joined(), &ticker, out)
                });
                match parameter(query, "symbol") {
                    Some(_) => found.next().ok_or_else(invalid_symbol)?(body),
                    None => List(found).write(body),
                }
            }
            KLINES => {
                parameter(query, "symbol").ok_or_else(|| missing("symbol"))?;
                self.klines(&wanted()?[0], query, now, body)?;
            }
            MARKET_LIST => {
                let wanted = wanted()?;
                let symbols = List(wanted.iter().map(|it| move |out: &mut Vec<u8>| it.write(out)));
                json!(body, { "timezone": "UTC", "serverTime": now, "symbols": symbols });
            }
            PING => body.extend_from_slice(b"{}"),
            TIME => json!(body, { "serverTime": now }),
            _ => return Err((404, -1000, "No such path.".to_string())),
        }
        Ok(())
    }

    /// All markets, in the order of the exchange's list.
    fn listings(&self, source: &[u8]) -> Vec<DemoListing<'_>> {
        let is_it = |(id, _): &&(String, _)| source.is_empty() || source[1..] == *id.as_bytes();
        let played = self.replay.iter().find(is_it).into_iter().flat_map(|(_, markets)| markets);
        let played =
            played.map(|(symbol, it)| DemoListing::new(symbol, it.places, Prices::Recorded(it)));
        let made = MARKETS.iter().map(DemoListing::made).filter(|_| self.replay.is_empty());
        let mut all: Vec<DemoListing> = played.chain(made).collect();
        let DemoScript { markets, quotes, candles, .. } = &self.script;
        let named = markets.keys().chain(quotes.keys()).chain(candles.keys());
        for symbol in named.collect::<BTreeSet<_>>() {
            if !all.iter().any(|it| it.symbol == *symbol) {
                all.push(DemoListing::new(symbol, (2, 4), Prices::None));
            }
        }
        all.retain_mut(|it| match markets.get(&it.symbol) {
            None => true,
            Some(None) => false,
            Some(Some(market)) => {
                it.status.clone_from(&market.status);
                it.places = (market.price_places.into(), market.amount_places.into());
                true
            }
        });
        all
    }

    /// The markets that the parameters `symbol` and `symbols` name, else all. `symbols` is a list like
    /// `["BTCUSDT","ETHUSDT"]`.
    fn wanted(&self, source: &[u8], query: &[u8]) -> Result<Vec<DemoListing<'_>>, Refusal> {
        let all = self.listings(source);
        let names = match (parameter(query, "symbol"), parameter(query, "symbols")) {
            (Some(one), _) => vec![String::from_utf8_lossy(one).into_owned()],
            (None, Some(list)) => {
                let list = String::from_utf8_lossy(list).replace("%22", "\"");
                list.split('"').skip(1).step_by(2).map(str::to_string).collect()
            }
            (None, None) => return Ok(all),
        };
        let find = |name: &String| all.iter().find(|it| it.joined() == *name).cloned();
        names.iter().map(find).collect::<Option<_>>().ok_or_else(invalid_symbol)
    }

    /// The current figures of a market.
    fn ticker(&self, listing: &DemoListing, now: UnixMs) -> Option<Ticker> {
        match (self.script.quotes.get(&listing.symbol), listing.prices) {
            (Some(quote), _) => {
                let quote = quote.clone()?;
                Some(Ticker { timestamp: quote.timestamp.or(Some(now)), ..quote })
            }
            (None, Prices::Made(market)) => generator::ticker(self.seed, market, now),
            (None, Prices::Recorded(market)) => market.ticker(now),
            (None, Prices::None) => None,
        }
    }

    /// Writes a page of candles, oldest first, at most as many as its limit. The history begins with the
    /// first candle that opens at the epoch or later, and ends with the forming candle.
    fn klines(
        &self,
        listing: &DemoListing,
        query: &[u8],
        now: UnixMs,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let name = parameter(query, "interval").ok_or_else(|| missing("interval"))?;
        let unknown = || (400, -1120, "Invalid interval.".to_string());
        let interval = Interval::parse(name).ok_or_else(unknown)?;
        let (first, last, limit) = page(query, interval, now)?;
        let lists = self.script.candles.get(&listing.symbol);
        let scripted = lists.and_then(|lists| lists.get(&interval)).map_or(&[][..], |it| it);
        let owned = scripted.first().zip(scripted.last());
        let owned = owned.map(|(first, last)| first.open_time..=last.open_time);
        let is_owned = |open: &UnixMs| owned.as_ref().is_some_and(|owned| owned.contains(open));
        let mut generator = match listing.prices {
            Prices::Made(market) => Some(Generator::new(self.seed, market)),
            _ => None,
        };
        let mut candle = |open: UnixMs| match (listing.prices, generator.as_mut()) {
            _ if is_owned(&open) => {
                let at = scripted.binary_search_by_key(&open, |it| it.open_time).ok()?;
                Some(scripted[at].clone())
            }
            (_, Some(generator)) => generator.sent(interval, open, now),
            (Prices::Recorded(market), _) => market.candle(interval, open, now),
            _ => None,
        };
        // The first time, `open` or later, at which a candle opens.
        let next = |open: UnixMs| {
            let other = match listing.prices {
                Prices::Made(_) => Some(open),
                Prices::Recorded(market) => market.next_open(interval, open),
                Prices::None => None,
            };
            let at = scripted.partition_point(|it| it.open_time < open);
            let scripted = scripted.get(at).map(|it| it.open_time);
            scripted.into_iter().chain(other.filter(|it| !is_owned(it))).min()
        };
        let opens = std::iter::successors(next(first), |open| next(interval.end_of(*open)));
        let found = opens.take_while(|open| *open <= last).filter_map(&mut candle);
        let mut rows = Array::open(out);
        for candle in found.take(limit as usize) {
            bodies::row(&candle, interval.end_of(candle.open_time) - 1, rows.item());
        }
        rows.close();
        Ok(())
    }
}

/// Splits a path in front of `/api/`.
fn parts(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.windows(5).position(|part| part == b"/api/").unwrap_or(0))
}

/// Why a request is refused: the status, Binance's code and its message ("Error codes for Binance").
type Refusal = (u16, i64, String);

fn missing(name: &str) -> Refusal {
    let message = "was not sent, was empty/null, or malformed.";
    (400, -1102, format!("Mandatory parameter '{name}' {message}"))
}

fn invalid_symbol() -> Refusal {
    (400, -1121, "Invalid symbol.".to_string())
}

/// A parameter that is a whole number of at least 0.
fn number(query: &[u8], name: &str) -> Result<Option<i64>, Refusal> {
    let Some(text) = parameter(query, name) else {
        return Ok(None);
    };
    let wrong = format!("Illegal characters found in parameter '{name}'");
    digits(text).map(Some).ok_or((400, -1100, wrong))
}

/// The weight of a request. Binance limits the weight that a client may use in a minute.
fn weight(path: &[u8], query: &[u8]) -> u32 {
    match path {
        TICKERS if !query.starts_with(b"symbol") => 80,
        TICKERS | KLINES => 2,
        MARKET_LIST => 20,
        _ => 1,
    }
}

/// The value of the first parameter with this name.
fn parameter<'a>(query: &'a [u8], name: &str) -> Option<&'a [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let rest = pair.strip_prefix(name.as_bytes())?;
        match rest.split_first() {
            None => Some(rest),
            Some((b'=', value)) => Some(value),
            Some(_) => None,
        }
    })
}

/// The first and the last time at which a candle of the page may open, and the most rows: the oldest since
/// `startTime`, or without it the newest up to `endTime`. Both times are inclusive.
fn page(query: &[u8], interval: Interval, now: UnixMs) -> Result<(UnixMs, UnixMs, i64), Refusal> {
    let (from, to) = (number(query, "startTime")?, number(query, "endTime")?);
    let limit = number(query, "limit")?.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS);
    // The open time of the first candle that opens at `time` or later.
    let at_or_after = |time: i64| {
        let open = interval.open_of(UnixMs(time));
        if open.0 < time { interval.end_of(open) } else { open }
    };
    let last = interval.open_of(UnixMs(to.map_or(now.0, |to| to.min(now.0))));
    let first = match from {
        // A start in the future gives no candle; `now + 1` does as well, and cannot overflow.
        Some(from) => at_or_after(from.clamp(0, now.0.saturating_add(1))),
        None => interval.step(last, 1 - limit).max(at_or_after(0)),
    };
    Ok((first, last, limit))
}
