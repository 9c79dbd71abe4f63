//! The history file as the core sees it: its state, writes, reads and restores.
//!
//! [`History`] conducts its parts: `file_state` (whether the file can be used), `writer` (the batches),
//! `reads` (candles for clients), `restoring` (the load: what the file holds), and `jobs` (saved quotes and
//! rules, and what the file lacks). It sends jobs to the disk thread
//! ([`Action::Store`](super::Action::Store)), and takes in its replies ([`History::handle`]). The loop never
//! blocks on them: without a usable file, the core serves from memory. Which candles are requested is decided
//! by `sources`, from what is archived.
//!
//! A slot is [archived](crate::market::Series::archived) once the disk thread has acknowledged its write. It
//! stops being archived when a later change of it waits to be written. What is lost with the process is
//! unknown afterwards, and is requested again. While the file cannot be read, nothing is archived: what
//! memory drops is requested again.

mod file_state;
mod jobs;
mod reads;
mod restoring;
#[cfg(all(test, feature = "sqlite"))]
mod tests;
mod writer;

use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Batch, Changes, DiskJob, OpenError, Reply, StoreError, Written};
use crate::job_queue::JobQueue;
use crate::log_targets::{HISTORY, quoted};
use crate::market::{SeriesKey, SourceId};
use crate::time::{Mono, Now};
use file_state::{FileState, LOADING};
use jobs::{Missing, SavedQuotes, Work};
pub use reads::ReadStart;
use reads::Reads;
use std::ops::Range;
use std::time::Duration;
pub use writer::Pace;
use writer::{FLUSH, SWEEP, Writer};

/// Time for the last flush and the closing of the file, in addition to `limits.shutdownMs`.
const CLOSING: Duration = Duration::from_secs(10);

/// See the module's page.
#[derive(Debug, Default)]
pub struct History {
    file: FileState,
    writer: Writer,
    reads: Reads,
    /// When old candles are evicted next.
    evict_at: Mono,
    quotes: SavedQuotes,
    work: JobQueue<Work>,
    /// What the file lacks and memory holds.
    missing: Missing,
    /// What the file held of this many sources is restored. A later load brings no quotes and rules of these
    /// sources: what has come since is newer. A source that a reload brings back is one of them: its quotes
    /// and rules come from the exchange.
    restored: usize,
    /// The number of loads under way. Only the last one counts, because a write may follow the others.
    loads: u32,
    /// True if a batch was archived, or the file loaded, since the last call of [`History::take_progress`].
    has_progressed: bool,
    close_by: Option<Mono>,
}

impl History {
    /// A history without a file.
    pub fn new(now: Now) -> History {
        History {
            evict_at: now.mono + SWEEP,
            quotes: SavedQuotes::new(now.mono),
            ..History::default()
        }
    }

    /// Uses a file from now on. `opened`: the result of opening it.
    pub fn begin(&mut self, opened: Reply, cx: &mut Context) {
        self.file = FileState::NotOpen(None);
        cx.stats.history.enabled = true;
        self.handle(opened, cx);
    }

    /// Which candles may be requested now.
    pub fn pace(&self) -> Pace {
        match (self.writer.has_room(), self.is_failing()) {
            _ if self.awaits_load(SourceId(0)) => Pace::Hold,
            (true, _) => Pace::Free,
            (false, true) => Pace::NewestAndAsked,
            (false, false) => Pace::Hold,
        }
    }

