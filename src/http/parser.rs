//! Parses the heads of requests.
//!
//! Owns the rules for a request head (RFC 9112, 2 to 6). It never parses the body: a
//! [`RequestBody`] tells [`super::body`] how to.
//!
//! httparse finds the lines. It refuses invalid bytes, folded lines and blanks before a colon. This module
//! also refuses lines that end with a bare LF, and contradictions between fields. Anything ambiguous is
//! refused, because request smuggling needs two servers that read a head differently.
//!
//! Invariant: an error is reported with the first byte that makes it certain, or with the last byte of
//! the head. So the result does not depend on how the bytes were split.

use super::error::Error;
use super::head::{FIELDS_CEILING, Fields, Persistence, is_token, members};
use super::request::{Line, ListField, Lists, Method, OwnedRequest, Request, RequestBody, Version};
use super::target;
use crate::config::Limits;
use crate::time::digits;
use std::mem::MaybeUninit;

/// The request, which borrows from the bytes, and the length of its head: the body or the next request
/// follows. `None`: the head is not complete.
pub type Parsed<'a> = Result<Option<(Request<'a>, usize)>, Error>;

/// Parses the head of the request that begins with `bytes`. What follows the head is ignored. The limit of a
/// head also counts the empty lines before it.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Parsed<'a> {
    let most = &bytes[..bytes.len().min(limits.head_bytes)];
    let blank = empty_lines(most);
    let window = &most[blank..];
    if window.first() == Some(&b'\n') {
        return Err(BARE_LF);
    }
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_CEILING];
    let room = &mut fields[..limits.head_fields.min(FIELDS_CEILING)];
    let mut raw = httparse::Request::new(&mut []);
    match raw.parse_with_uninit_headers(window, room) {
        Ok(httparse::Status::Complete(used)) => {
            let request = read(&raw, &window[..used], limits)?;
            Ok(Some((request, blank + used)))
        }
        other => incomplete(other, window, bytes.len() >= limits.head_bytes, limits),
    }
}

/// Most fields behind an opening: browsers send some twenty.
const FIELDS_BEHIND: usize = 24;

/// Parses the head at the start of `bytes`, which begins with the opening of `known`. `known` is a request
/// that was parsed with the same limits. Returns `None` if the caller must use [`parse`]: the head is
/// incomplete, malformed, or has many fields.
pub fn parse_behind<'a>(
    known: &OwnedRequest,
    bytes: &'a [u8],
    limits: &Limits,
) -> Option<Request<'a>> {
    let begin = known.opening().len();
    let behind = bytes[..bytes.len().min(limits.head_bytes)].get(begin..)?;
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_BEHIND];
    let room = &mut fields[..FIELDS_BEHIND.min(limits.head_fields.saturating_sub(1))];
    let Ok(httparse::Status::Complete((used, fields))) = httparse::parse_headers(behind, room)
    else {
        return None;
    };
    let head = &bytes[..begin + used];
    let host = KnownFields { host: Some(b""), ..KnownFields::default() };
    let request = read_fields(known.line_of(head), head, fields, host).ok();
    debug_assert!(
        matches!(
            (&request, parse(bytes, limits)),
            (Some(it), Ok(Some((request, _)))) if *it == request
        ) || request.is_none()
    );
    request
}

/// Length of the empty lines before a request, which some clients send after a body (RFC 9112, 2.2).
/// [`parse`] skips them too. A caller that counts them can tell an idle client from a slow one.
pub fn empty_lines(bytes: &[u8]) -> usize {
    let lines = bytes.chunks_exact(2).take_while(|line| line == b"\r\n");
    2 * lines.count()
}

const BARE_LF: Error = Error::bad_request("A line of the request head does not end with CR LF.");
const BAD_LINE: Error = Error::bad_request("Malformed request line.");
const BAD_VERSION: Error = Error::bad_request("Malformed HTTP version.");

