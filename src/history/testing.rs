//! Made-up changes, and a model of a series that does everything slot by slot.

use super::{Changes, SeriesName};
use crate::decimal::Decimal;
use crate::interval::Stored;
use crate::record::Candle;
use crate::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The number of slots in random tests.
pub(crate) const SLOTS: i64 = 60;

/// A series as it ought to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) covered: BTreeSet<i64>,
    pub(crate) candles: BTreeMap<i64, Candle>,
}

impl Model {
    pub(crate) fn apply(&mut self, changes: &Changes) {
        for slots in changes.forgotten() {
            self.covered.retain(|slot| !slots.contains(slot));
            self.candles.retain(|slot, _| !slots.contains(slot));
        }
        for slots in changes.covered() {
            self.covered.extend(slots);
        }
        for (slot, candle) in changes.candles() {
            match candle {
                Some(candle) => self.candles.insert(slot, candle.clone()),
                None => self.candles.remove(&slot),
            };
        }
        assert!(self.candles.keys().all(|slot| self.covered.contains(slot)));
    }
}

pub(crate) fn candle(interval: Stored, slot: i64, price: i64) -> Candle {
    Candle {
        open_time: interval.open_of(slot),
        open: Decimal::from(price),
        high: Decimal::from(price + 2),
        low: Decimal::from(price),
        close: Decimal::from(price + 1),
        volume: Decimal::from_parts(price.into(), 3).expect("few digits"),
    }
}

pub(crate) fn range(rng: &mut Rng) -> Range<i64> {
    let start = rng.below(SLOTS as u64) as i64;
    start..(start + 1 + rng.below(9) as i64).min(SLOTS)
}

/// Some changes that a series may go through between two flushes.
pub(crate) fn random_changes(rng: &mut Rng) -> Changes {
    let mut changes = Changes::default();
    for _ in 0..=rng.below(4) {
        let slots = range(rng);
        match rng.below(8) {
            0 => changes.forget(slots),
            1 => changes.forget(i64::MIN..slots.end),
            2 => changes.forget(slots.start..i64::MAX),
            _ => {
                let mut candles = Vec::new();
                for slot in slots.clone() {
                    match rng.below(4) {
                        0 => {}
                        1 => candles.push((slot, None)),
                        price => candles.push((slot, Some(candle(Stored::M1, slot, price as i64)))),
                    }
                }
                changes.answered(slots, candles);
            }
        }
    }
    changes
}

pub(crate) fn series(interval: Stored) -> SeriesName {
    SeriesName { source: "binance".into(), symbol: "BTC/USDT".into(), interval }
}
