//! Closes connections: those whose deadline has passed, the slowest ones if all together hold too much, and
//! those between two requests if marketd stops.
//!
//! Owns when these are looked for, and which ones are slow (`SlowReader`, `SlowSender`). No timer is kept for
//! a connection: a sweep over all of them once a second, and more often at the end, is cheaper.
//! [`Connection::expire`] decides what a passed deadline leads to.

use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::responses::Responses;
use crate::core::held::HeldByClients;
use crate::core::{CloseReason, Context, Service};
use crate::table::{Key, Table};
use crate::time::Mono;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
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

/// The least between two sweeps while marketd stops: its end waits for the clients, as long as they linger.
const SWEEP_OF_END: Duration = Duration::from_millis(25);

/// Between two parts of one sweep.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);

/// Places that one part of a sweep looks at: a tenth of a millisecond.
const SWEEP_PLACES: usize = 4096;

/// Deadlines that one part of a sweep handles.
const SWEEP_EXPIRED: usize = 128;

/// See the module's page.
#[derive(Debug)]
pub struct Sweeper {
    /// When the next sweep is due.
    pub next_sweep: Mono,
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

    /// Does one part of a sweep: handles the deadlines that have passed, and closes the connections between
    /// two requests if marketd stops. Returns true if that was its last part. Thousands of connections whose
    /// deadlines pass together are handled in several turns.
    pub fn sweep(
        &mut self,
        connections: &mut Table<Connection>,
        responses: &mut Responses,
        cx: &mut Context,
    ) -> bool {
        let (places, mut expired) = (self.next_place..self.next_place + SWEEP_PLACES, 0);
        let mut rest = None;
        for (key, connection) in connections.range_mut(places.clone()) {
            if connection.deadline(&cx.config.limits) <= cx.now.mono {
                if expired == SWEEP_EXPIRED {
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
        let next = rest.map_or(places.end, |key| connections.slot(key));
        let is_done = next >= connections.slots();
        self.next_place = if is_done { 0 } else { next };
        let pause = match is_done {
            true if cx.stats.stopping => cx.config.limits.linger.clamp(SWEEP_OF_END, SWEEP),
            true => SWEEP,
            false => SWEEP_PAUSE,
        };
        self.next_sweep = cx.now.mono + pause;
        is_done
    }

    /// Closes connections that leave too much unread or send too much. Above half of the limit on unsent
    /// bytes, those that have taken nothing for a while; above the limit, those that have taken nothing for
    /// the longest time, at once. The one that was the last to take something is never closed for that,
    /// however long its response is.
    pub fn shed(&mut self, connections: &mut Table<Connection>, cx: &mut Context) {
        let (limits, now) = (&cx.config.limits, cx.now.mono);
        let (most_out, most_in) = (limits.output_total as u64, limits.input_total as u64);
        let HeldByClients { pending, requests, .. } = cx.stats.http.held;
        let is_over = pending > most_out;
        if is_over || pending > most_out / 2 && now >= self.next_shed {
            self.next_shed = now + SHED_PAUSE;
            let slow = |it: &Connection| {
                let since = unread_since(it)?;
                let is_slow = is_over || since + SHED_AFTER <= now;
                is_slow.then_some((since, it.output.len() as u64))
            };
            let most = if is_over { most_out } else { most_out / 2 };
            let excess = (pending, most, usize::from(is_over));
            close_slowest(connections, slow, excess, CloseReason::SlowReader, cx);
        }
        if requests > most_in {
            let slow = |it: &Connection| Some((holds_since(it, now)?, it.counted.requests));
            close_slowest(connections, slow, (requests, most_in, 0), CloseReason::SlowSender, cx);
        }
    }
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
        _ if it.counted.requests == 0 => None,
        Phase::Lingering | Phase::Closed => None,
        Phase::Idle | Phase::Waiting(_) | Phase::Queued => Some(now),
        _ => Some(it.since),
    }
}

/// Closes the slowest connections but for `spared` of them, until an eighth of the limit is free again.
/// `look`: since when a connection is slow, if it is, and how many bytes it holds.
fn close_slowest(
    connections: &mut Table<Connection>,
    look: impl Fn(&Connection) -> Option<(Mono, u64)>,
    (bytes, most, spared): (u64, u64, usize),
    reason: CloseReason,
    cx: &mut Context,
) {
    let all = connections.iter();
    let all =
        all.filter_map(|(key, it)| look(it).map(|(since, bytes)| Reverse((since, key, bytes))));
    let mut slow: BinaryHeap<Reverse<(Mono, Key, u64)>> = all.collect();
    let mut excess = bytes.saturating_sub(most - most / SHED_PART);
    while excess > 0
        && slow.len() > spared
        && let Some(Reverse((_, key, bytes))) = slow.pop()
        && let Some(connection) = connections.get_mut(key)
    {
        excess = excess.saturating_sub(bytes);
        connection.close(reason, cx);
        connection.recount(&mut cx.stats.http);
    }
}
