//! Errors as clients see them: status, code, message, parameter.
//!
//! A message may repeat a part of the request, at most [`ECHO`] bytes of it, escaped. It never shows
//! anything internal.

use crate::http::RequestError;
use crate::json::json;

/// The most bytes of a request that an error repeats.
const ECHO: usize = 64;

/// An error response.
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
    /// Seconds after which the client may try again.
    pub retry_after: Option<u32>,
}

impl Error {
    /// An error without parameter.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Error {
        Error { status, code, message: message.into(), param: None, retry_after: None }
    }

    /// A 400 with the parameter at fault.
    pub fn bad(code: &'static str, param: &'static str, message: impl Into<String>) -> Error {
        Error::new(400, code, message).about(param)
    }

    /// Names the parameter at fault.
    pub fn about(mut self, param: &'static str) -> Error {
        self.param = Some(param);
        self
    }

    /// Asks the client to try again after so many seconds.
    pub fn retry_after(mut self, seconds: u32) -> Error {
        self.retry_after = Some(seconds);
        self
    }

    /// The address does not exist.
    pub fn not_found(path: &[u8]) -> Error {
        let message = format!("No such address: \"{}\".", echo(path));
        Error::new(404, "not_found", message)
    }

    /// The address exists, but not for this method.
    pub fn method_not_allowed() -> Error {
        let message = "Only GET, HEAD and OPTIONS are served.";
        Error::new(405, "method_not_allowed", message)
    }

    /// Not now; try again after so many seconds.
    pub fn unavailable(message: &str, retry_after: u32) -> Error {
        Error::new(503, "unavailable", message).retry_after(retry_after)
    }

    /// The client address has used up its limit; try again after so many seconds.
    pub fn too_many_requests(retry_after: u32) -> Error {
        let message = "Too many requests from this address.";
        Error::new(429, "too_many_requests", message).retry_after(retry_after)
    }

    /// A fault of ours, without details.
    pub fn internal() -> Error {
        Error::new(500, "internal", "Something went wrong here.")
    }

    /// The request was not complete in time.
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

/// Appends an item of the member `errors` of a response with several symbols.
pub fn write_item_error(out: &mut Vec<u8>, asked: &[u8], error: &Error) {
    if !out.is_empty() {
        out.push(b',');
    }
    let (symbol, message) = (echo(asked), error.message.as_str());
    json!(out, { "symbol": symbol.as_str(), "code": error.code, "message": message });
}

/// A part of the request as an error repeats it: at most [`ECHO`] bytes, with `?` for what is not printable
/// ASCII. The JSON writer escapes the rest.
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
