//! Reports: what an exchange or the history file says about the slots of a series.
//!
//! Owns the types. It changes nothing.

use super::silence::LEAST_PAGE;
use crate::interval::Stored;
use crate::record::Candle;
use std::ops::Range;

/// A candle as an exchange reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Its numbers.
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
    /// Stored candles that two answers of the exchange have left out.
    pub removed: usize,
    /// Candles refused: not aligned, not asked for, in the future, or with impossible numbers.
    pub rejected: usize,
    /// Old candles that were dropped: out of the kept window, or with a stretch of coverage that
    /// made room.
    pub evicted: usize,
}

impl IngestCounts {
    /// How many slots have another candle than before, or none any more.
    pub(super) fn changes(&self) -> usize {
        self.written + self.updated + self.removed
    }
}

/// What an answer reports about one slot.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) slot: i64,
    /// `None`: an unsound candle, which says nothing about the slot.
    pub(super) candle: Option<&'a Candle>,
}

/// Who reports, and what a slot without a candle means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The history file: nobody traded in a slot without a candle.
    History,
    /// A response of an exchange, or a slice of one.
    Exchange {
        /// From the slot of its oldest sound candle to the slot after its newest. Slots in between
        /// without a candle are empty.
        between: Range<i64>,
        /// True if the response was not cut, so that it could have held candles of the other slots
        /// too.
        is_whole: bool,
    },
}

impl Evidence {
    /// What a whole response proves about these slots: `between` and `is_whole` of
    /// [`Evidence::Exchange`]. `is_dated`: each of its rows has a time.
    pub fn of(
        interval: Stored,
        asked: &Range<i64>,
        candles: &[Reported],
        is_dated: bool,
    ) -> (Range<i64>, bool) {
        let slot = |it: &Reported| {
            let slot = interval.slot_of(it.candle.open_time);
            let is_aligned = interval.open_of(slot) == it.candle.open_time;
            (is_aligned && asked.contains(&slot) && it.candle.is_sound()).then_some(slot)
        };
        let slots = || candles.iter().filter_map(slot);
        let between = match (slots().min(), slots().max()) {
            (Some(first), Some(last)) => first..last + 1,
            _ => 0..0,
        };
        (between, is_dated && candles.len() < LEAST_PAGE)
    }
}

/// What an answer reports about these slots, of all that it reports in the order of slots.
pub(super) fn found_in<'f, 'a>(found: &'f [Found<'a>], slots: &Range<i64>) -> &'f [Found<'a>] {
    let place = |end: i64| found.partition_point(|found| found.slot < end);
    &found[place(slots.start)..place(slots.end)]
}

/// The parts of these slots without an unsound candle.
pub(super) fn sound_parts(slots: Range<i64>, found: &[Found<'_>]) -> Vec<Range<i64>> {
    let unsound = found.iter().filter(|found| found.candle.is_none()).copied();
    left_out(slots, &unsound.collect::<Vec<_>>())
}

/// The parts of these slots without any reported candle, sound or not.
pub(super) fn left_out(slots: Range<i64>, found: &[Found<'_>]) -> Vec<Range<i64>> {
    let mut parts = Vec::new();
    let mut from = slots.start;
    for found in found_in(found, &slots) {
        parts.push(from..found.slot);
        from = found.slot + 1;
    }
    parts.push(from..slots.end);
    parts.retain(|part| !part.is_empty());
    parts
}
