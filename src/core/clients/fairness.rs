//! Shares: how much one connection may cost before the others have their turn.
//!
//! Owns the queue of connections whose next requests are in their inbox and wait, and a count of
//! what responses have cost. One call of [`super::Core::handle`] or [`super::Core::work`] serves
//! one connection for at most about one [`SHARE`]; the rest of its pipelined requests wait at the
//! back of the queue, and need no new read event to go on.
//!
//! It never reads a clock: the driver does so whenever the count has risen by enough.

use crate::core::clients::connection::{Phase, Session};
use crate::core::clients::{Clients, Shared};
use crate::core::{Action, Context};
use crate::http::Request;
use crate::table::Key;
use std::collections::VecDeque;

/// What one connection may cost at a time, in bytes of responses: some 0.05 ms, and 0.3 ms where
/// none of them is at hand.
pub const SHARE: u64 = 64 * 1024;

/// What a request costs beside its bytes, as a number of bytes: 64 of the shortest are a share.
const REQUEST: u64 = 1024;

/// What a byte of a request's head costs, as a number of bytes of a response: it is parsed, and names
/// in it are looked up.
const HEAD_BYTE: u64 = 4;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Turns {
    queue: VecDeque<Key>,
    spent: u64,
    /// Whether the connection that is served has waited for its turn.
    is_turn: bool,
}

impl Turns {
    /// What all responses have cost so far. It only rises.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Counts a request by the bytes of its head.
    #[inline]
    pub fn charge_request(&mut self, head_bytes: usize) {
        self.spent += REQUEST + HEAD_BYTE * head_bytes as u64;
    }

    /// Counts the body of a response, sent or not.
    #[inline]
    pub fn charge_body(&mut self, bytes: usize) {
        self.spent += bytes as u64;
    }

    /// Counts work that is worth a whole share.
    pub fn charge_share(&mut self) {
        self.spent += SHARE;
    }

    /// How many connections wait for their turn.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether a connection waits for its turn.
    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }
}

impl Clients {
    /// Serves one share of the connection that has waited longest for its turn. `false`: none waits.
    pub fn step_turns(&mut self, cx: &mut Context) -> bool {
        let Clients {
            sessions, shared, ..
        } = self;
        let Some(key) = shared.turns.queue.pop_front() else {
            return false;
        };
        // It may have been closed meanwhile.
        if let Some(session) = sessions.get_mut(key)
            && matches!(session.phase, Phase::Queued)
        {
            session.enter(Phase::Idle, cx.now.mono, &cx.config.limits);
            // A request for metrics does not count itself as in flight.
            shared.recount(session, cx);
            shared.turns.is_turn = true;
            shared.resume(key, session, cx);
            shared.turns.is_turn = false;
            // Also where nothing was written: it may read again.
            cx.actions.push_back(Action::Flush(key));
            shared.recount(session, cx);
        }
        true
    }
}

impl Shared {
    /// Whether a request waits for its connection's turn, however short the queue is: hundreds of clients
    /// that ask for metrics at once must not keep those waiting who ask for a quote.
    #[inline]
    pub fn is_heavy(&self, request: &Request<'_>) -> bool {
        !self.turns.is_turn && request.path.ends_with(b"metrics")
    }

    /// Has a connection with requests in its inbox wait for its turn, when its output is sent.
    pub fn await_turn(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
        match session.output.is_empty() {
            true => self.enqueue(key, session, cx),
            false => session.enter(Phase::Writing, cx.now.mono, &cx.config.limits),
        }
    }

    /// Puts a connection with requests in its inbox at the back of the queue.
    pub fn enqueue(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
        session.enter(Phase::Queued, cx.now.mono, &cx.config.limits);
        self.turns.queue.push_back(key);
    }
}
