//! Coinbase Exchange: the products of its "Exchange REST API". Tickers one by one.

use crate::fakes::places::*;
use crate::fakes::shop::*;

pub const FAKE: Fake = Fake {
    name: "coinbase",
    id: |base, quote| format!("{base}-{quote}"),
    digits: padded,
    places: &[
        Place::fixed("/time", r#"{"iso":"$iso","epoch":$seconds.$millis}"#),
        Place::markets("/products", "", PRODUCT, "[$items]"),
        Place::markets(
            "/products/*/ticker",
            "",
            r#"{"ask":"$ask","bid":"$bid","volume":"$baseVolume","trade_id":86326522,"price":"$last","size":"0.001","time":"$iso","rfq_volume":"9.5"}"#,
            "$items",
        ),
        Place::markets(
            "/products/*/stats",
            "",
            r#"{"open":"$open","high":"$high","low":"$low","last":"$last","volume":"$baseVolume","volume_30day":"7777","rfq_volume_24hour":"1"}"#,
            "$items",
        ),
        // Newest first, low and high before open and close, both ends of the range included.
        Place::candles(
            "/products/*/candles",
            &Candles {
                market: "",
                interval: ("granularity", ["60", "3600", "86400"]),
                unit: Unit::Iso,
                from: Bound::Must("start", 0),
                to: Bound::Must("end", 0),
                rows: Rows::Last(300),
                newest_first: true,
                most_span: 300,
                ..CANDLES
            },
            "[$timeSeconds,$low,$high,$open,$close,$volume]",
            "[$items]",
        ),
        Place::markets("/products/*", "", PRODUCT, "$items"),
    ],
    unknown: Refusal(404, r#"{"message":"NotFound"}"#),
    wrong: Refusal(
        400,
        r#"{"message":"granularity too small for the requested time range. Count of aggregations requested exceeds 300"}"#,
    ),
    too_many: Refusal(429, r#"{"message":"Public rate limit exceeded"}"#),
    charge: |_| Charge { pool: "address", units: 1, most: 10, span_ms: 1_000 },
    sends: "last bid ask open high low baseVolume",
};

const PRODUCT: &str = r#"{"id":"$id","base_currency":"$base","quote_currency":"$quote","quote_increment":"$tick","base_increment":"0.0001","display_name":"$id","min_market_funds":"5","margin_enabled":false,"post_only":false,"limit_only":false,"cancel_only":false,"status":"online","status_message":"","trading_disabled":false,"fx_stablecoin":false,"auction_mode":false}"#;
