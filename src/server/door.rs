//! The door: who comes in, and who has left.
//!
//! Owns the caps on connections, those of one address among them. A client above the cap is let in
//! as far as the lobby, to be told so; who finds no room there either is dropped. It never reads a
//! byte of anybody.
//!
//! Whoever has sent no byte yet makes place for a newcomer when there is no other.

use super::session::{Phase, Session};
use super::{CloseReason, Conn, Core, DEMO_CLIENTS, LOBBY, Service};
use crate::log_targets::HTTP;
use crate::table::{Key, Table};
use crate::time::Now;
use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The same above the cap of one address.
const ADDRESS_LOBBY: usize = 4;

/// The address of a client in the log.
struct Peer(Option<IpAddr>);

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(peer) => peer.fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// Time in which a new client is let say nothing, however many others come: three round trips around
/// the world.
const SILENCE: Duration = Duration::from_secs(1);

/// Connections that may not have sent a byte yet, in the order in which they came.
#[derive(Debug, Default)]
pub struct Silent(VecDeque<Key>);

impl Silent {
    /// Takes note of one that has come; of at most so many, beside those that have spoken since.
    fn push(&mut self, key: Key, conns: &Table<Conn>, most: usize) {
        if self.0.len() >= 2 * most {
            self.0.retain(|key| is_silent(conns.get(*key)).is_some());
        }
        self.0.push_back(key);
    }
}

/// The session of a client that has never said anything.
fn is_silent(conn: Option<&Conn>) -> Option<&Session> {
    match conn {
        Some(Conn::Client(it)) if it.served == 0 && it.inbox.is_empty() && it.blank == 0 => {
            Some(it).filter(|it| matches!(it.phase, Phase::Idle))
        }
        _ => None,
    }
}

impl Core {
    /// Takes in a client that counts for no address. `None`: there is no room even to refuse it.
    pub fn accept(&mut self, service: Service, now: Now) -> Option<Key> {
        self.take_in(None, service, now)
    }

    /// The same for a client that counts for its address, where that has a cap.
    pub fn accept_from(&mut self, peer: IpAddr, service: Service, now: Now) -> Option<Key> {
        self.take_in(Some(peer), service, now)
    }

    fn take_in(&mut self, peer: Option<IpAddr>, service: Service, now: Now) -> Option<Key> {
        self.rest.set_time(now);
        let limits = &self.rest.config.limits;
        let mut session = Session::new(service, now.mono, limits);
        let http = &mut self.rest.status.http;
        if service == Service::Demo {
            if self.rest.demo_open >= DEMO_CLIENTS {
                return None;
            }
            self.rest.demo_open += 1;
            return self.conns.insert(Conn::Client(session));
        }
        let most_of_peer = match limits.connections_per_address {
            0 => usize::MAX,
            most => most,
        };
        let counted = peer.filter(|_| most_of_peer < usize::MAX);
        let of_peer = counted.map_or(0, |peer| self.rest.guests.count(peer));
        if http.open as usize >= limits.max_connections + LOBBY
            || of_peer >= most_of_peer.saturating_add(ADDRESS_LOBBY)
        {
            http.rejected += 1;
            log::debug!(target: HTTP, "dropped peer={} open={}", Peer(peer), http.open);
            return None;
        }
        let is_full = http.open as usize >= limits.max_connections;
        let most = limits.max_connections + LOBBY;
        let refused = is_full && !self.rest.status.stopping && !self.make_place(now);
        let Core { conns, rest } = self;
        let http = &mut rest.status.http;
        let refused = refused || of_peer >= most_of_peer || rest.status.stopping;
        session.peer = peer;
        http.open += 1;
        http.total += 1;
        log::debug!(
            target: HTTP,
            "accepted peer={} service={service:?} open={} refused={refused}",
            Peer(peer),
            http.open
        );
        let key = conns.insert(Conn::Client(session))?;
        if let Some(peer) = counted {
            rest.guests.enter(peer);
        }
        rest.silent.push(key, conns, most);
        if refused {
            self.refuse_client(key, now);
        }
        Some(key)
    }

    /// Closes the client that has been here for the longest time without a byte. `false`: all have sent
    /// some, or have only just come.
    fn make_place(&mut self, now: Now) -> bool {
        let Core { conns, rest } = self;
        while let Some(&key) = rest.silent.0.front() {
            let session = is_silent(conns.get(key));
            let limits = &rest.config.limits;
            let deadline = now.mono + limits.idle_timeout.saturating_sub(SILENCE);
            if session.is_some_and(|it| it.deadline > deadline) {
                return false;
            }
            rest.silent.0.pop_front();
            if session.is_some()
                && let Some(Conn::Client(session)) = conns.get_mut(key)
            {
                rest.close(key, session, CloseReason::IdleTimeout);
                return true;
            }
        }
        false
    }

    /// Tells that the socket of a connection has been let go: the answer to
    /// [`super::Action::Close`].
    pub fn closed(&mut self, key: Key) {
        if let Some(Conn::Client(session)) = self.conns.remove(key) {
            if session.service == Service::Demo {
                self.rest.demo_open -= 1;
                return;
            }
            let is_capped = self.rest.config.limits.connections_per_address > 0;
            if let Some(peer) = session.peer.filter(|_| is_capped) {
                self.rest.guests.leave(peer);
            }
            let http = &mut self.rest.status.http;
            http.open -= 1;
            http.pending -= session.output.len() as u64;
            http.held -= session.held_bytes() as u64;
            let reason = session.reason.unwrap_or(CloseReason::Broken);
            http.closes[reason as usize] += 1;
            log::debug!(
                target: HTTP,
                "closed peer={} reason={} requests={} open={}",
                Peer(session.peer),
                reason.name(),
                session.served,
                http.open
            );
            // Nobody is left to wait for: the end need not wait for the next deadline.
            self.rest.clients_done |= self.rest.stop_at.is_some() && http.open == 0;
            self.rest.end();
        }
    }
}
