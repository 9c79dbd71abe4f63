//! Whether the file can be used.
//!
//! ```text
//! Off                               there is no file
//! Off -> Opening                    there is one, and it is about to be opened
//! Opening, Failing -> Loading       it is open, and tells what it holds
//! Loading -> On                     it has told that
//! Opening, Loading, On -> Failing   it cannot be used for now: every job tries again
//!                      -> GivenUp   it is damaged: nothing is written to it any more
//! any -> Closing -> Closed          at the end
//! ```
//!
//! [`FileState`] owns these steps and their deadlines.

use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Job, LOG_SET_ASIDE, Loaded, OpenError, Opened, StoreError, Unusable};
use crate::log_targets::{HISTORY, quoted};
use crate::market::SeriesKey;
use crate::time::{Mono, Now};
use std::time::Duration;

/// False in a build that cannot keep a file: all that is only done for one is then left out of it.
pub const HAS_FILES: bool = cfg!(feature = "sqlite");

/// Time to tell what the file holds. On a slower disk, requests to the exchanges do not wait for it.
const LOADING: Duration = Duration::from_secs(30);

/// Before a load that failed is tried again.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    Opening,
    Loading,
    On,
    Failing,
    GivenUp,
    Closing,
    Closed,
}

/// See the module's page.
#[derive(Debug)]
pub struct FileState {
    state: State,
    /// Until when the load is waited for.
    load_by: Option<Mono>,
    /// When a load that failed is tried again.
    reload_at: Option<Mono>,
}

impl FileState {
    /// There is no file.
    pub fn new() -> FileState {
        FileState { state: State::Off, load_by: None, reload_at: None }
    }

    /// There is a file, and it is about to be opened.
    pub fn begin(&mut self) {
        self.state = State::Opening;
    }

    /// True if this series is one for the file, which grows for clients' requests only so far.
    pub fn is_for(&self, key: SeriesKey, cx: &Context) -> bool {
        let is_small = cx.stats.history.bytes < cx.config.limits.history_bytes;
        let is_named = || cx.market.catalog.is_named(key.source, key.symbol);
        HAS_FILES && self.state != State::Off && (is_small || is_named())
    }

    /// True if it can be read, and has told what it holds.
    pub fn is_on(&self) -> bool {
        HAS_FILES && self.state == State::On
    }

    /// True while it tells what it holds. Nothing is written meanwhile.
    pub fn is_loading(&self) -> bool {
        self.state == State::Loading
    }

    /// True while that is waited for: nothing is requested from an exchange that may be in the file.
    pub fn is_awaited(&self) -> bool {
        self.is_loading() && self.load_by.is_some()
    }

    /// True if changes are written now, or as soon as the file is open.
    pub fn takes_changes(&self) -> bool {
        use State::*;
        HAS_FILES && matches!(self.state, Opening | Loading | On | Failing)
    }

    /// True if nothing is written to it any more.
    pub fn is_given_up(&self) -> bool {
        self.state == State::GivenUp
    }

    /// True if it is being closed.
    pub fn is_closing(&self) -> bool {
        self.state == State::Closing
    }

    /// True if it is closed, or there is none.
    pub fn is_closed(&self) -> bool {
        !HAS_FILES || matches!(self.state, State::Off | State::Closed)
    }

    /// It is open: loads it, unless it was open already.
    pub fn opened(&mut self, opened: Opened, cx: &mut Context) {
        note_size(opened.bytes, cx);
        if opened.log_set_aside {
            log::warn!(
                target: HISTORY,
                "stray log set aside suffix={LOG_SET_ASIDE}"
            );
        }
        if !matches!(self.state, State::Opening | State::Failing) {
            return;
        }
        if std::mem::take(&mut cx.stats.history.unusable) {
            log::info!(target: HISTORY, "file usable again");
        }
        self.load_by = Some(cx.now.mono + LOADING);
        self.load(cx);
    }

    fn load(&mut self, cx: &mut Context) {
        self.state = State::Loading;
        cx.actions.push_back(Action::Store(Job::Load));
    }

    /// It cannot be used, for now or ever.
    pub fn failed(&mut self, error: &OpenError, cx: &mut Context) {
        log::error!(target: HISTORY, "file unusable error={}", quoted(error));
        let status = &mut cx.stats.history;
        status.why = error.to_string();
        match error.why {
            Unusable::Gone => status.lost = true,
            _ => status.unusable = true,
        }
        self.reload_at = None;
        self.state = match error.may_pass() {
            _ if matches!(self.state, State::Closing | State::Closed) => self.state,
            true => State::Failing,
            false => State::GivenUp,
        };
    }

    /// It has told what it holds, or could not. `true`: it is on.
    pub fn loaded(&mut self, result: &Result<Loaded, StoreError>, now: Now) -> bool {
        match result {
            Ok(loaded) => {
                let (series, quotes) = (loaded.series, loaded.quotes);
                log::info!(target: HISTORY, "loaded series={series} quotes={quotes}");
                if loaded.unsound > 0 {
                    log::warn!(target: HISTORY, "invalid rows skipped rows={}", loaded.unsound);
                }
            }
            Err(error) => log::error!(target: HISTORY, "load failed error={}", quoted(error)),
        }
        if !self.is_loading() {
            return false;
        }
        self.load_by = None;
        if result.is_ok() {
            self.state = State::On;
        } else {
            self.state = State::Failing;
            self.reload_at = Some(now.mono + RELOAD);
        }
        result.is_ok()
    }

    /// It is being closed.
    pub fn close(&mut self, cx: &mut Context) {
        self.state = State::Closing;
        cx.actions.push_back(Action::Store(Job::Stop));
    }

    /// It is closed, or is not waited for.
    pub fn closed(&mut self) {
        self.state = State::Closed;
    }

    /// When [`FileState::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        match self.state {
            State::Loading => self.load_by,
            State::Failing => self.reload_at,
            _ => None,
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        let is_due = |at: &mut Mono| *at <= cx.now.mono;
        if self.is_loading() && self.load_by.take_if(is_due).is_some() {
            let after_s = LOADING.as_secs();
            log::warn!(target: HISTORY, "load slow after_s={after_s} waiting=false");
        }
        if self.state == State::Failing && self.reload_at.take_if(is_due).is_some() {
            self.load(cx);
        }
    }
}
