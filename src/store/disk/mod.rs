//! The disk thread: takes jobs, does them in order, and sends an answer to each.
//!
//! Owns the history file and its state: open, closed until the next job, or given up. Evictions run
//! in slices, one after each job, and one after another while there is no job. So a job waits for at
//! most one slice.
//!
//! It never drops a batch: a batch that could not be written goes back with the answer. It never
//! writes again to a damaged file, and never ends before it is told to.
//!
//! Each file imports only from those below it:
//!
//! ```text
//! holder                    the file's state: open, closed, given up
//! tools                     what a person does with the file
//! file                      opens and closes the file
//! lock, schema, read, write the lock file; the tables; reads; writes
//! header, coverage          the first check of the file; the covered times
//! series                    the series and their ids
//! row                       rows and records
//! checksum                  the checksum of a row
//! sqlite                    the only file that names SQLite
//! ```

mod checksum;
mod coverage;
mod file;
mod header;
mod holder;
mod lock;
mod read;
mod row;
mod schema;
mod series;
mod sqlite;
#[cfg(test)]
mod tests;
mod tools;
mod write;

pub(super) use file::check;
pub use sqlite::sqlite_version;
pub use tools::{HistoryReader, Pruned, prune, rename};

use crate::history::{
    Batch, DiskJob, Evicted, Extent, Loaded, Reply, SeriesName, StoreError, Unwritten, Written,
};
use crate::log_targets::{HISTORY, quoted};
use file::HistoryFile;
use holder::{Answers, Holder};
use signal_hook::consts::SIGXFSZ;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError};

/// Candles that one slice of evictions removes, which takes a few milliseconds.
const SLICE_ROWS: u64 = 1000;

/// Series that one slice evicts from. They share a transaction, because the sync takes longest.
const SLICE_SERIES: usize = 64;

/// Evictions that may wait. Above this, no job is taken until there are fewer, so that the rest
/// waits in the bounded queue.
const EVICTIONS: usize = 4096;

/// The disk thread's state.
struct Disk {
    jobs: Receiver<DiskJob>,
    holder: Holder,
    evictions: VecDeque<Eviction>,
    /// False after a failed checkpoint. Only changes are logged.
    checkpoints: bool,
}

/// An eviction that is under way or waits.
struct Eviction {
    series: SeriesName,
    before: i64,
    evicted: Evicted,
}

/// Does jobs until [`DiskJob::Stop`] comes, or until the queue has no sender.
pub(super) fn run(
    path: PathBuf,
    jobs: Receiver<DiskJob>,
    queue: SyncSender<Reply>,
    wake: Box<dyn Fn() + Send>,
) {
    // A write beyond the process's file size limit raises SIGXFSZ, which would end the process.
    // With a handler, the write fails instead, as on a full disk. A system that does not accept
    // the handler has no such limit.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let holder = Holder::new(path, Answers { queue, wake });
    let mut disk = Disk { jobs, holder, evictions: VecDeque::new(), checkpoints: true };
    let _ = disk.holder.with(|_, _| Ok(()));
    loop {
        match disk.next_job() {
            Ok(Some(DiskJob::Stop)) | Err(RecvError) => break,
            Ok(Some(job)) => disk.handle(job),
            Ok(None) => {}
        }
        disk.evict_some();
    }
    let closed = disk.holder.close();
    disk.holder.answers.send(Reply::Stopped(closed));
}

impl Disk {
    /// The next job. Waits for one only if no eviction is left.
    fn next_job(&self) -> Result<Option<DiskJob>, RecvError> {
        if self.evictions.is_empty() {
            return self.jobs.recv().map(Some);
        }
        if self.evictions.len() >= EVICTIONS {
            return Ok(None);
        }
        match self.jobs.try_recv() {
            Ok(job) => Ok(Some(job)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(RecvError),
        }
    }

    fn handle(&mut self, job: DiskJob) {
        let holder = &mut self.holder;
        match job {
            DiskJob::Load => {
                let result = holder.with(load);
                holder.answers.send(Reply::Loaded(result));
            }
            DiskJob::Read(read) => {
                let result = holder.with(|file, _| read::rows(&file.db, &mut file.known, &read));
                holder.answers.send(Reply::Rows { ticket: read.ticket, result });
            }
            DiskJob::Write { number, batch } => {
                let result = holder.with(|file, _| write_batch(file, &batch));
                let written = result.is_ok();
                let result = result.map_err(|error| Unwritten { error, batch });
                holder.answers.send(Reply::Written { number, result });
                if written {
                    self.flushed();
                }
            }
            DiskJob::Evict { series, before } => {
                let evicted = Evicted::default();
                self.evictions.push_back(Eviction { series, before, evicted });
            }
            DiskJob::Stop => {}
        }
    }

    /// Does one slice of the oldest evictions.
    fn evict_some(&mut self) {
        let count = self.evictions.len().min(SLICE_SERIES);
        if count == 0 {
            return;
        }
        let slice = &mut self.evictions.make_contiguous()[..count];
        let done = self.holder.with(|file, _| evict_slice(file, slice));
        let ended = *done.as_ref().unwrap_or(&count);
        for Eviction { series, before, evicted } in self.evictions.drain(..ended) {
            let result = done.clone().map(|_| evicted);
            self.holder.answers.send(Reply::Evicted { series, before, result });
        }
        if done.is_ok() {
            self.flushed();
        }
    }

    /// Counts a flush, whose answer has been sent: a checkpoint delays only later jobs.
    fn flushed(&mut self) {
        let moved = self.holder.with(|file, _| file.flushed());
        match (&moved, self.checkpoints) {
            (Err(error), true) => {
                log::warn!(target: HISTORY, "checkpoint failed error={}", quoted(error))
            }
            (Ok(()), false) => {
                log::info!(target: HISTORY, "checkpoint works again")
            }
            _ => {}
        }
        self.checkpoints = moved.is_ok();
    }
}

fn load(file: &mut HistoryFile, answers: &Answers) -> Result<Loaded, StoreError> {
    let (series, odd) = read::heads(&file.db, |piece| answers.send(Reply::Heads(piece)))?;
    let (quotes, odd_quotes) = read::records(&file.db, |piece| answers.send(Reply::Quotes(piece)))?;
    let (_, odd_markets) = read::records(&file.db, |piece| answers.send(Reply::Markets(piece)))?;
    Ok(Loaded { series, quotes, unsound: odd + odd_quotes + odd_markets })
}

fn write_batch(file: &mut HistoryFile, batch: &Batch) -> Result<Written, StoreError> {
    let HistoryFile { db, known, .. } = file;
    let written = db.transaction(|| write::apply(db, known, batch));
    if written.is_err() {
        // Series that this batch inserted do not exist.
        known.clear();
    }
    written
}

/// Removes up to `SLICE_ROWS` candles for these evictions, in one transaction. Returns how many of them,
/// from the first on, are finished.
fn evict_slice(file: &mut HistoryFile, evictions: &mut [Eviction]) -> Result<usize, StoreError> {
    let HistoryFile { db, known, .. } = file;
    db.transaction(|| {
        let mut left = SLICE_ROWS;
        for (at, Eviction { series, before, evicted }) in evictions.iter_mut().enumerate() {
            let (extent, rows, all) = match series::find_series(db, known, series)? {
                Some(found) => write::evict(db, found, series.interval, *before, left)?,
                None => (Extent::default(), 0, true),
            };
            (evicted.count, evicted.extent) = (evicted.count + rows, extent);
            left -= rows;
            if !all || left == 0 {
                return Ok(at + usize::from(all));
            }
        }
        Ok(evictions.len())
    })
}
