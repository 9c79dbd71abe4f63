//! The history file as the driver sees it: jobs go out, answers come in.
//!
//! Owns the disk thread's near end. It never waits for the disk once the loop runs, and never
//! judges an answer: that is the core's business.

use crate::config::Data;
use crate::history::{Answer, Job, OpenError, StoreError, Unwritten};
use crate::log_targets::HISTORY;
use crate::store::Store;
use mio::Waker;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long the start waits for the file. A slower disk gets the service without history first.
const OPENING: Duration = Duration::from_secs(10);

/// Tells what keeps the history file from being opened, without changing anything.
pub(super) fn check(data: &Data) -> Result<(), OpenError> {
    match data {
        Data::File(path) => crate::store::check(path),
        Data::Memory => Ok(()),
    }
}

/// See the module's page.
pub(super) struct History {
    store: Option<Store>,
    /// Answers may wait.
    pub(super) ready: bool,
}

impl History {
    /// Opens the file, where there is to be one: what came of it. An error is for a person to mend.
    pub(super) fn start(
        data: &Data,
        waker: Arc<Waker>,
    ) -> Result<(History, Option<Answer>), OpenError> {
        let Data::File(path) = data else {
            let history = History {
                store: None,
                ready: false,
            };
            return Ok((history, None));
        };
        let wake = move || {
            if let Err(error) = waker.wake() {
                log::error!(target: HISTORY, "cannot wake the loop: {error}");
            }
        };
        let store = Store::start(path.clone(), Box::new(wake))?;
        let opened = match store.wait(OPENING) {
            Some(Answer::Failed(error)) if error.is_refusal() => return Err(error),
            Some(answer) => answer,
            None => Answer::Failed(slow(path)),
        };
        let history = History {
            store: Some(store),
            ready: true,
        };
        Ok((history, Some(opened)))
    }

    /// Sends a job. The answer is given here where the thread takes none.
    pub(super) fn send(&mut self, job: Job) -> Option<Answer> {
        match &self.store {
            Some(store) => store.send(job).err().map(refuse),
            None => Some(refuse(job)),
        }
    }

    /// The next answer.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let answer = self.store.as_ref().and_then(Store::answer);
        self.ready = answer.is_some();
        if let Some(Answer::Stopped(_)) = answer
            && let Some(store) = self.store.take()
        {
            // It has said its last word.
            store.join();
        }
        answer
    }
}

fn slow(path: &Path) -> OpenError {
    OpenError::Io {
        path: path.to_path_buf(),
        error: StoreError::Io("the disk has not answered yet".to_string()),
    }
}

/// What a job comes to that nobody does.
fn refuse(job: Job) -> Answer {
    let error = StoreError::NotOpen;
    match job {
        Job::Load => Answer::Loaded(Err(error)),
        Job::Read(read) => Answer::Rows {
            ticket: read.ticket,
            result: Err(error),
        },
        Job::Write { number, batch } => Answer::Written {
            number,
            result: Err(Unwritten { error, batch }),
        },
        Job::Evict { series, before } => Answer::Evicted {
            series,
            before,
            result: Err(error),
        },
        Job::Stop => Answer::Stopped(Err(error)),
    }
}
