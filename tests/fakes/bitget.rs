//! Bitget: the spot part of its "API v2".

use crate::fakes::places::*;
use crate::fakes::shop::*;

pub const FAKE: Fake = Fake {
    name: "bitget",
    id: |base, quote| format!("{base}{quote}"),
    digits: plain,
    places: &[
        Place::fixed(
            "/api/v2/public/time",
            r#"{"code":"00000","msg":"success","requestTime":$now,"data":{"serverTime":"$now"}}"#,
        ),
        Place::markets(
            "/api/v2/spot/market/tickers",
            "symbol",
            r#"{"open":"$open","symbol":"$id","high24h":"$high","low24h":"$low","lastPr":"$last","quoteVolume":"$quoteVolume","baseVolume":"$baseVolume","usdtVolume":"$quoteVolume","ts":"$now","bidPr":"$bid","askPr":"$ask","bidSz":"$bidVolume","askSz":"$askVolume","openUtc":"3","changeUtc24h":"0.5","change24h":"$ratio"}"#,
            LIST,
        ),
        Place::markets(
            "/api/v2/spot/public/symbols",
            "symbol",
            r#"{"symbol":"$id","baseCoin":"$base","quoteCoin":"$quote","minTradeAmount":"0.001","maxTradeAmount":"10000000000","takerFeeRate":"0.002","makerFeeRate":"0.002","pricePrecision":"$places","quantityPrecision":"4","quotePrecision":"8","status":"online","minTradeUSDT":"5","buyLimitPriceRatio":"0.05","sellLimitPriceRatio":"0.05"}"#,
            LIST,
        ),
        Place::candles(
            "/api/v2/spot/market/candles",
            &Candles {
                from: Bound::May("startTime", 0),
                to: Bound::May("endTime", -1),
                rows: Rows::Asked("limit", 1000, 100),
                reach_days: [30, 60, 1440],
                ..ARCHIVE
            },
            ROW,
            LIST,
        ),
        Place::candles("/api/v2/spot/market/history-candles", &ARCHIVE, ROW, LIST),
    ],
    unknown: Refusal(
        400,
        r#"{"code":"40034","msg":"Parameter does not exist","requestTime":1,"data":null}"#,
    ),
    wrong: Refusal(400, r#"{"code":"40020","msg":"Parameter error","requestTime":1,"data":null}"#),
    too_many: Refusal(
        429,
        r#"{"code":"429","msg":"Too Many Requests","requestTime":1,"data":null}"#,
    ),
    charge: |_| Charge { pool: "address", units: 1, most: 20, span_ms: 1_000 },
    sends: ALL_BUT_CHANGE,
};

const LIST: &str = r#"{"code":"00000","msg":"success","requestTime":$now,"data":[$items]}"#;

const ROW: &str = r#"["$time","$open","$high","$low","$close","$volume","$turnover","$turnover"]"#;

/// Oldest first, older than the end. The archive counts back from it and knows no begin.
const ARCHIVE: Candles = Candles {
    interval: ("granularity", ["1min", "1h", "1Dutc"]),
    to: Bound::Must("endTime", -1),
    rows: Rows::Asked("limit", 200, 100),
    ..CANDLES
};
