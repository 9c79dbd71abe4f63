//! Charts: every interval, range, limit and form, against candles added up by hand.

use crate::loopback::contract::*;
use crate::loopback::setup::*;
use crate::support::binance::KLINES;
use crate::support::*;
use serde_json::json;
use std::net::SocketAddr;

/// A daemon whose first answer is complete.
fn made_up() -> (Binance, Marketd) {
    let exchange = still(3);
    let marketd = patient(&exchange, json!({ "chartWaitMs": 60_000 }));
    (exchange, marketd)
}

/// Open time of the candle of this interval that holds this moment.
fn open_time(interval: &str, at: i64) -> i64 {
    naive::candle_at(interval, at).0
}

fn target(query: &str) -> String {
    format!("/api/ecosystem/chart?symbol=BTC/USDT&{query}")
}

/// A complete chart.
#[track_caller]
fn chart(addr: SocketAddr, query: &str) -> Json {
    let answer = get(addr, &target(query));
    let rows = good(&answer);
    assert_eq!(answer.header("Chart-Coverage"), Some("complete"), "{query}");
    rows
}

fn opens(rows: &Json) -> Vec<i64> {
    let open = |row: &Json| row[0].integer().expect("an open time");
    rows.items().iter().map(open).collect()
}

#[test]
fn the_first_answer_about_a_market_holds_the_forming_candle() {
    let (_exchange, marketd) = made_up();
    for interval in naive::INTERVALS {
        // Of the longest two, so many are not kept.
        let (more, count) =
            if interval == "1w" || interval == "1M" { ("&limit=5", 5) } else { ("", 500) };
        let answer = get(marketd.addr(), &target(&format!("interval={interval}{more}")));
        let opens = opens(&good(&answer));
        let newest = open_time(interval, NOW);
        assert_eq!((opens.len(), opens.last()), (count, Some(&newest)), "{interval}");
        let is_whole = count < 500 || opens[0] == newest - 499 * (newest - opens[498]);
        assert!(is_whole, "{interval}: {opens:?}");
        for (field, value) in [
            ("Chart-Last-Closed", &*opens[opens.len() - 2].to_string()),
            ("Chart-Coverage", "complete"),
            ("Chart-Interval", interval),
            ("Chart-Source", "fake"),
            ("Chart-Gaps", "0"),
        ] {
            assert_eq!(answer.header(field), Some(value), "{interval}");
        }
    }
}

#[test]
fn seconds_milliseconds_and_the_other_names_mean_the_same() {
    let (_exchange, marketd) = made_up();
    let (from, to) = (open_time("4h", NOW) - 400 * HOUR_MS, open_time("4h", NOW) - HOUR_MS);
    let plain = chart(marketd.addr(), &format!("interval=4h&from={from}&to={to}"));
    assert!(plain.items().len() > 90);
    let (from_s, to_s) = (from / 1000, to / 1000);
    for query in [
        format!("interval=4h&from={from_s}&to={to_s}"),
        format!("interval=4h&from={from}&to={to_s}"),
        format!("interval=4h&startTime={from}&endTime={to}"),
        format!("interval=4h&startTime={from_s}&to={to}"),
        format!("resolution=240&from={from}&endTime={to_s}"),
        format!("to={to}&from={from}&interval=4h&limit=5000&fill=none&decimals=number&source=fake"),
    ] {
        assert_eq!(chart(marketd.addr(), &query), plain, "{query}");
    }
    // The names that TradingView has for what is served.
    let short = [("D", "1d"), ("W", "1w"), ("M", "1M")];
    for (resolution, interval) in RESOLUTIONS.into_iter().zip(naive::INTERVALS).chain(short) {
        let answer = get(marketd.addr(), &target(&format!("resolution={resolution}&limit=2")));
        assert_eq!(answer.status, 200, "{resolution}: {}", answer.text());
        assert_eq!(answer.header("Chart-Interval"), Some(interval), "{resolution}");
    }
}

/// That nothing else is, the simulation judges.
#[test]
fn a_settled_chart_is_kept_for_an_hour() {
    let (exchange, marketd) = made_up();
    let newest = open_time("1h", NOW);
    let at = |slots: i64| newest - slots * HOUR_MS;
    let cache = |query: &str| {
        let answer = get(marketd.addr(), &target(query));
        answer.header("Cache-Control").map(str::to_string).unwrap_or_default()
    };
    let hour = "public, max-age=3600";
    let first = format!("from={}&to={}", at(50), at(10));
    eventually(LONG, || (cache(&first) == hour).then_some(()));
    assert_eq!(cache(&format!("from={}&to={}", at(50), at(10))), hour);
    assert_eq!(cache(&format!("from={}&to={}&decimals=string", at(50), at(10))), hour);
    assert_eq!(cache(&format!("interval=4h&from={}&to={}", at(90), at(50))), hour);
    // Cut by the limit, it ends in the closed past.
    assert_eq!(cache(&format!("from={}&limit=20", at(50))), hour);
    // What was asked once is not asked again, once the newest candles have come, and what lies before them.
    eventually(LONG, || {
        let asked = exchange.count(KLINES);
        for _ in 0..20 {
            chart(marketd.addr(), &format!("from={}&to={}", at(50), at(10)));
        }
        (exchange.count(KLINES) == asked).then_some(())
    });
}

#[test]
fn intervals_that_no_exchange_of_a_market_has_are_not_listed_and_an_error() {
    let dialect = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange/dialects/binance.json");
    let dialect = std::fs::read_to_string(dialect).expect("a dialect");
    let hours_only = dialect.replace(r#""1m": "1m", "1h": "1h", "1d": "1d""#, r#""1h": "1h""#);
    assert_ne!(hours_only, dialect);
    let exchange = still(3);
    let launch = Launch::new(&[]);
    let path = launch.file("hours.json", hours_only);
    let mut hours = source("hours", &exchange);
    hours["dialect"] = json!(path);
    let config = with(config(&[hours]), "limits", json!({ "chartWaitMs": 60_000 }));
    let marketd = launch.config(config).start().with_clock();
    let record = await_answer(marketd.addr(), "/api/ecosystem/market/BTC-USDT", |answer| {
        answer.status == 200
    });
    let listed = ["1h", "2h", "4h", "6h", "8h", "12h"];
    assert_eq!(record.exact()["intervals"].texts(), listed);
    assert!(!chart(marketd.addr(), "interval=4h&limit=10").items().is_empty());
    let message =
        "No source of this market has candles of 1d: expected one of 1h, 2h, 4h, 6h, 8h, 12h.";
    let answer = get(marketd.addr(), &target("interval=1d"));
    assert_eq!(answer.status, 400);
    let error = answer.exact();
    assert_eq!(error["code"].text(), Some("invalid_interval"));
    assert_eq!(error["message"].text(), Some(message));
    if cfg!(not(feature = "page")) {
        return;
    }
    let symbol = get(marketd.addr(), "/udf/symbols?symbol=BTC/USDT").exact();
    assert_eq!(symbol["has_daily"].bool(), Some(false));
    let found = symbol["supported_resolutions"].texts();
    assert_eq!(found, ["60", "120", "240", "360", "480", "720"]);
}
