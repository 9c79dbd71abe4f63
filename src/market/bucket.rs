//! Roll-up buckets: candles of a served interval, and the slots that each is made of.
//!
//! Owns the arithmetic between the two. A bucket of a stored interval is one slot.

use crate::interval::{Interval, Stored};
use crate::time::{DAY_MS, UnixMs, civil};
use std::ops::Range;

/// The base slots of the bucket that holds this slot.
pub(super) fn bucket_of(interval: Interval, slot: i64) -> Range<i64> {
    if interval.is_stored() {
        return slot..slot + 1;
    }
    let base = interval.base();
    let open = interval.open_of(base.open_of(slot));
    base.slot_of(open)..base.slot_of(interval.end_of(open))
}

/// First slot of the bucket `count` places after the one that begins at this slot.
pub(super) fn bucket_after(interval: Interval, slot: i64, count: i64) -> i64 {
    if interval.is_stored() {
        return slot.saturating_add(count);
    }
    let base = interval.base();
    base.slot_of(interval.step(base.open_of(slot), count))
}

/// First slot of the first bucket that begins at this slot or later.
pub(super) fn first_bucket(interval: Interval, slot: i64) -> i64 {
    let bucket = bucket_of(interval, slot);
    if bucket.start == slot { slot } else { bucket.end }
}

/// The number of buckets from one first slot to another.
pub(super) fn buckets_between(interval: Interval, slots: Range<i64>) -> i64 {
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

/// The oldest slot of the window of time that is kept: `keep` slots back from the one that holds
/// this moment, and never before the epoch.
pub fn floor_slot(interval: Stored, now: UnixMs, keep: i64) -> i64 {
    interval.slot_of(now).saturating_sub(keep).max(0)
}
