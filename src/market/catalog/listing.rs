//! Market lists: what a list says of a market, and how two lists of a source differ.
//!
//! Owns the way back from ticker ids to symbols.

use super::super::hash::NameMap;
use super::super::ids::SymbolId;
use crate::record::{MarketInfo, MarketRules};
use std::fmt;

/// What one source's list says of one market that it tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The exchange's own name of the market in tickers.
    pub ticker_id: Box<str>,
    pub(super) candle_id: Option<Box<str>>,
    /// Whether it trades now.
    pub active: bool,
    /// Whether the configuration names it among the source's `symbols`: its candles are polled.
    pub named: bool,
    /// Steps, limits and fees.
    pub rules: MarketRules,
}

/// What became of one item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The source tracks it.
    Tracked,
    /// The source was not told to want it.
    Untracked,
    /// Its symbol cannot be written, another market of the list has the same symbol, or the cap
    /// on symbols is reached.
    Skipped,
}

/// What a list has changed for its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListChange {
    /// Tracked by this source from now on.
    pub added: Vec<SymbolId>,
    /// No longer tracked by this source: its quotes and candles of them are to be dropped.
    pub removed: Vec<SymbolId>,
    /// Markets whose symbol cannot be written.
    pub skipped: u32,
    /// Markets left out because another one of the list has the same symbol.
    pub duplicates: u32,
    /// Markets left out because of `limits.symbols`.
    pub over_cap: u32,
}

/// A list without any market that could be used: a fault of the exchange, so it changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyList;

impl fmt::Display for EmptyList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the market list holds no usable market")
    }
}

/// A list that was read to its end, as far as it differs from what is held.
#[derive(Debug)]
pub(super) struct Difference {
    /// New listings, and listings that say something else now.
    /// Sorted by symbol. After the switch, what was held before.
    pub(super) changes: Vec<(SymbolId, Option<Box<Listing>>)>,
    /// Held listings that the list no longer has, or that no longer qualify; sorted.
    pub(super) leavers: Vec<SymbolId>,
    /// The way back from ticker ids, where it has been made already.
    pub(super) routes: Option<Routes>,
}

/// From ticker ids to symbols.
#[derive(Debug, Default)]
pub(super) struct Routes(pub(super) NameMap<Box<str>, SymbolId>);

/// Routes on their way out.
pub(super) type LeavingRoutes = std::collections::hash_map::IntoIter<Box<str>, SymbolId>;

impl Listing {
    /// The name by which the market's candles are asked for.
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

    /// What will be listed of a symbol of which this is held.
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

    /// Every symbol of its changes is below this.
    pub(super) fn places(&self) -> usize {
        (self.changes.last()).map_or(0, |(symbol, _)| symbol.index() + 1)
    }
}

impl Routes {
    /// With room for so many.
    pub(super) fn with_room(count: usize) -> Routes {
        Routes(NameMap::with_capacity_and_hasher(count, Default::default()))
    }

    /// Notes whose ticker id this is: of two markets with the same one, which only a faulty list
    /// has, the lower symbol has it.
    pub(super) fn add(&mut self, listing: &Listing, symbol: SymbolId) {
        let holder = self.0.entry(listing.ticker_id.clone()).or_insert(symbol);
        *holder = symbol.min(*holder);
    }

    /// One after the other, to let go of them.
    pub(super) fn into_iter(self) -> LeavingRoutes {
        self.0.into_iter()
    }
}
