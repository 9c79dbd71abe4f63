//! What one connection may cost before the others have their turn.

use crate::requests::answers::read_answers;
use crate::requests::bench::Bench;
use marketd::config::Limits;
use marketd::table::Key;

/// More requests than any share holds, and as many as are read at once.
const BATCH: usize = 300;

/// Bytes of responses in one share, and as many again for the last one.
const SHARE: usize = 128 * 1024;

/// Short responses in one share.
const SHORT: usize = 64;

fn stepped() -> Bench {
    let mut bench = Bench::new(Limits::default());
    bench.is_stepped = true;
    bench
}

fn batch(line: &str) -> Vec<u8> {
    let numbers = 0..BATCH;
    let batch = numbers.map(|number| format!("{line} HTTP/1.1\r\nHost: h\r\nN: {number}\r\n\r\n"));
    batch.collect::<String>().into_bytes()
}

/// Sends a batch at once; how many bytes each call made, to the last one or so many.
fn shares(line: &str, most: usize) -> Vec<usize> {
    let mut bench = stepped();
    let key = bench.connect();
    let batch = batch(line);
    assert_eq!(bench.send(key, &batch), batch.len());
    let mut sizes = vec![bench.got(key).len()];
    while sizes.len() < most && bench.core.has_work() {
        let before = bench.got(key).len();
        bench.step();
        sizes.push(bench.got(key).len() - before);
    }
    sizes
}

/// How many responses a client has.
fn responses(bench: &Bench, key: Key) -> usize {
    read_answers(bench.got(key)).expect("they are whole").len()
}

#[test]
fn one_call_serves_at_most_a_share_of_a_pipelined_batch() {
    let lines = [
        "GET /metrics",
        "GET /openapi.json",
        "GET /api/v1/metrics",
        "GET /health",
        "GET /api/v1/nothing",
    ];
    for line in lines {
        let sizes = shares(line, usize::MAX);
        let largest = sizes.iter().max().expect("there is one");
        assert!(*largest <= SHARE, "{line}: {largest} bytes in one call");
        assert!(sizes.len() >= BATCH / SHORT, "{line}: {} calls", sizes.len());
    }
}

#[test]
fn a_share_counts_what_is_made_and_not_sent() {
    // The body is made for HEAD too, and a 304 is told of a list only when the list is known.
    let mut bench = stepped();
    let key = bench.connect();
    bench.send(key, b"HEAD /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = bench.got(key).len();
    let sizes = shares("HEAD /openapi.json", 10);
    assert!(sizes.iter().all(|size| *size <= 2 * head), "{sizes:?} of {head} bytes");
}

#[test]
fn a_second_client_is_served_before_the_batch_of_the_first_one_is_done() {
    let mut bench = stepped();
    let greedy = bench.connect();
    bench.send(greedy, &batch("GET /metrics"));
    let other = bench.connect();
    bench.send(other, b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(!bench.got(other).is_empty());
    let before = responses(&bench, greedy);
    assert!(before <= SHORT, "{before} of {BATCH} came before");
    // Nothing more is read from the first one, and nothing is lost.
    assert!(!bench.core.wants_read(greedy) && bench.core.wants_read(other));
    while bench.core.has_work() {
        assert!(bench.step().into_iter().all(|key| key == greedy));
    }
    assert_eq!(responses(&bench, greedy), BATCH);
    assert!(bench.core.wants_read(greedy), "a request that comes now is read");
}

#[test]
fn those_who_wait_for_their_turn_are_served_one_after_the_other() {
    let mut bench = stepped();
    let keys = [(); 8].map(|()| bench.connect());
    for key in keys {
        bench.send(key, &batch("GET /metrics"));
    }
    for round in 0..5 {
        for key in keys {
            assert_eq!(bench.step(), [key], "round {round}");
        }
    }
}

#[test]
fn metrics_wait_for_their_turn_and_keep_their_place_in_the_batch() {
    for path in ["/metrics", "/metric%73"] {
        let mut bench = stepped();
        let key = bench.connect();
        let line = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        bench.send(key, [line("/health/live"), line(path), line("/health")].concat().as_bytes());
        assert_eq!(responses(&bench, key), 1, "one is at hand");
        while bench.core.has_work() {
            bench.step();
        }
        let text = String::from_utf8_lossy(bench.got(key)).into_owned();
        let metrics = text.find("marketd_uptime").expect("metrics");
        let begins = text.match_indices("HTTP/1.1 ").map(|(at, _)| at);
        let begins: Vec<usize> = begins.collect();
        assert_eq!(begins.len(), 3);
        assert!((begins[1]..begins[2]).contains(&metrics));
        assert!(bench.core.wants_read(key));
    }
}

#[test]
fn one_that_leaves_while_it_waits_for_its_turn_is_let_go() {
    let mut bench = stepped();
    let key = bench.connect();
    bench.send(key, &batch("GET /health"));
    assert!(!bench.core.wants_read(key), "it waits for its turn");
    bench.reset(key);
    assert!(bench.is_closed(key));
    while bench.core.has_work() {
        assert_eq!(bench.step(), []);
    }
    assert!(bench.core.outgoing(key).is_empty());
}

#[test]
fn who_has_never_said_anything_makes_place_for_who_does() {
    let mut bench = Bench::new(Limits { max_connections: 100, ..Limits::default() });
    let speaks = bench.connect();
    bench.send(speaks, b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n");
    let silent: Vec<Key> = (0..99).map(|_| bench.connect()).collect();
    // Somebody who has only just come may be about to speak.
    let any = b"GET /api/v1/categories HTTP/1.1\r\nHost: h\r\n\r\n";
    let refused = bench.connect();
    bench.send(refused, any);
    assert_eq!(bench.summary(refused), "503 unavailable, shut");
    bench.pass(std::time::Duration::from_secs(1));
    for gone in 0..99 {
        let key = bench.connect();
        bench.send(key, b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(bench.summary(key), "200, open", "{gone}");
        let closed = silent.iter().filter(|key| bench.is_closed(**key)).count();
        assert_eq!(closed, gone + 1);
        assert!(bench.is_closed(silent[gone]), "the oldest one");
    }
    let any = b"GET /api/v1/categories HTTP/1.1\r\nHost: h\r\n\r\n";
    let refused = bench.connect();
    bench.send(refused, any);
    assert_eq!(bench.summary(refused), "503 unavailable, shut");
    assert!(!bench.is_closed(speaks));
}
