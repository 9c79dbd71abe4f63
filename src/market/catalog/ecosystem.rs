//! The markets of the ecosystem: which there are, their order, and their configured data.
//!
//! Owns the configured entries. Served entries are made on request, from these and from what the
//! exchange lists, so that nothing is stored twice.

use super::super::ids::SymbolId;
use super::super::symbol::SymbolName;
use crate::config::EcosystemMarket;
use crate::record::{Bounds, MarketRules};
use std::borrow::Cow;
use std::collections::HashMap;

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
    /// Steps, limits and fees: those of the exchange, each replaced by a configured one.
    pub rules: MarketRules,
}

/// The configured markets, and the served order.
#[derive(Debug, Default)]
pub(super) struct EcosystemList {
    /// `None` if every known market belongs to the ecosystem.
    given: Option<Given>,
    /// The known ones in the order of the list, active or not.
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
    /// The configured entries; `symbol_of` gives each of their symbols its number.
    pub(super) fn new(
        configured: Option<&[EcosystemMarket]>,
        symbol_of: impl FnMut(&str) -> Option<SymbolId>,
    ) -> EcosystemList {
        EcosystemList {
            given: configured.map(|entries| Given::new(entries, symbol_of)),
            served: Vec::new(),
        }
    }

    /// Serves these known symbols, which are sorted by name, in the order of the list.
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

    /// The entry of a known symbol, from what the exchange lists of it.
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

impl Given {
    fn new(
        configured: &[EcosystemMarket],
        mut symbol_of: impl FnMut(&str) -> Option<SymbolId>,
    ) -> Given {
        let mut given = Given::default();
        for entry in configured {
            let Some(symbol) = symbol_of(&entry.symbol) else {
                continue;
            };
            // Of several entries for one symbol, the first counts.
            if given.entries.contains_key(&symbol) {
                continue;
            }
            given.symbols.push(symbol);
            given.entries.insert(symbol, entry.clone());
            if let Some(id) = &entry.id {
                given.by_id.entry(id.as_str().into()).or_insert(symbol);
            }
        }
        given
    }
}

/// The configured values, and the listed ones where nothing is configured.
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
