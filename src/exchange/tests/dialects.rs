//! What holds for every dialect, and how a call becomes the target of a request.

use super::testing::{BINANCE, candles, read};
use crate::config::SourceConfig;
use crate::exchange::{Call, Dialect, NextPage};
use crate::interval::Stored;

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
    assert_eq!(dialect.target(&Call::Markets, None), "/v1/common/timestamp");
    let (notes, end) = read(dialect, &Call::Markets, r#"{"status":"ok","data":1629715504949}"#);
    assert_eq!((end, notes.times.len()), (Ok(()), 0));
    let market = |at: usize| (&*notes.markets[at].ticker_id, &*notes.markets[at].base);
    assert_eq!([market(0), market(1)], [("btcusdt", "BTC"), ("gtcusdt", "GAMECOM")]);
    assert_eq!(notes.markets.len(), 2);
}
