//! The cluster: which node collects a source, and what the nodes tell each other.
//!
//! [`Cluster`] owns the [`Engine`](engine::Engine), one [`Lease`](lease::Lease) for each source, and the
//! entries that were read and not yet applied. A node that has the lease of a source collects, and tells the
//! others what it applies ([`Cluster::relay`]). The others apply the same entries ([`reading`]). [`leasing`]
//! decides which node has a lease. This file passes on what happens, tells each source its role, and asks
//! each source what to tell the other nodes.
//!
//! A source knows its role, and not the cluster. The cluster knows no socket: the engine's connections are
//! driven like connections to exchanges. Without a cluster in the configuration, there is no [`Cluster`].

mod engine;
mod lease;
mod leasing;
mod link;
mod reading;
mod scripts;
#[cfg(all(test, feature = "cluster"))]
mod tests;

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::{Outbound, Role, Sources};
use crate::core::stats::ClusterStatus;
use crate::core::{Event, Resolved};
use crate::log_targets::CLUSTER;
use crate::market::SourceId;
use crate::replication::{Entry, HAS_CLUSTERS, SeriesPart, Update, encode};
use crate::rng::Rng;
use crate::table::Key;
use crate::time::Mono;
use engine::{COMMANDS, Engine};
use lease::{Lease, Nodes, node_of};
use link::{EngineCommand, StreamKey, Unread};
use scripts::Script;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Display;
use std::time::Duration;

pub use engine::MOST_CONNECTIONS;

/// How long a free lease is left to the node that had it, after the engine is up again: by then, most nodes
/// have tried to connect.
const SETTLING: Duration = Duration::from_millis(1100);

/// How long the shutdown waits until the engine has taken the last commands.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// If this node's clock differs from the engine's by more than this, the difference is reported.
const CLOCK_OFF_MS: i64 = 2000;

/// Requests for candles that stay in the engine.
const MOST_ASKS: &[u8] = b"256";

/// Longest entry that is not split: a page of 5,000 candles has some 400 KB.
const MOST_ENTRY: usize = 1024 * 1024;

/// See the module's page.
pub struct Cluster {
    /// The engine, which owns the connections.
    pub engine: Engine,
    /// The name of this run of this node: `node#run`. The names of a node's runs sort by their starts.
    run: String,
    /// By `SourceId`.
    leases: Vec<Lease>,
    /// Entries that were read and not applied.
    unread: VecDeque<Unread>,
    /// The streams in the read that is under way.
    streams: Vec<StreamKey>,
    /// Until when nothing is read, because the key of a stream held something else.
    reads_from: Mono,
    /// The nodes, by the reply to the last heartbeat.
    nodes: Nodes,
    /// When the first heartbeat was answered.
    joined_at: Option<Mono>,
    beat_at: Mono,
    /// From this time on, this node may give another source away because it has more than others.
    gives_from: Mono,
    /// After the engine was down: until then, a free lease is left to the node that had it.
    settled_at: Mono,
    /// During the shutdown: until when this node waits for the engine. `NEVER`: the wait is over.
    ends_at: Option<Mono>,
}

/// The cluster, if there is one. Without the feature `cluster`, `get` always returns `None`.
pub struct OptionalCluster(pub Option<Box<Cluster>>);

impl OptionalCluster {
    pub fn get(&self) -> Option<&Cluster> {
        self.0.as_deref().filter(|_| HAS_CLUSTERS)
    }

    pub fn get_mut(&mut self) -> Option<&mut Cluster> {
        self.0.as_deref_mut().filter(|_| HAS_CLUSTERS)
    }
}

