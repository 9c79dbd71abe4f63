//! The ends of clients' connections: which comes when, and the one reason that it is counted under.
//!
//! Owns the way from the last answer to the closed socket. It never writes an answer itself, and
//! never lets a socket go: that is the driver's, after [`Action::Close`].

use super::session::{Phase, Session};
use super::{Action, CloseReason, Rest, api};
use crate::table::Key;
use crate::time::Now;

impl Rest {
    /// The last answer is sent. Where bytes may still be on their way to us, the socket lingers:
    /// closing it now would reset the connection, and the reset could overtake the answer
    /// (RFC 9112, 9.6). Only a client that wanted this answer to be the last one sends no more.
    pub(super) fn finish(&mut self, key: Key, session: &mut Session, now: Now) {
        if session.reason == Some(CloseReason::Answered) && session.inbox.is_empty() {
            return self.close(key, session, CloseReason::Answered);
        }
        session.inbox = Vec::new();
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
            Phase::Waiting(_) | Phase::Closed => return,
        };
        match session.phase {
            Phase::Head | Phase::Body(_) => {
                self.status.http.timeouts += 1;
                self.status.http.requests += 1;
                self.fail(session, &api::Error::request_timeout(), reason, now);
                self.actions.push_back(Action::Flush(key));
            }
            Phase::Writing | Phase::Finishing => {
                self.status.http.timeouts += 1;
                self.close(key, session, reason);
            }
            _ => self.close(key, session, reason),
        }
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
