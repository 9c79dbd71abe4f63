//! Which sources track a symbol, and when a list last changed what is shown of it.

use super::super::ids::SourceId;
use crate::time::UnixMs;

/// Where a symbol stands.
#[derive(Debug, Default)]
pub(super) struct Tracking {
    /// In the order of failover; empty: unknown.
    pub(super) sources: Box<[SourceId]>,
    pub(super) created_at: Option<UnixMs>,
    pub(super) updated_at: Option<UnixMs>,
}

impl Tracking {
    /// The sources once this one tracks the symbol, or does not. `None`: they are as they were.
    pub(super) fn with(&self, source: SourceId, tracked: bool) -> Option<Box<[SourceId]>> {
        match (self.sources.binary_search(&source), tracked) {
            (Err(at), true) => {
                let (before, behind) = self.sources.split_at(at);
                Some([before, &[source], behind].concat().into())
            }
            (Ok(at), false) => {
                let (before, from) = self.sources.split_at(at);
                Some([before, &from[1..]].concat().into())
            }
            _ => None,
        }
    }
}
