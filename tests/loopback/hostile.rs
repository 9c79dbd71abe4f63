//! Exchanges that send something else than they should: nothing that is served changes, the fault
//! is counted, and memory stays where it was.

use crate::loopback::encodings::{list, packed, unreadable};
use crate::loopback::gzip::bomb;
use crate::loopback::setup::*;
use crate::support::binance::{KLINES, MARKETS, TICKERS};
use crate::support::*;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How much resident memory may grow whatever an exchange sends.
const MOST_GROWTH: u64 = 8 * 1024 * 1024;

/// Larger than any list of any exchange, and just below the cap on a body.
const HUGE: usize = 50_000_000;

/// Runs `test` for each of these at once: each waits for its own daemon.
pub fn for_each<T: Send + Sync>(cases: Vec<T>, test: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for case in &cases {
            scope.spawn(|| test(case));
        }
    });
}

/// Faults in which an answer never comes to a good end, and which the simulation does not have.
fn broken_answers() -> Vec<Fault> {
    let reply = |text: &str| Fault::Instead(Reply::json(text));
    let raw =
        |bytes: &[u8]| Fault::Instead(Reply::json("").delivered(Delivery::Raw(bytes.to_vec())));
    vec![
        Fault::HalfThen(End::Reset),
        Fault::NoAnswer(End::Reset),
        raw(b"220 mail ready\r\n\r\n\0\xff"),
        reply("null"),
        reply("[1,2,3"),
        reply("[]]"),
        reply("[{}] x"),
        reply("\u{0}\u{1}\u{2}"),
        reply("{\"code\":-1000,\"msg\":\"An unknown error.\"}"),
        Fault::Instead(Reply::json(vec![0xff; 1000])),
        Fault::Instead(Reply::json("[".repeat(100_000))),
        Fault::Instead(Reply::json("[[".repeat(50_000) + &"]]".repeat(50_000))),
        Fault::Instead(Reply::json("[]").field("Content-Encoding", "gzip")),
        Fault::Instead(Reply::json("[]").field("X-Large", &"x".repeat(100_000))),
    ]
}

/// A list of one ticker whose end is told in this way.
fn framed(framing: Framing) -> Fault {
    Fault::Instead(Reply::json(list()).framed(framing))
}

#[test]
fn a_broken_answer_changes_nothing_and_the_next_good_one_counts() {
    let broken = broken_answers().into_iter().map(|fault| (fault, ""));
    for_each(broken.chain(unreadable()).collect(), |(fault, expected)| {
        let exchange = exchange_of(&["BTC/USDT", "ETH/USDT"]);
        // Some of them end with it alone; a good answer does not come near it.
        let source = with(source("fake", &exchange), "timeoutMs", json!(2000));
        let mut marketd = start(&config(&[source]));
        exchange.fault_on(TICKERS, fault.clone());
        let so_far = upstream(&marketd, "errors");
        let await_errors = |count: i64| {
            let enough = || (upstream(&marketd, "errors") >= so_far + count).then_some(());
            eventually(LONG, enough);
        };
        await_errors(1);
        let before = quote(&marketd, "BTCUSDT");
        let others = read(marketd.addr(), "/api/v1/quotes?symbols=*");
        let collected = metrics(&marketd)["quotesCollected"].clone();
        await_errors(2);
        assert_eq!(quote(&marketd, "BTCUSDT"), before, "{fault:?}");
        assert_eq!(read(marketd.addr(), "/api/v1/quotes?symbols=*"), others, "{fault:?}");
        assert_eq!(metrics(&marketd)["quotesCollected"], collected, "{fault:?}");
        let health = get(marketd.addr(), "/health");
        assert_eq!((health.status, health.exact()["status"].text()), (200, Some("degraded")));
        let told = metrics(&marketd)["upstreams"][0]["lastError"].clone();
        let expected = format!("quotes: {expected}");
        assert!(told.text().is_some_and(|text| text.starts_with(&expected)), "{told}");
        assert!(told.text().is_some_and(|text| text.len() < 300), "{told}");
        exchange.heal();
        exchange.cut();
        await_health(&marketd, "ok");
        let after = quote(&marketd, "BTCUSDT");
        assert!(after["receivedAt"].integer() > before["receivedAt"].integer(), "{fault:?}");
        assert!(marketd.is_running());
        assert!(!marketd.log().contains("panic"), "{}", marketd.log());
    });
}

