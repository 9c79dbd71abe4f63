//! What is known of a series' slots, and what is worth asking for again.
//!
//! Owns nothing. It never changes a candle.

use super::interval_set::cut;
use super::series::Series;
use super::silence::{REREAD, confirmed_after_ms};
use crate::time::UnixMs;
use std::ops::Range;

/// What may be made of a bucket that holds at least one candle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BucketState {
    /// The exchange has confirmed every slot.
    Closed,
    /// Forming, or provisional: served, and later replaced.
    Open,
    /// Some of it was never answered: not served as if it were whole.
    Unknown,
}

impl Series {
    /// The parts of a range that only the exchange can tell of, in order.
    pub fn unknown(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let missing = self.covered.missing(slots).into_iter();
        missing
            .flat_map(|part| self.archived.missing(part))
            .collect()
    }

    /// The newest slot that the exchange has answered about, now or before the last start.
    pub fn newest_known(&self) -> Option<i64> {
        self.covered.last().max(self.archived.last())
    }

    /// The slot from which on nothing is to stay missing: the last one of the oldest stretch of at
    /// least `least` slots that ends behind `floor`, or else the newest that is known.
    ///
    /// A stretch like that was followed; a shorter one in the past is what a client asked for. What
    /// lies between it and now was missed, in one piece or, where the filling of it was cut off,
    /// in several.
    pub fn reach(&self, floor: i64, least: i64) -> Option<i64> {
        let known = self.archived.iter().chain(self.covered.iter());
        let followed = known.filter(|it| it.end > floor && it.end - it.start >= least);
        let oldest = followed.map(|it| it.end - 1).min();
        oldest.or_else(|| self.newest_known())
    }

    /// The oldest slot that the exchange has answered about.
    pub fn oldest_known(&self) -> Option<i64> {
        let both = [self.covered.first(), self.archived.first()];
        both.into_iter().flatten().min()
    }

    /// What is worth asking of the exchange among these slots: nothing is known of it, and its last
    /// silence about it is at least `patience` milliseconds old.
    pub fn askable(&self, slots: Range<i64>, at: UnixMs, patience: i64) -> Vec<Range<i64>> {
        let mut unknown = self.unknown(slots.clone());
        for (silent, since) in self.silences.within(&slots) {
            if (at - since).abs() < patience {
                unknown = unknown
                    .into_iter()
                    .flat_map(|part| cut(part, &silent))
                    .collect();
            }
        }
        unknown
    }

    /// Whether an answer has left out this slot, and no other one has told of it since.
    pub fn is_silent(&self, slot: i64) -> bool {
        self.silences.within(&(slot..slot + 1)).next().is_some()
    }

    /// Slots among these that one answer has left out, each with the moment from which on another one
    /// confirms that.
    pub fn silent(&self, slots: Range<i64>) -> Vec<(Range<i64>, UnixMs)> {
        let apart = confirmed_after_ms(self.interval());
        let silent = self.silences.within(&slots);
        silent.map(|(part, since)| (part, since + apart)).collect()
    }

    /// Slots among these whose candles may still be revised, without those that wait because an answer
    /// has left them out.
    pub fn unsettled(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let mut unsettled: Vec<Range<i64>> = self.unsettled.within(slots.clone()).collect();
        for (silent, _) in self.silences.within(&slots) {
            let parts = unsettled.into_iter();
            unsettled = parts.flat_map(|part| cut(part, &silent)).collect();
        }
        unsettled
    }

    /// Whether the candles of these slots are read for the last time.
    pub fn is_settled(&self, slots: &Range<i64>) -> bool {
        let mut unsettled = self.unsettled.within(slots.clone());
        unsettled.next().is_none() && self.silences.within(slots).next().is_none()
    }

    /// The file has told what it holds: nobody knows whether the last candles of each stretch were
    /// read again before the process ended.
    pub(super) fn unsettle_ends(&mut self) {
        let ends: Vec<i64> = self.archived.iter().map(|span| span.end).collect();
        for end in ends {
            let _ = self.unsettled.insert(end - REREAD..end);
        }
    }

    /// Whether somebody knows what time it is at the exchange: a chart that ends now depends on it.
    pub(super) fn doubt_clock(&mut self, in_doubt: bool) {
        if std::mem::replace(&mut self.clock_in_doubt, in_doubt) != in_doubt {
            self.version += 1;
        }
    }

    /// What may be made of a bucket that holds at least one candle.
    pub(super) fn state_of(&self, bucket: &Range<i64>) -> BucketState {
        let covered = self.covered();
        let confirmed = covered.last().map_or(i64::MIN, |last| last + 1);
        if bucket.end <= confirmed {
            // Nothing of the forming is in here.
            return if covered.covers(bucket.clone()) {
                BucketState::Closed
            } else {
                BucketState::Unknown
            };
        }
        if bucket.end > self.frontier {
            return BucketState::Open;
        }
        // It has ended, and the exchange has not said its last word: as good as what it is made
        // of, if nothing is missing. So no candle vanishes between its end and the next answer.
        let forming = bucket.start.max(confirmed)..bucket.end;
        let known = covered.covers(bucket.start..forming.start)
            && self.forming_in(&forming).len() as i64 == forming.end - forming.start;
        if known {
            BucketState::Open
        } else {
            BucketState::Unknown
        }
    }
}
