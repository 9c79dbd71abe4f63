//! The process: how it ends, and how it refuses to begin.

use crate::loopback::contract::*;
use crate::loopback::hostile::for_each;
use crate::loopback::setup::*;
use crate::support::binance::KLINES;
use crate::support::daemon::TempDir;
use crate::support::*;
use serde_json::json;
use std::net::TcpListener;
use std::sync::Arc;

/// A chart whose candles the exchange does not send.
const WAITS: &str = "/api/ecosystem/chart?symbol=BTCUSDT&interval=1h&from=1700000000&to=1700360000";

/// A port here that was let go is nobody else's before it is taken again: all others bind and
/// connect at the loopback's first address, where Linux has more of them.
const APART: &str = match cfg!(target_os = "linux") {
    true => "127.0.0.2:0",
    false => "127.0.0.1:0",
};

#[test]
fn a_signal_ends_it_with_0_and_in_flight_answers_are_finished() {
    for_each(vec!["TERM", "INT"], |signal| {
        let exchange = exchange_of(&["BTC/USDT"]);
        exchange.fault_on(KLINES, Fault::Silence);
        // Long enough for the signal to come in between, and below `shutdownMs`.
        let limits = json!({ "chartWaitMs": 4000, "shutdownMs": 60_000 });
        let marketd = limited(&exchange, limits);
        let addr = marketd.addr();
        let mut idle = Client::connect(addr);
        assert_eq!(idle.get("/health").status, 200);
        let mut busy = Client::connect(addr);
        // What is behind it has not begun yet, and is told how things stand.
        let line = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        busy.send([line(WAITS), line("/health")].concat()).expect("it is read");
        exchange.await_asked(KLINES, 1, LONG);
        marketd.signal(signal);
        assert!(idle.read_to_close().is_ok_and(|rest| rest.is_empty()));
        let refused = || Client::try_connect(addr).is_err().then_some(());
        eventually(LONG, refused);
        let answer = busy.read().expect("it is finished");
        assert_eq!(good(&answer.clone().to(WAITS)).items().len(), 0);
        assert_eq!(answer.header("Chart-Coverage"), Some("partial"));
        let health = busy.read().expect("it is answered");
        assert_eq!((health.status, health.header("Connection")), (503, Some("close")));
        assert_eq!(health.exact()["status"], "stopping");
        assert!(busy.read_to_close().is_ok_and(|rest| rest.is_empty()));
        drop(busy);
        let finished = marketd.await_end(LONG);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.stderr.contains("stopp"), "{finished:?}");
        assert!(!finished.stderr.contains("panic"), "{finished:?}");
    });
}

#[test]
fn a_request_times_out_at_the_end_too() {
    let exchange = exchange_of(&["BTC/USDT"]);
    exchange.fault_on(KLINES, Fault::Silence);
    let limits = json!({ "chartWaitMs": 60_000, "shutdownMs": 600_000 });
    let source = with(source("fake", &exchange), "timeoutMs", json!(500));
    let marketd = start(&with(config(&[source]), "limits", limits));
    let mut busy = Client::connect(marketd.addr());
    busy.send_get(WAITS).expect("it is read");
    exchange.await_asked(KLINES, 1, LONG);
    marketd.signal("TERM");
    let answer = busy.read().expect("it is finished");
    assert_eq!(answer.header("Chart-Coverage"), Some("partial"));
    drop(busy);
    let finished = marketd.await_end(LONG);
    assert_eq!(finished.code, Some(0));
    assert!(finished.stderr.contains("no answer in time"), "{finished:?}");
}

