//! Chance that can be replayed: one seed is one run.
//!
//! `MARKETD_SEED=17 cargo test name_of_the_test` runs that seed alone; a test that fails says
//! which seed it was in.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// A xorshift64* generator (Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled"): small, fast, the same on every machine. Good for tests, not for keys.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator of a seed. Neighbouring seeds give unrelated runs.
    pub fn new(seed: u64) -> Rng {
        Rng(mix(seed) | 1)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from 0 up to and without `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below 0");
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = high.wrapping_sub(low) as u64;
        match width.checked_add(1) {
            Some(bound) => low.wrapping_add(self.below(bound) as i64),
            None => self.next() as i64,
        }
    }

    /// True in `part` of `whole` cases.
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Puts them into another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `length` bytes of any value.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// So many seeds, or as many times more as `MARKETD_SEEDS` says: `.ci/run` runs four times as many.
pub fn seeds(count: u64) -> u64 {
    count * number("MARKETD_SEEDS").unwrap_or(1)
}

/// Runs `test` for the seeds 1 to `count`; for `MARKETD_SEED` alone when that is set; or, for `scripts/fuzz.sh`,
/// from `MARKETD_FUZZ_SEED` on for `MARKETD_FUZZ_SECONDS`.
pub fn for_each_seed(count: u64, mut test: impl FnMut(u64, &mut Rng)) {
    let Some(seconds) = number("MARKETD_FUZZ_SECONDS") else {
        return for_each_seed_of(1..=count, test);
    };
    let (begin, first) = (Instant::now(), number("MARKETD_FUZZ_SEED").unwrap_or(1));
    let mut seeds = 0;
    seed_after_seed(first, |seed, rng| {
        test(seed, rng);
        seeds += 1;
        begin.elapsed() >= Duration::from_secs(seconds)
    });
    println!("{seeds} seeds from {first} on: all is well");
}

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let found = text.trim().parse();
    Some(found.unwrap_or_else(|_| panic!("{name} is to be a number, not {text:?}")))
}

fn for_each_seed_of(seeds: RangeInclusive<u64>, mut test: impl FnMut(u64, &mut Rng)) {
    let seeds = match number("MARKETD_SEED") {
        Some(seed) => seed..=seed,
        None => seeds,
    };
    for seed in seeds {
        let note = Note(format!("failed in seed {seed}; to replay: MARKETD_SEED={seed}"));
        test(seed, &mut Rng::new(seed));
        drop(note);
    }
}

/// Runs `test` for one seed after the other from `first` on until it says that it is enough, or for
/// `MARKETD_SEED` alone when that is set.
pub fn seed_after_seed(first: u64, mut test: impl FnMut(u64, &mut Rng) -> bool) {
    let mut seed = first;
    let mut is_enough = false;
    while !is_enough {
        for_each_seed_of(seed..=seed, |seed, rng| is_enough = test(seed, rng));
        is_enough |= std::env::var_os("MARKETD_SEED").is_some();
        seed += 1;
    }
}

/// Says what was tried when the test inside panics.
pub struct Note(pub String);

impl Drop for Note {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// Bytes on which parsers stumble, between bars.
const STONES: &[u8] =
    b"\r\n|\n|\r|\r\n\r\n|\n\n| |\t|:|;|,|%|%2e|%00|..|/|?|#|*|\0|\x7f|\x80|\xff|0|5|f|-|+|\
    HTTP/1.1|HTTP/1.|HTTP/1.0|Host: h\r\n|Content-Length: 5\r\n|Content-Length: 70000\r\n|\
    Transfer-Encoding: chunked\r\n|GET |HEAD |POST |@|[|]|\"|Connection: close\r\n|\
    Connection: keep-alive\r\n|Expect: 100-continue\r\n|If-None-Match: *\r\n|0\r\n\r\n|\
    5\r\nhello\r\n|GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n|\
    GET /api/v1/quotes?symbols=* HTTP/1.1\r\nHost: h\r\n\r\n|\
    GET /api/ecosystem/market HTTP/1.1\r\nHost: h\r\n\r\n";

/// These bytes, damaged in up to five places: a byte or a bit of it changed, bytes taken out, said again and again,
/// cut off, or put in.
pub fn damaged(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let stones: Vec<&[u8]> = STONES.split(|byte| *byte == b'|').collect();
    let mut bytes = bytes.to_vec();
    for _ in 0..rng.below(6) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        let end = (at + rng.below(8) as usize).min(bytes.len());
        match rng.below(8) {
            0 if at < bytes.len() => bytes[at] = rng.next() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let times = rng.below(20) as usize;
                bytes.splice(at..at, copy.repeat(times));
            }
            4 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, rng.pick(&stones).iter().copied())),
        }
    }
    bytes
}
