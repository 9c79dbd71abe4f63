//! The jobs of the history: work that takes longer than a turn. The history steps one job at a time
//! ([`History::work`](super::History::work)): the first one that can go on.
//!
//! [`SavedQuotes`] owns when quotes are saved, and the loaded quotes whose market list has not come yet.
//! Quotes are saved now and then and restored at the start; the trading rules of markets (steps, limits,
//! fees) are saved with each market list. A restored quote is stale until a poll brings it. Its name in the
//! file is made of the base and the quote asset, so that its market is known again at once, even while the
//! exchange does not respond.
//!
//! [`Missing`] owns whether the file may lack something: changes were left out because the disk failed for
//! long, or the file could not be read and another one may be open now. [`Refill`] is the cursor of a walk
//! over the series in memory. What memory covers and the file has not archived goes into the next batches,
//! slice by slice and while there is room. The refill requests nothing. What memory has dropped is unknown,
//! and is requested like other unknown candles.

use super::writer::{Writer, name_of, quote_name};
use crate::core::context::Context;
use crate::history::{Batch, Extent, SavedQuote, SeriesName};
use crate::job_queue::QueuedJob;
use crate::log_targets::HISTORY;
use crate::market::{Market, Series, SeriesKey, SourceId, SymbolId};
use crate::time::Mono;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// One job, with what is left of it.
#[derive(Debug)]
pub enum Work {
    /// Restores the saved quotes of a source.
    RestoreQuotes(Restore),
    /// Archives what a batch has written.
    ArchiveBatch(Box<Batch>, Vec<(SeriesName, Extent)>),
    /// Saves the quotes that have changed.
    SaveQuotes(SaveRound),
    /// Saves the trading rules of the market list of a source, from this place among the known symbols.
    SaveRules(SourceId, usize),
    /// Writes from memory what the file lacks.
    Refill(Refill),
}

impl QueuedJob for Work {
    fn rank(&self) -> u8 {
        match self {
            Work::RestoreQuotes(_) => 0,
            Work::ArchiveBatch(..) => 1,
            Work::SaveQuotes(_) => 2,
            Work::SaveRules(..) => 3,
            Work::Refill(_) => 4,
        }
    }

    fn replaces(&self, older: &Work) -> bool {
        match (self, older) {
            (Work::Refill(_), Work::Refill(_)) | (Work::SaveQuotes(_), Work::SaveQuotes(_)) => true,
            (Work::SaveRules(source, _), Work::SaveRules(older, _)) => source == older,
            _ => false,
        }
    }
}

/// Between two rounds of saving. A crash loses the changes of this time. Each round writes every quote that
/// has changed, which should not happen often on a flash card.
const EVERY: Duration = Duration::from_secs(300);

/// Symbols that one slice looks at: some 100 microseconds.
pub const SYMBOLS_A_SLICE: usize = 128;

/// If a saved quote is this many milliseconds older than the newest one of its source, its market had left
/// the list. Each round saves all quotes that were polled since the round before, and a round of polls takes
/// minutes at most.
pub const DELISTED_AFTER_MS: i64 = 3_600_000;

/// The saved quotes: see the module's page.
#[derive(Debug, Default)]
pub struct SavedQuotes {
    /// Loaded quotes that wait for the end of the load, or for a market list.
    waiting: BTreeMap<SourceId, Quotes>,
    /// When the next round begins.
    pub next: Mono,
    /// Quotes above this version have not been saved.
    pub saved: u64,
}

type Quotes = BTreeMap<SymbolId, SavedQuote>;

#[derive(Debug)]
pub struct SaveRound {
    /// The index of the next symbol among the known symbols.
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
/// the last slice. The disk thread writes only the rules that differ from the file's.
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

/// Slots that one slice writes: some 0.1 ms, to read their rows.
const SLOTS_A_SLICE: i64 = 128;

/// What the file lacks: see the module's page.
#[derive(Debug, Default)]
pub struct Missing {
    /// True if the file lacks something for which no refill has begun.
    pub needs_refill: bool,
    /// True from the first change that is left out until the disk is well again.
    is_left_out: bool,
    /// The number of the batch after which a new file holds all that memory holds.
    refilled_with: Option<u64>,
}

impl Missing {
    /// Changes are left out.
    pub fn leave_out(&mut self, writer: &Writer) {
        self.needs_refill = true;
        if !std::mem::replace(&mut self.is_left_out, true) {
            let waiting = writer.pending();
            log::warn!(target: HISTORY, "changes left out waiting={waiting} backfill=paused");
        }
    }

    /// The file cannot be read. The next one that is open may lack everything.
    pub fn unreadable(&mut self) {
        self.needs_refill = true;
        self.refilled_with = None;
    }

    /// The refill to begin, if one is needed and the disk is well.
    pub fn begin_refill(&mut self, is_well: bool) -> Option<Refill> {
        if is_well && std::mem::take(&mut self.is_left_out) {
            log::info!(target: HISTORY, "changes taken again refill=begun");
        }
        (is_well && std::mem::take(&mut self.needs_refill)).then(Refill::default)
    }

    /// A refill has ended: all that memory holds is in the file, or in a batch on its way there.
    pub fn refilled(&mut self, writer: &Writer, cx: &mut Context) {
        // What is gathered now is in the next batch.
        self.refilled_with = Some(writer.sent + u64::from(!writer.batch.is_empty()));
        if !writer.is_writing() {
            self.written(writer.sent, cx);
        }
    }

    /// The batches up to this one are on disk, or nothing of them is left to be written.
    pub fn written(&mut self, number: u64, cx: &mut Context) {
        let is_refilled = self.refilled_with.take_if(|by| *by <= number).is_some();
        if is_refilled && std::mem::take(&mut cx.stats.history.lost) {
            log::info!(target: HISTORY, "file refilled");
        }
    }
}

/// A walk over the series in memory.
#[derive(Debug, Default)]
pub struct Refill {
    /// The last series that the walk has finished.
    behind: Option<SeriesKey>,
    /// The first slot to look at in the series after it.
    from: Option<i64>,
}

impl Refill {
    /// Does one slice. Returns true once all that memory holds is on its way.
    pub fn step(
        &mut self,
        may_store: impl FnOnce(SeriesKey) -> bool,
        batch: &mut Batch,
        cx: &Context,
    ) -> bool {
        let Some(series) = cx.market.charts.behind(self.behind) else {
            return true;
        };
        let key = series.key();
        let slots = match may_store(key) {
            true => unwritten(series, self.from.unwrap_or(i64::MIN)),
            false => None,
        };
        if let Some(slots) = slots {
            let changes = batch.of(&name_of(key, cx));
            // The file may hold older candles here, which the exchange has revised since.
            changes.forget(slots.clone());
            let candles = series.candles(&slots).into_iter();
            let candles = candles.map(|(slot, candle)| (slot, Some(candle)));
            changes.answered(slots.clone(), candles);
            self.from = Some(slots.end);
        } else {
            (self.behind, self.from) = (Some(key), None);
        }
        false
    }
}

/// The first slots, from this one on, that are in memory and not in the file.
fn unwritten(series: &Series, from: i64) -> Option<Range<i64>> {
    let covered = series.covered().within(from..i64::MAX);
    let mut missing = covered.flat_map(|part| series.archived().missing(part));
    let first = missing.next()?;
    Some(first.start..first.end.min(first.start + SLOTS_A_SLICE))
}
