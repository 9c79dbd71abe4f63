//! Upbit: its "Quotation API". The quote asset comes first in a market's name.

use crate::fakes::places::*;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "upbit",
    id: |base, quote| format!("{quote}-{base}"),
    digits: plain,
    places: &[
        Place::markets(
            "/v1/market/all",
            "",
            r#"{"market":"$id","korean_name":"\ube44","english_name":"X"}"#,
            "[$items]",
        ),
        // Its clock is a ticker's.
        Place::fixed(
            "/v1/ticker",
            r#"[{"market":"KRW-BTC","trade_price":1,"acc_trade_price_24h":1,"acc_trade_volume_24h":1,"timestamp":$now}]"#,
        ).with("markets=KRW-BTC"),
        Place::markets("/v1/ticker", "markets", TICKER, "[$items]").with("markets"),
        Place::markets("/v1/ticker/all", "", TICKER, "[$items]"),
        // Newest first, so many before `to`, which is left out.
        Place::candles(
            "/v1/candles/*",
            &Candles {
                market: "market",
                interval: ("", ["minutes/1", "minutes/60", "days"]),
                unit: Unit::Iso,
                to: Bound::Must("to", -1),
                rows: Rows::Asked("count", 200, 0),
                newest_first: true,
                ..CANDLES
            },
            r#"{"market":"x","candle_date_time_utc":"$timeIso","candle_date_time_kst":"x","opening_price":$open,"high_price":$high,"low_price":$low,"trade_price":$close,"timestamp":$now,"candle_acc_trade_price":$turnover,"candle_acc_trade_volume":$volume,"unit":1}"#,
            "[$items]",
        ),
    ],
    unknown: Refusal(404, r#"{"error":{"name":404,"message":"Code not found"}}"#),
    wrong: Refusal(400, r#"{"error":{"name":"validation_error","message":"count"}}"#),
    too_many: Refusal(
        429,
        r#"{"error":{"name":"too_many_requests","message":"Too many API requests."}}"#,
    ),
    charge,
    sends: "last baseVolume quoteVolume",
};

const TICKER: &str = r#"{"market":"$id","trade_date":"20240515","opening_price":1,"high_price":2,"low_price":1,"trade_price":$last,"prev_closing_price":1,"change":"RISE","signed_change_rate":0.5,"acc_trade_price":1,"acc_trade_price_24h":$quoteVolume,"acc_trade_volume":1,"acc_trade_volume_24h":$baseVolume,"timestamp":$now}"#;

/// Each group of addresses alone.
fn charge(asked: &Asked) -> Charge {
    let pool = match asked.path() {
        path if path.starts_with("/v1/candles") => "candles",
        path if path.starts_with("/v1/ticker") => "ticker",
        _ => "market",
    };
    Charge { pool, units: 1, most: 10, span_ms: 1_000 }
}
