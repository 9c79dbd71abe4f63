//! The history file as the disk thread holds it: open, closed until the next job, or given up.
//!
//! It reports each change of that state. It never writes again to a damaged file.

use super::file::{CHECKED_BYTES, HistoryFile};
use crate::history::{OpenError, Reply, StoreError, Unusable};
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

/// How often SQLite may report damage that a complete check does not find. Then the file counts as
/// damaged: the disk fails too often.
const MAX_DOUBTS: u32 = 3;

/// Sends answers to the loop and wakes it.
pub(super) struct Replies {
    pub(super) queue: SyncSender<Reply>,
    pub(super) wake: Box<dyn Fn() + Send>,
}

/// The file and its state.
pub(super) struct Holder {
    path: PathBuf,
    pub(super) replies: Replies,
    state: State,
    /// The last state that was reported. Only changes are reported.
    reported: Option<Result<(), OpenError>>,
    /// How often SQLite reported damage.
    doubts: u32,
}

enum State {
    Open(Box<HistoryFile>),
    /// The next job opens it.
    Closed,
    /// It is never opened again.
    GivenUp,
}

impl Replies {
    pub(super) fn send(&self, reply: Reply) {
        // Without a receiver the loop has ended, and the queue of jobs ends too.
        let _ = self.queue.send(reply);
        (self.wake)();
    }
}

impl Holder {
    /// The state before the first job.
    pub(super) fn new(path: PathBuf, replies: Replies) -> Holder {
        Holder { path, replies, state: State::Closed, reported: None, doubts: 0 }
    }

    /// Runs `work` on the file, which is opened if it is closed. After an error, the file is closed
    /// or checked as the error requires.
    pub(super) fn with<T>(
        &mut self,
        work: impl FnOnce(&mut HistoryFile, &Replies) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_identity();
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
            // SQLite may remember such a state, for example that the file is read-only, for as long
            // as the file is open.
            Err(StoreError::Io(_) | StoreError::ReadOnly(_) | StoreError::Busy(_)) => {
                self.abandon(State::Closed);
            }
            // A transaction that could be neither committed nor rolled back ends with the connection.
            _ if !file.db.is_autocommit() => self.abandon(State::Closed),
            _ => {}
        }
        done
    }

    /// Closes a file that was removed or replaced, and reports it: what was written to it is lost.
    /// The file that has its name now is opened, or a new one is created.
    fn check_identity(&mut self) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Open(file) if file.has_gone() => {
                file.clear_away();
                self.fail(Unusable::Gone.at(&self.path));
            }
            state => self.state = state,
        }
    }

    /// SQLite reports "malformed" for a damaged file, but also after a single failed read. So the file
    /// is checked completely before it is given up.
    fn doubt(&mut self, what: String) {
        self.abandon(State::Closed);
        self.doubts += 1;
        if self.doubts < MAX_DOUBTS {
            self.open(u64::MAX);
        } else {
            self.fail(Unusable::Damaged(what).at(&self.path));
        }
    }

    fn open(&mut self, checked: u64) {
        let opened = match HistoryFile::open(&self.path, checked) {
            // This too may be a single failed read.
            Err(OpenError { why: Unusable::Damaged(_), .. }) => {
                HistoryFile::open(&self.path, checked)
            }
            opened => opened,
        };
        match opened {
            Ok((file, opened)) => {
                self.state = State::Open(Box::new(file));
                if self.reported.replace(Ok(())) != Some(Ok(())) {
                    self.replies.send(Reply::Opened(opened));
                }
            }
            // Its directory was removed, or the file system was unmounted: it may come back.
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
            self.state = State::GivenUp;
        }
        let reported = Err(error.clone());
        if self.reported.as_ref() != Some(&reported) {
            self.reported = Some(reported);
            self.replies.send(Reply::Failed(error));
        }
    }

    /// Closes the file without writing to it.
    fn abandon(&mut self, next: State) {
        if let State::Open(file) = std::mem::replace(&mut self.state, next) {
            drop(file.abandon());
        }
    }

    pub(super) fn close(&mut self) -> Result<(), StoreError> {
        match std::mem::replace(&mut self.state, State::GivenUp) {
            State::Open(file) => file.close(),
            _ => Ok(()),
        }
    }
}