/// The result for a head that is incomplete or malformed. `full` is true if it is as long as a head
/// may be.
///
/// The limit of the line is checked first, and only with the bytes within it: an invalid byte after
/// the limit must not change the error of a line that is too long.
#[cold]
fn incomplete<'a>(
    found: httparse::Result<usize>,
    window: &[u8],
    full: bool,
    limits: &Limits,
) -> Parsed<'a> {
    if let Some((line, [next, ..])) = window.split_at_checked(limits.request_line_bytes)
        && !matches!(next, b'\r' | b'\n')
        && !line.contains(&b'\n')
    {
        let mut raw = httparse::Request::new(&mut []);
        return match raw.parse_with_uninit_headers(line, &mut []) {
            Err(error) => fault(error, line).map_or(Err(Error::URI_TOO_LONG), Err),
            Ok(_) => Err(Error::URI_TOO_LONG),
        };
    }
    if let Err(error) = found
        && let Some(fault) = fault(error, window)
    {
        return Err(fault);
    }
    if full {
        return Err(Error::HEADERS_TOO_LARGE);
    }
    Ok(None)
}

/// The error for what httparse has found. `None` while it depends on bytes that have not arrived.
fn fault(error: httparse::Error, line: &[u8]) -> Option<Error> {
    match error {
        httparse::Error::HeaderName => Some(Error::bad_request("Malformed field name.")),
        httparse::Error::HeaderValue => Some(Error::bad_request("Malformed field value.")),
        httparse::Error::Token | httparse::Error::Status => Some(BAD_LINE),
        httparse::Error::TooManyHeaders => Some(Error::HEADERS_TOO_LARGE),
        httparse::Error::Version | httparse::Error::NewLine => version_fault(line),
    }
}

/// Distinguishes a version that is not supported from a malformed one, once the byte after it has
/// arrived. `line` begins with a method and a target.
fn version_fault(line: &[u8]) -> Option<Error> {
    if line[0] == b'\r' {
        return Some(BARE_LF);
    }
    let version = line.splitn(3, |&byte| byte == b' ').nth(2)?;
    let Some(number) = version.strip_prefix(b"HTTP/") else {
        let may_be = version.len() < 5 && b"HTTP/".starts_with(version);
        return if may_be { None } else { Some(BAD_VERSION) };
    };
    let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let (number, rest) = number.split_at(number.iter().take_while(is_number).count());
    match rest.first() {
        None => None,
        Some(_) if number == b"1.0" || number == b"1.1" => Some(BARE_LF),
        Some(b'\r' | b'\n') if !number.is_empty() => Some(Error::BAD_VERSION),
        Some(_) => Some(BAD_VERSION),
    }
}

/// The request that httparse has found in `head`, which has the bytes of one head.
fn read<'a>(
    raw: &httparse::Request<'_, 'a>,
    head: &'a [u8],
    limits: &Limits,
) -> Result<Request<'a>, Error> {
    const WHOLE: &str = "httparse has found a complete head";
    let method = raw.method.expect(WHOLE);
    let target = raw.path.expect(WHOLE).as_bytes();
    let line = method.len() + 1 + target.len() + " HTTP/1.1".len();
    if line > limits.request_line_bytes {
        return Err(Error::URI_TOO_LONG);
    }
    let version = match raw.version.expect(WHOLE) {
        0 => Version::Http10,
        _ => Version::Http11,
    };
    let known_method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "OPTIONS" => Method::Options,
        // QUERY is of draft-ietf-httpbis-safe-method-w-body.
        "POST" | "PUT" | "PATCH" | "DELETE" | "TRACE" | "CONNECT" | "QUERY" => Method::Other,
        _ => return Err(Error::UNKNOWN_METHOD),
    };
    let (path, query) = target::split(method, target)?;
    // httparse has skipped an empty line in front of the request.
    if method.as_ptr() != head.as_ptr() {
        return Err(BARE_LF);
    }
    let line = Line { length: line + 2, method: known_method, path, query, version };
    let request = read_fields(line, head, raw.headers, KnownFields::default())?;
    // The bytes after a CONNECT may be meant for the tunnel, which was refused.
    Ok(Request { keep_alive: request.keep_alive && method != "CONNECT", ..request })
}

