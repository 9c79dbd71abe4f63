//! Batches on their way to the file.
//!
//! Owns the one that is under way, what becomes of the charts' archive when it is acknowledged, and
//! the pace at which a disk that fails is tried. It never drops a batch that comes back, except that
//! of a file that has been given up.

use super::names::ranges_of;
use super::{Archive, FLUSH, RETRY_MAX, Shelf, State};
use crate::history::{Fate, Job, Unwritten, Written};
use crate::market::SeriesKey;
use crate::server::Action;
use crate::time::{Mono, Now};
use std::ops::Range;
use std::time::Duration;

/// First pause after a write that failed; it doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);

/// A write that takes longer counts as one that failed, until it ends.
pub(super) const STALLED: Duration = Duration::from_secs(10);

/// What is being written, as ranges: the candles are with the disk thread.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) number: u64,
    pub(super) ranges: Vec<(SeriesKey, Range<i64>, Fate)>,
    pub(super) weight: usize,
    /// When it counts as stalled. `None`: it does already, or the end's deadline is all there is.
    pub(super) stalls_at: Option<Mono>,
}

impl Archive {
    /// One batch at a time; and none while the file tells what it held before.
    pub(super) fn may_flush(&self) -> bool {
        self.writing.is_none() && self.state != State::Loading
    }

    /// Sends what was gathered, if it may be sent now.
    pub(super) fn flush(&mut self, shelf: &mut Shelf<'_>, stalls_at: Option<Mono>) {
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
            ranges: ranges_of(&batch, shelf),
            weight: batch.weight(),
            stalls_at,
        });
        let number = self.writes;
        let job = Job::Write { number, batch };
        shelf.actions.push_back(Action::Store(job));
    }

    pub(super) fn written(
        &mut self,
        number: u64,
        result: Result<Written, Unwritten>,
        shelf: &mut Shelf<'_>,
        now: Now,
    ) {
        let Some(writing) = self.writing.take_if(|writing| writing.number == number) else {
            return;
        };
        match result {
            Ok(written) => {
                self.bytes = written.bytes;
                shelf.status.bytes = written.bytes;
                shelf.status.inserted += written.inserted;
                shelf.status.updated += written.updated;
                if std::mem::take(&mut self.failures) > 0 {
                    log::info!("history: is written again");
                }
                shelf.status.write_failed = false;
                let charts = &mut shelf.market.charts;
                // The file may have become unreadable since, or may be read anew already.
                let is_read = matches!(self.state, State::On | State::Loading);
                for (key, slots, fate) in writing.ranges.into_iter().filter(|_| is_read) {
                    match fate {
                        Fate::Forgotten => charts.unarchive(key, slots),
                        Fate::Covered | Fate::Replaced => charts.archive(key, slots),
                    }
                }
                self.distrust(shelf);
            }
            Err(unwritten) => self.unwritten(unwritten, shelf, now),
        }
        if !self.batch.is_empty() {
            self.flush_at.get_or_insert(now.mono + FLUSH);
        }
    }

    /// A batch has come back: what was gathered meanwhile goes on top of it.
    fn unwritten(&mut self, unwritten: Unwritten, shelf: &mut Shelf<'_>, now: Now) {
        shelf.status.persist_errors += 1;
        shelf.status.write_failed = true;
        if self.failures == 0 {
            let error = &unwritten.error;
            log::error!("history: cannot be written: {error}; trying again and again");
        }
        self.failures = self.failures.saturating_add(1);
        if self.state == State::GivenUp {
            return;
        }
        let later = std::mem::replace(&mut self.batch, unwritten.batch);
        self.batch.absorb(*later);
        let pause = RETRY * 2u32.saturating_pow((self.failures - 1).min(16));
        self.flush_at = Some(now.mono + pause.min(RETRY_MAX));
    }

    /// What the next flush is to change is not believed until then.
    pub(super) fn distrust(&self, shelf: &mut Shelf<'_>) {
        for (key, slots, _) in ranges_of(&self.batch, shelf) {
            shelf.market.charts.unarchive(key, slots);
        }
    }
}
