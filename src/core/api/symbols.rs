//! The symbol that a request names, and the quote that is served for a symbol.

use super::params::{ApiRequest, items};
use super::view::View;
use crate::http::{Error, decode_segment, echo};
use crate::market::{Lookup, Quote, SourceId, SymbolId};
use std::borrow::Cow;

/// The symbol that a path names, decoded: in one segment, or in two, since proxies decode `%2F`. Segments are
/// counted before they are decoded.
pub fn path_text<'a>(call: &ApiRequest<'a>) -> Result<Cow<'a, [u8]>, Error> {
    match call.rest.split(|byte| *byte == b'/').count() {
        1 | 2 => decode_segment(call.rest).map_err(|_| invalid(call.rest)),
        _ => Err(Error::not_found(call.request.path)),
    }
}

/// The symbol of a decoded text, in any accepted form.
pub fn look_up(view: &View<'_>, text: &[u8]) -> Result<SymbolId, Error> {
    match view.market.catalog.find(text) {
        Lookup::Known(symbol) => Ok(symbol),
        Lookup::Unknown => {
            let message = format!("Unknown symbol \"{}\".", echo(text));
            Err(Error::new(404, "symbol_not_found", message).about("symbol"))
        }
        Lookup::Malformed => Err(invalid(text)),
    }
}

/// A name in a list of markets, and its symbol. `None` if the catalog does not know it.
pub type NamedMarket = (Box<[u8]>, Option<SymbolId>);

/// The markets that a list names (at most `most` names), each once, in the order of their first appearance.
pub fn read_markets(
    view: &View<'_>,
    list: &[u8],
    most: usize,
) -> Result<Box<[NamedMarket]>, Error> {
    let mut markets: Vec<NamedMarket> = Vec::new();
    for name in items(list, "symbols", most)? {
        let symbol = look_up(view, name).ok();
        let is_same = |(text, other): &NamedMarket| match symbol {
            Some(_) => *other == symbol,
            None => **text == *name,
        };
        if !markets.iter().any(is_same) {
            markets.push((name.into(), symbol));
        }
    }
    Ok(markets.into())
}

fn invalid(text: &[u8]) -> Error {
    let message = format!(
        "Invalid symbol \"{}\": expected BASE/QUOTE, BASE-QUOTE, BASE_QUOTE or BASEQUOTE, letters \
         and digits, at most 20 each.",
        echo(text)
    );
    Error::bad("invalid_symbol", "symbol", message)
}

/// The sources that answer for a symbol: the one that a request names, or all in the order of failover.
pub fn sources_for<'v>(
    view: &View<'v>,
    symbol: SymbolId,
    source: &'v Option<SourceId>,
) -> &'v [SourceId] {
    match source.as_slice() {
        [] => view.market.catalog.sources_of(symbol),
        named => named,
    }
}

/// The quote that is served for a symbol: of this source, or of the first source with a fresh one in the
/// order of failover.
pub fn served_quote<'v>(
    view: &View<'v>,
    symbol: SymbolId,
    source: Option<SourceId>,
) -> Option<&'v Quote> {
    let sources = view.market.catalog.sources_of(symbol);
    match source {
        // A source that no longer lists the market may still have its quote for a while.
        Some(source) if !sources.contains(&source) => None,
        Some(source) => view.market.quotes.of(source, symbol),
        None => view.market.quotes.best(sources, symbol),
    }
}

/// Refuses a source that does not track the symbol, unless its market list has not come yet.
pub fn check_tracked(
    view: &View<'_>,
    symbol: SymbolId,
    source: Option<SourceId>,
) -> Result<(), Error> {
    let catalog = &view.market.catalog;
    let Some(source) = source.filter(|source| !catalog.sources_of(symbol).contains(source)) else {
        return Ok(());
    };
    if catalog.may_track(source, symbol) {
        return Ok(());
    }
    let id = view.id_of(source);
    let name = catalog.name(symbol).as_str();
    let message = format!("Source \"{id}\" does not track \"{name}\".");
    Err(Error::new(404, "symbol_not_found", message).about("source"))
}
