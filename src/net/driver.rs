//! The driver's state, and the movement of bytes between connections and the core.
//!
//! It counts the work of a turn roughly ([`ClockPace`]). A unit takes about a nanosecond, like one sent byte.
//! The clock is read only after enough work: reading it after every small step would cost more than the step.
//!
//! [`Driver`] owns the poller, the core, the listeners, the connections, and the queues of connections that
//! have something to do.

use super::connection::{NetConnection, Opener, Progress, Transfer};
use super::disk_thread::{self, DiskThread};
use super::listen::{self, Listener, OwnFile, fails};
use super::resolver::Resolver;
use super::script_file::ScriptFile;
use super::service_manager::{self, Notifier};
use super::{process, resolver, tls};
use crate::config::{Config, LoadedConfig, Reread};
use crate::core::{Broken, Core, Event, LogFigures};
use crate::demo::Demo;
use crate::history::Reply;
use crate::log_targets::NET;
use crate::table::{Key, Pages};
use crate::time::{CachedClock, Clock, Mono, Now};
use mio::{Interest, Poll, Token, Waker};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook_mio::v1_0::Signals;
use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

/// Size of the buffer that all reads share. A pipelined batch or a page of candles fits into it.
const READ_BUFFER: usize = 64 * 1024;

/// Bytes that are read from one client at a time. Requests in them that cannot be served now are kept in
/// memory.
const CLIENT_READ: usize = 16 * 1024;

/// Bytes that are read from one client in a turn.
pub(super) const CLIENT_BYTES: usize = 2 * READ_BUFFER;

/// Bytes that are read from one exchange at a time. Decoding them takes some 60 microseconds.
pub(super) const UPSTREAM_SLICE: usize = 16 * 1024;

/// Bytes that are sent to one client at a time. The system calls take some 0.1 ms.
const CLIENT_SENDS: usize = 64 * 1024;

/// Time since the wake-up after which a turn starts no more work that can wait.
pub(super) const TURN_BUDGET: Duration = Duration::from_micros(250);

pub(super) const SIGNALS: Token = Token(usize::MAX);
pub(super) const WAKER: Token = Token(usize::MAX - 1);

/// The token of the first listener. The others count down from it.
pub(super) const LISTENERS: usize = usize::MAX - 2;

/// Most listeners: the passed sockets, which are more than the two services, and the demo exchange.
pub(super) const MOST_LISTENERS: usize = service_manager::MOST + 1;

/// Connections that have something to do. Each is in at most one queue.
#[derive(Default)]
pub(super) struct ConnectionQueues {
    /// Clients that were just accepted.
    pub(super) new: VecDeque<Key>,
    /// Other clients.
    pub(super) hot: VecDeque<Key>,
    /// Clients with more output than one write accepts, clients that have sent more than is read in a turn,
    /// and clients that have closed their side. They come after the others, so that a short response waits
    /// neither for long ones nor for many clients that flood or leave.
    pub(super) bulk: VecDeque<Key>,
    /// Exchanges.
    pub(super) upstream: VecDeque<Key>,
}

impl ConnectionQueues {
    /// Adds a connection to its queue, unless it is in it already.
    #[inline]
    pub(super) fn push(&mut self, key: Key, conn: &mut NetConnection) {
        if conn.queued {
            return;
        }
        conn.queued = true;
        let queue = match (conn.upstream, conn.has_more || conn.socket.read_closed) {
            (true, _) => &mut self.upstream,
            (false, true) => &mut self.bulk,
            (false, false) => &mut self.hot,
        };
        debug_assert!(!queue.contains(&key), "a connection is in its queue once");
        queue.push_back(key);
    }
}

