//! The cluster: which node collects a source, and what the nodes tell each other.
//!
//! [`Cluster`] owns the [`Engine`](engine::Engine), one [`Seat`](seat::Seat) for each source, and the
//! entries that were read and not yet applied ([`reading`]). A node that has the lease of a source
//! collects, and tells the others what it applies ([`publishing`]); the others apply the same. This file
//! decides about the leases.
//!
//! It tells a source its role, and asks it what to tell; no source knows it. It knows no socket: the engine's
//! connections are driven like those to exchanges. Without a cluster in the configuration there is none of
//! this.

mod engine;
mod link;
mod publishing;
mod reading;
mod scripts;
mod seat;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::core::Event;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::{Role, Sources};
use crate::core::stats::{ClusterSource, ClusterStatus};
use crate::log_targets::{CLUSTER, quoted};
use crate::market::SourceId;
use crate::resp::{Reply, parse};
use crate::rng::Rng;
use crate::table::Key;
use crate::time::Mono;
use engine::{Command, Engine, Which, refusal};
use link::Pending;
use reading::Reading;
use scripts::{Keys, LEASE_MS, Script};
use seat::{Hold, Seat};
use std::net::SocketAddr;
use std::time::Duration;

pub use engine::MOST_CONNECTIONS;

/// False in a build without clusters: all that is only done for one is then left out of it.
pub const HAS_CLUSTERS: bool = cfg!(feature = "cluster");

/// Between two looks at a lease, two renewals, and two signs of life.
const TICK: Duration = Duration::from_secs(1);

/// How long a node that has its share leaves a free lease to others.
const LEFT_TO_OTHERS: Duration = Duration::from_millis(400);

/// How long a node has more than its share before it lets a source go.
const EXCESS: Duration = Duration::from_secs(3);

/// How long a node that was lost may collect for itself at most, as far as others care: half of the budget
/// is left to it.
const RIVAL: Duration = Duration::from_secs(600);

/// Most tenths of a millisecond between the end of a lease and the first try to take it.
const JITTER: u64 = 500;

/// How long the end waits for the engine to be told.
const FAREWELL: Duration = Duration::from_millis(500);

/// See the module's page.
pub struct Cluster {
    engine: Engine,
    keys: Keys,
    /// The name of this node, and that of this run of it.
    node: String,
    run: String,
    /// By `SourceId`.
    seats: Vec<Seat>,
    reading: Reading,
    /// The nodes that live.
    nodes: Vec<String>,
    beat_at: Mono,
    /// Since when this node has more than its share.
    excess_since: Option<Mono>,
    rng: Rng,
    /// When the end has begun.
    ends_since: Option<Mono>,
}

impl Cluster {
    /// The cluster of the configuration, if there is one. `boot` tells this run from others; keys of its
    /// connections begin at `first`.
    pub fn new(
        boot: u64,
        first: usize,
        sources: &mut Sources,
        cx: &mut Context,
    ) -> Option<Box<Cluster>> {
        let config = cx.config.cluster.clone().filter(|_| HAS_CLUSTERS)?;
        let mut rng = Rng::new(boot ^ 0x00C1_0573);
        let run = format!("{:08x}", boot as u32);
        let node = config.node.unwrap_or_else(|| format!("node-{run}"));
        cx.stats.cluster = Some(ClusterStatus::new(&node));
        let mut cluster = Box::new(Cluster {
            engine: Engine::new(config.url, first, rng.next_u64(), cx.now.mono),
            keys: Keys::new(&config.prefix),
            run: format!("{node}#{run}"),
            node,
            seats: Vec::new(),
            reading: Reading::default(),
            nodes: Vec::new(),
            beat_at: cx.now.mono,
            excess_since: None,
            rng,
            ends_since: None,
        });
        cluster.reconfigure(sources, cx);
        Some(cluster)
    }

    /// Connections for which the table of keys has places.
    pub fn capacity(config: &Config) -> usize {
        match config.cluster.is_some() && HAS_CLUSTERS {
            true => MOST_CONNECTIONS,
            false => 0,
        }
    }

    /// Takes in sources that have come or gone.
    pub fn reconfigure(&mut self, sources: &mut Sources, cx: &mut Context) {
        for at in 0..sources.count() {
            let id = SourceId(at as u16);
            let has_ended = cx.stats[id].has_ended;
            if at >= self.seats.len() {
                self.seats.push(Seat::default());
            }
            let seat = &self.seats[at];
            if has_ended && seat.collects() {
                self.release(id, sources, cx);
            } else if !has_ended {
                self.seats[at].due = cx.now.mono;
                let role = self.seats[at].role();
                if sources.role(id) != role {
                    sources.set_role(id, role, cx);
                }
            }
            self.seats[at].has_ended = has_ended;
        }
        self.report(cx);
    }

