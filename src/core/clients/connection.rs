//! One client's connection: its phase, its unread bytes, its pending output, its one deadline.
//!
//! Owns nothing else, and never answers anything: `serving` reads requests from it and
//! writes answers to it. An idle session holds no heap memory.
//!
//! ```text
//! phase       reads?  leaves it when
//! Idle        yes     the first byte of a request comes           idle deadline: close
//! Head        yes     the head is whole                           head deadline: 408
//! Body        yes     the body is read and thrown away            body deadline: 408
//! Waiting     no      its answer, made over several turns, is done
//! Writing     no      the output is sent                          write deadline: close
//! Queued      no      its turn comes: requests are in the inbox
//! Finishing   no      the last output is sent; then the end       write deadline: close
//! Lingering   yes     the client closes; what it sends is dropped linger deadline: close
//! Closed      no      the driver has let the socket go
//! ```
//!
//! Invariant: Writing and Finishing have pending output. Of the others only Body may, and Waiting:
//! earlier answers, or the word to go on with a body.

use crate::config::Limits;
use crate::core::clients::figures::Weight;
use crate::core::{CloseReason, Service};
use crate::http::{BodyReader, Output};
use crate::table::Key;
use crate::time::Mono;
use std::net::IpAddr;

/// See the module's page.
#[derive(Debug)]
pub struct Session {
    /// What this client is served.
    pub service: Service,
    /// The address that it comes from, where that is known.
    pub peer: Option<IpAddr>,
    /// What it waits for.
    pub phase: Phase,
    /// When it has waited too long.
    pub deadline: Mono,
    /// Bytes that belong to no whole request yet, or to requests not yet served.
    pub inbox: Vec<u8>,
    /// Answers not yet handed to the kernel.
    pub output: Output,
    /// Bytes of the empty lines that came before the next request and are no longer in the inbox:
    /// they are bytes of its head (RFC 9112, 2.2).
    pub blank: usize,
    /// Whether whole requests may be in the inbox: serving stopped before them, not for lack of bytes.
    pub has_more: bool,
    /// Requests served.
    pub served: u32,
    /// Whether it is to be shut between two requests, and has not been yet: a request that comes until
    /// then is answered.
    pub is_parting: bool,
    /// Why it will close, once that is decided.
    pub reason: Option<CloseReason>,
    /// What it adds to the figures of now, as last counted.
    pub counted: Weight,
}

/// See the table on the module's page.
#[derive(Debug)]
pub enum Phase {
    /// Between two requests.
    Idle,
    /// A part of a head is in the inbox.
    Head,
    /// A request with a body: the head is kept, the body is read and thrown away.
    Body(Box<PendingBody>),
    /// The answer is being made under this key.
    Waiting(Key),
    /// Output is pending.
    Writing,
    /// All output is sent, and the requests in the inbox wait for the connection's turn.
    Queued,
    /// The last output is pending.
    Finishing,
    /// Our side is shut; waiting for the client to close its own.
    Lingering,
    /// Waiting for the driver.
    Closed,
}

/// A request whose body is still coming.
#[derive(Debug)]
pub struct PendingBody {
    /// The request's head, to be parsed again when the body has come to its end.
    pub head: Vec<u8>,
    /// Follows the framing.
    pub reader: BodyReader,
}

impl Session {
    /// A client that has just connected.
    pub fn new(service: Service, now: Mono, limits: &Limits) -> Session {
        Session {
            service,
            peer: None,
            phase: Phase::Idle,
            deadline: now + limits.idle_timeout,
            inbox: Vec::new(),
            output: Output::default(),
            blank: 0,
            has_more: false,
            served: 0,
            is_parting: false,
            reason: None,
            counted: Weight::default(),
        }
    }

    /// Enters a phase, with its deadline. `Head` and `Writing` keep the deadline that they have:
    /// later bytes do not renew the one, and progress renews the other by itself.
    #[inline]
    pub fn enter(&mut self, phase: Phase, now: Mono, limits: &Limits) {
        let same = std::mem::discriminant(&self.phase) == std::mem::discriminant(&phase);
        let span = match phase {
            Phase::Head | Phase::Writing | Phase::Finishing if same => None,
            Phase::Idle => Some(limits.idle_timeout),
            Phase::Head => Some(limits.head_timeout),
            Phase::Body(_) => Some(limits.body_timeout),
            Phase::Writing | Phase::Finishing => Some(limits.write_timeout),
            Phase::Lingering => Some(limits.linger),
            Phase::Waiting(_) | Phase::Queued | Phase::Closed => {
                self.deadline = Mono(u64::MAX);
                None
            }
        };
        if let Some(span) = span {
            self.deadline = now + span;
        }
        self.phase = phase;
    }

    /// Whether bytes from this client are welcome now.
    pub fn wants_read(&self) -> bool {
        match self.phase {
            Phase::Idle | Phase::Head | Phase::Body(_) | Phase::Lingering => true,
            Phase::Waiting(_)
            | Phase::Writing
            | Phase::Queued
            | Phase::Finishing
            | Phase::Closed => false,
        }
    }

    /// Since when it has taken nothing of the answers that wait for it; beside a request that has
    /// not wholly come, since that began. `None`: none wait.
    pub fn unread_since(&self, limits: &Limits) -> Option<Mono> {
        let span = match self.phase {
            _ if self.service == Service::Demo || self.output.is_empty() => return None,
            Phase::Writing | Phase::Finishing => limits.write_timeout,
            Phase::Head => limits.head_timeout,
            Phase::Body(_) => limits.body_timeout,
            Phase::Idle | Phase::Waiting(_) | Phase::Queued | Phase::Lingering | Phase::Closed => {
                return None;
            }
        };
        let before = self.deadline.0.saturating_sub(span.as_micros() as u64);
        Some(Mono(before))
    }

    /// Since when it holds bytes of requests: since its head or body began, or it last took some of
    /// its responses. `None`: it holds none. One that waits for us has waited for no time.
    pub fn holds_since(&self, limits: &Limits, now: Mono) -> Option<Mono> {
        let span = match self.phase {
            _ if self.service == Service::Demo || self.held_bytes() == 0 => return None,
            Phase::Head => limits.head_timeout,
            Phase::Body(_) => limits.body_timeout,
            Phase::Writing | Phase::Finishing => limits.write_timeout,
            Phase::Idle | Phase::Waiting(_) | Phase::Queued => return Some(now),
            Phase::Lingering | Phase::Closed => return None,
        };
        Some(Mono(
            self.deadline.0.saturating_sub(span.as_micros() as u64),
        ))
    }

    /// What the bytes take that have come and are not answered.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        let head = match &self.phase {
            Phase::Body(pending) => pending.head.capacity(),
            _ => 0,
        };
        self.inbox.capacity() + head
    }

    /// Whether a request of this client is being answered.
    pub fn is_busy(&self) -> bool {
        matches!(
            self.phase,
            Phase::Waiting(_) | Phase::Writing | Phase::Queued | Phase::Finishing
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_as_they_are_listed() {
        for (at, reason) in CloseReason::all().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }
}
