//! Which slots of each series the history file holds.
//!
//! Owns nothing. It never reads the file.

use super::Charts;
use crate::market::interval_set::IntervalSet;
use crate::market::series::SeriesKey;
use std::ops::Range;

impl Charts {
    /// What the history file holds of a series, open or not.
    pub fn archived(&self, key: SeriesKey) -> Option<&IntervalSet> {
        let series = self.series.get(&key).map(|series| &series.archived);
        series.or_else(|| self.unopened.get(&key))
    }

    /// What the history file holds, by series.
    pub fn archives(&self) -> impl Iterator<Item = (SeriesKey, &IntervalSet)> {
        let open = self
            .series
            .iter()
            .map(|(key, series)| (*key, &series.archived));
        open.chain(self.unopened.iter().map(|(key, spans)| (*key, spans)))
    }

    /// These slots of a series are archived from now on.
    pub fn archive(&mut self, key: SeriesKey, slots: Range<i64>) {
        let archived = match self.series.get_mut(&key) {
            Some(series) => &mut series.archived,
            None => self.unopened.entry(key).or_default(),
        };
        // Too many pieces: what is left out is asked of the exchange again when it is wanted.
        let _ = archived.insert(slots);
    }

    /// These slots of a series are archived no longer.
    pub fn unarchive(&mut self, key: SeriesKey, slots: Range<i64>) {
        match self.series.get_mut(&key) {
            Some(series) => drop(series.archived.remove(slots)),
            None => {
                if let Some(spans) = self.unopened.get_mut(&key) {
                    spans.remove(slots);
                }
            }
        }
    }

    /// Nothing is archived any more: the file cannot be read.
    pub fn forget_archives(&mut self) {
        self.unopened.clear();
        for series in self.series.values_mut() {
            series.archived = IntervalSet::new();
        }
    }

    /// How many of these slots the exchange has answered about.
    pub fn known(&self, key: SeriesKey, slots: Range<i64>) -> u64 {
        match self.series.get(&key) {
            Some(series) => {
                let unknown = series.unknown(slots.clone());
                let unknown: u64 = unknown.iter().map(|it| it.end.abs_diff(it.start)).sum();
                slots.end.abs_diff(slots.start) - unknown
            }
            None => (self.unopened.get(&key)).map_or(0, |spans| spans.covered(slots)),
        }
    }
}
