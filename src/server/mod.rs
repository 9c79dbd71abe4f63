//! The core: everything that is decided, and nothing that is done.
//!
//! Owns the clients' sessions, the sources' pollers, the market, and the answers in the making. It
//! is told what happened and what time it is ([`Core::handle`], [`Core::handle_timeout`]), and
//! answers with what is to be done ([`Core::poll_action`], [`Core::outgoing`],
//! [`Core::poll_timeout`]). So the whole of it runs in a test, in virtual time.
//!
//! It never touches a socket, a file or a clock, and no call takes long: what takes long is done
//! in slices by [`Core::work`], one a call.

mod access;
mod agenda;
pub mod api;
#[cfg(feature = "sqlite")]
mod archive;
#[cfg(not(feature = "sqlite"))]
#[path = "no_archive.rs"]
mod archive;
mod bodies;
mod budget;
mod clients;
mod clocks;
mod counting;
mod dial;
mod door;
mod durations;
mod ends;
mod event;
mod failover;
mod familiar;
mod fault;
mod fetches;
mod gate;
mod guests;
mod health;
mod lane;
mod later;
mod long;
mod packing;
mod poller;
mod rates;
mod session;
mod shelf;
mod stage;
mod status;
mod task;
mod turns;

pub use dial::Broken;
pub use durations::Endpoint;
pub use event::{Action, Census, Event, ProcessFacts, Service};
pub use session::CloseReason;
pub use status::{SourceState, SourceStatus, Status};

use crate::config::Config;
use crate::demo::Demo;
use crate::history::Answer;
use crate::http::{Outgoing, Output, Stamp};
use crate::market::{Market, SourceId};
use crate::rng::Rng;
use crate::table::{Key, Table};
use crate::time::{Mono, Now};
use access::Access;
use agenda::{Agenda, NEVER};
use archive::Archive;
use failover::Failover;
use familiar::Familiar;
use gate::Gate;
use guests::Guests;
use health::HealthLog;
use long::Longs;
use packing::Packing;
use poller::Poller;
use session::Session;
use shelf::Shelf;
use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use turns::Turns;

/// Clients above the cap that are told so at once; above that, connections are dropped.
pub const LOBBY: usize = 64;

/// Connections to the demo exchange: our own, and a few of the curious.
pub const DEMO_CLIENTS: usize = 32;

/// How often sessions are looked through for passed deadlines: a sweep costs less than a heap,
/// and no deadline of a client needs to be sharper.
const SWEEP: Duration = Duration::from_secs(1);

/// Between two parts of a sweep.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
enum Conn {
    Client(Session),
    Upstream { source: SourceId, lane: usize },
}

/// See the module's page.
pub struct Core {
    conns: Table<Conn>,
    rest: Rest,
}