    /// True if a batch was archived, or the file loaded, since the last call.
    pub fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.has_progressed)
    }

    /// True if the disk counts as failing: the file is not usable, its load is slow, or the last write failed
    /// or takes very long. Also true without a file.
    fn is_failing(&self) -> bool {
        let is_well = self.file.is_on() || self.file.is_awaited();
        !is_well || self.writer.is_failing()
    }

    /// True if candles of this series that memory drops can be read back from the file.
    pub fn keeps(&self, key: SeriesKey, cx: &Context) -> bool {
        self.file.is_on() && self.batch_may_grow() && self.may_store(key, cx)
    }

    /// True if there is a file, and its size allows candles of this series. At the limit, it allows only
    /// candles of markets that the configuration names.
    pub fn may_store(&self, key: SeriesKey, cx: &Context) -> bool {
        self.file.may_store(key, cx)
    }

    /// True if further changes may join the batch. Without room no candles are requested, so only few still
    /// come: they may join as long as the disk works.
    fn batch_may_grow(&self) -> bool {
        self.writer.has_room() || !self.is_failing()
    }

    /// True if the file is closed, or there is none.
    pub fn is_closed(&self) -> bool {
        self.file.is_closed()
    }

    /// Adds the changes of a series to the next batch. Without room in the batch or in the file, the changes
    /// are left out, and these slots are removed from the file, because its candles are out of date.
    pub fn note(&mut self, key: SeriesKey, changes: Changes, cx: &Context) {
        if changes.is_empty() || !self.file.takes_changes() {
            return;
        }
        let (may_store, may_grow) = (self.may_store(key, cx), self.batch_may_grow());
        if may_store && may_grow {
            return self.writer.changes(key, cx).absorb(changes);
        }
        if !may_grow {
            self.missing.leave_out(&self.writer);
        }
        // While the file is not loaded, it may hold any series.
        if may_store || !self.file.is_on() || cx.stats.history.stored.contains_key(&key) {
            changes.ranges().for_each(|slots| self.forget(key, slots, cx));
        }
    }

    /// Removes these slots from the file with the next batch, even if the batch has no room: a removal weighs
    /// little.
    pub fn forget(&mut self, key: SeriesKey, slots: Range<i64>, cx: &Context) {
        if self.file.takes_changes() {
            self.writer.changes(key, cx).forget(slots);
        }
    }

    /// Reads the slots of this range that are archived and not in memory. The series must be open.
    pub fn read(&mut self, key: SeriesKey, slots: &Range<i64>, cx: &mut Context) -> ReadStart {
        match self.file.takes_changes() {
            _ if self.awaits_load(key.source) => ReadStart::NotLoaded,
            true => self.reads.read(key, slots, cx),
            false => ReadStart::Nothing,
        }
    }

    /// True if some of these slots are being read. Also true while the source awaits a load, which may show
    /// that the file holds them.
    pub fn is_reading(&self, key: SeriesKey, slots: &Range<i64>) -> bool {
        self.awaits_load(key.source) || self.reads.is_reading(key, slots)
    }

    /// When [`History::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        let goes_on = !self.is_closed() && self.file != FileState::Closing;
        let all = [
            self.writer.due(!self.file.is_loading()),
            self.file.due(),
            Some(self.quotes.next),
            Some(self.evict_at),
        ];
        let all = all.into_iter().flatten().filter(|_| goes_on);
        all.chain(self.close_by.filter(|_| !self.is_closed())).min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if self.is_closed() {
            return;
        }
        if self.close_by.is_some_and(|by| by <= cx.now.mono && !cx.is_behind) {
            log::error!(target: HISTORY, "closing given up lost=true");
            self.file = FileState::Closed;
            return;
        }
        self.save_quotes(cx);
        self.writer.check_stall(cx);
        if self.file.handle_timeout(cx) {
            self.load(SourceId(0), None, cx);
        }
        if self.writer.is_due(cx.now) {
            self.flush(cx);
        }
        if self.evict_at <= cx.now.mono {
            self.evict(cx);
        }
    }

    /// Begins to save the quotes that have changed, if that is due.
    fn save_quotes(&mut self, cx: &Context) {
        let round = self.quotes.begin(cx);
        self.work.push(round.map(Work::SaveQuotes));
    }

    /// True if a batch is being written, or its slots are being archived.
    fn is_writing(&self) -> bool {
        let is_archiving = |work: &Work| matches!(work, Work::ArchiveBatch(..));
        self.writer.is_writing() || self.work.iter().any(is_archiving)
    }

    /// Sends the batch to the disk thread, unless the last one is still being written or archived, or the
    /// file is being loaded.
    fn flush(&mut self, cx: &mut Context) {
        if !self.file.is_loading() && !self.is_writing() {
            self.writer.flush(cx);
        }
    }

    /// Adds the eviction of old candles to the batch, unless a batch is being written or the disk fails.
    fn evict(&mut self, cx: &mut Context) {
        let is_well = self.file.is_on() && !self.is_failing();
        let has_more = is_well && (self.is_writing() || self.writer.evict(cx));
        self.evict_at = cx.now.mono + if has_more { FLUSH } else { SWEEP };
        self.writer.flush_soon(cx.now);
    }

    /// True if [`History::work`] has something to do.
    pub fn has_work(&self) -> bool {
        self.work.next(|work| self.can_step(work)).is_some()
    }

    fn can_step(&self, work: &Work) -> bool {
        let has_room = self.file.is_on() && self.writer.has_room();
        match work {
            Work::RestoreQuotes(_) | Work::ArchiveBatch(..) => true,
            Work::SaveQuotes(_) => self.file.takes_changes() && self.batch_may_grow(),
            Work::SaveRules(..) => has_room,
            Work::Refill(_) => has_room && !self.is_failing(),
        }
    }

    /// Steps the first job that can be stepped, once.
    pub fn work(&mut self, cx: &mut Context) {
        let next = self.work.next(|work| self.can_step(work));
        let Some(mut work) = next.and_then(|at| self.work.take(at)) else {
            return;
        };
        let batch = &mut self.writer.batch;
        let is_done = match &mut work {
            Work::RestoreQuotes(back) => self.quotes.restore_slice(back, cx),
            Work::ArchiveBatch(written, extents) => {
                // The file may have become unreadable since the write, or may be loading again.
                let is_readable = self.file.is_on() || self.file.is_loading();
                let is_done = self.writer.archive(written, extents, is_readable, cx);
                self.has_progressed |= is_done;
                is_done
            }
            Work::SaveQuotes(round) => self.quotes.save(round, cx, batch),
            Work::SaveRules(source, from) => jobs::save_rules(*source, from, cx, batch),
            Work::Refill(refill) => {
                let is_done = refill.step(|key| self.file.may_store(key, cx), batch, cx);
                if is_done {
                    self.missing.refilled(&self.writer, cx);
                }
                is_done
            }
        };
        self.writer.flush_soon(cx.now);
        if !is_done {
            self.work.put_back(work);
        }
    }

    /// Begins a refill, if one is needed and the disk works. All quotes and rules are saved again, too.
    fn catch_up(&mut self, cx: &Context) {
        let is_well = self.file.is_on() && !self.is_failing();
        let Some(refill) = self.missing.begin_refill(is_well) else {
            return;
        };
        (self.quotes.next, self.quotes.saved) = (cx.now.mono, 0);
        self.save_quotes(cx);
        let sources = (0..cx.config.sources.len()).map(|at| SourceId(at as u16));
        let listed = sources.filter(|source| cx.market.catalog.has_list(*source));
        self.work.push(listed.map(|source| Work::SaveRules(source, 0)));
        self.work.push([Work::Refill(refill)]);
    }

    /// Begins the shutdown: sends the batch at once, and begins to save the last quotes.
    pub fn shut_down(&mut self, cx: &mut Context) {
        if self.is_closed() || self.close_by.is_some() {
            return;
        }
        self.close_by = Some(cx.now.mono + cx.config.limits.shutdown + CLOSING);
        self.quotes.next = cx.now.mono;
        self.save_quotes(cx);
        self.flush(cx);
    }

    /// Closes the file once all changes are written, or cannot be. Called again until it is closed.
    pub fn close(&mut self, cx: &mut Context) {
        // A refill begins once the file is loaded.
        let refills = self.missing.needs_refill && self.file.is_awaited();
        let is_busy = self.writer.is_writing() || self.has_work() || refills;
        if self.is_closed() || self.file == FileState::Closing || is_busy {
            return;
        }
        let batch = &self.writer.batch;
        if !batch.is_empty() && !self.writer.has_failed() && self.file != FileState::GivenUp {
            return self.flush(cx);
        }
        if !batch.is_empty() {
            log::error!(target: HISTORY, "changes lost changes={}", batch.weight());
        }
        self.file = FileState::Closing;
        cx.actions.push_back(Action::Store(DiskJob::Stop));
    }

    /// Takes in a reply of the disk thread. `true`: clients may have waited for it.
    pub fn handle(&mut self, reply: Reply, cx: &mut Context) -> bool {
        match reply {
            Reply::Opened(opened) if self.file.opened(opened, cx) => {
                self.load(SourceId(0), Some(cx.now.mono + LOADING), cx);
            }
            Reply::Opened(_) => {}
            Reply::Failed(error) => self.failed(&error, cx),
            Reply::Heads(_) | Reply::Quotes(_) | Reply::Markets(_) => self.restore(reply, cx),
            Reply::Loaded(result) => self.loaded(&result, cx),
            Reply::Rows { ticket, result } => {
                let Some((key, unsound)) = self.reads.page_read(ticket, result, cx) else {
                    return false;
                };
                let unsound = unsound.into_iter().map(|slot| slot..slot.saturating_add(1));
                unsound.for_each(|slots| self.forget(key, slots, cx));
                return true;
            }
            Reply::Written { batch, result } => self.written(batch, result, cx),
            Reply::Stopped(result) => {
                if let Err(error) = result {
                    log::warn!(target: HISTORY, "close failed error={}", quoted(error));
                }
                self.file = FileState::Closed;
            }
        }
        false
    }

    fn failed(&mut self, error: &OpenError, cx: &mut Context) {
        self.file.failed(error, cx);
        self.unreadable(cx);
        if self.file == FileState::GivenUp {
            self.writer.give_up(cx);
        }
    }

    /// Nothing can be read. Once the file is open again, it is loaded for all sources. It may be another file
    /// then: what it lacks is written from memory.
    fn unreadable(&mut self, cx: &mut Context) {
        self.work.retain(|work| !matches!(work, Work::ArchiveBatch(..) | Work::Refill(_)));
        self.missing.unreadable();
        cx.stats.history.stored.clear();
        cx.market.charts.forget_archives();
    }

    fn written(
        &mut self,
        batch: Box<Batch>,
        result: Result<Written, StoreError>,
        cx: &mut Context,
    ) {
        match result {
            Ok(written) => {
                self.writer.written(&written, cx);
                self.work.push([Work::ArchiveBatch(batch, written.extents)]);
                self.missing.written(self.writer.sent, cx);
                self.catch_up(cx);
            }
            Err(error) => self.writer.unwritten(batch, &error, cx),
        }
        if self.file == FileState::GivenUp {
            self.writer.give_up(cx);
        }
        self.writer.flush_soon(cx.now);
    }
}
