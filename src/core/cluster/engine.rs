//! The engine: a Redis or Valkey, and the two connections to it.
//!
//! [`Engine`] owns the connections (one for commands, one that waits for entries of streams), the way to it
//! ([`EngineRoute`]), the back-off, the names of its keys and of the loaded scripts, its time, and why it is
//! down. It is up once user and password are taken, the scripts are loaded, and one of them has run: so a
//! replica, a full engine and one that still loads are down.
//!
//! No log line or error of it contains the user or the password.

use super::link::{EngineCommand, Link};
use super::route::EngineRoute;
use super::scripts::{LEASE_MS, Script};
use crate::config::EngineUrl;
use crate::core::context::Context;
use crate::core::{Action, Broken};
use crate::log_targets::{CLUSTER, quoted};
use crate::market::SourceId;
use crate::rng::Rng;
use crate::table::{Key, Table};
use crate::time::Mono;
use std::collections::VecDeque;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

/// First wait before the next try, doubled with each up to [`MOST_BACKOFF`], less up to half.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// Longest wait before the next try: all nodes are to be back soon after the engine is.
const MOST_BACKOFF: Duration = Duration::from_secs(2);

/// Deadlines are looked at each second. After a longer gap this process was paused, or the machine slept.
const AWAY: Duration = Duration::from_millis(1500);

/// Heartbeats from which the time of the engine is computed. The one with the shortest trip is the most
/// exact.
const TIMES: usize = 8;

/// Connections that may be open or not closed yet.
pub const MOST_CONNECTIONS: usize = 8;

/// Which of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The connection for commands.
    Commands,
    /// The connection that waits for entries.
    Reader,
}

/// See the module's page.
pub struct Engine {
    /// True if it takes commands.
    pub is_up: bool,
    /// Why it is down.
    pub trouble: Option<String>,
    /// When it is tried again, unless its name is being looked up.
    pub retry_at: Mono,
    /// Whose connection a key names, until its socket is closed.
    pub connections: Table<Which>,
    /// By `Which`.
    links: [Link; 2],
    route: EngineRoute,
    failures: u32,
    /// The prefix of all keys. It is their hash tag, so that all are in one slot of a Redis cluster.
    prefix: String,
    /// By `Script`, the name under which it is loaded.
    pub scripts: [Option<Box<[u8]>>; Script::ALL.len()],
    /// The milliseconds of the engine at our `Mono` zero, by the last heartbeats. Each is too high by the
    /// time that the command was on its way.
    zeros: VecDeque<i64>,
    /// Random numbers for back-off and jitter.
    pub rng: Rng,
    /// When deadlines were last looked at.
    looked_at: Mono,
}

impl Engine {
    /// That of this address, to which nothing is connected. Keys of its connections begin at `first`.
    pub fn new(url: EngineUrl, prefix: &str, first: usize, rng: Rng, now: Mono) -> Engine {
        Engine {
            is_up: false,
            trouble: None,
            retry_at: now,
            connections: Table::behind(first, MOST_CONNECTIONS),
            links: Default::default(),
            route: EngineRoute::new(url),
            failures: 0,
            prefix: format!("{{{prefix}}}"),
            scripts: Default::default(),
            zeros: VecDeque::new(),
            rng,
            looked_at: now,
        }
    }

    /// One of the connections.
    pub fn link(&mut self, which: Which) -> &mut Link {
        &mut self.links[which as usize]
    }

    /// Whose connection this is.
    pub fn which(&self, key: Key) -> Option<Which> {
        let which = *self.connections.get(key)?;
        (self.links[which as usize].key == Some(key)).then_some(which)
    }

    /// Bytes to send on a connection, and whether bytes from it are welcome.
    pub fn interest(&self, key: Key) -> (&[u8], bool) {
        match self.which(key).map(|which| &self.links[which as usize]) {
            Some(link) => (link.outgoing(), link.connecting.is_open()),
            None => (&[], false),
        }
    }