/// All of the core but its connections: what a session is served with.
struct Rest {
    config: Config,
    market: Market,
    status: Status,
    pollers: Vec<Poller>,
    archive: Archive,
    failover: Failover,
    health: HealthLog,
    /// What those above want next, where that is known.
    agenda: Cell<Option<Agenda>>,
    /// The one behind the poller that worked last.
    worked: usize,
    longs: Longs,
    packing: Packing,
    turns: Turns,
    /// The kind of long work that is next.
    next_slice: usize,
    demo: Option<Demo>,
    stamp: Stamp,
    silent: door::Silent,
    /// The most that clients held since memory was last given back.
    most_held: u64,
    /// Clients by their address, where that has a cap.
    guests: Guests,
    gate: Gate,
    access: Access,
    /// Connections to the demo exchange: it is nobody's service, and counts for nothing else.
    demo_open: usize,
    boot: u64,
    /// What the wall clock shows when the monotonic one is zero, in milliseconds.
    wall_zero: i64,
    facts: fn() -> ProcessFacts,
    actions: VecDeque<Action>,
    /// Reused for the demo exchange's bodies.
    scratch: Vec<u8>,
    familiar: Familiar,
    /// Lent to the next answer.
    spare: Output,
    next_sweep: Mono,
    /// Where the sweep goes on.
    swept: usize,
    shed_at: Mono,
    /// When the end comes in any case.
    stop_at: Option<Mono>,
    clients_done: bool,
    finished: bool,
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
        let lanes = config.limits.lanes_per_source * config.sources.len();
        let mut market = Market::new(&config);
        for at in 0..config.sources.len() {
            market.charts.doubt_clock(SourceId(at as u16), true);
        }
        let mut rng = Rng::new(boot);
        let ids = (0..config.sources.len()).map(|at| SourceId(at as u16));
        let pollers = ids
            .map(|id| Poller::new(id, &config, rng.next_u64(), now))
            .collect();
        let status = Status::new(config.sources.iter().map(|source| &*source.id), now);
        let mut core = Core {
            // A lane that reconnects holds two places until the driver has let the old one go.
            conns: Table::new(config.limits.max_connections + LOBBY + DEMO_CLIENTS + 2 * lanes),
            rest: Rest {
                health: HealthLog::new(&status, &market.quotes),
                status,
                longs: Longs::new(config.limits.max_connections, config.limits.long_answers),
                packing: Packing::new(config.limits.packed_bytes),
                turns: Turns::default(),
                next_slice: 0,
                gate: Gate::new(&config),
                config,
                market,
                pollers,
                archive: Archive::new(now),
                failover: Failover::default(),
                agenda: Cell::new(None),
                worked: 0,
                demo,
                silent: door::Silent::default(),
                most_held: 0,
                guests: Guests::default(),
                access: Access::new(),
                demo_open: 0,
                stamp: Stamp::new(boot),
                boot,
                wall_zero: clocks::wall_zero(now),
                facts,
                actions: VecDeque::new(),
                scratch: Vec::new(),
                familiar: Familiar::new(),
                spare: Output::default(),
                next_sweep: now.mono + SWEEP,
                swept: 0,
                shed_at: now.mono,
                stop_at: None,
                clients_done: false,
                finished: false,
            },
        };
        core.handle_timeout(now);
        core
    }

    /// Tells what happened to a connection. A key that is gone is no fault: the event was late.
    pub fn handle(&mut self, key: Key, event: Event<'_>, now: Now) {
        self.rest.set_time(now);
        match self.conns.get_mut(key) {
            Some(Conn::Client(session)) => self.rest.handle(key, session, event, now),
            Some(&mut Conn::Upstream { source, lane }) => {
                self.handle_upstream(key, source, lane, event, now);
            }
            None => {}
        }
    }

    /// Tells what the look-up of a source's name came to.
    pub fn resolved(
        &mut self,
        source: SourceId,
        addresses: Result<Vec<SocketAddr>, String>,
        now: Now,
    ) {
        let Core { conns, rest } = self;
        rest.with_poller(source, |poller, desk| {
            poller.resolved(addresses, conns, desk, now);
        });
        self.wake_longs(now);
    }

    /// History is kept in a file from now on; this is what became of opening it.
    pub fn keep_history(&mut self, opened: Answer, now: Now) {
        self.rest
            .with_archive(|archive, shelf| archive.begin(opened, shelf, now));
    }

    /// Tells what the disk thread has answered.
    pub fn stored(&mut self, answer: Answer, now: Now) {
        let wakes = self.tell_archive(now, |archive, shelf| archive.answered(answer, shelf, now));
        if wakes {
            self.wake_longs(now);
        }
        self.check_end(now);
    }

    /// Lets the archive act. Pollers may have waited for what it has heard, or for room in it.
    fn tell_archive<R>(
        &mut self,
        now: Now,
        act: impl FnOnce(&mut Archive, &mut Shelf<'_>) -> R,
    ) -> R {
        let pace = self.rest.archive.pace();
        let told = self.rest.with_archive(act);
        let Rest {
            pollers, archive, ..
        } = &mut self.rest;
        if archive.pace() > pace {
            pollers.iter_mut().for_each(|it| it.hurry(now));
        }
        if archive.has_news() {
            pollers.iter_mut().for_each(|it| it.note_stored(now));
        }
        told
    }

    /// Tells that time has passed.
    pub fn handle_timeout(&mut self, now: Now) {
        self.rest.set_time(now);
        if !self.conns.is_empty() && now.mono >= self.rest.next_sweep {
            if self.sweep_some(now) {
                self.rest.next_sweep = now.mono + SWEEP;
                self.rest.packing.sweep();
            } else {
                self.rest.next_sweep = now.mono + SWEEP_PAUSE;
            }
        }
        self.shed_slow_readers(now);
        self.shed_slow_senders(now);
        if !self.rest.is_quiet(now.mono) {
            self.keep_time(now);
        }
        if self.rest.longs.is_due(now.mono) {
            self.wake_longs(now);
        }
        self.check_end(now);
    }

    /// Tells the pollers, quotes, failover and the archive that time has passed.
    fn keep_time(&mut self, now: Now) {
        let flip = self.rest.market.quotes.next_flip();
        if flip.is_some_and(|at| at <= now.mono) {
            self.rest.market.quotes.flip(now);
        }
        let Core { conns, rest } = self;
        let mut failed = false;
        // Who is stopping asks nothing more.
        let pollers = match rest.status.stopping {
            true => 0,
            false => rest.pollers.len(),
        };
        for at in 0..pollers {
            if rest.pollers[at].wake_at().is_some_and(|at| at <= now.mono) {
                rest.with_poller(SourceId(at as u16), |poller, desk| {
                    failed |= poller.handle_timeout(conns, desk, now);
                });
            }
        }
        if failed {
            self.wake_longs(now);
        }
        if self.rest.archive.due().is_some_and(|at| at <= now.mono) {
            self.tell_archive(now, |archive, shelf| archive.handle_timeout(shelf, now));
        }
        self.rest.watch_failover(now.mono);
        self.rest.watch_health(now);
        self.rest.upset_agenda();
    }

    /// Whether [`Core::work`] has something to do.
    pub fn has_work(&self) -> bool {
        let rest = &self.rest;
        rest.turns.is_waiting()
            || rest.longs.has_work()
            || rest.packing.has_work()
            || rest.agenda().has_work
    }

    /// The kinds of long work. Each does one slice, or says that it has nothing to do.
    const SLICES: [fn(&mut Core, Now) -> bool; 5] = [
        Core::step_turns,
        Core::step_poll,
        Core::step_long,
        Core::step_archive,
        Core::step_packing,
    ];

    /// Does one slice of what takes long: a connection's next requests, a poll, a response, the
    /// archive or a body in gzip, each kind in its turn. One slice a call, so that the driver can look
    /// at the clock between two.
    pub fn work(&mut self, now: Now) {
        for _ in Core::SLICES {
            let slice = Core::SLICES[self.rest.next_slice];
            self.rest.next_slice = (self.rest.next_slice + 1) % Core::SLICES.len();
            if slice(self, now) {
                return;
            }
        }
    }

    fn step_poll(&mut self, now: Now) -> bool {
        let mut done = false;
        let Core { conns, rest } = self;
        let count = rest.pollers.len();
        // In turn: one that always has something to do does not hold up the others.
        let places = (0..count).map(|step| (rest.worked + step) % count);
        let Some(at) = { places }.find(|at| rest.pollers[*at].has_work()) else {
            return false;
        };
        rest.worked = at + 1;
        rest.with_poller(SourceId(at as u16), |poller, desk| {
            done = poller.work(conns, desk, now);
        });
        if done {
            self.wake_longs(now);
            self.rest.watch_failover(now.mono);
            self.rest.watch_health(now);
        }
        true
    }

    fn step_archive(&mut self, now: Now) -> bool {
        let has_work = self.rest.archive.has_work();
        if has_work {
            self.tell_archive(now, |archive, shelf| archive.work(shelf, now));
        }
        has_work
    }

    /// The next thing that the driver is to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.rest.actions.pop_front()
    }

    /// Whether [`Core::poll_action`] has one.
    pub fn has_actions(&self) -> bool {
        !self.rest.actions.is_empty()
    }

    /// When [`Core::handle_timeout`] is wanted next.
    pub fn poll_timeout(&self) -> Option<Mono> {
        let rest = &self.rest;
        let mut next = rest.agenda().due;
        if !self.conns.is_empty() {
            next = next.min(rest.next_sweep);
        }
        next = next.min(rest.longs.next_due().unwrap_or(NEVER));
        // Once the clients have had their time, only the history is waited for.
        if !rest.clients_done {
            next = next.min(rest.stop_at.unwrap_or(NEVER));
        }
        (next != NEVER).then_some(next)
    }

    /// Bytes to be sent on a connection now.
    #[inline]
    pub fn outgoing(&self, key: Key) -> Outgoing<'_> {
        match self.conns.get(key) {
            Some(Conn::Client(session)) => session.output.pending(),
            Some(Conn::Upstream { source, lane }) => self.rest.pollers[usize::from(source.0)]
                .outgoing(*lane, key)
                .into(),
            None => Outgoing::from(&[][..]),
        }
    }

    /// Whether bytes from this connection are welcome now.
    #[inline]
    pub fn wants_read(&self, key: Key) -> bool {
        match self.conns.get(key) {
            Some(Conn::Client(session)) => session.wants_read(),
            Some(Conn::Upstream { source, lane }) => {
                self.rest.pollers[usize::from(source.0)].wants_read(*lane, key)
            }
            None => false,
        }
    }

    /// Begins the end: no new requests, what is in flight is finished.
    pub fn shut_down(&mut self, now: Now) {
        if self.rest.status.stopping {
            return;
        }
        self.rest.status.stopping = true;
        self.rest.watch_health(now);
        self.rest.stop_at = Some(now.mono + self.rest.config.limits.shutdown);
        self.rest
            .with_archive(|archive, shelf| archive.shut_down(shelf, now));
        self.sweep(0..usize::MAX, usize::MAX, now);
        self.check_end(now);
    }

    /// Whether all is over.
    pub fn is_finished(&self) -> bool {
        self.rest.finished
    }

    /// Over when it was asked for, the last client is gone, or has had its time, and the history
    /// is closed.
    fn check_end(&mut self, now: Now) {
        let Some(stop_at) = self.rest.stop_at else {
            return;
        };
        self.rest.clients_done |= self.rest.status.http.open == 0 || now.mono >= stop_at;
        self.rest.end();
    }
}

impl Rest {
    /// Runs `act` with the archive and the rest of the core beside it.
    fn with_archive<R>(&mut self, act: impl FnOnce(&mut Archive, &mut Shelf<'_>) -> R) -> R {
        self.upset_agenda();
        let mut shelf = Shelf {
            config: &self.config,
            market: &mut self.market,
            status: &mut self.status.history,
            sources: &self.status.sources,
            actions: &mut self.actions,
        };
        act(&mut self.archive, &mut shelf)
    }

    /// The clients are done: closes the history, and finishes when that is closed.
    fn end(&mut self) {
        if self.clients_done {
            self.with_archive(|archive, shelf| archive.close(shelf));
            self.finished = self.archive.is_closed();
        }
    }
}
