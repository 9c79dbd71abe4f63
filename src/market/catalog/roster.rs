//! A roster: the markets that one source tracks, by its own list and by configuration.
//!
//! Owns the listings, the map from ticker ids to symbols, and the list that is being read. It knows
//! no other source.
//!
//! Staging: the items of a new list are compared with the current listings as they arrive. An
//! unchanged item leaves only a mark, so that reading the same list again takes no memory. The
//! listings change in [`Roster::swap`] and nowhere else.

use super::super::ids::SymbolId;
use super::super::symbol::Symbols;
use super::listing::{Difference, Listing, Routes};
use crate::config::SourceConfig;
use crate::log_targets::MARKET;
use crate::record::{MarketInfo, MarketRules};
use std::collections::BTreeMap;

/// The most characters of a skipped market's name in the log.
const EXAMPLE_CHARS: usize = 64;

/// The markets of one source.
#[derive(Debug)]
pub(super) struct Roster {
    /// The source's name, for the log.
    pub(super) id: Box<str>,
    /// The configured `symbols`, sorted: tracked whatever the list says.
    pub(super) named: Vec<SymbolId>,
    /// The symbols of an earlier run's list, sorted: tracked until the first list has come.
    pub(super) remembered: Vec<SymbolId>,
    /// The rules of an earlier run's list, until the first list has come.
    recalled: BTreeMap<SymbolId, MarketRules>,
    wanted: Wanted,
    /// By symbol. Boxed, because the symbols of one source may be few among all.
    listings: Vec<Option<Box<Listing>>>,
    routes: Routes,
    /// True if a list was ever applied.
    pub(super) has_list: bool,
    staging: Option<Staging>,
    warned: Warned,
}

/// Which active markets are tracked besides the named ones.
#[derive(Debug)]
enum Wanted {
    All,
    QuotedIn(Vec<String>),
}

/// A list that is being read.
#[derive(Debug, Default)]
pub(super) struct Staging {
    /// By symbol.
    marks: Vec<Mark>,
    changes: Vec<Option<Box<Listing>>>,
    /// From ticker ids to symbols, for the first list: built as items arrive, so that its end has
    /// less to do.
    routes: Routes,
    /// True if an item replaced an earlier one, so that `routes` are wrong.
    is_replaced: bool,
    /// Markets with a valid name, tracked or not.
    pub(super) usable: usize,
    pub(super) skipped: u32,
    pub(super) duplicates: u32,
    pub(super) over_cap: u32,
    skipped_example: Option<String>,
}

/// What the list that is being read says about a symbol so far.
#[derive(Clone, Copy, Debug, Default)]
enum Mark {
    #[default]
    Nothing,
    AsHeld,
    /// An index into `changes`.
    Changed(u32),
}

/// The warnings already logged.
#[derive(Debug, Default)]
struct Warned {
    skipped: bool,
    over_cap: bool,
    /// Sorted.
    missing: Vec<SymbolId>,
}

impl Wanted {
    fn of(source: &SourceConfig) -> Wanted {
        let all = source.quote_assets.iter().any(|asset| asset == "*");
        let nothing_said = source.symbols.is_empty() && source.quote_assets.is_empty();
        match all || nothing_said {
            true => Wanted::All,
            false => Wanted::QuotedIn(source.quote_assets.clone()),
        }
    }
}

impl Roster {
    /// The roster before the first list. `named` are the configured symbols.
    pub(super) fn new(source: &SourceConfig, mut named: Vec<SymbolId>) -> Roster {
        named.sort_unstable();
        named.dedup();
        Roster {
            id: source.id.as_str().into(),
            named,
            remembered: Vec::new(),
            recalled: BTreeMap::new(),
            wanted: Wanted::of(source),
            listings: Vec::new(),
            routes: Routes::default(),
            has_list: false,
            staging: None,
            warned: Warned::default(),
        }
    }

