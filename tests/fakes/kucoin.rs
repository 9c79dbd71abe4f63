//! KuCoin: market data of its "Classic API". A pool of weights, whose rest each answer tells.

use crate::fakes::places::*;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "kucoin",
    id: |base, quote| format!("{base}-{quote}"),
    digits: plain,
    places: &[
        Place::fixed("/api/v1/timestamp", r#"{"code":"200000","msg":"success","data":$now}"#),
        Place::markets(
            "/api/v1/market/allTickers",
            "",
            r#"{"symbol":"$id","symbolName":"$id","buy":"$bid","bestBidSize":"$bidVolume","sell":"$ask","bestAskSize":"$askVolume","changeRate":"$ratio","changePrice":"$change","high":"$high","low":"$low","vol":"$baseVolume","volValue":"$quoteVolume","last":"$last","averagePrice":"1","takerFeeRate":"0.001","makerFeeRate":"0.001","takerCoefficient":"1","makerCoefficient":"1"}"#,
            r#"{"code":"200000","data":{"time":$now,"ticker":[$items]}}"#,
        ),
        Place::markets("/api/v2/symbols", "", SYMBOL, LIST),
        Place::markets("/api/v2/symbols/*", "", SYMBOL, r#"{"code":"200000","data":$items}"#),
        // Newest first, the close before high and low; the begin belongs to the range, the end does not.
        Place::candles(
            "/api/v1/market/candles",
            &Candles {
                interval: ("type", ["1min", "1hour", "1day"]),
                unit: Unit::Seconds,
                from: Bound::May("startAt", 0),
                to: Bound::May("endAt", -1),
                rows: Rows::Last(1500),
                newest_first: true,
                ..CANDLES
            },
            r#"["$timeSeconds","$open","$close","$high","$low","$volume","$turnover"]"#,
            LIST,
        ),
    ],
    unknown: Refusal(200, r#"{"code":"900001","msg":"symbol not exists"}"#),
    wrong: Refusal(200, r#"{"code":"400100","msg":"Incorrect candlestick type"}"#),
    too_many: Refusal(429, r#"{"code":"429000","msg":"Too Many Requests"}"#),
    charge,
    sends: "last bid ask bidVolume askVolume high low baseVolume quoteVolume change",
};

const LIST: &str = r#"{"code":"200000","data":[$items]}"#;

const SYMBOL: &str = r#"{"symbol":"$id","name":"$id","baseCurrency":"$base","quoteCurrency":"$quote","feeCurrency":"$quote","market":"USDS","baseMinSize":"0.001","quoteMinSize":"0.1","baseMaxSize":"10000000000","quoteMaxSize":"99999999","baseIncrement":"0.0001","quoteIncrement":"0.000001","priceIncrement":"$tick","priceLimitRate":"0.1","minFunds":"5","isMarginEnabled":true,"enableTrading":true,"st":false}"#;

fn charge(asked: &Asked) -> Charge {
    let units = match asked.path() {
        "/api/v1/market/allTickers" | "/api/v1/market/stats" => 15,
        path if path.starts_with("/api/v2/symbols") => 4,
        _ => 3,
    };
    Charge { pool: "public", units, most: 2000, span_ms: 30_000 }
}
