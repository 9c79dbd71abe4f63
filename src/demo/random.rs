//! Numbers that look random and are not: each is a function of a key.
//!
//! Owns the mixing of keys and the stream of numbers that begins at one. It never holds a state
//! that outlives the thing that is drawn: a candle asks for the stream of its own place in time,
//! so candles can be made in any order.

/// Increment of SplitMix64: 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of numbers: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
pub(super) struct Random(u64);

impl Random {
    /// The stream that belongs to the `index`-th thing of a kind (`tag`) under a key.
    pub(super) fn new(key: u64, tag: u64, index: i64) -> Random {
        Random(mix(mix(key ^ tag.wrapping_mul(GOLDEN)) ^ index as u64))
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number from 0 to `end - 1`. `end` is at least 1.
    pub(super) fn below(&mut self, end: i64) -> i64 {
        debug_assert!(end > 0);
        ((u128::from(self.bits()) * end as u128) >> 64) as i64
    }

    /// A number from `-most` to `most`.
    pub(super) fn around(&mut self, most: i64) -> i64 {
        self.below(2 * most + 1) - most
    }
}

/// The key of a named thing under another key.
pub(super) fn key_of(key: u64, name: &str) -> u64 {
    name.bytes()
        .fold(mix(key ^ GOLDEN), |key, byte| mix(key ^ u64::from(byte)))
}

/// SplitMix64's finaliser: each bit of the result hangs on each bit of `bits`.
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64() {
        // The reference implementation's first numbers for the seed 1234567.
        let mut random = Random(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut random = Random::new(1, 2, 3);
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
        assert_ne!(key_of(1, "BTC"), key_of(2, "BTC"));
        assert_ne!(key_of(1, "BTC"), key_of(1, "CTB"));
        assert_ne!(Random::new(1, 1, 7).bits(), Random::new(1, 1, 8).bits());
        assert_ne!(Random::new(1, 1, 7).bits(), Random::new(1, 2, 7).bits());
    }
}
