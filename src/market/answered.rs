//! What an exchange's answer does to a series.
//!
//! Owns the rules by which an answer becomes coverage, stored rows and a forming candle. It never
//! takes one bad candle for a bad answer, and never takes silence about a slot that has not
//! ended for a word.

use super::chunk::{CHUNK_SLOTS, Draft, chunk_of, chunks_of, place_of, places_of, seconds};
use super::series::{Series, Tail};
use super::spans::SpansFull;
use crate::record::Candle;
use crate::time::UnixMs;
use std::ops::Range;

/// A candle as an exchange reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Its numbers.
    pub candle: Candle,
    /// The exchange's own word on whether it is closed, where it says so.
    pub closed: Option<bool>,
}

/// What an answer of the exchange did to a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Candles stored in slots that had none.
    pub written: usize,
    /// Stored candles whose numbers changed.
    pub updated: usize,
    /// Stored candles that the answer confirmed as they are.
    pub unchanged: usize,
    /// Stored candles that the exchange no longer has.
    pub removed: usize,
    /// Unsound ones: not aligned, not asked for, of the future, or with numbers that no market
    /// can have.
    pub rejected: usize,
    /// Old candles that had to leave: out of the window of time, or with a span of coverage
    /// that made room.
    pub evicted: usize,
    /// Nothing closed was stored: coverage is in too many pieces, and this would be the oldest.
    pub refused: bool,
}

/// What an answer says about one slot.
struct Found<'a> {
    slot: i64,
    /// `None`: something unsound, which is no word about the slot.
    candle: Option<&'a Candle>,
}

impl Series {
    /// Takes an answer of the exchange about the slots `asked`: every candle it has there, in any
    /// order. `closed_before` is the exchange's clock at the moment of the answer; a caller who
    /// knows that the exchange needs a while to close a candle takes that off.
    ///
    /// Slots that ended by then are covered from now on, and are as the exchange says: a sound
    /// candle is stored, a slot without one loses what was stored or made from quotes. An unsound
    /// candle changes nothing in its slot. The candle that has not ended becomes the forming one.
    pub fn answered(
        &mut self,
        asked: Range<i64>,
        candles: &[Reported],
        closed_before: UnixMs,
    ) -> Written {
        let mut written = Written::default();
        let present = self.interval().slot_of(closed_before);
        let asked = asked.start.max(0)..asked.end;
        let (found, open_from) = self.sift(&asked, candles, present, &mut written);
        let closed = asked.start..asked.end.min(open_from);
        let split = found.partition_point(|found| found.slot < open_from);

        self.heal_clock(present);
        match self.cover(&closed, &mut written) {
            Some(changed) => {
                self.store(
                    &closed,
                    &found[..split],
                    seconds(closed_before),
                    &mut written,
                );
                if changed || written.written + written.updated + written.removed > 0 {
                    self.bump_closed();
                }
            }
            None => written.refused = true,
        }
        for found in &found[split..] {
            if let Some(candle) = found.candle {
                self.set_open(found.slot, candle);
            }
        }
        self.settle_tail();
        self.advance(present);
        self.check();
        written
    }

