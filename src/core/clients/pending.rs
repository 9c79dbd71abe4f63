//! A deferred response, and what is kept of its request until it is written.
//!
//! The connection that waits for the response owns it (`Phase::Waiting`), so that it is dropped with the
//! connection. It never touches a connection.

use crate::core::api::Endpoint;
use crate::core::api::{CompressedResponse, Deferred};
use crate::core::clients::admission::Admitted;
use crate::core::{CloseReason, Context};
use crate::http::{Accept, Method, Output, Persistence, Request, Responder, Stamp};
use crate::time::Mono;
use std::sync::Arc;
use std::time::Duration;

/// A deferred response and its request.
pub struct Pending {
    /// What the head of the response depends on.
    pub request: PendingRequest,
    /// How it comes about.
    pub response: PendingResponse,
}

/// How a deferred response comes about.
pub enum PendingResponse {
    /// It is made in parts. It waits for candles first, until this deadline.
    InParts(Box<dyn Deferred>, Option<Mono>),
    /// It waits for its compressed body.
    Compressed(CompressedResponse, Option<Arc<[u8]>>),
}

/// What a response is counted by, and what becomes of its connection.
pub struct Served {
    /// What the request is for.
    pub endpoint: Endpoint,
    /// Why the connection closes after the response, if it does.
    pub closing: Option<CloseReason>,
    /// For which address the request counts.
    pub admitted: Admitted,
    /// The request's part of the line in the access log.
    pub line: Option<Box<str>>,
    /// When the request was read.
    pub asked_at: Mono,
}

impl Served {
    /// How long the response has taken; `None` if its request was read in this turn.
    #[inline]
    pub fn took(&self, now: Mono) -> Option<Duration> {
        let is_late = self.asked_at != now;
        is_late.then(|| now.since(self.asked_at))
    }

    /// Counts the response.
    #[inline(always)]
    pub fn count(&self, status: u16, cx: &mut Context) {
        let took = self.took(cx.now.mono);
        let http = &mut cx.stats.http;
        http.not_modified += u64::from(status == 304);
        http.classes[usize::from(status / 100).clamp(2, 5) - 2] += 1;
        match took {
            None => http.durations.note(self.endpoint as usize, status),
            Some(took) => {
                (http.durations).note_long(self.endpoint as usize, status, took.as_micros() as u64);
            }
        }
    }
}

/// What is kept of a request: all that the head of its response depends on.
pub struct PendingRequest {
    /// What the response is counted by.
    pub served: Served,
    head_only: bool,
    persistence: Persistence,
    if_match: Option<Box<[u8]>>,
    if_none_match: Option<Box<[u8]>>,
    accept: Accept<'static>,
}

impl PendingRequest {
    /// Copies from the request what is needed.
    pub fn new(request: &Request<'_>, served: Served) -> PendingRequest {
        PendingRequest {
            head_only: request.method == Method::Head,
            persistence: Persistence::of(request, served.closing.is_none()),
            if_match: request.if_match(),
            if_none_match: request.none_match().map(|list| list.into_owned().into()),
            accept: request.accept().known(),
            served,
        }
    }

    /// Closes the connection after the response, for this reason unless there is one already.
    pub fn close_after(&mut self, reason: CloseReason) {
        self.served.closing.get_or_insert(reason);
        self.persistence = Persistence::Close;
    }

    /// A responder equal to that of the request itself.
    pub fn responder<'a>(&'a self, out: &'a mut Output, stamp: &'a Stamp) -> Responder<'a> {
        let mut responder = Responder::resumed(
            out,
            stamp,
            self.head_only,
            self.persistence,
            (self.if_match.as_deref(), self.if_none_match.as_deref()),
            self.accept,
        );
        responder.tell_quota(self.served.admitted.quota);
        responder
    }
}
