//! Accepts client connections, and counts those that have closed.
//!
//! Owns the limits on connections: on all of them, and on those of one address. A connection above a limit
//! is accepted as long as there is room to send it a 503, and dropped above that. At the limit on all, the
//! connection that has been silent for the longest time is closed for a new one.

use crate::core::clients::address_counts::{AddressCounts, shown};
use crate::core::clients::connection::Connection;
use crate::core::{CloseReason, Context, Service};
use crate::log_targets::HTTP;
use crate::table::{Key, Table};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// Connections above `limits.maxConnections` that are accepted to send them a 503. Further ones are
/// dropped.
pub const MOST_REFUSED: usize = 64;

/// Connections above the limit of one address that are accepted to send them a 503.
const MOST_REFUSED_OF_ADDRESS: usize = 4;

/// Connections to the demo exchange: those of this process, and some for users.
pub const DEMO_CLIENTS: usize = 32;

/// How long a new connection may be silent, however many others come: three round trips around the world.
const SILENCE: Duration = Duration::from_secs(1);

/// See the module's page.
#[derive(Debug, Default)]
pub struct Acceptor {
    /// Connections that may not have sent a byte yet, oldest first.
    silent: VecDeque<Key>,
    addresses: AddressCounts,
    /// Connections to the demo exchange. They count for nothing else.
    demo_open: usize,
}

impl Acceptor {
    /// Accepts a connection, which counts for its address if that is known and has a limit. One above a limit
    /// is [`CloseReason::Refused`], and is to be sent a 503. `None`: there is no room even for that.
    pub fn accept(
        &mut self,
        connections: &mut Table<Connection>,
        peer: Option<IpAddr>,
        service: Service,
        cx: &mut Context,
    ) -> Option<Key> {
        let (limits, now) = (&cx.config.limits, cx.now.mono);
        let counted = peer.filter(|_| limits.connections_per_address > 0);
        let new = |key| Connection::new(key, service, peer, now);
        if service == Service::Demo {
            if self.demo_open >= DEMO_CLIENTS {
                return None;
            }
            self.demo_open += 1;
            return connections.insert_with(new);
        }
        let (most, most_of_peer) = (limits.max_connections, limits.connections_per_address);
        let open = cx.stats.http.open as usize;
        let of_peer = counted.map_or(0, |peer| self.addresses.count(peer));
        let is_over = |extra: usize| counted.is_some() && of_peer >= most_of_peer + extra;
        let of_address = is_over(MOST_REFUSED_OF_ADDRESS);
        if open >= most + MOST_REFUSED || of_address {
            cx.stats.http.rejected += 1;
            let reason = if of_address { "address" } else { "cap" };
            log::debug!(target: HTTP, "dropped peer={} reason={reason} open={open}", shown(peer));
            return None;
        }
        let is_full = !cx.stats.stopping && open >= most && !self.close_oldest(connections, cx);
        let is_refused = is_full || is_over(0) || cx.stats.stopping;
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
        let key = connections.insert_with(new)?;
        let connection = connections.get_mut(key)?;
        connection.reason = is_refused.then_some(CloseReason::Refused);
        if let Some(peer) = counted {
            self.addresses.enter(peer);
            connection.is_counted = true;
        }
        // At most so many are silent; others in the list have sent something since.
        if self.silent.len() >= 2 * (most + MOST_REFUSED) {
            let is_silent = |key: &Key| connections.get(*key).is_some_and(Connection::is_silent);
            self.silent.retain(is_silent);
        }
        self.silent.push_back(key);
        Some(key)
    }

    /// Closes the connection that has been silent for the longest time. `false` if all have sent
    /// something, or are too new.
    fn close_oldest(&mut self, connections: &mut Table<Connection>, cx: &mut Context) -> bool {
        while let Some(&key) = self.silent.front() {
            let connection = connections.get_mut(key).filter(|it| it.is_silent());
            if connection.as_ref().is_some_and(|it| it.since + SILENCE > cx.now.mono) {
                return false;
            }
            self.silent.pop_front();
            if let Some(connection) = connection {
                connection.close(CloseReason::MadeRoom, cx);
                return true;
            }
        }
        false
    }

    /// The socket of a connection is dropped.
    pub fn closed(&mut self, connection: &mut Connection, cx: &mut Context) {
        if connection.service == Service::Demo {
            self.demo_open -= 1;
            return;
        }
        // The limit may have been set since, or taken away.
        if let Some(peer) = connection.peer.filter(|_| connection.is_counted) {
            self.addresses.leave(peer);
        }
        let http = &mut cx.stats.http;
        http.open -= 1;
        connection.uncount(http);
        let reason = connection.reason.unwrap_or(CloseReason::Broken);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::core::{Action, Status};
    use crate::market::Market;
    use crate::time::{Mono, Now, UnixMs};

    fn context(change: impl FnOnce(&mut Config)) -> Context {
        let now = Now { mono: Mono(1_000_000), unix: UnixMs(1) };
        let mut config = Config::default();
        change(&mut config);
        let market = Market::new(&config);
        let stats = Status::new(std::iter::empty(), now);
        Context::new(config, market, stats, now)
    }

    #[test]
    fn an_address_above_its_limit_is_refused_and_then_dropped() {
        let mut cx = context(|config| config.limits.connections_per_address = 2);
        let (mut acceptor, mut table) = (Acceptor::default(), Table::new(100));
        let mut accept = |peer: &str| {
            let peer = peer.parse().ok();
            let key = acceptor.accept(&mut table, peer, Service::Api, &mut cx)?;
            table.get(key).map(|it| it.reason.is_none())
        };
        let found: Vec<Option<bool>> = (0..8).map(|_| accept("192.0.2.1")).collect();
        let (served, refused) = (Some(true), Some(false));
        assert_eq!(found[..2], [served; 2]);
        assert_eq!(found[2..6], [refused; MOST_REFUSED_OF_ADDRESS]);
        assert_eq!(found[6..], [None; 2]);
        assert_eq!(accept("192.0.2.2"), served);
    }

    #[test]
    fn at_the_limit_the_connection_that_is_silent_for_longest_makes_room() {
        let mut cx = context(|config| config.limits.max_connections = 2);
        let (mut acceptor, mut table) = (Acceptor::default(), Table::new(100));
        let mut accept = |cx: &mut Context| {
            let key = acceptor.accept(&mut table, None, Service::Api, cx).expect("there is room");
            (key, table.get(key).and_then(|it| it.reason))
        };
        let (oldest, served) = accept(&mut cx);
        assert_eq!(served, None);
        accept(&mut cx);
        assert_eq!(accept(&mut cx).1, Some(CloseReason::Refused), "both are new");
        cx.now.mono = cx.now.mono + SILENCE;
        assert_eq!(accept(&mut cx).1, None);
        assert_eq!(cx.actions, [Action::Close(oldest)]);
    }
}