    /// The reported candles by slot, one each, unsound ones without their numbers; and the first
    /// slot that has not ended.
    fn sift<'a>(
        &self,
        asked: &Range<i64>,
        candles: &'a [Reported],
        present: i64,
        written: &mut Written,
    ) -> (Vec<Found<'a>>, i64) {
        let mut open_from = present;
        let mut found = Vec::with_capacity(candles.len());
        for Reported { candle, closed } in candles {
            let slot = self.interval().slot_of(candle.open_time);
            let asked_for = asked.contains(&slot);
            // One slot ahead: its clock may have passed a boundary that ours is just before.
            let sound = asked_for
                && slot <= present.saturating_add(1)
                && self.open_of(slot) == candle.open_time
                && is_sound(candle);
            if !sound {
                written.rejected += 1;
            } else if *closed == Some(false) && slot >= present - 1 {
                // The exchange's word counts where the clocks may disagree; further back, a
                // candle that never closes would be asked for again for ever.
                open_from = open_from.min(slot);
            }
            if asked_for {
                let candle = sound.then_some(candle);
                found.push(Found { slot, candle });
            }
        }
        found.sort_by_key(|found| found.slot);
        found.dedup_by(|later, kept| {
            let same = later.slot == kept.slot;
            if same && later.candle.is_some() {
                kept.candle = later.candle;
            }
            same
        });
        (found, open_from)
    }

    /// Marks these slots; says whether that changed anything. `None`: there are too many spans.
    fn cover(&mut self, closed: &Range<i64>, written: &mut Written) -> Option<bool> {
        loop {
            match self.covered.insert(closed.clone()) {
                Ok(changed) => return Some(changed),
                Err(SpansFull) => {
                    // What is newer is worth more.
                    let oldest = self.covered.iter().next()?;
                    if oldest.end > closed.start {
                        return None;
                    }
                    written.evicted += self.forget_before(oldest.end);
                }
            }
        }
    }

    /// Makes the rows of these slots those of the found candles.
    fn store(
        &mut self,
        closed: &Range<i64>,
        found: &[Found<'_>],
        second: u32,
        written: &mut Written,
    ) {
        if closed.is_empty() {
            return;
        }
        let (mut draft, mut rest) = (Draft::default(), found);
        let mut at = chunk_of(closed.start);
        let end = chunks_of(closed).end;
        // An answer may cover a million slots and hold three candles: only chunks that have
        // candles, or get some, are looked at.
        while at < end {
            let stored = self.chunks.range(at..end).next().map(|(id, _)| *id);
            let fresh = rest.first().map(|found| chunk_of(found.slot));
            let Some(id) = stored.into_iter().chain(fresh).min() else {
                break;
            };
            let here = rest.partition_point(|found| chunk_of(found.slot) == id);
            let places = places_of(id, closed);
            self.store_chunk(id, places, &rest[..here], &mut draft, second, written);
            rest = &rest[here..];
            at = id + 1;
        }
    }

    fn store_chunk(
        &mut self,
        id: i64,
        places: Range<u32>,
        found: &[Found<'_>],
        draft: &mut Draft,
        second: u32,
        written: &mut Written,
    ) {
        let old = self.chunks.get(&id);
        let before = *written;
        let mut kept = 0;
        draft.clear();
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
        let same = written.written == before.written
            && written.updated == before.updated
            && written.removed == before.removed;
        if !same {
            // What nobody read yet leaves as if it had been read when it came.
            let read = old.map_or(second, |old| old.read().max(second));
            self.set_chunk(id, draft.build(read));
        }
    }

    /// Puts a candle that has not ended into the tail, in place of what quotes made.
    fn set_open(&mut self, slot: i64, candle: &Candle) {
        let at = self.tail.partition_point(|tail| tail.slot < slot);
        match self.tail.get_mut(at) {
            Some(tail) if tail.slot == slot && tail.candle == *candle => return,
            Some(tail) if tail.slot == slot => *tail = Tail::new(slot, candle.clone()),
            _ => self.tail.insert(at, Tail::new(slot, candle.clone())),
        }
        self.version += 1;
    }

    /// After a clock that ran ahead was set right: slots that have not come yet are not covered,
    /// unless the exchange had a candle for them, and have no candle made from quotes. One slot
    /// is no wrong clock: two answers may be applied in another order than they were made.
    fn heal_clock(&mut self, present: i64) {
        let begin = present.saturating_add(2);
        if self.frontier < begin {
            return;
        }
        let begin = self.last_row().map_or(begin, |slot| begin.max(slot + 1));
        if self.covered.remove(begin..i64::MAX) {
            self.bump_closed();
        }
        self.tail.retain(|tail| tail.slot < begin);
        let covered = self.covered.last().map_or(i64::MIN, |last| last + 1);
        let tail = self.tail.last().map_or(i64::MIN, |tail| tail.slot);
        self.frontier = present.max(covered).max(tail);
        self.forgotten = self.forgotten.filter(|slot| *slot < present);
        self.version += 1;
    }
}

/// Whether a market can have such numbers.
fn is_sound(candle: &Candle) -> bool {
    let Candle {
        open,
        high,
        low,
        close,
        volume,
        ..
    } = candle;
    low.is_positive()
        && low <= open
        && low <= close
        && open <= high
        && close <= high
        && !volume.is_negative()
}
