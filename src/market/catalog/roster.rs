//! A roster: the markets that one source tracks. The source's market list and the configuration name them.
//!
//! [`Roster`] owns the listings, the map from ticker ids to symbols, and the list that is being read. It does
//! not know other sources.
//!
//! Staging: the items of a new list are compared with the current listings as they arrive. An
//! unchanged item leaves only a mark, so that reading the same list again takes little memory. The
//! listings change in [`Roster::replace`] and when the configuration does.

use super::super::symbol::{NameMap, SymbolId, Symbols};
use crate::config::SourceConfig;
use crate::log_targets::{MARKET, quoted};
use crate::record::{MarketInfo, MarketRules};
use crate::time::Mono;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A list may have been cut if it lacks more than one in this many tracked markets.
const MANY: usize = 10;

/// How long a halted market stays tracked: longer than a weekend with holidays. An exchange may list a market
/// for years after its last trade. A restart begins this time anew.
pub(super) const MAX_HALT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most characters of a skipped market's name in the log.
const EXAMPLE_CHARS: usize = 64;

/// What the list of a source says about one market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name of the market in tickers.
    pub ticker_id: Box<str>,
    pub(super) candle_id: Option<Box<str>>,
    /// True if it trades now.
    pub active: bool,
    /// Steps, limits and fees.
    pub rules: MarketRules,
}

/// What a list changed for its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListChange {
    /// Tracked from now on.
    pub added: Vec<SymbolId>,
    /// No longer tracked: the caller drops the source's quotes and candles of these symbols.
    pub removed: Vec<SymbolId>,
    /// The source has another place in the order of failover: its market was halted, or trades again.
    pub moved: Vec<SymbolId>,
    /// Markets whose base or quote asset is not valid in a symbol.
    pub skipped: u32,
    /// Markets left out because of `limits.symbols`.
    pub over_cap: u32,
}

/// A list without any usable market: an error of the exchange, so it changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyList;

impl Listing {
    /// The name of the market in requests for candles.
    pub fn candle_id(&self) -> &str {
        self.candle_id.as_deref().unwrap_or(&self.ticker_id)
    }

    pub(super) fn new(info: MarketInfo) -> Listing {
        Listing {
            ticker_id: info.ticker_id,
            candle_id: info.candle_id,
            active: info.active,
            rules: info.rules,
        }
    }
}

/// The markets of one source.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// The source's name, for the log.
    pub(super) id: Box<str>,
    /// The configured `symbols`: tracked whatever the list says.
    pub(super) named: BTreeSet<SymbolId>,
    /// The symbols of an earlier run's list: tracked until the first list has come.
    pub(super) remembered: BTreeSet<SymbolId>,
    /// The rules of an earlier run's list, until the first list has come.
    pub(super) recalled: BTreeMap<SymbolId, MarketRules>,
    /// Markets quoted in these assets are tracked besides the named ones, once a list has them as active.
    /// `None`: all markets.
    pub(super) wanted: Option<Vec<String>>,
    pub(super) listings: BTreeMap<SymbolId, Box<Listing>>,
    /// From ticker ids to symbols.
    pub(super) routes: NameMap<Box<str>, SymbolId>,
    /// True if a list was ever applied.
    pub(super) has_list: bool,
    pub(super) staging: Option<Staging>,
    /// When a list that this node read from the exchange first had a market as halted. Every market that such
    /// a list has as halted is here; each list drops the others.
    halted_since: BTreeMap<SymbolId, Mono>,
    /// The markets that the last list lacked, and that are tracked nevertheless.
    doubted: BTreeSet<SymbolId>,
    /// How many of the doubted markets are not reported yet.
    pub(super) newly_doubted: usize,
    warned: Warned,
}

/// A list that is being read.
#[derive(Debug, Default)]
pub(super) struct Staging {
    /// What the list says of each tracked market in it. `None`: the same as the list before.
    pub(super) said: BTreeMap<SymbolId, Option<Box<Listing>>>,
    /// Markets with a valid name, tracked or not.
    pub(super) usable: usize,
    /// What the list changes. Until it is applied, only `skipped` and `over_cap` are known.
    pub(super) change: ListChange,
    skipped_example: Option<String>,
}

