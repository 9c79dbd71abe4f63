//! Answers that leave in gzip: which do, what their heads say, and that what they unpack to is what
//! leaves as it is. In a build without the feature, that none does.

use crate::loopback::setup::*;
use crate::support::*;
use flate2::read::GzDecoder;
use serde_json::json;
use std::io::Read;
use std::net::SocketAddr;

const CHART: &str = "/api/ecosystem/chart?symbol=BTCUSDT&interval=1h&limit=400";

/// Everything that may be packed, above 1 KiB each in a demo, and as wide as it gets.
const PACKED: [&str; 10] = [
    "/api/v1/quotes?symbols=BTCUSDT,ETHUSDT,SOLUSDT,XRPUSDT,nope",
    "/api/v1/quotes?symbols=*",
    "/api/v1/quotes?symbols=*&decimals=string",
    "/api/v1/categories/usdt/markets",
    "/api/ecosystem/market",
    "/api/ecosystem/market/BTC-USDT",
    CHART,
    "/api/ecosystem/chart?symbol=BTCUSDT&interval=2h&limit=200",
    "/api/ecosystem/chart?symbol=BTCUSDT&interval=1h&limit=400&decimals=string",
    "/openapi.json",
];

/// Short, or without a version, or never packed.
const PLAIN: [&str; 9] = [
    "/nope",
    "/api/v1/quotes/BTCUSDT",
    "/api/v1/quotes?symbols=BTCUSDT",
    "/api/v1/categories",
    "/api/ecosystem/chart?symbol=BTCUSDT&interval=1h&limit=5",
    "/api/v1/metrics",
    "/metrics",
    "/health",
    "/api/v1/quotes/NOPE",
];

/// One request.
fn ask(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n")
}

const GZIP: &str = "Accept-Encoding: gzip\r\n";

/// Asks in one write on one connection, so that no poll comes between; answers to HEAD have no body.
fn ask_all(addr: SocketAddr, asked: &[String]) -> Vec<Response> {
    let mut client = Client::connect(addr);
    client.send(asked.concat()).expect("it is read");
    let read = |line: &String| match line.starts_with("HEAD") {
        true => client.read_head(),
        false => client.read(),
    };
    let answers: Result<Vec<Response>, _> = asked.iter().map(read).collect();
    answers.unwrap_or_else(|fault| panic!("{asked:?}: {fault}"))
}

fn is_packed(answer: &Response) -> bool {
    answer.header("Content-Encoding") == Some("gzip")
}

/// The body as it was before it was packed, if it was.
fn unpacked(answer: &Response) -> Vec<u8> {
    if !is_packed(answer) {
        assert_eq!(answer.header("Content-Encoding"), None);
        return answer.body.clone();
    }
    let mut body = Vec::new();
    let read = GzDecoder::new(&answer.body[..]).read_to_end(&mut body);
    read.expect("it is sound gzip");
    body
}

/// All fields but those that differ between two answers to the same question.
fn told(answer: &Response) -> Vec<(String, String)> {
    let differs = ["Content-Length", "Content-Encoding", "ETag", "Date", "Cache-Control"];
    let mut fields = answer.headers.clone();
    fields.retain(|(name, _)| !differs.contains(&name.as_str()));
    fields
}

fn demo() -> Marketd {
    let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
    for target in PACKED {
        await_answer(marketd.addr(), target, |answer| {
            answer.status == 200 && answer.body.len() > 1024
        });
    }
    marketd
}

#[test]
fn what_unpacks_is_what_leaves_as_it_is_and_the_heads_fit() {
    let marketd = demo();
    for target in PACKED {
        // Until no poll has come between: then all of one kind have one tag. (A chart that changed
        // between the turns that made it has none.)
        eventually(LONG, || {
            let asked = [
                ask("GET", target, ""),
                ask("GET", target, GZIP),
                ask("HEAD", target, GZIP),
                ask("HEAD", target, "Accept-Encoding: gzip;q=0\r\n"),
                ask("GET", target, "Accept-Encoding: br, X-Gzip;q=0.5\r\n"),
                ask("GET", target, ""),
            ];
            let [plain, packed, head, plain_head, again, last] =
                &ask_all(marketd.addr(), &asked)[..]
            else {
                panic!("six answers");
            };
            let tag = plain.header("ETag")?;
            if last.header("ETag") != Some(tag) || plain.body != last.body {
                return None;
            }
            let vary = Some("Accept-Encoding");
            for answer in [plain, packed, head, plain_head, again] {
                assert_eq!(answer.status, 200, "{target}");
                assert_eq!(answer.header("Vary"), vary, "{target}");
                assert_eq!(told(answer), told(plain), "{target}");
            }
            assert!(is_packed(packed), "{target}");
            assert!(!is_packed(plain) && !is_packed(plain_head), "{target}");
            if head.headers != packed.headers || again.headers != packed.headers {
                // A second has begun, or a poll come, in between.
                return None;
            }
            for field in ["ETag", "Content-Length"] {
                assert_eq!(plain_head.header(field), plain.header(field), "{target}");
            }
            assert_eq!(again.body, packed.body, "{target}");
            assert!(unpacked(packed) == plain.body, "{target}");
            assert_ne!(packed.header("ETag"), plain.header("ETag"), "{target}");
            assert!(packed.body.len() < plain.body.len() * 2 / 3, "{target}");
            Some(())
        });
    }
}

