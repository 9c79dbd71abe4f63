//! A batch: everything that one flush writes, with the names of its series and quotes.
//!
//! A batch that could not be written comes back. [`Batch::absorb`] merges later changes into it by key. So
//! while the disk is full, the memory of the batch depends on what changed, not on how often it changed.

use crate::interval::Stored;
use crate::record::{Candle, MarketRules, Ticker};
use crate::time::UnixMs;
use rangemap::RangeSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// Everything that a flush writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Changes by series.
    pub series: BTreeMap<SeriesName, Changes>,
    /// Quotes to save. Each replaces the saved one.
    pub quotes: BTreeMap<QuoteName, SavedQuote>,
    /// Rules of markets to save. They replace the saved ones.
    pub markets: BTreeMap<QuoteName, MarketRules>,
}

impl Batch {
    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let is_quiet = self.quotes.is_empty() && self.markets.is_empty();
        is_quiet && self.series.values().all(Changes::is_empty)
    }

    /// The size in candles, ranges, quotes and markets. A caller that keeps a batch should bound
    /// its weight.
    pub fn weight(&self) -> usize {
        let series: usize = self.series.values().map(Changes::weight).sum();
        series + self.quotes.len() + self.markets.len()
    }

    /// The changes of a series.
    pub fn of(&mut self, series: &SeriesName) -> &mut Changes {
        // The entry nearly always exists: only a new one costs a copy of the name.
        if !self.series.contains_key(series) {
            self.series.insert(series.clone(), Changes::default());
        }
        self.series.get_mut(series).expect("inserted just above")
    }

    /// Merges a later batch into this one. Writing the result has the same effect as writing both in
    /// their order.
    pub fn absorb(&mut self, later: Batch) {
        for (name, changes) in later.series {
            self.series.entry(name).or_default().absorb(changes);
        }
        self.quotes.extend(later.quotes);
        self.markets.extend(later.markets);
    }
}

/// The changes of one series: first some slots are forgotten, then some are covered, then candles are
/// written. A slot that is both forgotten and covered loses its stored candle, unless the changes have a new
/// one.
///
/// Invariant: each candle is in a covered slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    forgotten: RangeSet<i64>,
    covered: RangeSet<i64>,
    /// By slot; `None` if the exchange no longer has a candle.
    candles: BTreeMap<i64, Option<Candle>>,
}

impl Changes {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.forgotten.is_empty() && self.covered.is_empty()
    }

    /// Its size in candles and ranges.
    pub fn weight(&self) -> usize {
        self.candles.len() + self.forgotten.len() + self.covered.len()
    }

    /// The slots that lose their coverage and their candles, in order.
    pub fn forgotten(&self) -> impl Iterator<Item = Range<i64>> {
        self.forgotten.iter().cloned()
    }

    /// The slots that become covered after that, in order.
    pub fn covered(&self) -> impl Iterator<Item = Range<i64>> {
        self.covered.iter().cloned()
    }

    /// All slots that are forgotten or covered.
    pub fn ranges(&self) -> impl Iterator<Item = Range<i64>> {
        self.forgotten().chain(self.covered())
    }

    /// The candles by slot, in order; `None` for a candle to delete.
    pub fn candles(&self) -> impl Iterator<Item = (i64, Option<&Candle>)> {
        (self.candles.iter()).map(|(slot, candle)| (*slot, candle.as_ref()))
    }

    /// Notes a response of the exchange for these slots. Stored candles in these slots stay, unless
    /// `candles` has an entry for them: a candle replaces the stored one, and `None` deletes it.
    pub fn answered(
        &mut self,
        slots: Range<i64>,
        candles: impl IntoIterator<Item = (i64, Option<Candle>)>,
    ) {
        for (slot, candle) in candles {
            debug_assert!(slots.contains(&slot), "a candle of a response is in its range");
            self.candles.insert(slot, candle);
        }
        if !slots.is_empty() {
            self.covered.insert(slots);
        }
    }

    /// Deletes these slots: their coverage and their candles.
    pub fn forget(&mut self, slots: Range<i64>) {
        if !slots.is_empty() {
            self.candles.retain(|slot, _| !slots.contains(slot));
            self.covered.remove(slots.clone());
            self.forgotten.insert(slots);
        }
    }

    /// Deletes all slots before this one because of their age. It is the only change whose range
    /// has no lower end.
    pub fn evict(&mut self, before: i64) {
        self.forget(i64::MIN..before);
    }

    /// Merges later changes into these.
    pub fn absorb(&mut self, later: Changes) {
        later.forgotten().for_each(|slots| self.forget(slots));
        self.covered.extend(later.covered);
        self.candles.extend(later.candles);
    }
}

/// The name of a stored series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
    /// The interval of its candles.
    pub interval: Stored,
}

/// The name of a stored quote, or of the stored rules of a market.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuoteName {
    /// Id of the source in the configuration.
    pub source: Box<str>,
    /// Canonical symbol: `BTC/USDT`.
    pub symbol: Box<str>,
}

/// The last quote of a market, which is kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedQuote {
    /// The figures.
    pub ticker: Ticker,
    /// When the last poll with this quote was received.
    pub received_at: UnixMs,
}
