//! Taking over: how a list that was read to its end becomes what is served, and so what is
//! remembered of an earlier run's.
//!
//! Owns what is prepared for that: the standings, the known symbols and the categories as they will
//! be. It is prepared in slices, beside all that is served. Then one step puts it in its place: it
//! moves pointers alone, some ten nanoseconds a market, so that it need not be cut, and whoever
//! reads finds all of a list or nothing of it. What was there before is let go of in slices again.
//!
//! One at a time: what is prepared holds as long as nothing else is taken over. The others wait.
//!
//! ```text
//! Judging -> Merging -> Routing -> (the switch) -> LettingGo
//! ```

use super::groups::ByQuote;
use super::listing::{Difference, LeavingRoutes, ListChange, Listing, Routes};
use super::{Catalog, Category, Standing};
use crate::market::{SourceId, SymbolId};
use crate::record::MarketRules;
use crate::time::UnixMs;

/// Markets that one slice looks at, or lets go of: some 50 microseconds. The first and the last look
/// of the judging go over all of a list: 0.4 ms for the first list of 3,500 markets, mostly to sort
/// them.
const MARKETS_A_SLICE: usize = 256;

/// A list, or a memory, on its way to be served.
#[derive(Debug)]
pub(super) struct TakeOver {
    source: SourceId,
    kind: Kind,
    stage: Stage,
    /// Of which something that is served may change; sorted.
    touched: Vec<SymbolId>,
    /// What becomes of them, in their order, as far as they have been judged.
    verdicts: Vec<Verdict>,
    change: ListChange,
    /// Symbols that become known; sorted by name from the merging on.
    joiners: Vec<SymbolId>,
    /// How many are known no longer.
    lost: usize,
    routes_changed: bool,
    next: Next,
    leaving: Option<LeavingRoutes>,
}

#[derive(Debug)]
enum Kind {
    /// What a list has said.
    List(Difference),
    /// What an earlier list had said: it is tracked until a list has come, and stamps no times.
    Memory,
}

#[derive(Debug)]
enum Stage {
    Judging,
    /// Places among the known symbols and among those that join them.
    Merging(usize, usize),
    /// Ticker ids of so many listings are routed.
    Routing(usize),
    LettingGo,
}

/// What becomes of a symbol.
#[derive(Debug)]
struct Verdict {
    /// Where that changes: who tracks it from now on.
    sources: Option<Box<[SourceId]>>,
    created: bool,
    changed: bool,
}

