//! Seeded damage to the rows of the table, against the whole core.
//!
//! Whatever comes: no panic, every answer is strict HTTP/1.1 with an error of the contract or JSON,
//! the bytes mean the same however they are cut, and every connection ends for one reason that is
//! counted. And what the parser takes for a request, it may.
//!
//! `scripts/fuzz.sh` does it for as long as one likes.

use crate::requests::answers::Answer;
use crate::requests::bench::{Bench, Outcome, show};
use crate::requests::table::{TAG, table};
use crate::support::{Rng, damaged, for_each_seed, seeds};
use crate::wire::check_prefixes;
use marketd::config::Limits;
use marketd::http::{Method, Request, RequestBody, Version, decode_segment, parse, query_pairs};

/// Inputs of one seed.
const INPUTS: u64 = 500;

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

/// What must hold of everything that is taken for a request.
fn check_request(request: &Request, head: &[u8], limits: &Limits, context: &str) {
    assert!(head.len() <= limits.head_bytes, "{context}");
    assert!(head.ends_with(b"\r\n\r\n"), "{context}");
    let lines = head.split(|&byte| byte == b'\n');
    for line in lines.take_while(|line| !line.is_empty()) {
        assert!(line.ends_with(b"\r"), "{context}: a bare LF");
        let text = &line[..line.len() - 1];
        assert!(
            text.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)),
            "{context}: a control byte"
        );
        assert!(!text.starts_with(b" ") && !text.starts_with(b"\t"), "{context}");
    }
    assert!(request.fields.count() <= limits.head_fields, "{context}");
    let named = |name: &str| {
        let is = |(found, _): &(&[u8], &[u8])| found.eq_ignore_ascii_case(name.as_bytes());
        request.fields.filter(is).count()
    };
    assert!(named("host") <= 1, "{context}");
    assert!(named("host") == 1 || request.version == Version::Http10, "{context}");
    assert_eq!(request.body == RequestBody::Chunked, named("transfer-encoding") == 1, "{context}");
    assert!(named("transfer-encoding") == 0 || named("content-length") == 0, "{context}");
    let rooted = request.path.starts_with(b"/");
    assert!(rooted || request.method != Method::Get, "{context}");
    for segment in request.path.split(|&byte| byte == b'/') {
        if let Ok(segment) = decode_segment(segment) {
            assert!(!matches!(&*segment, b"." | b".."), "{context}");
            assert!(!segment.iter().any(u8::is_ascii_control), "{context}");
            assert!(segment.len() <= request.path.len(), "{context}");
        }
    }
    let pairs = request.query.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
    assert_eq!(query_pairs(request.query).count(), pairs.count(), "{context}");
}

/// The parser alone: whatever comes behind does not change what is decided, and it decides in the end.
fn check_parser(bytes: &[u8], limits: &Limits, context: &str) {
    let decided = check_prefixes(bytes, context, |bytes| match parse(bytes, limits) {
        Ok(None) => None,
        found => Some(found),
    });
    assert!(decided.is_some() || bytes.len() < limits.head_bytes, "{context}: waits for ever");
    if let Ok(Some((request, used))) = parse(bytes, limits) {
        check_request(&request, &bytes[..used], limits, context);
    }
}

/// All inputs of one seed.
fn run_seed(seed: u64, rng: &mut Rng, rows: &[Vec<u8>]) {
    let limits = limits(rng);
    let mut bench = Bench::new(limits.clone());
    for input in 0..INPUTS {
        let bytes = damaged_row(rng, rows);
        let context = format!("seed {seed} input {input}: {}", show(&bytes));
        check_parser(&bytes, &limits, &context);
        let whole = bench.run([&bytes[..]]);
        check_promises(&whole, &bytes, &context);
        assert_eq!(bench.run(bytes.chunks(1)), whole, "byte by byte, {context}");
        let parts = pieces(rng, &bytes);
        assert_eq!(bench.run(parts.iter().copied()), whole, "in pieces, {context}");
        let slow = bench.run_slowly(parts, || 1 + rng.below(300) as usize);
        assert_eq!(slow, whole, "read slowly, {context}");
    }
    bench.check_empty();
}

#[test]
fn damaged_rows_do_no_harm_and_are_the_same_wherever_they_are_cut() {
    let tag = Bench::new(Limits::default()).tag();
    assert_ne!(tag, TAG.as_bytes());
    let rows: Vec<Vec<u8>> = table().iter().map(|row| row.bytes_with_tag(&tag)).collect();
    for_each_seed(seeds(10), |seed, rng| run_seed(seed, rng, &rows));
}
