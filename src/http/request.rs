//! A client's request: what its head says.
//!
//! A [`Request`] borrows from the bytes that arrived, and copies nothing. [`super::parse`] makes it. An
//! [`OwnedRequest`] is a copy for later.

use super::body::Framing;
use super::head::Fields;
use super::target;
use memchr::memchr;
use std::borrow::Cow;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The response has a head and a body.
    Get,
    /// The response has only a head.
    Head,
    /// Asks which methods are allowed.
    Options,
    /// Known, but not served.
    Other,
}

impl Method {
    /// True if endpoints serve it.
    pub fn is_served(self) -> bool {
        self != Method::Other
    }
}

/// The HTTP version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// The body that follows the head of a request. It never ends with the connection.
pub type RequestBody = Framing;

/// A field of a request whose value is a list. The list is parsed only where it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListField {
    /// `If-Match`.
    IfMatch,
    /// `If-None-Match`.
    IfNoneMatch,
    /// `Accept-Encoding`.
    AcceptEncoding,
}

impl ListField {
    /// The names of the fields, in the order of the variants.
    pub(super) const NAMES: [&[u8]; 3] = [b"if-match", b"if-none-match", b"accept-encoding"];
}

/// The lists of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists<'a> {
    /// The first field of each, by [`ListField`].
    pub(super) first: [Option<&'a [u8]>; ListField::NAMES.len()],
    /// True if one of the fields comes more than once.
    pub(super) repeat: bool,
}

impl<'a> Lists<'a> {
    /// The first field of each list that is present.
    pub fn present(&self) -> impl Iterator<Item = &'a [u8]> {
        self.first.into_iter().flatten()
    }
}

/// The first line of a request.
pub(super) struct Line<'a> {
    /// The length of the line, with the CR LF.
    pub length: usize,
    /// The method, as in [`Request`], like the members that follow.
    pub method: Method,
    pub path: &'a [u8],
    pub query: &'a [u8],
    pub version: Version,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The bytes of the head, without empty lines before it.
    pub head: &'a [u8],
    /// The method.
    pub method: Method,
    /// The path, still percent-encoded. It begins with `/`, except for `*` of OPTIONS and the authority
    /// of CONNECT. It has no dot segment.
    pub path: &'a [u8],
    /// The query, still percent-encoded: what follows the `?`. May be empty.
    pub query: &'a [u8],
    /// The version.
    pub version: Version,
    /// True if the client may send another request on this connection (RFC 9112, 9.3).
    pub keep_alive: bool,
    /// True if the client waits for `100 Continue` before it sends the body (RFC 9110, 10.1.1).
    pub expect_continue: bool,
    /// The body that follows the head.
    pub body: RequestBody,
    /// All fields.
    pub fields: Fields<'a>,
    /// The list fields, for [`Request::list`].
    pub lists: Lists<'a>,
}

impl<'a> Request<'a> {
    /// The first line, with the CR LF.
    pub fn line(&self) -> &'a [u8] {
        // The empty line follows the fields.
        &self.head[..self.head.len() - self.fields.lines().len() - 2]
    }

    /// The opening: the first line, and the next line if it is the field `Host`, which clients should send
    /// first (RFC 9110, 7.2).
    pub fn opening(&self) -> &'a [u8] {
        let lines = self.fields.lines();
        let is_host = lines.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"host:"));
        let host = memchr(b'\n', lines).filter(|_| is_host).map_or(0, |end| end + 1);
        &self.head[..self.line().len() + host]
    }

    /// A list. Several fields with one name are one list (RFC 9110, 5.3), and are copied. Clients rarely send
    /// several.
    #[inline]
    pub fn list(&self, field: ListField) -> Option<Cow<'a, [u8]>> {
        let first = self.lists.first[field as usize]?;
        if self.lists.repeat {
            Some(Cow::Owned(self.joined(ListField::NAMES[field as usize])))
        } else {
            Some(Cow::Borrowed(first))
        }
    }

    /// The values of all fields with this name, as one list.
    #[cold]
    fn joined(&self, wanted: &[u8]) -> Vec<u8> {
        let named = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(wanted);
        let values: Vec<&[u8]> = self.fields.filter(named).map(|(_, value)| value).collect();
        values.join(&b',')
    }
}

/// A request that outlives the bytes that it arrived in. It has a copy of its head, and the places of all
/// parts in it, so that an equal head need not be parsed again.
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    head: Box<[u8]>,
    /// The request without its bytes.
    rest: Request<'static>,
    path: Span,
    query: Span,
    lines: Span,
    lists: [Option<Span>; ListField::NAMES.len()],
    /// The length of the opening.
    opening: u32,
}

/// Start and end of a part of the head.
type Span = (u32, u32);

