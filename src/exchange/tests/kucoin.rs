//! KuCoin: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::tests::testing::{
    KUCOIN, candles, check_refusals, check_targets, check_time, read,
};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;
use crate::time::UnixMs;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn its_calls_have_its_targets() {
    let (from, to) = HOURS;
    check_targets(
        &KUCOIN,
        &[
            (Call::Tickers, "/api/v1/market/allTickers"),
            (Call::Ticker { id: "A-B" }, "/api/v1/market/stats?symbol=A-B"),
            (Call::Markets, "/api/v2/symbols"),
            (Call::Time, "/api/v1/timestamp"),
            (
                candles(Stored::H1, from, to, to),
                "/api/v1/market/candles?symbol=A-B&type=1hour&startAt=1588280400&endAt=1588284001",
            ),
            (
                candles(Stored::M1, from, to, i64::MAX),
                "/api/v1/market/candles?symbol=A-B&type=1min&startAt=1588280400&endAt=1588284001",
            ),
            (
                candles(Stored::D1, 0, 0, to),
                "/api/v1/market/candles?symbol=A-B&type=1day&startAt=0&endAt=1",
            ),
        ],
    );
}

#[test]
fn its_errors_are_refusals_whatever_was_asked() {
    check_refusals(
        &KUCOIN,
        &[
            (
                200,
                r#"{"msg":"Unsupported trading pair.","code":"400100"}"#,
                "400100",
                "Unsupported trading pair.",
                UnknownMarket,
            ),
            (
                429,
                r#"{"code":"429000","msg":"Too Many Requests"}"#,
                "429000",
                "Too Many Requests",
                RateLimited,
            ),
            (
                200,
                r#"{"code":"429000","msg":"Too Many Requests"}"#,
                "429000",
                "Too Many Requests",
                RateLimited,
            ),
            (
                500,
                r#"{"code":"500000","msg":"Internal Server Error","data":null}"#,
                "500000",
                "Internal Server Error",
                Other,
            ),
        ],
    );
}

#[test]
fn its_clock_is_read() {
    check_time(&KUCOIN, r#"{"code":"200000","data":1546837113087}"#, 1_546_837_113_087);
}

#[test]
fn one_ticker_has_its_own_time_and_a_newer_list_its_least_cost() {
    let one = r#"{"code":"200000","data":{"time":1602832092060,"symbol":"A-B","buy":"11328.9","sell":"11329","changeRate":"-0.0055",
        "changePrice":"-63.6","high":"11610","low":"11200","vol":"2282.7","volValue":"25984946.1","last":"11328.9","averagePrice":"1"}}"#;
    let (notes, end) = read(&KUCOIN, &Call::Ticker { id: "A-B" }, one);
    assert_eq!(end, Ok(()));
    assert_eq!(notes.tickers[0].1.timestamp, Some(UnixMs(1_602_832_092_060)));
    let list = |funds| {
        format!(
            r#"{{"code":"200000","data":[{{"symbol":"A-B","baseCurrency":"A","quoteCurrency":"B","quoteMinSize":"0.1","enableTrading":false,"minFunds":{funds}}}]}}"#
        )
    };
    for (funds, expected) in [("null", "0.1"), (r#""0.5""#, "0.5")] {
        let (notes, end) = read(&KUCOIN, &Call::Markets, &list(funds));
        assert_eq!((end, notes.markets[0].active), (Ok(()), false));
        let cost = notes.markets[0].rules.cost.min.as_ref().map(ToString::to_string);
        assert_eq!(cost.as_deref(), Some(expected));
    }
}
