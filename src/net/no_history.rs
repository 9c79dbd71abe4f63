//! In place of the history file, in a build that keeps none: nothing is sent, nothing comes.

use crate::config::Data;
use crate::history::{Answer, Job, OpenError};
use crate::log_targets::HISTORY;
use mio::Waker;
use std::sync::Arc;

/// Nothing is opened.
pub(super) fn check(_data: &Data) -> Result<(), OpenError> {
    Ok(())
}

/// See the module's page.
pub(super) struct History {
    /// Never: no answer comes.
    pub(super) ready: bool,
}

impl History {
    /// Nothing to open. Where there was to be a file, the log says that there is none.
    pub(super) fn start(
        data: &Data,
        _waker: Arc<Waker>,
    ) -> Result<(History, Option<Answer>), OpenError> {
        if let Data::File(path) = data {
            let path = path.display();
            log::info!(target: HISTORY, "{path} is not used: this build keeps history in memory alone");
        }
        Ok((History { ready: false }, None))
    }

    /// The core has been told of no file, and sends no job.
    pub(super) fn send(&mut self, _job: Job) -> Option<Answer> {
        None
    }

    /// None ever.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        None
    }
}
