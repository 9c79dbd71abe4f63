//! Writes responses to connections, at once or later.
//!
//! Owns everything that a response needs besides the [`Context`]: the date, the admission of requests, the
//! access log, the queue of deferred responses, the compressed bodies. It decides when a response is
//! deferred and what comes of it. It never reads a request (`reading`), and never knows what a response
//! says (`api`).

use crate::config::Config;
use crate::core::api::Endpoint;
use crate::core::api::compressed_cache::CompressedBodies;
use crate::core::api::{self, Error, Outcome, StreamRequest, ToCompress, View};
use crate::core::clients::access_log::AccessLog;
use crate::core::clients::admission::{Admission, Admitted};
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::deferred::{DeferredResponses, Wish};
use crate::core::clients::fairness;
use crate::core::clients::head_cache::CachedHead;
use crate::core::clients::pending::{Pending, PendingRequest, PendingResponse, Served};
use crate::core::clients::streams::Streams;
use crate::core::{Action, CloseReason, Context, ProcessFacts, Service};
use crate::demo::Demo;
use crate::http::{Cache, Head, Output, Request, RequestError, Responder, Stamp, normal_path};
use crate::table::Table;
use std::collections::VecDeque;

/// Output buffers larger than this are not kept for the next response.
const SPARE_BYTES: usize = 256 * 1024;

/// Sent if the disk thread has as many jobs as it may have.
const FULL_QUEUE: &str = "Too many charts wait for the history file.";

/// Sent if too many earlier responses are not read.
const SLOW_READERS: &str = "Too many answers wait to be read.";

/// See the module's page.
pub struct Responses {
    pub stamp: Stamp,
    pub compressed: CompressedBodies,
    pub deferred: DeferredResponses,
    pub streams: Streams,
    pub wishes: VecDeque<Wish>,
    pub access_log: AccessLog,
    pub admission: Admission,
    /// Buffers for the next response.
    pub spare: Output,
    demo: Option<Demo>,
    /// Reused for the bodies of the demo exchange.
    scratch: Vec<u8>,
    pub boot: u64,
    facts: fn() -> ProcessFacts,
}

impl Responses {
    /// No response is deferred yet.
    pub fn new(
        config: &Config,
        demo: Option<Demo>,
        facts: fn() -> ProcessFacts,
        boot: u64,
    ) -> Responses {
        Responses {
            stamp: Stamp::new(boot),
            compressed: CompressedBodies::new(config.limits.packed_bytes),
            deferred: DeferredResponses::new(config.limits.long_answers),
            streams: Streams::new(boot),
            wishes: VecDeque::new(),
            access_log: AccessLog::new(),
            admission: Admission::new(config),
            spare: Output::default(),
            demo,
            scratch: Vec::new(),
            boot,
            facts,
        }
    }

    /// Responds to a request, or defers the response. Returns what that has cost, in bytes of responses.
    pub fn respond(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        mut cached: Option<CachedHead<'_>>,
        cx: &mut Context,
    ) -> u64 {
        let closing = connection.count_request(request, cx);
        connection.output.borrow(&mut self.spare);
        let service = connection.service;
        if service == Service::Demo {
            return self.respond_demo(connection, request, closing, cx);
        }
        let begin = connection.output.len();
        let catalog = cx.market.catalog.version();
        let path;
        let prepared = cached.as_ref().and_then(|it| it.prepared(service, catalog));
        let route = match prepared {
            Some(prepared) => api::Destination::Prepared(prepared),
            None => {
                path = normal_path(request.path);
                api::route(&cx.config, service, request, &path)
            }
        };
        let endpoint = route.endpoint();
        let admitted = self.admission.admit(connection.peer, request, endpoint, cx);
        cx.stats.http.requests += 1;
        let keep = closing.is_none();
        let mut responder = Responder::new(&mut connection.output, &self.stamp, request, keep);
        responder.tell_quota(admitted.quota);
        let mut newly_prepared = None;
        let outcome = match admitted.retry_s {
            None => {
                let view =
                    View { facts: Some(self.facts), ..View::new(cx, &self.compressed, self.boot) };
                route.respond(&view, request, &mut responder, &mut newly_prepared)
            }
            // The connection stays: to open another one would cost more than this response.
            Some(retry_s) => api::send_error(&Error::too_many_requests(retry_s), &mut responder),
        };
        let (status, weight) = (responder.status(), responder.weight());
        if let (Some(cached), Some(prepared)) = (&mut cached, newly_prepared) {
            cached.keep(service, catalog, prepared);
        }
        let served = Served {
            endpoint,
            closing,
            admitted,
            line: self.access_log.describe(request),
            asked_at: cx.now.mono,
        };
        match outcome {
            Outcome::Sent => {
                self.complete(connection, &served, (status, begin), cx);
                weight as u64
            }
            outcome => {
                let request = PendingRequest::new(request, served);
                self.defer(connection, outcome, request, cx);
                fairness::SHARE
            }
        }
    }