    /// Tracks what the configuration now says. Listings that it does not want are dropped; those that it
    /// wants besides come with the next list.
    pub(super) fn select(
        &mut self,
        source: &SourceConfig,
        named: Vec<SymbolId>,
        symbols: &Symbols,
    ) {
        let new = Roster::new(source, named);
        (self.named, self.wanted) = (new.named, new.wanted);
        self.staging = None;
        let mut listings = std::mem::take(&mut self.listings);
        let mut routes = Routes::with_room(listings.len());
        for (at, place) in listings.iter_mut().enumerate() {
            let symbol = SymbolId(at as u32);
            let is_named = self.names(symbol);
            let quote = symbols.name(symbol).quote();
            if let Some(listing) = place.take_if(|it| is_named || self.wants(quote, it.active)) {
                routes.add(&listing, symbol);
                let named = is_named;
                *place = Some(Box::new(Listing { named, ..*listing }));
            } else {
                *place = None;
            }
        }
        (self.listings, self.routes) = (listings, routes);
        let mut remembered = std::mem::take(&mut self.remembered);
        remembered.retain(|symbol| self.wants(symbols.name(*symbol).quote(), true));
        self.remembered = remembered;
    }

    /// Tracks nothing any more.
    pub(super) fn retire(&mut self) {
        *self = Roster {
            id: self.id.clone(),
            wanted: Wanted::QuotedIn(Vec::new()),
            ..Roster::new(&SourceConfig::of(""), Vec::new())
        };
    }

    pub(super) fn listing(&self, symbol: SymbolId) -> Option<&Listing> {
        self.listings.get(symbol.index())?.as_deref()
    }

    /// Sets the rules of a market from an earlier run. Returns false if a list has come since.
    pub(super) fn recall_rules(&mut self, symbol: SymbolId, rules: MarketRules) -> bool {
        if !self.has_list {
            self.recalled.insert(symbol, rules);
        }
        !self.has_list
    }

    pub(super) fn recalled_rules(&self, symbol: SymbolId) -> Option<&MarketRules> {
        self.recalled.get(&symbol)
    }

    pub(super) fn by_ticker_id(&self, ticker_id: &str) -> Option<SymbolId> {
        self.routes.0.get(ticker_id).copied()
    }

    pub(super) fn names(&self, symbol: SymbolId) -> bool {
        self.named.binary_search(&symbol).is_ok()
    }

    pub(super) fn tracks(&self, symbol: SymbolId) -> bool {
        self.listing(symbol).is_some()
            || self.names(symbol)
            || self.remembered.binary_search(&symbol).is_ok()
    }

    /// True if a market that is not named is tracked.
    pub(super) fn wants(&self, quote: &str, active: bool) -> bool {
        active
            && match &self.wanted {
                Wanted::All => true,
                Wanted::QuotedIn(assets) => assets.iter().any(|asset| asset == quote),
            }
    }

    /// Starts a new list. One that was being read is dropped.
    pub(super) fn begin(&mut self) {
        self.staging = Some(Staging::default());
    }

    pub(super) fn abandon(&mut self) {
        self.staging = None;
    }

    /// The list that is being read, started now if there is none.
    pub(super) fn staging(&mut self) -> &mut Staging {
        self.staging.get_or_insert_default()
    }

    /// Stages one tracked market. Of two with the same symbol the first wins, but an active one
    /// beats an inactive one. Returns true if it was staged.
    pub(super) fn stage(&mut self, symbol: SymbolId, listing: Listing) -> bool {
        let staging = self.staging.get_or_insert_default();
        let held = (self.listings.get(symbol.index())).and_then(|held| held.as_deref());
        if staging.marks.len() <= symbol.index() {
            staging.marks.resize(symbol.index() + 1, Mark::Nothing);
        }
        let mark = &mut staging.marks[symbol.index()];
        let first = match *mark {
            Mark::Nothing => None,
            Mark::AsHeld => held,
            Mark::Changed(at) => staging.changes[at as usize].as_deref(),
        };
        if let Some(first) = first {
            staging.duplicates += 1;
            if first.active || !listing.active {
                return false;
            }
        }
        match *mark {
            Mark::Changed(at) => {
                staging.changes[at as usize] = Some(Box::new(listing));
                staging.is_replaced = true;
            }
            _ if held == Some(&listing) => *mark = Mark::AsHeld,
            _ => {
                *mark = Mark::Changed(staging.changes.len() as u32);
                if !self.has_list {
                    staging.routes.add(&listing, symbol);
                }
                staging.changes.push(Some(Box::new(listing)));
            }
        }
        true
    }

