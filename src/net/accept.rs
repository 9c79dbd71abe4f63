//! New connections.
//!
//! Owns how many are taken in a turn, and when they are read. It decides nothing about them: the core
//! says whether there is room.

use super::link::Link;
use super::listen::{Accepted, Listener};
use super::{CLIENT_BYTES, Driver, link_of, pace};
use crate::core::{Broken, Event};
use crate::table::Key;
use crate::time::Now;
use std::time::Duration;

/// From the wake-up: time after which a turn takes no further connection, so that a flood of new ones
/// leaves time to those that are here.
const ACCEPT_BUDGET: Duration = Duration::from_micros(200);

impl Driver {
    /// Takes new connections, a bounded number and for a bounded time. Each is read and answered before
    /// the poller watches it, so that one that brings a single request never costs that; and when the
    /// others have been taken, so that its request has had time to come.
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
                    Accepted::Stream(stream, peer) => {
                        // No room even for a refusal: closing at once is all that is left.
                        let Some(key) = self.core.accept_from(peer, service, now) else {
                            continue;
                        };
                        self.place(Link::accepted(stream, key));
                        self.queues.new.push_back(key);
                    }
                    Accepted::Exhausted(error) => self.listeners[at].complain(&error),
                    Accepted::Drained | Accepted::Lost => {}
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
            self.keep(key, now);
            if self.has_taken(ACCEPT_BUDGET, now) {
                return;
            }
        }
    }

    /// Makes the poller watch a link that has outlived its first turn.
    fn keep(&mut self, key: Key, now: Now) {
        let registry = self.poll.registry();
        if let Some(link) = link_of(&mut self.links, key)
            && !link.registered
            && let Err(error) = link.register(registry)
        {
            let why = Broken::Io(error.kind());
            self.core.handle(key, Event::Failed(&why), now);
            self.carry_out(now);
        }
    }
}
