//! Restores what the file holds, as a *load* reports it: of all sources when the file is opened, and later of
//! the sources that a reload of the configuration has added.
//!
//! Each load reports the whole file. After a reload, what the load reports of the other sources is ignored:
//! some of their changes may still be on their way to the file. Until the load has ended, no candles of the
//! added sources are requested, unless the disk fails or the load is slow.

use super::file_state::{FileState, LOADING};
use super::jobs::Work;
use super::writer::market_of;
use super::{History, Pace};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{DiskJob, Loaded, QuoteName, Reply, SeriesName, StoreError};
use crate::market::{SeriesKey, SourceId, SymbolId};
use crate::time::Mono;

impl History {
    /// Which candles of this source may be requested now: none while it awaits a load.
    pub fn pace_of(&self, source: SourceId) -> Pace {
        match self.awaits_load(source) {
            true => Pace::Hold,
            false => self.pace(),
        }
    }

    /// True while no candles of this source are requested, because a load may show that the file holds them.
    /// A source that a reload has added does not wait for a disk that fails.
    pub(super) fn awaits_load(&self, source: SourceId) -> bool {
        let FileState::Loading { until: Some(_), from, .. } = self.file else {
            return false;
        };
        from == SourceId(0) || from <= source && !self.writer.is_failing()
    }

    /// 2 while requests wait for a load, 1 while only the load is under way, else 0. If this falls, the file
    /// may hold more than was known.
    pub fn load_stage(&self) -> u8 {
        match self.file {
            FileState::Loading { from, .. } => 1 + u8::from(self.awaits_load(from)),
            _ => 0,
        }
    }

    /// Loads what the file holds of the new sources, which begin with `from`. If the file is not open,
    /// nothing is done: when it opens, it is loaded for all sources.
    pub fn recall(&mut self, from: SourceId, cx: &mut Context) {
        let is_open = self.file.is_on() || self.file.is_loading();
        if is_open && from.index() < cx.stats.sources.len() {
            self.load(from, Some(cx.now.mono + LOADING), cx);
        }
    }

    /// Loads what the file holds of the sources from this one on. Requests for candles wait until this time,
    /// but no longer than they wait for a load that is under way.
    pub(super) fn load(&mut self, from: SourceId, until: Option<Mono>, cx: &mut Context) {
        let (from, until) = match self.file {
            FileState::Loading { from: first, until } => (from.min(first), until),
            _ => (from, until),
        };
        self.file = FileState::Loading { until, from };
        self.loads += 1;
        cx.actions.push_back(Action::Store(DiskJob::Load));
    }

    /// The market with these names, if it is to be restored from this load.
    fn restored_market(
        &self,
        source: &str,
        symbol: &str,
        cx: &mut Context,
    ) -> Option<(SourceId, SymbolId)> {
        let (source, symbol) = market_of(source, symbol, cx)?;
        let is_restored = matches!(self.file, FileState::Loading { from, .. } if from <= source);
        (is_restored && self.loads == 1).then_some((source, symbol))
    }

    /// Like `restored_market`, for a quote or rules. These are restored by the first load of a source alone.
    fn first_restored(&self, name: &QuoteName, cx: &mut Context) -> Option<(SourceId, SymbolId)> {
        let market = self.restored_market(&name.source, &name.symbol, cx);
        market.filter(|(source, _)| source.index() >= self.restored)
    }

    /// The market list of a source has come: its saved quotes are put back, and its rules are saved.
    pub fn listed(&mut self, source: SourceId) {
        // During a load, more quotes may come: then all quotes are restored at its end.
        if !self.file.is_loading() {
            let restore = self.quotes.listed(source);
            self.work.push(restore.map(Work::RestoreQuotes));
        }
        self.work.push([Work::SaveRules(source, 0)]);
    }

    /// A load has ended: of all sources, or of those that a reload has added.
    pub(super) fn loaded(&mut self, result: &Result<Loaded, StoreError>, cx: &mut Context) {
        self.loads -= 1;
        if self.loads > 0 {
            return;
        }
        let restores = self.quotes.loaded();
        self.work.push(restores.map(Work::RestoreQuotes));
        if self.file.is_loading() || self.file.is_on() && result.is_err() {
            self.file.loaded(result, cx.now);
        }
        if result.is_err() {
            self.unreadable(cx);
        }
        // What the batch changes is not in the file yet.
        self.writer.unarchive(cx);
        if self.file.is_on() {
            self.restored = cx.config.sources.len();
            self.catch_up(cx);
            self.has_progressed = true;
        }
    }

    /// Restores one part of a load.
    pub(super) fn restore(&mut self, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Heads(heads) => {
                for head in heads {
                    let SeriesName { source, symbol, interval } = &head.series;
                    let Some((source, symbol)) = self.restored_market(source, symbol, cx) else {
                        continue;
                    };
                    let key = SeriesKey { source, symbol, interval: *interval };
                    cx.stats.history.stored.insert(key, head.extent);
                    // Slots in the future were stored by a clock that was ahead. If the clock is not known
                    // yet, it hides these slots later.
                    let now = interval.slot_of(cx.exchange_time(source));
                    let end = cx.stats[source].clock.map_or(i64::MAX, |_| now);
                    // If there are too many ranges, the newest are kept.
                    for slots in head.covered.into_iter().rev().filter(|it| it.start < end) {
                        cx.market.charts.archive(key, slots.start..slots.end.min(end));
                    }
                    if let Some(series) = cx.market.charts.get_mut(key) {
                        series.unsettle_ends(head.extent.last);
                    }
                }
            }
            Reply::Quotes(list) => {
                for (name, saved) in list {
                    if let Some((source, symbol)) = self.first_restored(&name, cx) {
                        self.quotes.restore(source, symbol, saved);
                    }
                }
            }
            Reply::Markets(list) => {
                for (name, rules) in list {
                    if let Some((source, symbol)) = self.first_restored(&name, cx) {
                        cx.market.catalog.recall_rules(source, symbol, rules);
                    }
                }
            }
            _ => {}
        }
    }
}
