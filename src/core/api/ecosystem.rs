//! `/api/ecosystem/market` and `/api/ecosystem/market/{id}`.

use super::error::{Error, echo};
use super::list::{Body, LongList};
use super::outcome::Outcome;
use super::packed::{self, Question, Rows};
use super::params::{self, Call};
use super::records::{rendered, write_item};
use super::symbols::path_text;
use super::view::View;
use crate::fingerprint::Part;
use crate::history::Extent;
use crate::http::{Cache, Head, Responder};
use crate::interval::{Interval, Stored};
use crate::json::{Decimals, Object};
use crate::market::{EcosystemEntry, Quote, Series, SeriesKey, SymbolId};

/// Answers `/api/ecosystem/market`: the active markets.
pub fn list(
    view: &View<'_>,
    call: &Call<'_>,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let query = call.query;
    let [decimals] = params::read(query, &["decimals"])?;
    let decimals = params::decimals(&decimals)?;
    let list = LongList::new(view, Rows::Ecosystem, decimals);
    let list = list.expect("there is always a list of all markets");
    Ok(list.start(view, responder))
}

/// Answers `/api/ecosystem/market/{id}`: the full record, of an inactive market too.
pub fn one(
    view: &View<'_>,
    call: &Call<'_>,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let query = call.query;
    let [decimals] = params::read(query, &["decimals"])?;
    let decimals = params::decimals(&decimals)?;
    let text = path_text(call)?;
    let catalog = &view.market.catalog;
    let found = catalog.ecosystem_market(&text);
    let entry = found.and_then(|symbol| catalog.ecosystem_entry(symbol));
    let Some(entry) = entry else {
        let message = format!("Unknown market \"{}\".", echo(&text));
        return Err(Error::new(404, "market_not_found", message));
    };
    let quote = view
        .market
        .quotes
        .best(catalog.sources_of(entry.symbol), entry.symbol);
    let body = record(view, &entry, quote, decimals);
    let (body, etag) = body.finish(view, decimals.variant());
    let cache = match quote.is_some_and(Quote::stale) {
        true => Cache::NoCache,
        false => view.until_any_poll(),
    };
    let head = Head::json(Some(etag), cache);
    let question = || Question::Market(entry.symbol, decimals);
    let length = body.len();
    let to_pack = packed::send(view, responder, head, question, length, |out| {
        out.give(body)
    });
    Ok(to_pack.into())
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
    let intervals = Interval::ALL.iter().map(|interval| interval.name());
    object.list("intervals", intervals);
    let mut chart = Vec::with_capacity(256);
    write_chart(&mut chart, view, symbol);
    body.fixed(b",\"chart\":");
    body.text(&chart);
    body.fixed(b",\"quote\":");
    match quote {
        Some(quote) => {
            let made = rendered(view, quote, decimals);
            let out = body.part(Part::Quote(quote.version));
            out.extend_from_slice(&made);
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

/// The extent of what is stored of each interval, of the first source that has any: in the history
/// file, or in memory where there is none.
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

/// What is stored of an interval, by source.
fn stored<'v>(
    view: &'v View<'_>,
    symbol: SymbolId,
    interval: Stored,
) -> impl Iterator<Item = Extent> + 'v {
    let history = &view.status.history;
    let sources = view.market.catalog.sources_of(symbol).iter();
    sources.filter_map(move |&source| {
        let key = SeriesKey {
            source,
            symbol,
            interval,
        };
        match history.enabled {
            true => history.stored.of(key),
            false => view.market.charts.get(key).map(Series::extent),
        }
    })
}
