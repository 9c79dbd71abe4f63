//! Seals: a number in a row that stands for the rest of it.
//!
//! Owns the rule by which a row is believed. SQLite notices when a page does not hang together, not
//! when a digit in it has become another digit; what is served as an exchange's word must be that.
//! A seal also covers whose row it is, so that a row that has come under another series is noticed.
//!
//! It is for failing disks and slips of the hand, not against anybody: who can write the file can
//! make seals.

use super::sqlite::{Row, Value};
use crate::history::SeriesName;
use std::ops::Range;

/// A seal in the making: a 32-bit FNV-1a hash (Fowler, Noll and Vo), under which a change of one
/// byte always makes another number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seal(u32);

impl Seal {
    /// Of nothing yet.
    pub(super) fn new() -> Seal {
        Seal(0x811c_9dc5)
    }

    /// The begin of every seal of a series.
    pub(super) fn of(series: &SeriesName) -> Seal {
        let names = [&*series.source, &*series.symbol, series.interval.name()];
        Seal::new().over(&names.map(|name| Value::Text(name.as_bytes())))
    }

    /// With these values behind it.
    pub(super) fn over(self, values: &[Value<'_>]) -> Seal {
        values.iter().fold(self, |seal, value| seal.with(*value))
    }

    /// The number that goes into the row: 24 bits with a sign, which SQLite keeps in three bytes.
    pub(super) fn number(self) -> i64 {
        let folded = (self.0 ^ (self.0 >> 24)) & 0xff_ffff;
        i64::from(folded) - 0x80_0000
    }

    /// Whether it is what stands behind these columns of the row.
    pub(super) fn holds(self, row: &Row<'_>, columns: Range<usize>) -> bool {
        let at = columns.end;
        let seal = columns.into_iter().try_fold(self, |seal, column| {
            let value = row.value(column)?;
            Some(seal.with(value))
        });
        seal.is_some_and(|seal| row.int(at) == Some(seal.number()))
    }

    fn with(self, value: Value<'_>) -> Seal {
        // The first byte is the kind, and no text contains the last one: no two lists of values
        // are the same bytes.
        match value {
            Value::Null => self.bytes(&[0]),
            Value::Int(number) => self.bytes(&[1]).bytes(&number.to_le_bytes()),
            Value::Text(text) => self.bytes(&[2]).bytes(text).bytes(&[0xff]),
        }
    }

    fn bytes(self, bytes: &[u8]) -> Seal {
        let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        Seal(bytes.iter().fold(self.0, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_another_order_or_cut_elsewhere_have_another_seal() {
        let lists: [&[Value<'_>]; 7] = [
            &[],
            &[Value::Null],
            &[Value::Text(b"")],
            &[Value::Text(b"ab"), Value::Text(b"c")],
            &[Value::Text(b"a"), Value::Text(b"bc")],
            &[Value::Text(b"a"), Value::Int(5), Value::Null],
            &[Value::Text(b"a"), Value::Null, Value::Int(5)],
        ];
        let seals: Vec<i64> = lists.map(|list| Seal::new().over(list).number()).to_vec();
        for (at, seal) in seals.iter().enumerate() {
            assert!(!seals[..at].contains(seal), "{at}");
            assert!((-0x80_0000..0x80_0000).contains(seal));
        }
    }

    #[test]
    fn a_flip_of_any_bit_breaks_it() {
        let text = *b"64123.45";
        let seal = |text: &[u8]| Seal::new().over(&[Value::Text(text)]).number();
        for bit in 0..text.len() * 8 {
            let mut flipped = text;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(seal(&flipped), seal(&text), "bit {bit}");
        }
    }
}
