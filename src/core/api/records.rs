//! The JSON that several endpoints share: a quote, a category, a market.

use super::view::View;
use crate::json::{Decimals, Object};
use crate::market::{Category, EcosystemEntry, Quote, SymbolId};
use std::borrow::Cow;

/// The JSON of a quote. With decimals as numbers, it is made once for each change and kept with the quote.
#[inline]
pub fn fragment<'v>(view: &View<'_>, quote: &'v Quote, decimals: Decimals) -> Cow<'v, [u8]> {
    let make = |quote: &Quote| rendered(view, quote, decimals);
    match decimals {
        Decimals::Number => Cow::Borrowed(quote.rendered(|quote| make(quote).into_boxed_slice())),
        Decimals::String => Cow::Owned(make(quote)),
    }
}

/// The JSON of a quote.
fn rendered(view: &View<'_>, quote: &Quote, decimals: Decimals) -> Vec<u8> {
    let mut out = Vec::with_capacity(448);
    let name = view.market.catalog.name(quote.symbol);
    let source = &view.config.sources[quote.source.index()].id;
    let ticker = &quote.ticker;
    let mut object = Object::open(&mut out);
    object.put("symbol", name.as_str());
    object.put("base", name.base());
    object.put("quote", name.quote());
    object.put("source", source.as_str());
    object.put("last", decimals.value(Some(&ticker.last)));
    object.put("bid", decimals.value(ticker.bid.as_ref()));
    object.put("ask", decimals.value(ticker.ask.as_ref()));
    object.put("bidVolume", decimals.value(ticker.bid_volume.as_ref()));
    object.put("askVolume", decimals.value(ticker.ask_volume.as_ref()));
    object.put("open", decimals.value(ticker.open.as_ref()));
    object.put("high", decimals.value(ticker.high.as_ref()));
    object.put("low", decimals.value(ticker.low.as_ref()));
    object.put("change", decimals.value(ticker.change.as_ref()));
    object.put("percentage", decimals.value(ticker.percentage.as_ref()));
    object.put("baseVolume", decimals.value(ticker.base_volume.as_ref()));
    object.put("quoteVolume", decimals.value(ticker.quote_volume.as_ref()));
    object.put("timestamp", ticker.timestamp);
    object.put("receivedAt", quote.received_at);
    object.put("stale", quote.stale());
    object.close();
    out
}

/// Writes a category.
pub fn write_category(out: &mut Vec<u8>, category: &Category) {
    let mut object = Object::open(out);
    object.put("id", &*category.id);
    object.put("name", &*category.name);
    object.put("description", category.description.as_deref());
    object.put("marketCount", category.symbols.len());
    object.close();
}

/// Writes one market of a category, with nulls if there is no quote yet.
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

/// Writes what the list and the record of the ecosystem have in common.
pub fn write_item(
    object: &mut Object<'_>,
    view: &View<'_>,
    entry: &EcosystemEntry<'_>,
    decimals: Decimals,
) {
    let name = view.market.catalog.name(entry.symbol);
    object.put("id", &*entry.id);
    object.put("name", name.as_str());
    object.put("symbol", name.as_str());
    object.put("currency", name.base());
    object.put("pair", name.quote());
    object.put("isTrending", entry.is_trending);
    object.put("isHot", entry.is_hot);
    object.put("icon", entry.icon);
    object.put("status", entry.status);
    let rules = &entry.rules;
    let mut metadata = object.object("metadata");
    let mut precision = metadata.object("precision");
    precision.put("amount", rules.amount_places.map(u64::from));
    precision.put("price", rules.price_places.map(u64::from));
    precision.close();
    let mut limits = metadata.object("limits");
    for (key, bounds) in [("amount", &rules.amount), ("price", &rules.price), ("cost", &rules.cost)]
    {
        let mut object = limits.object(key);
        object.put("min", decimals.value(bounds.min.as_ref()));
        object.put("max", decimals.value(bounds.max.as_ref()));
        object.close();
    }
    limits.close();
    metadata.put("taker", decimals.value(rules.taker.as_ref()));
    metadata.put("maker", decimals.value(rules.maker.as_ref()));
    metadata.close();
}
