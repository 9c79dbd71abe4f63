//! Closes connections: those whose deadline has passed, the slowest ones if all together hold too much, and
//! those between two requests if marketd stops.
//!
//! Owns when these are looked for, and which ones are slow (`SlowReader`, `SlowSender`). No timer is kept for
//! a connection: a sweep over all of them once a second is cheaper. [`Connection::expire`] decides what a
//! passed deadline leads to.

use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::responses::Responses;
use crate::core::{CloseReason, Context, Service};
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

    /// Does one part of a sweep. Returns true if that was its last part. Thousands of connections whose
    /// deadlines pass together are handled in several turns.
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

    /// Closes connections that leave too much unread or send too much. Above half of the limit on unsent
    /// bytes, those that have taken nothing for a while; above the limit, those that have taken nothing for
    /// the longest time, at once. The one that was the last to take something is never closed for that,
    /// however long its response is.
    pub fn shed(&mut self, connections: &mut Table<Connection>, cx: &mut Context) {
        let (limits, now) = (&cx.config.limits, cx.now.mono);
        let (most_out, most_in) = (limits.output_total as u64, limits.input_total as u64);
        let pending = cx.stats.http.pending;
        let is_over = pending > most_out;
        if is_over || pending > most_out / 2 && now >= self.next_shed {
            self.next_shed = now + SHED_PAUSE;
            let readers = slow(connections, |it| {
                let since = unread_since(it)?;
                let is_slow = is_over || since + SHED_AFTER <= now;
                is_slow.then_some((since, it.output.len()))
            });
            let most = if is_over { most_out } else { most_out / 2 };
            let spared = usize::from(is_over);
            close(connections, readers, (pending, most, spared), CloseReason::SlowReader, cx);
        }
        let held = cx.stats.http.held;
        if held > most_in {
            let senders = slow(connections, |it| Some((holds_since(it, now)?, it.held_bytes())));
            close(connections, senders, (held, most_in, 0), CloseReason::SlowSender, cx);
        }
    }
}

/// Handles the deadlines that have passed of the connections in these places, until there were
/// `most_expired`, and closes those that are between two requests if marketd stops. Returns the place to go
/// on at.
pub fn sweep(
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
        if connection.deadline(&cx.config.limits) <= cx.now.mono {
            if expired == most_expired {
                rest = Some(key);
                break;
            }
            expired += 1;
            if let Some(reason) = connection.expire(cx) {
                responses.time_out(connection, reason, cx);
            }
        } else if cx.stats.stopping && matches!(connection.phase, Phase::Idle) {
            connection.half_close(CloseReason::Stopping, cx);
        }
        connection.recount(&mut cx.stats.http);
    }
    rest.map_or(end, |key| connections.slot(key))
}

/// Since when the client has taken no byte of its output, or, with an incomplete request, since that began.
/// `None` if there is no output.
fn unread_since(it: &Connection) -> Option<Mono> {
    match it.phase {
        _ if it.service == Service::Demo || it.output.is_empty() => None,
        Phase::Body(_) | Phase::Writing | Phase::Streaming(_) | Phase::Finishing => Some(it.since),
        _ => None,
    }
}

/// Since when a connection holds bytes of requests: since its head or body began, or since the client last
/// took some of its output; `now` if it waits for us. `None` if it holds none.
fn holds_since(it: &Connection, now: Mono) -> Option<Mono> {
    match it.phase {
        _ if it.service == Service::Demo || it.held_bytes() == 0 => None,
        Phase::Lingering | Phase::Closed => None,
        Phase::Idle | Phase::Waiting(_) | Phase::Queued => Some(now),
        _ => Some(it.since),
    }
}

/// Connections: since when each of them is slow, and how many bytes it holds. The slowest is on top.
type Slow = BinaryHeap<Reverse<(Mono, Key, usize)>>;

/// The connections for which there are such a time and number.
fn slow(
    connections: &Table<Connection>,
    look: impl Fn(&Connection) -> Option<(Mono, usize)>,
) -> Slow {
    let all = connections.iter();
    all.filter_map(|(key, it)| look(it).map(|(since, bytes)| Reverse((since, key, bytes))))
        .collect()
}

/// Closes the slowest connections but for `spared` of them, until an eighth of the limit is free again.
fn close(
    connections: &mut Table<Connection>,
    mut slow: Slow,
    (bytes, most, spared): (u64, u64, usize),
    reason: CloseReason,
    cx: &mut Context,
) {
    let mut excess = bytes.saturating_sub(most - most / SHED_PART);
    while excess > 0
        && slow.len() > spared
        && let Some(Reverse((_, key, bytes))) = slow.pop()
        && let Some(connection) = connections.get_mut(key)
    {
        excess = excess.saturating_sub(bytes as u64);
        connection.close(reason, cx);
        connection.recount(&mut cx.stats.http);
    }
}
