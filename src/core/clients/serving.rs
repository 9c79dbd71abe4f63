//! Reads requests from a client connection and writes their responses to it.
//!
//! Owns the order within one connection: requests are answered in the order in which they come, until
//! the connection has used its share (`fairness`), its output has reached the high-water mark, or a
//! response is deferred. The rest stays in the inbox. A request that is already there gets no new read
//! event, so the connection queues for its turn once its output is sent.
//!
//! It never knows what a response says: `api` does.

use crate::core::api::{self, Outcome, View};
use crate::core::clients::access_log::Answer;
use crate::core::clients::connection::{Phase, Session};
use crate::core::clients::deferred::Reply;
use crate::core::clients::head_cache::Mark;
use crate::core::clients::{Clients, Shared, fairness};
use crate::core::{CloseReason, Context, Event, Service};
use crate::durations::Endpoint;
use crate::http::{
    Cache, Head, HeadLimits, Parsed, Request, RequestError, Responder, empty_lines, parse,
};
use crate::table::Key;

/// Largest output buffers that are kept for the next answer.
const SPARE_BYTES: usize = 256 * 1024;

/// Seconds after which a client that was turned away may try again.
const RETRY_REFUSED_S: u32 = 1;

/// What came of the bytes at the begin of a request.
enum Next {
    /// Its head is whole, so long, and done with.
    Taken(usize),
    /// Its head is not whole; so many bytes before it are done with.
    Partial(usize),
    /// It is none, and the client has been told.
    Rejected,
    /// It waits for the connection's turn.
    Heavy,
}

impl Clients {
    /// Tells a client above the cap, or one that came too late, that there is no room.
    pub fn refuse_client(&mut self, key: Key, cx: &mut Context) {
        let Clients {
            sessions, shared, ..
        } = self;
        let Some(session) = sessions.get_mut(key) else {
            return;
        };
        cx.stats.http.rejected += 1;
        let error = api::Error::unavailable("Too many connections.", RETRY_REFUSED_S);
        shared.fail(session, &error, CloseReason::Refused, None, cx);
        shared.recount(session, cx);
    }
}

impl Shared {
    /// Takes in what happened to a client's connection.
    pub fn handle(&mut self, key: Key, session: &mut Session, event: Event<'_>, cx: &mut Context) {
        match event {
            Event::Received(bytes) => self.received(key, session, bytes, cx),
            Event::Late(bytes) => self.received_late(key, session, bytes, cx),
            Event::Sent(count) => self.sent(key, session, count, cx),
            Event::Eof => self.ended(key, session, cx),
            Event::Failed(_) => self.broken(key, session, cx),
            Event::Connected | Event::Secured => {}
        }
        self.recount(session, cx);
    }

    fn received(&mut self, key: Key, session: &mut Session, bytes: &[u8], cx: &mut Context) {
        match session.phase {
            Phase::Lingering if session.is_parting => {
                return self.received_late(key, session, bytes, cx);
            }
            Phase::Lingering | Phase::Closed => return,
            _ => {}
        }
        if session.inbox.is_empty() {
            let used = self.serve(key, session, bytes, cx);
            if used < bytes.len() {
                session.inbox.extend_from_slice(&bytes[used..]);
            }
        } else {
            session.inbox.extend_from_slice(bytes);
            self.resume(key, session, cx);
        }
    }

    /// Our side is about to be shut: what has come until now is answered, and nothing after it.
    #[cold]
    fn received_late(&mut self, key: Key, session: &mut Session, bytes: &[u8], cx: &mut Context) {
        let is_parting = std::mem::take(&mut session.is_parting);
        if !matches!(session.phase, Phase::Lingering) || !is_parting || bytes.is_empty() {
            return;
        }
        session.enter(Phase::Idle, cx.now.mono, &cx.config.limits);
        let used = self.serve(key, session, bytes, cx);
        session.inbox.extend_from_slice(&bytes[used..]);
        // A part of a request is not waited for.
        let is_part = matches!(session.phase, Phase::Idle | Phase::Head | Phase::Body(_));
        if is_part && session.output.is_empty() {
            session.inbox = Vec::new();
            session.enter(Phase::Lingering, cx.now.mono, &cx.config.limits);
        }
    }

    /// Serves what is in the inbox.
    pub fn resume(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
        let mut inbox = std::mem::take(&mut session.inbox);
        let used = self.serve(key, session, &inbox, cx);
        if used < inbox.len() {
            inbox.drain(..used);
            if inbox.len() < inbox.capacity() / 4 {
                inbox.shrink_to(2 * inbox.len());
            }
            session.inbox = inbox;
        }
    }

