//! Serving clients: requests are read from a session, and answers written to it.
//!
//! Owns the order of things within one connection: requests are answered in their order, as many
//! as come, until the pending output reaches its high-water mark or an answer must wait. The rest
//! stays in the inbox and is taken up as soon as that has passed: after `Sent` as well as after
//! `Received`, since a request that is already here gets no new read event.
//!
//! It never knows what an answer says: [`super::api`] does.

use super::access::Answer;
use super::api::{self, Outcome, View};
use super::archive::Recalled;
use super::long::Reply;
use super::session::{PendingBody, Phase, Session};
use super::{Action, CloseReason, Conn, Core, Endpoint, Event, Rest, Service};
use crate::http::{
    BodyReader, CONTINUE, Cache, ContentType, Head, HeadLimits, Parsed, Request, RequestBody,
    RequestError, Responder, empty_lines, parse,
};
use crate::market::SeriesKey;
use crate::table::Key;
use crate::time::Now;
use std::ops::Range;

/// Largest output buffer that is kept for the next answer.
const SPARE_BYTES: usize = 256 * 1024;

/// Seconds after which a client that was turned away may try again.
const RETRY_REFUSED_S: u32 = 1;

/// Said where the disk thread has as many questions as it may have.
const FULL_QUEUE: &str = "Too many charts wait for the history file.";

impl Core {
    pub(super) fn handle_client(&mut self, key: Key, event: Event<'_>, now: Now) {
        let Some(Conn::Client(session)) = self.conns.get_mut(key) else {
            return;
        };
        let rest = &mut self.rest;
        let busy = session.is_busy();
        match event {
            Event::Received(bytes) => rest.received(key, session, bytes, now),
            Event::Sent(count) => rest.sent(key, session, count, now),
            Event::Eof => rest.ended(key, session, now),
            Event::Failed(_) => rest.broken(key, session),
            Event::Connected | Event::Secured => {}
        }
        rest.count_busy(busy, session);
    }

    /// Tells a client above the cap, or one that came too late, that there is no room.
    pub(super) fn refuse_client(&mut self, key: Key, now: Now) {
        let Some(Conn::Client(session)) = self.conns.get_mut(key) else {
            return;
        };
        let rest = &mut self.rest;
        rest.status.http.rejected += 1;
        let busy = session.is_busy();
        let error = api::Error::unavailable("Too many connections.", RETRY_REFUSED_S);
        rest.fail(session, &error, CloseReason::Refused, now);
        rest.count_busy(busy, session);
    }

    /// Looks through all sessions for deadlines that have passed.
    pub(super) fn sweep(&mut self, now: Now) {
        let Core { conns, rest } = self;
        for (key, conn) in conns.iter_mut() {
            let Conn::Client(session) = conn else {
                continue;
            };
            let busy = session.is_busy();
            if session.deadline <= now.mono {
                rest.expire(key, session, now);
            } else if rest.status.stopping && matches!(session.phase, Phase::Idle) {
                rest.close(key, session, CloseReason::Stopping);
            }
            rest.count_busy(busy, session);
        }
    }

    /// Does one part of one answer in the making, and hands it over when it is done.
    pub(super) fn step_long(&mut self, now: Now) {
        let Core { conns, rest } = self;
        let view = View::new(&rest.config, &rest.market, &rest.status, rest.boot, now);
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
        let busy = session.is_busy();
        let before = session.output.bytes.len();
        let mut responder = reply.responder(&mut session.output.bytes, &rest.stamp);
        long.finish(&view, &mut responder);
        let answer = Answer {
            peer: session.peer,
            status: responder.status(),
            bytes: session.output.bytes.len() - before,
        };
        rest.count_long(answer, &reply, now);
        rest.after_answer(session, reply.closing, now);
        if matches!(session.phase, Phase::Idle | Phase::Writing) {
            rest.resume(client, session, now);
        }
        rest.actions.push_back(Action::Flush(client));
        rest.count_busy(busy, session);
    }

