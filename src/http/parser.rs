//! Requests from clients: a head's bytes to a [`Request`].
//!
//! Owns what a request head must look like (RFC 9112, 2 to 6) and what of it the service wants to
//! know. It never copies: a [`Request`] borrows from the bytes that arrived. It never reads the
//! body: [`RequestBody`] says how to, and [`super::body`] does.
//!
//! httparse finds the lines and refuses wrong bytes in them, folded lines and blanks before a
//! colon. It lets pass, and this module refuses: lines that end with a bare LF, and whatever can
//! only be seen with the whole head at hand. Where the parts of a server disagree about a head,
//! requests are smuggled; so everything that is unclear is refused.
//!
//! Invariant: a fault is found at the first byte that makes it one, or not before the end of the
//! head. So neither the kind of a fault nor its being found depends on how the bytes were split.

mod fields;
mod kept;

use self::fields::Seen;
pub use self::kept::KeptRequest;
use super::accept::Accept;
use super::body::Framing;
use super::error::RequestError;
use super::head::{FIELDS_CEILING, Fields, HeadLimits};
use super::target;
use std::borrow::Cow;
use std::mem::MaybeUninit;

/// What a client wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Head and body.
    Get,
    /// The head alone.
    Head,
    /// What is possible.
    Options,
    /// Known, and not spoken here, as all that follow.
    Post,
    /// Not spoken here.
    Put,
    /// Not spoken here.
    Patch,
    /// Not spoken here.
    Delete,
    /// Not spoken here.
    Trace,
    /// Not spoken here; its target is an authority.
    Connect,
    /// Not spoken here (draft-ietf-httpbis-safe-method-w-body).
    Query,
}

impl Method {
    /// The token.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Trace => "TRACE",
            Method::Connect => "CONNECT",
            Method::Query => "QUERY",
        }
    }

    /// Whether any address speaks it.
    pub fn is_served(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options)
    }
}

/// Version of the message, not of what its sender could speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// The body that follows a request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// None: the next byte is another request's.
    None,
    /// So many bytes, at least one.
    Length(u64),
    /// Chunks up to an empty one.
    Chunked,
}

impl From<RequestBody> for Framing {
    fn from(body: RequestBody) -> Framing {
        match body {
            RequestBody::None => Framing::None,
            RequestBody::Length(length) => Framing::Length(length),
            RequestBody::Chunked => Framing::Chunked,
        }
    }
}

/// One request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What to do.
    pub method: Method,
    /// Still escaped, before the `?`. Begins with `/`, except `*` of OPTIONS and the authority of
    /// CONNECT, which is never served. Holds no dot segment.
    pub path: &'a [u8],
    /// Still escaped, behind the `?`; may be empty.
    pub query: &'a [u8],
    /// The target as it stood in the request line.
    pub raw_target: &'a [u8],
    /// Version of the message.
    pub version: Version,
    /// Whether the client would send another request on this connection (RFC 9112, 9.3).
    pub keep_alive: bool,
    /// Whether there is such a field; [`Request::if_match`] is the list.
    pub has_if_match: bool,
    /// First field of this name; [`Request::none_match`] is the whole list.
    pub if_none_match: Option<&'a [u8]>,
    /// Whether there is another field of this name.
    pub none_match_repeats: bool,
    /// First field of this name; [`Request::accept`] is the whole list.
    pub accept_encoding: Option<&'a [u8]>,
    /// Whether there is another field of this name.
    pub accept_encoding_repeats: bool,
    /// First field of this name.
    pub origin: Option<&'a [u8]>,
    /// The client holds its body back until it is told to go on (RFC 9110, 10.1.1).
    pub expect_continue: bool,
    /// What follows the head.
    pub body: RequestBody,
    /// All fields, for those that are seldom asked for.
    pub fields: Fields<'a>,
}

