//! HTTP/1.1 messages: bytes to requests and answers, and back.
//!
//! Owns the grammar and the framing of RFC 9110 and RFC 9112, on both sides: requests from clients
//! ([`request`]) and the answers to them ([`response`]), requests to exchanges and their answers
//! ([`upstream`]), tunnels through proxies ([`tunnel`]), bodies in both directions ([`body`]),
//! and their gzip coding ([`gzip`]), where a client accepts it ([`accept`]). It never touches a
//! socket, keeps no connection and knows no market: what a path means is not its business.
//!
//! Invariant: however the bytes are split on their way, the result is the same. A parser is given
//! what has arrived so far; it says *partial* until the bytes decide, and what they have decided,
//! no later byte changes.

pub mod accept;
pub mod body;
pub mod error;
pub mod gzip;
mod head;
pub mod output;
pub mod query;
pub mod request;
pub mod response;
mod target;
pub mod tunnel;
pub mod upstream;

pub use accept::Accept;
pub use body::{BodyError, BodyReader, Framing, Piece};
pub use error::{ErrorAnswer, RequestError, write_error_body};
pub use gzip::{Compressor, DecompressError, Decompressor};
pub use head::{Fields, HeadLimits};
pub use output::{Outgoing, Output};
pub use query::{BadEscape, Query, decode_segment, normal_path};
pub use request::{KeptRequest, Method, Parsed, Request, RequestBody, Version, empty_lines, parse};
pub use response::{
    ALLOW, CONTINUE, Cache, Coding, ContentType, ETag, Head, PREFLIGHT, Persistence, Quota,
    Responder, Stamp,
};
pub use tunnel::write_connect;
pub use upstream::{
    Encoding, Response, ResponseError, ResponseHead, RetryAfter, parse_response, read_date,
    write_request,
};
