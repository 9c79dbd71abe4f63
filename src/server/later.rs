//! Answers that are not made within the turn that read their request.
//!
//! Owns the way of such an answer: from its client, which waits for it, to where it is made
//! ([`super::long`]), for its candles, to where its body is packed ([`super::packing`]), and back.
//! It never reads a request.

use super::access::Answer;
use super::api::{self, Outcome, View};
use super::long::Reply;
use super::session::{Phase, Session};
use super::{Action, CloseReason, Conn, Core, Rest};
use crate::market::SeriesKey;
use crate::table::Key;
use crate::time::Now;
use std::ops::Range;

/// Said where the disk thread has as many questions as it may have.
const FULL_QUEUE: &str = "Too many charts wait for the history file.";

/// Said where answers that were made before are not read.
const SLOW_READERS: &str = "Too many answers wait to be read.";

/// Said where there are as many such answers as there may be.
const FULL_TABLE: &str = "Too many long answers are being made.";

impl Core {
    /// Does one part of one answer in the making, and hands it over when it is done. `false`: there
    /// is none.
    pub(super) fn step_long(&mut self, now: Now) -> bool {
        if !self.rest.longs.has_work() {
            return false;
        }
        self.make_part(now);
        true
    }

    fn make_part(&mut self, now: Now) {
        let Core { conns, rest } = self;
        let view = View::new(
            &rest.config,
            &rest.market,
            &rest.status,
            &rest.packing,
            (rest.boot, now),
        );
        let Some((client, mut reply, long)) = rest.longs.step(&view) else {
            return;
        };
        let Some(Conn::Client(session)) = conns.get_mut(client) else {
            return;
        };
        // What is already here behind it is answered too, and its last answer is the last one.
        if rest.status.stopping && session.inbox.is_empty() {
            reply.end(CloseReason::Stopping);
        }
        let begin = session.output.len();
        let mut responder = reply.responder(&mut session.output, &rest.stamp);
        if let Some(to_pack) = long.finish(&view, &mut responder) {
            // Nothing was written, and the place that it had is free for it again.
            return rest.pack(session, client, to_pack, reply, now);
        }
        let answer = Answer {
            peer: reply.client(),
            status: responder.status(),
            bytes: session.output.len() - begin,
        };
        rest.count_long(answer, &reply, now);
        rest.after_answer(session, reply.closing, now);
        // What is in the inbox behind it waits for the connection's turn.
        if matches!(session.phase, Phase::Idle) {
            session.has_more = !session.inbox.is_empty();
            session.enter(Phase::Writing, now.mono, &rest.config.limits);
        }
        rest.actions.push_back(Action::Flush(client));
        rest.recount(session);
    }

    /// Packs a slice of one body, and lets the answers go that wait for it when it is done. `false`:
    /// there is none.
    pub(super) fn step_packing(&mut self, _: Now) -> bool {
        let Rest { packing, longs, .. } = &mut self.rest;
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

    /// Looks again at the answers that wait for candles.
    pub(super) fn wake_longs(&mut self, now: Now) {
        let rest = &mut self.rest;
        let view = View::new(
            &rest.config,
            &rest.market,
            &rest.status,
            &rest.packing,
            (rest.boot, now),
        );
        let (pollers, archive) = (&rest.pollers, &rest.archive);
        rest.longs.wake(&view, |key, range| {
            archive.is_recalling(key, range)
                || pollers[usize::from(key.source.0)].is_asking(key, range)
        });
    }
}

impl Rest {
    /// Parks an answer that takes longer than one turn, and asks for the candles that it lacks.
    pub(super) fn put_off(
        &mut self,
        key: Key,
        session: &mut Session,
        later: Outcome,
        reply: Reply,
        now: Now,
    ) {
        let long = match later {
            Outcome::Answered => return,
            Outcome::Later(long) => long,
            Outcome::Pack(to_pack) => return self.pack(session, key, *to_pack, reply, now),
        };
        // The rest of the room is for answers that are at hand.
        if self.status.http.pending >= self.config.limits.output_total as u64 / 2 {
            return self.turn_away(session, reply, SLOW_READERS, now);
        }
        let until = now.mono + self.config.limits.chart_wait;
        let wanted = long.wants();
        let held = match &wanted {
            Some((series, range)) => match self.want(*series, range, now) {
                Some(held) => held,
                None => return self.turn_away(session, reply, FULL_QUEUE, now),
            },
            None => false,
        };
        if let Some((series, slots)) = long.needs() {
            self.market.charts.want(series, slots);
        }
        match self.longs.insert(key, long, reply, held.then_some(until)) {
            Ok(job) => session.enter(Phase::Waiting(job), now.mono, &self.config.limits),
            Err(reply) => self.turn_away(session, *reply, FULL_TABLE, now),
        }
    }

    /// Sets an answer aside until its body is packed.
    fn pack(
        &mut self,
        session: &mut Session,
        key: Key,
        to_pack: api::ToPack,
        reply: Reply,
        now: Now,
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
                session.enter(Phase::Waiting(job), now.mono, &self.config.limits);
            }
            Err(reply) => self.turn_away(session, *reply, FULL_TABLE, now),
        }
    }

    /// Has candles read from the file, or fetched. Whether they will come; `None`: too many wait for
    /// the file already.
    fn want(&mut self, series: SeriesKey, slots: &Range<i64>, now: Now) -> Option<bool> {
        let is_open = self.with_poller(series.source, |poller, desk| {
            poller.follow(series, desk, now)
        });
        if !is_open {
            return Some(false);
        }
        let recalled = self.with_archive(|archive, shelf| archive.recall(series, slots, shelf));
        let asked = self.with_poller(series.source, |poller, desk| {
            poller.ask(series, slots, desk, now)
        });
        recalled.map(|comes| comes || asked)
    }

    /// Sends 503 in place of an answer that takes longer.
    fn turn_away(&mut self, session: &mut Session, reply: Reply, why: &'static str, now: Now) {
        let error = api::Error::unavailable(why, 1);
        let before = session.output.len();
        let mut responder = reply.responder(&mut session.output, &self.stamp);
        api::send_error(&error, &mut responder);
        let answer = Answer {
            peer: reply.client(),
            status: error.status,
            bytes: session.output.len() - before,
        };
        self.count_answer(reply.endpoint, error.status);
        self.access.note(answer, reply.line.as_deref());
        self.after_answer(session, reply.closing, now);
    }
}