#[test]
fn it_ends_at_once_when_nobody_waits_and_in_time_when_somebody_does() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let finished = polling(&exchange).stop(LONG);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""));
    // A client that has not sent its whole request, one that does not read, a stalled exchange.
    exchange.fault_on(KLINES, Fault::Silence);
    let limits = json!({ "chartWaitMs": 60_000, "shutdownMs": 500, "headTimeoutMs": 60_000 });
    let marketd = limited(&exchange, limits);
    let mut slow = Client::connect(marketd.addr());
    slow.send("GET /hea").expect("it is read");
    let mut waiting = Client::connect(marketd.addr());
    waiting.send_get(WAITS).expect("it is read");
    exchange.await_asked(KLINES, 1, LONG);
    let finished = marketd.stop(LONG);
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn it_starts_again_at_once_at_the_same_address() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let launch = |listen: &str| {
        let launch = Launch::new(&["--listen", listen]);
        launch.config(config(&[source("fake", &exchange)])).start()
    };
    let marketd = launch(APART);
    let addr = marketd.addr();
    // A connection that we close first stays in the kernel for a while.
    let mut client = Client::connect(addr);
    client.get("/health");
    assert_eq!(marketd.stop(LONG).code, Some(0));
    assert_eq!(launch(&addr.to_string()).addr(), addr);
}

#[test]
fn the_first_line_names_the_address_before_any_warning_and_whatever_the_log_takes() {
    // Quotes that turn stale between two polls are a warning.
    let hasty = json!({ "dialect": "demo", "pollMs": 100, "staleAfterMs": 50 });
    for rules in ["info", "error", "off", "net=off", "net=debug", "info/no line"] {
        let config = json!({ "data": ":memory:", "sources": [hasty] });
        let marketd = Launch::new(&[]).env("RUST_LOG", rules).config(config).start();
        let address = format!("net: listening on http://{}", marketd.addr());
        let ended = marketd.stop(LONG).stderr;
        assert!(ended.lines().next().is_some_and(|it| it.ends_with(&address)), "{rules}: {ended}");
        assert_eq!(
            ended.contains("staleAfterMs"),
            !["error", "off", "info/no line"].contains(&rules),
            "{rules}: {ended}"
        );
        let is_told = ended.contains("net: stopped");
        assert_eq!(is_told, ["info", "net=debug"].contains(&rules), "{rules}: {ended}");
    }
}

/// Runs it to its end: exit code 2, one line that holds these parts, nothing else.
#[track_caller]
fn refuses(launch: Launch, parts: &[&str]) {
    let finished = launch.env("RUST_BACKTRACE", "1").run();
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    for part in parts {
        assert!(finished.stderr.contains(part), "{part:?} in {finished:?}");
    }
}

#[test]
fn what_a_person_can_mend_is_one_line_and_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().map(|addr| (addr.to_string(), taken));
    let (taken, _holder) = taken.expect("it has an address");
    let in_use = [taken.as_str(), "in use", "(--listen names another address)"];
    refuses(Launch::new(&["--listen", &taken, "--demo"]), &in_use);
    let both = ["--listen", "127.0.0.1:0", "--ecosystem-listen", &taken];
    refuses(Launch::new(&both), &in_use[..2]);
    refuses(Launch::new(&["--listen", "192.0.2.1:80"]), &["192.0.2.1:80"]);
    refuses(Launch::new(&["stray"]), &["stray"]);
    refuses(Launch::new(&["--source", "binance=ftp://x"]), &["--source"]);
    refuses(Launch::new(&["--symbols", "BTCUSDT"]), &["--symbols"]);
    refuses(Launch::new(&[]).config("{"), &["marketd.json"]);
    let script = "ulimit -n 10 && exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_marketd");
    let launch = Launch::new(&["-c", script, program, "--demo", "--data", ":memory:"]);
    let needed = ["only 10 files may be open", "are needed", "ulimit -n"];
    refuses(launch.program("/bin/sh"), &needed);
}

#[test]
fn the_directory_holds_what_was_asked_for_and_nothing_else() {
    let dir = Arc::new(TempDir::new());
    let marketd = Launch::new(&["--data", ":memory:"]).in_dir(Arc::clone(&dir)).start();
    await_health(&marketd, "ok");
    assert_eq!(marketd.stop(LONG).code, Some(0));
    let left = std::fs::read_dir(dir.path()).map(Iterator::count);
    assert_eq!(left.ok(), Some(0));
}
