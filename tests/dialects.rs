//! Dialects of files, as marketd runs with them: an exchange without a clock, without a market list, with
//! answers that do not fit, and with a market that is gone.

use crate::support;

use marketd::time::iso_8601;
use serde_json::json;
use std::time::{Duration, SystemTime};
use support::*;

/// One ticker a call; the clock is the date of an answer.
const DIALECT: &str = r#"{
    "name": "abacus",
    "baseUrl": "https://abacus.invalid",
    "budget": { "units": 1000, "perMs": 1000 },
    "errors": { "code": "[1]", "message": "[2]", "unknownMarket": ["10020"] },
    "tickers": { "one": { "call": { "target": "/t/{id}", "items": "." } }, "fields": ["last"] },
    "candles": {
        "call": { "target": "/c/{id}/{interval}", "items": "[]" },
        "intervals": { "1m": "1m" },
        "rows": 100,
        "time": "ms",
        "fields": ["time", "open", "close", "high", "low", "volume"]
    },
    "markets": { "pair": ["{base}_{quote}"] },
    "time": { "call": { "target": "/status", "items": "[]" }, "date": true }
}"#;

/// The same with a call for all tickers.
fn with_all() -> String {
    let all =
        r#""all": { "call": { "target": "/t", "items": "[]" }, "fields": ["id", "last"] }, "one""#;
    DIALECT.replacen("\"one\"", all, 1)
}

fn start(dialect: &str, exchange: &FakeExchange, symbols: &[&str]) -> Marketd {
    let launch = Launch::new(&[]);
    launch.file("abacus.json", dialect);
    let source = json!({
        "dialect": "./abacus.json", "url": exchange.url(), "symbols": symbols, "pollMs": 250,
    });
    launch.config(json!({ "sources": [source] })).start()
}

fn dated(body: &str, date: SystemTime) -> Reply {
    Reply::json(body).field("date", &httpdate::fmt_http_date(date))
}

/// The clock, and candles of a market that nobody trades.
fn other(asked: &Asked) -> Reply {
    match asked.path() {
        "/status" => dated("[1]", SystemTime::now()),
        _ => Reply::json("[]"),
    }
}

#[test]
fn a_source_without_a_list_and_without_symbols_is_not_good() {
    let launch = Launch::new(&["--check"]);
    launch.file("abacus.json", DIALECT);
    let ended = launch.config(json!({ "sources": [{ "dialect": "./abacus.json" }] })).run();
    let told = "abacus has no market list: name its markets in symbols";
    assert!(ended.stderr.contains(told), "{ended:?}");
    assert_ne!(ended.code, Some(0));
}

#[test]
fn the_date_of_answers_is_the_clock_of_an_exchange_that_has_no_other() {
    // Half an hour ago: this machine's clock contradicts it.
    let exchange = FakeExchange::start(move |asked| {
        let date = SystemTime::now() - Duration::from_secs(1800);
        match asked.path() {
            "/status" => dated("[1]", date),
            "/t/BTC_USD" => dated("[64000.5]", date),
            _ => dated("[]", date),
        }
    });
    let marketd = start(DIALECT, &exchange, &["BTC/USD"]);
    let line = marketd.await_log("clock in doubt", LONG);
    let told = |mark| {
        let time = line.split(mark).nth(1).and_then(|rest| rest.split(['Z']).next());
        time.and_then(|text| iso_8601(text.as_bytes())).unwrap_or_else(|| panic!("{line}"))
    };
    let ms = told("this machine ") - told("date ");
    assert!((1_800_000..1_815_000).contains(&ms), "{line}");
}

#[test]
fn a_date_from_a_cache_is_no_clock() {
    let exchange = FakeExchange::start(|_| dated("[1]", SystemTime::now()).field("age", "7"));
    let marketd = start(DIALECT, &exchange, &["BTC/USD"]);
    let line = marketd.await_log("no current `Date`", LONG);
    assert!(line.contains("what=\"clock\""), "{line}");
}

#[test]
fn a_poll_none_of_whose_tickers_can_be_read_has_failed() {
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/t" => Reply::json(r#"[["BTC_USD","much"],["OTHER_USD",1]]"#),
        _ => other(asked),
    });
    let marketd = start(&with_all(), &exchange, &["BTC/USD"]);
    let line = marketd.await_log("request failed", LONG);
    let told = "no item can be read, the first: BTC_USD: last is not a finite decimal number";
    assert!(line.contains(told), "{line}");
    exchange.await_asked("/t", 4, LONG);
    let log = marketd.log();
    assert_eq!(log.matches("request failed").count(), 1, "{log}");
}

#[test]
fn a_refused_ticker_that_nobody_tracks_is_no_failure() {
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/t" => Reply::json(r#"[["BTC_USD",64000.5],["fUSD","much"],7]"#),
        _ => other(asked),
    });
    let marketd = start(&with_all(), &exchange, &["BTC/USD"]);
    exchange.await_asked("/t", 4, LONG);
    let log = marketd.log();
    assert!(!log.contains("what=\"quotes\""), "{log}");
}

#[test]
fn a_market_that_is_gone_is_asked_for_more_and_more_seldom_and_told_once() {
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/t/BTC_USD" => Reply::json("[64000.5]"),
        "/t/OLD_USD" => Reply::json(r#"["error",10020,"symbol: invalid"]"#),
        _ => other(asked),
    });
    let marketd = start(DIALECT, &exchange, &["BTC/USD", "OLD/USD"]);
    exchange.await_asked("/t/BTC_USD", 24, LONG);
    // At once, and 0.5, 1.5 and 3.5 seconds later.
    let asked = exchange.count("/t/OLD_USD");
    assert!((2..=5).contains(&asked), "{asked}");
    let log = marketd.log();
    assert_eq!(log.matches("request failed").count(), 1, "{log}");
    assert!(log.contains("symbol: invalid (10020)"), "{log}");
}

#[test]
fn answers_about_a_market_do_not_read_the_file_of_its_dialect_again() {
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/t/BTC_USD" => Reply::json("[64000.5]"),
        _ => other(asked),
    });
    let marketd = start(DIALECT, &exchange, &["BTC/USD"]);
    let quote =
        || Some(get(marketd.addr(), "/api/v1/quotes/BTC-USD")).filter(|it| it.status == 200);
    eventually(LONG, quote);
    // More than dialects are kept: each answer tells fifteen intervals.
    for _ in 0..100 {
        let answer = get(marketd.addr(), "/api/ecosystem/market/BTC-USD");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let path = marketd.dir().path().join("abacus.json");
    let other = DIALECT.replace("\"rows\": 100", "\"rows\": 99");
    std::fs::write(path, other).expect("the directory can be written to");
    marketd.signal("HUP");
    let line = marketd.await_log("config: reload", LONG);
    assert!(line.contains("reloaded"), "{line}");
}
