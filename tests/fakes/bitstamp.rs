//! Bitstamp: public data of its "HTTP API v2".

use crate::fakes::places::*;
use crate::fakes::shop::*;

pub const FAKE: Fake = Fake {
    name: "bitstamp",
    id: |base, quote| format!("{base}{quote}").to_lowercase(),
    digits: plain,
    places: &[
        // Its clock is a ticker's.
        Place::fixed(
            "/api/v2/ticker/btcusd/",
            r#"{"timestamp":"$seconds","open":"1","high":"1","low":"1","last":"1","volume":"1"}"#,
        ),
        Place::markets("/api/v2/ticker/", "", TICKER, "[$items]"),
        Place::markets("/api/v2/ticker/*/", "", TICKER, "$items"),
        Place::markets(
            "/api/v2/trading-pairs-info/",
            "",
            r#"{"base_decimals":4,"counter_decimals":$places,"minimum_order":"20.0 $quote","name":"$base/$quote","trading":"Enabled","url_symbol":"$id"}"#,
            "[$items]",
        ),
        // Oldest first, so many up to the end, which belongs to the range.
        Place::candles(
            "/api/v2/ohlc/*/",
            &Candles {
                market: "",
                interval: ("step", ["60", "3600", "86400"]),
                unit: Unit::Seconds,
                to: Bound::Must("end", 0),
                rows: Rows::Asked("limit", 1000, 0),
                ..CANDLES
            },
            r#"{"timestamp":"$timeSeconds","open":"$open","high":"$high","low":"$low","close":"$close","volume":"$volume"}"#,
            r#"{"data":{"pair":"X/Y","ohlc":[$items]}}"#,
        ),
    ],
    unknown: Refusal(404, "<html>not found</html>"),
    wrong: Refusal(400, r#"{"code":"400.009","reason":"Invalid step","status":"error"}"#),
    too_many: Refusal(
        400,
        r#"{"status":"error","reason":"Request rate limit exceeded.","code":"400.002"}"#,
    ),
    // The limit of ten minutes, as the share of it that falls to a tenth.
    charge: |_| Charge { pool: "requests", units: 1, most: 1000, span_ms: 60_000 },
    sends: "last bid ask open high low baseVolume",
};

const TICKER: &str = r#"{"timestamp":"$seconds","open":"1","high":"$high","low":"$low","last":"$last","volume":"$baseVolume","vwap":"1","bid":"$bid","ask":"$ask","side":"0","open_24":"$open","percent_change_24":"$percent","pair":"$base/$quote"}"#;