    /// Serves requests from `bytes` as far as possible; answers how many bytes are done with.
    fn serve(&mut self, key: Key, session: &mut Session, bytes: &[u8], cx: &mut Context) -> usize {
        let mut used = 0;
        let share_ends = self.turns.spent() + fairness::SHARE;
        session.has_more = false;
        loop {
            // No further request is begun; what has begun goes on as it is.
            let is_between = matches!(session.phase, Phase::Idle | Phase::Head | Phase::Writing);
            let pending = session.output.len();
            let is_full = pending >= cx.config.limits.output_high_water;
            if is_between && (is_full || pending > 0 && self.turns.spent() >= share_ends) {
                session.has_more = true;
                session.enter(Phase::Writing, cx.now.mono, &cx.config.limits);
                break;
            }
            let rest = &bytes[used..];
            match &mut session.phase {
                Phase::Body(_) => match self.read_body(key, session, rest, cx) {
                    Some(count) => used += count,
                    None => return bytes.len(),
                },
                Phase::Idle | Phase::Head | Phase::Writing if !rest.is_empty() => {
                    match self.next_request(key, session, rest, cx) {
                        Next::Taken(head) => {
                            self.turns.charge_request(head);
                            used += head;
                        }
                        Next::Partial(blank) => {
                            used += blank;
                            break;
                        }
                        Next::Rejected => return bytes.len(),
                        Next::Heavy => {
                            session.has_more = true;
                            self.await_turn(key, session, cx);
                            break;
                        }
                    }
                }
                Phase::Head => {
                    session.enter(Phase::Idle, cx.now.mono, &cx.config.limits);
                }
                _ => break,
            }
            if used == bytes.len() {
                break;
            }
        }
        if matches!(session.phase, Phase::Idle | Phase::Head) && !session.output.is_empty() {
            session.enter(Phase::Writing, cx.now.mono, &cx.config.limits);
        }
        used
    }

    /// Takes the request at the begin of `bytes`, if its head is whole.
    fn next_request(
        &mut self,
        key: Key,
        session: &mut Session,
        bytes: &[u8],
        cx: &mut Context,
    ) -> Next {
        // A head behind empty lines may measure less than others: it is not looked for.
        let mark = (session.blank == 0).then(|| Mark::of(bytes));
        if let Some(mark) = mark
            && let Some((request, head)) = self.familiar.find(mark, bytes)
        {
            if self.is_heavy(&request) {
                return Next::Heavy;
            }
            self.answer(key, session, &request, Some(mark), cx);
            return Next::Taken(head);
        }
        match parse(bytes, &Shared::head_limits(session, cx)) {
            Ok(Parsed::Complete { request, .. }) if self.is_heavy(&request) => Next::Heavy,
            Ok(Parsed::Complete { request, used }) => {
                session.blank = 0;
                let head = &bytes[..used];
                if let Some(mark) = mark {
                    self.familiar.met(mark, &request, head);
                }
                self.take(key, session, &request, head, cx);
                Next::Taken(used)
            }
            Ok(Parsed::Partial) => {
                // Some clients send an empty line after a body: nobody has begun a request with
                // it, and it renews no deadline.
                let blank = empty_lines(bytes);
                session.blank += blank;
                if session.blank >= cx.config.limits.head_bytes {
                    self.reject(session, RequestError::HeadersTooLarge, bytes, cx);
                    return Next::Rejected;
                }
                if !matches!(&bytes[blank..], [] | [b'\r']) {
                    session.enter(Phase::Head, cx.now.mono, &cx.config.limits);
                }
                Next::Partial(blank)
            }
            Err(error) => {
                self.reject(session, error, bytes, cx);
                Next::Rejected
            }
        }
    }

    /// What the next head may measure: empty lines before it count, also those that are gone.
    fn head_limits(session: &Session, cx: &Context) -> HeadLimits {
        let mut limits = HeadLimits::from(&cx.config.limits);
        limits.head_bytes -= session.blank.min(limits.head_bytes);
        limits
    }

    /// Answers one request, or sees to it that its answer is made. `mark`: its head was found among
    /// those that are known.
    pub fn answer(
        &mut self,
        key: Key,
        session: &mut Session,
        request: &Request<'_>,
        mark: Option<Mark>,
        cx: &mut Context,
    ) {
        session.served += 1;
        let last = session.served >= cx.config.limits.requests_per_connection;
        let closing = if last {
            Some(CloseReason::RequestLimit)
        } else if session.reason.is_some() {
            session.reason
        } else if cx.stats.stopping {
            Some(CloseReason::Stopping)
        } else if request.keep_alive {
            None
        } else {
            Some(CloseReason::Answered)
        };
        if session.service == Service::Demo {
            return self.answer_demo(session, request, closing, cx);
        }
        let visit = match self.admit(session, request, cx) {
            Ok(visit) => visit,
            Err(refused) => return self.turn_back(session, request, &refused, closing, cx),
        };
        session.output.borrow(&mut self.spare);
        let before = session.output.len();
        let mut responder =
            Responder::new(&mut session.output, &self.stamp, request, closing.is_none());
        responder.tell_quota(visit.quota);
        cx.stats.http.requests += 1;
        let view = View {
            facts: Some(self.facts),
            ..self.view(cx)
        };
        let (service, catalog) = (session.service, cx.market.catalog.version());
        let known = mark.and_then(|mark| self.familiar.meaning(mark, service, catalog));
        let (endpoint, outcome) = match known {
            Some(meaning) => api::answer_again(&view, meaning, &mut responder),
            None => {
                let mut meant = None;
                let answered = api::answer(&view, service, request, &mut responder, &mut meant);
                if let (Some(mark), Some(meaning)) = (mark, meant) {
                    self.familiar.understand(mark, service, catalog, meaning);
                }
                answered
            }
        };
        match outcome {
            Outcome::Answered => {
                let status = responder.status();
                self.turns.charge_body(responder.weight());
                self.count_answer(endpoint, status, cx);
                if self.access.is_on() {
                    let answer = Answer {
                        peer: visit.client,
                        status,
                        bytes: session.output.len() - before,
                    };
                    let line = self.access.describe(request);
                    self.access.note(answer, line.as_deref());
                }
                self.after_answer(session, closing, cx);
            }
            later => {
                self.turns.charge_share();
                let line = self.access.describe(request);
                let reply = Reply::of(request, endpoint, closing, visit, line, cx.now.mono);
                self.put_off(key, session, later, reply, cx);
            }
        }
    }