#[test]
fn strange_but_right_answers_are_read() {
    let continued = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\ncontent-length: 40\r\n\r\n[{\"symbol\":\"BTCUSDT\",\"lastPrice\":\"2.5\"}]";
    let raw = Reply::json("").delivered(Delivery::Raw(continued.to_vec()));
    let spaced = " \r\n[ {\t\"lastPrice\" : 2.50 , \"symbol\":\"\\u0042TCUSDT\", \"x\":[{\"symbol\":\"no\"}] } ] \n";
    let slowly = Delivery::Slowly { bytes: 7, pause: Duration::from_micros(200) };
    let zipped = || Reply::json(list()).gzipped();
    let one_by_one = list().iter().flat_map(|byte| gzip(&[*byte])).collect();
    let cases = vec![
        framed(Framing::Chunked(vec![1, 2, 3])),
        framed(Framing::Chunked(vec![100_000])),
        Fault::UntilClose,
        Fault::Slowly { bytes: 1, pause: Duration::from_micros(100) },
        Fault::Instead(Reply::json(spaced)),
        Fault::Instead(Reply::json(spaced).delivered(slowly.clone())),
        Fault::Instead(raw),
        Fault::Instead(zipped().framed(Framing::Chunked(vec![1, 2, 3]))),
        Fault::Instead(zipped().framed(Framing::Chunked(vec![100_000]))),
        Fault::Instead(zipped().framed(Framing::UntilClose)),
        Fault::Instead(zipped().delivered(slowly)),
        packed(gzip(&list()), "x-gzip"),
        packed(gzip(&list()), "identity, GZIP"),
        packed(one_by_one, "gzip"),
        packed(list(), "identity"),
    ];
    for_each(cases, |fault| {
        let exchange = exchange_of(&["BTC/USDT"]);
        exchange.fault_on(TICKERS, fault.clone());
        let source = with(source("fake", &exchange), "timeoutMs", json!(60_000));
        let marketd = Marketd::with_config(config(&[source]));
        let answer =
            await_answer(marketd.addr(), "/api/v1/quotes/BTCUSDT", |answer| answer.status == 200);
        let last = answer.exact()["last"].clone();
        assert!(["1.5", "2.5"].contains(&last.text().unwrap_or_default()), "{fault:?}: {last}");
        assert_eq!(upstream(&marketd, "errors"), 0, "{fault:?}");
    });
}

/// The body of an exchange, repeated: `begin`, `unit` over and over, `end`.
fn repeated(begin: &str, unit: &str, end: &str) -> Fault {
    repeated_to(HUGE, begin, unit, end)
}

/// The same of at least so many bytes.
fn repeated_to(bytes: usize, begin: &str, unit: &str, end: &str) -> Fault {
    // Written in large pieces.
    let unit = unit.repeat(50_000 / unit.len());
    let times = bytes.div_ceil(unit.len());
    let part = |text: &str, times| (Arc::from(text.as_bytes()), times);
    let parts = vec![part(begin, 1), part(&unit, times), part(end, 1)];
    Fault::Instead(Reply::with_body(200, Body(parts)))
}

#[test]
fn fifty_megabytes_are_not_held() {
    let tracked = r#"{"symbol":"BTCUSDT","lastPrice":"7.5","bidPrice":"7.4"},"#;
    let unknown = r#"{"symbol":"NOPE","lastPrice":"7.5","bidPrice":"7.4"},"#;
    let row = r#"[1715767200000,"1","1","1","1","1",1715770799999,"0",1,"0","0","0"],"#;
    let market =
        r#"{"symbol":"BTCUSDT","status":"TRADING","baseAsset":"BTC","quoteAsset":"USDT"},"#;
    let others = r#"{"symbol":"NOPE","status":"BREAK","baseAsset":"NO","quoteAsset":"PE"},"#;
    let last = |unit: &str| format!("{}]", unit.trim_end_matches(','));
    let cases = vec![
        ("one item", TICKERS, repeated("[\"", "x", "\"]")),
        ("more than the cap", TICKERS, repeated_to(60_000_000, "[\"", "x", "\"]")),
        ("items again and again", TICKERS, repeated("[", tracked, "{}]")),
        ("unknown items", TICKERS, repeated("[", unknown, "{}]")),
        ("no JSON", TICKERS, repeated("", "x", "")),
        ("blanks", TICKERS, repeated("[", "                ", "]")),
        ("an envelope", TICKERS, repeated("{", "\"a\":\"bbbbbbbb\",", "}")),
        ("a gigabyte of blanks", TICKERS, bomb(200, b"[", b' ')),
        ("a gigabyte of an error", TICKERS, bomb(500, b"", b' ')),
        ("a gigabyte of text", TICKERS, bomb(200, b"[\"", b'x')),
        ("candles", KLINES, repeated("[", row, &last(row))),
        ("a market", MARKETS, repeated("{\"symbols\":[", market, &(last(market) + "}"))),
        ("markets", MARKETS, repeated("{\"symbols\":[", others, &(last(market) + "}"))),
        ("no markets", MARKETS, repeated("{\"symbols\":[],\"x\":\"", "xxxxxxxx", "\"}")),
    ];
    for (what, path, fault) in cases {
        let exchange = exchange_of(&["BTC/USDT"]);
        let source = with(source("fake", &exchange), "timeoutMs", json!(60_000));
        let order = || exchange.fault_times(1, Some(path), fault.clone());
        // The list is asked for at the start.
        if path == MARKETS {
            order();
        }
        let mut marketd = Marketd::with_config(config(&[source]));
        if path != MARKETS {
            await_health(&marketd, "ok");
            exchange.forget();
            order();
        }
        let before = marketd.rss_bytes();
        if path == KLINES {
            get(marketd.addr(), "/api/ecosystem/chart?symbol=BTCUSDT&interval=1h");
        }
        eventually(LONG, || {
            // Whoever asks is answered meanwhile.
            assert_eq!(get(marketd.addr(), "/health/live").status, 200);
            let is_whole = upstream(&marketd, "bytesReceived") > HUGE as i64;
            (is_whole || exchange.count(path) > 1).then_some(())
        });
        await_polls(&marketd, 1);
        let grown = marketd.peak_rss_bytes().saturating_sub(before);
        assert!(grown < MOST_GROWTH, "{what}: {grown} bytes more");
        assert!(marketd.is_running());
        await_health(&marketd, "ok");
    }
}
