//! One candle made of many, from their rendered rows.
//!
//! Owns the arithmetic on rows: which price is higher, what volumes come to. Prices are compared
//! and copied as they are written, digit by digit, so nothing is parsed but volumes, and no
//! number of digits is too many. It never rounds: a sum that cannot be held exactly makes no
//! candle.

use crate::decimal::Decimal;
use std::cmp::Ordering;

/// Most digits of a volume that are summed in one machine word.
const WORD_DIGITS: usize = 18;

/// The five numbers of a row: open, high, low, close, volume. Decimals in normal form, none
/// negative.
pub(super) type Fields<'a> = [&'a [u8]; 5];

/// The numbers of a rendered row `[t,o,h,l,c,v],`.
pub(super) fn fields(row: &[u8]) -> Fields<'_> {
    let mut fields = [&row[..0]; 5];
    let inner = &row[..row.len() - 2];
    let mut parts = inner.split(|byte| *byte == b',').skip(1);
    for field in &mut fields {
        *field = parts.next().expect("a row has six numbers");
    }
    fields
}

/// Order of two decimals that are not negative, by their texts: more digits in front of the point
/// is greater; with as many, the order of the bytes is the order of the numbers, as `.` sorts
/// below every digit and a text below its continuations.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let front = |text: &[u8]| {
        let point = text.iter().position(|byte| *byte == b'.');
        point.unwrap_or(text.len())
    };
    front(a).cmp(&front(b)).then_with(|| a.cmp(b))
}

/// A sum of volumes.
#[derive(Clone, Debug)]
enum Sum {
    /// `mantissa / 10^scale`.
    Word { mantissa: i128, scale: u32 },
    /// Above what a word holds.
    Exact(Option<Decimal>),
}

/// A candle in the making.
#[derive(Clone, Debug)]
pub(super) struct Rollup<'a> {
    prices: [&'a [u8]; 4],
    volume: Sum,
}

impl<'a> Rollup<'a> {
    /// Begins with the oldest candle.
    pub(super) fn new(row: &'a [u8]) -> Rollup<'a> {
        let [open, high, low, close, volume] = fields(row);
        Rollup {
            prices: [open, high, low, close],
            volume: Sum::new(volume),
        }
    }

    /// Takes the next candle in.
    pub(super) fn add(&mut self, row: &'a [u8]) {
        let [_, high, low, close, volume] = fields(row);
        if compare(high, self.prices[1]).is_gt() {
            self.prices[1] = high;
        }
        if compare(low, self.prices[2]).is_lt() {
            self.prices[2] = low;
        }
        self.prices[3] = close;
        self.volume.add(volume);
    }

    /// Open, high, low and close, and the exact sum of the volumes. `None`: it does not fit.
    pub(super) fn finish(self) -> Option<([&'a [u8]; 4], Decimal)> {
        Some((self.prices, self.volume.finish()?))
    }
}

impl Sum {
    fn new(text: &[u8]) -> Sum {
        match word(text) {
            Some((mantissa, scale)) => Sum::Word {
                mantissa: mantissa.into(),
                scale,
            },
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

/// Digits and places of a decimal, when a word holds them.
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
