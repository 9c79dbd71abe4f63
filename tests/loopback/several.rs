//! Charts of several markets in one answer: each as it is alone, and what one of them lacks, the others
//! have.

use crate::loopback::contract::error;
use crate::loopback::setup::*;
use crate::support::binance::KLINES;
use crate::support::*;
use serde_json::json;
use std::net::SocketAddr;

/// 2024-05-15 10:37:05.
const NOW: i64 = 1_715_769_425_000;

/// Made-up markets at a time that stands still, and a daemon that polls them.
fn still(count: usize, wait_ms: u64) -> (Binance, Marketd) {
    let exchange = Binance::generated(count, 4);
    exchange.set_time(ServerTime::Fixed(NOW));
    let source = with(source("fake", &exchange), "timeoutMs", json!(60_000));
    // The budget is for candles.
    let source = with(source, "pollMs", json!(60_000));
    let limits = json!({ "chartWaitMs": wait_ms });
    let marketd = start(&with(config(&[source]), "limits", limits)).with_clock();
    (exchange, marketd)
}

fn target(symbols: &[String], rest: &str) -> String {
    format!("/api/ecosystem/chart?symbols={}{rest}", symbols.join(","))
}

/// Every chart of an answer is what its symbol's own answer says.
#[track_caller]
fn check_each(addr: SocketAddr, symbols: &[String], rest: &str) {
    let answer = get(addr, &target(symbols, rest));
    assert_eq!(answer.status, 200, "{rest}: {}", answer.text());
    let body = answer.exact();
    let mut keys: Vec<String> = symbols.to_vec();
    keys.push("errors".into());
    assert_eq!(body.keys(), keys, "{rest}");
    assert!(body["errors"].items().is_empty(), "{rest}");
    for symbol in symbols {
        let alone = get(addr, &format!("/api/ecosystem/chart?symbol={symbol}{rest}"));
        let chart = &body[symbol.as_str()];
        assert_eq!(chart["candles"], alone.exact(), "{symbol}{rest}");
        let said = |key: &str| chart[key].text().unwrap_or_default().to_string();
        let field = |name: &str| alone.header(name).unwrap_or_default().to_string();
        assert_eq!(said("coverage"), field("Chart-Coverage"), "{symbol}{rest}");
        assert_eq!(said("source"), field("Chart-Source"));
        assert_eq!(said("lastClosed"), field("Chart-Last-Closed"));
        assert_eq!(said("gaps"), field("Chart-Gaps"));
        assert_eq!(answer.header("Chart-Interval"), alone.header("Chart-Interval"));
    }
}

#[test]
fn each_of_several_charts_is_what_it_is_alone() {
    let (exchange, marketd) = still(30, 60_000);
    let symbols = exchange.symbols();
    for rest in [
        "&interval=1h&limit=24",
        "",
        "&interval=4h&limit=7",
        "&interval=1d&limit=500&fill=previous",
        "&interval=1m&decimals=string&limit=30",
        "&interval=1h&from=1715000000&to=1715700000",
        "&interval=1h&from=1715000000&limit=3",
        "&interval=1w&source=fake",
    ] {
        check_each(marketd.addr(), &symbols, rest);
        check_each(marketd.addr(), &symbols[7..8], rest);
    }
}

#[test]
fn what_nobody_asked_for_is_fetched_for_all_of_them_at_once() {
    let (exchange, marketd) = still(50, 60_000);
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
    let (exchange, marketd) = still(4, 60_000);
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

#[test]
fn one_that_does_not_come_does_not_hold_the_others_back_for_ever() {
    let (exchange, marketd) = still(3, 300);
    let symbols = exchange.symbols();
    let one = format!("/api/ecosystem/chart?symbol={}&limit=24", symbols[0]);
    let is_whole = |it: &Response| it.header("Chart-Coverage") == Some("complete");
    await_answer(marketd.addr(), &one, is_whole);
    exchange.fault_on(KLINES, Fault::Silence);
    let answer = get(marketd.addr(), &target(&symbols, "&limit=24"));
    let body = answer.exact();
    let coverage = |symbol: &String| body[symbol.as_str()]["coverage"].text();
    assert_eq!(coverage(&symbols[0]), Some("complete"));
    assert_eq!(coverage(&symbols[1]), Some("partial"));
    assert_eq!(coverage(&symbols[2]), Some("partial"));
    // Their tag is another one as soon as they have come.
    let tag = answer.header("ETag").expect("a tag").to_string();
    exchange.heal();
    exchange.cut();
    let whole = await_answer(marketd.addr(), &target(&symbols, "&limit=24"), |it| {
        !it.text().contains("partial")
    });
    assert_ne!(whole.header("ETag"), Some(tag.as_str()));
}

#[test]
fn what_cannot_be_answered_stands_beside_what_can() {
    let (exchange, marketd) = still(3, 60_000);
    let addr = marketd.addr();
    let symbols = exchange.symbols();
    let joined = symbols[0].replace('/', "").to_lowercase();
    let list = format!("{joined},nope,{},+a.b+,,nope,{}", symbols[1], symbols[0]);
    let body = get(addr, &target(&[list], "&limit=2")).exact();
    assert_eq!(body.keys(), [&symbols[0], &symbols[1], "errors"]);
    let errors = body["errors"].items().iter();
    let errors = errors.map(|it| (it["symbol"].text(), it["code"].text()));
    let expected =
        [(Some("nope"), Some("symbol_not_found")), (Some("a.b"), Some("invalid_symbol"))];
    assert_eq!(errors.collect::<Vec<_>>(), expected);
    let check = |query: &str, code: &str, param: &str| {
        let answer = get(addr, &format!("/api/ecosystem/chart?{query}"));
        error(&answer, 400, code, Some(param));
    };
    check("symbol=BTCUSDT&symbols=BTCUSDT", "duplicate_parameter", "symbol");
    check("symbols=", "empty_parameter", "symbols");
    check("symbols=+,", "empty_parameter", "symbols");
    check(&format!("symbols={}", "A,".repeat(51)), "too_many_symbols", "symbols");
    check("symbols=BTCUSDT&limit=501", "invalid_limit", "limit");
    check("symbols=BTCUSDT&interval=7m", "invalid_interval", "interval");
    check("symbols=x&from=9&to=8", "invalid_range", "from");
    let unknown = get(addr, "/api/ecosystem/chart?symbols=BTCUSDT&source=x");
    error(&unknown, 404, "source_not_found", Some("source"));
}

#[test]
fn several_charts_have_a_tag_and_come_in_gzip() {
    let (exchange, marketd) = still(20, 60_000);
    let addr = marketd.addr();
    let target = target(&exchange.symbols(), "&interval=1h&limit=24");
    let plain = get(addr, &target);
    let ask =
        |field: &str| request(addr, format!("GET {target} HTTP/1.1\r\nHost: x\r\n{field}\r\n\r\n"));
    let packed = ask("Accept-Encoding: gzip");
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    assert!(packed.body.len() < plain.body.len() / 2);
    let tag = plain.header("ETag").expect("a tag");
    assert_eq!(ask(&format!("If-None-Match: {tag}")).status, 304);
    let head = head(addr, &target);
    assert_eq!(head.header("ETag"), Some(tag));
    let length = head.header("Content-Length").expect("a length");
    assert_eq!(length, plain.body.len().to_string());
}
