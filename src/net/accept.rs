//! Accepts connections.
//!
//! Owns how many connections a turn accepts, and when they are read first. The core decides whether
//! there is room for them.

use super::connection::NetConnection;
use super::driver::{CLIENT_BYTES, Driver, connection};
use super::listen::{AcceptResult, Listener};
use super::pace;
use crate::core::{Broken, Event};
use crate::table::Key;
use crate::time::Now;
use std::time::Duration;

/// Time since the wake-up after which a turn accepts no more connections, so that a flood of them
/// leaves time for the open ones.
const ACCEPT_BUDGET: Duration = Duration::from_micros(200);

impl Driver {
    /// Accepts connections, a bounded number and for a bounded time. Then reads and answers each before
    /// registering it with the poller, so that a connection with a single request is never registered.
    /// Reading comes after accepting so that the requests have time to arrive.
    pub(super) fn accept(&mut self, now: Now) {
        if !self.accepting && self.queues.new.is_empty() {
            return;
        }
        for at in 0..self.listeners.len() {
            let mut left = self.accepts.saturating_sub(self.queues.new.len());
            while left > 0 && self.listeners[at].is_due(now.mono) {
                left -= 1;
                self.pace.add(pace::ACCEPT);
                let service = self.listeners[at].service;
                match self.listeners[at].accept(now.mono) {
                    AcceptResult::Stream(stream, peer) => {
                        // Without room even for a refusal, the connection is closed at once.
                        let key = match peer {
                            Some(peer) => self.core.accept_from(peer, service, now),
                            None => self.core.accept(service, now),
                        };
                        let Some(key) = key else { continue };
                        self.add(NetConnection::accepted(stream, key));
                        self.queues.new.push_back(key);
                    }
                    AcceptResult::Exhausted(error) => self.listeners[at].log_exhaustion(&error),
                    AcceptResult::Drained | AcceptResult::Lost => {}
                }
                if self.has_taken(ACCEPT_BUDGET, now) {
                    break;
                }
            }
        }
        let has_more = |l: &Listener| l.ready || l.resting.is_some();
        self.accepting = self.listeners.iter().any(has_more);
        while let Some(key) = self.queues.new.pop_front() {
            self.pump(key, CLIENT_BYTES, now);
            self.carry_out(now);
            self.register(key, now);
            if self.has_taken(ACCEPT_BUDGET, now) {
                return;
            }
        }
    }

    /// Registers a connection that is still open after its first turn.
    fn register(&mut self, key: Key, now: Now) {
        let registry = self.poll.registry();
        if let Some(conn) = connection(&mut self.connections, key)
            && !conn.registered
            && let Err(error) = conn.register(registry)
        {
            let why = Broken::Io(error.kind());
            self.core.handle(key, Event::Failed(&why), now);
            self.carry_out(now);
        }
    }
}