/// The state of the driver.
pub(super) struct Driver {
    pub(super) poll: Poll,
    pub(super) clock: CachedClock,
    pub(super) core: Core,
    pub(super) listeners: Vec<Listener>,
    /// The file that names the addresses. It is removed when the driver is dropped.
    pub(super) address_file: Option<OwnFile>,
    /// The script of the demo exchange.
    pub(super) script: Option<ScriptFile>,
    /// True if a listener may have connections to accept, or pauses.
    pub(super) accepting: bool,
    /// Connections that one listener accepts in a turn.
    pub(super) accepts: usize,
    /// The connections, by the index of their keys.
    pub(super) connections: Pages<Option<NetConnection>>,
    pub(super) queues: ConnectionQueues,
    pub(super) buffer: Box<[u8]>,
    pub(super) resolver: Resolver,
    pub(super) disk_thread: DiskThread,
    /// The result of opening the history file. The core gets it after the addresses are logged.
    pub(super) opened: Option<Reply>,
    pub(super) tls: Opener,
    pub(super) signals: Signals,
    pub(super) notifier: Notifier,
    pub(super) reread: Reread,
    /// Called with a configuration that was accepted.
    pub(super) taken: fn(&LoadedConfig),
    /// The configuration that was last read and applied. Keys that need a restart have the values of the
    /// start. Values that marketd has adapted to this machine are here as they were read, so that they do not
    /// count as changes.
    pub(super) loaded: Config,
    pub(super) pace: ClockPace,
    /// Returns the counts of log lines.
    pub(super) log: fn() -> LogFigures,
    /// True if marketd has just been told to stop.
    pub(super) is_stopping: bool,
    /// True if the last turn left work that can wait.
    pub(super) has_more: bool,
    /// When the last turn began.
    pub(super) turn_began: Mono,
    /// When the last turn ended.
    pub(super) turn_ended: Mono,
    /// After a pause of the process: until when no deadline is judged, if there is still something to read.
    pub(super) catches_up_until: Option<Mono>,
}

