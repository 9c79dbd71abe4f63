//! The parts of a head that differ between responses, as plain data. Also bodies whose end is not
//! known.

use crate::http::body::Framing;
use crate::http::request::Version;

/// The interim response to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The field of a 405: the methods that every endpoint serves (RFC 9110, 15.5.6).
pub const ALLOW: &[u8] = b"Allow: GET, HEAD, OPTIONS\r\n";

/// The fields of the response to OPTIONS, which browsers also send as a CORS preflight. The wildcard
/// allows every field except `Authorization` (Fetch, CORS-preflight fetch), which some pages always send.
pub const PREFLIGHT: &[u8] = b"Allow: GET, HEAD, OPTIONS\r\n\
    Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n\
    Access-Control-Allow-Headers: *, Authorization\r\n\
    Access-Control-Max-Age: 86400\r\n";

/// A strong entity tag: bodies with equal tags have equal bytes (RFC 9110, 8.8.3). Written as
/// `"<boot>-<version>-<variant>"`. The [`Stamp`](super::Stamp) has the boot id,
/// which is needed because versions start again in each run. The rest of the tag depends only on what the
/// body was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag {
    pub(super) version: u64,
    /// A letter or digit that identifies the representation.
    pub(super) variant: u8,
}

impl ETag {
    /// The tag of a body with this version, or with the fingerprint of several versions. No other state of
    /// anything may have this version.
    pub fn new(version: u64, variant: u8) -> ETag {
        ETag { version, variant }
    }

    /// The tag of the same body in gzip: its variant is the next letter. No endpoint uses two adjacent
    /// letters.
    pub fn gzip(self) -> ETag {
        ETag { variant: self.variant + 1, ..self }
    }
}

/// What caches may do with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// A cache must not store it.
    NoStore,
    /// A cache may store it, and must revalidate it before each use.
    NoCache,
    /// A cache may use it for this many seconds.
    MaxAge(u32),
}

/// The content coding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// None, for every client.
    Fixed,
    /// None for this response, but the same body may be sent in gzip too.
    Plain,
    /// gzip.
    Gzip,
}

/// The media type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// `application/json`, the type of most responses.
    Json,
    /// Another one: its field with CR LF. Empty if there is no body.
    Other(&'static str),
}

impl ContentType {
    /// The text format of Prometheus, version 0.0.4.
    pub const PROMETHEUS: ContentType =
        ContentType::Other("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    /// Server-sent events (WHATWG HTML, 9.2). They are always UTF-8, so no charset is named.
    pub const EVENT_STREAM: ContentType = ContentType::Other("Content-Type: text/event-stream\r\n");
    /// A text for people.
    pub const TEXT: ContentType = ContentType::Other("Content-Type: text/plain; charset=utf-8\r\n");
    /// A page.
    pub const HTML: ContentType = ContentType::Other("Content-Type: text/html; charset=utf-8\r\n");
    /// A style sheet.
    pub const CSS: ContentType = ContentType::Other("Content-Type: text/css; charset=utf-8\r\n");
    /// A script.
    pub const JAVASCRIPT: ContentType =
        ContentType::Other("Content-Type: text/javascript; charset=utf-8\r\n");
}

/// The parts of a head that the caller decides.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// 200 to 599.
    pub status: u16,
    /// The entity tag. With a 200, conditional requests are compared with it.
    pub etag: Option<ETag>,
    /// What caches may do.
    pub cache: Cache,
    /// The media type of the body.
    pub content_type: ContentType,
    /// The coding of the body.
    pub coding: Coding,
    /// True if another `Accept` may lead to another media type.
    pub by_media: bool,
    /// More fields: `Name: value` lines, each with its CR LF.
    pub fields: &'a [u8],
}

impl Head<'static> {
    /// The head of a 200 with JSON.
    pub const fn json(etag: Option<ETag>, cache: Cache) -> Head<'static> {
        Head {
            status: 200,
            etag,
            cache,
            content_type: ContentType::Json,
            coding: Coding::Fixed,
            by_media: false,
            fields: b"",
        }
    }

    /// The head of the response to OPTIONS.
    pub const fn options() -> Head<'static> {
        Head {
            status: 204,
            content_type: ContentType::Other(""),
            fields: PREFLIGHT,
            ..Head::json(None, Cache::NoStore)
        }
    }
}

/// A body whose end is not known when it begins, for a client of this version. With HTTP/1.1 it is sent in
/// chunks, of which the last is empty (RFC 9112, 7.1). With HTTP/1.0 it ends with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndlessBody(pub Version);

/// A placeholder for the size of a chunk: eight digits. The final size may have leading zeros.
const SIZE: &[u8] = b"00000000\r\n";

impl EndlessBody {
    /// The framing that the head states.
    pub(super) fn framing(self) -> Framing {
        match self.0 {
            Version::Http10 => Framing::UntilClose,
            Version::Http11 => Framing::Chunked,
        }
    }

    /// Appends what `write` appends as a part of the body. If `write` appends nothing, nothing
    /// changes.
    pub fn write<R>(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if self.0 == Version::Http10 {
            return write(out);
        }
        let begin = out.len();
        out.extend_from_slice(SIZE);
        let data = out.len();
        let result = write(out);
        match out.len() - data {
            0 => out.truncate(begin),
            length => {
                let digits = format!("{length:08x}");
                out[begin..begin + digits.len()].copy_from_slice(digits.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        result
    }

    /// Appends the end of the body.
    pub fn end(self, out: &mut Vec<u8>) {
        if self.0 == Version::Http11 {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chunks_and_empty_ones_are_left_out() {
        let mut out = b"head".to_vec();
        let body = EndlessBody(Version::Http11);
        assert_eq!(
            body.write(&mut out, |out| {
                out.extend_from_slice(b"data: 1\n\n");
                7
            }),
            7
        );
        body.write(&mut out, |_| ());
        body.write(&mut out, |out| out.resize(out.len() + 300, b'x'));
        body.end(&mut out);
        let expected =
            format!("head00000009\r\ndata: 1\n\n\r\n0000012c\r\n{}\r\n0\r\n\r\n", "x".repeat(300));
        assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
    }

    #[test]
    fn a_client_of_http_1_0_gets_the_bytes_alone() {
        let mut out = Vec::new();
        let body = EndlessBody(Version::Http10);
        body.write(&mut out, |out| out.extend_from_slice(b":\n\n"));
        body.end(&mut out);
        assert_eq!(out, b":\n\n");
    }
}