/// The warnings already logged.
#[derive(Debug, Default)]
struct Warned {
    skipped: bool,
    over_cap: bool,
    missing: BTreeSet<SymbolId>,
}

impl Roster {
    /// The roster before the first list. `named` are the configured symbols.
    pub(super) fn new(source: &SourceConfig, named: BTreeSet<SymbolId>) -> Roster {
        let assets = &source.quote_assets;
        let wants_all = assets.iter().any(|asset| asset == "*")
            || source.symbols.is_empty() && assets.is_empty();
        Roster {
            id: source.id.as_str().into(),
            named,
            wanted: (!wants_all).then(|| assets.clone()),
            ..Roster::default()
        }
    }

    /// Applies a new configuration. Listings that the configuration does not want are dropped. Markets that
    /// it newly wants come with the next list.
    pub(super) fn select(
        &mut self,
        source: &SourceConfig,
        named: BTreeSet<SymbolId>,
        symbols: &Symbols,
    ) {
        let new = Roster::new(source, named);
        let wants = |symbol: &SymbolId| new.wants(symbols.name(*symbol).quote());
        self.listings.retain(|symbol, _| new.names(*symbol) || wants(symbol));
        self.remembered.retain(wants);
        (self.named, self.wanted, self.staging) = (new.named, new.wanted, None);
        self.route();
    }

    /// Stops tracking all markets.
    pub(super) fn retire(&mut self) {
        let id = std::mem::take(&mut self.id);
        *self = Roster { id, wanted: Some(Vec::new()), ..Roster::default() };
    }

    pub(super) fn listing(&self, symbol: SymbolId) -> Option<&Listing> {
        self.listings.get(&symbol).map(|listing| &**listing)
    }

    pub(super) fn names(&self, symbol: SymbolId) -> bool {
        self.named.contains(&symbol)
    }

    pub(super) fn tracks(&self, symbol: SymbolId) -> bool {
        self.listing(symbol).is_some() || self.names(symbol) || self.remembered.contains(&symbol)
    }

    /// True if an active market with this quote asset is tracked without being named.
    pub(super) fn wants(&self, quote: &str) -> bool {
        let is_wanted = |assets: &Vec<String>| assets.iter().any(|asset| asset == quote);
        self.wanted.as_ref().is_none_or(is_wanted)
    }

    /// The list that is being read, started now if there is none.
    pub(super) fn staging(&mut self) -> &mut Staging {
        self.staging.get_or_insert_default()
    }

    /// Stages one tracked market. If two markets have the same symbol, the first one wins, but an
    /// active one beats an inactive one.
    pub(super) fn stage(&mut self, symbol: SymbolId, listing: Listing) {
        let before = self.listings.get(&symbol).map(|before| &**before);
        let said = &mut self.staging.get_or_insert_default().said;
        let first = said.get(&symbol).and_then(|said| said.as_deref().or(before));
        if first.is_none_or(|first| !first.active && listing.active) {
            said.insert(symbol, (before != Some(&listing)).then(|| Box::new(listing)));
        }
    }

    /// Tracks these symbols of an earlier run's list. Symbols that this run's list already has are taken out
    /// of `symbols`: their listings are newer.
    pub(super) fn remember(&mut self, symbols: &mut Vec<SymbolId>) {
        symbols.retain(|symbol| self.listing(*symbol).is_none());
        if self.has_list {
            self.doubted.extend(&*symbols);
            self.newly_doubted += symbols.len();
        }
        self.remembered.extend(&*symbols);
    }

    /// Keeps markets that the list may lack by mistake: markets whose tickers still arrive, and markets of an
    /// earlier run, whose tickers may arrive. If the list lacks many markets, all of them are kept. A market
    /// that the previous list lacked too is not kept.
    pub(super) fn doubt(&mut self, is_quoted: impl Fn(SymbolId) -> bool) {
        let Some(staging) = &mut self.staging else {
            return;
        };
        let mut tracked: BTreeSet<_> = self.listings.keys().copied().collect();
        tracked.extend(&self.remembered);
        let lacking = || tracked.iter().copied().filter(|it| !staging.said.contains_key(it));
        let are_many = lacking().count() > tracked.len() / MANY;
        let is_new = |it: &SymbolId| !self.doubted.contains(it);
        let may_be_quoted = |it: SymbolId| self.remembered.contains(&it) || is_quoted(it);
        let doubted = lacking().filter(|it| is_new(it) && (are_many || may_be_quoted(*it)));
        self.doubted = doubted.collect();
        for symbol in self.listings.keys().filter(|it| self.doubted.contains(it)) {
            staging.said.insert(*symbol, None);
        }
        self.newly_doubted = self.doubted.len();
    }

