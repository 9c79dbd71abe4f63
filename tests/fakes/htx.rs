//! HTX: market data of its "Spot API". Failures come with status 200.

use crate::fakes::places::*;
use crate::fakes::shop::*;

pub const FAKE: Fake = Fake {
    name: "htx",
    id: |base, quote| format!("{base}{quote}").to_lowercase(),
    digits: plain,
    places: &[
        Place::fixed(
            "/v1/common/timestamp",
            r#"{"status":"ok","data":$now}"#,
        ),
        Place::markets(
            "/market/tickers",
            "",
            r#"{"symbol":"$id","open":$open,"high":$high,"low":$low,"close":$last,"amount":$baseVolume,"vol":$quoteVolume,"count":7,"bid":$bid,"bidSize":$bidVolume,"ask":$ask,"askSize":$askVolume}"#,
            LIST,
        ),
        Place::markets(
            "/market/detail/merged",
            "symbol",
            r#"{"id":1,"version":2,"open":$open,"high":$high,"low":$low,"close":$last,"amount":$baseVolume,"vol":$quoteVolume,"count":7,"bid":[$bid,$bidVolume],"ask":[$ask,$askVolume]}"#,
            r#"{"status":"ok","ch":"x","ts":$now,"tick":$items}"#,
        ).with("symbol"),
        Place::markets(
            "/v1/common/symbols",
            "",
            r#"{"base-currency":"$ownBase","quote-currency":"$ownQuote","price-precision":$places,"amount-precision":4,"symbol-partition":"main","symbol":"$id","state":"online","value-precision":8,"min-order-amt":0.001,"max-order-amt":1000,"min-order-value":5}"#,
            LIST,
        ),
        // Newest first, the newest of all alone. Days begin in the afternoon.
        Place::candles(
            "/market/history/kline",
            &Candles {
                interval: ("period", ["1min", "60min", "none"]),
                rows: Rows::Asked("size", 2000, 0),
                newest_first: true,
                ..CANDLES
            },
            r#"{"id":$timeSeconds,"open":$open,"close":$close,"low":$low,"high":$high,"amount":$volume,"vol":$turnover,"count":3}"#,
            LIST,
        ),
    ],
    unknown: Refusal(
        200,
        r#"{"status":"error","ts":1,"err-code":"invalid-parameter","err-msg":"invalid symbol","data":null}"#,
    ),
    wrong: Refusal(
        200,
        r#"{"status":"error","ts":1,"err-code":"bad-request","err-msg":"no such path","data":null}"#,
    ),
    too_many: Refusal(
        429,
        r#"{"status":"error","err-code":"api-limit","err-msg":"too many request"}"#,
    ),
    charge: |_| Charge { pool: "requests", units: 1, most: 10, span_ms: 1_000 },
    sends: ALL_BUT_CHANGE,
};

const LIST: &str = r#"{"status":"ok","ts":$now,"data":[$items]}"#;
