//! The catalog: the markets, and the sources that track them.
//!
//! The catalog owns the symbols and the market list of each source. From these follow the known symbols, the
//! categories and the markets of the ecosystem. The catalog has no prices. It requests no list: callers pass
//! in the items of a list as they arrive.
//!
//! A symbol is *known* if a source tracks it. A source tracks the symbols that its configuration
//! names, whatever their status, and the wanted active markets of its list. A market that its list halts
//! stays tracked for [`MAX_HALT`](roster::MAX_HALT). Until its first list has come, the source tracks the
//! symbols of an earlier run's list.
//!
//! Invariant: a list that is being read changes nothing that is served. One call of
//! [`Catalog::refresh_list`] applies the whole list at once. [`Catalog::version`] increases if
//! anything served changes.

mod groups;
mod refresh;
mod roster;

pub use groups::{Category, EcosystemEntry};
pub use roster::{EmptyList, ListChange, Listing};

use super::symbol::{Lookup, Spelling, SymbolName, Symbols};
use super::symbol::{SourceId, SymbolId};
use crate::config::{Config, SourceChange};
use crate::log_targets::{MARKET, quoted};
use crate::record::{MarketInfo, MarketRules};
use crate::time::{Mono, UnixMs};
use groups::EcosystemList;
use groups::Groups;
use roster::Roster;
use std::collections::BTreeSet;

/// The number of a configured symbol. Logs a warning and returns `None` if the symbol cannot have a number.
fn symbol_of(symbols: &mut Symbols, text: &str) -> Option<SymbolId> {
    let symbol = symbols.number_of(text);
    if symbol.is_none() {
        log::warn!(
            target: MARKET,
            "symbol left out symbol={} reason=\"not canonical, or limits.symbols reached\"",
            quoted(text)
        );
    }
    symbol
}

/// The markets and the sources that track them.
#[derive(Debug, Default)]
pub struct Catalog {
    symbols: Symbols,
    /// By symbol.
    tracking: Vec<Tracking>,
    /// By source.
    rosters: Vec<Roster>,
    /// Sorted by name.
    known: Vec<SymbolId>,
    groups: Groups,
    ecosystem: EcosystemList,
    version: u64,
}

/// The sources of a symbol, and when its shown data was created and last changed.
#[derive(Debug, Default)]
struct Tracking {
    /// In the order of failover, those that list it as halted last; empty if unknown.
    sources: Box<[SourceId]>,
    created_at: Option<UnixMs>,
    updated_at: Option<UnixMs>,
}

impl Catalog {
    /// The catalog before any list: it knows only what the configuration names.
    pub fn new(config: &Config) -> Catalog {
        let mut catalog = Catalog::default();
        catalog.reconfigure(config, &vec![SourceChange::Begins; config.sources.len()]);
        catalog
    }

    /// Applies a new configuration at once. `changes` has the change of each source. This visits every
    /// symbol: about a millisecond for 3,500 markets. Returns the symbols that the configuration newly names
    /// for a source that continues, and that the source did not track before.
    pub fn reconfigure(
        &mut self,
        config: &Config,
        changes: &[SourceChange],
    ) -> Vec<(SourceId, SymbolId)> {
        let mut joining = Vec::new();
        self.symbols.cap = config.limits.symbols;
        let Catalog { symbols, rosters, .. } = self;
        // Sources come first: if the limit is reached, polled symbols matter most.
        for (at, (source, change)) in config.sources.iter().zip(changes).enumerate() {
            let texts = source.symbols.iter();
            let named = || texts.filter_map(|text| symbol_of(symbols, text)).collect();
            rosters.resize_with(rosters.len().max(at + 1), Roster::default);
            match change {
                SourceChange::Begins => rosters[at] = Roster::new(source, named()),
                SourceChange::Ends => rosters[at].retire(),
                SourceChange::Settings { markets: true, .. } => {
                    let named: BTreeSet<SymbolId> = named();
                    let fresh = named.iter().filter(|symbol| !rosters[at].tracks(**symbol));
                    joining.extend(fresh.map(|symbol| (SourceId(at as u16), *symbol)));
                    rosters[at].select(source, named, symbols);
                }
                SourceChange::Settings { .. } | SourceChange::Same => {}
            }
        }
        let mut symbol_of = |text: &str| symbol_of(symbols, text);
        self.groups = Groups::new(&config.categories, &mut symbol_of);
        self.ecosystem = EcosystemList::new(config.ecosystem.markets.as_deref(), &mut symbol_of);
        for at in 0..self.symbols.len() {
            self.place(SymbolId(at as u32));
        }
        self.rebuild();
        self.version += 1;
        joining
    }

