//! The JSON that several endpoints share: a quote, a category, a market.

use super::view::View;
use crate::http::{Error, echo};
use crate::json::{Decimals, Object, Value, json, members};
use crate::market::{Category, EcosystemEntry, Quote, SourceId, SymbolId};
use crate::record::Bounds;
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
    let ticker = &quote.ticker;
    json!(&mut out, {
        "symbol": name.as_str(),
        "base": name.base(),
        "quote": name.quote(),
        "source": view.id_of(quote.source),
        "last": decimals.value(&ticker.last),
        "bid": decimals.value(&ticker.bid),
        "ask": decimals.value(&ticker.ask),
        "bidVolume": decimals.value(&ticker.bid_volume),
        "askVolume": decimals.value(&ticker.ask_volume),
        "open": decimals.value(&ticker.open),
        "high": decimals.value(&ticker.high),
        "low": decimals.value(&ticker.low),
        "change": decimals.value(&ticker.change),
        "percentage": decimals.value(&ticker.percentage),
        "baseVolume": decimals.value(&ticker.base_volume),
        "quoteVolume": decimals.value(&ticker.quote_volume),
        "timestamp": ticker.timestamp,
        "receivedAt": quote.received_at,
        "stale": quote.stale(),
    });
    out
}

/// A category.
impl Value for &Category {
    fn write(self, out: &mut Vec<u8>) {
        json!(out, {
            "id": &*self.id,
            "name": &*self.name,
            "description": self.description.as_deref(),
            "marketCount": self.symbols.len(),
        });
    }
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
    json!(out, {
        "symbol": name.as_str(),
        "base": name.base(),
        "quote": name.quote(),
        "active": view.market.catalog.active(symbol),
        "source": quote.map(|quote| view.id_of(quote.source)),
        "last": decimals.value(ticker.map(|ticker| &ticker.last)),
        "percentage": decimals.value(ticker.and_then(|ticker| ticker.percentage.as_ref())),
        "quoteVolume": decimals.value(ticker.and_then(|ticker| ticker.quote_volume.as_ref())),
        "timestamp": ticker.and_then(|ticker| ticker.timestamp),
        "receivedAt": quote.map(|quote| quote.received_at),
        "stale": quote.map(Quote::stale),
    });
}

/// Writes what the list and the record of the ecosystem have in common.
pub fn write_item(
    object: &mut Object<'_>,
    view: &View<'_>,
    entry: &EcosystemEntry<'_>,
    decimals: Decimals,
) {
    let name = view.market.catalog.name(entry.symbol);
    let rules = &entry.rules;
    members!(object,
        "id": &*entry.id,
        "name": name.as_str(),
        "symbol": name.as_str(),
        "currency": name.base(),
        "pair": name.quote(),
        "isTrending": entry.is_trending,
        "isHot": entry.is_hot,
        "icon": entry.icon,
        "status": entry.status,
        "metadata": {
            "precision": {
                "amount": rules.amount_places.map(u64::from),
                "price": rules.price_places.map(u64::from),
            },
            "limits": {
                "amount": bounds(decimals, &rules.amount),
                "price": bounds(decimals, &rules.price),
                "cost": bounds(decimals, &rules.cost),
            },
            "taker": decimals.value(&rules.taker),
            "maker": decimals.value(&rules.maker),
        },
    );
}

fn bounds(decimals: Decimals, bounds: &Bounds) -> impl Value {
    move |out: &mut Vec<u8>| {
        json!(out, { "min": decimals.value(&bounds.min), "max": decimals.value(&bounds.max) });
    }
}

/// The type of all markets, for charting libraries.
pub const TYPE: &str = "crypto";

/// The id of the source that a client has named, or else of the first one with the market.
pub fn exchange<'v>(view: &View<'v>, symbol: SymbolId, named: Option<SourceId>) -> &'v str {
    let source = view.sources_for(symbol, &named).first();
    source.map_or("", |source| view.id_of(*source))
}

/// Writes what a result of a search for charting libraries and a market have in common.
pub fn write_names(
    object: &mut Object<'_>,
    view: &View<'_>,
    symbol: SymbolId,
    named: Option<SourceId>,
) {
    let (name, id) = (view.market.catalog.name(symbol), exchange(view, symbol, named));
    let full_name = format!("{id}:{}", name.as_str());
    let ticker = if named.is_some() { full_name.as_str() } else { name.as_str() };
    members!(object,
        "symbol": name.as_str(),
        "ticker": ticker,
        "full_name": full_name.as_str(),
        "description": format!("{} / {}", name.base(), name.quote()).as_str(),
        "exchange": id,
        "type": TYPE,
    );
}

/// Appends an item of the member `errors` of a response with several symbols.
pub fn write_item_error(out: &mut Vec<u8>, asked: &[u8], error: &Error) {
    if !out.is_empty() {
        out.push(b',');
    }
    let (symbol, message) = (echo(asked), &*error.message);
    json!(out, { "symbol": symbol.as_str(), "code": error.code, "message": message });
}
