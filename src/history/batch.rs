//! A batch: everything that one flush writes, and how what waits is merged.
//!
//! A batch that could not be written comes back with its answer; [`Batch::absorb`] puts what has
//! happened since on top of it, key by key, so that waiting for a full disk takes memory for what
//! changed and not for how often.

use super::{QuoteName, SavedQuote, SeriesName};
use crate::record::{Candle, MarketRules};
use std::collections::BTreeMap;
use std::ops::Range;

/// Everything that a flush writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Changes by series.
    pub series: BTreeMap<SeriesName, Changes>,
    /// Quotes to save, each in place of what was saved before.
    pub quotes: BTreeMap<QuoteName, SavedQuote>,
    /// Markets' rules to save, each in place of what was saved before.
    pub markets: BTreeMap<QuoteName, MarketRules>,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let is_quiet = self.quotes.is_empty() && self.markets.is_empty();
        is_quiet && self.series.values().all(Changes::is_empty)
    }

    /// What it holds, in candles, ranges, quotes and markets: what a caller who keeps it should bound.
    pub fn weight(&self) -> usize {
        let series: usize = self.series.values().map(Changes::weight).sum();
        series + self.quotes.len() + self.markets.len()
    }

    /// The changes of a series.
    pub fn of(&mut self, series: &SeriesName) -> &mut Changes {
        // Nearly always it is there: only a new one costs a copy of the name.
        if !self.series.contains_key(series) {
            self.series.insert(series.clone(), Changes::default());
        }
        self.series.get_mut(series).expect("inserted just above")
    }

    /// Takes in what happened after it: writing the result does what writing both in their order
    /// would.
    pub fn absorb(&mut self, later: Batch) {
        for (name, changes) in later.series {
            self.series.entry(name).or_default().absorb(changes);
        }
        self.quotes.extend(later.quotes);
        self.markets.extend(later.markets);
    }
}

/// What becomes of a range of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The exchange has answered for them. Candles that are stored there stay, unless
    /// [`Changes::candles`] says otherwise.
    Covered,
    /// Nothing is known of them any more, and candles that are stored there go.
    Forgotten,
    /// Forgotten, and answered for anew.
    Replaced,
}

/// What is to be changed of one series.
///
/// Invariant: ranges do not overlap, neighbours that touch have different fates; every candle lies
/// in a range that is covered or replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// By first slot: the slot behind the last one, and what becomes of them.
    ranges: BTreeMap<i64, (i64, Fate)>,
    /// By slot; `None` where the exchange no longer has one.
    candles: BTreeMap<i64, Option<Candle>>,
}

impl Changes {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// What it holds, in candles and ranges.
    pub fn weight(&self) -> usize {
        self.candles.len() + self.ranges.len()
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<i64>, Fate)> {
        (self.ranges.iter()).map(|(start, (end, fate))| (*start..*end, *fate))
    }

    /// The candles by slot, in order; `None` where one is to be deleted.
    pub fn candles(&self) -> impl Iterator<Item = (i64, Option<&Candle>)> {
        (self.candles.iter()).map(|(slot, candle)| (*slot, candle.as_ref()))
    }

    /// The exchange has answered for these slots: what is stored in them stays as it is, but for
    /// these, each in one of the slots. `None`: the exchange no longer has that candle.
    pub fn answered(
        &mut self,
        slots: Range<i64>,
        candles: impl IntoIterator<Item = (i64, Option<Candle>)>,
    ) {
        self.paint(slots.clone(), Fate::Covered);
        for (slot, candle) in candles {
            debug_assert!(slots.contains(&slot), "a candle of an answer lies in it");
            self.candles.insert(slot, candle);
        }
    }

    /// Nothing is known of these slots any more.
    pub fn forget(&mut self, slots: Range<i64>) {
        self.drop_candles(&slots);
        self.paint(slots, Fate::Forgotten);
    }

    /// Takes in what happened after it.
    pub fn absorb(&mut self, later: Changes) {
        for (start, (end, fate)) in later.ranges {
            if fate != Fate::Covered {
                self.drop_candles(&(start..end));
            }
            self.paint(start..end, fate);
        }
        self.candles.extend(later.candles);
    }

    fn drop_candles(&mut self, slots: &Range<i64>) {
        self.candles.retain(|slot, _| !slots.contains(slot));
    }

    /// Gives the slots a fate, on top of the one they had.
    fn paint(&mut self, slots: Range<i64>, fate: Fate) {
        if slots.is_empty() {
            return;
        }
        let mut at = slots.start;
        for (start, end, old) in self.cut_out(&slots) {
            if at < start {
                self.lay(at, start, fate);
            }
            let both = match (old, fate) {
                (Fate::Forgotten | Fate::Replaced, Fate::Covered) => Fate::Replaced,
                _ => fate,
            };
            self.lay(start, end, both);
            at = end;
        }
        if at < slots.end {
            self.lay(at, slots.end, fate);
        }
        self.check();
    }

    /// Takes the slots out of the ranges; answers the parts, in order.
    fn cut_out(&mut self, slots: &Range<i64>) -> Vec<(i64, i64, Fate)> {
        let before = self.ranges.range(..slots.start).next_back();
        let reaches_in = before.filter(|(_, (end, _))| *end > slots.start);
        let inside = self.ranges.range(slots.clone());
        let touched: Vec<i64> = (reaches_in.into_iter().chain(inside))
            .map(|(start, _)| *start)
            .collect();
        let mut parts = Vec::with_capacity(touched.len());
        for start in touched {
            let (end, fate) = self.ranges.remove(&start).expect("found just above");
            if start < slots.start {
                self.ranges.insert(start, (slots.start, fate));
            }
            if end > slots.end {
                self.ranges.insert(slots.end, (end, fate));
            }
            parts.push((start.max(slots.start), end.min(slots.end), fate));
        }
        parts
    }

    /// Puts a range where there is none, and joins it with neighbours of the same fate.
    fn lay(&mut self, mut start: i64, mut end: i64, fate: Fate) {
        if let Some((left, (behind, same))) = self.ranges.range(..start).next_back()
            && *behind == start
            && *same == fate
        {
            start = *left;
        }
        if let Some((behind, same)) = self.ranges.get(&end).copied()
            && same == fate
        {
            self.ranges.remove(&end);
            end = behind;
        }
        self.ranges.insert(start, (end, fate));
    }

    /// The invariant.
    fn check(&self) {
        debug_assert!(self.ranges.iter().all(|(start, (end, _))| start < end));
        let pairs = self.ranges.iter().zip(self.ranges.iter().skip(1));
        debug_assert!(
            pairs
                .into_iter()
                .all(|((_, (end, fate)), (start, (_, next)))| end < start
                    || (end == start && fate != next))
        );
    }
}
