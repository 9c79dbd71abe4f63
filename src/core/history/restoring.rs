//! Restores what the file holds: of all sources at the start, and later of those that a reload has added.
//!
//! The disk thread reports the whole file each time. After a reload, what it reports of the other sources is
//! ignored: some of what is known of them may still be on its way to the file. Until it has reported, no
//! candles of the added sources are requested, so nothing of them is on its way.

use super::names::market_of;
use super::work::Work;
use super::{History, Pace};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{DiskJob, Reply, SeriesName};
use crate::market::{SeriesKey, SourceId, SymbolId};

impl History {
    /// Which candles of this source may be requested now: it may wait for what the file holds of it.
    pub fn pace_of(&self, source: SourceId) -> Pace {
        match self.is_awaited(source) {
            true => Pace::Hold,
            false => self.pace(),
        }
    }

    /// True while no candles of this source are requested, because the file has yet to tell whether it
    /// holds them.
    pub(super) fn is_awaited(&self, source: SourceId) -> bool {
        self.file.is_awaited() || self.recalled.contains(&source) && !self.is_failing()
    }

    /// True while some sources wait for what the file holds of them.
    pub fn is_restoring(&self) -> bool {
        self.file.is_awaited() || !self.recalled.is_empty()
    }

    /// These sources are new: the file may hold something of them. Before the file is open, nothing is to
    /// be done: all that it holds is reported then.
    pub fn recall(&mut self, sources: impl Iterator<Item = SourceId>, cx: &mut Context) {
        let is_open = self.file.is_on() || self.file.is_loading();
        let before = self.recalled.len();
        self.recalled.extend(sources.filter(|_| is_open));
        if self.recalled.len() > before {
            self.recalls += 1;
            cx.actions.push_back(Action::Store(DiskJob::Load));
        }
    }

    /// The disk thread has reported what the file holds, as asked by [`History::recall`].
    pub(super) fn recall_ended(&mut self) {
        self.recalls = self.recalls.saturating_sub(1);
        if self.recalls == 0 {
            self.recalled.clear();
        }
    }

    /// The market of these names, if what the file holds of it is restored.
    fn restored_market(
        &self,
        source: &str,
        symbol: &str,
        cx: &mut Context,
    ) -> Option<(SourceId, SymbolId)> {
        let (source, symbol) = market_of(source, symbol, cx)?;
        let is_restored = !self.file.is_on() || self.recalled.contains(&source);
        is_restored.then_some((source, symbol))
    }

    /// The market list of a source has come: its saved quotes are put back, and its rules are saved.
    pub fn listed(&mut self, source: SourceId) {
        let restore = self.quotes.listed(source);
        self.work.push(restore.map(Work::RestoreQuotes));
        self.work.push([Work::SaveRules(source, 0)]);
    }

    /// Restores some of what the file holds.
    pub(super) fn restore(&mut self, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Heads(heads) => {
                for head in heads {
                    let SeriesName { source, symbol, interval } = &head.series;
                    let Some((source, symbol)) = self.restored_market(source, symbol, cx) else {
                        continue;
                    };
                    let key = SeriesKey { source, symbol, interval: *interval };
                    cx.stats.history.stored.set(key, head.extent);
                    // If there are too many pieces, the newest count.
                    for slots in head.covered.into_iter().rev() {
                        cx.market.charts.archive(key, slots);
                    }
                    cx.market.charts.restored(key);
                }
            }
            Reply::Quotes(list) => {
                for (name, saved) in list {
                    if let Some((source, symbol)) =
                        self.restored_market(&name.source, &name.symbol, cx)
                    {
                        self.quotes.restore(source, symbol, saved);
                    }
                }
            }
            Reply::Markets(list) => {
                for (name, rules) in list {
                    if let Some((source, symbol)) =
                        self.restored_market(&name.source, &name.symbol, cx)
                    {
                        cx.market.catalog.recall_rules(source, symbol, rules);
                    }
                }
            }
            _ => {}
        }
    }
}
