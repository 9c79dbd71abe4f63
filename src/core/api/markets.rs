//! `/api/v1/categories`, `/api/v1/categories/:categoryId/markets`, `/api/ecosystem/market` and
//! `/api/ecosystem/market/{id}`.

use super::body::Body;
use super::choice::{Choice, ListKind};
use super::compressed_cache::CacheKey;
use super::error::{Error, echo};
use super::list::LongList;
use super::outcome::Outcome;
use super::params::ApiRequest;
use super::records::{fragment, write_item};
use super::symbols::{path_text, served_quote};
use super::view::View;
use crate::fingerprint::Part;
use crate::history::Extent;
use crate::http::{Responder, decode_segment};
use crate::interval::{Interval, Stored};
use crate::json::{Decimals, List, Object, Ready, json, members};
use crate::market::{EcosystemEntry, Quote, Series, SeriesKey, SymbolId};
use crate::time::UnixMs;

/// Responds to `/api/v1/categories`.
pub fn categories(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    // The response has no decimals; a wrong value is an error all the same.
    call.only_decimals()?;
    let catalog = &view.market.catalog;
    let mut body = Body::default();
    let out = body.part(Part::Catalog(catalog.version()));
    json!(out, { "categories": List(catalog.categories()) });
    let form = (b'c', view.until_any_poll());
    let key = CacheKey::of("/api/v1/categories", ());
    Ok(body.send(responder, view, form, key))
}

/// Responds to `/api/v1/categories/:categoryId/markets`.
pub fn category(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
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

/// Responds to `/api/ecosystem/market`: the active markets.
pub fn ecosystem(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let (decimals, choice) = (call.only_decimals()?, Choice::read(call)?);
    let list = LongList::new(call.view, ListKind::Ecosystem, choice, decimals);
    let list = list.expect("there is always a list of all markets");
    Ok(list.start(call.view, responder))
}

/// Responds to `/api/ecosystem/market/{id}`: the full record, also of an inactive market.
pub fn market(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    let decimals = call.only_decimals()?;
    let text = path_text(call)?;
    let catalog = &view.market.catalog;
    let found = catalog.ecosystem_market(&text);
    let Some(entry) = found.and_then(|symbol| catalog.ecosystem_entry(symbol)) else {
        let message = format!("Unknown market \"{}\".", echo(&text));
        return Err(Error::new(404, "market_not_found", message));
    };
    let quote = served_quote(view, entry.symbol, None);
    let cache = view.until_any_poll_unless(quote.is_some_and(Quote::stale));
    let form = (decimals.variant(), cache);
    let body = record(view, &entry, quote, decimals);
    let key = CacheKey::of("/api/ecosystem/market/", (entry.symbol, decimals));
    Ok(body.send(responder, view, form, key))
}

fn record(
    view: &View<'_>,
    entry: &EcosystemEntry<'_>,
    quote: Option<&Quote>,
    decimals: Decimals,
) -> Body {
    let catalog = &view.market.catalog;
    let symbol = entry.symbol;
    let mut chart = Vec::with_capacity(256);
    write_chart(&mut chart, view, symbol);
    let shown = quote.map_or(Part::Nothing, |quote| Part::Quote(quote.version));
    let quote = quote.map(|quote| fragment(view, quote, decimals));
    let iso = |time: Option<UnixMs>| time.map(|time| time.to_string());
    let mut body = Body::default();
    body.part(Part::Catalog(catalog.version()));
    body.part(Part::Text(&chart));
    let mut object = Object::open(body.part(shown));
    write_item(&mut object, view, entry, decimals);
    let sources = catalog.sources_of(symbol);
    members!(object,
        "categories": List(catalog.categories_of(symbol).map(|category| &*category.id)),
        "sources": List(sources.iter().map(|source| view.id_of(*source))),
        "intervals": List(view.intervals(sources).map(Interval::name)),
        "chart": Ready(&chart),
        "quote": quote.as_deref().map(Ready),
        "createdAt": iso(catalog.created_at(symbol)).as_deref(),
        "updatedAt": iso(catalog.updated_at(symbol)).as_deref(),
    );
    object.close();
    body
}

/// Writes which candles of each interval are stored, of the first source with any: in the history file, or
/// in memory if there is none.
fn write_chart(out: &mut Vec<u8>, view: &View<'_>, symbol: SymbolId) {
    let mut object = Object::open(out);
    for interval in Stored::ALL {
        let stored = stored(view, symbol, interval).next().unwrap_or_default();
        let open_of = |slot: Option<i64>| slot.map(|slot| interval.open_of(slot));
        json!(object.key(interval.name()), {
            "from": open_of(stored.first),
            "to": open_of(stored.last),
            "count": stored.count,
        });
    }
    object.close();
}

/// Which candles of an interval are stored, by source.
fn stored<'v>(
    view: &'v View<'_>,
    symbol: SymbolId,
    interval: Stored,
) -> impl Iterator<Item = Extent> + 'v {
    let history = &view.status.history;
    let sources = view.market.catalog.sources_of(symbol).iter();
    sources.filter_map(move |&source| {
        let key = SeriesKey { source, symbol, interval };
        match history.enabled {
            true => history.stored.of(key),
            false => view.market.charts.get(key).map(Series::extent),
        }
    })
}
