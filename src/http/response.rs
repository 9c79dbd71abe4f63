//! Responses to clients, written directly into a connection's output.
//!
//! Owns the head of every response: the status line, the common fields, caching, conditional requests (RFC
//! 9110, 13), and the rule that HEAD has no body. It makes no bodies except those of errors. The caller
//! decides whether the connection closes.
//!
//! The head of a 200 with JSON is written a hundred thousand times a second. So it is a copy of a block that
//! is rendered once a second, followed by a short part that differs (both in `stamp`).

mod head;
mod stamp;

use self::head::ALLOW;
pub use self::head::{CONTINUE, Cache, Coding, ContentType, ETag, EndlessBody, Head, PREFLIGHT};
pub use self::stamp::Stamp;
use self::stamp::{ETAG, JSON, TAIL_BYTES, Tail};
use super::accept::accepts_gzip;
use super::body::Framing;
use super::error::Error;
use super::output::Output;
use super::parser::empty_lines;
use super::request::{ListField, Method, Request, Version};
use crate::json::json;
use std::borrow::Cow;

/// What is left of a client's rate limit: `RateLimit-Limit`, `-Remaining` and `-Reset`
/// (draft-ietf-httpapi-ratelimit-headers-06, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Requests that are allowed at once.
    pub limit: u32,
    /// Requests that are left.
    pub remaining: u32,
    /// Seconds until all requests are allowed again. If this request was refused, seconds until one
    /// is.
    pub reset_s: u32,
    /// True if this request was refused.
    pub is_used_up: bool,
}

/// Writes the response to one request.
#[derive(Debug)]
pub struct Responder<'a> {
    out: &'a mut Output,
    stamp: &'a Stamp,
    /// `None` if the bytes were not a request.
    request: Option<&'a Request<'a>>,
    /// True if the response has no body in any case.
    is_head: bool,
    /// False if the connection closes.
    keep: bool,
    quota: Option<Quota>,
    status: u16,
    weight: usize,
}