/// What will be served. After the switch, what was.
#[derive(Debug, Default)]
struct Next {
    known: Vec<SymbolId>,
    by_quote: ByQuote,
    categories: Vec<Category>,
    ecosystem: Vec<SymbolId>,
    routes: Option<Routes>,
}

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
    pub fn take_over(&mut self, source: SourceId, now: UnixMs) -> Option<ListChange> {
        let Some(taking) = self.taking.take() else {
            return self.begin_taking(source);
        };
        if taking.source != source || matches!(taking.kind, Kind::Memory) {
            self.taking = Some(taking);
            return None;
        }
        self.take_on(taking, now)
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
        match self.taking.take() {
            None => {
                let mut touched = symbols();
                touched.retain(|symbol| self.may_track(source, *symbol));
                touched.extend(&self.rosters[source.index()].remembered);
                let is_empty = touched.is_empty();
                if !is_empty {
                    self.make_room();
                    self.taking = Some(TakeOver::new(source, Kind::Memory, touched));
                }
                is_empty
            }
            Some(taking) if taking.source == source && matches!(taking.kind, Kind::Memory) => {
                self.take_on(taking, now).is_some()
            }
            other => {
                self.taking = other;
                false
            }
        }
    }

    fn begin_taking(&mut self, source: SourceId) -> Option<ListChange> {
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
        let mut taking = TakeOver::new(source, Kind::List(difference), touched);
        taking.change = change;
        self.taking = Some(taking);
        None
    }

    fn take_on(&mut self, mut taking: Box<TakeOver>, now: UnixMs) -> Option<ListChange> {
        match taking.stage {
            Stage::Judging => self.judge_some(&mut taking),
            Stage::Merging(known, joined) => self.merge_some(&mut taking, known, joined),
            Stage::Routing(from) => {
                if self.route_some(&mut taking, from) {
                    self.switch(&mut taking, now);
                    taking.stage = Stage::LettingGo;
                }
            }
            Stage::LettingGo => {
                if taking.let_go() {
                    return Some(std::mem::take(&mut taking.change));
                }
            }
        }
        self.taking = Some(taking);
        None
    }

    /// Works out what becomes of some of the symbols.
    fn judge_some(&mut self, taking: &mut TakeOver) {
        let from = taking.verdicts.len();
        let end = taking.touched.len().min(from + MARKETS_A_SLICE);
        for at in from..end {
            let verdict = self.judge(taking, taking.touched[at]);
            taking.verdicts.push(verdict);
        }
        if end < taking.touched.len() {
            return;
        }
        taking.stage = match taking.joiners.is_empty() && taking.lost == 0 {
            true => Stage::Routing(0),
            false => {
                taking.joiners = self.symbols.sorted(&mut taking.joiners.iter().copied());
                Stage::Merging(0, 0)
            }
        };
    }

    fn judge(&self, taking: &mut TakeOver, symbol: SymbolId) -> Verdict {
        let source = taking.source;
        let roster = &self.rosters[source.index()];
        let held = roster.listing(symbol);
        let (listing, tracked) = match &taking.kind {
            Kind::Memory => (held, true),
            Kind::List(difference) => {
                let listing = difference.listing(symbol, held);
                let is_routed_as_before = match (held, listing) {
                    (Some(held), Some(listing)) => held.ticker_id == listing.ticker_id,
                    (held, listing) => held.is_none() && listing.is_none(),
                };
                taking.routes_changed |= !is_routed_as_before;
                (listing, listing.is_some() || roster.names(symbol))
            }
        };
        let was_tracked = roster.tracks(symbol);
        match (was_tracked, tracked) {
            (false, true) => taking.change.added.push(symbol),
            (true, false) => taking.change.removed.push(symbol),
            _ => {}
        }
        let standing = &self.standings[symbol.index()];
        let sources = standing.with(source, tracked);
        let after = sources.as_deref().unwrap_or(&standing.sources);
        match (standing.sources.is_empty(), after.is_empty()) {
            (true, false) => taking.joiners.push(symbol),
            (false, true) => taking.lost += 1,
            _ => {}
        }
        let (mut created, mut changed) = (false, false);
        if matches!(taking.kind, Kind::List(_)) {
            let own = Some((source, listing));
            created = standing.created_at.is_none() && self.first(symbol, after, own).is_some();
            // Where the source did not track it, its sources are others now.
            changed = created
                || !was_tracked
                || self.shown(symbol, &standing.sources, None) != self.shown(symbol, after, own);
        }
        Verdict {
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
    fn merge_some(&self, taking: &mut TakeOver, mut known: usize, mut joined: usize) {
        for _ in 0..MARKETS_A_SLICE {
            let old = self.known.get(known).copied();
            let new = taking.joiners.get(joined).copied();
            let symbol = match (old, new) {
                (None, None) => return self.end_merging(taking),
                (Some(old), Some(new)) if self.name(new) < self.name(old) => new,
                (Some(old), _) => old,
                (None, Some(new)) => new,
            };
            if new == Some(symbol) {
                joined += 1;
            } else {
                known += 1;
                if taking.lost > 0 && !taking.knows(symbol, self) {
                    continue;
                }
            }
            let quote = self.symbols.name(symbol).quote();
            taking.next.by_quote.push(quote, symbol);
            taking.next.known.push(symbol);
        }
        taking.stage = Stage::Merging(known, joined);
    }

    fn end_merging(&self, taking: &mut TakeOver) {
        let by_quote = std::mem::take(&mut taking.next.by_quote);
        let is_known = |symbol: SymbolId| taking.knows(symbol, self);
        let categories = self.groups.made_of(by_quote, is_known);
        let ecosystem = self.ecosystem.made_of(&taking.next.known, is_known);
        (taking.next.categories, taking.next.ecosystem) = (categories, ecosystem);
        taking.stage = Stage::Routing(0);
    }

    /// Makes some of the way from ticker ids to symbols, where that changes and is not made yet.
    /// `true`: the last of it. Made anew as a whole: two markets may trade their ids.
    fn route_some(&self, taking: &mut TakeOver, from: usize) -> bool {
        let Kind::List(difference) = &mut taking.kind else {
            return true;
        };
        if let Some(routes) = difference.routes.take() {
            taking.next.routes = Some(routes);
            return true;
        }
        let roster = &self.rosters[taking.source.index()];
        let end = roster.places().max(difference.places());
        if !taking.routes_changed || from >= end {
            return true;
        }
        let routes = &mut taking.next.routes;
        let routes = routes.get_or_insert_with(|| Routes::with_room(taking.touched.len().max(end)));
        for at in from..end.min(from + MARKETS_A_SLICE) {
            let symbol = SymbolId(at as u32);
            let held = roster.listing(symbol);
            if let Some(listing) = difference.listing(symbol, held) {
                routes.add(listing, symbol);
            }
        }
        taking.stage = Stage::Routing(from + MARKETS_A_SLICE);
        false
    }

    /// Serves from now on what was prepared, all of it at once.
    fn switch(&mut self, taking: &mut TakeOver, now: UnixMs) {
        let mut any_changed = matches!(taking.kind, Kind::Memory);
        let roster = &mut self.rosters[taking.source.index()];
        match &mut taking.kind {
            Kind::List(difference) => roster.swap(difference, &mut taking.next.routes),
            Kind::Memory => roster.remembered.clone_from(&taking.touched),
        }
        for (symbol, verdict) in taking.touched.iter().zip(&mut taking.verdicts) {
            let standing = &mut self.standings[symbol.index()];
            if let Some(sources) = &mut verdict.sources {
                std::mem::swap(&mut standing.sources, sources);
            }
            if verdict.created {
                standing.created_at = Some(now);
            }
            if verdict.changed {
                standing.updated_at = Some(now);
            }
            any_changed |= verdict.changed;
        }
        if !taking.joiners.is_empty() || taking.lost > 0 {
            std::mem::swap(&mut self.known, &mut taking.next.known);
            std::mem::swap(&mut self.groups.served, &mut taking.next.categories);
            std::mem::swap(&mut self.ecosystem.served, &mut taking.next.ecosystem);
            let standings = &self.standings;
            let is_known = |symbol: SymbolId| {
                (standings.get(symbol.index())).is_some_and(|it| !it.sources.is_empty())
            };
            self.symbols.warn_of_clashes(is_known);
        }
        self.version += u64::from(any_changed);
        if matches!(taking.kind, Kind::List(_)) {
            self.warn_of_missing(taking.source);
        }
    }
}

impl Standing {
    /// The sources once this one tracks the symbol, or does not. `None`: they are as they were.
    fn with(&self, source: SourceId, tracked: bool) -> Option<Box<[SourceId]>> {
        match (self.sources.binary_search(&source), tracked) {
            (Err(at), true) => {
                let (before, behind) = self.sources.split_at(at);
                Some([before, &[source], behind].concat().into())
            }
            (Ok(at), false) => {
                let (before, from) = self.sources.split_at(at);
                Some([before, &from[1..]].concat().into())
            }
            _ => None,
        }
    }
}

impl TakeOver {
    fn new(source: SourceId, kind: Kind, mut touched: Vec<SymbolId>) -> Box<TakeOver> {
        touched.sort_unstable();
        touched.dedup();
        Box::new(TakeOver {
            source,
            kind,
            stage: Stage::Judging,
            verdicts: Vec::with_capacity(touched.len()),
            touched,
            change: ListChange::default(),
            joiners: Vec::new(),
            lost: 0,
            routes_changed: false,
            next: Next::default(),
            leaving: None,
        })
    }

    /// Whether a symbol will be known.
    fn knows(&self, symbol: SymbolId, catalog: &Catalog) -> bool {
        let place = self.touched.binary_search(&symbol);
        let verdict = place.ok().and_then(|at| self.verdicts.get(at));
        match verdict.and_then(|verdict| verdict.sources.as_deref()) {
            Some(sources) => !sources.is_empty(),
            None => catalog.is_known(symbol),
        }
    }

    /// Lets go of some of what was served before. `true`: nothing is left.
    fn let_go(&mut self) -> bool {
        let shorter = self.verdicts.len().saturating_sub(MARKETS_A_SLICE);
        self.verdicts.truncate(shorter);
        let Kind::List(difference) = &mut self.kind else {
            return self.verdicts.is_empty();
        };
        let shorter = difference.changes.len().saturating_sub(MARKETS_A_SLICE);
        difference.changes.truncate(shorter);
        let routes = self.next.routes.take();
        let leaving = routes.map(Routes::into_iter).or(self.leaving.take());
        let leaving = self.leaving.insert(leaving.unwrap_or_default());
        leaving.by_ref().take(MARKETS_A_SLICE).for_each(drop);
        leaving.len() == 0 && self.verdicts.is_empty() && difference.changes.is_empty()
    }
}
