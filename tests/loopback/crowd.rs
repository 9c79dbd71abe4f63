//! More clients than the process may have files for.

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
    // The health is told even to those for whom there is no place.
    let mut late = eventually(LONG, || {
        let mut client = Client::try_connect(marketd.addr()).ok()?;
        client.send_get("/api/v1/metrics").ok()?;
        client.read().ok().filter(|answer| answer.status == 200)?;
        Some(client)
    });
    assert_eq!(late.get("/health/live").status, 200);
    drop((late, served));
    eventually(LONG, || (marketd.open_fds() <= before + OWN).then_some(()));
}
