//! Silences: slots that one answer has left out, where that alone proves nothing.
//!
//! Owns these slots and the times of the first and the last such answer. A second answer that leaves
//! them out too, about a refresh after the first, makes them empty. Silences are never stored: a
//! lost one only costs another request.

use crate::interval::Stored;
use crate::time::UnixMs;
use rangemap::RangeMap;
use std::ops::Range;

/// Closed candles before the newest that each refresh reads again, because exchanges revise the
/// last one when late trades are booked. A candle is final once it was read this many slots after
/// its close.
pub const REREAD: i64 = 2;

/// An answer with this many rows may have been cut, so it says nothing about slots outside of its
/// rows. No request includes as many known candles, so such an answer always brings new ones and
/// the requests come to an end. The shortest page of a known exchange has 100 rows.
pub const LEAST_PAGE: usize = 8;

/// The most parts remembered for one series. Each end of an answer adds at most one.
const MOST_PARTS: usize = 64;

/// How often the newest candles are read again: once an interval, but at least this often.
pub fn refresh_ms(interval: Stored) -> i64 {
    match interval {
        Stored::M1 => 60_000,
        Stored::H1 => 300_000,
        Stored::D1 => 900_000,
    }
}

/// The least time between an answer that leaves out a slot and the one that confirms it: one
/// re-read, minus what a slow request takes off two regular ones.
pub fn confirmed_after_ms(interval: Stored) -> i64 {
    refresh_ms(interval) / 10 * 9
}

/// The slots of one series that answers have left out.
#[derive(Clone, Debug, Default)]
pub struct Silences {
    /// The first answer that has left them out.
    first: RangeMap<i64, UnixMs>,
    /// The last one.
    last: RangeMap<i64, UnixMs>,
}

impl Silences {
    /// Notes that an answer of this time leaves out these slots. Returns, and forgets, the parts
    /// that another answer left out at least `apart` milliseconds before.
    pub fn note(&mut self, slots: Range<i64>, at: UnixMs, apart: i64) -> Vec<Range<i64>> {
        if slots.is_empty() {
            return Vec::new();
        }
        let (old, young): (Vec<_>, Vec<_>) =
            (self.within(&slots)).partition(|(_, since)| at - *since >= apart);
        self.first.insert(slots.clone(), at);
        self.last.insert(slots, at);
        for (part, since) in young {
            self.first.insert(part, since);
        }
        for (part, _) in &old {
            self.remove(part);
        }
        for parts in [&mut self.first, &mut self.last] {
            while parts.len() > MOST_PARTS
                && let Some((oldest, _)) = parts.first_range_value()
            {
                parts.remove(oldest.clone());
            }
        }
        old.into_iter().map(|(part, _)| part).collect()
    }

    /// Forgets these slots: something is known of them.
    pub fn remove(&mut self, slots: &Range<i64>) {
        if !slots.is_empty() {
            self.first.remove(slots.clone());
            self.last.remove(slots.clone());
        }
    }

    /// The parts among these slots, and since when each is silent.
    pub fn within(&self, slots: &Range<i64>) -> impl Iterator<Item = (Range<i64>, UnixMs)> {
        parts(&self.first, slots)
    }

    /// The parts among these slots, and when each was last left out.
    pub fn last_within(&self, slots: &Range<i64>) -> impl Iterator<Item = (Range<i64>, UnixMs)> {
        parts(&self.last, slots)
    }
}

fn parts(
    all: &RangeMap<i64, UnixMs>,
    slots: &Range<i64>,
) -> impl Iterator<Item = (Range<i64>, UnixMs)> {
    let inside = |(part, at): (&Range<i64>, &UnixMs)| {
        (slots.start.max(part.start)..slots.end.min(part.end), *at)
    };
    let parts = all.overlapping(slots).map(inside);
    parts.filter(|(both, _)| !both.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: i64 = 50;

    fn noted(silences: &Silences) -> Vec<(i64, i64, i64)> {
        let all = silences.within(&(0..1000));
        all.map(|(slots, since)| (slots.start, slots.end, since.0)).collect()
    }

    #[test]
    fn a_second_silence_confirms_only_when_it_comes_late_enough() {
        let mut silences = Silences::default();
        assert_eq!(silences.note(10..20, UnixMs(0), APART), []);
        assert_eq!(silences.note(12..25, UnixMs(49), APART), []);
        assert_eq!(noted(&silences), [(10, 20, 0), (20, 25, 49)]);
        let confirmed = silences.note(15..30, UnixMs(60), APART);
        assert_eq!((confirmed.len(), &confirmed[0]), (1, &(15..20)));
        assert_eq!(noted(&silences), [(10, 15, 0), (20, 25, 49), (25, 30, 60)]);
        assert_eq!(silences.note(0..40, UnixMs(200), APART), [10..15, 20..25, 25..30]);
        assert_eq!(noted(&silences), [(0, 10, 200), (15, 20, 200), (30, 40, 200)]);
        silences.remove(&(5..35));
        assert_eq!(noted(&silences), [(0, 5, 200), (35, 40, 200)]);
    }

    #[test]
    fn the_last_silence_is_told_beside_the_first() {
        let mut silences = Silences::default();
        for at in [0, 30, 49] {
            assert_eq!(silences.note(10..20, UnixMs(at), APART), []);
        }
        let first: Vec<_> = silences.within(&(0..15)).collect();
        let last: Vec<_> = silences.last_within(&(0..15)).collect();
        assert_eq!((first.len(), &first[0]), (1, &(10..15, UnixMs(0))));
        assert_eq!((last.len(), &last[0]), (1, &(10..15, UnixMs(49))));
        assert_eq!(silences.note(10..20, UnixMs(50), APART).len(), 1);
        assert_eq!(silences.last_within(&(0..100)).count(), 0);
    }

    #[test]
    fn no_more_parts_are_remembered_than_the_cap_and_the_newest_stay() {
        let mut silences = Silences::default();
        for slot in 0..200 {
            silences.note(slot * 2..slot * 2 + 1, UnixMs(slot), 1000);
        }
        let noted = noted(&silences);
        assert_eq!((noted.len(), noted[MOST_PARTS - 1].0), (MOST_PARTS, 398));
    }
}
