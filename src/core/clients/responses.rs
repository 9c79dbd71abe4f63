//! Writes responses to connections, at once or later.
//!
//! Owns everything that a response needs besides the [`Context`]: the date, the admission of requests, the
//! access log, the queue of deferred responses, the compressed bodies. It decides when a response is
//! deferred and what comes of it. It never reads a request (`reading`), and never knows what a response
//! says (`api`).

use crate::core::api::Endpoint;
use crate::core::api::compressed_cache::CompressedBodies;
use crate::core::api::{self, Advance, Deferred, Error, Outcome, StreamRequest, ToCompress, View};
use crate::core::clients::access_log::AccessLog;
use crate::core::clients::admission::{Admission, Admitted};
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::deferred::DeferredResponses;
use crate::core::clients::head_cache::CachedHead;
use crate::core::clients::pending::{
    Pending, PendingRequest, PendingResponse, SHARE, Served, Stage,
};
use crate::core::clients::streaming::Streams;
use crate::core::{Action, CloseReason, Context, Service};
use crate::demo::Demo;
use crate::http::{Cache, Head, Output, OwnedRequest, Request, Responder, Stamp, normal_path};
use crate::table::{Key, Table};
use crate::time::Mono;

/// When a response was asked for that waits for candles: until when.
fn deadline(request: &PendingRequest, cx: &Context) -> Mono {
    request.served.asked_at + cx.config.limits.chart_wait
}

/// See the module's page.
pub struct Responses {
    pub stamp: Stamp,
    pub compressed: CompressedBodies,
    pub deferred: DeferredResponses,
    pub streams: Streams,
    pub access_log: AccessLog,
    pub admission: Admission,
    /// Buffers for the next response.
    pub spare: Output,
    demo: Option<Demo>,
    /// Reused for the bodies of the demo exchange.
    scratch: Vec<u8>,
    /// What all requests and responses have cost so far, in bytes of responses. It only rises.
    pub spent: u64,
}

impl Responses {
    /// No response is deferred yet.
    pub fn new(demo: Option<Demo>, cx: &Context) -> Responses {
        Responses {
            stamp: Stamp::new(cx.boot),
            compressed: CompressedBodies::new(cx.config.limits.compressed_bytes),
            deferred: DeferredResponses::default(),
            streams: Streams::new(cx.boot),
            access_log: AccessLog::new(),
            admission: Admission::new(&cx.config),
            spare: Output::default(),
            demo,
            scratch: Vec::new(),
            spent: 0,
        }
    }

