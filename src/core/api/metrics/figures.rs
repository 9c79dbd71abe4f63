//! What the rows of the table read: the figures of the core and of the process, and the source of a row.

use crate::core::api::view::View;
use crate::core::stats::{ClusterSource, ClusterStatus, HistoryStatus, HttpStatus, StreamStatus};
use crate::core::{ProcessFacts, SourceStatus};
use crate::market::{ChartCounts, QuoteCounts, SourceId};

/// What the rows read.
#[derive(Clone, Copy)]
pub struct Figures<'a> {
    /// The core.
    pub view: &'a View<'a>,
    /// What the system says of the process.
    pub facts: ProcessFacts,
    pub quotes: QuoteCounts,
    pub charts: ChartCounts,
    pub history: &'a HistoryStatus,
    pub http: &'a HttpStatus,
    pub streams: &'a StreamStatus,
    /// The source, for the rows of a source.
    pub source: Option<SourceId>,
}

impl<'a> Figures<'a> {
    /// The figures as of now.
    pub fn new(view: &'a View<'a>) -> Figures<'a> {
        Figures {
            view,
            facts: (view.facts)(),
            quotes: view.market.quotes.counts(),
            charts: view.market.charts.counts(),
            history: &view.status.history,
            http: &view.status.http,
            streams: &view.status.streams,
            source: None,
        }
    }

    pub fn cluster(&self) -> &'a ClusterStatus {
        let cluster = self.view.status.cluster.as_ref();
        cluster.expect("the rows of the cluster are read only if there is one")
    }

    /// What this node does for the source that the row is read for.
    pub fn cluster_source(&self) -> &'a ClusterSource {
        let source = self.cluster().sources.get(self.id().index());
        source.expect("each source has a place")
    }

    /// True if the history file can be used. `None`: there is none.
    pub fn usable(&self) -> Option<bool> {
        self.history.enabled.then_some(!self.history.unusable)
    }

    /// Series and candles that are stored: in the file, or in memory if there is none.
    pub fn stored(&self) -> (u64, u64) {
        let (history, charts) = (self.history, self.charts);
        if history.enabled {
            let counts = || history.stored.values().map(|extent| extent.count);
            (counts().filter(|count| *count > 0).count() as u64, counts().sum())
        } else {
            (charts.series as u64, charts.candles as u64)
        }
    }

    pub fn sum(&self, count: fn(&SourceStatus) -> u64) -> u64 {
        self.view.status.sources.iter().map(count).sum()
    }

    pub fn id(&self) -> SourceId {
        self.source.expect("only the rows of a source ask for it")
    }

    /// The source that the row is read for.
    pub fn source(&self) -> &'a SourceStatus {
        &self.view.status.sources[self.id().index()]
    }
}
