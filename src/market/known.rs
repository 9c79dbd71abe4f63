//! Reads of a series: its rows, what it knows about its slots, and which slots to request from the exchange.
//!
//! Rows are found and measured without parsing them, and their bytes are shared instead of copied. Nothing
//! here changes a candle.

use super::chart::Pieces;
use super::chunk::{CHUNK_SLOTS, FormingCandle, chunk_of, chunks_of, place_of, places_of, slot_of};
use super::interval_set::IntervalSet;
use super::rollup::numbers;
use super::series::{LeavingChunk, Series};
use super::silence::REREAD;
use crate::decimal::Decimal;
use crate::fingerprint::{Fingerprint, Part};
use crate::record::Candle;
use crate::time::{Mono, UnixMs};
use std::cmp::Reverse;
use std::ops::Range;

/// How many slots of the file are requested again at its newest end: they come with the newest page. An
/// exchange whose clock went back may have reported unfinished candles for slots that had ended.
const REOPENED: i64 = 24;

/// Within how many slots behind a part a candle is searched that completes it: if it comes in the same
/// response, the candles of the part are settled, and the other slots before it are empty.
pub const NEAR: i64 = 64;

/// How far a bucket that holds at least one candle is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BucketState {
    /// The exchange has confirmed every slot.
    Closed,
    /// Forming or provisional: served now, replaced later.
    Open,
    /// Part of it was never reported, so it is not served.
    Unknown,
}

impl Series {
    /// The slot of the oldest known candle, if a response says that the slot before it has no candle.
    pub fn told_first(&self) -> Option<i64> {
        let first = self.first()?;
        let before = first - 1..first;
        let is_told = self.silences.within(&before).any(|(_, it)| it.since.is_some());
        is_told.then_some(first)
    }

    /// The slot of the oldest candle in memory, if the file has no older slot.
    fn first(&self) -> Option<i64> {
        let first = self.next_candle(i64::MIN..i64::MAX)?;
        self.hidden(i64::MIN..first).is_empty().then_some(first)
    }

    /// The slots before the first candle that a response has left out, if this response began with the first
    /// candle and could have had older candles. `None` if a quote tells of a trade in these slots.
    pub fn told_before_first(&self) -> Option<Range<i64>> {
        let told = self.told_before.clone().filter(|told| self.first() == Some(told.end))?;
        self.traded.within(told.clone()).next().is_none().then_some(told)
    }

    /// The newest part of these slots before the first candle that only a single response has left out so
    /// far. One response is not enough to prove these slots empty.
    pub fn told_once_before_first(&self, slots: &Range<i64>) -> Option<Range<i64>> {
        let first = self.first().filter(|_| self.told_before_first().is_none())?;
        let (part, silence) = self.silences.within(&(slots.start..slots.end.min(first))).last()?;
        (silence.since == Some(silence.last)).then_some(part)
    }

    /// The number of stored candles in these slots, and their rows, oldest first, with a comma after each:
    /// the shared bytes of each chunk, and the range of these slots. Marks the chunks as read now.
    pub(super) fn pieces(&self, slots: &Range<i64>, now: UnixMs) -> (usize, Pieces) {
        let second = self.touch(now);
        let (mut rows, mut pieces) = (0, Vec::new());
        for (id, chunk) in self.chunks.range(chunks_of(slots)) {
            let places = places_of(*id, slots);
            let count = chunk.count_in(&places);
            if count > 0 {
                chunk.touch(second);
                rows += count;
                pieces.push((chunk.rows.clone(), chunk.bytes_of(&places)));
            }
        }
        (rows, pieces)
    }

    /// Adds the stored candles of these slots to what a body is made of: the chunks that have some.
    pub(super) fn add_stored(&self, slots: &Range<i64>, made_of: &mut Fingerprint) {
        for (id, chunk) in self.chunks.range(chunks_of(slots)) {
            if chunk.count_in(&places_of(*id, slots)) > 0 {
                made_of.add(Part::Stored(chunk.version));
            }
        }
    }

    /// The forming candles in these slots, oldest first.
    pub(super) fn forming_in(&self, slots: &Range<i64>) -> &[FormingCandle] {
        let place = |slot| self.forming.partition_point(|it| it.slot < slot);
        let (first, behind) = (place(slots.start), place(slots.end));
        &self.forming[first..behind.max(first)]
    }

    /// The candle of this slot, if it is forming.
    pub fn forming(&self, slot: i64) -> Option<&Candle> {
        let forming = self.forming_in(&(slot..slot + 1)).first();
        forming.map(|forming| &forming.candle)
    }

    /// The slots among these that have a stored or a forming candle, oldest first.
    pub(super) fn candle_slots(&self, slots: Range<i64>) -> impl DoubleEndedIterator<Item = i64> {
        let forming = self.forming_in(&slots).iter();
        self.row_slots(slots).chain(forming.map(|forming| forming.slot))
    }

    /// The first slot among these that has a stored candle.
    pub fn next_candle(&self, slots: Range<i64>) -> Option<i64> {
        self.row_slots(slots).next()
    }

