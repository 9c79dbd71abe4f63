//! Accepts client connections, and counts those that have closed.
//!
//! Owns the limits on connections: on all of them, and on the connections of one address. At the limit on
//! all, another connection makes room for a new one. A connection that has never sent anything goes first.
//! Without one, the address with the most connections gives up its longest idle one, or else its oldest
//! stream. So nobody loses a response under way, and no address can lock out the others. If no connection
//! makes room, or the address is above its own limit, the new connection is accepted as long as there is room
//! for such connections: it is served `/health`, and is refused anything else.

use crate::core::clients::address_counts::{network, shown};
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::{Acceptor, Clients, DEMO_CLIENTS, MOST_REFUSED};
use crate::core::held::HeldByClient;
use crate::core::{CloseReason, Context, Service};
use crate::log_targets::HTTP;
use crate::table::Key;
use crate::time::Mono;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// How long a new connection may be silent, however many others come: three round trips around the world.
const SILENCE: Duration = Duration::from_secs(1);

/// The most connections that one look over all connections finds to make room. A look takes as long as
/// serving a few clients.
const FOUND: usize = 64;

/// Between two looks, if the last look found no connection that makes room for the new one.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

impl Clients {
    /// Accepts a connection, which counts for its address if that is known. A connection above a limit gets
    /// the reason [`CloseReason::Refused`]. `None`: there is no room even to refuse it.
    #[inline(never)]
    pub fn accept(
        &mut self,
        peer: Option<IpAddr>,
        service: Service,
        cx: &mut Context,
    ) -> Option<Key> {
        let now = cx.now.mono;
        let new = |key| Connection::new(key, service, peer, now);
        if service == Service::Demo {
            if self.acceptor.demo_open >= DEMO_CLIENTS {
                return None;
            }
            self.acceptor.demo_open += 1;
            return self.connections.insert_with(new);
        }
        let limits = &cx.config.limits;
        let (most, open) = (limits.max_connections, cx.stats.http.open as usize);
        let most_of_peer = limits.connections_per_address;
        let is_over = most_of_peer > 0 && self.acceptor.addresses.count(peer) >= most_of_peer;
        if open >= most + MOST_REFUSED {
            cx.stats.http.rejected += 1;
            log::debug!(target: HTTP, "dropped peer={} open={open}", shown(peer));
            return None;
        }
        let is_refused = cx.stats.stopping || is_over || open >= most && !self.make_room(peer, cx);
        let reason = is_refused.then_some(CloseReason::Refused);
        let key = self.connections.insert_with(|key| Connection { reason, ..new(key) })?;
        self.acceptor.refused.extend(is_refused.then_some(key));
        // Above half of the room for refused connections, the oldest of them is closed for the new one.
        if self.acceptor.refused.len() > MOST_REFUSED / 2
            && let Some(oldest) = self.acceptor.refused.pop_front()
            && let Some(connection) = self.connections.get_mut(oldest)
        {
            connection.close(CloseReason::Refused, cx);
        }
        let http = &mut cx.stats.http;
        http.open += 1;
        http.total += 1;
        let event = if is_refused { "refused" } else { "accepted" };
        log::debug!(
            target: HTTP,
            "{event} peer={} service={} open={}",
            shown(peer),
            service.name(),
            http.open
        );
        self.acceptor.addresses.enter(peer);
        Some(key)
    }

    /// Closes a connection for a new one of this peer. `false` if none makes room.
    fn make_room(&mut self, peer: Option<IpAddr>, cx: &mut Context) -> bool {
        if self.close_first(peer, cx) {
            return true;
        }
        if cx.now.mono < self.acceptor.next_look {
            return false;
        }
        self.acceptor.leaving = self.look(cx.now.mono);
        let has_room = self.close_first(peer, cx);
        if !has_room {
            self.acceptor.next_look = cx.now.mono + LOOK_PAUSE;
        }
        has_room
    }

