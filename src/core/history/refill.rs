//! Writes from memory what the file lacks.
//!
//! [`Missing`] owns whether the file lacks something: changes were left out because the disk failed for
//! long, or the file has gone and another one is open. [`Refill`] is the cursor of a walk over the
//! series in memory. What is covered there and not archived goes into the next batches, slice by slice
//! and while there is room. The refill requests nothing. What memory has dropped is unknown, and is requested
//! like other unknown candles.

use super::names::name_of;
use super::writer::Writer;
use crate::core::context::Context;
use crate::history::Batch;
use crate::log_targets::HISTORY;
use crate::market::{Series, SeriesKey};
use std::ops::Range;

/// Slots that one slice writes: some 0.1 ms, to read their rows.
const SLOTS_A_SLICE: i64 = 128;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Missing {
    /// True if the file lacks something for which no refill has begun.
    pub needs_refill: bool,
    /// True from the first change that is left out until the disk is well again.
    is_left_out: bool,
    /// The number of the batch after which a new file holds all that memory holds.
    refilled_with: Option<u64>,
}

impl Missing {
    /// Changes are taken, or left out.
    pub fn note(&mut self, is_taken: bool, writer: &Writer) {
        self.needs_refill |= !is_taken;
        if !is_taken && !std::mem::replace(&mut self.is_left_out, true) {
            let waiting = writer.pending();
            log::warn!(target: HISTORY, "changes left out waiting={waiting} backfill=paused");
        }
    }

    /// The file has gone: it lacks everything.
    pub fn file_gone(&mut self) {
        self.needs_refill = true;
        self.refilled_with = None;
    }

    /// The refill to begin, if one is needed and the disk is well.
    pub fn begin_refill(&mut self, is_well: bool) -> Option<Refill> {
        if is_well && std::mem::take(&mut self.is_left_out) {
            log::info!(target: HISTORY, "changes taken again refill=begun");
        }
        (is_well && std::mem::take(&mut self.needs_refill)).then(Refill::default)
    }

    /// All that memory holds is on its way to the file.
    pub fn refilled(&mut self, writer: &Writer, cx: &mut Context) {
        match writer.batch.is_empty() && !writer.is_writing() {
            true => on_disk_again(cx),
            false => self.refilled_with = Some(writer.last_number()),
        }
    }

    /// A batch is on disk.
    pub fn written(&mut self, number: u64, cx: &mut Context) {
        if self.refilled_with.take_if(|by| *by <= number).is_some() {
            on_disk_again(cx);
        }
    }
}

/// All that memory holds is on disk.
fn on_disk_again(cx: &mut Context) {
    if std::mem::take(&mut cx.stats.history.lost) {
        log::info!(target: HISTORY, "file refilled");
    }
}

/// A walk over the series in memory.
#[derive(Debug, Default)]
pub struct Refill {
    /// The last series that the walk has finished.
    behind: Option<SeriesKey>,
    /// The first slot to look at in the series after it.
    from: Option<i64>,
}

impl Refill {
    /// Does one slice. Returns true once all that memory holds is on its way.
    pub fn step(
        &mut self,
        may_store: impl FnOnce(SeriesKey) -> bool,
        batch: &mut Batch,
        cx: &Context,
    ) -> bool {
        let Some(series) = cx.market.charts.behind(self.behind) else {
            return true;
        };
        let key = series.key();
        let slots = match may_store(key) {
            true => unwritten(series, self.from.unwrap_or(i64::MIN)),
            false => None,
        };
        if let Some(slots) = slots {
            let changes = batch.of(&name_of(key, cx));
            // The file may hold there what the exchange has revised since.
            changes.forget(slots.clone());
            let candles = series.candles(&slots).into_iter();
            let candles = candles.map(|(slot, candle)| (slot, Some(candle)));
            changes.answered(slots.clone(), candles);
            self.from = Some(slots.end);
        } else {
            (self.behind, self.from) = (Some(key), None);
        }
        false
    }
}

/// The first slots, from this one on, that are in memory and not in the file.
fn unwritten(series: &Series, from: i64) -> Option<Range<i64>> {
    let covered = series.covered().within(from..i64::MAX);
    let mut missing = covered.flat_map(|part| series.archived().missing(part));
    let first = missing.next()?;
    Some(first.start..first.end.min(first.start + SLOTS_A_SLICE))
}
