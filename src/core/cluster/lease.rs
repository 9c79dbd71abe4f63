//! The lease of one source, as one node sees it, and the role that follows from it.
//!
//! | this node's lease | the engine | entries of the source | role |
//! |---|---|---|---|
//! | holds | any | any | collector |
//! | has run out | up | any | waiting: another node may have it by now, so this one asks first |
//! | has run out | down | any | alone |
//! | none | up | heard of late | follower |
//! | none | down | heard of late | waiting |
//! | none | any | none for `staleAfterMs`, or a fault of the source | alone |
//!
//! [`Lease`] owns what the role follows from, the epochs that were seen, the place in the stream and its
//! sizes, the version of the market list, and the rival that may still collect. It sends nothing: `leasing`
//! does.

use super::link::EntryId;
use crate::core::sources::Role;
use crate::replication::EntryError;
use crate::time::Mono;
use std::collections::BTreeSet;
use std::time::Duration;

/// Bytes of a stream that stay, if its polls are smaller.
const STREAM_BYTES: u64 = 4 * 1024 * 1024;

/// Most entries of a stream that stay.
const MOST_ENTRIES: u64 = 4096;

/// The lease of this node.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// A number that no earlier lease of the source has.
    pub epoch: u64,
    /// Until when it is trusted, by the clock of this node.
    pub until: Mono,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Lease {
    /// The lease of this node, also one that has run out and that no other node is known to have taken.
    pub held: Option<Held>,
    /// When the last entry came, or this node let the source go.
    pub heard_at: Mono,
    /// Why the source cannot be shared: its keys are malformed, or another exchange has its id.
    pub fault: Option<String>,
    /// The version of the last entry, if this node cannot read it.
    pub format: Option<u8>,
    /// The last error of an entry that was logged.
    pub told_error: Option<EntryError>,
    /// The newest epoch that was seen.
    pub seen: u64,
    /// The epoch of the lease that was live at the last look. Entries of earlier epochs are dropped.
    pub live: u64,
    /// When the lease is looked at, or renewed.
    pub due: Mono,
    /// When the role changes if nothing happens.
    pub changes_at: Mono,
    /// When this node last published an entry.
    pub told_at: Mono,
    /// Until when this node does not want the source.
    pub barred_until: Mono,
    /// True if all other nodes follow this one, the collector.
    pub is_shared: bool,
    /// True if nobody had the lease at the last look.
    pub is_free: bool,
    /// How often this node gave the source away for its exchange's failures since the exchange's last quotes.
    pub failures: u32,
    /// The entry that was read last of the stream that is followed.
    pub place: Option<EntryId>,
    /// The request for candles that was served last.
    pub asks: EntryId,
    /// The version of the market list that was read last; `None`: none yet.
    pub list: Option<u64>,
    /// The node that had the lease and did not let it go: it may still be collecting for itself. By this time
    /// it must have sent a heartbeat after losing the lease, unless it is lost.
    pub rival: Option<(String, Mono)>,
    /// The mean bytes of an entry of its stream.
    pub mean_bytes: u64,
    /// The entries of the last poll.
    pub last_poll: u64,
    /// The entries of the running poll so far.
    pub this_poll: u64,
}

/// The nodes in the reply to the last heartbeat, by their names.
#[derive(Debug, Default)]
pub struct Nodes {
    /// How many nodes there are.
    pub seen: usize,
    /// Nodes that give signs of life.
    pub live: BTreeSet<String>,
    /// Nodes that ended without leaving the list, or are cut off.
    pub lost: BTreeSet<String>,
}

impl Nodes {
    /// Into how many parts the budget is divided, of which a node in this role has one. The second half of
    /// the budget has a part for each node but one.
    ///
    /// | the nodes | first half | second half |
    /// |---|---|---|
    /// | all others follow the collector | the collector | the collector |
    /// | some are lost, or collect for themselves | the collector | each of them has its part |
    /// | the former collector may be lost | that node | the collector has the parts of the living |
    pub fn spenders(&self, role: Role, lease: &Lease) -> u32 {
        let others = 2 * self.seen.saturating_sub(1).max(1);
        let has_rival = lease.rival.is_some();
        let parts = match role {
            Role::Collector if has_rival => others.div_ceil(self.live.len().max(1)).max(2),
            Role::Collector if self.lost.is_empty() && lease.is_shared => 1,
            Role::Collector => 2,
            _ if lease.held.is_some() && !has_rival => 2,
            _ if self.seen == 0 => 4,
            _ => others,
        };
        parts as u32
    }
}

