//! A roster: the markets that one source tracks, by its own list and by configuration.
//!
//! Owns the listings, the map from ticker ids to symbols, and the list that is being read. It knows
//! no other source.
//!
//! Staging: the items of a new list are compared with the current listings as they arrive. An
//! unchanged item leaves only a mark, so that reading the same list again takes no memory. The
//! listings change in [`Roster::replace`] and when the configuration does.

use super::super::ids::SymbolId;
use super::super::symbol::{NameMap, Symbols};
use super::listing::Listing;
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
    /// From ticker ids to symbols.
    routes: NameMap<Box<str>, SymbolId>,
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
    said: Vec<Said>,
    /// Markets with a valid name, tracked or not.
    pub(super) usable: usize,
    pub(super) skipped: u32,
    pub(super) duplicates: u32,
    pub(super) over_cap: u32,
    skipped_example: Option<String>,
}

/// What the list that is being read says about a symbol so far.
#[derive(Debug, Default)]
enum Said {
    #[default]
    Nothing,
    AsHeld,
    New(Box<Listing>),
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
            routes: NameMap::default(),
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
        for at in 0..self.listings.len() {
            let symbol = SymbolId(at as u32);
            let (named, quote) = (self.names(symbol), symbols.name(symbol).quote());
            let mut listing =
                self.listings[at].take().filter(|it| named || self.wants(quote, it.active));
            if let Some(listing) = &mut listing {
                listing.named = named;
            }
            self.listings[at] = listing;
        }
        self.route();
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
        self.routes.get(ticker_id).copied()
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
        if staging.said.len() <= symbol.index() {
            staging.said.resize_with(symbol.index() + 1, Said::default);
        }
        let said = &mut staging.said[symbol.index()];
        let first = match said {
            Said::Nothing => None,
            Said::AsHeld => held,
            Said::New(listing) => Some(&**listing),
        };
        if let Some(first) = first {
            staging.duplicates += 1;
            if first.active || !listing.active {
                return false;
            }
        }
        *said = match held == Some(&listing) {
            true => Said::AsHeld,
            false => Said::New(Box::new(listing)),
        };
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

    /// Takes the list that was read to its end. `None` if there is none, or no market in it is
    /// usable.
    pub(super) fn finish(&mut self) -> Option<Staging> {
        let staging = self.staging.take().filter(|staging| staging.usable > 0)?;
        self.warn_of(&staging);
        Some(staging)
    }

    /// The symbols about which something changes with this list; sorted.
    pub(super) fn touched_by(&self, staging: &Staging) -> Vec<SymbolId> {
        let symbols =
            (0..self.listings.len().max(staging.said.len())).map(|at| SymbolId(at as u32));
        let mut touched: Vec<SymbolId> = symbols
            .filter(|symbol| match staging.said.get(symbol.index()) {
                Some(Said::AsHeld) => false,
                Some(Said::New(_)) => true,
                Some(Said::Nothing) | None => self.listing(*symbol).is_some(),
            })
            .collect();
        if !self.has_list {
            // Named symbols that the first list does not have turn inactive.
            touched.extend(self.named.iter().chain(&self.remembered));
            touched.sort_unstable();
            touched.dedup();
        }
        touched
    }

    /// Tracks the markets of this list in place of those before.
    pub(super) fn replace(&mut self, mut staging: Staging) {
        self.has_list = true;
        self.remembered = Vec::new();
        self.recalled = BTreeMap::new();
        let places = self.listings.len().max(staging.said.len());
        self.listings.resize_with(places, || None);
        staging.said.resize_with(places, Said::default);
        for (listing, said) in self.listings.iter_mut().zip(staging.said) {
            match said {
                Said::Nothing => *listing = None,
                Said::AsHeld => {}
                Said::New(new) => *listing = Some(new),
            }
        }
        self.route();
    }

    /// Tracks these symbols until the first list has come.
    pub(super) fn remember(&mut self, symbols: &[SymbolId]) {
        self.remembered.extend(symbols);
        self.remembered.sort_unstable();
        self.remembered.dedup();
    }

    /// Maps the ticker ids to their symbols. It is done for all of them, because two markets may swap
    /// their ids. If a faulty list has one ticker id for two markets, the lower symbol gets it.
    fn route(&mut self) {
        let listed = (self.listings.iter().enumerate()).rev();
        let listed = listed.filter_map(|(at, it)| Some((SymbolId(at as u32), it.as_deref()?)));
        self.routes = listed.map(|(symbol, it)| (it.ticker_id.clone(), symbol)).collect();
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
