//! More clients than the process may have files for.

use crate::loopback::setup::*;
use crate::support::*;

/// Files that the daemon may have open.
const FILES: usize = 256;

/// As many of them come and go with its connections to the demo exchange, both ends counted; far
/// fewer than any crowd here has.
const OWN: usize = 16;

/// A daemon of the demo exchange with that limit, which it cannot raise.
fn limited() -> Marketd {
    let script = format!("ulimit -n {FILES} && exec \"$0\" \"$@\"");
    let program = env!("CARGO_BIN_EXE_marketd");
    let launch = Launch::new(&["-c", &script, program, "--demo", "--data", ":memory:"]);
    let marketd = launch.program("/bin/sh").start();
    await_health(&marketd, "ok");
    marketd
}

#[test]
fn a_crowd_above_the_limit_of_files_costs_nothing_and_is_forgotten_when_it_leaves() {
    let marketd = limited();
    let log = marketd.await_log("connections capped", LONG);
    assert!(log.contains("files=256"), "{log}");
    let before = marketd.open_fds();
    let mut served = Client::connect(marketd.addr());
    assert_eq!(served.get("/health/live").status, 200);
    let crowd: Vec<Client> = (0..656)
        .filter_map(|_| {
            let mut client = Client::try_connect(marketd.addr()).ok()?;
            // A byte makes the kernel hand the connection over.
            client.send("G").ok()?;
            Some(client)
        })
        .collect();
    assert!(crowd.len() > 2 * FILES, "{}", crowd.len());
    // Whoever was here is served on, and exchanges are polled on.
    let mut polls = || {
        let metrics = served.get("/api/v1/metrics").exact();
        metrics["upstreams"][0]["ok"].integer().unwrap_or(0)
    };
    let ok = polls();
    eventually(LONG, || (polls() >= ok + 2).then_some(()));
    assert!(marketd.open_fds() <= FILES);
    drop(crowd);
    let mut late = eventually(LONG, || {
        let mut client = Client::try_connect(marketd.addr()).ok()?;
        client.send_get("/health/live").ok()?;
        client.read().ok().filter(|answer| answer.status == 200)?;
        Some(client)
    });
    assert_eq!(late.get("/health/live").status, 200);
    drop((late, served));
    eventually(LONG, || (marketd.open_fds() <= before + OWN).then_some(()));
}

#[test]
fn a_crowd_that_does_not_read_holds_a_bounded_memory_and_nobody_up() {
    let most = 1_048_576;
    let limits = serde_json::json!({ "limits": { "outputTotalBytes": most } });
    let marketd = Marketd::with_config(with(limits, "data", ":memory:".into()));
    await_health(&marketd, "ok");
    let before = marketd.open_fds();
    let mut served = Client::connect(marketd.addr());
    let mut figures = || served.get("/metrics").text().to_string();
    // Far more than the kernel takes of it.
    let document = "GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n".repeat(200);
    let mut crowd: Vec<Client> = Vec::new();
    let closed = "marketd_http_closes_total{reason=\"slow_reader\"}";
    eventually(LONG, || {
        let mut client = Client::try_connect(marketd.addr()).ok()?;
        client.send(&document).ok()?;
        crowd.push(client);
        let page = figures();
        // One turn may bring some more than there is room for, and its end mends that.
        let pending = count(&page, "marketd_http_pending_bytes");
        assert!(pending < 2 * most, "{pending} bytes wait");
        (count(&page, closed) >= 10).then_some(())
    });
    drop(crowd);
    eventually(LONG, || {
        let page = figures();
        (count(&page, "marketd_http_pending_bytes") == 0).then_some(())
    });
    drop(served);
    eventually(LONG, || (marketd.open_fds() <= before + OWN).then_some(()));
}
