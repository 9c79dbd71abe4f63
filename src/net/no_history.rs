//! In place of the history file, in a build that keeps none: nothing is sent, nothing comes.

use crate::config::Data;
use crate::history::{Answer, Job, OpenError};
use mio::Waker;
use std::sync::Arc;

/// See the module's page.
pub(super) struct History {
    /// Never: no answer comes.
    pub(super) ready: bool,
}

impl History {
    /// Nothing to open; an error where there is to be a file.
    pub(super) fn start(
        data: &Data,
        _waker: Arc<Waker>,
    ) -> Result<(History, Option<Answer>), OpenError> {
        match data {
            Data::File(path) => Err(OpenError::NotBuilt { path: path.clone() }),
            Data::Memory => Ok((History { ready: false }, None)),
        }
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
