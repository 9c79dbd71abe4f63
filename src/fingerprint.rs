//! A fingerprint: one number that names what a body is made of.
//!
//! Whoever writes a body adds each part as it is written: the version of a quote, the slot of a
//! candle and the version of its series, or the text itself where it is short and rarely written. So
//! two bodies of one address with one fingerprint were made of the same parts in the same order,
//! and have the same bytes. No body is hashed.
//!
//! Invariant: adding is reversible. Two fingerprints that differ in one part differ for certain, and
//! two that differ in several parts do but for one chance in 2^64. A part of one kind is never one
//! of another kind: a status is not mistaken for a version.

/// See the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

/// What a part of a body is made of.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// The catalog, in this version.
    Catalog(u64),
    /// The quote that has this version: no two states of any quotes share one.
    Quote(u64),
    /// There is nothing to show in this place.
    Nothing,
    /// The candles of this source follow.
    Source(u16),
    /// The stored candles of a series, in this closed version.
    Stored(u64),
    /// The stored and the provisional candles of a series, in this version.
    Series(u64),
    /// The row of the candle that begins with this slot.
    Row(i64),
    /// A flat row in this slot: its price follows from the stored candles before it.
    Flat(i64),
    /// All rows from this slot on ...
    From(i64),
    /// ... to before this one.
    Before(i64),
    /// These bytes themselves.
    Text(&'a [u8]),
}

impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint::new()
    }
}

impl Fingerprint {
    /// Of a body that is always the same.
    pub fn new() -> Fingerprint {
        Fingerprint(0x9e37_79b9_7f4a_7c15)
    }

    /// Adds the next part.
    #[inline]
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
            Part::Text(text) => return self.add_text(text),
        };
        // Versions and slots take far less than 56 bits.
        self.mix(kind << 56 ^ value);
    }

    /// The number.
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The length comes first, so that no text is the begin of another one.
    fn add_text(&mut self, text: &[u8]) {
        self.mix(11 << 56 ^ text.len() as u64);
        for piece in text.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.mix(u64::from_le_bytes(word));
        }
    }

    /// The last step of SplitMix64, which maps no two numbers to one, over both.
    #[inline]
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
        let mut made_of = Fingerprint::new();
        for part in parts {
            made_of.add(*part);
        }
        made_of.number()
    }

    #[test]
    fn parts_of_another_kind_order_or_number_have_another_fingerprint() {
        use Part::*;
        let all: [&[Part<'_>]; 22] = [
            &[],
            &[Nothing],
            &[Nothing, Nothing],
            &[Catalog(404)],
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