impl Driver {
    /// Binds and logs every address, and starts the core. It serves nothing yet.
    pub(super) fn new(
        mut config: Config,
        reread: Reread,
        taken: fn(&LoadedConfig),
        log: fn() -> LogFigures,
    ) -> Result<Driver, String> {
        let loaded = config.clone();
        let passed = service_manager::take(config.ecosystem_listen.is_some())?;
        let capped = process::settle(&mut config)?;
        let poll = Poll::new().map_err(fails("create a poller"))?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(fails("create a waker"))?);
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2]);
        let mut signals = signals.map_err(fails("watch signals"))?;
        let registered = poll.registry().register(&mut signals, SIGNALS, Interest::READABLE);
        registered.map_err(fails("watch signals"))?;
        let clock = Clock::new();
        let tls = tls::opener(&config, clock)?;
        // Only the TLS opener needs the certificates.
        config.tls.ca_text = String::new();
        let listeners = listen::bind_all(&mut config, passed, poll.registry(), LISTENERS)?;
        let (disk_thread, opened) = DiskThread::start(&config.data, waker.clone())?;
        if let Some(cluster) = &mut config.cluster {
            cluster.node = cluster.node.take().or_else(|| process::node_name(&config.data));
        }
        let mut clock = CachedClock::new(clock);
        let now = clock.now();
        let accepts = config.limits.accepts_per_turn;
        let mut demo = config.demo.as_ref().map(|demo| Demo::new(demo.seed));
        let script = ScriptFile::follow(&mut config, demo.as_mut(), now.mono)?;
        // Entity tags of different runs must differ, even if the clock was set back between them. The
        // standard library seeds its hashes from the system's random source.
        let boot = RandomState::new().hash_one(now.unix.0);
        // Nothing fails from here on. The addresses come first, for scripts that start with port 0.
        for listener in &listeners {
            listener.service.announce(&listener.place);
        }
        if let Some((configured, files)) = capped {
            let most = config.limits.max_connections;
            log::info!(target: NET, "connections capped most={most} configured={configured} files={files}");
        }
        disk_thread::tell(&loaded.data);
        let core = Core::new(config, demo, process::facts, boot, now);
        Ok(Driver {
            poll,
            clock,
            core,
            listeners,
            address_file: None,
            script,
            accepting: false,
            accepts,
            connections: Pages::default(),
            queues: ConnectionQueues::default(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            resolver: Resolver::new(waker, resolver::system),
            disk_thread,
            opened,
            tls,
            signals,
            notifier: Notifier::from_env(),
            reread,
            taken,
            loaded,
            pace: ClockPace::default(),
            log,
            is_stopping: false,
            has_more: true,
            turn_began: now.mono,
            turn_ended: now.mono,
            catches_up_until: None,
        })
    }

    /// True if this turn has taken this long. Reads the clock only after enough work: reading it for each
    /// client would add a tenth to the cost of serving the client.
    pub(super) fn has_taken(&mut self, span: Duration, now: Now) -> bool {
        if self.pace.is_due(self.core.spent()) {
            self.pace.took = self.clock.mono().since(now.mono);
        }
        self.pace.took >= span
    }

    /// Moves bytes between a connection and the core until neither has more, or until `budget` bytes were
    /// read or [`CLIENT_SENDS`] bytes were sent. A connection with more to do is queued for the next turn.
    pub(super) fn pump(&mut self, key: Key, budget: usize, now: Now) {
        let Some(conn) = connection(&mut self.connections, key) else {
            return;
        };
        (conn.queued, conn.has_more) = (false, false);
        self.pace.add(PUMP);
        match conn.progress() {
            Ok(Progress::Open) => {}
            Ok(Progress::Waiting) => return,
            Ok(Progress::More) => return self.queue(key),
            Ok(Progress::Connected) => self.core.handle(key, Event::Connected, now),
            Ok(Progress::Secured) => self.core.handle(key, Event::Secured, now),
            Err(why) => return self.core.handle(key, Event::Failed(&why), now),
        }
        let (mut left, mut sends) = (budget, CLIENT_SENDS);
        while left > 0 && sends > 0 {
            let (outgoing, wants_read) = self.core.interest(key);
            let moved = if !outgoing.is_empty() && conn.is_writable() {
                match conn.write(outgoing, sends) {
                    Ok(0) => {
                        conn.has_more = true;
                        if conn.upstream {
                            continue;
                        }
                        // The event lets the core shrink the output of a client that does not read.
                        Event::Sent(0)
                    }
                    Ok(count) => {
                        sends -= count.min(sends);
                        self.pace.add(count);
                        let is_all = count == outgoing.len();
                        self.core.handle(key, Event::Sent(count), now);
                        // Nothing more is sent until the client sends a request, or an action
                        // queues the connection.
                        if is_all && conn.is_quiet_client() {
                            return;
                        }
                        continue;
                    }
                    Err(why) => return self.core.handle(key, Event::Failed(&why), now),
                }
            } else if wants_read && conn.is_readable() {
                let size = if conn.upstream { self.buffer.len() } else { CLIENT_READ };
                let size = size.min(left);
                match conn.read(&mut self.buffer[..size]) {
                    Ok(Transfer::Bytes(count)) => {
                        left -= count;
                        self.pace.add(count);
                        Event::Received(&self.buffer[..count])
                    }
                    Ok(Transfer::Inner(count)) => {
                        left = left.saturating_sub(count);
                        continue;
                    }
                    Ok(Transfer::End) => Event::Eof,
                    Err(why) => return self.core.handle(key, Event::Failed(&why), now),
                }
            } else if !conn.upstream && conn.socket.is_dead {
                // The client is gone: a response that is being made would not reach it.
                return self.core.handle(key, Event::Failed(&Broken::Closed), now);
            } else {
                return;
            };
            self.core.handle(key, moved, now);
        }
        conn.has_more = true;
        self.queue(key);
    }

    /// Queues the connection with this key, if it is open.
    pub(super) fn queue(&mut self, key: Key) {
        if let Some(conn) = connection(&mut self.connections, key) {
            self.queues.push(key, conn);
        }
    }

    pub(super) fn add(&mut self, key: Key, conn: NetConnection) {
        *self.connections.grow_to(key.index()) = Some(conn);
    }
}

/// The connection with this key, if it is open.
pub(super) fn connection(
    connections: &mut Pages<Option<NetConnection>>,
    key: Key,
) -> Option<&mut NetConnection> {
    connections.get_mut(key.index())?.as_mut().filter(|conn| conn.generation == key.generation())
}

