//! Leases: this node looks at those of other nodes, takes free ones, renews its own, and lets some go.

use super::link::EngineCommand;
use super::scripts::{LEASE_MS, Script};
use super::seat::{Hold, Rival, Seat, node_of};
use super::{Cluster, TICK};
use crate::core::context::Context;
use crate::core::sources::{Role, Sources};
use crate::log_targets::{CLUSTER, quoted};
use crate::market::SourceId;
use crate::resp::RespValue;
use crate::time::Mono;
use std::fmt::Display;
use std::time::Duration;

/// How long a node that has its share leaves a free lease to others.
const LEFT_TO_OTHERS: Duration = Duration::from_millis(400);

/// How long a node has more than its share before it lets a source go.
const EXCESS: Duration = Duration::from_secs(3);

/// How long a node that was lost may collect for itself at most, as far as others care: half of the budget
/// is left to it.
const RIVAL: Duration = Duration::from_secs(600);

/// Most tenths of a millisecond between the end of a lease and the first try to take it.
const JITTER: u64 = 500;

impl Cluster {
    /// Looks at a lease, renews it, or takes it back.
    pub(super) fn tend(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let seat = &mut self.seats[id.index()];
        seat.due = cx.now.mono + TICK;
        seat.is_asking = true;
        let name = cx.stats[id].id.clone();
        let lease = self.keys.of(&name, "lease");
        match seat.hold {
            Hold::Follows => {
                let keys = [lease, self.keys.of(&name, "stream")];
                let command = (Script::Look, EngineCommand::Look(id));
                self.engine.run(command, &keys, &[&LEASE_MS], None, cx);
            }
            Hold::Alone => self.acquire(id, cx),
            Hold::Collects { epoch, .. } | Hold::Unsure { epoch } => {
                let (left, spent) = sources[id].budget().to_tell(cx.now.mono);
                let command = (Script::Renew, EngineCommand::Renew(id, spent));
                let words: [&dyn Display; 4] = [&self.run, &epoch, &LEASE_MS, &left];
                self.engine.run(command, &[lease], &words, None, cx);
            }
        }
    }

    pub(super) fn acquire(&mut self, id: SourceId, cx: &mut Context) {
        let seat = &mut self.seats[id.index()];
        seat.is_asking = true;
        let lease = self.keys.of(&cx.stats[id].id, "lease");
        let command = (Script::Acquire, EngineCommand::Acquire(id));
        self.engine.run(command, &[lease], &[&self.run, &LEASE_MS, &seat.seen], None, cx);
    }

    /// True if this node may take one more source without leaving another node less than its share.
    fn has_room(&self) -> bool {
        let (held, share) = self.held_and_share();
        held < share
    }

