//! The cluster: which node collects a source, and what the nodes tell each other.
//!
//! [`Cluster`] owns the [`Engine`](engine::Engine), one [`Seat`](seat::Seat) for each source, and the
//! entries that were read and not yet applied ([`Unread`]). A node that has the lease of a source
//! collects, and tells the others what it applies ([`publishing`]); the others apply the same ([`reading`]).
//! Which node has a lease is decided in [`leases`]. This file passes on what happens.
//!
//! It tells a source its role, and asks it what to tell; no source knows it. It knows no socket: the engine's
//! connections are driven like those to exchanges. Without a cluster in the configuration there is none of
//! this.

mod engine;
mod leases;
mod link;
mod publishing;
mod reading;
mod replies;
mod route;
mod scripts;
mod seat;
#[cfg(all(test, feature = "cluster"))]
mod tests;
mod unread;

use crate::config::Config;
use crate::core::Event;
use crate::core::context::Context;
use crate::core::history::History;
use crate::core::sources::{Role, Sources};
use crate::core::stats::{ClusterSource, ClusterStatus};
use crate::log_targets::CLUSTER;
use crate::market::SourceId;
use crate::replication::HAS_CLUSTERS;
use crate::rng::Rng;
use crate::table::Key;
use crate::time::Mono;
use engine::{Engine, Which};
use link::EngineCommand;
use scripts::Keys;
use seat::{Hold, Rival, Seat};
use std::net::SocketAddr;
use std::time::Duration;
use unread::Unread;

pub use engine::MOST_CONNECTIONS;

/// Between two looks at a lease, two renewals, and two signs of life.
const TICK: Duration = Duration::from_secs(1);

/// How long the end waits for the engine to be told.
const FAREWELL: Duration = Duration::from_millis(500);

/// See the module's page.
pub struct Cluster {
    /// The engine, which owns the connections.
    pub engine: Engine,
    keys: Keys,
    /// The name of this node, and that of this run of it.
    node: String,
    run: String,
    /// By `SourceId`.
    seats: Vec<Seat>,
    reading: Unread,
    /// The runs of nodes that live, the one that was seen last at the end.
    live: Vec<String>,
    beat_at: Mono,
    /// Since when this node has more than its share.
    excess_since: Option<Mono>,
    /// Until then, those who collected before the engine went away come first.
    settled_at: Mono,
    rng: Rng,
    /// When the end has begun.
    ends_since: Option<Mono>,
}

