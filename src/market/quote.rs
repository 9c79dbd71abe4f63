//! The latest quote of every source and symbol.
//!
//! Owns the figures, the times at which they were received, whether they are stale, and the
//! rendered body that a reader left with them.
//!
//! It never asks for the time and never waits: staleness, the one member that time alone changes,
//! is a flag that [`Quotes::flip`] turns when the moment named by [`Quotes::next_flip`] has come.
//! It does not know which symbols are tracked.
//!
//! A quote is fresh, or stale for one of three reasons: its age has reached the source's
//! `stale_after`; the source is *frozen* (its polls succeed, yet no figure of any of its quotes
//! has changed for `frozen_after`); it was restored from disk and not received since.
//!
//! Invariant: every version is given to one state of one quote only, over all sources, so that a
//! version alone names what was shown when another source takes over.

mod settle;

pub use settle::QuoteReject;

use super::{SourceId, SymbolId};
use crate::config::SourceConfig;
use crate::record::Ticker;
use crate::time::{Mono, Now, UnixMs};
use settle::settle;
use std::cell::OnceCell;
use std::time::Duration;

/// Places of quotes that one call of [`Quotes::flip`] looks at, over all sources: some 50
/// microseconds where all of them turn.
const PLACES_A_SLICE: usize = 1024;

/// The latest figures of one symbol at one source.
#[derive(Debug)]
pub struct Quote {
    /// What is quoted.
    pub symbol: SymbolId,
    /// Who quotes it.
    pub source: SourceId,
    /// The figures, settled: zero prices are `None`, and what follows exactly is computed.
    pub ticker: Ticker,
    /// When the last successful poll that contained this quote was received.
    pub received_at: UnixMs,
    /// Counts up whenever anything here changes; no two quotes ever share one.
    pub version: u64,
    received: Mono,
    stale: bool,
    restored: bool,
    rendered: OnceCell<Box<[u8]>>,
}

/// See the module's page.
#[derive(Debug)]
pub struct Quotes {
    feeds: Vec<Feed>,
    /// By symbol: how many sources have a quote of it.
    holders: Vec<u16>,
    totals: Totals,
}

/// What an item of a poll did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Whether any figure differs from what was held. The exchange's own timestamp is no figure:
    /// many exchanges stamp the moment of the answer, also when nothing moves any more.
    pub changed: bool,
}

/// The quotes and what became of the items, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Quotes held, over all sources.
    pub cached: usize,
    /// Those that are not stale.
    pub fresh: usize,
    /// Those that are.
    pub stale: usize,
    /// Symbols with a quote of at least one source.
    pub symbols: usize,
    /// Items applied since the start.
    pub collected: u64,
    /// Items refused since the start.
    pub rejected: u64,
}

/// The quotes of one source.
#[derive(Debug)]
struct Feed {
    /// By symbol. Boxed, because the symbols of one source may be few among all.
    quotes: Vec<Option<Box<Quote>>>,
    stale_after: Duration,
    frozen_after: Duration,
    /// No fresh quote becomes stale before this. `None`: none is fresh. While quotes are looked at,
    /// this is of those that have been.
    next_stale: Option<Mono>,
    /// While they are: the place at which that goes on, and when it began.
    looking: Option<(usize, Mono)>,
    last_change: Option<Mono>,
    frozen: bool,
    polled: bool,
}

#[derive(Debug, Default)]
struct Totals {
    version: u64,
    turned: u64,
    cached: usize,
    stale: usize,
    symbols: usize,
    collected: u64,
    rejected: u64,
}

