//! Batches on their way to the file.
//!
//! Owns the one that is under way, what becomes of the charts' archive when it is acknowledged, and
//! the pace at which a disk that fails is tried. It never drops a batch that comes back, except that
//! of a file that has been given up.
//!
//! ```text
//! Listing -> Sent -> Taking     its ranges are noted, it is written, its ranges are archived
//!                 -> gathered   it comes back
//! ```
//!
//! The first and the last go slice by slice: a batch may be of a thousand series.

use super::names::{name_of, ranges_of};
use super::open::take_extent;
use super::{FLUSH, HEAVY, History, RETRY_MAX, State};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Batch, Extent, Fate, Job, SeriesName, Unwritten, Written};
use crate::log_targets::HISTORY;
use crate::market::SeriesKey;
use crate::time::Mono;
use std::ops::{Bound, Range};
use std::time::Duration;

/// First pause after a write that failed; it doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// A write that takes longer counts as one that failed, until it ends.
pub(super) const STALLED: Duration = Duration::from_secs(10);

/// Series that one slice lists or takes: some 0.1 ms.
const SERIES_A_SLICE: usize = 64;

/// What is being written, as ranges: the candles are with the disk thread.
#[derive(Debug)]
pub(super) struct Writing {
    number: u64,
    ranges: Vec<(SeriesKey, Range<i64>, Fate)>,
    pub(super) weight: usize,
    /// When it counts as stalled. `None`: it does already, or the end's deadline is all there is.
    pub(super) stalls_at: Option<Mono>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Up to this series.
    Listing(Box<Batch>, Option<SeriesName>),
    Sent,
    /// What the file holds of its series is still to be noted for these.
    Taking(Vec<(SeriesName, Extent)>),
}

impl Writing {
    /// Whether it is on disk.
    pub(super) fn is_acknowledged(&self) -> bool {
        matches!(self.stage, Stage::Taking(_))
    }
}

impl History {
    /// One batch at a time; and none while the file tells what it held before.
    pub(super) fn may_flush(&self) -> bool {
        self.writing.is_none() && self.state != State::Loading
    }

    /// Sends what was gathered, if it may be sent now.
    pub(super) fn flush(&mut self, cx: &mut Context, stalls_at: Option<Mono>) {
        if !self.may_flush() {
            return;
        }
        self.flush_at = None;
        if self.batch.is_empty() {
            // Series that were looked at, and have not changed.
            self.batch.series.clear();
            return;
        }
        self.writes += 1;
        let batch = std::mem::take(&mut self.batch);
        self.writing = Some(Writing {
            number: self.writes,
            ranges: Vec::with_capacity(batch.series.len()),
            weight: batch.weight(),
            stalls_at,
            stage: Stage::Listing(batch, None),
        });
        self.finish_stage(cx);
    }

    /// Whether [`History::write_on`] has something to do.
    pub(super) fn is_writing_on(&self) -> bool {
        match self.writing.as_ref().map(|writing| &writing.stage) {
            // It may not be sent before the file has told what it held.
            Some(Stage::Listing(..)) => self.state != State::Loading,
            Some(Stage::Taking(_)) => true,
            Some(Stage::Sent) | None => false,
        }
    }

    /// At the end nobody is held up any more.
    pub(super) fn finish_stage(&mut self, cx: &mut Context) {
        while self.close_by.is_some() && self.is_writing_on() {
            self.write_on(cx);
        }
    }

    /// Lists or takes one slice of the batch that is under way.
    pub(super) fn write_on(&mut self, cx: &mut Context) {
        let Some(mut writing) = self.writing.take() else {
            return;
        };
        let done = match &mut writing.stage {
            Stage::Listing(batch, after) => {
                let behind = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                let names = batch.series.range((behind, Bound::Unbounded));
                let slice = names.take(SERIES_A_SLICE);
                let last = slice.clone().last().map(|(name, _)| name.clone());
                writing.ranges.extend(ranges_of(slice, cx));
                if last.is_some() {
                    *after = last;
                } else {
                    let (number, batch) = (writing.number, std::mem::take(batch));
                    log::debug!(
                        target: HISTORY,
                        "batch sent number={number} series={} changes={}",
                        batch.series.len(),
                        writing.weight
                    );
                    let job = Job::Write { number, batch };
                    cx.actions.push_back(Action::Store(job));
                    writing.stage = Stage::Sent;
                }
                false
            }
            Stage::Sent => false,
            Stage::Taking(extents) => {
                let left = writing.ranges.len().saturating_sub(SERIES_A_SLICE);
                self.archive_written(writing.ranges.drain(left..), cx);
                let untold = extents.len().saturating_sub(SERIES_A_SLICE);
                for (name, extent) in extents.drain(untold..) {
                    take_extent(&name, extent, cx);
                }
                left == 0 && untold == 0
            }
        };
        match done {
            true => self.news = true,
            false => self.writing = Some(writing),
        }
    }

