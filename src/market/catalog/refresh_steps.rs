//! Market list refresh: applies a list that was read to its end, or the memory of an earlier one.
//!
//! The next state of the catalog is built in slices, beside the served one. Then one step swaps the
//! two: it only moves pointers, about ten nanoseconds a market, so it needs no slices, and readers
//! see all of a list or nothing of it. The former state is dropped in slices.
//!
//! One refresh runs at a time, because what is built holds only while nothing else is applied. The
//! others wait.
//!
//! ```text
//! Deciding -> Merging -> Routing -> (the switch) -> Dropping
//! ```

use super::Catalog;
use super::listing::{ListChange, Listing, Routes};
use super::refresh::{Decision, Kind, ListRefresh, MARKETS_A_SLICE, Stage};
use crate::market::ids::{SourceId, SymbolId};
use crate::record::MarketRules;
use crate::time::UnixMs;

/// Everything served about a symbol that a list can change.
#[derive(PartialEq)]
struct Shown<'a> {
    sources: &'a [SourceId],
    active: bool,
    entry: Option<(bool, MarketRules)>,
}

impl Catalog {
    /// Does one slice of applying the list of this source. Returns what changed once the list is
    /// served; `None` if there is more to do, or another refresh is running.
    pub fn refresh_list(&mut self, source: SourceId, now: UnixMs) -> Option<ListChange> {
        let Some(refresh) = self.refresh.take() else {
            return self.begin_refresh(source);
        };
        if refresh.source != source || matches!(refresh.kind, Kind::Memory) {
            self.refresh = Some(refresh);
            return None;
        }
        self.step_refresh(refresh, now)
    }

    /// Tracks the symbols of an earlier run's list of this source until a list has come, one slice
    /// a call. `symbols` is called in the first. Symbols that the source lists, or does not want
    /// any more, are left out. Returns true once they are known.
    pub fn remember(
        &mut self,
        source: SourceId,
        symbols: impl FnOnce() -> Vec<SymbolId>,
        now: UnixMs,
    ) -> bool {
        match self.refresh.take() {
            None => {
                let mut touched = symbols();
                touched.retain(|symbol| self.may_track(source, *symbol));
                touched.extend(&self.rosters[source.index()].remembered);
                let is_empty = touched.is_empty();
                if !is_empty {
                    self.make_room();
                    self.refresh = Some(ListRefresh::new(source, Kind::Memory, touched));
                }
                is_empty
            }
            Some(refresh) if refresh.source == source && matches!(refresh.kind, Kind::Memory) => {
                self.step_refresh(refresh, now).is_some()
            }
            other => {
                self.refresh = other;
                false
            }
        }
    }

    fn begin_refresh(&mut self, source: SourceId) -> Option<ListChange> {
        let roster = &mut self.rosters[source.index()];
        let Some((staging, difference)) = roster.finish() else {
            return Some(ListChange::default());
        };
        let change = ListChange {
            skipped: staging.skipped,
            duplicates: staging.duplicates,
            over_cap: staging.over_cap,
            ..ListChange::default()
        };
        if roster.has_list && difference.is_empty() {
            return Some(change);
        }
        let mut touched = difference.leavers.clone();
        touched.extend(difference.changes.iter().map(|(symbol, _)| *symbol));
        if !roster.has_list {
            // Named symbols that the first list does not have turn inactive.
            touched.extend(&roster.named);
            touched.extend(&roster.remembered);
        }
        self.make_room();
        let mut refresh = ListRefresh::new(source, Kind::List(difference), touched);
        refresh.change = change;
        self.refresh = Some(refresh);
        None
    }

    fn step_refresh(&mut self, mut refresh: Box<ListRefresh>, now: UnixMs) -> Option<ListChange> {
        match refresh.stage {
            Stage::Deciding => self.decide_some(&mut refresh),
            Stage::Merging(known, joined) => self.merge_some(&mut refresh, known, joined),
            Stage::Routing(from) => {
                if self.route_some(&mut refresh, from) {
                    self.switch(&mut refresh, now);
                    refresh.stage = Stage::Dropping;
                }
            }
            Stage::Dropping => {
                if refresh.drop_old() {
                    return Some(std::mem::take(&mut refresh.change));
                }
            }
        }
        self.refresh = Some(refresh);
        None
    }

