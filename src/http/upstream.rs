//! Requests to exchanges, and the heads of their responses.
//!
//! Owns the GET request. Of a response it owns the fields that tell how to read the body and when to retry.
//! It follows no redirects: a redirect counts as a failure of the exchange. [`super::gzip`] decompresses
//! bodies.
//!
//! A CONNECT requests a tunnel through a proxy (RFC 9110, 9.3.6), with Basic credentials (RFC 7617). After a
//! 2xx the tunnel begins at once, even if the head announces a body.
//!
//! Responses are parsed leniently. A connection never has more than one request in flight, so no
//! other response can hide in a response. Only the framing must be unambiguous.

use super::body::Framing;
use super::head::{Fields, Persistence, members};
use crate::time::{UnixMs, digits};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::mem::MaybeUninit;
use std::time::SystemTime;

/// Most fields of an exchange's response: twice as many as any exchange sends.
const MOST_FIELDS: usize = 128;

/// Appends a GET of `target`, which begins with a slash. `host` is the authority as
/// [`crate::config::Url::authority`] writes it. `fields` are more fields of the head: names, and values
/// without control bytes.
pub fn write_request<'a>(
    out: &mut Vec<u8>,
    host: &str,
    target: &str,
    fields: impl IntoIterator<Item = (&'a str, &'a str)>,
) {
    debug_assert!(target.starts_with('/'));
    write_start(out, "GET", target, host);
    for (name, value) in fields {
        debug_assert!(!value.bytes().any(|byte| byte.is_ascii_control()));
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(
        b"Accept: application/json\r\nAccept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n",
    );
}

/// Appends the request line, and the fields that every request has. Target and host come from the
/// configuration or a dialect, never from a client, and have no blanks or control bytes.
fn write_start(out: &mut Vec<u8>, method: &str, target: &str, host: &str) {
    const AGENT: &str = concat!("\r\nUser-Agent: marketd/", env!("CARGO_PKG_VERSION"), "\r\n");
    let is_clean = |text: &str| !text.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
    debug_assert!(is_clean(host) && is_clean(target));
    for part in [method, " ", target, " HTTP/1.1\r\nHost: ", host, AGENT] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// What the head of a response says about its body and its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// 200 to 599.
    pub status: u16,
    /// How the body is delimited.
    pub framing: Framing,
    /// True if the connection can be used for another request after the body.
    pub keep_alive: bool,
    /// When to retry.
    pub retry_after: Option<RetryAfter>,
    /// The coding of the body.
    pub content_encoding: Encoding,
}

/// The field `Retry-After` (RFC 9110, 10.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// This many seconds after the response.
    Seconds(u64),
    /// Not before this time.
    Date(UnixMs),
}

/// A content coding (RFC 9110, 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// None.
    Identity,
    /// gzip, once.
    Gzip,
    /// Another coding, or several.
    Other,
}

/// A complete head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The parsed head, which does not borrow.
    pub head: ResponseHead,
    /// All fields, which borrow from the bytes.
    pub fields: Fields<'a>,
    /// Length of the head, including interim responses before it. The body follows.
    pub used: usize,
}

/// Parses the head of the response that begins with `bytes`; `None` while it is not complete. Interim
/// responses (1xx) are skipped. The head and the interim responses have at most `most` bytes together; the
/// first line has no limit of its own. The error says what is wrong. After an error the connection cannot be
/// used any more.
pub fn parse_response(bytes: &[u8], most: usize) -> Result<Option<Response<'_>>, &'static str> {
    let Some((line, fields, used)) = parse_raw(bytes, most)? else {
        return Ok(None);
    };
    Ok(Some(Response { head: read(line, fields)?, fields, used }))
}

/// The status, and the minor version of HTTP.
type FirstLine = (u16, u8);

