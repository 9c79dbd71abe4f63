//! A deferred response, and what is kept of its request until it is written.
//!
//! The connection that waits for the response owns it (`Phase::Waiting`), so that it is dropped with the
//! connection. It never touches a connection.

use crate::core::api::Endpoint;
use crate::core::api::{CompressedResponse, Deferred};
use crate::core::clients::admission::Admitted;
use crate::core::{CloseReason, Context};
use crate::http::{Output, OwnedRequest, Responder, Stamp};
use crate::time::Mono;
use std::sync::Arc;
use std::time::Duration;

/// What one connection may cost at a time, in bytes of responses: some 0.05 ms, and 0.3 ms if none of
/// them is cached.
pub const SHARE: u64 = 64 * 1024;

/// A deferred response and its request.
pub struct Pending {
    /// The request.
    pub request: PendingRequest,
    /// How the response comes about.
    pub response: PendingResponse,
}

/// A request whose response is deferred.
pub struct PendingRequest {
    /// The request.
    pub request: OwnedRequest,
    /// What the response is counted by.
    pub served: Served,
}

/// How a deferred response comes about.
pub enum PendingResponse {
    /// It is made in parts.
    InParts(Box<dyn Deferred>, Stage),
    /// It waits for its compressed body.
    Compressed(CompressedResponse, Option<Arc<[u8]>>),
}

/// How far a response is that is made in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits for candles until this deadline. `is_begun`: some of it was made before.
    Waits { until: Mono, is_begun: bool },
    /// It is in line, and holds only what its request needs.
    InLine,
    /// It is being made.
    Begun,
}

impl Pending {
    /// The bytes that the response holds until it is made.
    pub fn held(&self) -> usize {
        match &self.response {
            PendingResponse::InParts(deferred, _) => deferred.held(),
            PendingResponse::Compressed(..) => 0,
        }
    }
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
                (http.durations).note_deferred(
                    self.endpoint as usize,
                    status,
                    took.as_micros() as u64,
                );
            }
        }
    }
}

impl PendingRequest {
    /// Writes the response. Returns what `write` does, and the status.
    pub fn respond<R>(
        &self,
        out: &mut Output,
        stamp: &Stamp,
        write: impl FnOnce(&mut Responder<'_>) -> R,
    ) -> (R, u16) {
        let request = self.request.get();
        let mut responder = Responder::new(out, stamp, &request, self.served.closing.is_none());
        responder.tell_quota(self.served.admitted.quota);
        let result = write(&mut responder);
        (result, responder.status())
    }
}
