//! Which sources track a symbol, and when a list last changed what is shown of it.

use super::super::ids::SourceId;
use crate::time::UnixMs;

/// The sources of a symbol, and the times of its changes.
#[derive(Debug, Default)]
pub(super) struct Tracking {
    /// In the order of failover; empty if unknown.
    pub(super) sources: Box<[SourceId]>,
    pub(super) created_at: Option<UnixMs>,
    pub(super) updated_at: Option<UnixMs>,
}

impl Tracking {
    /// The sources after this one tracks the symbol, or stops. `None` if that changes nothing.
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
