//! Binance: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::tests::testing::{BINANCE, read};
use crate::exchange::{Call, ItemFault};
use crate::time::UnixMs;

#[test]
fn a_bad_ticker_is_rejected_alone() {
    let check = |bad: &str, id: Option<&str>, field, fault| {
        let body =
            format!(r#"[{{"symbol":"A","lastPrice":"1"}},{bad},{{"symbol":"B","lastPrice":"2"}}]"#);
        let (notes, end) = read(&BINANCE, &Call::Tickers, &body);
        assert_eq!(end, Ok(()), "{bad}");
        assert_eq!(notes.rejected, [(id.map(str::to_owned), field, fault)], "{bad}");
        let ids: Vec<_> = notes.tickers.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["A", "B"], "{bad}");
    };
    for other in ["7", "null", "\"X\"", "[]", "NaN"] {
        check(other, None, "ticker", ItemFault::WrongType);
    }
    check("{}", None, "id", ItemFault::Missing);
    check(r#"{"symbol":""}"#, None, "id", ItemFault::Missing);
    check(r#"{"symbol":["X"],"lastPrice":"1"}"#, None, "id", ItemFault::WrongType);
    check(r#"{"symbol":"X"}"#, Some("X"), "last", ItemFault::Missing);
    check(r#"{"symbol":"X","lastPrice":null}"#, Some("X"), "last", ItemFault::Missing);
    check(r#"{"symbol":"X","lastPrice":""}"#, Some("X"), "last", ItemFault::Missing);
    let members = [
        ("lastPrice", "last"),
        ("bidPrice", "bid"),
        ("bidQty", "bidVolume"),
        ("askPrice", "ask"),
        ("askQty", "askVolume"),
        ("openPrice", "open"),
        ("highPrice", "high"),
        ("lowPrice", "low"),
        ("volume", "baseVolume"),
        ("quoteVolume", "quoteVolume"),
        ("priceChange", "change"),
        ("priceChangePercent", "percentage"),
    ];
    for (member, field) in members {
        let bad = |value: &str| format!(r#"{{"symbol":"X","lastPrice":"1","{member}":{value}}}"#);
        for word in [r#""NaN""#, r#""abc""#, "NaN", "-Infinity", r#""1\u0030""#] {
            check(&bad(word), Some("X"), field, ItemFault::NotANumber);
        }
        for other in ["true", "[]", "[1]", r#"{"a":1}"#] {
            check(&bad(other), Some("X"), field, ItemFault::WrongType);
        }
        check(&bad("1e999"), Some("X"), field, ItemFault::TooLong);
        check(&bad(r#""1e999""#), Some("X"), field, ItemFault::TooLong);
        if !matches!(field, "change" | "percentage") {
            check(&bad("-1"), Some("X"), field, ItemFault::Negative);
        }
    }
}

#[test]
fn a_time_that_cannot_be_read_leaves_the_quote_undated() {
    let body = r#"[{"symbol":"X","lastPrice":"1","closeTime":"soon"}]"#;
    let (notes, end) = read(&BINANCE, &Call::Tickers, body);
    assert_eq!((end, notes.rejected.len()), (Ok(()), 0));
    assert_eq!((notes.tickers.len(), notes.tickers[0].1.timestamp), (1, None));
}

#[test]
fn what_is_not_sent_is_unknown_and_zeros_are_left_to_the_market() {
    let body = r#"[{"symbol":"X","lastPrice":"0.00000000","bidPrice":0,"askPrice":"","priceChange":"-1.50","weightedAvgPrice":NaN,"closeTime":0}]"#;
    let (notes, end) = read(&BINANCE, &Call::Tickers, body);
    assert_eq!(end, Ok(()));
    let ticker = &notes.tickers[0].1;
    assert!(ticker.last.is_zero());
    assert!(ticker.bid.as_ref().is_some_and(|bid| bid.is_zero()));
    assert_eq!(ticker.ask, None);
    assert_eq!(ticker.timestamp, None);
    assert_eq!(ticker.change.as_ref().map(ToString::to_string), Some("-1.5".into()));
    assert_eq!(ticker.base_volume, None);
}

#[test]
fn one_ticker_a_time_and_a_market_are_read() {
    let one = r#"{"symbol":"X","lastPrice":"7","priceChangePercent":"-2.427"}"#;
    let (notes, end) = read(&BINANCE, &Call::Ticker { id: "X" }, one);
    assert_eq!((end, notes.tickers.len()), (Ok(()), 1));
    let (notes, end) = read(&BINANCE, &Call::Time, r#"{"serverTime":1499827319559}"#);
    assert_eq!((end, notes.times), (Ok(()), vec![UnixMs(1_499_827_319_559)]));
    let list = r#"{"timezone":"UTC","symbols":[{"symbol":"YOYOBTC","status":"BREAK","baseAsset":"YOYO","quoteAsset":"BTC","filters":[
        {"filterType":"LOT_SIZE","minQty":"0","maxQty":"9.50","stepSize":"1.00000000"},
        {"minNotional":"10.0000","filterType":"MIN_NOTIONAL"},{"filterType":"PRICE_FILTER","tickSize":"0.00000000"}]}]}"#;
    let (notes, end) = read(&BINANCE, &Call::Markets, list);
    assert_eq!(end, Ok(()));
    let market = &notes.markets[0];
    assert_eq!((&*market.base, market.active), ("YOYOW", false));
    let rules = &market.rules;
    assert_eq!((rules.amount_places, rules.price_places), (Some(0), None));
    assert_eq!((&rules.amount.min, &rules.cost.max, &rules.price.min), (&None, &None, &None));
    assert_eq!(rules.amount.max.as_ref().map(ToString::to_string), Some("9.5".into()));
    assert_eq!(rules.cost.min.as_ref().map(ToString::to_string), Some("10".into()));
}