#[test]
fn what_is_short_or_has_no_version_or_is_one_quote_is_never_packed() {
    let marketd = demo();
    for target in PLAIN {
        let asked = [ask("GET", target, GZIP), ask("HEAD", target, GZIP)];
        // Until no poll has come between.
        eventually(LONG, || {
            let [got, head] = &ask_all(marketd.addr(), &asked)[..] else { panic!("two answers") };
            for answer in [got, head] {
                assert!(!is_packed(answer), "{target}");
                assert_eq!(answer.header("Vary"), None, "{target}");
            }
            assert!(head.body.is_empty() && !got.body.is_empty(), "{target}");
            let length = Some(got.body.len().to_string());
            assert_eq!(got.header("Content-Length").map(str::to_string), length, "{target}");
            let is_same = got.status == head.status && told(got) == told(head);
            let fields = ["Content-Length", "ETag"].map(|it| got.header(it) == head.header(it));
            (is_same && (fields == [true; 2] || target.contains("metrics"))).then_some(())
        });
    }
}

#[test]
fn who_asks_for_one_of_the_two_by_its_tag_gets_that_one_or_a_412() {
    let marketd = demo();
    for target in PACKED {
        eventually(LONG, || {
            let with = |fields: &str| ask("GET", target, &format!("{GZIP}{fields}"));
            let tags = ask_all(marketd.addr(), &[ask("GET", target, ""), with("")]);
            let named = |at: usize| {
                let tag = tags[at].header("ETag")?;
                Some((tag.to_string(), format!("If-Match: {tag}\r\n")))
            };
            let (plain, packed) = (named(0)?, named(1)?);
            let asked = [
                ask("GET", target, &plain.1),
                ask("GET", target, &packed.1),
                with(&plain.1),
                with(&packed.1),
                with("If-Match: *\r\n"),
                with("If-Match: \"x\"\r\n"),
                with(""),
                ask("GET", target, ""),
            ];
            let answers = ask_all(marketd.addr(), &asked);
            let tag = |at: usize| answers[at].header("ETag").unwrap_or_default();
            if tag(7) != plain.0 || tag(6) != packed.0 {
                return None;
            }
            let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
            // Who does not take gzip cannot be sent it.
            let second = 412;
            let expected = [200, second, 200, 200, 200, 412, 200, 200];
            assert_eq!(statuses, expected, "{target}");
            assert_eq!((tag(2), tag(3)), (&*plain.0, &*packed.0), "{target}");
            Some(())
        });
    }
}

#[test]
fn either_tag_makes_a_304_for_who_may_have_it() {
    let marketd = demo();
    for target in PACKED {
        eventually(LONG, || {
            let tags = ask_all(marketd.addr(), &[ask("GET", target, ""), ask("GET", target, GZIP)]);
            let named = |at: usize| {
                let tag = tags[at].header("ETag")?;
                Some((tag.to_string(), format!("If-None-Match: {tag}\r\n")))
            };
            let (plain, packed) = (named(0)?, named(1)?);
            let both = format!("If-None-Match: \"x\", W/{}, {}\r\n", plain.0, packed.0);
            let with = |fields: &str| ask("GET", target, &format!("{GZIP}{fields}"));
            let asked = [
                ask("GET", target, &plain.1),
                ask("GET", target, &packed.1),
                with(&plain.1),
                with(&packed.1),
                with(&both),
                with("If-None-Match: *\r\n"),
                ask("GET", target, "If-None-Match: *\r\n"),
                ask("HEAD", target, &format!("{GZIP}{}", packed.1)),
                with("If-None-Match: \"x\"\r\n"),
                ask("GET", target, ""),
            ];
            let answers = ask_all(marketd.addr(), &asked);
            let tag = |at: usize| answers[at].header("ETag").unwrap_or_default();
            if tag(9) != plain.0 || tag(8) != packed.0 {
                return None;
            }
            let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
            // Who does not take gzip cannot hold it.
            let second = 200;
            let expected = [304, second, 304, 304, 304, 304, 304, 304, 200, 200];
            assert_eq!(statuses, expected, "{target}");
            let tags: Vec<&str> = (0..8).map(tag).collect();
            let (plain, packed) = (plain.0.as_str(), packed.0.as_str());
            let expected = [plain, plain, plain, packed, packed, packed, plain, packed];
            assert_eq!(tags, expected, "{target}");
            let vary = Some("Accept-Encoding");
            for answer in &answers {
                assert_eq!(answer.header("Vary"), vary, "{target}");
                assert!(answer.header("Cache-Control").is_some(), "{target}");
                assert!(answer.header("Date").is_some(), "{target}");
                assert_eq!(answer.header("Access-Control-Allow-Origin"), Some("*"));
                assert!(answer.status == 200 || !is_packed(answer), "{target}");
                assert!(answer.status == 200 || answer.body.is_empty(), "{target}");
            }
            Some(())
        });
    }
}

/// A daemon that has 2000 quotes and polls no more, with so much room for packed bodies.
fn still(packed_bytes: usize) -> (Binance, Marketd) {
    let names: Vec<String> = (0..2000).map(|n| format!("A{n}/USDT")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let exchange = exchange_of(&names);
    let source = with(source("fake", &exchange), "staleAfterMs", json!(3_600_000));
    let limits = json!({ "compressedBytes": packed_bytes });
    let marketd = start(&with(config(&[source]), "limits", limits));
    silence(&exchange);
    (exchange, marketd)
}

/// Twenty quotes from this one on.
fn twenty(from: usize) -> String {
    let names: Vec<String> = (from..from + 20).map(|n| format!("A{n}USDT")).collect();
    format!("/api/v1/quotes?symbols={}", names.join(","))
}

#[test]
fn without_room_for_packed_bodies_nothing_leaves_in_gzip() {
    let (_exchange, marketd) = still(0);
    let answer = ask_all(marketd.addr(), &[ask("GET", &twenty(0), GZIP)]).remove(0);
    assert_eq!((answer.status, is_packed(&answer)), (200, false));
    assert_eq!(answer.header("Vary"), None);
    assert!(answer.body.len() > 1024);
}
