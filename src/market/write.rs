//! Writes to a series: coverage, stored rows, forming candles.
//!
//! `ingest.rs` decides what is written.

use super::answer::{AnswerCounts, Found};
use super::chunk::{CHUNK_SLOTS, Draft, chunk_of, chunks_of, place_of, places_of};
use super::forming::FormingCandle;
use super::interval_set::IntervalSetFull;
use super::series::Series;
use super::silence::Silences;
use crate::history::Changes;
use crate::record::Candle;
use std::ops::Range;

impl Series {
    /// Covers these slots. Returns whether that changed anything, or `None` if there are too many
    /// ranges.
    pub(super) fn cover(
        &mut self,
        closed: &Range<i64>,
        written: &mut AnswerCounts,
    ) -> Option<bool> {
        loop {
            match self.covered.insert(closed.clone()) {
                Ok(changed) => return Some(changed),
                Err(IntervalSetFull) => {
                    // Newer slots are worth more.
                    let oldest = self.covered.iter().next()?;
                    if oldest.end > closed.start {
                        return None;
                    }
                    written.evicted += self.forget_before(oldest.end);
                }
            }
        }
    }

    /// Replaces the rows of these slots by the found candles.
    pub(super) fn store(
        &mut self,
        closed: &Range<i64>,
        found: &[Found<'_>],
        second: u32,
        written: &mut AnswerCounts,
    ) {
        if closed.is_empty() {
            return;
        }
        let mut rest = found;
        let mut at = chunk_of(closed.start);
        let end = chunks_of(closed).end;
        // An answer may cover a million slots and hold three candles. Only chunks that have
        // candles, or get some, are visited.
        while at < end {
            let stored = self.chunks.range(at..end).next().map(|(id, _)| *id);
            let fresh = rest.first().map(|found| chunk_of(found.slot));
            let Some(id) = stored.into_iter().chain(fresh).min() else {
                break;
            };
            let here = rest.partition_point(|found| chunk_of(found.slot) == id);
            let places = places_of(id, closed);
            self.store_chunk(id, places, &rest[..here], second, written);
            rest = &rest[here..];
            at = id + 1;
        }
    }

    fn store_chunk(
        &mut self,
        id: i64,
        places: Range<u32>,
        found: &[Found<'_>],
        second: u32,
        written: &mut AnswerCounts,
    ) {
        let old = self.chunks.get(&id);
        let before = *written;
        let (mut draft, mut kept) = (Draft::default(), 0);
        if let Some(old) = old {
            draft.copy(old, 0..places.start);
        }
        for found in found {
            let place = place_of(found.slot);
            let row = old.and_then(|old| old.row(place));
            match (found.candle, row) {
                (Some(candle), Some(row)) if draft.push(place, candle) == row => {
                    written.unchanged += 1;
                }
                (Some(_), Some(_)) => written.updated += 1,
                (Some(candle), None) => {
                    draft.push(place, candle);
                    written.written += 1;
                }
                (None, Some(_)) => {
                    draft.copy(old.expect("it has this row"), place..place + 1);
                    kept += 1;
                }
                (None, None) => {}
            }
        }
        let confirmed = written.updated - before.updated + written.unchanged - before.unchanged;
        let stored = old.map_or(0, |old| old.count_in(&places));
        written.removed += stored - confirmed - kept;
        if let Some(old) = old {
            draft.copy(old, places.end..CHUNK_SLOTS as u32);
        }
        if written.changes() > before.changes() {
            // A chunk that nobody has read counts as read when it came.
            let read = old.map_or(second, |old| old.read().max(second));
            self.set_chunk(id, draft.build(read));
        }
    }

    /// Sets a forming candle, in place of what quotes made.
    pub(super) fn set_open(&mut self, slot: i64, candle: &Candle) {
        let at = self.forming.partition_point(|forming| forming.slot < slot);
        match self.forming.get_mut(at) {
            Some(forming) if forming.slot == slot && forming.candle == *candle => return,
            Some(forming) if forming.slot == slot => {
                *forming = FormingCandle::new(slot, candle.clone())
            }
            _ => self.forming.insert(at, FormingCandle::new(slot, candle.clone())),
        }
        self.version += 1;
    }

    /// Repairs a series after its clock ran ahead: future slots are no longer covered, unless the
    /// exchange had a candle for them, and their forming candles are dropped. One slot ahead is no
    /// error: answers may be applied in another order than they were made.
    pub(super) fn heal_clock(&mut self, present: i64, changes: Option<&mut Changes>) {
        let begin = present.saturating_add(2);
        // These slots may still be on their way to the file.
        let known = self.newest_known();
        if let Some(changes) = changes.filter(|_| known >= Some(begin)) {
            self.archived.remove(begin..i64::MAX);
            changes.forget(begin..i64::MAX);
        }
        if self.frontier < begin {
            return;
        }
        let begin = self.last_row().map_or(begin, |slot| begin.max(slot + 1));
        if self.covered.remove(begin..i64::MAX) {
            self.bump_closed();
        }
        self.unsettled.remove(begin..i64::MAX);
        self.silences = Silences::default();
        self.forming.retain(|forming| forming.slot < begin);
        let covered = self.covered.last().map_or(i64::MIN, |last| last + 1);
        let forming = self.forming.last().map_or(i64::MIN, |forming| forming.slot);
        self.frontier = present.max(covered).max(forming);
        self.forgotten = self.forgotten.filter(|slot| *slot < present);
        self.version += 1;
    }
}
