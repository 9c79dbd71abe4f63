//! Errors as clients see them: status, code, message, parameter (API contract, section 4).
//!
//! A message may echo what was asked for, at most [`ECHO`] bytes of it, escaped; it never shows
//! anything of the inside.

use crate::http::{ALLOW, ErrorResponse, RequestError, Responder};

/// Most bytes of a request that an error repeats.
pub const ECHO: usize = 64;

/// An error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// HTTP status.
    pub status: u16,
    /// What programs compare.
    pub code: &'static str,
    /// What people read.
    pub message: String,
    /// The parameter at fault.
    pub param: Option<&'static str>,
    /// Seconds after which another try makes sense.
    pub retry_after: Option<u32>,
}

impl Error {
    /// An error without parameter.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Error {
        Error {
            status,
            code,
            message: message.into(),
            param: None,
            retry_after: None,
        }
    }

    /// A 400 that names the parameter at fault.
    pub fn bad(code: &'static str, param: &'static str, message: impl Into<String>) -> Error {
        Error {
            param: Some(param),
            ..Error::new(400, code, message)
        }
    }

    /// No such address.
    pub fn not_found(path: &[u8]) -> Error {
        Error::new(
            404,
            "not_found",
            format!("No such address: \"{}\".", echo(path)),
        )
    }

    /// The address exists, but not for this method.
    pub fn method_not_allowed() -> Error {
        let message = "Only GET, HEAD and OPTIONS are served.";
        Error::new(405, "method_not_allowed", message)
    }

    /// Not now; try again after so many seconds.
    pub fn unavailable(message: &str, retry_after: u32) -> Error {
        Error {
            retry_after: Some(retry_after),
            ..Error::new(503, "unavailable", message)
        }
    }

    /// The address has had all it may; again after so many seconds.
    pub fn too_many_requests(retry_after: u32) -> Error {
        let message = "Too many requests from this address.";
        Error {
            retry_after: Some(retry_after),
            ..Error::new(429, "too_many_requests", message)
        }
    }

    /// A fault of ours: nothing of the inside is shown.
    pub fn internal() -> Error {
        Error::new(500, "internal", "Something went wrong here.")
    }

    /// The request did not come to its end in time.
    pub fn request_timeout() -> Error {
        let message = "The request did not come to its end in time.";
        Error::new(408, "request_timeout", message)
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Error {
        Error::new(error.status(), error.code(), error.message())
    }
}

/// Sends an error.
pub fn send_error(error: &Error, responder: &mut Responder<'_>) {
    let mut fields = Vec::new();
    if let Some(seconds) = error.retry_after {
        fields.extend_from_slice(format!("Retry-After: {seconds}\r\n").as_bytes());
    }
    if error.status == 405 {
        fields.extend_from_slice(ALLOW);
    }
    responder.error(&ErrorResponse {
        status: error.status,
        code: error.code,
        message: error.message.as_bytes(),
        param: error.param,
        fields: &fields,
    });
}

/// What was asked for, as an error repeats it: at most [`ECHO`] bytes, what is not printable
/// ASCII as `?`. The JSON writer escapes the rest.
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
