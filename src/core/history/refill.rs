//! Writing from memory what the file lacks.
//!
//! Owns the cursor of a walk over the series in memory. What is covered there and not archived goes
//! into the next batches, slice by slice and while there is room. A walk begins when changes were left
//! out, because the disk failed for long, and when the file has gone and another one is open.
//!
//! It never asks an exchange: what memory has let go of is unknown, and fetched again as such.

use super::names::name_of;
use super::{History, State};
use crate::core::context::Context;
use crate::log_targets::HISTORY;
use crate::market::{Series, SeriesKey};
use std::ops::Range;

/// Slots that one slice writes: some 0.1 ms, to read their rows.
const SLOTS_A_SLICE: i64 = 128;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Refill {
    /// The last series that is done.
    behind: Option<SeriesKey>,
    /// In the one behind it, the first slot that is not.
    from: Option<(SeriesKey, i64)>,
}

impl History {
    /// Begins a walk, if one is needed and the disk takes what comes of it.
    pub(super) fn catch_up(&mut self) {
        if self.state == State::On && !self.fails() && std::mem::take(&mut self.missed) {
            self.refill = Some(Refill::default());
        }
    }

    /// Whether [`History::refill_on`] has something to do.
    pub(super) fn is_refilling(&self) -> bool {
        self.refill.is_some() && self.state == State::On && !self.fails() && self.has_room()
    }

    /// Does one slice. The caller sees to it that the batch is flushed.
    pub(super) fn refill_on(&mut self, cx: &mut Context) {
        let Some(mut refill) = self.refill.take() else {
            return;
        };
        let Some(series) = cx.market.charts.behind(refill.behind) else {
            return self.refilled(cx);
        };
        let key = series.key();
        let from = refill.from.filter(|(of, _)| *of == key);
        let slots = match self.is_for(key, cx) {
            true => unwritten(series, from.map_or(i64::MIN, |(_, slot)| slot)),
            false => None,
        };
        if let Some(slots) = slots {
            let name = name_of(key, cx);
            let changes = self.batch.of(&name);
            // The file may hold there what the exchange has revised since.
            changes.forget(slots.clone());
            let candles = series.candles(&slots).into_iter();
            let candles = candles.map(|(slot, candle)| (slot, Some(candle)));
            changes.answered(slots.clone(), candles);
            refill.from = Some((key, slots.end));
        } else {
            refill.behind = Some(key);
        }
        self.refill = Some(refill);
    }

    /// All that memory holds is on its way.
    fn refilled(&mut self, cx: &mut Context) {
        if self.batch.is_empty() && self.writing.is_none() {
            return self.mended(cx);
        }
        self.mended_by = Some(self.writes + u64::from(!self.batch.is_empty()));
    }

    /// All that memory holds is on disk.
    pub(super) fn mended(&mut self, cx: &mut Context) {
        if std::mem::take(&mut cx.stats.history.lost) {
            log::info!(target: HISTORY, "what memory holds is on disk again");
        }
    }
}

/// The first slots, from this one on, that are in memory and not in the file.
fn unwritten(series: &Series, from: i64) -> Option<Range<i64>> {
    let covered = series.covered().within(from..i64::MAX);
    let missing = covered.flat_map(|part| series.archived().missing(part));
    let first = { missing }.next()?;
    Some(first.start..first.end.min(first.start + SLOTS_A_SLICE))
}