    /// Finds a symbol in any accepted spelling, already percent-decoded. Every request calls it:
    /// one hash look-up, no allocation.
    pub fn find(&self, text: &[u8]) -> Lookup {
        self.symbols.find(text, |symbol| self.is_known(symbol))
    }

    /// Like [`Catalog::find`], but also finds symbols that no source tracks any more, or not yet.
    pub fn find_any(&self, text: &[u8]) -> Lookup {
        self.symbols.find(text, |_| true)
    }

    /// The name of a symbol.
    pub fn name(&self, symbol: SymbolId) -> &SymbolName {
        self.symbols.name(symbol)
    }

    /// The number of a symbol that the history file names. Assigns a number if it has none. `None` if the
    /// name is not canonical, or if the limit for such names is reached.
    pub fn number_of(&mut self, name: &str) -> Option<SymbolId> {
        self.symbols.recall(name)
    }

    /// All known symbols, sorted by name.
    pub fn known(&self) -> &[SymbolId] {
        &self.known
    }

    /// True if any source tracks this symbol.
    pub fn is_known(&self, symbol: SymbolId) -> bool {
        !self.sources_of(symbol).is_empty()
    }

    /// The sources that track a symbol, in the order of failover; empty when it is not known. The sources
    /// that list it as halted come last: another one may trade it.
    pub fn sources_of(&self, symbol: SymbolId) -> &[SourceId] {
        (self.tracking.get(symbol.index())).map_or(&[], |tracking| &tracking.sources)
    }

    /// True if the configuration names this symbol for that source.
    pub fn is_named(&self, source: SourceId, symbol: SymbolId) -> bool {
        self.rosters[source.index()].names(symbol)
    }

    /// True if the first list of a source is still to come and may have this symbol.
    pub fn may_track(&self, source: SourceId, symbol: SymbolId) -> bool {
        let roster = &self.rosters[source.index()];
        !roster.has_list && roster.wants(self.name(symbol).quote())
    }

    /// The number of symbols that have an id. Symbols that no source tracks any more count too.
    pub fn symbols_ever(&self) -> usize {
        self.symbols.len()
    }

    /// The number of tracked symbols that a source lists.
    pub fn listed_by(&self, source: SourceId) -> usize {
        self.rosters[source.index()].listings.len()
    }

    /// The symbol of a ticker, if the source tracks it. It is called for every ticker.
    pub fn by_ticker_id(&self, source: SourceId, ticker_id: &str) -> Option<SymbolId> {
        self.rosters[source.index()].routes.get(ticker_id).copied()
    }

    /// What a source lists about a symbol. `None` for a symbol that only the configuration names.
    pub fn listing(&self, source: SourceId, symbol: SymbolId) -> Option<&Listing> {
        self.rosters.get(source.index())?.listing(symbol)
    }

    /// True if a known market trades now, at any source that lists it. A market that no source lists is
    /// active while the list of one of its sources is still to come.
    pub fn active(&self, symbol: SymbolId) -> bool {
        let sources = self.sources_of(symbol);
        self.first_listing(symbol).map_or_else(
            || sources.iter().any(|source| !self.has_list(*source)),
            |listing| listing.active,
        )
    }

