//! Every limit of a client's connection at one below, at it, and one above.

use crate::requests::bench::Bench;
use crate::requests::table::PROBE;
use marketd::config::Limits;
use marketd::table::Key;
use std::net::IpAddr;
use std::time::Duration;

const GET: &str = "GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n";

/// Sends it whole, in two halves and in pieces of seven: the same, and as expected.
#[track_caller]
fn check(limits: &Limits, raw: &[u8], expected: &str) {
    let mut bench = Bench::new(limits.clone());
    let whole = bench.run([raw]);
    let halves = bench.run(raw.chunks(raw.len().div_ceil(2)));
    let sevens = bench.run(raw.chunks(7));
    assert_eq!(whole.summary(), expected, "{} bytes", raw.len());
    assert_eq!(halves, whole, "{} bytes in two halves", raw.len());
    assert_eq!(sevens, whole, "{} bytes in sevens", raw.len());
    bench.check_empty();
}

/// The length one below, at, and one above a limit, and whether it is still fine.
fn around(limit: usize) -> [(usize, bool); 3] {
    [(limit - 1, true), (limit, true), (limit + 1, false)]
}

#[test]
fn a_request_line_has_a_limit() {
    let limits = Limits::default();
    assert_eq!(limits.request_line_bytes, 8192);
    for (bytes, fine) in around(limits.request_line_bytes) {
        let query = "x".repeat(bytes - "GET /health/live? HTTP/1.1".len());
        let raw = format!("GET /health/live?{query} HTTP/1.1\r\nHost: h\r\n\r\n{PROBE}");
        let expected = match fine {
            true => "200, 404 not_found, open",
            false => "414 uri_too_long, shut",
        };
        check(&limits, raw.as_bytes(), expected);
        // In absolute form, and a path in place of a query.
        let path = "x".repeat(bytes - "GET http://h/ HTTP/1.1".len());
        let raw = format!("GET http://h/{path} HTTP/1.1\r\nHost: h\r\n\r\n{PROBE}");
        let expected = expected.replace("200", "404 not_found");
        check(&limits, raw.as_bytes(), &expected);
    }
    // It need not come to its end.
    let endless = "GET /".to_string() + &"x".repeat(100_000);
    check(&limits, endless.as_bytes(), "414 uri_too_long, shut");
    check(&limits, &[b'A'; 100_000], "414 uri_too_long, shut");
}

#[test]
fn a_head_has_a_limit() {
    let limits = Limits::default();
    assert_eq!(limits.head_bytes, 16_384);
    let expected = |fine| match fine {
        true => "200, 404 not_found, open",
        false => "431 headers_too_large, shut",
    };
    for (bytes, fine) in around(limits.head_bytes) {
        let fixed = "GET /health/live HTTP/1.1\r\nHost: h\r\nA: \r\n\r\n".len();
        let value = "x".repeat(bytes - fixed);
        let raw = format!("GET /health/live HTTP/1.1\r\nHost: h\r\nA: {value}\r\n\r\n{PROBE}");
        check(&limits, raw.as_bytes(), expected(fine));
        // Empty lines in front are bytes of it, also when they came one by one.
        let value = "x".repeat(bytes - fixed - 2000);
        let blank = "\r\n".repeat(1000);
        let raw =
            format!("{blank}GET /health/live HTTP/1.1\r\nHost: h\r\nA: {value}\r\n\r\n{PROBE}");
        check(&limits, raw.as_bytes(), expected(fine));
    }
    let head = "GET /health/live HTTP/1.1\r\nHost: h\r\n";
    let endless = head.to_string() + &"A: b\r\n".repeat(20) + "A: " + &"x".repeat(100_000);
    check(&limits, endless.as_bytes(), "431 headers_too_large, shut");
    let endless = head.to_string() + &"x".repeat(100_000);
    check(&limits, endless.as_bytes(), "431 headers_too_large, shut");
}

