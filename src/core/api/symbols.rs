//! The symbol that a request names, and the quote that is served for a symbol.

use super::error::{Error, echo};
use super::params::ApiRequest;
use super::view::View;
use crate::http::decode_segment;
use crate::market::{Lookup, Quote, SourceId, SymbolId};
use std::borrow::Cow;

/// The symbol that a path names, decoded: in one segment, or in two, since proxies decode `%2F`. The path is
/// split first and then decoded, each segment once.
pub fn path_text<'a>(call: &ApiRequest<'a>) -> Result<Cow<'a, [u8]>, Error> {
    let path = call.rest;
    let plain = |byte: &u8| *byte != b'%' && *byte != b'/';
    if path.iter().all(plain) {
        return Ok(Cow::Borrowed(path));
    }
    let decode = |raw| decode_segment(raw).map_err(|_| invalid(path));
    let mut segments = path.splitn(3, |byte| *byte == b'/');
    let first = decode(segments.next().unwrap_or_default())?;
    let Some(second) = segments.next() else {
        return Ok(first);
    };
    if segments.next().is_some() {
        return Err(Error::not_found(call.request.path));
    }
    let second = decode(second)?;
    if first.contains(&b'/') || second.contains(&b'/') {
        return Err(invalid(path));
    }
    Ok(Cow::Owned([&first, &b"/"[..], &second].concat()))
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

/// The items of a list of symbols: at least one, and at most `most`.
pub fn symbol_list(list: &[u8], most: usize) -> Result<Vec<&[u8]>, Error> {
    let bound = format!("symbols; at most {most} are answered");
    items(list, "symbols", "no symbol", (most, &bound))
}

/// The items of a list: at least one, and at most `most`. `nothing`, `bound`: what the errors say.
pub fn items<'a>(
    list: &'a [u8],
    param: &'static str,
    nothing: &str,
    (most, bound): (usize, &str),
) -> Result<Vec<&'a [u8]>, Error> {
    let all = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let items: Vec<&[u8]> = all.filter(|item| !item.is_empty()).collect();
    let count = items.len();
    if count == 0 {
        let message = format!("\"{param}\" names {nothing}.");
        return Err(Error::bad("empty_parameter", param, message));
    }
    if count > most {
        let message = format!("\"{param}\" names {count} {bound}.");
        return Err(Error::bad("too_many_symbols", param, message));
    }
    Ok(items)
}

/// The markets that a list names, each once, in the order of their first appearance.
#[derive(Clone, Debug)]
pub struct NamedMarkets {
    /// All names, joined.
    text: Vec<u8>,
    /// Where in the text each ends, and its symbol. `None` if the catalog does not know it.
    names: Vec<(usize, Option<SymbolId>)>,
}

impl NamedMarkets {
    /// Reads a list of at most `most` names.
    pub fn read(view: &View<'_>, list: &[u8], most: usize) -> Result<NamedMarkets, Error> {
        let all = symbol_list(list, most)?;
        let (text, names) = (Vec::with_capacity(list.len()), Vec::with_capacity(all.len()));
        let mut markets = NamedMarkets { text, names };
        for name in all {
            let symbol = look_up(view, name).ok();
            let is_same = |(text, other): (&[u8], Option<SymbolId>)| match symbol {
                Some(_) => other == symbol,
                None => text == name,
            };
            if !markets.names().any(is_same) {
                markets.text.extend_from_slice(name);
                markets.names.push((markets.text.len(), symbol));
            }
        }
        Ok(markets)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Each name, with its symbol or why it has none.
    pub fn look_up(
        &self,
        view: &View<'_>,
    ) -> impl Iterator<Item = (&[u8], Result<SymbolId, Error>)> {
        let found = |text, symbol: Option<_>| symbol.map_or_else(|| look_up(view, text), Ok);
        self.names().map(move |(text, symbol)| (text, found(text, symbol)))
    }

    fn names(&self) -> impl Iterator<Item = (&[u8], Option<SymbolId>)> {
        let mut begin = 0;
        self.names.iter().map(move |(end, symbol)| {
            let name = std::mem::replace(&mut begin, *end)..*end;
            (&self.text[name], *symbol)
        })
    }
}

fn invalid(text: &[u8]) -> Error {
    let message = format!(
        "Invalid symbol \"{}\": expected BASE/QUOTE, BASE-QUOTE, BASE_QUOTE or BASEQUOTE, letters \
         and digits, at most 20 each.",
        echo(text)
    );
    Error::bad("invalid_symbol", "symbol", message)
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

/// The error for a source that does not track the symbol. `None` if it does, or if its market list has not
/// come yet.
pub fn untracked(view: &View<'_>, symbol: SymbolId, source: SourceId) -> Option<Error> {
    let catalog = &view.market.catalog;
    let tracks = catalog.sources_of(symbol).contains(&source);
    if tracks || catalog.may_track(source, symbol) {
        return None;
    }
    let id = view.id_of(source);
    let name = catalog.name(symbol).as_str();
    let message = format!("Source \"{id}\" does not track \"{name}\".");
    Some(Error::new(404, "symbol_not_found", message).about("source"))
}
