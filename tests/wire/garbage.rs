//! Seeded garbage: messages of the tables, damaged.

use super::bodies::read_body;
use super::requests::{REQUESTS, own};
use super::responses::{RESPONSES, own_response};
use super::{check_prefixes, defaults};
use marketd::http::{
    Framing, HeadLimits, Method, Parsed, Query, Request, RequestBody, Version, decode_segment,
    parse, write_json_string,
};
use std::time::{Duration, Instant};

/// Marsaglia's xorshift64.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            dice.next();
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound
    }

    fn one<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

/// Bytes on which parsers stumble.
const STONES: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\n\n",
    b" ",
    b"\t",
    b":",
    b";",
    b",",
    b"%",
    b"%2e",
    b"..",
    b"/",
    b"?",
    b"#",
    b"\0",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"0",
    b"5",
    b"f",
    b"HTTP/1.1",
    b"HTTP/1.",
    b"Host: h\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"GET ",
    b"@",
    b"[",
    b"]",
    b"\"",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
];

/// One of `seeds`, damaged in a few places.
fn damage(dice: &mut Dice, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..dice.below(5) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(6)).min(bytes.len());
        match dice.below(6) {
            0 if at < bytes.len() => bytes[at] = dice.next() as u8,
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            3 => bytes.truncate(at.max(1)),
            _ => drop(bytes.splice(at..at, dice.one(STONES).iter().copied())),
        }
    }
    bytes
}

/// Inputs of one seed.
const ROUNDS: usize = 500;

/// Runs `check` on the dice of each seed: those of every run, the one that is asked for, or, for
/// `scripts/fuzz.sh`, as many as there is time for.
fn with_seeds(what: &str, check: impl Fn(u64, &mut Dice)) {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(
            text.parse::<u64>()
                .unwrap_or_else(|_| panic!("{name} is to be a number")),
        )
    };
    let run = |seed| check(seed, &mut Dice::new(seed));
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
    println!(
        "{inputs} {what}, seeds {first} to {}: all is well",
        seed - 1
    );
}

#[test]
fn garbage_requests_are_the_same_wherever_they_are_split() {
    with_seeds("requests", |seed, dice| {
        for round in 0..ROUNDS {
            let raw = REQUESTS[dice.below(REQUESTS.len())].0;
            let raw = damage(dice, raw.as_bytes());
            let limits = HeadLimits {
                line_bytes: dice.below(60),
                head_bytes: dice.below(120),
                fields: dice.below(6),
            };
            for limits in [limits, defaults()] {
                let context = format!(
                    "seed {seed} round {round} {limits:?} {}",
                    raw.escape_ascii()
                );
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
            text.iter()
                .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)),
            "{context}: a control byte"
        );
        assert!(
            !text.starts_with(b" ") && !text.starts_with(b"\t"),
            "{context}"
        );
    }
    assert!(request.fields.count() <= limits.fields, "{context}");
    let named = |name: &str| {
        let is = |(found, _): &(&[u8], &[u8])| found.eq_ignore_ascii_case(name.as_bytes());
        request.fields.filter(is).count()
    };
    assert!(named("host") <= 1, "{context}");
    assert!(
        named("host") == 1 || request.version == Version::Http10,
        "{context}"
    );
    assert_eq!(
        request.body == RequestBody::Chunked,
        named("transfer-encoding") == 1,
        "{context}"
    );
    assert!(
        named("transfer-encoding") == 0 || named("content-length") == 0,
        "{context}"
    );
    let rooted = request.path.starts_with(b"/");
    assert!(rooted || request.method != Method::Get, "{context}");
    for segment in request.path.split(|&byte| byte == b'/') {
        if let Ok(segment) = decode_segment(segment) {
            assert!(!matches!(&*segment, b"." | b".."), "{context}");
            assert!(!segment.iter().any(u8::is_ascii_control), "{context}");
        }
    }
    assert!(
        Query::new(request.query).count() <= request.query.len(),
        "{context}"
    );
}

#[test]
fn garbage_answers_are_the_same_wherever_they_are_split() {
    with_seeds("answers", |seed, dice| {
        for round in 0..ROUNDS {
            let raw = RESPONSES[dice.below(RESPONSES.len())].0;
            let raw = damage(dice, raw.as_bytes());
            let limits = HeadLimits {
                line_bytes: 0,
                head_bytes: dice.below(200),
                fields: dice.below(6),
            };
            let context = format!(
                "seed {seed} round {round} {limits:?} {}",
                raw.escape_ascii()
            );
            let read = |bytes: &[u8]| own_response(bytes, &limits);
            let found = check_prefixes(&raw, read, &context);
            assert!(
                found.is_some() || raw.len() < limits.head_bytes,
                "{context}"
            );
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
    with_seeds("bodies", |seed, dice| {
        for round in 0..ROUNDS {
            let raw = dice.one(&seeds);
            let raw = damage(dice, raw);
            let framing = match dice.below(4) {
                0 => Framing::Length(dice.below(30) as u64),
                1 => Framing::UntilClose,
                _ => Framing::Chunked,
            };
            let cap = dice.below(40) as u64;
            let whole = read_body(framing, cap, [&raw[..]].into_iter());
            let size = 1 + dice.below(8);
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
    with_seeds("texts", |_, dice| {
        for _ in 0..ROUNDS {
            let bytes: Vec<u8> = match dice.below(2) {
                0 => (0..dice.below(40)).map(|_| dice.next() as u8).collect(),
                _ => damage(dice, b"a=b&c=%41%2f%e2%82%ac+d&%=%zz"),
            };
            let mut out = Vec::new();
            write_json_string(&mut out, &bytes);
            let back: String = serde_json::from_slice(&out).expect("JSON");
            assert_eq!(back, String::from_utf8_lossy(&bytes));
            if let Ok(decoded) = decode_segment(&bytes) {
                assert!(decoded.len() <= bytes.len());
            }
            let pairs = Query::new(&bytes).count();
            let expected = bytes
                .split(|&byte| byte == b'&')
                .filter(|pair| !pair.is_empty());
            assert_eq!(pairs, expected.count());
        }
    });
}
