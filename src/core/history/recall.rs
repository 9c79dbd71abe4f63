//! What the file tells of sources: at the start of all, and once more of those that a reload has added.
//!
//! [`Recall`] owns which sources that is about. Of all others nothing is taken in: what is on its way to
//! the file makes it tell less of them than is known. Until the file has told, no candles of these sources
//! are requested, so nothing of them is on its way.

use super::names::{archive_head, source_of};
use super::work::Work;
use super::{History, Pace, saved_rules};
use crate::core::Action;
use crate::core::context::Context;
use crate::history::{Job, Reply};
use crate::market::SourceId;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Recall {
    /// The file is telling of these.
    told: Vec<SourceId>,
    /// It is asked for these next.
    next: Vec<SourceId>,
}

impl Recall {
    /// These sources are new.
    pub fn add(&mut self, sources: impl Iterator<Item = SourceId>) {
        self.next.extend(sources);
    }

    /// Asks for what is to be told next, unless the file is telling.
    pub fn begin(&mut self, cx: &mut Context) {
        if self.told.is_empty() && !self.next.is_empty() {
            self.told = std::mem::take(&mut self.next);
            cx.actions.push_back(Action::Store(Job::Load));
        }
    }

    /// The file has told. `false`: it was not asked.
    pub fn end(&mut self) -> bool {
        !std::mem::take(&mut self.told).is_empty()
    }

    /// The file tells all that it holds once it is open again.
    pub fn give_up(&mut self) {
        *self = Recall::default();
    }

    /// True if what the file tells of this source is news.
    pub fn is_about(&self, source: SourceId) -> bool {
        self.told.contains(&source)
    }

    /// True if this source waits for the file.
    pub fn is_awaited_by(&self, source: SourceId) -> bool {
        self.is_about(source) || self.next.contains(&source)
    }

    /// True if a source waits for the file.
    pub fn is_awaited(&self) -> bool {
        !self.told.is_empty() || !self.next.is_empty()
    }
}

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
        if self.file.is_on() {
            self.recall.begin(cx);
        }
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
