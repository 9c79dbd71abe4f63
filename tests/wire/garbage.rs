//! Seeded garbage: messages of the tables, damaged.

use super::bodies::read_body;
use super::responses::{RESPONSES, read_in_prefixes};
use crate::support::{Rng, damaged, for_each_seed};
use marketd::http::Framing;

/// A limit below this.
fn limit(rng: &mut Rng, below: u64) -> usize {
    rng.below(below) as usize
}

/// Seeds of a run that is not asked for more.
const SEEDS: u64 = 100;

/// Inputs of one seed.
const ROUNDS: usize = 500;

#[test]
fn garbage_answers_are_the_same_wherever_they_are_split() {
    for_each_seed(SEEDS, |seed, rng| {
        for round in 0..ROUNDS {
            let raw = rng.pick(RESPONSES).0.as_bytes();
            let raw = damaged(rng, raw);
            let most = limit(rng, 200);
            let context = format!("seed {seed} round {round} {most} {}", raw.escape_ascii());
            let found = read_in_prefixes(&raw, most, &context);
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
    for_each_seed(SEEDS, |seed, rng| {
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
