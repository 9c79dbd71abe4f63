//! Reports: what an exchange or the history file says about the slots of a series.
//!
//! This file has the types. It changes nothing.

use super::silence::{LEAST_PAGE, REREAD};
use crate::interval::Stored;
use crate::record::Candle;
use crate::time::Mono;
use std::ops::Range;

/// A candle as an exchange reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The candle.
    pub candle: Candle,
    /// True if the exchange says that it is not closed yet.
    pub is_forming: bool,
}

/// What an answer changed in a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestCounts {
    /// Candles stored in slots that had none.
    pub written: usize,
    /// Stored candles whose numbers changed.
    pub updated: usize,
    /// Stored candles that the answer confirmed as they are.
    pub unchanged: usize,
    /// Stored candles that were removed, because answers of the exchange prove that they are gone.
    pub removed: usize,
    /// Refused candles: not aligned, not requested, in the future, or with impossible numbers.
    pub rejected: usize,
    /// Old candles that were dropped: they left the kept window, or the coverage had too many
    /// ranges.
    pub evicted: usize,
}

impl IngestCounts {
    /// How many slots have got, changed or lost their candle.
    pub(super) fn changes(&self) -> usize {
        self.written + self.updated + self.removed
    }
}

/// A sound candle of an answer.
pub(super) struct Found<'a> {
    pub(super) slot: i64,
    pub(super) candle: &'a Candle,
}

/// Who reports, and so what a slot without a candle means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The history file: nobody traded in a slot without a candle.
    History,
    /// Another node of the cluster: a slot without a candle is proven empty, and the candles are final.
    Proven,
    /// Another node of the cluster: a slot without a candle is proven empty, and the exchange may still
    /// revise these slots.
    Revisable,
    /// A response of the exchange, or a slice of one.
    Exchange(Answer),
}

/// What a whole response of an exchange proves about the requested slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// From the slot of the oldest sound candle to the slot after the newest. Slots in between
    /// without a candle are empty.
    pub between: Range<i64>,
    /// True if the response was not cut, so that it could have had candles of all requested slots.
    pub is_whole: bool,
    /// The newest slot that is known to have a candle, in this market or another one. Up to this slot, the
    /// exchange's candle service did not stand still.
    pub alive: i64,
    /// When the response was requested.
    pub at: Mono,
}

impl Answer {
    /// The answer with these candles, requested at `at`. `is_dated` is true if each of its rows has
    /// a time.
    pub fn of(
        interval: Stored,
        asked: &Range<i64>,
        candles: &[Reported],
        is_dated: bool,
        at: Mono,
    ) -> Answer {
        let sound = || candles.iter().filter(|it| is_sound(interval, &it.candle));
        let slots = || sound().map(|it| interval.slot_of(it.candle.open_time));
        let slots = || slots().filter(|slot| asked.contains(slot));
        let (between, alive) = match (slots().min(), slots().max()) {
            (Some(first), Some(last)) => (first..last + 1, last),
            _ => (0..0, i64::MIN),
        };
        let is_whole = is_dated && candles.len() < LEAST_PAGE;
        Answer { between, is_whole, alive, at }
    }

    /// The newest candles of the answer, and the slots between them. The candle service may stand still since
    /// the newest candle. Then trades that are booked late are missing in the candles before it.
    pub(super) fn young(&self) -> Range<i64> {
        self.between.end - 1 - REREAD..self.between.end
    }
}

/// True if the candle's numbers are possible, and it begins at the beginning of a slot.
pub(super) fn is_sound(interval: Stored, candle: &Candle) -> bool {
    interval.open_of(interval.slot_of(candle.open_time)) == candle.open_time && candle.is_sound()
}

/// The candles in these slots. `found` is sorted by slot.
pub(super) fn found_in<'f, 'a>(found: &'f [Found<'a>], slots: &Range<i64>) -> &'f [Found<'a>] {
    let place = |end: i64| found.partition_point(|found| found.slot < end);
    &found[place(slots.start)..place(slots.end)]
}

/// The parts of these slots that have none of these candles.
pub(super) fn left_out(slots: Range<i64>, found: &[Found<'_>]) -> Vec<Range<i64>> {
    let mut from = slots.start;
    let ends = found_in(found, &slots).iter().map(|found| found.slot).chain([slots.end]);
    let parts = ends.map(|end| std::mem::replace(&mut from, end + 1)..end);
    parts.filter(|part| !part.is_empty()).collect()
}
