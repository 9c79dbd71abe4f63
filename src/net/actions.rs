//! What the core wants done: connects, looks up names, stores, sends and closes.
//!
//! Carries out the actions of the core one by one. Connections that the core knows are dropped here and
//! nowhere else.

use super::connection::NetConnection;
use super::driver::{ACTION, CLIENT_BYTES, Driver, TURN_BUDGET, connection};
use crate::core::{Action, Event};
use crate::table::Key;
use crate::time::Now;
use std::net::SocketAddr;

impl Driver {
    /// Carries out actions, at least one, until there are none or the turn's budget is used up. The next turn
    /// follows at once and continues: if many clients leave together, each turn closes a few of their
    /// sockets.
    #[inline]
    pub(super) fn carry_out(&mut self, now: Now) {
        while let Some(action) = self.core.poll_action() {
            self.act(action, now);
            self.pace.add(ACTION);
            if self.has_taken(TURN_BUDGET, now) {
                return;
            }
        }
    }

    #[inline(never)]
    fn act(&mut self, action: Action, now: Now) {
        match action {
            Action::Flush(key) => match connection(&mut self.connections, key) {
                Some(conn) if conn.upstream || conn.queued => self.queue(key),
                Some(_) => self.pump(key, CLIENT_BYTES, now),
                None => {}
            },
            Action::Connect(key, address) => self.connect(key, address, now),
            Action::Secure(key, host) => self.secure(key, &host, now),
            Action::Resolve(look_up) => self.resolver.look_up(look_up),
            Action::Store(job) => self.disk_thread.send(job),
            Action::Finish(key) => {
                if let Some(conn) = connection(&mut self.connections, key) {
                    conn.finish();
                }
            }
            Action::Close(key) => {
                // Dropping the connection closes its socket, which also removes it from the poller.
                if let Some(conn) = connection(&mut self.connections, key) {
                    conn.prepare_close(&mut self.buffer);
                    *self.connections.grow_to(key.index()) = None;
                }
                self.core.closed(key);
            }
        }
    }

    fn connect(&mut self, key: Key, address: SocketAddr, now: Now) {
        let registry = self.poll.registry();
        let connected = NetConnection::connect(address, key)
            .and_then(|mut conn| conn.socket.register(registry, key.token()).map(|()| conn));
        match connected {
            Ok(conn) => self.add(key, conn),
            Err(error) => self.core.handle(key, Event::Failed(&error.into()), now),
        }
    }

    /// Starts the handshake, and queues the connection for its first step.
    fn secure(&mut self, key: Key, host: &str, now: Now) {
        match (connection(&mut self.connections, key), (self.tls)(host)) {
            (Some(conn), Ok(session)) => {
                conn.secure(session);
                self.queue(key);
            }
            (_, Err(why)) => self.core.handle(key, Event::Failed(&why), now),
            (None, Ok(_)) => {}
        }
    }
}
