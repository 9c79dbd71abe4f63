//! Writes responses to connections, at once or later.
//!
//! Owns everything that requests and responses need besides the [`Context`]: the head cache, the queue of the
//! connections that wait for their turn, the date, the admission of requests, the access log, the deferred
//! responses, the compressed bodies. It decides when a response is deferred and what comes of it. Its other
//! half, `reading`, takes requests from connections. It never knows what a response says (`api`).

use crate::config::{Config, Limits};
use crate::core::api::compressed_cache::CompressedBodies;
use crate::core::api::{self, Advance, Deferred, Destination, Endpoint, Error, Outcome, View};
use crate::core::clients::access_log::AccessLog;
use crate::core::clients::admission::Admission;
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::deferred::DeferredResponses;
use crate::core::clients::head_cache::HeadCache;
use crate::core::clients::pending::{Pending, SHARE, Served};
use crate::core::clients::streaming::Streams;
use crate::core::{Action, CloseReason, Context, Service};
use crate::demo::{Demo, DemoHead};
use crate::http::{Cache, Head, Output, OwnedRequest, Request, Responder, Stamp, normal_path};
use crate::table::Key;
use crate::time::Mono;
use std::collections::VecDeque;

/// Seconds after which a client that was refused may try again.
const RETRY_REFUSED_S: u32 = 1;

/// A response that is made, and to be sent later.
pub struct DelayedResponse {
    pub until: Mono,
    pub key: Key,
    output: Output,
    closing: Option<CloseReason>,
}

impl DelayedResponse {
    /// Sends it.
    pub fn send(self, connection: &mut Connection, cx: &mut Context) {
        connection.output = self.output;
        connection.responded(self.closing, cx);
        connection.flush(cx);
    }
}

/// See the module's page.
pub struct Responses {
    pub heads: HeadCache,
    /// The connections whose next requests are in their inbox. Some may have closed.
    pub queue: VecDeque<Key>,
    pub stamp: Stamp,
    pub compressed: CompressedBodies,
    pub deferred: DeferredResponses,
    pub streams: Streams,
    pub access_log: AccessLog,
    admission: Admission,
    /// Buffers for the next response.
    pub spare: Output,
    pub demo: Option<Demo>,
    /// Of the demo exchange; at most one of each connection.
    pub delayed: Vec<DelayedResponse>,
    /// Reused for the bodies of the demo exchange.
    scratch: Vec<u8>,
    /// What all requests and responses have cost so far, in bytes of responses. It only rises.
    pub spent: u64,
}

impl Responses {
    /// No request was read yet.
    pub fn new(demo: Option<Demo>, cx: &Context) -> Responses {
        Responses {
            heads: HeadCache::new(),
            queue: VecDeque::new(),
            stamp: Stamp::new(cx.boot),
            compressed: CompressedBodies::new(cx.config.limits.compressed_bytes),
            deferred: DeferredResponses::default(),
            streams: Streams::new(cx.boot),
            access_log: AccessLog::new(),
            admission: Admission::new(&cx.config),
            spare: Output::default(),
            demo,
            delayed: Vec::new(),
            scratch: Vec::new(),
            spent: 0,
        }
    }

    /// Takes in a new configuration, in place of one with these limits. What is in the head cache was parsed
    /// with the former ones.
    pub fn reconfigure(&mut self, old: &Limits, config: &Config) {
        self.heads = HeadCache::new();
        self.compressed.set_most(config.limits.compressed_bytes);
        self.admission.reconfigure(old, config);
        self.access_log.reconfigure();
    }

