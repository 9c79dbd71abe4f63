//! The stream: what comes on connect, what after a change, how it goes on, and how it ends.

use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::Shutdown;

const BTC_ETH: &str = "/api/v1/stream?symbols=BTCUSDT,ETHUSDT";

fn last(event: &ServerEvent) -> String {
    event.exact()["last"].to_string()
}

fn symbol(event: &ServerEvent) -> String {
    event.exact()["symbol"].text().unwrap_or_default().to_string()
}

fn is_quote(event: &ServerEvent, of: &str, price: &str) -> bool {
    event.name == "quote" && symbol(event) == of && last(event) == price
}

/// What an event `gone` says: the symbol, the interval if it is about a chart, and the code.
fn gone(event: &ServerEvent) -> Option<(String, Option<String>, String)> {
    if event.name != "gone" {
        return None;
    }
    let said = event.exact();
    let text = |key: &str| said[key].text().map(str::to_string);
    let is_chart = said.keys() == ["symbol", "interval", "code"];
    assert!(is_chart || said.keys() == ["symbol", "code"], "{event:?}");
    Some((text("symbol")?, is_chart.then(|| text("interval")).flatten(), text("code")?))
}

#[test]
fn a_quote_that_turns_stale_and_the_health_of_the_service_are_told() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let brief = with(source("fake", &exchange), "staleAfterMs", json!(700));
    let marketd = start(&config(&[with(brief, "timeoutMs", json!(300))]));
    let mut stream = EventSource::open(marketd.addr(), "/api/v1/stream?symbols=BTCUSDT");
    exchange.fault(Fault::Silence);
    let stale =
        |event: &ServerEvent| event.name == "quote" && event.exact()["stale"].bool() == Some(true);
    stream.until(stale);
    let says = |event: &ServerEvent, status: &str| {
        event.name == "status" && event.exact()["status"].text() == Some(status)
    };
    // A reader that comes now is told how things are.
    let mut late = EventSource::open(marketd.addr(), "/api/v1/stream?symbols=BTCUSDT");
    late.until(|event| says(event, "degraded"));
    late.until(stale);
    exchange.heal();
    stream.until(|event| event.name == "quote" && event.exact()["stale"].bool() == Some(false));
    late.until(|event| says(event, "ok"));
}

#[test]
fn a_client_that_comes_back_gets_nothing_if_nothing_has_changed() {
    let exchange = exchange_of(&["BTC/USDT", "ETH/USDT"]);
    let slow = with(source("fake", &exchange), "pollMs", json!(3_600_000));
    let slow = config(&[with(slow, "staleAfterMs", json!(7_200_000))]);
    let marketd = start(&with(slow, "limits", json!({ "streamHeartbeatMs": 3000 })));
    let addr = marketd.addr();
    let mut stream = EventSource::open(addr, BTC_ETH);
    stream.until(|event| event.id.is_some());
    let mut same = EventSource::resume(addr, BTC_ETH, &stream.last_id);
    let events = || metrics(&marketd)["streams"]["events"].integer();
    let before = events();
    // Whoever begins after it is served after it.
    EventSource::open(addr, BTC_ETH).until(|event| event.id.is_some());
    assert_eq!(events(), before.map(|count| count + 3));
    assert!(same.client().unread().is_empty());
    // The first event has the pause before a client comes back, whichever it is.
    assert_eq!(same.next().expect("a sign of life").name, "alive");
    assert!(same.retry_ms.is_some_and(|wait| (1500..2500).contains(&wait)));
    // An id of another run, or none at all: everything.
    for id in ["1-2-3", "x", &format!("{}-4", stream.last_id)] {
        let mut all = EventSource::resume(addr, BTC_ETH, id);
        assert_eq!(all.next().expect("an event").name, "status", "{id}");
    }
}

/// An exchange whose minute ends in some seconds, and a daemon that knows its clock.
fn before_a_close() -> (Binance, Marketd) {
    let exchange = Binance::generated(2, 9);
    let ahead = 55_000 - exchange.now().rem_euclid(60_000);
    exchange.set_time(ServerTime::Offset(ahead));
    let marketd = polling(&exchange);
    (exchange, marketd)
}

const MINUTES: &str = "/api/v1/stream?charts=BTCUSDT:1m,BTCUSDT:5m";