    /// The slots among these that have a stored candle, oldest first.
    pub(super) fn row_slots(&self, slots: Range<i64>) -> impl DoubleEndedIterator<Item = i64> {
        let chunks = self.chunks.range(chunks_of(&slots));
        chunks.flat_map(move |(id, chunk)| {
            chunk.places(places_of(*id, &slots)).map(|place| slot_of(*id, place))
        })
    }

    /// The stored candles of these slots, oldest first.
    pub fn candles(&self, slots: &Range<i64>) -> Vec<(i64, Candle)> {
        let candle = |slot: i64| {
            let row = self.chunks.get(&chunk_of(slot))?.row(place_of(slot))?;
            let numbers = numbers(row).map(|digits| Decimal::parse(digits).ok());
            let [Some(open), Some(high), Some(low), Some(close), Some(volume)] = numbers else {
                return None;
            };
            let open_time = self.open_of(slot);
            Some((slot, Candle { open_time, open, high, low, close, volume }))
        };
        self.row_slots(slots.clone()).filter_map(candle).collect()
    }

    /// The rows of these slots, oldest first, stored ones before forming ones. Marks the chunks as
    /// read now.
    pub(super) fn rows(&self, slots: Range<i64>, now: UnixMs) -> impl Iterator<Item = &[u8]> {
        let second = self.touch(now);
        let forming = self.forming_in(&slots).iter().map(|forming| &forming.row()[..]);
        let stored = self.chunks.range(chunks_of(&slots)).flat_map(move |(id, chunk)| {
            chunk.touch(second);
            chunk.rows_in(places_of(*id, &slots))
        });
        stored.chain(forming)
    }

    /// The chunk to evict next: the oldest one that no client waits for. If clients wait for all chunks, it
    /// is the one that was wanted longest ago. It is never the newest chunk.
    pub(super) fn next_to_leave(&self) -> Option<LeavingChunk> {
        let (newest, _) = self.chunks.last_key_value()?;
        let older = || self.chunks.range(..newest);
        // The place of the newest request for a chunk in `wanted`.
        let wish =
            |id: &i64| self.wanted.iter().position(|(slots, _)| chunks_of(slots).contains(id));
        let unwanted = older().find(|(id, _)| wish(id).is_none());
        let (id, chunk) = unwanted.or_else(|| older().min_by_key(|(id, _)| Reverse(wish(id))))?;
        let is_oldest = self.chunks.first_key_value().is_some_and(|(oldest, _)| oldest == id);
        let until = (id + 1) * CHUNK_SLOTS;
        Some(LeavingChunk {
            read: chunk.read(),
            end: self.open_of(until),
            series: self.key(),
            from: if is_oldest { i64::MIN } else { id * CHUNK_SLOTS },
            until,
        })
    }

    /// The parts of a range that neither memory nor the history file knows, in order.
    pub fn unknown(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let missing = self.covered.missing(slots).into_iter();
        missing.flat_map(|part| self.archived.missing(part)).collect()
    }

    /// The parts of these slots that are archived and not in memory, in order.
    pub fn hidden(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let missing = self.covered.missing(slots).into_iter();
        missing.flat_map(|part| self.archived.within(part).collect::<Vec<_>>()).collect()
    }

    /// The newest slot that the exchange has reported, in this run or an earlier one.
    pub fn newest_known(&self) -> Option<i64> {
        self.covered.last().max(self.archived.last())
    }

    /// The slot after which all missing slots are to be fetched. It is the last slot of the oldest
    /// stretch that has at least `least` slots and ends after `floor`. Without such a stretch, it
    /// is the newest known slot.
    ///
    /// A stretch of this length comes from polling; a shorter one was requested for a client. Slots
    /// that are missing between the stretch and now were missed, in one outage or in several.
    pub fn reach(&self, floor: i64, least: i64) -> Option<i64> {
        let known = self.archived.iter().chain(self.covered.iter());
        let followed = known.filter(|it| it.end > floor && it.end - it.start >= least);
        let oldest = followed.map(|it| it.end - 1).min();
        oldest.or_else(|| self.newest_known())
    }

    /// The oldest slot that the exchange has reported.
    pub fn oldest_known(&self) -> Option<i64> {
        let both = [self.covered.first(), self.archived.first()];
        both.into_iter().flatten().min()
    }

    /// The parts of these slots to request now: they are unknown, and the pause since their last request is
    /// over.
    pub fn askable(&self, slots: Range<i64>, now: Mono) -> Vec<Range<i64>> {
        let mut unknown: IntervalSet = self.unknown(slots.clone()).into_iter().collect();
        for (silent, silence) in self.silences.within(&slots) {
            if now < silence.due() {
                unknown.remove(silent);
            }
        }
        unknown.iter().collect()
    }