    /// Responds to a request to the demo exchange, which counts for nothing. Returns its cost.
    fn respond_demo(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        closing: Option<CloseReason>,
        cx: &mut Context,
    ) -> u64 {
        let keep = closing.is_none();
        let mut responder = Responder::new(&mut connection.output, &self.stamp, request, keep);
        if let Some(demo) = &mut self.demo {
            self.scratch.clear();
            let status = demo.respond(request.path, request.query, cx.now.unix, &mut self.scratch);
            let head = Head { status, ..Head::json(None, Cache::NoStore) };
            responder.send(&head, &self.scratch);
        }
        connection.responded(closing, cx);
        fairness::SHARE
    }

    /// Counts a response that stands in the output from `begin` on, and lets its connection go on.
    #[inline(always)]
    fn complete(
        &mut self,
        connection: &mut Connection,
        served: &Served,
        (status, begin): (u16, usize),
        cx: &mut Context,
    ) {
        served.count(status, cx);
        (self.access_log).log(served, status, connection.output.len() - begin, cx.now.mono);
        connection.responded(served.closing, cx);
    }

    /// Rejects bytes that are not a request and closes the connection: nobody knows where the next request
    /// would begin. `head`: the bytes at fault, if they are a head.
    pub fn reject(
        &mut self,
        connection: &mut Connection,
        error: RequestError,
        head: &[u8],
        cx: &mut Context,
    ) {
        cx.stats.http.requests += 1;
        cx.stats.http.bad_requests += 1;
        let line = match error {
            RequestError::UnknownMethod => self.access_log.describe_unknown(head),
            _ => None,
        };
        let error = Error::from(error);
        self.fail(connection, &error, CloseReason::BadRequest, line, cx);
    }

    /// Sends an error that no request has led to, and closes the connection.
    pub fn fail(
        &mut self,
        connection: &mut Connection,
        error: &Error,
        reason: CloseReason,
        line: Option<Box<str>>,
        cx: &mut Context,
    ) {
        let begin = connection.output.len();
        let mut responder = Responder::closing(&mut connection.output, &self.stamp);
        api::send_error(error, &mut responder);
        connection.inbox = Vec::new();
        if connection.service == Service::Demo {
            return connection.responded(Some(reason), cx);
        }
        let served = Served {
            endpoint: Endpoint::Unread,
            closing: Some(reason),
            admitted: Admitted::unlimited(connection.peer),
            line,
            asked_at: cx.now.mono,
        };
        self.complete(connection, &served, (error.status, begin), cx);
    }

    /// Defers a response, and asks for the candles that it lacks.
    fn defer(
        &mut self,
        connection: &mut Connection,
        outcome: Outcome,
        request: PendingRequest,
        cx: &mut Context,
    ) {
        let deferred = match outcome {
            Outcome::Sent => return,
            Outcome::Deferred(deferred) => deferred,
            Outcome::ToCompress(body) => return self.compress(connection, *body, request, cx),
            Outcome::Stream(asked) => return self.open_stream(connection, *asked, request, cx),
        };
        // The other half is for responses that need not be deferred.
        if cx.stats.http.pending >= cx.config.limits.output_total as u64 / 2 {
            let error = Error::unavailable(SLOW_READERS, 1);
            return self.refuse(connection, &request, &error, cx);
        }
        let missing = deferred.missing(&View::new(cx, &self.compressed, self.boot));
        for (series, slots) in deferred.needs() {
            cx.market.charts.want(series, slots);
        }
        let waits = !missing.is_empty() && self.deferred.has_room();
        // One deadline, however often the response is deferred.
        let asked_at = request.served.asked_at;
        let until = waits.then(|| asked_at + cx.config.limits.chart_wait);
        if !missing.is_empty() {
            self.wishes.push_back(Wish { client: Some(connection.key), candles: missing });
        }
        let response = PendingResponse::InParts(deferred, until);
        self.deferred.insert(connection.key, &response);
        let pending = Pending { request, response };
        connection.enter(Phase::Waiting(Box::new(pending)), cx);
    }

