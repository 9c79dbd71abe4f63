//! A small seeded random number generator, for jitter and for the demo exchange's noise. The same
//! seed gives the same numbers.
//!
//! [`Rng`] is SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
//! 2014). It is never used for secrets: its output can be predicted.

/// What SplitMix64 adds to its state for each number: 2^64 divided by the golden ratio, odd.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug, Default)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number. All 64-bit numbers are equally likely.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// The next number below `bound`; 0 if `bound` is 0. Some numbers are more likely than others
    /// by at most `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// SplitMix64's output function: every bit of the result depends on every bit of `bits`.
pub fn mix(bits: u64) -> u64 {
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
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn one_seed_is_one_run_and_bounds_hold() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        let mut seen = [false; 10];
        for _ in 0..1000 {
            let number = a.below(10);
            assert_eq!(number, b.below(10));
            seen[number as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(a.below(0), 0);
    }
}
