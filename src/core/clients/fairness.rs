//! Shares the loop's time among connections.
//!
//! Owns the queue of connections whose next requests are in their inbox, and a count of what responses
//! have cost. One call of [`Core::handle`](crate::core::Core::handle) or
//! [`Core::work`](crate::core::Core::work) serves one connection for at most about one [`SHARE`]. Its other
//! pipelined requests wait at the back of the queue, and need no new read event to go on.
//!
//! It never reads a clock: the driver does so whenever the count has risen by enough.

use crate::table::Key;
use std::collections::VecDeque;

/// What one connection may cost at a time, in bytes of responses: some 0.05 ms, and 0.3 ms if none of
/// them is cached.
pub const SHARE: u64 = 64 * 1024;

/// What a request costs besides its bytes, as a number of bytes: 64 of the shortest are a share.
const REQUEST: u64 = 1024;

/// What a byte of a request's head costs, as a number of bytes of a response: it is parsed, and names
/// in it are looked up.
const HEAD_BYTE: u64 = 4;

/// See the module's page.
#[derive(Debug, Default)]
pub struct FairQueue {
    queue: VecDeque<Key>,
    spent: u64,
}

impl FairQueue {
    /// What all responses have cost so far. It only rises.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Charges what a response has cost.
    #[inline]
    pub fn charge(&mut self, cost: u64) {
        self.spent += cost;
    }

    /// Charges a request by the bytes of its head.
    #[inline]
    pub fn charge_request(&mut self, head_bytes: usize) {
        self.spent += REQUEST + HEAD_BYTE * head_bytes as u64;
    }

    /// How many connections wait for their turn.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if no connection waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Puts a connection at the back of the queue.
    pub fn push(&mut self, key: Key) {
        self.queue.push_back(key);
    }

    /// The connection that has waited longest. It may be closed.
    pub fn pop(&mut self) -> Option<Key> {
        self.queue.pop_front()
    }
}