    /// Looks again at the answers that wait for candles.
    pub(super) fn wake_longs(&mut self, now: Now) {
        let rest = &mut self.rest;
        let view = View::new(&rest.config, &rest.market, &rest.status, rest.boot, now);
        let (pollers, archive) = (&rest.pollers, &rest.archive);
        rest.longs.wake(&view, |key, range| {
            archive.is_recalling(key, range)
                || pollers[usize::from(key.source.0)].is_asking(key, range)
        });
    }
}

impl Rest {
    fn received(&mut self, key: Key, session: &mut Session, bytes: &[u8], now: Now) {
        if matches!(session.phase, Phase::Lingering | Phase::Closed) {
            return;
        }
        if session.inbox.is_empty() {
            let used = self.serve(key, session, bytes, now);
            session.inbox.extend_from_slice(&bytes[used..]);
        } else {
            session.inbox.extend_from_slice(bytes);
            self.resume(key, session, now);
        }
    }

    /// Serves what is in the inbox.
    fn resume(&mut self, key: Key, session: &mut Session, now: Now) {
        let mut inbox = std::mem::take(&mut session.inbox);
        let used = self.serve(key, session, &inbox, now);
        if used < inbox.len() {
            inbox.drain(..used);
            session.inbox = inbox;
        }
    }

    /// Serves requests from `bytes` as far as possible; answers how many bytes are done with.
    fn serve(&mut self, key: Key, session: &mut Session, bytes: &[u8], now: Now) -> usize {
        let mut used = 0;
        loop {
            // No further request is begun; what has begun goes on as it is.
            let is_between = matches!(session.phase, Phase::Idle | Phase::Head | Phase::Writing);
            let pending = session.output.pending().len();
            if is_between && pending >= self.config.limits.output_high_water {
                session.enter(Phase::Writing, now.mono, &self.config.limits);
                break;
            }
            let rest = &bytes[used..];
            match &mut session.phase {
                Phase::Body(_) => match self.read_body(key, session, rest, now) {
                    Some(count) => used += count,
                    None => return bytes.len(),
                },
                Phase::Idle | Phase::Head | Phase::Writing if !rest.is_empty() => {
                    match parse(rest, &self.head_limits(session)) {
                        Ok(Parsed::Complete {
                            request,
                            used: head,
                        }) => {
                            used += head;
                            session.blank = 0;
                            self.take(key, session, &request, &rest[..head], now);
                        }
                        Ok(Parsed::Partial) => {
                            // Some clients send an empty line after a body: nobody has begun a
                            // request with it, and it renews no deadline.
                            let blank = empty_lines(rest);
                            used += blank;
                            session.blank += blank;
                            if session.blank >= self.config.limits.head_bytes {
                                self.reject(session, RequestError::HeadersTooLarge, now);
                                return bytes.len();
                            }
                            if !matches!(&rest[blank..], [] | [b'\r']) {
                                session.enter(Phase::Head, now.mono, &self.config.limits);
                            }
                            break;
                        }
                        Err(error) => {
                            self.reject(session, error, now);
                            return bytes.len();
                        }
                    }
                }
                Phase::Head => {
                    session.enter(Phase::Idle, now.mono, &self.config.limits);
                }
                _ => break,
            }
            if matches!(session.phase, Phase::Body(_)) && used == bytes.len() {
                break;
            }
        }
        if matches!(session.phase, Phase::Idle | Phase::Head) && !session.output.is_empty() {
            session.enter(Phase::Writing, now.mono, &self.config.limits);
        }
        used
    }

    /// What the next head may measure: empty lines before it count, also those that are gone.
    fn head_limits(&self, session: &Session) -> HeadLimits {
        let mut limits = HeadLimits::from(&self.config.limits);
        limits.head_bytes -= session.blank.min(limits.head_bytes);
        limits
    }

