//! `/api/ecosystem/market` and `/api/ecosystem/market/{id}`.

use super::choice::Choice;
use super::compressed_cache::CacheKey;
use super::error::{Error, echo};
use super::list::{Body, ListKind, LongList};
use super::outcome::Outcome;
use super::params::Call;
use super::records::{fragment, write_item};
use super::symbols::{path_text, served_quote};
use super::view::View;
use crate::fingerprint::Part;
use crate::history::Extent;
use crate::http::{Cache, Responder};
use crate::interval::{Interval, Stored};
use crate::json::{Decimals, Object};
use crate::market::{EcosystemEntry, Quote, Series, SeriesKey, SymbolId};

/// Responds to `/api/ecosystem/market`: the active markets.
pub fn list(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let (decimals, choice) = (call.only_decimals()?, Choice::read(call)?);
    let list = LongList::new(call.view, ListKind::Ecosystem, choice, decimals);
    let list = list.expect("there is always a list of all markets");
    Ok(list.start(call.view, responder))
}

/// Responds to `/api/ecosystem/market/{id}`: the full record, also of an inactive market.
pub fn one(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
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
    let cache = match quote.is_some_and(Quote::stale) {
        true => Cache::NoCache,
        false => view.until_any_poll(),
    };
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
    let listed = Part::Catalog(catalog.version());
    let symbol = entry.symbol;
    let mut body = Body::default();
    let mut object = Object::open(body.part(listed));
    write_item(&mut object, view, entry, decimals);
    let categories = catalog.categories_of(symbol).map(|category| &*category.id);
    object.list("categories", categories);
    let sources = catalog.sources_of(symbol).iter();
    let sources = sources.map(|source| view.config.sources[source.index()].id.as_str());
    object.list("sources", sources);
    let intervals = view.intervals(catalog.sources_of(symbol));
    object.list("intervals", intervals.map(Interval::name));
    let mut chart = Vec::with_capacity(256);
    write_chart(&mut chart, view, symbol);
    body.fixed(b",\"chart\":");
    body.text(&chart);
    body.fixed(b",\"quote\":");
    match quote {
        Some(quote) => {
            let out = body.part(Part::Quote(quote.version));
            out.extend_from_slice(&fragment(view, quote, decimals));
        }
        None => body.part(Part::Nothing).extend_from_slice(b"null"),
    }
    let iso = |time: Option<crate::time::UnixMs>| time.map(|time| time.to_string());
    let mut object = Object::resume(body.part(listed));
    object.put("createdAt", iso(catalog.created_at(symbol)).as_deref());
    object.put("updatedAt", iso(catalog.updated_at(symbol)).as_deref());
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
        let mut extent = object.object(interval.name());
        extent.put("from", open_of(stored.first));
        extent.put("to", open_of(stored.last));
        extent.put("count", stored.count);
        extent.close();
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