/// The open time of a candle of one minute, if it is one, and whether it is closed.
fn minute(event: &ServerEvent) -> Option<(i64, bool)> {
    let candle = event.exact();
    let is_minute = event.name == "candle" && candle["interval"].text() == Some("1m");
    let open = is_minute.then(|| candle["candle"][0].integer())??;
    Some((open, candle["closed"].bool()?))
}

#[test]
fn a_forming_candle_comes_at_first_and_its_close_as_the_exchange_confirms_it() {
    let (_exchange, marketd) = before_a_close();
    let addr = marketd.addr();
    // Nobody has asked for this chart before: it is fetched.
    let mut stream = EventSource::open(addr, MINUTES);
    let first = stream.until(|event| minute(event).is_some_and(|(_, closed)| !closed));
    let (open, _) = minute(&first).expect("a candle");
    let candle = first.exact();
    assert_eq!(candle.keys(), ["symbol", "interval", "source", "candle", "closed"]);
    assert_eq!(candle["symbol"].text(), Some("BTC/USDT"));
    assert_eq!((candle["candle"].items().len(), open % 60_000), (6, 0));
    stream.until(|event| event.id.is_some());
    let id = stream.last_id.clone();
    let closed = stream.until(|event| minute(event) == Some((open, true)));
    let row = closed.exact()["candle"].clone();
    let chart = format!("/api/ecosystem/chart?symbol=BTCUSDT&interval=1m&from={open}&to={open}");
    assert_eq!(read(addr, &chart)[0], row);
    // Whoever was away is told of the close first, once, and then of what forms now.
    let mut back = EventSource::resume(addr, MINUTES, &id);
    let missed = back.until(|event| minute(event).is_some());
    assert_eq!(minute(&missed), Some((open, true)));
    assert_eq!(missed.data, closed.data);
    let newer = back.until(|event| minute(event).is_some());
    assert_eq!(minute(&newer), Some((open + 60_000, false)));
    // Who comes for the first time is not told of the past.
    let strings = format!("{MINUTES}&decimals=string");
    let mut new = EventSource::open(addr, &strings);
    let first = new.until(|event| minute(event).is_some());
    assert_eq!(minute(&first), Some((open + 60_000, false)));
    assert!(first.exact()["candle"][1].text().is_some(), "{first:?}");
}

#[test]
fn who_was_away_for_long_is_told_of_a_bounded_number_of_closes() {
    let (exchange, marketd) = before_a_close();
    let addr = marketd.addr();
    let target = "/api/v1/stream?charts=BTCUSDT:1m";
    // All of this is in memory.
    let chart = "/api/ecosystem/chart?symbol=BTCUSDT&interval=1m&limit=3000";
    await_answer(addr, chart, |answer| answer.exact().items().len() == 3000);
    let mut stream = EventSource::open(addr, target);
    stream.until(|event| event.id.is_some());
    let (rest, _) = stream.last_id.rsplit_once('-').expect("an id has parts");
    for long_ago in ["0", "1"] {
        let mut resumed = EventSource::resume(addr, target, &format!("{rest}-{long_ago}"));
        let mut closes = Vec::new();
        resumed.until(|event| match minute(event) {
            Some((open, true)) => {
                closes.push(open);
                false
            }
            newest => newest.is_some(),
        });
        assert!(closes.is_sorted() && (490..=501).contains(&closes.len()), "{}", closes.len());
        let newest = exchange.now() - 3 * 60_000;
        assert!(closes.last().is_some_and(|last| *last > newest), "{closes:?}");
    }
}

