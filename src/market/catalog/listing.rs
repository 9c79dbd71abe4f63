//! Market lists: what a list says about a market, and how two lists of a source differ.
//!
//! Owns the map from ticker ids to symbols.

use super::super::ids::SymbolId;
use super::super::symbol::NameMap;
use crate::record::{MarketInfo, MarketRules};
use std::fmt;

/// What the list of a source says about one market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name of the market in tickers.
    pub ticker_id: Box<str>,
    pub(super) candle_id: Option<Box<str>>,
    /// True if it trades now.
    pub active: bool,
    /// True if the source's `symbols` in the configuration name it: its candles are polled.
    pub named: bool,
    /// Steps, limits and fees.
    pub rules: MarketRules,
}

/// What was done with one item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The source tracks it.
    Tracked,
    /// The source is not configured to track it.
    Untracked,
    /// Its symbol cannot be written, another market of the list has the same symbol, or the cap
    /// on symbols is reached.
    Skipped,
}

/// What a list changed for its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListChange {
    /// Tracked from now on.
    pub added: Vec<SymbolId>,
    /// No longer tracked: the source's quotes and candles of them are to be dropped.
    pub removed: Vec<SymbolId>,
    /// Markets whose symbol cannot be written.
    pub skipped: u32,
    /// Markets left out because another one of the list has the same symbol.
    pub duplicates: u32,
    /// Markets left out because of `limits.symbols`.
    pub over_cap: u32,
}

/// A list without any usable market: an error of the exchange, so it changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyList;

impl fmt::Display for EmptyList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the market list holds no usable market")
    }
}

/// The difference between a new list and the current listings.
#[derive(Debug)]
pub(super) struct Difference {
    /// New and changed listings, sorted by symbol. After the switch, the former ones.
    pub(super) changes: Vec<(SymbolId, Option<Box<Listing>>)>,
    /// Current listings that the list no longer has, or that no longer qualify; sorted.
    pub(super) leavers: Vec<SymbolId>,
    /// The map from ticker ids, if it was built already.
    pub(super) routes: Option<Routes>,
}

/// From ticker ids to symbols.
#[derive(Debug, Default)]
pub(super) struct Routes(pub(super) NameMap<Box<str>, SymbolId>);

/// Routes that are being dropped.
pub(super) type LeavingRoutes = std::collections::hash_map::IntoIter<Box<str>, SymbolId>;

impl Listing {
    /// The name for requests of candles.
    pub fn candle_id(&self) -> &str {
        self.candle_id.as_deref().unwrap_or(&self.ticker_id)
    }

    pub(super) fn new(info: MarketInfo, named: bool) -> Listing {
        Listing {
            ticker_id: info.ticker_id,
            candle_id: info.candle_id,
            active: info.active,
            named,
            rules: info.rules,
        }
    }
}

impl Difference {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.leavers.is_empty()
    }

    /// The new listing of a symbol, by its current one.
    pub(super) fn listing<'a>(
        &'a self,
        symbol: SymbolId,
        held: Option<&'a Listing>,
    ) -> Option<&'a Listing> {
        match self.changes.binary_search_by_key(&symbol, |(at, _)| *at) {
            Ok(at) => self.changes[at].1.as_deref(),
            Err(_) => held.filter(|_| self.leavers.binary_search(&symbol).is_err()),
        }
    }

    /// One above the highest changed symbol.
    pub(super) fn places(&self) -> usize {
        (self.changes.last()).map_or(0, |(symbol, _)| symbol.index() + 1)
    }
}

impl Routes {
    /// With room for so many.
    pub(super) fn with_room(count: usize) -> Routes {
        Routes(NameMap::with_capacity_and_hasher(count, Default::default()))
    }

    /// Adds a ticker id. If a faulty list has one ticker id for two markets, the lower symbol gets
    /// it.
    pub(super) fn add(&mut self, listing: &Listing, symbol: SymbolId) {
        let holder = self.0.entry(listing.ticker_id.clone()).or_insert(symbol);
        *holder = symbol.min(*holder);
    }

    /// An iterator, to drop them in slices.
    pub(super) fn into_iter(self) -> LeavingRoutes {
        self.0.into_iter()
    }
}
