//! Leases: this node looks at those of other nodes, takes free ones, renews its own, and lets some go.

use super::lease::{Hold, Lease, Rival, node_of};
use super::scripts::{LEASE_MS, Script};
use super::streams::EntryId;
use super::{Cluster, TICK};
use crate::core::context::Context;
use crate::core::sources::{Role, Sources};
use crate::log_targets::{CLUSTER, quoted};
use crate::market::SourceId;
use crate::replication::{Update, encode};
use crate::resp::RespValue;
use crate::time::Mono;
use std::fmt::Display;
use std::time::Duration;

/// How long a node that has its share leaves a free lease to others.
const LEFT_TO_OTHERS: Duration = Duration::from_millis(400);

/// How long a node has more than its share before it lets a source go.
const EXCESS: Duration = Duration::from_secs(3);

/// How long a node that lost its lease without releasing it is assumed to collect on its own. Meanwhile,
/// the new collector uses half of the budget.
const RIVAL: Duration = Duration::from_secs(600);

/// A new collector also serves requests for candles that are at most this old.
const RECENT_MS: i64 = 5000;

/// Longest random wait between the end of a lease and the first try to take it, in microseconds.
const JITTER_US: u64 = 50_000;

impl Cluster {
    /// Looks at a lease, renews it, or takes it back.
    pub(super) fn tend(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let lease = &mut self.leases[id.index()];
        lease.due = cx.now.mono + TICK;
        lease.is_asking = true;
        match lease.hold {
            Hold::Follows => self.engine.run(Script::Look, id, &[&LEASE_MS], None, cx),
            Hold::Alone => self.acquire(id, cx),
            Hold::Collects { epoch, .. } | Hold::Unsure { epoch } => {
                let (budget, parts) = sources.budget(id, cx.now.mono);
                let (left, spent) = budget.to_tell(parts, cx.now.mono);
                lease.reported = spent;
                let words: [&dyn Display; 4] = [&self.run, &epoch, &LEASE_MS, &left];
                self.engine.run(Script::Renew, id, &words, None, cx);
            }
        }
    }

    fn acquire(&mut self, id: SourceId, cx: &mut Context) {
        let lease = &mut self.leases[id.index()];
        lease.is_asking = true;
        let words: [&dyn Display; 3] = [&self.run, &LEASE_MS, &lease.seen];
        self.engine.run(Script::Acquire, id, &words, None, cx);
    }

