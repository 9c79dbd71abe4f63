//! The last quotes, saved now and then, and put back at the start.
//!
//! Owns the pace of saving, and the restored quotes whose source has not told yet whether it still
//! tracks them. A restored quote is stale until a poll brings it.

use super::names::source_of;
use crate::history::{Batch, QuoteName, SavedQuote};
use crate::market::{Market, SourceId, SymbolId};
use crate::server::shelf::Shelf;
use crate::time::{Mono, Now};
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two savings: what a crash loses of them. Each one writes every quote that has changed,
/// which on a flash card should not be often.
const EVERY: Duration = Duration::from_secs(300);

/// Symbols that one slice looks at: some 100 microseconds.
const SYMBOLS_A_SLICE: usize = 128;

/// See the module's page.
#[derive(Debug)]
pub(super) struct SavedQuotes {
    waiting: BTreeMap<(SourceId, SymbolId), SavedQuote>,
    next: Mono,
    /// Place among the known symbols, while they are gathered.
    cursor: Option<usize>,
    /// Versions above this one have not been saved.
    saved: u64,
    /// The version at the begin of the round that is running.
    round: u64,
}

impl SavedQuotes {
    pub(super) fn new(now: Mono) -> SavedQuotes {
        SavedQuotes {
            waiting: BTreeMap::new(),
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
    pub(super) fn gather(&mut self, shelf: &Shelf<'_>, batch: &mut Batch, now: Now) -> bool {
        let Some(from) = self.cursor else {
            return false;
        };
        if from == 0 {
            self.round = shelf.market.quotes.version();
        }
        let known = shelf.market.catalog.known();
        let end = known.len().min(from + SYMBOLS_A_SLICE);
        for symbol in known.get(from..end).unwrap_or_default() {
            self.save(*symbol, shelf, batch);
        }
        if end < known.len() {
            self.cursor = Some(end);
            return false;
        }
        self.cursor = None;
        self.next = now.mono + EVERY;
        self.saved = self.round;
        true
    }

    /// Gathers all at once: nobody is served any more.
    pub(super) fn gather_all(&mut self, shelf: &Shelf<'_>, batch: &mut Batch, now: Now) {
        self.cursor = Some(0);
        while !self.gather(shelf, batch, now) {}
    }

    fn save(&self, symbol: SymbolId, shelf: &Shelf<'_>, batch: &mut Batch) {
        let market = &shelf.market;
        for source in market.catalog.sources_of(symbol) {
            let quote = market.quotes.of(*source, symbol);
            let Some(quote) = quote.filter(|quote| quote.version > self.saved) else {
                continue;
            };
            let name = QuoteName {
                source: shelf.config.sources[source.index()].id.as_str().into(),
                symbol: market.catalog.name(symbol).as_str().into(),
            };
            let saved = SavedQuote {
                ticker: quote.ticker.clone(),
                received_at: quote.received_at,
            };
            batch.quotes.insert(name, saved);
        }
    }

    /// Puts quotes back whose markets are known to be tracked; the others wait for their source's
    /// list.
    pub(super) fn restore(&mut self, list: Vec<(QuoteName, SavedQuote)>, shelf: &mut Shelf<'_>) {
        for (name, saved) in list {
            let symbol = shelf.market.catalog.number_of(&name.symbol);
            if let (Some(source), Some(symbol)) = (source_of(&name.source, shelf.config), symbol) {
                self.waiting.insert((source, symbol), saved);
            }
        }
        self.put_back(shelf.market, None);
    }

    /// The list of a source has come: what it does not track is not restored.
    pub(super) fn listed(&mut self, source: SourceId, market: &mut Market) {
        if !self.waiting.is_empty() {
            self.put_back(market, Some(source));
        }
    }

    fn put_back(&mut self, market: &mut Market, listed: Option<SourceId>) {
        let Market {
            catalog, quotes, ..
        } = market;
        self.waiting.retain(|(source, symbol), saved| {
            if catalog.sources_of(*symbol).contains(source) {
                quotes.restore(*source, *symbol, saved.ticker.clone(), saved.received_at);
                return false;
            }
            listed != Some(*source) && !catalog.has_list(*source)
        });
    }
}