    /// Responds to a request, or defers the response. `place`: that of its head in the cache, if it was found
    /// there.
    pub fn respond(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        place: Option<usize>,
        cx: &mut Context,
    ) {
        let closing = connection.count_request(request, cx);
        connection.output.borrow(&mut self.spare);
        let service = connection.service;
        if service == Service::Demo {
            return self.respond_demo(connection, request, closing, cx);
        }
        let begin = connection.output.len();
        let valid_for = (service, cx.market.catalog.version());
        let path;
        let prepared = place.and_then(|place| self.heads.prepared(place, valid_for));
        let route = match prepared {
            Some((endpoint, prepared)) => Destination::Prepared(endpoint, prepared),
            None => {
                path = normal_path(request.path);
                api::route(&cx.config, service, request, &path)
            }
        };
        let endpoint = route.endpoint();
        let is_refused = connection.reason == Some(CloseReason::Refused);
        let (client, quota) = self.admission.admit(connection.peer, request, endpoint, cx);
        cx.stats.http.requests += 1;
        let keep = closing.is_none();
        let mut responder = Responder::new(&mut connection.output, &self.stamp, request, keep);
        responder.tell_quota(quota);
        let mut newly_prepared = None;
        let kind = match quota.filter(|quota| quota.is_used_up) {
            // One above a limit is there for its health alone: probes must not take a full service for dead.
            _ if is_refused && endpoint != Endpoint::Health => {
                cx.stats.http.rejected += 1;
                let error = Error::unavailable("Too many connections.", RETRY_REFUSED_S);
                api::send_error(&error, &mut responder)
            }
            None => {
                let view = View::new(cx, &self.compressed);
                route.respond(&view, request, &mut responder, &mut newly_prepared)
            }
            // The connection stays: to open another one would cost more than this response.
            Some(quota) => {
                let error = Error::TOO_MANY_REQUESTS.retry_after(quota.reset_s);
                api::send_error(&error, &mut responder)
            }
        };
        let (status, weight) = (responder.status(), responder.weight());
        if let (Some(place), Some(prepared)) = (place, newly_prepared) {
            self.heads.keep(place, valid_for, (endpoint, prepared));
        }
        let line = self.access_log.describe(request.head);
        let served = Served { endpoint, closing, client, quota, line, asked_at: cx.now.mono };
        if let Outcome::Sent = kind {
            self.spent += weight as u64;
            return self.complete(connection, &served, (status, begin), cx);
        }
        self.spent += SHARE;
        let request = OwnedRequest::new(request);
        self.defer(connection, Pending { request, served, kind, is_begun: false }, cx);
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
        let Some(demo) = &mut self.demo else {
            return connection.close(CloseReason::Stopping, cx);
        };
        self.scratch.clear();
        let Some(DemoHead { status, fields, delay }) =
            demo.serve(request.path, request.query, cx.now, &mut self.scratch)
        else {
            return connection.close(CloseReason::Broken, cx);
        };
        let fields = fields.as_bytes();
        let head = Head { status, fields, ..Head::json(None, Cache::NoStore) };
        responder.send(&head, &self.scratch);
        if delay.is_zero() {
            return connection.responded(closing, cx);
        }
        let output = std::mem::take(&mut connection.output);
        connection.enter(Phase::Queued, cx);
        let until = cx.now.mono + delay;
        self.delayed.push(DelayedResponse { until, key: connection.key, output, closing });
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
    /// would begin. `bytes`: those at fault, if they are a head.
    pub fn reject(&mut self, it: &mut Connection, error: Error, bytes: &[u8], cx: &mut Context) {
        cx.stats.http.bad_requests += 1;
        self.fail(it, &error, bytes, CloseReason::BadRequest, cx);
    }

    /// The request of a connection is not complete in time.
    pub fn time_out(&mut self, it: &mut Connection, reason: CloseReason, cx: &mut Context) {
        cx.stats.http.timeouts += 1;
        let begun = std::mem::take(&mut it.inbox);
        self.fail(it, &Error::REQUEST_TIMEOUT, &begun, reason, cx);
        cx.actions.push_back(Action::Flush(it.key));
    }

    /// Writes an error where no request is served: of bytes that are none, or of one that is not complete.
    /// It is the last response: the connection finishes, and closes for this reason.
    fn fail(
        &mut self,
        connection: &mut Connection,
        error: &Error,
        bytes: &[u8],
        reason: CloseReason,
        cx: &mut Context,
    ) {
        cx.stats.http.requests += 1;
        let begin = connection.output.len();
        let head = match &connection.phase {
            Phase::Body(body) => body.0.get().head,
            _ => bytes,
        };
        let mut responder = Responder::closing(&mut connection.output, &self.stamp, head);
        api::send_error(error, &mut responder);
        connection.inbox = Vec::new();
        if connection.service == Service::Demo {
            return connection.responded(Some(reason), cx);
        }
        let is_unknown = *error == Error::UNKNOWN_METHOD;
        let served = Served {
            endpoint: Endpoint::Unread,
            closing: Some(reason),
            client: connection.peer,
            quota: None,
            line: is_unknown.then(|| self.access_log.describe(bytes)).flatten(),
            asked_at: cx.now.mono,
        };
        self.complete(connection, &served, (error.status, begin), cx);
    }

    /// Defers a response: until its candles, which it asks for, have come and it is made, or until its body
    /// is compressed. A stream is opened instead.
    fn defer(&mut self, connection: &mut Connection, mut pending: Pending, cx: &mut Context) {
        let key = connection.key;
        match &mut pending.kind {
            Outcome::Sent => return,
            Outcome::Stream(_) => return self.open_stream(connection, pending, cx),
            Outcome::Deferred(_) if cx.stats.http.is_overloaded(0, &cx.config.limits) => {
                return self.send_error(connection, &pending, &Error::overloaded(), cx);
            }
            Outcome::Deferred(response) => {
                self.line_up(key, (&**response, &pending.served), false, cx);
            }
            Outcome::ToCompress(response) => {
                let body = std::mem::take(&mut response.body);
                self.compressed.insert(response.key, response.tag, body, key);
            }
        }
        connection.enter(Phase::Waiting(Box::new(pending)), cx);
    }

    /// Opens a stream. It counts as a response now, and is logged at its end.
    fn open_stream(&mut self, connection: &mut Connection, mut pending: Pending, cx: &mut Context) {
        let Outcome::Stream(asked) = std::mem::replace(&mut pending.kind, Outcome::Sent) else {
            return;
        };
        if let Some(error) = self.streams.refusal(pending.served.client, cx) {
            return self.send_error(connection, &pending, &error, cx);
        }
        pending.served.closing.get_or_insert(CloseReason::Answered);
        let begin = connection.output.len();
        let write = |responder: &mut Responder<'_>| api::stream::begin(responder, asked.body);
        let (is_begun, status) = pending.respond(&mut connection.output, &self.stamp, write);
        if !is_begun {
            return self.complete(connection, &pending.served, (status, begin), cx);
        }
        pending.served.count(status, cx);
        self.streams.open(connection, *asked, pending.served, &self.compressed, cx);
    }

    /// Sends an error in place of a response that would be deferred, or of a stream.
    fn send_error(
        &mut self,
        connection: &mut Connection,
        pending: &Pending,
        error: &Error,
        cx: &mut Context,
    ) {
        let begin = connection.output.len();
        let write = |responder: &mut Responder<'_>| api::send_error(error, responder);
        let (_, status) = pending.respond(&mut connection.output, &self.stamp, write);
        self.complete(connection, &pending.served, (status, begin), cx);
    }

    /// This client's deferred response is refused.
    pub fn refuse(&mut self, connection: &mut Connection, error: &Error, cx: &mut Context) {
        if let Some(pending) = connection.take_pending() {
            self.deferred.forget(connection.key);
            self.send_error(connection, &pending, error, cx);
            connection.flush(cx);
        }
    }

    /// Wishes for the candles that a response lacks, and lets it wait for them. If it lacks none, it runs.
    fn line_up(
        &mut self,
        key: Key,
        (response, served): (&dyn Deferred, &Served),
        is_begun: bool,
        cx: &mut Context,
    ) {
        let missing = response.missing(&View::new(cx, &self.compressed));
        match !missing.is_empty() && self.deferred.has_room() {
            true => self.deferred.wait(key, served.waits_until(&cx.config)),
            false => self.deferred.run(key, is_begun),
        }
        cx.wish(Some(key), response.needs(), missing);
    }

    /// Makes one part of a deferred response whose turn has come, and writes it if that was the last part.
    pub fn step(&mut self, connection: &mut Connection, cx: &mut Context) {
        let key = connection.key;
        let Phase::Waiting(pending) = &mut connection.phase else {
            return;
        };
        let Pending { kind: Outcome::Deferred(response), is_begun, served, .. } = &mut **pending
        else {
            return self.finish(connection, cx);
        };
        // It would be one more that holds a body. One that is begun is made to its end.
        let own = response.held() as u64;
        if !*is_begun && cx.stats.http.is_overloaded(own, &cx.config.limits) {
            return self.refuse(connection, &Error::overloaded(), cx);
        }
        *is_begun = true;
        match response.step(&View::new(cx, &self.compressed)) {
            Advance::More => self.deferred.put_back(key, &cx.config.limits),
            Advance::Waits => self.line_up(key, (&**response, served), true, cx),
            Advance::Done => self.finish(connection, cx),
        }
    }

    /// Writes a deferred response that is made, or whose body is compressed.
    fn finish(&mut self, connection: &mut Connection, cx: &mut Context) {
        let Some(mut pending) = connection.take_pending() else {
            return;
        };
        // The requests behind it in the inbox are served too, and the last of their responses closes.
        if cx.stats.stopping && connection.inbox.is_empty() {
            pending.served.closing.get_or_insert(CloseReason::Stopping);
        }
        let begin = connection.output.len();
        let view = View::new(cx, &self.compressed);
        let kind = std::mem::replace(&mut pending.kind, Outcome::Sent);
        let write = |responder: &mut Responder<'_>| match kind {
            Outcome::Deferred(response) => response.finish(&view, responder),
            Outcome::ToCompress(response) => {
                response.send(responder);
                Outcome::Sent
            }
            other => other,
        };
        let (kind, status) = pending.respond(&mut connection.output, &self.stamp, write);
        if let Outcome::Sent = kind {
            self.complete(connection, &pending.served, (status, begin), cx);
            return connection.flush(cx);
        }
        self.defer(connection, Pending { kind, ..pending }, cx);
    }
}
