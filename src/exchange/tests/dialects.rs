//! What holds for every dialect, and how a call becomes the target of a request.

use super::testing::{BINANCE, CANDLES, SAMPLE, candles, read};
use crate::config::SourceConfig;
use crate::exchange::{Call, Dialect, NextPage};
use crate::interval::Stored;
use crate::time::UnixMs;

#[test]
fn a_list_of_some_markets_names_as_many_as_it_may() {
    let ids = BINANCE.list_ids(&["BTC/USDT".into(), "YOYOW/BTC".into()]).expect("a list of some");
    assert_eq!(
        BINANCE.target(&Call::MarketsOf { ids: &ids }, None),
        "/api/v3/exchangeInfo?symbols=%5B%22BTCUSDT%22,%22YOYOBTC%22%5D"
    );
    assert_eq!(BINANCE.list_ids(&vec!["A/B".to_owned(); 101]), None);
    assert_eq!(BINANCE.list_ids(&[]), None);
    let okx = Dialect::by_name("okx").expect("it is built in");
    let part = |number| {
        let page = NextPage { number, ..NextPage::default() };
        okx.target(&Call::MarketsOf { ids: &ids }, Some(&page))
    };
    assert!(part(1).ends_with("&instId=BTCUSDT") && part(2).ends_with("&instId=YOYOBTC"));
    let okx_takes = |count| okx.list_ids(&vec!["A/B".to_owned(); count]).is_some();
    assert!(okx_takes(10) && !okx_takes(11));
    assert_eq!(Dialect::by_name("htx").and_then(|htx| htx.list_ids(&ids)), None);
}

#[test]
fn tickers_of_some_markets_are_requested_in_one_way_that_has_every_field() {
    let sample = include_str!("sample.json");
    let calls = sample.split_once("    \"stats\"").and_then(|it| it.0.split_once("\"tickers\": {"));
    let calls = calls.expect("the calls").1;
    let (all, one) = calls.trim().split_once('\n').expect("two lines");
    let several = r#""several": { "call": { "target": "/t?m={ids}", "cost": 2, "items": "r{}" },
        "sizes": [{ "most": 5 }, { "most": 9, "cost": 4 }] },"#;
    let lacks = several.replacen("\"sizes\"", r#""fields": { "c": "last" }, "sizes""#, 1);
    let ways = |text: &str| -> Vec<_> {
        let dialect = Dialect::read("sample.json", text).unwrap_or_else(|it| panic!("{it:?}"));
        dialect.ways().iter().map(|way| (way.markets, way.cost)).collect()
    };
    for (own, expected) in [
        ([all, one, ""], vec![(None, 3), (Some(1), 1)]),
        ([all, one, several], vec![(None, 3), (Some(5), 2), (Some(9), 4)]),
        // `one` is no way beside `several`, whatever that lacks.
        ([all, one, &lacks], vec![(None, 3)]),
        (["", one, several], vec![(Some(5), 2), (Some(9), 4)]),
        (["", "", several], vec![(Some(5), 2), (Some(9), 4)]),
        (["", one, ""], vec![(Some(1), 1)]),
    ] {
        let text = sample.replacen(calls, &own.concat(), 1);
        assert_eq!(ways(&text), expected, "{own:?}");
    }
    // `stats` brings no bid, also if it has the same fields as the tickers of all markets.
    let stats = sample.split_once("/day\", \"items\": \"result\" }").expect("`stats`").1;
    let stats = stats.split_once(" },").expect("its end").0;
    let text = sample.replacen(stats, "", 1);
    let narrow =
        text.replacen(one, &one.replacen(" } }", r#" }, "fields": { "c": "last" } }"#, 1), 1);
    assert_eq!((ways(&text), ways(&narrow)), (vec![(None, 3), (Some(1), 1)], vec![(None, 3)]));
}

#[test]
fn an_id_cannot_leave_its_place_in_the_request_and_a_range_begins_with_the_epoch_at_the_earliest() {
    assert_eq!(
        BINANCE.target(&Call::Ticker { id: "A B&C=\r\nX: ü" }, None),
        "/api/v3/ticker/24hr?symbol=A%20B%26C%3D%0D%0AX%3A%20%C3%BC"
    );
    assert_eq!(
        BINANCE.target(&candles(Stored::H1, -5, 3_600_000, 3_600_000), None),
        "/api/v3/klines?symbol=A-B&interval=1h&startTime=0&endTime=3600000&limit=1000"
    );
}

#[test]
fn without_a_list_the_markets_are_those_that_the_source_names() {
    let text = include_str!("../dialects/htx.json");
    let begin = text.find("    \"call\": { \"target\": \"/v1/common/symbols\"").expect("a call");
    let end = begin + text[begin..].find('\n').expect("a line") + 1;
    let fields = text.rfind(",\n    \"fields\"").expect("a table");
    let after = fields + text[fields..].find("  },").expect("its end");
    let pair = "    \"pair\": [\"{base}{quote:4}\"],\n";
    let text = [&text[..begin], pair, &text[end..fields], "\n", &text[after..]].concat();
    let source = SourceConfig {
        dialect_text: text,
        symbols: vec!["BTC/USDT".to_string(), "GAMECOM/USDT".to_string()],
        ..SourceConfig::new("./x.json")
    };
    let dialect = Dialect::for_source(&source).expect("a sound dialect");
    let call = Call::Markets { named: &source.symbols };
    assert_eq!(dialect.target(&call, None), "/v1/common/timestamp");
    let (notes, end) = read(dialect, &call, r#"{"status":"ok","data":1629715504949}"#, 200, None);
    assert_eq!((end, notes.times.len()), (Ok(()), 0));
    let market = |at: usize| (&*notes.markets[at].ticker_id, &*notes.markets[at].base);
    assert_eq!([market(0), market(1)], [("btcusdt", "BTC"), ("gtcusdt", "GAMECOM")]);
    assert_eq!(notes.markets.len(), 2);
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
    let htx = Dialect::by_name("htx").expect("it is built in");
    let most = [(*SAMPLE, old(0)), (*SAMPLE, old(100 * 60_000)), (htx, old(59_999_999))];
    assert_eq!(most.map(|(dialect, call)| dialect.most_rows(&call)), [300, 2, 1001]);
    let stats = Call::Stats { id: "A/B" };
    assert!(SAMPLE.has_stats());
    assert_eq!(SAMPLE.target(&stats, None), "/products/A%2FB/day");
    assert_eq!(SAMPLE.target(&Call::Ticker { id: "A-B" }, None), "/products/A-B/ticker");
    assert_eq!((SAMPLE.cost(&old(0)), SAMPLE.cost(&old(i64::MAX))), (1, 2));
}
