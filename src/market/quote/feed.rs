//! A feed: the quotes of one source, and which of them are stale. Each state of a quote has its own version.
//!
//! [`Feed`] owns the flags of staleness and the time at which the next one may change. For each newly tracked
//! symbol, it knows what must happen before a missing quote means that the exchange has none.

use super::super::symbol::{SourceId, SymbolId};
use crate::config::SourceConfig;
use crate::place_set::PlaceSet;
use crate::record::Ticker;
use crate::time::{Mono, Now, UnixMs};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Duration;

/// Seconds for which a returning quote must be fresh before it is preferred to another source's fresh quote.
/// So a source that is late now and then does not cause a change of source each time.
pub(super) const RETURN_AFTER_S: u32 = 10;

/// The latest figures of one symbol at one source.
#[derive(Debug)]
pub struct Quote {
    /// The symbol.
    pub symbol: SymbolId,
    /// The source.
    pub source: SourceId,
    /// The normalized figures: zero prices are `None`, and missing figures are computed if they
    /// follow exactly from others.
    pub ticker: Ticker,
    /// When the last successful poll that contained this quote was received.
    pub received_at: UnixMs,
    /// Increases whenever anything here changes. No two quotes ever share a version.
    pub version: u64,
    /// When the quote was last received. Meaningless if it is restored: an `Option` would take 8
    /// bytes more.
    received: Mono,
    restored: bool,
    pub(super) stale: bool,
    /// True if its symbol has moved on to another source's quote, and has not returned.
    pub(super) is_left: bool,
    /// The second since which the quote is fresh again. 0 once that has lasted for [`RETURN_AFTER_S`], and
    /// for quotes that were never stale.
    pub(super) returning: u32,
    pub(super) rendered: OnceCell<Box<[u8]>>,
}

/// A quote that has become stale, or returns: the source that serves its symbol may change now.
#[derive(Clone, Copy, Debug)]
pub struct QuoteTurn {
    /// The source of the quote.
    pub source: SourceId,
    /// The symbol of the quote.
    pub symbol: SymbolId,
    /// True if it has been fresh for `RETURN_AFTER_S` seconds again; false if it has become stale.
    pub returns: bool,
}

/// Counters of quotes and items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuoteCounts {
    /// Quotes held, over all sources.
    pub cached: usize,
    /// Quotes that are not stale.
    pub fresh: usize,
    /// Quotes that are stale.
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
    pub(super) turns: Vec<QuoteTurn>,
    pub(super) touched: PlaceSet,
    /// `fresh` and `stale` are always 0 here.
    pub(super) counts: QuoteCounts,
}

impl Totals {
    /// Counts a change of what is served of a symbol, and returns its version.
    pub(super) fn changed(&mut self, symbol: SymbolId) -> u64 {
        self.version += 1;
        self.touched.insert(symbol.index());
        self.version
    }
}

impl Quote {
    /// True if the quote is too old, frozen or only restored.
    pub fn stale(&self) -> bool {
        self.stale
    }

    /// The rendered body, made by `make` at the first call after a change.
    pub fn rendered(&self, make: impl FnOnce(&Quote) -> Box<[u8]>) -> &[u8] {
        self.rendered.get_or_init(|| make(self))
    }

    /// When this quote was last received, if the next ticker shows that somebody has traded since: its last
    /// price differs, or a 24-hour volume is greater. `None` if this quote is stale.
    pub fn traded_since(&self, next: &Ticker) -> Option<Mono> {
        let (before, after) = (&self.ticker, next);
        let volumes = [
            (&before.base_volume, &after.base_volume),
            (&before.quote_volume, &after.quote_volume),
        ];
        let rose = |(before, after): (&Option<_>, &Option<_>)| before.is_some() && after > before;
        let is_traded = before.last != after.last || volumes.into_iter().any(rose);
        (is_traded && !self.stale).then_some(self.received)
    }

    /// A quote that was received at `received`, or in an earlier process if that is `None`.
    pub(super) fn new(
        (source, symbol): (SourceId, SymbolId),
        ticker: Ticker,
        received: Option<Mono>,
        received_at: UnixMs,
    ) -> Quote {
        Quote {
            symbol,
            source,
            ticker,
            received_at,
            version: 0,
            received: received.unwrap_or_default(),
            restored: received.is_none(),
            stale: received.is_none(),
            is_left: false,
            returning: 0,
            rendered: OnceCell::new(),
        }
    }

