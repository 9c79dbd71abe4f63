//! The driver's end of the disk thread: sends jobs, and receives replies.
//!
//! It waits for the thread at the start and after the reply `Stopped`, never in between. It interprets only
//! the first reply and `Stopped`.

use crate::config::Data;
use crate::history::{DiskJob, OpenError, Reply, StoreError, Unusable};
use crate::log_targets::{HISTORY, quoted};
use crate::store::Store;
use mio::Waker;
use std::sync::Arc;
use std::time::Duration;

/// How long the start waits for the file. If it takes longer, the service starts without history, until the
/// file is open.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks that the history file can be opened, without changing it.
pub(super) fn check(data: &Data) -> Result<(), OpenError> {
    match data {
        #[cfg(feature = "sqlite")]
        Data::File(path) => crate::store::check(path),
        _ => Ok(()),
    }
}

/// The error text for a file with which marketd refuses to start.
fn refused(error: OpenError) -> String {
    format!("data: {error}")
}

/// Logs that the configured file is not used, if this build has no SQLite.
pub(super) fn tell(data: &Data) {
    if let Data::File(path) = data
        && cfg!(not(feature = "sqlite"))
    {
        let path = quoted(path.display());
        log::info!(
            target: HISTORY,
            "file not used path={path} reason=\"this build keeps history in memory alone\""
        );
    }
}

/// The disk thread, if there is one.
pub(super) struct DiskThread {
    store: Option<Store>,
    /// True if replies may be waiting.
    pub(super) ready: bool,
}

impl DiskThread {
    /// Starts the disk thread and returns its first reply, if there is a file. After an error, marketd does
    /// not start: a person must decide what to do.
    pub(super) fn start(
        data: &Data,
        waker: Arc<Waker>,
    ) -> Result<(DiskThread, Option<Reply>), String> {
        let mut thread = DiskThread { store: None, ready: false };
        let Data::File(path) = data else {
            return Ok((thread, None));
        };
        if cfg!(not(feature = "sqlite")) {
            return Ok((thread, None));
        }
        let wake = move || {
            if let Err(error) = waker.wake() {
                log::error!(target: HISTORY, "wake failed error={}", quoted(error));
            }
        };
        let store = Store::start(path.clone(), Box::new(wake)).map_err(refused)?;
        let opened = match store.wait(OPEN_TIMEOUT) {
            Some(Reply::Failed(error)) if error.is_refusal() => return Err(refused(error)),
            Some(answer) => answer,
            None => {
                let error = StoreError::Io("the disk has not answered yet".to_string());
                Reply::Failed(Unusable::Io(error).at(path))
            }
        };
        (thread.store, thread.ready) = (Some(store), true);
        Ok((thread, Some(opened)))
    }

    /// Sends a job. The thread's queue has room for all jobs that the core may have in progress.
    pub(super) fn send(&self, job: DiskJob) {
        // A job that is sent after `Stop` is dropped: nothing waits for its reply.
        let _ = self.store.as_ref().map(|store| store.send(job));
    }

    /// The next reply, if there is one.
    pub(super) fn next_reply(&mut self) -> Option<Reply> {
        let reply = self.store.as_ref().and_then(Store::next_reply);
        self.ready = reply.is_some();
        if let Some(Reply::Stopped(_)) = reply
            && let Some(store) = self.store.take()
        {
            // The thread ends after this reply.
            store.join();
        }
        reply
    }
}
