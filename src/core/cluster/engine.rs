//! The engine: a Redis or Valkey, and the two connections to it.
//!
//! [`Engine`] owns the two connections of its [`Upstream`] (one for commands, one that waits for entries of
//! streams) and what they carry ([`Link`]), the way to it ([`EngineRoute`]), the back-off, the names of its
//! keys, its time, and why it is down. The engine is up once user and password are taken, a script has run,
//! and a stream was read. So an engine counts as down if it is a replica, is full, still loads, or gives too
//! few rights. An engine that replies too late to keep a lease is down too.
//!
//! No log line or error of it contains the user or the password.

use super::link::{EngineCommand, Link};
use super::route::EngineRoute;
use super::scripts::Script;
use crate::config::ClusterConfig;
use crate::core::context::Context;
use crate::core::upstream::{ConnectState, Upstream};
use crate::log_targets::{CLUSTER, quoted};
use crate::market::SourceId;
use crate::rng::Rng;
use crate::table::Key;
use crate::time::Mono;
use std::collections::VecDeque;
use std::fmt::Display;
use std::time::Duration;

/// The wait before the first retry. It doubles with each retry, up to [`BACKOFF`], and each wait is shortened
/// at random by up to half. So a node that has lost one reply is back before its lease ends.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// The longest wait before the next retry: all nodes are to be back soon after the engine is. If the engine
/// fails after it was up for less than this, the wait goes on doubling.
const BACKOFF: Duration = Duration::from_secs(1);

/// Heartbeats from which the time of the engine is computed. The one with the shortest trip is the most
/// exact.
const TIMES: usize = 8;

/// The engine waits for an entry for the lease divided by this, before it replies that there is none. A
/// source that is followed anew is read after that time at the latest.
pub const BLOCKS: u32 = 12;

/// Connections that may be open or not closed yet.
pub const MOST_CONNECTIONS: usize = 8;

/// The index of the connection for commands.
pub const COMMANDS: usize = 0;

/// The index of the connection that waits for entries.
pub const READER: usize = 1;

/// See the module's page.
pub struct Engine {
    /// True if it takes commands.
    pub is_up: bool,
    /// How long a lease lasts without a renewal.
    pub lease: Duration,
    up_since: Mono,
    /// Why it is down.
    pub trouble: Option<String>,
    /// When it is tried again, once it is closed.
    pub retry_at: Mono,
    /// Its connections: [`COMMANDS`] and [`READER`].
    pub upstream: Upstream,
    /// What they carry.
    pub links: [Link; 2],
    route: EngineRoute,
    failures: u32,
    /// The prefix of all keys. It is their hash tag, so that all are in one slot of a Redis cluster.
    prefix: String,
    /// The milliseconds of the engine at our `Mono` zero, by the last heartbeats. Each is too high by the
    /// time that the command was on its way.
    zeros: VecDeque<i64>,
    /// Random numbers for back-off and jitter.
    pub rng: Rng,
}

impl Engine {
    /// The engine at this address, to which nothing is connected yet.
    pub fn new(config: &ClusterConfig, rng: Rng, now: Mono) -> Engine {
        let route = EngineRoute::new(config.url.clone());
        Engine {
            is_up: false,
            lease: config.lease,
            up_since: now,
            trouble: None,
            retry_at: now,
            upstream: Upstream::new(SourceId::ENGINE, route.direct(), 2),
            links: Default::default(),
            route,
            failures: 0,
            prefix: format!("{{{}}}", config.prefix),
            zeros: VecDeque::new(),
            rng,
        }
    }

    /// Time between two looks at a lease, and two heartbeats. A lease is renewed twice as often.
    pub fn tick(&self) -> Duration {
        self.lease / 3
    }

    /// How long after its sending a renewal is trusted: the lease less a tenth, because clocks drift.
    pub fn trusted(&self) -> Duration {
        self.lease * 9 / 10
    }

