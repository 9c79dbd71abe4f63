//! Events of quotes with decimals as strings, each rendered once for all readers. (With decimals as numbers,
//! the JSON is kept with the quote.)

use crate::core::api::View;
use crate::core::api::stream::write_quote;
use crate::json::Decimals;
use crate::market::{Quote, SourceId, SymbolId};
use std::collections::HashMap;

/// See the module's page. It has at most one event for each quote.
#[derive(Default)]
pub struct QuotedEvents(HashMap<(SourceId, SymbolId), (u64, Vec<u8>)>);

impl QuotedEvents {
    /// The event of a quote.
    pub fn of(&mut self, quote: &Quote, view: &View<'_>) -> &[u8] {
        let place = (quote.source, quote.symbol);
        let (version, event) = self.0.entry(place).or_default();
        if *version != quote.version {
            *version = quote.version;
            event.clear();
            write_quote(event, view, quote, Decimals::String);
        }
        event
    }
}