    /// Decides what becomes of some of the symbols.
    fn decide_some(&mut self, refresh: &mut ListRefresh) {
        let from = refresh.decisions.len();
        let end = refresh.touched.len().min(from + MARKETS_A_SLICE);
        for at in from..end {
            let decision = self.decide(refresh, refresh.touched[at]);
            refresh.decisions.push(decision);
        }
        if end < refresh.touched.len() {
            return;
        }
        refresh.stage = match refresh.joiners.is_empty() && refresh.lost == 0 {
            true => Stage::Routing(0),
            false => {
                refresh.joiners = self.symbols.sorted(&mut refresh.joiners.iter().copied());
                Stage::Merging(0, 0)
            }
        };
    }

    fn decide(&self, refresh: &mut ListRefresh, symbol: SymbolId) -> Decision {
        let source = refresh.source;
        let roster = &self.rosters[source.index()];
        let held = roster.listing(symbol);
        let (listing, tracked) = match &refresh.kind {
            Kind::Memory => (held, true),
            Kind::List(difference) => {
                let listing = difference.listing(symbol, held);
                let is_routed_as_before = match (held, listing) {
                    (Some(held), Some(listing)) => held.ticker_id == listing.ticker_id,
                    (held, listing) => held.is_none() && listing.is_none(),
                };
                refresh.routes_changed |= !is_routed_as_before;
                (listing, listing.is_some() || roster.names(symbol))
            }
        };
        let was_tracked = roster.tracks(symbol);
        match (was_tracked, tracked) {
            (false, true) => refresh.change.added.push(symbol),
            (true, false) => refresh.change.removed.push(symbol),
            _ => {}
        }
        let tracking = &self.tracking[symbol.index()];
        let sources = tracking.with(source, tracked);
        let after = sources.as_deref().unwrap_or(&tracking.sources);
        match (tracking.sources.is_empty(), after.is_empty()) {
            (true, false) => refresh.joiners.push(symbol),
            (false, true) => refresh.lost += 1,
            _ => {}
        }
        let (mut created, mut changed) = (false, false);
        if matches!(refresh.kind, Kind::List(_)) {
            let own = Some((source, listing));
            created = tracking.created_at.is_none() && self.first(symbol, after, own).is_some();
            // A source that did not track it changes its sources.
            changed = created
                || !was_tracked
                || self.shown(symbol, &tracking.sources, None) != self.shown(symbol, after, own);
        }
        Decision { sources, created, changed }
    }

