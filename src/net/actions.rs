//! What the core asks for: connections are opened, secured, shut and let go, names looked up, and jobs
//! sent to the disk thread.
//!
//! Owns how much of it a turn does. It decides nothing else.

use super::link::{Link, Moved};
use super::{CLIENT_BYTES, Driver, TURN_BUDGET, link_of, pace};
use crate::core::{Action, Broken, Event};
use crate::table::Key;
use crate::time::Now;
use std::net::SocketAddr;

/// Actions that are carried out at a time, however late it is: sockets of a crowd that leaves are
/// closed a few a turn, and not all in one.
const ACTIONS: usize = 16;

impl Driver {
    /// Does what the core asks for, until it asks for nothing more or the turn's budget is used up; the
    /// rest is done in the next turn, which comes at once.
    #[inline]
    pub(super) fn carry_out(&mut self, now: Now) {
        let mut done = 0;
        // Most turns are asked for nothing.
        while let Some(action) = self.core.poll_action() {
            self.act(action, now);
            self.pace.add(pace::ACTION);
            done += 1;
            if done >= ACTIONS && self.has_taken(TURN_BUDGET, now) {
                return;
            }
        }
    }

    #[inline(never)]
    fn act(&mut self, action: Action, now: Now) {
        match action {
            Action::Flush(key) => match link_of(&mut self.links, key) {
                // Late in a turn, what is to be sent waits for the next one.
                Some(link) if link.upstream || self.pace.took >= TURN_BUDGET => self.queue(key),
                Some(_) => self.pump(key, CLIENT_BYTES, now),
                None => {}
            },
            Action::Connect(key, address) => self.connect(key, address, now),
            Action::Secure(key, host) => self.secure(key, &host, now),
            Action::Resolve { source, host, port } => {
                if let Err(why) = self.resolver.ask(source, &host, port) {
                    self.core.resolved(source, Err(why), now);
                }
            }
            Action::Store(job) => {
                if let Some(refused) = self.history.send(job) {
                    self.core.stored(refused, now);
                }
            }
            Action::Finish(key) => self.finish(key, now),
            Action::Close(key) => {
                // Dropping the link closes its socket, which also takes it from the poller.
                if let Some(link) = link_of(&mut self.links, key) {
                    link.part(&mut self.buffer);
                    *self.links.grow_to(key.index()) = None;
                }
                self.core.closed(key);
            }
        }
    }

    /// Shuts our side, unless a request has come at the last moment: that is answered first.
    fn finish(&mut self, key: Key, now: Now) {
        let Some(link) = link_of(&mut self.links, key) else {
            return;
        };
        let late = match link.last_look(&mut self.buffer) {
            Moved::Bytes(count) => Event::Late(&self.buffer[..count]),
            Moved::End => Event::Eof,
            Moved::Inner(_) | Moved::Blocked | Moved::Failed(_) => Event::Late(&[]),
        };
        self.core.handle(key, late, now);
        // Who lingers is read on.
        if !self.core.wants_read(key) || !self.core.outgoing(key).is_empty() {
            return self.pump(key, CLIENT_BYTES, now);
        }
        if let Some(link) = link_of(&mut self.links, key) {
            link.finish();
        }
    }

    fn connect(&mut self, key: Key, address: SocketAddr, now: Now) {
        let registry = self.poll.registry();
        let connected = Link::connect(address, key).and_then(|mut link| {
            link.register(registry)?;
            Ok(link)
        });
        match connected {
            Ok(link) => self.place(link),
            Err(error) => {
                let why = Broken::Io(error.kind());
                self.core.handle(key, Event::Failed(&why), now);
            }
        }
    }

    /// Begins the handshake: its first step is taken when it is the link's turn.
    fn secure(&mut self, key: Key, host: &str, now: Now) {
        match (link_of(&mut self.links, key), self.tls.open(host)) {
            (Some(link), Ok(session)) => {
                link.secure(session);
                self.queue(key);
            }
            (_, Err(why)) => self.core.handle(key, Event::Failed(&why), now),
            (None, Ok(_)) => {}
        }
    }
}
