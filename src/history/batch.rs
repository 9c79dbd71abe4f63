//! A batch: everything that one flush writes.
//!
//! A batch that could not be written comes back. [`Batch::absorb`] merges later changes into it by key.
//! So the memory that it takes while the disk is full depends on what changed, not on how often.

use super::names::{QuoteName, SavedQuote, SeriesName};
use crate::record::{Candle, MarketRules};
use rangemap::RangeMap;
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

    /// Its size in candles, ranges, quotes and markets. A caller that keeps it should bound this.
    pub fn weight(&self) -> usize {
        let series: usize = self.series.values().map(Changes::weight).sum();
        series + self.quotes.len() + self.markets.len()
    }

    /// The changes of a series.
    pub fn of(&mut self, series: &SeriesName) -> &mut Changes {
        // Nearly always it exists: only a new one costs a copy of the name.
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

/// What a change does to a range of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They become covered. Stored candles stay, unless [`Changes::candles`] replaces them.
    Covered,
    /// They are not covered any more, and their candles are deleted.
    Forgotten,
    /// Their candles are deleted, and they become covered.
    Replaced,
}

/// The changes of one series.
///
/// Invariant: ranges do not overlap, and ranges that touch have different fates. Each candle is in a
/// range that is `Covered` or `Replaced`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    ranges: RangeMap<i64, Fate>,
    /// By slot; `None` if the exchange no longer has a candle.
    candles: BTreeMap<i64, Option<Candle>>,
}

impl Changes {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Its size in candles and ranges.
    pub fn weight(&self) -> usize {
        self.candles.len() + self.ranges.len()
    }

    /// The ranges in order, with their fates.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<i64>, Fate)> {
        (self.ranges.iter()).map(|(slots, fate)| (slots.clone(), *fate))
    }

    /// The candles by slot, in order; `None` for a candle to delete.
    pub fn candles(&self) -> impl Iterator<Item = (i64, Option<&Candle>)> {
        (self.candles.iter()).map(|(slot, candle)| (*slot, candle.as_ref()))
    }

    /// Notes a response of the exchange for these slots. Stored candles in them stay, except those
    /// given here: each replaces a candle in one of the slots, and `None` deletes it.
    pub fn answered(
        &mut self,
        slots: Range<i64>,
        candles: impl IntoIterator<Item = (i64, Option<Candle>)>,
    ) {
        self.paint(slots.clone(), Fate::Covered);
        for (slot, candle) in candles {
            debug_assert!(slots.contains(&slot), "a candle of a response is in its range");
            self.candles.insert(slot, candle);
        }
    }

    /// Deletes these slots: their coverage and their candles.
    pub fn forget(&mut self, slots: Range<i64>) {
        self.drop_candles(&slots);
        self.paint(slots, Fate::Forgotten);
    }

    /// Deletes all slots before this one, for their age. It is the only change without a begin.
    pub fn evict(&mut self, before: i64) {
        self.forget(i64::MIN..before);
    }

    /// Merges later changes into these.
    pub fn absorb(&mut self, later: Changes) {
        for (slots, fate) in later.ranges {
            if fate != Fate::Covered {
                self.drop_candles(&slots);
            }
            self.paint(slots, fate);
        }
        self.candles.extend(later.candles);
    }

    fn drop_candles(&mut self, slots: &Range<i64>) {
        self.candles.retain(|slot, _| !slots.contains(slot));
    }

    /// Combines the fate of these slots with a later one.
    fn paint(&mut self, slots: Range<i64>, fate: Fate) {
        if slots.is_empty() {
            return;
        }
        let clip = |part: &Range<i64>| part.start.max(slots.start)..part.end.min(slots.end);
        let lost = |(_, old): &(&Range<i64>, &Fate)| **old != Fate::Covered;
        let before = self.ranges.overlapping(&slots).filter(lost);
        let lost: Vec<_> = before.map(|(part, _)| clip(part)).collect();
        self.ranges.insert(slots, fate);
        if fate == Fate::Covered {
            for part in lost {
                self.ranges.insert(part, Fate::Replaced);
            }
        }
    }
}