impl OwnedRequest {
    /// Copies a request.
    pub fn new(request: &Request<'_>) -> OwnedRequest {
        let head = request.head;
        let span = |part: &[u8]| {
            let begin = part.as_ptr().addr().wrapping_sub(head.as_ptr().addr());
            let end = begin.wrapping_add(part.len());
            // An empty part may point anywhere.
            if part.is_empty() || end > head.len() { (0, 0) } else { (begin as u32, end as u32) }
        };
        OwnedRequest {
            rest: Request {
                head: b"",
                method: request.method,
                path: b"",
                query: b"",
                version: request.version,
                keep_alive: request.keep_alive,
                expect_continue: request.expect_continue,
                body: request.body,
                fields: Fields::of_parsed(b""),
                lists: Lists { repeat: request.lists.repeat, ..Lists::default() },
            },
            path: span(request.path),
            query: span(request.query),
            lines: span(request.fields.lines()),
            lists: request.lists.first.map(|list| list.map(span)),
            opening: request.opening().len() as u32,
            head: head.into(),
        }
    }

    /// The request.
    pub fn get(&self) -> Request<'_> {
        self.read(&self.head)
    }

    /// The length of this request's head, if `bytes` begin with it.
    #[inline]
    pub fn find(&self, bytes: &[u8]) -> Option<usize> {
        bytes.starts_with(&self.head).then_some(self.head.len())
    }

    /// True if another request has the same line, lists and persistence. Other fields do not change the
    /// response.
    pub fn is_like(&self, other: &Request<'_>) -> bool {
        let lists = self
            .lists
            .map(|list| list.map(|(begin, end)| &self.head[begin as usize..end as usize]));
        let has_lists =
            lists == other.lists.first && !self.rest.lists.repeat && !other.lists.repeat;
        has_lists && self.rest.keep_alive == other.keep_alive && self.head.starts_with(other.line())
    }

    /// See [`Request::opening`].
    pub fn opening(&self) -> &[u8] {
        &self.head[..self.opening as usize]
    }

    /// The first line of a head with the same opening.
    pub(super) fn line_of<'b>(&self, head: &'b [u8]) -> Line<'b> {
        let Request { method, version, .. } = self.rest;
        let (path, query) = self.target_in(head);
        Line { length: self.lines.0 as usize, method, path, query, version }
    }

    /// Path and query of a head with an equal first line: they are in the same places.
    fn target_in<'b>(&self, head: &'b [u8]) -> (&'b [u8], &'b [u8]) {
        let part = |(begin, end): Span| &head[begin as usize..end as usize];
        // The path of a bare authority is not in the head.
        (if self.path.1 == 0 { target::ROOT } else { part(self.path) }, part(self.query))
    }

    /// The length of the head.
    pub fn head_bytes(&self) -> usize {
        self.head.len()
    }

    /// This request, borrowing from `head`, which has the same bytes.
    pub fn read<'b>(&self, head: &'b [u8]) -> Request<'b> {
        let part = |(begin, end): Span| &head[begin as usize..end as usize];
        let (path, query) = self.target_in(head);
        Request {
            head,
            path,
            query,
            fields: Fields::of_parsed(part(self.lines)),
            lists: Lists { first: self.lists.map(|list| list.map(part)), ..self.rest.lists },
            ..self.rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parser::parse;
    use super::*;
    use crate::config::Limits;

    #[test]
    fn a_kept_request_is_read_from_other_bytes_as_it_was_parsed() {
        let limits = Limits::default();
        let check = |raw: &str| {
            let Ok(Some((request, _))) = parse(raw.as_bytes(), &limits) else {
                panic!("{raw:?} is a request");
            };
            let kept = OwnedRequest::new(&request);
            assert_eq!(kept.get(), request, "{raw:?}");
            let other = [request.head, b"GET /and-more"].concat();
            let length = kept.find(&other).expect("the same head");
            assert_eq!(kept.read(&other[..length]), request, "{raw:?}");
            assert_eq!(kept.find(&other[..request.head.len() - 1]), None, "{raw:?}");
        };
        check("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        check("\r\n\r\nHEAD /a?b=%2F HTTP/1.0\r\n\r\n");
        check(
            "GET /a?b HTTP/1.1\r\nhost:\r\nif-match: *\r\nif-none-match: \"a\" \r\nIf-None-Match:\r\n\
             Accept-Encoding: gzip\r\norigin: null\r\nConnection: close\r\n\r\nbehind",
        );
        check(
            "POST http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\
             Expect: 100-continue\r\n\r\n",
        );
        check("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n");
        check("GET http://h?a HTTP/1.1\r\nHost: h\r\n\r\n");
    }

    #[test]
    fn several_fields_are_one_list() {
        let limits = Limits::default();
        let check = |lines: &str, field: ListField, expected: Option<&str>| {
            let raw = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
            let Ok(Some((request, _))) = parse(raw.as_bytes(), &limits) else {
                panic!("{raw:?} is a request");
            };
            assert_eq!(request.list(field).as_deref(), expected.map(str::as_bytes), "{lines}");
        };
        let encodings = "Accept-Encoding: br\r\nX: y\r\naccept-encoding: gzip\r\n";
        check(encodings, ListField::AcceptEncoding, Some("br,gzip"));
        check(encodings, ListField::IfMatch, None);
        let both = format!("{encodings}If-Match: \"a\"\r\n");
        check(&both, ListField::IfMatch, Some("\"a\""));
        check("If-None-Match: *\r\n", ListField::IfNoneMatch, Some("*"));
    }
}
