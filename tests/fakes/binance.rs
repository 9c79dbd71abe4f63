//! Binance: market data of its "Public Rest API". A pool of weights, whose use each answer tells.

use crate::fakes::places::*;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "binance",
    id: |base, quote| format!("{base}{quote}"),
    digits: padded,
    places: &[TIME, ONE, TICKERS, LIST, KLINES],
    // A name that is unknown spoils a request for several.
    unknown: Refusal(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#),
    wrong: Refusal(400, r#"{"code":-1102,"msg":"Mandatory parameter was not sent."}"#),
    too_many: Refusal(429, r#"{"code":-1003,"msg":"Too much request weight used."}"#),
    charge: |asked| charge(asked, 6000, [2, 40, 80], 20, 2),
    sends: "last bid ask bidVolume askVolume open high low change baseVolume quoteVolume",
};

pub const TIME: Place = Place::fixed("/api/v3/time", r#"{"serverTime":$now}"#);

const TICKER: &str = r#"{"symbol":"$id","priceChange":"$change","weightedAvgPrice":"1","prevClosePrice":"1","lastPrice":"$last","lastQty":"0.1","bidPrice":"$bid","bidQty":"$bidVolume","askPrice":"$ask","askQty":"$askVolume","openPrice":"$open","highPrice":"$high","lowPrice":"$low","volume":"$baseVolume","quoteVolume":"$quoteVolume","openTime":1,"closeTime":$now,"firstId":1,"lastId":2,"count":2}"#;

const TICKER_PATH: &str = "/api/v3/ticker/24hr";

pub const ONE: Place = Place::markets(TICKER_PATH, "symbol", TICKER, "$items").with("symbol");
pub const TICKERS: Place = Place::markets(TICKER_PATH, "symbols", TICKER, "[$items]");

const LIST: Place = Place::markets(
    "/api/v3/exchangeInfo",
    "symbols",
    r#"{"symbol":"$id","status":"TRADING","baseAsset":"$base","quoteAsset":"$quote","filters":[{"filterType":"PRICE_FILTER","minPrice":"$tick","maxPrice":"1000000.00000000","tickSize":"$tick"},{"filterType":"LOT_SIZE","minQty":"0.00100000","maxQty":"9000.00000000","stepSize":"0.00010000"},{"filterType":"NOTIONAL","minNotional":"5.00000000","maxNotional":"9000000.00000000"}]}"#,
    r#"{"timezone":"UTC","serverTime":$now,"rateLimits":[],"exchangeFilters":[],"symbols":[$items]}"#,
);

/// Oldest first, cut from the begin, both ends included.
pub const CUT: Candles = Candles {
    from: Bound::May("startTime", 0),
    to: Bound::May("endTime", 0),
    rows: Rows::First(1000),
    ..CANDLES
};

const KLINES: Place = Place::candles(
    "/api/v3/klines",
    &CUT,
    r#"[$time,"$open","$high","$low","$close","$volume",$end,"$turnover",1,"2","3","0"]"#,
    "[$items]",
);

/// A pool of weights. Tickers cost by their number: up to 20, up to 100, or more.
pub fn charge(asked: &Asked, most: u32, tickers: [u32; 3], list: u32, klines: u32) -> Charge {
    let units = match asked.path() {
        "/api/v3/ticker/24hr" => ticker_units(asked, tickers),
        "/api/v3/exchangeInfo" => list,
        "/api/v3/klines" => klines,
        _ => 1,
    };
    Charge { pool: "weight", units, most, span_ms: 60_000 }
}

/// What a request for tickers costs: one market, up to 20, up to 100, or more.
pub fn ticker_units(asked: &Asked, [few, many, all]: [u32; 3]) -> u32 {
    match (asked.param("symbol"), asked.param("symbols")) {
        (Some(_), _) => few,
        (_, Some(ids)) if ids.split(',').count() <= 20 => few,
        (_, Some(ids)) if ids.split(',').count() <= 100 => many,
        _ => all,
    }
}
