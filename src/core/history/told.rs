//! What the file tells of sources: of all at the start, and once more of those that a reload has added.

use super::names::{archive_head, source_of};
use super::work::Work;
use super::{History, Pace, saved_rules};
use crate::core::context::Context;
use crate::history::Reply;
use crate::market::SourceId;

impl History {
    /// Which candles of this source may be requested now: it may wait for what the file holds of it.
    pub fn pace_of(&self, source: SourceId) -> Pace {
        match self.recall.is_awaited_by(source) && !self.is_failing() {
            true => Pace::Hold,
            false => self.pace(),
        }
    }

    /// True if a source waits for what the file holds of it.
    pub fn is_recalling(&self) -> bool {
        self.recall.is_awaited()
    }

    /// These sources are new: the file may hold something of them.
    pub fn recall(&mut self, sources: impl Iterator<Item = SourceId>, cx: &mut Context) {
        if self.file.is_on() || self.file.is_loading() {
            self.recall.add(sources);
        }
        self.recall.begin(self.file.is_on(), cx);
    }

    /// True if what the file tells of the source with this id is taken in.
    fn is_news(&self, id: &str, cx: &Context) -> bool {
        let is_about = |source| self.recall.is_about(source);
        !self.file.is_on() || source_of(id, &cx.config).is_some_and(is_about)
    }

    /// The market list of a source has come: its saved quotes are put back, and its rules are saved.
    pub fn listed(&mut self, source: SourceId) {
        let restore = self.quotes.listed(source);
        self.work.push(restore.map(Work::RestoreQuotes));
        self.work.push([Work::SaveRules(source, 0)]);
    }

    /// The file tells some of what it holds.
    pub(super) fn told(&mut self, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Heads(mut heads) => {
                heads.retain(|head| self.is_news(&head.series.source, cx));
                heads.into_iter().for_each(|head| archive_head(head, cx));
            }
            Reply::Quotes(mut list) => {
                list.retain(|(name, _)| self.is_news(&name.source, cx));
                self.quotes.restore(list, cx);
            }
            Reply::Markets(mut list) => {
                list.retain(|(name, _)| self.is_news(&name.source, cx));
                saved_rules::restore(list, cx);
            }
            _ => {}
        }
    }
}
