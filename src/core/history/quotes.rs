//! The last quotes, saved now and then, and put back at the start.
//!
//! Owns the pace of saving, and the restored quotes whose source has not told yet whether it still
//! tracks them. A restored quote is stale until a poll brings it. Its name in the file is made of the
//! base and the quote asset that the source's list told, so that its market is known again at once,
//! also where only that list would tell, and the exchange does not answer.

use super::names::source_of;
use crate::core::context::Context;
use crate::history::{Batch, QuoteName, SavedQuote};
use crate::market::{Market, SourceId, SymbolId};
use crate::time::{Mono, Now};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Between two savings: what a crash loses of them. Each one writes every quote that has changed,
/// which on a flash card should not be often.
const EVERY: Duration = Duration::from_secs(300);

/// Symbols that one slice looks at: some 100 microseconds.
const SYMBOLS_A_SLICE: usize = 128;

/// A quote that is by so much older than the newest one of its source, in milliseconds, is of a market
/// that had left the list before: each saving has all that were polled since the one before, and a
/// round of polls takes minutes at most.
pub(super) const LEFT_MS: i64 = 3_600_000;

/// See the module's page.
#[derive(Debug)]
pub(super) struct SavedQuotes {
    /// Restored, and not put back yet.
    waiting: BTreeMap<SourceId, BTreeMap<SymbolId, SavedQuote>>,
    /// Sources whose waiting quotes are looked through.
    returning: VecDeque<Return>,
    next: Mono,
    /// Place among the known symbols, while they are gathered.
    cursor: Option<usize>,
    /// Versions above this one have not been saved.
    saved: u64,
    /// The version at the begin of the round that is running.
    round: u64,
}

/// How the quotes of one source come back.
#[derive(Debug)]
struct Return {
    source: SourceId,
    /// Whether their markets have been made known, as far as they may be.
    is_known: bool,
    /// Those that a list may still tell of.
    kept: BTreeMap<SymbolId, SavedQuote>,
}

impl SavedQuotes {
    pub(super) fn new(now: Mono) -> SavedQuotes {
        SavedQuotes {
            waiting: BTreeMap::new(),
            returning: VecDeque::new(),
            next: now + EVERY,
            cursor: None,
            saved: 0,
            round: 0,
        }
    }

    /// When [`SavedQuotes::begin`] is wanted.
    pub(super) fn due(&self) -> Option<Mono> {
        self.cursor.is_none().then_some(self.next)
    }

    /// Begins a round, if it is due.
    pub(super) fn begin(&mut self, now: Now) {
        if self.cursor.is_none() && self.next <= now.mono {
            self.cursor = Some(0);
        }
    }

    pub(super) fn is_saving(&self) -> bool {
        self.cursor.is_some()
    }

    /// Leaves this round out.
    pub(super) fn skip(&mut self, now: Now) {
        self.cursor = None;
        self.next = now.mono + EVERY;
    }

    /// Gathers one slice. `true`: the last one of this round.
    pub(super) fn gather(&mut self, cx: &Context, batch: &mut Batch) -> bool {
        let Some(from) = self.cursor else {
            return false;
        };
        if from == 0 {
            self.round = cx.market.quotes.version();
        }
        let known = cx.market.catalog.known();
        let end = known.len().min(from + SYMBOLS_A_SLICE);
        for symbol in known.get(from..end).unwrap_or_default() {
            self.save(*symbol, cx, batch);
        }
        if end < known.len() {
            self.cursor = Some(end);
            return false;
        }
        self.cursor = None;
        self.next = cx.now.mono + EVERY;
        self.saved = self.round;
        true
    }

    /// Gathers all at once: nobody is served any more.
    pub(super) fn gather_all(&mut self, cx: &Context, batch: &mut Batch) {
        self.cursor = Some(0);
        while !self.gather(cx, batch) {}
    }

    fn save(&self, symbol: SymbolId, cx: &Context, batch: &mut Batch) {
        let market = &cx.market;
        for source in market.catalog.sources_of(symbol) {
            let quote = market.quotes.of(*source, symbol);
            let Some(quote) = quote.filter(|quote| quote.version > self.saved) else {
                continue;
            };
            let name = QuoteName {
                source: cx.config.sources[source.index()].id.as_str().into(),
                symbol: market.catalog.name(symbol).as_str().into(),
            };
            let saved = SavedQuote {
                ticker: quote.ticker.clone(),
                received_at: quote.received_at,
            };
            batch.quotes.insert(name, saved);
        }
    }

    /// Takes some of the quotes in.
    pub(super) fn restore(&mut self, list: Vec<(QuoteName, SavedQuote)>, cx: &mut Context) {
        for (name, saved) in list {
            let symbol = cx.market.catalog.number_of(&name.symbol);
            if let (Some(source), Some(symbol)) = (source_of(&name.source, &cx.config), symbol) {
                self.waiting
                    .entry(source)
                    .or_default()
                    .insert(symbol, saved);
            }
        }
    }

    /// All quotes have been told: their markets are known from now on, as long as no list says
    /// otherwise, and they are put back.
    pub(super) fn told(&mut self) {
        let sources: Vec<SourceId> = self.waiting.keys().copied().collect();
        for source in sources {
            self.look_through(source, false);
        }
    }

    /// The list of a source has come: what it does not track is not restored.
    pub(super) fn listed(&mut self, source: SourceId) {
        if self.waiting.contains_key(&source) {
            self.look_through(source, true);
        }
    }

    fn look_through(&mut self, source: SourceId, is_known: bool) {
        self.returning.push_back(Return {
            source,
            is_known,
            kept: BTreeMap::new(),
        });
    }

    /// Whether [`SavedQuotes::put_back`] has something to do.
    pub(super) fn is_returning(&self) -> bool {
        !self.returning.is_empty()
    }

    /// Does one slice: makes markets known, or puts quotes back. The markets of a source come first
    /// and together; until its quote is back, one of them is like any that was not polled yet.
    pub(super) fn put_back(&mut self, market: &mut Market, now: Now) {
        let Some(mut back) = self.returning.pop_front() else {
            return;
        };
        let source = back.source;
        if !back.is_known {
            let left = || (self.waiting.get(&source)).map_or_else(Vec::new, left);
            back.is_known = market.catalog.remember(source, left, now.unix);
            return self.returning.push_front(back);
        }
        let Market {
            catalog, quotes, ..
        } = market;
        let mut waiting = self.waiting.remove(&source).unwrap_or_default();
        for (symbol, saved) in std::iter::from_fn(|| waiting.pop_first()).take(SYMBOLS_A_SLICE) {
            if catalog.sources_of(symbol).contains(&source) {
                quotes.restore(source, symbol, saved.ticker, saved.received_at);
            } else if !catalog.has_list(source) {
                back.kept.insert(symbol, saved);
            }
        }
        let is_over = waiting.is_empty();
        if is_over {
            waiting = std::mem::take(&mut back.kept);
        }
        if !waiting.is_empty() {
            self.waiting.insert(source, waiting);
        }
        if !is_over {
            self.returning.push_front(back);
        }
    }
}

/// Of the quotes of a source those whose market it still listed.
fn left(waiting: &BTreeMap<SymbolId, SavedQuote>) -> Vec<SymbolId> {
    let newest = waiting.values().map(|saved| saved.received_at).max();
    let was_listed =
        |saved: &SavedQuote| newest.is_some_and(|newest| newest - saved.received_at < LEFT_MS);
    let left = waiting.iter().filter(|(_, saved)| was_listed(saved));
    left.map(|(symbol, _)| *symbol).collect()
}