/// Finds the head that [`parse_response`] reads: its first line, its fields and its length.
fn parse_raw(
    bytes: &[u8],
    most: usize,
) -> Result<Option<(FirstLine, Fields<'_>, usize)>, &'static str> {
    const WHOLE: &str = "httparse has found a complete head";
    let window = &bytes[..bytes.len().min(most)];
    let mut config = httparse::ParserConfig::default();
    // RFC 9112, 5.2: a user agent accepts folded lines.
    config.allow_obsolete_multiline_headers_in_responses(true);
    let mut used = 0;
    loop {
        let rest = &window[used..];
        let mut room = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let mut raw = httparse::Response::new(&mut []);
        let found = config.parse_response_with_uninit_headers(&mut raw, rest, &mut room);
        let length = match found.map_err(malformed)? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial if bytes.len() < most => return Ok(None),
            httparse::Status::Partial => return Err("the head is too large"),
        };
        used += length;
        let status = raw.code.expect(WHOLE);
        match status {
            100 | 102..=199 => continue,
            200..=599 => {}
            // After a 101 another protocol would follow, which was not requested.
            _ => return Err("malformed status"),
        }
        // The names and values point into `rest`.
        let begin = |field: &httparse::Header| field.name.as_ptr().addr() - rest.as_ptr().addr();
        let lines = raw.headers.first().map_or(&b""[..], |it| &rest[begin(it)..length]);
        let line = (status, raw.version.expect(WHOLE));
        return Ok(Some((line, Fields::of_parsed(lines), used)));
    }
}

fn malformed(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::TooManyHeaders => "the head has more than 128 fields",
        httparse::Error::HeaderName => "malformed field name",
        httparse::Error::HeaderValue => "malformed field value",
        httparse::Error::Version => "malformed version",
        _ => "malformed status line",
    }
}

fn read((status, version): FirstLine, fields: Fields<'_>) -> Result<ResponseHead, &'static str> {
    let mut length = None;
    let mut chunked = false;
    let mut persistence = Persistence::default();
    let mut retry_after = None;
    let mut content_encoding = Encoding::Identity;
    for (name, value) in fields {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            10 if is("connection") => persistence.note(value),
            11 if is("retry-after") => retry_after = retry_after.or_else(|| read_retry(value)),
            14 if is("content-length") => length = Some(read_length(length, value)?),
            16 if is("content-encoding") => {
                let is = |coding: &[u8], known: &str| coding.eq_ignore_ascii_case(known.as_bytes());
                for coding in members(value).filter(|coding| !is(coding, "identity")) {
                    let is_gzip = is(coding, "gzip") || is(coding, "x-gzip");
                    content_encoding = match content_encoding {
                        Encoding::Identity if is_gzip => Encoding::Gzip,
                        _ => Encoding::Other,
                    };
                }
            }
            17 if is("transfer-encoding") => {
                if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("the body has no certain end: a transfer coding is unknown");
                }
                chunked = true;
            }
            _ => {}
        }
    }
    // RFC 9112, 6.1: HTTP/1.0 has no transfer codings.
    if chunked && version == 0 {
        return Err("the body has no certain end: HTTP/1.0 has no chunks");
    }
    // The order of RFC 9112, 6.3. Chunks override a length, but a connection with both is not
    // reused.
    let framing = match length {
        _ if status == 204 || status == 304 => Framing::None,
        _ if chunked => Framing::Chunked,
        Some(0) => Framing::None,
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    };
    let doubtful = framing == Framing::UntilClose || (chunked && length.is_some());
    Ok(ResponseHead {
        status,
        framing,
        keep_alive: !doubtful && persistence.holds(version == 1),
        retry_after,
        content_encoding,
    })
}

const BAD_LENGTH: &str = "the body has no certain end: its length is malformed";

/// Parses a length. An equal one may be repeated, in the same field or in another one (RFC 9110,
/// 8.6).
fn read_length(mut known: Option<u64>, value: &[u8]) -> Result<u64, &'static str> {
    for member in value.split(|&byte| byte == b',') {
        let length = digits(member.trim_ascii());
        let length = length.filter(|it| known.is_none_or(|before| before == *it));
        known = Some(length.ok_or(BAD_LENGTH)?);
    }
    known.ok_or(BAD_LENGTH)
}

/// Parses `Retry-After`. `None` if it is neither seconds nor a date: then it is ignored.
fn read_retry(value: &[u8]) -> Option<RetryAfter> {
    if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        return Some(RetryAfter::Seconds(digits(value).unwrap_or(u64::MAX)));
    }
    read_date(value).map(RetryAfter::Date)
}