    /// Applies new figures. Returns true if one of them differs ([`Ticker::tells_more_than`]). The quote is
    /// now fresh, unless its source is frozen. It counts as returning if it was stale, or had not been
    /// received for `stale_after`.
    pub(super) fn receive(
        &mut self,
        ticker: Ticker,
        now: Now,
        (frozen, stale_after): (bool, Duration),
        stale_here: &mut usize,
        totals: &mut Totals,
    ) -> bool {
        let changed = ticker.tells_more_than(&self.ticker);
        self.ticker = ticker;
        let second = (now.mono.0 / 1_000_000) as u32 + 1;
        let is_late = |at| self.stale || now.mono.since(at) >= stale_after;
        if self.received().is_some_and(is_late) {
            self.returning = second;
        } else if self.returning > 0 && second.saturating_sub(self.returning) >= RETURN_AFTER_S {
            self.returning = 0;
            totals.turns.push(self.turn(true));
        }
        self.received_at = now.unix;
        self.set_received(Some(now.mono));
        self.set_stale(frozen, stale_here, totals);
        changed
    }

    /// When the quote was received in this process. `None` if it was only restored.
    pub(super) fn received(&self) -> Option<Mono> {
        (!self.restored).then_some(self.received)
    }

    pub(super) fn set_received(&mut self, at: Option<Mono>) {
        (self.received, self.restored) = (at.unwrap_or_default(), at.is_none());
    }

    fn turn(&self, returns: bool) -> QuoteTurn {
        QuoteTurn { source: self.source, symbol: self.symbol, returns }
    }

    /// Sets the staleness and a new version. `stale_here` counts the stale quotes of its source.
    pub(super) fn set_stale(&mut self, stale: bool, stale_here: &mut usize, totals: &mut Totals) {
        *stale_here = *stale_here + usize::from(stale) - usize::from(self.stale);
        if stale && !self.stale {
            totals.turns.push(self.turn(false));
        }
        self.version = totals.changed(self.symbol);
        self.stale = stale;
        self.rendered.take();
    }

    /// The order of receipt. Restored quotes come first, in the order of the wall clock. The wall
    /// clock may have been set back, so it does not order other quotes.
    pub(super) fn age_key(&self) -> (Option<Mono>, UnixMs) {
        (self.received(), self.received_at)
    }
}

/// The steps, in order, after which a missing quote means that the exchange has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A market list.
    List,
    /// A poll that begins after the market list.
    Poll,
    /// The end of that poll.
    PollEnd,
}

/// The quotes of one source.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// By symbol. Boxed, because the symbols of one source may be few among all.
    pub(super) quotes: Vec<Option<Box<Quote>>>,
    pub(super) stale_after: Duration,
    pub(super) frozen_after: Duration,
    /// No fresh quote becomes stale before this time. `None` if no quote is fresh.
    pub(super) next_stale: Option<Mono>,
    pub(super) last_change: Option<Mono>,
    /// The number of stale quotes.
    pub(super) stale: usize,
    pub(super) frozen: bool,
    /// Symbols that no finished poll has requested, by what they wait for.
    pub(super) awaited: [BTreeSet<SymbolId>; 3],
}

impl Feed {
    pub(super) fn new(source: &SourceConfig) -> Feed {
        Feed {
            stale_after: source.stale_after,
            frozen_after: source.frozen_after,
            ..Feed::default()
        }
    }

    /// Visits every quote and corrects its flag. Returns the number of changes.
    pub(super) fn judge(&mut self, now: Mono, totals: &mut Totals) -> usize {
        let (mut turned, mut next_stale) = (0, None);
        for quote in self.quotes.iter_mut().flatten() {
            let stale_at = quote.received().map(|at| at + self.stale_after);
            let stale_at = stale_at.filter(|at| !self.frozen && now < *at);
            let stale = stale_at.is_none();
            if stale != quote.stale {
                quote.set_stale(stale, &mut self.stale, totals);
                turned += 1;
            }
            next_stale = next_stale.into_iter().chain(stale_at).min();
        }
        self.next_stale = next_stale;
        turned
    }
}