impl Cluster {
    /// The cluster of the configuration, if there is one.
    pub fn new(sources: &mut Sources, cx: &mut Context) -> Option<Box<Cluster>> {
        let config = cx.config.cluster.clone().filter(|_| HAS_CLUSTERS)?;
        let now = cx.now.mono;
        let run = format!("{:012x}{:04x}", cx.now.unix.0, cx.boot as u16);
        let node = config.node.clone().unwrap_or_else(|| format!("node-{run}"));
        let rng = Rng::new(cx.boot ^ 0x00C1_0573);
        let mut cluster = Box::new(Cluster {
            engine: Engine::new(&config, rng, now),
            run: format!("{node}#{run}"),
            leases: Vec::new(),
            unread: VecDeque::new(),
            streams: Vec::new(),
            reads_from: now,
            nodes: Nodes::default(),
            joined_at: None,
            beat_at: now,
            gives_from: now,
            settled_at: now,
            ends_at: None,
        });
        cx.stats.cluster = Some(ClusterStatus { node: node.into(), ..ClusterStatus::default() });
        cluster.reconfigure(sources, cx);
        Some(cluster)
    }

    /// The sources, those that have ended included.
    fn ids(&self) -> impl Iterator<Item = SourceId> + use<> {
        (0..self.leases.len() as u16).map(SourceId)
    }

    /// Takes in sources that have come or gone.
    pub fn reconfigure(&mut self, sources: &mut Sources, cx: &mut Context) {
        let now = cx.now.mono;
        self.leases.resize_with(cx.stats.sources.len(), || Lease::unused(now));
        let status = cx.stats.cluster.get_or_insert_default();
        status.sources.resize_with(self.leases.len(), Default::default);
        for id in self.ids() {
            // Another market may be tracked now: the list is read again.
            let lease = &mut self.leases[id.index()];
            (lease.due, lease.list) = (now, None);
            if cx.stats[id].has_ended {
                self.release(id, None, sources, cx);
            }
        }
        self.update_sources(sources, cx);
    }

    /// When [`Cluster::handle_timeout`] is wanted.
    pub fn due(&self) -> Mono {
        if let Some(ends_at) = self.ends_at {
            return ends_at;
        }
        let asks = self.leases.iter().map(|it| it.due).chain([self.beat_at]);
        let asks = asks.filter(|_| self.engine.is_up);
        let all = self.leases.iter().map(|it| it.changes_at).chain(asks);
        all.fold(self.engine.due(), Mono::min)
    }

    /// True if the engine has got the last commands of the shutdown, or need not get them.
    pub fn has_told_end(&self) -> bool {
        let has_sent = !self.engine.is_up || self.engine.links[COMMANDS].out.is_empty();
        self.ends_at.is_none_or(|at| at == Mono::NEVER) || has_sent
    }

    /// Takes in what happened to a connection.
    pub fn handle(
        &mut self,
        conn: usize,
        key: Key,
        event: Event<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        match self.engine.upstream.handle(conn, key, event, cx) {
            Ok(Some(Event::Connected)) => {
                self.engine.opened(conn, cx);
                if conn == COMMANDS {
                    self.engine.beat(&self.run, cx);
                }
            }
            Ok(Some(Event::Sent(count))) => self.engine.links[conn].sent_bytes(count),
            Ok(Some(Event::Received(bytes))) => {
                self.engine.links[conn].inbox.extend_from_slice(bytes);
                self.take_replies(conn, key, sources, cx);
            }
            Ok(_) => {}
            Err(ended) => self.engine.fail(&ended.to_string(), cx),
        }
        self.update_sources(sources, cx);
    }

    /// Takes in the addresses of the engine's host, or why there are none.
    pub fn resolved(&mut self, resolved: Resolved, sources: &mut Sources, cx: &mut Context) {
        self.engine.upstream.resolved(resolved, cx);
        self.handle_timeout(sources, cx);
    }

