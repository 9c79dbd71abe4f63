//! Seeded garbage: messages of the tables, damaged.

use super::bodies::read_body;
use super::requests::{REQUESTS, own};
use super::responses::{RESPONSES, own_response};
use super::{check_prefixes, defaults};
use crate::support::{Rng, damaged};
use marketd::http::{
    Framing, HeadLimits, Method, Parsed, Request, RequestBody, Version, decode_segment, parse,
    query_pairs,
};
use marketd::json::Value as _;
use std::time::{Duration, Instant};

/// A limit below this.
fn limit(rng: &mut Rng, below: u64) -> usize {
    rng.below(below) as usize
}

/// Inputs of one seed.
const ROUNDS: usize = 500;

/// Runs `check` on the chance of each seed: those of every run, the one that is asked for, or, for
/// `scripts/fuzz.sh`, as many as there is time for.
fn with_seeds(what: &str, check: impl Fn(u64, &mut Rng)) {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is to be a number")))
    };
    let run = |seed| check(seed, &mut Rng::new(seed));
    if let Some(seed) = number("MARKETD_SEED") {
        return run(seed);
    }
    let Some(seconds) = number("MARKETD_FUZZ_SECONDS") else {
        return (1..=100).for_each(run);
    };
    let (begin, first) = (Instant::now(), number("MARKETD_FUZZ_SEED").unwrap_or(1));
    let mut seed = first;
    while begin.elapsed() < Duration::from_secs(seconds) {
        run(seed);
        seed += 1;
    }
    let inputs = (seed - first) * ROUNDS as u64;
    println!("{inputs} {what}, seeds {first} to {}: all is well", seed - 1);
}

#[test]
fn garbage_requests_are_the_same_wherever_they_are_split() {
    with_seeds("requests", |seed, rng| {
        for round in 0..ROUNDS {
            let raw = rng.pick(REQUESTS).0.as_bytes();
            let raw = damaged(rng, raw);
            let limits = HeadLimits {
                line_bytes: limit(rng, 60),
                head_bytes: limit(rng, 120),
                fields: limit(rng, 6),
            };
            for limits in [limits, defaults()] {
                let context =
                    format!("seed {seed} round {round} {limits:?} {}", raw.escape_ascii());
                let found = check_prefixes(&raw, |bytes| own(parse(bytes, &limits)), &context);
                if let Ok(Parsed::Complete { request, used }) = parse(&raw, &limits) {
                    check_promises(&request, &raw[..used], &limits, &context);
                }
                let filled = raw.len() >= limits.head_bytes;
                assert!(found.is_some() || !filled, "{context}: waits for ever");
            }
        }
    });
}

/// What must hold of everything that is taken for a request.
fn check_promises(request: &Request, head: &[u8], limits: &HeadLimits, context: &str) {
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
    assert!(request.fields.count() <= limits.fields, "{context}");
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
        }
    }
    assert!(query_pairs(request.query).count() <= request.query.len(), "{context}");
}

#[test]
fn garbage_answers_are_the_same_wherever_they_are_split() {
    with_seeds("answers", |seed, rng| {
        for round in 0..ROUNDS {
            let raw = rng.pick(RESPONSES).0.as_bytes();
            let raw = damaged(rng, raw);
            let most = limit(rng, 200);
            let context = format!("seed {seed} round {round} {most} {}", raw.escape_ascii());
            let read = |bytes: &[u8]| own_response(bytes, most);
            let found = check_prefixes(&raw, read, &context);
            assert!(found.is_some() || raw.len() < most, "{context}");
        }
    });
}

#[test]
fn garbage_bodies_are_the_same_wherever_they_are_split() {
    let seeds: [&[u8]; 4] = [
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nA: b\r\n\r\nGET",
        b"a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n",
        b"0\r\n\r\n",
    ];
    with_seeds("bodies", |seed, rng| {
        for round in 0..ROUNDS {
            let raw = *rng.pick(&seeds);
            let raw = damaged(rng, raw);
            let framing = match limit(rng, 4) {
                0 => Framing::Length(limit(rng, 30) as u64),
                1 => Framing::UntilClose,
                _ => Framing::Chunked,
            };
            let cap = limit(rng, 40) as u64;
            let whole = read_body(framing, cap, [&raw[..]].into_iter());
            let size = 1 + limit(rng, 8);
            for size in [1, size] {
                let found = read_body(framing, cap, raw.chunks(size));
                assert_eq!(
                    found,
                    whole,
                    "seed {seed} round {round} {framing:?} cap {cap} by {size}: {}",
                    raw.escape_ascii()
                );
            }
            if let Ok((data, used)) = whole {
                assert!(data.len() as u64 <= cap && used <= raw.len());
            }
        }
    });
}

#[test]
fn garbage_text_becomes_json_and_garbage_escapes_do_no_harm() {
    with_seeds("texts", |_, rng| {
        for _ in 0..ROUNDS {
            let bytes: Vec<u8> = match limit(rng, 2) {
                0 => (0..limit(rng, 40)).map(|_| rng.next() as u8).collect(),
                _ => damaged(rng, b"a=b&c=%41%2f%e2%82%ac+d&%=%zz"),
            };
            let mut out = Vec::new();
            bytes[..].write(&mut out);
            let back: String = serde_json::from_slice(&out).expect("JSON");
            assert_eq!(back, String::from_utf8_lossy(&bytes));
            if let Ok(decoded) = decode_segment(&bytes) {
                assert!(decoded.len() <= bytes.len());
            }
            let pairs = query_pairs(&bytes).count();
            let expected = bytes.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
            assert_eq!(pairs, expected.count());
        }
    });
}
