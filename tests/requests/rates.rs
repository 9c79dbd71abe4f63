//! The rate limit: what an address has left, who is turned back, and whose request it was.

use crate::requests::bench::{Bench, at};
use marketd::config::{Limits, network};
use marketd::table::Key;
use std::time::Duration;

const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);

/// One request a second, three at once; a trusted proxy at 10.0.0.1.
fn bench() -> Bench {
    let limits = Limits { requests_per_minute: 60, request_burst: 3, ..Limits::default() };
    Bench::configured(limits, |config| {
        config.trusted_proxies = network("10.0.0.1").into_iter().collect();
    })
}

/// What is sent to this client in answer to some more bytes.
fn ask(bench: &mut Bench, key: Key, raw: &str) -> String {
    let before = bench.got(key).len();
    bench.send(key, raw.as_bytes());
    String::from_utf8(bench.got(key)[before..].to_vec()).expect("an answer is text")
}

/// Its status, and what it says of the limit: all, left, seconds.
fn told(answer: &str) -> (u16, Option<[u32; 3]>) {
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    let field = |name: &str| {
        let (_, rest) = answer.split_once(&format!("\r\nRateLimit-{name}: "))?;
        rest.split_once("\r\n")?.0.parse().ok()
    };
    let fields = ["Limit", "Remaining", "Reset"].map(field);
    let all: Option<Vec<u32>> = fields.into_iter().collect();
    (status.expect("a status"), all.and_then(|all| all.try_into().ok()))
}

/// What each answer says of it is judged by the simulation, and that probes and pre-flights are free; how it
/// is counted, beside `core/clients/rate_limiter.rs`.
#[test]
fn an_address_is_told_what_it_has_left_and_turned_back_when_that_is_nothing() {
    let mut bench = bench();
    let key = bench.connect_from(at("192.0.2.1")).expect("there is room");
    for (left, reset) in [(2, 1), (1, 2), (0, 3)] {
        let expected = (404, Some([3, left, reset]));
        assert_eq!(told(&ask(&mut bench, key, GET)), expected);
    }
    // On another connection too, and for HEAD without a body.
    let other = bench.connect_from(at("192.0.2.1")).expect("there is room");
    let answer = ask(&mut bench, other, GET);
    assert_eq!(told(&answer), (429, Some([3, 0, 1])));
    for part in [
        "HTTP/1.1 429 Too Many Requests\r\n",
        "\r\nRetry-After: 1\r\n",
        "\r\nAccess-Control-Allow-Origin: *\r\n",
        "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset\r\n",
        "\r\nCache-Control: no-store\r\n",
        "\r\n\r\n{\"status\":429,\"code\":\"too_many_requests\",\"message\":",
    ] {
        assert!(answer.contains(part), "{part:?} in {answer}");
    }
    let head = ask(&mut bench, other, &GET.replace("GET", "HEAD"));
    assert_eq!(told(&head), (429, Some([3, 0, 1])));
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    // Nobody else is concerned.
    let stranger = bench.connect_from(at("192.0.2.2")).expect("there is room");
    assert_eq!(told(&ask(&mut bench, stranger, GET)).0, 404);
    assert!(bench.get("/api/v1/metrics").contains("\"rateLimited\":2,"));
    let page = bench.get("/metrics");
    assert!(page.contains("\nmarketd_http_rate_limited_total 2\n"));
    // It has waited as long as it was told.
    bench.pass(SECOND);
    assert_eq!(told(&ask(&mut bench, key, GET)), (404, Some([3, 0, 3])));
    assert_eq!(told(&ask(&mut bench, key, GET)).0, 429);
    // Who wants the connection to end gets his way.
    let last = ask(&mut bench, other, &GET.replace("Host", "Connection: close\r\nHost"));
    assert!(last.contains("\r\nConnection: close\r\n") && bench.is_closed(other), "{last}");
    for key in [key, stranger] {
        bench.end(key);
    }
    bench.check_empty();
    let mut bench = Bench::new(Limits::default());
    let key = bench.connect_from(at("192.0.2.1")).expect("there is room");
    for _ in 0..500 {
        let answer = ask(&mut bench, key, GET);
        assert!(told(&answer) == (404, None) && !answer.contains("\r\nRateLimit"), "{answer}");
    }
}

#[test]
fn behind_a_trusted_proxy_each_client_counts_for_itself() {
    let mut bench = bench();
    let proxy = bench.connect_from(at("10.0.0.1")).expect("there is room");
    let from = |list: &str| GET.replace("Host", &format!("X-Forwarded-For: {list}\r\nHost"));
    for left in [2, 1, 0] {
        // Whatever the client says itself.
        let raw = from(&format!("198.51.100.{left}, 192.0.2.1"));
        let expected = Some([3, left, 3 - left]);
        assert_eq!(told(&ask(&mut bench, proxy, &raw)).1, expected);
    }
    assert_eq!(told(&ask(&mut bench, proxy, &from("192.0.2.1"))).0, 429);
    assert_eq!(told(&ask(&mut bench, proxy, &from("192.0.2.2"))).0, 404);
    // The same address without the proxy, and one who only says that he is a proxy.
    let own = bench.connect_from(at("192.0.2.1")).expect("there is room");
    assert_eq!(told(&ask(&mut bench, own, GET)).0, 429);
    let liar = bench.connect_from(at("192.0.2.9")).expect("there is room");
    for _ in 0..3 {
        assert_eq!(told(&ask(&mut bench, liar, &from("203.0.113.1"))).0, 404);
    }
    assert_eq!(told(&ask(&mut bench, liar, &from("203.0.113.2"))).0, 429);
}
