//! Bodies and errors as the adapter of a charting library reads them.

use crate::core::api::compressed_cache::CacheKey;
use crate::core::api::error::Error;
use crate::core::api::list::Body;
use crate::core::api::outcome::Outcome;
use crate::core::api::view::View;
use crate::http::{Cache, Head, Responder};
use crate::json::Object;

/// Sends the body of this address, which is asked for again each time.
pub fn send_text(
    text: &[u8],
    address: &'static str,
    view: &View<'_>,
    responder: &mut Responder<'_>,
) -> Outcome {
    let mut body = Body::default();
    body.text(text);
    let form = (b'u', Cache::NoCache);
    body.send(responder, view, form, CacheKey::of(address, ()))
}

/// Sends an error as the protocol wants it.
pub fn or_fault(
    result: Result<Outcome, Error>,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    result.or_else(|error| Ok(send_fault(&error.message, responder)))
}

/// Sends an error: with status 200, since the adapter takes any other for a failure of the network.
pub fn send_fault(message: &str, responder: &mut Responder<'_>) -> Outcome {
    let mut body = Vec::with_capacity(128);
    let mut object = Object::open(&mut body);
    object.put("s", "error");
    object.put("errmsg", message);
    object.close();
    responder.send(&Head::json(None, Cache::NoStore), &body);
    Outcome::Sent
}