/// Parses an HTTP date (RFC 9110, 5.6.7).
pub fn read_date(value: &[u8]) -> Option<UnixMs> {
    let date: httpdate::HttpDate = std::str::from_utf8(value).ok()?.parse().ok()?;
    let since = SystemTime::from(date).duration_since(SystemTime::UNIX_EPOCH);
    let ms = i64::try_from(since.ok()?.as_millis()).ok()?;
    Some(UnixMs(ms))
}

/// When a response was made. `None` if it comes from a cache, because its date is then older (RFC 9111, 5.1).
pub fn read_current_date(fields: Fields<'_>) -> Option<UnixMs> {
    let is_current = fields.get("age").is_none_or(|age| age == b"0");
    let date = fields.get("date").filter(|_| is_current);
    date.and_then(read_date)
}

/// Parses the head of the response to a CONNECT: its status and its length. `None` while it is not complete.
/// Fields about a body are ignored. Limits and errors are the same as in [`parse_response`].
pub fn parse_connected(bytes: &[u8], most: usize) -> Result<Option<(u16, usize)>, &'static str> {
    Ok(parse_raw(bytes, most)?.map(|((status, _), _, used)| (status, used)))
}

/// Appends a CONNECT to `place`, which is `HOST:PORT` with an IPv6 address in brackets. `credentials`
/// are user and password.
pub fn write_connect(out: &mut Vec<u8>, place: &str, credentials: Option<(&[u8], &[u8])>) {
    write_start(out, "CONNECT", place, place);
    if let Some((user, password)) = credentials {
        out.extend_from_slice(b"Proxy-Authorization: Basic ");
        let encoded = BASE64_STANDARD.encode([user, b":", password].concat());
        out.extend_from_slice(encoded.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 16 * 1024;

    fn parse_whole(raw: &str) -> Result<Response<'_>, &'static str> {
        let found = parse_response(raw.as_bytes(), MOST)?.expect("a whole head");
        assert_eq!(found.used, raw.len(), "{raw:?}");
        Ok(found)
    }

    fn head(fields: &str) -> Result<ResponseHead, &'static str> {
        parse_whole(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).map(|response| response.head)
    }

    #[test]
    fn a_request_is_one_that_any_server_understands() {
        let mut out = Vec::new();
        write_request(
            &mut out,
            "api.binance.com",
            "/api/v3/klines?symbol=A&limit=5",
            Some(("x-key", "a b")),
        );
        let expected = format!(
            "GET /api/v3/klines?symbol=A&limit=5 HTTP/1.1\r\nHost: api.binance.com\r\n\
             User-Agent: marketd/{}\r\nx-key: a b\r\nAccept: application/json\r\nAccept-Encoding: {}\r\n\
             Connection: keep-alive\r\n\r\n",
            env!("CARGO_PKG_VERSION"),
            "gzip",
        );
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn the_end_of_a_body_is_known_or_the_answer_is_refused() {
        let check = |raw: &str, expected: Option<(Framing, bool)>| {
            let found = parse_whole(raw).ok();
            let found = found.map(|found| (found.head.framing, found.head.keep_alive));
            assert_eq!(found, expected, "{raw:?}");
        };
        let check_fields = |fields: &str, expected| {
            check(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), expected);
        };
        let length = |length| Some((Framing::Length(length), true));
        check_fields("", Some((Framing::UntilClose, false)));
        check_fields("Content-Length: 5\r\n", length(5));
        check_fields("content-length:5\r\nCONTENT-LENGTH: 5\r\n", length(5));
        check_fields("Content-Length: 5, 5\r\n", length(5));
        check_fields("Content-Length: 0\r\n", Some((Framing::None, true)));
        check_fields("Transfer-Encoding: Chunked\r\n", Some((Framing::Chunked, true)));
        check_fields(
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            Some((Framing::Chunked, false)),
        );
        check_fields(
            "Content-Length: 5\r\nConnection: close\r\n",
            Some((Framing::Length(5), false)),
        );
        for bad in [
            "Content-Length: -1\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5 5\r\n",
            "Content-Length:\r\n",
            "Content-Length: 5,\r\n",
            "Content-Length: 5, 6\r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 18446744073709551616\r\n",
            "Content-Length: 5\r\n 6\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding:\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            check_fields(bad, None);
        }
        check("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Some((Framing::Length(5), false)));
        check(
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\n",
            Some((Framing::Length(5), true)),
        );
        check("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", None);
        check("HTTP/1.1 204 No Content\r\n\r\n", Some((Framing::None, true)));
        check(
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            Some((Framing::None, true)),
        );
    }

    #[test]
    fn interim_answers_are_skipped_and_other_protocols_refused() {
        let found = parse_whole(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
             HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\nX-Weight: 7\r\n\r\n",
        )
        .expect("well-formed");
        assert_eq!(found.head.status, 429);
        assert_eq!(found.fields.get("x-weight"), Some(&b"7"[..]));
        assert_eq!(found.fields.get("link"), None);
        for bad in [
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "HTTP/1.1 099 x\r\n\r\n",
            "HTTP/1.1 600 x\r\n\r\n",
            "HTTP/1.1 20 x\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA B: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: \0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n a: b\r\n\r\n",
        ] {
            let found = parse_response(bad.as_bytes(), MOST);
            let is_malformed = found.is_err_and(|error| error.starts_with("malformed "));
            assert!(is_malformed, "{bad:?}: {found:?}");
        }
    }

    #[test]
    fn a_folded_field_is_one_field() {
        let found = parse_whole("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length:\r\n\t5\r\n\r\n");
        let found = found.expect("well-formed");
        assert_eq!(found.head.framing, Framing::Length(5));
        assert_eq!(found.fields.get("a"), Some(&b"b\r\n c"[..]));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let check = |value: &str, expected| {
            let found = head(&format!("Retry-After: {value}\r\n")).expect("well-formed");
            assert_eq!(found.retry_after, expected, "{value}");
        };
        check("120", Some(RetryAfter::Seconds(120)));
        check("0", Some(RetryAfter::Seconds(0)));
        check("99999999999999999999", Some(RetryAfter::Seconds(u64::MAX)));
        let date = Some(RetryAfter::Date(UnixMs(784_111_777_000)));
        check("Sun, 06 Nov 1994 08:49:37 GMT", date);
        check("Sunday, 06-Nov-94 08:49:37 GMT", date);
        check("Sun Nov  6 08:49:37 1994", date);
        for none in ["", "-1", "1.5", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "\u{e4}"] {
            check(none, None);
        }
    }

    #[test]
    fn a_body_is_packed_in_nothing_in_gzip_or_in_something_else() {
        let check = |fields: &str, expected| {
            let found = head(fields).expect("well-formed");
            assert_eq!(found.content_encoding, expected, "{fields}");
        };
        check("", Encoding::Identity);
        check("Content-Encoding: identity\r\n", Encoding::Identity);
        check("Content-Encoding:\r\n", Encoding::Identity);
        check("Content-Encoding: GZIP\r\n", Encoding::Gzip);
        check("Content-Encoding: x-gzip, identity\r\n", Encoding::Gzip);
        check("Content-Encoding: br\r\n", Encoding::Other);
        check("Content-Encoding: gzip, gzip\r\n", Encoding::Other);
        check("Content-Encoding: gzip\r\nContent-Encoding: br\r\n", Encoding::Other);
    }

    #[test]
    fn a_tunnel_is_asked_for_with_or_without_credentials() {
        let check = |credentials: Option<(&[u8], &[u8])>, expected: &str| {
            let mut out = Vec::new();
            write_connect(&mut out, "okx.com:443", credentials);
            let agent = concat!("User-Agent: marketd/", env!("CARGO_PKG_VERSION"), "\r\n");
            let head = format!("CONNECT okx.com:443 HTTP/1.1\r\nHost: okx.com:443\r\n{agent}");
            assert_eq!(String::from_utf8_lossy(&out), format!("{head}{expected}\r\n"));
        };
        check(None, "");
        // RFC 7617, 2.
        check(
            Some((b"Aladdin", b"open sesame")),
            "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n",
        );
    }
}
