//! Closes client connections: when, and for which one reason out of a closed set.
//!
//! Owns the way from the last response to the closed socket. It never writes a response, and the driver
//! closes the socket, after [`Action::Close`].

use crate::core::clients::connection::{Phase, Session};
use crate::core::clients::{Clients, Shared};
use crate::core::next_wake::NEVER;
use crate::core::{Action, CloseReason, Context, Service, api};
use crate::table::Key;
use crate::time::Mono;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

/// Of what may be pending in all, what is got rid of at once, when it is more: to look for the slowest
/// readers is to look at everybody.
const SHED_PART: u64 = 8;

/// Above half of what may be pending in all, who has taken nothing for so long goes. Whoever reads,
/// over however slow a line, takes something in this time.
const SHED_AFTER: Duration = Duration::from_secs(1);

/// Between two looks for them.
const SHED_PAUSE: Duration = Duration::from_millis(100);

/// Between two looks at the deadlines of all clients.
const SWEEP: Duration = Duration::from_secs(1);

/// Between two parts of one look.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);

/// Places that are looked at for deadlines at a time: a tenth of a millisecond.
const SWEEP_PLACES: usize = 4096;

/// Connections whose deadline has passed that are told so at a time.
const SWEEP_ENDS: usize = 128;

impl Clients {
    /// Closes those whose deadline has passed, once in a while, and those that leave too much unread or
    /// send too much.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if self.next_sweep <= cx.now.mono && self.has_swept_things() {
            let is_done = self.sweep_some(cx);
            self.next_sweep = match is_done {
                true => cx.now.mono + SWEEP,
                false => cx.now.mono + SWEEP_PAUSE,
            };
            if is_done {
                self.shared.packing.sweep();
            }
        }
        if cx.stats.http.pending > cx.config.limits.output_total as u64 / 2 {
            self.shed_slow_readers(cx);
        }
        if cx.stats.http.held > cx.config.limits.input_total as u64 {
            self.shed_slow_senders(cx);
        }
    }

    /// When [`Clients::handle_timeout`] is wanted.
    pub fn due(&self) -> Mono {
        let sweep = if self.has_swept_things() {
            self.next_sweep
        } else {
            NEVER
        };
        sweep.min(self.shared.longs.next_due().unwrap_or(NEVER))
    }

    /// Whether there is something that a sweep looks at.
    fn has_swept_things(&self) -> bool {
        !self.sessions.is_empty() || self.shared.packing.is_keeping()
    }

    /// Begins the end: who is between two requests is closed.
    pub fn shut_down(&mut self, cx: &mut Context) {
        self.sweep(0..usize::MAX, usize::MAX, cx);
    }

    /// Looks through the sessions in some of the places for deadlines that have passed. `false`: there
    /// are more places to look at. A crowd whose deadlines pass together goes over several turns.
    fn sweep_some(&mut self, cx: &mut Context) -> bool {
        let begin = self.swept;
        let end = self.sweep(begin..begin + SWEEP_PLACES, SWEEP_ENDS, cx);
        let done = end >= self.sessions.slots();
        self.swept = if done { 0 } else { end };
        done
    }

    /// The same for these places, until so many deadlines have passed; the place to go on at.
    fn sweep(&mut self, places: Range<usize>, ends: usize, cx: &mut Context) -> usize {
        let Clients {
            sessions, shared, ..
        } = self;
        let mut expired = 0;
        let next = places.end;
        let mut rest = None;
        for (key, session) in sessions.range_mut(places) {
            if session.deadline <= cx.now.mono {
                if expired == ends {
                    rest = Some(key);
                    break;
                }
                expired += 1;
                shared.expire(key, session, cx);
            } else if cx.stats.stopping && matches!(session.phase, Phase::Idle) {
                shared.part(key, session, CloseReason::Stopping, cx);
            }
            shared.recount(session, cx);
        }
        rest.map_or(next, |key| sessions.slot(key))
    }

    /// Closes clients that leave too much unread. Above half of the limit those go who have taken
    /// nothing for a while; above all of it, whoever has taken nothing for the longest time, at
    /// once. The one that took some last is never closed for that, however long its answer is.
    fn shed_slow_readers(&mut self, cx: &mut Context) {
        let Clients {
            sessions,
            shared,
            shed_at,
            ..
        } = self;
        let most = cx.config.limits.output_total as u64;
        let mut left = cx.stats.http.pending;
        let is_over = left > most;
        if !is_over && cx.now.mono < *shed_at {
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
    fn shed_slow_senders(&mut self, cx: &mut Context) {
        let Clients {
            sessions, shared, ..
        } = self;
        let most = cx.config.limits.input_total as u64;
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
    pub fn finish(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
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
    pub fn ended(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
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
    pub fn expire(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
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
    pub fn part(&mut self, key: Key, session: &mut Session, reason: CloseReason, cx: &mut Context) {
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
        cx: &mut Context,
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
    pub fn broken(&mut self, key: Key, session: &mut Session, cx: &mut Context) {
        let ended = session
            .reason
            .filter(|_| matches!(session.phase, Phase::Lingering));
        self.close(key, session, ended.unwrap_or(CloseReason::Broken), cx);
    }
}