    /// Takes the markets out of the list that are halted for too long. Named markets stay.
    pub(super) fn drop_halted(&mut self, now: Mono) {
        let Some(staging) = &mut self.staging else {
            return;
        };
        staging.said.retain(|symbol, said| {
            let listing = said.as_ref().or_else(|| self.listings.get(symbol));
            listing.is_none_or(|it| it.active)
                || now.since(*self.halted_since.entry(*symbol).or_insert(now)) < MAX_HALT
                || self.named.contains(symbol)
        });
    }

    /// The symbols that this list may change.
    pub(super) fn touched_by(&self, staging: &Staging) -> BTreeSet<SymbolId> {
        let gone = self.listings.keys().copied().filter(|it| !staging.said.contains_key(it));
        let new = staging.said.iter().filter(|(_, new)| new.is_some()).map(|(symbol, _)| *symbol);
        let mut touched: BTreeSet<SymbolId> = gone.chain(new).collect();
        touched.extend(&self.remembered);
        if !self.has_list {
            // Named symbols that the first list lacks become inactive.
            touched.extend(&self.named);
        }
        touched
    }

    /// Tracks the markets of this list instead of the previous list's.
    pub(super) fn replace(&mut self, staging: Staging) {
        self.has_list = true;
        self.remembered.retain(|symbol| self.doubted.contains(symbol));
        self.recalled.clear();
        self.listings.retain(|symbol, _| staging.said.contains_key(symbol));
        let new = staging.said.into_iter().filter_map(|(symbol, it)| Some((symbol, it?)));
        self.listings.append(&mut new.collect());
        let is_halted = |symbol: &SymbolId| self.listings.get(symbol).is_some_and(|it| !it.active);
        self.halted_since.retain(|symbol, _| is_halted(symbol));
        self.route();
    }

    /// Maps all ticker ids to their symbols again, because two markets may swap their ids. If a faulty list
    /// has one ticker id for two markets, the lower symbol gets it.
    fn route(&mut self) {
        let routes = self.listings.iter().rev();
        self.routes = routes.map(|(symbol, it)| (it.ticker_id.clone(), *symbol)).collect();
    }

    /// The named symbols that the applied list lacks, and that were not logged before.
    pub(super) fn newly_missing(&mut self) -> Vec<SymbolId> {
        let named = self.named.iter().copied();
        let mut missing: Vec<_> = named.filter(|it| self.listing(*it).is_none()).collect();
        missing.retain(|symbol| self.warned.missing.insert(*symbol));
        missing
    }

    /// Logs once that markets of a list were left out.
    pub(super) fn warn_of(&mut self, staging: &Staging) {
        if let Some(example) = &staging.skipped_example
            && !std::mem::replace(&mut self.warned.skipped, true)
        {
            log::info!(
                target: MARKET,
                "markets skipped source={} count={} first={} \
                 reason=\"an asset is 1 to 20 of A-Z and 0-9\"",
                self.id,
                staging.change.skipped,
                quoted(example)
            );
        }
        if staging.change.over_cap > 0 && !std::mem::replace(&mut self.warned.over_cap, true) {
            log::warn!(
                target: MARKET,
                "markets not tracked source={} count={} reason=\"limits.symbols reached\"",
                self.id,
                staging.change.over_cap
            );
        }
    }
}

impl Staging {
    /// Counts a market whose base or quote asset is not valid in a symbol.
    pub(super) fn skip(&mut self, info: &MarketInfo) {
        self.change.skipped += 1;
        if self.skipped_example.is_none() {
            let name = (info.base.chars().chain(['/'])).chain(info.quote.chars());
            self.skipped_example = Some(name.take(EXAMPLE_CHARS).collect());
        }
    }
}
