//! The file as it opens, fails, and tells what it holds.
//!
//! Owns the steps between [`State::Loading`], [`State::On`], [`State::Failing`] and
//! [`State::GivenUp`], and what the public record says of each.

use super::names::key_of;
use super::{Archive, LOADING, RETRY_MAX, Shelf, State};
use crate::history::{Batch, Extent, Head, Job, LOG_SET_ASIDE, Loaded, OpenError, Opened};
use crate::history::{SeriesName, StoreError};
use crate::server::Action;
use crate::time::Now;

impl Archive {
    pub(super) fn opened(&mut self, opened: Opened, shelf: &mut Shelf<'_>, now: Now) {
        self.bytes = opened.bytes;
        shelf.status.bytes = opened.bytes;
        if opened.log_set_aside {
            log::warn!(
                "history: there was a log without its file: it is set aside under a name that ends \
                 in {LOG_SET_ASIDE}, and a new file is begun"
            );
        }
        if self.state != State::Failing {
            return;
        }
        if std::mem::take(&mut shelf.status.unusable) {
            log::info!("history: the file can be used again");
        }
        self.state = State::Loading;
        self.load_by = Some(now.mono + LOADING);
        shelf.actions.push_back(Action::Store(Job::Load));
    }

    pub(super) fn failed(&mut self, error: &OpenError, shelf: &mut Shelf<'_>) {
        log::error!("history: {error}");
        shelf.status.why = error.to_string();
        match error {
            OpenError::Gone { .. } => {
                shelf.status.lost = true;
                self.missed = true;
                self.refill = None;
                self.mended_by = None;
                // What was acknowledged is not there any more.
                self.writing.take_if(|writing| writing.is_acknowledged());
            }
            _ => shelf.status.unusable = true,
        }
        shelf.status.stored.clear();
        if !matches!(self.state, State::Closing | State::Closed) {
            self.state = match error.may_pass() {
                true => State::Failing,
                false => State::GivenUp,
            };
            // Nothing can be had from it. It tells what it holds once it is open again.
            shelf.market.charts.forget_archives();
            self.reload_at = None;
        }
        if self.state == State::GivenUp {
            *self.batch = Batch::default();
            self.flush_at = None;
        }
    }

    pub(super) fn load_ended(
        &mut self,
        result: Result<Loaded, StoreError>,
        shelf: &mut Shelf<'_>,
        now: Now,
    ) {
        match &result {
            Ok(Loaded {
                series,
                quotes,
                unsound,
            }) => {
                log::info!("history: {series} series and {quotes} quotes are on disk");
                if *unsound > 0 {
                    log::warn!("history: {unsound} rows make no sense, and are passed over");
                }
            }
            Err(error) => log::error!("history: cannot be read: {error}"),
        }
        self.quotes.told();
        if self.state != State::Loading {
            return;
        }
        self.load_by = None;
        match result {
            Ok(_) => {
                self.state = State::On;
                self.distrust(shelf);
                self.catch_up();
                self.news = true;
                self.finish_stage(shelf);
            }
            Err(_) => {
                self.state = State::Failing;
                self.reload_at = Some(now.mono + RETRY_MAX);
            }
        }
    }
}

/// What the file holds of a series is told.
pub(super) fn take_extent(name: &SeriesName, extent: Extent, shelf: &mut Shelf<'_>) {
    if let Some(key) = key_of(name, shelf) {
        shelf.status.stored.set(key, extent);
    }
}

/// What the file holds of one series.
pub(super) fn take_head(head: Head, shelf: &mut Shelf<'_>) {
    // Of a source that is no longer configured: kept, and not served.
    let Some(key) = key_of(&head.series, shelf) else {
        return;
    };
    shelf.status.stored.set(key, head.extent);
    // The newest pieces count where there are too many.
    for slots in head.covered.into_iter().rev() {
        shelf.market.charts.archive(key, slots);
    }
}
