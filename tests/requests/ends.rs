//! Every end that a connection can have: its reason is counted, and no other.

use crate::desk::Desk;
use marketd::config::Limits;
use marketd::core::CloseReason;
use marketd::table::Key;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

const GET: &[u8] = b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n";

/// Longer than any deadline.
const AGES: Duration = Duration::from_secs(1000);

thread_local! {
    /// The reasons that were provoked.
    static SEEN: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// One connection, what happens to it, and the reason that is counted.
#[track_caller]
fn check(reason: CloseReason, happen: impl FnOnce(&mut Desk, Key)) {
    let limits = Limits { requests_per_connection: 3, ..Limits::default() };
    check_with(limits, reason, happen);
}

#[track_caller]
fn check_with(limits: Limits, reason: CloseReason, happen: impl FnOnce(&mut Desk, Key)) {
    let mut desk = Desk::new(limits);
    let before = desk.closes();
    let key = desk.connect();
    happen(&mut desk, key);
    assert!(desk.is_closed(key), "{reason:?}: it is over");
    let mut expected = before;
    // The page that was read before is a connection too: its client left after its answer.
    *expected.entry("client_closed".to_string()).or_default() += 1;
    *expected.entry(reason.name().to_string()).or_default() += 1;
    assert_eq!(desk.closes(), expected);
    SEEN.with_borrow_mut(|seen| seen.insert(reason.name().to_string()));
}

#[test]
fn every_end_is_counted_under_its_reason_and_every_reason_is_some_end() {
    clients_that_leave();
    clients_that_are_answered_for_the_last_time();
    clients_that_take_too_long();
    let all: BTreeSet<String> = CloseReason::NAMES.iter().map(|name| name.to_string()).collect();
    // Those in which the service itself has no room have tests of their own.
    let elsewhere = ["refused", "stopping", "made_room"];
    let here: BTreeSet<String> =
        all.into_iter().filter(|name| !elsewhere.contains(&name.as_str())).collect();
    SEEN.with_borrow(|seen| assert_eq!(*seen, here));
}

fn clients_that_leave() {
    use CloseReason::*;
    check(ClientClosed, |desk, key| desk.end(key));
    check(ClientClosed, |desk, key| {
        desk.send(key, GET);
        desk.end(key);
    });
    check(ClientClosed, |desk, key| {
        desk.send(key, b"\r\n\r\n");
        desk.end(key);
    });
    for part in ["G", "GET /health/live HTTP/1.1\r\nHost: h\r\n\r"] {
        check(CutShort, |desk, key| {
            desk.send(key, part.as_bytes());
            desk.end(key);
            assert_eq!(desk.got(key), b"");
        });
    }
    for part in ["", "ab"] {
        check(CutShort, |desk, key| {
            let head = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
            desk.send(key, format!("{head}{part}").as_bytes());
            desk.end(key);
        });
    }
    check(Broken, |desk, key| desk.reset(key));
    check(Broken, |desk, key| {
        desk.send(key, &GET[..20]);
        desk.reset(key);
    });
}

fn clients_that_are_answered_for_the_last_time() {
    use CloseReason::*;
    check(Answered, |desk, key| {
        desk.send(key, b"GET /health/live HTTP/1.0\r\n\r\n");
    });
    check(Answered, |desk, key| {
        let close = b"GET /health/live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        desk.send(key, &[&close[..], GET].concat());
        assert!(!desk.is_closed(key), "it has sent more, and reads its answer first");
        desk.end(key);
    });
    check(RequestLimit, |desk, key| {
        desk.send(key, &GET.repeat(3));
        desk.end(key);
    });
    check(RequestLimit, |desk, key| {
        desk.send(key, &GET.repeat(3));
        desk.pass(AGES);
    });
    for bad in [
        "GARBAGE\r\n\r\n",
        "BREW / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx",
    ] {
        check(BadRequest, |desk, key| {
            desk.send(key, bad.as_bytes());
            desk.end(key);
        });
        check(BadRequest, |desk, key| {
            desk.send(key, bad.as_bytes());
            desk.pass(AGES);
        });
        // It breaks only after the reason was known.
        check(BadRequest, |desk, key| {
            desk.send(key, bad.as_bytes());
            desk.reset(key);
        });
    }
}

fn clients_that_take_too_long() {
    use CloseReason::*;
    check(IdleTimeout, |desk, _| desk.pass(AGES));
    check(IdleTimeout, |desk, key| {
        desk.send(key, GET);
        desk.pass(AGES);
    });
    check(HeadTimeout, |desk, key| {
        desk.send(key, &GET[..20]);
        desk.pass(AGES);
        desk.pass(AGES);
    });
    check(BodyTimeout, |desk, key| {
        desk.send(key, b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
        desk.pass(AGES);
        desk.pass(AGES);
    });
    let mut desk = Desk::new(Limits::default());
    for raw in [GET, b"GARBAGE\r\n\r\n"] {
        let key = desk.connect_with(5);
        desk.send(key, raw);
        desk.pass(AGES);
        assert!(desk.is_closed(key));
        assert_eq!(desk.got(key), b"HTTP/");
    }
    assert_eq!(desk.closes()["write_timeout"], 2);
    let mut desk = Desk::new(Limits { output_total: 3_000, ..Limits::default() });
    // The first and slowest of them goes; what one has written last is never too much.
    let slow = [(); 5].map(|()| {
        let key = desk.connect_with(5);
        desk.send(key, &GET.repeat(2));
        desk.pass(Duration::from_millis(1));
        key
    });
    assert!(desk.is_closed(slow[0]) && !desk.is_closed(slow[4]));
    assert_eq!(desk.got(slow[0]), b"HTTP/");
    assert!(desk.closes()["slow_reader"] >= 1);
    SEEN.with_borrow_mut(|seen| seen.insert("slow_reader".to_string()));
    SEEN.with_borrow_mut(|seen| seen.insert("write_timeout".to_string()));
    let mut desk = Desk::new(Limits { input_total: 1000, ..Limits::default() });
    let key = desk.connect();
    desk.send(key, &[&b"GET /"[..], &[b'x'; 2000]].concat());
    desk.pass(Duration::from_millis(1));
    assert!(desk.is_closed(key));
    assert_eq!(desk.closes()["slow_sender"], 1);
    SEEN.with_borrow_mut(|seen| seen.insert("slow_sender".to_string()));
}

#[test]
fn who_makes_place_is_counted_as_that() {
    let mut desk = Desk::new(Limits { max_connections: 1, ..Limits::default() });
    desk.connect();
    desk.pass(Duration::from_secs(5));
    let closes = desk.closes();
    assert_eq!((closes["made_room"], closes["idle_timeout"]), (1, 0));
}

#[test]
fn who_is_turned_away_is_counted_as_refused() {
    let mut desk = Desk::new(Limits { max_connections: 1, ..Limits::default() });
    let first = desk.connect();
    for leaves in [true, false] {
        let refused = desk.connect();
        assert_eq!(desk.summary(refused), "503 unavailable, shut");
        match leaves {
            true => desk.end(refused),
            false => desk.pass(Duration::from_secs(5)),
        }
        assert!(desk.is_closed(refused));
    }
    desk.end(first);
    let closes = desk.closes();
    assert_eq!((closes["refused"], closes["client_closed"]), (2, 1), "{closes:?}");
}

#[test]
fn who_is_there_at_the_end_is_answered_and_counted() {
    let mut desk = Desk::new(Limits::default());
    let idle = desk.connect();
    let begun = desk.connect();
    desk.send(begun, &GET[..20]);
    let slow = desk.connect_with(10);
    desk.send(slow, &GET.repeat(2));
    desk.shut_down();
    // Our side is shut: a request that is on its way then meets no reset.
    assert!(desk.is_shut(idle) && !desk.is_closed(idle));
    desk.end(idle);
    assert!(desk.is_closed(idle));
    assert_eq!(desk.got(idle), b"");
    assert!(!desk.is_closed(begun) && !desk.is_closed(slow));
    desk.send(begun, &GET[20..]);
    assert_eq!(desk.summary(begun), "200, shut");
    desk.end(begun);
    assert!(desk.is_closed(begun));
    desk.feed(slow, usize::MAX);
    // It was not told that this was the last answer: it has a moment to ask for another.
    assert_eq!(desk.summary(slow), "200, 200, open");
    desk.pass(Duration::from_secs(2));
    assert!(desk.is_shut(slow));
    desk.end(slow);
    assert!(desk.is_closed(slow));
    assert!(desk.core.is_finished());
    let late = desk.connect();
    assert_eq!(desk.summary(late), "503 unavailable, shut");
}

#[test]
fn a_client_that_sends_no_more_gets_every_answer() {
    let limits = Limits { output_high_water: 2_000, ..Limits::default() };
    let mut desk = Desk::new(limits);
    // It has written all, says so, and reads late.
    let key = desk.connect_with(0);
    desk.send(key, &GET.repeat(50));
    desk.end(key);
    assert!(!desk.is_closed(key), "it is owed answers");
    desk.feed(key, usize::MAX);
    desk.end(key);
    assert!(desk.is_closed(key));
    let summary = desk.summary(key);
    assert_eq!(summary, format!("{}shut", "200, ".repeat(50)));
    // What was asked for before a request that is cut short is answered, too.
    let key = desk.connect_with(0);
    let body =
        b"POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nab";
    desk.send(key, &[GET, body].concat());
    desk.end(key);
    desk.feed(key, usize::MAX);
    desk.end(key);
    assert_eq!(desk.summary(key), "200, 100, shut");
    desk.check_empty();
}
