//! Values: the numbers, times and names in the members of an item.
//!
//! Owns the rules for all exchanges: a number may come as a JSON number or as text, an empty text
//! is unknown, and an impossible value is an [`ItemFault`]. It never rounds a price or an amount,
//! never uses binary floating point, and does not know which field a value belongs to.

use super::error::{ItemFault, WrongPart};
use super::json::Raw;
use super::shape::ItemFields;
use crate::config::members::{Named, names};
use crate::config::unquoted;
use crate::decimal::{Decimal, DecimalError};
use crate::time::{UnixMs, digits, iso_8601, millis};
use std::borrow::Cow;
use std::fmt::Write;

/// The longest name of a market or an asset. The longest known one has 22 bytes.
pub(super) const NAME_BYTES: usize = 64;

/// The last millisecond of the year 9999, because years have four digits.
const LAST_MS: i64 = 253_402_300_799_999;

names! {
    /// How an exchange writes times.
    pub(super) enum Unit {
        /// Seconds since the epoch; a fraction is cut to milliseconds.
        Seconds "s"
        /// Milliseconds since the epoch.
        Millis "ms"
        /// Microseconds since the epoch, cut to milliseconds.
        Micros "us"
        /// Nanoseconds since the epoch, cut to milliseconds.
        Nanos "ns"
        /// `2024-03-13T11:10:41.270099Z`, cut to milliseconds.
        Iso "iso"
        /// `2024-03-13T11:10:41Z`, also without the `Z`.
        IsoSeconds "isoSeconds"
    }
}

impl Unit {
    /// Writes a time that is `shift` units later than this one, but not before the epoch.
    pub(super) fn write(self, time: UnixMs, shift: i64, out: &mut String) {
        let ms = time.0;
        let later = |units: i64| units.saturating_add(shift).max(0);
        match self {
            Unit::Seconds => write!(out, "{}", later(ms / 1000)),
            Unit::Millis => write!(out, "{}", later(ms)),
            Unit::Micros => write!(out, "{}", later(ms.saturating_mul(1000))),
            Unit::Nanos => write!(out, "{}", later(ms.saturating_mul(1_000_000))),
            Unit::Iso => write!(out, "{}", UnixMs(later(ms))),
            Unit::IsoSeconds => {
                let text = UnixMs(later(ms / 1000).saturating_mul(1000)).to_string();
                write!(out, "{}Z", text.strip_suffix(".000Z").unwrap_or(&text))
            }
        }
        .expect("a string takes everything");
    }
}

/// The text of a number or a time; `None` if unknown. `fault` is the error for a text or word that is
/// neither.
#[inline(always)]
fn plain(raw: Raw<'_>, fault: ItemFault) -> Result<Option<&[u8]>, ItemFault> {
    match raw {
        Raw::Absent | Raw::Null | Raw::Text(b"") => Ok(None),
        Raw::Number(text) | Raw::Text(text) => Ok(Some(text)),
        Raw::NotANumber | Raw::Escaped(_) => Err(fault),
        Raw::Bool(_) | Raw::Object(_) | Raw::Array(_) => Err(ItemFault::WrongType),
    }
}

/// The number in a value; `None` if unknown.
pub(super) fn decimal(raw: Raw<'_>) -> Result<Option<Decimal>, ItemFault> {
    let Some(text) = plain(raw, ItemFault::NotANumber)? else {
        return Ok(None);
    };
    match Decimal::parse(text) {
        Ok(decimal) => Ok(Some(decimal)),
        Err(DecimalError::Malformed) => Err(ItemFault::NotANumber),
        Err(DecimalError::TooLong) => Err(ItemFault::TooLong),
    }
}

/// The number in a field, which may be negative.
pub(super) fn signed(
    fields: &ItemFields<'_>,
    field: impl Named,
) -> Result<Option<Decimal>, WrongPart> {
    decimal(fields.get(field)).map_err(|fault| (field.name(), fault))
}