    /// Whether a key may name a connection to the engine.
    pub fn may_own(&self, key: Key) -> bool {
        self.engine.may_own(key)
    }

    /// Bytes to send on a connection.
    pub fn outgoing(&self, key: Key) -> &[u8] {
        self.engine.outgoing(key)
    }

    /// True if bytes from a connection are welcome.
    pub fn wants_read(&self, key: Key) -> bool {
        self.engine.wants_read(key)
    }

    /// The socket of a connection is closed.
    pub fn closed(&mut self, key: Key) {
        self.engine.closed(key);
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.engine.connections()
    }

    /// When [`Cluster::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        if self.reading.is_too_old() || self.ends_since.is_some() {
            return self.ends_since.map(|since| since + FAREWELL);
        }
        let of_seat = |seat: &Seat| match seat.hold {
            Hold::Collects { until, .. } if seat.is_asking || !self.engine.is_up() => until,
            Hold::Collects { until, .. } => seat.due.min(until),
            _ if seat.is_asking || !self.engine.is_up() => Mono::NEVER,
            _ => seat.due,
        };
        let seats = self
            .seats
            .iter()
            .filter(|it| !it.has_ended)
            .map(of_seat)
            .min();
        let beat = if self.engine.is_up() {
            self.beat_at
        } else {
            Mono::NEVER
        };
        Some(
            self.engine
                .due()
                .min(seats.unwrap_or(Mono::NEVER))
                .min(beat),
        )
    }

    /// True if the engine has been told of the end, or need not be.
    pub fn has_said_farewell(&self, now: Mono) -> bool {
        let is_over = self.ends_since.is_none_or(|since| now >= since + FAREWELL);
        is_over || self.engine.has_sent()
    }

    /// Takes in what happened to a connection.
    pub fn handle(&mut self, key: Key, event: Event<'_>, sources: &mut Sources, cx: &mut Context) {
        let Some(which) = self.engine.which(key) else {
            return;
        };
        match event {
            Event::Connected => self.engine.connected((which, key), false, cx),
            Event::Secured => self.engine.connected((which, key), true, cx),
            Event::Sent(count) => self.engine.link(which).sent_bytes(count),
            Event::Received(bytes) => {
                self.engine.link(which).receive(bytes);
                self.take_replies(which, key, sources, cx);
            }
            Event::Eof => self.engine.lost(which, None, cx),
            Event::Failed(why) => self.engine.lost(which, Some(why), cx),
            Event::Late(_) => {}
        }
        self.expire(sources, cx);
    }

    fn take_replies(&mut self, which: Which, key: Key, sources: &mut Sources, cx: &mut Context) {
        let inbox = self.engine.link(which).take_inbox();
        let mut at = 0;
        loop {
            match parse(&inbox[at..]) {
                Ok(None) => return self.engine.link(which).put_back(inbox, at),
                Ok(Some((reply, used))) => {
                    let Some(pending) = self.engine.link(which).next_pending() else {
                        return self.engine.fail("it replies to what was not asked", cx);
                    };
                    self.replied(&pending, &reply, sources, cx);
                    at += used;
                }
                Err(error) => return self.engine.fail(&error.to_string(), cx),
            }
            if self.engine.which(key).is_none() {
                // The reply has closed it.
                return;
            }
        }
    }

    /// Takes in the addresses of the engine's host, or why there are none.
    pub fn resolved(&mut self, addresses: Result<Vec<SocketAddr>, String>, cx: &mut Context) {
        self.engine.resolved(addresses, cx);
        self.engine.handle_timeout(cx);
    }

    /// Time has passed: leases run out, and what is due is sent.
    pub fn handle_timeout(&mut self, sources: &mut Sources, cx: &mut Context) {
        if self.reading.is_too_old() || self.ends_since.is_some() {
            return;
        }
        self.engine.handle_timeout(cx);
        self.expire(sources, cx);
        if !self.engine.is_up() {
            return;
        }
        let now = cx.now.mono;
        if self.beat_at <= now {
            self.beat_at = now + TICK;
            self.engine.beat(self.keys.nodes(), &self.node, cx);
            self.spread(sources, cx);
        }
        for at in 0..self.seats.len() {
            let seat = &self.seats[at];
            if seat.due <= now && !seat.is_asking && !seat.has_ended {
                self.tend(SourceId(at as u16), sources, cx);
            }
        }
    }

    /// Lets leases run out by this node's own clock, and lets sources know.
    fn expire(&mut self, sources: &mut Sources, cx: &mut Context) {
        let is_up = self.engine.is_up();
        if !is_up {
            self.reading.forget_sent();
        }
        for at in 0..self.seats.len() {
            let (id, seat) = (SourceId(at as u16), &mut self.seats[at]);
            seat.is_asking &= is_up;
            seat.fetches_list &= is_up;
            if seat.expire(is_up, cx.now.mono) {
                self.tell_role(id, sources, cx);
            }
            let rival = self.seats[at].rival.as_ref();
            let is_gone =
                |(name, until): &(String, Mono)| *until <= cx.now.mono || self.nodes.contains(name);
            if self.seats[at].collects() && rival.is_some_and(is_gone) {
                self.seats[at].rival = None;
                sources.use_whole_budget(id, cx);
            }
        }
        self.report(cx);
    }

    /// Looks at a lease, renews it, or takes it back.
    fn tend(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let seat = &mut self.seats[id.index()];
        seat.due = cx.now.mono + TICK;
        seat.is_asking = true;
        let name = cx.stats[id].id.clone();
        let lease = self.keys.of(&name, "lease");
        let time = LEASE_MS.to_string();
        match seat.hold {
            Hold::Follows => {
                let keys = [lease, self.keys.of(&name, "stream")];
                let command = (Script::Look, Command::Look(id));
                self.engine.run(command, &keys, &[time.as_bytes()], cx);
            }
            Hold::Alone => self.acquire(id, cx),
            Hold::Collects { epoch, .. } | Hold::Unsure { epoch } => {
                let (left, spent) = sources.budget_to_tell(id, cx.now);
                let (epoch, left) = (epoch.to_string(), left.to_string());
                let words = [&*self.run, &epoch, &time, &left].map(str::as_bytes);
                let command = (Script::Renew, Command::Renew(id, spent));
                self.engine.run(command, &[lease], &words, cx);
            }
        }
    }

    fn acquire(&mut self, id: SourceId, cx: &mut Context) {
        let seat = &mut self.seats[id.index()];
        seat.is_asking = true;
        let lease = self.keys.of(&cx.stats[id].id, "lease");
        let (time, seen) = (LEASE_MS.to_string(), seat.seen.to_string());
        let words = [&*self.run, &time, &seen].map(str::as_bytes);
        let command = (Script::Acquire, Command::Acquire(id));
        self.engine.run(command, &[lease], &words, cx);
    }

    /// Takes in the reply to a command.
    fn replied(
        &mut self,
        pending: &Pending<Command>,
        reply: &Reply<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        if matches!(reply, Reply::Error(error) if error.starts_with(b"NOSCRIPT")) {
            log::info!(target: CLUSTER, "scripts loaded again");
            return self.script_is_gone(&pending.command, cx);
        }
        if let Some(why) = refusal(pending, reply) {
            return self.engine.fail(&why, cx);
        }
        let list = reply.list();
        match &pending.command {
            Command::Auth
            | Command::Select
            | Command::Ask
            | Command::Leave
            | Command::Release(_) => {}
            Command::Load(script) => {
                let name = reply.bytes().unwrap_or_default();
                if self.engine.loaded(*script, name) && !self.engine.is_up() {
                    self.engine.beat(self.keys.nodes(), &self.node, cx);
                }
            }
            Command::Beat => self.beaten(pending, list, sources, cx),
            Command::Look(id) => self.looked(*id, list, cx),
            Command::Acquire(id) => self.acquired(*id, pending.sent_at, list, sources, cx),
            Command::Renew(id, spent) => {
                let is_ours = reply.number() == Some(1);
                self.renewed(*id, is_ours.then_some(*spent), pending.sent_at, sources, cx);
            }
            Command::Publish(id) | Command::List(id) if *reply == Reply::Null => {
                self.fenced(*id, cx)
            }
            Command::Publish(_) | Command::List(_) => {}
            Command::GetList(id, version) => {
                self.seats[id.index()].fetches_list = false;
                let bytes = reply.bytes();
                if self.read_list(*id, bytes, sources, cx) {
                    self.seats[id.index()].list = Some(*version);
                }
            }
            Command::Read => {
                self.reading.came(list, &mut self.seats);
                self.read_on(cx);
            }
        }
    }

    /// The engine has lost its scripts: what was asked by this one is asked again.
    fn script_is_gone(&mut self, command: &Command, cx: &mut Context) {
        self.engine.load_scripts(cx);
        if let Command::Look(id) | Command::Acquire(id) | Command::Renew(id, _) = command {
            let seat = &mut self.seats[id.index()];
            (seat.is_asking, seat.due) = (false, cx.now.mono);
        }
    }

    /// The engine's time and the nodes that live have come: it is up.
    fn beaten(
        &mut self,
        pending: &Pending<Command>,
        list: &[Reply<'_>],
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let Some(time) = list.first().and_then(Reply::number) else {
            return self.engine.fail("it does not tell its time", cx);
        };
        self.reading.note_time(time, pending.sent_at);
        let nodes = list.get(1).map_or(&[][..], Reply::list).iter();
        let name = |it: &Reply<'_>| Some(String::from_utf8_lossy(it.bytes()?).into_owned());
        self.nodes = nodes.filter_map(name).collect();
        if self.engine.note_up(cx) {
            for (at, seat) in (0..).zip(&mut self.seats) {
                // What was told while the engine was away may be lost, and what others told may be
                // trimmed.
                (seat.due, seat.list) = (cx.now.mono, None);
                if seat.collects() {
                    sources.tell_list(SourceId(at));
                }
            }
            self.handle_timeout(sources, cx);
        }
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
        (held.count(), count.div_ceil(self.nodes.len().max(1)))
    }

    /// Lets one source go, if this node has had more than its share for a while.
    fn spread(&mut self, sources: &mut Sources, cx: &mut Context) {
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
    fn looked(&mut self, id: SourceId, list: &[Reply<'_>], cx: &mut Context) {
        let now = cx.now.mono;
        let has_room = self.has_room();
        let jitter = Duration::from_micros(self.rng.below(JITTER) * 100);
        let number = |at: usize| {
            list.get(at)
                .and_then(Reply::number)
                .unwrap_or(0)
                .unsigned_abs()
        };
        let seat = &mut self.seats[id.index()];
        seat.is_asking = false;
        seat.seen = seat.seen.max(number(0));
        let is_own = list.get(1).and_then(Reply::bytes) == Some(self.run.as_bytes());
        let left = Duration::from_millis(number(2));
        if left.is_zero() || is_own {
            let since = *seat.free_since.get_or_insert(now);
            if has_room || is_own || now.since(since) >= LEFT_TO_OTHERS {
                return self.acquire(id, cx);
            }
            seat.due = since + LEFT_TO_OTHERS;
        } else {
            seat.free_since = None;
            seat.due = seat.due.min(now + left + jitter);
        }
        self.note_place(id, list, cx);
    }

    /// The reply to a try to take a lease has come.
    fn acquired(
        &mut self,
        id: SourceId,
        sent_at: Mono,
        list: &[Reply<'_>],
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let number = |at: usize| list.get(at).and_then(Reply::number);
        let epoch = number(1).unwrap_or(0).unsigned_abs();
        let was = self.seats[id.index()].hold;
        let seat = &mut self.seats[id.index()];
        seat.is_asking = false;
        seat.seen = seat.seen.max(epoch);
        if number(0) != Some(1) {
            seat.lost(cx.now.mono);
            // Somebody else was faster: its lease is looked at a tick later.
            seat.due = cx.now.mono + TICK;
            if was != Hold::Follows {
                self.tell_role(id, sources, cx);
            }
            return;
        }
        seat.renewed(epoch, sent_at);
        seat.due = cx.now.mono + TICK;
        seat.asks = self.reading.recent(cx.now.mono);
        let seat = &mut self.seats[id.index()];
        let holder =
            String::from_utf8_lossy(list.get(2).and_then(Reply::bytes).unwrap_or_default());
        let before = holder.rsplit_once('#').map_or("", |(name, _)| name);
        let has_let_go = number(3) == Some(1);
        let is_rival = !has_let_go && !before.is_empty() && before != self.node;
        let rival = is_rival && !self.nodes.iter().any(|it| it == before);
        seat.rival = rival.then(|| (before.to_string(), cx.now.mono + RIVAL));
        let left = number(4).zip(number(5));
        let left = left.map(|(units, ms)| (units.unsigned_abs(), ms.unsigned_abs()));
        sources.collect(id, left, rival, cx);
        log::info!(target: CLUSTER, "collecting source={} epoch={epoch}", cx.stats[id].id);
        self.report(cx);
    }

    /// The reply to a renewal has come: so much of the budget was told, or the lease is not ours.
    fn renewed(
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
                sources.note_told(id, spent, cx);
            }
            None => {
                seat.lost(cx.now.mono);
                self.tell_role(id, sources, cx);
            }
        }
    }

    /// An entry was refused: the lease is not ours, or has run out.
    fn fenced(&mut self, id: SourceId, cx: &mut Context) {
        let seat = &mut self.seats[id.index()];
        seat.due = cx.now.mono;
        if let Some(cluster) = &mut cx.stats.cluster {
            cluster.fenced += 1;
        }
        log::warn!(target: CLUSTER, "entry refused source={}", cx.stats[id].id);
    }

    /// Lets a source go, so that another node takes it at once.
    fn release(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let Some(epoch) = self.seats[id.index()].held_epoch() else {
            return;
        };
        let seat = &mut self.seats[id.index()];
        seat.lost(cx.now.mono);
        seat.free_since = Some(cx.now.mono);
        seat.due = cx.now.mono + LEFT_TO_OTHERS;
        self.tell_role(id, sources, cx);
        self.send_release(id, epoch, sources, cx);
        log::info!(target: CLUSTER, "released source={} epoch={epoch}", cx.stats[id].id);
    }

    /// The end has begun: lets all sources go.
    pub fn shut_down(&mut self, sources: &mut Sources, cx: &mut Context) {
        for at in 0..self.seats.len() {
            self.release(SourceId(at as u16), sources, cx);
        }
        let nodes = self.keys.nodes();
        let words = [b"ZREM", nodes.as_bytes(), self.node.as_bytes()];
        if self.engine.is_up() {
            self.engine
                .send(Which::Commands, Command::Leave, &words, cx);
        }
        self.ends_since = Some(cx.now.mono);
    }

    /// Tells a source its role.
    fn tell_role(&mut self, id: SourceId, sources: &mut Sources, cx: &mut Context) {
        let role = self.seats[id.index()].role();
        if sources.role(id) == role {
            return;
        }
        sources.set_role(id, role, cx);
        let source = &cx.stats[id].id;
        match role {
            Role::Follower => log::info!(target: CLUSTER, "following source={source}"),
            Role::Waiting => log::warn!(target: CLUSTER, "lease ran out source={source}"),
            Role::Alone => {
                let why = quoted(self.engine.trouble().unwrap_or("left"));
                log::warn!(target: CLUSTER, "alone source={source} error={why}");
            }
            Role::Collector => log::info!(target: CLUSTER, "lease renewed source={source}"),
        }
    }

    /// An entry is of a newer format: this node leaves the cluster, and collects for itself.
    fn leave(&mut self, id: SourceId, version: u8, sources: &mut Sources, cx: &mut Context) {
        let source = &cx.stats[id].id;
        log::error!(target: CLUSTER, "newer format source={source} version={version}");
        if let Some(cluster) = &mut cx.stats.cluster {
            cluster.format = Some(version);
        }
        self.reading.give_up();
        for at in 0..self.seats.len() {
            let id = SourceId(at as u16);
            self.release(id, sources, cx);
            self.seats[at].hold = Hold::Alone;
            self.tell_role(id, sources, cx);
        }
        self.engine.fail("left, for entries of a newer format", cx);
        self.report(cx);
    }

    /// Writes down what metrics and health report.
    fn report(&mut self, cx: &mut Context) {
        let Some(cluster) = &mut cx.stats.cluster else {
            return;
        };
        cluster.set_up(self.engine.is_up(), self.engine.trouble(), cx.now);
        cluster
            .sources
            .resize_with(self.seats.len(), ClusterSource::default);
        for (status, seat) in cluster.sources.iter_mut().zip(&self.seats) {
            status.collects = seat.hold != Hold::Follows;
            status.epoch = seat.held_epoch().unwrap_or(seat.seen);
        }
    }
}

/// What the conductor passes on.
impl Cluster {
    /// Tells the other nodes what the sources have for them.
    pub fn relay(&mut self, sources: &mut Sources, history: &History, cx: &mut Context) {
        for at in 0..self.seats.len() {
            let id = SourceId(at as u16);
            if self.seats[at].collects() {
                sources.answer_asked(id, history, cx);
            }
        }
        while let Some((id, told)) = sources.next_told() {
            self.tell(id, told, cx);
        }
        // A list may have come into place.
        self.read_on(cx);
    }
}
