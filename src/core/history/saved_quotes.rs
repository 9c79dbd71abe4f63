//! The saved quotes and the saved trading rules (steps, limits, fees). Quotes are saved now and then and
//! restored at the start. Rules are saved with each market list.
//!
//! [`SavedQuotes`] owns when quotes are saved, and the loaded quotes whose market list has not come yet. A
//! restored quote is stale until a poll brings it. Its name in the file is made of the base and the quote
//! asset, so that its market is known again at once, even while the exchange does not respond.

use super::names::quote_name;
use crate::core::context::Context;
use crate::history::{Batch, SavedQuote};
use crate::market::{Market, SourceId, SymbolId};
use crate::time::Mono;
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two rounds of saving. A crash loses the changes of this time. Each round writes every quote that
/// has changed, which should not happen often on a flash card.
const EVERY: Duration = Duration::from_secs(300);

/// Symbols that one slice looks at: some 100 microseconds.
pub const SYMBOLS_A_SLICE: usize = 128;

/// If a saved quote is this many milliseconds older than the newest one of its source, its market had left
/// the list. Each round saves all quotes that were polled since the round before, and a round of polls takes
/// minutes at most.
pub const DELISTED_AFTER_MS: i64 = 3_600_000;

/// See the module's page.
#[derive(Debug, Default)]
pub struct SavedQuotes {
    /// Loaded quotes that wait for the end of the load, or for a market list.
    waiting: BTreeMap<SourceId, Quotes>,
    /// When the next round begins.
    pub next: Mono,
    /// Quotes above this version have not been saved.
    saved: u64,
}

type Quotes = BTreeMap<SymbolId, SavedQuote>;

/// A round of saving.
#[derive(Debug)]
pub struct SaveRound {
    /// The place among the known symbols.
    from: usize,
    /// The version of the quotes when the round began.
    version: u64,
}

/// The quotes of one source on their way back.
#[derive(Debug)]
pub struct Restore {
    source: SourceId,
    /// True once the markets of the quotes are made known.
    is_known: bool,
    quotes: Quotes,
}

impl SavedQuotes {
    /// No quotes wait, and none are saved yet.
    pub fn new(now: Mono) -> SavedQuotes {
        SavedQuotes { next: now + EVERY, ..SavedQuotes::default() }
    }

    /// Begins a round, if it is due.
    pub fn begin(&mut self, cx: &Context) -> Option<SaveRound> {
        if cx.now.mono < self.next {
            return None;
        }
        self.next = cx.now.mono + EVERY;
        Some(SaveRound { from: 0, version: cx.market.quotes.version() })
    }

    /// Gathers one slice. Returns true if that was the last slice of the round.
    pub fn save(&mut self, round: &mut SaveRound, cx: &Context, batch: &mut Batch) -> bool {
        let Market { catalog, quotes, .. } = &cx.market;
        let known = catalog.known();
        for symbol in known.iter().skip(round.from).take(SYMBOLS_A_SLICE) {
            for source in catalog.sources_of(*symbol) {
                let quote = quotes.of(*source, *symbol);
                if let Some(quote) = quote.filter(|quote| quote.version > self.saved) {
                    let saved =
                        SavedQuote { ticker: quote.ticker.clone(), received_at: quote.received_at };
                    batch.quotes.insert(quote_name(*source, *symbol, cx), saved);
                }
            }
        }
        round.from += SYMBOLS_A_SLICE;
        let is_done = round.from >= known.len();
        if is_done {
            self.saved = round.version;
        }
        is_done
    }

    /// Takes in a saved quote.
    pub fn restore(&mut self, source: SourceId, symbol: SymbolId, saved: SavedQuote) {
        self.waiting.entry(source).or_default().insert(symbol, saved);
    }

    /// All saved quotes are loaded: begins to restore them, source by source.
    pub fn loaded(&mut self) -> impl Iterator<Item = Restore> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|(source, quotes)| Restore { source, is_known: false, quotes })
    }

    /// The market list of a source has come. Quotes of markets that the source does not track are not
    /// restored.
    pub fn listed(&mut self, source: SourceId) -> Option<Restore> {
        let quotes = self.waiting.remove(&source)?;
        Some(Restore { source, is_known: true, quotes })
    }

    /// Does one slice: makes the markets known, all of a source at once, or restores some quotes. A market
    /// whose quote is not restored yet counts as not polled. `true`: that was the last slice.
    pub fn restore_slice(&mut self, back: &mut Restore, cx: &mut Context) -> bool {
        let (source, Market { catalog, quotes, .. }) = (back.source, &mut cx.market);
        if !back.is_known {
            catalog.remember(source, still_listed(&back.quotes));
            back.is_known = true;
            return false;
        }
        let slice = std::iter::from_fn(|| back.quotes.pop_first()).take(SYMBOLS_A_SLICE);
        for (symbol, saved) in slice {
            if catalog.sources_of(symbol).contains(&source) {
                quotes.restore(source, symbol, saved.ticker, saved.received_at);
            } else if !catalog.has_list(source) {
                // The market list may still have it.
                self.restore(source, symbol, saved);
            }
        }
        back.quotes.is_empty()
    }
}

/// The symbols of a source whose markets the exchange still listed when the quotes were saved.
fn still_listed(waiting: &Quotes) -> Vec<SymbolId> {
    let newest = waiting.values().map(|saved| saved.received_at).max();
    let was_listed = |saved: &SavedQuote| {
        newest.is_some_and(|newest| newest - saved.received_at < DELISTED_AFTER_MS)
    };
    let left = waiting.iter().filter(|(_, saved)| was_listed(saved));
    left.map(|(symbol, _)| *symbol).collect()
}

/// Gathers one slice of a source's rules, from this place among the known symbols. Returns true if that was
/// the last slice. The disk thread does not write rules again that the file has already.
pub fn save_rules(source: SourceId, from: &mut usize, cx: &Context, batch: &mut Batch) -> bool {
    let catalog = &cx.market.catalog;
    for symbol in catalog.known().iter().skip(*from).take(SYMBOLS_A_SLICE) {
        if let Some(listing) = catalog.listing(source, *symbol) {
            let name = quote_name(source, *symbol, cx);
            batch.markets.insert(name, listing.rules.clone());
        }
    }
    *from += SYMBOLS_A_SLICE;
    *from >= catalog.known().len()
}