    fn held_and_share(&self) -> (usize, usize) {
        let held = self
            .seats
            .iter()
            .filter(|seat| seat.collects() || seat.is_asking && seat.hold == Hold::Alone);
        let count = self.seats.iter().filter(|seat| !seat.has_ended).count();
        let mut nodes: Vec<&str> = self.live.iter().map(|run| node_of(run)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        (held.count(), count.div_ceil(nodes.len().max(1)))
    }

    /// Lets one source go, if this node has had more than its share for a while.
    pub(super) fn spread(&mut self, sources: &mut Sources, cx: &mut Context) {
        let (held, share) = self.held_and_share();
        if held <= share {
            self.excess_since = None;
            return;
        }
        let since = *self.excess_since.get_or_insert(cx.now.mono);
        let last = self.seats.iter().rposition(Seat::collects);
        if cx.now.mono.since(since) >= EXCESS
            && let Some(at) = last
        {
            self.release(SourceId(at as u16), sources, cx);
        }
    }

    /// A look at a lease has come.
    pub(super) fn looked(&mut self, id: SourceId, reply: &RespValue<'_>, cx: &mut Context) {
        let now = cx.now.mono;
        let has_room = self.has_room();
        let jitter = Duration::from_micros(self.rng.below(JITTER) * 100);
        let seat = &mut self.seats[id.index()];
        seat.is_asking = false;
        seat.seen = seat.seen.max(reply.count_at(0));
        let left = Duration::from_millis(reply.count_at(2).min(2 * LEASE_MS));
        let is_own = !left.is_zero() && reply.bytes_at(1) == self.run.as_bytes();
        let is_settling = now < self.settled_at && !is_own;
        if left.is_zero() || is_own {
            let since = *seat.free_since.get_or_insert(now);
            if is_settling {
                seat.due = self.settled_at;
                return self.note_place(id, reply, cx);
            }
            if has_room || is_own || now.since(since) >= LEFT_TO_OTHERS {
                return self.acquire(id, cx);
            }
            seat.due = since + LEFT_TO_OTHERS;
        } else {
            seat.free_since = None;
            seat.due = seat.due.min(now + left + jitter);
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
        let epoch = reply.count_at(1);
        let was = self.seats[id.index()].hold;
        let seat = &mut self.seats[id.index()];
        seat.is_asking = false;
        seat.seen = seat.seen.max(epoch);
        if reply.number_at(0) != Some(1) {
            // Somebody else was faster.
            if was == Hold::Follows {
                seat.due = cx.now.mono + TICK;
                seat.free_since = None;
                return;
            }
            seat.lost(cx.now.mono);
            return self.tell_role(id, sources, cx);
        }
        seat.renewed(epoch, sent_at);
        seat.due = cx.now.mono + TICK;
        seat.asks = self.reading.recent(cx.now.mono);
        let seat = &mut self.seats[id.index()];
        let holder = String::from_utf8_lossy(reply.bytes_at(2));
        let before = node_of(&holder);
        let has_let_go = reply.number_at(3) == Some(1);
        let rival = Rival {
            run: holder.to_string(),
            seen_from: cx.now.mono + Duration::from_millis(LEASE_MS) + TICK,
            until: cx.now.mono + RIVAL,
        };
        let is_gone = has_let_go || before.is_empty() || before == self.node;
        seat.rival = Some(rival).filter(|it| !is_gone && !it.has_left(&self.live, cx.now.mono));
        let is_halved = seat.rival.is_some();
        let left = reply.number_at(4).zip(reply.number_at(5));
        let left = left.map(|(units, ms)| (units.unsigned_abs(), ms.unsigned_abs()));
        sources[id].collect(left, is_halved, cx);
        log::info!(target: CLUSTER, "collecting source={} epoch={epoch}", cx.stats[id].id);
        self.report(cx);
    }

    /// The reply to a renewal has come: so much of the budget was told, or the lease is not ours.
    pub(super) fn renewed(
        &mut self,
        id: SourceId,
        spent: Option<u64>,
        sent_at: Mono,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let seat = &mut self.seats[id.index()];
        seat.is_asking = false;
        let Some(epoch) = seat.held_epoch() else {
            return;
        };
        match spent {
            Some(spent) => {
                let was_unsure = !seat.collects();
                seat.renewed(epoch, sent_at);
                if was_unsure {
                    self.tell_role(id, sources, cx);
                }
                sources[id].note_told(spent, cx.now);
            }
            None => {
                seat.lost(cx.now.mono);
                self.tell_role(id, sources, cx);
            }
        }
    }

    /// An entry was refused: the lease is not ours, or has run out.
    pub(super) fn fenced(&mut self, id: SourceId, cx: &mut Context) {
        let seat = &mut self.seats[id.index()];
        seat.due = cx.now.mono;
        if let Some(cluster) = &mut cx.stats.cluster {
            cluster.fenced += 1;
        }
        log::warn!(target: CLUSTER, "entry refused source={}", cx.stats[id].id);
    }

    /// Lets a source go, so that another node takes it at once.
    pub(super) fn release(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let Some(epoch) = self.seats[id.index()].held_epoch() else {
            return;
        };
        let seat = &mut self.seats[id.index()];
        seat.lost(cx.now.mono);
        seat.free_since = Some(cx.now.mono);
        self.tell_role(id, sources, cx);
        self.send_release(id, epoch, sources, cx);
        log::info!(target: CLUSTER, "released source={} epoch={epoch}", cx.stats[id].id);
    }

    /// Tells a source its role.
    pub(super) fn tell_role(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let seat = &self.seats[id.index()];
        let role = seat.role(self.engine.is_up());
        if sources[id].role() == role || seat.has_ended {
            return;
        }
        sources[id].set_role(role, cx);
        let source = &cx.stats[id].id;
        match role {
            _ if self.ends_since.is_some() => {}
            Role::Waiting if seat.hold == Hold::Follows => {}
            Role::Follower => log::info!(target: CLUSTER, "following source={source}"),
            Role::Waiting => log::warn!(target: CLUSTER, "lease ran out source={source}"),
            Role::Alone => {
                let why = self.engine.trouble().unwrap_or("left");
                log::warn!(target: CLUSTER, "alone source={source} error={}", quoted(why));
            }
            Role::Collector => log::info!(target: CLUSTER, "lease renewed source={source}"),
        }
    }
}
