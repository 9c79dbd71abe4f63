//! Batches on their way to the file.
//!
//! [`Writer`] owns the batch of changes that is gathered for the next flush, the one that is being
//! written, and the pace at which a failing disk is tried. It never drops a batch that comes back,
//! except for a file that is given up.
//!
//! ```text
//! gathered -> its ranges are noted -> sent -> written: its ranges are archived
//!                                          -> not written: it is gathered again
//! ```

use super::file_state::note_size;
use super::names::{key_of, name_of, ranges_of};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Batch, Changes, DiskJob, Extent, Fate, SeriesName, Unwritten, Written};
use crate::log_targets::{HISTORY, quoted};
use crate::market::SeriesKey;
use crate::time::{Mono, Now};
use std::ops::{Bound, Range};
use std::time::Duration;

/// From the first change to its flush: what a whole round of polls brings shares one transaction, and
/// a closed candle is on disk well within two seconds.
pub const FLUSH: Duration = Duration::from_secs(1);

/// First pause after a write that failed; it doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// Longest pause after a write that failed: a disk with room again is noticed this soon.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// A write that takes longer counts as failed, until it ends.
const STALLED: Duration = Duration::from_secs(10);

/// Weight of the changes that wait for the disk, or are being written: some 10 MB. Above it no candles
/// are requested, so that nothing that was requested has to be dropped: on top comes at most a page for
/// each upstream connection. While the disk fails, what comes beyond is left out, and is written from
/// memory later ([`super::refill`]).
pub const PENDING: usize = 50_000;

/// Weight from which on a batch is written at once, not after [`FLUSH`]: some 50 ms of the disk
/// thread, for which reads wait.
pub const HEAVY: usize = PENDING / 8;

/// Series that one slice notes or archives: some 0.1 ms.
const SERIES_A_SLICE: usize = 64;

/// Which candles may be requested from an exchange, as far as the disk keeps up. A greater pace
/// allows more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// None.
    Hold,
    /// Those that clients wait for, and the newest: the disk fails, and the service goes on.
    NewestAndAsked,
    /// All.
    Free,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Writer {
    /// What is gathered.
    pub batch: Box<Batch>,
    /// What is being written.
    writing: Option<Writing>,
    /// The number of the last batch.
    number: u64,
    flush_at: Option<Mono>,
    /// Failures in a row.
    failures: u32,
    /// True if the write that is under way takes longer than [`STALLED`].
    is_stalled: bool,
}

/// A batch that is being written, as ranges: the candles are with the disk thread.
#[derive(Debug)]
struct Writing {
    number: u64,
    ranges: Vec<(SeriesKey, Range<i64>, Fate)>,
    weight: usize,
    /// When it counts as stalled. `None`: it does already, or the deadline of the end is all there is.
    stalls_at: Option<Mono>,
    is_acknowledged: bool,
}

impl Writer {
    /// True if another change can be gathered.
    pub fn has_room(&self) -> bool {
        self.pending() < PENDING
    }

    /// Weight of the changes that wait for the disk, or are being written.
    pub fn pending(&self) -> usize {
        let writing = self.writing.as_ref().map_or(0, |writing| writing.weight);
        writing + self.batch.weight()
    }

    /// True if the last write failed, or takes very long.
    pub fn is_failing(&self) -> bool {
        self.failures > 0 || self.is_stalled
    }

    /// True if the last write failed.
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// True if a batch is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// The number of the batch that will hold what is gathered now.
    pub fn last_number(&self) -> u64 {
        self.number + u64::from(!self.batch.is_empty())
    }

    /// The gathered changes of a series. A flush is due.
    pub fn changes(&mut self, key: SeriesKey, cx: &Context) -> &mut Changes {
        self.flush_soon(cx.now);
        self.batch.of(&name_of(key, cx))
    }

    /// A flush is due: at once, if the batch is heavy.
    pub fn flush_soon(&mut self, now: Now) {
        if self.failures == 0 && self.batch.weight() >= HEAVY {
            self.flush_at = Some(now.mono);
        }
        self.flush_at.get_or_insert(now.mono + FLUSH);
    }

    /// When [`Writer::check_stall`] or [`Writer::flush`] is wanted.
    pub fn due(&self, may_flush: bool) -> Option<Mono> {
        match &self.writing {
            Some(writing) => writing.stalls_at,
            None => self.flush_at.filter(|_| may_flush),
        }
    }

    /// True if a flush is due.
    pub fn is_due(&self, now: Now) -> bool {
        self.flush_at.is_some_and(|at| at <= now.mono)
    }

