//! Percent-decoding of path segments and queries.
//!
//! Text is split before it is decoded, and decoded only once. So an escaped slash or ampersand is part
//! of its segment or value.

use super::target::has_any;
use std::borrow::Cow;
use std::fmt;

/// A `%` without two hexadecimal digits, or an escaped control byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEscape;

impl fmt::Display for BadEscape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed percent-escape")
    }
}

impl std::error::Error for BadEscape {}

/// Decodes a path segment (RFC 3986, 2.1). The result has no control byte, but may have slashes and
/// bytes that are not UTF-8. A `+` stays a `+`.
pub fn decode_segment(raw: &[u8]) -> Result<Cow<'_, [u8]>, BadEscape> {
    decode(raw, b'+', Bad::Refuse)
}

/// Decodes the escapes of unreserved characters, so that the path can be compared with those of
/// endpoints (RFC 3986, 6.2.2.2). Other escapes stay, so that each segment can be decoded later. A path
/// with an invalid escape is returned as it is.
pub fn normal_path(raw: &[u8]) -> Cow<'_, [u8]> {
    if !has_any(raw, [b'%']) {
        return Cow::Borrowed(raw);
    }
    let mut normal = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        normal.push(byte);
        if byte != b'%' {
            continue;
        }
        let digits = match *tail {
            [high, low, ..] => hex(high).and_then(|high| Ok(high << 4 | hex(low)?)),
            _ => Err(BadEscape),
        };
        match digits {
            Ok(byte) if is_unreserved(byte) => {
                *normal.last_mut().expect("the percent sign is in it") = byte;
                rest = &tail[2..];
            }
            Ok(_) => {}
            Err(BadEscape) => return Cow::Borrowed(raw),
        }
    }
    Cow::Owned(normal)
}

/// True for unreserved characters (RFC 3986, 2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// The (key, value) pairs of a query in their order. The value of a key without `=` is empty. Empty
/// pairs are skipped. A `+` is a blank, as in forms.
///
/// An invalid escape or an escaped control byte is not decoded. No parameter accepts a `%`, so the
/// check of the parameter refuses the value with its own message. In a list, only one item is invalid.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    rest: &'a [u8],
}

impl<'a> Query<'a> {
    /// The pairs of `raw`, which is what follows the `?`.
    pub fn new(raw: &'a [u8]) -> Query<'a> {
        Query { rest: raw }
    }
}

impl<'a> Iterator for Query<'a> {
    type Item = (Cow<'a, [u8]>, Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let Marks {
                end,
                equals,
                escapes,
            } = marks(self.rest);
            let pair = &self.rest[..end];
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if pair.is_empty() {
                continue;
            }
            let (key, value) = match equals {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &[][..]),
            };
            if !escapes {
                return Some((Cow::Borrowed(key), Cow::Borrowed(value)));
            }
            let decode = |raw| decode(raw, b' ', Bad::Keep).unwrap_or(Cow::Borrowed(raw));
            return Some((decode(key), decode(value)));
        }
    }
}

/// The ends of the first pair and of its key, and whether the pair has to be decoded.
struct Marks {
    end: usize,
    equals: Option<usize>,
    escapes: bool,
}

/// Finds them in one pass. Sixteen bytes without any mark, as in a long list, are skipped at once.
fn marks(query: &[u8]) -> Marks {
    let mut marks = Marks {
        end: query.len(),
        equals: None,
        escapes: false,
    };
    let (blocks, rest) = query.as_chunks::<16>();
    for (nth, block) in blocks.iter().enumerate() {
        let has_marks = block
            .iter()
            .fold(false, |found, &byte| found | is_mark(byte));
        if has_marks && marks.look(16 * nth, block) {
            return marks;
        }
    }
    marks.look(16 * blocks.len(), rest);
    marks
}

impl Marks {
    /// Goes on with `bytes`, which start at `begin`. Returns true if the pair ends in them.
    #[inline]
    fn look(&mut self, begin: usize, bytes: &[u8]) -> bool {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'&' => {
                    self.end = begin + at;
                    return true;
                }
                b'=' if self.equals.is_none() => self.equals = Some(begin + at),
                b'%' | b'+' => self.escapes = true,
                _ => {}
            }
        }
        false
    }
}

fn is_mark(byte: u8) -> bool {
    (byte == b'&') | (byte == b'=') | (byte == b'%') | (byte == b'+')
}

/// What to do with an invalid escape.
#[derive(Clone, Copy)]
enum Bad {
    Refuse,
    Keep,
}

fn decode(raw: &[u8], plus: u8, bad: Bad) -> Result<Cow<'_, [u8]>, BadEscape> {
    let is_plain = |&byte: &u8| byte != b'%' && (byte != b'+' || plus == b'+');
    let Some(first) = raw.iter().position(|byte| !is_plain(byte)) else {
        return Ok(Cow::Borrowed(raw));
    };
    let mut decoded = Vec::with_capacity(raw.len());
    decoded.extend_from_slice(&raw[..first]);
    let mut rest = &raw[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'%' => match (escaped(rest), bad) {
                (Ok(byte), _) => {
                    decoded.push(byte);
                    rest = &rest[2..];
                }
                (Err(_), Bad::Keep) => decoded.push(b'%'),
                (Err(error), Bad::Refuse) => return Err(error),
            },
            b'+' => decoded.push(plus),
            _ => decoded.push(byte),
        }
    }
    Ok(Cow::Owned(decoded))
}

/// The byte of the two digits after a `%`.
fn escaped(digits: &[u8]) -> Result<u8, BadEscape> {
    let &[high, low, ..] = digits else {
        return Err(BadEscape);
    };
    let byte = hex(high)? << 4 | hex(low)?;
    match byte.is_ascii_control() {
        true => Err(BadEscape),
        false => Ok(byte),
    }
}

fn hex(byte: u8) -> Result<u8, BadEscape> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(BadEscape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_decoded_once() {
        let check = |raw: &str, expected: &[u8]| {
            assert_eq!(
                decode_segment(raw.as_bytes()).as_deref(),
                Ok(expected),
                "{raw}"
            );
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
        for raw in [
            "%", "%4", "a%", "%%41", "%g0", "%0g", "%-1", "%+1", "% 1", "%00", "a%0Ab", "%7f",
        ] {
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
            let pairs: Vec<String> = Query::new(raw.as_bytes())
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
        check(
            "symbols=BTC%2FUSDT%2cETH-USDT&x=%26",
            "symbols>BTC/USDT,ETH-USDT x>&",
        );
        check("symb%6fl=a+b", "symbol>a b");
        check("a=%zz&b=1", "a>%zz b>1");
        check("%zz=1&b=%00", "%zz>1 b>%00");
        check("a=%2F,%0a,%2,%&b=%%2F", "a>/,%0a,%2,% b>%/");
    }
}
