//! Categories, which are named groups of known markets, and the markets of the ecosystem.
//!
//! [`Groups`] owns the configured groups, and the served list: the configured groups in their order, then one
//! group for each quote asset. The served list is built again whenever the known symbols change.
//! [`EcosystemList`] owns the configured entries of the ecosystem. A served entry is made on request, from
//! the configured entry and the exchange's list, so that nothing is stored twice.

use super::super::symbol::{SymbolId, SymbolName, Symbols};
use crate::config::{CategoryConfig, EcosystemMarket};
use crate::record::{Bounds, MarketRules};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

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
    /// The configured groups. `symbol_of` returns the number of a symbol.
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

    /// Builds the served groups of these known symbols, which are sorted by name.
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
        // Assets are upper-case letters and digits, so the ids are sorted like the assets.
        for (asset, symbols) in by_quote {
            let id = asset.to_ascii_lowercase().into_boxed_str();
            if self.configured.iter().all(|category| category.id != id) {
                self.served.push(Category { id, name: asset.into(), description: None, symbols });
            }
        }
    }
}

/// One market as `/api/ecosystem` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EcosystemEntry<'a> {
    /// The market.
    pub symbol: SymbolId,
    /// The stable id: configured, or `BASE-QUOTE`.
    pub id: Cow<'a, str>,
    /// For the front page of a shop.
    pub is_trending: bool,
    /// For the front page of a shop.
    pub is_hot: bool,
    /// URL of a picture.
    pub icon: Option<&'a str>,
    /// True if it is active: only active ones are in the list.
    pub status: bool,
    /// Steps, limits and fees of the exchange. A configured value replaces the exchange's.
    pub rules: MarketRules,
}

/// The configured markets, and the served order.
#[derive(Debug, Default)]
pub(super) struct EcosystemList {
    /// `None` if every known market belongs to the ecosystem.
    given: Option<Given>,
    /// The known markets in the order of the list, active or not.
    pub(super) served: Vec<SymbolId>,
}

#[derive(Debug, Default)]
struct Given {
    /// In the configured order.
    symbols: Vec<SymbolId>,
    entries: HashMap<SymbolId, EcosystemMarket>,
    by_id: HashMap<Box<str>, SymbolId>,
}

impl EcosystemList {
    /// The configured entries. `symbol_of` returns the number of a symbol.
    pub(super) fn new(
        configured: Option<&[EcosystemMarket]>,
        mut symbol_of: impl FnMut(&str) -> Option<SymbolId>,
    ) -> EcosystemList {
        let given = configured.map(|entries| {
            let mut given = Given::default();
            for entry in entries {
                let Some(symbol) = symbol_of(&entry.symbol) else {
                    continue;
                };
                given.symbols.push(symbol);
                given.entries.insert(symbol, entry.clone());
                given.by_id.extend(entry.id.as_deref().map(|id| (id.into(), symbol)));
            }
            given
        });
        EcosystemList { given, served: Vec::new() }
    }

    /// Builds the served list: the configured markets that are known, in their order, or else all
    /// of `known`, which is sorted by name.
    pub(super) fn serve(&mut self, known: &[SymbolId], is_known: impl Fn(SymbolId) -> bool) {
        self.served = match &self.given {
            None => known.to_vec(),
            Some(given) => (given.symbols.iter().copied()).filter(|it| is_known(*it)).collect(),
        };
    }

    /// The symbol with this configured id.
    pub(super) fn by_id(&self, id: &[u8]) -> Option<SymbolId> {
        let id = std::str::from_utf8(id).ok()?;
        self.given.as_ref()?.by_id.get(id).copied()
    }

    /// True if a known symbol belongs to the ecosystem.
    pub(super) fn contains(&self, symbol: SymbolId) -> bool {
        let given = self.given.as_ref();
        given.is_none_or(|given| given.entries.contains_key(&symbol))
    }

    /// The entry of a known symbol. `listed` has the rules that the exchange lists.
    pub(super) fn entry(
        &self,
        symbol: SymbolId,
        name: &SymbolName,
        listed: Option<&MarketRules>,
        active: bool,
    ) -> Option<EcosystemEntry<'_>> {
        let given = match &self.given {
            None => None,
            Some(given) => Some(given.entries.get(&symbol)?),
        };
        let listed = listed.cloned().unwrap_or_default();
        let id = given.and_then(|given| given.id.as_deref());
        Some(EcosystemEntry {
            symbol,
            id: id.map_or_else(|| name.as_str().replace('/', "-").into(), Cow::Borrowed),
            is_trending: given.is_some_and(|given| given.is_trending),
            is_hot: given.is_some_and(|given| given.is_hot),
            icon: given.and_then(|given| given.icon.as_deref()),
            status: given.and_then(|given| given.status).unwrap_or(active),
            rules: match given {
                Some(given) => overridden(&given.rules, listed),
                None => listed,
            },
        })
    }
}

/// The configured values. A listed value stands in for each value that is not configured.
fn overridden(given: &MarketRules, listed: MarketRules) -> MarketRules {
    let bounds = |given: &Bounds, listed: Bounds| Bounds {
        min: given.min.clone().or(listed.min),
        max: given.max.clone().or(listed.max),
    };
    MarketRules {
        amount_places: given.amount_places.or(listed.amount_places),
        price_places: given.price_places.or(listed.price_places),
        amount: bounds(&given.amount, listed.amount),
        price: bounds(&given.price, listed.price),
        cost: bounds(&given.cost, listed.cost),
        taker: given.taker.clone().or(listed.taker),
        maker: given.maker.clone().or(listed.maker),
    }
}
