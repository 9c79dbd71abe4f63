//! How a market may be named, and how it may not.

use crate::loopback::contract::error;
use crate::loopback::setup::*;
use crate::support::binance::TICKERS;
use crate::support::*;
use serde_json::json;

fn symbol_at(addr: std::net::SocketAddr, target: &str) -> Json {
    read(addr, target)["symbol"].clone()
}

#[test]
fn every_accepted_form_names_the_market_at_every_address() {
    let exchange = exchange_of(&["BTC/USDT", "1INCH/USDT", "ETH/BTC"]);
    let marketd = start(&config(&[source("fake", &exchange)]));
    let addr = marketd.addr();
    // All forms in any case: beside `market/symbol.rs`. Here, that each address decodes them.
    for text in ["BTC/USDT", "BTC%2fUSDT", "btc-usdt", "Btc_uSDt", "%42TCUSDT", "b%74c/%75sdt"] {
        for target in ["/api/v1/quotes/", "/api/ecosystem/market/"] {
            let target = format!("{target}{text}");
            assert_eq!(symbol_at(addr, &target), "BTC/USDT", "{target}");
        }
    }
    for text in ["BTC/USDT", "BTC%2FUSDT", "btc_usdt", "+BTCUSDT", "BTC-USDT%20"] {
        let target = format!("/api/v1/quotes?symbols={text}");
        assert_eq!(read(addr, &target)["quotes"][0]["symbol"], "BTC/USDT", "{target}");
        let target = format!("/api/ecosystem/chart?symbol={text}&interval=1d");
        assert_eq!(get(addr, &target).status, 200, "{target}");
    }
    // A blank is trimmed, a control byte is none.
    let tab = read(addr, "/api/v1/quotes?symbols=%09BTC-USDT");
    assert_eq!(tab["errors"][0]["code"], "invalid_symbol");
    assert_eq!(symbol_at(addr, "/api/v1/quotes/1inchusdt"), "1INCH/USDT");
}

#[test]
fn what_is_no_symbol_is_refused_at_every_address() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let marketd = start(&config(&[source("fake", &exchange)]));
    let addr = marketd.addr();
    let malformed = [
        "BTC%252FUSDT",
        "BTC%00USDT",
        "BTC%FFUSDT",
        "BTC%2",
        "BTC.X",
        "BTC%2F%2FUSDT",
        "*",
        "BTC%2CETH",
    ];
    for text in malformed {
        error(&get(addr, &format!("/api/v1/quotes/{text}")), 400, "invalid_symbol", Some("symbol"));
        if text == "*" || text == "BTC%2CETH" {
            continue;
        }
        let chart = format!("/api/ecosystem/chart?symbol={text}");
        error(&get(addr, &chart), 400, "invalid_symbol", Some("symbol"));
        // One of many does not fail the others.
        let both = read(addr, &format!("/api/v1/quotes?symbols={text},BTC%2FUSDT"));
        assert_eq!(both["quotes"][0]["symbol"], "BTC/USDT", "{text}: {both}");
        assert_eq!(both["errors"][0]["code"], "invalid_symbol", "{text}: {both}");
        assert_eq!(both["errors"].items().len(), 1, "{text}: {both}");
    }
    for text in ["BTC/", "BTC//", "/BTC", "BTC%2FUSDT/", "BTC/USDT%2F", "BT%2FC/USDT", "BTCUSDT/"] {
        let answer = get(addr, &format!("/api/v1/quotes/{text}"));
        assert!(matches!(answer.status, 400 | 404), "{text}: {}", answer.text());
    }
    for text in ["FOO/BAR", "foobar", "USDT/BTC", "BTC"] {
        let target = format!("/api/v1/quotes/{text}");
        error(&get(addr, &target), 404, "symbol_not_found", Some("symbol"));
        let target = format!("/api/ecosystem/chart?symbol={text}");
        error(&get(addr, &target), 404, "symbol_not_found", Some("symbol"));
        let target = format!("/api/ecosystem/market/{text}");
        error(&get(addr, &target), 404, "market_not_found", None);
    }
    let message = error(&get(addr, "/api/v1/quotes/A/B/C"), 404, "not_found", None);
    assert!(message.contains("/api/v1/quotes/A/B/C"), "{message}");
    error(&get(addr, "/api/v1/quotes/"), 404, "not_found", None);
}

