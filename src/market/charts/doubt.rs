//! What becomes doubtful: after a restart, or when a source's clock is unknown or was wrong.
//!
//! It never removes what was reported while the clock was right.

use super::{Charts, keys_of};
use crate::market::ids::SourceId;
use crate::market::series::SeriesKey;
use crate::market::silence::Silences;
use crate::time::UnixMs;

impl Charts {
    /// Marks the ends of archived stretches as not final, once the file has told all that it holds
    /// of a series.
    pub fn restored(&mut self, key: SeriesKey) {
        if let Some(series) = self.series.get_mut(&key) {
            series.unsettle_ends();
        }
    }

    /// Sets whether the clock of a source is in doubt. Its charts that end now depend on it.
    pub fn doubt_clock(&mut self, source: SourceId, in_doubt: bool) {
        self.in_doubt.retain(|it| *it != source);
        if in_doubt {
            self.in_doubt.push(source);
        }
        for (_, series) in self.series.range_mut(keys_of(source)) {
            series.doubt_clock(in_doubt);
        }
    }

    /// Forgets the silences of a source whose clock was set: the time between two answers is no
    /// longer known.
    pub fn forget_silences(&mut self, source: SourceId) {
        for (_, series) in self.series.range_mut(keys_of(source)) {
            series.silences = Silences::default();
        }
    }

    /// Forgets what was learned of slots from this time on, because the source's clock ran ahead.
    /// Returns what to remove from the archive: each series, and the first slot.
    pub fn doubt(&mut self, source: SourceId, since: UnixMs) -> Vec<(SeriesKey, i64)> {
        let mut cut = Vec::new();
        for (key, series) in self.series.range_mut(keys_of(source)) {
            let (bytes, slot) = (series.bytes(), key.interval.slot_of(since));
            self.touched.note(key.symbol);
            if series.forget_from(slot) {
                cut.push((*key, slot));
            }
            self.bytes = self.bytes - bytes + series.bytes();
        }
        for (key, spans) in self.unopened.range_mut(keys_of(source)) {
            let slot = key.interval.slot_of(since);
            if spans.remove(slot..i64::MAX) {
                cut.push((*key, slot));
            }
        }
        cut
    }
}
