//! `/api/ecosystem/market` and `/api/ecosystem/market/{id}`.

use super::error::echo;
use super::packed::{self, Question};
use super::params::{self, Decimals};
use super::quotes::{self, path_text};
use super::write::{Body, LongList, Object, Rows, write_integer, write_texts};
use super::{Error, Outcome, View};
use crate::fingerprint::Part;
use crate::http::{Cache, Head, Responder};
use crate::interval::{Interval, Stored};
use crate::market::{EcosystemEntry, Quote, Series, SeriesKey, SymbolId};
use crate::record::Bounds;

/// Answers `/api/ecosystem/market`: the active markets.
pub fn list(
    view: &View<'_>,
    query: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let [decimals] = params::read(query, &["decimals"])?;
    let decimals = params::decimals(&decimals)?;
    let list = LongList::new(view, Rows::Ecosystem, decimals);
    let list = list.expect("there is always a list of all markets");
    Ok(list.start(view, responder))
}

/// Answers `/api/ecosystem/market/{id}`: the full record, of an inactive market too.
pub fn one(
    view: &View<'_>,
    id: &[u8],
    query: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let [decimals] = params::read(query, &["decimals"])?;
    let decimals = params::decimals(&decimals)?;
    let text = path_text(id)?;
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
    let mut object = Object::open(body.part(listed), decimals);
    write_item(&mut object, view, entry);
    let categories = catalog.categories_of(symbol).map(|category| &*category.id);
    write_texts(object.key("categories"), categories);
    let sources = catalog.sources_of(symbol).iter();
    let sources = sources.map(|source| view.config.sources[source.index()].id.as_str());
    write_texts(object.key("sources"), sources);
    let intervals = Interval::ALL.iter().map(|interval| interval.name());
    write_texts(object.key("intervals"), intervals);
    let mut chart = Vec::with_capacity(256);
    write_chart(&mut chart, view, symbol);
    body.fixed(b",\"chart\":");
    body.text(&chart);
    body.fixed(b",\"quote\":");
    match quote {
        Some(quote) => {
            let made = quotes::rendered(view, quote, decimals);
            let out = body.part(Part::Quote(quote.version));
            out.extend_from_slice(&made);
        }
        None => body.part(Part::Nothing).extend_from_slice(b"null"),
    }
    let iso = |time: Option<crate::time::UnixMs>| time.map(|time| time.to_string());
    let mut object = Object::resume(body.part(listed), decimals);
    object.maybe_text("createdAt", iso(catalog.created_at(symbol)).as_deref());
    object.maybe_text("updatedAt", iso(catalog.updated_at(symbol)).as_deref());
    object.close();
    body
}

/// The fields that the list and the record share.
pub fn write_item(object: &mut Object<'_>, view: &View<'_>, entry: &EcosystemEntry<'_>) {
    let name = view.market.catalog.name(entry.symbol);
    object.text("id", &entry.id);
    object.text("name", name.as_str());
    object.text("symbol", name.as_str());
    object.text("currency", name.base());
    object.text("pair", name.quote());
    object.boolean("isTrending", Some(entry.is_trending));
    object.boolean("isHot", Some(entry.is_hot));
    object.maybe_text("icon", entry.icon);
    object.boolean("status", Some(entry.status));
    let rules = &entry.rules;
    let mut metadata = object.object("metadata");
    let mut precision = metadata.object("precision");
    precision.integer("amount", rules.amount_places.map(i64::from));
    precision.integer("price", rules.price_places.map(i64::from));
    precision.close();
    let mut limits = metadata.object("limits");
    for (key, bounds) in [
        ("amount", &rules.amount),
        ("price", &rules.price),
        ("cost", &rules.cost),
    ] {
        write_bounds(&mut limits, key, bounds);
    }
    limits.close();
    metadata.decimal("taker", rules.taker.as_ref());
    metadata.decimal("maker", rules.maker.as_ref());
    metadata.close();
}

fn write_bounds(limits: &mut Object<'_>, key: &str, bounds: &Bounds) {
    let mut object = limits.object(key);
    object.decimal("min", bounds.min.as_ref());
    object.decimal("max", bounds.max.as_ref());
    object.close();
}

/// The extent of each stored interval, of the first source that follows it.
fn write_chart(out: &mut Vec<u8>, view: &View<'_>, symbol: SymbolId) {
    let mut object = Object::open(out, Decimals::Number);
    for interval in Stored::ALL {
        let series = view
            .market
            .catalog
            .sources_of(symbol)
            .iter()
            .find_map(|&source| {
                view.market.charts.get(SeriesKey {
                    source,
                    symbol,
                    interval,
                })
            });
        let mut extent = object.object(interval.name());
        extent.time("from", series.and_then(Series::first_closed));
        extent.time("to", series.and_then(Series::last_closed));
        let count = series.map_or(0, |series| series.count());
        write_integer(extent.key("count"), count as i64);
        extent.close();
    }
    object.close();
}
