//! The store: a thread that keeps closed candles, their coverage and the last quotes in a file.
//!
//! A [`Store`] owns the disk thread and, through it, the SQLite file. It is the loop's end of two bounded
//! queues. Sending a job never blocks. The thread wakes the loop after each reply. The messages are defined
//! in [`crate::history`].
//!
//! The store keeps no candle in memory, reads no clock, and does not decide what is stored. It never
//! writes to a file that is not marketd's, is newer, or is damaged.
//!
//! # Protocol
//!
//! 1. Call [`Store::start`] and wait for the first reply. After `Opened`, go on. After `Failed`, end with
//!    exit code 2 if [`OpenError::is_refusal`]; otherwise log the error and continue without history, which
//!    counts as degraded. There is no `Store` without the feature `sqlite` or with `--data :memory:`.
//! 2. Send `Load`, and send it again to read the file again. The replies are `Heads`, `Quotes` and `Markets`
//!    in parts, then `Loaded`. Until `Loaded`, do not request candles from an exchange: the file may have
//!    them. If the load fails, send it again after the next `Opened`, or after a pause.
//! 3. Send one `Write` at a time. It takes the batch. Gather later changes in the next batch, and send it
//!    after `Written`. `Ok` means that the batch is on disk and synced: it survives a crash of the process
//!    and of the machine. `Err` means that none of it was written; the batch comes back. Merge the later
//!    changes into it with [`Batch::absorb`] and send it again after a pause. Bound its size by
//!    [`Batch::weight`].
//! 4. Send `Read` at any time for one page of candles. Each candle of `Rows` is sound, is in a covered
//!    slot, and has the digits that were written. Other rows are reported as `unsound` slots. Forget
//!    these in the next batch ([`Changes::forget`]), so that they are requested from the exchange.
//! 5. For a series that has slots older than the retention, note an eviction ([`Changes::evict`]) in the
//!    next batch. Bound how many slots a batch evicts: jobs wait while it is written.
//! 6. Send `Stop` at the end, wait for `Stopped`, and call [`Store::join`].
//!
//! Jobs are done in the order in which they were sent. Each ends with one reply. `Load` also has replies
//! before that. [`Store::send`] returns the job if the queue is full. `Failed` may come at any time. Until
//! the next `Opened`, jobs fail with [`StoreError::NotOpen`], and batches come back. [`Unusable::Gone`] also
//! means that earlier acknowledged writes are not on disk. It is reported with the first job after the file
//! was removed.
//!
//! [`Batch::absorb`]: crate::history::Batch::absorb
//! [`Batch::weight`]: crate::history::Batch::weight
//! [`Changes::evict`]: crate::history::Changes::evict
//! [`Changes::forget`]: crate::history::Changes::forget

#[cfg(feature = "sqlite")]
mod disk;

#[cfg(feature = "sqlite")]
pub use disk::{
    HistoryReader, NotRenamed, StoredMarkets, check, prune, rename, renamed, sqlite_version,
};

use crate::history::{DiskJob, OpenError, Reply, StoreError, Unusable};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Jobs that may wait. The history never sends as many at once: it sends at most a read for each of 64
/// series, a write, and some loads.
pub const JOBS: usize = 128;

/// Replies that may wait for the loop. At this number the thread blocks.
const REPLIES: usize = 32;

/// Bytes of the thread's stack. SQLite needs less than a quarter of it.
const STACK: usize = 1 << 20;

/// The loop's end of the queues to and from the disk thread.
#[derive(Debug)]
pub struct Store {
    jobs: SyncSender<DiskJob>,
    replies: Receiver<Reply>,
    thread: JoinHandle<()>,
}

impl Store {
    /// Starts the thread, which opens the file. The first reply is [`Reply::Opened`] or [`Reply::Failed`].
    /// The thread calls `wake` after each reply.
    pub fn start(path: PathBuf, wake: Box<dyn Fn() + Send>) -> Result<Store, OpenError> {
        let (jobs, inbox) = sync_channel(JOBS);
        let (outbox, replies) = sync_channel(REPLIES);
        let file = path.clone();
        let thread = thread::Builder::new()
            .name("store".to_string())
            .stack_size(STACK)
            .spawn(move || {
                #[cfg(feature = "sqlite")]
                disk::run(file, inbox, outbox, wake);
                #[cfg(not(feature = "sqlite"))]
                drop((file, inbox, outbox, wake));
            })
            .map_err(|error| {
                let error = StoreError::Io(format!("cannot start a thread: {error}"));
                Unusable::Io(error).at(&path)
            })?;
        Ok(Store { jobs, replies, thread })
    }

    /// Sends a job. Returns it if the queue is full or the thread has stopped.
    pub fn send(&self, job: DiskJob) -> Result<(), DiskJob> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
        })
    }

    /// The next reply, if there is one.
    pub fn next_reply(&self) -> Option<Reply> {
        self.replies.try_recv().ok()
    }

    /// Waits for the next reply. Only for the start, before the loop runs, and for tests. `None` if no reply
    /// came within this time, or if the thread has ended.
    pub fn wait(&self, within: Duration) -> Option<Reply> {
        self.replies.recv_timeout(within).ok()
    }

    /// Waits until the thread has done all jobs and ended. Discards its replies.
    pub fn join(self) {
        drop(self.jobs);
        while self.replies.recv().is_ok() {}
        // An error means that the thread has panicked, which the panic hook has reported.
        let _ = self.thread.join();
    }
}