impl<'a> Request<'a> {
    /// The list in `If-None-Match`. Several lines are one list (RFC 9110, 5.3); nearly nobody sends
    /// them, so that nearly nothing is copied.
    #[inline]
    pub fn none_match(&self) -> Option<Cow<'a, [u8]>> {
        let first = self.if_none_match?;
        if !self.none_match_repeats {
            return Some(Cow::Borrowed(first));
        }
        Some(Cow::Owned(self.list(b"if-none-match")))
    }

    /// The list in `If-Match`. Hardly anybody sends one with a GET, so it is looked for only then.
    #[inline]
    pub fn if_match(&self) -> Option<Box<[u8]>> {
        self.has_if_match.then(|| self.list(b"if-match").into())
    }

    /// The values of all fields of this name, as one list.
    #[cold]
    fn list(&self, wanted: &[u8]) -> Vec<u8> {
        let named = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(wanted);
        let values: Vec<&[u8]> = self.fields.filter(named).map(|(_, value)| value).collect();
        values.join(&b',')
    }

    /// The list in `Accept-Encoding`, to be read where that matters.
    #[inline]
    pub fn accept(&self) -> Accept<'a> {
        match self.accept_encoding {
            None => Accept::Plain,
            Some(_) if self.accept_encoding_repeats => Accept::Lists(self.fields),
            Some(list) => Accept::List(list),
        }
    }
}

/// What the bytes that have arrived say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Nothing yet: more bytes decide.
    Partial,
    /// A request.
    Complete {
        /// Borrows from the bytes.
        request: Request<'a>,
        /// Bytes of its head; the body, or the next request, begins behind them.
        used: usize,
    },
}

/// Reads the request at the begin of `bytes`. What follows its head is not looked at.
pub fn parse<'a>(bytes: &'a [u8], limits: &HeadLimits) -> Result<Parsed<'a>, RequestError> {
    let most = &bytes[..bytes.len().min(limits.head_bytes)];
    let blank = empty_lines(most);
    let window = &most[blank..];
    if window.first() == Some(&b'\n') {
        return Err(BARE_LF);
    }
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_CEILING];
    let room = &mut fields[..limits.fields.min(FIELDS_CEILING)];
    let mut raw = httparse::Request::new(&mut []);
    match raw.parse_with_uninit_headers(window, room) {
        Ok(httparse::Status::Complete(used)) => {
            let request = read(&raw, &window[..used], limits)?;
            Ok(Parsed::Complete {
                request,
                used: blank + used,
            })
        }
        other => incomplete(other, window, bytes.len() >= limits.head_bytes, limits),
    }
}

/// Bytes of the empty lines before a request, which some clients send after a body (RFC 9112,
/// 2.2). [`parse`] skips them too; a session that drops them knows an idle client from a slow one.
pub fn empty_lines(bytes: &[u8]) -> usize {
    let lines = bytes.chunks_exact(2).take_while(|line| line == b"\r\n");
    2 * lines.count()
}

const BARE_LF: RequestError =
    RequestError::BadRequest("A line of the request head does not end with CR LF.");
const BAD_LINE: RequestError = RequestError::BadRequest("Malformed request line.");
const BAD_VERSION: RequestError = RequestError::BadRequest("Malformed HTTP version.");
const BAD_NAME: RequestError = RequestError::BadRequest("Malformed field name.");
const BAD_VALUE: RequestError = RequestError::BadRequest("Malformed field value.");

/// The rest of the way for a head that is not complete, or not well-formed. `full` when it has all
/// the bytes that a head may have.
///
/// The limit of the line comes first, and only bytes within it count: a wrong byte behind it must
/// not change the answer of a line that is too long by then.
#[cold]
fn incomplete<'a>(
    found: httparse::Result<usize>,
    window: &[u8],
    full: bool,
    limits: &HeadLimits,
) -> Result<Parsed<'a>, RequestError> {
    if let Some((line, [next, ..])) = window.split_at_checked(limits.line_bytes)
        && !matches!(next, b'\r' | b'\n')
        && !line.contains(&b'\n')
    {
        let mut raw = httparse::Request::new(&mut []);
        return match raw.parse_with_uninit_headers(line, &mut []) {
            Err(error) => fault(error, line).map_or(Err(RequestError::UriTooLong), Err),
            Ok(_) => Err(RequestError::UriTooLong),
        };
    }
    if let Err(error) = found
        && let Some(fault) = fault(error, window)
    {
        return Err(fault);
    }
    if full {
        return Err(RequestError::HeadersTooLarge);
    }
    Ok(Parsed::Partial)
}

