//! An exact decimal number, as exchanges write prices and amounts.
//!
//! [`Decimal`] owns the digits of one number. Its text has one normal form: no exponent, no leading
//! `+`, no needless zeros. Two decimals are equal exactly when their texts are.
//!
//! Only [`Decimal::percent_of`] rounds. Parsing and writing keep every digit, up to [`MAX_DIGITS`].
//! Arithmetic returns `None` if a `Decimal` cannot hold the exact result.
//!
//! Invariant: `scale == 0`, or the last digit is not zero. A number of at most 18 significant
//! digits is `Small`, any other is `Large`. So the derived equality is equality of numbers.

mod parse;

pub use parse::DecimalError;
use parse::{SMALL_DIGITS, SMALL_LIMIT};
use std::cmp::Ordering;
use std::fmt;

/// Most digits of a number in its normal form. No market needs that many: a longer number is an
/// error of the exchange or an attack.
pub const MAX_DIGITS: usize = 64;

/// An exact decimal number. See the module documentation for its normal form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Decimal(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// `mantissa / 10^scale`, at most 18 significant digits.
    Small { mantissa: i64, scale: u8 },
    /// More digits than an `i64` holds. Boxed, because a quote holds a dozen decimals, and nearly
    /// none of them is large.
    Large(Box<Large>),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Large {
    negative: bool,
    /// The significant digits in ASCII. The first one is not `0`.
    digits: Box<[u8]>,
    scale: u8,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal(Repr::Small { mantissa: 0, scale: 0 });

    /// Parses an optional sign, digits with an optional point, and an optional exponent.
    pub fn parse(text: &[u8]) -> Result<Decimal, DecimalError> {
        if let Some((mantissa, scale)) = parse::small(text) {
            return Ok(Decimal(Repr::Small { mantissa, scale }));
        }
        let (negative, digits, scale) = parse::any(text)?;
        normalise(negative, digits, scale)
    }

    /// `mantissa / 10^scale`, or `None` if its normal form has more than [`MAX_DIGITS`] digits.
    pub fn from_parts(mantissa: i128, scale: u32) -> Option<Decimal> {
        let magnitude = mantissa.unsigned_abs();
        match u64::try_from(magnitude) {
            Ok(magnitude) if magnitude < SMALL_LIMIT => small(mantissa < 0, magnitude, scale),
            _ => {
                let digits = itoa::Buffer::new().format(magnitude).as_bytes().to_vec();
                normalise(mantissa < 0, digits, i64::from(scale)).ok()
            }
        }
    }

    /// True if this is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small { mantissa: 0, .. })
    }

    /// True if this is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small { mantissa, .. } => *mantissa < 0,
            Repr::Large(large) => large.negative,
        }
    }

    /// True if this is above zero.
    pub fn is_positive(&self) -> bool {
        !self.is_zero() && !self.is_negative()
    }

    /// The number of digits behind the point, in the normal form.
    pub fn places(&self) -> u32 {
        u32::from(match &self.0 {
            Repr::Small { scale, .. } => *scale,
            Repr::Large(large) => large.scale,
        })
    }

    /// `self + other`, or `None` if the exact sum does not fit 38 digits.
    pub fn checked_add(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = aligned(self, other)?;
        Decimal::from_parts(a.checked_add(b)?, scale)
    }

    /// `self - other`, or `None` if the exact difference does not fit 38 digits.
    pub fn checked_sub(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = aligned(self, other)?;
        Decimal::from_parts(a.checked_sub(b)?, scale)
    }

    /// `100 * self / whole`, rounded half to even at `places` decimal places. `None` if `whole` is
    /// zero or an intermediate result does not fit 38 digits.
    pub fn percent_of(&self, whole: &Decimal, places: u32) -> Option<Decimal> {
        let (a, b, _) = aligned(self, whole)?;
        let numerator = a.checked_mul(10i128.checked_pow(places + 2)?)?;
        if b == 0 {
            return None;
        }
        let (quotient, remainder) = (numerator / b, numerator % b);
        let twice = remainder.unsigned_abs().checked_mul(2)?;
        let round_up = match twice.cmp(&b.unsigned_abs()) {
            Ordering::Greater => true,
            Ordering::Equal => quotient % 2 != 0,
            Ordering::Less => false,
        };
        let step = if (numerator < 0) == (b < 0) { 1 } else { -1 };
        Decimal::from_parts(if round_up { quotient + step } else { quotient }, places)
    }

    /// `self * 10^places`, or `None` if its normal form has more than [`MAX_DIGITS`] digits.
    pub fn shifted(&self, places: i32) -> Option<Decimal> {
        let digits = self.digits(&mut itoa::Buffer::new()).to_vec();
        let scale = i64::from(self.places()) - i64::from(places);
        normalise(self.is_negative(), digits, scale).ok()
    }

    /// Appends the text to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.is_negative() {
            out.push(b'-');
        }
        let mut buffer = itoa::Buffer::new();
        let (digits, scale) = (self.digits(&mut buffer), self.places() as usize);
        if scale == 0 {
            out.extend_from_slice(digits);
        } else if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        } else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
    }

    /// The significant digits in ASCII, without a point; `0` for zero. The digits of a `Small`
    /// number are written to `buffer`.
    fn digits<'a>(&'a self, buffer: &'a mut itoa::Buffer) -> &'a [u8] {
        match &self.0 {
            Repr::Small { mantissa, .. } => buffer.format(mantissa.unsigned_abs()).as_bytes(),
            Repr::Large(large) => &large.digits,
        }
    }

    /// The signed significant digits as one number, or `None` if they do not fit 38 digits.
    fn mantissa(&self) -> Option<i128> {
        match &self.0 {
            Repr::Small { mantissa, .. } => Some(i128::from(*mantissa)),
            Repr::Large(large) => {
                let magnitude = large.digits.iter().try_fold(0i128, |sum, digit| {
                    sum.checked_mul(10)?.checked_add(i128::from(digit - b'0'))
                })?;
                Some(if large.negative { -magnitude } else { magnitude })
            }
        }
    }

    /// Compares the absolute values of two numbers.
    fn cmp_magnitude(&self, other: &Decimal) -> Ordering {
        let (mut a_buffer, mut b_buffer) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (a, b) = (self.digits(&mut a_buffer), other.digits(&mut b_buffer));
        // The first digit's distance from the point. A zero is smaller than all others.
        let first = |number: &Decimal, digits: &[u8]| {
            (!number.is_zero()).then(|| digits.len() as i64 - i64::from(number.places()))
        };
        first(self, a).cmp(&first(other, b)).then_with(|| a.cmp(b))
    }
}