    /// What endpoints see.
    pub fn view<'v>(&'v self, cx: &'v Context) -> View<'v> {
        View::new(
            &cx.config,
            &cx.market,
            &cx.stats,
            &self.packing,
            (self.boot, cx.now),
        )
    }

    /// Answers a request to the demo exchange, which is nobody's service.
    fn answer_demo(
        &mut self,
        session: &mut Session,
        request: &Request<'_>,
        closing: Option<CloseReason>,
        cx: &mut Context,
    ) {
        session.output.borrow(&mut self.spare);
        let keep = closing.is_none();
        let mut responder = Responder::new(&mut session.output, &self.stamp, request, keep);
        if let Some(demo) = &mut self.demo {
            self.scratch.clear();
            let status = demo.respond(request.path, request.query, cx.now.unix, &mut self.scratch);
            let head = Head {
                status,
                ..Head::json(None, Cache::NoStore)
            };
            responder.send(&head, &self.scratch);
            // Candles are made up one by one.
            self.turns.charge_share();
        }
        self.after_answer(session, closing, cx);
    }

    pub fn after_answer(
        &mut self,
        session: &mut Session,
        closing: Option<CloseReason>,
        cx: &mut Context,
    ) {
        let phase = match closing {
            Some(reason) => {
                session.reason = Some(reason);
                Phase::Finishing
            }
            None => Phase::Idle,
        };
        session.enter(phase, cx.now.mono, &cx.config.limits);
    }

    /// Answers what could not be understood, and ends the connection: nobody knows where the next
    /// request would begin. `head`: the bytes at fault, where they are a head.
    pub fn reject(
        &mut self,
        session: &mut Session,
        error: RequestError,
        head: &[u8],
        cx: &mut Context,
    ) {
        cx.stats.http.requests += 1;
        cx.stats.http.bad_requests += 1;
        let line = match error {
            RequestError::UnknownMethod => self.access.describe_unknown(head),
            _ => None,
        };
        let error = api::Error::from(error);
        self.fail(session, &error, CloseReason::BadRequest, line, cx);
    }

    pub fn fail(
        &mut self,
        session: &mut Session,
        error: &api::Error,
        reason: CloseReason,
        line: Option<Box<str>>,
        cx: &mut Context,
    ) {
        let before = session.output.len();
        let mut responder = Responder::closing(&mut session.output, &self.stamp);
        api::send_error(error, &mut responder);
        if session.service != Service::Demo {
            let answer = Answer {
                peer: session.peer,
                status: error.status,
                bytes: session.output.len() - before,
            };
            self.count_answer(&Endpoint::UNREAD, error.status, cx);
            self.access.note(answer, line.as_deref());
        }
        session.inbox = Vec::new();
        session.reason = Some(reason);
        session.enter(Phase::Finishing, cx.now.mono, &cx.config.limits);
    }

    fn sent(&mut self, key: Key, session: &mut Session, count: usize, cx: &mut Context) {
        session.output.advance(count);
        if session.service != Service::Demo {
            cx.stats.http.bytes_out += count as u64;
        }
        if !session.output.is_empty() {
            if matches!(session.phase, Phase::Writing | Phase::Finishing) {
                session.deadline = cx.now.mono + cx.config.limits.write_timeout;
            }
            return;
        }
        // Nearly all answers are written and sent within one turn of their connection, so that the
        // same buffers serve all of them.
        session.output.give_back(&mut self.spare, SPARE_BYTES);
        match session.phase {
            // At the end of the service too: this client has not been told that its answer was the
            // last one, and may have asked for more. The next sweep closes it.
            Phase::Writing if session.has_more => self.enqueue(key, session, cx),
            Phase::Writing => {
                session.enter(Phase::Idle, cx.now.mono, &cx.config.limits);
                // A part of a head.
                if !session.inbox.is_empty() {
                    self.resume(key, session, cx);
                }
            }
            Phase::Finishing => self.finish(key, session, cx),
            _ => {}
        }
    }
}