#[test]
fn the_head_alone_and_a_client_of_http_1_0_are_served() {
    let (exchange, marketd) = polled(&["BTC/USDT", "ETH/USDT"]);
    let addr = marketd.addr();
    let mut client = Client::connect(addr);
    client.send(format!("HEAD {BTC_ETH} HTTP/1.1\r\nHost: x\r\n\r\n")).expect("it is read");
    let head = client.read_head().expect("a head");
    assert_eq!((head.status, head.header("Content-Type")), (200, Some("text/event-stream")));
    assert_eq!(head.header("Transfer-Encoding"), Some("chunked"));
    assert!(client.read_to_close().is_ok_and(|rest| rest.is_empty()));
    let old = format!("GET {BTC_ETH} HTTP/1.0\r\n\r\n");
    let mut stream = EventSource::request(addr, &old);
    assert_eq!(stream.head.header("Transfer-Encoding"), None);
    assert_eq!(stream.head.header("Connection"), Some("close"));
    stream.until(|event| is_quote(event, "ETH/USDT", "1.5"));
    // What a client sends behind the request is never answered, and ends nothing.
    let pair = format!("GET {BTC_ETH} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(2);
    let mut stream = EventSource::request(addr, &pair);
    stream.until(|event| is_quote(event, "ETH/USDT", "1.5"));
    stream.client().send_get("/health").expect("it is read");
    exchange.patch_ticker("ETHUSDT", "lastPrice", "\"6\"");
    stream.until(|event| is_quote(event, "ETH/USDT", "6"));
    assert_eq!(metrics(&marketd)["streams"]["open"], 2);
    drop(stream);
    eventually(LONG, || (metrics(&marketd)["streams"]["open"] == 1).then_some(()));
}

#[test]
fn an_unknown_symbol_among_known_ones_is_told_and_ends_nothing() {
    let exchange = Binance::generated(1, 9);
    let marketd = polling(&exchange);
    let addr = marketd.addr();
    let found = |target: &str| {
        let mut stream = EventSource::open(addr, target);
        let mut told = Vec::new();
        stream.until(|event: &ServerEvent| {
            match gone(event) {
                Some((symbol, interval, code)) => {
                    assert_eq!(code, "symbol_not_found");
                    told.push(interval.map_or(symbol.clone(), |it| format!("{symbol}:{it}")));
                }
                None if event.name == "quote" => told.push(symbol(event)),
                None if event.name == "candle" => told.push("candle".to_string()),
                None => {}
            }
            event.id.is_some() && told.len() >= 4
        });
        told.sort();
        told
    };
    let symbols = "/api/v1/stream?symbols=nopeusdt,BTCUSDT,GO-NE,gone/usdt,BTC-USDT,GO-NE";
    assert_eq!(found(symbols), ["BTC/USDT", "GO-NE", "gone/usdt", "nopeusdt"]);
    let charts = "/api/v1/stream?symbols=BTCUSDT&charts=NOPE:1m,BTCUSDT:1m,NOPE:5m";
    assert_eq!(found(charts), ["BTC/USDT", "NOPE:1m", "NOPE:5m", "candle"]);
}

#[test]
fn a_cut_in_a_long_first_batch_is_resumed_where_it_was() {
    let exchange = Binance::generated(1500, 11);
    let slow = with(source("fake", &exchange), "pollMs", json!(3_600_000));
    let config = config(&[with(slow, "staleAfterMs", json!(7_200_000))]);
    let marketd = start(&with(config, "limits", json!({ "streamHeartbeatMs": 300 })));
    let (addr, target) = (marketd.addr(), "/api/v1/stream?symbols=*");
    let quotes = metrics(&marketd)["quotes"]["symbols"].integer().expect("a number") as usize;
    let mut seen = BTreeMap::new();
    let mut id = String::new();
    let mut streams = 0;
    while seen.len() < quotes {
        streams += 1;
        let mut stream = match id.as_str() {
            "" => EventSource::open(addr, target),
            id => EventSource::resume(addr, target, id),
        };
        // Each one is cut at the first id. What came before an id never comes again.
        let mut batch = Vec::new();
        stream.until(|event| {
            batch.extend((event.name == "quote").then(|| symbol(event)));
            event.id.is_some()
        });
        id = stream.last_id.clone();
        for symbol in batch {
            assert_eq!(seen.insert(symbol, streams), None);
        }
    }
    assert!((4..40).contains(&streams), "{streams} streams for {quotes} quotes");
    // Nothing has changed since. What was still being applied at the begin may come, and nothing twice.
    EventSource::resume(addr, target, &id).until(|event| {
        let is_new = event.name != "quote" || seen.insert(symbol(event), streams).is_none();
        assert!(is_new, "{event:?}");
        event.name == "alive"
    });
}

#[test]
fn streams_are_limited_in_all_and_by_address() {
    let exchange = exchange_of(&["BTC/USDT", "ETH/USDT"]);
    for (limit, status, code) in
        [("streams", 503, "unavailable"), ("streamsPerAddress", 429, "too_many_requests")]
    {
        let marketd = limited(&exchange, json!({ limit: 2 }));
        let open = || EventSource::open(marketd.addr(), BTC_ETH);
        let (first, _second) = (open(), open());
        let answer = get(marketd.addr(), BTC_ETH);
        assert_eq!((answer.status, answer.exact()["code"].text()), (status, Some(code)));
        assert_eq!(answer.header("Retry-After"), Some("5"));
        assert_eq!(metrics(&marketd)["streams"]["refused"], 1);
        drop(first);
        eventually(LONG, || (metrics(&marketd)["streams"]["open"] == 1).then_some(()));
        open();
    }
}

#[test]
fn a_silent_stream_says_that_it_is_alive_and_one_that_takes_nothing_is_closed() {
    let exchange = Binance::generated(600, 3);
    let limits = json!({ "streamHeartbeatMs": 300, "writeTimeoutMs": 1500 });
    let marketd = limited(&exchange, limits);
    let addr = marketd.addr();
    // The kernel takes megabytes for it before it stalls.
    let mut stalled = Client::connect(addr);
    socket2::SockRef::from(stalled.stream()).set_recv_buffer_size(4096).expect("a small buffer");
    stalled.send_get("/api/v1/stream?symbols=*").expect("it is read");
    let mut quick = EventSource::open(addr, BTC_ETH_OF_MANY);
    let closes = || metrics(&marketd)["streams"]["closes"]["write_timeout"] == 1;
    eventually(LONG, || {
        quick.next().expect("the other one goes on");
        closes().then_some(())
    });
    assert!(metrics(&marketd)["streams"]["conflated"].integer() > Some(0));
    silence(&exchange);
    let first = quick.next_of("alive");
    assert_eq!(first.exact().keys(), ["time"]);
    let time = |event: &ServerEvent| event.exact()["time"].integer().expect("milliseconds");
    let next = quick.next_of("alive");
    assert!((time(&first) + 300..time(&first) + 30_000).contains(&time(&next)), "{next:?}");
    assert_eq!((first.id, next.id), (None, None), "an id stays that of the last change");
}

#[test]
fn a_client_that_floods_its_stream_is_sent_its_events() {
    let exchange = Binance::generated(600, 3);
    let marketd = polling(&exchange);
    let mut stream = EventSource::open(marketd.addr(), "/api/v1/stream?symbols=*");
    let mut flood = stream.client().stream().try_clone().expect("a socket");
    let flood = std::thread::spawn(move || while flood.write_all(&[b'x'; 1 << 20]).is_ok() {});
    (0..3000).for_each(|_| _ = stream.next().expect("it goes on"));
    stream.client().stream().shutdown(Shutdown::Both).expect("it is open");
    flood.join().expect("it ends");
}

/// A market of those that are made up.
const BTC_ETH_OF_MANY: &str = "/api/v1/stream?symbols=BTCUSDT";

#[test]
fn the_access_log_has_a_line_at_the_end_of_a_stream() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let logged = with(config(&[source("fake", &exchange)]), "accessLog", json!(true));
    let marketd = start(&logged);
    let mut stream = EventSource::open(marketd.addr(), "/api/v1/stream?symbols=BTCUSDT");
    for _ in 0..3 {
        stream.next_of("quote");
    }
    assert!(!marketd.log().contains("target=\"/api/v1/stream"));
    drop(stream);
    let begin = "method=GET target=\"/api/v1/stream?symbols=BTCUSDT\" status=200 bytes=";
    let line = marketd.await_log(begin, LONG);
    let (_, rest) = line.split_once(begin).expect("it was found by this");
    let (bytes, ms) = rest.split_once(" ms=").expect("a time");
    assert!(bytes.parse::<usize>().is_ok_and(|bytes| bytes > 1000), "{line}");
    let ms = ms.trim().parse::<f64>();
    assert!(ms.is_ok_and(|ms| ms > 50.0), "{line}");
}

#[test]
fn a_stop_ends_streams_with_a_last_event() {
    let (_exchange, marketd) = polled(&["BTC/USDT", "ETH/USDT"]);
    let addr = marketd.addr();
    let mut streams = [
        EventSource::open(addr, BTC_ETH),
        EventSource::request(addr, &format!("GET {BTC_ETH} HTTP/1.0\r\n\r\n")),
    ];
    for stream in &mut streams {
        stream.until(|event| is_quote(event, "ETH/USDT", "1.5"));
    }
    marketd.signal("TERM");
    for mut stream in streams {
        stream.next_of("bye");
        assert!(stream.retry_ms.is_some_and(|wait| (1000..5000).contains(&wait)));
        match stream.next() {
            Err(ClientError::Closed(rest)) => assert_eq!(rest, ""),
            other => panic!("{other:?}"),
        }
        let is_chunked = stream.head.header("Transfer-Encoding").is_some();
        assert_eq!(stream.is_over, is_chunked, "the body has its end");
    }
    assert_eq!(marketd.await_end(LONG).code, Some(0));
}
