//! What one connection may cost before the others have their turn.

use crate::requests::answers::read_answers;
use crate::requests::bench::Bench;
use marketd::config::Limits;
use marketd::core::{Action, Core, Event, Service};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};

const NOW: Now = Now { mono: Mono(1_000_000), unix: UnixMs(1_700_000_000_000) };

/// More requests than any share holds.
const BATCH: usize = 3000;

/// Bytes of responses in one share, and as many again for the last one.
const SHARE: usize = 128 * 1024;

/// Short responses in one share.
const SHORT: usize = 64;

fn core() -> Core {
    Bench::new(Limits::default()).core
}

fn accept(core: &mut Core) -> Key {
    core.accept(None, Service::Both, NOW).expect("there is room")
}

/// Takes what a connection is to be sent, all of it, as a kernel with room does.
fn take(core: &mut Core, key: Key, got: &mut Vec<u8>) -> usize {
    let before = got.len();
    core.outgoing(key).each(|piece| {
        got.extend_from_slice(piece);
        true
    });
    let count = got.len() - before;
    if count > 0 {
        core.handle(key, Event::Sent(count), NOW);
    }
    count
}

fn actions(core: &mut Core) -> Vec<Action> {
    // The exchange, which cannot be reached, is nobody's business here.
    let all = std::iter::from_fn(|| core.poll_action());
    all.filter(|action| !matches!(action, Action::Connect(..))).collect()
}

fn batch(line: &str) -> Vec<u8> {
    let numbers = 0..BATCH;
    let batch = numbers.map(|number| format!("{line} HTTP/1.1\r\nHost: h\r\nN: {number}\r\n\r\n"));
    batch.collect::<String>().into_bytes()
}

/// Sends a batch at once; how many responses and how many bytes each call made, to the last one.
fn shares(core: &mut Core, line: &str, until: impl Fn(&mut Core, usize) -> bool) -> Vec<usize> {
    let (key, mut got) = (accept(core), Vec::new());
    let (mut sizes, mut calls) = (Vec::new(), 0);
    core.handle(key, Event::Received(&batch(line)), NOW);
    loop {
        let size = take(core, key, &mut got);
        let more = core.outgoing(key).len();
        assert_eq!(more, 0, "{line}: {more} more bytes were made by the call that sends");
        sizes.push(size);
        actions(core);
        calls += 1;
        if !until(core, calls) || !core.has_work() {
            break;
        }
        core.work(NOW);
    }
    sizes
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
        let sizes = shares(&mut core(), line, |_, _| true);
        let largest = sizes.iter().max().expect("there is one");
        assert!(*largest <= SHARE, "{line}: {largest} bytes in one call");
        assert!(sizes.len() >= BATCH / SHORT, "{line}: {} calls", sizes.len());
    }
}

#[test]
fn a_share_counts_what_is_made_and_not_sent() {
    // The body is made for HEAD too, and a 304 is told of a list only when the list is known.
    let mut core = core();
    let mut whole = Vec::new();
    let key = accept(&mut core);
    core.handle(key, Event::Received(b"HEAD /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n"), NOW);
    let head = take(&mut core, key, &mut whole);
    let sizes = shares(&mut core, "HEAD /openapi.json", |_, calls| calls < 10);
    assert!(sizes.iter().all(|size| *size <= 2 * head), "{sizes:?} of {head} bytes");
}

#[test]
fn a_second_client_is_served_before_the_batch_of_the_first_one_is_done() {
    let mut core = core();
    let (greedy, mut got) = (accept(&mut core), Vec::new());
    core.handle(greedy, Event::Received(&batch("GET /metrics")), NOW);
    take(&mut core, greedy, &mut got);
    let other = accept(&mut core);
    let mut answer = Vec::new();
    core.handle(other, Event::Received(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"), NOW);
    assert!(take(&mut core, other, &mut answer) > 0);
    let before = read_answers(&got).expect("they are whole").len();
    assert!(before <= SHORT, "{before} of {BATCH} came before");
    // Nothing more is read from the first one, and nothing is lost.
    assert!(!core.wants_read(greedy) && core.wants_read(other));
    while core.has_work() {
        core.work(NOW);
        for action in actions(&mut core) {
            assert_eq!(action, Action::Flush(greedy));
        }
        take(&mut core, greedy, &mut got);
    }
    assert_eq!(read_answers(&got).expect("they are whole").len(), BATCH);
    assert!(core.wants_read(greedy), "a request that comes now is read");
}

#[test]
fn those_who_wait_for_their_turn_are_served_one_after_the_other() {
    let mut core = core();
    let keys: Vec<Key> = (0..8).map(|_| accept(&mut core)).collect();
    let mut got = Vec::new();
    for key in &keys {
        core.handle(*key, Event::Received(&batch("GET /metrics")), NOW);
        take(&mut core, *key, &mut got);
    }
    for round in 0..5 {
        for key in &keys {
            core.work(NOW);
            assert_eq!(actions(&mut core), [Action::Flush(*key)], "round {round}");
            take(&mut core, *key, &mut got);
        }
    }
}

#[test]
fn metrics_wait_for_their_turn_and_keep_their_place_in_the_batch() {
    for path in ["/metrics", "/metric%73"] {
        let mut core = core();
        let (key, mut got) = (accept(&mut core), Vec::new());
        let line = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        let all = [line("/health/live"), line(path), line("/health")].concat();
        core.handle(key, Event::Received(all.as_bytes()), NOW);
        take(&mut core, key, &mut got);
        assert_eq!(read_answers(&got).expect("whole").len(), 1, "one is at hand");
        while core.has_work() {
            core.work(NOW);
            take(&mut core, key, &mut got);
        }
        let text = String::from_utf8(got).expect("text");
        let metrics = text.find("marketd_uptime").expect("metrics");
        let begins = text.match_indices("HTTP/1.1 ").map(|(at, _)| at);
        let begins: Vec<usize> = begins.collect();
        assert_eq!(begins.len(), 3);
        assert!((begins[1]..begins[2]).contains(&metrics));
        assert!(core.wants_read(key));
    }
}

#[test]
fn one_that_leaves_while_it_waits_for_its_turn_is_let_go() {
    let mut core = core();
    let key = accept(&mut core);
    core.handle(key, Event::Received(&batch("GET /health")), NOW);
    take(&mut core, key, &mut Vec::new());
    assert!(!core.wants_read(key), "it waits for its turn");
    let broken = marketd::core::Broken::Io(std::io::ErrorKind::ConnectionReset);
    core.handle(key, Event::Failed(&broken), NOW);
    assert_eq!(actions(&mut core), [Action::Close(key)]);
    core.closed(key);
    while core.has_work() {
        core.work(NOW);
        assert_eq!(actions(&mut core), []);
    }
    assert!(core.outgoing(key).is_empty());
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
