//! Errors as clients see them: status, code, message, parameter.
//!
//! Owns the type, and the errors that are always the same: for requests that cannot be read, and some of the
//! API, such as 404, 405, 429 and 503. An endpoint makes its other errors itself. A message may repeat at
//! most 64 bytes of the request, escaped. It never shows anything internal.
//!
//! Nothing here closes a connection. The caller closes it after a request that could not be read, because it
//! is unknown where the next request begins.

use super::body::BodyError;
use std::borrow::Cow;

/// The most bytes of a request that an error repeats.
const ECHO: usize = 64;

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// HTTP status.
    pub status: u16,
    /// A word for programs to compare. It never changes.
    pub code: &'static str,
    /// The text for people.
    pub message: Cow<'static, str>,
    /// The parameter at fault.
    pub param: Option<&'static str>,
    /// Seconds after which the client may try again.
    pub retry_after: Option<u32>,
}

impl Error {
    /// The address does not serve this method.
    pub const METHOD_NOT_ALLOWED: Error =
        Error::fixed(405, "method_not_allowed", "Only GET, HEAD and OPTIONS are served.");
    /// The request was not complete in time.
    pub const REQUEST_TIMEOUT: Error =
        Error::fixed(408, "request_timeout", "The request was not complete in time.");
    /// The `If-Match` of the request does not match (RFC 9110, 13.1.1).
    pub const PRECONDITION_FAILED: Error =
        Error::fixed(412, "precondition_failed", "No entity tag in If-Match matches.");
    /// The body of the request is larger than `limits.bodyBytes`. Smaller bodies are read and ignored.
    pub const PAYLOAD_TOO_LARGE: Error =
        Error::fixed(413, "payload_too_large", "The request body is too large.");
    /// The first line of the request is too long.
    pub const URI_TOO_LONG: Error =
        Error::fixed(414, "uri_too_long", "The request line is too long.");
    /// The request expects something other than `100-continue`.
    pub const EXPECTATION_FAILED: Error =
        Error::fixed(417, "expectation_failed", "Only \"Expect: 100-continue\" can be met.");
    /// The client address has used up its limit.
    pub const TOO_MANY_REQUESTS: Error =
        Error::fixed(429, "too_many_requests", "Too many requests from this address.");
    /// The head of the request is too large, or has too many fields.
    pub const HEADERS_TOO_LARGE: Error =
        Error::fixed(431, "headers_too_large", "The request head is too large.");
    /// An internal error, without details.
    pub const INTERNAL: Error = Error::fixed(500, "internal", "Internal error.");
    /// The method of the request is unknown.
    pub const UNKNOWN_METHOD: Error =
        Error::fixed(501, "method_not_implemented", "Unknown request method.");
    /// The body of the request has an unknown transfer coding (RFC 9112, 6.1).
    pub const UNKNOWN_CODING: Error = Error::fixed(
        501,
        "transfer_coding_not_implemented",
        "The only Transfer-Encoding understood is \"chunked\".",
    );
    /// The version of the request is neither HTTP/1.0 nor HTTP/1.1.
    pub const BAD_VERSION: Error = Error::fixed(
        505,
        "http_version_not_supported",
        "Only HTTP/1.0 and HTTP/1.1 are supported.",
    );

    /// The request is malformed; the message says how.
    pub const fn bad_request(message: &'static str) -> Error {
        Error::fixed(400, "bad_request", message)
    }

    /// An error whose message is always the same.
    const fn fixed(status: u16, code: &'static str, message: &'static str) -> Error {
        Error { status, code, message: Cow::Borrowed(message), param: None, retry_after: None }
    }

    /// An error without parameter.
    pub fn new(status: u16, code: &'static str, message: impl Into<Cow<'static, str>>) -> Error {
        Error { message: message.into(), ..Error::fixed(status, code, "") }
    }

    /// A 400 with the parameter at fault.
    pub fn bad(
        code: &'static str,
        param: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Error {
        Error::new(400, code, message).about(param)
    }

    /// Names the parameter at fault.
    pub fn about(self, param: &'static str) -> Error {
        Error { param: Some(param), ..self }
    }

    /// Asks the client to try again after this many seconds.
    pub fn retry_after(self, seconds: u32) -> Error {
        Error { retry_after: Some(seconds), ..self }
    }

    /// The address does not exist.
    pub fn not_found(path: &[u8]) -> Error {
        Error::new(404, "not_found", format!("No such address: \"{}\".", echo(path)))
    }

    /// Responses that clients have not read yet, or that are being made, take too much memory.
    pub fn overloaded() -> Error {
        let message = "Too many responses are being made, or wait to be read.";
        Error::new(503, "overloaded", message).retry_after(1)
    }

    /// A 503. The client may try again after this many seconds.
    pub fn unavailable(message: &'static str, retry_after: u32) -> Error {
        Error::new(503, "unavailable", message).retry_after(retry_after)
    }
}

impl From<BodyError> for Error {
    fn from(error: BodyError) -> Error {
        match error {
            BodyError::TooLarge(_) => Error::PAYLOAD_TOO_LARGE,
            BodyError::Malformed(_) => Error::bad_request("Malformed chunked request body."),
        }
    }
}

/// A part of the request as an error repeats it: at most 64 bytes, with `?` for bytes that are not printable
/// ASCII. The JSON writer escapes it.
pub fn echo(asked: &[u8]) -> String {
    let printable = |byte: &u8| match byte {
        0x20..=0x7e => *byte as char,
        _ => '?',
    };
    let mut text: String = asked.iter().take(ECHO).map(printable).collect();
    if asked.len() > ECHO {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_body_is_a_fault_of_its_request() {
        assert_eq!(Error::from(BodyError::TooLarge("x")).status, 413);
        let error = Error::from(BodyError::Malformed("x"));
        assert_eq!(error, Error::bad_request("Malformed chunked request body."));
    }
}
