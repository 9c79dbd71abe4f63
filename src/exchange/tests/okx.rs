//! OKX: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::tests::testing::{OKX, candles, check_refusals, check_targets, read};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn its_calls_have_its_targets() {
    let (from, to) = HOURS;
    check_targets(
        &OKX,
        &[
            (Call::Tickers, "/api/v5/market/tickers?instType=SPOT"),
            (Call::Ticker { id: "A-B" }, "/api/v5/market/ticker?instId=A-B"),
            (Call::Markets, "/api/v5/public/instruments?instType=SPOT"),
            (Call::Time, "/api/v5/public/time"),
            (
                candles(Stored::H1, from, to, to),
                "/api/v5/market/candles?instId=A-B&bar=1H&before=1588280399999&after=1588284000001&limit=300",
            ),
            (
                candles(Stored::M1, from, to, from + 1429 * 60_000),
                "/api/v5/market/candles?instId=A-B&bar=1m&before=1588280399999&after=1588284000001&limit=300",
            ),
            (
                candles(Stored::M1, from, to, from + 1430 * 60_000),
                "/api/v5/market/history-candles?instId=A-B&bar=1m&before=1588280399999&after=1588284000001&limit=300",
            ),
            (
                candles(Stored::D1, 0, 86_400_000, to),
                "/api/v5/market/history-candles?instId=A-B&bar=1Dutc&before=0&after=86400001&limit=300",
            ),
        ],
    );
}

#[test]
fn its_errors_are_refusals_whatever_was_asked() {
    check_refusals(
        &OKX,
        &[
            (
                200,
                r#"{"code":"51001","msg":"Instrument ID does not exist","data":[]}"#,
                "51001",
                "Instrument ID does not exist",
                UnknownMarket,
            ),
            (
                200,
                r#"{"code":"50011","msg":"Too Many Requests","data":[]}"#,
                "50011",
                "Too Many Requests",
                RateLimited,
            ),
            (
                429,
                r#"{"msg":"Requests too frequent.","code":"50011"}"#,
                "50011",
                "Requests too frequent.",
                RateLimited,
            ),
            (503, r#"{"code":"50001","msg":"","data":[]}"#, "50001", "50001", Other),
        ],
    );
}

#[test]
fn a_candle_says_whether_it_is_closed() {
    let body = r#"{"code":"0","msg":"","data":[["7200000","1","4","1","3","9","5","0","0"],["3600000","1","4","1","3","9","5","0","1"]]}"#;
    let (notes, end) = read(&OKX, &candles(Stored::H1, 0, 0, 0), body);
    assert_eq!(end, Ok(()));
    let forming: Vec<_> = notes.candles.iter().map(|(_, is_forming)| *is_forming).collect();
    assert_eq!(forming, [true, false]);
}
