//! What the tests share: a fake exchange, a raw HTTP client, the real daemon as a process, the
//! recorded bodies of real exchanges, and chance that can be replayed.
//!
//! Nothing here uses marketd's own code: a test that reads an answer with the parser that wrote
//! it would agree with itself. Threads are fine here, sleeps are not: whatever waits has a
//! deadline and ends as soon as the thing waited for is there.
//!
//! - [`exchange`]: `FakeExchange`, a scriptable HTTP server with faults to order at run time
//! - [`reply`]: `Reply` and `Fault`, what it answers and what goes wrong with that
//! - [`binance`]: `Binance`, the addresses and bodies of that exchange on top of it
//! - [`generated`]: made-up markets of any number, a pure function of seed and time
//! - [`client`]: `Client` and `get`, a strict client over a plain socket
//! - [`events`]: `EventSource`, the same for a stream of server-sent events
//! - [`daemon`]: `Marketd`, the built binary in a directory of its own, and what tests ask it again and again
//! - [`tls`]: `Authority` and `TlsFront`, certificates and a server that takes TLS off
//! - [`relay`]: `Relay`, which stands between two programs, or opens tunnels, and fails as it is told to;
//!   `peer`, which says what it is told to say, and `BlackHole`, which says nothing
//! - [`redis`]: `Redis`, an installed `redis-server` in a directory of its own
//! - [`manual`]: the examples of the manual
//! - [`json`]: `Json`, a tree that keeps every number as it was written
//! - [`schema`]: whether a value is what a JSON schema says
//! - [`naive`]: decimals, calendars and roll-ups done the slow way
//! - [`chance`]: `Rng` and seeds, replayed by `MARKETD_SEED`, and what they do to messages
#![allow(
    dead_code,
    unused_imports,
    reason = "the tests and several scripts compile this, and each uses a part of it"
)]

/// For what takes seconds by itself: longer than anything, also on a machine that is busy with
/// other tests.
pub const LONG: std::time::Duration = std::time::Duration::from_secs(120);

/// Binance's dialect.
pub const BINANCE: &str = include_str!("../../src/exchange/dialects/binance.json");

/// The text of that dialect without its calls for the tickers of all markets and of several.
pub fn market_by_market(dialect: &str) -> String {
    let (front, rest) = dialect.split_once("    \"all\": {").expect("a call for all");
    let (_, rest) = rest.split_once('\n').expect("it is one line");
    let (one, rest) = rest.split_once("    \"several\": {").expect("a call for several");
    let (_, rest) = rest.split_once("\n    },\n").expect("it ends");
    [front, one, rest].concat()
}

pub mod binance;
pub mod chance;
pub mod client;
pub mod daemon;
pub mod events;
pub mod exchange;
pub mod generated;
pub mod json;
pub mod manual;
pub mod message;
pub mod naive;
pub mod redis;
pub mod relay;
pub mod reply;
pub mod schema;
pub mod tls;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Mutex;

/// Says once what is not tried, and for want of what. Straight to the terminal: a runner swallows what a
/// passing test prints.
pub fn skipped(what: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().expect("nobody panics in here").insert(what.to_string()) {
        let _ = io::stderr().write_all(format!("\nSKIPPED: {what}\n\n").as_bytes());
    }
}

/// The figures of a quote, in the order of its members.
pub const FIGURES: [&str; 12] = [
    "last",
    "bid",
    "ask",
    "bidVolume",
    "askVolume",
    "open",
    "high",
    "low",
    "change",
    "percentage",
    "baseVolume",
    "quoteVolume",
];

pub use binance::{Binance, ServerTime};
pub use chance::{Rng, damaged, for_each_seed, number, seed_after_seed, seeds};
pub use client::{Client, ClientError, Response, get, get_with, head, request};
pub use daemon::{Finished, Launch, Marketd};
pub use daemon::{await_answer, await_health, count, metrics, read, sample};
pub use events::{EventSource, ServerEvent};
pub use exchange::{Asked, FakeExchange};
pub use json::Json;
pub use redis::Redis;
pub use relay::{BlackHole, Passage, Relay, peer};
pub use reply::{Body, Delivery, End, Fault, Framing, Reply, gzip};
pub use schema::{Decimals, Schemas};
pub use tls::{Authority, Identity, TlsFront, Validity};

use std::time::{Duration, Instant};

/// How long a test waits for something that happens at once on an idle machine. Generous: the
/// test machine may be busy, and only a failing test waits to the end.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// From one look of [`poll_until`] to the next.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Looks again and again until `probe` finds something; `None` when that takes longer than `within`.
pub fn poll_until<T>(within: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        let late = begin.elapsed() >= within;
        if let Some(found) = probe() {
            return Some(found);
        }
        if late {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Like [`poll_until`], for what must come: panics at the caller's line when it does not.
#[track_caller]
pub fn eventually<T>(within: Duration, probe: impl FnMut() -> Option<T>) -> T {
    let caller = std::panic::Location::caller();
    match poll_until(within, probe) {
        Some(found) => found,
        None => panic!("{caller}: still nothing after {within:?}"),
    }
}