    /// True if nothing waits to be sent, or nothing can be.
    pub fn has_sent(&self) -> bool {
        !self.is_up || self.links[Which::Commands as usize].has_sent()
    }

    /// When [`Engine::handle_timeout`] is wanted.
    pub fn due(&self) -> Mono {
        let is_closed = self.links[Which::Commands as usize].key.is_none();
        let retry = is_closed.then_some(self.retry_at);
        self.links.iter().filter_map(Link::due).chain(retry).min().unwrap_or(Mono::NEVER)
    }

    /// Gives up what is late, and connects. `true`: this process was paused.
    pub fn handle_timeout(&mut self, cx: &mut Context) -> bool {
        let now = cx.now.mono;
        let gap = now.since(std::mem::replace(&mut self.looked_at, now));
        let was_away = gap > AWAY;
        if was_away {
            self.links.iter_mut().for_each(|link| link.postpone(gap));
        }
        if let Some(late) = self.links.iter().find(|it| it.due().is_some_and(|due| due <= now)) {
            let why = match late.connecting.obstacle() {
                None => "no reply in time".to_string(),
                Some(obstacle) => format!("{obstacle}: no reply in time"),
            };
            self.fail(&why, cx);
            return was_away;
        }
        let is_closed = |link: &Link| link.key.is_none();
        if is_closed(self.link(Which::Commands)) && self.retry_at <= now {
            self.connect(Which::Commands, cx);
        }
        if self.is_up && is_closed(self.link(Which::Reader)) {
            self.connect(Which::Reader, cx);
        }
        was_away
    }

    fn connect(&mut self, which: Which, cx: &mut Context) {
        let Some(address) = self.route.address() else {
            self.retry_at = Mono::NEVER;
            let url = self.route.url();
            cx.actions.push_back(Action::Resolve {
                source: SourceId::ENGINE,
                host: url.host.clone(),
                port: url.port,
            });
            return;
        };
        let Some(key) = self.connections.insert(which) else {
            // Old sockets are not closed yet.
            self.retry_at = cx.now.mono + FIRST_BACKOFF;
            return;
        };
        let route = self.route.direct();
        self.link(which).opening(key, address, &route, cx.now);
        cx.actions.push_back(Action::Connect(key, address));
    }

    /// Takes in the addresses of the host, or why there are none.
    pub fn resolved(&mut self, addresses: Result<Vec<SocketAddr>, String>, cx: &mut Context) {
        self.retry_at = cx.now.mono;
        match addresses {
            Ok(addresses) => self.route.resolved(addresses),
            Err(why) => self.fail(&why, cx),
        }
    }

    /// A connection is open, or its handshake is done.
    pub fn connected(&mut self, which: Which, key: Key, cx: &mut Context) {
        let (url, route) = (self.route.url().clone(), self.route.direct());
        let connecting = &mut self.link(which).connecting;
        connecting.advance(&route, cx.now);
        if !connecting.is_open() {
            return cx.actions.push_back(Action::Secure(key, url.host));
        }
        if let Some(it) = url.credentials {
            let words: [&[u8]; 3] = [b"AUTH", &it.user, &it.password];
            let words = if it.user.is_empty() { &[words[0], words[2]] } else { &words[..] };
            self.link(which).send(EngineCommand::Auth, words, cx);
        }
        if url.database != 0 {
            let number = url.database.to_string();
            self.link(which).send(EngineCommand::Other, &[b"SELECT", number.as_bytes()], cx);
        }
        if which == Which::Commands {
            self.load_scripts(cx);
        }
    }

    /// Loads the scripts: once a connection, and when the engine has lost them.
    pub fn load_scripts(&mut self, cx: &mut Context) {
        let pending = &self.link(Which::Commands).pending;
        if pending.iter().any(|it| matches!(it.command, EngineCommand::Load(_))) {
            return;
        }
        for script in Script::ALL {
            let text = script.text();
            let words: [&[u8]; 3] = [b"SCRIPT", b"LOAD", text.as_bytes()];
            self.send(EngineCommand::Load(script), &words, cx);
        }
    }

