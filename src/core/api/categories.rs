//! `/api/v1/categories` and `/api/v1/categories/:categoryId/markets`.

use super::error::{Error, echo};
use super::list::{Body, LongList};
use super::outcome::Outcome;
use super::packed::{self, Question, Rows};
use super::params::{self, Call};
use super::records::write_category;
use super::view::View;
use crate::fingerprint::Part;
use crate::http::{Head, Responder, decode_segment};
use crate::json::Object;

/// Answers `/api/v1/categories`.
pub fn list(
    view: &View<'_>,
    call: &Call<'_>,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let query = call.query;
    let [decimals] = params::read(query, &["decimals"])?;
    // There is no decimal in this answer; a wrong value is a mistake all the same.
    params::decimals(&decimals)?;
    let catalog = &view.market.catalog;
    let mut body = Body::default();
    let out = body.part(Part::Catalog(catalog.version()));
    let mut object = Object::open(out);
    let mut array = object.array("categories");
    for category in catalog.categories() {
        write_category(array.item(), category);
    }
    array.close();
    object.close();
    let (body, etag) = body.finish(view, b'c');
    let head = Head::json(Some(etag), view.until_any_poll());
    let question = || Question::Address("/api/v1/categories", Box::default());
    let length = body.len();
    let to_pack = packed::send(view, responder, head, question, length, |out| {
        out.give(body)
    });
    Ok(to_pack.into())
}

/// Answers `/api/v1/categories/:categoryId/markets`.
pub fn markets(
    view: &View<'_>,
    call: &Call<'_>,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let query = call.query;
    let [decimals] = params::read(query, &["decimals"])?;
    let decimals = params::decimals(&decimals)?;
    let text = decode_segment(call.rest).unwrap_or_default();
    let category = view.market.catalog.category(&text);
    let rows = category.map(|category| Rows::Category(category.id.clone()));
    let Some(list) = rows.and_then(|rows| LongList::new(view, rows, decimals)) else {
        let message = format!("Unknown category \"{}\".", echo(call.rest));
        return Err(Error::new(404, "category_not_found", message));
    };
    Ok(list.start(view, responder))
}
