//! Charts of several markets in one answer: each as it is alone, and what one of them lacks, the others
//! have.

use crate::loopback::setup::*;
use crate::support::binance::KLINES;
use crate::support::*;
use serde_json::json;

/// Made-up markets, and a daemon that polls them once: the budget is for candles.
fn polled_once(count: usize) -> (Binance, Marketd) {
    let exchange = still(count);
    let source = with(source("fake", &exchange), "timeoutMs", json!(60_000));
    let config = config(&[with(source, "pollMs", json!(60_000))]);
    let config = with(config, "limits", json!({ "chartWaitMs": 60_000 }));
    (exchange, start(&config).with_clock())
}

fn target(symbols: &[String], rest: &str) -> String {
    format!("/api/ecosystem/chart?symbols={}{rest}", symbols.join(","))
}

#[test]
fn what_nobody_asked_for_is_fetched_for_all_of_them_at_once() {
    let (exchange, marketd) = polled_once(50);
    assert_eq!(exchange.count(KLINES), 0);
    let symbols = exchange.symbols();
    let answer = get(marketd.addr(), &target(&symbols, "&interval=1h&limit=24"));
    let body = answer.exact();
    for symbol in &symbols {
        let chart = &body[symbol.as_str()];
        assert_eq!(chart["coverage"].text(), Some("complete"), "{symbol}");
        assert_eq!(chart["candles"].items().len(), 24, "{symbol}");
    }
    assert_eq!(exchange.count(KLINES), 50);
}

#[test]
fn what_is_in_memory_is_sent_without_a_request_to_the_exchange() {
    let (exchange, marketd) = polled_once(4);
    let symbols = exchange.symbols();
    let one = format!("/api/ecosystem/chart?symbol={}&limit=24", symbols[0]);
    let is_whole = |it: &Response| it.header("Chart-Coverage") == Some("complete");
    await_answer(marketd.addr(), &one, is_whole);
    let asked = exchange.count(KLINES);
    let body = get(marketd.addr(), &target(&symbols, "&limit=24&fetch=none")).exact();
    assert_eq!(body[symbols[0].as_str()]["candles"].items().len(), 24);
    for symbol in &symbols[1..] {
        let chart = &body[symbol.as_str()];
        assert_eq!(chart["coverage"].text(), Some("partial"), "{symbol}");
        assert!(chart["candles"].items().is_empty(), "{symbol}");
    }
    // It is not requested later either, and a chart of one of them still is.
    let one = format!("/api/ecosystem/chart?symbol={}&limit=24", symbols[1]);
    await_answer(marketd.addr(), &one, is_whole);
    assert_eq!(exchange.count(KLINES), asked + 1);
}
