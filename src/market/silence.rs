//! Silences: slots that one answer has left out, where that alone proves nothing.
//!
//! Owns these slots and the time of the answer. A second answer that leaves them out too, at least
//! one re-read later, makes them empty. Silences are never stored: a lost one only costs another
//! request.
//!
//! Invariant: the parts are sorted, not empty, and do not overlap.

use crate::interval::Stored;
use crate::time::UnixMs;
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

/// The slots of one series that one answer has left out.
#[derive(Clone, Debug, Default)]
pub struct Silences {
    parts: Vec<Silence>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Silence {
    slots: Range<i64>,
    since: UnixMs,
}

impl Silences {
    /// Notes that an answer of this time leaves out these slots. Returns, and forgets, the parts
    /// that another answer left out at least `apart` milliseconds before.
    pub fn note(&mut self, slots: Range<i64>, at: UnixMs, apart: i64) -> Vec<Range<i64>> {
        let mut confirmed = Vec::new();
        let mut noted = Vec::with_capacity(self.parts.len() + 1);
        let mut from = slots.start;
        for part in std::mem::take(&mut self.parts) {
            let both = slots.start.max(part.slots.start)..slots.end.min(part.slots.end);
            if both.is_empty() || at - part.since < apart {
                if !both.is_empty() {
                    noted.push(silence(from..both.start, at));
                    from = both.end;
                }
                noted.push(part);
                continue;
            }
            noted.push(silence(part.slots.start..both.start, part.since));
            noted.push(silence(from..both.start, at));
            noted.push(silence(both.end..part.slots.end, part.since));
            from = both.end;
            confirmed.push(both);
        }
        noted.push(silence(from..slots.end, at));
        noted.retain(|part| !part.slots.is_empty());
        noted.sort_unstable_by_key(|part| part.slots.start);
        noted.dedup_by(|later, kept| {
            let joins = later.since == kept.since && later.slots.start == kept.slots.end;
            if joins {
                kept.slots.end = later.slots.end;
            }
            joins
        });
        let excess = noted.len().saturating_sub(MOST_PARTS);
        noted.drain(..excess);
        self.parts = noted;
        self.check();
        confirmed
    }

    /// Forgets these slots: something is known of them.
    pub fn remove(&mut self, slots: &Range<i64>) {
        if self.within(slots).next().is_none() {
            return;
        }
        let parts = std::mem::take(&mut self.parts).into_iter();
        let cut = |part: Silence| {
            let before = part.slots.start..part.slots.end.min(slots.start);
            let behind = part.slots.start.max(slots.end)..part.slots.end;
            [silence(before, part.since), silence(behind, part.since)]
        };
        self.parts = parts.flat_map(cut).collect();
        self.parts.retain(|part| !part.slots.is_empty());
        self.check();
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.parts.clear();
    }

    /// The parts among these slots, and since when each is silent.
    pub fn within(&self, slots: &Range<i64>) -> impl Iterator<Item = (Range<i64>, UnixMs)> {
        let inside = |part: &Silence| {
            let both = slots.start.max(part.slots.start)..slots.end.min(part.slots.end);
            (both, part.since)
        };
        (self.parts.iter().map(inside)).filter(|(both, _)| !both.is_empty())
    }

    /// The invariant in the module comment, in debug builds.
    fn check(&self) {
        debug_assert!(self.parts.iter().all(|part| !part.slots.is_empty()));
        let pairs = self.parts.windows(2);
        debug_assert!({ pairs }.all(|two| two[0].slots.end <= two[1].slots.start));
    }
}

fn silence(slots: Range<i64>, since: UnixMs) -> Silence {
    Silence { slots, since }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: i64 = 50;

    fn noted(silences: &Silences) -> Vec<(i64, i64, i64)> {
        let all = silences.within(&(0..1000));
        all.map(|(slots, since)| (slots.start, slots.end, since.0))
            .collect()
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
        assert_eq!(
            silences.note(0..40, UnixMs(200), APART),
            [10..15, 20..25, 25..30]
        );
        assert_eq!(
            noted(&silences),
            [(0, 10, 200), (15, 20, 200), (30, 40, 200)]
        );
        silences.remove(&(5..35));
        assert_eq!(noted(&silences), [(0, 5, 200), (35, 40, 200)]);
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
