//! Every limit of a client's connection at one below, at it, and one above.
//!
//! That no further answer is begun above the high water of output, and that whoever takes some of it stays, the
//! simulation judges (`tests/sim/driver.rs`, `tests/sim/watch.rs`).

use crate::requests::bench::{Bench, at};
use crate::requests::table::PROBE;
use crate::support::count;
use marketd::config::Limits;
use marketd::http::body::{EXTENSION_BYTES, TRAILER_BYTES};
use marketd::table::Key;
use std::net::IpAddr;
use std::time::Duration;

const GET: &str = "GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n";

/// A request for something long.
const DOCUMENT: &str = "GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n";

/// A request that is not whole.
const HALF: &str = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab";

/// Sends it whole, in two halves, in pieces of seven, and byte by byte unless it is long: the same, and as
/// expected.
#[track_caller]
fn check(limits: &Limits, raw: impl AsRef<[u8]>, expected: &str) {
    let raw = raw.as_ref();
    let mut bench = Bench::new(limits.clone());
    let whole = bench.run([raw]);
    let shown = raw[..raw.len().min(100)].escape_ascii();
    assert_eq!(whole.summary(), expected, "{} bytes: {shown}", raw.len());
    let drop = if raw.len() < 1000 { 1 } else { 7 };
    for size in [raw.len().div_ceil(2), 7, drop] {
        let found = bench.run(raw.chunks(size));
        assert_eq!(found, whole, "{} bytes by {size}: {shown}", raw.len());
    }
    bench.check_empty();
}

/// Sends it one byte below a limit, at it, and one above it: `make` makes a request of that length, to
/// `/health/live`.
#[track_caller]
fn check_around(limits: &Limits, limit: usize, refusal: &str, make: impl Fn(usize) -> String) {
    for bytes in [limit - 1, limit, limit + 1] {
        let is_fine = bytes <= limit;
        let expected = if is_fine { "200, 404 not_found, open" } else { refusal };
        check(limits, make(bytes) + PROBE, expected);
    }
}

const LINE: &str = "GET /health/live HTTP/1.1\r\n";
const HOST: &str = "Host: h\r\n";

fn x(count: usize) -> String {
    "x".repeat(count)
}

#[test]
fn a_request_line_has_a_limit_that_counts_it_alone() {
    const LONG: &str = "414 uri_too_long, shut";
    assert_eq!(Limits::default().request_line_bytes, 8192);
    for most in [50, 8192] {
        let limits = Limits { request_line_bytes: most, ..Limits::default() };
        for (before, line) in [
            ("", "GET /health/live? HTTP/1.1"),
            ("\r\n", "GET /health/live? HTTP/1.1"),
            ("", "GET http://h/health/live? HTTP/1.1"),
        ] {
            check_around(&limits, most, LONG, |bytes| {
                let query = format!("?{} ", x(bytes - line.len()));
                format!("{before}{}\r\n{HOST}\r\n", line.replace("? ", &query))
            });
        }
    }
    // A fault within the limit comes first, one behind it never counts; and the line need not come to its end.
    let limits = Limits { request_line_bytes: 40, ..Limits::default() };
    let line = |bytes: usize, rest: &str| format!("GET /{} HTTP/1.1{rest}", x(bytes - 14));
    for (raw, expected) in [
        (x(40), "open"),
        (x(41), LONG),
        (x(100_000), LONG),
        (format!("GET /{}", x(100_000)), LONG),
        (format!("G\0T /\r\n{HOST}\r\n"), "400 bad_request, shut"),
        (format!("G\0T /{}", x(80)), "400 bad_request, shut"),
        (format!("GET /{}\0", x(80)), LONG),
        (line(60, "\r\nBad field\r\n\r\n"), LONG),
        (line(38, "0\r\n\r\n"), "505 http_version_not_supported, shut"),
        (line(39, "0\r\n\r\n"), "505 http_version_not_supported, shut"),
        (line(40, "0\r\n\r\n"), LONG),
        (line(40, "0x\r\n\r\n"), LONG),
        (format!("GET / HTTP/1.{}", "1".repeat(80)), LONG),
    ] {
        check(&limits, raw, expected);
    }
}

