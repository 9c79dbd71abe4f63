//! Writes responses to connections, at once or later. Requests are read from connections in `reading`, which
//! has the other half of [`Responses`], with [`Responses::handle`].
//!
//! Owns everything that requests and responses need besides the [`Context`]: the head cache, the queue of the
//! connections that wait for their turn, the date, the admission of requests, the access log, the deferred
//! responses, the streams. It decides when a response is deferred and what comes of it. It never knows what a
//! response says (`api`).

use crate::config::{Config, Limits};
use crate::core::api::{self, Advance, Deferred, Endpoint, Error, View};
use crate::core::clients::access_log::AccessLog;
use crate::core::clients::admission::Admission;
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::deferred::{DeferredResponses, Pending, SHARE};
use crate::core::clients::head_cache::HeadCache;
use crate::core::clients::streaming::Streams;
use crate::core::{CloseReason, Context, Service};
use crate::demo::{Demo, DemoHead};
use crate::http::{
    Cache, Head, Output, OwnedRequest, Quota, Request, Responder, Stamp, normal_path,
};
use crate::table::Key;
use crate::time::Mono;
use std::collections::VecDeque;
use std::time::Duration;

/// See the module's page.
pub struct Responses {
    pub heads: HeadCache,
    /// The connections whose next requests are in their inbox. Some may have closed.
    pub queue: VecDeque<Key>,
    pub stamp: Stamp,
    pub deferred: DeferredResponses,
    pub streams: Streams,
    pub access_log: AccessLog,
    pub admission: Admission,
    /// Buffers for the next response.
    pub spare: Output,
    pub demo: Option<Demo>,
    /// Responses of the demo exchange that are made, and when they are to be sent.
    pub delayed: Vec<(Mono, Key, Output)>,
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
            deferred: DeferredResponses::default(),
            streams: Streams::new(cx.boot),
            access_log: AccessLog::new(),
            admission: Admission::new(&cx.config),
            spare: Output::default(),
            demo,
            delayed: Vec::new(),
            spent: 0,
        }
    }

    /// Takes in a new configuration, in place of one with the limits `old`. Empties the head cache: its heads
    /// were parsed with the old limits.
    pub fn reconfigure(&mut self, old: &Limits, config: &Config) {
        self.heads = HeadCache::new();
        self.admission.reconfigure(old, config);
        self.access_log.on = AccessLog::new().on;
    }

    /// Responds to a request, or defers the response. `place`: the place of the request's head in the head
    /// cache, or of a kept head that gets the same response.
    pub fn respond(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        place: Option<usize>,
        cx: &mut Context,
    ) {
        let is_refused = connection.reason == Some(CloseReason::Refused);
        connection.reason = connection.closes_after(request.keep_alive, cx);
        connection.served += 1;
        connection.output.borrow(&mut self.spare);
        let service = connection.service;
        if service == Service::Demo {
            return self.respond_demo(connection, request, cx);
        }
        let begin = connection.output.len();
        let valid_for = (service, cx.market.catalog.version());
        let path;
        let prepared = place.and_then(|place| self.heads.prepared(place, valid_for));
        let prepared = match prepared {
            Some(it) => Ok(it),
            None => {
                path = normal_path(request.path);
                Err(api::route(&cx.config, service, request, &path))
            }
        };
        let endpoint = match &prepared {
            Ok(it) => it.endpoint,
            Err(call) => call.endpoint,
        };
        let (client, quota) = self.admission.admit(connection.peer, request, endpoint, cx);
        // A connection above a limit may ask for health alone, so that probes do not take a full service for
        // dead.
        let is_refused = is_refused && endpoint != Endpoint::Health;
        cx.stats.http.rejected += u64::from(is_refused);
        cx.stats.http.requests += 1;
        let keep = connection.reason.is_none();
        let mut responder = Responder::new(&mut connection.output, &self.stamp, request, keep);
        responder.tell_quota(quota);
        let mut newly_prepared = None;
        let view = View::new(cx);
        let deferred = match quota.filter(|quota| quota.is_used_up) {
            _ if is_refused => {
                api::send_error(&Error::unavailable("Too many connections.", 1), &mut responder)
            }
            None => match &prepared {
                Ok(it) => it.respond(&view, &mut responder),
                Err(call) => call.respond(&view, &mut responder, &mut newly_prepared),
            },
            // The connection stays: to open another one would cost more than this response.
            Some(Quota { reset_s, .. }) => {
                api::send_error(&Error::TOO_MANY_REQUESTS.retry_after(reset_s), &mut responder)
            }
        };
        let (status, weight) = (responder.status(), responder.weight());
        if let (Some(place), Some(prepared)) = (place, newly_prepared) {
            self.heads.keep(place, valid_for, (endpoint, prepared));
        }
        let line = self.access_log.describe(client, request.head);
        let asked_at = cx.now.mono;
        let Some(kind) = deferred else {
            if let Some(place) = place.filter(|_| begin == 0 && keep && quota.is_none()) {
                let (until, made) = (view.holds_until(), (status, weight));
                self.heads.note_response(place, until, made, &connection.output, cx);
            }
            self.spent += weight as u64;
            let line = (line.as_deref(), asked_at);
            return self.complete(connection, endpoint, line, (status, begin), cx);
        };
        self.spent += SHARE;
        let (request, is_begun) = (OwnedRequest::new(request), false);
        let pending = Pending { request, endpoint, client, quota, line, asked_at, kind, is_begun };
        self.defer(connection, pending, cx);
    }

    /// Responds to a request to the demo exchange, which counts for nothing.
    fn respond_demo(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        cx: &mut Context,
    ) {
        self.spent += SHARE;
        let keep = connection.reason.is_none();
        let mut responder = Responder::new(&mut connection.output, &self.stamp, request, keep);
        let Some(demo) = &mut self.demo else {
            return connection.close(CloseReason::Stopping, cx);
        };
        let mut body = Vec::new();
        let Some(DemoHead { status, fields, delay }) =
            demo.serve(request.path, request.query, cx.now, &mut body)
        else {
            return connection.close(CloseReason::Broken, cx);
        };
        let fields = fields.as_bytes();
        let head = Head { status, fields, ..Head::json(None, Cache::NoStore) };
        responder.send(&head, &body);
        if delay.is_zero() {
            return connection.responded(cx);
        }
        let output = std::mem::take(&mut connection.output);
        connection.enter(Phase::Queued, cx);
        self.delayed.push((cx.now.mono + delay, connection.key, output));
    }

    /// Counts and logs a response that stands in the output from `begin` on, and lets its connection go on.
    #[inline(always)]
    pub fn complete(
        &mut self,
        connection: &mut Connection,
        endpoint: Endpoint,
        (line, asked_at): (Option<&str>, Mono),
        (status, begin): (u16, usize),
        cx: &mut Context,
    ) {
        let took = took(asked_at, cx.now.mono);
        count(endpoint, status, took, cx);
        self.access_log.log(line, status, connection.output.len() - begin, took);
        connection.responded(cx);
    }

    /// Responds with an error to bytes that are not a request, or to a request that is not complete in time.
    /// `bytes`: the head at fault, if there is one. It is unknown where the next request would begin. So this
    /// is the last response, and the connection closes for `reason`.
    pub fn fail(
        &mut self,
        connection: &mut Connection,
        error: &Error,
        bytes: &[u8],
        reason: CloseReason,
        cx: &mut Context,
    ) {
        let begin = connection.output.len();
        let head = match &connection.phase {
            Phase::Body(body) => body.0.get().head,
            _ => bytes,
        };
        let mut responder = Responder::closing(&mut connection.output, &self.stamp, head);
        api::send_error(error, &mut responder);
        connection.inbox = Box::default();
        connection.reason = Some(reason);
        if connection.service == Service::Demo {
            return connection.responded(cx);
        }
        let http = &mut cx.stats.http;
        http.requests += 1;
        match reason {
            CloseReason::BadRequest => http.bad_requests += 1,
            _ => http.timeouts += 1,
        }
        let is_unknown = *error == Error::UNKNOWN_METHOD;
        let line = self.access_log.describe(connection.peer, if is_unknown { bytes } else { b"" });
        let line = (line.as_deref(), cx.now.mono);
        self.complete(connection, Endpoint::Unread, line, (error.status, begin), cx);
    }

    /// Keeps a response in its connection until it is made or its body is compressed, and wishes for the
    /// candles that it lacks. Refuses it if clients hold too much memory. A stream is opened at once.
    fn defer(&mut self, connection: &mut Connection, mut pending: Pending, cx: &mut Context) {
        match &mut pending.kind {
            Deferred::Stream(_) => {
                let error = self.streams.refusal(pending.client, cx);
                return self.write(connection, pending, error.as_ref(), cx);
            }
            Deferred::InParts(_) if cx.stats.http.is_overloaded(0, &cx.config.limits) => {
                return self.write(connection, pending, Some(&Error::overloaded()), cx);
            }
            Deferred::InParts(_) => self.line_up(connection.key, &pending, cx),
            Deferred::ToCompress(response) => {
                let body = std::mem::take(&mut response.body);
                cx.compressed.insert(response.key, response.tag, body, connection.key);
            }
        }
        connection.enter(Phase::Waiting(Box::new(pending)), cx);
    }

    /// Writes a response that was not sent at once, or an error in its place. A stream counts as a response
    /// when it is opened, and is logged at its end.
    fn write(
        &mut self,
        connection: &mut Connection,
        pending: Pending,
        error: Option<&Error>,
        cx: &mut Context,
    ) {
        if let (None, Deferred::Stream(_)) = (error, &pending.kind) {
            connection.reason.get_or_insert(CloseReason::Answered);
        }
        let (begin, keep) = (connection.output.len(), connection.reason.is_none());
        let request = pending.request.get();
        let mut responder = Responder::new(&mut connection.output, &self.stamp, &request, keep);
        responder.tell_quota(pending.quota);
        let deferred = match (error, pending.kind) {
            (Some(error), _) => api::send_error(error, &mut responder),
            (None, Deferred::InParts(made)) => made.finish(&View::new(cx), &mut responder),
            (None, Deferred::ToCompress(made)) => made.send(&mut responder),
            (None, Deferred::Stream(it)) if api::stream::begin(&mut responder, it.body) => {
                count(pending.endpoint, 200, None, cx);
                self.streams.open(connection, *it, (pending.client, pending.line), cx);
                return connection.flush(cx);
            }
            (None, Deferred::Stream(_)) => None,
        };
        if let Some(kind) = deferred {
            return self.defer(connection, Pending { kind, ..pending }, cx);
        }
        let (status, line) = (responder.status(), (pending.line.as_deref(), pending.asked_at));
        self.complete(connection, pending.endpoint, line, (status, begin), cx);
        connection.flush(cx);
    }

    /// Wishes for the candles that a response lacks, and lets it wait for them. It runs at once if it lacks
    /// none, if its time is over, or if too many wait.
    fn line_up(&mut self, key: Key, pending: &Pending, cx: &mut Context) {
        if let Deferred::InParts(response) = &pending.kind {
            let (needs, missing) = (response.needs(), response.missing(&View::new(cx)));
            let until = pending.asked_at + cx.config.limits.chart_wait;
            match !missing.is_empty() && until > cx.now.mono && self.deferred.has_room() {
                true => _ = self.deferred.waiting.insert((until, key), needs.len()),
                false => self.deferred.run(key, pending.is_begun),
            }
            cx.wish(Some(key), needs, missing);
        }
    }

    /// Makes one part of a deferred response whose turn has come, and writes it if that was the last part.
    pub fn step(&mut self, connection: &mut Connection, cx: &mut Context) {
        let key = connection.key;
        let Phase::Waiting(pending) = &mut connection.phase else {
            return;
        };
        let Deferred::InParts(response) = &mut pending.kind else {
            return self.finish(connection, None, cx);
        };
        // While clients hold too much memory, no further response may begin to hold a body. A response that
        // is begun is made to its end.
        let own = response.held() as u64;
        if !pending.is_begun && cx.stats.http.is_overloaded(own, &cx.config.limits) {
            return self.finish(connection, Some(&Error::overloaded()), cx);
        }
        pending.is_begun = true;
        match response.step(&View::new(cx)) {
            Advance::More => self.deferred.put_back(key, &cx.config.limits),
            Advance::Waits => self.line_up(key, pending, cx),
            Advance::Done => self.finish(connection, None, cx),
        }
    }

    /// Writes a deferred response that is made, or whose body is compressed; or an error in its place.
    pub fn finish(&mut self, connection: &mut Connection, error: Option<&Error>, cx: &mut Context) {
        if let Some(pending) = connection.take_pending() {
            // Requests that wait in the inbox are served, too. The last response closes the connection.
            if cx.stats.stopping && connection.inbox.is_empty() {
                connection.reason.get_or_insert(CloseReason::Stopping);
            }
            self.write(connection, pending, error, cx);
        }
    }
}

/// How long a response has taken; `None` if its request was read in this turn.
pub fn took(asked_at: Mono, now: Mono) -> Option<Duration> {
    (asked_at != now).then(|| now.since(asked_at))
}

/// Counts a response.
#[inline(always)]
fn count(endpoint: Endpoint, status: u16, took: Option<Duration>, cx: &mut Context) {
    let (http, endpoint) = (&mut cx.stats.http, endpoint as usize);
    http.not_modified += u64::from(status == 304);
    http.classes[usize::from(status / 100).clamp(2, 5) - 2] += 1;
    match took.map(|took| took.as_micros() as u64) {
        None => http.durations.note(endpoint, status),
        Some(took_us) => http.durations.note_deferred(endpoint, status, took_us),
    }
}
