//! Replaces `history.rs` in a build without SQLite: there is no disk thread.

use crate::config::Data;
use crate::history::{Job, OpenError, Reply};
use crate::log_targets::HISTORY;
use mio::Waker;
use std::sync::Arc;

/// Never fails.
pub(super) fn check(_data: &Data) -> Result<(), OpenError> {
    Ok(())
}

/// No disk thread.
pub(super) struct History {
    /// Always false.
    pub(super) ready: bool,
}

impl History {
    /// Opens nothing. If the configuration names a file, logs that it is not used.
    pub(super) fn start(
        data: &Data,
        _waker: Arc<Waker>,
    ) -> Result<(History, Option<Reply>), OpenError> {
        if let Data::File(path) = data {
            let path = path.display();
            log::info!(target: HISTORY, "{path} is not used: this build keeps history in memory alone");
        }
        Ok((History { ready: false }, None))
    }

    /// Never called: the core knows of no file.
    pub(super) fn send(&mut self, _job: Job) -> Option<Reply> {
        None
    }

    /// Always `None`.
    pub(super) fn answer(&mut self) -> Option<Reply> {
        None
    }
}
