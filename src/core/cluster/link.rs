//! One connection to the engine: commands out, replies in, in their order.
//!
//! ```text
//! Closed -> Connecting (-> Securing) -> Open -> Closed
//! ```
//!
//! [`Link`] owns the bytes that are to be sent, those of a reply that is not complete, and the commands that
//! wait for one, each with its deadline. It does not know what a command means.

use crate::core::Action;
use crate::core::context::Context;
use crate::resp::write_command;
use crate::table::Key;
use crate::time::Mono;
use std::collections::VecDeque;
use std::time::Duration;

/// How long the engine may take to connect, and to reply: a slow one is better than none, as long as a
/// renewal comes before the lease ends.
pub const TIMEOUT: Duration = Duration::from_secs(3);

/// Bytes that may wait to be sent. What comes above it is dropped: the next poll brings it anew.
const MOST_WAITING: usize = 4 * 1024 * 1024;

/// Commands that may wait for a reply.
const MOST_PENDING: usize = 1024;

/// Buffers that grew above this are given back when they are empty.
const KEPT_BYTES: usize = 256 * 1024;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    #[default]
    Closed,
    /// The driver connects.
    Connecting,
    /// The driver does the TLS handshake.
    Securing,
    /// It carries commands.
    Open,
}

/// See the module's page.
#[derive(Debug)]
pub struct Link<C> {
    key: Option<Key>,
    phase: Phase,
    connect_by: Mono,
    out: Vec<u8>,
    sent: usize,
    inbox: Vec<u8>,
    pending: VecDeque<PendingCommand<C>>,
}

/// A command that waits for its reply.
#[derive(Debug)]
pub struct PendingCommand<C> {
    /// What it is.
    pub command: C,
    /// When it was given.
    pub sent_at: Mono,
    deadline: Mono,
}

impl<C> Default for Link<C> {
    fn default() -> Link<C> {
        Link {
            key: None,
            phase: Phase::Closed,
            connect_by: Mono::default(),
            out: Vec::new(),
            sent: 0,
            inbox: Vec::new(),
            pending: VecDeque::new(),
        }
    }
}

impl<C> Link<C> {
    /// True if commands can be sent.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// True if there is no connection, and none is being opened.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// True if the engine has connected it under this key.
    pub fn has(&self, key: Key) -> bool {
        self.key == Some(key)
    }

    /// It is being opened under this key.
    pub fn opening(&mut self, key: Key, now: Mono) {
        *self = Link {
            key: Some(key),
            phase: Phase::Connecting,
            connect_by: now + TIMEOUT,
            ..Link::default()
        };
    }

    /// The handshake has begun.
    pub fn securing(&mut self) {
        self.phase = Phase::Securing;
    }

    /// It carries commands from now on.
    pub fn open(&mut self) {
        self.phase = Phase::Open;
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

    /// Sends a command. `wait`: how long the engine may wait itself before it replies.
    pub fn send(&mut self, command: C, words: &[&[u8]], wait: Duration, cx: &mut Context) {
        let Some(key) = self.key else { return };
        let sent_at = cx.now.mono;
        write_command(&mut self.out, words);
        self.pending.push_back(PendingCommand {
            command,
            sent_at,
            deadline: sent_at + wait + TIMEOUT,
        });
        cx.actions.push_back(Action::Flush(key));
    }

    /// The commands that wait for a reply.
    pub fn pending(&self) -> impl Iterator<Item = &C> {
        self.pending.iter().map(|it| &it.command)
    }

    /// True if nothing waits to be sent.
    pub fn has_sent(&self) -> bool {
        self.sent == self.out.len()
    }

    /// Bytes to send.
    pub fn outgoing(&self) -> &[u8] {
        match self.phase {
            Phase::Open => &self.out[self.sent..],
            _ => &[],
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

    /// Bytes have come.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// Takes out what has come. [`Link::put_back`] takes what is left behind its complete replies.
    pub fn take_inbox(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.inbox)
    }

    /// Puts back what follows the first `used` bytes.
    pub fn put_back(&mut self, mut inbox: Vec<u8>, used: usize) {
        match used == inbox.len() {
            true => empty(&mut inbox),
            false => drop(inbox.drain(..used)),
        }
        self.inbox = inbox;
    }

    /// The command whose reply has come.
    pub fn next_pending(&mut self) -> Option<PendingCommand<C>> {
        self.pending.pop_front()
    }

    /// When [`Link::is_late`] is to be asked.
    pub fn due(&self) -> Option<Mono> {
        match self.phase {
            Phase::Closed => None,
            Phase::Connecting | Phase::Securing => Some(self.connect_by),
            Phase::Open => self.pending.front().map(|it| it.deadline),
        }
    }

    /// True if the engine has not connected, or not replied in time.
    pub fn is_late(&self, now: Mono) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// This process was away for so long: what has come meanwhile is read first.
    pub fn postpone(&mut self, by: Duration) {
        self.connect_by = self.connect_by + by;
        for pending in &mut self.pending {
            pending.deadline = pending.deadline + by;
        }
    }

    /// What the phase has not come to, in words.
    pub fn obstacle(&self) -> &'static str {
        match self.phase {
            Phase::Closed | Phase::Open => "connection lost",
            Phase::Connecting => "cannot connect",
            Phase::Securing => "TLS handshake",
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