#[test]
fn an_error_repeats_at_most_64_bytes_of_what_was_asked_and_escapes_them() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let marketd = start(&config(&[source("fake", &exchange)]));
    let long = "Z".repeat(300);
    for target in [
        format!("/api/v1/quotes/{long}"),
        format!("/{long}"),
        format!("/api/v1/categories/{long}/markets"),
        format!("/api/ecosystem/market/{long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&interval={long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&from={long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&limit={long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&fill={long}"),
        format!("/api/v1/quotes/BTCUSDT?source={long}"),
        format!("/api/v1/quotes/BTCUSDT?decimals={long}"),
    ] {
        let answer = get(marketd.addr(), &target);
        assert!((400..500).contains(&answer.status), "{target}");
        let message = answer.exact()["message"].text().unwrap_or_default().to_string();
        let repeated = message.matches('Z').count();
        assert!((50..=64).contains(&repeated), "{target}: {message}");
    }
    let message = error(
        &get(marketd.addr(), "/api/v1/quotes/%22%5C%3C%E2%82%AC"),
        400,
        "invalid_symbol",
        Some("symbol"),
    );
    assert!(message.contains("\"\\<"), "{message}");
    assert!(message.is_ascii(), "{message}");
}

#[test]
fn a_joined_form_that_two_markets_share_is_off_and_the_log_says_so() {
    let (one, two) = (exchange_of(&["AB/CD", "X/Y"]), exchange_of(&["A/BCD"]));
    let marketd = start(&config(&[source("one", &one), source("two", &two)]));
    let addr = marketd.addr();
    error(&get(addr, "/api/v1/quotes/ABCD"), 404, "symbol_not_found", Some("symbol"));
    for (asked, symbol) in [
        ("AB/CD", "AB/CD"),
        ("ab-cd", "AB/CD"),
        ("A_BCD", "A/BCD"),
        ("a%2fbcd", "A/BCD"),
        ("xy", "X/Y"),
    ] {
        assert_eq!(symbol_at(addr, &format!("/api/v1/quotes/{asked}")), symbol);
    }
    let line = marketd.await_log("ABCD", LONG);
    assert!(line.contains("AB/CD") && line.contains("A/BCD"), "{line}");
}

#[test]
fn a_market_without_a_quote_is_unready_first_and_not_found_after_a_poll() {
    let exchange = exchange_of(&["BTC/USDT", "NEW/USDT", "ZERO/USDT"]);
    let (priced, zero) = (ticker("BTCUSDT", "1.5"), ticker("ZEROUSDT", "0.00000000"));
    exchange.set_tickers(&format!("[{priced},{zero}]"));
    exchange.fault_times(1, Some(TICKERS), Fault::Silence);
    let symbols = ["BTC/USDT", "NEW/USDT", "ZERO/USDT", "GONE/USDT"];
    let source = tracking("fake", &exchange, &symbols);
    let marketd = Marketd::with_config(config(&[with(source, "timeoutMs", json!(60_000))]));
    let addr = marketd.addr();
    exchange.await_asked(TICKERS, 1, LONG);
    for symbol in symbols {
        let target = format!("/api/v1/quotes/{symbol}");
        error(&get(addr, &target), 503, "quote_not_ready", Some("symbol"));
    }
    // The answer that never came is given up, and another one asked for.
    exchange.cut();
    await_health(&marketd, "ok");
    for symbol in &symbols[1..] {
        // All may be well a moment before the poll has ended that tells so.
        let target = format!("/api/v1/quotes/{symbol}");
        let answer = await_answer(addr, &target, |answer| answer.status == 404);
        error(&answer, 404, "quote_not_found", Some("symbol"));
    }
    assert_eq!(symbol_at(addr, "/api/v1/quotes/BTC/USDT"), "BTC/USDT");
    // It begins to trade.
    exchange.set_tickers(&format!("[{priced},{}]", ticker("NEWUSDT", "2.00")));
    let answer = await_answer(addr, "/api/v1/quotes/NEWUSDT", |answer| answer.status == 200);
    assert_eq!(answer.exact()["last"], Json::Number("2".to_string()));
    assert!(upstream(&marketd, "polls") > 2);
    assert!(metrics(&marketd)["quotes"]["rejected"].integer() > Some(0));
}
