//! The ends of clients' connections: which comes when, and the one reason that it is counted under.
//!
//! Owns the way from the last answer to the closed socket. It never writes an answer itself, and
//! never lets a socket go: that is the driver's, after [`Action::Close`].

use super::session::{Phase, Session};
use super::{Action, CloseReason, Conn, Core, Rest, Service, api};
use crate::table::Key;
use crate::time::Now;
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

impl Core {
    /// Closes clients that leave too much unread. Above half of the limit those go who have taken
    /// nothing for a while; above all of it, whoever has taken nothing for the longest time, at
    /// once. The one that took some last is never closed for that, however long its answer is.
    pub(super) fn shed_slow_readers(&mut self, now: Now) {
        let Core { conns, rest } = self;
        let most = rest.config.limits.output_total as u64;
        let mut left = rest.status.http.pending;
        let is_over = left > most;
        if left <= most / 2 || (!is_over && now.mono < rest.shed_at) {
            return;
        }
        rest.shed_at = now.mono + SHED_PAUSE;
        let mut readers: BinaryHeap<_> = (conns.iter_mut())
            .filter_map(|(key, conn)| match conn {
                Conn::Client(it) => Some(Reverse((it.unread_since(&rest.config.limits)?, key))),
                Conn::Upstream { .. } => None,
            })
            .filter(|Reverse((since, _))| is_over || *since + SHED_AFTER <= now.mono)
            .collect();
        let least = usize::from(is_over);
        let goal = if is_over { most } else { most / 2 };
        while left > goal - goal / SHED_PART
            && readers.len() > least
            && let Some(Reverse((_, key))) = readers.pop()
            && let Some(Conn::Client(session)) = conns.get_mut(key)
        {
            left = left.saturating_sub(session.output.len() as u64);
            rest.close(key, session, CloseReason::SlowReader);
            rest.recount(session);
        }
    }
}

impl Core {
    /// Closes clients that hold too many bytes of requests: those that have done so for the longest
    /// time, until an eighth is free again.
    pub(super) fn shed_slow_senders(&mut self, now: Now) {
        let Core { conns, rest } = self;
        let most = rest.config.limits.input_total as u64;
        if rest.status.http.held <= most {
            return;
        }
        let mut senders: BinaryHeap<_> = (conns.iter())
            .filter_map(|(key, conn)| match conn {
                Conn::Client(it) => Some(Reverse((
                    it.holds_since(&rest.config.limits, now.mono)?,
                    key,
                ))),
                Conn::Upstream { .. } => None,
            })
            .collect();
        while rest.status.http.held > most - most / SHED_PART
            && let Some(Reverse((_, key))) = senders.pop()
            && let Some(Conn::Client(session)) = conns.get_mut(key)
        {
            rest.close(key, session, CloseReason::SlowSender);
            session.inbox = Vec::new();
            rest.recount(session);
        }
    }
}

impl Rest {
    /// The last answer is sent. Where bytes may still be on their way to us, the socket lingers:
    /// closing it now would reset the connection, and the reset could overtake the answer
    /// (RFC 9112, 9.6). Only a client that wanted this answer to be the last one sends no more.
    pub(super) fn finish(&mut self, key: Key, session: &mut Session, now: Now) {
        if session.reason == Some(CloseReason::Answered) && session.inbox.is_empty() {
            return self.close(key, session, CloseReason::Answered);
        }
        session.inbox = Vec::new();
        session.is_parting = false;
        session.enter(Phase::Lingering, now.mono, &self.config.limits);
        self.actions.push_back(Action::Finish(key));
    }

    /// The client has sent its last byte. What it is owed has been sent already: bytes are read
    /// only when no answer is pending.
    pub(super) fn ended(&mut self, key: Key, session: &mut Session, now: Now) {
        let reason = session.reason.unwrap_or(match session.phase {
            Phase::Head | Phase::Body(_) => CloseReason::CutShort,
            _ => CloseReason::ClientClosed,
        });
        if matches!(session.phase, Phase::Body(_)) && !session.output.is_empty() {
            session.reason = Some(reason);
            return session.enter(Phase::Finishing, now.mono, &self.config.limits);
        }
        self.close(key, session, reason);
    }

    /// A deadline has passed.
    pub(super) fn expire(&mut self, key: Key, session: &mut Session, now: Now) {
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
                self.status.http.timeouts += 1;
                self.status.http.requests += 1;
                self.fail(session, &api::Error::request_timeout(), reason, None, now);
                self.actions.push_back(Action::Flush(key));
            }
            Phase::Writing | Phase::Finishing => {
                self.status.http.timeouts += 1;
                self.close(key, session, reason);
            }
            Phase::Idle => self.part(key, session, reason, now),
            _ => self.close(key, session, reason),
        }
    }

    /// Ends a connection between two requests. The client may just be sending one: what has come
    /// before our side is shut is answered, and what comes after that must meet no reset, so that the
    /// client knows it may ask again (RFC 9112, 9.3.1 and 9.6).
    pub(super) fn part(&mut self, key: Key, session: &mut Session, reason: CloseReason, now: Now) {
        if session.service == Service::Demo {
            return self.close(key, session, reason);
        }
        session.reason = Some(reason);
        session.is_parting = true;
        session.enter(Phase::Lingering, now.mono, &self.config.limits);
        self.actions.push_back(Action::Finish(key));
    }

    pub(super) fn close(&mut self, key: Key, session: &mut Session, reason: CloseReason) {
        if let Phase::Waiting(job) = session.phase {
            self.longs.remove(job);
        }
        if !matches!(session.phase, Phase::Closed) {
            session.phase = Phase::Closed;
            session.reason = Some(reason);
            self.actions.push_back(Action::Close(key));
        }
    }

    /// The connection is broken. Who resets one that has ended anyway breaks nothing.
    pub(super) fn broken(&mut self, key: Key, session: &mut Session) {
        let ended = session
            .reason
            .filter(|_| matches!(session.phase, Phase::Lingering));
        self.close(key, session, ended.unwrap_or(CloseReason::Broken));
    }
}
