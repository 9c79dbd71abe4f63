//! Kraken: the target of each call, bodies of errors, and what no recording shows.

use crate::exchange::ItemFault;
use crate::exchange::tests::testing::{KRAKEN, candles, check_refusals, check_targets, read};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn its_calls_have_its_targets() {
    let (from, to) = HOURS;
    check_targets(
        &KRAKEN,
        &[
            (Call::Tickers, "/0/public/Ticker"),
            (Call::Ticker { id: "A-B" }, "/0/public/Ticker?pair=A-B"),
            (Call::Markets, "/0/public/AssetPairs"),
            (Call::Time, "/0/public/Time"),
            (
                candles(Stored::H1, from, to, to),
                "/0/public/OHLC?pair=A-B&interval=60&since=1588280399",
            ),
            (
                candles(Stored::M1, from, to, i64::MAX),
                "/0/public/OHLC?pair=A-B&interval=1&since=1588280399",
            ),
            (candles(Stored::D1, 0, 0, to), "/0/public/OHLC?pair=A-B&interval=1440&since=0"),
        ],
    );
}

#[test]
fn its_errors_are_refusals_whatever_was_asked() {
    check_refusals(
        &KRAKEN,
        &[
            (
                200,
                r#"{"error":["EQuery:Unknown asset pair"]}"#,
                "EQuery:Unknown asset pair",
                "EQuery:Unknown asset pair",
                UnknownMarket,
            ),
            (
                200,
                r#"{"error":["EGeneral:Too many requests"]}"#,
                "EGeneral:Too many requests",
                "EGeneral:Too many requests",
                RateLimited,
            ),
            (
                200,
                r#"{"error":["EAPI:Rate limit exceeded"],"result":{}}"#,
                "EAPI:Rate limit exceeded",
                "EAPI:Rate limit exceeded",
                RateLimited,
            ),
            (
                200,
                r#"{"error":["EService:Unavailable","EGeneral:Internal error"]}"#,
                "EService:Unavailable",
                "EService:Unavailable",
                Other,
            ),
        ],
    );
}

#[test]
fn the_volume_of_a_bid_is_the_exact_one_and_figures_are_of_24_hours() {
    let body = r#"{"error":[],"result":{"XXBTZUSD":{"a":["9.50","4","3.750"],"b":["9.4","2","1.5"],
        "c":["9.45","0.1"],"v":["100","200"],"p":["1","2"],"t":[3,4],"l":["8","7"],"h":["10","11"],"o":"5"}}}"#;
    let (notes, end) = read(&KRAKEN, &Call::Tickers, body);
    assert_eq!(end, Ok(()));
    let (id, ticker) = &notes.tickers[0];
    assert_eq!((&**id, ticker.last.to_string()), ("XXBTZUSD", "9.45".to_owned()));
    let figures = [
        &ticker.ask_volume,
        &ticker.bid_volume,
        &ticker.base_volume,
        &ticker.low,
        &ticker.high,
        &ticker.open,
    ];
    let figures = figures.map(|figure| figure.as_ref().map(ToString::to_string));
    let expected = [Some("3.75"), Some("1.5"), Some("200"), Some("7"), Some("11"), None];
    assert_eq!(figures.each_ref().map(Option::as_deref), expected);
}

#[test]
fn steps_and_a_status_are_read_and_the_books_of_others_left_out() {
    let body = r#"{"error":[],"result":{
        "XXBTZUSD":{"wsname":"XBT\/USD","base":"XXBT","quote":"ZUSD","pair_decimals":1,"lot_decimals":8,
            "fees":[],"ordermin":"0.00005","costmin":"0.5","tick_size":"0.05","status":"cancel_only"},
        "XXBTZUSD.d":{"altname":"XBTUSD.d","base":"XXBT","quote":"ZUSD"},
        "XBTUSD:BTNL":{"wsname":"XBT/USD"}, "NONAME":{"base":"XXBT","quote":"ZUSD"}}}"#;
    let (notes, end) = read(&KRAKEN, &Call::Markets, body);
    assert_eq!(end, Ok(()));
    let [market] = &notes.markets[..] else {
        panic!("{notes:?}");
    };
    assert_eq!((&*market.base, &*market.quote, market.active), ("BTC", "USD", false));
    let rules = &market.rules;
    assert_eq!((rules.price_places, rules.amount_places), (Some(2), Some(8)));
    let cost = rules.cost.min.as_ref().map(ToString::to_string);
    assert_eq!((cost.as_deref(), &rules.taker), (Some("0.5"), &None));
    let missing = (Some("NONAME".into()), "base", ItemFault::Missing);
    assert_eq!(notes.rejected, [missing]);
}
