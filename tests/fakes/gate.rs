//! Gate: the spot part of its "API v4".

use crate::fakes::places::*;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "gate",
    id: |base, quote| format!("{base}_{quote}"),
    digits: plain,
    places: &[
        Place::fixed("/api/v4/spot/time", r#"{"server_time":$now}"#),
        Place::markets(
            "/api/v4/spot/tickers",
            "currency_pair",
            r#"{"currency_pair":"$id","last":"$last","lowest_ask":"$ask","lowest_size":"1","highest_bid":"$bid","highest_size":"2","change_percentage":"$percent","base_volume":"$baseVolume","quote_volume":"$quoteVolume","high_24h":"$high","low_24h":"$low"}"#,
            "[$items]",
        ),
        Place::markets("/api/v4/spot/currency_pairs", "", PAIR, "[$items]"),
        Place::markets("/api/v4/spot/currency_pairs/*", "", PAIR, "$items"),
        // Oldest first, the volume in quote asset and the close in front; both ends included. Either a
        // range or a limit.
        Place::candles(
            "/api/v4/spot/candlesticks",
            &Candles {
                market: "currency_pair",
                unit: Unit::Seconds,
                from: Bound::Must("from", 0),
                to: Bound::Must("to", 0),
                rows: Rows::First(1000),
                most_span: 999,
                most_ago: 10_000,
                never: "limit",
                ..CANDLES
            },
            r#"["$timeSeconds","$turnover","$close","$high","$low","$open","$volume","$isClosed"]"#,
            "[$items]",
        ),
    ],
    unknown: Refusal(400, r#"{"label":"INVALID_CURRENCY_PAIR","message":"Invalid currency pair"}"#),
    wrong: Refusal(
        400,
        r#"{"label":"INVALID_PARAM_VALUE","message":"Candlestick too long ago. Maximum 10000 points ago are allowed"}"#,
    ),
    too_many: Refusal(
        429,
        r#"{"label":"TOO_MANY_REQUESTS","message":"Request Rate limit Exceeded"}"#,
    ),
    charge,
    sends: "last bid ask high low baseVolume quoteVolume",
};

const PAIR: &str = r#"{"id":"$id","base":"$base","base_name":"x","quote":"$quote","quote_name":"y","fee":"0.2","min_base_amount":"0.001","min_quote_amount":"5","max_quote_amount":"5000000","amount_precision":4,"precision":$places,"trade_status":"tradable","sell_start":0,"buy_start":0,"delisting_time":0,"type":"normal","trade_url":"https://example.org/"}"#;

/// Each address alone.
fn charge(asked: &Asked) -> Charge {
    let pool = match asked.path() {
        "/api/v4/spot/tickers" => "tickers",
        "/api/v4/spot/candlesticks" => "candlesticks",
        "/api/v4/spot/time" => "time",
        _ => "currency_pairs",
    };
    Charge { pool, units: 1, most: 200, span_ms: 10_000 }
}
