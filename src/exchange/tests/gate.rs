//! Gate: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::tests::testing::{
    GATE, candles, check_refusals, check_targets, check_time, read,
};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn its_calls_have_its_targets() {
    let (from, to) = HOURS;
    check_targets(
        &GATE,
        &[
            (Call::Tickers, "/api/v4/spot/tickers"),
            (Call::Ticker { id: "A-B" }, "/api/v4/spot/tickers?currency_pair=A-B"),
            (Call::Markets, "/api/v4/spot/currency_pairs"),
            (Call::Time, "/api/v4/spot/time"),
            (
                candles(Stored::H1, from, to, to),
                "/api/v4/spot/candlesticks?currency_pair=A-B&interval=1h&from=1588280400&to=1588284000",
            ),
            (
                candles(Stored::M1, from, to, i64::MAX),
                "/api/v4/spot/candlesticks?currency_pair=A-B&interval=1m&from=1588280400&to=1588284000",
            ),
            (
                candles(Stored::D1, 0, 0, to),
                "/api/v4/spot/candlesticks?currency_pair=A-B&interval=1d&from=0&to=0",
            ),
        ],
    );
}

#[test]
fn its_errors_are_refusals_whatever_was_asked() {
    check_refusals(
        &GATE,
        &[
            (
                400,
                r#"{"label":"INVALID_CURRENCY_PAIR","message":"Invalid currency_pair FOO_BAR"}"#,
                "INVALID_CURRENCY_PAIR",
                "Invalid currency_pair FOO_BAR",
                UnknownMarket,
            ),
            (
                429,
                r#"{"label":"TOO_MANY_REQUESTS","message":"Request Rate Limit Exceeded"}"#,
                "TOO_MANY_REQUESTS",
                "Request Rate Limit Exceeded",
                RateLimited,
            ),
            (
                400,
                r#"{"message":"slow down","label":"TOO_FAST"}"#,
                "TOO_FAST",
                "slow down",
                RateLimited,
            ),
            (
                400,
                r#"{"label":"INVALID_PARAM_VALUE"}"#,
                "INVALID_PARAM_VALUE",
                "INVALID_PARAM_VALUE",
                Other,
            ),
        ],
    );
}

#[test]
fn the_least_and_largest_amounts_and_costs_are_limits() {
    let body = r#"[{"id":"A_B","base":"A","quote":"B","fee":"0.2","min_base_amount":"0.001","min_quote_amount":"3","max_base_amount":"100.50","max_quote_amount":"5000000","amount_precision":3,"precision":6,"trade_status":"tradable"}]"#;
    let (notes, end) = read(&GATE, &Call::Markets, body);
    assert_eq!(end, Ok(()));
    let rules = &notes.markets[0].rules;
    let limits = [&rules.amount, &rules.cost].map(|bounds| {
        [&bounds.min, &bounds.max].map(|limit| limit.as_ref().map(ToString::to_string))
    });
    let limit = |text: &str| Some(text.to_string());
    assert_eq!(limits, [[limit("0.001"), limit("100.5")], [limit("3"), limit("5000000")]]);
    for (status, active) in [("sellable", false), ("buyable", false), ("untradable", false)] {
        let body = body.replace("tradable", status);
        let (notes, _) = read(&GATE, &Call::Markets, &body);
        assert_eq!(notes.markets[0].active, active, "{status}");
    }
}

#[test]
fn its_clock_is_read() {
    check_time(&GATE, r#"{"server_time":1597026383085}"#, 1_597_026_383_085);
}
