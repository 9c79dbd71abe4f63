//! The driver: the one event loop, its sockets, and the one thread.
//!
//! Owns the poller, the listeners, the links, the resolver, the near end of the disk thread and what
//! TLS trusts. One turn is: sleep
//! until something happened or the core's earliest deadline; read the clock; move bytes between
//! links and core; tell the core that time has passed; do one round of its long work; carry out
//! what it asks for.
//!
//! It knows nothing of HTTP, markets or exchanges, and decides nothing but fairness: clients come
//! before exchanges, each link gets a bounded number of bytes a turn, and a turn that has taken
//! `TURN_BUDGET` leaves what remains to the next one. It looks at the clock whenever what it has done
//! may have taken a while (`pace`).
//!
//! Law: every mutation of the core is followed by a drain of its actions before the driver sleeps.
//! Connections die in `Driver::carry_out` and nowhere else.

mod accept;
mod actions;
mod descriptors;
mod error;
#[cfg(feature = "sqlite")]
mod history;
#[cfg(not(feature = "sqlite"))]
#[path = "no_history.rs"]
mod history;
mod link;
mod listen;
mod memory;
mod pace;
mod patience;
mod process;
mod resolver;
mod socket;
mod sockopt;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;

pub use error::RunError;

use crate::config::Config;
use crate::core::{Core, Event, Service};
use crate::demo::Demo;
use crate::history::Answer;
use crate::log_targets::NET;
use crate::table::{Key, Pages};
use crate::time::{Clock, Mono, Now, Watch};
use history::History;
use link::{Link, Moved, Progress};
use listen::Listener;
use mio::{Events, Interest, Poll, Token, Waker};
use pace::Pace;
use resolver::Resolver;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::signal_name;
use signal_hook_mio::v1_0::Signals;
use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tls::Tls;

/// The one buffer that every read goes through. A whole pipelined batch or page of candles fits.
const READ_BUFFER: usize = 64 * 1024;

/// Bytes that one client may bring in one turn.
const CLIENT_BYTES: usize = 2 * READ_BUFFER;

/// Bytes that one exchange may bring at a time: some 60 microseconds of decoding.
const UPSTREAM_SLICE: usize = 16 * 1024;

/// Bytes that one client is sent at a time: one call of the kernel, some 50 microseconds.
const CLIENT_SENDS: usize = 128 * 1024;

/// From the wake-up: time after which a turn begins no further slice of work that can wait.
const TURN_BUDGET: Duration = Duration::from_micros(400);

/// Events taken at once.
const EVENTS: usize = 128;

const SIGNALS: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
/// The first of the listeners' tokens; the others count down from it.
const LISTENERS: usize = usize::MAX - 2;

/// Runs until a signal asks it to stop.
///
/// `listening` is called when every address is bound and told in the log.
pub fn run(config: Config, listening: impl FnOnce()) -> Result<(), RunError> {
    let driver = Driver::new(config)?;
    driver.announce();
    listening();
    driver.run()
}

/// Whether everything that the configuration names can be used, as far as that can be told without
/// running: the certificates of `tls.caFile`, and the place of the history file.
pub fn check(config: &Config) -> Result<(), RunError> {
    Tls::new(config, Clock::new()).map_err(RunError::Trust)?;
    history::check(&config.data).map_err(RunError::History)
}

/// Connections that have something to do, each in one of them.
#[derive(Default)]
struct Queues {
    /// Clients that were just accepted.
    new: VecDeque<Key>,
    /// Clients.
    hot: VecDeque<Key>,
    /// Clients that have more to be sent than one write takes: they come after the others, so that
    /// nobody with a short question waits for somebody's long answer.
    bulk: VecDeque<Key>,
    /// Exchanges.
    upstream: VecDeque<Key>,
}

impl Queues {
    /// Puts a link with more to do into the queue of its kind, once.
    #[inline]
    fn push(&mut self, link: &mut Link) {
        if link.queued {
            return;
        }
        link.queued = true;
        let queue = match (link.upstream, link.sending) {
            (true, _) => &mut self.upstream,
            (false, true) => &mut self.bulk,
            (false, false) => &mut self.hot,
        };
        queue.push_back(link.key);
    }
}

/// See the module's page.
pub struct Driver {
    poll: Poll,
    clock: Watch,
    core: Core,
    listeners: Vec<Listener>,
    /// Whether a listener may have connections to give, or rests.
    accepting: bool,
    /// Connections that a listener gives in one turn.
    accepts: usize,
    /// By the place of their keys.
    links: Pages<Option<Link>>,
    queues: Queues,
    buffer: Box<[u8]>,
    resolver: Resolver,
    history: History,
    /// What became of opening the history file: told when the addresses have been.
    opened: Option<Answer>,
    tls: Tls,
    signals: Signals,
    pace: Pace,
    /// Which kind of what can wait is next.
    next_slice: usize,
    /// End of the last turn.
    turned: Mono,
}