/// What httparse objects to. `None` while it may yet be one thing or another.
fn fault(error: httparse::Error, line: &[u8]) -> Option<RequestError> {
    match error {
        httparse::Error::HeaderName => Some(BAD_NAME),
        httparse::Error::HeaderValue => Some(BAD_VALUE),
        httparse::Error::Token | httparse::Error::Status => Some(BAD_LINE),
        httparse::Error::TooManyHeaders => Some(RequestError::HeadersTooLarge),
        httparse::Error::Version | httparse::Error::NewLine => version_fault(line),
    }
}

/// Tells a version that is not spoken here from one that is no version, as soon as the byte behind
/// it is there. `line` begins with a method and a target.
fn version_fault(line: &[u8]) -> Option<RequestError> {
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
        Some(b'\r' | b'\n') if !number.is_empty() => Some(RequestError::BadVersion),
        Some(_) => Some(BAD_VERSION),
    }
}

/// A request from what httparse found in `head`, the bytes of one head.
fn read<'a>(
    raw: &httparse::Request<'_, 'a>,
    head: &'a [u8],
    limits: &HeadLimits,
) -> Result<Request<'a>, RequestError> {
    const WHOLE: &str = "httparse has found a complete head";
    let method = raw.method.expect(WHOLE);
    let target = raw.path.expect(WHOLE).as_bytes();
    let line = method.len() + 1 + target.len() + " HTTP/1.1".len();
    if line > limits.line_bytes {
        return Err(RequestError::UriTooLong);
    }
    let version = match raw.version.expect(WHOLE) {
        0 => Version::Http10,
        _ => Version::Http11,
    };
    let asks = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "OPTIONS" => Method::Options,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        "TRACE" => Method::Trace,
        "CONNECT" => Method::Connect,
        "QUERY" => Method::Query,
        _ => return Err(RequestError::UnknownMethod),
    };
    let parts = target::split(method, target)?;
    let mut seen = Seen::default();
    let mut end = line;
    for field in raw.headers.iter() {
        end = next_line_end(head, end, field)?;
        seen.field(field.name.as_bytes(), field.value)?;
    }
    if head.get(end..) != Some(b"\r\n\r\n") {
        return Err(BARE_LF);
    }
    seen.check(version)?;
    let body = seen.body();
    Ok(Request {
        method: asks,
        path: parts.path,
        query: parts.query,
        raw_target: target,
        version,
        // What follows a CONNECT may be meant for the tunnel that it did not get.
        keep_alive: seen.keeps_alive(version) && method != "CONNECT",
        has_if_match: seen.has_if_match,
        if_none_match: seen.if_none_match,
        none_match_repeats: seen.none_match_repeats,
        accept_encoding: seen.accept_encoding,
        accept_encoding_repeats: seen.accept_encoding_repeats,
        origin: seen.origin,
        // RFC 9110, 10.1.1: not from a 1.0 client, and nothing is held back without a body.
        expect_continue: seen.expects && version == Version::Http11 && body != RequestBody::None,
        body,
        fields: Fields::of_parsed(&head[line + 2..head.len() - 2]),
    })
}

/// Where the line of `field` ends, which follows the one that ends at `end`. Every line ends with
/// CR LF: httparse takes a bare LF for an end too (RFC 9112, 2.2 leaves that to the recipient), and
/// a proxy in front that does not would see another request.
fn next_line_end(head: &[u8], end: usize, field: &httparse::Header) -> Result<usize, RequestError> {
    if head.get(end) != Some(&b'\r') {
        return Err(BARE_LF);
    }
    let colon = end + 2 + field.name.len();
    let value = skip_blanks(head, colon + 1);
    Ok(skip_blanks(head, value + field.value.len()))
}

