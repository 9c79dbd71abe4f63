//! What a crowd costs the core itself, without sockets: idle connections after a request, and readers of the
//! stream.
//!
//! `cargo test --release --test library requests::crowd -- --ignored --nocapture`

use crate::requests::bench::Bench;
use marketd::config::Limits;
use std::time::{Duration, Instant};

/// Markets that each reader follows.
const MARKETS: usize = 100;

/// For how many seconds nothing happens.
const QUIET: u64 = 20;

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux tells it");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number of pages") * 4096
}

/// A core with so many clients of one request each, and what they cost.
fn measure(what: &str, count: usize, target: &str, names: &[String]) {
    let limits = Limits {
        max_connections: count + 1,
        streams: count,
        idle_timeout: Duration::from_secs(3600),
        ..Limits::default()
    };
    let mut bench = Bench::configured(limits, |config| config.sources[0].symbols = names.to_vec());
    let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    let before = resident();
    for _ in 0..count {
        let key = bench.connect();
        bench.send(key, request.as_bytes());
        assert!(bench.got(key).starts_with(b"HTTP/1.1 200 OK"), "{target}");
        bench.forget(key);
    }
    bench.pass(Duration::from_secs(2));
    // Some 100 B of them are the bench's own.
    let bytes = resident().saturating_sub(before) / count;
    let begun = Instant::now();
    bench.pass(Duration::from_secs(QUIET));
    let us = begun.elapsed().as_micros() as u64 / QUIET;
    println!("| {count} {what} | {bytes} B | {us} us a second |");
    let begun = Instant::now();
    bench.shut_down();
    bench.pass(Duration::from_secs(1));
    println!("| they leave | | {} us |", begun.elapsed().as_micros());
}

#[test]
#[ignore = "figures to compare, of memory that other tests use too"]
fn a_hundred_thousand_of_both() {
    let names: Vec<String> = (0..MARKETS).map(|number| format!("A{number}/USDT")).collect();
    let stream = format!("/api/v1/stream?symbols={}", names.join(","));
    for count in [1_000, 10_000, 100_000] {
        measure("idle connections", count, "/health/live", &names);
        measure("readers of 100 markets", count, &stream, &names);
    }
}
