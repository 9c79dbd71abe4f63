//! The core: everything that is decided, and nothing that is done.
//!
//! [`Core`] is the conductor. It owns the clients, the sources, the market, the history and the
//! figures, hands each event to the part that owns it, and collects actions and the next deadline: it
//! is told what happened and what time it is ([`Core::handle`], [`Core::handle_timeout`]), and
//! answers with what is to be done ([`Core::poll_action`], [`Core::outgoing`],
//! [`Core::poll_timeout`]). So the whole of it runs in a test, in virtual time.
//!
//! A part borrows what it works on through a `Context`; it never calls another part. What a client
//! needs of a source or of the history it leaves as a wish, which the conductor grants.
//!
//! It never touches a socket, a file or a clock, and no call takes long: what takes long is done
//! in slices by [`Core::work`], one a call.

pub mod api;
mod clients;
mod context;
mod event;
#[cfg(feature = "sqlite")]
mod history;
#[cfg(not(feature = "sqlite"))]
#[path = "history_off.rs"]
mod history;
mod lending;
mod next_wake;
mod sources;
mod stats;

pub use crate::durations::Endpoint;
pub use event::{Action, Broken, Census, CloseReason, Event, ProcessFacts, Service};
pub use stats::{SourceState, SourceStatus, Status};

use crate::config::Config;
use crate::demo::Demo;
use crate::history::Answer;
use crate::http::Outgoing;
use crate::market::{Market, SourceId};
use crate::rng::Rng;
use crate::table::{Key, Table};
use crate::time::{Mono, Now};
use api::reasons::HealthLog;
use clients::{Clients, SWEEP, SWEEP_PAUSE};
use context::Context;
use history::Archive;
use next_wake::{NEVER, NextWake};
use sources::{Failover, Poller};
use std::cell::Cell;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Clients above the cap that are told so at once; above that, connections are dropped.
pub const LOBBY: usize = 64;

/// Connections to the demo exchange: our own, and a few of the curious.
pub const DEMO_CLIENTS: usize = 32;

/// A connection to an exchange: whose it is, and which of its connections.
#[derive(Debug)]
struct Upstream {
    source: SourceId,
    lane: usize,
}

/// See the module's page.
pub struct Core {
    config: Config,
    clients: Clients,
    sources: Sources,
    market: Market,
    history: Archive,
    stats: Status,
    health: HealthLog,
    /// What those above want next, where that is known.
    next_wake: Cell<Option<NextWake>>,
    /// The kind of long work that is next.
    next_slice: usize,
    /// What the wall clock shows when the monotonic one is zero, in milliseconds.
    wall_zero: i64,
    actions: VecDeque<Action>,
    /// The time of the last call.
    now: Now,
    /// When the end comes in any case.
    stop_at: Option<Mono>,
    clients_done: bool,
    finished: bool,
}

/// The exchanges.
struct Sources {
    pollers: Vec<Poller>,
    connections: Table<Upstream>,
    /// The one behind the poller that worked last.
    worked: usize,
    failover: Failover,
}

impl Core {
    /// A core that polls and serves what the configuration says. `boot` tells this run's versions
    /// from those of another, and seeds the jitter.
    ///
    /// # Panics
    /// When a source names a dialect that does not exist: the configuration has been checked.
    pub fn new(
        config: Config,
        demo: Option<Demo>,
        facts: fn() -> ProcessFacts,
        boot: u64,
        now: Now,
    ) -> Core {
        // One that reconnects holds two places until the driver has let the old one go.
        let upstreams = 2 * config.limits.lanes_per_source * config.sources.len();
        let mut market = Market::new(&config);
        for at in 0..config.sources.len() {
            market.charts.doubt_clock(SourceId(at as u16), true);
        }
        let mut rng = Rng::new(boot);
        let ids = (0..config.sources.len()).map(|at| SourceId(at as u16));
        let pollers = ids
            .map(|id| Poller::new(id, &config, rng.next_u64(), now))
            .collect();
        let stats = Status::new(config.sources.iter().map(|source| &*source.id), now);
        let mut core = Core {
            clients: Clients::new(&config, demo, facts, boot, (upstreams, now.mono)),
            sources: Sources {
                pollers,
                connections: Table::new(upstreams),
                worked: 0,
                failover: Failover::default(),
            },
            health: HealthLog::new(&stats, &market.quotes),
            history: Archive::new(now),
            config,
            market,
            stats,
            next_wake: Cell::new(None),
            next_slice: 0,
            wall_zero: lending::wall_zero(now),
            actions: VecDeque::new(),
            now,
            stop_at: None,
            clients_done: false,
            finished: false,
        };
        core.handle_timeout(now);
        core
    }

    /// Takes in a client that counts for no address. `None`: there is no room even to refuse it.
    pub fn accept(&mut self, service: Service, now: Now) -> Option<Key> {
        self.take_in(None, service, now)
    }

    /// The same for a client that counts for its address, where that has a cap.
    pub fn accept_from(&mut self, peer: IpAddr, service: Service, now: Now) -> Option<Key> {
        self.take_in(Some(peer), service, now)
    }

