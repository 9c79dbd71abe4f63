//! The latest quote of every source and symbol.
//!
//! [`Quotes`] owns the figures, their times of receipt, their staleness, and their rendered bodies.
//!
//! It reads no clock. A quote also becomes stale while nothing arrives, so the caller calls
//! [`Quotes::update_staleness`] at the time of [`Quotes::staleness_due`]. It does not know which symbols are
//! tracked.
//!
//! A quote is fresh, or stale for one of three reasons: its age has reached the `stale_after` of its source;
//! its source is *frozen* (its polls succeed, but no figure has changed for `frozen_after`); it was restored
//! from disk and not received since. `Feed::judge` and `Quote::receive` set the state.
//!
//! Invariant: each version belongs to one state of one quote, over all sources. So a version
//! identifies a served quote even after a failover.

mod feed;
mod normalize;

pub use feed::{Awaited, Quote, QuoteCounts, QuoteTurn};
pub use normalize::QuoteReject;

use super::symbol::{SourceId, SymbolId};
use crate::config::SourceConfig;
use crate::place_set::PlaceSet;
use crate::record::Ticker;
use crate::time::{Mono, Now, UnixMs};
use feed::{Feed, Totals};
use normalize::normalize;
use std::time::Duration;

/// The latest quotes of all sources.
#[derive(Debug, Default)]
pub struct Quotes {
    feeds: Vec<Feed>,
    /// By symbol.
    holders: Vec<Holders>,
    totals: Totals,
}

/// The sources with a quote of one symbol.
#[derive(Clone, Copy, Debug, Default)]
struct Holders {
    count: u16,
    /// The version at which a source last dropped its quote, or the order of the sources last changed; 0 if
    /// neither was so.
    reordered: u64,
}

impl Quotes {
    /// No quotes yet.
    pub fn new(sources: &[SourceConfig]) -> Quotes {
        Quotes { feeds: sources.iter().map(Feed::new).collect(), ..Quotes::default() }
    }

    /// Applies one item of a poll. `now` is when its response was received. That may be so long ago that
    /// [`Quotes::update_staleness`] is due. Returns true if a figure differs ([`Ticker::tells_more_than`]).
    pub fn apply(
        &mut self,
        source: SourceId,
        symbol: SymbolId,
        mut ticker: Ticker,
        now: Now,
    ) -> Result<bool, QuoteReject> {
        if let Err(reject) = normalize(&mut ticker) {
            self.totals.counts.rejected += 1;
            return Err(reject);
        }
        self.totals.counts.collected += 1;
        let feed = &mut self.feeds[source.index()];
        let changed = match feed.quotes.get_mut(symbol.index()) {
            Some(Some(quote)) => {
                let ages = (feed.frozen, feed.stale_after);
                quote.receive(ticker, now, ages, &mut feed.stale, &mut self.totals)
            }
            _ => {
                let received = Some(now.mono);
                self.insert(Quote::new((source, symbol), ticker, received, now.unix));
                true
            }
        };
        let feed = &mut self.feeds[source.index()];
        if changed {
            feed.last_change = Some(now.mono);
            if std::mem::take(&mut feed.frozen) {
                feed.judge(now.mono, &mut self.totals);
            }
        }
        if !feed.frozen {
            let stale_at = now.mono + feed.stale_after;
            feed.next_stale = feed.next_stale.into_iter().chain([stale_at]).min();
        }
        Ok(changed)
    }

    /// Restores a quote of an earlier process. It is stale until it is received again. Returns false if the
    /// quote is not valid, or if the source already has a quote of the symbol.
    pub fn restore(
        &mut self,
        source: SourceId,
        symbol: SymbolId,
        mut ticker: Ticker,
        received_at: UnixMs,
    ) -> bool {
        if self.of(source, symbol).is_some() || normalize(&mut ticker).is_err() {
            return false;
        }
        self.insert(Quote::new((source, symbol), ticker, None, received_at));
        self.feeds[source.index()].stale += 1;
        true
    }

    /// Makes all quotes older by this time. The wall clock has advanced this much more than the
    /// monotonic clock, because the machine slept or its clock was set.
    pub fn aged(&mut self, by: Duration, now: Mono) {
        for feed in &mut self.feeds {
            for quote in feed.quotes.iter_mut().flatten() {
                // A quote that was received before this process started counts as restored.
                let aged = |at: Mono| at.0.checked_sub(by.as_micros() as u64).map(Mono);
                quote.set_received(quote.received().and_then(aged));
            }
            feed.judge(now, &mut self.totals);
        }
    }

