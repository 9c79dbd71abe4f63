//! `/api/v1/categories` and `/api/v1/categories/:categoryId/markets`.

use super::choice::Choice;
use super::compressed_cache::CacheKey;
use super::error::{Error, echo};
use super::list::{Body, ListKind, LongList};
use super::outcome::Outcome;
use super::params::Call;
use super::records::write_category;
use crate::fingerprint::Part;
use crate::http::{Responder, decode_segment};
use crate::json::Object;

/// Responds to `/api/v1/categories`.
pub fn list(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    // The response has no decimals; a wrong value is an error all the same.
    call.only_decimals()?;
    let catalog = &view.market.catalog;
    let mut body = Body::default();
    let mut object = Object::open(body.part(Part::Catalog(catalog.version())));
    let mut array = object.array("categories");
    for category in catalog.categories() {
        write_category(array.item(), category);
    }
    array.close();
    object.close();
    let form = (b'c', view.until_any_poll());
    let key = CacheKey::of("/api/v1/categories", ());
    Ok(body.send(responder, view, form, key))
}

/// Responds to `/api/v1/categories/:categoryId/markets`.
pub fn markets(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    let (decimals, choice) = (call.only_decimals()?, Choice::read(call)?);
    let text = decode_segment(call.rest).unwrap_or_default();
    let category = view.market.catalog.category(&text);
    let rows = category.map(|category| ListKind::Category(category.id.clone()));
    let Some(list) = rows.and_then(|rows| LongList::new(view, rows, choice, decimals)) else {
        let message = format!("Unknown category \"{}\".", echo(call.rest));
        return Err(Error::new(404, "category_not_found", message));
    };
    Ok(list.start(view, responder))
}
