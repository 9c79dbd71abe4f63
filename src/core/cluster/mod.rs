//! The cluster: which node collects a source, and what the nodes tell each other.
//!
//! [`Cluster`] owns the [`Engine`](engine::Engine), one [`Lease`](lease::Lease) for each source, and the
//! entries that were read and not yet applied. A node that has the lease of a source collects, and tells the
//! others what it applies ([`publishing`]); the others apply the same ([`reading`]). Which node has a lease
//! is decided in [`leasing`]. This file passes on what happens, tells each source its role, and asks it what
//! to tell.
//!
//! A source knows its role, and not the cluster. The cluster knows no socket: the engine's connections are
//! driven like those to exchanges. Without a cluster in the configuration there is none of this.

mod engine;
mod lease;
mod leasing;
mod link;
mod publishing;
mod reading;
mod replies;
mod route;
mod scripts;
mod streams;
#[cfg(all(test, feature = "cluster"))]
mod tests;

use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::{Role, Sources};
use crate::core::stats::{ClusterSource, ClusterStatus};
use crate::core::{Event, Resolved};
use crate::log_targets::CLUSTER;
use crate::market::SourceId;
use crate::replication::HAS_CLUSTERS;
use crate::rng::Rng;
use crate::table::Key;
use crate::time::Mono;
use engine::Engine;
use lease::{Hold, Lease, Rival};
use link::EngineCommand;
use std::collections::VecDeque;
use std::time::Duration;
use streams::{StreamKey, Unread};

pub use engine::MOST_CONNECTIONS;

/// Time between two looks at a lease, two renewals, and two heartbeats.
const TICK: Duration = Duration::from_secs(1);

/// A wake-up that comes later than that shows that this process was paused, or the machine slept.
const AWAY: Duration = Duration::from_millis(1500);

/// How long the shutdown waits until the engine has taken the last commands.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// See the module's page.
pub struct Cluster {
    /// The engine, which owns the connections.
    pub engine: Engine,
    /// The name of this run of this node: `node#run`.
    run: String,
    /// By `SourceId`.
    leases: Vec<Lease>,
    /// Entries that were read and not applied.
    unread: VecDeque<Unread>,
    /// The streams in the read that is under way.
    streams: Vec<StreamKey>,
    /// True if a malformed entry was logged.
    has_logged_malformed: bool,
    /// The runs of nodes that live, the one that was seen last at the end.
    live: Vec<String>,
    beat_at: Mono,
    /// Since when this node has more than its share.
    excess_since: Option<Mono>,
    /// After the engine was down: until then, a free lease is left to the node that had it.
    settled_at: Mono,
    /// During the shutdown: until when this node waits for the engine.
    ends_at: Option<Mono>,
    /// True once that time has passed.
    is_over: bool,
}

/// The cluster, if there is one. Without the feature `cluster`, `get` always returns `None`.
pub struct OptionalCluster(pub Option<Box<Cluster>>);

impl OptionalCluster {
    /// The cluster.
    #[inline]
    pub fn get(&self) -> Option<&Cluster> {
        self.0.as_deref().filter(|_| HAS_CLUSTERS)
    }

    /// The cluster.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut Cluster> {
        self.0.as_deref_mut().filter(|_| HAS_CLUSTERS)
    }
}

impl Cluster {
    /// The cluster of the configuration, if there is one. Keys of its connections begin at `first`.
    pub fn new(first: usize, sources: &mut Sources, cx: &mut Context) -> Option<Box<Cluster>> {
        let config = cx.config.cluster.clone().filter(|_| HAS_CLUSTERS)?;
        let (run, now) = (format!("{:08x}", cx.boot as u32), cx.now.mono);
        let node = config.node.unwrap_or_else(|| format!("node-{run}"));
        let rng = Rng::new(cx.boot ^ 0x00C1_0573);
        let mut cluster = Box::new(Cluster {
            engine: Engine::new(config.url, &config.prefix, first, rng, now),
            run: format!("{node}#{run}"),
            leases: Vec::new(),
            unread: VecDeque::new(),
            streams: Vec::new(),
            has_logged_malformed: false,
            live: Vec::new(),
            beat_at: now,
            excess_since: None,
            settled_at: now,
            ends_at: None,
            is_over: false,
        });
        cx.stats.cluster = Some(ClusterStatus { node: node.into(), ..ClusterStatus::default() });
        cluster.reconfigure(sources, cx);
        Some(cluster)
    }

    /// The sources, those that have ended included.
    fn ids(&self) -> impl DoubleEndedIterator<Item = SourceId> + use<> {
        (0..self.leases.len() as u16).map(SourceId)
    }

    /// Takes in sources that have come or gone.
    pub fn reconfigure(&mut self, sources: &mut Sources, cx: &mut Context) {
        let has_left = cx.stats.cluster.get_or_insert_default().format.is_some();
        self.leases.resize_with(cx.stats.sources.len(), Lease::default);
        for id in self.ids() {
            let lease = &mut self.leases[id.index()];
            lease.due = cx.now.mono;
            if has_left {
                // After it left the cluster, this node also collects sources that a reload adds.
                lease.hold = Hold::Alone;
            }
            if cx.stats[id].has_ended && lease.collects() {
                self.release(id, sources, cx);
            }
        }
        self.update_sources(sources, cx);
    }

    /// When [`Cluster::handle_timeout`] is wanted.
    pub fn due(&self) -> Mono {
        if let Some(ends_at) = self.ends_at {
            return if self.is_over { Mono::NEVER } else { ends_at };
        }
        let is_up = self.engine.is_up;
        let of_lease = |lease: &Lease| {
            let asks = if is_up && !lease.is_asking { lease.due } else { Mono::NEVER };
            match lease.hold {
                Hold::Collects { until, .. } => until.min(asks),
                _ => asks,
            }
        };
        let beat = if is_up { self.beat_at } else { Mono::NEVER };
        let leases = self.leases.iter().map(of_lease);
        leases.chain([beat]).fold(self.engine.due(), Mono::min)
    }

