//! Leases: this node looks at the leases of others, takes free ones, renews its own, and gives some away.
//!
//! A node that wants a source says so when it looks at the lease. The collector gives the source to such a
//! node if that node collects at least two sources fewer, or if the exchange has failed here for a while.

use super::lease::{Held, Lease, node_of};
use super::link::EntryId;
use super::scripts::Script;
use super::{Cluster, SETTLING};
use crate::core::context::Context;
use crate::core::sources::{Outbound, Role, Sources};
use crate::log_targets::{CLUSTER, quoted};
use crate::market::SourceId;
use crate::replication::{Update, encode};
use crate::resp::RespValue;
use crate::time::Mono;
use std::fmt::Display;
use std::time::Duration;

/// How long an exchange may serve this node nothing before another node gets the source.
const FAILS: Duration = Duration::from_secs(10);

/// How long a node does not want a source back that it has given away.
const BAR: Duration = Duration::from_secs(60);

/// A new collector also serves requests for candles that are at most this old.
const RECENT_MS: i64 = 5000;

impl Cluster {
    /// Looks at a lease, or renews it.
    pub(super) fn tend(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let (now, tick, lease_ms) =
            (cx.now.mono, self.engine.tick(), self.engine.lease.as_millis());
        // A node that does not reach one exchange may not reach others either.
        let is_barred = self.leases.iter().any(|it| it.failures > 0 && now < it.barred_until);
        let held = self.held(now) as i64;
        let what = sources[id].identity();
        let lease = &mut self.leases[id.index()];
        if let Some(epoch) = lease.epoch(now) {
            lease.due = now + tick / 2;
            let words: [&dyn Display; 4] = [&self.run, &epoch, &lease_ms, &what];
            self.engine.run(Script::Renew, id, &words, None, cx);
            if now.since(lease.told_at) >= tick {
                // So followers know that the source is collected.
                let entry = sources[id].entry(Update::Status(None), cx.now, cx);
                self.tell(id, Outbound::Entry(Box::new(entry)), cx);
            }
        } else {
            lease.due = now + tick;
            let wants = if is_barred || now < lease.barred_until { -1 } else { held };
            // A node that has given the source away takes it back only if nobody else takes it.
            let is_left = now < self.settled_at || now < lease.barred_until && !lease.is_free;
            let takes = u8::from(lease.held.is_some() || !is_left);
            let is_alone = u8::from(sources[id].role() == Role::Alone);
            let words: [&dyn Display; 7] =
                [&self.run, &lease_ms, &lease.seen, &what, &wants, &takes, &is_alone];
            self.engine.run(Script::Look, id, &words, None, cx);
        }
    }

    /// The sources of which this node has the lease.
    fn held(&self, now: Mono) -> u64 {
        self.leases.iter().filter(|it| it.epoch(now).is_some()).count() as u64
    }

    /// How long this node waits before it looks at a lease that may be free. The more leases it has, the
    /// longer it waits.
    pub(super) fn patience(&mut self, now: Mono) -> Duration {
        let unit = self.engine.lease / 600;
        unit * self.held(now) as u32 + unit * self.engine.rng.below(10) as u32
    }

    /// Takes in the reply to a look at a lease.
    pub(super) fn looked(
        &mut self,
        id: SourceId,
        sent_at: Mono,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let (now, patience) = (cx.now.mono, self.patience(cx.now.mono));
        let most = 2 * self.engine.lease;
        let lease = &mut self.leases[id.index()];
        let epoch = reply.count_at(1);
        (lease.live, lease.seen) = (epoch, lease.seen.max(epoch));
        if reply.number_at(0) == Some(1) {
            return self.taken(id, sent_at, reply, sources, cx);
        }
        if lease.held.is_some() {
            lease.lost(now);
        }
        let left = Duration::from_millis(reply.count_at(2)).min(most);
        let what = String::from_utf8_lossy(reply.bytes_at(6));
        lease.is_free = left.is_zero();
        if lease.is_free {
            // Nodes that have not given the source away come first.
            lease.due = self.settled_at.max(now + self.engine.lease / 60);
        } else if !what.is_empty() && what != sources[id].identity() {
            return self.spoil(id, format!("another node collects {what} under this id"), cx);
        } else {
            (lease.due, lease.fault) = (lease.due.min(now + left + patience), None);
        }
        self.note_place(id, reply, cx);
    }

    /// This node has the lease.
    fn taken(
        &mut self,
        id: SourceId,
        sent_at: Mono,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let (now, epoch) = (cx.now.mono, reply.count_at(1));
        let at_ms = |ms: i64| EntryId { ms: ms.max(0) as u64, number: 0 };
        let time_ms = self.engine.time_ms(now);
        let lease = &mut self.leases[id.index()];
        let until = sent_at + self.engine.trusted();
        let is_known = lease.held.replace(Held { epoch, until }).is_some_and(|it| now < it.until);
        if is_known {
            return;
        }
        if cx.stats[id].has_ended {
            return self.release(id, None, sources, cx);
        }
        (lease.due, lease.fault, lease.format, lease.is_shared) = (now, None, None, true);
        // What was read and not served is read again. The clock of the engine may have gone back.
        lease.asks = lease.asks.min(at_ms(time_ms)).max(at_ms(time_ms.saturating_sub(RECENT_MS)));
        self.unread.retain(|it| it.source != id);
        let before = node_of(&String::from_utf8_lossy(reply.bytes_at(7))).to_string();
        let has_let_go = reply.number_at(8) == Some(1);
        if !has_let_go && !before.is_empty() && before != node_of(&self.run) {
            let seen_from = now + self.engine.lease + self.engine.tick();
            lease.rival = Some((before, seen_from));
        }
        // A former collector that has died is taken to have spent nothing since it last renewed the lease.
        // What it spends until it stops is covered by the part of the limit that is never used.
        let silent = lease.rival.as_ref().map_or(Duration::ZERO, |_| self.engine.lease);
        self.tell_role(id, sources, cx);
        sources.budget(id).take_over(now - silent);
    }

