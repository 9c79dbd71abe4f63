//! Roll-up: makes one candle of many, from their rendered rows.
//!
//! This file owns the arithmetic on rows: which price is higher, and the sum of the volumes. Prices are
//! compared and copied as text, so they may have any number of digits, and only volumes are parsed. It never
//! rounds: if the exact sum does not fit, there is no candle.

use crate::decimal::Decimal;

/// The most digits of a volume that is summed in one machine word.
const WORD_DIGITS: usize = 18;

/// The numbers of a rendered row `[t,o,h,l,c,v],`: open, high, low, close, volume. The decimals are in normal
/// form and not negative.
pub(super) fn numbers(row: &[u8]) -> [&[u8]; 5] {
    let [time, open, high, low, close] = commas(row);
    [
        &row[time + 1..open],
        &row[open + 1..high],
        &row[high + 1..low],
        &row[low + 1..close],
        &row[close + 1..row.len() - 2],
    ]
}

/// Finds the five commas between the six numbers of a row. It reads eight bytes at a time, because
/// finding the numbers is half of the cost of a roll-up.
fn commas(row: &[u8]) -> [usize; 5] {
    const COMMAS: u64 = u64::from_ne_bytes([b','; 8]);
    const LOW_BITS: u64 = u64::from_ne_bytes([0x7f; 8]);
    let mut found = [0; 5];
    let mut count = 0;
    let (words, rest) = row.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        // A row is ASCII. So a byte of the sum has its high bit set unless it was a comma, and no
        // byte carries into the next.
        let others = (u64::from_le_bytes(*word) ^ COMMAS) + LOW_BITS;
        let mut marks = !others & !LOW_BITS;
        while marks != 0 {
            found[count] = at * 8 + marks.trailing_zeros() as usize / 8;
            count += 1;
            if count == found.len() {
                return found;
            }
            marks &= marks - 1;
        }
    }
    for (at, byte) in rest.iter().enumerate() {
        if *byte == b',' && count < found.len() {
            found[count] = words.len() * 8 + at;
            count += 1;
        }
    }
    found
}

/// A decimal that is not negative, as text, and the number of digits before its point. The derived
/// order is numeric: a price with more digits before the point is greater. Between prices with
/// equally many, byte order is right, because `.` sorts below every digit, and a text sorts below
/// its continuations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Price<'a> {
    front: usize,
    text: &'a [u8],
}

impl<'a> Price<'a> {
    fn new(text: &'a [u8]) -> Price<'a> {
        let point = text.iter().position(|byte| *byte == b'.');
        Price { front: point.unwrap_or(text.len()), text }
    }
}

/// A sum of volumes.
#[derive(Clone, Debug)]
enum Sum {
    /// `mantissa / 10^scale`.
    Word { mantissa: i128, scale: u32 },
    /// A sum that does not fit in a word; `None` if a `Decimal` cannot hold it either.
    Exact(Option<Decimal>),
}

/// A candle that is being rolled up.
#[derive(Clone, Debug)]
pub(super) struct Rollup<'a> {
    open: &'a [u8],
    high: Price<'a>,
    low: Price<'a>,
    close: &'a [u8],
    volume: Sum,
}

