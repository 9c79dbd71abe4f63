//! A client's request: what its head says.
//!
//! A [`Request`] borrows from the bytes that arrived, and copies nothing. [`super::parse`] makes it.

use super::accept::Accept;
use super::body::Framing;
use super::head::Fields;
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
    Post,
    /// Known, but not served.
    Put,
    /// Known, but not served.
    Patch,
    /// Known, but not served.
    Delete,
    /// Known, but not served.
    Trace,
    /// Not served. Its target is an authority.
    Connect,
    /// Not served (draft-ietf-httpbis-safe-method-w-body).
    Query,
}

impl Method {
    /// Each with its name in a request line, in the order of the variants.
    #[rustfmt::skip]
    pub(super) const NAMES: [(&str, Method); 10] = [
        ("GET", Method::Get), ("HEAD", Method::Head), ("OPTIONS", Method::Options),
        ("POST", Method::Post), ("PUT", Method::Put), ("PATCH", Method::Patch),
        ("DELETE", Method::Delete), ("TRACE", Method::Trace), ("CONNECT", Method::Connect),
        ("QUERY", Method::Query),
    ];

    /// Its name in a request line.
    pub fn name(self) -> &'static str {
        Method::NAMES[self as usize].0
    }

    /// True if endpoints serve it.
    pub fn is_served(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options)
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

/// The body that follows the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// None: the next byte belongs to the next request.
    None,
    /// This many bytes, at least one.
    Length(u64),
    /// Chunks, the last of which is empty.
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

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The path, still percent-encoded. It begins with `/`, except for `*` of OPTIONS and the authority
    /// of CONNECT. It has no dot segment.
    pub path: &'a [u8],
    /// The query, still percent-encoded: what follows the `?`. May be empty.
    pub query: &'a [u8],
    /// The target as it is in the request line.
    pub raw_target: &'a [u8],
    /// The version.
    pub version: Version,
    /// True if the client may send another request on this connection (RFC 9112, 9.3).
    pub keep_alive: bool,
    /// True if there is a field `If-Match`. [`Request::if_match`] returns its list.
    pub has_if_match: bool,
    /// The first field `If-None-Match`. [`Request::none_match`] returns the whole list.
    pub if_none_match: Option<&'a [u8]>,
    /// True if there is another field with this name.
    pub none_match_repeats: bool,
    /// The first field `Accept-Encoding`. [`Request::accept`] returns the whole list.
    pub accept_encoding: Option<&'a [u8]>,
    /// True if there is another field with this name.
    pub accept_encoding_repeats: bool,
    /// True if the client waits for `100 Continue` before it sends the body (RFC 9110, 10.1.1).
    pub expect_continue: bool,
    /// The body that follows the head.
    pub body: RequestBody,
    /// All fields.
    pub fields: Fields<'a>,
}

impl<'a> Request<'a> {
    /// The list in `If-None-Match`. Several fields are one list (RFC 9110, 5.3). Only these are copied,
    /// and clients rarely send them.
    #[inline]
    pub fn none_match(&self) -> Option<Cow<'a, [u8]>> {
        let first = self.if_none_match?;
        if !self.none_match_repeats {
            return Some(Cow::Borrowed(first));
        }
        Some(Cow::Owned(self.list(b"if-none-match")))
    }

    /// The list in `If-Match`, which clients rarely send.
    #[inline]
    pub fn if_match(&self) -> Option<Box<[u8]>> {
        self.has_if_match.then(|| self.list(b"if-match").into())
    }

    /// The values of all fields with this name, as one list.
    #[cold]
    fn list(&self, wanted: &[u8]) -> Vec<u8> {
        let named = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(wanted);
        let values: Vec<&[u8]> = self.fields.filter(named).map(|(_, value)| value).collect();
        values.join(&b',')
    }

    /// The list in `Accept-Encoding`, which is not parsed yet.
    #[inline]
    pub fn accept(&self) -> Accept<'a> {
        match self.accept_encoding {
            None => Accept::Plain,
            Some(_) if self.accept_encoding_repeats => Accept::Lists(self.fields),
            Some(list) => Accept::List(list),
        }
    }
}
