//! A fingerprint: a number that identifies the content of a body.
//!
//! The writer of a body adds each part as it writes it: the version of a quote, the slot of a candle
//! and the version of its series, or a short text itself. So two bodies of one endpoint with equal
//! fingerprints were made of the same parts in the same order, and have the same bytes. The body itself
//! is not hashed.
//!
//! Invariant: adding a part is reversible, and parts of different kinds always differ. So two lists that
//! differ in one part always have different fingerprints. Two lists that differ in several parts have equal
//! fingerprints with a probability of 2^-64.

/// The fingerprint of the parts so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

/// A part of a body.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// The catalog with this version.
    Catalog(u64),
    /// The quote with this version. No two states of any quotes have the same version.
    Quote(u64),
    /// A part that is missing.
    Nothing,
    /// The row of the symbol with this number.
    Symbol(u32),
    /// The source of the candles that follow.
    Source(u16),
    /// The closed candles that a series has stored together at this version.
    Stored(u64),
    /// The closed and provisional candles of a series with this version.
    Series(u64),
    /// The candle that begins with this slot.
    Row(i64),
    /// A flat candle in this slot. Its price follows as a text.
    Flat(i64),
    /// All candles from this slot ...
    From(i64),
    /// ... to the one before this slot.
    Before(i64),
    /// These bytes.
    Text(&'a [u8]),
}

/// The fingerprint of no part.
impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint(0x9e37_79b9_7f4a_7c15)
    }
}

impl Fingerprint {
    /// Adds the next part.
    pub fn add(&mut self, part: Part<'_>) {
        let (kind, value) = match part {
            Part::Catalog(version) => (1, version),
            Part::Quote(version) => (2, version),
            Part::Nothing => (3, 0),
            Part::Source(source) => (4, u64::from(source)),
            Part::Stored(version) => (5, version),
            Part::Series(version) => (6, version),
            Part::Row(slot) => (7, slot as u64),
            Part::Flat(slot) => (8, slot as u64),
            Part::From(slot) => (9, slot as u64),
            Part::Before(slot) => (10, slot as u64),
            // Kind 11 is a text: see `add_text`.
            Part::Symbol(number) => (12, u64::from(number)),
            Part::Text(text) => return self.add_text(text),
        };
        // Versions and slots take far less than 56 bits.
        self.mix(kind << 56 ^ value);
    }

    /// The fingerprint as a number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The length comes first, so that no text is a prefix of another one.
    fn add_text(&mut self, text: &[u8]) {
        self.mix(11 << 56 ^ text.len() as u64);
        for piece in text.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.mix(u64::from_le_bytes(word));
        }
    }

    /// Mixes a word in with the output function of SplitMix64, which is a bijection.
    fn mix(&mut self, word: u64) {
        let mut mixed = self.0 ^ word;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = (mixed ^ (mixed >> 31)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn of(parts: &[Part<'_>]) -> u64 {
        let mut made_of = Fingerprint::default();
        for part in parts {
            made_of.add(*part);
        }
        made_of.number()
    }

    #[test]
    fn parts_of_another_kind_order_or_number_have_another_fingerprint() {
        use Part::*;
        let all: [&[Part<'_>]; 23] = [
            &[],
            &[Nothing],
            &[Nothing, Nothing],
            &[Catalog(404)],
            &[Symbol(404)],
            &[Quote(404)],
            &[Source(404)],
            &[Stored(404)],
            &[Series(404)],
            &[Row(404)],
            &[Flat(404)],
            &[From(404)],
            &[Before(404)],
            &[Quote(1), Quote(2)],
            &[Quote(2), Quote(1)],
            &[Quote(3)],
            &[Text(b"")],
            &[Text(b"a")],
            &[Text(b"a\0")],
            &[Text(b"a"), Text(b"b")],
            &[Text(b"ab")],
            &[Text(b"12345678")],
            &[Text(b"12345678"), Text(b"")],
        ];
        let found: HashSet<u64> = all.iter().map(|parts| of(parts)).collect();
        assert_eq!(found.len(), all.len());
    }

    #[test]
    fn small_versions_of_few_parts_never_meet() {
        let mut found = HashSet::new();
        for source in 0..8 {
            for version in 0..4000 {
                assert!(found.insert(of(&[Part::Source(source), Part::Series(version)])));
                assert!(found.insert(of(&[Part::Source(source), Part::Stored(version)])));
            }
        }
        for first in 0..300 {
            for second in 0..300 {
                assert!(found.insert(of(&[Part::Quote(first), Part::Quote(second)])));
            }
        }
    }
}
