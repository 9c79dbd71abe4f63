//! All client connections.
//!
//! [`Clients`] owns the table of connections and passes each of them to the part that acts on it:
//!
//! - `connection`: the life of one connection, from accept to close; which deadline closes it, and why.
//! - `accepting`: the limits on the number of connections (`address_counts`).
//! - `sweeping`: deadlines, and the limits on the bytes of all connections.
//! - `reading`: requests (`head_cache`) and the order in which they are served.
//! - `responses`: responses, at once or later (`admission`, `rate_limiter`, `access_log`, `pending`,
//!   `deferred`).
//! - `streaming`: clients that are told what changes (`streams`).
//!
//! The way of a response has these types. A [`Connection`], in its [`Phase`], keeps the bytes of a
//! [`Request`](crate::http::Request). [`Responses`] finds what the request is for, often a
//! [`Prepared`](crate::core::api::Prepared) one of the head cache, asks whether it is admitted, and lets it
//! write to a [`Responder`](crate::http::Responder). What it hands back is an
//! [`Outcome`](crate::core::api::Outcome): the response is sent, or waits in the connection as a
//! [`Pending`](pending::Pending) one, in line with others. It is counted and logged as
//! [`Served`](pending::Served).
//!
//! To add a limit: `config/limits.rs`.

mod accepting;
mod access_log;
mod address_counts;
mod admission;
mod connection;
mod deferred;
mod head_cache;
mod pending;
mod rate_limiter;
mod reading;
mod responses;
mod streaming;
mod streams;
mod sweeping;

use crate::config::{Config, Limits};
use crate::core::CloseReason;
use crate::core::api::{Error, View};
use crate::core::{Census, Context, Event, LongWork, Service, Status, WorkSet};
use crate::demo::{Demo, DemoScript};
use crate::http::Outgoing;
use crate::market::SeriesKey;
use crate::table::{Key, Table};
use crate::time::{Mono, UnixMs};
use accepting::Acceptor;
pub use accepting::{DEMO_CLIENTS, MOST_REFUSED};
use connection::{Connection, Phase};
use responses::Responses;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;
use sweeping::Sweeper;

/// Memory is given back only if clients have held at least this many bytes.
const CROWD_BYTES: u64 = 8 * 1024 * 1024;

/// How long clients must hold less than a quarter of their peak before memory is given back. That takes
/// some milliseconds, and as long again if they need it once more.
const CROWD_PAUSE: Duration = Duration::from_secs(2);

/// See the module's page.
pub struct Clients {
    connections: Table<Connection>,
    acceptor: Acceptor,
    sweeper: Sweeper,
    responses: Responses,
    /// The most bytes that clients held since memory was last given back.
    peak_bytes: u64,
    /// When they last held a quarter of that.
    crowded_at: Mono,
    has_shrunk: bool,
}

impl Clients {
    /// No connections yet. `first`: the lowest index of their keys.
    pub fn new(demo: Option<Demo>, first: usize, cx: &Context) -> Clients {
        let most = cx.config.limits.max_connections + MOST_REFUSED + DEMO_CLIENTS;
        Clients {
            connections: Table::behind(first, most),
            acceptor: Acceptor::default(),
            sweeper: Sweeper::new(cx.now.mono),
            responses: Responses::new(demo, cx),
            peak_bytes: 0,
            crowded_at: cx.now.mono,
            has_shrunk: false,
        }
    }

    /// Takes in a new configuration, in place of one with these limits.
    pub fn reconfigure(&mut self, old: &Limits, config: &Config) {
        self.responses.reconfigure(old, config);
    }

    /// The demo exchange follows this script from now on, and sets its clock if the script says so.
    pub fn follow_script(&mut self, script: DemoScript, cx: &mut Context) {
        if let Some(at) = self.responses.demo.as_mut().and_then(|demo| demo.follow(script)) {
            cx.set_demo_clock(at);
        }
    }

    /// True if a key may be that of a client. Every other key is that of a connection to an exchange, or to
    /// the engine of the cluster.
    #[inline]
    pub fn may_own(&self, key: Key) -> bool {
        self.connections.may_own(key)
    }

    /// Accepts a connection. `None`: there is no room even to refuse it.
    pub fn accept(
        &mut self,
        peer: Option<IpAddr>,
        service: Service,
        cx: &mut Context,
    ) -> Option<Key> {
        self.acceptor.accept(&mut self.connections, peer, service, cx)
    }

