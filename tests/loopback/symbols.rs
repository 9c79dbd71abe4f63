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
fn an_error_repeats_at_most_64_bytes_of_what_was_asked_and_escapes_them() {
    let (_exchange, marketd) = polled(&["BTC/USDT"]);
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
    exchange.set_prices(&[("BTCUSDT", "1.5"), ("ZEROUSDT", "0.00000000")]);
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
    exchange.set_prices(&[("BTCUSDT", "1.5"), ("NEWUSDT", "2.00")]);
    let answer = await_answer(addr, "/api/v1/quotes/NEWUSDT", |answer| answer.status == 200);
    assert_eq!(answer.exact()["last"], Json::Number("2".to_string()));
    assert!(upstream(&marketd, "polls") > 2);
    assert!(metrics(&marketd)["quotes"]["rejected"].integer() > Some(0));
}