    /// Ends a poll of this source whose items were all applied. Marks the source as frozen if its
    /// figures have not changed for too long.
    pub fn end_poll(&mut self, source: SourceId, now: Now) {
        let feed = &mut self.feeds[source.index()];
        let last_change = *feed.last_change.get_or_insert(now.mono);
        if !feed.frozen && now.mono.since(last_change) >= feed.frozen_after {
            feed.frozen = true;
            feed.judge(now.mono, &mut self.totals);
        }
    }

    /// Notes symbols that the source newly tracks, now or from its next list on.
    pub fn expect(&mut self, source: SourceId, symbols: impl IntoIterator<Item = SymbolId>) {
        self.feeds[source.index()].awaited[Awaited::List as usize].extend(symbols);
    }

    /// Notes an event that symbols of this source wait for. They now wait for the next step ([`Awaited`]), if
    /// there is one.
    pub fn arrived(&mut self, source: SourceId, awaited: Awaited) {
        let waiting = &mut self.feeds[source.index()].awaited;
        let symbols = std::mem::take(&mut waiting[awaited as usize]);
        if let Some(next) = waiting.get_mut(awaited as usize + 1) {
            next.extend(symbols);
        }
    }

    /// Notes that the poll failed to get these symbols, so it is unknown whether the exchange has them. The
    /// symbols that wait for the end of this poll now wait for the next poll. If no poll has ended before
    /// (`is_first`), all of them do.
    pub fn missed(&mut self, source: SourceId, symbols: &[SymbolId], is_first: bool) {
        let awaited = &mut self.feeds[source.index()].awaited;
        for symbol in symbols {
            if awaited[Awaited::PollEnd as usize].remove(symbol) || is_first {
                awaited[Awaited::Poll as usize].insert(*symbol);
            }
        }
    }

    /// True if no finished poll has an answer about this symbol of this source: a quote may still come.
    pub fn is_awaited(&self, source: SourceId, symbol: SymbolId) -> bool {
        self.feeds[source.index()].awaited.iter().any(|symbols| symbols.contains(&symbol))
    }

    /// Counts items that were refused before they became a ticker.
    pub fn count_rejected(&mut self, items: u64) {
        self.totals.counts.rejected += items;
    }

    /// Applies the settings of all sources. New sources come behind the others.
    pub fn reconfigure(&mut self, sources: &[SourceConfig], now: Mono) {
        let known = self.feeds.len();
        self.feeds.extend(sources.iter().skip(known).map(Feed::new));
        for (feed, source) in self.feeds.iter_mut().zip(sources) {
            let ages = (source.stale_after, source.frozen_after);
            if (feed.stale_after, feed.frozen_after) != ages {
                (feed.stale_after, feed.frozen_after) = ages;
                // A frozen source thaws if the new age allows. Other sources freeze at their next poll at the
                // earliest.
                let changed = feed.last_change.map(|at| now.since(at));
                feed.frozen &= changed.is_some_and(|since| since >= feed.frozen_after);
                feed.judge(now, &mut self.totals);
            }
        }
    }

    /// Starts a source again: drops all of its quotes.
    pub fn begin(&mut self, source: SourceId, config: &SourceConfig) {
        self.retain(source, |_| false);
        self.feeds[source.index()] = Feed::new(config);
    }

    /// Drops this source's quotes of symbols that it no longer tracks.
    pub fn retain(&mut self, source: SourceId, is_tracked: impl Fn(SymbolId) -> bool) {
        for at in 0..self.feeds[source.index()].quotes.len() {
            let symbol = SymbolId(at as u32);
            if !is_tracked(symbol) {
                self.drop_symbol(source, symbol);
            }
        }
    }

    /// Drops a quote: the source no longer tracks the symbol.
    pub fn drop_symbol(&mut self, source: SourceId, symbol: SymbolId) {
        let feed = &mut self.feeds[source.index()];
        let Some(quote) = feed.quotes.get_mut(symbol.index()).and_then(Option::take) else {
            return;
        };
        let holders = &mut self.holders[symbol.index()];
        holders.count -= 1;
        holders.reordered = self.totals.changed(symbol);
        self.totals.counts.symbols -= usize::from(holders.count == 0);
        self.totals.counts.cached -= 1;
        feed.stale -= usize::from(quote.stale);
    }

    /// Notes that the sources of a symbol have another order, so that the quote of another source may be
    /// served.
    pub fn reorder(&mut self, symbol: SymbolId) {
        if let Some(holders) = self.holders.get_mut(symbol.index()) {
            holders.reordered = self.totals.changed(symbol);
        }
    }

