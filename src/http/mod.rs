//! HTTP/1.1 messages: parses and writes requests and responses.
//!
//! Owns the grammar and the framing of RFC 9110 and RFC 9112 on both sides: requests from clients
//! ([`request`]) and the responses to them ([`response`]), the bytes that are still to be sent ([`output`]),
//! requests to exchanges and their responses, and tunnels through proxies ([`upstream`]), bodies in both
//! directions ([`body`]), and gzip ([`gzip`]) if a client accepts it ([`accept`]). It uses no sockets, knows
//! no connections, and does not know what a path means.
//!
//! Invariant: the result does not depend on how the bytes are split. A parser gets the bytes that have
//! arrived so far, and returns *partial* until the result is certain. Later bytes do not change it.

pub mod accept;
pub mod body;
pub mod error;
pub mod gzip;
mod head;
pub mod output;
mod parser;
pub mod request;
pub mod response;
mod target;
pub mod upstream;

pub use accept::prefers_html;
pub use body::{BodyError, BodyReader, Framing, Piece};
pub use error::{Error, echo};
pub use gzip::{Compressor, Decompressor, decompress, unpacked};
pub use head::Fields;
pub use output::{EMPTY, Output};
pub use parser::{Parsed, empty_lines, parse, parse_behind};
pub use request::{ListField, Method, OwnedRequest, Request, RequestBody, Version};
pub use response::{
    CONTINUE, Cache, Coding, ContentType, ETag, EndlessBody, Head, PREFLIGHT, Quota, Responder,
    Stamp,
};
pub use target::{BadEscape, decode_segment, normal_path, query_pairs};
pub use upstream::{
    Encoding, Response, ResponseHead, RetryAfter, parse_connected, parse_response,
    read_current_date, read_date, write_connect, write_request,
};
