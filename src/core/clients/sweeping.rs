//! Closes connections whose deadline has passed, and the slowest ones if all together hold too much.
//!
//! Owns when these are looked for. No timer is kept for a connection: a sweep over all of them once a
//! second is cheaper. What a passed deadline leads to is decided in [`Connection::expire`].

use crate::core::api::Error;
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::responses::Responses;
use crate::core::{Action, CloseReason, Context};
use crate::table::{Key, Table};
use crate::time::Mono;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

/// The part of a limit, an eighth, that is freed at once when the limit is exceeded: to find the slowest
/// clients, all are looked at.
const SHED_PART: u64 = 8;

/// Above half of the limit on unsent bytes, a client that has taken nothing for so long is closed. Even
/// over a very slow line, a client that reads takes something in this time.
const SHED_AFTER: Duration = Duration::from_secs(1);

/// Between two searches for slow readers above half of the limit.
const SHED_PAUSE: Duration = Duration::from_millis(100);

/// Between two sweeps.
const SWEEP: Duration = Duration::from_secs(1);

/// Between two parts of one sweep.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);

/// Places that one part of a sweep looks at: a tenth of a millisecond.
const SWEEP_PLACES: usize = 4096;

/// Deadlines that one part of a sweep handles.
const SWEEP_EXPIRED: usize = 128;

/// See the module's page.
#[derive(Debug)]
pub struct Sweeper {
    next_sweep: Mono,
    /// The place at which the current sweep goes on.
    next_place: usize,
    /// When slow readers may be looked for again.
    next_shed: Mono,
}

impl Sweeper {
    /// A sweeper that sweeps now.
    pub fn new(now: Mono) -> Sweeper {
        Sweeper { next_sweep: now, next_place: 0, next_shed: now }
    }

    /// When the next sweep is due.
    pub fn due(&self) -> Mono {
        self.next_sweep
    }

    /// Does one part of a sweep. Returns true if that was its last part. A crowd whose
    /// deadlines pass together is handled in several turns.
    pub fn sweep(
        &mut self,
        connections: &mut Table<Connection>,
        responses: &mut Responses,
        cx: &mut Context,
    ) -> bool {
        let places = self.next_place..self.next_place + SWEEP_PLACES;
        let next = sweep(connections, responses, places, SWEEP_EXPIRED, cx);
        let is_done = next >= connections.slots();
        self.next_place = if is_done { 0 } else { next };
        self.next_sweep = cx.now.mono + if is_done { SWEEP } else { SWEEP_PAUSE };
        is_done
    }

    /// Closes connections that leave too much unread or send too much.
    pub fn shed(&mut self, connections: &mut Table<Connection>, cx: &mut Context) {
        let (most_out, most_in) =
            (cx.config.limits.output_total as u64, cx.config.limits.input_total as u64);
        let is_over = cx.stats.http.pending > most_out;
        let is_due = cx.stats.http.pending > most_out / 2 && cx.now.mono >= self.next_shed;
        if is_over || is_due {
            self.next_shed = cx.now.mono + SHED_PAUSE;
            shed_slow_readers(connections, is_over, cx);
        }
        if cx.stats.http.held > most_in {
            shed_slow_senders(connections, cx);
        }
    }
}

/// Closes every connection that is between two requests: marketd stops.
pub fn part_all(connections: &mut Table<Connection>, responses: &mut Responses, cx: &mut Context) {
    sweep(connections, responses, 0..usize::MAX, usize::MAX, cx);
}

/// Handles the deadlines that have passed of the connections in these places, until there were
/// `most_expired`. Returns the place to go on at.
fn sweep(
    connections: &mut Table<Connection>,
    responses: &mut Responses,
    places: Range<usize>,
    most_expired: usize,
    cx: &mut Context,
) -> usize {
    let mut expired = 0;
    let end = places.end;
    let mut rest = None;
    for (key, connection) in connections.range_mut(places) {
        if connection.deadline <= cx.now.mono {
            if expired == most_expired {
                rest = Some(key);
                break;
            }
            expired += 1;
            if let Some(reason) = connection.expire(cx) {
                cx.stats.http.requests += 1;
                responses.fail(connection, &Error::request_timeout(), reason, None, cx);
                cx.actions.push_back(Action::Flush(key));
            }
        } else if cx.stats.stopping && matches!(connection.phase, Phase::Idle) {
            connection.half_close(CloseReason::Stopping, cx);
        }
        connection.recount(&mut cx.stats.http);
    }
    rest.map_or(end, |key| connections.slot(key))
}

/// Closes clients that leave too much unread. Above half of the limit, those that have taken nothing for a
/// while; above the limit (`is_over`), those that have taken nothing for the longest time, at once. The one
/// that was the last to take something is never closed for that, however long its response is.
fn shed_slow_readers(connections: &mut Table<Connection>, is_over: bool, cx: &mut Context) {
    let most = cx.config.limits.output_total as u64;
    let goal = if is_over { most } else { most / 2 };
    let least = usize::from(is_over);
    let mut left = cx.stats.http.pending;
    let mut readers = longest_first(connections, |it| {
        let since = it.unread_since(&cx.config.limits)?;
        (is_over || since + SHED_AFTER <= cx.now.mono).then_some(since)
    });
    while left > goal - goal / SHED_PART
        && readers.len() > least
        && let Some(Reverse((_, key))) = readers.pop()
        && let Some(connection) = connections.get_mut(key)
    {
        left = left.saturating_sub(connection.output.len() as u64);
        connection.close(CloseReason::SlowReader, cx);
        connection.recount(&mut cx.stats.http);
    }
}

/// Closes clients that hold bytes of requests: those that have done so for the longest time, until an
/// eighth of the limit is free again.
fn shed_slow_senders(connections: &mut Table<Connection>, cx: &mut Context) {
    let most = cx.config.limits.input_total as u64;
    let now = cx.now.mono;
    let mut senders = longest_first(connections, |it| it.holds_since(&cx.config.limits, now));
    while cx.stats.http.held > most - most / SHED_PART
        && let Some(Reverse((_, key))) = senders.pop()
        && let Some(connection) = connections.get_mut(key)
    {
        connection.close(CloseReason::SlowSender, cx);
        connection.inbox = Vec::new();
        connection.recount(&mut cx.stats.http);
    }
}

/// The connections with a time, the earliest time first.
fn longest_first(
    connections: &Table<Connection>,
    since: impl Fn(&Connection) -> Option<Mono>,
) -> BinaryHeap<Reverse<(Mono, Key)>> {
    let all = connections.iter();
    all.filter_map(|(key, it)| Some(Reverse((since(it)?, key)))).collect()
}
