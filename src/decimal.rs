//! An exact decimal number, as exchanges write prices and amounts.
//!
//! Owns the digits of one number in one normal form: no exponent, no leading `+`, no needless
//! zeros. Two decimals are equal exactly when their texts are.
//!
//! It never rounds. Text that passes through keeps every digit, up to [`MAX_DIGITS`]; arithmetic
//! whose result cannot be held exactly answers `None`.
//!
//! Invariant: `scale == 0`, or the last digit is not zero; a number of at most 18 significant
//! digits is `Small`, any other is `Large`. So the derived equality is equality of numbers.

use std::cmp::Ordering;
use std::fmt;

/// Most digits that a number may have, written out without exponent and needless zeros. No
/// market quotes near it; a longer text is a fault or an attack.
pub const MAX_DIGITS: usize = 64;

/// Longest text that is looked at: digits, point, sign, exponent and some needless zeros.
const MAX_TEXT: usize = 256;

/// Digits that always fit an `i64`.
const SMALL_DIGITS: u32 = 18;

const SMALL_LIMIT: u64 = 1_000_000_000_000_000_000;

/// An exact decimal number. See the module's page for its normal form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Decimal(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// `mantissa / 10^scale`, at most 18 significant digits.
    Small { mantissa: i64, scale: u8 },
    /// More digits than an `i64` holds. Boxed: a quote holds a dozen decimals, and nearly none
    /// of them is large.
    Large(Box<Large>),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Large {
    negative: bool,
    /// Significant digits as ASCII, first one not `0`.
    digits: Box<[u8]>,
    scale: u8,
}

/// Why a text is no decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// Not a finite decimal number (`NaN`, `abc`, an empty text, ...).
    Malformed,
    /// More than [`MAX_DIGITS`] digits when written out.
    TooLong,
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecimalError::Malformed => f.write_str("not a decimal number"),
            DecimalError::TooLong => write!(f, "more than {MAX_DIGITS} digits"),
        }
    }
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal(Repr::Small {
        mantissa: 0,
        scale: 0,
    });

    /// Reads a decimal: optional sign, digits with an optional point, optional exponent.
    pub fn parse(text: &[u8]) -> Result<Decimal, DecimalError> {
        match parse_small(text) {
            Some(decimal) => Ok(decimal),
            None => parse_any(text),
        }
    }

    /// `mantissa / 10^scale`. `None` when that has more than [`MAX_DIGITS`] digits.
    pub fn from_parts(mantissa: i128, scale: u32) -> Option<Decimal> {
        let (mut mantissa, mut scale) = (mantissa, scale);
        while scale > 0 && mantissa % 10 == 0 {
            if mantissa == 0 {
                return Some(Decimal::ZERO);
            }
            mantissa /= 10;
            scale -= 1;
        }
        if scale as usize > MAX_DIGITS {
            return None;
        }
        if mantissa.unsigned_abs() < u128::from(SMALL_LIMIT) {
            return Some(Decimal(Repr::Small {
                mantissa: mantissa as i64,
                scale: scale as u8,
            }));
        }
        let digits = mantissa.unsigned_abs().to_string().into_bytes();
        Some(Decimal(Repr::Large(Box::new(Large {
            negative: mantissa < 0,
            digits: digits.into_boxed_slice(),
            scale: scale as u8,
        }))))
    }

    /// Whether this is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small { mantissa: 0, .. })
    }

    /// Whether this is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small { mantissa, .. } => *mantissa < 0,
            Repr::Large(large) => large.negative,
        }
    }

    /// Whether this is above zero.
    pub fn is_positive(&self) -> bool {
        !self.is_zero() && !self.is_negative()
    }

    /// Digits behind the point, in the normal form.
    pub fn places(&self) -> u32 {
        match &self.0 {
            Repr::Small { scale, .. } => u32::from(*scale),
            Repr::Large(large) => u32::from(large.scale),
        }
    }

    /// `self + other`, or `None` where the exact sum does not fit 38 digits.
    pub fn checked_add(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = aligned(self, other)?;
        Decimal::from_parts(a.checked_add(b)?, scale)
    }

    /// `self - other`, or `None` where the exact difference does not fit 38 digits.
    pub fn checked_sub(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = aligned(self, other)?;
        Decimal::from_parts(a.checked_sub(b)?, scale)
    }

    /// `100 * self / whole`, rounded half-even to `places` decimal places. `None` when `whole`
    /// is zero or the numbers do not fit 38 digits on the way.
    pub fn percent_of(&self, whole: &Decimal, places: u32) -> Option<Decimal> {
        let (a, b, _) = aligned(self, whole)?;
        let ten: i128 = 10;
        let numerator = a.checked_mul(ten.checked_pow(places + 2)?)?;
        if b == 0 {
            return None;
        }
        let (quotient, rest) = (numerator / b, numerator % b);
        let twice = rest.unsigned_abs().checked_mul(2)?;
        let away = match twice.cmp(&b.unsigned_abs()) {
            Ordering::Greater => true,
            Ordering::Equal => quotient % 2 != 0,
            Ordering::Less => false,
        };
        let step = if (numerator < 0) == (b < 0) { 1 } else { -1 };
        Decimal::from_parts(if away { quotient + step } else { quotient }, places)
    }

    /// Appends the digits to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Small { mantissa, scale } => write_small(*mantissa, *scale as usize, out),
            Repr::Large(large) => {
                write_digits(large.negative, &large.digits, large.scale as usize, out);
            }
        }
    }

    /// Mantissa and scale, where 38 digits hold them.
    fn parts(&self) -> Option<(i128, u32)> {
        match &self.0 {
            Repr::Small { mantissa, scale } => Some((i128::from(*mantissa), u32::from(*scale))),
            Repr::Large(large) => {
                let mut mantissa: i128 = 0;
                for digit in &large.digits {
                    mantissa = mantissa
                        .checked_mul(10)?
                        .checked_add(i128::from(digit - b'0'))?;
                }
                let mantissa = if large.negative { -mantissa } else { mantissa };
                Some((mantissa, u32::from(large.scale)))
            }
        }
    }

    /// Sign, digits in front of the point (none for a pure fraction), digits behind it.
    fn halves(&self) -> (bool, Vec<u8>, Vec<u8>) {
        let text = self.to_string().into_bytes();
        let unsigned = text.strip_prefix(b"-").unwrap_or(&text);
        let mut split = unsigned.splitn(2, |byte| *byte == b'.');
        let front = split.next().unwrap_or_default();
        let front = if front == b"0" { &[][..] } else { front };
        let back = split.next().unwrap_or_default();
        (self.is_negative(), front.to_vec(), back.to_vec())
    }
}

