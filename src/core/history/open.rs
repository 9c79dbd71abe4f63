//! The file as it opens, fails, and tells what it holds.
//!
//! Owns the steps between [`State::Loading`], [`State::On`], [`State::Failing`] and
//! [`State::GivenUp`], and what the public record says of each.

use super::names::key_of;
use super::{History, LOADING, RETRY_MAX, State};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Batch, Extent, Head, Job, LOG_SET_ASIDE, Loaded, OpenError, Opened};
use crate::history::{SeriesName, StoreError};
use crate::log_targets::HISTORY;

impl History {
    pub(super) fn opened(&mut self, opened: Opened, cx: &mut Context) {
        self.bytes = opened.bytes;
        cx.stats.history.bytes = opened.bytes;
        if opened.log_set_aside {
            log::warn!(
                target: HISTORY,
                "there was a log without its file: it is set aside under a name that ends \
                 in {LOG_SET_ASIDE}, and a new file is begun"
            );
        }
        if self.state != State::Failing {
            return;
        }
        if std::mem::take(&mut cx.stats.history.unusable) {
            log::info!(target: HISTORY, "the file can be used again");
        }
        self.state = State::Loading;
        self.load_by = Some(cx.now.mono + LOADING);
        cx.actions.push_back(Action::Store(Job::Load));
    }

    pub(super) fn failed(&mut self, error: &OpenError, cx: &mut Context) {
        log::error!(target: HISTORY, "{error}");
        cx.stats.history.why = error.to_string();
        match error {
            OpenError::Gone { .. } => {
                cx.stats.history.lost = true;
                self.missed = true;
                self.refill = None;
                self.mended_by = None;
                // What was acknowledged is not there any more.
                self.writing.take_if(|writing| writing.is_acknowledged());
            }
            _ => cx.stats.history.unusable = true,
        }
        cx.stats.history.stored.clear();
        if !matches!(self.state, State::Closing | State::Closed) {
            self.state = match error.may_pass() {
                true => State::Failing,
                false => State::GivenUp,
            };
            // Nothing can be had from it. It tells what it holds once it is open again.
            cx.market.charts.forget_archives();
            self.reload_at = None;
        }
        if self.state == State::GivenUp {
            *self.batch = Batch::default();
            self.flush_at = None;
        }
    }

    pub(super) fn load_ended(&mut self, result: Result<Loaded, StoreError>, cx: &mut Context) {
        match &result {
            Ok(Loaded {
                series,
                quotes,
                unsound,
            }) => {
                log::info!(target: HISTORY, "{series} series and {quotes} quotes are on disk");
                if *unsound > 0 {
                    log::warn!(target: HISTORY, "{unsound} rows make no sense, and are passed over");
                }
            }
            Err(error) => log::error!(target: HISTORY, "cannot be read: {error}"),
        }
        self.quotes.told();
        if self.state != State::Loading {
            return;
        }
        self.load_by = None;
        match result {
            Ok(_) => {
                self.state = State::On;
                self.distrust(cx);
                self.catch_up();
                self.news = true;
                self.finish_stage(cx);
            }
            Err(_) => {
                self.state = State::Failing;
                self.reload_at = Some(cx.now.mono + RETRY_MAX);
            }
        }
    }
}

/// What the file holds of a series is told.
pub(super) fn take_extent(name: &SeriesName, extent: Extent, cx: &mut Context) {
    if let Some(key) = key_of(name, cx) {
        cx.stats.history.stored.set(key, extent);
    }
}

/// What the file holds of one series.
pub(super) fn take_head(head: Head, cx: &mut Context) {
    // Of a source that is no longer configured: kept, and not served.
    let Some(key) = key_of(&head.series, cx) else {
        return;
    };
    cx.stats.history.stored.set(key, head.extent);
    // The newest pieces count where there are too many.
    for slots in head.covered.into_iter().rev() {
        cx.market.charts.archive(key, slots);
    }
    cx.market.charts.restored(key);
}
