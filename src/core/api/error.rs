//! Errors of single symbols, in a response with several symbols.
//!
//! Owns the items of its member `errors`. The error of a whole request is [`Error`], from `http`; it is
//! re-exported for the endpoints.

pub use crate::http::{Error, echo};
use crate::json::json;

/// Appends an item of the member `errors` of a response with several symbols.
pub fn write_item_error(out: &mut Vec<u8>, asked: &[u8], error: &Error) {
    if !out.is_empty() {
        out.push(b',');
    }
    let (symbol, message) = (echo(asked), &*error.message);
    json!(out, { "symbol": symbol.as_str(), "code": error.code, "message": message });
}
