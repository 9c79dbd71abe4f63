//! The connection as clients use it, and the counters of what they did.

use crate::loopback::contract::*;
use crate::loopback::setup::*;
use crate::support::*;

#[test]
fn what_is_sent_behind_the_last_request_does_not_cost_its_answer() {
    // Larger than what the kernel takes at once.
    let exchange = Binance::generated(3000, 9);
    let marketd = polling(&exchange);
    let whole = get(marketd.addr(), "/api/v1/quotes?symbols=*").body.len();
    assert!(whole > 500_000, "{whole} bytes");
    for _ in 0..5 {
        let mut client = Client::connect(marketd.addr());
        let last = "GET /api/v1/quotes?symbols=* HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        client.send(last).expect("it is sent");
        eventually(LONG, || {
            let pending = metrics(&marketd)["http"]["bytesPending"].integer();
            (pending > Some(0)).then_some(())
        });
        let more = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
        client.send(more).expect("nobody has closed yet");
        let answer = client.read().expect("the whole answer");
        assert_eq!(answer.status, 200);
        assert!(answer.body.len() > whole / 2);
        assert_eq!(client.read_to_close(), Ok(Vec::new()), "no reset");
    }
}

#[test]
fn a_client_that_reads_slowly_gets_every_answer() {
    let exchange = Binance::generated(100, 3);
    let marketd = polling(&exchange);
    let mut client = Client::connect(marketd.addr());
    // 20 MB of answers: more than any kernel holds for a client that does not read.
    let line = "GET /api/v1/quotes?symbols=* HTTP/1.1\r\nHost: x\r\n\r\n";
    let before = marketd.rss_bytes();
    client.send(line.repeat(500)).expect("they fit into the sockets");
    let first = client.read().expect("the first answer");
    assert_eq!(first.exact()["quotes"].items().len(), 100);
    // Others are served meanwhile, and nothing piles up.
    assert_eq!(get(marketd.addr(), "/health").status, 200);
    let grown = marketd.rss_bytes().saturating_sub(before);
    assert!(grown < 4_000_000, "{grown} bytes more for one slow client");
    let rest = client.read_many(499).expect("all the others");
    assert!(rest.iter().all(|answer| answer.status == 200));
}

#[test]
fn a_kept_response_goes_to_its_own_client_while_another_one_reads_nothing() {
    let exchange = Binance::generated(100, 3);
    let marketd = polling(&exchange);
    let chart = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&limit=500";
    await_answer(marketd.addr(), chart, |answer| {
        answer.header("Chart-Coverage") == Some("complete")
    });
    // The state stays as it is, so responses are kept.
    silence(&exchange);
    let mut client = Client::connect(marketd.addr());
    let expected = client.get(chart).body;
    let line = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut idle = Vec::new();
    for _ in 0..10 {
        (0..3).for_each(|_| assert!(client.get(chart).body == expected));
        // It has the buffer that responses are written to, and does not give it back.
        idle.push(Client::connect(marketd.addr()));
        let slow = idle.last_mut().expect("it is there");
        slow.send(line("/api/v1/quotes?symbols=*").repeat(500)).expect("it is read");
        slow.read().expect("the first answer");
        client.send([line(chart), line("/health")].concat()).expect("it is sent");
        let answers = client.read_many(2).expect("both answers");
        assert!(answers[0].body == expected, "{}", answers[0].text());
        assert!(answers[1].exact()["status"].text().is_some(), "{}", answers[1].text());
        let other = get(marketd.addr(), "/health");
        assert!(other.exact()["status"].text().is_some(), "{}", other.text());
    }
}

#[test]
fn the_metrics_count_what_was_done() {
    let exchange = exchange_of(&["BTC/USDT", "ETH/USDT", "BAD/USDT"]);
    exchange.patch_ticker("BADUSDT", "lastPrice", "\"-1\"");
    let marketd = polling(&exchange);
    // Nothing more is polled.
    silence(&exchange);
    let before = good(&get(marketd.addr(), "/api/v1/metrics"));
    let mut client = Client::connect(marketd.addr());
    for target in ["/api/v1/quotes/BTCUSDT", "/health", "/api/v1/categories"] {
        assert_eq!(client.get(target).status, 200);
    }
    for target in ["/nope", "/api/v1/quotes/NOPE"] {
        assert_eq!(client.get(target).status, 404);
    }
    let tag = client.get("/api/v1/categories").header("ETag").map(str::to_string);
    let condition = format!("If-None-Match: {}\r\n", tag.expect("a tag"));
    client
        .send(format!("GET /api/v1/categories HTTP/1.1\r\nHost: x\r\n{condition}\r\n"))
        .expect("it is read");
    assert_eq!(client.read().map(|answer| answer.status), Ok(304));
    assert_eq!(request(marketd.addr(), "BAD\r\n\r\n").status, 400);
    let after = good(&client.get("/api/v1/metrics"));
    let grown = |path: &[&str]| {
        let value = |json: &Json| {
            let found = path.iter().fold(json.clone(), |json, key| json[*key].clone());
            found.integer().expect("a counter is a whole number")
        };
        value(&after) - value(&before)
    };
    // 3 + 2 + 1 + 1 + 1, and the second look at the counters: a page counts the request for it.
    assert_eq!(grown(&["http", "requests"]), 9);
    assert_eq!(grown(&["http", "status", "2xx"]), 5);
    assert_eq!(grown(&["http", "status", "3xx"]), 1);
    assert_eq!(grown(&["http", "status", "4xx"]), 3);
    assert_eq!(grown(&["http", "status", "5xx"]), 0);
    assert_eq!(grown(&["http", "notModified"]), 1);
    assert_eq!(grown(&["http", "badRequests"]), 1);
    assert_eq!(grown(&["http", "connectionsTotal"]), 2);
    assert!(grown(&["http", "bytesOut"]) > 2000);
    assert_eq!(after["http"]["inFlight"], 0);
    assert_eq!(after["cachedEntries"], 2);
    assert_eq!(after["quotes"]["symbols"], 2);
    // Of three items of each poll two were good.
    let collected = after["quotesCollected"].integer().unwrap_or_default();
    assert_eq!(after["quotes"]["collected"], collected);
    assert_eq!(after["quotes"]["rejected"], collected / 2);
    let polled = &after["upstreams"][0];
    assert!(polled["bytesReceived"].integer() > Some(100) && polled["id"] == "fake");
}