impl<'a> Rollup<'a> {
    /// Starts with the oldest candle.
    pub(super) fn new(row: &'a [u8]) -> Rollup<'a> {
        let [open, high, low, close, volume] = numbers(row);
        Rollup {
            open,
            high: Price::new(high),
            low: Price::new(low),
            close,
            volume: Sum::new(volume),
        }
    }

    /// Adds the next candle.
    pub(super) fn add(&mut self, row: &'a [u8]) {
        let [_, high, low, close, volume] = numbers(row);
        self.high = self.high.max(Price::new(high));
        self.low = self.low.min(Price::new(low));
        self.close = close;
        self.volume.add(volume);
    }

    /// Open, high, low and close, and the exact sum of the volumes; `None` if it does not fit.
    pub(super) fn finish(self) -> Option<([&'a [u8]; 4], Decimal)> {
        let prices = [self.open, self.high.text, self.low.text, self.close];
        Some((prices, self.volume.finish()?))
    }
}

impl Sum {
    fn new(text: &[u8]) -> Sum {
        match word(text) {
            Some((mantissa, scale)) => Sum::Word { mantissa: mantissa.into(), scale },
            None => Sum::Exact(Decimal::parse(text).ok()),
        }
    }

    fn add(&mut self, text: &[u8]) {
        if let Sum::Word { mantissa, scale } = self
            && let Some((term, places)) = word(text)
            && let Some((sum, places)) = add_words((*mantissa, *scale), (term, places))
        {
            (*mantissa, *scale) = (sum, places);
            return;
        }
        let term = Decimal::parse(text).ok();
        let sum = self.clone().finish();
        *self = Sum::Exact((|| sum?.checked_add(&term?))());
    }

    fn finish(self) -> Option<Decimal> {
        match self {
            Sum::Word { mantissa, scale } => Decimal::from_parts(mantissa, scale),
            Sum::Exact(sum) => sum,
        }
    }
}

/// The digits and decimal places of a number, if a word holds them.
fn word(text: &[u8]) -> Option<(u64, u32)> {
    if text.len() > WORD_DIGITS {
        return None;
    }
    let mut digits = 0u64;
    let mut point = text.len();
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'.' {
            point = at + 1;
        } else {
            digits = digits * 10 + u64::from(byte - b'0');
        }
    }
    Some((digits, (text.len() - point) as u32))
}

fn add_words((a, a_scale): (i128, u32), (b, b_scale): (u64, u32)) -> Option<(i128, u32)> {
    let b = i128::from(b);
    if a_scale == b_scale {
        return Some((a.checked_add(b)?, a_scale));
    }
    let scale = a_scale.max(b_scale);
    let raise = |mantissa: i128, by: u32| mantissa.checked_mul(10i128.checked_pow(by)?);
    let sum = raise(a, scale - a_scale)?.checked_add(raise(b, scale - b_scale)?)?;
    Some((sum, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[&str], expected: Option<&str>) {
        let mut rows_iter = rows.iter();
        let mut rollup = Rollup::new(rows_iter.next().expect("a first row").as_bytes());
        for row in rows_iter {
            rollup.add(row.as_bytes());
        }
        let got = rollup.finish().map(|(prices, volume)| {
            let prices = prices.map(|text| String::from_utf8_lossy(text).into_owned());
            format!("{} {volume}", prices.join(" "))
        });
        assert_eq!(got.as_deref(), expected, "{rows:?}");
    }

    #[test]
    fn prices_are_compared_as_numbers() {
        check(&["[0,5,9,2,7,3],"], Some("5 9 2 7 3"));
        check(&["[0,5,9,2,7,3],", "[1,7,10,3,8,1],"], Some("5 10 2 8 4"));
        check(&["[0,5,9.5,2.25,7,3],", "[1,7,9.49,2.3,8,1],"], Some("5 9.5 2.25 8 4"));
        check(
            &["[1600000000000,9,9,9,9,0.1],", "[1,9.01,9.01,0.09,9,0.02],"],
            Some("9 9.01 0.09 9 0.12"),
        );
        let (low, high) = ("1".repeat(63), "1".repeat(64));
        check(
            &[&format!("[0,5,{low},{high},7,0],"), &format!("[0,5,{high},{low},7,0],")],
            Some(&format!("5 {high} {low} 7 0")),
        );
    }

    #[test]
    fn volumes_are_summed_exactly_or_not_at_all() {
        let sum = |volumes: &[&str], expected: Option<&str>| {
            let rows: Vec<String> =
                (volumes.iter()).map(|volume| format!("[0,1,1,1,1,{volume}],")).collect();
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            let expected = expected.map(|sum| format!("1 1 1 1 {sum}"));
            check(&rows, expected.as_deref());
        };
        sum(&["0.1", "0.2"], Some("0.3"));
        sum(&["0.5", "0.5", "0"], Some("1"));
        sum(&["999999999999999999", "1"], Some("1000000000000000000"));
        sum(&["99999999999999999999.5", "0.5"], Some("100000000000000000000"));
        let huge = "9".repeat(64);
        sum(&[&huge], Some(&huge));
        sum(&[&huge, "1"], None);
        sum(&[&huge, "1", "1"], None);
        sum(
            &["0.00000000000000001", "99999999999999999"],
            Some("99999999999999999.00000000000000001"),
        );
        // A sum that no word holds may still fit 38 digits.
        sum(
            &["0.000000000000000000001", "12345678901234567"],
            Some("12345678901234567.000000000000000000001"),
        );
    }
}
