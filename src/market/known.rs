//! What a series knows about its slots, and what is worth asking the exchange for.
//!
//! It never changes a candle.

use super::interval_set::IntervalSet;
use super::series::Series;
use super::silence::{REREAD, confirmed_after_ms};
use crate::time::UnixMs;
use std::ops::Range;

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
    /// The parts of a range that neither memory nor the history file knows, in order.
    pub fn unknown(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let missing = self.covered.missing(slots).into_iter();
        missing.flat_map(|part| self.archived.missing(part)).collect()
    }

    /// The newest slot that the exchange has reported, in this run or an earlier one.
    pub fn newest_known(&self) -> Option<i64> {
        self.covered.last().max(self.archived.last())
    }

    /// The slot after which no slot may stay missing. It is the last slot of the oldest stretch
    /// that has at least `least` slots and ends after `floor`; without such a stretch, the newest
    /// known slot.
    ///
    /// A stretch that long was polled; a shorter one is what a client asked for. What lies between
    /// it and now was missed, in one piece or in several.
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

    /// The parts of these slots to ask the exchange for: they are unknown, and the last answer that
    /// left them out is at least `patience` milliseconds old.
    pub fn askable(&self, slots: Range<i64>, at: UnixMs, patience: i64) -> Vec<Range<i64>> {
        let mut unknown: IntervalSet = self.unknown(slots.clone()).into_iter().collect();
        for (silent, last) in self.silences.last_within(&slots) {
            if (at - last).abs() < patience {
                unknown.remove(silent);
            }
        }
        unknown.iter().collect()
    }

    /// True if an answer has left out this slot, and no later answer reported it.
    pub fn is_silent(&self, slot: i64) -> bool {
        self.silences.within(&(slot..slot + 1)).next().is_some()
    }

    /// The slots among these that one answer has left out, each with the time from which another
    /// answer confirms that.
    pub fn silent(&self, slots: Range<i64>) -> Vec<(Range<i64>, UnixMs)> {
        let apart = confirmed_after_ms(self.interval());
        let silent = self.silences.within(&slots);
        silent.map(|(part, since)| (part, since + apart)).collect()
    }

    /// The slots among these whose candles may still be revised, without those that an answer has
    /// left out.
    pub fn unsettled(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let mut unsettled: IntervalSet = self.unsettled.within(slots.clone()).collect();
        for (silent, _) in self.silences.within(&slots) {
            unsettled.remove(silent);
        }
        unsettled.iter().collect()
    }

    /// True if the candles of these slots are final: nothing reads them again.
    pub fn is_settled(&self, slots: &Range<i64>) -> bool {
        let mut unsettled = self.unsettled.within(slots.clone());
        unsettled.next().is_none() && self.silences.within(slots).next().is_none()
    }

    /// Marks the end of each archived stretch as not final: it is unknown whether these candles
    /// were read again before the last process ended.
    pub(super) fn unsettle_ends(&mut self) {
        let ends: Vec<i64> = self.archived.iter().map(|span| span.end).collect();
        for end in ends {
            let _ = self.unsettled.insert(end - REREAD..end);
        }
    }

    /// The exchange's clock is in doubt from this time on, or known. A chart that ends later depends on it.
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
            // Forming candles come later.
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
        // slot is confirmed or has a provisional candle, so that no candle vanishes between its end
        // and the next answer.
        let forming = bucket.start.max(confirmed)..bucket.end;
        let known = covered.covers(bucket.start..forming.start)
            && self.forming_in(&forming).len() as i64 == forming.end - forming.start;
        if known { BucketState::Open } else { BucketState::Unknown }
    }
}
