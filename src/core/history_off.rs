//! In place of the archive, in a build that cannot keep a file: everything is in memory alone.
//!
//! Takes nothing, gives nothing back, and has nothing to do. It is of the same shape, so that the
//! core is the same.

use crate::config::Config;
use crate::core::context::Context;
use crate::history::{Answer, Changes};
use crate::market::{Catalog, SeriesKey, SourceId};
use crate::time::{Mono, Now};
use std::ops::Range;

/// See the module's page.
#[derive(Debug)]
pub struct Archive;

/// Which candles may be asked of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(dead_code, reason = "without a file, there is no need to wait for it")]
pub enum Pace {
    /// None.
    Hold,
    /// All.
    Free,
}

impl Archive {
    /// Without a file.
    pub fn new(_now: Now) -> Archive {
        Archive
    }

    /// No file was opened.
    pub fn begin(&mut self, _opened: Answer, _shelf: &mut Context<'_>, _now: Now) {}

    /// Nothing waits for a disk.
    pub fn pace(&self) -> Pace {
        Pace::Free
    }

    /// Never.
    pub fn has_news(&mut self) -> bool {
        false
    }

    /// None is for a file.
    pub fn is_for(&self, _key: SeriesKey, _config: &Config, _catalog: &Catalog) -> bool {
        false
    }

    /// Never: what leaves memory is fetched again.
    pub fn keeps(&self, _key: SeriesKey, _config: &Config, _catalog: &Catalog) -> bool {
        false
    }

    /// Nothing was restored.
    pub fn listed(&mut self, _source: SourceId) {}

    /// There was none to close.
    pub fn is_closed(&self) -> bool {
        true
    }

    /// Nothing is written.
    pub fn changes(
        &mut self,
        _key: SeriesKey,
        _config: &Config,
        _catalog: &Catalog,
        _now: Now,
    ) -> Option<&mut Changes> {
        None
    }

    /// Nothing was written.
    pub fn forget(
        &mut self,
        _key: SeriesKey,
        _slots: Range<i64>,
        _config: &Config,
        _catalog: &Catalog,
        _now: Now,
    ) {
    }

    /// Never.
    pub fn due(&self) -> Option<Mono> {
        None
    }

    /// Has no deadlines.
    pub fn handle_timeout(&mut self, _shelf: &mut Context<'_>, _now: Now) {}

    /// Never.
    pub fn has_work(&self) -> bool {
        false
    }

    /// Has none.
    pub fn work(&mut self, _shelf: &mut Context<'_>, _now: Now) {}

    /// Nothing waits.
    pub fn shut_down(&mut self, _shelf: &mut Context<'_>, _now: Now) {}

    /// There is nothing to close.
    pub fn close(&mut self, _shelf: &mut Context<'_>) {}

    /// Nobody was asked.
    pub fn answered(&mut self, _answer: Answer, _shelf: &mut Context<'_>, _now: Now) -> bool {
        false
    }

    /// Nothing will come.
    pub fn recall(
        &mut self,
        _key: SeriesKey,
        _slots: &Range<i64>,
        _shelf: &mut Context<'_>,
    ) -> Option<bool> {
        Some(false)
    }

    /// Never.
    pub fn is_recalling(&self, _key: SeriesKey, _slots: &Range<i64>) -> bool {
        false
    }
}
