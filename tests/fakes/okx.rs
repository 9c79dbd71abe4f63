//! OKX: market data of "API v5". Failures come with status 200.

use crate::fakes::places::*;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "okx",
    id: |base, quote| format!("{base}-{quote}"),
    digits: plain,
    places: &[
        Place::fixed(
            "/api/v5/public/time",
            r#"{"code":"0","msg":"","data":[{"ts":"$now"}]}"#,
        ),
        Place::markets("/api/v5/market/tickers", "", TICKER, LIST).with("instType=SPOT"),
        Place::markets("/api/v5/market/ticker", "instId", TICKER, LIST).with("instId"),
        Place::markets(
            "/api/v5/public/instruments",
            "instId",
            r#"{"instType":"SPOT","instId":"$id","uly":"","category":"1","baseCcy":"$base","quoteCcy":"$quote","settleCcy":"","ctVal":"","tickSz":"$tick","lotSz":"0.0001","minSz":"0.001","maxLmtSz":"999999","maxMktSz":"1000000","state":"live"}"#,
            LIST,
        ).with("instType=SPOT"),
        // The last 1440 of each interval are at hand; older ones are in the archive.
        Place::candles(
            "/api/v5/market/candles",
            &Candles { reach_days: [1, 60, 1440], ..ARCHIVE },
            ROW,
            LIST,
        ),
        Place::candles(
            "/api/v5/market/history-candles",
            &ARCHIVE,
            ROW,
            LIST,
        ),
    ],
    unknown: Refusal(200, r#"{"code":"51001","msg":"Instrument ID does not exist","data":[]}"#),
    wrong: Refusal(200, r#"{"code":"50014","msg":"Parameter can not be empty","data":[]}"#),
    too_many: Refusal(429, r#"{"code":"50011","msg":"Too Many Requests","data":[]}"#),
    charge,
    sends: ALL_BUT_CHANGE,
};

const LIST: &str = r#"{"code":"0","msg":"","data":[$items]}"#;

const TICKER: &str = r#"{"instType":"SPOT","instId":"$id","last":"$last","lastSz":"0.1","askPx":"$ask","askSz":"$askVolume","bidPx":"$bid","bidSz":"$bidVolume","open24h":"$open","high24h":"$high","low24h":"$low","volCcy24h":"$quoteVolume","vol24h":"$baseVolume","ts":"$now","sodUtc0":"1","sodUtc8":"2"}"#;

const ROW: &str =
    r#"["$time","$open","$high","$low","$close","$volume","$turnover","$turnover","$closedFlag"]"#;

/// Newest first, between `before` and `after`, both left out.
const ARCHIVE: Candles = Candles {
    market: "instId",
    interval: ("bar", ["1m", "1H", "1Dutc"]),
    from: Bound::May("before", 1),
    to: Bound::May("after", -1),
    rows: Rows::Asked("limit", 300, 100),
    newest_first: true,
    ..CANDLES
};

/// Each address alone.
fn charge(asked: &Asked) -> Charge {
    let (pool, most) = match asked.path() {
        "/api/v5/market/tickers" => ("tickers", 20),
        "/api/v5/market/ticker" => ("ticker", 20),
        "/api/v5/market/candles" => ("candles", 40),
        "/api/v5/market/history-candles" => ("history-candles", 20),
        "/api/v5/public/time" => ("time", 10),
        _ => ("instruments", 20),
    };
    Charge { pool, units: 1, most, span_ms: 2_000 }
}