    /// True if the engine has been told of the end, or need not be.
    pub fn has_told_end(&self) -> bool {
        self.ends_at.is_none() || self.is_over || self.engine.has_sent()
    }

    /// Takes in what happened to a connection.
    pub fn handle(&mut self, key: Key, event: Event<'_>, sources: &mut Sources, cx: &mut Context) {
        let Some(which) = self.engine.which(key) else {
            return;
        };
        match self.engine.upstream.handle(which as usize, key, event, cx) {
            Ok(Some(Event::Connected)) => self.engine.opened(which, cx),
            Ok(Some(Event::Sent(count))) => self.engine.link(which).sent_bytes(count),
            Ok(Some(Event::Received(bytes))) => {
                self.engine.link(which).inbox.extend_from_slice(bytes);
                self.take_replies(which, key, sources, cx);
            }
            Ok(_) => {}
            Err(ended) => self.engine.fail(&ended.to_string(), cx),
        }
        self.update_sources(sources, cx);
    }

    /// Takes in the addresses of the engine's host, or why there are none.
    pub fn resolved(&mut self, resolved: Resolved, sources: &mut Sources, cx: &mut Context) {
        self.engine.resolved(resolved, cx);
        self.handle_timeout(sources, cx);
    }

    /// Time has passed: leases run out, and what is due is sent.
    pub fn handle_timeout(&mut self, sources: &mut Sources, cx: &mut Context) {
        if let Some(ends_at) = self.ends_at {
            self.is_over = ends_at <= cx.now.mono;
            return;
        }
        let late = cx.now.mono.since(self.due());
        let was_away = late > AWAY;
        if was_away {
            // What came meanwhile has yet to be read.
            self.engine.postpone(late + AWAY);
        }
        self.engine.handle_timeout(cx);
        self.update_sources(sources, cx);
        if !self.engine.is_up {
            return;
        }
        let now = cx.now.mono;
        if self.beat_at <= now {
            self.beat_at = now + TICK;
            self.engine.beat(&self.run, cx);
            self.spread(sources, cx);
        }
        for id in self.ids() {
            let lease = &mut self.leases[id.index()];
            if cx.stats[id].has_ended {
                lease.due = Mono::NEVER;
                continue;
            }
            if was_away && lease.hold == Hold::Follows {
                // This process was away: what it follows may have moved on.
                sources.set_role(id, Role::Follower, cx);
            }
            if lease.due <= now && !lease.is_asking {
                self.tend(id, sources, cx);
            }
        }
    }

    /// Lets leases run out by this node's own clock, and lets the sources know, and the metrics.
    fn update_sources(&mut self, sources: &mut Sources, cx: &mut Context) {
        let (is_up, now) = (self.engine.is_up, cx.now.mono);
        for id in self.ids() {
            let lease = &mut self.leases[id.index()];
            lease.expire(is_up, now);
            let has_left = |it: &mut Rival| it.has_left(&self.live, now);
            if lease.rival.take_if(has_left).is_some() && lease.collects() {
                sources[id].set_spenders(1);
            }
            self.tell_role(id, sources, cx);
        }
        let cluster = cx.stats.cluster.get_or_insert_default();
        cluster.set_up(is_up, self.engine.trouble.as_deref(), cx.now);
        cluster.sources.resize_with(self.leases.len(), ClusterSource::default);
        for (status, lease) in cluster.sources.iter_mut().zip(&self.leases) {
            status.collects = lease.hold != Hold::Follows;
            status.epoch = lease.held_epoch().unwrap_or(lease.seen);
            status.lag_ms = status.lag_ms.filter(|_| !status.collects);
        }
    }

    /// The end has begun: lets all sources go.
    pub fn shut_down(&mut self, sources: &mut Sources, cx: &mut Context) {
        self.ends_at = Some(cx.now.mono + END_TIMEOUT);
        for id in self.ids() {
            self.release(id, sources, cx);
        }
        let nodes = self.engine.key(SourceId::ENGINE, "nodes", cx);
        let words = [b"ZREM", nodes.as_bytes(), self.run.as_bytes()];
        if self.engine.is_up {
            self.engine.send(EngineCommand::Other, &words, cx);
        }
    }

    /// An entry is of a newer format: this node leaves the cluster, and collects for itself.
    fn leave(&mut self, id: SourceId, version: u8, sources: &mut Sources, cx: &mut Context) {
        let source = &cx.stats[id].id;
        log::error!(target: CLUSTER, "newer format source={source} version={version}");
        cx.stats.cluster.get_or_insert_default().format = Some(version);
        self.unread.clear();
        // The leases run out. A node that then takes one halves its budget, as this node does.
        self.leases.iter_mut().for_each(|lease| lease.hold = Hold::Alone);
        self.engine.fail("this node has left the cluster: entries have a newer format", cx);
        self.engine.retry_at = Mono::NEVER;
        self.update_sources(sources, cx);
    }

    /// Tells the other nodes what the sources have for them.
    pub fn relay(&mut self, sources: &mut Sources, history: &History, cx: &mut Context) {
        for id in self.ids() {
            if self.leases[id.index()].collects() {
                sources[id].answer_request(history, cx);
            }
            while let Some(told) = sources[id].next_outbound() {
                self.tell(id, told, cx);
            }
        }
        // A market list may have been applied. Then the stream of its source can be read.
        self.read_on(cx);
        self.engine.open_connections(cx);
    }
}
