//! All client connections.
//!
//! [`Clients`] owns the table of connections and passes each of them to the part that acts on it:
//!
//! - `connection`: the life of one connection, from accept to close; which deadline closes it, and why.
//! - `accepting`: the limits on the number of connections (`address_counts`).
//! - `sweeping`: deadlines, and the limits on the bytes of all connections.
//! - `reading`: reads requests (`head_cache`), and serves them in their order.
//! - `responses`: writes responses, at once or later (`admission`, `rate_limiter`, `access_log`, `deferred`).
//! - `streaming`: clients that are told what changes (`streams`).
//!
//! `src/docs/architecture.md`, "The way of a request", lists the types that a request passes from socket to
//! socket.
//!
//! To add a limit: `config/limits.rs`.

mod accepting;
mod access_log;
mod address_counts;
mod admission;
mod connection;
mod deferred;
mod head_cache;
mod rate_limiter;
mod reading;
mod responses;
mod streaming;
mod streams;
mod sweeping;

use crate::config::Limits;
use crate::core::api::{Deferred, Error, InParts, SeriesSlots, View};
use crate::core::{Context, Event, LongWork, WorkSet};
use crate::demo::{Demo, DemoScript};
use crate::http::{EMPTY, Output};
use crate::market::SeriesKey;
use crate::table::{Key, Table};
use crate::time::{Mono, UnixMs};
use address_counts::AddressCounts;
use connection::{Connection, Phase};
use deferred::Pending;
use responses::{Responses, took};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How many connections above a limit are accepted, to be sent a 503. Above half of this number, each new one
/// closes the oldest.
pub const MOST_REFUSED: usize = 64;

/// Connections to the demo exchange: those of this process, and some for users.
pub const DEMO_CLIENTS: usize = 32;

/// Memory is given back only if clients have held at least this many bytes.
const CROWD_BYTES: u64 = 8 * 1024 * 1024;

/// How long clients must hold less than a quarter of their peak before memory is given back. Giving memory
/// back takes some milliseconds, and so does taking it again.
const CROWD_PAUSE: Duration = Duration::from_secs(2);

/// See the module's page.
pub struct Clients {
    connections: Table<Connection>,
    acceptor: Acceptor,
    sweeper: Sweeper,
    responses: Responses,
    /// The most bytes that clients held since memory was last given back.
    peak_bytes: u64,
    /// When clients last held a quarter of `peak_bytes`.
    crowded_at: Mono,
    /// True if clients have held less than a quarter of `peak_bytes` for so long that giving memory back
    /// pays.
    pub has_shrunk: bool,
}

/// The state of `accepting`.
#[derive(Debug, Default)]
struct Acceptor {
    addresses: AddressCounts,
    /// Connections that may make room, in the order in which they do.
    leaving: VecDeque<Key>,
    /// When all connections may be looked at again.
    next_look: Mono,
    /// Connections above a limit, oldest first. Some may have closed.
    refused: VecDeque<Key>,
    /// Connections to the demo exchange. They count for nothing else.
    demo_open: usize,
}

/// The state of `sweeping`.
#[derive(Debug, Default)]
struct Sweeper {
    /// When the next sweep is due.
    next_sweep: Mono,
    /// The place at which the current sweep goes on.
    next_place: usize,
    /// When slow readers may be looked for again.
    next_shed: Mono,
}

impl Clients {
    /// No connections yet. `first`: the lowest index of their keys.
    pub fn new(demo: Option<Demo>, first: usize, cx: &Context) -> Clients {
        let most = cx.config.limits.max_connections + MOST_REFUSED + DEMO_CLIENTS;
        Clients {
            connections: Table::behind(first, most),
            acceptor: Acceptor::default(),
            sweeper: Sweeper::default(),
            responses: Responses::new(demo, cx),
            peak_bytes: 0,
            crowded_at: cx.now.mono,
            has_shrunk: false,
        }
    }

    /// Takes in a new configuration, in place of one with these limits.
    pub fn reconfigure(&mut self, old: &Limits, cx: &mut Context) {
        cx.compressed.most_bytes = cx.config.limits.compressed_bytes;
        self.responses.reconfigure(old, &cx.config);
    }

    /// The demo exchange follows this script from now on, and sets its clock if the script says so.
    pub fn follow_script(&mut self, script: DemoScript, cx: &mut Context) {
        if let Some(at) = self.responses.demo.as_mut().and_then(|demo| demo.follow(script)) {
            cx.set_demo_clock(at);
        }
    }