impl<'a> Responder<'a> {
    /// Responds to `request`, appending to `out`. Without `keep`, or if the client sends no further
    /// request, the response says that the connection closes.
    pub fn new(
        out: &'a mut Output,
        stamp: &'a Stamp,
        request: &'a Request<'a>,
        keep: bool,
    ) -> Responder<'a> {
        let keep = keep && request.keep_alive;
        let is_head = request.method == Method::Head;
        Responder { request: Some(request), is_head, keep, ..Responder::closing(out, stamp, b"") }
    }

    /// Responds to bytes that are not a complete request, and closes. Even an error has no body if the
    /// request is a HEAD (RFC 9110, 9.3.2).
    pub fn closing(out: &'a mut Output, stamp: &'a Stamp, bytes: &[u8]) -> Responder<'a> {
        let is_head = bytes[empty_lines(bytes)..].starts_with(b"HEAD ");
        let (request, keep, quota) = (None, false, None);
        Responder { out, stamp, request, is_head, keep, quota, status: 0, weight: 0 }
    }

    /// Sets the quota that the head states.
    pub fn tell_quota(&mut self, quota: Option<Quota>) {
        self.quota = quota;
    }

    /// Writes the head. Returns the output if the caller must write the body, exactly `body_len` bytes.
    /// Returns `None` if there is no body to write: for HEAD, 204, 304 and 412. A 200 becomes a 304 if
    /// `If-None-Match` names the tag of the response. A 200 becomes a 412, written here with its body, if
    /// there is an `If-Match` that does not name the tag.
    pub fn begin(&mut self, head: &Head, body_len: usize) -> Option<&mut Output> {
        self.weigh(body_len);
        self.write_head(head, Framing::Length(body_len as u64), 0).then_some(&mut *self.out)
    }

    /// Writes the head of a 200 whose body is written later. Returns true if the caller must write the body.
    /// It returns false for HEAD. It also returns false if `If-Match` names a tag: such a body has no tag, so
    /// the response is a 412.
    pub fn begin_endless(&mut self, head: &Head, body: EndlessBody) -> bool {
        self.write_head(head, body.framing(), 0)
    }

    /// Writes the head. Returns true if the caller must write the body. `copied`: how many bytes of the body
    /// are copied to the output.
    fn write_head(&mut self, head: &Head, framing: Framing, copied: usize) -> bool {
        if head.status == 200 && !self.is_wanted(head.etag) {
            self.error(&Error::PRECONDITION_FAILED);
            return false;
        }
        self.status = head.status;
        let mut tail = Tail::new();
        if let Some(etag) = head.etag {
            self.stamp.tag(etag, &mut tail);
            if head.status == 200
                && let Some(asked) = self.list(ListField::IfNoneMatch)
                && matches_any(&asked, &tail.text()[ETAG.len()..], Compare::Weakly)
            {
                self.status = 304;
            }
            tail.push(b"\r\n");
        }
        let may_have_body = !matches!(self.status, 204 | 304);
        let has_body = may_have_body && !self.is_head;
        tail.cache(head.cache);
        match framing {
            Framing::Length(length) if may_have_body => {
                tail.push(b"Content-Length: ");
                tail.decimal(length);
                tail.push(b"\r\n");
            }
            Framing::Chunked => tail.push(b"Transfer-Encoding: chunked\r\n"),
            _ => {}
        }
        self.end_with_connection(&mut tail);
        let out = self.out.bytes();
        let room = self.stamp.ok_json.len() + LINE_ROOM + head.fields.len() + TAIL_BYTES;
        out.reserve(room + if has_body { copied } else { 0 });
        if self.status == 200 && head.content_type == ContentType::Json {
            out.extend_from_slice(&self.stamp.ok_json);
        } else {
            write_other_start(out, self.status, head.content_type, self.stamp);
        }
        if let Some(quota) = self.quota {
            write_quota(out, quota);
        }
        if !head.fields.is_empty() {
            out.extend_from_slice(head.fields);
        }
        if head.coding != Coding::Fixed || head.by_media {
            write_variants(out, self.status, head);
        }
        tail.append_to(out);
        has_body
    }

    /// Writes head and body.
    pub fn send(&mut self, head: &Head, body: &[u8]) {
        self.weigh(body.len());
        if self.write_head(head, Framing::Length(body.len() as u64), body.len()) {
            self.out.bytes().extend_from_slice(body);
        }
    }

    /// Writes an error as JSON that is not cached.
    pub fn error(&mut self, error: &Error) {
        let Error { status, code, message, param, retry_after } = error;
        let (mut body, mut fields) = (Vec::new(), Vec::new());
        json!(&mut body, {
            "status": *status, "code": *code, "message": &**message, "param": *param,
        });
        if let Some(seconds) = retry_after {
            fields.extend_from_slice(format!("Retry-After: {seconds}\r\n").as_bytes());
        }
        if *status == 405 {
            fields.extend_from_slice(ALLOW);
        }
        let head = Head { status: *status, fields: &fields, ..Head::json(None, Cache::NoStore) };
        self.send(&head, &body);
    }

    /// True if the client accepts gzip.
    pub fn takes_gzip(&self) -> bool {
        self.list(ListField::AcceptEncoding).is_some_and(|list| accepts_gzip(&list))
    }

    /// True if `If-None-Match` has this tag, so that a 200 with it becomes a 304.
    pub fn has(&self, etag: ETag) -> bool {
        let asked = self.list(ListField::IfNoneMatch);
        asked.is_some_and(|asked| self.matches(&asked, Some(etag), Compare::Weakly))
    }

    /// True if `If-Match` is absent or matches this tag (RFC 9110, 13.1.1: `*`, or a list that is
    /// compared strongly). A list never matches a representation without a tag.
    #[inline]
    pub fn is_wanted(&self, etag: Option<ETag>) -> bool {
        let asked = self.list(ListField::IfMatch);
        asked.is_none_or(|asked| self.matches(&asked, etag, Compare::Strongly))
    }

    fn matches(&self, asked: &[u8], etag: Option<ETag>, compare: Compare) -> bool {
        let mut tail = Tail::new();
        if let Some(etag) = etag {
            self.stamp.tag(etag, &mut tail);
        }
        matches_any(asked, tail.text().get(ETAG.len()..).unwrap_or_default(), compare)
    }

    #[inline]
    fn list(&self, field: ListField) -> Option<Cow<'a, [u8]>> {
        self.request?.list(field)
    }

    /// Ends the head, with the field `Connection` if it is needed. HTTP/1.1 needs none if the connection
    /// stays open. A client of HTTP/1.0 that has asked to keep the connection open is told that it stays
    /// open.
    #[inline]
    fn end_with_connection(&self, tail: &mut Tail) {
        match self.request {
            Some(request) if self.keep => match request.version {
                Version::Http10 => tail.push(b"Connection: keep-alive\r\n\r\n"),
                Version::Http11 => tail.push(b"\r\n"),
            },
            _ => tail.push(b"Connection: close\r\n\r\n"),
        }
    }

    /// The status that was written; 0 if none was.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Notes that a body of this many bytes was made, whether or not it is sent.
    #[inline]
    pub fn weigh(&mut self, body_bytes: usize) {
        self.weight = self.weight.max(body_bytes);
    }

    /// The size of the body that was made, also for HEAD and a 304.
    #[inline]
    pub fn weight(&self) -> usize {
        self.weight
    }
}

