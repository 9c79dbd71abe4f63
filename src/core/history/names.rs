//! The names of series and quotes in the file, and their keys in the core. Series and quotes of a source that
//! is no longer configured have no key. They stay in the file, and are not served.

use crate::core::context::Context;
use crate::history::{QuoteName, SeriesName};
use crate::market::{SeriesKey, SourceId, SymbolId};

/// The key of a series.
pub fn key_of(name: &SeriesName, cx: &mut Context) -> Option<SeriesKey> {
    let (source, symbol) = market_of(&name.source, &name.symbol, cx)?;
    Some(SeriesKey { source, symbol, interval: name.interval })
}

/// The numbers of a source and of a symbol.
pub fn market_of(source: &str, symbol: &str, cx: &mut Context) -> Option<(SourceId, SymbolId)> {
    let at = cx.config.sources.iter().position(|it| it.id == source)?;
    Some((SourceId(at as u16), cx.market.catalog.number_of(symbol)?))
}

/// The name of a series.
pub fn name_of(key: SeriesKey, cx: &Context) -> SeriesName {
    let QuoteName { source, symbol } = quote_name(key.source, key.symbol, cx);
    SeriesName { source, symbol, interval: key.interval }
}

/// The name of a quote, or of the rules of a market.
pub fn quote_name(source: SourceId, symbol: SymbolId, cx: &Context) -> QuoteName {
    QuoteName {
        source: cx.config.sources[source.index()].id.as_str().into(),
        symbol: cx.market.catalog.name(symbol).as_str().into(),
    }
}
