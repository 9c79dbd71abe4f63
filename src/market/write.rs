//! Writes to a series: coverage, stored rows, forming candles.
//!
//! `ingest.rs` decides what is written.

use super::chunk::{CHUNK_SLOTS, Draft, chunk_of, chunks_of, place_of, places_of};
use super::forming::FormingCandle;
use super::interval_set::IntervalSetFull;
use super::report::{Found, IngestCounts, found_in};
use super::series::Series;
use crate::record::Candle;
use std::ops::Range;

impl Series {
    /// Covers these slots. Returns true if that changed anything. While there are too many ranges, the
    /// oldest one is forgotten, unless these slots are older: newer ones are worth more.
    pub(super) fn cover(
        &mut self,
        closed: &Range<i64>,
        written: &mut IngestCounts,
    ) -> Result<bool, IntervalSetFull> {
        loop {
            let covered = self.covered.insert(closed.clone());
            let oldest = self.covered.iter().next();
            let older = oldest.filter(|oldest| oldest.end <= closed.start);
            match (covered, older) {
                (Err(IntervalSetFull), Some(oldest)) => {
                    written.evicted += self.forget_before(oldest.end);
                }
                (covered, _) => return covered,
            }
        }
    }

    /// Replaces the rows of these slots by the found candles.
    pub(super) fn store(
        &mut self,
        closed: &Range<i64>,
        found: &[Found<'_>],
        second: u32,
        written: &mut IngestCounts,
    ) {
        // An answer may cover a million slots and hold three candles. Only chunks that have
        // candles, or get some, are visited.
        let stored = self.chunks.range(chunks_of(closed)).map(|(id, _)| *id);
        let mut ids: Vec<i64> = stored.chain(found.iter().map(|it| chunk_of(it.slot))).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let here = found_in(found, &(id * CHUNK_SLOTS..(id + 1) * CHUNK_SLOTS));
            self.store_chunk(id, places_of(id, closed), here, second, written);
        }
    }

    fn store_chunk(
        &mut self,
        id: i64,
        places: Range<u32>,
        found: &[Found<'_>],
        second: u32,
        written: &mut IngestCounts,
    ) {
        let old = self.chunks.get(&id).cloned().unwrap_or_default();
        let before = *written;
        let (mut draft, mut kept) = (Draft::default(), 0);
        draft.copy(&old, 0..places.start);
        for found in found {
            let place = place_of(found.slot);
            match (found.candle, old.row(place)) {
                (Some(candle), Some(row)) if draft.push(place, candle) == row => {
                    written.unchanged += 1;
                }
                (Some(_), Some(_)) => written.updated += 1,
                (Some(candle), None) => {
                    draft.push(place, candle);
                    written.written += 1;
                }
                (None, Some(_)) => {
                    draft.copy(&old, place..place + 1);
                    kept += 1;
                }
                (None, None) => {}
            }
        }
        let confirmed = written.updated - before.updated + written.unchanged - before.unchanged;
        written.removed += old.count_in(&places) - confirmed - kept;
        draft.copy(&old, places.end..CHUNK_SLOTS as u32);
        if written.changes() > before.changes() {
            // A chunk that nobody has read counts as read when it came.
            let read = old.read().max(second);
            self.set_chunk(id, draft.build(read));
        }
    }

    /// Sets a forming candle, in place of what quotes made.
    pub(super) fn set_open(&mut self, slot: i64, candle: &Candle) {
        if self.forming(slot) == Some(candle) {
            return;
        }
        self.forming.retain(|forming| forming.slot != slot);
        let at = self.forming.partition_point(|forming| forming.slot < slot);
        self.forming.insert(at, FormingCandle::new(slot, candle.clone()));
        self.version += 1;
    }
}