/// Room for what may be longer than in a 200 with JSON: the status line, the content type, and the fields of
/// a coding.
const LINE_ROOM: usize = 128;

/// Appends the status line and the common fields, for any status and type.
fn write_other_start(out: &mut Vec<u8>, status: u16, content_type: ContentType, stamp: &Stamp) {
    // A 304 has no content type: the client has the representation.
    let content_type = match content_type {
        _ if status == 304 => b"",
        ContentType::Json => JSON,
        ContentType::Other(field) => field.as_bytes(),
    };
    let mut line = Tail::new();
    line.push(b"HTTP/1.1 ");
    line.decimal(u64::from(status));
    line.push(b" ");
    line.push(reason(status));
    line.push(b"\r\n");
    for part in [line.text(), stamp.common(), content_type] {
        out.extend_from_slice(part);
    }
}

#[cold]
fn write_quota(out: &mut Vec<u8>, quota: Quota) {
    let Quota { limit, remaining, reset_s, .. } = quota;
    let lines = format!(
        "RateLimit-Limit: {limit}\r\nRateLimit-Remaining: {remaining}\r\n\
         RateLimit-Reset: {reset_s}\r\n"
    );
    out.extend_from_slice(lines.as_bytes());
}

/// Appends the coding, and `Vary` with the request fields that the coding and the media type depend on (RFC
/// 9110, 12.5.5). A 304 has no body and so no coding.
fn write_variants(out: &mut Vec<u8>, status: u16, head: &Head) {
    out.extend_from_slice(match (head.by_media, head.coding) {
        (true, Coding::Fixed) => b"Vary: Accept\r\n".as_slice(),
        (true, _) => b"Vary: Accept, Accept-Encoding\r\n",
        (false, _) => b"Vary: Accept-Encoding\r\n",
    });
    if head.coding == Coding::Gzip && status != 304 {
        out.extend_from_slice(b"Content-Encoding: gzip\r\n");
    }
}

/// The reason phrase. It may be empty (RFC 9112, 4).
fn reason(status: u16) -> &'static [u8] {
    match status {
        200 => b"OK",
        204 => b"No Content",
        304 => b"Not Modified",
        308 => b"Permanent Redirect",
        400 => b"Bad Request",
        404 => b"Not Found",
        405 => b"Method Not Allowed",
        408 => b"Request Timeout",
        412 => b"Precondition Failed",
        413 => b"Content Too Large",
        414 => b"URI Too Long",
        417 => b"Expectation Failed",
        429 => b"Too Many Requests",
        431 => b"Request Header Fields Too Large",
        500 => b"Internal Server Error",
        501 => b"Not Implemented",
        503 => b"Service Unavailable",
        505 => b"HTTP Version Not Supported",
        _ => b"",
    }
}

/// How entity tags are compared (RFC 9110, 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    /// `W/` is ignored.
    Weakly,
    /// A tag with `W/` matches nothing.
    Strongly,
}