/// Two digits for each number below a hundred.
pub const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes a whole number to the end of `text`, two digits at a time; answers where it begins. For
/// what the standard library's formatter is too slow for.
pub fn write_whole(mut number: u64, text: &mut [u8; 20]) -> usize {
    let mut at = text.len();
    while number >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    let [tens, ones] = PAIRS[number as usize];
    at -= 1;
    text[at] = ones;
    if number >= 10 {
        at -= 1;
        text[at] = tens;
    }
    at
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal::from_parts(i128::from(value), 0).expect("19 digits are below the limit")
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(MAX_DIGITS + 3);
        self.write(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        if let (
            Repr::Small {
                mantissa: a,
                scale: x,
            },
            Repr::Small {
                mantissa: b,
                scale: y,
            },
        ) = (&self.0, &other.0)
            && x == y
        {
            return a.cmp(b);
        }
        if let Some((a, b, _)) = aligned(self, other) {
            return a.cmp(&b);
        }
        let (a_negative, a_front, a_back) = self.halves();
        let (b_negative, b_front, b_back) = other.halves();
        let size = (a_front.len().cmp(&b_front.len()))
            .then_with(|| a_front.cmp(&b_front))
            .then_with(|| a_back.cmp(&b_back));
        match (a_negative, b_negative) {
            (false, false) => size,
            (true, true) => size.reverse(),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

/// Both mantissas at the larger of the two scales.
fn aligned(a: &Decimal, b: &Decimal) -> Option<(i128, i128, u32)> {
    let ((a, a_scale), (b, b_scale)) = (a.parts()?, b.parts()?);
    let scale = a_scale.max(b_scale);
    let raise = |mantissa: i128, by: u32| -> Option<i128> {
        if mantissa == 0 {
            return Some(0);
        }
        mantissa.checked_mul(10i128.checked_pow(by)?)
    };
    Some((
        raise(a, scale - a_scale)?,
        raise(b, scale - b_scale)?,
        scale,
    ))
}

/// The common case in one pass: plain digits, at most 18 of them significant. `None` sends the
/// text to [`parse_any`], which also finds out what is wrong with it.
fn parse_small(text: &[u8]) -> Option<Decimal> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    // 18 digits and a point: the accumulator cannot overflow, whatever the digits are.
    if digits.is_empty() || digits.len() > SMALL_DIGITS as usize + 1 {
        return None;
    }
    let mut mantissa: u64 = 0;
    let mut point = None;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => mantissa = mantissa * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && at > 0 && at + 1 < digits.len() => point = Some(at),
            _ => return None,
        }
    }
    if mantissa >= SMALL_LIMIT {
        return None;
    }
    let mut scale = point.map_or(0, |at| digits.len() - at - 1);
    while scale > 0 && mantissa.is_multiple_of(10) {
        mantissa /= 10;
        scale -= 1;
    }
    let mantissa = if negative {
        -(mantissa as i64)
    } else {
        mantissa as i64
    };
    Some(Decimal(Repr::Small {
        mantissa,
        scale: scale as u8,
    }))
}

