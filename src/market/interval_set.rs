//! An interval set: a set of slots, stored as ranges.
//!
//! It has no candles. As the coverage of a series, it tells slots that are known to be empty, which
//! are in the set, from slots that were never asked for.
//!
//! The ranges are half-open, not empty, sorted, and neither overlap nor touch.

use rangemap::RangeSet;
use std::ops::Range;

/// The most ranges that [`IntervalSet::insert`] builds up. A series that is polled and backfilled
/// has one or two. Clients that ask for scattered ranges cause more, at 16 bytes each.
pub const MAX_INTERVALS: usize = 512;

/// A set of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalSet(RangeSet<i64>);

/// The set already has [`MAX_INTERVALS`] ranges, and the new one touches none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalSetFull;

impl IntervalSet {
    /// Adds a range. Returns true if that changed the set.
    pub fn insert(&mut self, range: Range<i64>) -> Result<bool, IntervalSetFull> {
        if self.covers(range.clone()) {
            return Ok(false);
        }
        let around = range.start.saturating_sub(1)..range.end.saturating_add(1);
        if self.0.len() >= MAX_INTERVALS && !self.0.overlaps(&around) {
            return Err(IntervalSetFull);
        }
        self.0.insert(range);
        Ok(true)
    }

    /// Removes a range. Returns true if that changed the set. A removal is never refused. Each removal from
    /// the middle of a range adds a range, even above [`MAX_INTERVALS`].
    pub fn remove(&mut self, range: Range<i64>) -> bool {
        let changes = !range.is_empty() && self.0.overlaps(&range);
        if changes {
            self.0.remove(range);
        }
        changes
    }

    /// True if every slot of the range is in the set.
    pub fn covers(&self, range: Range<i64>) -> bool {
        let holds = |span: &Range<i64>| range.end <= span.end;
        range.is_empty() || self.0.get(&range.start).is_some_and(holds)
    }

    /// The parts of the range that are in the set, in order.
    pub fn within(&self, range: Range<i64>) -> impl DoubleEndedIterator<Item = Range<i64>> {
        let clip = |part: &Range<i64>, range: &Range<i64>| {
            part.start.max(range.start)..part.end.min(range.end)
        };
        let parts = self.0.overlapping(range.clone());
        let parts = parts.map(move |part| clip(part, &range));
        parts.filter(|part| !part.is_empty())
    }

    /// The parts of the range that are not in the set, in order.
    pub fn missing(&self, range: Range<i64>) -> Vec<Range<i64>> {
        self.0.gaps(&range).collect()
    }

    /// How many slots of the range are in the set.
    pub fn covered(&self, range: Range<i64>) -> u64 {
        self.within(range).map(|part| part.end.abs_diff(part.start)).sum()
    }

    /// The first slot.
    pub fn first(&self) -> Option<i64> {
        self.0.first().map(|span| span.start)
    }

    /// The last slot.
    pub fn last(&self) -> Option<i64> {
        self.0.last().map(|span| span.end - 1)
    }

    /// All ranges, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<i64>> {
        self.0.iter().cloned()
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if no slot is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Collects ranges in any order, without the empty ones. [`MAX_INTERVALS`] does not bound the result.
impl FromIterator<Range<i64>> for IntervalSet {
    fn from_iter<I: IntoIterator<Item = Range<i64>>>(ranges: I) -> IntervalSet {
        IntervalSet(ranges.into_iter().filter(|range| !range.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeSet;

    fn spans(ranges: Pairs<'_>) -> IntervalSet {
        let mut spans = IntervalSet::default();
        for (start, end) in ranges {
            spans.insert(*start..*end).expect("few spans");
        }
        spans
    }

    type Pairs<'a> = &'a [(i64, i64)];

    #[test]
    fn a_set_is_collected_without_empty_ranges() {
        let ranges = [(5, 7), (4, 4), (1, 3), (3, 5)].map(|(start, end)| start..end);
        assert_eq!(IntervalSet::from_iter(ranges), spans(&[(1, 7)]));
    }

    #[test]
    fn a_full_set_refuses_what_touches_nothing() {
        let mut set = IntervalSet::default();
        for i in 0..MAX_INTERVALS as i64 {
            assert_eq!(set.insert(i * 3..i * 3 + 1), Ok(true));
        }
        assert_eq!(set.insert(-5..-3), Err(IntervalSetFull));
        assert_eq!(set.insert(1..2), Ok(true));
        assert_eq!(set.len(), MAX_INTERVALS);
        assert_eq!(set.first(), Some(0));
        assert_eq!(set.last(), Some((MAX_INTERVALS as i64 - 1) * 3));
    }

    #[test]
    fn a_thousand_random_changes_agree_with_a_set_of_slots() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut random = move |below: i64| rng.below(below as u64) as i64;
            let (mut set, mut naive) = (IntervalSet::default(), BTreeSet::new());
            for _ in 0..200 {
                let start = random(100);
                let range = start..start + random(12);
                let before = naive.clone();
                let has_changed = if random(3) == 0 {
                    naive.retain(|slot| !range.contains(slot));
                    set.remove(range)
                } else {
                    naive.extend(range.clone());
                    set.insert(range).expect("few spans")
                };
                assert_eq!(has_changed, naive != before, "{seed}");
                let spans: Vec<_> = set.iter().collect();
                assert!(spans.is_sorted_by(|a, b| a.end < b.start), "{seed}: {spans:?} touch");
                let start = random(100);
                let asked = start..start + random(30);
                let inside = asked.clone().filter(|slot| naive.contains(slot));
                assert_eq!(set.covered(asked.clone()), inside.count() as u64);
                let outside: Vec<i64> =
                    asked.clone().filter(|slot| !naive.contains(slot)).collect();
                assert_eq!(set.covers(asked.clone()), outside.is_empty());
                let missing: Vec<i64> = set.missing(asked).into_iter().flatten().collect();
                assert_eq!(missing, outside, "seed {seed}");
                assert_eq!(set.first(), naive.first().copied());
                assert_eq!(set.last(), naive.last().copied());
            }
        }
    }
}
