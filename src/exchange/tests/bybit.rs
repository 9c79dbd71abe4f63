//! Bybit: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::tests::testing::{
    BYBIT, candles, check_refusals, check_targets, check_time, read,
};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn its_calls_have_its_targets() {
    let (from, to) = HOURS;
    check_targets(
        &BYBIT,
        &[
            (Call::Tickers, "/v5/market/tickers?category=spot"),
            (Call::Ticker { id: "A-B" }, "/v5/market/tickers?category=spot&symbol=A-B"),
            (Call::Markets, "/v5/market/instruments-info?category=spot"),
            (Call::Time, "/v5/market/time"),
            (
                candles(Stored::H1, from, to, to),
                "/v5/market/kline?category=spot&symbol=A-B&interval=60&start=1588280400000&end=1588284000000&limit=1000",
            ),
            (
                candles(Stored::M1, from, to, i64::MAX),
                "/v5/market/kline?category=spot&symbol=A-B&interval=1&start=1588280400000&end=1588284000000&limit=1000",
            ),
            (
                candles(Stored::D1, 0, 0, to),
                "/v5/market/kline?category=spot&symbol=A-B&interval=D&start=0&end=0&limit=1000",
            ),
        ],
    );
}

#[test]
fn its_errors_are_refusals_whatever_was_asked() {
    check_refusals(
        &BYBIT,
        &[
            (
                200,
                r#"{"retCode":10001,"retMsg":"Not supported symbols","result":{},"retExtInfo":{},"time":1672712468011}"#,
                "10001",
                "Not supported symbols",
                UnknownMarket,
            ),
            (
                200,
                r#"{"retCode":10006,"retMsg":"Too many visits!","result":{},"retExtInfo":{},"time":1}"#,
                "10006",
                "Too many visits!",
                RateLimited,
            ),
            (
                403,
                r#"{"retCode":10018,"retMsg":"ip rate limit","result":null}"#,
                "10018",
                "ip rate limit",
                RateLimited,
            ),
            (
                200,
                r#"{"retCode":10016,"retMsg":"Internal error","result":{"list":[]}}"#,
                "10016",
                "Internal error",
                Other,
            ),
        ],
    );
}

#[test]
fn the_time_of_the_response_is_that_of_its_tickers_wherever_it_stands() {
    let check = |body: &str, expected: Option<i64>| {
        let (notes, end) = read(&BYBIT, &Call::Tickers, body);
        assert_eq!((end, notes.tickers.len()), (Ok(()), 1), "{body}");
        let stamp = notes.tickers[0].1.timestamp.map(|time| time.0);
        assert_eq!(stamp, expected, "{body}");
    };
    let list = r#""result":{"time":5,"list":[{"symbol":"AB","lastPrice":"1"}]}"#;
    let time = r#""time":1673859087947"#;
    check(&format!("{{{list},{time}}}"), Some(1_673_859_087_947));
    check(&format!("{{{time},{list}}}"), Some(1_673_859_087_947));
    check(&format!("{{{list}}}"), None);
    check(&format!(r#"{{{list},"time":"noon"}}"#), None);
    check(&format!(r#"{{{list},"time":null}}"#), None);
}

#[test]
fn its_clock_is_read() {
    check_time(
        &BYBIT,
        r#"{"retCode":0,"retMsg":"OK","result":{"timeSecond":"1688639403","timeNano":"1688639403423213947"},"retExtInfo":{},"time":1688639403423}"#,
        1_688_639_403_423,
    );
}
