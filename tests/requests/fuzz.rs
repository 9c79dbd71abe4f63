//! Seeded damage to the rows of the table, against the whole core.
//!
//! Whatever comes: no panic, every answer is strict HTTP/1.1 with an error of the contract or JSON,
//! the bytes mean the same however they are cut, and every connection ends for one reason that is
//! counted.

use crate::requests::answers::Answer;
use crate::requests::bench::{Bench, Outcome, show};
use crate::requests::table::{TAG, table};
use crate::support::{Rng, damaged, for_each_seed};
use marketd::config::Limits;
use std::time::{Duration, Instant};

/// Inputs of one seed.
const INPUTS: u64 = 500;

/// Seeds of a run that is not asked for more.
const SEEDS: u64 = 40;

/// One row, or the begin of one and the end of another, damaged in a few places.
fn damaged_row(rng: &mut Rng, rows: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = rng.pick(rows).clone();
    let place = |rng: &mut Rng, bytes: &[u8]| rng.below(bytes.len() as u64 + 1) as usize;
    if rng.chance(1, 4) {
        let other = rng.pick(rows);
        bytes.truncate(place(rng, &bytes));
        bytes.extend_from_slice(&other[place(rng, other)..]);
    }
    damaged(rng, &bytes)
}

/// Small ones, so that damage meets them.
fn limits(rng: &mut Rng) -> Limits {
    let mut limits = Limits::default();
    if rng.chance(1, 2) {
        limits.request_line_bytes = 30 + rng.below(60) as usize;
        limits.head_bytes = 40 + rng.below(200) as usize;
        limits.head_fields = 1 + rng.below(6) as usize;
        limits.body_bytes = rng.below(40) as usize;
        limits.requests_per_connection = 1 + rng.below(4) as u32;
        limits.output_high_water = 1 + rng.below(4_000) as usize;
    }
    limits
}

/// Cuts of every length.
fn pieces<'a>(rng: &mut Rng, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let most = 1 + rng.below(40);
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at((1 + rng.below(most) as usize).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// What must hold of everything that is answered, whatever was sent.
fn check_promises(outcome: &Outcome, bytes: &[u8], context: &str) {
    let statuses = outcome.answers.iter().map(|answer| answer.status);
    for status in statuses {
        let known = [100, 200, 204, 304, 400, 404, 405, 412, 413, 414, 417, 431, 501, 503, 505];
        assert!(known.contains(&status), "{context}: a {status}");
    }
    let closes = outcome.answers.last().is_some_and(|last| last.closes);
    assert_eq!(closes, outcome.shut, "{context}: what is said is done");
    let heads = outcome.answers.iter().filter(|answer| answer.bodiless).count();
    let asked = bytes.windows(4).filter(|part| part == b"HEAD").count();
    assert!(heads <= asked, "{context}: a body is missing");
    let finals = |answer: &&Answer| answer.status >= 200;
    let answers = outcome.answers.iter().filter(finals).count();
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
    assert!(answers <= ends + 1, "{context}: more answers than lines");
}

/// All inputs of one seed; their number.
fn run_seed(seed: u64, rng: &mut Rng, rows: &[Vec<u8>]) -> u64 {
    let mut bench = Bench::new(limits(rng));
    for input in 0..INPUTS {
        let bytes = damaged_row(rng, rows);
        let context = format!("seed {seed} input {input}: {}", show(&bytes));
        let whole = bench.run([&bytes[..]]);
        check_promises(&whole, &bytes, &context);
        assert_eq!(bench.run(bytes.chunks(1)), whole, "byte by byte, {context}");
        let parts = pieces(rng, &bytes);
        assert_eq!(bench.run(parts.iter().copied()), whole, "in pieces, {context}");
        let slow = bench.run_slowly(parts, || 1 + rng.below(300) as usize);
        assert_eq!(slow, whole, "read slowly, {context}");
    }
    bench.check_empty();
    INPUTS
}

/// The rows with a tag that some bench gives.
fn rows() -> Vec<Vec<u8>> {
    let tag = Bench::new(Limits::default()).tag();
    assert_ne!(tag, TAG.as_bytes());
    table().iter().map(|row| row.bytes_with_tag(&tag)).collect()
}

#[test]
fn damaged_rows_do_no_harm_and_are_the_same_wherever_they_are_cut() {
    let rows = rows();
    for_each_seed(SEEDS, |seed, rng| {
        run_seed(seed, rng, &rows);
    });
}

/// For `scripts/fuzz.sh`: seed after seed from `MARKETD_FUZZ_SEED` on, for `MARKETD_FUZZ_SECONDS`.
#[test]
#[ignore = "runs for as long as it is told to"]
fn damaged_rows_for_a_long_time() {
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is to be a number")),
        Err(_) => default,
    };
    let rows = rows();
    let first: u64 = number("MARKETD_FUZZ_SEED", 1);
    let span = Duration::from_secs(number("MARKETD_FUZZ_SECONDS", 60));
    let begin = Instant::now();
    let (mut seed, mut inputs) = (first, 0);
    while begin.elapsed() < span {
        inputs += run_seed(seed, &mut Rng::new(seed), &rows);
        seed += 1;
    }
    println!("{inputs} inputs, seeds {first} to {}: all is well", seed - 1);
}