/// The request in `head` with this first line. `fields` come after the fields that are `known`
/// already.
fn read_fields<'a>(
    Line { length, method, path, query, version }: Line<'a>,
    head: &'a [u8],
    fields: &[httparse::Header<'a>],
    mut known: KnownFields<'a>,
) -> Result<Request<'a>, Error> {
    // httparse also accepts a bare LF, as RFC 9112, 2.2 allows. But a proxy that does not accept it would see
    // a different request.
    let before = |part: &str| &head[..part.as_ptr().addr() - head.as_ptr().addr()];
    let ends_line = |field: &httparse::Header<'_>| before(field.name).ends_with(b"\r\n");
    if !fields.iter().all(ends_line) || !head.ends_with(b"\r\n\r\n") {
        return Err(BARE_LF);
    }
    for field in fields {
        known.field(field.name.as_bytes(), field.value)?;
    }
    let body = known.body(version)?;
    Ok(Request {
        head,
        method,
        path,
        query,
        version,
        keep_alive: known.persistence.holds(version == Version::Http11),
        // RFC 9110, 10.1.1: ignored from a 1.0 client and without a body.
        expect_continue: known.expects && version == Version::Http11 && body != RequestBody::None,
        body,
        fields: Fields::of_parsed(&head[length..head.len() - 2]),
        lists: known.lists,
    })
}

const BAD_HOST: Error = Error::bad_request("Malformed Host field.");
const BAD_LENGTH: Error = Error::bad_request("Malformed Content-Length field.");

/// The fields that matter for every request: host, framing, persistence, expectation, preconditions. Owns the
/// rules of each field, and the rules between them.
#[derive(Default)]
struct KnownFields<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: bool,
    persistence: Persistence,
    expects: bool,
    lists: Lists<'a>,
}

