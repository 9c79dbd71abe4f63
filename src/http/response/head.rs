//! What differs between the heads of responses: plain data.

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
/// `"<boot>-<version>-<variant>"`, with hexadecimal numbers. The boot id is that of the
/// [`Stamp`](super::Stamp), because versions start anew in each run. The tag depends only on what the body
/// was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag {
    pub(super) version: u64,
    /// A letter or digit that names the representation.
    pub(super) variant: u8,
}

impl ETag {
    /// The tag of a body with this version, or with a fingerprint of several. No other state of anything may
    /// have this version.
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
    /// Not store it.
    NoStore,
    /// Store it, and revalidate it before each use.
    NoCache,
    /// Use it for this many seconds.
    MaxAge(u32),
}

/// The content coding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// None, for every client.
    Fixed,
    /// None, but the same body may be sent in gzip too.
    Plain,
    /// gzip.
    Gzip,
}

/// The media type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// There is no body.
    None,
    /// `application/json`.
    Json,
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// Server-sent events (WHATWG HTML, 9.2), which are UTF-8 without saying so.
    EventStream,
    /// `text/plain`.
    Text,
    /// `text/html`.
    Html,
    /// `text/css`.
    Css,
    /// `text/javascript`.
    JavaScript,
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
            content_type: ContentType::None,
            fields: PREFLIGHT,
            ..Head::json(None, Cache::NoStore)
        }
    }
}