#[test]
fn empty_lines_alone_have_a_limit() {
    let limits = Limits::default();
    let lines = limits.head_bytes / 2;
    check(&limits, "\r\n".repeat(lines - 1).as_bytes(), "open");
    check(&limits, "\r\n".repeat(lines).as_bytes(), "431 headers_too_large, shut");
    check(&limits, "\r\n".repeat(5 * lines).as_bytes(), "431 headers_too_large, shut");
    // They are counted anew for each request.
    let many = format!("{}{GET}", "\r\n".repeat(lines - 100)).repeat(3);
    check(&limits, many.as_bytes(), "200, 200, 200, open");
}

#[test]
fn the_fields_of_a_head_have_a_limit() {
    let limits = Limits::default();
    assert_eq!(limits.head_fields, 64);
    for (fields, fine) in around(limits.head_fields) {
        let others = "A: b\r\n".repeat(fields - 1);
        let raw = format!("GET /health/live HTTP/1.1\r\nHost: h\r\n{others}\r\n{PROBE}");
        let expected = match fine {
            true => "200, 404 not_found, open",
            false => "431 headers_too_large, shut",
        };
        check(&limits, raw.as_bytes(), expected);
    }
}

#[test]
fn a_body_has_a_limit() {
    let limits = Limits::default();
    assert_eq!(limits.body_bytes, 65_536);
    for (bytes, fine) in around(limits.body_bytes) {
        let expected = match fine {
            true => "200, 404 not_found, open",
            false => "413 payload_too_large, shut",
        };
        let body = "x".repeat(bytes);
        let get = "GET /health/live HTTP/1.1\r\nHost: h\r\n";
        let raw = format!("{get}Content-Length: {bytes}\r\n\r\n{body}{PROBE}");
        check(&limits, raw.as_bytes(), expected);
        let raw = format!(
            "{get}Transfer-Encoding: chunked\r\n\r\n{bytes:x}\r\n{body}\r\n0\r\n\r\n{PROBE}"
        );
        check(&limits, raw.as_bytes(), expected);
        // Of all chunks together.
        let (first, second) = body.split_at(1000);
        let (a, b) = (first.len(), second.len());
        let raw = format!(
            "{get}Transfer-Encoding: chunked\r\n\r\n{a:x}\r\n{first}\r\n{b:x}\r\n{second}\r\n0\r\n\r\n{PROBE}"
        );
        check(&limits, raw.as_bytes(), expected);
    }
    let none = Limits { body_bytes: 0, ..Limits::default() };
    let one = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na";
    check(&none, one.as_bytes(), "413 payload_too_large, shut");
    check(&none, GET.as_bytes(), "200, open");
}

#[test]
fn what_surrounds_chunks_has_limits() {
    let limits = Limits::default();
    let head = "GET /health/live HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let expected = |fine| match fine {
        true => "200, 404 not_found, open",
        false => "413 payload_too_large, shut",
    };
    for (bytes, fine) in around(marketd::http::body::EXTENSION_BYTES) {
        let extension = "x".repeat(bytes - 1);
        let raw = format!("{head}0;{extension}\r\n\r\n{PROBE}");
        check(&limits, raw.as_bytes(), expected(fine));
    }
    for (bytes, fine) in around(marketd::http::body::TRAILER_BYTES) {
        let value = "x".repeat(bytes - "A:\r\n".len());
        let raw = format!("{head}0\r\nA:{value}\r\n\r\n{PROBE}");
        check(&limits, raw.as_bytes(), expected(fine));
    }
    // A flood of small ones.
    let flood = format!("{head}{}", "1;abcdefg\r\nx\r\n".repeat(4000));
    check(&limits, flood.as_bytes(), "413 payload_too_large, shut");
}

#[test]
fn a_connection_has_a_limit_of_requests() {
    let limits = Limits { requests_per_connection: 3, ..Limits::default() };
    check(&limits, GET.repeat(2).as_bytes(), "200, 200, open");
    check(&limits, GET.repeat(3).as_bytes(), "200, 200, 200, shut");
    check(&limits, GET.repeat(4).as_bytes(), "200, 200, 200, shut");
    check(&limits, GET.repeat(50).as_bytes(), "200, 200, 200, shut");
    let bad = format!("{GET}{GET}GARBAGE\r\n\r\n");
    check(&limits, bad.as_bytes(), "200, 200, 400 bad_request, shut");
}