impl Default for Decimal {
    fn default() -> Decimal {
        Decimal::ZERO
    }
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
        if let (Repr::Small { mantissa: a, .. }, Repr::Small { mantissa: b, .. }) =
            (&self.0, &other.0)
            && self.places() == other.places()
        {
            return a.cmp(b);
        }
        if let Some((a, b, _)) = aligned(self, other) {
            return a.cmp(&b);
        }
        match (self.is_negative(), other.is_negative()) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (negative, _) => other.is_negative().cmp(&negative),
        }
    }
}

/// The mantissas of both numbers at the larger of their scales, and this scale.
fn aligned(a: &Decimal, b: &Decimal) -> Option<(i128, i128, u32)> {
    let scale = a.places().max(b.places());
    let align = |number: &Decimal| -> Option<i128> {
        let mantissa = number.mantissa()?;
        if mantissa == 0 {
            return Some(0);
        }
        mantissa.checked_mul(10i128.checked_pow(scale - number.places())?)
    };
    Some((align(a)?, align(b)?, scale))
}

/// `magnitude / 10^scale` in the normal form, for a magnitude below [`SMALL_LIMIT`]. `None` if the
/// normal form has more than [`MAX_DIGITS`] digits.
fn small(negative: bool, mut magnitude: u64, mut scale: u32) -> Option<Decimal> {
    while scale > 0 && magnitude.is_multiple_of(10) {
        if magnitude == 0 {
            return Some(Decimal::ZERO);
        }
        magnitude /= 10;
        scale -= 1;
    }
    // The zero in front of the point of a fraction counts as a digit.
    if scale as usize >= MAX_DIGITS {
        return None;
    }
    let size = magnitude as i64;
    Some(Decimal(Repr::Small { mantissa: if negative { -size } else { size }, scale: scale as u8 }))
}

