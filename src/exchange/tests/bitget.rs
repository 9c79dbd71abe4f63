//! Bitget: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::tests::testing::{BITGET, candles, check_refusals, check_targets, read};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn its_calls_have_its_targets() {
    let (from, to) = HOURS;
    check_targets(
        &BITGET,
        &[
            (Call::Tickers, "/api/v2/spot/market/tickers"),
            (Call::Ticker { id: "A-B" }, "/api/v2/spot/market/tickers?symbol=A-B"),
            (Call::Markets, "/api/v2/spot/public/symbols"),
            (Call::Time, "/api/v2/public/time"),
            (
                candles(Stored::H1, from, to, to),
                "/api/v2/spot/market/candles?symbol=A-B&granularity=1h&startTime=1588280400000&endTime=1588284000001&limit=200",
            ),
            (
                candles(Stored::H1, from, to, from + 59 * 86_400_000 - 1),
                "/api/v2/spot/market/candles?symbol=A-B&granularity=1h&startTime=1588280400000&endTime=1588284000001&limit=200",
            ),
            (
                candles(Stored::H1, from, to, from + 59 * 86_400_000),
                "/api/v2/spot/market/history-candles?symbol=A-B&granularity=1h&endTime=1588284000001&limit=2",
            ),
            (
                candles(Stored::M1, from, to, from + 29 * 86_400_000),
                "/api/v2/spot/market/history-candles?symbol=A-B&granularity=1min&endTime=1588284000001&limit=61",
            ),
            (
                candles(Stored::D1, 0, 0, to),
                "/api/v2/spot/market/history-candles?symbol=A-B&granularity=1Dutc&endTime=1&limit=1",
            ),
        ],
    );
}

#[test]
fn its_errors_are_refusals_whatever_was_asked() {
    check_refusals(
        &BITGET,
        &[
            (
                400,
                r#"{"code":"40034","msg":"Parameter FOOBAR does not exist","requestTime":1725192127389,"data":null}"#,
                "40034",
                "Parameter FOOBAR does not exist",
                UnknownMarket,
            ),
            (
                429,
                r#"{"code":"429","msg":"Too Many Requests","requestTime":1,"data":null}"#,
                "429",
                "Too Many Requests",
                RateLimited,
            ),
            (
                200,
                r#"{"code":429,"msg":"Too Many Requests"}"#,
                "429",
                "Too Many Requests",
                RateLimited,
            ),
            (
                200,
                r#"{"code":"40015","msg":"","requestTime":1595698564931,"data":null}"#,
                "40015",
                "40015",
                Other,
            ),
        ],
    );
}

#[test]
fn a_least_cost_in_usdt_is_said_of_markets_quoted_in_it_alone() {
    let list = |quote| {
        format!(
            r#"{{"code":"00000","data":[{{"symbol":"X","baseCoin":"A","quoteCoin":"{quote}","minTradeUSDT":"1"}}]}}"#
        )
    };
    for (quote, expected) in [("USDT", Some("1")), ("BTC", None)] {
        let (notes, end) = read(&BITGET, &Call::Markets, &list(quote));
        assert_eq!(end, Ok(()));
        let cost = notes.markets[0].rules.cost.min.as_ref().map(ToString::to_string);
        assert_eq!(cost.as_deref(), expected, "{quote}");
    }
}
