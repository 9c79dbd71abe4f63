//! A made-up exchange with every habit that the machine knows, and tests of each: markets under
//! their own names, figures in arrays and objects, ratios, stamps in front of the list, times in
//! seconds, columns in an odd order, flags, archives, errors in a 200.

use super::testing::{read, read_with};
use crate::exchange::{Call, Dialect, ItemFault, ReadError, RefusalKind};
use crate::interval::Stored;
use crate::time::UnixMs;
use std::sync::LazyLock;

pub(in crate::exchange) static SAMPLE: LazyLock<&'static Dialect> = LazyLock::new(|| {
    let dialect = Dialect::read("sample.json", include_str!("sample.json"));
    Box::leak(Box::new(dialect.unwrap_or_else(|faults| panic!("{faults:?}"))))
});

pub(in crate::exchange) const CANDLES: Call<'static> = Call::Candles {
    id: "A/B",
    interval: Stored::H1,
    from: UnixMs(7_200_000),
    to: UnixMs(10_800_000),
    now: UnixMs(10_800_000),
};

fn text(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").replace("Some", "")
}

#[test]
fn members_arrays_objects_ratios_and_stamps_become_tickers() {
    let body = r#"{"error":[],"result":{"time":"2024-03-13T11:10:41.270099Z","list":{
        "XXBTZUSD":{"a":["73380.70000","1","1.000"],"b":{"price":73380.6,"size":null},"c":["73380.60000","0.1"],"ratio":"-0.00550"},
        "EMPTY":{"a":[],"c":["0"],"b":null,"at":"1970-01-01T00:00:01Z"} , "X\u0041":{"c":[1e2]}}}}"#;
    let (notes, end) = read(&SAMPLE, &Call::Tickers, body);
    assert_eq!(end, Ok(()));
    assert_eq!(notes.rejected, []);
    let [(id, ticker), (_, empty), (escaped, _)] = &notes.tickers[..] else {
        panic!("{notes:?}");
    };
    assert_eq!((&id[..], &escaped[..]), ("XXBTZUSD", "XA"));
    assert_eq!(
        text(&(&ticker.last, &ticker.ask, &ticker.ask_volume, &ticker.bid)),
        "(73380.6, (73380.7), (1), (73380.6))"
    );
    assert_eq!(text(&(&ticker.bid_volume, &ticker.percentage)), "(None, (-0.55))");
    assert_eq!(ticker.timestamp, Some(UnixMs(1_710_328_241_270)));
    assert!(empty.last.is_zero() && empty.ask.is_none() && empty.bid.is_none());
    assert_eq!(empty.timestamp, Some(UnixMs(1000)));
}

