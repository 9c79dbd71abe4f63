//! Taking over: how a list that was read to its end becomes what is served, and so what is
//! remembered of an earlier run's.
//!
//! Owns what is prepared for that: the tracking, the known symbols and the categories as they will
//! be. It is prepared in slices, beside all that is served. Then one step puts it in its place: it
//! moves pointers alone, some ten nanoseconds a market, so that it need not be cut, and whoever
//! reads finds all of a list or nothing of it. What was there before is let go of in slices again.
//!
//! One at a time: what is prepared holds as long as nothing else is taken over. The others wait.
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

/// Everything that answers show of a symbol and that a list can change.
#[derive(PartialEq)]
struct Shown<'a> {
    sources: &'a [SourceId],
    active: bool,
    entry: Option<(bool, MarketRules)>,
}

impl Catalog {
    /// Does one slice of taking over the list of this source that was read to its end. `Some`: it is
    /// served, and this is what has changed. `None`: there is more to do, or another list is being
    /// taken over.
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

    /// Takes symbols for tracked that an earlier run knew from this source's list, until such a list
    /// has come again, one slice a call: `symbols` are those of the first. What the source has a list
    /// for, or does not want any more, is passed over. `true`: they are known.
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

    /// Works out what becomes of some of the symbols.
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
            // Where the source did not track it, its sources are others now.
            changed = created
                || !was_tracked
                || self.shown(symbol, &tracking.sources, None) != self.shown(symbol, after, own);
        }
        Decision {
            sources,
            created,
            changed,
        }
    }

    /// The listing that is shown of a symbol with these sources, where one of them is to list it so.
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

    /// What answers show of a symbol with these sources, where the list of one of them has come.
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
        Shown {
            sources,
            active,
            entry: entry.map(|entry| (entry.status, entry.rules)),
        }
    }

    /// Puts some of the symbols that will be known in their order and into their categories.
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

    /// Makes some of the way from ticker ids to symbols, where that changes and is not made yet.
    /// `true`: the last of it. Made anew as a whole: two markets may trade their ids.
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

    /// Serves from now on what was prepared, all of it at once.
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