    /// Responds to a request, or defers the response.
    pub fn respond(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        cached: Option<&mut CachedHead>,
        cx: &mut Context,
    ) {
        let closing = connection.count_request(request, cx);
        connection.output.borrow(&mut self.spare);
        let service = connection.service;
        if service == Service::Demo {
            return self.respond_demo(connection, request, closing, cx);
        }
        let begin = connection.output.len();
        let catalog = cx.market.catalog.version();
        let path;
        let prepared = cached.as_deref().and_then(|it| it.prepared(service, catalog));
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
                let view = View::new(cx, &self.compressed);
                route.respond(&view, request, &mut responder, &mut newly_prepared)
            }
            // The connection stays: to open another one would cost more than this response.
            Some(retry_s) => {
                let error = Error::TOO_MANY_REQUESTS.retry_after(retry_s);
                api::send_error(&error, &mut responder)
            }
        };
        let (status, weight) = (responder.status(), responder.weight());
        if let (Some(cached), Some(prepared)) = (cached, newly_prepared) {
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
                self.spent += weight as u64;
                self.complete(connection, &served, (status, begin), cx);
            }
            outcome => {
                self.spent += SHARE;
                let request = PendingRequest { request: OwnedRequest::new(request), served };
                self.defer(connection, outcome, request, cx);
            }
        }
    }

    /// Responds to a request to the demo exchange, which counts for nothing.
    fn respond_demo(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        closing: Option<CloseReason>,
        cx: &mut Context,
    ) {
        self.spent += SHARE;
        let keep = closing.is_none();
        let mut responder = Responder::new(&mut connection.output, &self.stamp, request, keep);
        if let Some(demo) = &mut self.demo {
            self.scratch.clear();
            let status = demo.respond(request.path, request.query, cx.now.unix, &mut self.scratch);
            let head = Head { status, ..Head::json(None, Cache::NoStore) };
            responder.send(&head, &self.scratch);
        }
        connection.responded(closing, cx);
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
        error: Error,
        head: &[u8],
        cx: &mut Context,
    ) {
        cx.stats.http.requests += 1;
        cx.stats.http.bad_requests += 1;
        let is_unknown = error == Error::UNKNOWN_METHOD;
        let line = if is_unknown { self.access_log.describe_unknown(head) } else { None };
        self.fail(connection, &error, CloseReason::BadRequest, line, cx);
    }

    /// Writes an error where no request was read: of bytes that are none, of a deadline, of a refused client.
    /// It is the last response: the connection finishes, and closes for this reason.
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

    /// Defers a response: until its candles, which it asks for, have come and it is made, or until its body
    /// is compressed. A stream is opened instead.
    fn defer(
        &mut self,
        connection: &mut Connection,
        outcome: Outcome,
        request: PendingRequest,
        cx: &mut Context,
    ) {
        let response = match outcome {
            Outcome::Sent => return,
            Outcome::Stream(asked) => return self.open_stream(connection, *asked, request, cx),
            Outcome::Deferred(_) if cx.stats.http.is_overloaded(0, &cx.config.limits) => {
                return self.refuse(connection, &request, &Error::overloaded(), cx);
            }
            Outcome::Deferred(deferred) => {
                let until = deadline(&request, cx);
                let stage = match self.asks(connection.key, &*deferred, cx) {
                    true => Stage::Waits { until, is_begun: false },
                    false => Stage::InLine,
                };
                self.deferred.insert(connection.key, stage);
                PendingResponse::InParts(deferred, stage)
            }
            Outcome::ToCompress(body) => {
                let ToCompress { key, tag, body, response } = *body;
                self.compressed.insert(key, tag, body, connection.key);
                PendingResponse::Compressed(response, None)
            }
        };
        connection.enter(Phase::Waiting(Box::new(Pending { request, response })), cx);
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
        request.served.closing.get_or_insert(CloseReason::Answered);
        let begin = connection.output.len();
        let write = |responder: &mut Responder<'_>| api::stream::begin(responder, asked.body);
        let (is_begun, status) = request.respond(&mut connection.output, &self.stamp, write);
        if !is_begun {
            return self.complete(connection, &request.served, (status, begin), cx);
        }
        request.served.count(status, cx);
        self.streams.open(connection, asked, request.served, &self.compressed, cx);
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
        let write = |responder: &mut Responder<'_>| api::send_error(error, responder);
        let (_, status) = request.respond(&mut connection.output, &self.stamp, write);
        self.complete(connection, &request.served, (status, begin), cx);
    }

    /// This client's deferred response is refused.
    pub fn refuse_deferred(
        &mut self,
        connection: &mut Connection,
        error: &Error,
        cx: &mut Context,
    ) {
        if let Some(pending) = connection.take_pending() {
            self.deferred.forget(connection.key);
            self.refuse(connection, &pending.request, error, cx);
            self.flush(connection, cx);
        }
    }

    /// Wishes for the candles that a response lacks. Returns true if it is to wait for them.
    fn asks(&mut self, key: Key, deferred: &dyn Deferred, cx: &mut Context) -> bool {
        let missing = deferred.missing(&View::new(cx, &self.compressed));
        for (series, slots) in deferred.needs() {
            let now = cx.exchange_time(series.source);
            cx.market.charts.want(series, slots, now);
        }
        let waits = !missing.is_empty() && self.deferred.has_room();
        cx.wish(Some(key), missing);
        waits
    }

    /// Makes one part of one deferred response, and writes it if that was the last part.
    pub fn step_deferred(&mut self, connections: &mut Table<Connection>, cx: &mut Context) {
        let Some(connection) = self.deferred.next(connections) else {
            return;
        };
        let Phase::Waiting(pending) = &mut connection.phase else {
            return;
        };
        let PendingResponse::InParts(deferred, stage) = &mut pending.response else {
            return self.finish_deferred(connection, cx);
        };
        // It would be one more that holds a body. One that is begun is made to its end.
        let own = deferred.held() as u64;
        if *stage == Stage::InLine && cx.stats.http.is_overloaded(own, &cx.config.limits) {
            return self.refuse_deferred(connection, &Error::overloaded(), cx);
        }
        *stage = Stage::Begun;
        match deferred.step(&View::new(cx, &self.compressed)) {
            Advance::More => self.deferred.put_back(connection.key, &cx.config.limits),
            Advance::Waits => {
                // One deadline, however often it waits.
                let until = deadline(&pending.request, cx);
                if self.asks(connection.key, &**deferred, cx) {
                    *stage = Stage::Waits { until, is_begun: true };
                }
                self.deferred.insert(connection.key, *stage);
            }
            Advance::Done => return self.finish_deferred(connection, cx),
        }
        connection.recount(&mut cx.stats.http);
    }

    /// Writes a deferred response that is made, or whose body is compressed.
    fn finish_deferred(&mut self, connection: &mut Connection, cx: &mut Context) {
        let Some(Pending { mut request, response }) = connection.take_pending() else {
            return;
        };
        // The requests behind it in the inbox are served too, and the last of their responses closes.
        if cx.stats.stopping && connection.inbox.is_empty() {
            request.served.closing.get_or_insert(CloseReason::Stopping);
        }
        let begin = connection.output.len();
        let view = View::new(cx, &self.compressed);
        let write = |responder: &mut Responder<'_>| match response {
            PendingResponse::InParts(deferred, _) => deferred.finish(&view, responder),
            PendingResponse::Compressed(response, body) => {
                let body = body.expect("it runs when its body is compressed");
                response.send(&body, responder);
                Outcome::Sent
            }
        };
        let (outcome, status) = request.respond(&mut connection.output, &self.stamp, write);
        if matches!(outcome, Outcome::Sent) {
            self.complete(connection, &request.served, (status, begin), cx);
            self.flush(connection, cx);
        } else {
            self.defer(connection, outcome, request, cx);
            connection.recount(&mut cx.stats.http);
        }
    }

    /// Sends a deferred response. The requests behind it in the inbox wait for the connection's turn.
    fn flush(&mut self, connection: &mut Connection, cx: &mut Context) {
        if matches!(connection.phase, Phase::Idle) {
            connection.enter(Phase::Writing, cx);
        }
        cx.actions.push_back(Action::Flush(connection.key));
        connection.recount(&mut cx.stats.http);
    }
}
