//! What is not sure any more: after a restart, and when a source's clock is not known, or was wrong.
//!
//! Owns nothing. It never removes what an exchange has said by a clock that was right.

use super::{Charts, greatest_key, least_key};
use crate::market::ids::{SourceId, SymbolId};
use crate::market::series::SeriesKey;
use crate::time::UnixMs;

impl Charts {
    /// The file has told all that it holds of a series.
    pub fn restored(&mut self, key: SeriesKey) {
        if let Some(series) = self.series.get_mut(&key) {
            series.unsettle_ends();
        }
    }

    /// Whether somebody knows what time it is at this source: its charts that end now depend on it.
    pub fn doubt_clock(&mut self, source: SourceId, in_doubt: bool) {
        self.in_doubt.retain(|it| *it != source);
        if in_doubt {
            self.in_doubt.push(source);
        }
        let keys = least_key(source, SymbolId(0))..=greatest_key(source, SymbolId(u32::MAX));
        for (_, series) in self.series.range_mut(keys) {
            series.doubt_clock(in_doubt);
        }
    }

    /// The clock of this source was set: how far apart two answers are that were made before and
    /// after is not known.
    pub fn forget_silences(&mut self, source: SourceId) {
        let keys = least_key(source, SymbolId(0))..=greatest_key(source, SymbolId(u32::MAX));
        for (_, series) in self.series.range_mut(keys) {
            series.silences.clear();
        }
    }

    /// A source's clock ran ahead since this moment, and was set right: what was learned of slots
    /// from then on is forgotten. Answers what is to be taken out of the archive: which series, and
    /// from which slot on.
    pub fn doubt(&mut self, source: SourceId, since: UnixMs) -> Vec<(SeriesKey, i64)> {
        let keys = least_key(source, SymbolId(0))..=greatest_key(source, SymbolId(u32::MAX));
        let mut cut = Vec::new();
        for (key, series) in self.series.range_mut(keys.clone()) {
            let (bytes, slot) = (series.bytes(), key.interval.slot_of(since));
            if series.forget_from(slot) {
                cut.push((*key, slot));
            }
            self.bytes = self.bytes - bytes + series.bytes();
        }
        for (key, spans) in self.unopened.range_mut(keys) {
            let slot = key.interval.slot_of(since);
            if spans.remove(slot..i64::MAX) {
                cut.push((*key, slot));
            }
        }
        cut
    }
}