/// `digits / 10^scale` in the normal form. `scale` may be negative.
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
    digits.resize(digits.len() + (-scale).max(0) as usize, b'0');
    let scale = scale.max(0) as u8;
    if digits.len() <= SMALL_DIGITS {
        let magnitude = digits.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        return small(negative, magnitude, u32::from(scale)).ok_or(DecimalError::TooLong);
    }
    Ok(Decimal(Repr::Large(Box::new(Large { negative, digits: digits.into_boxed_slice(), scale }))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    /// By the slow way alone.
    fn parse_any(text: &[u8]) -> Result<Decimal, DecimalError> {
        let (negative, digits, scale) = parse::any(text)?;
        normalise(negative, digits, scale)
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
        check("123456789012345678901234567890.5", Ok("123456789012345678901234567890.5"));
        check("1e63", Ok(&format!("1{}", "0".repeat(63))));
        check("1e-63", Ok(&format!("0.{}1", "0".repeat(62))));
        check("0e999999999999", Ok("0"));
    }

    #[test]
    fn both_ways_to_parse_agree_on_any_text() {
        let mut rng = Rng::new(7);
        for _ in 0..100_000 {
            let mut byte = || b"0011223456789.-:/9900"[rng.below(21) as usize];
            let (first, second) = (byte(), byte());
            let length = usize::from(first ^ second) % 24;
            let text: Vec<u8> = (0..length).map(|_| byte()).collect();
            if parse::small(&text).is_some() {
                let text = String::from_utf8_lossy(&text);
                assert_eq!(Decimal::parse(text.as_bytes()), parse_any(text.as_bytes()), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_finite_decimal_is_refused() {
        for text in ["", "-", "+", ".", "abc", "NaN", "Infinity", "1e", "1e+", "1..2", "1.2.3"] {
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
    fn a_shift_is_an_exponent() {
        let long = format!("-0.{}", "7".repeat(60));
        for text in ["0", "0.0068", "-0.5", "12", "100", "999999999999999999", &long] {
            for places in [-70, -2, 0, 2, 62, 70] {
                let shifted = Decimal::parse(format!("{text}e{places}").as_bytes()).ok();
                assert_eq!(decimal(text).shifted(places), shifted, "{text} {places}");
            }
        }
    }

    #[test]
    fn parts_make_what_their_text_makes() {
        let check = |mantissa: i128, scale: u32| {
            let parsed = Decimal::parse(format!("{mantissa}e-{scale}").as_bytes());
            assert_eq!(Decimal::from_parts(mantissa, scale), parsed.ok());
        };
        for mantissa in [0, 1, 10, -7, 999_999_999_999_999_999, -(10i128.pow(18)), i128::MIN] {
            for scale in 0..=110 {
                check(mantissa, scale);
            }
        }
        assert_eq!(Decimal::from_parts(1, 64), None, "65 digits");
    }

    #[test]
    fn order_is_the_order_of_numbers() {
        let ascending = [
            "-123456789012345678901234567890123456789012345.5",
            "-123456789012345678901234567890123456789012345",
            "-1.5",
            "-1.05",
            "-0.00000001",
            "-1e-63",
            "0",
            "1.00000000000000000000000000000000000000000000001e-15",
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
        assert_eq!(sum("999999999999999999", "1").as_deref(), Some("1000000000000000000"));
        assert_eq!(difference("0.03606", "0.03661").as_deref(), Some("-0.00055"));
        assert_eq!(difference("1", "1.000").as_deref(), Some("0"));
        assert_eq!(sum("9999999999999999999999999999999999999999", "1"), None);
        assert_eq!(sum("1e37", "1e-37"), None);
    }

    #[test]
    fn percentages_round_half_even() {
        let percent =
            |a, b, places| decimal(a).percent_of(&decimal(b), places).map(|d| d.to_string());
        assert_eq!(percent("-166.82", "6872.64", 12).as_deref(), Some("-2.427305955208"));
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
        let most = if cfg!(target_pointer_width = "64") { 16 } else { 12 };
        assert_eq!(size_of::<Decimal>(), most);
        assert_eq!(size_of::<Option<Decimal>>(), most);
    }
}