/// True if the list of `If-Match` or `If-None-Match` matches this tag, which includes its quotes. The list is
/// `*` or has tags (RFC 9110, 13.1.1 and 13.1.2). Everything after a malformed member is ignored.
fn matches_any(list: &[u8], tag: &[u8], compare: Compare) -> bool {
    if list == b"*" {
        return true;
    }
    let mut rest = list;
    loop {
        let is_gap = |byte: &&u8| matches!(byte, b',' | b' ' | b'\t');
        rest = &rest[rest.iter().take_while(is_gap).count()..];
        let strong = rest.strip_prefix(b"W/");
        let may_match = strong.is_none() || compare == Compare::Weakly;
        rest = strong.unwrap_or(rest);
        let Some(opaque) = rest.strip_prefix(b"\"") else {
            return false;
        };
        let Some(end) = opaque.iter().position(|&byte| byte == b'"') else {
            return false;
        };
        let (member, behind) = rest.split_at(end + 2);
        if member == tag && may_match {
            return true;
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::super::parser::parse;
    use super::stamp::COMMON;
    use super::*;
    use crate::config::Limits;
    use crate::time::UnixMs;

    const ETAG: ETag = ETag { version: 26, variant: b'q' };

    /// What a client that sends `raw` reads, the service keeping the connection.
    fn respond(raw: &str, write: impl FnOnce(&mut Responder)) -> String {
        let limits = Limits::default();
        let request = match parse(raw.as_bytes(), &limits) {
            Ok(Some((request, _))) => request,
            other => panic!("{raw:?}: {other:?}"),
        };
        let mut stamp = Stamp::new(0x18a3_f2b0);
        stamp.refresh(UnixMs(784_111_777_999));
        let mut out = Output::default();
        out.bytes().extend_from_slice(b"before");
        write(&mut Responder::new(&mut out, &stamp, &request, true));
        let out = String::from_utf8(out.to_vec()).expect("ASCII");
        out.strip_prefix("before").expect("appended").to_string()
    }

    fn common() -> String {
        String::from_utf8_lossy(COMMON).replacen(
            "\r\n",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            1,
        )
    }

    #[test]
    fn a_200_carries_all_that_it_should() {
        let raw = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let head =
            Head { fields: b"Chart-Gaps: 0\r\n", ..Head::json(Some(ETAG), Cache::MaxAge(2)) };
        let found = respond(raw, |responder| {
            responder.send(&head, b"{}");
            assert_eq!(responder.status(), 200);
        });
        let expected = format!(
            "HTTP/1.1 200 OK\r\n{}Content-Type: application/json\r\nChart-Gaps: 0\r\n\
             ETag: \"413397680-26-q\"\r\nCache-Control: public, max-age=2\r\n\
             Content-Length: 2\r\n\r\n{{}}",
            common()
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn other_answers_differ_where_they_should() {
        let check = |raw: &str, head: &Head, expected_line: &str, expected_tail: &str| {
            let found = respond(raw, |responder| responder.send(head, b"body"));
            let expected = format!("{expected_line}\r\n{}{expected_tail}", common());
            assert_eq!(found, expected);
        };
        let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let plain = Head::json(None, Cache::NoCache);
        let json = "Content-Type: application/json\r\n";
        check(
            "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
            &plain,
            "HTTP/1.1 200 OK",
            &format!("{json}Cache-Control: no-cache\r\nContent-Length: 4\r\n\r\n"),
        );
        check(
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            &plain,
            "HTTP/1.1 200 OK",
            &format!(
                "{json}Cache-Control: no-cache\r\nContent-Length: 4\r\n\
                 Connection: keep-alive\r\n\r\nbody"
            ),
        );
        check(
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            &plain,
            "HTTP/1.1 200 OK",
            &format!(
                "{json}Cache-Control: no-cache\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
            ),
        );
        check(
            "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
            &Head::options(),
            "HTTP/1.1 204 No Content",
            &format!("{}Cache-Control: no-store\r\n\r\n", String::from_utf8_lossy(PREFLIGHT)),
        );
        let metrics =
            Head { content_type: ContentType::PROMETHEUS, ..Head::json(None, Cache::NoStore) };
        check(
            get,
            &metrics,
            "HTTP/1.1 200 OK",
            "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Cache-Control: no-store\r\nContent-Length: 4\r\n\r\nbody",
        );
    }

    #[test]
    fn an_error_is_json_that_no_cache_keeps() {
        let raw = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let error = Error::new(405, "method_not_allowed", "no");
        let body = r#"{"status":405,"code":"method_not_allowed","message":"no","param":null}"#;
        let tail = format!(
            "Content-Type: application/json\r\nAllow: GET, HEAD, OPTIONS\r\n\
             Cache-Control: no-store\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let line = "HTTP/1.1 405 Method Not Allowed\r\n";
        let found = respond(raw, |responder| responder.error(&error));
        assert_eq!(found, format!("{line}{}{tail}{body}", common()));
        let found = respond(&raw.replace("GET", "HEAD"), |responder| responder.error(&error));
        assert_eq!(found, format!("{line}{}{tail}", common()));

        let message = "Unknown symbol \"FOO\".";
        let error = Error::new(404, "symbol_not_found", message).about("symbol").retry_after(7);
        let found = respond(raw, |responder| responder.error(&error));
        assert!(found.contains("\r\nRetry-After: 7\r\n"), "{found}");
        let body = concat!(
            r#"{"status":404,"code":"symbol_not_found","message":"Unknown symbol \"FOO\".","#,
            r#""param":"symbol"}"#
        );
        assert!(found.ends_with(body), "{found}");

        let mut out = Output::default();
        let mut stamp = Stamp::new(0);
        stamp.refresh(UnixMs(784_111_777_000));
        let mut responder = Responder::closing(&mut out, &stamp, b"");
        responder.error(&Error::URI_TOO_LONG);
        assert_eq!(responder.status(), 414);
        let out = String::from_utf8(out.to_vec()).expect("ASCII");
        assert!(out.starts_with("HTTP/1.1 414 URI Too Long\r\nDate: Sun, 06 Nov 1994"));
        assert!(out.contains("\r\nConnection: close\r\n\r\n{\"status\":414,"));
    }

    #[test]
    fn a_body_that_may_be_packed_says_so_and_its_tags_differ() {
        let check = |coding, fields: &str, expected: &str| {
            let raw = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let packed = coding == Coding::Gzip;
            let head = Head {
                coding,
                ..Head::json(Some(if packed { ETAG.gzip() } else { ETAG }), Cache::NoCache)
            };
            let found = respond(&raw, |responder| {
                assert_eq!(responder.takes_gzip(), fields.contains("gzip"));
                assert_eq!(responder.has(ETAG), fields.contains("-q\""));
                responder.send(&head, b"body")
            });
            let (line, rest) = expected.split_once('|').expect("two parts");
            assert_eq!(found, format!("HTTP/1.1 {line}\r\n{}{rest}", common()));
        };
        let json = "Content-Type: application/json\r\n";
        let end = "Cache-Control: no-cache\r\nContent-Length: 4\r\n\r\nbody";
        let plain =
            format!("200 OK|{json}Vary: Accept-Encoding\r\nETag: \"413397680-26-q\"\r\n{end}");
        check(Coding::Plain, "", &plain);
        check(Coding::Plain, "If-None-Match: \"413397680-26-r\"\r\n", &plain);
        let packed = format!(
            "200 OK|{json}Vary: Accept-Encoding\r\nContent-Encoding: gzip\r\n\
             ETag: \"413397680-26-r\"\r\n{end}"
        );
        check(Coding::Gzip, "Accept-Encoding: gzip\r\n", &packed);
        let unchanged = |variant: &str| {
            format!(
                "304 Not Modified|Vary: Accept-Encoding\r\nETag: \"413397680-26-{variant}\"\r\n\
                 Cache-Control: no-cache\r\n\r\n"
            )
        };
        let asked = |variant: &str| format!("If-None-Match: \"413397680-26-{variant}\"\r\n");
        check(Coding::Plain, &asked("q"), &unchanged("q"));
        let fields = format!("Accept-Encoding: gzip\r\n{}", asked("r"));
        check(Coding::Gzip, &fields, &unchanged("r"));
    }

    #[test]
    fn only_a_200_with_a_tag_becomes_a_304() {
        let raw = "GET / HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n";
        let check = |head: Head, status| {
            respond(raw, |responder| {
                responder.send(&head, b"");
                assert_eq!(responder.status(), status);
            });
        };
        let head = Head::json(Some(ETAG), Cache::NoCache);
        check(head, 304);
        check(Head { etag: None, ..head }, 200);
        check(Head { status: 503, ..head }, 503);
    }

    #[test]
    fn the_date_is_that_of_the_second_and_never_panics() {
        let mut stamp = Stamp::new(0);
        let mut check = |ms: i64, expected: &str| {
            stamp.refresh(UnixMs(ms));
            let expected = format!("Date: {expected}\r\nX-Content-");
            assert!(String::from_utf8_lossy(stamp.common()).starts_with(&expected), "{ms}");
        };
        check(0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT");
        check(784_111_777_999, "Sun, 06 Nov 1994 08:49:37 GMT");
        check(784_111_778_000, "Sun, 06 Nov 1994 08:49:38 GMT");
        check(-1, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
