//! Answers that leave in gzip: which do, what their heads say, and that what they unpack to is what
//! leaves as it is. In a build without the feature, that none does.

use crate::support::*;
use flate2::read::GzDecoder;
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

#[cfg(feature = "page")]
#[test]
fn each_list_that_clients_poll_is_kept() {
    let marketd = demo();
    let kept = || {
        let page = get(marketd.addr(), "/metrics");
        let after = page.text().split("\nmarketd_http_packed_bytes ").nth(1).expect("it is there");
        after.lines().next().expect("a value").parse::<usize>().expect("a count")
    };
    let before = kept();
    let lists = ["BTC/USDT,ETH/USDT,SOL/USDT,XRP/USDT", "ADA/USDT,BNB/USDT,DOGE/USDT,LINK/USDT"];
    let targets = lists.map(|list| format!("/udf/quotes?symbols={list}"));
    let answers = ask_all(marketd.addr(), &targets.map(|target| ask("GET", &target, GZIP)));
    assert!(answers.iter().all(is_packed));
    let both: usize = answers.iter().map(|it| it.body.len()).sum();
    assert!(kept() >= before + both, "{} after {before} and {both}", kept());
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

/// A request with a condition in which `PLAIN` stands for the tag of the plain body and `GZIP` for that of the packed
/// one; the status, and whose tag the answer has.
const CONDITIONS: [(&str, &str, u16, &str); 16] = [
    ("GET", "If-None-Match: PLAIN", 304, "PLAIN"),
    // Who does not take gzip cannot hold it, nor be sent it.
    ("GET", "If-None-Match: GZIP", 200, "PLAIN"),
    ("GET", "If-Match: GZIP", 412, ""),
    ("GET", "If-None-Match: *", 304, "PLAIN"),
    ("GET", "If-Match: PLAIN", 200, "PLAIN"),
    ("GET gzip", "If-None-Match: PLAIN", 304, "PLAIN"),
    ("GET gzip", "If-None-Match: GZIP", 304, "GZIP"),
    ("HEAD gzip", "If-None-Match: GZIP", 304, "GZIP"),
    ("GET gzip", "If-None-Match: \"x\", W/PLAIN, GZIP", 304, "GZIP"),
    ("GET gzip", "If-None-Match: *", 304, "GZIP"),
    ("GET gzip", "If-Match: PLAIN", 200, "PLAIN"),
    ("GET gzip", "If-Match: GZIP", 200, "GZIP"),
    ("GET gzip", "If-Match: *", 200, "GZIP"),
    ("GET gzip", "If-Match: \"x\"", 412, ""),
    ("GET gzip", "If-None-Match: \"x\"", 200, "GZIP"),
    ("GET", "If-None-Match: \"x\"", 200, "PLAIN"),
];

#[test]
fn a_condition_is_met_by_the_tag_of_what_the_client_may_have() {
    let marketd = demo();
    for target in PACKED {
        eventually(LONG, || {
            let tags = ask_all(marketd.addr(), &[ask("GET", target, ""), ask("GET", target, GZIP)]);
            let [plain, packed] = [tags[0].header("ETag")?, tags[1].header("ETag")?];
            let tagged = |text: &str| text.replace("PLAIN", plain).replace("GZIP", packed);
            let asked = CONDITIONS.map(|(how, condition, ..)| {
                let (method, gzip) = how.split_once(' ').map_or((how, ""), |it| (it.0, GZIP));
                ask(method, target, &format!("{gzip}{}\r\n", tagged(condition)))
            });
            let answers = ask_all(marketd.addr(), &asked);
            let tag = |at: usize| answers[at].header("ETag").unwrap_or_default();
            if tag(15) != plain || tag(14) != packed {
                return None;
            }
            for (at, (how, condition, status, whose)) in CONDITIONS.into_iter().enumerate() {
                let (answer, shown) = (&answers[at], format!("{how} {target} {condition}"));
                assert_eq!((answer.status, tag(at)), (status, &*tagged(whose)), "{shown}");
                assert!(answer.header("Cache-Control").is_some(), "{shown}");
                assert!(answer.header("Date").is_some(), "{shown}");
                assert_eq!(answer.header("Access-Control-Allow-Origin"), Some("*"));
                if status != 412 {
                    assert_eq!(answer.header("Vary"), Some("Accept-Encoding"), "{shown}");
                }
                let is_bare = answer.body.is_empty() && !is_packed(answer);
                assert!(status != 304 || is_bare, "{shown}");
            }
            Some(())
        });
    }
}
