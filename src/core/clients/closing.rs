//! Closes client connections: when, and for which one reason out of a closed set.
//!
//! Owns the way from the last response to the closed socket. It never writes a response, and the driver
//! closes the socket, after [`Action::Close`].

use crate::core::clients::connection::{Phase, Session};
use crate::core::clients::{Clients, Shared};
use crate::core::{Action, CloseReason, Context, Service, api};
use crate::table::Key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Of what may be pending in all, what is got rid of at once, when it is more: to look for the slowest
/// readers is to look at everybody.
const SHED_PART: u64 = 8;

/// Above half of what may be pending in all, who has taken nothing for so long goes. Whoever reads,
/// over however slow a line, takes something in this time.
const SHED_AFTER: Duration = Duration::from_secs(1);

/// Between two looks for them.
const SHED_PAUSE: Duration = Duration::from_millis(100);

impl Clients {
    /// Closes clients that leave too much unread. Above half of the limit those go who have taken
    /// nothing for a while; above all of it, whoever has taken nothing for the longest time, at
    /// once. The one that took some last is never closed for that, however long its answer is.
    pub fn shed_slow_readers(&mut self, cx: &mut Context<'_>) {
        let Clients {
            sessions,
            shared,
            shed_at,
            ..
        } = self;
        let most = cx.config.limits.output_total as u64;
        let mut left = cx.stats.http.pending;
        let is_over = left > most;
        if left <= most / 2 || (!is_over && cx.now.mono < *shed_at) {
            return;
        }
        *shed_at = cx.now.mono + SHED_PAUSE;
        let mut readers: BinaryHeap<_> = (sessions.iter_mut())
            .filter_map(|(key, it)| Some(Reverse((it.unread_since(&cx.config.limits)?, key))))
            .filter(|Reverse((since, _))| is_over || *since + SHED_AFTER <= cx.now.mono)
            .collect();
        let least = usize::from(is_over);
        let goal = if is_over { most } else { most / 2 };
        while left > goal - goal / SHED_PART
            && readers.len() > least
            && let Some(Reverse((_, key))) = readers.pop()
            && let Some(session) = sessions.get_mut(key)
        {
            left = left.saturating_sub(session.output.len() as u64);
            shared.close(key, session, CloseReason::SlowReader, cx);
            shared.recount(session, cx);
        }
    }

    /// Closes clients that hold too many bytes of requests: those that have done so for the longest
    /// time, until an eighth is free again.
    pub fn shed_slow_senders(&mut self, cx: &mut Context<'_>) {
        let Clients {
            sessions, shared, ..
        } = self;
        let most = cx.config.limits.input_total as u64;
        if cx.stats.http.held <= most {
            return;
        }
        let mut senders: BinaryHeap<_> = (sessions.iter())
            .filter_map(|(key, it)| {
                let since = it.holds_since(&cx.config.limits, cx.now.mono)?;
                Some(Reverse((since, key)))
            })
            .collect();
        while cx.stats.http.held > most - most / SHED_PART
            && let Some(Reverse((_, key))) = senders.pop()
            && let Some(session) = sessions.get_mut(key)
        {
            shared.close(key, session, CloseReason::SlowSender, cx);
            session.inbox = Vec::new();
            shared.recount(session, cx);
        }
    }
}

impl Shared {
    /// The last answer is sent. Where bytes may still be on their way to us, the socket lingers:
    /// closing it now would reset the connection, and the reset could overtake the answer
    /// (RFC 9112, 9.6). Only a client that wanted this answer to be the last one sends no more.
    pub fn finish(&mut self, key: Key, session: &mut Session, cx: &mut Context<'_>) {
        if session.reason == Some(CloseReason::Answered) && session.inbox.is_empty() {
            return self.close(key, session, CloseReason::Answered, cx);
        }
        session.inbox = Vec::new();
        session.is_parting = false;
        session.enter(Phase::Lingering, cx.now.mono, &cx.config.limits);
        cx.actions.push_back(Action::Finish(key));
    }

    /// The client has sent its last byte. What it is owed has been sent already: bytes are read
    /// only when no answer is pending.
    pub fn ended(&mut self, key: Key, session: &mut Session, cx: &mut Context<'_>) {
        let reason = session.reason.unwrap_or(match session.phase {
            Phase::Head | Phase::Body(_) => CloseReason::CutShort,
            _ => CloseReason::ClientClosed,
        });
        if matches!(session.phase, Phase::Body(_)) && !session.output.is_empty() {
            session.reason = Some(reason);
            return session.enter(Phase::Finishing, cx.now.mono, &cx.config.limits);
        }
        self.close(key, session, reason, cx);
    }

    /// A deadline has passed.
    pub fn expire(&mut self, key: Key, session: &mut Session, cx: &mut Context<'_>) {
        let reason = match session.phase {
            Phase::Idle => CloseReason::IdleTimeout,
            Phase::Head => CloseReason::HeadTimeout,
            Phase::Body(_) => CloseReason::BodyTimeout,
            Phase::Writing | Phase::Finishing => CloseReason::WriteTimeout,
            Phase::Lingering => session.reason.unwrap_or(CloseReason::BadRequest),
            Phase::Waiting(_) | Phase::Queued | Phase::Closed => return,
        };
        match session.phase {
            Phase::Head | Phase::Body(_) => {
                cx.stats.http.timeouts += 1;
                cx.stats.http.requests += 1;
                self.fail(session, &api::Error::request_timeout(), reason, None, cx);
                cx.actions.push_back(Action::Flush(key));
            }
            Phase::Writing | Phase::Finishing => {
                cx.stats.http.timeouts += 1;
                self.close(key, session, reason, cx);
            }
            Phase::Idle => self.part(key, session, reason, cx),
            _ => self.close(key, session, reason, cx),
        }
    }

    /// Ends a connection between two requests. The client may just be sending one: what has come
    /// before our side is shut is answered, and what comes after that must meet no reset, so that the
    /// client knows it may ask again (RFC 9112, 9.3.1 and 9.6).
    pub fn part(
        &mut self,
        key: Key,
        session: &mut Session,
        reason: CloseReason,
        cx: &mut Context<'_>,
    ) {
        if session.service == Service::Demo {
            return self.close(key, session, reason, cx);
        }
        session.reason = Some(reason);
        session.is_parting = true;
        session.enter(Phase::Lingering, cx.now.mono, &cx.config.limits);
        cx.actions.push_back(Action::Finish(key));
    }

    pub fn close(
        &mut self,
        key: Key,
        session: &mut Session,
        reason: CloseReason,
        cx: &mut Context<'_>,
    ) {
        if let Phase::Waiting(job) = session.phase {
            self.longs.remove(job);
        }
        if !matches!(session.phase, Phase::Closed) {
            session.phase = Phase::Closed;
            session.reason = Some(reason);
            cx.actions.push_back(Action::Close(key));
        }
    }

    /// The connection is broken. Who resets one that has ended anyway breaks nothing.
    pub fn broken(&mut self, key: Key, session: &mut Session, cx: &mut Context<'_>) {
        let ended = session
            .reason
            .filter(|_| matches!(session.phase, Phase::Lingering));
        self.close(key, session, ended.unwrap_or(CloseReason::Broken), cx);
    }
}