    /// Notes that a heartbeat has succeeded: the engine is up. Returns true if it was down.
    pub fn note_up(&mut self, cx: &mut Context) -> bool {
        let was_down = !std::mem::replace(&mut self.is_up, true);
        if was_down {
            (self.failures, self.trouble) = (0, None);
            self.route.arrived();
            log::info!(target: CLUSTER, "engine up address={}", self.route.url());
            self.connect(Which::Reader, cx);
        }
        was_down
    }

    /// Notes the time of the engine, from the reply to a heartbeat that was sent at `sent_at`.
    pub fn note_time(&mut self, ms: i64, sent_at: Mono) {
        self.zeros.push_back(ms.saturating_sub_unsigned(sent_at.0 / 1000));
        if self.zeros.len() > TIMES {
            self.zeros.pop_front();
        }
    }

    /// Its time in milliseconds: never too low, and too high by less than a round trip.
    pub fn time_ms(&self, now: Mono) -> i64 {
        let zero = self.zeros.iter().min().copied().unwrap_or(0);
        zero.saturating_add_unsigned(now.0 / 1000)
    }

    /// True if it takes one more command with so many bytes.
    pub fn has_room(&mut self, bytes: usize) -> bool {
        self.is_up && self.link(Which::Commands).has_room(bytes)
    }

    /// Sends a command.
    pub fn send(&mut self, command: EngineCommand, words: &[&[u8]], cx: &mut Context) {
        self.link(Which::Commands).send(command, words, cx);
    }

    /// Runs a script, once it is loaded. `body` comes behind the other arguments.
    pub fn run(
        &mut self,
        script: Script,
        source: SourceId,
        arguments: &[&dyn Display],
        body: Option<&[u8]>,
        cx: &mut Context,
    ) {
        let Some(name) = self.scripts[script as usize].clone() else {
            return;
        };
        let keys: Vec<String> =
            script.keys().iter().map(|what| self.key(source, what, cx)).collect();
        let count = keys.len().to_string();
        let mut words: Vec<&[u8]> = vec![b"EVALSHA", &name, count.as_bytes()];
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        words.extend(keys.iter().chain(&arguments).map(String::as_bytes));
        words.extend(body);
        self.send(EngineCommand::Run(script, source), &words, cx);
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
        self.run(Script::Beat, SourceId::ENGINE, &[&run, &LEASE_MS], None, cx);
    }

    /// A connection has ended, or was never open.
    pub fn lost(&mut self, which: Which, why: Option<&Broken>, cx: &mut Context) {
        let obstacle = self.link(which).connecting.obstacle().unwrap_or("connection lost");
        let why = why.map_or("closed by the peer".to_string(), ToString::to_string);
        self.fail(&format!("{obstacle}: {why}"), cx);
    }

    /// Follows `MOVED`: connects to the node of the Redis cluster that has the keys.
    pub fn moved(&mut self, told: &[u8], cx: &mut Context) {
        if let Err(why) = self.route.moved(told) {
            return self.fail(why, cx);
        }
        self.close(cx);
        self.retry_at = cx.now.mono;
        log::info!(target: CLUSTER, "engine moved address={}", self.route.url());
    }

    fn close(&mut self, cx: &mut Context) {
        for link in &mut self.links {
            link.close(cx);
        }
        self.is_up = false;
    }

    /// Closes both connections, logs why, and schedules the next try.
    pub fn fail(&mut self, why: &str, cx: &mut Context) {
        let url = self.route.url().clone();
        self.route.failed(self.is_up);
        self.close(cx);
        let doubled = FIRST_BACKOFF * 2u32.saturating_pow(self.failures.min(16));
        let step = doubled.min(MOST_BACKOFF);
        self.failures += 1;
        let less = self.rng.below(step.as_micros() as u64 / 2);
        self.retry_at = cx.now.mono + (step - Duration::from_micros(less));
        if self.trouble.as_deref() != Some(why) {
            log::warn!(target: CLUSTER, "engine down address={url} error={}", quoted(why));
            self.trouble = Some(why.to_string());
        }
    }
}
