//! The demo exchange: an exchange that is made of arithmetic and speaks Binance's REST API.
//!
//! Owns 24 markets whose prices and volumes are a pure function of seed, market and time:
//! [`Demo::answer`] takes one GET and gives status and body. It never keeps anything between two
//! calls, reads no clock and does no I/O: whoever asks again for a candle that has closed gets
//! the same bytes, from this process or from the next.
//!
//! The construction goes from the top down. A day has its open, close, high, low, volume and
//! turnover (`assets`, `tape`); it is divided into hours, these into minutes, and those into
//! seconds (`candle`), each time so that the parts make the whole exactly. So any candle at any
//! depth is at most three divisions away, and all depths agree: a forming candle is what its
//! seconds make, its close is the ticker's last price, and the ticker's 24 hours are exact to the
//! second.
//!
//! Bounds: a price changes by at most 1 % and six ticks from one second to the next (typically by
//! a hundredth of that), and stays within its band for ever (`BTC/USDT`: 71,250 to 118,750 at
//! midnight, at most 2 % beyond between).

mod assets;
mod bodies;
mod candle;
mod json;
mod random;
mod tape;
#[cfg(test)]
mod tests;

use crate::interval::Interval;
use crate::time::UnixMs;
use assets::{MARKETS, Market};
use bodies::Page;
use json::Value;

/// Rows of a page of candles, when the request names no number (Binance, "Kline/Candlestick
/// data").
const DEFAULT_ROWS: i64 = 500;
/// Most rows of a page; asking for more gives this many (the same source).
const MAX_ROWS: i64 = 1000;
/// The end of the year 9999. A clock beyond it is read as this.
const LAST_MS: i64 = 253_402_300_799_999;

/// The demo exchange.
#[derive(Clone, Copy, Debug)]
pub struct Demo {
    seed: u64,
}

impl Demo {
    /// The exchange of that seed. The same seed has the same prices at the same time.
    pub fn new(seed: u64) -> Demo {
        Demo { seed }
    }

    /// Answers one GET of Binance's REST API: appends the JSON body to `body`, and gives the
    /// status. `path` and `query` are raw, the query without its question mark; parameters that
    /// Binance does not know are ignored, and nothing is percent-decoded: no good value needs it.
    ///
    /// 200; 400 with Binance's `{"code","msg"}` for a parameter that is missing or bad; 404, in
    /// the same shape, for a path that is not here.
    pub fn answer(&self, path: &[u8], query: &[u8], now: UnixMs, body: &mut Vec<u8>) -> u16 {
        let now = UnixMs(now.0.clamp(0, LAST_MS));
        match self.dispatch(path, query, now, body) {
            Ok(()) => 200,
            Err(fault) => {
                fault.write(body);
                fault.status()
            }
        }
    }

    /// Finds out what is asked for, and only then writes.
    fn dispatch(
        &self,
        path: &[u8],
        query: &[u8],
        now: UnixMs,
        body: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match path {
            b"/api/v3/ticker/24hr" => match symbol(query)? {
                Some(market) => bodies::write_ticker(self.seed, market, now, body),
                None => bodies::write_tickers(self.seed, now, body),
            },
            b"/api/v3/klines" => {
                let market = symbol(query)?.ok_or(Fault::Missing("symbol"))?;
                bodies::write_klines(self.seed, market, &page(query)?, now, body);
            }
            b"/api/v3/exchangeInfo" => {
                let markets = match symbol(query)? {
                    Some(market) => std::slice::from_ref(market),
                    None => &MARKETS,
                };
                bodies::write_exchange_info(markets, now, body);
            }
            b"/api/v3/time" => Value::Object(&[("serverTime", Value::Int(now.0))]).write(body),
            b"/api/v3/ping" => Value::Object(&[]).write(body),
            _ => return Err(Fault::NotFound),
        }
        Ok(())
    }
}

/// Why a request is refused. Codes and messages are Binance's ("Error codes for Binance").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// No such path.
    NotFound,
    /// A parameter that must be there is not, or is empty.
    Missing(&'static str),
    /// A parameter has characters that it cannot have; the second is the pattern.
    Illegal(&'static str, &'static str),
    /// A parameter has a value that it cannot have.
    Invalid(&'static str),
    /// No such interval.
    Interval,
    /// No such market.
    Symbol,
}

impl Fault {
    fn status(self) -> u16 {
        match self {
            Fault::NotFound => 404,
            _ => 400,
        }
    }

    fn write(self, body: &mut Vec<u8>) {
        let (code, message) = match self {
            Fault::NotFound => (-1000, "No such path.".to_owned()),
            Fault::Illegal(name, pattern) => (
                -1100,
                format!(
                    "Illegal characters found in parameter '{name}'; legal range is '{pattern}'."
                ),
            ),
            Fault::Missing(name) => (
                -1102,
                format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed."),
            ),
            Fault::Interval => (-1120, "Invalid interval.".to_owned()),
            Fault::Symbol => (-1121, "Invalid symbol.".to_owned()),
            Fault::Invalid(name) => (
                -1130,
                format!("Data sent for parameter '{name}' is not valid."),
            ),
        };
        let members = [("code", Value::Int(code)), ("msg", Value::Text(&message))];
        Value::Object(&members).write(body);
    }
}

/// The market that a request names, if it names one.
fn symbol(query: &[u8]) -> Result<Option<&'static Market>, Fault> {
    let Some(name) = parameter(query, b"symbol") else {
        return Ok(None);
    };
    if name.is_empty() {
        return Err(Fault::Missing("symbol"));
    }
    let legal = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if name.len() > 20 || !name.iter().all(legal) {
        return Err(Fault::Illegal("symbol", "^[A-Z0-9-_.]{1,20}$"));
    }
    Market::find(name).map(Some).ok_or(Fault::Symbol)
}

/// The page of candles that a request asks for.
fn page(query: &[u8]) -> Result<Page, Fault> {
    let interval = parameter(query, b"interval")
        .filter(|name| !name.is_empty())
        .ok_or(Fault::Missing("interval"))?;
    let interval = Interval::parse(interval).ok_or(Fault::Interval)?;
    let limit = number(query, "limit")?.unwrap_or(DEFAULT_ROWS);
    if limit < 1 {
        return Err(Fault::Invalid("limit"));
    }
    Ok(Page {
        interval,
        from: number(query, "startTime")?,
        to: number(query, "endTime")?,
        limit: limit.min(MAX_ROWS),
    })
}

/// A parameter that is a whole number. One that is too large for any use is the largest.
fn number(query: &[u8], name: &'static str) -> Result<Option<i64>, Fault> {
    let Some(digits) = parameter(query, name.as_bytes()) else {
        return Ok(None);
    };
    if digits.is_empty() || digits.len() > 20 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Illegal(name, "^[0-9]{1,20}$"));
    }
    let number = digits.iter().fold(0i64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    Ok(Some(number))
}

/// The value of a parameter: of the first, where there are several.
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