#[test]
fn a_head_has_a_limit_that_counts_all_of_it() {
    const LARGE: &str = "431 headers_too_large, shut";
    assert_eq!(Limits::default().head_bytes, 16_384);
    let head = |before: &str, bytes: usize| {
        let fixed = format!("{before}{LINE}{HOST}A: \r\n\r\n").len();
        format!("{before}{LINE}{HOST}A: {}\r\n\r\n", x(bytes - fixed))
    };
    for most in [60, 61, 200, 16_384] {
        let limits = Limits { head_bytes: most, request_line_bytes: 2 * most, ..Limits::default() };
        // Empty lines in front are bytes of it, also when they came one by one.
        let blank = "\r\n".repeat(most / 20);
        for before in ["", "\r\n", &*blank] {
            check_around(&limits, most, LARGE, |bytes| head(before, bytes));
        }
        let long = x((50 * most).min(100_000));
        for (raw, expected) in [
            (head("", 2 * most), LARGE),
            (format!("GET /{}", x(most)), LARGE),
            (format!("{LINE}{HOST}A: {long}"), LARGE),
            (format!("{LINE}{HOST}{long}"), LARGE),
            (format!("{LINE}{HOST}A: \0{long}"), "400 bad_request, shut"),
            (format!("{}\0", head("", most + 20)), LARGE),
            // They alone, which are counted anew for each request.
            ("\r\n".repeat(most / 2 - 1), "open"),
            ("\r\n".repeat(most.div_ceil(2)), LARGE),
            ("\r\n".repeat(5 * most), LARGE),
            (format!("{blank}{GET}").repeat(3), "200, 200, 200, open"),
        ] {
            check(&limits, raw, expected);
        }
    }
}

#[test]
fn the_fields_of_a_head_have_a_limit() {
    assert_eq!(Limits::default().head_fields, 64);
    for most in [2, 64, 256] {
        let limits = Limits { head_fields: most, ..Limits::default() };
        check_around(&limits, most, "431 headers_too_large, shut", |fields| {
            format!("{LINE}{HOST}{}\r\n", "A: b\r\n".repeat(fields - 1))
        });
    }
}

