//! MEXC: market data of "Spot V3", much like Binance's.

use crate::fakes::binance;
use crate::fakes::places::*;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "mexc",
    places: &[binance::TIME, binance::ONE, binance::TICKERS, LIST, KLINES],
    too_many: Refusal(429, r#"{"code":429,"msg":"Too Many Requests"}"#),
    charge,
    ..binance::FAKE
};

const LIST: Place = Place::markets(
    "/api/v3/exchangeInfo",
    "symbols",
    r#"{"symbol":"$id","status":"1","baseAsset":"$base","baseAssetPrecision":4,"quoteAsset":"$quote","quotePrecision":$places,"quoteAssetPrecision":2,"quoteAmountPrecision":"5","baseSizePrecision":"0","permissions":["SPOT"],"filters":[],"maxQuoteAmount":"2000000","makerCommission":"0","takerCommission":"0.0005"}"#,
    r#"{"timezone":"CST","serverTime":$now,"rateLimits":[],"exchangeFilters":[],"symbols":[$items]}"#,
);

const KLINES: Place = Place::candles(
    "/api/v3/klines",
    &Candles {
        interval: ("interval", ["1m", "60m", "1d"]),
        rows: Rows::First(500),
        ..binance::CUT
    },
    r#"[$time,"$open","$high","$low","$close","$volume",$end,"$turnover"]"#,
    "[$items]",
);

/// Each address alone, by weights.
fn charge(asked: &Asked) -> Charge {
    let (pool, units) = match asked.path() {
        "/api/v3/ticker/24hr" => ("tickers", binance::ticker_units(asked, [1, 40, 40])),
        "/api/v3/exchangeInfo" => ("list", 10),
        "/api/v3/klines" => ("klines", 1),
        _ => ("time", 1),
    };
    Charge { pool, units, most: 500, span_ms: 10_000 }
}