    /// The quote to serve for a symbol. It is the first fresh quote of `sources`, which are in the order of
    /// failover. A quote that has just become fresh again comes after the other fresh ones. If all quotes are
    /// stale, it is the one received last.
    pub fn best(&self, sources: &[SourceId], symbol: SymbolId) -> Option<&Quote> {
        let (mut returning, mut latest): (Option<&Quote>, Option<&Quote>) = (None, None);
        for source in sources {
            let Some(quote) = self.of(*source, symbol) else {
                continue;
            };
            if !quote.stale && quote.returning == 0 {
                return Some(quote);
            }
            if !quote.stale {
                returning = returning.or(Some(quote));
            } else if latest.is_none_or(|latest| latest.age_key() < quote.age_key()) {
                latest = Some(quote);
            }
        }
        returning.or(latest)
    }

    /// The quote of one source.
    pub fn of(&self, source: SourceId, symbol: SymbolId) -> Option<&Quote> {
        let feed = self.feeds.get(source.index())?;
        feed.quotes.get(symbol.index())?.as_deref()
    }

    /// True if this source answers, but its figures stand still. Without any received quote, none does.
    pub fn frozen(&self, source: SourceId) -> bool {
        let feed = &self.feeds[source.index()];
        feed.frozen && feed.quotes.iter().flatten().any(|quote| quote.received().is_some())
    }

    /// The number of stale quotes of this source. The cost is constant.
    pub fn stale_of(&self, source: SourceId) -> usize {
        self.feeds[source.index()].stale
    }

    /// When a figure of any received quote of this source last changed; before the first change, when its
    /// first poll ended.
    pub fn last_change(&self, source: SourceId) -> Option<Mono> {
        self.feeds[source.index()].last_change
    }

    /// When to call [`Quotes::update_staleness`] next. May be early, never late.
    pub fn staleness_due(&self) -> Option<Mono> {
        self.feeds.iter().filter_map(|feed| feed.next_stale).min()
    }

    /// Marks quotes that have become stale. Returns the number of changes. If an exchange dies and
    /// 3,500 quotes change, this takes about 0.2 milliseconds.
    pub fn update_staleness(&mut self, now: Now) -> usize {
        let due = |feed: &&mut Feed| feed.next_stale.is_some_and(|next| next <= now.mono);
        let due = self.feeds.iter_mut().filter(due);
        due.map(|feed| feed.judge(now.mono, &mut self.totals)).sum()
    }

    /// True if there is no quote.
    pub fn is_empty(&self) -> bool {
        self.totals.counts.cached == 0
    }

    /// The counters. The cost does not depend on the number of quotes: `/health` asks for them more than
    /// once.
    pub fn counts(&self) -> QuoteCounts {
        let (counts, stale) = (self.totals.counts, self.feeds.iter().map(|feed| feed.stale).sum());
        QuoteCounts { fresh: counts.cached - stale, stale, ..counts }
    }

    /// Increases whenever any quote changes, comes or goes. It identifies a response with several
    /// quotes: the largest version among them would miss a failover.
    pub fn version(&self) -> u64 {
        self.totals.version
    }

    /// Takes out the quotes that, since the last call, have become stale or have been fresh again for ten
    /// seconds.
    pub fn take_turns(&mut self) -> Vec<QuoteTurn> {
        std::mem::take(&mut self.totals.turns)
    }

    /// Notes whether a symbol has left this quote for another source's. Returns true if that is new.
    pub fn set_left(&mut self, source: SourceId, symbol: SymbolId, is_left: bool) -> bool {
        let quote = self.feeds[source.index()].quotes.get_mut(symbol.index());
        let quote = quote.and_then(Option::as_mut);
        quote.is_some_and(|it| std::mem::replace(&mut it.is_left, is_left) != is_left)
    }

    /// The version at which a source last dropped its quote of a symbol, or the order of its sources last
    /// changed; 0 if neither was so.
    pub fn reordered(&self, symbol: SymbolId) -> u64 {
        self.holders.get(symbol.index()).map_or(0, |holders| holders.reordered)
    }

    /// The symbols with a quote that has changed, come or gone, by index.
    #[inline]
    pub fn touched(&self) -> &PlaceSet {
        &self.totals.touched
    }

    /// The symbols with a quote that has changed, come or gone, to take them out.
    pub fn touched_mut(&mut self) -> &mut PlaceSet {
        &mut self.totals.touched
    }

    fn insert(&mut self, mut quote: Quote) {
        let at = quote.symbol.index();
        if self.holders.len() <= at {
            self.holders.resize(at + 1, Holders::default());
        }
        self.totals.counts.symbols += usize::from(self.holders[at].count == 0);
        self.holders[at].count += 1;
        self.totals.counts.cached += 1;
        quote.version = self.totals.changed(quote.symbol);
        let quotes = &mut self.feeds[quote.source.index()].quotes;
        if quotes.len() <= at {
            quotes.resize_with(at + 1, || None);
        }
        quotes[at] = Some(Box::new(quote));
    }
}

#[cfg(test)]
mod tests;