#[test]
fn a_body_has_a_limit() {
    const LARGE: &str = "413 payload_too_large, shut";
    let limits = Limits::default();
    assert_eq!(limits.body_bytes, 65_536);
    let chunks = |sizes: &[usize]| {
        let chunks = sizes.iter().map(|size| format!("{size:x}\r\n{}\r\n", x(*size)));
        let chunks: String = chunks.collect();
        format!("{LINE}{HOST}Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
    };
    check_around(&limits, limits.body_bytes, LARGE, |bytes| {
        format!("{LINE}{HOST}Content-Length: {bytes}\r\n\r\n{}", x(bytes))
    });
    check_around(&limits, limits.body_bytes, LARGE, |bytes| chunks(&[bytes]));
    // Of all chunks together.
    check_around(&limits, limits.body_bytes, LARGE, |bytes| chunks(&[1000, bytes - 1000]));
    let none = Limits { body_bytes: 0, ..Limits::default() };
    check(&none, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na", LARGE);
    check(&none, GET, "200, open");
}

#[test]
fn what_surrounds_chunks_has_limits() {
    const LARGE: &str = "413 payload_too_large, shut";
    let limits = Limits::default();
    let head = format!("{LINE}{HOST}Transfer-Encoding: chunked\r\n\r\n");
    // Over all chunks and fields, not in each.
    check_around(&limits, EXTENSION_BYTES, LARGE, |bytes| {
        format!("{head}0;{}\r\n\r\n", x(bytes - 1))
    });
    check_around(&limits, EXTENSION_BYTES, LARGE, |bytes| {
        let half = EXTENSION_BYTES / 2;
        format!("{head}1;{}\r\nx\r\n0;{}\r\n\r\n", x(half - 1), x(bytes - half - 1))
    });
    check_around(&limits, TRAILER_BYTES, LARGE, |bytes| {
        format!("{head}0\r\nA:{}\r\n\r\n", x(bytes - 4))
    });
    check_around(&limits, TRAILER_BYTES, LARGE, |bytes| {
        let half = TRAILER_BYTES / 2;
        format!("{head}0\r\nA:{}\r\nB:{}\r\n\r\n", x(half - 4), x(bytes - half - 4))
    });
    // A flood of small ones.
    check(&limits, format!("{head}{}", "1;abcdefg\r\nx\r\n".repeat(4000)), LARGE);
}

#[test]
fn a_connection_has_a_limit_of_requests() {
    let limits = Limits { requests_per_connection: 3, ..Limits::default() };
    check(&limits, GET.repeat(2), "200, 200, open");
    for many in [3, 4, 50] {
        check(&limits, GET.repeat(many), "200, 200, 200, shut");
    }
    check(&limits, format!("{GET}{GET}GARBAGE\r\n\r\n"), "200, 200, 400 bad_request, shut");
}

/// Deadlines are looked at once a second. Each in its time: `ends.rs`.
pub const SWEEP: Duration = Duration::from_secs(1);

#[test]
fn later_bytes_renew_no_deadline() {
    let body = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\n";
    for (begin, more, limit, expected) in [
        ("GET /", "x", 10, "408 request_timeout, shut"),
        (body, "x", 10, "408 request_timeout, shut"),
        // Nor do empty lines renew that of an idle connection.
        ("", "\r\n", 75, "shut"),
    ] {
        let mut bench = Bench::new(Limits::default());
        let key = bench.connect();
        bench.send(key, begin.as_bytes());
        let mut seconds = 0;
        while !bench.is_shut(key) {
            seconds += 1;
            bench.pass(Duration::from_secs(1));
            bench.send(key, more.as_bytes());
        }
        assert!((limit..=limit + 1).contains(&seconds), "{begin:?}: {seconds} s");
        assert_eq!(bench.summary(key), expected);
    }
}

/// A number of the JSON metrics.
fn figure(bench: &mut Bench, name: &str) -> usize {
    let page = bench.get("/api/v1/metrics");
    let (_, rest) = page.rsplit_once(&format!("\"{name}\":")).expect("a figure");
    let digits = rest.split(|char: char| !char.is_ascii_digit()).next();
    digits.and_then(|it| it.parse().ok()).expect("a number")
}

#[test]
fn what_all_clients_together_leave_unread_has_a_limit() {
    let limits = Limits { output_total: 1_048_576, ..Limits::default() };
    let mut bench = Bench::configured(limits.clone(), |config| {
        let more = (0..500).map(|at| format!("A{at}/USDT"));
        config.sources[0].symbols.extend(more);
    });
    let list = "GET /api/v1/categories/usdt/markets HTTP/1.1\r\nHost: h\r\n\r\n";
    let tick = Duration::from_millis(1);
    let steady = bench.connect_with(0);
    bench.send(steady, DOCUMENT.as_bytes());
    let mut rude = Vec::new();
    let mut turned_away = 0;
    for _ in 0..100 {
        let key = bench.connect_with(0);
        bench.send(key, DOCUMENT.repeat(5).as_bytes());
        rude.push(key);
        bench.pass(tick);
        // Slowly, and always a little.
        bench.feed(steady, 10);
        let pending = figure(&mut bench, "bytesPending");
        assert!(pending <= limits.output_total, "{pending} bytes wait");
        // Whoever reads is answered, whatever others do.
        let key = bench.connect();
        bench.send(key, GET.as_bytes());
        assert_eq!(bench.summary(key), "200, open");
        // What takes long waits for better times, from half of the limit on.
        bench.send(key, list.as_bytes());
        let waits = pending >= limits.output_total / 2;
        let expected = if waits { "200, 503 overloaded, open" } else { "200, 200, open" };
        assert_eq!(bench.summary(key), expected, "{pending} bytes wait");
        turned_away += u32::from(waits);
        bench.end(key);
    }
    assert!(turned_away > 10);
    assert!(!bench.is_closed(steady), "it has made progress all the time");
    let gone = rude.iter().filter(|key| bench.is_closed(**key)).count();
    assert!(gone > 50, "{gone} of 100");
    let last = rude.pop().expect("there were some");
    assert!(!bench.is_closed(last), "the slowest are closed first");
    for key in [rude, vec![steady, last]].concat() {
        bench.feed(key, usize::MAX);
        bench.end(key);
    }
    assert_eq!(figure(&mut bench, "bytesPending"), 0);
    bench.check_empty();
}

/// A request that a full service refuses.
const ANY: &[u8] = b"GET /api/v1/categories HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn at_the_limit_the_address_that_holds_most_makes_room_for_the_others() {
    let (greedy, other) = (at("192.0.2.1"), at("192.0.2.2"));
    let limits = Limits { max_connections: 4, ..Limits::default() };
    let mut bench = Bench::new(limits);
    let stream = b"GET /api/v1/stream?symbols=BTC/USDT HTTP/1.1\r\nHost: h\r\n\r\n";
    let connect = |bench: &mut Bench, peer: IpAddr, bytes: &[u8]| {
        let key = bench.connect_from(peer).expect("there is room");
        bench.pass(Duration::from_millis(20));
        bench.send(key, bytes);
        key
    };
    let keys = [&stream[..], stream, ANY, ANY].map(|it| connect(&mut bench, greedy, it));
    // It does not take place of itself.
    let refused = connect(&mut bench, greedy, ANY);
    assert_eq!(bench.summary(refused), "503 unavailable, shut");
    bench.end(refused);
    let served = connect(&mut bench, other, ANY);
    assert_eq!(bench.summary(served), "200, open");
    assert!(bench.is_closed(keys[2]), "the one that has been idle for longest");
    assert!(!bench.is_closed(keys[3]) && !bench.is_closed(keys[0]));
    // Both have as many then: neither makes room for the other.
    let served = connect(&mut bench, other, ANY);
    assert_eq!(bench.summary(served), "200, open");
    assert!(bench.is_closed(keys[3]));
    let refused = connect(&mut bench, other, ANY);
    assert_eq!(bench.summary(refused), "503 unavailable, shut");
    bench.end(refused);
    // Without an idle one, its oldest stream goes.
    let third = at("192.0.2.3");
    let served = connect(&mut bench, third, ANY);
    assert_eq!(bench.summary(served), "200, open");
    let closed = keys.map(|key| bench.is_closed(key));
    assert!(closed == [true, false, true, true] || closed == [false, false, true, true]);
    bench.end(served);
    let closes = bench.closes();
    assert_eq!(closes["made_room"], 3, "{closes:?}");
}

#[test]
fn at_the_limit_of_streams_the_address_with_most_makes_room_for_the_others() {
    let (greedy, other) = (at("192.0.2.1"), at("192.0.2.2"));
    let mut bench = Bench::new(Limits { streams: 3, ..Limits::default() });
    let stream = b"GET /api/v1/stream?symbols=* HTTP/1.1\r\nHost: h\r\n\r\n";
    let open = |bench: &mut Bench, peer: IpAddr| {
        let key = bench.connect_from(peer).expect("there is room");
        bench.send(key, stream);
        bench.pass(Duration::from_millis(20));
        key
    };
    let is_streaming = |bench: &Bench, key: Key| {
        !bench.is_closed(key) && bench.got(key).starts_with(b"HTTP/1.1 200 OK\r\n")
    };
    let first = [(); 3].map(|()| open(&mut bench, greedy));
    let refused = open(&mut bench, greedy);
    assert_eq!(bench.summary(refused), "503 unavailable, open", "not for itself");
    // A request that opens no stream is told that there would be room, and takes it from nobody.
    for raw in [
        &b"HEAD /api/v1/stream?symbols=* HTTP/1.1\r\nHost: h\r\n\r\n"[..],
        b"GET /api/v1/stream?symbols=* HTTP/1.1\r\nHost: h\r\nIf-Match: \"x\"\r\n\r\n",
    ] {
        let key = bench.connect_from(other).expect("there is room");
        bench.send(key, raw);
        bench.pass(Duration::from_millis(20));
        assert!(!bench.got(key).starts_with(b"HTTP/1.1 503 "));
        assert_eq!(first.map(|key| bench.is_closed(key)), [false; 3]);
    }
    let second = open(&mut bench, other);
    assert!(is_streaming(&bench, second));
    assert_eq!(first.map(|key| bench.is_closed(key)), [true, false, false], "its oldest one");
    let refused = open(&mut bench, other);
    assert_eq!(bench.summary(refused), "503 unavailable, open", "both would have as many");
    assert!(is_streaming(&bench, first[1]) && is_streaming(&bench, second));
    assert_eq!(bench.closes()["made_room"], 1);
}

#[test]
fn connections_in_all_have_a_limit() {
    let limits = Limits { max_connections: 3, ..Limits::default() };
    let mut bench = Bench::new(limits);
    let clients: Vec<_> = (0..3).map(|_| bench.connect()).collect();
    let refused = bench.connect();
    bench.send(refused, ANY);
    assert_eq!(bench.summary(refused), "503 unavailable, shut");
    bench.end(refused);
    // But a probe is told that the service lives, and that it is starting.
    for path in ["/health", "/health/live", "/health/ready"] {
        let probe = bench.connect();
        bench.send(probe, format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        let expected = if path == "/health/live" { "200, shut" } else { "503, shut" };
        assert_eq!(bench.summary(probe), expected, "{path}");
        bench.end(probe);
    }
    for key in &clients {
        assert_eq!(bench.summary(*key), "open");
    }
    // There is room at once where one has left.
    bench.end(clients[0]);
    let next = bench.connect();
    bench.send(next, GET.as_bytes());
    assert_eq!(bench.summary(next), "200, open");
    // Those that are told so are bounded too: the newest stay, so that a probe finds a place.
    let refused: Vec<_> = (0..100).map(|_| bench.connect()).collect();
    let open: Vec<_> = refused.iter().filter(|key| !bench.is_closed(**key)).copied().collect();
    assert_eq!(open, refused[68..]);
    bench.send(refused[99], GET.as_bytes());
    assert_eq!(bench.summary(refused[99]), "200, shut");
    for key in [refused, vec![next, clients[1], clients[2]]].concat() {
        bench.end(key);
    }
    let closes = bench.closes();
    assert_eq!(closes["refused"], 1 + 3 + 100, "{closes:?}");
    assert_eq!(count(&bench.get("/metrics"), "marketd_http_rejected_total"), 1);
    bench.check_empty();
}

#[test]
fn connections_of_one_address_have_a_limit_where_one_is_set() {
    let limits = Limits { connections_per_address: 2, ..Limits::default() };
    let mut bench = Bench::new(limits);
    let (here, there) = (at("192.0.2.1"), at("192.0.2.2"));
    let first = bench.connect_from(here).expect("there is room");
    let second = bench.connect_from(here).expect("there is room");
    let third = bench.connect_from(here).expect("it is told");
    bench.send(third, ANY);
    assert_eq!(bench.summary(first), "open");
    assert_eq!(bench.summary(second), "open");
    assert_eq!(bench.summary(third), "503 unavailable, shut");
    // Others are not concerned.
    let other = bench.connect_from(there).expect("there is room");
    assert_eq!(bench.summary(other), "open");
    // Few are told; more are dropped, so that one address does not fill the house.
    let told: Vec<_> = (0..50).map_while(|_| bench.connect_from(here)).collect();
    assert_eq!(told.iter().filter(|key| !bench.is_closed(**key)).count(), 32);
    for key in [third, first].into_iter().chain(told) {
        bench.end(key);
    }
    let next = bench.connect_from(here).expect("there is room");
    assert_eq!(bench.summary(next), "open");
    for key in [second, other, next] {
        bench.end(key);
    }
    bench.check_empty();
    // Off, unless it is set.
    let mut bench = Bench::new(Limits::default());
    for _ in 0..200 {
        let key = bench.connect_from(here).expect("there is room");
        assert_eq!(bench.summary(key), "open");
    }
}

#[test]
fn from_half_of_that_on_who_takes_nothing_goes_and_who_reads_stays() {
    let limits = Limits { output_total: 1_048_576, ..Limits::default() };
    let mut bench = Bench::new(limits.clone());
    // Half of them have begun a request that never comes whole: they are in nobody's way, and yet
    // their answers wait.
    let mut rude = Vec::new();
    while figure(&mut bench, "bytesPending") <= limits.output_total / 2 {
        let key = bench.connect_with(0);
        let raw = match rude.len() % 2 {
            0 => DOCUMENT.to_string(),
            _ => GET.repeat(90) + HALF,
        };
        bench.send(key, raw.as_bytes());
        rude.push(key);
    }
    let steady = bench.connect_with(0);
    bench.send(steady, DOCUMENT.as_bytes());
    for _ in 0..25 {
        // What is at hand is sent, packed or not.
        let key = bench.connect();
        let packed = DOCUMENT.replace("\r\n\r\n", "\r\nAccept-Encoding: gzip\r\n\r\n");
        bench.send(key, packed.as_bytes());
        bench.pass(Duration::from_millis(100));
        assert!(bench.got(key).starts_with(b"HTTP/1.1 200 OK\r\n"));
        bench.end(key);
        bench.feed(steady, 10);
    }
    let gone = rude.iter().filter(|key| bench.is_closed(**key)).count();
    assert!(gone > 1, "{gone} of {} are closed", rude.len());
    assert_eq!(bench.closes()["slow_reader"], gone as u64);
    assert!(figure(&mut bench, "bytesPending") <= limits.output_total / 2);
    assert!(!bench.is_closed(steady));
}

#[test]
fn who_leaves_a_request_half_sent_does_not_have_others_closed_in_his_stead() {
    let limits = Limits {
        output_total: 1_048_576,
        body_timeout: Duration::from_secs(10),
        ..Limits::default()
    };
    let mut bench = Bench::new(limits.clone());
    let steady = bench.connect_with(0);
    bench.send(steady, GET.repeat(20).as_bytes());
    for _ in 0..100 {
        let key = bench.connect_with(0);
        bench.send(key, (GET.repeat(90) + HALF).as_bytes());
        bench.pass(Duration::from_millis(1));
        bench.feed(steady, 10);
        let pending = figure(&mut bench, "bytesPending");
        assert!(pending <= limits.output_total, "{pending} bytes wait");
    }
    assert!(!bench.is_closed(steady));
}

#[test]
fn what_all_clients_together_hold_of_requests_has_a_limit() {
    let most = 400_000;
    let mut bench = Bench::new(Limits { input_total: most, ..Limits::default() });
    let part = format!("GET /{} HTTP/1.1\r\n", "x".repeat(3000));
    let slow: Vec<_> = (0..400)
        .map(|_| {
            let key = bench.connect();
            bench.send(key, part.as_bytes());
            bench.pass(Duration::from_millis(1));
            key
        })
        .collect();
    let open = slow.iter().filter(|key| !bench.is_closed(**key)).count();
    assert!(open * part.len() <= most, "{open} hold {} bytes each", part.len());
    assert!(open * part.len() > most / 2, "{open} are left");
    // Those go that have been at it for the longest time, and nobody else.
    assert!(slow[..400 - open].iter().all(|key| bench.is_closed(*key)));
    assert_eq!(bench.closes()["slow_sender"], 400 - open as u64);
    let key = slow[399];
    bench.send(key, b"Host: h\r\n\r\n");
    assert_eq!(bench.summary(key), "404 not_found, open");
}
