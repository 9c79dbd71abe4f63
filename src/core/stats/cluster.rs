//! The figures of the cluster: one record for the node, and one for each source.

use crate::time::UnixMs;

/// The state of the cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterStatus {
    /// The name of this node.
    pub node: Box<str>,
    /// True if the engine can be used.
    pub is_up: bool,
    /// Since when it cannot, and why.
    pub down: Option<(UnixMs, String)>,
    /// The format version of the last entry of a source, if this node cannot read it.
    pub format: Option<u8>,
    /// The name that this node was to have, if another live node has it.
    pub taken_name: Option<Box<str>>,
    /// By how many milliseconds this node's clock is ahead of the engine's, if that is much.
    pub clock_off_ms: Option<i64>,
    /// By `SourceId`.
    pub sources: Vec<ClusterSource>,
    /// Entries, lists and requests for candles that were published.
    pub published: u64,
    /// Entries, lists and requests that could not be published.
    pub dropped: u64,
    /// Entries of other nodes that were applied.
    pub applied: u64,
    /// Entries of this node that the engine refused, because its lease was lost.
    pub fenced: u64,
}

/// A source in the cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterSource {
    /// What this node does: it is `collector`, `follower`, or `alone` if it collects without a lease.
    pub role: &'static str,
    /// Why it is alone.
    pub alone: Option<Box<str>>,
    /// The newest lease that this node knows.
    pub epoch: u64,
    /// How old the last entry was when it was applied.
    pub lag_ms: Option<u64>,
}
