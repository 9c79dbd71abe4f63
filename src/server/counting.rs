//! The counting: what each answer and each turn of the loop adds to the figures.
//!
//! Owns nothing; the figures are those of [`super::status`]. It never decides anything.

use super::access::Answer;
use super::long::Reply;
use super::session::Session;
use super::{Census, Conn, Core, Endpoint, Rest, Service};
use crate::time::Now;
use std::time::Duration;

impl Core {
    /// Counts what there is. Costs a look at every connection.
    pub fn census(&self) -> Census {
        let clients = self.conns.iter().filter_map(|(_, conn)| match conn {
            Conn::Client(session) => Some(session),
            Conn::Upstream { .. } => None,
        });
        let (mut count, mut in_flight) = (0, 0);
        for session in clients {
            count += 1;
            in_flight += usize::from(session.is_busy());
        }
        Census {
            clients: count,
            upstreams: self.conns.len() - count,
            in_flight,
            long_answers: self.rest.longs.len(),
        }
    }

    /// Counts one turn of the loop, at the end of which so many clients and connections to
    /// exchanges wait for the next one.
    pub fn note_turn(&mut self, took: Duration, waiting: (usize, usize), now: Now) {
        let rest = &mut self.rest;
        rest.status.turns.note(took, now);
        rest.status.http.durations.end_turn(took.as_micros() as u64);
        rest.access.end_turn(took);
        (rest.status.queues.clients, rest.status.queues.upstreams) = waiting;
        rest.status.queues.clients += rest.turns.len();
        (rest.status.queues.held, rest.status.queues.running) = rest.longs.depths();
        (rest.status.queues.packing, rest.status.packed_bytes) = rest.packing.depths();
        rest.status.queues.staged = rest.agenda().staged;
    }
}

/// What clients must have held, in bytes, for it to be worth giving back.
const CROWD: u64 = 8 * 1024 * 1024;

impl Core {
    /// Whether three quarters of what a crowd of clients held, at its most, are free since the last
    /// time.
    pub fn has_shrunk(&mut self) -> bool {
        let rest = &mut self.rest;
        let held = rest.status.http.held + rest.status.http.pending;
        rest.most_held = rest.most_held.max(held);
        let has_shrunk = rest.most_held >= CROWD && held < rest.most_held / 4;
        if has_shrunk {
            rest.most_held = held;
        }
        has_shrunk
    }
}

impl Rest {
    /// Counts an answer that was made within the turn that read its request.
    pub(super) fn count_answer(&mut self, endpoint: &'static Endpoint, status: u16) {
        self.count_status(status);
        self.status.http.durations.note(endpoint, status);
    }

    /// Counts one that took longer.
    pub(super) fn count_long(&mut self, answer: Answer, reply: &Reply, now: Now) {
        self.count_status(answer.status);
        let took = now.mono.since(reply.asked_at);
        let durations = &mut self.status.http.durations;
        if took.is_zero() {
            // It was made within the turn that read its request after all.
            durations.note(reply.endpoint, answer.status);
            return self.access.note(answer, reply.line.as_deref());
        }
        durations.note_long(reply.endpoint, answer.status, took.as_micros() as u64);
        (self.access).note_long(answer, reply.line.as_deref(), took);
    }

    fn count_status(&mut self, status: u16) {
        let http = &mut self.status.http;
        http.not_modified += u64::from(status == 304);
        let class = usize::from(status / 100).clamp(2, 5) - 2;
        http.classes[class] += 1;
    }

    /// Counts what has become of a session since it was last counted. Whoever changes one does so.
    #[inline]
    pub(super) fn recount(&mut self, session: &mut Session) {
        if session.service == Service::Demo {
            return;
        }
        let http = &mut self.status.http;
        let after = Weight::of(session);
        let before = std::mem::replace(&mut session.counted, after);
        http.pending = http.pending + after.pending - before.pending;
        http.in_flight = http.in_flight + after.in_flight - before.in_flight;
        http.held = http.held + after.held - before.held;
    }
}

/// What a session adds to the figures of now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weight {
    in_flight: u64,
    pending: u64,
    held: u64,
}

impl Weight {
    /// As the session is.
    #[inline]
    fn of(session: &Session) -> Weight {
        Weight {
            in_flight: u64::from(session.is_busy()),
            pending: session.output.len() as u64,
            held: session.held_bytes() as u64,
        }
    }
}