    /// Defers a response until its body is compressed.
    fn compress(
        &mut self,
        connection: &mut Connection,
        body: ToCompress,
        request: PendingRequest,
        cx: &mut Context,
    ) {
        self.compressed.insert(body.key, body.tag, body.body, connection.key);
        let response = PendingResponse::Compressed(body.response, None);
        let pending = Pending { request, response };
        connection.enter(Phase::Waiting(Box::new(pending)), cx);
    }

    /// Opens a stream. It counts as a response now, and is logged at its end.
    fn open_stream(
        &mut self,
        connection: &mut Connection,
        asked: StreamRequest,
        mut request: PendingRequest,
        cx: &mut Context,
    ) {
        if let Some(error) = self.streams.refusal(request.served.admitted.client, cx) {
            return self.refuse(connection, &request, &error, cx);
        }
        request.close_after(CloseReason::Answered);
        let begin = connection.output.len();
        let mut responder = request.responder(&mut connection.output, &self.stamp);
        if !api::stream::begin(&mut responder, asked.body) {
            let status = responder.status();
            return self.complete(connection, &request.served, (status, begin), cx);
        }
        request.served.count(responder.status(), cx);
        (self.streams).open(connection, asked, request.served, &self.compressed, cx);
    }

    /// Sends an error in place of a response that would be deferred, or of a stream.
    fn refuse(
        &mut self,
        connection: &mut Connection,
        request: &PendingRequest,
        error: &Error,
        cx: &mut Context,
    ) {
        let begin = connection.output.len();
        let mut responder = request.responder(&mut connection.output, &self.stamp);
        api::send_error(error, &mut responder);
        self.complete(connection, &request.served, (error.status, begin), cx);
    }

    /// Too many wait for the history file: this client's deferred response is refused.
    pub fn refuse_deferred(&mut self, connection: &mut Connection, cx: &mut Context) {
        if let Some(pending) = connection.take_pending() {
            self.deferred.forget(connection.key);
            let error = Error::unavailable(FULL_QUEUE, 1);
            self.refuse(connection, &pending.request, &error, cx);
            self.flush(connection, cx);
        }
    }

    /// Makes one part of one deferred response, and writes it if that was the last part.
    pub fn step_deferred(&mut self, connections: &mut Table<Connection>, cx: &mut Context) {
        let view = View::new(cx, &self.compressed, self.boot);
        let Some((connection, pending)) = self.deferred.step(connections, &view) else {
            return;
        };
        let Pending { mut request, response } = pending;
        // The requests behind it in the inbox are served too, and the last of their responses closes.
        if cx.stats.stopping && connection.inbox.is_empty() {
            request.close_after(CloseReason::Stopping);
        }
        let begin = connection.output.len();
        let mut responder = request.responder(&mut connection.output, &self.stamp);
        let outcome = match response {
            PendingResponse::InParts(deferred, _) => deferred.finish(&view, &mut responder),
            PendingResponse::Compressed(response, body) => {
                let body = body.expect("it runs when its body is compressed");
                response.send(&body, &mut responder);
                Outcome::Sent
            }
        };
        let status = responder.status();
        if matches!(outcome, Outcome::Sent) {
            self.complete(connection, &request.served, (status, begin), cx);
            self.flush(connection, cx);
        } else {
            self.defer(connection, outcome, request, cx);
        }
    }

    /// Sends a deferred response. The requests behind it in the inbox wait for the connection's turn.
    fn flush(&mut self, connection: &mut Connection, cx: &mut Context) {
        if matches!(connection.phase, Phase::Idle) {
            connection.has_more = !connection.inbox.is_empty();
            connection.enter(Phase::Writing, cx);
        }
        cx.actions.push_back(Action::Flush(connection.key));
        connection.recount(&mut cx.stats.http);
    }

    /// Takes back the buffers of a connection that has sent everything. Nearly every response is made and
    /// sent within one turn, so that the same buffers serve all of them.
    #[inline]
    pub fn reclaim(&mut self, connection: &mut Connection) {
        connection.output.give_back(&mut self.spare, SPARE_BYTES);
    }
}
