//! The disk thread: takes jobs, does them in order, and sends replies.
//!
//! `Holder` owns the history file and its state: open, closed until the next job, or given up.
//!
//! It reports when the file becomes usable, and each new reason for which the file is not usable. It never
//! drops a batch: a batch that could not be written goes back with the reply. It never writes again to a
//! damaged file, and never ends before it is told to end.
//!
//! Each file imports only from files below it:
//!
//! ```text
//! tools                what a person does with the file
//! file                 opens and closes the file
//! schema, tables       the tables; reads and writes
//! row                  rows and records; the series, their ids and covered times; the checksum of a row
//! sqlite               the only file that names SQLite
//! header               the first check of the file, and its lock
//! ```

mod file;
mod header;
mod row;
mod schema;
mod sqlite;
mod tables;
#[cfg(test)]
mod tests;
mod tools;

pub use file::check;
pub use sqlite::sqlite_version;
pub use tools::{HistoryReader, NotRenamed, StoredMarkets, prune, rename, renamed};

use crate::history::{Batch, DiskJob, Loaded, OpenError, Reply, StoreError, Unusable, Written};
use crate::log_targets::{HISTORY, quoted};
use file::{CHECKED_BYTES, HistoryFile, KnownFile};
use header::Lock;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender};

/// Most series, quotes or markets in one reply: some 40 KB.
const PIECE: usize = 64;

/// Does jobs until [`DiskJob::Stop`] comes, or until the queue has no sender any more.
pub(super) fn run(
    path: PathBuf,
    jobs: Receiver<DiskJob>,
    queue: SyncSender<Reply>,
    wake: Box<dyn Fn() + Send>,
) {
    let mut holder = Holder::new(path, Replies { queue, wake });
    let _ = holder.with(|_, _| Ok(()));
    // False if the last checkpoint failed.
    let mut checkpoints = true;
    for job in jobs {
        match job {
            DiskJob::Load => {
                let result = holder.with(load);
                holder.replies.send(Reply::Loaded(result));
            }
            DiskJob::Read(read) => {
                let result = holder.with(|file, _| tables::rows(&file.db, &read));
                holder.replies.send(Reply::Rows { ticket: read.ticket, result });
            }
            DiskJob::Write(batch) => {
                let result = holder.write(&batch);
                let is_written = result.is_ok();
                holder.replies.send(Reply::Written { batch, result });
                // The checkpoint comes after the reply, so that it delays only later jobs.
                if is_written {
                    let moved = holder.with(|file, _| file.flushed());
                    let worked = std::mem::replace(&mut checkpoints, moved.is_ok());
                    log_checkpoint(&moved, worked);
                }
            }
            DiskJob::Stop => break,
        }
    }
    let closed = holder.close();
    holder.replies.send(Reply::Stopped(closed));
}

/// Logs the result of a checkpoint if it differs from the last one.
fn log_checkpoint(moved: &Result<(), StoreError>, worked: bool) {
    match moved {
        Err(error) if worked => {
            log::warn!(target: HISTORY, "checkpoint failed error={}", quoted(error));
        }
        Ok(()) if !worked => log::info!(target: HISTORY, "checkpoint works again"),
        _ => {}
    }
}

fn load(file: &mut HistoryFile, replies: &Replies) -> Result<Loaded, StoreError> {
    let (heads, odd) = tables::heads(&file.db)?;
    let (quotes, odd_quotes) = tables::records(&file.db)?;
    let (markets, odd_markets) = tables::records(&file.db)?;
    let unsound = odd + odd_quotes + odd_markets;
    let loaded = Loaded { series: heads.len(), quotes: quotes.len(), unsound };
    in_pieces(heads, |piece| replies.send(Reply::Heads(piece)));
    in_pieces(quotes, |piece| replies.send(Reply::Quotes(piece)));
    in_pieces(markets, |piece| replies.send(Reply::Markets(piece)));
    Ok(loaded)
}

fn in_pieces<T>(all: Vec<T>, tell: impl Fn(Vec<T>)) {
    let mut all = all.into_iter().peekable();
    while all.peek().is_some() {
        tell(all.by_ref().take(PIECE).collect());
    }
}

/// After this many reports of damage by SQLite since the start, the file counts as damaged, even if a
/// complete check finds no damage: the disk fails too often, or the check does not see such damage. So the
/// number of complete checks has a bound.
const MAX_DOUBTS: u32 = 10;

/// Sends replies to the loop and wakes it.
struct Replies {
    queue: SyncSender<Reply>,
    wake: Box<dyn Fn() + Send>,
}