    /// The slots to request without a client, and when, in no order. They are the unknown slots from `oldest`
    /// on, slots that a response has left out, and candles that another request can settle. None is
    /// older than `served`, the oldest slot that the exchange still serves. The refresh requests the slots
    /// from `refreshed` on anyway. `rows` is the number of rows of a page.
    pub fn open_slots(
        &self,
        served: i64,
        (oldest, refreshed, current): (i64, i64, i64),
        rows: i64,
        now: Mono,
    ) -> Vec<(Range<i64>, Mono)> {
        let unknown = self.unknown(oldest..current.max(oldest)).into_iter();
        let unsettled = served..refreshed.min(current - REREAD).max(served);
        let unsettled = self.unsettled.within(unsettled);
        // Another request can settle them if it can have a known candle that is newer.
        let unsettled = unsettled.filter(|it| {
            let near = it.end + REREAD..(it.end + NEAR).min(it.start + rows);
            self.next_candle(near).is_some()
        });
        let before = served..refreshed.max(served);
        let left_out = self.silences.within(&before).filter(|(part, silence)| {
            silence.since.is_some() || !self.unknown(part.clone()).is_empty()
        });
        let all = unknown.chain(unsettled).chain(left_out.map(|(part, _)| part));
        let mut open: IntervalSet = all.collect();
        let mut slots = Vec::new();
        for (part, silence) in self.silences.within(&(served..current.max(refreshed).max(served))) {
            let older = part.start..part.end.min(refreshed).max(part.start);
            slots.extend(open.within(older).map(|part| (part, silence.due())));
            open.remove(part);
        }
        slots.extend(open.iter().map(|part| (part, now)));
        slots
    }

    /// True if a response has left out the newest of these closed slots, and nothing proves them empty. A
    /// newer slot with a candle, or an unknown one, makes it false: the next response can then show a newer
    /// candle.
    pub fn ends_silent(&self, slots: Range<i64>) -> bool {
        self.silences.within(&slots).last().is_some_and(|(silent, _)| {
            let newer = silent.end..slots.end;
            self.next_candle(newer.clone()).is_none() && self.unknown(newer).is_empty()
        })
    }

    /// The first slot of the unsettled stretch that holds this slot, or else the slot itself.
    pub fn unsettled_before(&self, slot: i64) -> i64 {
        let before = self.unsettled.within(i64::MIN..slot + 1).next_back();
        before.filter(|it| it.end > slot).map_or(slot, |it| it.start)
    }

    /// The first slot that the refresh requests again. It requests the last [`REREAD`] known slots, and also
    /// the last candles if no newer candle is known that can settle them.
    pub fn refresh_from(&self) -> Option<i64> {
        let from = self.newest_known()? + 1 - REREAD;
        let is_last = |it: &Range<i64>| self.next_candle(it.end + REREAD..i64::MAX).is_none();
        let last = self.unsettled.iter().rev().take_while(is_last).last();
        Some(last.map_or(from, |it| it.start.min(from)).max(0))
    }

    /// The parts of these slots whose candles may still be revised. The others are settled: they are not
    /// requested again.
    pub fn revisable(&self, slots: &Range<i64>) -> IntervalSet {
        let silent = self.silences.within(slots).map(|(part, _)| part);
        self.unsettled.within(slots.clone()).chain(silent).collect()
    }

    /// True if the candles of these slots are settled.
    pub fn is_settled(&self, slots: &Range<i64>) -> bool {
        self.revisable(slots).is_empty()
    }

    /// Marks the end of each archived stretch as unsettled: its last `REOPENED` slots, or in the stretch of
    /// the newest candle of the file, all from so many slots before this candle on. The last process may have
    /// ended before it requested these candles again.
    pub fn unsettle_ends(&mut self, newest: Option<i64>) {
        self.newest_stored = self.newest_stored.max(newest);
        for Range { start, end } in self.archived.iter().collect::<Vec<_>>() {
            let newest = newest.filter(|newest| (start..end).contains(newest));
            let from = newest.map_or(end, |newest| newest.min(end)) - REOPENED;
            let _ = self.unsettled.insert(from.max(start)..end);
        }
    }

    /// Notes from which time on the exchange's clock is in doubt, or `None` if it is known. A chart that ends
    /// later depends on the clock.
    pub(super) fn doubt_clock(&mut self, from: Option<UnixMs>) {
        let from = from.map(|time| self.interval().slot_of(time));
        if std::mem::replace(&mut self.doubted_from, from) != from {
            self.version += 1;
        }
    }

    /// How far a bucket that holds at least one candle is confirmed.
    pub(super) fn state_of(&self, bucket: &Range<i64>) -> BucketState {
        let covered = self.covered();
        let confirmed = covered.last().map_or(i64::MIN, |last| last + 1);
        if bucket.end <= confirmed {
            // Forming candles are newer than the bucket.
            return if covered.covers(bucket.clone()) {
                BucketState::Closed
            } else {
                BucketState::Unknown
            };
        }
        if bucket.end > self.frontier {
            return BucketState::Open;
        }
        // The bucket has ended, but the exchange has not confirmed all of it. It is open if each
        // slot is confirmed or has a provisional candle. So no candle vanishes between its end and
        // the next response.
        let forming = bucket.start.max(confirmed)..bucket.end;
        let known = covered.covers(bucket.start..forming.start)
            && self.forming_in(&forming).len() as i64 == forming.end - forming.start;
        if known { BucketState::Open } else { BucketState::Unknown }
    }
}
