//! Which slots of each series the history file holds.
//!
//! It never reads the file.

use super::Charts;
use crate::market::interval_set::IntervalSet;
use crate::market::series::SeriesKey;
use std::ops::Range;

impl Charts {
    /// The archived slots of a series, open or not.
    pub fn archived(&self, key: SeriesKey) -> Option<&IntervalSet> {
        let series = self.series.get(&key).map(|series| &series.archived);
        series.or_else(|| self.unopened.get(&key))
    }

    /// The archived slots of all series.
    pub fn archives(&self) -> impl Iterator<Item = (SeriesKey, &IntervalSet)> {
        let open = self.series.iter();
        let open = open.map(|(key, series)| (*key, &series.archived));
        open.chain(self.unopened.iter().map(|(key, spans)| (*key, spans)))
    }

    /// Marks slots of a series as archived.
    pub fn archive(&mut self, key: SeriesKey, slots: Range<i64>) {
        // With too many ranges, the rest is fetched from the exchange again when it is wanted.
        let _ = match self.series.get_mut(&key) {
            Some(series) => series.archived.insert(slots),
            None => self.unopened.entry(key).or_default().insert(slots),
        };
    }

    /// Marks slots of a series as not archived.
    pub fn unarchive(&mut self, key: SeriesKey, slots: Range<i64>) {
        let series = self.series.get_mut(&key).map(|series| &mut series.archived);
        if let Some(archived) = series.or_else(|| self.unopened.get_mut(&key)) {
            archived.remove(slots);
        }
    }

    /// Forgets all archived slots: the file cannot be read.
    pub fn forget_archives(&mut self) {
        self.unopened.clear();
        for series in self.series.values_mut() {
            series.archived = IntervalSet::default();
        }
    }

    /// The number of these slots that the exchange has reported.
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