    fn take_in(&mut self, peer: Option<IpAddr>, service: Service, now: Now) -> Option<Key> {
        self.set_time(now);
        self.with_clients(now, |clients, cx| clients.accept(peer, service, cx))
    }

    /// Tells that the socket of a connection has been let go: the answer to [`Action::Close`].
    pub fn closed(&mut self, key: Key) {
        self.sources.connections.remove(key);
        self.clients.closed(key, &self.config, &mut self.stats);
        // Nobody is left to wait for: the end need not wait for the next deadline.
        self.clients_done |= self.stop_at.is_some() && self.stats.http.open == 0;
        self.end();
    }

    /// Tells what happened to a connection. A key that is gone is no fault: the event was late.
    pub fn handle(&mut self, key: Key, event: Event<'_>, now: Now) {
        self.set_time(now);
        let Core {
            clients,
            config,
            market,
            stats,
            actions,
            ..
        } = self;
        if let Some(session) = clients.sessions.get_mut(key) {
            let mut cx = Context {
                config,
                market,
                stats,
                actions,
                now,
            };
            clients.shared.handle(key, session, event, &mut cx);
            self.grant_wishes(now);
        } else if let Some(&Upstream { source, lane }) = self.sources.connections.get(key) {
            let ended = self.with_source(source, |poller, connections, desk| {
                poller.handle(lane, key, event, connections, desk, now)
            });
            if ended {
                self.wake_clients(now);
            }
        }
    }

    /// Tells what the look-up of a source's name came to.
    pub fn resolved(
        &mut self,
        source: SourceId,
        addresses: Result<Vec<SocketAddr>, String>,
        now: Now,
    ) {
        self.with_source(source, |poller, connections, desk| {
            poller.resolved(addresses, connections, desk, now);
        });
        self.wake_clients(now);
    }

    /// History is kept in a file from now on; this is what became of opening it.
    pub fn keep_history(&mut self, opened: Answer, now: Now) {
        self.with_history(|history, cx| history.begin(opened, cx, now));
    }

    /// Tells what the disk thread has answered.
    pub fn stored(&mut self, answer: Answer, now: Now) {
        let wakes = self.tell_history(now, |history, cx| history.answered(answer, cx, now));
        if wakes {
            self.wake_clients(now);
        }
        self.check_end(now);
    }

    /// Tells that time has passed.
    pub fn handle_timeout(&mut self, now: Now) {
        self.set_time(now);
        if !self.clients.sessions.is_empty() || !self.sources.connections.is_empty() {
            self.sweep(now);
        }
        self.with_clients(now, |clients, cx| {
            clients.shed_slow_readers(cx);
            clients.shed_slow_senders(cx);
        });
        if !self.is_quiet(now.mono) {
            self.keep_time(now);
        }
        if self.clients.shared.longs.is_due(now.mono) {
            self.wake_clients(now);
        }
        self.check_end(now);
    }

    /// Looks for clients whose deadline has passed, once in a while.
    fn sweep(&mut self, now: Now) {
        if now.mono < self.clients.next_sweep {
            return;
        }
        let is_done = self.with_clients(now, |clients, cx| clients.sweep_some(cx));
        self.clients.next_sweep = match is_done {
            true => now.mono + SWEEP,
            false => now.mono + SWEEP_PAUSE,
        };
        if is_done {
            self.clients.shared.packing.sweep();
        }
    }

    /// Tells the sources, quotes, failover and the history that time has passed.
    fn keep_time(&mut self, now: Now) {
        let flip = self.market.quotes.next_flip();
        if flip.is_some_and(|at| at <= now.mono) {
            self.market.quotes.flip(now);
        }
        let mut failed = false;
        // Who is stopping asks nothing more.
        let count = match self.stats.stopping {
            true => 0,
            false => self.sources.pollers.len(),
        };
        for at in 0..count {
            let wake = self.sources.pollers[at].wake_at();
            if wake.is_some_and(|at| at <= now.mono) {
                failed |= self.with_source(SourceId(at as u16), |poller, connections, desk| {
                    poller.handle_timeout(connections, desk, now)
                });
            }
        }
        if failed {
            self.wake_clients(now);
        }
        if self.history.due().is_some_and(|at| at <= now.mono) {
            self.tell_history(now, |history, cx| history.handle_timeout(cx, now));
        }
        self.watch_failover(now.mono);
        self.watch_health(now);
        self.next_wake.set(None);
    }

    /// Whether [`Core::work`] has something to do.
    pub fn has_work(&self) -> bool {
        self.clients.has_work() || self.next_wake().has_work
    }

    /// The kinds of long work. Each does one slice, or says that it has nothing to do.
    const SLICES: [fn(&mut Core, Now) -> bool; 5] = [
        |core, now| core.with_clients(now, Clients::step_turns),
        Core::step_source,
        |core, now| core.with_clients(now, Clients::step_long),
        Core::step_history,
        |core, _| core.clients.step_packing(),
    ];

