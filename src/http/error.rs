//! Errors of requests, and the JSON body of every error response.
//!
//! Owns the errors of the HTTP layer, each with its status, code and message. It does not decide
//! whether the connection closes.

use super::body::BodyError;
use crate::json::Object;

/// Why the HTTP layer refuses a request. Each error except [`RequestError::PreconditionFailed`] closes
/// the connection: where the next request begins is not certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// It is malformed; the text says how. 400.
    BadRequest(&'static str),
    /// Its `If-Match` does not match (RFC 9110, 13.1.1). 412.
    PreconditionFailed,
    /// Its body is larger than what is read and ignored. 413.
    PayloadTooLarge,
    /// Its first line is too long. 414.
    UriTooLong,
    /// It expects something other than `100-continue`. 417.
    ExpectationFailed,
    /// Its head is too large, or has too many fields. 431.
    HeadersTooLarge,
    /// Its method is unknown. 501.
    UnknownMethod,
    /// Its body has an unknown transfer coding (RFC 9112, 6.1). 501.
    UnknownCoding,
    /// Its version is neither HTTP/1.0 nor HTTP/1.1. 505.
    BadVersion,
}

impl RequestError {
    /// The status of the response.
    pub fn status(&self) -> u16 {
        match self {
            RequestError::BadRequest(_) => 400,
            RequestError::PreconditionFailed => 412,
            RequestError::PayloadTooLarge => 413,
            RequestError::UriTooLong => 414,
            RequestError::ExpectationFailed => 417,
            RequestError::HeadersTooLarge => 431,
            RequestError::UnknownMethod => 501,
            RequestError::UnknownCoding => 501,
            RequestError::BadVersion => 505,
        }
    }

    /// The `code` in the body, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            RequestError::BadRequest(_) => "bad_request",
            RequestError::PreconditionFailed => "precondition_failed",
            RequestError::PayloadTooLarge => "payload_too_large",
            RequestError::UriTooLong => "uri_too_long",
            RequestError::ExpectationFailed => "expectation_failed",
            RequestError::HeadersTooLarge => "headers_too_large",
            RequestError::UnknownMethod => "method_not_implemented",
            RequestError::UnknownCoding => "transfer_coding_not_implemented",
            RequestError::BadVersion => "http_version_not_supported",
        }
    }

    /// The `message` in the body, for people.
    pub fn message(&self) -> &'static str {
        match self {
            RequestError::BadRequest(message) => message,
            RequestError::PreconditionFailed => "Nothing that If-Match names is current.",
            RequestError::PayloadTooLarge => "The request body is too large.",
            RequestError::UriTooLong => "The request line is too long.",
            RequestError::ExpectationFailed => "Only \"Expect: 100-continue\" can be met.",
            RequestError::HeadersTooLarge => "The request head is too large.",
            RequestError::UnknownMethod => "Unknown request method.",
            RequestError::UnknownCoding => "The only Transfer-Encoding understood is \"chunked\".",
            RequestError::BadVersion => "Only HTTP/1.0 and HTTP/1.1 are spoken here.",
        }
    }
}

impl From<BodyError> for RequestError {
    fn from(error: BodyError) -> RequestError {
        match error {
            BodyError::TooLarge | BodyError::ExtensionsTooLarge | BodyError::TrailersTooLarge => {
                RequestError::PayloadTooLarge
            }
            BodyError::BadChunkSize | BodyError::BadChunkEnd | BodyError::BadTrailer => {
                RequestError::BadRequest("Malformed chunked request body.")
            }
            BodyError::CutShort => RequestError::BadRequest("The request body was cut short."),
        }
    }
}

/// The content of an error response.
#[derive(Clone, Copy, Debug)]
pub struct ErrorResponse<'a> {
    /// 400 to 599.
    pub status: u16,
    /// The error for programs: a word that never changes.
    pub code: &'a str,
    /// The error for people. May repeat parts of the request, with any bytes.
    pub message: &'a [u8],
    /// The invalid parameter.
    pub param: Option<&'a str>,
    /// More fields: `Name: value` lines, each with its CR LF.
    pub fields: &'a [u8],
}

impl From<&RequestError> for ErrorResponse<'static> {
    fn from(error: &RequestError) -> ErrorResponse<'static> {
        ErrorResponse {
            status: error.status(),
            code: error.code(),
            message: error.message().as_bytes(),
            param: None,
            fields: b"",
        }
    }
}

/// Appends `{"status":404,"code":"...","message":"...","param":null}`.
pub fn write_error_body(out: &mut Vec<u8>, error: &ErrorResponse) {
    let mut object = Object::open(out);
    object.put("status", error.status);
    object.put("code", error.code);
    object.put("message", error.message);
    object.put("param", error.param);
    object.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_has_four_members_in_order() {
        let mut error = ErrorResponse {
            status: 404,
            code: "symbol_not_found",
            message: b"Unknown symbol \"FOO\".",
            param: Some("symbol"),
            fields: b"",
        };
        let check = |error: &ErrorResponse, expected: &str| {
            let mut out = Vec::new();
            write_error_body(&mut out, error);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        };
        check(
            &error,
            r#"{"status":404,"code":"symbol_not_found","message":"Unknown symbol \"FOO\".","param":"symbol"}"#,
        );
        error.param = None;
        check(
            &error,
            r#"{"status":404,"code":"symbol_not_found","message":"Unknown symbol \"FOO\".","param":null}"#,
        );
    }

    #[test]
    fn every_fault_of_a_body_is_a_fault_of_its_request() {
        let check = |error: BodyError, status| {
            assert_eq!(RequestError::from(error).status(), status);
        };
        check(BodyError::TooLarge, 413);
        check(BodyError::ExtensionsTooLarge, 413);
        check(BodyError::TrailersTooLarge, 413);
        check(BodyError::BadChunkSize, 400);
        check(BodyError::BadChunkEnd, 400);
        check(BodyError::BadTrailer, 400);
        check(BodyError::CutShort, 400);
    }
}
