//! The demo exchange: a simulated exchange with Binance's REST API.
//!
//! [`Demo`] has 24 markets, whose prices and volumes are a pure function of seed, market and time.
//! [`Demo::respond`] takes one GET request and returns status and body. It keeps no state between
//! two calls, reads no clock and does no I/O. The bytes of a closed candle are always the same, in
//! this process and in the next.
//!
//! Candles are generated from long to short. A day has an open, close, high, low, volume and
//! turnover (`assets`, `generator`). It is divided into hours, these into minutes, and those into
//! seconds (`candle`), each time so that the parts make exactly the whole. So any candle takes at
//! most three divisions, and candles of all lengths agree: a forming candle is the sum of its
//! seconds so far, its close is the ticker's last price, and the ticker's 24 hours are exact to the
//! second. `bodies` writes the responses.
//!
//! Bounds: a price changes by at most 1 % and six ticks from one second to the next (typically by
//! a hundredth of that), and never leaves its band (`BTC/USDT`: 71,250 to 118,750 at midnight, and
//! at most 2 % more between two midnights).

mod assets;
mod bodies;
mod candle;
mod generator;
mod random;
#[cfg(test)]
mod tests;

use crate::interval::Interval;
use crate::time::UnixMs;
use assets::{MARKETS, Market};
use bodies::Page;
use serde_json::{Value, json};

/// Rows of a page of candles if the request has no `limit` (Binance, "Kline/Candlestick data").
const DEFAULT_ROWS: i64 = 500;
/// Most rows of a page, whatever the `limit` (the same source).
const MAX_ROWS: i64 = 1000;
/// The end of the year 9999, which is the latest time. A later time counts as this one.
const LAST_MS: i64 = 253_402_300_799_999;

/// The demo exchange. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Demo {
    seed: u64,
}

impl Demo {
    /// The exchange with this seed. The same seed has the same prices at the same time.
    pub fn new(seed: u64) -> Demo {
        Demo { seed }
    }

    /// Responds to one GET request of Binance's REST API: appends the JSON body to `body` and
    /// returns the status. `path` and `query` are raw, and the query has no question mark. Unknown
    /// parameters are ignored. Nothing is percent-decoded, because no valid value needs it.
    ///
    /// The status is 200; 400 for a parameter that is missing or invalid; 404 for an unknown path.
    /// The body of an error is Binance's `{"code","msg"}`.
    pub fn respond(&self, path: &[u8], query: &[u8], now: UnixMs, body: &mut Vec<u8>) -> u16 {
        let now = UnixMs(now.0.clamp(0, LAST_MS));
        let (status, answer) = match self.answer(path, query, now) {
            Ok(answer) => (200, answer),
            Err((code, message)) => {
                let status = if code == NO_SUCH_PATH { 404 } else { 400 };
                (status, json!({ "code": code, "msg": message }))
            }
        };
        serde_json::to_writer(body, &answer).expect("a vector takes everything");
        status
    }

    fn answer(&self, path: &[u8], query: &[u8], now: UnixMs) -> Result<Value, Refusal> {
        let ticker = |market| bodies::ticker(self.seed, market, now);
        Ok(match path {
            b"/api/v3/ticker/24hr" => match symbol(query)? {
                Some(market) => ticker(market),
                None => MARKETS.iter().map(ticker).collect(),
            },
            b"/api/v3/klines" => {
                let market = symbol(query)?.ok_or_else(|| missing("symbol"))?;
                bodies::klines(self.seed, market, &page(query)?, now)
            }
            b"/api/v3/exchangeInfo" => {
                let markets = symbol(query)?.map_or(&MARKETS[..], std::slice::from_ref);
                bodies::exchange_info(markets, now)
            }
            b"/api/v3/time" => json!({ "serverTime": now.0 }),
            b"/api/v3/ping" => json!({}),
            _ => return Err((NO_SUCH_PATH, "No such path.".to_string())),
        })
    }
}

/// Why a request is refused: Binance's code and message ("Error codes for Binance").
type Refusal = (i64, String);

const NO_SUCH_PATH: i64 = -1000;

/// A mandatory parameter is missing or empty.
fn missing(name: &str) -> Refusal {
    let text = "was not sent, was empty/null, or malformed.";
    (-1102, format!("Mandatory parameter '{name}' {text}"))
}

/// A parameter has characters outside of its pattern.
fn illegal(name: &str, pattern: &str) -> Refusal {
    let text = "Illegal characters found in parameter";
    (-1100, format!("{text} '{name}'; legal range is '{pattern}'."))
}

/// The market of the parameter `symbol`, if there is one.
fn symbol(query: &[u8]) -> Result<Option<&'static Market>, Refusal> {
    let Some(name) = parameter(query, b"symbol") else {
        return Ok(None);
    };
    if name.is_empty() {
        return Err(missing("symbol"));
    }
    let legal = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if name.len() > 20 || !name.iter().all(legal) {
        return Err(illegal("symbol", "^[A-Z0-9-_.]{1,20}$"));
    }
    Market::find(name).map(Some).ok_or_else(|| (-1121, "Invalid symbol.".to_string()))
}

/// The page of candles that the parameters describe.
fn page(query: &[u8]) -> Result<Page, Refusal> {
    let interval = parameter(query, b"interval")
        .filter(|name| !name.is_empty())
        .ok_or_else(|| missing("interval"))?;
    let interval = Interval::parse(interval);
    let interval = interval.ok_or_else(|| (-1120, "Invalid interval.".to_string()))?;
    let limit = number(query, "limit")?.unwrap_or(DEFAULT_ROWS);
    if limit < 1 {
        return Err((-1130, "Data sent for parameter 'limit' is not valid.".to_string()));
    }
    Ok(Page {
        interval,
        from: number(query, "startTime")?,
        to: number(query, "endTime")?,
        limit: limit.min(MAX_ROWS),
    })
}

/// A parameter that is a whole number. A number above the largest `i64` counts as that one.
fn number(query: &[u8], name: &str) -> Result<Option<i64>, Refusal> {
    let Some(digits) = parameter(query, name.as_bytes()) else {
        return Ok(None);
    };
    let text = str::from_utf8(digits).unwrap_or_default();
    if !(1..=20).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(illegal(name, "^[0-9]{1,20}$"));
    }
    Ok(Some(text.parse().unwrap_or(i64::MAX)))
}

/// The value of the first parameter with this name.
fn parameter<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let rest = pair.strip_prefix(name)?;
        match rest.split_first() {
            None => Some(rest),
            Some((b'=', value)) => Some(value),
            Some(_) => None,
        }
    })
}