    /// Ends the list. Returns false if it is unusable, and drops it.
    ///
    /// It stays staged until [`Roster::finish`]: a source requests its next list only when this one
    /// is applied.
    pub(super) fn end(&mut self) -> bool {
        self.staging.take_if(|staging| staging.usable == 0);
        self.staging.is_some()
    }

    /// The number of places for listings: every listed symbol is below it.
    pub(super) fn places(&self) -> usize {
        self.listings.len()
    }

    /// Takes the list that was read to its end. `None` if there is none, or no market in it is
    /// usable.
    pub(super) fn finish(&mut self) -> Option<(Staging, Difference)> {
        let mut staging = self.staging.take().filter(|staging| staging.usable > 0)?;
        self.warn_of(&staging);
        let mut said = std::mem::take(&mut staging.changes);
        let marks = staging.marks.iter().enumerate();
        let changes = marks.filter_map(|(at, mark)| match mark {
            Mark::Changed(place) => Some((SymbolId(at as u32), said[*place as usize].take())),
            _ => None,
        });
        let changes = changes.collect();
        let marked =
            |at: usize| matches!(staging.marks.get(at), Some(Mark::AsHeld | Mark::Changed(_)));
        let leavers = (0..self.listings.len())
            .filter(|at| self.listings[*at].is_some() && !marked(*at))
            .map(|at| SymbolId(at as u32))
            .collect();
        let is_made = !self.has_list && !staging.is_replaced;
        let difference = Difference {
            changes,
            leavers,
            routes: is_made.then(|| std::mem::take(&mut staging.routes)),
        };
        Some((staging, difference))
    }

    /// Swaps the current listings with those of a list. It only moves pointers.
    pub(super) fn swap(&mut self, difference: &mut Difference, routes: &mut Option<Routes>) {
        self.has_list = true;
        self.remembered = Vec::new();
        self.recalled = BTreeMap::new();
        if self.listings.len() < difference.places() {
            self.listings.resize_with(difference.places(), || None);
        }
        for (symbol, listing) in &mut difference.changes {
            std::mem::swap(&mut self.listings[symbol.index()], listing);
        }
        for symbol in &difference.leavers {
            let left = self.listings[symbol.index()].take();
            difference.changes.push((*symbol, left));
        }
        if let Some(routes) = routes {
            std::mem::swap(&mut self.routes, routes);
        }
    }

    /// The named symbols that the applied list does not have and that were not logged before.
    pub(super) fn newly_missing(&mut self) -> Vec<SymbolId> {
        let missing: Vec<SymbolId> = (self.named.iter().copied())
            .filter(|symbol| self.listing(*symbol).is_none())
            .filter(|symbol| self.warned.missing.binary_search(symbol).is_err())
            .collect();
        self.warned.missing.extend(&missing);
        self.warned.missing.sort_unstable();
        missing
    }

    fn warn_of(&mut self, staging: &Staging) {
        if let Some(example) = &staging.skipped_example
            && !std::mem::replace(&mut self.warned.skipped, true)
        {
            log::info!(
                target: MARKET,
                "markets skipped source={} count={} first={example:?} \
                 reason=\"an asset is 1 to 20 of A-Z and 0-9\"",
                self.id,
                staging.skipped
            );
        }
        if staging.over_cap > 0 && !std::mem::replace(&mut self.warned.over_cap, true) {
            log::warn!(
                target: MARKET,
                "markets not tracked source={} count={} reason=\"limits.symbols reached\"",
                self.id,
                staging.over_cap
            );
        }
    }
}

impl Staging {
    /// Counts a market whose symbol cannot be written.
    pub(super) fn skip(&mut self, info: &MarketInfo) {
        self.skipped += 1;
        if self.skipped_example.is_none() {
            let name = (info.base.chars().chain(['/'])).chain(info.quote.chars());
            self.skipped_example = Some(name.take(EXAMPLE_CHARS).collect());
        }
    }
}
