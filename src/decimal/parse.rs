//! Parses a text into the digits of a decimal.
//!
//! Owns the grammar: an optional sign, digits with an optional point, an optional exponent. [`small`] parses
//! short and plain texts, which are most texts of an exchange. [`any`] parses the others.

/// A number of this many digits always fits an `i64`.
pub(super) const SMALL_DIGITS: usize = 18;

/// The first number with more than [`SMALL_DIGITS`] digits.
pub(super) const SMALL_LIMIT: u64 = 10u64.pow(SMALL_DIGITS as u32);

/// Longest text that is parsed: the digits, a point, a sign, an exponent and some needless zeros.
const MAX_TEXT: usize = 256;

/// The powers of ten from 10^0 to 10^[`SMALL_DIGITS`].
const POWERS: [u64; SMALL_DIGITS + 1] = {
    let (mut powers, mut at) = ([1; SMALL_DIGITS + 1], 1);
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Why a text is not a [`Decimal`](super::Decimal).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// Not a finite decimal number (`NaN`, `abc`, an empty text, ...).
    Malformed,
    /// More than [`MAX_DIGITS`](super::MAX_DIGITS) digits in the normal form.
    TooLong,
}

/// Parses the common case: digits with an optional point, at most 18 of them. Returns mantissa and scale in
/// the normal form. `None` if [`any`] must parse the text, or reject it.
pub(super) fn small(text: &[u8]) -> Option<(i64, u8)> {
    let unsigned = text.strip_prefix(b"-");
    let (negative, number) = (unsigned.is_some(), unsigned.unwrap_or(text));
    // 18 digits and a point: no sum below can overflow.
    if number.len() > SMALL_DIGITS + 1 {
        return None;
    }
    let whole = number.iter().take_while(|byte| byte.is_ascii_digit());
    let (at, whole) = whole.fold((0, 0), |(at, whole), byte| (at + 1, append(whole, byte)));
    let (places, fraction) = match &number[at..] {
        [] if at > 0 => (0, 0),
        [b'.', digits @ ..] if at > 0 && !digits.is_empty() => fraction(digits)?,
        _ => return None,
    };
    let magnitude = whole * POWERS[places] + fraction;
    if magnitude >= SMALL_LIMIT {
        return None;
    }
    let size = magnitude as i64;
    Some((if negative { -size } else { size }, places as u8))
}

/// Parses the digits behind a point, without needless zeros: returns how many there are, and their value. Up
/// to eight digits are parsed as one word: a processor cannot predict where a loop over them ends.
fn fraction(digits: &[u8]) -> Option<(usize, u64)> {
    let zeros = all(b'0');
    // The first digit is in the lowest byte, and behind the last one are zeros.
    let word = if let Some(eight) = digits.first_chunk() {
        u64::from_le_bytes(*eight)
    } else if let (Some(first), Some(last)) = (digits.first_chunk(), digits.last_chunk()) {
        let [first, last] = [first, last].map(|four| u64::from(u32::from_le_bytes(*four)));
        zeros << (8 * digits.len()) | last << (8 * digits.len() - 32) | first
    } else {
        digits.iter().rev().fold(zeros, |word, digit| word << 8 | u64::from(*digit))
    };
    let needless = (word ^ zeros).leading_zeros() as usize / 8;
    if digits.len() > 8 || needless == 8 {
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        let digits = &digits[..digits.len() - zeros];
        let is_number = digits.iter().all(u8::is_ascii_digit);
        return is_number.then(|| (digits.len(), digits.iter().fold(0, append)));
    }
    let word = word << (8 * needless) | zeros & ((1 << (8 * needless)) - 1);
    eight_digits(word).map(|number| (8 - needless, number))
}

fn append(number: u64, digit: &u8) -> u64 {
    number * 10 + u64::from(digit - b'0')
}

/// The number that eight digits stand for: adds up pairs of digits, then fours, then all eight.
fn eight_digits(word: u64) -> Option<u64> {
    // '0' to '9' are 0x30 to 0x39. A carry of the addition comes from a byte that is no digit.
    let is_digits =
        (word & all(0xf0)) | ((word.wrapping_add(all(6)) & all(0xf0)) >> 4) == all(0x33);
    let pairs = (word & all(0x0f)).wrapping_mul(10 << 8 | 1) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(100 << 16 | 1) >> 16;
    let eight = (fours & 0x0000_ffff_0000_ffff).wrapping_mul(10_000 << 32 | 1) >> 32;
    is_digits.then_some(eight)
}

/// Eight times this byte.
fn all(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Parses any decimal text. Returns true if it is negative, then its digits, then its scale: the number of
/// digits behind the point, less the exponent.
pub(super) fn any(text: &[u8]) -> Result<(bool, Vec<u8>, i64), DecimalError> {
    if text.len() > MAX_TEXT {
        return Err(DecimalError::TooLong);
    }
    let (negative, unsigned) = split_sign(text);
    let (number, exponent) = match unsigned.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
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
    Ok((negative, digits, behind_point - exponent))
}

/// Parses the digits behind an `e`, with an optional sign.
fn exponent(text: &[u8]) -> Result<i64, DecimalError> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(DecimalError::Malformed);
    }
    let magnitude = digits.iter().fold(0i64, |sum, digit| {
        // Saturates far above every acceptable exponent, far below overflow.
        (sum * 10 + i64::from(digit - b'0')).min(1_000_000)
    });
    Ok(if negative { -magnitude } else { magnitude })
}

/// Splits off an optional sign: true if it is a minus, and the text behind it.
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}