    /// When a symbol was first tracked by a market list.
    pub fn created_at(&self, symbol: SymbolId) -> Option<UnixMs> {
        self.tracking.get(symbol.index())?.created_at
    }

    /// When a list last changed what is served about a symbol.
    pub fn updated_at(&self, symbol: SymbolId) -> Option<UnixMs> {
        self.tracking.get(symbol.index())?.updated_at
    }

    /// The categories in the order of their list.
    pub fn categories(&self) -> &[Category] {
        &self.groups.served
    }

    /// The category with this id.
    pub fn category(&self, id: &[u8]) -> Option<&Category> {
        (self.groups.served.iter()).find(|category| category.id.as_bytes() == id)
    }

    /// The categories that a symbol is in.
    pub fn categories_of(&self, symbol: SymbolId) -> impl Iterator<Item = &Category> {
        (self.groups.served.iter()).filter(move |category| category.symbols.contains(&symbol))
    }

    /// Sets the rules that a source listed in an earlier run. They are served until its first list
    /// has come.
    pub fn recall_rules(&mut self, source: SourceId, symbol: SymbolId, rules: MarketRules) {
        let roster = &mut self.rosters[source.index()];
        if !roster.has_list {
            roster.recalled.insert(symbol, rules);
            self.version += 1;
        }
    }

    /// The known markets of the ecosystem in the order of their list, inactive ones included.
    pub fn ecosystem(&self) -> &[SymbolId] {
        &self.ecosystem.served
    }

