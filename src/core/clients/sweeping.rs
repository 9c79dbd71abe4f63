//! Closes connections: those whose deadline has passed, the slowest ones if all together hold too much, and
//! those between two requests if marketd stops.
//!
//! Owns the times of these searches, and decides which connections are slow (`SlowReader`, `SlowSender`). No
//! connection has a timer: a sweep over all of them once a second, and more often at the end, is cheaper.
//! [`Connection::expire`] decides what a passed deadline leads to.

use crate::core::api::Error;
use crate::core::clients::Clients;
use crate::core::clients::connection::{Connection, Phase};
use crate::core::held::{HeldByClient, HeldByClients};
use crate::core::{CloseReason, Context};
use crate::table::Key;
use crate::time::Mono;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// An eighth of a limit is freed at once when the limit is exceeded, because each search for the slowest
/// clients looks at all clients.
const SHED_PART: u64 = 8;

/// Above half of the limit on unsent bytes, a client that has taken nothing for this long is closed. Even
/// over a very slow line, a client that reads takes something in this time.
const SHED_AFTER: Duration = Duration::from_secs(1);

/// Between two searches for slow readers above half of the limit.
const SHED_PAUSE: Duration = Duration::from_millis(100);

/// Between two sweeps.
const SWEEP: Duration = Duration::from_secs(1);

/// The shortest time between two sweeps while marketd stops: the end waits for clients that linger.
const SWEEP_OF_END: Duration = Duration::from_millis(25);

/// Between two parts of one sweep.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);

/// Places that one part of a sweep looks at: some microseconds, and a tenth of a millisecond if all deadlines
/// have passed.
const SWEEP_PLACES: usize = 256;

impl Clients {
    /// Does one part of a sweep: handles the deadlines that have passed. If marketd stops, it closes the
    /// connections between two requests, and ends the streams. Returns true if that was its last part.
    /// Thousands of connections whose deadlines pass together are handled in several turns.
    pub fn sweep(&mut self, cx: &mut Context) -> bool {
        let Clients { connections, sweeper, responses, .. } = self;
        let end = sweeper.next_place + SWEEP_PLACES;
        for (_, connection) in connections.range_mut(sweeper.next_place..end) {
            match connection.phase {
                Phase::Idle if cx.stats.stopping => {
                    connection.half_close(CloseReason::Stopping, cx);
                }
                Phase::Streaming(_) if cx.stats.stopping => responses.streams.end(connection, cx),
                _ if connection.deadline(&cx.config.limits) > cx.now.mono => {}
                _ => {
                    if let Some(reason) = connection.expire(cx) {
                        let begun = std::mem::take(&mut connection.inbox);
                        let error = &Error::REQUEST_TIMEOUT;
                        responses.fail(connection, error, &begun, reason, cx);
                        connection.flush(cx);
                    }
                }
            }
            connection.recount(&mut cx.stats.http);
        }
        let is_done = end >= connections.slots();
        sweeper.next_place = if is_done { 0 } else { end };
        let pause = match is_done {
            true if cx.stats.stopping => cx.config.limits.linger.clamp(SWEEP_OF_END, SWEEP),
            true => SWEEP,
            false => SWEEP_PAUSE,
        };
        sweeper.next_sweep = cx.now.mono + pause;
        is_done
    }