    /// Closes the first connection that can make room, if this peer holds few enough. Otherwise the
    /// connection stays the first, for peers that hold fewer.
    fn close_first(&mut self, peer: Option<IpAddr>, cx: &mut Context) -> bool {
        let Clients { connections, acceptor: Acceptor { addresses, leaving, .. }, .. } = self;
        let own = addresses.count(peer);
        while let Some(key) = leaving.front() {
            if let Some(connection) = connections.get_mut(*key)
                && let Some((rank, _)) = standing(connection, cx.now.mono)
            {
                let leaves = rank == Standing::Silent || addresses.count(connection.peer) > own + 1;
                if leaves {
                    connection.close(CloseReason::MadeRoom, cx);
                }
                return leaves;
            }
            leaving.pop_front();
        }
        false
    }

    /// The connections that make room first: silent ones, and connections of the address that holds most.
    fn look(&self, now: Mono) -> VecDeque<Key> {
        let most = self.acceptor.addresses.most();
        let rank = |(key, connection): (Key, &Connection)| {
            let (standing, since) = standing(connection, now)?;
            let is_of_most = || most.is_some() && connection.peer.map(network) == most;
            (standing == Standing::Silent || is_of_most()).then_some((standing, since, key))
        };
        let mut found: Vec<(Standing, Mono, Key)> =
            self.connections.iter().filter_map(rank).collect();
        if found.len() > FOUND {
            found.select_nth_unstable(FOUND);
            found.truncate(FOUND);
        }
        found.sort_unstable();
        found.into_iter().map(|(_, _, key)| key).collect()
    }
}

impl Acceptor {
    /// The socket of a connection is dropped.
    pub fn closed(&mut self, connection: &Connection, cx: &mut Context) {
        if connection.service == Service::Demo {
            self.demo_open -= 1;
            return;
        }
        self.addresses.leave(connection.peer);
        self.refused.retain(|key| *key != connection.key);
        let reason = connection.reason.unwrap_or(CloseReason::Broken);
        cx.stats.streams.closes[reason as usize] += u64::from(connection.stream.is_some());
        let http = &mut cx.stats.http;
        http.open -= 1;
        http.held.replace(connection.counted, HeldByClient::default());
        http.closes[reason as usize] += 1;
        log::debug!(
            target: HTTP,
            "closed peer={} reason={} requests={} open={}",
            shown(connection.peer),
            reason.name(),
            connection.served,
            http.open
        );
    }
}

/// What a connection that can make room does, in the order in which connections make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It has never sent anything.
    Silent,
    /// It is between two requests.
    Idle,
    /// It has a stream.
    Streaming,
}

/// What a connection does, and since when. `None` if it cannot make room: it is new, is owed a response, is
/// closing already, or is the demo exchange's.
fn standing(connection: &Connection, now: Mono) -> Option<(Standing, Mono)> {
    let since = connection.since;
    match &connection.phase {
        _ if connection.service == Service::Demo || connection.reason.is_some() => None,
        Phase::Idle if connection.served == 0 && connection.inbox.is_empty() => {
            (since + SILENCE <= now).then_some((Standing::Silent, since))
        }
        Phase::Idle => Some((Standing::Idle, since)),
        Phase::Streaming(_) => {
            let stream = connection.stream.as_ref()?;
            Some((Standing::Streaming, stream.opened_at))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::core::testing::{NOW, context};

    #[test]
    fn an_address_that_holds_all_and_comes_again_and_again_keeps_nobody_out() {
        let mut config = Config::default();
        config.limits.max_connections = 3;
        let mut cx = context(config, NOW);
        let mut clients = Clients::new(None, 0, &cx);
        let mut accept = |peer: &str| {
            let key = clients.accept(peer.parse().ok(), Service::Api, &mut cx);
            let connection =
                key.and_then(|key| clients.connections.get_mut(key)).expect("there is room");
            connection.served = 1;
            connection.reason
        };
        assert_eq!([(); 3].map(|()| accept("192.0.2.1")), [None; 3]);
        for _ in 0..3 {
            assert_eq!(accept("192.0.2.1"), Some(CloseReason::Refused));
            assert_eq!(accept("192.0.2.2"), None);
        }
    }
}
