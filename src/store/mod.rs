//! The store: closed candles, what is known of them, and the last quotes, in a file.
//!
//! Owns the disk thread and, through it, the one SQLite file. [`Store`] is the loop's end of two
//! bounded queues: jobs go in without ever waiting, answers come out when the loop has been woken.
//! Whatever the disk does, the loop's part in it is moving a message. The messages are
//! [`crate::history`]'s.
//!
//! It never keeps a candle in memory, never reads a clock, and decides nothing about what is worth
//! storing. It never writes to a file that is not marketd's, is newer than it, or is damaged.
//!
//! # How it is used
//!
//! 1. [`Store::start`], and wait for the first answer. `Opened`: go on. `Failed`: end with exit
//!    code 2 where [`OpenError::is_refusal`] says so; otherwise log it and go on without history,
//!    which counts as degraded. Without the feature, or for `--data :memory:`, there is no `Store`.
//! 2. `Load`, once: `Heads`, `Quotes` and `Markets` in pieces, then `Loaded`. Until then nothing is known of
//!    the file, so nothing is asked of an exchange that it may hold. A load that failed is sent
//!    again after the next `Opened`.
//! 3. `Write`, one at a time: the batch moves into the job. What happens meanwhile is gathered in
//!    the next batch, which is sent after `Written`. `Ok`: on disk, synced, whole; it survives the
//!    process's death and the machine's. `Err`: as if it had never been sent, and the batch comes
//!    back; what was gathered since is put on top ([`Batch::absorb`]) and sent again after a while.
//!    Bound what is kept by [`Batch::weight`].
//! 4. `Read`, at any time: one page. Each candle of `Rows` is sound, lies in a covered slot, and
//!    has the digits that were written. Whatever else was found there comes as `unsound`: it is
//!    served to nobody, and the next batch should forget it ([`Changes::forget`]), so that the
//!    exchange is asked again.
//! 5. `Evict`, for a series that has slots older than are to be kept. Coverage goes with the
//!    candles. It is done in slices between other jobs; an error leaves the rest for the next time.
//! 6. `Stop` at the end, then wait for `Stopped` and [`Store::join`].
//!
//! Jobs are done in the order in which they were sent, evictions excepted; each has one answer.
//! [`Store::send`] hands a job back when the queue is full: a reader is told to come back later,
//! and everything else is sent again at the next turn. `Failed` may come at any time; until the next
//! `Opened`, jobs fail with [`StoreError::NotOpen`] and writes come back whole, so that nothing
//! has to be done on it but to say it. `Failed` with [`OpenError::Gone`] says more: what was
//! acknowledged before is not on disk. It is told at the first job after it was seen.
//!
//! [`Batch::absorb`]: crate::history::Batch::absorb
//! [`Batch::weight`]: crate::history::Batch::weight
//! [`Changes::forget`]: crate::history::Changes::forget
//!
//! # The files
//!
//! `disk.rs` is the thread, `file.rs` how the file is found good, `schema.rs` its tables, `seal.rs`
//! whom to believe in them, `write.rs`, `coverage.rs` and `read.rs` what is done with them,
//! `sqlite.rs` the only place that knows SQLite.

#[cfg(feature = "sqlite")]
mod coverage;
#[cfg(feature = "sqlite")]
mod disk;
#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod header;
#[cfg(feature = "sqlite")]
mod lock;
#[cfg(feature = "sqlite")]
mod read;
#[cfg(feature = "sqlite")]
mod row;
#[cfg(feature = "sqlite")]
mod schema;
#[cfg(feature = "sqlite")]
mod seal;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;
#[cfg(feature = "sqlite")]
mod write;

use crate::history::{Answer, Job, OpenError, StoreError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Jobs that may wait. A read of a thousand candles takes about a millisecond: who comes behind
/// this many waits long enough to be told to come back later.
pub const JOBS: usize = 128;

/// Answers that may wait for the loop. Above it the thread waits, with the rest of its jobs.
const ANSWERS: usize = 32;

/// Of the thread: what SQLite needs of it stays below a quarter.
const STACK: usize = 1 << 20;

/// See the module's page.
#[derive(Debug)]
pub struct Store {
    jobs: SyncSender<Job>,
    answers: Receiver<Answer>,
    thread: JoinHandle<()>,
}

/// Tells what keeps the file of this name from being opened, without changing anything.
pub fn check(path: &Path) -> Result<(), OpenError> {
    #[cfg(feature = "sqlite")]
    return file::check(path);
    #[cfg(not(feature = "sqlite"))]
    Err(OpenError::NotBuilt {
        path: path.to_path_buf(),
    })
}

impl Store {
    /// Starts the thread, which opens the file and says how that went: the first answer is
    /// [`Answer::Opened`] or [`Answer::Failed`]. `wake` is called from the thread after each answer.
    pub fn start(path: PathBuf, wake: Box<dyn Fn() + Send>) -> Result<Store, OpenError> {
        let (jobs, inbox) = sync_channel(JOBS);
        let (outbox, answers) = sync_channel(ANSWERS);
        let work = work(path.clone(), inbox, outbox, wake)?;
        let thread = thread::Builder::new()
            .name("store".to_string())
            .stack_size(STACK)
            .spawn(work)
            .map_err(|error| OpenError::Io {
                path,
                error: StoreError::Io(format!("no thread for it: {error}")),
            })?;
        Ok(Store {
            jobs,
            answers,
            thread,
        })
    }

    /// Sends a job. It comes back when the queue is full or the thread has stopped.
    pub fn send(&self, job: Job) -> Result<(), Job> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
        })
    }

    /// The next answer, if one has come.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    /// Waits for the next answer: before the loop runs, and in tests. `None`: none came in this
    /// time, or none will come any more.
    pub fn wait(&self, within: Duration) -> Option<Answer> {
        self.answers.recv_timeout(within).ok()
    }

    /// Lets the thread finish what it was sent, and waits for its end. Answers are thrown away.
    pub fn join(self) {
        let Store {
            jobs,
            answers,
            thread,
        } = self;
        drop(jobs);
        while answers.recv().is_ok() {}
        // It ends by returning, or by a panic that has been reported as such.
        let _ = thread.join();
    }
}

#[cfg(feature = "sqlite")]
fn work(
    path: PathBuf,
    jobs: Receiver<Job>,
    answers: SyncSender<Answer>,
    wake: Box<dyn Fn() + Send>,
) -> Result<impl FnOnce() + Send + 'static, OpenError> {
    let disk = disk::Disk::new(path, jobs, answers, wake);
    Ok(move || disk.run())
}

#[cfg(not(feature = "sqlite"))]
fn work(
    path: PathBuf,
    _jobs: Receiver<Job>,
    _answers: SyncSender<Answer>,
    _wake: Box<dyn Fn() + Send>,
) -> Result<fn(), OpenError> {
    Err(OpenError::NotBuilt { path })
}
