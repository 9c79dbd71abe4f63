//! The engine: a Redis or Valkey, and the two connections to it.
//!
//! [`Engine`] owns the two connections of its [`Upstream`] (one for commands, one that waits for entries of
//! streams) and what they carry ([`Link`]). It also owns the route to the engine ([`EngineRoute`]), the
//! back-off, the names of its keys, its time, and why it is down. The engine is up once user and password are
//! taken, a script has run, and a stream was read. So an engine counts as down if it is a replica, is full,
//! still loads, or gives too few rights. An engine that replies too late to keep a lease is down too.
//!
//! All keys of marketd are in one slot of a Redis cluster. So a server that replies `MOVED slot host:port` to
//! one command names the server for all of them. [`EngineRoute`] leads to that server from then on, with the
//! same user and password. When that server fails, the configured address is tried again. The two take turns,
//! because either may know where the keys are.
//!
//! No log line or error contains the user or the password.

use super::link::{EngineCommand, Link};
use super::scripts::Script;
use crate::config::{ClusterConfig, Url};
use crate::core::context::Context;
use crate::core::upstream::{ConnectState, Route, Upstream};
use crate::http::Output;
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
    /// The engine's time minus ours (`Mono`), in milliseconds, by the last heartbeats. Each is too high by
    /// the time that the command was on its way.
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

    /// How long connecting and replying may take. A lease is renewed every half tick. So even the latest
    /// reply comes before the trust in the former renewal ends.
    fn timeout(&self) -> Duration {
        self.trusted() - self.tick() / 2
    }

    /// Bytes to send on a connection, and whether bytes from it are welcome.
    pub fn interest(&self, conn: usize, key: Key) -> (&Output, bool) {
        self.upstream.interest(conn, key).unwrap_or((&self.links[conn].out, true))
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
        let is_late = |link: &Link| link.due().is_some_and(|due| due <= now) && !cx.is_behind;
        if self.links.iter().any(is_late) {
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

    /// The engine's clock has gone on for `by`, and the monotonic clock may not have. If the monotonic clock
    /// went on too, the next heartbeat corrects this.
    pub fn slept(&mut self, by: Duration) {
        let ms = by.as_millis() as u64;
        self.zeros.iter_mut().for_each(|zero| *zero = zero.saturating_add_unsigned(ms));
        let pending = self.links.iter_mut().flat_map(|link| &mut link.pending);
        pending.for_each(|it| it.sent_at = it.sent_at - by);
    }

    /// A connection is open.
    pub fn opened(&mut self, conn: usize, cx: &mut Context) {
        // Each command has a deadline of its own.
        self.upstream.wait_until(conn, Mono::NEVER);
        let url = self.route.url.clone();
        if let Some(it) = &url.credentials {
            let words: [&[u8]; 3] = [b"AUTH", &it.user, &it.password];
            let words = if it.user.is_empty() { &[words[0], words[2]] } else { &words[..] };
            self.send_on(conn, EngineCommand::Auth, words, cx);
        }
        if let Some(number @ 1..) = url.database() {
            let number = number.to_string();
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
        script: Script,
        source: SourceId,
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

    /// Sends a heartbeat.
    pub fn beat(&mut self, run: &str, cx: &mut Context) {
        self.run(Script::Beat, SourceId::ENGINE, &[&run], None, cx);
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

/// How often nodes may redirect this one before one of them serves. A stable cluster redirects once; one more
/// redirect happens while a slot moves.
const MOST_HOPS: u8 = 4;

/// Longest name of a host (RFC 1035).
const MOST_HOST: usize = 253;

/// Host and port.
type Place = (String, u16);

/// The way to the engine: see the module's page.
pub struct EngineRoute {
    /// Where it leads now.
    pub url: Url,
    configured: Place,
    /// Where it leads after the next failure, unless only one place is known.
    other: Option<Place>,
    hops: u8,
}

impl EngineRoute {
    /// To the configured address.
    pub fn new(url: Url) -> EngineRoute {
        let configured = (url.host.clone(), url.port);
        EngineRoute { url, configured, other: None, hops: 0 }
    }

    /// Where it leads now, as a [`Route`] without a proxy.
    pub fn direct(&self) -> Route {
        let (host, port) = (self.url.host.clone(), self.url.port);
        Route { host, port, is_tls: self.url.is_tls(), proxy: None }
    }

    /// The engine is up where the route leads.
    pub fn arrived(&mut self) {
        self.hops = 0;
    }

    /// The engine cannot be used. If the host has no other address to try, the other place has its turn.
    /// Returns true if the route leads elsewhere now.
    pub fn failed(&mut self, has_other_address: bool) -> bool {
        self.hops = 0;
        let other = self.other.take_if(|_| !has_other_address);
        let leads_elsewhere = other.is_some();
        if let Some(other) = other {
            self.other = Some(self.lead_to(other));
        }
        leads_elsewhere
    }

    /// The engine has said where the keys are: `slot host:port`.
    pub fn moved(&mut self, told: &[u8]) -> Result<(), &'static str> {
        let place = parse(told, &self.url.host).ok_or("the engine names no node for the keys")?;
        self.hops += 1;
        if self.hops > MOST_HOPS {
            return Err("nodes of its cluster send each other the keys");
        }
        self.other = Some(self.configured.clone()).filter(|it| *it != place);
        self.lead_to(place);
        Ok(())
    }

    /// Leads to a place from now on. Returns the former one.
    fn lead_to(&mut self, (host, port): Place) -> Place {
        let former = (std::mem::replace(&mut self.url.host, host), self.url.port);
        self.url.port = port;
        former
    }
}

/// Reads `slot host:port`. An empty host means the present `host`.
fn parse(told: &[u8], host: &str) -> Option<Place> {
    let (_, place) = std::str::from_utf8(told).ok()?.split_once(' ')?;
    let (named, port) = place.trim_end().rsplit_once(':')?;
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._:".contains(char);
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    let named = named.trim_start_matches('[').trim_end_matches(']');
    let is_host = named.len() <= MOST_HOST && named.chars().all(is_plain);
    let named = if named.is_empty() { host } else { named };
    is_host.then(|| (named.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> EngineRoute {
        EngineRoute::new(Url::engine("rediss://u:p@10.0.0.1:7000/0").expect("it is well-formed"))
    }

    fn port(route: &EngineRoute) -> u16 {
        route.url.port
    }

    #[test]
    fn a_node_that_has_the_keys_is_read_in_all_its_forms() {
        let check = |told: &str, expected: Option<(&str, u16)>| {
            let expected = expected.map(|(host, port)| (host.to_string(), port));
            assert_eq!(parse(told.as_bytes(), "here"), expected, "{told:?}");
        };
        check("3999 10.0.0.2:7001", Some(("10.0.0.2", 7001)));
        check("3999 :7001", Some(("here", 7001)));
        check("3999 Redis-2.example:7001", Some(("redis-2.example", 7001)));
        check("3999 2001:db8::1:7001", Some(("2001:db8::1", 7001)));
        check("3999 [2001:db8::1]:7001", Some(("2001:db8::1", 7001)));
        for told in ["", "3999", "3999 ", "3999 ?:7001", "3999 h", "3999 h:0", "3999 h:70000"] {
            check(told, None);
        }
        for told in ["3999 a b:1", "3999 a@b:1", "3999 \u{e9}:1"] {
            check(told, None);
        }
        check(&format!("1 {}:1", "x".repeat(254)), None);
    }

    #[test]
    fn a_place_that_fails_takes_turns_with_the_configured_one() {
        let mut route = route();
        assert_eq!(route.moved(b"1 10.0.0.2:7001"), Ok(()));
        route.arrived();
        assert!(!route.failed(true), "it has another address");
        let ports = [0; 4].map(|_| (route.failed(false), port(&route)));
        assert_eq!(ports, [7000, 7001, 7000, 7001].map(|port| (true, port)));
        assert_eq!(route.url.to_string(), "rediss://***@10.0.0.2:7001/0");
    }
}