/// The number in a field that cannot be negative.
pub(super) fn amount(
    fields: &ItemFields<'_>,
    field: impl Named,
) -> Result<Option<Decimal>, WrongPart> {
    match signed(fields, field)? {
        Some(decimal) if decimal.is_negative() => Err((field.name(), ItemFault::Negative)),
        decimal => Ok(decimal),
    }
}

/// The time in a value; `None` if unknown.
pub(super) fn time(raw: Raw<'_>, unit: Unit) -> Result<Option<UnixMs>, ItemFault> {
    let Some(text) = plain(raw, ItemFault::NotATime)? else {
        return Ok(None);
    };
    let ms = match unit {
        Unit::Seconds => seconds(text),
        Unit::Millis => digits(text),
        Unit::Micros => digits(text).map(|us: i64| us / 1000),
        Unit::Nanos => digits(text).map(|ns: i64| ns / 1_000_000),
        Unit::Iso => text.strip_suffix(b"Z").and_then(iso_8601),
        Unit::IsoSeconds => iso_8601(text.strip_suffix(b"Z").unwrap_or(text)),
    };
    match ms {
        Some(ms @ 0..=LAST_MS) => Ok(Some(UnixMs(ms))),
        _ => Err(ItemFault::NotATime),
    }
}

/// The text in a value; `None` if there is none.
pub(super) fn text(raw: Raw<'_>) -> Result<Option<Cow<'_, str>>, ItemFault> {
    match raw {
        Raw::Absent | Raw::Null | Raw::Text(b"") => Ok(None),
        Raw::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Ok(Some(Cow::Borrowed(text))),
            Err(_) => Err(ItemFault::NotAText),
        },
        Raw::Escaped(quoted) => {
            let text = std::str::from_utf8(quoted).ok().and_then(unquoted);
            text.map(|text| Some(Cow::Owned(text))).ok_or(ItemFault::NotAText)
        }
        _ => Err(ItemFault::WrongType),
    }
}

