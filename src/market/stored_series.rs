//! What the history file holds of each series, in figures.

use super::series::SeriesKey;
use crate::history::Extent;
use std::collections::BTreeMap;

/// What the history file holds, by the last message of the disk thread.
#[derive(Clone, Debug, Default)]
pub struct StoredSeries {
    extents: BTreeMap<SeriesKey, Extent>,
    candles: u64,
}

impl StoredSeries {
    /// Notes what it holds of a series.
    pub fn set(&mut self, key: SeriesKey, extent: Extent) {
        let before = match extent.count {
            0 => self.extents.remove(&key),
            _ => self.extents.insert(key, extent),
        };
        self.candles += extent.count;
        self.candles -= before.map_or(0, |before| before.count);
    }

    /// Nothing is known of it any more.
    pub fn clear(&mut self) {
        *self = StoredSeries::default();
    }

    /// What it holds of a series; `None`: no candle.
    pub fn of(&self, key: SeriesKey) -> Option<Extent> {
        self.extents.get(&key).copied()
    }

    /// Series with a candle.
    pub fn series(&self) -> usize {
        self.extents.len()
    }

    /// Candles of all series.
    pub fn candles(&self) -> u64 {
        self.candles
    }
}
