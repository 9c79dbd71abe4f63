//! The driver of a simulated world: the same turns as the real one makes, on made-up sockets.
//!
//! One turn: events, accepts, clients that have more to do, time, actions, and slices of long
//! work until the turn's budget is used up, which here is chance. Connections die in
//! [`World::carry_out`] and nowhere else. What passes between core and sockets is shown to those
//! who judge it.

use super::answers::{Allowance, Context};
use super::exchange::{InFlight, Meaning, Reached, Task};
use super::ledger::{Moment, Tri};
use super::quotes::Books;
use super::trace::excerpt;
use super::wire::{Link, Moved, Peer};
use super::world::{Event, World};
use marketd::core::Event as Told;
use marketd::core::{Action, Broken, LookUp, Service};
use marketd::http::Output;
use marketd::table::Key;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

const READ_BUFFER: usize = 64 * 1024;
const CLIENT_BYTES: usize = 2 * READ_BUFFER;
const UPSTREAM_SLICE: usize = 16 * 1024;
const ACCEPTS: usize = 32;

/// More than a response of any of these worlds holds while it is made in parts.
const MOST_MADE: usize = 1 << 20;

/// A copy of these of the bytes, which may be few of many.
fn part_of(outgoing: &Output, range: Range<usize>) -> Vec<u8> {
    let (mut part, mut before) = (Vec::with_capacity(range.len()), 0);
    outgoing.each(|piece| {
        let within = |at: usize| at.saturating_sub(before).min(piece.len());
        part.extend_from_slice(&piece[within(range.start)..within(range.end)]);
        before += piece.len();
        before < range.end
    });
    part
}

/// The address of an exchange, by its place in the list.
pub fn address_of(source: usize, at: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, source as u8, at as u8 + 1], 80))
}

impl World {
    /// Something has come for this socket.
    pub fn wake(&mut self, key: Key) {
        self.woken = true;
        match self.links.get(&key).map(|link| link.peer) {
            Some(Peer::Exchange(..)) => self.queue(key),
            Some(Peer::Client(_)) if !self.links[&key].queued => self.pump(key, CLIENT_BYTES),
            Some(Peer::Client(_)) | None => {}
        }
    }

