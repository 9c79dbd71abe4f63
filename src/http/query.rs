//! Percent-decoding of path segments and queries.
//!
//! Text is split before it is decoded, and decoded only once. So an escaped slash or ampersand is part
//! of its segment or value.

use super::head::hex_digit;
use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// A `%` without two hexadecimal digits, or an escaped control byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEscape;

/// Decodes a path segment (RFC 3986, 2.1). The result has no control byte, but may have slashes and
/// bytes that are not UTF-8. A `+` stays a `+`.
pub fn decode_segment(raw: &[u8]) -> Result<Cow<'_, [u8]>, BadEscape> {
    unescape(raw, |byte| visible(byte).map(Some).ok_or(BadEscape))
}

/// Decodes the escapes of unreserved characters, so that the path can be compared with those of
/// endpoints (RFC 3986, 6.2.2.2). Other escapes stay, so that each segment can be decoded later. A path
/// with an invalid escape is returned as it is.
pub fn normal_path(raw: &[u8]) -> Cow<'_, [u8]> {
    let unreserved = |byte: Option<u8>| Ok(byte.map(Some).ok_or(BadEscape)?.filter(is_unreserved));
    unescape(raw, unreserved).unwrap_or(Cow::Borrowed(raw))
}

/// True for unreserved characters (RFC 3986, 2.3).
fn is_unreserved(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(byte)
}

/// The (key, value) pairs of a query in their order; `raw` is what follows the `?`. The value of a key
/// without `=` is empty. Empty pairs are skipped. A `+` is a blank, as in forms.
///
/// An invalid escape or an escaped control byte is not decoded. No parameter accepts a `%`, so the
/// check of the parameter refuses the value with its own message. In a list, only one item is invalid.
pub fn query_pairs(raw: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    let (mut rest, is_encoded) = (raw, is_encoded(raw));
    let decoded = move |text| if is_encoded { decode(text) } else { Cow::Borrowed(text) };
    std::iter::from_fn(move || {
        while let [b'&', after @ ..] = rest {
            rest = after;
        }
        if rest.is_empty() {
            return None;
        }
        let (pair, after) = split_at(rest, memchr(b'&', rest));
        rest = after;
        // Keys are short.
        let (key, value) = split_at(pair, pair.iter().position(|&byte| byte == b'='));
        Some((decoded(key), decoded(value)))
    })
}

/// True if there is something to decode.
fn is_encoded(raw: &[u8]) -> bool {
    memchr2(b'%', b'+', raw).is_some()
}

/// What is before this place, and behind the byte in it.
fn split_at(text: &[u8], at: Option<usize>) -> (&[u8], &[u8]) {
    let (before, rest) = text.split_at(at.unwrap_or(text.len()));
    (before, rest.get(1..).unwrap_or_default())
}

fn decode(raw: &[u8]) -> Cow<'_, [u8]> {
    if !is_encoded(raw) {
        return Cow::Borrowed(raw);
    }
    let spaced: Vec<u8> =
        (raw.iter()).map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    let decoded = unescape(&spaced, |byte| Ok(visible(byte)));
    Cow::Owned(decoded.map_or(raw.to_vec(), Cow::into_owned))
}

/// The byte of an escape, unless it is a control byte.
fn visible(byte: Option<u8>) -> Option<u8> {
    byte.filter(|byte| !byte.is_ascii_control())
}

/// Replaces escapes. `meaning` gets the byte of an escape, or `None` if that is malformed, and returns
/// what to put in its place; `None` leaves it as it is.
fn unescape(
    raw: &[u8],
    meaning: impl Fn(Option<u8>) -> Result<Option<u8>, BadEscape>,
) -> Result<Cow<'_, [u8]>, BadEscape> {
    let Some(first) = memchr(b'%', raw) else {
        return Ok(Cow::Borrowed(raw));
    };
    let mut out = raw[..first].to_vec();
    let mut rest = &raw[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = match (byte, tail) {
            (b'%', [high, low, ..]) => {
                meaning(hex_digit(*high).zip(hex_digit(*low)).map(|(h, l)| h << 4 | l))?
            }
            (b'%', _) => meaning(None)?,
            _ => None,
        };
        out.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_decoded_once() {
        let check = |raw: &str, expected: &[u8]| {
            assert_eq!(decode_segment(raw.as_bytes()).as_deref(), Ok(expected), "{raw}");
        };
        check("", b"");
        check("BTC-USDT", b"BTC-USDT");
        check("BTC%2FUSDT", b"BTC/USDT");
        check("btc%2fusdt", b"btc/usdt");
        check("%252F", b"%2F");
        check("a+b%20c", b"a+b c");
        check("%E2%82%AC%ff", b"\xe2\x82\xac\xff");
    }

    #[test]
    fn bad_escapes_and_hidden_control_bytes_are_refused() {
        for raw in
            ["%", "%4", "a%", "%%41", "%g0", "%0g", "%-1", "%+1", "% 1", "%00", "a%0Ab", "%7f"]
        {
            assert_eq!(decode_segment(raw.as_bytes()), Err(BadEscape), "{raw}");
        }
    }

    #[test]
    fn a_path_is_compared_without_needless_escapes() {
        let check = |raw: &str, expected: &str| {
            assert_eq!(normal_path(raw.as_bytes()), expected.as_bytes(), "{raw}");
        };
        check("/health", "/health");
        check("/%68ealth/%7E%2d", "/health/~-");
        check("/BTC%2FUSDT%20", "/BTC%2FUSDT%20");
        // What one decoding leaves is what one decoding of the normal form leaves.
        check("/%2541", "/%2541");
        check("/%25%34%31", "/%2541");
        for bad in ["/%2%35", "/%%341", "/%41%", "/%41%4", "/%41%zz"] {
            check(bad, bad);
        }
    }

    #[test]
    fn what_needs_no_decoding_is_borrowed() {
        assert!(matches!(decode_segment(b"a+b"), Ok(Cow::Borrowed(b"a+b"))));
    }

    #[test]
    fn a_query_is_a_list_of_pairs() {
        let check = |raw: &str, expected: &str| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let pairs: Vec<String> = query_pairs(raw.as_bytes())
                .map(|(key, value)| format!("{}>{}", text(&key), text(&value)))
                .collect();
            assert_eq!(pairs.join(" "), expected, "{raw}");
        };
        check("", "");
        check("&&", "");
        check("a=1&b=2", "a>1 b>2");
        check("a", "a>");
        check("a=&=b&=", "a> >b >");
        check("a=b=c", "a>b=c");
        check("symbols=BTC%2FUSDT%2cETH-USDT&x=%26", "symbols>BTC/USDT,ETH-USDT x>&");
        check("symb%6fl=a+b", "symbol>a b");
        check("a=%zz&b=1", "a>%zz b>1");
        check("%zz=1&b=%00", "%zz>1 b>%00");
        check("a=%2F,%0a,%2,%&b=%%2F", "a>/,%0a,%2,% b>%/");
    }
}