    /// True if a key may belong to a client. Every other key belongs to a connection to an exchange, or to
    /// the engine of the cluster.
    pub fn may_own(&self, key: Key) -> bool {
        self.connections.may_own(key)
    }

    /// The socket of a connection is dropped.
    pub fn closed(&mut self, key: Key, cx: &mut Context) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        let Responses { deferred, streams, access_log, .. } = &mut self.responses;
        deferred.forget(key);
        if let Some(stream) = &connection.stream {
            let took = took(stream.opened_at, cx.now.mono);
            access_log.log(stream.line.as_deref(), 200, stream.sent_bytes, took);
            streams.closed(key, stream, cx);
        }
        self.acceptor.closed(&connection, cx);
    }

    /// Handles an event of a connection.
    #[inline]
    pub fn handle(&mut self, key: Key, event: Event<'_>, cx: &mut Context) {
        self.on(Some(key), cx, |responses, connection, cx| responses.handle(connection, event, cx));
    }

    /// Does something with a connection, if it is still there, and counts what it holds afterwards.
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
    pub fn interest(&self, key: Key) -> (&Output, bool) {
        match self.connections.get(key) {
            Some(connection) => (&connection.output, connection.wants_read()),
            None => (&EMPTY, false),
        }
    }

    /// Sets the date of responses. Returns true once a second, if it has changed.
    pub fn set_date(&mut self, now: UnixMs) -> bool {
        self.responses.stamp.refresh(now)
    }

    /// What all responses have cost so far. It only rises.
    pub fn spent(&self) -> u64 {
        self.responses.spent
    }

    /// Handles deadlines and the limits on the bytes of all connections. Returns true if a response has
    /// waited for candles as long as it may: [`Clients::wake`] is due.
    pub fn handle_timeout(&mut self, cx: &mut Context) -> bool {
        let now = cx.now.mono;
        let sweeps = self.sweeper.next_sweep <= now && self.is_swept(cx) && !cx.is_behind;
        if sweeps && self.sweep(cx) {
            cx.compressed.sweep();
            cx.state += 1;
            self.responses.heads.sweep();
            self.responses.streams.ask_for_charts(cx);
            self.watch_memory(cx);
        }
        self.shed(cx);
        while let Some(at) = self.responses.delayed.iter().position(|(until, ..)| *until <= now) {
            let (_, key, output) = self.responses.delayed.remove(at);
            if let Some(connection) = self.connections.get_mut(key) {
                connection.output = output;
                connection.responded(cx);
                connection.flush(cx);
            }
        }
        self.responses.deferred.due() <= now && !cx.is_behind
    }

    /// When [`Clients::handle_timeout`] is due.
    pub fn due(&self, cx: &Context) -> Mono {
        let Responses { deferred, delayed, .. } = &self.responses;
        let delayed = delayed.iter().map(|(until, ..)| *until).min().unwrap_or(Mono::NEVER);
        let sweep = if self.is_swept(cx) { self.sweeper.next_sweep } else { Mono::NEVER };
        sweep.min(deferred.due()).min(delayed)
    }

    /// True if there is something to sweep, or memory that may be given back.
    fn is_swept(&self, cx: &Context) -> bool {
        !self.connections.is_empty()
            || cx.compressed.bytes > 0
            || self.responses.heads.has_responses
            || self.peak_bytes >= CROWD_BYTES
    }

    /// Closes the connections that are between two requests, and ends all streams: marketd stops.
    pub fn shut_down(&mut self, cx: &mut Context) {
        self.sweeper = Sweeper::default();
        self.handle_timeout(cx);
    }

    /// What [`Clients::work`] has to do.
    #[inline]
    pub fn has_work(&self, cx: &Context) -> WorkSet {
        let Responses { queue, deferred, streams, .. } = &self.responses;
        LongWork::Requests.if_any(!queue.is_empty())
            | LongWork::Responses.if_any(!deferred.running.is_empty())
            | LongWork::Compression.if_any(cx.compressed.depth() > 0)
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
                let next = responses.deferred.running.pop_front();
                self.on(next, cx, |responses, it, cx| responses.step(it, cx));
            }
            LongWork::Compression => {
                let waits = |key| connections.get(key).is_some_and(Connection::is_busy);
                // A response whose body is compressed needs no more work, so it goes to the front of the
                // queue.
                if let Some((bytes, keys)) = cx.compressed.step(waits) {
                    cx.state += 1;
                    for key in keys {
                        if let Some(Pending { kind: Deferred::ToCompress(response), .. }) =
                            pending(connections, key)
                        {
                            response.compressed = Some(bytes.clone());
                            responses.deferred.run(key, true);
                        }
                    }
                }
            }
            LongWork::Streams => {
                let next = responses.streams.step(connections, cx);
                self.on(next, cx, |responses, it, cx| {
                    responses.streams.send(it, &mut responses.spare, cx);
                });
            }
            _ => {}
        }
    }

    /// Too many reads of the history file are under way: this client's response is refused, if it waits. One
    /// that runs is made from what is there.
    pub fn refuse(&mut self, client: Option<Key>, cx: &mut Context) {
        let error = Error::unavailable("Too many charts wait for the history file.", 1);
        let client = client.filter(|key| self.responses.deferred.forget(*key));
        self.on(client, cx, |responses, it, cx| responses.finish(it, Some(&error), cx));
    }

    /// Lets each waiting response choose its source again, and wishes for the candles that it lacks.
    pub fn renew_wishes(&mut self, cx: &mut Context) {
        for (_, key) in self.responses.deferred.waiting.keys() {
            if let Some((response, _)) = made_in_parts(&mut self.connections, *key) {
                response.choose_again(&View::new(cx));
                let missing = response.missing(&View::new(cx));
                cx.wish(Some(*key), response.needs(), missing);
            }
        }
    }

    /// Runs each waiting response (only that of `client`, if given) whose candles are all there or no longer
    /// on their way, or whose deadline has passed. A patient response waits for missing candles even if none
    /// are on their way. `comes`: true if these slots of a series are on their way.
    pub fn wake(
        &mut self,
        client: Option<Key>,
        comes: impl Fn(SeriesKey, &Range<i64>) -> bool,
        cx: &Context,
    ) {
        let deferred = &mut self.responses.deferred;
        let waiting = deferred.waiting.keys().copied();
        let is_meant = |(_, key): &(Mono, Key)| client.is_none_or(|client| client == *key);
        for it @ (until, key) in waiting.filter(is_meant).collect::<Vec<_>>() {
            if let Some((response, is_begun)) = made_in_parts(&mut self.connections, key) {
                let is_coming = |(series, slots): &SeriesSlots| comes(*series, slots);
                let mut missing = response.missing(&View::new(cx)).into_iter();
                let waits = missing.any(|it| response.is_patient() || is_coming(&it));
                let is_late = until <= cx.now.mono && !cx.is_behind;
                if is_late || !waits {
                    deferred.waiting.remove(&it);
                    deferred.run(key, is_begun);
                }
            }
        }
    }

    /// How many responses are deferred: they wait for candles, are made in parts, or are being compressed.
    pub fn deferred(&self) -> usize {
        let waits = |it: &Connection| matches!(it.phase, Phase::Waiting(_));
        self.connections.iter().filter(|(_, it)| waits(it)).count()
    }

    /// Counts one turn of the loop.
    pub fn note_turn(&mut self, took_us: u64, cx: &mut Context) {
        let Responses { queue, deferred, access_log, .. } = &mut self.responses;
        let stats = &mut cx.stats;
        stats.http.durations.end_turn(took_us);
        access_log.end_turn(took_us);
        stats.queues.clients += queue.len();
        stats.queues.waiting = deferred.waiting.len();
        stats.queues.in_parts = deferred.running.len();
        stats.queues.compressing = cx.compressed.depth();
        stats.joined_bytes = self.responses.heads.joined;
    }

    /// Looks at the memory that clients take. To be called once a second.
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

/// The deferred response of a connection, if that is still there.
fn pending(connections: &mut Table<Connection>, key: Key) -> Option<&mut Pending> {
    match &mut connections.get_mut(key)?.phase {
        Phase::Waiting(pending) => Some(pending),
        _ => None,
    }
}

/// The deferred response of a connection that is made in parts, and whether it is begun.
fn made_in_parts(it: &mut Table<Connection>, key: Key) -> Option<(&mut Box<dyn InParts>, bool)> {
    let Pending { kind, is_begun, .. } = pending(it, key)?;
    if let Deferred::InParts(response) = kind { Some((response, *is_begun)) } else { None }
}
