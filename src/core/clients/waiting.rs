//! Responses that are not made within the turn that read their request, and the clients that wait for
//! them.
//!
//! Owns their way: from the client to the table of deferred responses (`deferred`), to the compressed
//! bodies (`compressed_cache`), and back. It never reads a request.

use crate::core::api::{self, Outcome, View};
use crate::core::clients::access_log::Answer;
use crate::core::clients::connection::{Phase, Session};
use crate::core::clients::deferred::Reply;
use crate::core::clients::{Clients, Shared};
use crate::core::{Action, CloseReason, Context};
use crate::market::SeriesKey;
use crate::table::Key;
use std::ops::Range;

/// Said where the disk thread has as many questions as it may have.
const FULL_QUEUE: &str = "Too many charts wait for the history file.";

/// Said where answers that were made before are not read.
const SLOW_READERS: &str = "Too many answers wait to be read.";

/// Said where there are as many such answers as there may be.
const FULL_TABLE: &str = "Too many long answers are being made.";

/// Candles that a client waits for. The conductor knows who can bring them.
pub struct Wish {
    /// Who waits.
    pub client: Key,
    /// The response that is deferred for them.
    pub job: Key,
    /// Of this series.
    pub series: SeriesKey,
    /// These slots.
    pub slots: Range<i64>,
}

impl Clients {
    /// Does one part of one answer in the making, and hands it over when it is done. `false`: there
    /// is none.
    pub fn step_long(&mut self, cx: &mut Context) -> bool {
        if !self.shared.longs.has_work() {
            return false;
        }
        self.make_part(cx);
        true
    }

    fn make_part(&mut self, cx: &mut Context) {
        let Clients {
            sessions, shared, ..
        } = self;
        let view = View::new(
            &cx.config,
            &cx.market,
            &cx.stats,
            &shared.packing,
            (shared.boot, cx.now),
        );
        let Some((client, mut reply, long)) = shared.longs.step(&view) else {
            return;
        };
        let Some(session) = sessions.get_mut(client) else {
            return;
        };
        // What is already here behind it is answered too, and its last answer is the last one.
        if cx.stats.stopping && session.inbox.is_empty() {
            reply.end(CloseReason::Stopping);
        }
        let begin = session.output.len();
        let mut responder = reply.responder(&mut session.output, &shared.stamp);
        if let Some(to_pack) = long.finish(&view, &mut responder) {
            // Nothing was written, and the place that it had is free for it again.
            return shared.pack(session, client, to_pack, reply, cx);
        }
        let answer = Answer {
            peer: reply.client(),
            status: responder.status(),
            bytes: session.output.len() - begin,
        };
        shared.count_long(answer, &reply, cx);
        shared.after_answer(session, reply.closing, cx);
        shared.hand_over(client, session, cx);
    }

    /// The candles that this response waits for will not come: it is made of what is here.
    pub fn go_without(&mut self, job: Key) {
        self.shared.longs.go_without(job);
    }

    /// Too many wait for the history file: this response is not made.
    pub fn refuse(&mut self, client: Key, job: Key, cx: &mut Context) {
        let Clients {
            sessions, shared, ..
        } = self;
        if let Some(reply) = shared.longs.remove(job)
            && let Some(session) = sessions.get_mut(client)
        {
            shared.turn_away(session, reply, FULL_QUEUE, cx);
            shared.hand_over(client, session, cx);
        }
    }

    /// Packs a slice of one body, and lets the answers go that wait for it when it is done. `false`:
    /// there is none.
    pub fn step_packing(&mut self) -> bool {
        let Shared { packing, longs, .. } = &mut self.shared;
        if !packing.has_work() {
            return false;
        }
        if let Some((bytes, answers)) = packing.step(|key| longs.holds(key)) {
            for key in answers {
                longs.go_on(key, &bytes);
            }
        }
        true
    }

    /// Looks again at the responses that wait for candles. `comes`: whether these slots of a series are
    /// asked for.
    pub fn wake(&mut self, comes: impl Fn(SeriesKey, &Range<i64>) -> bool, cx: &Context) {
        let Shared {
            packing,
            longs,
            boot,
            ..
        } = &mut self.shared;
        let view = View::new(&cx.config, &cx.market, &cx.stats, packing, (*boot, cx.now));
        longs.wake(&view, comes);
    }
}

impl Shared {
    /// Parks an answer that takes longer than one turn, and asks for the candles that it lacks.
    pub fn put_off(
        &mut self,
        key: Key,
        session: &mut Session,
        later: Outcome,
        reply: Reply,
        cx: &mut Context,
    ) {
        let long = match later {
            Outcome::Answered => return,
            Outcome::Later(long) => long,
            Outcome::Pack(to_pack) => return self.pack(session, key, *to_pack, reply, cx),
        };
        // The rest of the room is for answers that are at hand.
        if cx.stats.http.pending >= cx.config.limits.output_total as u64 / 2 {
            return self.turn_away(session, reply, SLOW_READERS, cx);
        }
        let until = cx.now.mono + cx.config.limits.chart_wait;
        let wanted = long.wants().map(|(series, slots)| (series, slots.clone()));
        if let Some((series, slots)) = long.needs() {
            cx.market.charts.want(series, slots);
        }
        match self
            .longs
            .insert(key, long, reply, wanted.as_ref().map(|_| until))
        {
            Ok(job) => {
                session.enter(Phase::Waiting(job), cx.now.mono, &cx.config.limits);
                self.wishes.extend(wanted.map(|(series, slots)| Wish {
                    client: key,
                    job,
                    series,
                    slots,
                }));
            }
            Err(reply) => self.turn_away(session, *reply, FULL_TABLE, cx),
        }
    }

    /// Sets an answer aside until its body is packed.
    fn pack(
        &mut self,
        session: &mut Session,
        key: Key,
        to_pack: api::ToPack,
        reply: Reply,
        cx: &mut Context,
    ) {
        let api::ToPack {
            question,
            tag,
            body,
            answer,
        } = to_pack;
        match self.longs.set_aside(key, answer, reply) {
            Ok(job) => {
                self.packing.insert(question, tag, body, job);
                session.enter(Phase::Waiting(job), cx.now.mono, &cx.config.limits);
            }
            Err(reply) => self.turn_away(session, *reply, FULL_TABLE, cx),
        }
    }

    /// A deferred response stands in its connection's output: it is sent. What is in the inbox behind it
    /// waits for the connection's turn.
    fn hand_over(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
        if matches!(session.phase, Phase::Idle) {
            session.has_more = !session.inbox.is_empty();
            session.enter(Phase::Writing, cx.now.mono, &cx.config.limits);
        }
        cx.actions.push_back(Action::Flush(key));
        self.recount(session, cx);
    }

    /// Sends 503 in place of an answer that takes longer.
    fn turn_away(
        &mut self,
        session: &mut Session,
        reply: Reply,
        why: &'static str,
        cx: &mut Context,
    ) {
        let error = api::Error::unavailable(why, 1);
        let before = session.output.len();
        let mut responder = reply.responder(&mut session.output, &self.stamp);
        api::send_error(&error, &mut responder);
        let answer = Answer {
            peer: reply.client(),
            status: error.status,
            bytes: session.output.len() - before,
        };
        self.count_answer(reply.endpoint, error.status, cx);
        self.access.note(answer, reply.line.as_deref());
        self.after_answer(session, reply.closing, cx);
    }
}