impl Driver {
    /// Binds every address and starts the core; nothing is served yet.
    pub fn new(mut config: Config) -> Result<Driver, RunError> {
        descriptors::settle(&mut config)
            .map_err(|(limit, needed)| RunError::Files { limit, needed })?;
        let poll = Poll::new().map_err(|error| RunError::System("create a poller", error))?;
        let waker = Waker::new(poll.registry(), WAKER)
            .map_err(|error| RunError::System("create a waker", error))?;
        let waker = Arc::new(waker);
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2])
            .map_err(|error| RunError::System("watch signals", error))?;
        poll.registry()
            .register(&mut signals, SIGNALS, Interest::READABLE)
            .map_err(|error| RunError::System("watch signals", error))?;
        let clock = Clock::new();
        let tls = Tls::new(&config, clock).map_err(RunError::Trust)?;
        // Read once, and of no use to anybody else.
        config.tls.ca_text = String::new();
        let listeners = listen::bind_all(&mut config, poll.registry(), LISTENERS)?;
        let (history, opened) =
            History::start(&config.data, waker.clone()).map_err(RunError::History)?;
        let mut clock = Watch::new(clock);
        let now = clock.now();
        let accepts = config.limits.accepts_per_turn;
        let demo = config.demo.map(|demo| Demo::new(demo.seed));
        // The boot id tells the versions of one run from those of another. The clock would not: it
        // may be set back, and two runs may begin within a millisecond. The standard library seeds
        // its hashes from the system's random source.
        let boot = RandomState::new().hash_one(now.unix.0);
        let core = Core::new(config, demo, process::facts, boot, now);
        Ok(Driver {
            poll,
            clock,
            core,
            listeners,
            accepting: false,
            accepts,
            links: Pages::default(),
            queues: Queues::default(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            resolver: Resolver::new(waker),
            history,
            opened,
            tls,
            signals,
            pace: Pace::default(),
            next_slice: 0,
            turned: now.mono,
        })
    }

    /// The address that clients of this service reach.
    pub fn address(&self, service: Service) -> Option<SocketAddr> {
        let listener = self.listeners.iter().find(|l| l.service == service)?;
        listener.address().ok()
    }

    /// Tells every address in the log.
    fn announce(&self) {
        for listener in &self.listeners {
            if let Ok(address) = listener.address() {
                listener.service.announce(address);
            }
        }
    }

    /// Turns until the core has finished.
    pub fn run(mut self) -> Result<(), RunError> {
        let mut events = Events::with_capacity(EVENTS);
        let now = self.clock.now();
        if let Some(opened) = self.opened.take() {
            self.core.keep_history(opened, now);
        }
        self.carry_out(now);
        while !self.core.is_finished() {
            self.turn(&mut events)?;
        }
        log::info!(target: NET, "stopped");
        Ok(())
    }

    fn turn(&mut self, events: &mut Events) -> Result<(), RunError> {
        let timeout = self.sleep();
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(RunError::System("wait for events", error));
            }
            _ => {}
        }
        let now = self.clock.now();
        self.pace.begin_turn(self.core.spent());
        for event in &*events {
            self.dispatch(event, now);
        }
        self.accept(now);
        self.serve_clients(now);
        self.core.handle_timeout(now);
        self.carry_out(now);
        self.long_work(now);
        if self.core.has_shrunk() {
            memory::give_back();
        }
        self.turned = self.clock.mono();
        let clients = self.queues.hot.len() + self.queues.bulk.len();
        let waiting = (clients, self.queues.upstream.len());
        let took = self.turned.since(now.mono);
        self.core.note_turn(took, waiting, now);
        Ok(())
    }

    /// How long this turn may sleep.
    fn sleep(&self) -> Option<Duration> {
        let waiting = |l: &Listener| l.ready && l.resting.is_none();
        let busy = !self.queues.hot.is_empty()
            || !self.queues.new.is_empty()
            || !self.queues.bulk.is_empty()
            || self.core.has_actions()
            || self.has_long_work()
            || self.accepting && self.listeners.iter().any(waiting);
        if busy {
            return Some(Duration::ZERO);
        }
        let mut next = self.core.poll_timeout();
        if self.accepting {
            for rests in self.listeners.iter().filter_map(|l| l.resting) {
                next = Some(next.map_or(rests, |next| next.min(rests)));
            }
        }
        // Sleeping is all that has happened since the last turn's end.
        Some(next?.since(self.turned))
    }

    fn dispatch(&mut self, event: &mio::event::Event, now: Now) {
        match event.token() {
            SIGNALS => {
                for signal in self.signals.pending() {
                    // A closed terminal or a log rotation must not end the service.
                    if signal != SIGTERM && signal != SIGINT {
                        let name = signal_name(signal).unwrap_or("unknown");
                        log::warn!(target: NET, "signal ignored name={name}");
                        continue;
                    }
                    self.core.shut_down(now);
                    self.listeners.clear();
                }
            }
            WAKER => {
                while let Some((source, resolved)) = self.resolver.answer() {
                    self.core.resolved(source, resolved, now);
                }
                self.history.ready = true;
            }
            Token(token) if token > LISTENERS - Service::COUNT => {
                if let Some(listener) = self.listeners.get_mut(LISTENERS - token) {
                    listener.ready = true;
                    self.accepting = true;
                }
            }
            Token(token) => {
                let key = Key::from_token(token);
                if let Some(link) = link_of(&mut self.links, key) {
                    link.wake(event);
                    self.queues.push(link);
                }
            }
        }
    }

    /// Clients that have something to move, first come, first served, until the turn's budget is
    /// used up; the others keep their places. Some of either kind in each turn.
    fn serve_clients(&mut self, now: Now) {
        for _ in 0..self.queues.hot.len() {
            if let Some(key) = self.queues.hot.pop_front() {
                self.pump(key, CLIENT_BYTES, now);
            }
            if self.has_taken(TURN_BUDGET, now) {
                break;
            }
        }
        for _ in 0..self.queues.bulk.len() {
            if let Some(key) = self.queues.bulk.pop_front() {
                self.pump(key, CLIENT_BYTES, now);
            }
            if self.has_taken(TURN_BUDGET, now) {
                break;
            }
        }
    }

    /// Whether this turn has taken so long. Looks at the clock only when enough has been done since
    /// the last look: to do so after each client would cost a tenth of serving it.
    fn has_taken(&mut self, span: Duration, now: Now) -> bool {
        if self.pace.is_due(self.core.spent()) {
            self.pace.took = self.clock.mono().since(now.mono);
        }
        self.pace.took >= span
    }

    /// Moves bytes between a link and the core until either side has no more or the budget is
    /// used up; a link that has more to do is queued for the next turn.
    fn pump(&mut self, key: Key, budget: usize, now: Now) {
        let Some(link) = link_of(&mut self.links, key) else {
            return;
        };
        (link.queued, link.sending) = (false, false);
        self.pace.add(pace::PUMP);
        match link.progress() {
            Progress::Open => {}
            Progress::Waiting => return,
            Progress::More => return self.queue(key),
            Progress::Connected => self.core.handle(key, Event::Connected, now),
            Progress::Secured => self.core.handle(key, Event::Secured, now),
            Progress::Failed(why) => return self.core.handle(key, Event::Failed(&why), now),
        }
        let mut left = budget;
        let mut sends = CLIENT_SENDS;
        loop {
            let outgoing = self.core.outgoing(key);
            let moved = if !outgoing.is_empty() && link.is_writable() {
                if sends == 0 {
                    link.sending = true;
                    break;
                }
                match link.write(outgoing, sends) {
                    Moved::Bytes(count) => {
                        sends -= count.min(sends);
                        // It is easier to send a byte than to make it.
                        self.pace.add(count / 2);
                        Event::Sent(count)
                    }
                    Moved::Blocked | Moved::Inner(_) | Moved::End => {
                        link.sending = true;
                        continue;
                    }
                    Moved::Failed(why) => return self.core.handle(key, Event::Failed(&why), now),
                }
            } else if link.is_readable() && self.core.wants_read(key) {
                if left == 0 {
                    break;
                }
                let size = left.min(self.buffer.len());
                match link.read(&mut self.buffer[..size]) {
                    Moved::Bytes(count) => {
                        left -= count;
                        self.pace.add(count);
                        Event::Received(&self.buffer[..count])
                    }
                    Moved::Inner(count) => {
                        left = left.saturating_sub(count);
                        continue;
                    }
                    Moved::End => Event::Eof,
                    Moved::Blocked => continue,
                    Moved::Failed(why) => return self.core.handle(key, Event::Failed(&why), now),
                }
            } else {
                return;
            };
            self.core.handle(key, moved, now);
        }
        self.queue(key);
    }

    /// The same by its key.
    fn queue(&mut self, key: Key) {
        if let Some(link) = link_of(&mut self.links, key) {
            self.queues.push(link);
        }
    }

    fn place(&mut self, link: Link) {
        let index = link.key.index();
        *self.links.grow_to(index) = Some(link);
    }
}

/// The link of this key, if it still lives.
fn link_of(links: &mut Pages<Option<Link>>, key: Key) -> Option<&mut Link> {
    links
        .get_mut(key.index())?
        .as_mut()
        .filter(|link| link.key == key)
}