    /// Time has passed: leases run out, and what is due is sent.
    pub fn handle_timeout(&mut self, sources: &mut Sources, cx: &mut Context) {
        if let Some(ends_at) = self.ends_at {
            let is_over = ends_at <= cx.now.mono && !cx.is_behind;
            self.ends_at = Some(if is_over { Mono::NEVER } else { ends_at });
            return;
        }
        let (late, away) = (cx.now.mono.since(self.due()), self.engine.lease / 2);
        // This process was paused, or the machine slept.
        let was_away = late > away;
        if was_away {
            // What came meanwhile has yet to be read.
            self.engine.postpone(late + away);
            self.leases.iter_mut().for_each(|it| it.heard_at = it.heard_at + late);
        }
        self.engine.handle_timeout(cx);
        self.update_sources(sources, cx);
        if !self.engine.is_up {
            return;
        }
        let now = cx.now.mono;
        if self.beat_at <= now {
            self.beat_at = now + self.engine.tick();
            self.engine.beat(&self.run, cx);
        }
        for id in self.ids() {
            if was_away && sources[id].role() == Role::Follower {
                // The source may have moved on while this process was away: its newest candles are due.
                sources[id].refresh_candles(cx);
            }
            if self.leases[id.index()].due <= now {
                self.tend(id, sources, cx);
            }
        }
    }

    /// The machine slept for `by`, or its wall clock was set: the monotonic clock may have stood still. So
    /// leases end earlier by this clock.
    pub fn slept(&mut self, by: Duration, sources: &mut Sources, cx: &mut Context) {
        self.engine.slept(by);
        for lease in &mut self.leases {
            if let Some(held) = &mut lease.held {
                (held.until, lease.due) = (held.until - by, cx.now.mono);
            }
        }
        self.handle_timeout(sources, cx);
    }

    /// Lets leases run out by this node's own clock, and tells the sources and the metrics.
    fn update_sources(&mut self, sources: &mut Sources, cx: &mut Context) {
        for id in self.ids() {
            self.tell_role(id, sources, cx);
        }
        let format = self.leases.iter().find_map(|it| it.format);
        let status = cx.stats.cluster.get_or_insert_default();
        (status.is_up, status.format) = (self.engine.is_up, format);
        let since = status.down.take().map_or(cx.now.unix, |(since, _)| since);
        status.down = self.engine.trouble.clone().map(|why| (since, why));
    }

    /// The shutdown has begun: lets all sources go.
    pub fn shut_down(&mut self, sources: &mut Sources, cx: &mut Context) {
        self.ends_at = Some(cx.now.mono + END_TIMEOUT);
        for id in self.ids() {
            self.release(id, None, sources, cx);
        }
        self.leave_nodes(cx);
    }

    /// Takes this run off the list of nodes, so that it does not count as lost.
    fn leave_nodes(&mut self, cx: &mut Context) {
        let nodes = self.engine.key(SourceId::ENGINE, "nodes", cx);
        let words = [b"ZREM", nodes.as_bytes(), self.run.as_bytes()];
        self.engine.send(EngineCommand::Other, &words, cx);
    }

    /// Takes in the runs of nodes, and how long ago each has given a sign of life.
    fn note_nodes(&mut self, runs: &[(String, i64)], cx: &mut Context) {
        let now = cx.now.mono;
        let joined_ms = now.since(*self.joined_at.get_or_insert(now)).as_millis() as i64;
        let own = node_of(&self.run);
        // Runs of this name that started before, and have given a sign of life since this one joined.
        let is_twin = |(run, age): &&(String, i64)| {
            node_of(run) == own && **run < *self.run && *age < joined_ms
        };
        if runs.iter().any(|it| is_twin(&it)) {
            log::error!(target: CLUSTER, "name taken node={own}");
            let taken_name = Some(own.into());
            self.leave_nodes(cx);
            self.run = self.run.replacen('#', &format!("~{joined_ms:x}#"), 1);
            let status = cx.stats.cluster.get_or_insert_default();
            (status.taken_name, status.node) = (taken_name, node_of(&self.run).into());
        }
        let most_ms = self.engine.lease.as_millis() as i64;
        let (live, lost): (Vec<_>, Vec<_>) = runs.iter().partition(|(_, age)| *age <= most_ms);
        let names = |runs: Vec<&(String, i64)>| -> BTreeSet<String> {
            runs.into_iter().map(|(run, _)| node_of(run).to_string()).collect()
        };
        let (mut live, mut lost) = (names(live), names(lost));
        live.insert(node_of(&self.run).to_string());
        // If a node was started again, its former run has ended.
        lost.retain(|node| !live.contains(node));
        // If the engine has lost its data, the nodes come back into its list one after the other.
        let before = if self.engine.is_settled(now) { 0 } else { self.nodes.seen };
        self.nodes = Nodes { seen: before.max(live.len() + lost.len()), live, lost };
        let off_ms = cx.now.unix.0.saturating_sub(self.engine.time_ms(now));
        cx.stats.cluster.get_or_insert_default().clock_off_ms =
            Some(off_ms).filter(|off| off.abs() > CLOCK_OFF_MS);
    }

