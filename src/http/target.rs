//! The target of a request, the grammar of its host, and the escapes of its path and query.
//!
//! Owns the four forms of a target (RFC 9112, 3.2) and the grammar of host and port (RFC 3986, 3.2.2). A
//! target is split before it is decoded, and decoded only once. So an escaped slash or ampersand is part of
//! its segment or value.

use super::error::Error;
use super::head::{hex_digit, is_host_name};
use crate::time::digits;
use memchr::{memchr, memchr2};
use std::borrow::Cow;
use std::net::Ipv6Addr;

const BAD_TARGET: Error = Error::bad_request("Malformed request target.");

/// The path of an absolute target without a path.
pub(super) const ROOT: &[u8] = b"/";

/// Splits a target into path and query, both still percent-encoded. The path begins with `/`, or it is the
/// `*` of OPTIONS or the authority of CONNECT. The query is the part after the `?`. `raw` is not empty, and
/// has no control byte and no blank.
pub(super) fn split<'a>(method: &str, raw: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Error> {
    if raw[0] == b'/' && method != "CONNECT" {
        return split_origin(raw);
    }
    let whole = (raw, &b""[..]);
    match method {
        "CONNECT" if port_of(raw).is_some_and(|port| !port.is_empty()) => Ok(whole),
        "CONNECT" => Err(BAD_TARGET),
        "OPTIONS" if raw == b"*" => Ok(whole),
        _ => split_absolute(raw),
    }
}

/// Splits path and query. A target has no fragment. Clients resolve dot segments before they send a
/// request (RFC 3986, 5.2.4), so a dot segment that arrives is probably an attack.
fn split_origin(raw: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let (path, query) = raw.split_at(memchr2(b'?', b'#', raw).unwrap_or(raw.len()));
    if memchr(b'#', query).is_some() {
        return Err(BAD_TARGET);
    }
    let may_hold_dots = memchr2(b'.', b'%', path).is_some();
    if may_hold_dots && path.split(|&byte| byte == b'/').any(is_dot_segment) {
        return Err(Error::bad_request("The path holds a dot segment."));
    }
    Ok((path, query.get(1..).unwrap_or_default()))
}

/// True for `.` and `..`, even if they are percent-encoded.
fn is_dot_segment(segment: &[u8]) -> bool {
    let mut rest = segment;
    let mut dots = 0;
    while !rest.is_empty() {
        rest = match rest {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return false,
        };
        dots += 1;
    }
    dots == 1 || dots == 2
}

/// Splits `http://host/path`, the form for proxies, which every server must accept (RFC 9112, 3.2.2).
/// Its host is checked but not used, like the field `Host`.
fn split_absolute(raw: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let rest = strip_scheme(raw, b"http://")
        .or_else(|| strip_scheme(raw, b"https://"))
        .ok_or(BAD_TARGET)?;
    let is_end = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if authority.is_empty() || !is_authority(authority) {
        return Err(BAD_TARGET);
    }
    let (path, query) = split_origin(rest)?;
    Ok((if path.is_empty() { ROOT } else { path }, query))
}

fn strip_scheme<'a>(raw: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = raw.split_at_checked(scheme.len())?;
    begin.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// True if this is `host` or `host:port` (RFC 3986, 3.2), without user information. It may be empty: a
/// client sends an empty `Host` if its URI has no host (RFC 9110, 7.2).
pub(super) fn is_authority(text: &[u8]) -> bool {
    port_of(text).is_some()
}

/// The port of an authority, which may be empty. `None` if the authority is malformed.
fn port_of(text: &[u8]) -> Option<&[u8]> {
    let rest = match text {
        [b'[', literal @ ..] => {
            let (address, rest) = literal.split_at(memchr(b']', literal)?);
            let text = str::from_utf8(address).unwrap_or_default();
            let is_literal = text.parse::<Ipv6Addr>().is_ok() || is_future(address);
            is_literal.then_some(&rest[1..])?
        }
        _ => behind_name(text),
    };
    let port = match rest {
        [] => rest,
        [b':', port @ ..] if rest.len() < text.len() => port,
        _ => return None,
    };
    // An empty one means the default port.
    (port.is_empty() || digits::<u16>(port).is_some()).then_some(port)
}

/// The rest of the text after the host name at its beginning. In a name, two hexadecimal digits follow each
/// `%`.
fn behind_name(mut text: &[u8]) -> &[u8] {
    loop {
        let end = text.iter().position(|&byte| !is_host_name(byte));
        text = &text[end.unwrap_or(text.len())..];
        match text {
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                text = rest;
            }
            _ => return text,
        }
    }
}

/// True for `v1.something`: an address of a future version (RFC 3986, IPvFuture).
fn is_future(address: &[u8]) -> bool {
    let [b'v' | b'V', rest @ ..] = address else {
        return false;
    };
    let hex = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_text = |text: &[u8]| text.iter().all(|&byte| is_host_name(byte) || byte == b':');
    matches!(&rest[hex..], [b'.', text @ ..] if hex > 0 && !text.is_empty() && is_text(text))
}

/// A `%` without two hexadecimal digits, or an escaped control byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEscape;

/// Decodes a path segment (RFC 3986, 2.1). The result has no control byte, but may have slashes and
/// bytes that are not UTF-8. A `+` stays a `+`.
pub fn decode_segment(raw: &[u8]) -> Result<Cow<'_, [u8]>, BadEscape> {
    unescape(raw, |byte| visible(byte).map(Some).ok_or(BadEscape))
}

/// Decodes the escapes of unreserved characters, so that the path can be compared with the paths of endpoints
/// (RFC 3986, 6.2.2.2). Other escapes stay, so that each segment can be decoded later. A path with an invalid
/// escape is returned as it is.
pub fn normal_path(raw: &[u8]) -> Cow<'_, [u8]> {
    // RFC 3986, 2.3.
    let is_unreserved = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let unreserved = |byte: Option<u8>| Ok(byte.map(Some).ok_or(BadEscape)?.filter(is_unreserved));
    unescape(raw, unreserved).unwrap_or(Cow::Borrowed(raw))
}

/// The (key, value) pairs of a query in their order. `raw` is the part after the `?`. The value of a key
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
        // A plain search is enough for keys, because they are short.
        let (key, value) = split_at(pair, pair.iter().position(|&byte| byte == b'='));
        Some((decoded(key), decoded(value)))
    })
}

/// True if there is something to decode.
fn is_encoded(raw: &[u8]) -> bool {
    memchr2(b'%', b'+', raw).is_some()
}

/// The parts before and behind the byte in this place.
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

/// Replaces escapes. `meaning` gets the byte of an escape, or `None` if the escape is malformed. It returns
/// the replacement, or `None` to leave the escape as it is.
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
