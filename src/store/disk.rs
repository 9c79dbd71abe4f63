//! The disk thread: takes jobs, does them in order, and sends an answer to each.
//!
//! Owns the history file and its state: open, closed until the next job, or given up. Evictions run
//! in slices, one after each job, and one after another while there is no job. So a job waits for at
//! most one slice.
//!
//! It never drops a batch: a batch that could not be written goes back with the answer. It never
//! writes again to a damaged file, and never ends before it is told to.

use super::file::{Care, HistoryFile};
use super::{read, series, write};
use crate::history::{
    Batch, Evicted, Extent, Job, Loaded, OpenError, Reply, SeriesName, StoreError, Unwritten,
    Written,
};
use crate::log_targets::HISTORY;
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

/// How often SQLite may report damage that a complete check does not find. Then the file counts as
/// damaged: the disk fails too often.
const MAX_DOUBTS: u32 = 3;

/// The disk thread's state.
pub(super) struct Disk {
    jobs: Receiver<Job>,
    answers: Answers,
    holder: Holder,
    evictions: VecDeque<Eviction>,
    /// False after a failed checkpoint. Only changes are logged.
    checkpoints: bool,
}

/// Sends answers to the loop and wakes it.
struct Answers {
    queue: SyncSender<Reply>,
    wake: Box<dyn Fn() + Send>,
}

/// The file and its state.
struct Holder {
    path: PathBuf,
    state: State,
    /// The last state that was reported. Only changes are reported.
    reported: Option<Result<(), OpenError>>,
    /// How often SQLite reported damage.
    doubts: u32,
    /// True if the file was open before.
    was_open: bool,
}

enum State {
    Open(Box<HistoryFile>),
    /// The next job opens it.
    Closed,
    /// It is never opened again.
    GivenUp,
}

/// An eviction that is under way or waits.
struct Eviction {
    series: SeriesName,
    before: i64,
    evicted: Evicted,
}

impl Disk {
    /// The state of a thread that has not started.
    pub(super) fn new(
        path: PathBuf,
        jobs: Receiver<Job>,
        queue: SyncSender<Reply>,
        wake: Box<dyn Fn() + Send>,
    ) -> Disk {
        Disk {
            jobs,
            answers: Answers { queue, wake },
            holder: Holder {
                path,
                state: State::Closed,
                reported: None,
                doubts: 0,
                was_open: false,
            },
            evictions: VecDeque::new(),
            checkpoints: true,
        }
    }

    /// Does jobs until [`Job::Stop`] comes, or until the queue has no sender.
    pub(super) fn run(mut self) {
        // A write beyond the process's file size limit raises SIGXFSZ, which would end the process.
        // With a handler, the write fails instead, as on a full disk. A system that does not accept
        // the handler has no such limit.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
        let _ = self.holder.with(&self.answers, |_| Ok(()));
        loop {
            match self.next_job() {
                Ok(Some(Job::Stop)) | Err(RecvError) => break,
                Ok(Some(job)) => self.handle(job),
                Ok(None) => {}
            }
            self.evict_some();
        }
        self.answers.send(Reply::Stopped(self.holder.close()));
    }

    /// The next job. Waits for one only if no eviction is left.
    fn next_job(&self) -> Result<Option<Job>, RecvError> {
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

    fn handle(&mut self, job: Job) {
        let Disk {
            holder, answers, ..
        } = self;
        match job {
            Job::Load => {
                let result = holder.with(answers, |file| load(file, answers));
                answers.send(Reply::Loaded(result));
            }
            Job::Read(read) => {
                let result =
                    holder.with(answers, |file| read::rows(&file.db, &mut file.known, &read));
                let ticket = read.ticket;
                answers.send(Reply::Rows { ticket, result });
            }
            Job::Write { number, batch } => {
                let result = holder.with(answers, |file| write_batch(file, &batch));
                let written = result.is_ok();
                let result = result.map_err(|error| Unwritten { error, batch });
                answers.send(Reply::Written { number, result });
                if written {
                    self.flushed();
                }
            }
            Job::Evict { series, before } => {
                let evicted = Evicted::default();
                self.evictions.push_back(Eviction {
                    series,
                    before,
                    evicted,
                });
            }
            Job::Stop => {}
        }
    }

    /// Does one slice of the oldest evictions.
    fn evict_some(&mut self) {
        let slice = self.evictions.len().min(SLICE_SERIES);
        if slice == 0 {
            return;
        }
        let waiting = self.evictions.make_contiguous();
        let result = (self.holder).with(&self.answers, |file| evict_slice(file, &waiting[..slice]));
        let evicted = match result {
            Ok(evicted) => evicted,
            Err(error) => {
                for eviction in self.evictions.drain(..slice) {
                    self.answers.send(eviction.answer(Err(error.clone())));
                }
                return;
            }
        };
        for (extent, rows, all) in evicted {
            let mut eviction = self
                .evictions
                .pop_front()
                .expect("one eviction for each result of the slice");
            eviction.evicted.count += rows;
            eviction.evicted.extent = extent;
            if all {
                let evicted = eviction.evicted;
                self.answers.send(eviction.answer(Ok(evicted)));
            } else {
                self.evictions.push_front(eviction);
            }
        }
        self.flushed();
    }

    /// Counts a flush, whose answer has been sent: a checkpoint delays only later jobs.
    fn flushed(&mut self) {
        let moved = self.holder.with(&self.answers, |file| file.flushed());
        match (&moved, self.checkpoints) {
            (Err(error), true) => {
                log::warn!(target: HISTORY, "history file: checkpoint failed, trying again: {error}")
            }
            (Ok(()), false) => {
                log::info!(target: HISTORY, "history file: checkpoints work again")
            }
            _ => {}
        }
        self.checkpoints = moved.is_ok();
    }
}

impl Eviction {
    fn answer(self, result: Result<Evicted, StoreError>) -> Reply {
        let Eviction { series, before, .. } = self;
        Reply::Evicted {
            series,
            before,
            result,
        }
    }
}

impl Answers {
    fn send(&self, answer: Reply) {
        // Without a receiver the loop has ended, and the queue of jobs ends too.
        let _ = self.queue.send(answer);
        (self.wake)();
    }
}

impl Holder {
    /// Runs `work` on the file, which is opened if it is closed. After an error, the file is closed
    /// or checked as the error requires.
    fn with<T>(
        &mut self,
        answers: &Answers,
        work: impl FnOnce(&mut HistoryFile) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_identity(answers);
        if let State::Closed = self.state {
            self.open(answers, Care::Usual);
        }
        let State::Open(file) = &mut self.state else {
            return Err(StoreError::NotOpen);
        };
        let done = work(file);
        match &done {
            Err(StoreError::Damaged(what)) => {
                let what = what.clone();
                self.doubt(answers, what);
            }
            // SQLite may remember such a state, for example that the file is read-only, for as long
            // as the file is open.
            Err(StoreError::Io(_) | StoreError::ReadOnly(_) | StoreError::Busy(_)) => {
                self.abandon(State::Closed);
            }
            // A transaction that could be neither committed nor rolled back ends with the connection.
            _ if !file.db.is_idle() => self.abandon(State::Closed),
            _ => {}
        }
        done
    }

