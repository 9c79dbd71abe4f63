//! What the endpoints see of the core during one call. They can change nothing through it but caches.

use crate::config::Config;
use crate::core::compressed_cache::CompressedBodies;
use crate::core::{Context, ProcessFacts, Status};
use crate::http::{Cache, Error};
use crate::interval::{Interval, Stored};
use crate::market::{Market, Quote, SourceId, SymbolId};
use crate::time::{Mono, Now, UnixMs};

/// What responses are made from.
#[derive(Clone, Copy)]
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
    pub now: Now,
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
            facts: cx.facts,
        }
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
        Cache::MaxAge(wait_ms.div_ceil(1000).max(1) as u32)
    }

    /// The time on the clock of an exchange.
    pub fn exchange_time(&self, source: SourceId) -> UnixMs {
        self.status[source].exchange_time(self.now)
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
