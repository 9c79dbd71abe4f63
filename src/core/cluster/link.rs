//! What a connection to the engine carries: commands out, replies in, in their order.
//!
//! [`Link`] owns the bytes to send, the bytes of an incomplete reply, and the commands that wait for a reply,
//! each with its deadline. It is empty while its connection is not open.
//!
//! A stream of the engine is named by a [`StreamKey`], a place in it by an [`EntryId`]; [`Unread`] is what
//! was read of streams and not applied.

use super::scripts::Script;
use crate::http::Output;
use crate::market::SourceId;
use crate::resp::write_command;
use crate::time::Mono;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// Bytes that may wait before entries and requests for candles are dropped: the next poll brings new ones.
const MOST_WAITING: usize = 4 * 1024 * 1024;

/// Commands that may wait for a reply.
const MOST_PENDING: usize = 1024;

/// An empty inbox keeps at most this much memory.
const KEPT_BYTES: usize = 256 * 1024;

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineCommand {
    /// User and password.
    Auth,
    /// Runs a script, for a source if it is about one.
    Run(Script, SourceId),
    /// Reads the market list.
    GetList(SourceId),
    /// Waits for entries.
    Read,
    /// A command whose reply only says that it succeeded.
    Other,
}

/// See the module's page.
#[derive(Default)]
pub struct Link {
    /// The bytes that have come after the last complete reply.
    pub inbox: Vec<u8>,
    /// The commands that wait for a reply, the oldest first.
    pub pending: VecDeque<PendingCommand>,
    /// The bytes to send.
    pub out: Output,
}

/// A command that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub struct PendingCommand {
    pub command: EngineCommand,
    /// When the command was added to the bytes to send.
    pub sent_at: Mono,
    deadline: Mono,
}

impl Link {
    /// True if there is room for one more command of this many bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        let is_free = self.out.is_empty() || self.out.len() + bytes <= MOST_WAITING;
        is_free && self.pending.len() < MOST_PENDING
    }

    /// Adds a command, to be sent now.
    pub fn push(&mut self, command: EngineCommand, words: &[&[u8]], sent_at: Mono, deadline: Mono) {
        write_command(self.out.bytes(), words);
        self.pending.push_back(PendingCommand { command, sent_at, deadline });
    }

    /// This many bytes of `out` were sent.
    pub fn sent_bytes(&mut self, count: usize) {
        self.out.advance(count);
        self.out.shrink();
    }

    /// Puts back the bytes of `inbox` behind the first `used` ones.
    pub fn put_back(&mut self, mut inbox: Vec<u8>, used: usize) {
        inbox.drain(..used);
        if inbox.is_empty() {
            inbox.shrink_to(KEPT_BYTES);
        }
        self.inbox = inbox;
    }

    /// The deadline of the oldest command.
    pub fn due(&self) -> Option<Mono> {
        self.pending.front().map(|it| it.deadline)
    }

    /// Moves all deadlines.
    pub fn postpone(&mut self, by: Duration) {
        for pending in &mut self.pending {
            pending.deadline = pending.deadline + by;
        }
    }
}

/// The name of an entry of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    /// The engine's time when the entry was added.
    pub ms: u64,
    /// Its number within the millisecond.
    pub number: u64,
}

impl EntryId {
    /// Reads `ms-number`.
    pub fn parse(text: &[u8]) -> Option<EntryId> {
        let (ms, number) = std::str::from_utf8(text).ok()?.split_once('-')?;
        Some(EntryId { ms: ms.parse().ok()?, number: number.parse().ok()? })
    }

    /// The id just before this one: a read from there begins with this entry.
    pub fn before(self) -> EntryId {
        match self.number.checked_sub(1) {
            Some(number) => EntryId { number, ..self },
            None => EntryId { ms: self.ms.saturating_sub(1), number: u64::MAX },
        }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

/// A stream that is read.
pub struct StreamKey {
    /// The name of its key.
    pub name: String,
    /// The source that it is about.
    pub source: SourceId,
    /// True if it has requests for candles, false if it has entries.
    pub is_ask: bool,
}

/// An entry that was read and not applied.
pub struct Unread {
    /// The source that it is about.
    pub source: SourceId,
    /// True for a request.
    pub is_ask: bool,
    /// Its place in the stream.
    pub id: EntryId,
    /// Its content.
    pub bytes: Vec<u8>,
}