struct Holder {
    path: PathBuf,
    replies: Replies,
    state: State,
    /// The last state that was reported. Only changes are reported.
    reported: Option<Result<(), OpenError>>,
    /// How often SQLite has reported damage since the start.
    doubts: u32,
    /// Held as long as the file is in use, also while it is closed until the next job.
    lock: Option<Lock>,
    /// The file that was opened last, unless it is given up.
    known: Option<KnownFile>,
}

enum State {
    Open(Box<HistoryFile>),
    /// The next job opens the file.
    Closed,
    /// The file is never opened again.
    GivenUp,
}

impl Replies {
    fn send(&self, reply: Reply) {
        // An error means that the loop has ended. The queue of jobs ends too.
        let _ = self.queue.send(reply);
        (self.wake)();
    }
}

impl Holder {
    /// A holder before the first job: the file is closed.
    fn new(path: PathBuf, replies: Replies) -> Holder {
        let state = State::Closed;
        Holder { path, replies, state, reported: None, doubts: 0, lock: None, known: None }
    }

    /// Opens the file if it is closed, and runs `work` on it. After an error, closes or checks the
    /// file as the error requires.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut HistoryFile, &Replies) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_known();
        if let State::Closed = self.state {
            self.open(CHECKED_BYTES);
        }
        let State::Open(file) = &mut self.state else {
            return Err(StoreError::NotOpen);
        };
        let done = work(file, &self.replies);
        match &done {
            Err(StoreError::Damaged(what)) => {
                let what = what.clone();
                self.doubt(what);
            }
            // SQLite may remember an error, for example that the file is read-only, as long as the
            // file is open.
            Err(StoreError::Io(_) | StoreError::ReadOnly(_) | StoreError::Busy(_)) => {
                self.abandon();
            }
            // A transaction that could be neither committed nor rolled back ends with the connection.
            _ if !file.db.is_autocommit() => self.abandon(),
            _ => {}
        }
        done
    }

    /// Writes the whole batch, or nothing of it.
    fn write(&mut self, batch: &Batch) -> Result<Written, StoreError> {
        self.with(|HistoryFile { db, .. }, _| db.transaction(|| tables::apply(db, batch)))
    }

    /// Closes a file that was removed or replaced, and reports it: everything written to it is
    /// lost. Then the file that now has its name is opened, or a new one is created.
    fn check_known(&mut self) {
        if let Some(known) = self.known.take_if(|known| known.has_gone()) {
            self.abandon();
            known.set_log_aside();
            self.fail(Unusable::Gone.at(&self.path));
        }
    }

    /// SQLite reports "malformed" for a damaged file, but also after a single failed read. So the file
    /// is checked completely before it is given up.
    fn doubt(&mut self, what: String) {
        self.abandon();
        self.doubts += 1;
        if self.doubts < MAX_DOUBTS {
            self.open(u64::MAX);
        } else {
            self.fail(Unusable::Damaged(what).at(&self.path));
        }
    }

    fn open(&mut self, checked: u64) {
        let mut open = || HistoryFile::open(&self.path, checked, &mut self.lock);
        let opened = match open() {
            // This may also be a single failed read, so it is tried twice.
            Err(OpenError { why: Unusable::Damaged(_), .. }) => open(),
            opened => opened,
        };
        match opened {
            Ok((file, known, opened)) => {
                (self.state, self.known) = (State::Open(Box::new(file)), Some(known));
                if self.reported.replace(Ok(())) != Some(Ok(())) {
                    self.replies.send(Reply::Opened(opened));
                }
            }
            // The directory was removed, or the file system was unmounted. It may come back.
            Err(OpenError { path, why: Unusable::Unreachable(reason) })
                if self.reported.is_some() =>
            {
                self.fail(Unusable::Io(StoreError::Io(reason)).at(&path));
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: OpenError) {
        if !error.may_pass() {
            (self.state, self.known, self.lock) = (State::GivenUp, None, None);
        }
        let reported = Err(error.clone());
        if self.reported.as_ref() != Some(&reported) {
            self.reported = Some(reported);
            self.replies.send(Reply::Failed(error));
        }
    }

    /// Closes the file without writing to it, until the next job.
    fn abandon(&mut self) {
        if let State::Open(file) = std::mem::replace(&mut self.state, State::Closed) {
            file.abandon();
        }
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.check_known();
        match std::mem::replace(&mut self.state, State::GivenUp) {
            State::Open(file) => file.close(),
            _ => Ok(()),
        }
    }
}
