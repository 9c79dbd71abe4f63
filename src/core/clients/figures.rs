//! Counts what responses, connections and turns of the loop add to the figures.
//!
//! Owns nothing; the figures are those of `stats`. It never decides anything.

use crate::core::clients::access_log::Answer;
use crate::core::clients::connection::Session;
use crate::core::clients::deferred::Reply;
use crate::core::clients::{Clients, Shared};
use crate::core::{Census, Context, Service, Status};
use crate::durations::Endpoint;

impl Clients {
    /// Counts what there is; it knows nothing of connections to exchanges.
    pub fn census(&self) -> Census {
        let busy = self.sessions.iter().filter(|(_, it)| it.is_busy());
        Census {
            clients: self.sessions.len(),
            in_flight: busy.count(),
            long_answers: self.shared.longs.len(),
            ..Census::default()
        }
    }

    /// Counts one turn of the loop.
    pub fn note_turn(&mut self, took_us: u64, stats: &mut Status) {
        stats.http.durations.end_turn(took_us);
        let shared = &mut self.shared;
        shared.access.end_turn(took_us);
        stats.queues.clients += shared.turns.len();
        (stats.queues.held, stats.queues.running) = shared.longs.depths();
        (stats.queues.packing, stats.packed_bytes) = shared.packing.depths();
    }

    /// Whether three quarters of what a crowd of clients held, at its most, are free since the last
    /// time.
    pub fn has_shrunk(&mut self, stats: &Status) -> bool {
        let held = stats.http.held + stats.http.pending;
        self.most_held = self.most_held.max(held);
        let has_shrunk = self.most_held >= CROWD && held < self.most_held / 4;
        if has_shrunk {
            self.most_held = held;
        }
        has_shrunk
    }
}

/// What clients must have held, in bytes, for it to be worth giving back.
const CROWD: u64 = 8 * 1024 * 1024;

impl Shared {
    /// Counts an answer that was made within the turn that read its request.
    pub fn count_answer(&mut self, endpoint: &'static Endpoint, status: u16, cx: &mut Context) {
        self.count_status(status, cx);
        cx.stats.http.durations.note(endpoint, status);
    }

    /// Counts one that took longer.
    pub fn count_long(&mut self, answer: Answer, reply: &Reply, cx: &mut Context) {
        self.count_status(answer.status, cx);
        let took = cx.now.mono.since(reply.asked_at);
        let durations = &mut cx.stats.http.durations;
        if took.is_zero() {
            // It was made within the turn that read its request after all.
            durations.note(reply.endpoint, answer.status);
            return self.access.note(answer, reply.line.as_deref());
        }
        durations.note_long(reply.endpoint, answer.status, took.as_micros() as u64);
        (self.access).note_long(answer, reply.line.as_deref(), took);
    }

    fn count_status(&mut self, status: u16, cx: &mut Context) {
        let http = &mut cx.stats.http;
        http.not_modified += u64::from(status == 304);
        let class = usize::from(status / 100).clamp(2, 5) - 2;
        http.classes[class] += 1;
    }

    /// Counts what has become of a session since it was last counted. Whoever changes one does so.
    #[inline]
    pub fn recount(&mut self, session: &mut Session, cx: &mut Context) {
        if session.service == Service::Demo {
            return;
        }
        let http = &mut cx.stats.http;
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