    /// Begins with a request whose head is whole.
    fn take(
        &mut self,
        key: Key,
        session: &mut Session,
        request: &Request<'_>,
        head: &[u8],
        now: Now,
    ) {
        let cap = self.config.limits.body_bytes as u64;
        let reader = match request.body {
            RequestBody::None => return self.answer(key, session, request, now),
            body => BodyReader::new(body.into(), cap),
        };
        let reader = match reader {
            Ok(reader) => reader,
            Err(error) => return self.reject(session, error.into(), now),
        };
        if request.expect_continue {
            session.output.bytes.extend_from_slice(CONTINUE);
        }
        let pending = PendingBody {
            head: head.to_vec(),
            reader,
        };
        let phase = Phase::Body(Box::new(pending));
        session.enter(phase, now.mono, &self.config.limits);
    }

    /// Throws away a part of a request's body, and answers the request at the body's end. `None`
    /// when the body was malformed or too large: the client has been told.
    fn read_body(
        &mut self,
        key: Key,
        session: &mut Session,
        mut bytes: &[u8],
        now: Now,
    ) -> Option<usize> {
        let before = bytes.len();
        let Phase::Body(pending) = &mut session.phase else {
            return Some(0);
        };
        loop {
            match pending.reader.decode(bytes) {
                Ok(piece) => {
                    bytes = &bytes[piece.used..];
                    if piece.done {
                        break;
                    }
                    if bytes.is_empty() || piece.used == 0 {
                        return Some(before - bytes.len());
                    }
                }
                Err(error) => {
                    self.reject(session, error.into(), now);
                    return None;
                }
            }
        }
        let head = std::mem::take(&mut pending.head);
        session.enter(Phase::Idle, now.mono, &self.config.limits);
        let head_limits = HeadLimits::from(&self.config.limits);
        if let Ok(Parsed::Complete { request, .. }) = parse(&head, &head_limits) {
            self.answer(key, session, &request, now);
        }
        Some(before - bytes.len())
    }

    /// Answers one request, or sees to it that its answer is made.
    fn answer(&mut self, key: Key, session: &mut Session, request: &Request<'_>, now: Now) {
        session.served += 1;
        let last = session.served >= self.config.limits.requests_per_connection;
        let closing = if last {
            Some(CloseReason::RequestLimit)
        } else if self.status.stopping {
            Some(CloseReason::Stopping)
        } else if request.keep_alive {
            None
        } else {
            Some(CloseReason::Answered)
        };
        session.output.borrow(&mut self.spare);
        let before = session.output.bytes.len();
        let mut responder = Responder::new(
            &mut session.output.bytes,
            &self.stamp,
            request,
            closing.is_none(),
        );
        if session.service == Service::Demo {
            if let Some(demo) = &mut self.demo {
                self.scratch.clear();
                let status = demo.answer(request.path, request.query, now.unix, &mut self.scratch);
                let head = Head {
                    status,
                    etag: None,
                    cache: Cache::NoStore,
                    content_type: ContentType::Json,
                    fields: b"",
                };
                responder.send(&head, &self.scratch);
            }
            return self.after_answer(session, closing, now);
        }
        self.status.http.requests += 1;
        let mut view = View::new(&self.config, &self.market, &self.status, self.boot, now);
        view.facts = Some(self.facts);
        let (endpoint, outcome) = api::answer(&view, session.service, request, &mut responder);
        match outcome {
            Outcome::Answered => {
                let status = responder.status();
                self.count_answer(endpoint, status);
                if self.access.is_on() {
                    let answer = Answer {
                        peer: session.peer,
                        status,
                        bytes: session.output.bytes.len() - before,
                    };
                    let line = self.access.describe(request);
                    self.access.note(answer, line.as_deref());
                }
                self.after_answer(session, closing, now);
            }
            Outcome::Later(long) => {
                let line = self.access.describe(request);
                let reply = Reply::of(request, endpoint, closing, line, now.mono);
                self.put_off(key, session, long, reply, now);
            }
        }
    }

