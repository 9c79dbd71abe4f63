//! What the history file holds of each series, in figures.

use super::series::SeriesKey;
use crate::history::Extent;
use std::collections::BTreeMap;

/// What the history file holds, by the last message of the disk thread.
#[derive(Clone, Debug, Default)]
pub struct StoredSeries(BTreeMap<SeriesKey, Extent>);

impl StoredSeries {
    /// Notes what it holds of a series.
    pub fn set(&mut self, key: SeriesKey, extent: Extent) {
        match extent.count {
            0 => self.0.remove(&key),
            _ => self.0.insert(key, extent),
        };
    }

    /// Nothing is known of it any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What it holds of a series; `None`: no candle.
    pub fn of(&self, key: SeriesKey) -> Option<Extent> {
        self.0.get(&key).copied()
    }

    /// Series with a candle.
    pub fn series(&self) -> usize {
        self.0.len()
    }

    /// Candles of all series. Visits every series.
    pub fn candles(&self) -> u64 {
        self.0.values().map(|extent| extent.count).sum()
    }
}
