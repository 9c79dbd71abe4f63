//! A deferred response, and what is kept of its request until it is written.
//!
//! The connection that waits for the response owns it (`Phase::Waiting`), so that it is dropped with the
//! connection. It never touches a connection.

use crate::config::Config;
use crate::core::api::{Endpoint, Outcome};
use crate::core::{CloseReason, Context};
use crate::http::{Output, OwnedRequest, Quota, Responder, Stamp};
use crate::time::Mono;
use std::net::IpAddr;
use std::time::Duration;

/// What one connection may cost at a time, in bytes of responses: some 0.05 ms, and 0.3 ms if none of
/// them is cached.
pub const SHARE: u64 = 64 * 1024;

/// A request whose response is deferred.
pub struct Pending {
    /// The request.
    pub request: OwnedRequest,
    /// What the response is counted by.
    pub served: Served,
    /// How the response comes about.
    pub kind: Outcome,
    /// True if it is made in parts, and some of it is made: before, it holds only what its request needs.
    pub is_begun: bool,
}

impl Pending {
    /// The bytes that the response holds until it is made.
    pub fn held(&self) -> usize {
        match &self.kind {
            Outcome::Deferred(deferred) => deferred.held(),
            _ => 0,
        }
    }

    /// Writes the response. Returns what `write` does, and the status.
    pub fn respond<R>(
        &self,
        out: &mut Output,
        stamp: &Stamp,
        write: impl FnOnce(&mut Responder<'_>) -> R,
    ) -> (R, u16) {
        let request = self.request.get();
        let mut responder = Responder::new(out, stamp, &request, self.served.closing.is_none());
        responder.tell_quota(self.served.quota);
        let result = write(&mut responder);
        (result, responder.status())
    }
}

/// What a response is counted by, and what becomes of its connection.
pub struct Served {
    /// What the request is for.
    pub endpoint: Endpoint,
    /// Why the connection closes after the response, if it does.
    pub closing: Option<CloseReason>,
    /// The address that the request counts for, if known.
    pub client: Option<IpAddr>,
    /// What this address has left, if there is a limit.
    pub quota: Option<Quota>,
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

    /// Until when the response waits for candles, however often it does.
    pub fn waits_until(&self, config: &Config) -> Mono {
        self.asked_at + config.limits.chart_wait
    }

    /// Counts the response.
    #[inline(always)]
    pub fn count(&self, status: u16, cx: &mut Context) {
        let took_us = self.took(cx.now.mono).map(|took| took.as_micros() as u64);
        let (http, endpoint) = (&mut cx.stats.http, self.endpoint as usize);
        http.not_modified += u64::from(status == 304);
        http.classes[usize::from(status / 100).clamp(2, 5) - 2] += 1;
        match took_us {
            None => http.durations.note(endpoint, status),
            Some(took_us) => http.durations.note_deferred(endpoint, status, took_us),
        }
    }
}
