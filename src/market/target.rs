//! Targets: candles of a served interval, and the slots that each is made of.
//!
//! Owns the arithmetic between the two, and the rule of what may be made of slots that are not
//! all confirmed. A stored interval's targets are its slots.

use super::series::Series;
use crate::interval::Interval;
use crate::time::{DAY_MS, civil};
use std::ops::Range;

/// What may be made of a target that holds at least one candle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The exchange has confirmed every slot.
    Closed,
    /// Forming, or provisional: served, and later replaced.
    Open,
    /// Some of it was never answered: not served as if it were whole.
    Unknown,
}

/// The base slots of the target that holds this one.
pub(super) fn target_of(interval: Interval, slot: i64) -> Range<i64> {
    if interval.is_stored() {
        return slot..slot + 1;
    }
    let base = interval.base();
    let open = interval.open_of(base.open_of(slot));
    base.slot_of(open)..base.slot_of(interval.end_of(open))
}

/// First slot of the target `count` places after the one that begins at this slot.
pub(super) fn target_after(interval: Interval, slot: i64, count: i64) -> i64 {
    if interval.is_stored() {
        return slot.saturating_add(count);
    }
    let base = interval.base();
    base.slot_of(interval.step(base.open_of(slot), count))
}

/// First slot of the first target that begins at this slot or later.
pub(super) fn first_target(interval: Interval, slot: i64) -> i64 {
    let target = target_of(interval, slot);
    if target.start == slot {
        slot
    } else {
        target.end
    }
}

/// How many targets lie between two of their first slots.
pub(super) fn targets_between(interval: Interval, slots: Range<i64>) -> i64 {
    let base = interval.base();
    let number = |slot: i64| {
        let open = base.open_of(slot);
        match interval.length_ms() {
            Some(length) => open.0.div_euclid(length),
            None => {
                let (year, month, _) = civil(open.0.div_euclid(DAY_MS));
                year * 12 + i64::from(month)
            }
        }
    };
    number(slots.end) - number(slots.start)
}

/// What may be made of a target that holds at least one candle.
pub(super) fn standing(series: &Series, target: &Range<i64>) -> Standing {
    let covered = series.covered();
    let confirmed = covered.last().map_or(i64::MIN, |last| last + 1);
    if target.end <= confirmed {
        // Nothing of the tail is in here.
        return if covered.covers(target.clone()) {
            Standing::Closed
        } else {
            Standing::Unknown
        };
    }
    if target.end > series.frontier() {
        return Standing::Open;
    }
    // It has ended, and the exchange has not said its last word: as good as what it is made
    // of, if nothing is missing. So no candle vanishes between its end and the next answer.
    let tail = target.start.max(confirmed)..target.end;
    let known = covered.covers(target.start..tail.start)
        && series.tail(&tail).len() as i64 == tail.end - tail.start;
    if known {
        Standing::Open
    } else {
        Standing::Unknown
    }
}
