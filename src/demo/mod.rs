//! The demo exchange: a simulated exchange that speaks the part of Binance's REST API that marketd
//! reads. Of the members of a body, it sends those that Binance's dialect names, but for the filter
//! `MIN_NOTIONAL`: it sends `NOTIONAL`, which says the same and more.
//!
//! [`Demo`] has 24 markets, whose prices and volumes are a pure function of seed, market and time.
//! [`Demo::respond`] takes one GET request and returns status and body. It keeps no state between
//! two calls, reads no clock and does no I/O. The bytes of a closed candle are always the same, in
//! this process and in the next.
//!
//! Candles are generated from long to short. A day has an open, close, high, low and volume
//! (`assets`, `generator`). It is divided into hours, these into minutes, and those into
//! seconds (`candle`), each time so that the parts make exactly the whole. So any candle takes at
//! most three divisions, and candles of all lengths agree: a forming candle is the sum of its
//! seconds so far, its close is the ticker's last price, and the ticker's figures are of exactly the last
//! 86,400 seconds. Only `quoteVolume` is estimated: it is the volume at the mean of four prices. `bodies`
//! writes the responses.
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
use crate::json::json;
use crate::time::{UnixMs, digits};
use assets::DemoMarket;
use bodies::CandleQuery;

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
    /// The body of an error has the form of Binance's, `{"code","msg"}`.
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
        match path {
            b"/api/v3/ticker/24hr" => match parameter(query, "symbol") {
                Some(_) => bodies::ticker(self.seed, market(query)?, now, body),
                None => bodies::tickers(self.seed, now, body),
            },
            b"/api/v3/klines" => {
                bodies::klines(self.seed, market(query)?, &page(query)?, now, body);
            }
            b"/api/v3/exchangeInfo" => bodies::exchange_info(body),
            b"/api/v3/time" => json!(body, { "serverTime": now }),
            _ => return Err((404, -1000, "No such path.".to_string())),
        }
        Ok(())
    }
}

/// Why a request is refused: the status, Binance's code ("Error codes for Binance"), and a message. Only the
/// message of -1121 is Binance's; the others are our own.
type Refusal = (u16, i64, String);

/// A parameter is missing, or not what is expected.
fn invalid(name: &str, expected: &str) -> Refusal {
    (400, -1130, format!("Invalid parameter '{name}': expected {expected}."))
}

/// The market of the parameter `symbol`.
fn market(query: &[u8]) -> Result<&'static DemoMarket, Refusal> {
    let market = parameter(query, "symbol").and_then(DemoMarket::find);
    market.ok_or_else(|| (400, -1121, "Invalid symbol.".to_string()))
}

/// The page of candles that the parameters describe.
fn page(query: &[u8]) -> Result<CandleQuery, Refusal> {
    let interval = parameter(query, "interval").and_then(Interval::parse);
    Ok(CandleQuery {
        interval: interval.ok_or_else(|| invalid("interval", "one like 1m"))?,
        from: number(query, "startTime")?,
        to: number(query, "endTime")?,
        limit: number(query, "limit")?.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS),
    })
}

/// A parameter that is a whole number of at least 0.
fn number(query: &[u8], name: &str) -> Result<Option<i64>, Refusal> {
    let Some(text) = parameter(query, name) else {
        return Ok(None);
    };
    digits(text).map(Some).ok_or_else(|| invalid(name, "a whole number"))
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
