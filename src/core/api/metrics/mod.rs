//! `/api/v1/metrics` in JSON, and the same figures at `/metrics` for Prometheus: both are made from
//! one table, and so is the schema of the first in `/openapi.json`. To add a metric: [`table`].

mod render;
mod table;

pub use render::schema;
pub use table::Figures;

use super::error::Error;
use super::outcome::Outcome;
use super::view::View;
use crate::http::{Cache, ContentType, Head, Responder};

/// The figures as JSON.
pub fn json(view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    send(
        ContentType::Json,
        &render::json(&Figures::of(view)),
        responder,
    )
}

/// The figures as Prometheus text.
pub fn prometheus(view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let body = render::prometheus(&Figures::of(view));
    send(ContentType::Prometheus, body.as_bytes(), responder)
}

fn send(
    content_type: ContentType,
    body: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let head = Head {
        content_type,
        ..Head::json(None, Cache::NoStore)
    };
    // To make it takes eight times as long as to copy it.
    responder.weigh(8 * body.len());
    responder.send(&head, body);
    Ok(Outcome::Answered)
}