/// Any decimal text, with exponent and any number of digits.
fn parse_any(text: &[u8]) -> Result<Decimal, DecimalError> {
    if text.len() > MAX_TEXT {
        return Err(DecimalError::TooLong);
    }
    let (negative, unsigned) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (number, exponent) = match unsigned.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let mut digits = Vec::with_capacity(number.len());
    let mut behind_point: i64 = 0;
    let mut point = false;
    for byte in number {
        match byte {
            b'0'..=b'9' => {
                digits.push(*byte);
                behind_point += i64::from(point);
            }
            b'.' if !point => point = true,
            _ => return Err(DecimalError::Malformed),
        }
    }
    if digits.is_empty() {
        return Err(DecimalError::Malformed);
    }
    normalise(negative, digits, behind_point - exponent)
}

fn parse_exponent(text: &[u8]) -> Result<i64, DecimalError> {
    let (sign, digits) = match text.split_first() {
        Some((b'-', rest)) => (-1, rest),
        Some((b'+', rest)) => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(DecimalError::Malformed);
    }
    let magnitude = digits.iter().fold(0i64, |sum, digit| {
        // Saturates far above every acceptable exponent, far below overflow.
        (sum * 10 + i64::from(digit - b'0')).min(1_000_000)
    });
    Ok(sign * magnitude)
}

/// Brings `digits / 10^scale` to the normal form; `scale` may be negative.
fn normalise(negative: bool, mut digits: Vec<u8>, mut scale: i64) -> Result<Decimal, DecimalError> {
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..leading);
    if digits.is_empty() {
        return Ok(Decimal::ZERO);
    }
    while scale > 0 && digits.last() == Some(&b'0') {
        digits.pop();
        scale -= 1;
    }
    let written = (digits.len() as i64 - scale).max(1) + scale.max(0);
    if written > MAX_DIGITS as i64 {
        return Err(DecimalError::TooLong);
    }
    while scale < 0 {
        digits.push(b'0');
        scale += 1;
    }
    if digits.len() <= SMALL_DIGITS as usize {
        let size = digits
            .iter()
            .fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        return Ok(Decimal(Repr::Small {
            mantissa: if negative { -size } else { size },
            scale: scale as u8,
        }));
    }
    Ok(Decimal(Repr::Large(Box::new(Large {
        negative,
        digits: digits.into_boxed_slice(),
        scale: scale as u8,
    }))))
}

fn write_small(mantissa: i64, scale: usize, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = mantissa.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    write_digits(mantissa < 0, &buffer[at..], scale, out);
}