#[test]
fn a_figure_in_a_container_of_another_type_rejects_its_ticker() {
    let check = |figure: &str, field, fault| {
        let body = format!(
            r#"{{"result":{{"list":{{"BAD":{{"c":["1"],{figure}}},"GOOD":{{"c":["2"]}}}}}}}}"#
        );
        let (notes, end) = read(&SAMPLE, &Call::Tickers, &body);
        assert_eq!(end, Ok(()), "{figure}");
        assert_eq!(notes.rejected, [(Some("BAD".into()), field, fault)], "{figure}");
        assert_eq!(notes.tickers.len(), 1, "{figure}");
    };
    check(r#""a":"5""#, "ask", ItemFault::WrongType);
    check(r#""b":5"#, "bid", ItemFault::WrongType);
    check(r#""a":[["5"]]"#, "ask", ItemFault::WrongType);
    check(r#""a":[NaN]"#, "ask", ItemFault::NotANumber);
    check(r#""ratio":"much""#, "percentage", ItemFault::NotANumber);
    check(r#""c":7"#, "last", ItemFault::WrongType);
}

#[test]
fn a_single_ticker_has_the_id_that_was_asked_for() {
    let (notes, end) = read(&SAMPLE, &Call::Ticker { id: "A-B" }, r#"{"result":{"c":["7"]}}"#);
    assert_eq!(end, Ok(()));
    assert_eq!(notes.tickers[0].0, "A-B");
    assert_eq!(SAMPLE.target(&Call::Ticker { id: "A-B" }, None), "/products/A-B/ticker");
}

#[test]
fn the_figures_of_24_hours_may_come_by_themselves() {
    let call = Call::Stats { id: "A/B" };
    assert!(SAMPLE.has_stats());
    assert_eq!(SAMPLE.target(&call, None), "/products/A%2FB/day");
    let body = r#"{"result":{"first":"5.0","now":7,"high":"","low":"4"}}"#;
    let (notes, end) = read(&SAMPLE, &call, body);
    assert_eq!(end, Ok(()));
    let (id, day) = &notes.stats[0];
    assert_eq!(id, "A/B");
    assert_eq!(text(&(&day.open, &day.high, &day.low)), "((5), None, None)");
    assert_eq!(notes.tickers, []);
    let (notes, end) = read(&SAMPLE, &call, r#"{"result":{"first":"-5"}}"#);
    assert_eq!(end, Ok(()));
    let negative = (Some("A/B".into()), "open", ItemFault::Negative);
    assert_eq!(notes.rejected, [negative]);
    let (_, end) = read(&SAMPLE, &call, r#"{"result":[]}"#);
    let expected = "figures of 24 hours";
    assert_eq!(end, Err(ReadError::WrongShape { expected }));
}

#[test]
fn columns_flags_and_seconds_become_candles_whatever_the_member_is_called() {
    let body = r#"{"error":"0","result":{"other":5,"XXBT":[[7200,"1","4","2","3","9","5.50","1"],
        [10800,1,4,2,3,9,5,"0",null],[14400.5,1,4,2,3,9,5]],"last":10800}}"#;
    let (notes, end) = read(&SAMPLE, &CANDLES, body);
    assert_eq!(end, Ok(()));
    let candle = &notes.candles[0].0;
    assert_eq!(
        text(&(&candle.open, &candle.high, &candle.low, &candle.close, &candle.volume)),
        "(2, 4, 1, 3, 5.5)"
    );
    let times: Vec<_> = notes.candles.iter().map(|(c, closed)| (c.open_time.0, *closed)).collect();
    assert_eq!(times, [(7_200_000, false), (10_800_000, true), (14_400_500, false)]);
}

#[test]
fn a_row_of_a_wrong_shape_is_rejected_alone() {
    let check = |row: &str, field, fault| {
        let body = format!(r#"{{"result":{{"X":[{row},[0,1,1,1,1,1,1]]}}}}"#);
        let (notes, end) = read(&SAMPLE, &CANDLES, &body);
        assert_eq!(end, Ok(()), "{row}");
        assert_eq!(notes.rejected, [(None, field, fault)], "{row}");
        assert_eq!(notes.candles.len(), 1, "{row}");
    };
    check("[]", "openTime", ItemFault::Missing);
    check("[1,1,1,1,1,1]", "volume", ItemFault::Missing);
    check("{}", "candle", ItemFault::WrongType);
    check("7", "candle", ItemFault::WrongType);
    check("null", "candle", ItemFault::WrongType);
    check(r#"["x",1,1,1,1,1,1]"#, "openTime", ItemFault::NotATime);
    check("[-1,1,1,1,1,1,1]", "openTime", ItemFault::NotATime);
    check("[1,-1,1,1,1,1,1]", "low", ItemFault::Negative);
    check(r#"[1,1,"",1,1,1,1]"#, "high", ItemFault::Missing);
    check("[1,1,1,1e999,1,1,1]", "open", ItemFault::TooLong);
    check("[1,1,1,1,[1],1,1]", "close", ItemFault::WrongType);
}

#[test]
fn listings_take_names_steps_places_fees_and_limits_as_they_come() {
    let body = r#"{"result":{
        "XXBTZUSD":{"pair":"XBT\/USD","alt":"XBTUSD","trading":true,"fee":"0.26","decimals":"1","lot":{"places":8},
            "rules":[{"min":"0.5","kind":"other"},7,{"min":"0.0002","max":"0","kind":"amount"}],"minFirst":"1","minLast":"5"},
        "AB":{"base":"A","quote":"B","trading":false,"fee":null,"tick":"0.050","decimals":1,"lot":{"step":"10","places":3},"minFirst":"1","minLast":null},
        "AB.d":{"base":"A","quote":"B"}, "N":{"base":"N","quote":"M"}}}"#;
    let (notes, end) = read(&SAMPLE, &Call::Markets, body);
    assert_eq!(end, Ok(()));
    assert_eq!(notes.rejected, []);
    let [xbt, ab, n] = &notes.markets[..] else {
        panic!("{notes:?}");
    };
    assert_eq!((&*xbt.base, &*xbt.quote), ("BTC", "USD"));
    assert_eq!((&*xbt.ticker_id, xbt.candle_id.as_deref()), ("XXBTZUSD", Some("XBTUSD")));
    assert!(xbt.active && !ab.active && n.active);
    let (x, a) = (&xbt.rules, &ab.rules);
    assert_eq!((x.price_places, x.amount_places), (Some(1), Some(8)));
    assert_eq!((a.price_places, a.amount_places), (Some(2), Some(0)));
    assert_eq!(text(&(&x.taker, &x.maker, &a.taker)), "((0.0026), (0.0026), None)");
    assert_eq!(text(&(&x.amount.min, &x.amount.max)), "((0.0002), None)");
    assert_eq!(text(&(&x.cost.min, &a.cost.min)), "((5), (1))");
    assert_eq!(n.rules, Default::default());
}

#[test]
fn a_listing_without_names_or_with_absurd_rules_is_rejected_alone() {
    let check = |listing: &str, field, fault| {
        let body = format!(r#"{{"result":{{"A":{listing},"B":{{"base":"B","quote":"C"}}}}}}"#);
        let (notes, end) = read(&SAMPLE, &Call::Markets, &body);
        assert_eq!(end, Ok(()), "{listing}");
        assert_eq!(notes.markets.len(), 1, "{listing}");
        let (_, got_field, got_fault) = &notes.rejected[0];
        assert_eq!((*got_field, *got_fault), (field, fault), "{listing}");
    };
    check("[]", "market", ItemFault::WrongType);
    check("{}", "base", ItemFault::Missing);
    check(r#"{"base":7,"quote":"B"}"#, "base", ItemFault::WrongType);
    check(r#"{"base":"A","quote":""}"#, "quote", ItemFault::Missing);
    check(r#"{"pair":"AB"}"#, "pair", ItemFault::NotAText);
    check(r#"{"base":"A","quote":"B","trading":[]}"#, "status", ItemFault::WrongType);
    check(r#"{"base":"A","quote":"B","decimals":-1}"#, "precision.price", ItemFault::Negative);
    check(r#"{"base":"A","quote":"B","decimals":1.5}"#, "precision.price", ItemFault::NotANumber);
    check(r#"{"base":"A","quote":"B","minLast":"x"}"#, "limits.cost", ItemFault::NotANumber);
    check(r#"{"base":"A","quote":"B","rules":{}}"#, "limits.amount", ItemFault::WrongType);
    check(r#"{"base":"A","quote":"\ud800"}"#, "quote", ItemFault::NotAText);
    let long = "x".repeat(crate::exchange::value::NAME_BYTES + 1);
    check(&format!(r#"{{"base":"A","quote":"{long}"}}"#), "quote", ItemFault::TooLong);
    let most = "x".repeat(crate::exchange::value::NAME_BYTES);
    let body = format!(r#"{{"result":{{"{most}":{{"base":"A","quote":"B"}},"{long}":{{}}}}}}"#);
    let (notes, _) = read(&SAMPLE, &Call::Markets, &body);
    assert_eq!(notes.markets.len(), 1);
    assert_eq!(notes.rejected, [(None, "id", ItemFault::TooLong)]);
}

#[test]
fn the_clock_may_be_deep_and_have_a_fraction() {
    let check = |body: &str, expected: Result<i64, ReadError>| {
        let (notes, end) = read(&SAMPLE, &Call::Time, body);
        assert_eq!(end.map(|()| notes.times[0].0), expected, "{body}");
    };
    check(r#"{"data":[{"epoch":1391835876.1239}]}"#, Ok(1_391_835_876_123));
    check(r#"{"error":"0","data":[{"iso":"x","epoch":"1391835876"},{}]}"#, Ok(1_391_835_876_000));
    let wrong = || Err(ReadError::WrongShape { expected: "a time" });
    check(r#"{"data":[]}"#, wrong());
    check(r#"{"data":[{"epoch":"soon"}]}"#, wrong());
    check(r#"{"data":[7]}"#, wrong());
    check(r#"[1391835876]"#, wrong());
}

#[test]
fn the_ends_of_a_range_and_the_archive_are_in_the_target() {
    assert_eq!(
        SAMPLE.target(&CANDLES, None),
        "/candles/A%2FB?bar=3600&after=10801&before=7199&n=300"
    );
    let old = |now| Call::Candles {
        id: "A",
        interval: Stored::M1,
        from: UnixMs(0),
        to: UnixMs(60_000),
        now: UnixMs(now),
    };
    assert_eq!(SAMPLE.target(&old(99 * 60_000), None), "/candles/A?bar=60&after=61&before=0&n=300");
    assert_eq!(
        SAMPLE.target(&old(100 * 60_000), None),
        "/old/A?bar=60&from=0&to=60&n=2&1970-01-01T00:00:00.000Z--1970-01-01T00:01:00.000Z"
    );
    assert_eq!((SAMPLE.cost(&old(0)), SAMPLE.cost(&old(i64::MAX))), (1, 2));
}

#[test]
fn a_refusal_is_found_whatever_the_status_and_before_the_shape_is_judged() {
    let check = |status, body: &str, code: &str, message: &str, kind| {
        let (_, end) = read_with(&SAMPLE, &Call::Tickers, body, status);
        let expected = ReadError::Refused { code: code.into(), message: message.into(), kind };
        assert_eq!(end, Err(expected), "{body}");
    };
    use RefusalKind::*;
    check(
        200,
        r#"{"error":["E:Unknown market","E2"]}"#,
        "E:Unknown market",
        "E:Unknown market",
        UnknownMarket,
    );
    check(
        200,
        r#"{"error":"E7","reason":"slow\ndown","result":null}"#,
        "E7",
        "slow down",
        RateLimited,
    );
    check(500, r#"{"error":5}"#, "5", "5", Other);
    check(429, r#"{"error":5}"#, "5", "5", RateLimited);
    check(418, r#"{"result":{"list":{}},"error":5}"#, "5", "5", Banned);
    check(403, r#"{"error":"E:Unknown market"}"#, "E:Unknown market", "E:Unknown market", Banned);
    for status in [400, 403, 404, 503] {
        check(status, r#"{"error":"E7"}"#, "E7", "E7", RateLimited);
    }
    check(
        404,
        r#"{"error":"E:Unknown market"}"#,
        "E:Unknown market",
        "E:Unknown market",
        UnknownMarket,
    );
    let (_, end) = read(&SAMPLE, &Call::Tickers, r#"{"error":"0","result":[]}"#);
    assert_eq!(end, Err(ReadError::WrongShape { expected: "a list of tickers" }));
    let (_, end) = read(&SAMPLE, &Call::Tickers, r#"{"error":0,"result":{"list":{}}}"#);
    assert_eq!(end, Ok(()));
}