    /// The socket of a connection is dropped.
    pub fn closed(&mut self, key: Key, cx: &mut Context) {
        let Some(mut connection) = self.connections.remove(key) else {
            return;
        };
        let Responses { deferred, streams, access_log, .. } = &mut self.responses;
        deferred.forget(key);
        if let Some(stream) = connection.stream.take() {
            let reason = connection.reason.unwrap_or(CloseReason::Broken);
            access_log.log(&stream.served, 200, stream.sent_bytes, cx.now.mono);
            streams.closed(key, &stream, reason, cx);
        }
        self.acceptor.closed(&mut connection, cx);
    }

    /// Handles an event of a connection.
    #[inline]
    pub fn handle(&mut self, key: Key, event: Event<'_>, cx: &mut Context) {
        self.on(Some(key), cx, |responses, connection, cx| responses.handle(connection, event, cx));
    }

    /// Does something with a connection, if it is still there, and counts what it holds then.
    #[inline]
    fn on(
        &mut self,
        key: Option<Key>,
        cx: &mut Context,
        act: impl FnOnce(&mut Responses, &mut Connection, &mut Context),
    ) {
        if let Some(connection) = key.and_then(|key| self.connections.get_mut(key)) {
            act(&mut self.responses, connection, cx);
            connection.recount(&mut cx.stats.http);
        }
    }

    /// The bytes to be sent to a client now, and whether the driver may read from it.
    #[inline]
    pub fn interest(&self, key: Key) -> (Outgoing<'_>, bool) {
        match self.connections.get(key) {
            Some(connection) => (connection.output.pending(), connection.wants_read()),
            None => (Outgoing::from(&[][..]), false),
        }
    }

    /// Sets the date of responses. Returns true once a second, if it has changed: then the memory that
    /// clients take is looked at as well.
    #[inline]
    pub fn set_date(&mut self, now: UnixMs, cx: &Context) -> bool {
        let is_new = self.responses.stamp.refresh(now);
        if is_new {
            self.watch_memory(cx);
        }
        is_new
    }

