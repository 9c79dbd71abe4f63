//! Pseudorandom numbers, derived from keys.
//!
//! A [`RandomStream`] is a stream of numbers that depends only on a key, a tag and an index. Each candle
//! draws its numbers from a stream of its own, so candles can be generated in any order. No stream
//! is kept after the candle is generated.

use crate::rng::{GOLDEN, Rng, mix};

/// A stream of pseudorandom numbers.
pub(super) struct RandomStream(Rng);

impl RandomStream {
    /// The stream for the `index`-th item of the kind `tag`, under `key`.
    pub(super) fn new(key: u64, tag: u64, index: i64) -> RandomStream {
        RandomStream(Rng::new(mix(mix(key ^ tag.wrapping_mul(GOLDEN)) ^ index as u64)))
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next number, from 0 to `end - 1`. `end` is at least 1.
    pub(super) fn below(&mut self, end: i64) -> i64 {
        debug_assert!(end > 0);
        self.0.below(end as u64) as i64
    }

    /// The next number, from `-most` to `most`.
    pub(super) fn around(&mut self, most: i64) -> i64 {
        self.below(2 * most + 1) - most
    }
}

/// Derives the key for `name` from another key.
pub(super) fn derive_key(key: u64, name: &str) -> u64 {
    name.bytes().fold(mix(key ^ GOLDEN), |key, byte| mix(key ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut random = RandomStream::new(1, 2, 3);
        let mut seen = [0; 7];
        for _ in 0..1000 {
            seen[random.below(7) as usize] += 1;
            assert!((-3..=3).contains(&random.around(3)));
        }
        assert!(seen.iter().all(|count| *count > 80), "{seen:?}");
        assert_eq!(random.below(1), 0);
        assert_eq!(random.around(0), 0);
    }

    #[test]
    fn names_and_places_have_streams_of_their_own() {
        assert_ne!(derive_key(1, "BTC"), derive_key(2, "BTC"));
        assert_ne!(derive_key(1, "BTC"), derive_key(1, "CTB"));
        assert_ne!(RandomStream::new(1, 1, 7).bits(), RandomStream::new(1, 1, 8).bits());
        assert_ne!(RandomStream::new(1, 1, 7).bits(), RandomStream::new(1, 2, 7).bits());
    }
}