    /// These ranges are as they were written.
    fn archive_written(
        &self,
        ranges: impl Iterator<Item = (SeriesKey, Range<i64>, Fate)>,
        cx: &mut Context,
    ) {
        // The file may have become unreadable since, or may be read anew already.
        if !matches!(self.state, State::On | State::Loading) {
            return;
        }
        for (key, slots, fate) in ranges {
            let charts = &mut cx.market.charts;
            match fate {
                Fate::Forgotten => charts.unarchive(key, slots),
                Fate::Covered | Fate::Replaced => charts.archive(key, slots),
            }
            let name = name_of(key, cx);
            if let Some(changes) = self.batch.series.get(&name) {
                for (slots, _) in changes.ranges() {
                    cx.market.charts.unarchive(key, slots);
                }
            }
        }
    }

    pub(super) fn written(
        &mut self,
        number: u64,
        result: Result<Written, Unwritten>,
        cx: &mut Context,
    ) {
        let Some(mut writing) = self.writing.take_if(|writing| writing.number == number) else {
            return;
        };
        match result {
            Ok(written) => {
                log::debug!(
                    target: HISTORY,
                    "batch written number={number} inserted={} updated={} bytes={}",
                    written.inserted,
                    written.updated,
                    written.bytes
                );
                self.bytes = written.bytes;
                cx.stats.history.bytes = written.bytes;
                cx.stats.history.inserted += written.inserted;
                cx.stats.history.updated += written.updated;
                if std::mem::take(&mut self.failures) > 0 {
                    log::info!(target: HISTORY, "is written again");
                }
                cx.stats.history.write_failed = false;
                self.stalled = false;
                if self.mended_by.take_if(|by| *by <= number).is_some() {
                    self.mended(cx);
                }
                writing.stalls_at = None;
                writing.stage = Stage::Taking(written.extents);
                self.writing = Some(writing);
                self.catch_up();
                self.finish_stage(cx);
            }
            Err(unwritten) => self.unwritten(unwritten, cx),
        }
        if self.batch.weight() >= HEAVY && self.failures == 0 {
            self.flush_at = Some(cx.now.mono);
        } else if !self.batch.is_empty() {
            self.flush_at.get_or_insert(cx.now.mono + FLUSH);
        }
    }

    /// A batch has come back: what was gathered meanwhile goes on top of it.
    fn unwritten(&mut self, unwritten: Unwritten, cx: &mut Context) {
        cx.stats.history.persist_errors += 1;
        cx.stats.history.write_failed = true;
        cx.stats.history.why = format!("cannot be written: {}", unwritten.error);
        self.stalled = false;
        if self.failures == 0 {
            let error = &unwritten.error;
            log::error!(target: HISTORY, "cannot be written: {error}; trying again and again");
        }
        self.failures = self.failures.saturating_add(1);
        log::debug!(
            target: HISTORY,
            "batch failed failures={} error={:?}",
            self.failures,
            unwritten.error.to_string()
        );
        if self.state == State::GivenUp {
            return;
        }
        let later = std::mem::replace(&mut self.batch, unwritten.batch);
        self.batch.absorb(*later);
        let pause = RETRY * 2u32.saturating_pow((self.failures - 1).min(16));
        self.flush_at = Some(cx.now.mono + pause.min(RETRY_MAX));
    }

    /// What is to be changed in the file is not believed until then.
    pub(super) fn distrust(&self, cx: &mut Context) {
        let listing = match self.writing.as_ref().map(|writing| &writing.stage) {
            Some(Stage::Listing(batch, _)) => Some(batch),
            _ => None,
        };
        let batches = listing.into_iter().chain([&self.batch]);
        let all = batches.flat_map(|batch| &batch.series);
        for (key, slots, _) in ranges_of(all, cx) {
            cx.market.charts.unarchive(key, slots);
        }
    }
}
