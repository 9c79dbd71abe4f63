//! One quote as it is stored, and the totals over all of them.
//!
//! Each state of a quote has a version of its own.

use super::super::ids::{SourceId, SymbolId};
use super::super::touched::Touched;
use crate::record::Ticker;
use crate::time::{Mono, Now, UnixMs};
use std::cell::OnceCell;

/// The latest figures of one symbol at one source.
#[derive(Debug)]
pub struct Quote {
    /// The symbol.
    pub symbol: SymbolId,
    /// The source.
    pub source: SourceId,
    /// The normalized figures: zero prices are `None`, and what follows exactly is computed.
    pub ticker: Ticker,
    /// When the last successful poll that contained this quote was received.
    pub received_at: UnixMs,
    /// Increases whenever anything here changes. No two quotes ever share one.
    pub version: u64,
    pub(super) received: Mono,
    pub(super) stale: bool,
    pub(super) restored: bool,
    pub(super) rendered: OnceCell<Box<[u8]>>,
}

/// Counters of quotes and items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuoteCounts {
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

/// Counts over all sources.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) version: u64,
    pub(super) turned: u64,
    /// The version at which a quote was last dropped.
    pub(super) dropped: u64,
    pub(super) touched: Touched,
    /// Without `fresh` and `stale`, which [`Feed`](super::feed::Feed)s count.
    pub(super) counts: QuoteCounts,
}

impl Quote {
    /// True if it is too old, frozen or only restored.
    pub fn stale(&self) -> bool {
        self.stale
    }

    /// The rendered body, made by `make` at the first call after a change.
    pub fn rendered(&self, make: impl FnOnce(&Quote) -> Box<[u8]>) -> &[u8] {
        self.rendered.get_or_init(|| make(self))
    }

    pub(super) fn new(source: SourceId, symbol: SymbolId, ticker: Ticker, now: Now) -> Quote {
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

    /// Applies new figures. Returns true if they differ. The quote is fresh now, unless its source
    /// is frozen.
    pub(super) fn receive(
        &mut self,
        ticker: Ticker,
        now: Now,
        frozen: bool,
        stale_here: &mut usize,
        totals: &mut Totals,
    ) -> bool {
        self.ticker.timestamp = ticker.timestamp;
        let changed = self.ticker != ticker;
        if changed {
            self.ticker = ticker;
        }
        self.received_at = now.unix;
        self.received = now.mono;
        self.restored = false;
        self.set_stale(frozen, stale_here, totals);
        changed
    }

    /// Sets the staleness and a new version. `stale_here` counts the stale quotes of its source.
    pub(super) fn set_stale(&mut self, stale: bool, stale_here: &mut usize, totals: &mut Totals) {
        *stale_here = *stale_here + usize::from(stale) - usize::from(self.stale);
        totals.turned += u64::from(stale != self.stale);
        totals.version += 1;
        self.stale = stale;
        self.version = totals.version;
        self.rendered.take();
        totals.touched.note(self.symbol);
    }

    /// The order of receipt. The wall clock may have been set back, so it decides only between
    /// restored quotes, which were all received before this process started.
    pub(super) fn age_key(&self) -> (bool, Mono, UnixMs) {
        (!self.restored, self.received, self.received_at)
    }
}
