//! What the endpoints see of the core during one call. They can change nothing through it but caches.

use crate::config::Config;
use crate::core::compressed_cache::CompressedBodies;
use crate::core::{Context, ProcessFacts, Status};
use crate::http::{Cache, Error};
use crate::interval::{Interval, Stored};
use crate::market::{Market, Quote, SourceId, SymbolId};
use crate::time::{Mono, Now, UnixMs};
use std::cell::Cell;
use std::time::Duration;

/// What responses are made from.
pub struct View<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Quotes, catalog and charts.
    pub market: &'a Market,
    /// Counters and the state of each source.
    pub status: &'a Status,
    /// Compressed bodies.
    pub compressed: &'a CompressedBodies,
    /// Distinguishes the versions of this run from those of another.
    pub boot: u64,
    /// The time of this turn.
    now: Now,
    /// Until when what was told of the time stays as it is.
    holds_until: Cell<Mono>,
    /// How to ask the system about the process.
    pub facts: fn() -> ProcessFacts,
}

impl<'a> View<'a> {
    /// A view of the core.
    #[inline]
    pub fn new(cx: &'a Context) -> View<'a> {
        View {
            config: &cx.config,
            market: &cx.market,
            status: &cx.stats,
            compressed: &cx.compressed,
            boot: cx.boot,
            now: cx.now,
            holds_until: Cell::new(Mono::NEVER),
            facts: cx.facts,
        }
    }

    /// The time of this turn. What is made of it is of this moment alone.
    pub fn now(&self) -> Now {
        self.holds_until.set(Mono(0));
        self.now
    }

    /// Until when a response that was made from this view would be made again as it is, unless the state of
    /// the core changes before (`Context::state`).
    pub fn holds_until(&self) -> Mono {
        self.holds_until.get()
    }

    fn note(&self, until: Mono) {
        self.holds_until.set(self.holds_until.get().min(until));
    }

    /// How long a response with this source's quotes may be cached: until its next poll, in whole
    /// seconds, at least one.
    pub fn until_poll(&self, source: SourceId) -> Cache {
        self.until(self.status[source].next_poll)
    }

    /// Like [`View::until_poll`], for a response that any source may change.
    pub fn until_any_poll(&self) -> Cache {
        let next = self.status.running().map(|(_, source)| source.next_poll);
        self.until(next.min().unwrap_or_default())
    }

    /// Like [`View::until_any_poll`], but a stale response is asked for again at once.
    pub fn until_any_poll_unless(&self, is_stale: bool) -> Cache {
        if is_stale { Cache::NoCache } else { self.until_any_poll() }
    }

    fn until(&self, next: Mono) -> Cache {
        let wait_ms = next.0.saturating_sub(self.now.mono.0) / 1000;
        let seconds = wait_ms.div_ceil(1000).max(1);
        if seconds > 1 {
            self.note(Mono(next.0 - (seconds - 1) * 1_000_000 - 999));
        }
        Cache::MaxAge(seconds as u32)
    }

    /// The latest time that may be on the clock of an exchange: while that is in doubt, this machine's counts
    /// too.
    pub fn latest_time(&self, source: SourceId) -> UnixMs {
        let time = self.exchange_time(source);
        let doubt = self.status[source].clock_doubt.as_ref();
        doubt.map_or(time, |_| time.max(self.now().unix))
    }

    /// The time on the clock of an exchange, of which only the minute may matter.
    pub fn exchange_time(&self, source: SourceId) -> UnixMs {
        let status = &self.status[source];
        let time = status.exchange_time(self.now);
        // The time is cut to milliseconds: the minute may end up to one earlier.
        let left_ms = Stored::M1.open_of(Stored::M1.slot_of(time) + 1) - time - 1;
        let left_us = 1000 * left_ms as u64 / u64::from(status.clock_speed()).max(1);
        self.note(self.now.mono + Duration::from_micros(left_us));
        time
    }

    /// The intervals that can be served: one of these sources has the stored candles that they are made of.
    pub fn intervals(&self, sources: &[SourceId]) -> impl Iterator<Item = Interval> {
        let has = |base| sources.iter().any(|source| self.has_interval(*source, base));
        Interval::ALL.into_iter().filter(move |it| has(it.base()))
    }

    /// True if the exchange of a source has candles of this interval.
    pub fn has_interval(&self, source: SourceId, interval: Stored) -> bool {
        self.status[source].intervals[interval as usize]
    }

    /// The id of a source.
    pub fn id_of(&self, source: SourceId) -> &'a str {
        &self.config.sources[source.index()].id
    }

    /// The source with this id.
    pub fn source(&self, id: &[u8]) -> Option<SourceId> {
        let found = self.status.running().find(|(_, source)| source.id.as_bytes() == id);
        found.map(|(id, _)| id)
    }

    /// The sources that answer for a symbol: the one that a request names, or all in the order of failover.
    pub fn sources_for<'s>(
        &'s self,
        symbol: SymbolId,
        source: &'s Option<SourceId>,
    ) -> &'s [SourceId] {
        match source.as_slice() {
            [] => self.market.catalog.sources_of(symbol),
            named => named,
        }
    }

    /// The quote that is served for a symbol: of this source, or of the first source with a fresh one in the
    /// order of failover.
    pub fn served_quote(&self, symbol: SymbolId, source: Option<SourceId>) -> Option<&'a Quote> {
        let sources = self.market.catalog.sources_of(symbol);
        match source {
            // A source that no longer lists the market may still have its quote for a while.
            Some(source) if !sources.contains(&source) => None,
            Some(source) => self.market.quotes.of(source, symbol),
            None => self.market.quotes.best(sources, symbol),
        }
    }

    /// Refuses a source that does not track the symbol, unless its market list has not come yet.
    pub fn check_tracked(&self, symbol: SymbolId, source: Option<SourceId>) -> Result<(), Error> {
        let catalog = &self.market.catalog;
        let tracks = |source: SourceId| {
            catalog.sources_of(symbol).contains(&source) || catalog.may_track(source, symbol)
        };
        let Some(source) = source.filter(|source| !tracks(*source)) else {
            return Ok(());
        };
        let id = self.id_of(source);
        let name = catalog.name(symbol).as_str();
        let message = format!("Source \"{id}\" does not track \"{name}\".");
        Err(Error::new(404, "symbol_not_found", message).about("source"))
    }
}