    /// Tells the other nodes what the sources have for them.
    pub fn relay(&mut self, sources: &mut Sources, history: &History, cx: &mut Context) {
        for id in self.ids() {
            if sources[id].role() == Role::Collector {
                sources[id].answer_request(history, cx);
            }
            while let Some(told) = sources[id].next_outbound() {
                self.tell(id, told, cx);
            }
        }
        // A market list may have been applied. Then the stream of its source can be read.
        self.read_on(cx);
        self.engine.upstream.open(cx);
    }

    /// Tells the other nodes what a source has for them.
    fn tell(&mut self, id: SourceId, told: Outbound, cx: &mut Context) {
        let is_told = match told {
            Outbound::Entry(entry) => self.publish(id, *entry, cx),
            Outbound::List(bytes) => self.epoch(id, cx).map(|epoch| {
                self.engine.run(Script::List, id, &[&self.run, &epoch], Some(&bytes), cx);
            }),
            Outbound::Ask(series) => self.ask(id, &series, cx),
        };
        let status = cx.stats.cluster.get_or_insert_default();
        match is_told {
            Some(()) => status.published += 1,
            None => status.dropped += 1,
        }
    }

    fn publish(&mut self, id: SourceId, mut entry: Entry, cx: &mut Context) -> Option<()> {
        let epoch = self.epoch(id, cx)?;
        entry.head.epoch = epoch;
        let (is_first, is_last) = match entry.body {
            Update::Quotes { is_first, is_last, .. } => (is_first, is_last),
            _ => (false, false),
        };
        let bytes = encode(&entry);
        if bytes.len() > MOST_ENTRY
            && let Some(second) = entry.split()
        {
            self.publish(id, entry, cx)?;
            return self.publish(id, second, cx);
        }
        if !self.engine.has_room(bytes.len()) {
            return None;
        }
        let lease = &mut self.leases[id.index()];
        lease.told_at = cx.now.mono;
        let keep = lease.keep(bytes.len(), is_first);
        let mark = u8::from(is_first) | u8::from(is_last) << 1;
        let words: [&dyn Display; 4] = [&self.run, &epoch, &keep, &mark];
        self.engine.run(Script::Publish, id, &words, Some(&bytes), cx);
        Some(())
    }

    /// The epoch under which this node may publish now.
    fn epoch(&self, id: SourceId, cx: &Context) -> Option<u64> {
        let epoch = self.leases[id.index()].epoch(cx.now.mono);
        epoch.filter(|_| self.engine.is_up)
    }

    fn ask(&mut self, id: SourceId, series: &SeriesPart, cx: &mut Context) -> Option<()> {
        let bytes = encode(series);
        let follows = self.leases[id.index()].held.is_none();
        if !follows || !self.engine.has_room(bytes.len()) {
            return None;
        }
        let key = self.engine.key(id, "ask", cx);
        let words: [&[u8]; 8] =
            [b"XADD", key.as_bytes(), b"MAXLEN", b"~", MOST_ASKS, b"*", b"e", &bytes];
        self.engine.send(EngineCommand::Other, &words, cx);
        Some(())
    }
}
