//! Every end that a connection can have: its reason is counted, and no other.

use crate::requests::bench::Bench;
use crate::requests::limits::SWEEP;
use crate::support::count;
use marketd::config::Limits;
use marketd::core::CloseReason;
use marketd::table::Key;
use std::collections::BTreeSet;
use std::time::Duration;

const GET: &[u8] = b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n";

/// A request that a full service refuses.
const ANY: &[u8] = b"GET /api/v1/categories HTTP/1.1\r\nHost: h\r\n\r\n";

/// Longer than any deadline.
const AGES: Duration = Duration::from_secs(1000);

/// What happens to a connection.
#[derive(Clone, Copy)]
enum Step {
    /// From the begin the client takes no more than the first five bytes of its answers.
    Stalled,
    Send(&'static [u8]),
    /// The client sends no more.
    End,
    /// The client breaks the connection.
    Reset,
    /// Time passes, longer than any deadline takes: twice, for the second one is that of lingering.
    Ages,
    /// The same, once this deadline has come in its time and not before.
    In(fn(&Limits) -> Duration),
}

const IDLE: Step = Step::In(|limits| limits.idle_timeout);
const HEAD: Step = Step::In(|limits| limits.head_timeout);
const HALF: Step = Step::Send(GET.split_at(20).0);
const THREE: Step = Step::Send(
    b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\nGET /health/live HTTP/1.1\r\nHost: h\r\n\r\n\
      GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n",
);
const BODY: Step = Step::Send(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");

/// What a connection whose requests are limited to three ends with, and what happened to it.
const ENDS: &[(CloseReason, &[Step])] = {
    use CloseReason::*;
    use Step::*;
    &[
        (ClientClosed, &[End]),
        (ClientClosed, &[Send(GET), End]),
        (ClientClosed, &[Send(b"\r\n\r\n"), End]),
        (CutShort, &[Send(b"G"), End]),
        (CutShort, &[Send(b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r"), End]),
        (CutShort, &[Send(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"), End]),
        (CutShort, &[BODY, End]),
        (Broken, &[Reset]),
        (Broken, &[HALF, Reset]),
        (Answered, &[Send(b"GET /health/live HTTP/1.0\r\n\r\n")]),
        // It has sent more, and reads its answer first.
        (Answered, &[Send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET"), End]),
        (RequestLimit, &[THREE, End]),
        (RequestLimit, &[THREE, Ages]),
        (IdleTimeout, &[IDLE]),
        (IdleTimeout, &[Send(b"\r\n"), IDLE]),
        (IdleTimeout, &[Send(GET), IDLE]),
        (HeadTimeout, &[Send(b"G"), HEAD]),
        (HeadTimeout, &[HALF, HEAD]),
        (HeadTimeout, &[Send(GET), HALF, HEAD]),
        (BodyTimeout, &[BODY, In(|limits| limits.body_timeout)]),
        (WriteTimeout, &[Stalled, Send(GET), Ages]),
        (WriteTimeout, &[Stalled, Send(b"GARBAGE\r\n\r\n"), Ages]),
    ]
};

/// Requests that end their connection.
const BAD: [&[u8]; 4] = [
    b"GARBAGE\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx",
];

#[track_caller]
fn check(reason: CloseReason, steps: &[Step]) {
    let mut bench = Bench::new(Limits { requests_per_connection: 3, ..Limits::default() });
    let mut expected = bench.closes();
    let appetite = if matches!(steps[0], Step::Stalled) { 5 } else { usize::MAX };
    let key = bench.connect_with(appetite);
    for step in steps {
        assert!(!bench.is_closed(key), "{reason:?}: too early");
        match step {
            Step::Stalled => {}
            Step::Send(bytes) => _ = bench.send(key, bytes),
            Step::End => bench.end(key),
            Step::Reset => bench.reset(key),
            Step::In(limit) => check_deadline(&mut bench, key, limit(&Limits::default()), reason),
            Step::Ages => {}
        }
    }
    if matches!(steps.last(), Some(Step::Ages | Step::In(_))) {
        [AGES; 2].into_iter().for_each(|ages| bench.pass(ages));
    }
    assert!(bench.is_closed(key), "{reason:?}: it is over");
    // The page that was read before is a connection too: its client left after its answer.
    *expected.entry("client_closed".to_string()).or_default() += 1;
    *expected.entry(reason.name().to_string()).or_default() += 1;
    assert_eq!(bench.closes(), expected);
    let timeouts = count(&bench.get("/metrics"), "marketd_http_timeouts_total");
    let is_idle = reason == CloseReason::IdleTimeout;
    let is_counted = reason.name().ends_with("_timeout") && !is_idle;
    assert_eq!(timeouts, u64::from(is_counted), "{reason:?}");
}

/// All but a millisecond of a deadline passes, and nothing happens; then the rest, and the connection ends.
#[track_caller]
fn check_deadline(bench: &mut Bench, key: Key, span: Duration, reason: CloseReason) {
    let before = bench.summary(key);
    bench.pass(span - Duration::from_millis(1));
    assert_eq!(bench.summary(key), before, "before its time");
    assert!(!bench.is_closed(key));
    bench.pass(SWEEP + Duration::from_millis(2));
    let told = if reason == CloseReason::IdleTimeout { "" } else { "408 request_timeout, " };
    // One that lingers was shut before.
    let after = before.replace("open", &format!("{told}shut"));
    assert_eq!(bench.summary(key), after);
    assert!(after != before || bench.is_closed(key));
}

#[test]
fn every_end_is_counted_under_its_reason_and_every_reason_is_some_end() {
    for (reason, steps) in ENDS {
        check(*reason, steps);
    }
    // The last time it breaks only after the reason was known.
    for bad in BAD {
        for end in [Step::End, Step::Ages, Step::Reset, Step::In(|limits| limits.linger)] {
            // What the client still sends is read.
            check(CloseReason::BadRequest, &[Step::Send(bad), Step::Send(&[b'x'; 100_000]), end]);
        }
    }
    // Those in which the service itself has no room: `limits.rs`.
    let elsewhere = ["refused", "stopping", "made_room", "slow_reader", "slow_sender"];
    let here = ENDS.iter().map(|(reason, _)| reason.name()).chain(["bad_request"]);
    let all: BTreeSet<&str> = here.chain(elsewhere).collect();
    assert_eq!(all, CloseReason::NAMES.iter().copied().collect());
}

#[test]
fn clients_of_the_demo_exchange_count_for_nothing() {
    let counts = |bench: &mut Bench| {
        let page = bench.get("/metrics");
        let is_count = |line: &&str| {
            ["requests_total", "bad_requests_total", "timeouts_total", "closes_total"]
                .iter()
                .any(|name| line.starts_with(&format!("marketd_http_{name}")))
        };
        page.lines().filter(is_count).map(str::to_string).collect::<Vec<_>>()
    };
    // As many pages are read in both, one after the other.
    let [mut idle, mut bench] = [(); 2].map(|()| Bench::new(Limits::default()));
    for (raw, appetite) in [
        (&b"GARBAGE\r\n\r\n"[..], usize::MAX),
        (&GET[..20], usize::MAX),
        (b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab", usize::MAX),
        (b"GARBAGE\r\n\r\n", 5),
    ] {
        let key = bench.connect_to_demo(appetite);
        bench.send(key, raw);
        bench.pass(AGES);
        bench.pass(AGES);
        assert!(bench.is_closed(key));
        assert_eq!(counts(&mut bench), counts(&mut idle), "{}", raw.escape_ascii());
    }
}

#[test]
fn who_is_there_at_the_end_is_answered_and_counted() {
    let mut bench = Bench::new(Limits::default());
    let idle = bench.connect();
    let begun = bench.connect();
    bench.send(begun, &GET[..20]);
    let slow = bench.connect_with(10);
    bench.send(slow, &GET.repeat(2));
    bench.shut_down();
    // Our side is shut: a request that is on its way then meets no reset.
    assert!(bench.is_shut(idle) && !bench.is_closed(idle));
    bench.end(idle);
    assert!(bench.is_closed(idle));
    assert_eq!(bench.got(idle), b"");
    assert!(!bench.is_closed(begun) && !bench.is_closed(slow));
    bench.send(begun, &GET[20..]);
    assert_eq!(bench.summary(begun), "200, shut");
    bench.end(begun);
    assert!(bench.is_closed(begun));
    bench.feed(slow, usize::MAX);
    // It was not told that this was the last answer: it has a moment to ask for another.
    assert_eq!(bench.summary(slow), "200, 200, open");
    bench.pass(Duration::from_secs(2));
    assert!(bench.is_shut(slow));
    bench.end(slow);
    assert!(bench.is_closed(slow));
    assert!(bench.core.is_finished());
    let late = bench.connect();
    bench.send(late, ANY);
    assert_eq!(bench.summary(late), "503 unavailable, shut");
}

#[test]
fn a_request_that_comes_after_an_idle_connection_is_shut_meets_no_reset() {
    for is_stopping in [true, false] {
        let mut bench = Bench::new(Limits { linger: AGES, ..Limits::default() });
        let key = bench.connect();
        match is_stopping {
            true => bench.shut_down(),
            false => bench.pass(Duration::from_secs(100)),
        }
        assert!(bench.is_shut(key) && !bench.is_closed(key));
        for part in GET.chunks(7) {
            assert_eq!(bench.send(key, part), part.len(), "it is read");
        }
        assert!(bench.got(key).is_empty() && !bench.is_closed(key));
        bench.end(key);
        assert!(bench.is_closed(key));
    }
}

#[test]
fn an_idle_client_holds_the_end_up_for_as_long_as_the_limit_says() {
    let linger = Duration::from_millis(100);
    let mut bench = Bench::new(Limits { linger, ..Limits::default() });
    let idle = bench.connect();
    bench.send(idle, GET);
    bench.pass(Duration::from_millis(1500));
    bench.shut_down();
    assert!(bench.is_shut(idle));
    bench.pass(Duration::from_millis(80));
    assert!(!bench.is_closed(idle));
    bench.pass(Duration::from_millis(40));
    assert!(bench.is_closed(idle) && bench.core.is_finished());
}

#[test]
fn a_client_that_sends_no_more_gets_every_answer() {
    let limits = Limits { output_high_water: 2_000, ..Limits::default() };
    let mut bench = Bench::new(limits);
    // It has written all, says so, and reads late.
    let key = bench.connect_with(0);
    bench.send(key, &GET.repeat(50));
    bench.end(key);
    assert!(!bench.is_closed(key), "it is owed answers");
    bench.feed(key, usize::MAX);
    bench.end(key);
    assert!(bench.is_closed(key));
    let summary = bench.summary(key);
    assert_eq!(summary, format!("{}shut", "200, ".repeat(50)));
    // What was asked for before a request that is cut short is answered, too.
    let key = bench.connect_with(0);
    let body =
        b"POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nab";
    bench.send(key, &[GET, body].concat());
    bench.end(key);
    bench.feed(key, usize::MAX);
    bench.end(key);
    assert_eq!(bench.summary(key), "200, 100, shut");
    bench.check_empty();
}