    /// The source cannot be shared: this node collects it for itself.
    pub(super) fn spoil(&mut self, id: SourceId, why: String, cx: &Context) {
        let lease = &mut self.leases[id.index()];
        lease.lost(cx.now.mono);
        lease.due = cx.now.mono + self.engine.tick();
        if lease.fault.as_ref() != Some(&why) {
            let source = &cx.stats[id].id;
            log::error!(target: CLUSTER, "not shared source={source} error={}", quoted(&why));
            lease.fault = Some(why);
        }
    }

    /// Takes in the reply to a renewal.
    pub(super) fn renewed(
        &mut self,
        id: SourceId,
        sent_at: Mono,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let (now, until) = (cx.now.mono, sent_at + self.engine.trusted());
        let held = self.held(now);
        let lease = &mut self.leases[id.index()];
        // Once the lease has run out, the next look tells whose it is.
        let Some(epoch) = lease.epoch(now) else {
            return;
        };
        if reply.number_at(0) != Some(1) {
            return lease.lost(now);
        }
        (lease.held, lease.is_shared) = (Some(Held { epoch, until }), reply.count_at(3) == 0);
        let fails = sources[id].should_give_away(FAILS, cx);
        if sources[id].has_collected() {
            lease.failures = 0;
        }
        let to = String::from_utf8_lossy(reply.bytes_at(1));
        let is_excess = held >= reply.count_at(2) + 2 && self.gives_from <= now;
        if !to.is_empty() && *to != self.run && (fails || is_excess) {
            self.gives_from = now + self.engine.lease;
            lease.barred_until = now + BAR * 2u32.saturating_pow(lease.failures.min(10));
            lease.failures += u32::from(fails);
            self.release(id, Some(&to), sources, cx);
        }
    }

    /// Lets a source go, and tells the followers, so that another node takes it at once. If `to` names a run,
    /// that run gets the lease.
    pub(super) fn release(
        &mut self,
        id: SourceId,
        to: Option<&str>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let lease = &mut self.leases[id.index()];
        let Some(Held { epoch, .. }) = lease.held else {
            return;
        };
        lease.lost(cx.now.mono);
        let mut entry = sources[id].entry(Update::Released(to.map(Into::into)), cx.now, cx);
        // The node that takes over does not back off.
        (entry.head.epoch, entry.head.rest_ms) = (epoch, 0);
        let bytes = encode(&entry);
        let keep = lease.keep(bytes.len(), false);
        let (to, lease_ms) = (to.unwrap_or_default(), self.engine.lease.as_millis());
        let words: [&dyn Display; 5] = [&self.run, &epoch, &keep, &to, &lease_ms];
        self.engine.run(Script::Release, id, &words, Some(&bytes), cx);
        self.tell_role(id, sources, cx);
    }

    /// Tells a source its role, and the metrics.
    pub(super) fn tell_role(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let (is_up, now) = (self.engine.is_up, cx.now.mono);
        if cx.stats[id].has_ended {
            self.leases[id.index()] = Lease::unused(now);
            return;
        }
        let stale = cx.config.sources.get(id.index()).map_or(Duration::MAX, |it| it.stale_after);
        let lease = &mut self.leases[id.index()];
        lease.rival.take_if(|(node, from)| *from <= now && !self.nodes.lost.contains(node));
        let role = lease.role(is_up, stale, now);
        sources[id].spenders = self.nodes.spenders(role, lease);
        let status = cx.stats.cluster.get_or_insert_default();
        let trouble = self.engine.trouble.as_deref().filter(|_| !is_up);
        let why = lease.fault.as_deref().or(trouble).unwrap_or("no entry has come in time");
        let told = &mut status.sources[id.index()];
        told.role = role.name();
        let epoch = lease.held.map_or(lease.live, |held| held.epoch);
        told.epoch = epoch;
        told.lag_ms = told.lag_ms.filter(|_| told.role == "follower");
        told.alone = (role == Role::Alone).then(|| why.into());
        if sources[id].role() == role {
            return;
        }
        sources.set_role(id, role, cx);
        let source = &cx.stats[id].id;
        match role {
            Role::Alone => {
                log::warn!(target: CLUSTER, "alone source={source} error={}", quoted(why))
            }
            _ => {
                log::info!(target: CLUSTER, "role source={source} role={role:?} epoch={epoch}")
            }
        }
    }

    /// The engine is up again: leases are looked at, and former collectors come first.
    pub(super) fn resume(&mut self, sources: &mut Sources, cx: &mut Context) {
        let now = cx.now.mono;
        // What was due during the outage is no sign of a pause of this process.
        self.beat_at = now;
        let had_any = self.leases.iter().any(|it| it.seen > 0);
        self.settled_at = if had_any { now + SETTLING } else { now };
        for (at, lease) in (0..).zip(&mut self.leases) {
            // While the engine was away, own entries may have been lost, and entries of others trimmed.
            (lease.due, lease.list) = (now, None);
            if lease.held.is_some() {
                sources[SourceId(at)].list_changed();
            }
        }
        self.handle_timeout(sources, cx);
    }
}