    /// How long connecting and replying may take. A lease is renewed every half tick. So a reply that comes
    /// just in time comes before the trust in the renewal before it ends.
    fn timeout(&self) -> Duration {
        self.trusted() - self.tick() / 2
    }

    /// Bytes to send on a connection, and whether bytes from it are welcome.
    pub fn interest(&self, conn: usize, key: Key) -> (&[u8], bool) {
        self.upstream.interest(conn, key).unwrap_or((&self.links[conn].out[..], true))
    }

    /// True if it has been up long enough for every node to find it.
    pub fn is_settled(&self, now: Mono) -> bool {
        self.is_up && now.since(self.up_since) > 4 * BACKOFF + self.lease
    }

    /// When [`Engine::handle_timeout`] is wanted.
    pub fn due(&self) -> Mono {
        let is_closed = self.upstream.state(COMMANDS) == ConnectState::Closed;
        let retry = is_closed.then_some(self.retry_at);
        let replies = self.links.iter().filter_map(Link::due);
        replies.chain(retry).chain(self.upstream.due()).min().unwrap_or(Mono::NEVER)
    }

    /// Gives up attempts and commands whose time has ended, and connects.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        let now = cx.now.mono;
        for conn in [COMMANDS, READER] {
            if let Err(ended) = self.upstream.handle_timeout(conn, cx) {
                return self.fail(&ended.to_string(), cx);
            }
        }
        if self.links.iter().any(|it| it.due().is_some_and(|due| due <= now)) {
            return self.fail("no reply in time", cx);
        }
        if self.upstream.state(COMMANDS) == ConnectState::Closed && self.retry_at <= now {
            self.upstream.want(COMMANDS, now + self.timeout(), cx);
        }
    }

    /// This process was paused: moves all deadlines, so that replies that came meanwhile count.
    pub fn postpone(&mut self, by: Duration) {
        self.upstream.postpone(by);
        self.links.iter_mut().for_each(|link| link.postpone(by));
    }

    /// A connection is open.
    pub fn opened(&mut self, conn: usize, cx: &mut Context) {
        // Each command has a deadline of its own.
        self.upstream.wait_until(conn, Mono::NEVER);
        let url = self.route.url.clone();
        if let Some(it) = url.credentials {
            let words: [&[u8]; 3] = [b"AUTH", &it.user, &it.password];
            let words = if it.user.is_empty() { &[words[0], words[2]] } else { &words[..] };
            self.send_on(conn, EngineCommand::Auth, words, cx);
        }
        if url.database != 0 {
            let number = url.database.to_string();
            self.send_on(conn, EngineCommand::Other, &[b"SELECT", number.as_bytes()], cx);
        }
        if conn == READER {
            let key = self.key(SourceId::ENGINE, "probe", cx);
            let words: [&[u8]; 6] = [b"XREAD", b"COUNT", b"1", b"STREAMS", key.as_bytes(), b"0"];
            self.send_on(conn, EngineCommand::Read, &words, cx);
        }
    }

    /// Notes the time of the engine, from the reply to a heartbeat that was sent at `sent_at`. Opens the
    /// connection that waits for entries, if it is closed.
    pub fn beaten(&mut self, ms: i64, sent_at: Mono, cx: &mut Context) {
        self.zeros.push_back(ms.saturating_sub_unsigned(sent_at.0 / 1000));
        if self.zeros.len() > TIMES {
            self.zeros.pop_front();
        }
        if self.upstream.state(READER) == ConnectState::Closed {
            self.upstream.want(READER, cx.now.mono + self.timeout(), cx);
        }
    }

    /// A stream was read: the engine is up.
    pub fn came_up(&mut self, cx: &mut Context) {
        (self.is_up, self.up_since, self.trouble) = (true, cx.now.mono, None);
        self.route.arrived();
        self.upstream.worked(COMMANDS, cx);
        log::info!(target: CLUSTER, "engine up address={}", self.route.url);
    }

    /// Its time in milliseconds: never too low, and too high by less than a round trip.
    pub fn time_ms(&self, now: Mono) -> i64 {
        let zero = self.zeros.iter().min().copied().unwrap_or(0);
        zero.saturating_add_unsigned(now.0 / 1000)
    }

    /// True if it takes one more command of this many bytes.
    pub fn has_room(&mut self, bytes: usize) -> bool {
        self.is_up && self.links[COMMANDS].has_room(bytes)
    }

    /// Sends a command.
    pub fn send(&mut self, command: EngineCommand, words: &[&[u8]], cx: &mut Context) {
        self.send_on(COMMANDS, command, words, cx);
    }

    /// Sends a command on a connection, if that is open.
    pub fn send_on(
        &mut self,
        conn: usize,
        command: EngineCommand,
        words: &[&[u8]],
        cx: &mut Context,
    ) {
        if self.upstream.state(conn) == ConnectState::Open {
            let blocks = command == EngineCommand::Read;
            let block = if blocks { self.lease / BLOCKS } else { Duration::ZERO };
            let deadline = cx.now.mono + block + self.timeout();
            self.links[conn].push(command, words, cx.now.mono, deadline);
            self.upstream.flush(conn, cx);
        }
    }

    /// Runs a script. `body` comes behind the other arguments.
    pub fn run(
        &mut self,
        (script, source, note): (Script, SourceId, u64),
        arguments: &[&dyn Display],
        body: Option<&[u8]>,
        cx: &mut Context,
    ) {
        let keys: Vec<String> =
            script.keys().iter().map(|what| self.key(source, what, cx)).collect();
        let (text, count) = (script.text(), keys.len().to_string());
        let mut words: Vec<&[u8]> = vec![b"EVAL", text.as_bytes(), count.as_bytes()];
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        words.extend(keys.iter().chain(&arguments).map(String::as_bytes));
        words.extend(body);
        self.send(EngineCommand::Run(script, source, note), &words, cx);
    }

    /// The name of a key: of a source, or of the whole cluster.
    pub fn key(&self, source: SourceId, what: &str, cx: &Context) -> String {
        let prefix = &self.prefix;
        match cx.stats.sources.get(source.index()) {
            Some(source) => format!("{prefix}:{}:{what}", source.id),
            None => format!("{prefix}:{what}"),
        }
    }

    /// Tells that this node lives.
    pub fn beat(&mut self, run: &str, cx: &mut Context) {
        self.run((Script::Beat, SourceId::ENGINE, 0), &[&run], None, cx);
    }

    /// Follows `MOVED`: connects to the node of the Redis cluster that has the keys.
    pub fn moved(&mut self, told: &[u8], cx: &mut Context) {
        if let Err(why) = self.route.moved(told) {
            return self.fail(why, cx);
        }
        self.close(cx);
        self.upstream.reroute(self.route.direct(), cx);
        self.retry_at = cx.now.mono;
        log::info!(target: CLUSTER, "engine moved address={}", self.route.url);
    }

    fn close(&mut self, cx: &mut Context) {
        self.upstream.close_all(cx);
        (self.links, self.is_up) = (Default::default(), false);
    }

    /// Closes both connections, logs why, and schedules the next try.
    pub fn fail(&mut self, why: &str, cx: &mut Context) {
        if self.trouble.as_deref() != Some(why) {
            log::warn!(target: CLUSTER, "engine down address={} error={}", self.route.url, quoted(why));
            self.trouble = Some(why.to_string());
        }
        let was_up = self.is_up && cx.now.mono.since(self.up_since) > BACKOFF;
        let failures = if was_up { 0 } else { self.failures };
        self.failures = failures.saturating_add(1);
        let pause = BACKOFF.min(FIRST_BACKOFF * 2u32.pow(failures.min(16)));
        let less = Duration::from_micros(self.rng.below(pause.as_micros() as u64 / 2));
        self.retry_at = cx.now.mono + (pause - less);
        self.upstream.failed(COMMANDS, cx.now.mono, cx);
        self.close(cx);
        if self.route.failed(self.upstream.addresses.has_good()) {
            self.upstream.reroute(self.route.direct(), cx);
        }
    }
}
