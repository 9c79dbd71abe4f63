//! Categories: named groups of known markets.
//!
//! Owns the configured groups and the served list: the configured ones in their order, then one for
//! each quote asset. It is built again whenever the known symbols change.

use super::super::ids::SymbolId;
use super::super::symbol::Symbols;
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
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// With all their symbols, known or not.
    configured: Vec<Category>,
    pub(super) served: Vec<Category>,
}

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

    /// Serves the groups of these known symbols, which are sorted by name.
    pub(super) fn serve(
        &mut self,
        known: &[SymbolId],
        symbols: &Symbols,
        is_known: impl Fn(SymbolId) -> bool,
    ) {
        self.served = self.configured.clone();
        for category in &mut self.served {
            category.symbols.retain(|symbol| is_known(*symbol));
        }
        let mut by_quote = BTreeMap::<&str, Vec<SymbolId>>::new();
        for symbol in known {
            by_quote.entry(symbols.name(*symbol).quote()).or_default().push(*symbol);
        }
        // Assets are upper-case letters and digits, so their order is the order of the ids.
        for (asset, symbols) in by_quote {
            let id = asset.to_ascii_lowercase().into_boxed_str();
            if self.configured.iter().all(|category| category.id != id) {
                self.served.push(Category { id, name: asset.into(), description: None, symbols });
            }
        }
    }
}
