//! Categories: named groups of known markets.
//!
//! Owns the configured groups and the served list: the configured ones in their order, then one for
//! each quote asset. It is built again whenever the known symbols change.

use super::super::ids::SymbolId;
use crate::config::CategoryConfig;
use std::collections::BTreeMap;

/// A named group of known markets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    /// `[a-z0-9-]{1,64}`.
    pub id: Box<str>,
    /// For people.
    pub name: Box<str>,
    /// For people.
    pub description: Option<Box<str>>,
    /// As configured, or sorted by name.
    pub symbols: Vec<SymbolId>,
}

/// The configured categories and the served ones.
#[derive(Debug)]
pub(super) struct Groups {
    /// With all their symbols, known or not.
    configured: Vec<Category>,
    pub(super) served: Vec<Category>,
}

/// Known symbols by their quote asset, each sorted by name.
#[derive(Debug, Default)]
pub(super) struct ByQuote(BTreeMap<Box<str>, Vec<SymbolId>>);

impl Groups {
    /// The configured groups; `symbol_of` gives each of their symbols its number.
    pub(super) fn new(
        configured: &[CategoryConfig],
        mut symbol_of: impl FnMut(&str) -> Option<SymbolId>,
    ) -> Groups {
        let configured = configured.iter().map(|category| Category {
            id: category.id.as_str().into(),
            name: category.name.as_str().into(),
            description: category.description.as_deref().map(Into::into),
            symbols: (category.symbols.iter()).filter_map(|text| symbol_of(text)).collect(),
        });
        Groups { configured: configured.collect(), served: Vec::new() }
    }

    /// The list to serve for these known symbols.
    pub(super) fn made_of(
        &self,
        by_quote: ByQuote,
        is_known: impl Fn(SymbolId) -> bool,
    ) -> Vec<Category> {
        let mut served = self.configured.clone();
        for category in &mut served {
            category.symbols.retain(|symbol| is_known(*symbol));
        }
        // Assets are upper-case letters and digits, so their order is the order of the ids.
        for (asset, symbols) in by_quote.0 {
            let id = asset.to_ascii_lowercase().into_boxed_str();
            if self.configured.iter().all(|category| category.id != id) {
                served.push(Category { id, name: asset, description: None, symbols });
            }
        }
        served
    }
}

impl ByQuote {
    /// Adds a symbol after the others.
    pub(super) fn push(&mut self, quote: &str, symbol: SymbolId) {
        match self.0.get_mut(quote) {
            Some(symbols) => symbols.push(symbol),
            None => {
                self.0.insert(quote.into(), vec![symbol]);
            }
        }
    }
}