    /// Parks an answer that takes longer than one turn, and asks for the candles that it lacks.
    fn put_off(
        &mut self,
        key: Key,
        session: &mut Session,
        long: api::Long,
        reply: Reply,
        now: Now,
    ) {
        let until = now.mono + self.config.limits.chart_wait;
        let wanted = long.wants();
        let held = match &wanted {
            Some((series, range)) => match self.want(*series, range, now) {
                Some(held) => held,
                None => return self.turn_away(session, reply, FULL_QUEUE, now),
            },
            None => false,
        };
        match self.longs.insert(key, long, reply, held.then_some(until)) {
            Ok(job) => session.enter(Phase::Waiting(job), now.mono, &self.config.limits),
            Err(reply) => {
                let why = "Too many long answers are being made.";
                self.turn_away(session, reply, why, now);
            }
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
        match recalled {
            Recalled::Nothing => Some(asked),
            Recalled::Coming => Some(true),
            Recalled::Full => None,
        }
    }

    /// Sends 503 in place of an answer that takes longer.
    fn turn_away(&mut self, session: &mut Session, reply: Reply, why: &'static str, now: Now) {
        let error = api::Error::unavailable(why, 1);
        let before = session.output.bytes.len();
        let mut responder = reply.responder(&mut session.output.bytes, &self.stamp);
        api::send_error(&error, &mut responder);
        let answer = Answer {
            peer: session.peer,
            status: error.status,
            bytes: session.output.bytes.len() - before,
        };
        self.count_answer(reply.endpoint, error.status);
        self.access.note(answer, reply.line.as_deref());
        self.after_answer(session, reply.closing, now);
    }

    fn after_answer(&mut self, session: &mut Session, closing: Option<CloseReason>, now: Now) {
        let phase = match closing {
            Some(reason) => {
                session.reason = Some(reason);
                Phase::Finishing
            }
            None => Phase::Idle,
        };
        session.enter(phase, now.mono, &self.config.limits);
    }

    /// Answers what could not be understood, and ends the connection: nobody knows where the next
    /// request would begin.
    fn reject(&mut self, session: &mut Session, error: RequestError, now: Now) {
        self.status.http.requests += 1;
        self.status.http.bad_requests += 1;
        let error = api::Error::from(error);
        self.fail(session, &error, CloseReason::BadRequest, now);
    }

    pub(super) fn fail(
        &mut self,
        session: &mut Session,
        error: &api::Error,
        reason: CloseReason,
        now: Now,
    ) {
        let before = session.output.bytes.len();
        let mut responder = Responder::closing(&mut session.output.bytes, &self.stamp);
        api::send_error(error, &mut responder);
        if session.service != Service::Demo {
            let answer = Answer {
                peer: session.peer,
                status: error.status,
                bytes: session.output.bytes.len() - before,
            };
            self.count_answer(Endpoint::Unread, error.status);
            self.access.note(answer, None);
        }
        session.inbox = Vec::new();
        session.reason = Some(reason);
        session.enter(Phase::Finishing, now.mono, &self.config.limits);
    }

    fn sent(&mut self, key: Key, session: &mut Session, count: usize, now: Now) {
        if let Some(buffer) = session.output.advance(count) {
            self.keep_spare(buffer);
        }
        if session.service != Service::Demo {
            self.status.http.bytes_out += count as u64;
        }
        if !session.output.is_empty() {
            if matches!(session.phase, Phase::Writing | Phase::Finishing) {
                session.deadline = now.mono + self.config.limits.write_timeout;
            }
            return;
        }
        match session.phase {
            Phase::Writing => {
                session.enter(Phase::Idle, now.mono, &self.config.limits);
                // At the end of the service too: this client has not been told that its answer was
                // the last one, and may have asked for more. The next sweep closes it.
                if !session.inbox.is_empty() {
                    self.resume(key, session, now);
                }
            }
            Phase::Finishing => self.finish(key, session, now),
            _ => {}
        }
    }

    /// Keeps an emptied buffer for the next answer: nearly all are written and sent within one
    /// turn of their connection, so that one buffer serves all of them.
    fn keep_spare(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= SPARE_BYTES {
            buffer.clear();
            self.spare = buffer;
        }
    }
}