fn skip_blanks(head: &[u8], mut at: usize) -> usize {
    while matches!(head.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    fn read_one(raw: &str) -> Result<Request<'_>, RequestError> {
        match parse(raw.as_bytes(), &HeadLimits::from(&Limits::default()))? {
            Parsed::Complete { request, used } if used == raw.len() => Ok(request),
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
        assert_eq!(request.raw_target, b"/api/v1/quotes?symbols=A%2CB");
        assert_eq!(request.version, Version::Http11);
        assert!(request.keep_alive && !request.expect_continue);
        assert_eq!(request.body, RequestBody::None);
        assert_eq!(request.if_none_match, Some(&b"\"a\""[..]));
        assert_eq!(request.accept_encoding, Some(&b"gzip, br"[..]));
        assert_eq!(request.origin, Some(&b"https://o"[..]));
        assert_eq!(request.fields.get("host"), Some(&b"h:80"[..]));
        assert_eq!(request.fields.get("x"), Some(&b"y"[..]));
        assert_eq!(request.fields.count(), 5);
    }

    #[test]
    fn a_connection_stays_as_long_as_both_versions_and_fields_want_it() {
        let check = |version: &str, fields: &str, expected| {
            let raw = format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n");
            let request = read_one(&raw).expect("well-formed");
            assert_eq!(request.keep_alive, expected, "{raw:?}");
        };
        check("1.1", "", true);
        check("1.0", "", false);
        check("1.1", "Connection: close\r\n", false);
        check("1.1", "Connection: Upgrade, CLOSE\r\n", false);
        check("1.1", "Connection: keep-alive\r\n", true);
        check("1.1", "Connection: closed, not-close\r\n", true);
        check("1.0", "Connection: Keep-Alive\r\n", true);
        check("1.0", "Connection: x\r\nConnection: ,keep-alive\r\n", true);
        check("1.0", "Connection: keep-alive, close\r\n", false);
        check("1.1", "Connection:\r\n", true);
        let raw = "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n";
        assert!(!read_one(raw).expect("well-formed").keep_alive);
    }

    #[test]
    fn a_body_is_held_back_only_where_there_is_one() {
        let check = |version: &str, fields: &str, expected| {
            let raw = format!("POST / HTTP/{version}\r\nHost: h\r\n{fields}\r\n");
            let request = read_one(&raw).expect("well-formed");
            assert_eq!((request.body, request.expect_continue), expected, "{raw:?}");
        };
        let expect = "Expect: 100-Continue\r\n";
        check("1.1", "", (RequestBody::None, false));
        check("1.1", "Content-Length: 0\r\n", (RequestBody::None, false));
        check(
            "1.1",
            "Content-Length: 7\r\n",
            (RequestBody::Length(7), false),
        );
        check(
            "1.1",
            "Transfer-Encoding: Chunked\r\n",
            (RequestBody::Chunked, false),
        );
        check("1.1", expect, (RequestBody::None, false));
        let both = format!("Content-Length: 7\r\n{expect}");
        check("1.1", &both, (RequestBody::Length(7), true));
        check("1.0", &both, (RequestBody::Length(7), false));
        let both = format!("{expect}Transfer-Encoding: chunked\r\n");
        check("1.1", &both, (RequestBody::Chunked, true));
        check(
            "1.1",
            "Content-Length: 7\r\nExpect:\r\n",
            (RequestBody::Length(7), false),
        );
    }

    #[test]
    fn empty_lines_are_counted_in_whole_pairs() {
        let check = |raw: &str, expected| assert_eq!(empty_lines(raw.as_bytes()), expected);
        check("", 0);
        check("\r", 0);
        check("\r\n", 2);
        check("\r\n\r\nGET", 4);
        check("\r\n\rG", 2);
        check("\n\r\n", 0);
        check("GET\r\n", 0);
    }
}
