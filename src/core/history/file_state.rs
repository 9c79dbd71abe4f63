//! The state of the history file.
//!
//! ```text
//! Closed                     there is no file
//! Closed -> NotOpen          there is one, and it is about to be opened
//! NotOpen -> Loading         it is open, and the disk thread reports what it holds
//! Loading -> On              all of it is reported
//! On -> Loading              a reload of the configuration has added sources
//! Loading, On -> NotOpen     it cannot be used for now, or a load failed: each further job tries to open it
//! NotOpen -> Loading         after `RELOAD`, if no job did
//! any -> GivenUp             it will not become usable, for example because it is damaged
//! any -> Closing -> Closed   at the end
//! ```
//!
//! [`FileState`] owns these steps and their deadlines.

use crate::core::context::Context;
use crate::history::{LOG_SET_ASIDE, Loaded, OpenError, Opened, StoreError, Unusable, VERSION};
use crate::log_targets::{HISTORY, quoted};
use crate::market::{SeriesKey, SourceId};
use crate::time::{Mono, Now};
use std::time::Duration;

/// How long requests for candles wait for the load of a file that was opened.
pub const LOADING: Duration = Duration::from_secs(30);

/// After a failure, how long until the file is loaded again.
const RELOAD: Duration = Duration::from_secs(30);

/// Notes the size of the file. From `limits.historyBytes` on, only markets that the configuration names
/// are stored.
pub fn note_size(bytes: u64, cx: &mut Context) {
    let limit = cx.config.limits.history_bytes;
    let before = std::mem::replace(&mut cx.stats.history.bytes, bytes);
    match (before < limit, bytes < limit) {
        (true, false) => log::warn!(
            target: HISTORY,
            "file full stored=named bytes={bytes} limit={limit}"
        ),
        (false, true) => {
            log::info!(target: HISTORY, "file has room again stored=all bytes={bytes} limit={limit}");
        }
        _ => {}
    }
}

/// See the module's page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileState {
    /// It cannot be used for now. It is loaded again at this time, if no other job opens it before.
    NotOpen(Option<Mono>),
    /// The disk thread reports what the file holds.
    Loading {
        /// Requests for candles wait for the load until this time. `None`: they do not wait.
        until: Option<Mono>,
        /// What the file holds of the sources from this one on is taken in.
        from: SourceId,
    },
    /// It can be used.
    On,
    /// Nothing is written to it any more.
    GivenUp,
    /// The disk thread is closing it.
    Closing,
    /// There is no file, or it is closed.
    #[default]
    Closed,
}

impl FileState {
    /// True if there is a file, and its size allows candles of this series. Below `limits.historyBytes`, all
    /// markets are stored. From there on, only markets that the configuration names are.
    pub fn may_store(&self, key: SeriesKey, cx: &Context) -> bool {
        let is_small = cx.stats.history.bytes < cx.config.limits.history_bytes;
        let is_named = || cx.market.catalog.is_named(key.source, key.symbol);
        !self.is_closed() && (is_small || is_named())
    }

    /// True if it can be read, and is loaded.
    pub fn is_on(&self) -> bool {
        *self == FileState::On
    }

    /// True while it is being loaded. Nothing is written meanwhile.
    pub fn is_loading(&self) -> bool {
        matches!(self, FileState::Loading { .. })
    }

    /// True while requests for candles wait for the load, which may show that the file holds them.
    pub fn is_awaited(&self) -> bool {
        matches!(self, FileState::Loading { until: Some(_), .. })
    }

    /// True if changes are written now, or once the file is open and loaded.
    pub fn takes_changes(&self) -> bool {
        matches!(self, FileState::NotOpen(_) | FileState::Loading { .. } | FileState::On)
    }

    /// True if it is closed, or there is none.
    pub fn is_closed(&self) -> bool {
        *self == FileState::Closed
    }

    /// It is open. Returns true if it must be loaded: it was not open already, and no load has opened it.
    pub fn opened(&mut self, opened: Opened, cx: &mut Context) -> bool {
        note_size(opened.bytes, cx);
        if let Some(from) = opened.upgraded_from {
            log::warn!(target: HISTORY, "file upgraded from={from} to={VERSION}");
        }
        if opened.log_set_aside {
            log::warn!(
                target: HISTORY,
                "stray log set aside suffix={LOG_SET_ASIDE}"
            );
        }
        if std::mem::take(&mut cx.stats.history.unusable) {
            log::info!(target: HISTORY, "file usable again");
        }
        matches!(self, FileState::NotOpen(_))
    }

    /// It cannot be used, for now or ever. Each further job tries to open it; if there is none, a load does.
    pub fn failed(&mut self, error: &OpenError, cx: &mut Context) {
        log::error!(target: HISTORY, "file unusable error={}", quoted(error));
        let status = &mut cx.stats.history;
        status.why = error.to_string();
        match error.why {
            Unusable::Gone => status.lost = true,
            _ => status.unusable = true,
        }
        *self = match error.may_pass() {
            _ if matches!(self, FileState::Closing | FileState::Closed) => *self,
            true => FileState::NotOpen(Some(cx.now.mono + RELOAD)),
            false => FileState::GivenUp,
        };
    }

    /// A load has ended: the file can be used, or is loaded again later.
    pub fn loaded(&mut self, result: &Result<Loaded, StoreError>, now: Now) {
        match result {
            Ok(loaded) => {
                let (series, quotes) = (loaded.series, loaded.quotes);
                log::info!(target: HISTORY, "loaded series={series} quotes={quotes}");
                if loaded.unsound > 0 {
                    log::warn!(target: HISTORY, "invalid rows skipped rows={}", loaded.unsound);
                }
            }
            // `failed` has logged the reason.
            Err(StoreError::NotOpen) => {}
            Err(error) => log::error!(target: HISTORY, "load failed error={}", quoted(error)),
        }
        *self = match result {
            Ok(_) => FileState::On,
            Err(_) => FileState::NotOpen(Some(now.mono + RELOAD)),
        };
    }

    /// When [`FileState::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        match *self {
            FileState::Loading { until: due, .. } | FileState::NotOpen(due) => due,
            _ => None,
        }
    }

    /// Time has passed. Returns true if it must be loaded again.
    pub fn handle_timeout(&mut self, cx: &Context) -> bool {
        let is_due = self.due().is_some_and(|due| due <= cx.now.mono && !cx.is_behind);
        match self {
            FileState::Loading { until, .. } if is_due => {
                let after_s = LOADING.as_secs();
                log::warn!(target: HISTORY, "load slow after_s={after_s} waiting=false");
                *until = None;
                false
            }
            _ => is_due,
        }
    }
}