/// Deadlines are looked at once a second.
const SWEEP: Duration = Duration::from_secs(1);

/// Lets all but a millisecond of `span` pass: nothing happens. Then the rest: the connection ends
/// with this.
#[track_caller]
fn check_deadline(begin: &[&str], span: Duration, expected: &str) {
    let limits = Limits::default();
    let mut bench = Bench::new(limits);
    let key = bench.connect();
    for part in begin {
        assert_eq!(bench.send(key, part.as_bytes()), part.len());
    }
    let before = bench.summary(key);
    assert!(before.ends_with("open"), "{before}");
    bench.pass(span - Duration::from_millis(1));
    assert_eq!(bench.summary(key), before, "before its time");
    bench.pass(SWEEP + Duration::from_millis(2));
    assert_eq!(bench.summary(key), expected);
    bench.end(key);
    bench.check_empty();
}

#[test]
fn deadlines_come_in_their_time() {
    let limits = Limits::default();
    let half = "GET /health/live HTTP/1.1\r\nHost:";
    let body = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab";
    check_deadline(&[], limits.idle_timeout, "shut");
    check_deadline(&["\r\n"], limits.idle_timeout, "shut");
    check_deadline(&[GET], limits.idle_timeout, "200, shut");
    check_deadline(&["G"], limits.head_timeout, "408 request_timeout, shut");
    check_deadline(&[half], limits.head_timeout, "408 request_timeout, shut");
    check_deadline(&[GET, half], limits.head_timeout, "200, 408 request_timeout, shut");
    check_deadline(&[body], limits.body_timeout, "408 request_timeout, shut");
}

#[test]
fn later_bytes_renew_neither_the_deadline_of_a_head_nor_that_of_a_body() {
    let body = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\n";
    for begin in ["GET /", body] {
        let mut bench = Bench::new(Limits::default());
        let key = bench.connect();
        bench.send(key, begin.as_bytes());
        let mut seconds = 0;
        while !bench.is_shut(key) {
            seconds += 1;
            bench.pass(Duration::from_secs(1));
            bench.send(key, b"x");
        }
        assert!((10..=11).contains(&seconds), "{seconds} s");
        assert_eq!(bench.summary(key), "408 request_timeout, shut");
    }
    // Nor do empty lines renew that of an idle connection.
    let mut bench = Bench::new(Limits::default());
    let key = bench.connect();
    let mut seconds = 0;
    while !bench.is_shut(key) {
        seconds += 1;
        bench.pass(Duration::from_secs(1));
        bench.send(key, b"\r\n");
    }
    assert!((75..=76).contains(&seconds), "{seconds} s");
}

#[test]
fn the_deadline_of_an_answer_is_renewed_by_progress_alone() {
    let limits = Limits::default();
    let mut bench = Bench::new(limits.clone());
    let key = bench.connect_with(0);
    bench.send(key, GET.as_bytes());
    // Slower than any whole answer may be, and never quiet for as long as it takes.
    for _ in 0..20 {
        bench.pass(limits.write_timeout - SWEEP);
        assert!(!bench.is_shut(key), "it makes progress");
        bench.feed(key, 1);
    }
    assert_eq!(bench.got(key).len(), 20);
    bench.pass(limits.write_timeout - Duration::from_millis(1));
    assert!(!bench.is_shut(key));
    bench.pass(SWEEP + Duration::from_millis(2));
    assert!(bench.is_closed(key), "nobody reads it");
    assert_eq!(bench.closes()["write_timeout"], 1);
}

