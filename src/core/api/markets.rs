//! `/api/v1/categories`, `/api/v1/categories/:categoryId/markets`, `/api/ecosystem/market` and
//! `/api/ecosystem/market/{id}`.

use super::body::Body;
use super::list::{ListKind, ListRequest, no_category};
use super::outcome::{Outcome, Preparation};
use super::records::{fragment, write_item};
use super::request::ApiRequest;
use super::view::View;
use crate::core::compressed_cache::CacheKey;
use crate::fingerprint::Part;
use crate::http::{Error, Head, Responder, decode_segment, echo};
use crate::interval::{Interval, Stored};
use crate::json::{List, Object, Ready, json, members};
use crate::market::{Quote, Series, SeriesKey, SymbolId};
use crate::time::UnixMs;

/// Responds to `/api/v1/categories`.
pub fn categories(
    call: &ApiRequest<'_>,
    view: &View<'_>,
    responder: &mut Responder<'_>,
) -> Outcome {
    // The response has no decimals, but a wrong value is an error here, too.
    call.only_decimals()?;
    let catalog = &view.market.catalog;
    let mut body = Body::default();
    let out = body.part(Part::Catalog(catalog.version()));
    json!(out, { "categories": List(catalog.categories()) });
    let head = Head::json(None, view.until_any_poll());
    Ok(body.send(view, responder, head, b'c', CacheKey::new("/api/v1/categories", ())))
}

/// Reads a request for `/api/v1/categories/:categoryId/markets`.
pub fn category(call: &ApiRequest<'_>, view: &View<'_>) -> Preparation {
    let id = decode_segment(call.rest).unwrap_or_default();
    let list = ListRequest::read(call, ListKind::Category((*id).into()))?;
    if view.market.catalog.category(&id).is_none() {
        return Err(no_category(call.rest));
    }
    Ok(Box::new(list))
}

/// Reads a request for `/api/ecosystem/market`: the active markets.
pub fn ecosystem(call: &ApiRequest<'_>, _: &View<'_>) -> Preparation {
    Ok(Box::new(ListRequest::read(call, ListKind::Ecosystem)?))
}

/// Responds to `/api/ecosystem/market/{id}`: the full record, also of an inactive market.
pub fn market(call: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let decimals = call.only_decimals()?;
    let text = call.path_text()?;
    let catalog = &view.market.catalog;
    let found = catalog.ecosystem_market(&text);
    let Some(entry) = found.and_then(|symbol| catalog.ecosystem_entry(symbol)) else {
        let message = format!("Unknown market \"{}\".", echo(&text));
        return Err(Error::new(404, "market_not_found", message));
    };
    let symbol = entry.symbol;
    let quote = view.served_quote(symbol, None);
    let cache = view.until_any_poll_unless(quote.is_some_and(Quote::stale));
    let quote = quote.map(|quote| fragment(view, quote, decimals));
    let mut body = Vec::with_capacity(2048);
    let mut object = Object::open(&mut body);
    write_item(&mut object, view, &entry, decimals);
    let sources = catalog.sources_of(symbol);
    let iso = |time: Option<UnixMs>| time.map(|time| time.to_string());
    members!(object,
        "categories": List(catalog.categories_of(symbol).map(|category| &*category.id)),
        "sources": List(sources.iter().map(|source| view.id_of(*source))),
        "intervals": List(view.intervals(sources).map(Interval::name)),
        "chart": |out: &mut Vec<u8>| write_chart(out, view, symbol),
        "quote": quote.as_deref().map(Ready),
        "createdAt": iso(catalog.created_at(symbol)).as_deref(),
        "updatedAt": iso(catalog.updated_at(symbol)).as_deref(),
    );
    object.close();
    let key = CacheKey::new("/api/ecosystem/market/", (symbol, decimals));
    let head = Head::json(None, cache);
    Ok(Body::from_text(&body).send(view, responder, head, decimals.variant(), key))
}

/// Writes which candles of each interval are stored, of the first source that has any: in the history file,
/// or in memory if there is no file.
fn write_chart(out: &mut Vec<u8>, view: &View<'_>, symbol: SymbolId) {
    let history = &view.status.history;
    let mut object = Object::open(out);
    for interval in Stored::ALL {
        let mut sources = view.market.catalog.sources_of(symbol).iter();
        let stored = sources.find_map(|&source| {
            let key = SeriesKey { source, symbol, interval };
            let extent = if history.enabled {
                history.stored.get(&key).copied()
            } else {
                view.market.charts.get(key).map(Series::extent)
            };
            extent.filter(|extent| extent.count > 0)
        });
        let stored = stored.unwrap_or_default();
        let open_of = |slot: Option<i64>| slot.map(|slot| interval.open_of(slot));
        json!(object.key(interval.name()), {
            "from": open_of(stored.first),
            "to": open_of(stored.last),
            "count": stored.count,
        });
    }
    object.close();
}