    /// Closes a file that was removed or replaced, and reports it: what was written to it is lost.
    /// The file that has its name now is opened, or a new one is created.
    fn check_identity(&mut self, answers: &Answers) {
        let is_gone = |file: &HistoryFile| file.has_gone();
        if !matches!(&self.state, State::Open(file) if is_gone(file)) {
            return;
        }
        if let State::Open(file) = std::mem::replace(&mut self.state, State::Closed) {
            file.clear_away();
        }
        let path = self.path.clone();
        self.fail(answers, OpenError::Gone { path });
    }

    /// SQLite reports "malformed" for a damaged file, but also after a single failed read. So the file
    /// is checked completely before it is given up.
    fn doubt(&mut self, answers: &Answers, what: String) {
        self.abandon(State::Closed);
        self.doubts += 1;
        if self.doubts < MAX_DOUBTS {
            self.open(answers, Care::Thorough);
        } else {
            let path = self.path.clone();
            self.fail(answers, OpenError::Damaged { path, what });
        }
    }

    fn open(&mut self, answers: &Answers, care: Care) {
        let opened = match HistoryFile::open(&self.path, care) {
            // This too may be a single failed read.
            Err(OpenError::Damaged { .. }) => HistoryFile::open(&self.path, care),
            opened => opened,
        };
        match opened {
            Ok((file, opened)) => {
                self.state = State::Open(Box::new(file));
                self.was_open = true;
                if self.reported.replace(Ok(())) != Some(Ok(())) {
                    answers.send(Reply::Opened(opened));
                }
            }
            // Its directory was removed, or the file system was unmounted: it may come back.
            Err(OpenError::Unreachable { path, reason }) if self.was_open => {
                let error = StoreError::Io(reason);
                self.fail(answers, OpenError::Io { path, error });
            }
            Err(error) => self.fail(answers, error),
        }
    }

    fn fail(&mut self, answers: &Answers, error: OpenError) {
        if !error.may_pass() {
            self.state = State::GivenUp;
        }
        let reported = Err(error.clone());
        if self.reported.as_ref() != Some(&reported) {
            self.reported = Some(reported);
            answers.send(Reply::Failed(error));
        }
    }

    /// Closes the file without writing to it.
    fn abandon(&mut self, next: State) {
        if let State::Open(file) = std::mem::replace(&mut self.state, next) {
            drop(file.abandon());
        }
    }

    fn close(&mut self) -> Result<(), StoreError> {
        match std::mem::replace(&mut self.state, State::GivenUp) {
            State::Open(file) => file.close(),
            _ => Ok(()),
        }
    }
}

fn load(file: &HistoryFile, answers: &Answers) -> Result<Loaded, StoreError> {
    let (series, odd) = read::heads(&file.db, |piece| answers.send(Reply::Heads(piece)))?;
    let (quotes, odd_quotes) = read::quotes(&file.db, |piece| answers.send(Reply::Quotes(piece)))?;
    let odd_markets = read::markets(&file.db, |piece| answers.send(Reply::Markets(piece)))?;
    Ok(Loaded {
        series,
        quotes,
        unsound: odd + odd_quotes + odd_markets,
    })
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

/// Removes up to `SLICE_ROWS` candles for these evictions, in one transaction. Returns a result for
/// each eviction that was begun: what is left of the series, how many candles were removed, and true
/// if the eviction is finished. Only the last of them may be unfinished.
fn evict_slice(
    file: &mut HistoryFile,
    evictions: &[Eviction],
) -> Result<Vec<(Extent, u64, bool)>, StoreError> {
    let HistoryFile { db, known, .. } = file;
    db.transaction(|| {
        let (mut evicted, mut left) = (Vec::new(), SLICE_ROWS);
        for Eviction { series, before, .. } in evictions {
            let done = match series::find_series(db, known, series)? {
                Some(found) => write::evict(db, found, series.interval, *before, left)?,
                None => (Extent::default(), 0, true),
            };
            evicted.push(done);
            left -= done.1;
            if !done.2 || left == 0 {
                break;
            }
        }
        Ok(evicted)
    })
}
