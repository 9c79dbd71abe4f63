//! The disk thread: takes jobs, does them in their order, answers.
//!
//! Owns the history file, and what it is to the outside: open, closed and to be tried again, or
//! given up. Evictions are done in slices, one after each job and on while there is none, so that
//! nothing ever waits for more than one slice.
//!
//! It never drops a batch: what could not be written goes back with its answer. It never writes
//! again to a file that was found damaged, and never ends before it is told to.

use super::file::{Care, HistoryFile};
use super::{read, write};
use crate::history::{Answer, Batch, Evicted, Extent, Job, Loaded, SeriesName, Unwritten, Written};
use crate::history::{OpenError, StoreError};
use crate::log_targets::HISTORY;
use signal_hook::consts::SIGXFSZ;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError};

/// Candles that one slice of evictions takes out: a few milliseconds.
const ROWS_AT_ONCE: u64 = 1000;

/// Series that one slice touches. They share a transaction, of which the sync takes longest.
const SERIES_AT_ONCE: usize = 64;

/// Series that may wait for their eviction. Above it no job is taken until there are fewer, so
/// that what piles up does so in the bounded queue.
const EVICTIONS: usize = 4096;

/// How often a file may seem damaged and be found good when it is looked at whole. A disk that
/// fails to read that often is no place for it.
const MOST_DOUBTS: u32 = 3;

/// See the module's page.
pub(super) struct Disk {
    jobs: Receiver<Job>,
    voice: Voice,
    holder: Holder,
    evictions: VecDeque<Eviction>,
    /// Whether the log could be moved into the file the last time. Only changes are told.
    checkpoints: bool,
}

/// The way back to the loop.
struct Voice {
    answers: SyncSender<Answer>,
    wake: Box<dyn Fn() + Send>,
}

/// The file, and what has become of it.
struct Holder {
    path: PathBuf,
    state: State,
    /// What was told of it last: only changes are.
    told: Option<Result<(), OpenError>>,
    /// How often it seemed damaged, and was found good.
    doubts: u32,
    /// True if the file was open before.
    was_open: bool,
}

enum State {
    Open(Box<HistoryFile>),
    /// To be opened by the next job that needs it.
    Closed,
    /// Of no use to this process.
    GivenUp,
}

/// A series whose oldest candles are to go.
struct Eviction {
    series: SeriesName,
    before: i64,
    evicted: Evicted,
}

impl Disk {
    /// A thread's work, not yet begun.
    pub(super) fn new(
        path: PathBuf,
        jobs: Receiver<Job>,
        answers: SyncSender<Answer>,
        wake: Box<dyn Fn() + Send>,
    ) -> Disk {
        Disk {
            jobs,
            voice: Voice { answers, wake },
            holder: Holder {
                path,
                state: State::Closed,
                told: None,
                doubts: 0,
                was_open: false,
            },
            evictions: VecDeque::new(),
            checkpoints: true,
        }
    }

    /// Works until it is told to stop, or until nobody is left to tell it.
    pub(super) fn run(mut self) {
        // Beyond the process's limit of file size, the kernel sends a signal that would end it;
        // with a handler, the write fails instead, as on a full disk. Where a handler cannot be
        // set there is no such limit either.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
        let _ = self.holder.with(&self.voice, |_| Ok(()));
        loop {
            match self.next_job() {
                Ok(Some(Job::Stop)) | Err(RecvError) => break,
                Ok(Some(job)) => self.handle(job),
                Ok(None) => {}
            }
            self.evict_some();
        }
        self.voice.tell(Answer::Stopped(self.holder.close()));
    }