    /// What all responses have cost so far. It only rises.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.responses.spent
    }

    /// Handles deadlines and the limits on the bytes of all connections.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        let Clients { connections, sweeper, responses, .. } = self;
        let is_due = sweeper.next_sweep <= cx.now.mono
            && (!connections.is_empty() || responses.compressed.is_keeping());
        if is_due && sweeper.sweep(connections, responses, cx) {
            responses.compressed.sweep();
        }
        responses.streams.handle_timeout(&responses.compressed, cx);
        sweeper.shed(connections, cx);
        let now = cx.now.mono;
        for delayed in responses.delayed.extract_if(.., |it| it.until <= now) {
            if let Some(connection) = connections.get_mut(delayed.key) {
                delayed.send(connection, cx);
            }
        }
    }

    /// When [`Clients::handle_timeout`] or [`Clients::wake`] is due.
    pub fn due(&self) -> Mono {
        let Responses { deferred, compressed, delayed, .. } = &self.responses;
        let delayed = delayed.iter().map(|it| it.until).min().unwrap_or(Mono::NEVER);
        let is_swept = !self.connections.is_empty() || compressed.is_keeping();
        let sweep = if is_swept { self.sweeper.next_sweep } else { Mono::NEVER };
        sweep.min(deferred.next_due.unwrap_or(Mono::NEVER)).min(delayed)
    }

    /// Closes the connections that are between two requests, and ends all streams: marketd stops.
    pub fn shut_down(&mut self, cx: &mut Context) {
        self.sweeper = Sweeper::new(cx.now.mono);
        self.handle_timeout(cx);
        for key in self.responses.streams.keys() {
            self.on(Some(key), cx, |responses, connection, cx| {
                responses.streams.end(connection, cx);
            });
        }
    }

    /// What [`Clients::work`] has to do.
    #[inline]
    pub fn has_work(&self, cx: &Context) -> WorkSet {
        let Responses { queue, deferred, compressed, streams, .. } = &self.responses;
        LongWork::Requests.if_any(!queue.is_empty())
            | LongWork::Responses.if_any(deferred.has_work())
            | LongWork::Compression.if_any(compressed.has_work())
            | LongWork::Streams.if_any(streams.has_work(cx))
    }

    /// Does one slice of work of this kind: the next requests of a queued connection, a part of a deferred
    /// response, a part of a compressed body, or events of streams.
    pub fn work(&mut self, work: LongWork, cx: &mut Context) {
        let Clients { connections, responses, .. } = self;
        match work {
            LongWork::Requests => {
                let next = responses.queue.pop_front();
                self.on(next, cx, |responses, it, cx| responses.serve_queued(it, cx));
            }
            LongWork::Responses => {
                let next = responses.deferred.next();
                self.on(next, cx, |responses, it, cx| responses.step(it, cx));
            }
            LongWork::Compression => {
                let waits = |key| connections.get(key).is_some_and(Connection::is_busy);
                // Its responses run when that was the last slice.
                if let Some((bytes, keys)) = responses.compressed.step(waits) {
                    responses.deferred.compressed(keys, &bytes, connections);
                }
            }
            LongWork::Streams => {
                let next = responses.streams.step(connections, &responses.compressed, cx);
                self.on(next, cx, |responses, it, cx| {
                    let Responses { streams, compressed, spare, .. } = responses;
                    streams.send(it, (compressed, spare), cx);
                });
            }
            _ => {}
        }
    }

    /// True if a response has waited for candles as long as it may: [`Clients::wake`] is due.
    #[inline]
    pub fn has_waited_enough(&self, now: Mono) -> bool {
        self.responses.deferred.next_due.is_some_and(|due| due <= now)
    }

    /// The candles that this client's response waits for will not come: it is made without them.
    pub fn go_without(&mut self, client: Option<Key>) {
        if let Some(key) = client {
            self.responses.deferred.go_without(key, &mut self.connections);
        }
    }

    /// Too many reads of the history file are under way: this client's response is refused.
    pub fn refuse(&mut self, client: Option<Key>, cx: &mut Context) {
        let error = Error::unavailable("Too many charts wait for the history file.", 1);
        self.on(client, cx, |responses, it, cx| responses.refuse(it, &error, cx));
    }

    /// Lets each waiting response choose its source again, and wishes for the candles that it lacks.
    pub fn renew_wishes(&mut self, cx: &mut Context) {
        let Responses { deferred, compressed, .. } = &self.responses;
        let view = View::new(cx, compressed);
        for (key, needed, missing) in deferred.choose_again(&mut self.connections, &view) {
            cx.wish(Some(key), needed, missing);
        }
    }

    /// Looks again at the responses that wait for candles. `comes`: true if these slots of a series are on
    /// their way.
    pub fn wake(&mut self, comes: impl Fn(SeriesKey, &Range<i64>) -> bool, cx: &Context) {
        let Responses { deferred, compressed, .. } = &mut self.responses;
        deferred.wake(&mut self.connections, &View::new(cx, compressed), comes);
    }

    /// Counts the connections of clients.
    pub fn census(&self) -> Census {
        let count = |is_counted: fn(&Connection) -> bool| {
            let all = self.connections.iter();
            all.filter(|(_, connection)| is_counted(connection)).count()
        };
        Census {
            clients: self.connections.len(),
            in_flight: count(Connection::is_busy),
            deferred: count(|it| matches!(it.phase, Phase::Waiting(_))),
            ..Census::default()
        }
    }

    /// Counts one turn of the loop.
    pub fn note_turn(&mut self, took_us: u64, stats: &mut Status) {
        let Responses { queue, deferred, compressed, access_log, .. } = &mut self.responses;
        stats.http.durations.end_turn(took_us);
        access_log.end_turn(took_us);
        stats.queues.clients += queue.len();
        (stats.queues.waiting, stats.queues.in_parts) = deferred.depths();
        (stats.queues.compressing, stats.compressed_bytes) = compressed.depths();
    }

    /// True once when clients have held less than a quarter of the most that they held since the last time
    /// for so long that memory is worth giving back.
    pub fn take_shrunk(&mut self) -> bool {
        std::mem::take(&mut self.has_shrunk)
    }

    fn watch_memory(&mut self, cx: &Context) {
        let held = cx.stats.http.client_bytes();
        self.peak_bytes = self.peak_bytes.max(held);
        if held >= self.peak_bytes / 4 {
            self.crowded_at = cx.now.mono;
        }
        if self.peak_bytes >= CROWD_BYTES && cx.now.mono.since(self.crowded_at) >= CROWD_PAUSE {
            self.peak_bytes = held;
            self.has_shrunk = true;
        }
    }
}
