//! The checksum of a row, which is stored in its column `seal`.
//!
//! SQLite notices a page that is inconsistent, but not a digit that has become another digit. A row
//! whose checksum does not match is never served. The checksum also covers the name of the row's
//! series, so a row that was moved to another series is noticed.
//!
//! A checksum protects from failing disks and from mistakes by hand, not from an attacker: whoever
//! can write the file can compute checksums.

use super::sqlite::{Row, Value, ValueRef};
use crate::history::SeriesName;

/// The checksum of the values so far: a 32-bit FNV-1a hash (Fowler, Noll and Vo), in which a change
/// of one byte always changes the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checksum(u32);

impl Checksum {
    /// The checksum of no value.
    pub(super) fn new() -> Checksum {
        Checksum(0x811c_9dc5)
    }

    /// The checksum of a series' name, with which the checksum of each of its rows begins.
    pub(super) fn of_series(series: &SeriesName) -> Checksum {
        let names = [&*series.source, &*series.symbol, series.interval.name()];
        names.iter().fold(Checksum::new(), |sum, name| sum.text(name.as_bytes()))
    }

    /// The checksum of the values so far and these.
    pub(super) fn with_all(self, values: &[Value]) -> Checksum {
        values.iter().fold(self, |sum, value| sum.with(value.into()))
    }

    /// The number to store: 24 bits with a sign, which take three bytes in SQLite.
    pub(super) fn number(self) -> i64 {
        let folded = (self.0 ^ (self.0 >> 24)) & 0xff_ffff;
        i64::from(folded) - 0x80_0000
    }

    /// True if the last column holds the checksum of those before it.
    pub(super) fn holds(self, row: &Row<'_>) -> bool {
        row.get(row.as_ref().column_count() - 1) == Ok(self.with_row(row).number())
    }

    /// The checksum of the values so far and of all values of a row but the last.
    pub(super) fn with_row(self, row: &Row<'_>) -> Checksum {
        let columns = 0..row.as_ref().column_count() - 1;
        columns.fold(self, |sum, column| sum.with(row.get_ref(column).unwrap_or(ValueRef::Null)))
    }

    fn with(self, value: ValueRef<'_>) -> Checksum {
        // The first byte is the kind of the value. The last byte of a text occurs in no text. So no
        // two lists of values have the same bytes.
        match value {
            ValueRef::Null => self.bytes(&[0]),
            ValueRef::Integer(number) => self.bytes(&[1]).bytes(&number.to_le_bytes()),
            ValueRef::Text(text) => self.text(text),
            // The tables hold no such values, so no row has a checksum of one.
            ValueRef::Real(_) | ValueRef::Blob(_) => self.bytes(&[3]),
        }
    }

    fn text(self, text: &[u8]) -> Checksum {
        self.bytes(&[2]).bytes(text).bytes(&[0xff])
    }

    fn bytes(self, bytes: &[u8]) -> Checksum {
        let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        Checksum(bytes.iter().fold(self.0, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_another_order_or_cut_elsewhere_have_another_seal() {
        let text = |text: &str| Value::Text(text.to_string());
        let lists: [&[Value]; 7] = [
            &[],
            &[Value::Null],
            &[text("")],
            &[text("ab"), text("c")],
            &[text("a"), text("bc")],
            &[text("a"), Value::Integer(5), Value::Null],
            &[text("a"), Value::Null, Value::Integer(5)],
        ];
        let checksums: Vec<i64> =
            lists.map(|list| Checksum::new().with_all(list).number()).to_vec();
        for (at, checksum) in checksums.iter().enumerate() {
            assert!(!checksums[..at].contains(checksum), "{at}");
            assert!((-0x80_0000..0x80_0000).contains(checksum));
        }
    }

    #[test]
    fn a_flip_of_any_bit_breaks_it() {
        let text = *b"64123.45";
        let checksum = |text: &[u8]| Checksum::new().text(text).number();
        for bit in 0..text.len() * 8 {
            let mut flipped = text;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&flipped), checksum(&text), "bit {bit}");
        }
    }
}
