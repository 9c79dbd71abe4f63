//! `/api/v1/metrics` in JSON, and the same figures at `/metrics` for Prometheus. Both are made from one
//! table, and so is the schema of the first in `/openapi.json`. To add a metric: see [`table`].

mod figures;
mod render;
mod table;

pub use figures::Figures;
pub use render::schema;

use super::error::Error;
use super::outcome::Outcome;
use super::params::Call;
use crate::http::{Cache, ContentType, Head, Responder};

/// The figures as JSON.
pub fn json(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let body = render::json(&Figures::of(call.view));
    send(ContentType::Json, &body, responder)
}

/// The figures as Prometheus text.
pub fn prometheus(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let body = render::prometheus(&Figures::of(call.view));
    send(ContentType::Prometheus, body.as_bytes(), responder)
}

fn send(
    content_type: ContentType,
    body: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let head = Head { content_type, ..Head::json(None, Cache::NoStore) };
    // To make the body takes eight times as long as to copy it.
    responder.weigh(8 * body.len());
    responder.send(&head, body);
    Ok(Outcome::Sent)
}
