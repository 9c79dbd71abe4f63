//! One connection to the engine: commands out, replies in, in their order.
//!
//! ```text
//! Closed -> Connecting (-> Securing) -> Open -> Closed
//! ```
//!
//! [`Link`] owns how far it is connected, the bytes that are to be sent, those of a reply that is not
//! complete, and the commands that wait for one, each with its deadline.

use super::scripts::Script;
use crate::core::Action;
use crate::core::context::Context;
use crate::core::sources::{Connecting, Route};
use crate::market::SourceId;
use crate::resp::write_command;
use crate::table::Key;
use crate::time::{Mono, Now};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// How long the engine may take to connect, and to reply: a slow one is better than none, as long as a
/// renewal comes before the lease ends.
pub const TIMEOUT: Duration = Duration::from_secs(3);

/// How long the engine waits for an entry before it replies that there is none. A source that is followed
/// anew is read after this at the latest.
pub const BLOCK: Duration = Duration::from_millis(250);

/// Bytes that may wait before entries and requests for candles are dropped: the next poll brings new ones.
const MOST_WAITING: usize = 4 * 1024 * 1024;

/// Commands that may wait for a reply.
const MOST_PENDING: usize = 1024;

/// Buffers that grew above this are given back when they are empty.
const KEPT_BYTES: usize = 256 * 1024;

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineCommand {
    /// User and password.
    Auth,
    /// Loads a script.
    Load(Script),
    /// Runs a script, for a source if it is about one.
    Run(Script, SourceId),
    /// Reads the market list of this version.
    GetList(SourceId, u64),
    /// Waits for entries.
    Read,
    /// A command whose reply only says that it succeeded.
    Other,
}

/// See the module's page.
#[derive(Default)]
pub struct Link {
    /// The key of its socket; `None` if it is closed.
    pub key: Option<Key>,
    /// How far it is connected.
    pub connecting: Connecting,
    /// What has come behind the last complete reply.
    pub inbox: Vec<u8>,
    /// The commands that wait for a reply, the oldest first.
    pub pending: VecDeque<PendingCommand>,
    out: Vec<u8>,
    sent: usize,
}

/// A command that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub struct PendingCommand {
    /// The command.
    pub command: EngineCommand,
    /// When it was given.
    pub sent_at: Mono,
    deadline: Mono,
}

impl Link {
    /// Starts to connect to an address, under this key.
    pub fn opening(&mut self, key: Key, address: SocketAddr, route: &Route, now: Now) {
        *self = Link { key: Some(key), ..Link::default() };
        self.connecting.begin([address].into(), now.mono + TIMEOUT);
        self.connecting.next_attempt(route, now);
    }

    /// Closes it. What waits for a reply gets none.
    pub fn close(&mut self, cx: &mut Context) {
        if let Some(key) = self.key.take() {
            cx.actions.push_back(Action::Close(key));
        }
        *self = Link::default();
    }

    /// True if there is room for one more command with so many bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.out.len() - self.sent;
        (waiting == 0 || waiting + bytes <= MOST_WAITING) && self.pending.len() < MOST_PENDING
    }

    /// Sends a command.
    pub fn send(&mut self, command: EngineCommand, words: &[&[u8]], cx: &mut Context) {
        let Some(key) = self.key else { return };
        let sent_at = cx.now.mono;
        let wait = if command == EngineCommand::Read { BLOCK } else { Duration::ZERO };
        write_command(&mut self.out, words);
        let deadline = sent_at + wait + TIMEOUT;
        self.pending.push_back(PendingCommand { command, sent_at, deadline });
        cx.actions.push_back(Action::Flush(key));
    }

    /// Bytes to send.
    pub fn outgoing(&self) -> &[u8] {
        match self.connecting.is_open() {
            true => &self.out[self.sent..],
            false => &[],
        }
    }

    /// So many of them were sent.
    pub fn sent_bytes(&mut self, count: usize) {
        self.sent += count;
        if self.has_sent() {
            self.sent = 0;
            empty(&mut self.out);
        }
    }

    /// True if nothing waits to be sent.
    pub fn has_sent(&self) -> bool {
        self.sent == self.out.len()
    }

    /// Puts back what follows the first `used` bytes of what has come.
    pub fn put_back(&mut self, mut inbox: Vec<u8>, used: usize) {
        match used == inbox.len() {
            true => empty(&mut inbox),
            false => drop(inbox.drain(..used)),
        }
        self.inbox = inbox;
    }

    /// The deadline of the connection attempt, or of the oldest command.
    pub fn due(&self) -> Option<Mono> {
        match self.connecting.is_open() {
            true => self.pending.front().map(|it| it.deadline),
            false => self.key.map(|_| self.connecting.deadline),
        }
    }

    /// Moves all deadlines by the time that this process was paused, so that replies that came meanwhile
    /// count.
    pub fn postpone(&mut self, by: Duration) {
        self.connecting.deadline = self.connecting.deadline + by;
        for pending in &mut self.pending {
            pending.deadline = pending.deadline + by;
        }
    }
}

/// Empties a buffer, and gives back a large one.
fn empty(buffer: &mut Vec<u8>) {
    match buffer.capacity() > KEPT_BYTES {
        true => *buffer = Vec::new(),
        false => buffer.clear(),
    }
}
