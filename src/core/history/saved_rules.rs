//! What exchanges demand of orders, saved with each market list and shown again after a restart. The
//! file compares: what a list repeats is not written again.

use super::names::quote_name;
use super::saved_quotes::SYMBOLS_A_SLICE;
use crate::core::context::Context;
use crate::history::Batch;
use crate::market::SourceId;

/// Gathers one slice of a source's rules, from this place among the known symbols. `true`: the last
/// one.
pub fn save(source: SourceId, from: &mut usize, cx: &Context, batch: &mut Batch) -> bool {
    let catalog = &cx.market.catalog;
    for symbol in catalog.known().iter().skip(*from).take(SYMBOLS_A_SLICE) {
        if let Some(listing) = catalog.listing(source, *symbol) {
            let name = quote_name(source, *symbol, cx);
            batch.markets.insert(name, listing.rules.clone());
        }
    }
    *from += SYMBOLS_A_SLICE;
    *from >= catalog.known().len()
}
