//! Coinbase Exchange: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::tests::testing::{
    COINBASE, candles, check_refusals, check_targets, check_time, read,
};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn its_calls_have_its_targets() {
    let (from, to) = HOURS;
    check_targets(
        &COINBASE,
        &[
            (Call::Ticker { id: "A-B" }, "/products/A-B/ticker"),
            (Call::Stats { id: "A-B" }, "/products/A-B/stats"),
            (Call::Markets, "/products"),
            (Call::Time, "/time"),
            (
                candles(Stored::H1, from, to, to),
                "/products/A-B/candles?granularity=3600&start=2020-04-30T21:00:00.000Z&end=2020-04-30T22:00:00.000Z",
            ),
            (
                candles(Stored::M1, from, to, i64::MAX),
                "/products/A-B/candles?granularity=60&start=2020-04-30T21:00:00.000Z&end=2020-04-30T22:00:00.000Z",
            ),
            (
                candles(Stored::D1, 0, 0, to),
                "/products/A-B/candles?granularity=86400&start=1970-01-01T00:00:00.000Z&end=1970-01-01T00:00:00.000Z",
            ),
        ],
    );
}

#[test]
fn its_errors_are_refusals_whatever_was_asked() {
    check_refusals(
        &COINBASE,
        &[
            (404, r#"{"message":"NotFound"}"#, "NotFound", "NotFound", UnknownMarket),
            (
                429,
                r#"{"message":"Public rate limit exceeded"}"#,
                "Public rate limit exceeded",
                "Public rate limit exceeded",
                RateLimited,
            ),
            (
                200,
                r#"{"message":"Slow rate limit exceeded"}"#,
                "Slow rate limit exceeded",
                "Slow rate limit exceeded",
                RateLimited,
            ),
            (
                400,
                r#"{"message":"granularity too small for the requested time range"}"#,
                "granularity too small for the requested time range",
                "granularity too small for the requested time range",
                Other,
            ),
        ],
    );
}

#[test]
fn a_market_is_active_when_it_is_online_and_trading_is_not_disabled() {
    let check = |members: &str, expected: bool| {
        let body =
            format!(r#"[{{"id":"A-B","base_currency":"A","quote_currency":"B",{members}}}]"#);
        let (notes, end) = read(&COINBASE, &Call::Markets, &body);
        assert_eq!((end, notes.rejected.len()), (Ok(()), 0), "{members}");
        assert_eq!(notes.markets[0].active, expected, "{members}");
    };
    check(r#""status":"online","trading_disabled":false"#, true);
    check(r#""status":"online","trading_disabled":true"#, false);
    check(r#""trading_disabled":true,"status":"online""#, false);
    check(r#""status":"online""#, true);
    check(r#""status":"online","trading_disabled":null"#, true);
    for status in ["offline", "internal", "delisted"] {
        let members = format!(r#""status":"{status}","trading_disabled":false"#);
        check(&members, false);
    }
}

#[test]
fn its_clock_is_read() {
    check_time(
        &COINBASE,
        r#"{"iso":"2015-01-07T23:47:25.201Z","epoch":1420674445.201}"#,
        1_420_674_445_201,
    );
}

#[test]
fn the_figures_of_24_hours_complete_the_ticker_and_a_quote_stands_without_them() {
    assert!(COINBASE.has_stats() && !COINBASE.tickers_at_once());
    let one = r#"{"ask":"11.5","bid":"11","volume":"3","trade_id":5,"price":"11.2","size":"1","time":"2024-03-13T11:10:41.270099Z"}"#;
    let (notes, end) = read(&COINBASE, &Call::Ticker { id: "A-B" }, one);
    assert_eq!(end, Ok(()));
    let mut ticker = notes.tickers[0].1.clone();
    assert_eq!((&ticker.open, &ticker.high), (&None, &None));
    let day =
        r#"{"open":"10","high":"12.50","low":"9","last":"11.1","volume":"2","volume_30day":"70"}"#;
    let (notes, end) = read(&COINBASE, &Call::Stats { id: "A-B" }, day);
    assert_eq!((end, &*notes.stats[0].0), (Ok(()), "A-B"));
    ticker.fill_from(&notes.stats[0].1);
    let figures = [ticker.open, ticker.high, ticker.low, ticker.base_volume, Some(ticker.last)];
    let figures = figures.map(|figure| figure.map(|figure| figure.to_string()));
    assert_eq!(
        figures.each_ref().map(Option::as_deref),
        [Some("10"), Some("12.5"), Some("9"), Some("3"), Some("11.2")]
    );
    assert!(ticker.timestamp.is_some());
}