impl<'a> KnownFields<'a> {
    /// Notes a field. The length of its name is compared first, which excludes most fields.
    fn field(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Error> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is(b"host") => self.host(value)?,
            6 if is(b"expect") => self.expect(value)?,
            10 if is(b"connection") => self.persistence.note(value),
            14 if is(b"content-length") => self.content_length(value)?,
            17 if is(b"transfer-encoding") => self.transfer_encoding(value)?,
            8 | 13 | 15 => {
                if let Some(at) = ListField::NAMES.into_iter().position(is) {
                    let first = &mut self.lists.first[at];
                    self.lists.repeat |= first.replace(first.unwrap_or(value)).is_some();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the host. There may be only one, in both versions (RFC 9112, 3.2).
    fn host(&mut self, value: &'a [u8]) -> Result<(), Error> {
        if self.host.is_some() || !target::is_authority(value) {
            return Err(BAD_HOST);
        }
        self.host = Some(value);
        Ok(())
    }

    /// Takes the length. An equal one may be repeated (RFC 9110, 8.6).
    fn content_length(&mut self, value: &[u8]) -> Result<(), Error> {
        let length = digits(value).ok_or(BAD_LENGTH)?;
        if self.length.is_some_and(|before| before != length) {
            return Err(BAD_LENGTH);
        }
        self.length = Some(length);
        Ok(())
    }

    /// Takes transfer codings. An unknown coding is a 501 (RFC 9112, 6.1). A coding after `chunked` is a 400,
    /// because then the length of the body is unknown (RFC 9112, 6.3). A malformed name is a 400 too.
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Error> {
        let mut is_known = true;
        for coding in value.split(|byte| *byte == b',') {
            let coding = coding.trim_ascii();
            let is_name = !coding.is_empty() && coding.iter().all(|byte| is_token(*byte));
            if self.chunked || !is_name {
                return Err(Error::bad_request("Transfer-Encoding must end with \"chunked\"."));
            }
            self.chunked = coding.eq_ignore_ascii_case(b"chunked");
            is_known &= self.chunked;
        }
        if is_known { Ok(()) } else { Err(Error::UNKNOWN_CODING) }
    }

    /// RFC 9110, 10.1.1.
    fn expect(&mut self, value: &[u8]) -> Result<(), Error> {
        for member in members(value) {
            if !member.eq_ignore_ascii_case(b"100-continue") {
                return Err(Error::EXPECTATION_FAILED);
            }
            self.expects = true;
        }
        Ok(())
    }

    /// The body, by the rules between the fields.
    fn body(&self, version: Version) -> Result<RequestBody, Error> {
        if self.host.is_none() && version == Version::Http11 {
            return Err(Error::bad_request("The Host field is missing."));
        }
        match (self.chunked, self.length, version) {
            // RFC 9112, 6.1: this case and the next one are used for request smuggling.
            (true, Some(_), _) => {
                Err(Error::bad_request("Content-Length and Transfer-Encoding exclude each other."))
            }
            (true, None, Version::Http10) => {
                Err(Error::bad_request("HTTP/1.0 has no Transfer-Encoding."))
            }
            (true, None, Version::Http11) => Ok(RequestBody::Chunked),
            (false, None | Some(0), _) => Ok(RequestBody::None),
            (false, Some(length), _) => Ok(RequestBody::Length(length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::ListField;
    use super::*;
    use crate::config::Limits;

    fn read_one(raw: &str) -> Result<Request<'_>, Error> {
        match parse(raw.as_bytes(), &Limits::default())? {
            Some((request, used)) if used == raw.len() => Ok(request),
            other => panic!("{raw:?}: {other:?}"),
        }
    }

    #[test]
    fn a_request_says_what_is_wanted() {
        let request = read_one(
            "GET /api/v1/quotes?symbols=A%2CB HTTP/1.1\r\nhOST:\t h:80 \r\nIf-None-Match: \"a\"\r\n\
             Accept-Encoding: gzip, br\r\nORIGIN:https://o\r\nX: y\r\n\r\n",
        )
        .expect("well-formed");
        assert_eq!(request.method, Method::Get);
        assert_eq!(request.path, b"/api/v1/quotes");
        assert_eq!(request.query, b"symbols=A%2CB");
        assert_eq!(request.version, Version::Http11);
        assert!(request.keep_alive && !request.expect_continue);
        assert_eq!(request.body, RequestBody::None);
        assert_eq!(request.list(ListField::IfNoneMatch).as_deref(), Some(&b"\"a\""[..]));
        assert_eq!(request.list(ListField::AcceptEncoding).as_deref(), Some(&b"gzip, br"[..]));
        assert_eq!(request.fields.get("host"), Some(&b"h:80"[..]));
        assert_eq!(request.fields.get("x"), Some(&b"y"[..]));
        assert_eq!(request.fields.count(), 5);
    }

    #[test]
    fn a_head_behind_a_known_opening_is_parsed_like_any_other() {
        let limits = Limits { head_fields: 4, ..Limits::default() };
        let opening = "GET http://h?a=b HTTP/1.1\r\nhOST: h:80\r\n";
        let raw = format!("{opening}X: 1\r\nConnection: close\r\n\r\n");
        let known = OwnedRequest::new(&read_one(&raw).expect("well-formed"));
        assert_eq!(known.opening(), opening.as_bytes());
        let behind = |fields: &str| {
            let raw = format!("{opening}{fields}\r\n");
            let found = parse_behind(&known, raw.as_bytes(), &limits);
            if let Some(request) = found {
                let expected = Some((request, raw.len()));
                assert_eq!(parse(raw.as_bytes(), &limits), Ok(expected), "{raw:?}");
            }
            found.is_some()
        };
        for good in [
            "",
            "X: 2\r\n",
            "Connection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n",
            "If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\nAccept-Encoding: gzip\r\n",
        ] {
            assert!(behind(good), "{good:?}");
        }
        // `parse` knows why: another host, what is malformed or has too many fields.
        for bad in [
            "Host: h:80\r\n",
            " folded\r\n",
            "X: 1\n",
            "X : 1\r\n",
            "Content-Length: x\r\n",
            "A: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n",
            "X: 1",
        ] {
            assert!(!behind(bad), "{bad:?}");
        }
        let length = |raw: &str| read_one(raw).expect("well-formed").opening().len();
        assert_eq!(length("GET / HTTP/1.1\r\nHost:\r\nA: b\r\n\r\n"), 23, "an empty host");
        assert_eq!(length("GET / HTTP/1.1\r\nA: b\r\nHost: h\r\n\r\n"), 16, "only the line");
        assert_eq!(length("GET / HTTP/1.0\r\n\r\n"), 16, "no host");
    }
}
