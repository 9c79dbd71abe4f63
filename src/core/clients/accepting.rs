//! Accepts client connections, and counts those that have closed.
//!
//! Owns the limits on connections: on all of them, and on those of one address. A client above a limit
//! is accepted as long as there are places to tell it so, and dropped above that. It never reads a byte.
//!
//! At the limit, the connection that has been silent for the longest time is closed for a new one.

use crate::core::clients::Clients;
use crate::core::clients::connection::{Phase, Session};
use crate::core::{CloseReason, Context, DEMO_CLIENTS, LOBBY, Service};
use crate::log_targets::HTTP;
use crate::table::{Key, Table};
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
    fn push(&mut self, key: Key, sessions: &Table<Session>, most: usize) {
        if self.0.len() >= 2 * most {
            self.0.retain(|key| is_silent(sessions.get(*key)).is_some());
        }
        self.0.push_back(key);
    }
}

/// The session of a client that has never said anything.
fn is_silent(session: Option<&Session>) -> Option<&Session> {
    let is_new = |it: &&Session| it.served == 0 && it.inbox.is_empty() && it.blank == 0;
    session.filter(|it| matches!(it.phase, Phase::Idle) && is_new(it))
}

impl Clients {
    /// Takes in a client, which counts for its address where that is known and has a cap. `None`: there
    /// is no room even to refuse it.
    pub fn accept(
        &mut self,
        peer: Option<IpAddr>,
        service: Service,
        cx: &mut Context,
    ) -> Option<Key> {
        let limits = &cx.config.limits;
        let mut session = Session::new(service, cx.now.mono, limits);
        let http = &mut cx.stats.http;
        if service == Service::Demo {
            if self.demo_open >= DEMO_CLIENTS {
                return None;
            }
            self.demo_open += 1;
            return self.sessions.insert(session);
        }
        let most_of_peer = match limits.connections_per_address {
            0 => usize::MAX,
            most => most,
        };
        let counted = peer.filter(|_| most_of_peer < usize::MAX);
        let of_peer = counted.map_or(0, |peer| self.guests.count(peer));
        if http.open as usize >= limits.max_connections + LOBBY
            || of_peer >= most_of_peer.saturating_add(ADDRESS_LOBBY)
        {
            http.rejected += 1;
            log::debug!(target: HTTP, "dropped peer={} open={}", Peer(peer), http.open);
            return None;
        }
        let is_full = http.open as usize >= limits.max_connections;
        let most = limits.max_connections + LOBBY;
        let refused = is_full && !cx.stats.stopping && !self.make_place(cx);
        let refused = refused || of_peer >= most_of_peer || cx.stats.stopping;
        let http = &mut cx.stats.http;
        session.peer = peer;
        http.open += 1;
        http.total += 1;
        log::debug!(
            target: HTTP,
            "accepted peer={} service={service:?} open={} refused={refused}",
            Peer(peer),
            http.open
        );
        let key = self.sessions.insert(session)?;
        if let Some(peer) = counted {
            self.guests.enter(peer);
        }
        self.silent.push(key, &self.sessions, most);
        if refused {
            self.refuse_client(key, cx);
        }
        Some(key)
    }

    /// Closes the client that has been here for the longest time without a byte. `false`: all have sent
    /// some, or have only just come.
    fn make_place(&mut self, cx: &mut Context) -> bool {
        let Clients {
            sessions,
            shared,
            silent,
            ..
        } = self;
        while let Some(&key) = silent.0.front() {
            let session = is_silent(sessions.get(key));
            let limits = &cx.config.limits;
            let deadline = cx.now.mono + limits.idle_timeout.saturating_sub(SILENCE);
            if session.is_some_and(|it| it.deadline > deadline) {
                return false;
            }
            silent.0.pop_front();
            if session.is_some()
                && let Some(session) = sessions.get_mut(key)
            {
                shared.close(key, session, CloseReason::IdleTimeout, cx);
                return true;
            }
        }
        false
    }

    /// The socket of a connection has been let go.
    pub fn closed(&mut self, key: Key, cx: &mut Context) {
        if let Some(session) = self.sessions.remove(key) {
            if session.service == Service::Demo {
                self.demo_open -= 1;
                return;
            }
            let is_capped = cx.config.limits.connections_per_address > 0;
            if let Some(peer) = session.peer.filter(|_| is_capped) {
                self.guests.leave(peer);
            }
            let http = &mut cx.stats.http;
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
        }
    }
}
