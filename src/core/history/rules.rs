//! What exchanges demand of orders, saved with each market list and shown again after a restart.
//!
//! Owns which sources' lists are still to be looked through. The file compares: what a list says
//! again is not written again.

use super::names::source_of;
use crate::core::context::Context;
use crate::history::{Batch, QuoteName};
use crate::market::SourceId;
use crate::record::MarketRules;
use std::collections::VecDeque;

/// Symbols that one slice looks at: some 100 microseconds.
const SYMBOLS_A_SLICE: usize = 128;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct SavedRules {
    /// Sources, and the place among the known symbols that comes next.
    sources: VecDeque<(SourceId, usize)>,
}

impl SavedRules {
    /// A list has come.
    pub(super) fn listed(&mut self, source: SourceId) {
        self.sources.retain(|(waiting, _)| *waiting != source);
        self.sources.push_back((source, 0));
    }

    /// Whether [`SavedRules::gather`] has something to do.
    pub(super) fn is_saving(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Gathers one slice. `true`: there may be something to write.
    pub(super) fn gather(&mut self, cx: &Context, batch: &mut Batch) -> bool {
        let Some((source, from)) = self.sources.front_mut() else {
            return false;
        };
        let catalog = &cx.market.catalog;
        let known = catalog.known();
        let end = known.len().min(*from + SYMBOLS_A_SLICE);
        for symbol in known.get(*from..end).unwrap_or_default() {
            if let Some(listing) = catalog.listing(*source, *symbol) {
                let name = QuoteName {
                    source: cx.config.sources[source.index()].id.as_str().into(),
                    symbol: catalog.name(*symbol).as_str().into(),
                };
                batch.markets.insert(name, listing.rules.clone());
            }
        }
        *from = end;
        if end == known.len() {
            self.sources.pop_front();
        }
        true
    }
}

/// Shows what an earlier run was told.
pub(super) fn restore(list: Vec<(QuoteName, MarketRules)>, cx: &mut Context) {
    for (name, rules) in list {
        let symbol = cx.market.catalog.number_of(&name.symbol);
        if let (Some(source), Some(symbol)) = (source_of(&name.source, &cx.config), symbol) {
            cx.market.catalog.recall_rules(source, symbol, rules);
        }
    }
}
