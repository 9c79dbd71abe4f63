//! The state of a market list refresh.
//!
//! Owns the next state of the catalog while it is built, and the former one while it is dropped.

use super::groups::{ByQuote, Category};
use super::listing::{Difference, LeavingRoutes, ListChange, Routes};
use crate::market::ids::{SourceId, SymbolId};

/// The most markets that one slice visits or drops: about 50 microseconds. The first and the last
/// slice of the deciding stage go over the whole list: 0.4 ms for the first list of 3,500 markets,
/// mostly to sort it.
pub(super) const MARKETS_A_SLICE: usize = 256;

/// A list, or the memory of an earlier one, that is being applied.
#[derive(Debug)]
pub(super) struct ListRefresh {
    pub(super) source: SourceId,
    pub(super) kind: Kind,
    pub(super) stage: Stage,
    /// The symbols about which something served may change; sorted.
    pub(super) touched: Vec<SymbolId>,
    /// What becomes of them, in their order, as far as it is decided.
    pub(super) decisions: Vec<Decision>,
    pub(super) change: ListChange,
    /// Symbols that become known; sorted by name from the merging stage on.
    pub(super) joiners: Vec<SymbolId>,
    /// The number of symbols that are no longer known.
    pub(super) lost: usize,
    pub(super) routes_changed: bool,
    pub(super) next: Next,
    pub(super) leaving: Option<LeavingRoutes>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A list.
    List(Difference),
    /// The memory of an earlier list: tracked until a list has come, and without times.
    Memory,
}

#[derive(Debug)]
pub(super) enum Stage {
    Deciding,
    /// Places among the known symbols and among those that join them.
    Merging(usize, usize),
    /// The number of listings whose ticker ids are routed.
    Routing(usize),
    Dropping,
}

/// What becomes of a symbol.
#[derive(Debug)]
pub(super) struct Decision {
    /// Who tracks it from now on, if that changes.
    pub(super) sources: Option<Box<[SourceId]>>,
    pub(super) created: bool,
    pub(super) changed: bool,
}

/// What will be served. After the switch, what was served.
#[derive(Debug, Default)]
pub(super) struct Next {
    pub(super) known: Vec<SymbolId>,
    pub(super) by_quote: ByQuote,
    pub(super) categories: Vec<Category>,
    pub(super) ecosystem: Vec<SymbolId>,
    pub(super) routes: Option<Routes>,
}

impl ListRefresh {
    pub(super) fn new(
        source: SourceId,
        kind: Kind,
        mut touched: Vec<SymbolId>,
    ) -> Box<ListRefresh> {
        touched.sort_unstable();
        touched.dedup();
        Box::new(ListRefresh {
            source,
            kind,
            stage: Stage::Deciding,
            decisions: Vec::with_capacity(touched.len()),
            touched,
            change: ListChange::default(),
            joiners: Vec::new(),
            lost: 0,
            routes_changed: false,
            next: Next::default(),
            leaving: None,
        })
    }

    /// True if a symbol will be known.
    pub(super) fn knows(&self, symbol: SymbolId, is_known: impl Fn(SymbolId) -> bool) -> bool {
        let place = self.touched.binary_search(&symbol);
        let decision = place.ok().and_then(|at| self.decisions.get(at));
        match decision.and_then(|decision| decision.sources.as_deref()) {
            Some(sources) => !sources.is_empty(),
            None => is_known(symbol),
        }
    }

    /// Drops some of what was served before. Returns true if nothing is left.
    pub(super) fn drop_old(&mut self) -> bool {
        let shorter = self.decisions.len().saturating_sub(MARKETS_A_SLICE);
        self.decisions.truncate(shorter);
        let Kind::List(difference) = &mut self.kind else {
            return self.decisions.is_empty();
        };
        let shorter = difference.changes.len().saturating_sub(MARKETS_A_SLICE);
        difference.changes.truncate(shorter);
        let routes = self.next.routes.take();
        let leaving = routes.map(Routes::into_iter).or(self.leaving.take());
        let leaving = self.leaving.insert(leaving.unwrap_or_default());
        leaving.by_ref().take(MARKETS_A_SLICE).for_each(drop);
        leaving.len() == 0 && self.decisions.is_empty() && difference.changes.is_empty()
    }
}