    /// All of a turn but the events themselves.
    pub fn turn(&mut self) {
        self.note_unread();
        self.accept();
        for _ in 0..self.hot.len() {
            if let Some(key) = self.hot.pop_front() {
                self.pump(key, CLIENT_BYTES);
            }
        }
        let now = self.clocks();
        self.core.handle_timeout(now);
        // What it has just made counts beside what is only now let go.
        self.note_unread();
        self.carry_out();
        self.long_work();
        self.check_some_listener();
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let Some(at) = self.backlog.pop_front() else {
                return;
            };
            let open = self.clients_open();
            let service = self.clients[at].nature.side;
            let now = self.clocks();
            let peer = self.clients[at].peer;
            let Some(key) = self.core.accept(Some(peer), service, now) else {
                let most = self.config.limits.max_connections;
                if open < most {
                    self.fail("a client was dropped though there is room");
                }
                self.clients[at].stage = super::client::Stage::Gone;
                continue;
            };
            let client = &mut self.clients[at];
            // Somebody may have made place: then it is served.
            client.refused =
                open >= self.config.limits.max_connections || self.stopped_at.is_some();
            if open >= self.config.limits.max_connections {
                self.full_at = Some(self.now);
            }
            client.link = Some(key);
            client.since = self.now;
            let link = Link::new(Peer::Client(at), client.nature.buffer, self.now);
            self.links.insert(key, link);
            self.note(format!("client {at} connects: {:?}", self.clients[at].nature));
            self.tap(key);
            self.pump(key, CLIENT_BYTES);
            self.carry_out();
            self.after(20, Event::Client(at));
        }
    }

    /// Keeps note of when clients leave so much unread that the slowest may have to go.
    fn note_unread(&mut self) {
        let unread: usize = self.links.keys().map(|key| self.unread(*key)).sum();
        // What was made for somebody who is let go in this turn counts until then.
        if unread >= self.config.limits.output_total / 2 || !self.strangers.is_empty() {
            self.crowded_at = Some(self.now);
        }
    }

    /// How many bytes are made for a client and not sent, also if the core lets it go and has dropped them.
    pub fn unread(&self, key: Key) -> usize {
        let link = &self.links[&key];
        let Peer::Client(at) = link.peer else {
            return 0;
        };
        let unsent = self.clients[at].made_total.saturating_sub(link.sent);
        self.core.outgoing(key).len().max(unsent as usize)
    }

    /// Who answers at this address.
    pub fn service_at(&self, target: &str) -> Service {
        match (&self.config.ecosystem_listen, target.starts_with("/api/ecosystem")) {
            (None, _) => Service::Both,
            (Some(_), true) => Service::Ecosystem,
            (Some(_), false) => Service::Api,
        }
    }

    /// All that clients may connect to.
    pub fn services(&self) -> &'static [Service] {
        match self.config.ecosystem_listen {
            Some(_) => &[Service::Api, Service::Ecosystem],
            None => &[Service::Both],
        }
    }

    /// Connections of clients.
    pub fn clients_open(&self) -> usize {
        let clients = self.links.values();
        let clients = clients.filter(|link| matches!(link.peer, Peer::Client(_)));
        clients.count() + self.strangers.len()
    }

    /// Moves bytes between a socket and the core, as the real driver does.
    fn pump(&mut self, key: Key, budget: usize) {
        let Some(link) = self.links.get_mut(&key) else {
            return;
        };
        link.queued = false;
        if let Some(connected) = link.connected() {
            match connected {
                Ok(()) => self.tell(key, Told::Connected),
                Err(kind) => self.tell(key, Told::Failed(&Broken::Io(kind))),
            }
        }
        let mut left = budget;
        loop {
            let Some(link) = self.links.get_mut(&key) else {
                return;
            };
            let outgoing = self.core.outgoing(key);
            if !outgoing.is_empty() && link.is_writable() {
                match link.write(outgoing.len(), self.now) {
                    Moved::Bytes(count) => {
                        let bytes = part_of(outgoing, 0..count);
                        self.carry(key, &bytes);
                        self.tell(key, Told::Sent(count));
                    }
                    Moved::Blocked | Moved::End => {}
                    Moved::Failed(kind) => return self.tell(key, Told::Failed(&Broken::Io(kind))),
                }
            } else if link.is_readable() && self.core.wants_read(key) {
                if left == 0 {
                    break;
                }
                let mut buffer = std::mem::take(&mut self.buffer);
                let most = left.min(READ_BUFFER);
                let moved = link.read(&mut buffer, most, self.now);
                match moved {
                    Moved::Bytes(count) => {
                        left -= count;
                        self.tell(key, Told::Received(&buffer));
                    }
                    Moved::End => self.tell(key, Told::Eof),
                    Moved::Failed(kind) => self.tell(key, Told::Failed(&Broken::Io(kind))),
                    Moved::Blocked => {}
                }
                self.buffer = buffer;
                if matches!(moved, Moved::Failed(_)) {
                    return;
                }
            } else {
                return;
            }
        }
        self.queue(key);
    }

    fn queue(&mut self, key: Key) {
        if let Some(link) = self.links.get_mut(&key)
            && !link.queued
        {
            link.queued = true;
            match link.peer {
                Peer::Exchange(..) => self.upstream.push_back(key),
                Peer::Client(_) => self.hot.push_back(key),
            }
        }
    }

    fn long_work(&mut self) {
        loop {
            if let Some(key) = self.upstream.pop_front() {
                self.pump(key, UPSTREAM_SLICE);
                self.carry_out();
            }
            if self.core.has_work() {
                let now = self.clocks();
                self.core.work(now);
                self.carry_out();
                if self.reload.is_soon && self.rng.chance(1, 2) {
                    self.reload(false);
                    self.carry_out();
                }
            }
            let idle = self.upstream.is_empty() && !self.core.has_work();
            if idle || self.rng.chance(1, 6) {
                return;
            }
        }
    }

    /// Does what the core asks for, until it asks for nothing more.
    pub fn carry_out(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Flush(key) => match self.links.get(&key).map(|link| link.peer) {
                    Some(Peer::Exchange(source, conn)) => {
                        // A request on a connection that stands.
                        let reused = self.exchanges[source].conns[conn].in_flight.is_none();
                        if reused {
                            self.attempt(source, "asks again");
                        }
                        self.queue(key);
                    }
                    Some(Peer::Client(_)) => {
                        self.tap(key);
                        self.pump(key, CLIENT_BYTES);
                    }
                    None => {}
                },
                Action::Connect(key, address) => self.connect(key, address),
                Action::Store(job) => self.store(job),
                Action::Secure(..) => unreachable!("no source of the simulation speaks TLS"),
                Action::Resolve(look_up) => {
                    let source = self.source_at(look_up.source.index());
                    let is_same =
                        |it: &LookUp| (&it.host, it.port) == (&look_up.host, look_up.port);
                    if self.resolving[source].iter().any(is_same) {
                        self.fail("a name is looked up twice at once");
                    }
                    self.resolving[source].push(look_up);
                    let wait = 200 + self.rng.below(300_000);
                    self.after(wait, Event::Resolved(source));
                }
                Action::Finish(key) => {
                    self.note(format!("{:?} is finished", self.links.get(&key).map(|l| l.peer)));
                    self.part(key);
                    if let Some(link) = self.links.get_mut(&key) {
                        link.finished = true;
                        link.active = self.now;
                    }
                }
                Action::Close(key) => self.close(key),
            }
        }
        for (key, at) in std::mem::take(&mut self.taken_back) {
            if self.links.contains_key(&key) {
                self.fail(&format!("bytes made for client {at} were taken back, and it stays"));
            }
        }
        for schedule in &mut self.schedules {
            schedule.settle(self.now);
        }
    }

    /// Lets a socket go.
    fn close(&mut self, key: Key) {
        if self.links.contains_key(&key) {
            let now = self.moment();
            match self.links[&key].peer {
                Peer::Client(at) => self.farewell(key, at),
                Peer::Exchange(source, at) => {
                    self.note(format!("source {source}.{at} is closed"));
                    let begun = self.links[&key].since;
                    let connecting = self.links[&key].connecting;
                    // What was on its way when a clock moved may have been said long ago.
                    let doubted = self.clock_moved || self.reload.is_new;
                    let conn = &mut self.exchanges[source].conns[at];
                    conn.open = false;
                    let (read, served) = (conn.read, conn.served);
                    // Not a byte on one that had served before: once more, on a new one.
                    let is_repeated = |it: &mut InFlight| doubted || served > 0 && !it.begun;
                    let repeated = conn.in_flight.take_if(is_repeated);
                    if repeated.is_some() || doubted {
                        let tickers = repeated.is_some_and(|it| it.task.is_tickers());
                        self.schedules[source].repeated(tickers);
                        self.schedules[source].trouble = self.now;
                    } else if let Some(it) = &conn.in_flight {
                        let failure = it.given_up(read);
                        self.conclude(source, at, Err(failure), now);
                    } else if connecting {
                        // Given up before it stood: another address may follow.
                        self.schedules[source].connect_failed(begun, self.now);
                    }
                }
            }
            self.links.remove(&key);
        }
        self.strangers.remove(&key);
        self.core.closed(key);
    }

    fn attempt(&mut self, source: usize, what: &str) {
        // What was to be done before a reload is done, and taken back, after it.
        if !self.reload.is_there[source] && !self.reload.is_new {
            self.fail(&format!("source {source}, which is not configured, {what}"));
        }
        self.note(format!("source {source} {what}"));
        let verdict = self.schedules[source].attempt(self.now);
        self.check(verdict, &|| format!("source {source}"));
    }

    fn connect(&mut self, key: Key, address: SocketAddr) {
        if super::reload::is_added(address) {
            let now = self.clocks();
            let kind = ErrorKind::NetworkUnreachable;
            return self.core.handle(key, Told::Failed(&Broken::Io(kind)), now);
        }
        let [source, place] = match address {
            SocketAddr::V4(it) => [it.ip().octets()[2], it.ip().octets()[3]].map(usize::from),
            SocketAddr::V6(_) => [usize::MAX; 2],
        };
        let place = place.wrapping_sub(1);
        let is_there = self.exchanges.get(source).is_some_and(|it| place < it.places.len());
        if !is_there || address_of(source, place) != address {
            self.fail(&format!("{address} is no address of any source"));
        }
        self.attempt(source, &format!("connects to {address}"));
        let (conn, reached) = self.exchanges[source].connect(place, self.now);
        let room = *self.rng.pick(&[7, 60, usize::MAX, usize::MAX]);
        match reached {
            Reached::After(wait) => self.after(wait, Event::Settle(key, Ok(()))),
            Reached::RefusedAfter(wait) => {
                let refused = Err(ErrorKind::ConnectionRefused);
                self.after(wait, Event::Settle(key, refused));
            }
            Reached::Never => {}
            Reached::NoWay => {
                // As the real driver does: the core hears of it at once, and there is no socket.
                self.note(format!("source {source}: no way to {address}"));
                self.schedules[source].connect_failed(self.now, self.now);
                let now = self.clocks();
                let kind = ErrorKind::NetworkUnreachable;
                return self.core.handle(key, Told::Failed(&Broken::Io(kind)), now);
            }
        }
        let link = Link::new(Peer::Exchange(source, conn), room, self.now);
        self.links.insert(key, link);
    }

    /// Tells the core what happened to a connection, and sees what it makes of it.
    fn tell(&mut self, key: Key, event: Told<'_>) {
        let now = self.clocks();
        match self.links[&key].peer {
            Peer::Client(at) => {
                self.note(match event {
                    Told::Received(bytes) => format!("client {at} > {}", excerpt(bytes)),
                    event => format!("client {at}: {event:?}"),
                });
                if let Told::Received(_) = event {
                    let total = self.links[&key].read;
                    self.clients[at].talk.arrived(total, self.now);
                }
                self.core.handle(key, event, now);
                self.tap(key);
                self.note_partial(key, at);
            }
            Peer::Exchange(source, conn) => {
                self.note(match event {
                    Told::Received(bytes) => {
                        format!("source {source}.{conn} > {}", excerpt(bytes))
                    }
                    event => format!("source {source}.{conn}: {event:?}"),
                });
                self.core.handle(key, event, now);
                self.heard(key, (source, conn), event);
            }
        }
    }

    /// The core has heard this of an exchange: what it must have learned from it.
    fn heard(&mut self, key: Key, (source, at): (usize, usize), event: Told<'_>) {
        let now = self.moment();
        let begun = self.links[&key].since;
        let conn = &mut self.exchanges[source].conns[at];
        if let Told::Failed(_) = event
            && !self.links[&key].stood
        {
            return self.schedules[source].connect_failed(begun, self.now);
        }
        let Some(in_flight) = &mut conn.in_flight else {
            conn.read += match event {
                Told::Received(bytes) => bytes.len() as u64,
                _ => 0,
            };
            return;
        };
        let meaning = in_flight.meaning.clone();
        let repeats = conn.served > 0 && !in_flight.begun;
        match event {
            Told::Received(bytes) => {
                conn.read += bytes.len() as u64;
                in_flight.begun = true;
                if in_flight.end.is_some_and(|end| conn.read >= end) {
                    self.conclude(source, at, meaning, now);
                }
            }
            Told::Eof | Told::Failed(_) if repeats => {
                let tickers = in_flight.task.is_tickers();
                conn.in_flight = None;
                self.schedules[source].repeated(tickers);
            }
            Told::Eof if in_flight.end.is_none() => self.conclude(source, at, meaning, now),
            Told::Eof | Told::Failed(_) => {
                let failure = in_flight.cut(conn.read);
                self.conclude(source, at, Err(failure), now);
            }
            Told::Connected | Told::Secured | Told::Sent(_) => {}
        }
    }

    /// A request is over: the core has learned something, or it has failed.
    fn conclude(&mut self, source: usize, at: usize, meaning: Meaning, now: Moment) {
        let conn = &mut self.exchanges[source].conns[at];
        let Some(in_flight) = conn.in_flight.take() else {
            return;
        };
        conn.served += 1;
        let task = in_flight.task;
        match meaning {
            Ok(said) => {
                // While a list is being applied, another configuration comes.
                self.reload.is_soon |=
                    self.reload.is_restless && task == Task::Markets && self.rng.chance(1, 3);
                let tickers = task.is_tickers();
                self.note(format!("source {source} has answered {task:?}"));
                self.schedules[source].succeeded(tickers, self.now);
                let truth = &self.exchanges[source].truth;
                self.ledgers[source].learn(said, in_flight.sent, now, truth);
            }
            Err(failure) => {
                self.note(format!("source {source} fails {task:?}: {failure:?}"));
                self.schedules[source].failed(failure, in_flight.sent.us, self.now);
            }
        }
    }

    /// These bytes go over the wire.
    fn carry(&mut self, key: Key, bytes: &[u8]) {
        match self.links[&key].peer {
            Peer::Client(at) => {
                let client = &mut self.clients[at];
                if !client.made.starts_with(bytes) {
                    let why = format!("client {at} is sent other bytes than were made for it");
                    self.fail(&why);
                }
                client.made.drain(..bytes.len());
                client.arrived += bytes.len() as u64;
                client.since = self.now;
                let link = self.links.get_mut(&key).expect("it was just written to");
                if link.deaf {
                    // Nobody is there: the peer's system answers with a reset.
                    link.reset();
                }
                let wait = 10 + self.rng.below(300);
                self.after(wait, Event::Client(at));
            }
            Peer::Exchange(source, conn) => {
                let now = self.moment();
                let has_list = self.ledgers[source].has_list((self.now, self.now)) == Tri::Yes;
                let steps = self.exchanges[source].receive(conn, bytes, now, has_list);
                let steps = match steps {
                    Ok(steps) => steps,
                    Err(why) => self.fail(&format!("source {source}: {why}")),
                };
                self.note(format!("source {source}.{conn} < {}", excerpt(bytes)));
                let asked = self.exchanges[source].conns[conn].in_flight.as_ref();
                if asked.is_some_and(|asked| asked.task.is_tickers()) {
                    let verdict = self.schedules[source].tickers(self.now);
                    self.check(verdict, &|| format!("source {source}"));
                }
                for (wait, step) in steps {
                    self.after(wait, Event::Exchange(source, conn, step));
                }
                let wait = 10 + self.rng.below(3000);
                self.after(wait, Event::Drained(key));
            }
        }
    }

    /// Looks at what the core has made for a client, as it makes it.
    pub fn tap(&mut self, key: Key) {
        let Some(link) = self.links.get(&key) else {
            return;
        };
        let Peer::Client(at) = link.peer else {
            return;
        };
        let outgoing = self.core.outgoing(key);
        let pending = outgoing.len();
        let total = link.sent + pending as u64;
        let made = self.clients[at].made_total;
        if total < made {
            self.taken_back.insert(key, at);
        }
        if total <= made {
            return;
        }
        let fresh = &part_of(outgoing, pending - (total - made) as usize..pending)[..];
        let (started, sent) = (link.read, link.sent);
        self.note_unread();
        let mut allowance = self.allowance(self.clients[at].peer);
        let client = &mut self.clients[at];
        client.made.extend_from_slice(fresh);
        (client.made_total, client.since) = (total, self.now);
        let (refused, peer) = (client.refused, client.peer);
        let (mut talk, mut listener) = (std::mem::take(&mut client.talk), client.listener.take());
        let mut told = std::mem::take(&mut self.told);
        let (answers, before) = (talk.answers, talk.ends.back().copied().unwrap_or(0));
        let mut context = Context {
            books: Books::new(self),
            refused,
            arrived: None,
            told: &mut told,
            allowance: allowance.as_mut(),
        };
        let verdict = match &mut listener {
            Some(listener) => listener.made(fresh, &context),
            None => talk.made(fresh, started, &mut context),
        };
        let made = talk.answers - answers;
        self.allowances.extend(allowance.map(|allowance| (peer, allowance)));
        self.told = told;
        let client = &mut self.clients[at];
        (client.talk, client.listener) = (talk, listener);
        self.answers += made;
        self.note(format!("client {at} < {} ({made} answers)", excerpt(fresh)));
        self.check(verdict, &|| format!("client {at}"));
        match self.clients[at].listener {
            Some(_) => self.check_listener(at, pending),
            None => self.check_room(at, made, before, sent),
        }
    }

    /// What an address may still ask for, where requests are limited.
    fn allowance(&self, peer: IpAddr) -> Option<Allowance> {
        let limits = &self.config.limits;
        let sharing = self.clients.iter().filter(|client| client.peer == peer);
        let known = self.allowances.get(&peer).copied().unwrap_or(Allowance {
            burst: u64::from(limits.request_burst),
            per_minute: u64::from(limits.requests_per_minute),
            is_late: self.rates_since > 0,
            ..Allowance::default()
        });
        let others = sharing.map(|client| client.talk.owed() as u64).sum();
        (limits.requests_per_minute > 0).then_some(Allowance { others, ..known })
    }

    /// Whether no further answer can be made over several turns.
    pub fn is_long_full(&self) -> bool {
        let (deferred, limits) = (self.core.deferred(), &self.config.limits);
        deferred >= limits.deferred_responses
            || deferred * MOST_MADE >= limits.output_total / 2
            || self.crowded_at == Some(self.now)
    }

    /// Whether a limit that has held since the begin allows no more streams than there may be, one that is
    /// looked at and the others.
    pub fn may_lack_streams(&self) -> bool {
        let others = self.clients.iter().filter(|it| it.listener.is_some()).count();
        let mut limits = self.past_limits.iter().chain([&self.config.limits]);
        limits.any(|it| it.streams <= others)
    }

    /// No further answer is begun while more than the high water is pending.
    fn check_room(&self, at: usize, made: usize, before: u64, sent: u64) {
        let ends: &std::collections::VecDeque<u64> = &self.clients[at].talk.ends;
        let begins = std::iter::once(before).chain(ends.iter().copied().rev().take(made).skip(1));
        let most = self.config.limits.output_high_water as u64;
        for begin in begins {
            // An interim answer may stand in front.
            if made > 0 && begin.saturating_sub(sent) > most + 25 {
                let pending = begin - sent;
                self.fail(&format!(
                    "client {at} gets one more answer with {pending} bytes pending"
                ));
            }
        }
    }
}