/// The cluster, if there is one. In a build without clusters there is none, and the compiler knows.
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
            reading: Unread::default(),
            live: Vec::new(),
            beat_at: cx.now.mono,
            excess_since: None,
            settled_at: cx.now.mono,
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
        for at in 0..cx.stats.sources.len() {
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
                let role = self.seats[at].role(self.engine.is_up());
                if sources[id].role() != role {
                    sources[id].set_role(role, cx);
                }
            }
            self.seats[at].has_ended = has_ended;
        }
        self.report(cx);
    }

    /// When [`Cluster::handle_timeout`] is wanted.
    pub fn due(&self) -> Option<Mono> {
        if self.reading.is_too_old || self.ends_since.is_some() {
            return self.ends_since.map(|since| since + FAREWELL);
        }
        let of_seat = |seat: &Seat| match seat.hold {
            Hold::Collects { until, .. } if seat.is_asking || !self.engine.is_up() => until,
            Hold::Collects { until, .. } => seat.due.min(until),
            _ if seat.is_asking || !self.engine.is_up() => Mono::NEVER,
            _ => seat.due,
        };
        let seats = self.seats.iter().filter(|it| !it.has_ended).map(of_seat).min();
        let beat = if self.engine.is_up() { self.beat_at } else { Mono::NEVER };
        Some(self.engine.due().min(seats.unwrap_or(Mono::NEVER)).min(beat))
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
            Event::Connected | Event::Secured => self.engine.connected(which, key, cx),
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

    /// Takes in the addresses of the engine's host, or why there are none.
    pub fn resolved(&mut self, addresses: Result<Vec<SocketAddr>, String>, cx: &mut Context) {
        self.engine.resolved(addresses, cx);
        let _ = self.engine.handle_timeout(cx);
    }

    /// Time has passed: leases run out, and what is due is sent.
    pub fn handle_timeout(&mut self, sources: &mut Sources, cx: &mut Context) {
        if self.reading.is_too_old || self.ends_since.is_some() {
            return;
        }
        if self.engine.handle_timeout(cx) {
            self.rejoin(sources, cx);
        }
        self.expire(sources, cx);
        if !self.engine.is_up() {
            return;
        }
        let now = cx.now.mono;
        if self.beat_at <= now {
            self.beat_at = now + TICK;
            self.engine.beat(self.keys.nodes(), &self.run, cx);
            self.spread(sources, cx);
        }
        for at in 0..self.seats.len() {
            let seat = &self.seats[at];
            if seat.due <= now && !seat.is_asking && !seat.has_ended {
                self.tend(SourceId(at as u16), sources, cx);
            }
        }
    }

    /// This process was away: what it follows may have moved on.
    fn rejoin(&mut self, sources: &mut Sources, cx: &mut Context) {
        for (at, seat) in (0..).zip(&self.seats) {
            if seat.hold == Hold::Follows && self.engine.is_up() && !seat.has_ended {
                sources[SourceId(at)].set_role(Role::Follower, cx);
            }
        }
    }

    /// Lets leases run out by this node's own clock, and lets sources know.
    fn expire(&mut self, sources: &mut Sources, cx: &mut Context) {
        let is_up = self.engine.is_up();
        // The connection has ended: no reply comes.
        self.reading.is_sent &= is_up;
        for at in 0..self.seats.len() {
            let (id, seat) = (SourceId(at as u16), &mut self.seats[at]);
            seat.is_asking &= is_up;
            seat.fetches_list &= is_up;
            seat.expire(is_up, cx.now.mono);
            let collects = seat.collects();
            let has_left = |it: &mut Rival| it.has_left(&self.live, cx.now.mono);
            if seat.rival.take_if(has_left).is_some() && collects {
                sources[id].budget().use_whole(cx.now.mono);
            }
            self.tell_role(id, sources, cx);
        }
        self.report(cx);
    }

    /// The end has begun: lets all sources go.
    pub fn shut_down(&mut self, sources: &mut Sources, cx: &mut Context) {
        self.ends_since = Some(cx.now.mono);
        for at in 0..self.seats.len() {
            self.release(SourceId(at as u16), sources, cx);
        }
        let nodes = self.keys.nodes();
        let words = [b"ZREM", nodes.as_bytes(), self.run.as_bytes()];
        if self.engine.is_up() {
            self.engine.send(Which::Commands, EngineCommand::Other, &words, cx);
        }
    }

    /// An entry is of a newer format: this node leaves the cluster, and collects for itself.
    fn leave(&mut self, id: SourceId, version: u8, sources: &mut Sources, cx: &mut Context) {
        let source = &cx.stats[id].id;
        log::error!(target: CLUSTER, "newer format source={source} version={version}");
        if let Some(cluster) = &mut cx.stats.cluster {
            cluster.format = Some(version);
        }
        self.reading = Unread::default();
        self.reading.is_too_old = true;
        for at in 0..self.seats.len() {
            // Leases run out: whoever takes one then keeps to half of the budget, as this node does.
            self.seats[at].hold = Hold::Alone;
            self.tell_role(SourceId(at as u16), sources, cx);
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
        cluster.sources.resize_with(self.seats.len(), ClusterSource::default);
        for (status, seat) in cluster.sources.iter_mut().zip(&self.seats) {
            status.collects = seat.hold != Hold::Follows;
            status.epoch = seat.held_epoch().unwrap_or(seat.seen);
            status.lag_ms = status.lag_ms.filter(|_| !status.collects);
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
                sources[id].answer_asked(history, cx);
            }
            while let Some(told) = sources[id].next_told() {
                self.tell(id, told, cx);
            }
        }
        // A list may have come into place.
        self.read_on(cx);
    }
}