    /// The sources that this node has or is about to have, and how many are its share.
    fn held_and_share(&self, cx: &Context) -> (usize, usize) {
        let is_held = |it: &&Lease| it.collects() || it.is_asking && it.hold == Hold::Alone;
        let held = self.leases.iter().filter(is_held).count();
        let mut nodes: Vec<&str> = self.live.iter().map(|run| node_of(run)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        (held, cx.stats.running().count().div_ceil(nodes.len().max(1)))
    }

    /// Lets one source go, if this node has had more than its share for a while.
    pub(super) fn spread(&mut self, sources: &mut Sources, cx: &mut Context) {
        let (held, share) = self.held_and_share(cx);
        if held <= share {
            self.excess_since = None;
            return;
        }
        let since = *self.excess_since.get_or_insert(cx.now.mono);
        let last = self.ids().rfind(|id| self.leases[id.index()].collects());
        if cx.now.mono.since(since) >= EXCESS
            && let Some(id) = last
        {
            self.release(id, sources, cx);
        }
    }

    /// Takes in the reply to a look at a lease.
    pub(super) fn looked(&mut self, id: SourceId, reply: &RespValue<'_>, cx: &mut Context) {
        let now = cx.now.mono;
        // One more source leaves no other node less than its share.
        let (held, share) = self.held_and_share(cx);
        let jitter = Duration::from_micros(self.engine.rng.below(JITTER_US));
        let lease = &mut self.leases[id.index()];
        lease.is_asking = false;
        lease.seen = lease.seen.max(reply.count_at(0));
        let left = Duration::from_millis(reply.count_at(2).min(2 * LEASE_MS));
        let is_own = !left.is_zero() && reply.bytes_at(1) == self.run.as_bytes();
        if left.is_zero() || is_own {
            let since = *lease.free_since.get_or_insert(now);
            if now < self.settled_at && !is_own {
                lease.due = self.settled_at;
            } else if held < share || is_own || now.since(since) >= LEFT_TO_OTHERS {
                return self.acquire(id, cx);
            } else {
                lease.due = since + LEFT_TO_OTHERS;
            }
        } else {
            lease.free_since = None;
            lease.due = lease.due.min(now + left + jitter);
        }
        self.note_place(id, reply, cx);
    }

    /// The reply to a try to take a lease has come.
    pub(super) fn acquired(
        &mut self,
        id: SourceId,
        sent_at: Mono,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let now = cx.now.mono;
        let epoch = reply.count_at(1);
        let lease = &mut self.leases[id.index()];
        lease.is_asking = false;
        lease.seen = lease.seen.max(epoch);
        if reply.number_at(0) != Some(1) {
            // Somebody else was faster.
            match lease.hold {
                Hold::Follows => (lease.due, lease.free_since) = (now + TICK, None),
                _ => lease.lost(now),
            }
            return;
        }
        lease.renewed(epoch, sent_at);
        lease.due = now + TICK;
        let recent = self.engine.time_ms(now).saturating_sub(RECENT_MS).max(0) as u64;
        lease.asks = EntryId { ms: recent, number: 0 };
        let run = String::from_utf8_lossy(reply.bytes_at(2)).into_owned();
        let before = node_of(&run);
        let has_let_go = reply.number_at(3) == Some(1);
        let is_lost = !has_let_go && !before.is_empty() && before != node_of(&self.run);
        let seen_from = now + Duration::from_millis(LEASE_MS) + TICK;
        let rival = is_lost.then(|| Rival { run, seen_from, until: now + RIVAL });
        lease.rival = rival.filter(|it| !it.has_left(&self.live, now));
        let spenders = if lease.rival.is_some() { 2 } else { 1 };
        let left = reply.number_at(4).zip(reply.number_at(5));
        let left = left.map(|(units, ms)| (units.unsigned_abs(), ms.unsigned_abs()));
        sources.collect(id, left, spenders, cx);
        log::info!(target: CLUSTER, "collecting source={} epoch={epoch}", cx.stats[id].id);
    }

    /// The reply to a renewal has come.
    pub(super) fn renewed(
        &mut self,
        id: SourceId,
        sent_at: Mono,
        is_ours: bool,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let lease = &mut self.leases[id.index()];
        lease.is_asking = false;
        match lease.held_epoch() {
            Some(epoch) if is_ours => {
                lease.renewed(epoch, sent_at);
                sources.note_told(id, lease.reported, cx.now);
            }
            Some(_) => lease.lost(cx.now.mono),
            None => {}
        }
    }

    /// An entry was refused: the lease is not ours, or has run out.
    pub(super) fn fenced(&mut self, id: SourceId, cx: &mut Context) {
        self.leases[id.index()].due = cx.now.mono;
        cx.stats.cluster.get_or_insert_default().fenced += 1;
        log::warn!(target: CLUSTER, "entry refused source={}", cx.stats[id].id);
    }

    /// Lets a source go, and tells the followers, so that another node takes it at once.
    pub(super) fn release(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let Some(epoch) = self.leases[id.index()].held_epoch() else {
            return;
        };
        let lease = &mut self.leases[id.index()];
        lease.lost(cx.now.mono);
        lease.free_since = Some(cx.now.mono);
        self.tell_role(id, sources, cx);
        let leaver = self.ends_at.map(|_| node_of(&self.run).into());
        let mut entry = sources[id].entry(Update::Released(leaver), cx.now, cx);
        entry.head.epoch = epoch;
        let bytes = encode(&entry);
        let keep = self.leases[id.index()].keep(bytes.len(), false);
        let (budget, parts) = sources.budget(id, cx.now.mono);
        let left = budget.left(parts, cx.now.mono);
        let words: [&dyn Display; 4] = [&self.run, &epoch, &left, &keep];
        if self.engine.is_up {
            self.engine.run(Script::Release, id, &words, Some(&bytes), cx);
        }
        log::info!(target: CLUSTER, "released source={} epoch={epoch}", cx.stats[id].id);
    }

    /// Tells a source its role.
    pub(super) fn tell_role(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let lease = &self.leases[id.index()];
        let role = lease.role(self.engine.is_up);
        if sources[id].role() == role || cx.stats[id].has_ended {
            return;
        }
        sources.set_role(id, role, cx);
        let source = &cx.stats[id].id;
        match role {
            _ if self.ends_at.is_some() => {}
            Role::Waiting if lease.hold == Hold::Follows => {}
            Role::Follower => log::info!(target: CLUSTER, "following source={source}"),
            Role::Waiting => log::warn!(target: CLUSTER, "lease ran out source={source}"),
            Role::Alone => {
                let why = self.engine.trouble.as_deref().unwrap_or("engine moved");
                log::warn!(target: CLUSTER, "alone source={source} error={}", quoted(why));
            }
            Role::Collector => log::info!(target: CLUSTER, "lease renewed source={source}"),
        }
    }
}