#[test]
fn no_request_is_served_above_the_high_water_mark_of_output() {
    let limits = Limits { output_high_water: 5_000, ..Limits::default() };
    let mut bench = Bench::new(limits.clone());
    let key = bench.connect_with(0);
    let many = GET.repeat(200);
    bench.send(key, many.as_bytes());
    let pending = bench.core.outgoing(key).len();
    let answer = {
        let other = bench.connect();
        bench.send(other, GET.as_bytes());
        bench.got(other).len()
    };
    assert!(pending >= limits.output_high_water);
    assert!(pending < limits.output_high_water + answer, "{pending} bytes wait");
    assert!(!bench.core.wants_read(key), "more would have to be kept");
    bench.feed(key, usize::MAX);
    assert_eq!(bench.got(key).len(), 200 * answer, "every one of them is answered in the end");
    assert!(bench.core.wants_read(key));
}

/// A number of the JSON metrics.
fn figure(bench: &mut Bench, name: &str) -> usize {
    let page = bench.get("/api/v1/metrics");
    let (_, rest) = page.split_once(&format!("\"{name}\":")).expect("a figure");
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
    let document = "GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n";
    let list = "GET /api/v1/categories/usdt/markets HTTP/1.1\r\nHost: h\r\n\r\n";
    let tick = Duration::from_millis(1);
    let steady = bench.connect_with(0);
    bench.send(steady, document.as_bytes());
    let mut rude = Vec::new();
    let mut turned_away = 0;
    for _ in 0..100 {
        let key = bench.connect_with(0);
        bench.send(key, document.repeat(5).as_bytes());
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

#[test]
fn a_lingering_connection_ends_by_itself() {
    let limits = Limits::default();
    let mut bench = Bench::new(limits.clone());
    let key = bench.connect();
    bench.send(key, b"GARBAGE\r\n\r\n");
    assert_eq!(bench.summary(key), "400 bad_request, shut");
    assert!(!bench.is_closed(key), "what the client still sends is read");
    for _ in 0..10 {
        bench.send(key, &[b'x'; 10_000]);
    }
    bench.pass(limits.linger - Duration::from_millis(1));
    assert!(!bench.is_closed(key));
    bench.pass(SWEEP + Duration::from_millis(2));
    assert!(bench.is_closed(key));
    bench.check_empty();
}

/// A request that a full service refuses.
const ANY: &[u8] = b"GET /api/v1/categories HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn at_the_limit_the_address_that_holds_most_makes_room_for_the_others() {
    let at = |text: &str| text.parse::<IpAddr>().expect("an address");
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
    let at = |text: &str| text.parse::<IpAddr>().expect("an address");
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
    bench.check_empty();
}

#[test]
fn connections_of_one_address_have_a_limit_where_one_is_set() {
    let at = |text: &str| text.parse::<IpAddr>().expect("an address");
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
    let document = "GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n";
    let body = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab";
    // Half of them have begun a request that never comes whole: they are in nobody's way, and yet
    // their answers wait.
    let mut rude = Vec::new();
    while figure(&mut bench, "bytesPending") <= limits.output_total / 2 {
        let key = bench.connect_with(0);
        let raw = match rude.len() % 2 {
            0 => document.to_string(),
            _ => GET.repeat(90) + body,
        };
        bench.send(key, raw.as_bytes());
        rude.push(key);
    }
    let steady = bench.connect_with(0);
    bench.send(steady, document.as_bytes());
    for _ in 0..25 {
        // What is at hand is sent, packed or not.
        let key = bench.connect();
        let packed = document.replace("\r\n\r\n", "\r\nAccept-Encoding: gzip\r\n\r\n");
        bench.send(key, packed.as_bytes());
        bench.pass(Duration::from_millis(100));
        assert!(bench.got(key).starts_with(b"HTTP/1.1 200 OK\r\n"));
        bench.end(key);
        bench.feed(steady, 10);
    }
    let gone = rude.iter().filter(|key| bench.is_closed(**key)).count();
    assert!(gone > 1, "{gone} of {} are closed", rude.len());
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
    let body = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab";
    let steady = bench.connect_with(0);
    bench.send(steady, GET.repeat(20).as_bytes());
    for _ in 0..100 {
        let key = bench.connect_with(0);
        bench.send(key, (GET.repeat(90) + body).as_bytes());
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