    /// Closes the slowest connections if all together hold too much. Above half of the limit on unsent bytes,
    /// only connections that have taken nothing for `SHED_AFTER` are closed. Above the limit, the slowest
    /// are closed at once, but not the one that took something last, however long its response is. Above
    /// the limit on unanswered requests, the slowest senders are closed at once.
    pub fn shed(&mut self, cx: &mut Context) {
        let limits = &cx.config.limits;
        let (most_out, most_in) = (limits.output_total as u64, limits.input_total as u64);
        let (HeldByClients { pending, requests, .. }, now) = (cx.stats.http.held, cx.now.mono);
        let is_over = pending > most_out;
        let may_be_slow = now >= self.sweeper.next_shed && !cx.is_behind;
        if is_over || pending > most_out / 2 && may_be_slow {
            self.sweeper.next_shed = now + SHED_PAUSE;
            let half = (most_out / 2, 0, SHED_AFTER);
            let limit = if is_over { (most_out, 1, Duration::ZERO) } else { half };
            self.close_slowest(|it| it.pending, pending, limit, CloseReason::SlowReader, cx);
        }
        if requests > most_in {
            let limit = (most_in, 0, Duration::ZERO);
            self.close_slowest(|it| it.requests, requests, limit, CloseReason::SlowSender, cx);
        }
    }

    /// Closes the slowest connections until an eighth of `most` is free again. `held`: the bytes of a client
    /// that count; `all`: the same bytes of all clients. The last `spared` of the slow connections stay open.
    /// A connection is slow once it has made no progress for `patience`.
    fn close_slowest(
        &mut self,
        held: fn(&HeldByClient) -> u32,
        all: u64,
        (most, spared, patience): (u64, usize, Duration),
        reason: CloseReason,
        cx: &mut Context,
    ) {
        let now = cx.now.mono;
        let slow = self.connections.iter().filter_map(|(key, it)| {
            let (since, bytes) = (slow_since(it, now), u64::from(held(&it.counted)));
            let is_slow = bytes > 0 && now.since(since) >= patience;
            is_slow.then_some(Reverse((since, key, bytes)))
        });
        let mut slow: BinaryHeap<Reverse<(Mono, Key, u64)>> = slow.collect();
        let mut excess = all.saturating_sub(most - most / SHED_PART);
        while excess > 0
            && slow.len() > spared
            && let Some(Reverse((_, key, bytes))) = slow.pop()
            && let Some(connection) = self.connections.get_mut(key)
        {
            excess = excess.saturating_sub(bytes);
            connection.close(reason, cx);
        }
    }
}

/// Since when a client keeps us waiting: since its head or body began, or since it last took some of its
/// output. `now` if the client waits for us.
fn slow_since(it: &Connection, now: Mono) -> Mono {
    match it.phase {
        Phase::Idle | Phase::Waiting(_) | Phase::Queued => now,
        _ => it.since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::core::testing::{NOW, context};
    use crate::core::{Action, Event, Service};

    /// Three clients that have taken nothing of their responses.
    fn three() -> (Clients, Context) {
        let mut cx = context(Config::default(), NOW);
        let mut clients = Clients::new(None, 0, &cx);
        for _ in 0..3 {
            let key = clients.accept(None, Service::Api, &mut cx).expect("there is room");
            let head = b"GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n";
            clients.handle(key, Event::Received(head), &mut cx);
        }
        (clients, cx)
    }

    /// How many clients are closed in a turn.
    fn closed(clients: &mut Clients, cx: &mut Context) -> usize {
        clients.handle_timeout(cx);
        let is_close = |it: &Action| matches!(it, Action::Close(_));
        cx.actions.drain(..).filter(is_close).count()
    }

    #[test]
    fn who_is_closed_holds_nothing_even_before_his_socket_is_dropped() {
        let (mut clients, mut cx) = three();
        cx.config.limits.output_total = cx.stats.http.held.pending as usize - 1;
        assert_eq!([0; 3].map(|_| closed(&mut clients, &mut cx)), [1, 0, 0]);
    }

    #[test]
    fn what_a_client_took_during_a_pause_is_known_before_it_is_slow() {
        let (mut clients, mut cx) = three();
        cx.config.limits.output_total = cx.stats.http.held.pending as usize + 1;
        cx.now.mono = cx.now.mono + SHED_AFTER;
        let closed = [true, false].map(|is_behind| {
            cx.is_behind = is_behind;
            closed(&mut clients, &mut cx)
        });
        assert_eq!(closed, [0, 2]);
    }
}