    /// Begins to write what is gathered, one batch at a time. At the end only its deadline counts.
    pub fn flush(&mut self, is_end: bool, now: Now) -> Option<Box<Batch>> {
        if self.is_writing() {
            return None;
        }
        self.flush_at = None;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            // Series that were looked at, and have not changed.
            return None;
        }
        self.number += 1;
        self.writing = Some(Writing {
            number: self.number,
            ranges: Vec::with_capacity(batch.series.len()),
            weight: batch.weight(),
            stalls_at: (!is_end).then(|| now.mono + STALLED),
            is_acknowledged: false,
        });
        Some(batch)
    }

    /// Notes the ranges of some series of a batch, behind this one. `true`: the batch is sent.
    pub fn send(
        &mut self,
        batch: &mut Box<Batch>,
        after: &mut Option<SeriesName>,
        cx: &mut Context,
    ) -> bool {
        let Some(writing) = &mut self.writing else {
            return true;
        };
        let behind = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let slice = (batch.series.range((behind, Bound::Unbounded))).take(SERIES_A_SLICE);
        let last = slice.clone().last().map(|(name, _)| name.clone());
        writing.ranges.extend(ranges_of(slice, cx));
        if last.is_some() {
            *after = last;
            return false;
        }
        let (number, batch) = (writing.number, std::mem::take(batch));
        log::debug!(
            target: HISTORY,
            "batch sent number={number} series={} changes={}",
            batch.series.len(),
            writing.weight
        );
        cx.actions.push_back(Action::Store(DiskJob::Write { number, batch }));
        true
    }

    /// Archives some ranges of the batch that is written, if the file still tells of them. `true`: the
    /// last ones.
    pub fn archive(
        &mut self,
        extents: &mut Vec<(SeriesName, Extent)>,
        is_readable: bool,
        cx: &mut Context,
    ) -> bool {
        let Some(writing) = &mut self.writing else {
            return true;
        };
        let left = writing.ranges.len().saturating_sub(SERIES_A_SLICE);
        let ranges = writing.ranges.drain(left..);
        for (key, slots, fate) in ranges.filter(|_| is_readable) {
            let charts = &mut cx.market.charts;
            match fate {
                Fate::Forgotten => charts.unarchive(key, slots),
                Fate::Covered | Fate::Replaced => charts.archive(key, slots),
            }
            // What has changed since is not archived before that is written too.
            if let Some(changes) = self.batch.series.get(&name_of(key, cx)) {
                for (slots, _) in changes.ranges() {
                    cx.market.charts.unarchive(key, slots);
                }
            }
        }
        let unnoted = extents.len().saturating_sub(SERIES_A_SLICE);
        for (name, extent) in extents.drain(unnoted..) {
            if let Some(key) = key_of(&name, cx) {
                cx.stats.history.stored.set(key, extent);
            }
        }
        let is_done = left == 0 && unnoted == 0;
        if is_done {
            self.writing = None;
        }
        is_done
    }

    /// A batch is on disk, or has come back. Returns what the file holds of its series now, if it is on
    /// disk.
    pub fn written(
        &mut self,
        number: u64,
        result: Result<Written, Unwritten>,
        cx: &mut Context,
    ) -> Option<Vec<(SeriesName, Extent)>> {
        let mut writing = self.writing.take_if(|writing| writing.number == number)?;
        let was_stalled = std::mem::take(&mut self.is_stalled);
        let written = match result {
            Ok(written) => written,
            Err(unwritten) => {
                self.unwritten(unwritten, cx);
                return None;
            }
        };
        writing.stalls_at = None;
        writing.is_acknowledged = true;
        self.writing = Some(writing);
        log::debug!(
            target: HISTORY,
            "batch written number={number} inserted={} updated={} bytes={}",
            written.inserted,
            written.updated,
            written.bytes
        );
        note_size(written.bytes, cx);
        let status = &mut cx.stats.history;
        status.inserted += written.inserted;
        status.updated += written.updated;
        status.write_failed = false;
        let failures = std::mem::take(&mut self.failures);
        if failures > 0 || was_stalled {
            log::info!(target: HISTORY, "write works again failures={failures}");
        }
        Some(written.extents)
    }

    /// A batch has come back: what was gathered meanwhile goes on top of it.
    fn unwritten(&mut self, unwritten: Unwritten, cx: &mut Context) {
        let (error, status) = (&unwritten.error, &mut cx.stats.history);
        status.persist_errors += 1;
        status.write_failed = true;
        status.why = format!("cannot be written: {error}");
        if self.failures == 0 {
            log::error!(target: HISTORY, "write failed retrying=true error={}", quoted(error));
        }
        self.failures = self.failures.saturating_add(1);
        let failures = self.failures;
        log::debug!(target: HISTORY, "batch failed failures={failures} error={}", quoted(error));
        let later = std::mem::replace(&mut self.batch, unwritten.batch);
        self.batch.absorb(*later);
        let pause = RETRY * 2u32.saturating_pow((failures - 1).min(16));
        self.flush_at = Some(cx.now.mono + pause.min(RETRY_MAX));
    }

    /// Counts a write that takes very long as failed.
    pub fn check_stall(&mut self, cx: &mut Context) {
        let is_due = |at: &mut Mono| *at <= cx.now.mono;
        let mut writing = self.writing.iter_mut();
        if writing.any(|writing| writing.stalls_at.take_if(is_due).is_some()) {
            log::error!(target: HISTORY, "write stalled after_s={}", STALLED.as_secs());
            cx.stats.history.write_failed = true;
            cx.stats.history.why = "the disk takes very long to write".to_string();
            self.is_stalled = true;
        }
    }

    /// The file has gone, and what was acknowledged with it.
    pub fn forget_acknowledged(&mut self) {
        self.writing.take_if(|writing| writing.is_acknowledged);
    }

    /// Nothing is written any more.
    pub fn give_up(&mut self) {
        *self.batch = Batch::default();
        self.flush_at = None;
    }
}