    /// Does one slice of what takes long: a connection's next requests, a poll, a response, the
    /// history or a body in gzip, each kind in its turn. One slice a call, so that the driver can look
    /// at the clock between two.
    pub fn work(&mut self, now: Now) {
        self.set_time(now);
        for _ in Core::SLICES {
            let slice = Core::SLICES[self.next_slice];
            self.next_slice = (self.next_slice + 1) % Core::SLICES.len();
            if slice(self, now) {
                break;
            }
        }
        self.grant_wishes(now);
    }

    fn step_source(&mut self, now: Now) -> bool {
        let Sources {
            pollers, worked, ..
        } = &mut self.sources;
        let count = pollers.len();
        // In turn: one that always has something to do does not hold up the others.
        let places = (0..count).map(|step| (*worked + step) % count);
        let Some(at) = { places }.find(|at| pollers[*at].has_work()) else {
            return false;
        };
        *worked = at + 1;
        let done = self.with_source(SourceId(at as u16), |poller, connections, desk| {
            poller.work(connections, desk, now)
        });
        if done {
            self.wake_clients(now);
            self.watch_failover(now.mono);
            self.watch_health(now);
        }
        true
    }

    fn step_history(&mut self, now: Now) -> bool {
        let has_work = self.history.has_work();
        if has_work {
            self.tell_history(now, |history, cx| history.work(cx, now));
        }
        has_work
    }

    /// The next thing that the driver is to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether [`Core::poll_action`] has one.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// When [`Core::handle_timeout`] is wanted next.
    pub fn poll_timeout(&self) -> Option<Mono> {
        let mut next = self.next_wake().due;
        if !self.clients.sessions.is_empty() || !self.sources.connections.is_empty() {
            next = next.min(self.clients.next_sweep);
        }
        next = next.min(self.clients.shared.longs.next_due().unwrap_or(NEVER));
        // Once the clients have had their time, only the history is waited for.
        if !self.clients_done {
            next = next.min(self.stop_at.unwrap_or(NEVER));
        }
        (next != NEVER).then_some(next)
    }

    /// Bytes to be sent on a connection now.
    #[inline]
    pub fn outgoing(&self, key: Key) -> Outgoing<'_> {
        if let Some(session) = self.clients.sessions.get(key) {
            return session.output.pending();
        }
        match self.sources.connections.get(key) {
            Some(Upstream { source, lane }) => {
                let poller = &self.sources.pollers[source.index()];
                poller.outgoing(*lane, key).into()
            }
            None => Outgoing::from(&[][..]),
        }
    }

    /// Whether bytes from this connection are welcome now.
    #[inline]
    pub fn wants_read(&self, key: Key) -> bool {
        if let Some(session) = self.clients.sessions.get(key) {
            return session.wants_read();
        }
        let upstream = self.sources.connections.get(key);
        upstream.is_some_and(|it| self.sources.pollers[it.source.index()].wants_read(it.lane, key))
    }

    /// What all responses have cost so far: it only rises, and tells the driver when to look at the
    /// clock.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.clients.shared.turns.spent()
    }

    /// Whether clients hold so much less than they did that memory is worth giving back.
    pub fn has_shrunk(&mut self) -> bool {
        self.clients.has_shrunk(&self.stats)
    }

    /// Counts what there is. Costs a look at every connection.
    pub fn census(&self) -> Census {
        let (clients, in_flight) = self.clients.count();
        Census {
            clients,
            upstreams: self.sources.connections.len(),
            in_flight,
            long_answers: self.clients.shared.longs.len(),
        }
    }

    /// Counts one turn of the loop, at the end of which so many clients and connections to
    /// exchanges wait for the next one.
    pub fn note_turn(&mut self, took: Duration, waiting: (usize, usize), now: Now) {
        self.stats.turns.note(took, now);
        (self.stats.queues.clients, self.stats.queues.upstreams) = waiting;
        self.stats.queues.staged = self.next_wake().staged;
        self.clients.note_turn(took, &mut self.stats);
    }

    /// Begins the end: no new requests, what is in flight is finished.
    pub fn shut_down(&mut self, now: Now) {
        if self.stats.stopping {
            return;
        }
        self.stats.stopping = true;
        self.watch_health(now);
        self.stop_at = Some(now.mono + self.config.limits.shutdown);
        self.with_history(|history, cx| history.shut_down(cx, now));
        self.with_clients(now, |clients, cx| {
            clients.sweep(0..usize::MAX, usize::MAX, cx);
        });
        self.check_end(now);
    }

    /// Whether all is over.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Over when it was asked for, the last client is gone, or has had its time, and the history
    /// is closed.
    fn check_end(&mut self, now: Now) {
        let Some(stop_at) = self.stop_at else {
            return;
        };
        self.clients_done |= self.stats.http.open == 0 || now.mono >= stop_at;
        self.end();
    }

    /// The clients are done: closes the history, and finishes when that is closed.
    fn end(&mut self) {
        if self.clients_done {
            self.with_history(|history, cx| history.close(cx));
            self.finished = self.history.is_closed();
        }
    }
}