    /// The served listing of a symbol with these sources. `own` replaces the listing of one of
    /// them.
    fn first<'a>(
        &'a self,
        symbol: SymbolId,
        sources: &[SourceId],
        own: Option<(SourceId, Option<&'a Listing>)>,
    ) -> Option<&'a Listing> {
        sources.iter().find_map(|source| match own {
            Some((own, listing)) if own == *source => listing,
            _ => self.listing(*source, symbol),
        })
    }

    /// What is served about a symbol with these sources, once the list of `own` has come.
    fn shown<'a>(
        &self,
        symbol: SymbolId,
        sources: &'a [SourceId],
        own: Option<(SourceId, Option<&Listing>)>,
    ) -> Shown<'a> {
        let first = self.first(symbol, sources, own);
        let has_come = own.map(|(source, _)| source);
        let is_to_come = |source: &SourceId| !self.has_list(*source) && has_come != Some(*source);
        let active = match first {
            Some(listing) => listing.active,
            None => sources.iter().any(is_to_come),
        };
        let entry = match sources {
            [] => None,
            _ => {
                let rules = first.map(|listing| &listing.rules);
                (self.ecosystem).entry(symbol, self.name(symbol), rules, active)
            }
        };
        Shown { sources, active, entry: entry.map(|entry| (entry.status, entry.rules)) }
    }

    /// Sorts some of the future known symbols into their order and categories.
    fn merge_some(&self, refresh: &mut ListRefresh, mut known: usize, mut joined: usize) {
        for _ in 0..MARKETS_A_SLICE {
            let old = self.known.get(known).copied();
            let new = refresh.joiners.get(joined).copied();
            let symbol = match (old, new) {
                (None, None) => return self.end_merging(refresh),
                (Some(old), Some(new)) if self.name(new) < self.name(old) => new,
                (Some(old), _) => old,
                (None, Some(new)) => new,
            };
            if new == Some(symbol) {
                joined += 1;
            } else {
                known += 1;
                if refresh.lost > 0 && !refresh.knows(symbol, |symbol| self.is_known(symbol)) {
                    continue;
                }
            }
            let quote = self.symbols.name(symbol).quote();
            refresh.next.by_quote.push(quote, symbol);
            refresh.next.known.push(symbol);
        }
        refresh.stage = Stage::Merging(known, joined);
    }

    fn end_merging(&self, refresh: &mut ListRefresh) {
        let by_quote = std::mem::take(&mut refresh.next.by_quote);
        let is_known = |symbol| refresh.knows(symbol, |it| self.is_known(it));
        let categories = self.groups.made_of(by_quote, is_known);
        let ecosystem = self.ecosystem.made_of(&refresh.next.known, is_known);
        (refresh.next.categories, refresh.next.ecosystem) = (categories, ecosystem);
        refresh.stage = Stage::Routing(0);
    }

    /// Builds part of the map from ticker ids to symbols, if it changes and is not built yet.
    /// Returns true at its end. It is built as a whole, because two markets may swap their ids.
    fn route_some(&self, refresh: &mut ListRefresh, from: usize) -> bool {
        let Kind::List(difference) = &mut refresh.kind else {
            return true;
        };
        if let Some(routes) = difference.routes.take() {
            refresh.next.routes = Some(routes);
            return true;
        }
        let roster = &self.rosters[refresh.source.index()];
        let end = roster.places().max(difference.places());
        if !refresh.routes_changed || from >= end {
            return true;
        }
        let routes = &mut refresh.next.routes;
        let routes =
            routes.get_or_insert_with(|| Routes::with_room(refresh.touched.len().max(end)));
        for at in from..end.min(from + MARKETS_A_SLICE) {
            let symbol = SymbolId(at as u32);
            let held = roster.listing(symbol);
            if let Some(listing) = difference.listing(symbol, held) {
                routes.add(listing, symbol);
            }
        }
        refresh.stage = Stage::Routing(from + MARKETS_A_SLICE);
        false
    }

    /// Serves what was built, all of it at once.
    fn switch(&mut self, refresh: &mut ListRefresh, now: UnixMs) {
        let mut any_changed = matches!(refresh.kind, Kind::Memory);
        let roster = &mut self.rosters[refresh.source.index()];
        match &mut refresh.kind {
            Kind::List(difference) => roster.swap(difference, &mut refresh.next.routes),
            Kind::Memory => roster.remembered.clone_from(&refresh.touched),
        }
        for (symbol, decision) in refresh.touched.iter().zip(&mut refresh.decisions) {
            let tracking = &mut self.tracking[symbol.index()];
            if let Some(sources) = &mut decision.sources {
                std::mem::swap(&mut tracking.sources, sources);
            }
            if decision.created {
                tracking.created_at = Some(now);
            }
            if decision.changed {
                tracking.updated_at = Some(now);
            }
            any_changed |= decision.changed;
        }
        if !refresh.joiners.is_empty() || refresh.lost > 0 {
            std::mem::swap(&mut self.known, &mut refresh.next.known);
            std::mem::swap(&mut self.groups.served, &mut refresh.next.categories);
            std::mem::swap(&mut self.ecosystem.served, &mut refresh.next.ecosystem);
            let tracking = &self.tracking;
            let is_known = |symbol: SymbolId| {
                (tracking.get(symbol.index())).is_some_and(|it| !it.sources.is_empty())
            };
            self.symbols.warn_of_clashes(is_known);
        }
        self.version += u64::from(any_changed);
        if matches!(refresh.kind, Kind::List(_)) {
            self.warn_of_missing(refresh.source);
        }
    }
}
