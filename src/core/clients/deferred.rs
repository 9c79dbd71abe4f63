//! The queue of deferred responses: those that wait for candles, and those that are made in parts.
//!
//! Owns the order, by the keys of the connections; each response belongs to its connection (`pending`).
//! A response *waits* for candles, at most until its deadline, and then *runs*: each call of
//! [`DeferredResponses::step`] makes one bounded part of one of them, in turn. Only the client that asked
//! waits.
//!
//! A waiting response is small; one that is being made holds a body. So only the first few take turns, and
//! the others queue. A connection may be gone by the time that its key is looked at.

use crate::core::api::View;
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::pending::{Pending, PendingResponse};
use crate::market::SeriesKey;
use crate::table::{Key, Table};
use crate::time::Mono;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Responses that may wait for candles. Each time that candles have come, all of them are checked, which
/// must take well below a millisecond. Above the limit, a response is made without its candles.
const WAITING: usize = 1024;

/// See the module's page.
pub struct DeferredResponses {
    waiting: Vec<Key>,
    /// The earliest deadline of those that wait.
    next_due: Option<Mono>,
    /// The first `making` of them take turns.
    running: VecDeque<Key>,
    making: usize,
}

impl DeferredResponses {
    /// An empty queue. At most `making` responses are in the making.
    pub fn new(making: usize) -> DeferredResponses {
        DeferredResponses {
            waiting: Vec::new(),
            next_due: None,
            running: VecDeque::new(),
            making: making.max(1),
        }
    }

    /// How many wait, and how many run.
    pub fn depths(&self) -> (usize, usize) {
        (self.waiting.len(), self.running.len())
    }

    /// True if [`DeferredResponses::step`] has something to do.
    pub fn has_work(&self) -> bool {
        !self.running.is_empty()
    }

    /// When [`DeferredResponses::wake`] is wanted.
    pub fn next_due(&self) -> Option<Mono> {
        self.next_due
    }

    /// True if another response may wait for candles.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < WAITING
    }

    /// Takes in a connection whose response is deferred. One that waits for its compressed body comes back
    /// by [`DeferredResponses::compressed`].
    pub fn insert(&mut self, key: Key, response: &PendingResponse) {
        match response {
            PendingResponse::InParts(_, Some(until)) => {
                self.waiting.push(key);
                self.next_due = Some(self.next_due.map_or(*until, |due| due.min(*until)));
            }
            PendingResponse::InParts(_, None) => self.running.push_back(key),
            PendingResponse::Compressed(..) => {}
        }
    }

    /// A connection has closed.
    pub fn forget(&mut self, key: Key) {
        if let Some(at) = self.waiting.iter().position(|it| *it == key) {
            self.waiting.swap_remove(at);
        }
    }

    /// The candles that this response waits for will not come: it runs.
    pub fn go_without(&mut self, key: Key, connections: &mut Table<Connection>) {
        if let Some(PendingResponse::InParts(_, until)) = response(connections, key)
            && until.take().is_some()
        {
            self.forget(key);
            self.running.push_back(key);
        }
    }

    /// Lets those responses run whose candles have come, are no longer requested (`comes`), or whose
    /// deadline has passed.
    pub fn wake(
        &mut self,
        connections: &mut Table<Connection>,
        view: &View<'_>,
        comes: impl Fn(SeriesKey, &Range<i64>) -> bool,
    ) {
        self.next_due = None;
        for key in std::mem::take(&mut self.waiting) {
            let Some(response) = response(connections, key) else {
                continue;
            };
            if let PendingResponse::InParts(deferred, until) = response {
                let missing = deferred.missing(view);
                let comes = missing.is_some_and(|(series, slots)| comes(series, &slots));
                until.take_if(|until| *until <= view.now.mono || !comes);
            }
            self.insert(key, response);
        }
    }

    /// The body that these connections wait for is compressed. There is nothing left to be made, so they
    /// are next.
    pub fn compressed(
        &mut self,
        keys: Vec<Key>,
        bytes: &Arc<[u8]>,
        connections: &mut Table<Connection>,
    ) {
        for key in keys {
            if let Some(PendingResponse::Compressed(_, place)) = response(connections, key) {
                *place = Some(bytes.clone());
                self.running.push_front(key);
            }
        }
    }

    /// Makes one part of the next running response. Returns the connection and the response if that was
    /// its last part.
    pub fn step<'c>(
        &mut self,
        connections: &'c mut Table<Connection>,
        view: &View<'_>,
    ) -> Option<(Key, &'c mut Connection, Pending)> {
        let key = self.running.pop_front()?;
        let response = response(connections, key)?;
        if let PendingResponse::InParts(deferred, _) = response
            && !deferred.step(view)
        {
            // Behind those that take turns, before those that wait in line.
            let place = self.running.len().min(self.making - 1);
            self.running.insert(place, key);
            return None;
        }
        let connection = connections.get_mut(key)?;
        let pending = connection.take_pending()?;
        Some((key, connection, pending))
    }
}

/// The deferred response of a connection, if that is still there.
fn response(connections: &mut Table<Connection>, key: Key) -> Option<&mut PendingResponse> {
    match &mut connections.get_mut(key)?.phase {
        Phase::Waiting(pending) => Some(&mut pending.response),
        _ => None,
    }
}
