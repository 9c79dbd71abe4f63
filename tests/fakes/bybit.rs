//! Bybit: market data of "API v5". Failures come with status 200.

use crate::fakes::places::*;
use crate::fakes::shop::*;

pub const FAKE: Fake = Fake {
    name: "bybit",
    id: |base, quote| format!("{base}{quote}"),
    digits: plain,
    places: &[
        Place::fixed(
            "/v5/market/time",
            r#"{"retCode":0,"retMsg":"OK","result":{"timeSecond":"$seconds","timeNano":"$seconds000000000"},"retExtInfo":{},"time":$now}"#,
        ),
        Place::markets(
            "/v5/market/tickers",
            "symbol",
            r#"{"symbol":"$id","bid1Price":"$bid","bid1Size":"$bidVolume","ask1Price":"$ask","ask1Size":"$askVolume","lastPrice":"$last","prevPrice24h":"$open","price24hPcnt":"$ratio","highPrice24h":"$high","lowPrice24h":"$low","turnover24h":"$quoteVolume","volume24h":"$baseVolume","usdIndexPrice":"1"}"#,
            LIST,
        ).with("category=spot"),
        // A name that is unknown is left out.
        Place::markets(
            "/v5/market/instruments-info",
            "symbol",
            r#"{"symbol":"$id","baseCoin":"$base","quoteCoin":"$quote","innovation":"0","status":"Trading","marginTrading":"both","lotSizeFilter":{"basePrecision":"0.0001","quotePrecision":"0.00000001","minOrderQty":"0.001","maxOrderQty":"71.73956243","minOrderAmt":"5","maxOrderAmt":"2000000"},"priceFilter":{"tickSize":"$tick"}}"#,
            LIST,
        ).with("category=spot").lenient(),
        // Newest first; both ends of the range included, and the newest kept where it is too long.
        Place::candles(
            "/v5/market/kline",
            &Candles {
                interval: ("interval", ["1", "60", "D"]),
                from: Bound::May("start", 0),
                to: Bound::May("end", 0),
                rows: Rows::Asked("limit", 1000, 200),
                newest_first: true,
                ..CANDLES
            },
            r#"["$time","$open","$high","$low","$close","$volume","$turnover"]"#,
            LIST,
        ).with("category=spot"),
    ],
    unknown: Refusal(
        200,
        r#"{"retCode":10001,"retMsg":"Not supported symbols","result":{},"retExtInfo":{},"time":1}"#,
    ),
    wrong: Refusal(
        200,
        r#"{"retCode":10001,"retMsg":"Request parameter error.","result":{},"retExtInfo":{},"time":1}"#,
    ),
    too_many: Refusal(
        200,
        r#"{"retCode":10006,"retMsg":"Too many visits!","result":{},"retExtInfo":{},"time":1}"#,
    ),
    charge: |_| Charge { pool: "address", units: 1, most: 600, span_ms: 5_000 },
    sends: ALL_BUT_CHANGE,
};

const LIST: &str = r#"{"retCode":0,"retMsg":"OK","result":{"category":"spot","list":[$items]},"retExtInfo":{},"time":$now}"#;