    /// What the ecosystem shows about a symbol. `None` if the symbol is not known, or does not
    /// belong to it.
    pub fn ecosystem_entry(&self, symbol: SymbolId) -> Option<EcosystemEntry<'_>> {
        if !self.is_known(symbol) {
            return None;
        }
        let rules = self.rules(symbol, self.sources_of(symbol));
        self.ecosystem.entry(symbol, self.name(symbol), rules, self.active(symbol))
    }

    /// The rules of a market at the first of these sources that lists it, or that listed it before the start.
    pub fn rules(&self, symbol: SymbolId, sources: &[SourceId]) -> Option<&MarketRules> {
        let listed = |it: &SourceId| self.listing(*it, symbol).map(|listing| &listing.rules);
        let recalled = |it: &SourceId| self.rosters[it.index()].recalled.get(&symbol);
        sources.iter().find_map(listed).or_else(|| sources.iter().find_map(recalled))
    }

    /// The ecosystem's market with this id, or else with this symbol in any accepted spelling.
    pub fn ecosystem_market(&self, text: &[u8]) -> Option<SymbolId> {
        if let Some(symbol) = self.ecosystem.by_id(text)
            && self.is_known(symbol)
        {
            return Some(symbol);
        }
        match self.find(text) {
            Lookup::Known(symbol) if self.ecosystem.contains(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// Increases whenever anything served changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// True if no market of a source trades now. False if it lists none of its named symbols.
    pub fn trades_nothing(&self, source: SourceId) -> bool {
        let Roster { wanted, listings, .. } = &self.rosters[source.index()];
        let wants_others = wanted.as_ref().is_none_or(|assets| !assets.is_empty());
        (wants_others || !listings.is_empty()) && listings.values().all(|it| !it.active)
    }

    /// True if a list of this source was ever applied.
    pub fn has_list(&self, source: SourceId) -> bool {
        self.rosters[source.index()].has_list
    }

    /// Drops the list that is being read, if any. The next item begins another one.
    pub fn drop_list(&mut self, source: SourceId) {
        self.rosters[source.index()].staging = None;
    }

    /// Stages the current list, as if it had been read again.
    pub fn list_again(&mut self, source: SourceId) {
        self.drop_list(source);
        let roster = &mut self.rosters[source.index()];
        let said = roster.listings.keys().map(|symbol| (*symbol, None)).collect();
        roster.staging().said = said;
    }

    /// Stages one market of the list that is being read.
    pub fn list(&mut self, source: SourceId, info: MarketInfo) {
        let may_be_new = info.active;
        self.stage(source, info, may_be_new);
    }

    /// Stages one market. A market that is not tracked is taken only if it `may_be_new`.
    pub fn stage(&mut self, source: SourceId, info: MarketInfo, may_be_new: bool) {
        let roster = &mut self.rosters[source.index()];
        let Some(spelling) = Spelling::canonical(&info.base, &info.quote) else {
            return roster.staging().skip(&info);
        };
        roster.staging().usable += 1;
        let met = self.symbols.get(&spelling);
        let is_tracked = met.is_some_and(|symbol| roster.tracks(symbol));
        if is_tracked || may_be_new && roster.wants(&info.quote) {
            // If the list is dropped, only the numbers of its symbols remain.
            match self.symbols.intern(&spelling) {
                Some(symbol) => roster.stage(symbol, Listing::new(info)),
                None => roster.staging().change.over_cap += 1,
            }
        }
    }

    /// Ends the list that is being read. Drops it if no market in it is usable. Otherwise it stays
    /// staged until [`Catalog::refresh_list`] applies it; the source requests no other list before.
    pub fn end_list(&mut self, source: SourceId) -> Result<(), EmptyList> {
        let staging = &mut self.rosters[source.index()].staging;
        staging.take_if(|staging| staging.usable == 0);
        staging.as_ref().map(|_| ()).ok_or(EmptyList)
    }

    /// Keeps the markets that the staged list may lack by mistake, until the next list lacks them too.
    /// `is_quoted` returns true for a symbol whose tickers still arrive. Drops the markets that are halted
    /// for too long.
    pub fn doubt_list(&mut self, id: SourceId, now: Mono, is_quoted: impl Fn(SymbolId) -> bool) {
        self.rosters[id.index()].doubt(is_quoted);
        self.rosters[id.index()].drop_halted(now);
    }

    /// How many markets were kept that the last list lacks. Each count is returned once.
    pub fn take_doubted(&mut self, source: SourceId) -> usize {
        std::mem::take(&mut self.rosters[source.index()].newly_doubted)
    }

    /// The id of a source in the configuration, for the log.
    pub fn id_of(&self, source: SourceId) -> &str {
        &self.rosters[source.index()].id
    }

    fn first_listing(&self, symbol: SymbolId) -> Option<&Listing> {
        (self.sources_of(symbol).iter()).find_map(|source| self.listing(*source, symbol))
    }

    /// Computes which sources track a symbol.
    fn place(&mut self, symbol: SymbolId) {
        let tracking = (self.rosters.iter().enumerate())
            .filter(|(_, roster)| roster.tracks(symbol))
            .map(|(at, _)| SourceId(at as u16));
        let mut sources: Vec<SourceId> = tracking.collect();
        sources.sort_by_key(|it| self.listing(*it, symbol).is_some_and(|it| !it.active));
        self.tracking.resize_with(self.symbols.len(), Tracking::default);
        self.tracking[symbol.index()].sources = sources.into();
    }

    /// Computes everything that depends on the set of known symbols.
    fn rebuild(&mut self) {
        let (tracking, symbols) = (&self.tracking, &self.symbols);
        let is_known = |symbol: SymbolId| {
            tracking.get(symbol.index()).is_some_and(|tracking| !tracking.sources.is_empty())
        };
        let known = (0..symbols.len()).map(|at| SymbolId(at as u32));
        self.known = known.filter(|symbol| is_known(*symbol)).collect();
        self.known.sort_by_cached_key(|symbol| symbols.name(*symbol).sort_key());
        self.groups.serve(&self.known, symbols, is_known);
        self.ecosystem.serve(&self.known, is_known);
        self.symbols.warn_of_clashes(is_known);
    }
}

#[cfg(test)]
mod tests;