impl Quotes {
    /// No quotes yet.
    pub fn new(sources: &[SourceConfig]) -> Quotes {
        Quotes {
            feeds: sources.iter().map(Feed::new).collect(),
            holders: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Takes in one item of a poll that was received at `now`.
    pub fn apply(
        &mut self,
        source: SourceId,
        symbol: SymbolId,
        mut ticker: Ticker,
        now: Now,
    ) -> Result<Applied, QuoteReject> {
        if let Err(reject) = settle(&mut ticker) {
            self.totals.rejected += 1;
            return Err(reject);
        }
        self.totals.collected += 1;
        let feed = &mut self.feeds[source.index()];
        let changed = match feed.quotes.get_mut(symbol.index()) {
            Some(Some(quote)) => quote.receive(ticker, now, feed.frozen, &mut self.totals),
            _ => {
                self.insert(Quote::new(source, symbol, ticker, now));
                true
            }
        };
        self.feeds[source.index()].received(changed, now.mono, &mut self.totals);
        Ok(Applied { changed })
    }

    /// Puts back a quote that was saved by an earlier process: stale until it is received again.
    /// Whether it was taken: one that breaks the rules, or that a poll has overtaken, is not.
    pub fn restore(
        &mut self,
        source: SourceId,
        symbol: SymbolId,
        mut ticker: Ticker,
        received_at: UnixMs,
    ) -> bool {
        if self.of(source, symbol).is_some() || settle(&mut ticker).is_err() {
            return false;
        }
        let at = Now {
            mono: Mono(0),
            unix: received_at,
        };
        let mut quote = Quote::new(source, symbol, ticker, at);
        quote.restored = true;
        quote.stale = true;
        self.insert(quote);
        self.totals.stale += 1;
        true
    }

    /// The wall clock has gone ahead of the monotonic one by so much: the machine slept, or its clock
    /// was set. Whichever it was, what was received before is as much older by what is shown.
    pub fn aged(&mut self, by: Duration, now: Mono) {
        for feed in &mut self.feeds {
            for quote in feed.quotes.iter_mut().flatten() {
                match quote.received.0.checked_sub(by.as_micros() as u64) {
                    Some(received) => quote.received = Mono(received),
                    // Older than this process: as what an earlier one has saved.
                    None => quote.restored = true,
                }
            }
            feed.judge(now, &mut self.totals);
        }
    }

    /// A poll of this source has succeeded and all its items were applied. Notices a source that
    /// answers well but whose figures stand still.
    pub fn end_poll(&mut self, source: SourceId, now: Now) {
        let feed = &mut self.feeds[source.index()];
        feed.polled = true;
        let last_change = *feed.last_change.get_or_insert(now.mono);
        if !feed.frozen && now.mono.since(last_change) >= feed.frozen_after {
            feed.frozen = true;
            feed.judge(now.mono, &mut self.totals);
        }
    }

    /// Counts items that were refused before they became a ticker.
    pub fn count_rejected(&mut self, items: u64) {
        self.totals.rejected += items;
    }

    /// Forgets a quote: the source no longer tracks the symbol.
    pub fn drop_symbol(&mut self, source: SourceId, symbol: SymbolId) {
        let feed = &mut self.feeds[source.index()];
        let Some(quote) = feed.quotes.get_mut(symbol.index()).and_then(Option::take) else {
            return;
        };
        self.totals.version += 1;
        self.totals.turned += 1;
        self.totals.cached -= 1;
        self.totals.stale -= usize::from(quote.stale);
        self.holders[symbol.index()] -= 1;
        self.totals.symbols -= usize::from(self.holders[symbol.index()] == 0);
    }

    /// The quote that answers for a symbol: of `sources`, which are in the order of failover, the
    /// first fresh one; where all are stale, the one received last.
    pub fn best(&self, sources: &[SourceId], symbol: SymbolId) -> Option<&Quote> {
        let mut latest: Option<&Quote> = None;
        for source in sources {
            let Some(quote) = self.of(*source, symbol) else {
                continue;
            };
            if !quote.stale {
                return Some(quote);
            }
            if latest.is_none_or(|latest| latest.age_key() < quote.age_key()) {
                latest = Some(quote);
            }
        }
        latest
    }

    /// The quote of one source.
    pub fn of(&self, source: SourceId, symbol: SymbolId) -> Option<&Quote> {
        let feed = self.feeds.get(source.index())?;
        feed.quotes.get(symbol.index())?.as_deref()
    }

    /// Whether a poll of this source has ever succeeded.
    pub fn polled(&self, source: SourceId) -> bool {
        self.feeds[source.index()].polled
    }

    /// Whether this source answers, yet its figures stand still.
    pub fn frozen(&self, source: SourceId) -> bool {
        self.feeds[source.index()].frozen
    }

    /// When [`Quotes::flip`] should be called next. May be early, is never late.
    pub fn next_flip(&self) -> Option<Mono> {
        self.feeds.iter().filter_map(Feed::next_look).min()
    }

    /// Marks what has become stale by now, or some of it: then [`Quotes::next_flip`] has come still.
    /// Each quote is right by itself, however many others wait for their slice. How many were marked.
    pub fn flip(&mut self, now: Now) -> usize {
        let (mut flipped, mut room) = (0, PLACES_A_SLICE);
        for feed in &mut self.feeds {
            if room > 0 && feed.next_look().is_some_and(|next| next <= now.mono) {
                flipped += feed.look_on(now.mono, &mut room, &mut self.totals);
            }
        }
        flipped
    }

    /// Whether some of the quotes that became stale together are marked, and others are not yet.
    pub fn is_flipping(&self) -> bool {
        self.feeds.iter().any(|feed| feed.looking.is_some())
    }

    /// The counters; at constant cost.
    pub fn counts(&self) -> Counts {
        let totals = &self.totals;
        Counts {
            cached: totals.cached,
            fresh: totals.cached - totals.stale,
            stale: totals.stale,
            symbols: totals.symbols,
            collected: totals.collected,
            rejected: totals.rejected,
        }
    }

    /// Counts up whenever any quote changes, comes or goes. An answer that holds several quotes
    /// is named by this one: the largest version among them would not tell a change of source.
    pub fn version(&self) -> u64 {
        self.totals.version
    }

    /// Counts up whenever a quote comes, goes, turns stale or fresh: while it stands still, the
    /// same sources answer for the same symbols.
    pub fn turned(&self) -> u64 {
        self.totals.turned
    }

    fn insert(&mut self, mut quote: Quote) {
        let at = quote.symbol.index();
        if self.holders.len() <= at {
            self.holders.resize(at + 1, 0);
        }
        self.totals.symbols += usize::from(self.holders[at] == 0);
        self.holders[at] += 1;
        self.totals.cached += 1;
        self.totals.turned += 1;
        self.totals.version += 1;
        quote.version = self.totals.version;
        let quotes = &mut self.feeds[quote.source.index()].quotes;
        if quotes.len() <= at {
            quotes.resize_with(at + 1, || None);
        }
        quotes[at] = Some(Box::new(quote));
    }
}

impl Quote {
    /// Whether it is too old, frozen or only restored.
    pub fn stale(&self) -> bool {
        self.stale
    }

    /// The body of this quote, made by `make` at the first call after a change.
    pub fn rendered(&self, make: impl FnOnce(&Quote) -> Box<[u8]>) -> &[u8] {
        self.rendered.get_or_init(|| make(self))
    }

    fn new(source: SourceId, symbol: SymbolId, ticker: Ticker, now: Now) -> Quote {
        Quote {
            symbol,
            source,
            ticker,
            received_at: now.unix,
            version: 0,
            received: now.mono,
            stale: false,
            restored: false,
            rendered: OnceCell::new(),
        }
    }

    /// Takes new figures. Whether they differ. It is fresh now, unless its source is frozen.
    fn receive(&mut self, ticker: Ticker, now: Now, frozen: bool, totals: &mut Totals) -> bool {
        self.ticker.timestamp = ticker.timestamp;
        let changed = self.ticker != ticker;
        if changed {
            self.ticker = ticker;
        }
        self.received_at = now.unix;
        self.received = now.mono;
        self.restored = false;
        self.show(frozen, totals);
        changed
    }

    /// Shows it anew, with this staleness and under a new version.
    fn show(&mut self, stale: bool, totals: &mut Totals) {
        totals.stale = totals.stale + usize::from(stale) - usize::from(self.stale);
        totals.turned += u64::from(stale != self.stale);
        totals.version += 1;
        self.stale = stale;
        self.version = totals.version;
        self.rendered.take();
    }

    /// What "received last" goes by. The wall clock may have been set back; it decides only among
    /// restored quotes, which were all received before this process began.
    fn age_key(&self) -> (bool, Mono, UnixMs) {
        (!self.restored, self.received, self.received_at)
    }
}

impl Feed {
    fn new(source: &SourceConfig) -> Feed {
        Feed {
            quotes: Vec::new(),
            stale_after: source.stale_after,
            frozen_after: source.frozen_after,
            next_stale: None,
            looking: None,
            last_change: None,
            frozen: false,
            polled: false,
        }
    }
    /// Notes that a quote of this feed was received.
    fn received(&mut self, changed: bool, now: Mono, totals: &mut Totals) {
        if changed {
            self.last_change = Some(now);
            if self.frozen {
                self.frozen = false;
                self.judge(now, totals);
            }
        }
        if !self.frozen {
            let expiry = now + self.stale_after;
            self.next_stale = Some(self.next_stale.map_or(expiry, |next| next.min(expiry)));
        }
    }

    /// When quotes are to be looked at.
    fn next_look(&self) -> Option<Mono> {
        self.looking.map(|(_, since)| since).or(self.next_stale)
    }

    /// Looks at every quote and turns the flags that are no longer right. How many were turned.
    /// Visits the whole feed at once, so it runs only when the feed freezes or thaws.
    fn judge(&mut self, now: Mono, totals: &mut Totals) -> usize {
        self.looking = None;
        let mut room = self.quotes.len();
        self.look_on(now, &mut room, totals)
    }

    /// Does the same with as many quotes as there is room for, and takes them from it.
    fn look_on(&mut self, now: Mono, room: &mut usize, totals: &mut Totals) -> usize {
        let (from, since) = self.looking.take().unwrap_or((0, now));
        if from == 0 {
            self.next_stale = None;
        }
        let end = self.quotes.len().min(from.saturating_add(*room));
        let mut turned = 0;
        for quote in self.quotes[from..end].iter_mut().flatten() {
            let stale =
                self.frozen || quote.restored || now.since(quote.received) >= self.stale_after;
            if stale != quote.stale {
                quote.show(stale, totals);
                turned += 1;
            }
            if !stale {
                let expiry = quote.received + self.stale_after;
                self.next_stale = Some(self.next_stale.map_or(expiry, |next| next.min(expiry)));
            }
        }
        *room -= end - from;
        self.looking = (end < self.quotes.len()).then_some((end, since));
        turned
    }
}

#[cfg(test)]
mod tests;
