//! `/api/v1/categories` and `/api/v1/categories/:categoryId/markets`.

use super::error::echo;
use super::packed::{self, Question};
use super::params;
use super::write::{Body, LongList, Rows};
use super::{Error, Outcome, View};
use crate::fingerprint::Part;
use crate::http::{Head, Responder, decode_segment};
use crate::json::{Decimals, Object};
use crate::market::{Category, Quote, SymbolId};

/// Answers `/api/v1/categories`.
pub fn list(
    view: &View<'_>,
    query: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
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
    let question = || Question::Categories;
    let length = body.len();
    let to_pack = packed::send(view, responder, head, question, length, |out| {
        out.give(body)
    });
    Ok(to_pack.into())
}

/// Answers `/api/v1/categories/:categoryId/markets`.
pub fn markets(
    view: &View<'_>,
    id: &[u8],
    query: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let [decimals] = params::read(query, &["decimals"])?;
    let decimals = params::decimals(&decimals)?;
    let text = decode_segment(id).unwrap_or_default();
    let category = view.market.catalog.category(&text);
    let rows = category.map(|category| Rows::Category(category.id.clone()));
    let Some(list) = rows.and_then(|rows| LongList::new(view, rows, decimals)) else {
        let message = format!("Unknown category \"{}\".", echo(id));
        return Err(Error::new(404, "category_not_found", message));
    };
    Ok(list.start(view, responder))
}

/// A category as both answers show it.
pub fn write_category(out: &mut Vec<u8>, category: &Category) {
    let mut object = Object::open(out);
    object.put("id", &*category.id);
    object.put("name", &*category.name);
    object.put("description", category.description.as_deref());
    object.put("marketCount", category.symbols.len());
    object.close();
}

/// One market of a category: nulls where there is no quote yet.
pub fn write_market(
    out: &mut Vec<u8>,
    view: &View<'_>,
    symbol: SymbolId,
    quote: Option<&Quote>,
    decimals: Decimals,
) {
    let name = view.market.catalog.name(symbol);
    let ticker = quote.map(|quote| &quote.ticker);
    let source = quote.map(|quote| view.config.sources[quote.source.index()].id.as_str());
    let mut object = Object::open(out);
    object.put("symbol", name.as_str());
    object.put("base", name.base());
    object.put("quote", name.quote());
    object.put("active", view.market.catalog.active(symbol));
    object.put("source", source);
    object.put("last", decimals.value(ticker.map(|ticker| &ticker.last)));
    let percentage = ticker.and_then(|ticker| ticker.percentage.as_ref());
    object.put("percentage", decimals.value(percentage));
    let volume = ticker.and_then(|ticker| ticker.quote_volume.as_ref());
    object.put("quoteVolume", decimals.value(volume));
    object.put("timestamp", ticker.and_then(|ticker| ticker.timestamp));
    object.put("receivedAt", quote.map(|quote| quote.received_at));
    object.put("stale", quote.map(Quote::stale));
    object.close();
}