fn write_digits(negative: bool, digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let point = digits.len() - scale;
        out.extend_from_slice(&digits[..point]);
        out.push(b'.');
        out.extend_from_slice(&digits[point..]);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn check(input: &str, expected: Result<&str, DecimalError>) {
        let got = Decimal::parse(input.as_bytes()).map(|decimal| decimal.to_string());
        assert_eq!(got, expected.map(str::to_string), "input {input:?}");
        // The slow path alone must agree with the fast one.
        let slow = parse_any(input.as_bytes());
        assert_eq!(slow, Decimal::parse(input.as_bytes()), "input {input:?}");
    }

    #[test]
    fn text_leaves_in_normal_form() {
        check("64123.45000000", Ok("64123.45"));
        check("1.2e-7", Ok("0.00000012"));
        check("1.2E+3", Ok("1200"));
        check("0", Ok("0"));
        check("-0.000", Ok("0"));
        check("000123.4500", Ok("123.45"));
        check("+5", Ok("5"));
        check(".5", Ok("0.5"));
        check("5.", Ok("5"));
        check("-0.00000001", Ok("-0.00000001"));
        check("100", Ok("100"));
        check("999999999999999999", Ok("999999999999999999"));
        check("9999999999999999999", Ok("9999999999999999999"));
        check(
            "123456789012345678901234567890.5",
            Ok("123456789012345678901234567890.5"),
        );
        check("1e63", Ok(&format!("1{}", "0".repeat(63))));
        check("1e-63", Ok(&format!("0.{}1", "0".repeat(62))));
        check("0e999999999999", Ok("0"));
    }

    #[test]
    fn what_is_no_finite_decimal_is_refused() {
        for text in [
            "", "-", "+", ".", "abc", "NaN", "Infinity", "1e", "1e+", "1..2", "1.2.3",
        ] {
            check(text, Err(DecimalError::Malformed));
        }
        for text in ["0x10", "1,5", " 1", "1 ", "--1", "1e1.5", "e5"] {
            check(text, Err(DecimalError::Malformed));
        }
        check("1e999", Err(DecimalError::TooLong));
        check("1e64", Err(DecimalError::TooLong));
        check("1e-64", Err(DecimalError::TooLong));
        check(&"9".repeat(64), Ok(&"9".repeat(64)));
        check(&"9".repeat(65), Err(DecimalError::TooLong));
        check(&"0".repeat(300), Err(DecimalError::TooLong));
    }

    #[test]
    fn order_is_the_order_of_numbers() {
        let ascending = [
            "-123456789012345678901234567890123456789012345",
            "-1.5",
            "-1.05",
            "-0.00000001",
            "0",
            "0.00000001",
            "0.1",
            "0.11",
            "1",
            "1.000001",
            "2",
            "10",
            "999999999999999999",
            "1000000000000000000",
            "1000000000000000000.5",
            "123456789012345678901234567890123456789012345",
            "123456789012345678901234567890123456789012345.1",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(decimal(a).cmp(&decimal(b)), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn sums_and_differences_are_exact_or_none() {
        let sum = |a, b| decimal(a).checked_add(&decimal(b)).map(|d| d.to_string());
        let difference = |a, b| decimal(a).checked_sub(&decimal(b)).map(|d| d.to_string());
        assert_eq!(sum("0.1", "0.2").as_deref(), Some("0.3"));
        assert_eq!(
            sum("999999999999999999", "1").as_deref(),
            Some("1000000000000000000")
        );
        assert_eq!(
            difference("0.03606", "0.03661").as_deref(),
            Some("-0.00055")
        );
        assert_eq!(difference("1", "1.000").as_deref(), Some("0"));
        assert_eq!(sum("9999999999999999999999999999999999999999", "1"), None);
        assert_eq!(sum("1e37", "1e-37"), None);
    }

    #[test]
    fn percentages_round_half_even() {
        let percent = |a, b, places| {
            decimal(a)
                .percent_of(&decimal(b), places)
                .map(|d| d.to_string())
        };
        assert_eq!(
            percent("-166.82", "6872.64", 12).as_deref(),
            Some("-2.427305955208")
        );
        assert_eq!(percent("1", "3", 12).as_deref(), Some("33.333333333333"));
        assert_eq!(percent("2", "3", 12).as_deref(), Some("66.666666666667"));
        assert_eq!(percent("-2", "3", 12).as_deref(), Some("-66.666666666667"));
        assert_eq!(percent("1", "800", 2).as_deref(), Some("0.12"));
        assert_eq!(percent("3", "800", 2).as_deref(), Some("0.38"));
        assert_eq!(percent("-1", "800", 2).as_deref(), Some("-0.12"));
        assert_eq!(percent("1", "0", 12), None);
        assert_eq!(percent("1e20", "1e-10", 12), None);
    }

    #[test]
    fn a_decimal_takes_sixteen_bytes() {
        assert_eq!(size_of::<Decimal>(), 16);
        assert_eq!(size_of::<Option<Decimal>>(), 16);
    }
}
