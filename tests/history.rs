//! History that lasts: the built binary with a file, killed, cut off, restarted, short of room.
//!
//! What it serves is compared with what the exchange has, over sockets; what it has written, with
//! the rows of the file as a person with the `sqlite3` shell sees them.
#![cfg(feature = "sqlite")]

mod ends;
pub mod file;
mod flood;
mod outage;
mod room;
use crate::support;

use serde_json::{Value, json};
use support::daemon::TempDir;
use support::*;

/// The file, in the daemon's own directory.
const FILE: &str = "history.db";

/// A source of this id that polls a fake ten times a second and tracks these symbols.
fn source(exchange: &Binance, symbols: &[&str]) -> Value {
    json!({
        "id": "fake", "dialect": "binance", "url": exchange.url(), "pollMs": 100,
        "timeoutMs": 10_000, "symbols": symbols,
    })
}

/// A daemon with a file and this backfill of each interval.
fn config(sources: &[Value], backfill: i64) -> Value {
    let depth = |keep: i64| json!({ "keep": keep, "backfill": backfill });
    json!({
        "sources": sources,
        "data": FILE,
        "limits": { "chartWaitMs": 20_000, "backoffMaxMs": 1000 },
        "history": { "1m": depth(1_000_000), "1h": depth(100_000), "1d": depth(10_000) },
    })
}

/// A counter of `history`.
#[track_caller]
fn history(marketd: &Marketd, key: &str) -> i64 {
    let value = metrics(marketd)["history"][key].integer();
    value.unwrap_or_else(|| panic!("no {key}"))
}

/// A chart that the daemon calls complete.
#[track_caller]
fn await_complete(marketd: &Marketd, target: &str) -> Response {
    let is_complete = |it: &Response| it.header("Chart-Coverage") == Some("complete");
    await_answer(marketd.addr(), target, is_complete)
}

/// Ends it as a power cut would.
fn kill(marketd: Marketd) {
    marketd.signal("KILL");
    let finished = marketd.await_end(LONG);
    assert_eq!(finished.code, None, "a signal ended it");
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}

/// A daemon in a directory where an earlier one was.
fn launch(dir: &std::sync::Arc<TempDir>, config: &Value) -> Launch {
    Launch::new(&[]).in_dir(dir.clone()).config(config)
}
