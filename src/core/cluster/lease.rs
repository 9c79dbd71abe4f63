//! The lease of one source, as one node sees it.
//!
//! ```text
//! Follows -> Collects               the lease was free, and this node has taken it
//! Collects -> Unsure                the lease has run out by the clock of this node
//! Unsure -> Collects                the lease was renewed: no other node had taken it
//! Unsure, Collects -> Follows       another node has the lease, or this node has released it
//! Unsure, Collects -> Alone         the lease has run out, and the engine is down
//! Alone -> Collects, Follows        the engine is up again
//! any -> Alone                      entries have a newer format: this node has left the cluster
//! ```
//!
//! [`Lease`] owns these steps but the last, the newest epoch that was seen, the place in the stream and its
//! sizes, the version of the market list, and the rival that may still collect. It sends nothing: `leasing`
//! does.

use super::streams::EntryId;
use crate::core::sources::Role;
use crate::time::Mono;
use std::time::Duration;

/// How long after its sending a renewal is trusted: the lease less a tenth, because clocks drift.
pub const TRUSTED: Duration = Duration::from_millis(2700);

/// Bytes of a stream that stay, if its polls are smaller.
const STREAM_BYTES: u64 = 4 * 1024 * 1024;

/// Most entries of a stream that stay.
const MOST_ENTRIES: u64 = 4096;

/// What this node does with the lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Another node has the lease, or nobody.
    #[default]
    Follows,
    /// This node has the lease, until this time by its own clock.
    Collects {
        /// What tells it from all leases before.
        epoch: u64,
        /// Until when it is trusted.
        until: Mono,
    },
    /// The lease ran out by the clock of this node. Another node may have it by now.
    Unsure {
        /// The epoch that it had.
        epoch: u64,
    },
    /// The engine is down, or its entries have a newer format: this node collects without a lease.
    Alone,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Lease {
    /// What this node does with the lease.
    pub hold: Hold,
    /// The newest epoch that was seen.
    pub seen: u64,
    /// When the lease is looked at, or renewed.
    pub due: Mono,
    /// True while a command about the lease waits for its reply.
    pub is_asking: bool,
    /// What was spent of the budget, as the last renewal has told it.
    pub reported: u64,
    /// Since when the lease is free, and left to others.
    pub free_since: Option<Mono>,
    /// What was read last of the stream that is followed.
    pub place: Option<EntryId>,
    /// What was read last of the requests for candles.
    pub asks: EntryId,
    /// The version of the market list that was read last; `None`: none yet.
    pub list: Option<u64>,
    /// True while the list is being fetched.
    pub fetches_list: bool,
    /// The node that may still be collecting for itself.
    pub rival: Option<Rival>,
    size: StreamSize,
}

/// A run of a node that had the lease and did not let it go.
#[derive(Debug)]
pub struct Rival {
    /// Its name.
    pub run: String,
    /// From this time on, a run that is listed as up has sent a heartbeat since it lost the lease.
    pub seen_from: Mono,
    /// Until when it is assumed to collect for itself.
    pub until: Mono,
}

impl Rival {
    /// True if it no longer collects on its own. `live`: the runs that are up, in the order in which they
    /// were first seen.
    pub fn has_left(&self, live: &[String], now: Mono) -> bool {
        let at = live.iter().position(|run| *run == self.run);
        let later = &live[at.map_or(0, |at| at + 1)..];
        // A node that was started again has ended the run before.
        let is_replaced = later.iter().any(|run| node_of(run) == node_of(&self.run));
        is_replaced || at.is_some() && self.seen_from <= now || self.until <= now
    }
}

/// The node of a run, which is `node#run`.
pub fn node_of(run: &str) -> &str {
    run.rsplit_once('#').map_or("", |(node, _)| node)
}

/// Sizes of a stream.
#[derive(Debug, Default)]
struct StreamSize {
    /// The mean bytes of an entry.
    mean_bytes: u64,
    /// The entries of the last poll.
    last_poll: u64,
    /// The entries of the running poll so far.
    this_poll: u64,
}

impl Lease {
    /// True if this node has the lease, as far as it knows.
    pub fn collects(&self) -> bool {
        matches!(self.hold, Hold::Collects { .. })
    }

    /// The epoch that a renewal names.
    pub fn held_epoch(&self) -> Option<u64> {
        match self.hold {
            Hold::Collects { epoch, .. } | Hold::Unsure { epoch } => Some(epoch),
            Hold::Follows | Hold::Alone => None,
        }
    }

    /// The role of the source, with the engine up or down.
    pub fn role(&self, is_up: bool) -> Role {
        match self.hold {
            Hold::Follows if !is_up => Role::Waiting,
            Hold::Follows => Role::Follower,
            Hold::Collects { .. } => Role::Collector,
            Hold::Unsure { .. } => Role::Waiting,
            Hold::Alone => Role::Alone,
        }
    }

    /// The lease was renewed by a command that was sent then.
    pub fn renewed(&mut self, epoch: u64, sent_at: Mono) {
        self.seen = self.seen.max(epoch);
        self.free_since = None;
        self.hold = Hold::Collects { epoch, until: sent_at + TRUSTED };
    }

    /// It is not ours. The stream is read from where its last whole poll begins.
    pub fn lost(&mut self, now: Mono) {
        self.hold = Hold::Follows;
        (self.place, self.list, self.rival) = (None, None, None);
        self.due = now;
    }

    /// Time has passed, or the connection has ended, so that no reply comes.
    pub fn expire(&mut self, is_up: bool, now: Mono) {
        self.is_asking &= is_up;
        self.fetches_list &= is_up;
        self.hold = match self.hold {
            Hold::Collects { epoch, until } if until <= now && is_up => Hold::Unsure { epoch },
            Hold::Collects { until, .. } if until <= now => Hold::Alone,
            Hold::Unsure { .. } if !is_up => Hold::Alone,
            _ => return,
        };
        self.due = now;
    }

    /// Counts an entry of so many bytes. Returns how many entries the stream keeps: as many as fit into
    /// `STREAM_BYTES`, but at least three polls and 16 more.
    pub fn keep(&mut self, bytes: usize, is_first: bool) -> u64 {
        let size = &mut self.size;
        size.mean_bytes = (size.mean_bytes * 7 + bytes as u64) / 8;
        if is_first {
            size.last_poll = std::mem::take(&mut size.this_poll);
        }
        size.this_poll += 1;
        let polls = 3 * size.last_poll.max(size.this_poll) + 16;
        let most = MOST_ENTRIES.max(polls);
        (STREAM_BYTES / size.mean_bytes.max(1)).clamp(polls, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_was_lost_has_left_when_it_is_back_or_was_started_again() {
        let rival =
            Rival { run: "a#1".to_string(), seen_from: Mono(4_000_000), until: Mono(600_000_000) };
        let has_left = |live: &[&str], seconds: u64| {
            let live: Vec<String> = live.iter().map(|run| run.to_string()).collect();
            rival.has_left(&live, Mono(seconds * 1_000_000))
        };
        assert!(!has_left(&["b#1"], 599) && has_left(&["b#1"], 600));
        // The last sign of life may be from before it was lost.
        assert!(!has_left(&["a#1", "b#1"], 3) && has_left(&["a#1", "b#1"], 4));
        // Another run of the node has ended it, but not one that was before it.
        assert!(has_left(&["a#2"], 0) && has_left(&["a#1", "b#1", "a#2"], 0));
        assert!(!has_left(&["a#0", "b#1", "a#1"], 0));
        assert!(!has_left(&["aa#2", "b#a#1"], 0));
    }
}