/// The node of a run, which is `node#run`.
pub fn node_of(run: &str) -> &str {
    run.rsplit_once('#').map_or("", |(node, _)| node)
}

impl Lease {
    /// The lease of a source of which nothing is known yet. Also the lease of an ended source.
    pub fn unused(now: Mono) -> Lease {
        Lease { heard_at: now, due: Mono::NEVER, changes_at: Mono::NEVER, ..Lease::default() }
    }

    /// The epoch of this node's lease, if that holds.
    pub fn epoch(&self, now: Mono) -> Option<u64> {
        self.held.filter(|held| now < held.until).map(|held| held.epoch)
    }

    /// Returns this node's role for the source, and sets when the role changes. `stale`: how long entries may
    /// be missing.
    pub fn role(&mut self, is_up: bool, stale: Duration, now: Mono) -> Role {
        let until = self.held.map_or(self.heard_at + stale, |held| held.until);
        self.changes_at = if now < until { until } else { Mono::NEVER };
        match self.held {
            _ if self.fault.is_some() => Role::Alone,
            Some(_) if now < until => Role::Collector,
            Some(_) if is_up => Role::Waiting,
            None if now < until && is_up => Role::Follower,
            None if now < until => Role::Waiting,
            _ => Role::Alone,
        }
    }

    /// This node does not have the lease. The stream is read from where its last whole poll begins.
    pub fn lost(&mut self, now: Mono) {
        if self.held.take().is_some() {
            self.heard_at = now;
        }
        (self.place, self.list, self.rival) = (None, None, None);
        self.due = now;
    }

    /// Counts an entry of this many bytes. Returns how many entries the stream keeps: as many as fit into
    /// `STREAM_BYTES`, at most `MOST_ENTRIES`, but in any case three polls and 16 more.
    pub fn keep(&mut self, bytes: usize, is_first: bool) -> u64 {
        self.mean_bytes = (self.mean_bytes * 7 + bytes as u64) / 8;
        if is_first {
            self.last_poll = std::mem::take(&mut self.this_poll);
        }
        self.this_poll += 1;
        let polls = 3 * self.last_poll.max(self.this_poll) + 16;
        (STREAM_BYTES / self.mean_bytes.max(1)).clamp(polls, MOST_ENTRIES.max(polls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_collects_without_the_others_they_stay_within_one_budget() {
        let names = |count: usize| (0..count).map(|at| at.to_string()).collect::<BTreeSet<_>>();
        for seen in 2..30 {
            for lost in 0..seen {
                let nodes = Nodes { seen, live: names(seen - lost), lost: names(lost) };
                let of = |role, has_lease: bool, has_rival: bool| {
                    let held = has_lease.then_some(Held { epoch: 1, until: Mono::NEVER });
                    let rival = has_rival.then(|| ("x".to_string(), Mono::NEVER));
                    let lease = Lease { held, rival, ..Lease::default() };
                    1_000_000 / nodes.spenders(role, &lease) as usize
                };
                // The engine is down: one node had the lease.
                let all = of(Role::Alone, true, false);
                assert!(all + (seen - 1) * of(Role::Alone, false, false) <= 1_000_000);
                // Some nodes are cut off: without the collector, or with it, and another one collects.
                let followers = lost * of(Role::Alone, false, false);
                assert!(of(Role::Collector, true, false) + followers <= 1_000_000);
                if lost > 0 {
                    let others = (lost - 1) * of(Role::Alone, false, false);
                    let sum = all + others + of(Role::Collector, true, true);
                    assert!(sum <= 1_000_000, "{sum}");
                }
            }
        }
        let never_saw_any = Nodes::default();
        assert_eq!(never_saw_any.spenders(Role::Alone, &Lease::default()), 4);
    }
}
