//! What the file holds of sources that a reload has added: it is asked for once more.
//!
//! [`Recall`] owns which sources that is about. Of all others nothing is taken in: what is on its way to
//! the file makes it tell less of them than is known. Until the file has told, no candles of these sources
//! are requested, so nothing of them is on its way.

use crate::core::Action;
use crate::core::context::Context;
use crate::history::DiskJob;
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

    /// Asks for what is to be told next, unless the file is telling, or cannot (`is_on`).
    pub fn begin(&mut self, is_on: bool, cx: &mut Context) {
        if is_on && self.told.is_empty() && !self.next.is_empty() {
            self.told = std::mem::take(&mut self.next);
            cx.actions.push_back(Action::Store(DiskJob::Load));
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