    /// Waits for a job, unless there is something to evict.
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
        let Disk { holder, voice, .. } = self;
        match job {
            Job::Load => {
                let result = holder.with(voice, |file| load(file, voice));
                voice.tell(Answer::Loaded(result));
            }
            Job::Read(read) => {
                let result =
                    holder.with(voice, |file| read::rows(&file.db, &mut file.known, &read));
                let ticket = read.ticket;
                voice.tell(Answer::Rows { ticket, result });
            }
            Job::Write { number, batch } => {
                let result = holder.with(voice, |file| write_batch(file, &batch));
                let written = result.is_ok();
                let result = result.map_err(|error| Unwritten { error, batch });
                voice.tell(Answer::Written { number, result });
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

    /// Does one slice of the evictions that have waited longest.
    fn evict_some(&mut self) {
        let slice = self.evictions.len().min(SERIES_AT_ONCE);
        if slice == 0 {
            return;
        }
        let waiting = self.evictions.make_contiguous();
        let result = (self.holder).with(&self.voice, |file| evict_slice(file, &waiting[..slice]));
        let evicted = match result {
            Ok(evicted) => evicted,
            Err(error) => {
                for eviction in self.evictions.drain(..slice) {
                    self.voice.tell(eviction.answer(Err(error.clone())));
                }
                return;
            }
        };
        for (extent, rows, all) in evicted {
            let mut eviction = self.evictions.pop_front().expect("one of the slice");
            eviction.evicted.count += rows;
            eviction.evicted.extent = extent;
            if all {
                let evicted = eviction.evicted;
                self.voice.tell(eviction.answer(Ok(evicted)));
            } else {
                self.evictions.push_front(eviction);
            }
        }
        self.flushed();
    }

    /// Counts a flush that has been answered: moving the log into the file holds up nobody but
    /// those who come after it.
    fn flushed(&mut self) {
        let moved = self.holder.with(&self.voice, |file| file.flushed());
        match (&moved, self.checkpoints) {
            (Err(error), true) => {
                log::warn!(target: HISTORY, "cannot move the log into the history file: {error}")
            }
            (Ok(()), false) => {
                log::info!(target: HISTORY, "the log is being moved into the history file again")
            }
            _ => {}
        }
        self.checkpoints = moved.is_ok();
    }
}

impl Eviction {
    fn answer(self, result: Result<Evicted, StoreError>) -> Answer {
        let Eviction { series, before, .. } = self;
        Answer::Evicted {
            series,
            before,
            result,
        }
    }
}

impl Voice {
    fn tell(&self, answer: Answer) {
        // Where nobody listens any more there is nobody to tell: the jobs will end as well.
        let _ = self.answers.send(answer);
        (self.wake)();
    }
}

impl Holder {
    /// Does something with the file, which is opened if need be, and judges what its failure means
    /// for the file.
    fn with<T>(
        &mut self,
        voice: &Voice,
        work: impl FnOnce(&mut HistoryFile) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.look_after(voice);
        if let State::Closed = self.state {
            self.open(voice, Care::Usual);
        }
        let State::Open(file) = &mut self.state else {
            return Err(StoreError::NotOpen);
        };
        let done = work(file);
        match &done {
            Err(StoreError::Damaged(what)) => {
                let what = what.clone();
                self.doubt(voice, what);
            }
            // What SQLite has concluded of a failure, that the file cannot be written for
            // example, or is still locked, it may keep for as long as it has the file open.
            Err(StoreError::Io(_) | StoreError::ReadOnly(_) | StoreError::Busy(_)) => {
                self.let_go(State::Closed);
            }
            // A transaction that could neither be ended nor undone ends this way.
            _ if !file.db.is_idle() => self.let_go(State::Closed),
            _ => {}
        }
        done
    }

    /// Notices that the file has lost its name: what was written to it is gone, and the next one is
    /// opened, or made.
    fn look_after(&mut self, voice: &Voice) {
        let is_gone = |file: &HistoryFile| file.has_gone();
        if !matches!(&self.state, State::Open(file) if is_gone(file)) {
            return;
        }
        if let State::Open(file) = std::mem::replace(&mut self.state, State::Closed) {
            file.clear_away();
        }
        let path = self.path.clone();
        self.fail(voice, OpenError::Gone { path });
    }

    /// SQLite says "malformed" of a damaged file, and also of a disk that has failed to read it
    /// once: the whole file is looked at before it is given up.
    fn doubt(&mut self, voice: &Voice, what: String) {
        self.let_go(State::Closed);
        self.doubts += 1;
        if self.doubts < MOST_DOUBTS {
            self.open(voice, Care::Thorough);
        } else {
            let path = self.path.clone();
            self.fail(voice, OpenError::Damaged { path, what });
        }
    }

    fn open(&mut self, voice: &Voice, care: Care) {
        let opened = match HistoryFile::open(&self.path, care) {
            // The same may hold here.
            Err(OpenError::Damaged { .. }) => HistoryFile::open(&self.path, care),
            opened => opened,
        };
        match opened {
            Ok((file, opened)) => {
                self.state = State::Open(Box::new(file));
                self.was_open = true;
                if self.told.replace(Ok(())) != Some(Ok(())) {
                    voice.tell(Answer::Opened(opened));
                }
            }
            // Its directory has gone too, or has lost what was mounted there: it may come back.
            Err(OpenError::Unreachable { path, reason }) if self.was_open => {
                let error = StoreError::Io(reason);
                self.fail(voice, OpenError::Io { path, error });
            }
            Err(error) => self.fail(voice, error),
        }
    }

    fn fail(&mut self, voice: &Voice, error: OpenError) {
        if !error.may_pass() {
            self.state = State::GivenUp;
        }
        let told = Err(error.clone());
        if self.told.as_ref() != Some(&told) {
            self.told = Some(told);
            voice.tell(Answer::Failed(error));
        }
    }

    /// Closes the file without another write to it.
    fn let_go(&mut self, next: State) {
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

fn load(file: &HistoryFile, voice: &Voice) -> Result<Loaded, StoreError> {
    let (series, odd) = read::heads(&file.db, |piece| voice.tell(Answer::Heads(piece)))?;
    let (quotes, odd_quotes) = read::quotes(&file.db, |piece| voice.tell(Answer::Quotes(piece)))?;
    let odd_markets = read::markets(&file.db, |piece| voice.tell(Answer::Markets(piece)))?;
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
        // Series that the batch made are not there.
        known.clear();
    }
    written
}

/// Takes rows out, of one series after the other and all in one transaction. Answers for each that
/// was begun, which the last one alone may not have been finished: what is left, how many went, and
/// whether it was all.
fn evict_slice(
    file: &mut HistoryFile,
    evictions: &[Eviction],
) -> Result<Vec<(Extent, u64, bool)>, StoreError> {
    let HistoryFile { db, known, .. } = file;
    db.transaction(|| {
        let (mut evicted, mut left) = (Vec::new(), ROWS_AT_ONCE);
        for Eviction { series, before, .. } in evictions {
            let done = match write::find_series(db, known, series)? {
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