/// A text, or `true`, `false` or a number as a text.
pub(super) fn word(raw: Raw<'_>) -> Result<Option<Cow<'_, str>>, ItemFault> {
    match raw {
        Raw::Bool(word) => Ok(Some(word.to_string().into())),
        Raw::Number(digits) => Ok(Some(String::from_utf8_lossy(digits))),
        other => text(other),
    }
}

/// The name of a market or an asset, which is required.
pub(super) fn name(raw: Raw<'_>) -> Result<Cow<'_, str>, ItemFault> {
    match text(raw)? {
        Some(name) if name.len() > NAME_BYTES => Err(ItemFault::TooLong),
        Some(name) => Ok(name),
        None => Err(ItemFault::Missing),
    }
}

fn seconds(text: &[u8]) -> Option<i64> {
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = text.split_at(point.unwrap_or(text.len()));
    let ms = match fraction.get(1..) {
        None => 0,
        Some(fraction) => millis(fraction)?,
    };
    digits::<i64>(whole)?.checked_mul(1000)?.checked_add(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_numbers_or_texts_and_an_empty_text_is_unknown() {
        let check = |raw: Raw<'_>, expected: Result<Option<&str>, ItemFault>| {
            let number = decimal(raw).map(|number| number.map(|number| number.to_string()));
            assert_eq!(number, expected.map(|text| text.map(str::to_owned)), "{raw:?}");
        };
        check(Raw::Text(b"64123.45000000"), Ok(Some("64123.45")));
        check(Raw::Number(b"1.2e-7"), Ok(Some("0.00000012")));
        check(Raw::Text(b"-3.140"), Ok(Some("-3.14")));
        check(Raw::Text(b"0.00000000"), Ok(Some("0")));
        for unknown in [Raw::Absent, Raw::Null, Raw::Text(b"")] {
            check(unknown, Ok(None));
        }
        for absurd in ["NaN", "abc", " ", "Infinity", "1,5", "0x10"] {
            check(Raw::Text(absurd.as_bytes()), Err(ItemFault::NotANumber));
        }
        check(Raw::NotANumber, Err(ItemFault::NotANumber));
        check(Raw::Escaped(br#""1\u0032""#), Err(ItemFault::NotANumber));
        check(Raw::Text(b"1e999"), Err(ItemFault::TooLong));
        check(Raw::Number(b"1e999"), Err(ItemFault::TooLong));
        for other in [Raw::Bool(true), Raw::Array(b"[]"), Raw::Object(b"{}")] {
            check(other, Err(ItemFault::WrongType));
        }
        check(Raw::Text(b"-0.00"), Ok(Some("0")));
    }

    #[test]
    fn times_come_in_several_units() {
        let check = |form, text: &str, expected: Result<i64, ItemFault>| {
            for raw in [Raw::Text(text.as_bytes()), Raw::Number(text.as_bytes())] {
                let ms = time(raw, form).map(|time| time.expect("not empty").0);
                assert_eq!(ms, expected, "{text}");
            }
        };
        use Unit::{Iso as Iso8601, Millis, Seconds};
        check(Millis, "1499827319559", Ok(1_499_827_319_559));
        check(Millis, "0", Ok(0));
        check(Millis, "253402300799999", Ok(LAST_MS));
        check(Seconds, "1391835876", Ok(1_391_835_876_000));
        check(Seconds, "1391835876.1", Ok(1_391_835_876_100));
        check(Seconds, "1391835876.123999", Ok(1_391_835_876_123));
        check(Iso8601, "2024-03-13T11:10:41.270099Z", Ok(1_710_328_241_270));
        check(Iso8601, "1970-01-01T00:00:00Z", Ok(0));
        check(Iso8601, "2016-12-31T23:59:60Z", Ok(1_483_228_800_000));
        for (form, absurd) in [
            (Millis, "-1"),
            (Millis, "1.5"),
            (Millis, "253402300800000"),
            (Millis, "9999999999999999999"),
            (Millis, "now"),
            (Seconds, "253402300800"),
            (Seconds, "999999999999999999"),
            (Seconds, "1."),
            (Seconds, "."),
            (Seconds, "1.x"),
            (Iso8601, "1710328241270"),
            (Iso8601, "2024-03-13T11:10:41.270"),
            (Iso8601, "2024-03-13T11:10:41+01:00"),
            (Iso8601, "2024-13-13T11:10:41Z"),
            (Iso8601, "2024-03-00T11:10:41Z"),
            (Iso8601, "2024-03-13T24:10:41Z"),
            (Iso8601, "2024-03-13 11:10:41Z"),
            (Iso8601, "2024-03-13T1\u{fc}:10:41Z"),
            (Iso8601, "Z"),
        ] {
            check(form, absurd, Err(ItemFault::NotATime));
        }
        assert_eq!(time(Raw::Text(b""), Millis), Ok(None));
        assert_eq!(time(Raw::Null, Seconds), Ok(None));
        assert_eq!(time(Raw::Bool(true), Iso8601), Err(ItemFault::WrongType));
        assert_eq!(time(Raw::NotANumber, Millis), Err(ItemFault::NotATime));
    }

    #[test]
    fn texts_are_utf_8_and_their_escapes_are_read() {
        assert_eq!(text(Raw::Text("BTC\u{5e01}".as_bytes())), Ok(Some("BTC\u{5e01}".into())));
        assert_eq!(text(Raw::Escaped(br#""XBT\/USD\u00e9""#)), Ok(Some("XBT/USD\u{e9}".into())));
        assert_eq!(text(Raw::Text(b"\xff")), Err(ItemFault::NotAText));
        assert_eq!(text(Raw::Escaped(br#""\ud800""#)), Err(ItemFault::NotAText));
        assert_eq!(text(Raw::Number(b"7")), Err(ItemFault::WrongType));
        assert_eq!(name(Raw::Text(b"")), Err(ItemFault::Missing));
        assert_eq!(name(Raw::Text(&[b'A'; NAME_BYTES])).map(|name| name.len()), Ok(NAME_BYTES));
        assert_eq!(name(Raw::Text(&[b'A'; NAME_BYTES + 1])), Err(ItemFault::TooLong));
    }
}
