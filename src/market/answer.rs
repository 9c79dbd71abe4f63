//! What an answer of an exchange says about the slots of a series.
//!
//! Owns the words for it. It changes nothing.

use super::silence::LEAST_PAGE;
use crate::interval::Stored;
use crate::record::Candle;
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
    /// Stored candles that the exchange no longer has, by two of its answers.
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
pub(super) struct Found<'a> {
    pub(super) slot: i64,
    /// `None`: something unsound, which is no word about the slot.
    pub(super) candle: Option<&'a Candle>,
}

/// Who says something about slots, and what it means that no candle is said to be in one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The history file: nobody traded there.
    History,
    /// An exchange's answer, or a slice of one.
    Answer {
        /// From its oldest sound candle's slot to behind its newest's. Slots between that it leaves
        /// out are empty.
        between: Range<i64>,
        /// Whether it could have held candles of the other slots, too: it was not cut.
        is_whole: bool,
    },
}

impl Word {
    /// Of a whole answer about these slots. `is_dated`: each of its rows told its time.
    pub fn of(interval: Stored, asked: &Range<i64>, candles: &[Reported], is_dated: bool) -> Word {
        let slot = |it: &Reported| {
            let slot = interval.slot_of(it.candle.open_time);
            let is_aligned = interval.open_of(slot) == it.candle.open_time;
            (is_aligned && asked.contains(&slot) && it.candle.is_sound()).then_some(slot)
        };
        let slots = || candles.iter().filter_map(slot);
        Word::Answer {
            between: match (slots().min(), slots().max()) {
                (Some(first), Some(last)) => first..last + 1,
                _ => 0..0,
            },
            is_whole: is_dated && candles.len() < LEAST_PAGE,
        }
    }
}

/// The parts of these slots in which nothing was found, sound or not.
pub(super) fn left_out(slots: Range<i64>, found: &[Found<'_>]) -> Vec<Range<i64>> {
    let mut parts = Vec::new();
    let mut from = slots.start;
    let first = found.partition_point(|found| found.slot < slots.start);
    for found in found[first..]
        .iter()
        .take_while(|found| found.slot < slots.end)
    {
        parts.push(from..found.slot);
        from = found.slot + 1;
    }
    parts.push(from..slots.end);
    parts.retain(|part| !part.is_empty());
    parts
}