/// Work between two reads of the clock: some 50 microseconds.
const READ_EVERY: u64 = 64 * 1024;

/// Work of serving a connection, without the bytes that are moved: one or two system calls.
pub const PUMP: usize = 4 * 1024;

/// Work of accepting a connection.
pub const ACCEPT: usize = 16 * 1024;

/// Work of an action. Most actions close a socket, which takes 0.1 ms if much output is unsent.
pub const ACTION: usize = READ_EVERY as usize;

/// The work of a turn, and when the clock was last read.
#[derive(Debug, Default)]
pub struct ClockPace {
    /// Work of the driver so far.
    work: u64,
    /// Work of the driver and the core when the clock was last read.
    at_read: u64,
    /// How long the turn had taken when the clock was last read.
    pub took: Duration,
}

impl ClockPace {
    /// Starts a turn. `core` is the core's work so far.
    pub fn begin_turn(&mut self, core: u64) {
        self.at_read = self.work + core;
        self.took = Duration::ZERO;
    }

    /// Counts work of the driver.
    pub fn add(&mut self, work: usize) {
        self.work += work as u64;
    }

    /// True if the caller must read the clock now.
    pub fn is_due(&mut self, core: u64) -> bool {
        let all = self.work + core;
        let due = all - self.at_read >= READ_EVERY;
        if due {
            self.at_read = all;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::Events;
    use mio::net::TcpStream;
    use std::io::Write;
    use std::net::{Shutdown, TcpListener};
    use std::time::Instant;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_client_that_asks_comes_before_those_that_leave() {
        let mut poll = Poll::new().expect("a poller");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("bound");
        let accept = |token: usize| {
            let client = std::net::TcpStream::connect(address).expect("connected");
            let (stream, _) = listener.accept().expect("accepted");
            stream.set_nonblocking(true).expect("a socket");
            let stream = TcpStream::from_std(stream);
            let key = Key::from_token(token);
            let mut conn = NetConnection::open(stream, key);
            conn.socket.register(poll.registry(), key.token()).expect("registered");
            (client, conn)
        };
        let (mut clients, mut conns): (Vec<_>, Vec<_>) = (0..3).map(accept).unzip();
        for leaves in &clients[..2] {
            leaves.shutdown(Shutdown::Write).expect("shut");
        }
        clients[2].write_all(b"GET").expect("sent");
        let (mut events, mut queues) = (Events::with_capacity(8), ConnectionQueues::default());
        let (begin, mut awake) = (Instant::now(), [false; 3]);
        while awake != [true; 3] {
            assert!(begin.elapsed() < LONG, "{awake:?}");
            poll.poll(&mut events, Some(LONG)).expect("events");
            for event in events.iter().filter(|event| event.is_readable()) {
                conns[event.token().0].socket.wake(event);
                awake[event.token().0] = true;
            }
        }
        let keys = [0, 1, 2].map(Key::from_token);
        keys.iter().zip(&mut conns).for_each(|(key, conn)| queues.push(*key, conn));
        let [first, second, asks] = keys;
        assert_eq!((queues.bulk, queues.hot), ([first, second].into(), [asks].into()));
    }

    #[test]
    fn the_clock_is_read_after_sixteen_quiet_connections_or_one_busy_one() {
        let mut pace = ClockPace::default();
        pace.begin_turn(1000);
        for quiet in 1..=32 {
            pace.add(PUMP);
            assert_eq!(pace.is_due(1000), quiet % 16 == 0, "{quiet}");
        }
        pace.add(PUMP);
        assert!(pace.is_due(1000 + READ_EVERY), "the core has worked");
        pace.add(READ_EVERY as usize);
        assert!(pace.is_due(1000 + READ_EVERY), "bytes were moved");
        pace.add(READ_EVERY as usize);
        pace.begin_turn(1000 + READ_EVERY);
        assert!(!pace.is_due(1000 + READ_EVERY), "a new turn");
    }
}
