//! The life of one client connection, from accept to close.
//!
//! Owns the phase, the one deadline, the unread bytes and the unsent output. It decides what a deadline leads
//! to and how the connection closes. It never reads a request and never writes a response. `reading` and
//! `responses` do that: they append to `output`, keep in `inbox` what is not served, and say why the
//! connection will close. An idle connection holds no heap memory, unless its client has sent an empty line
//! (RFC 9112, 2.2).
//!
//! ```text
//! phase      reads  ends when                                        at its deadline
//! Idle       yes    the first byte of a request arrives              idle: lingers
//! Head       yes    the head is complete                             head: 408, finishes
//! Body       yes    the body is read and dropped                     body: 408, finishes
//! Waiting    no     the deferred response is written                 (none)
//! Writing    no     the output is sent                               write: closes
//! Queued     no     its turn in the queue comes                      (none)
//! Streaming  yes    the client closes; its bytes are dropped         heartbeat: `alive` is sent;
//!                                                                    with unsent output, write: closes
//! Finishing  no     the last output is sent; then lingers or closes  write: closes
//! Lingering  yes    the client closes; its bytes are dropped         linger: closes
//! Closed     no     the driver has dropped the socket                (none)
//! ```
//!
//! A connection that is accepted is `Idle`. Besides the deadlines, these close it:
//!
//! - its last response ([`Connection::finish`]), for the reason that was decided before it was written;
//! - the client ([`Connection::ended`], [`Connection::broken`]);
//! - the limits on all connections together, which `accepting` and `sweeping` hold;
//! - the stop of marketd: `sweeping` closes connections between two requests, and ends the streams.
//!
//! Invariant: `Writing` and `Finishing` have output. `Streaming` may have events as output. `Body` and
//! `Waiting` may have earlier responses and `100 Continue`. The other phases have no output.

use crate::config::Limits;
use crate::core::clients::deferred::Pending;
use crate::core::clients::streams::EventStream;
use crate::core::held::{HeldByClient, small};
use crate::core::stats::HttpStatus;
use crate::core::{Action, CloseReason, Context, Service};
use crate::http::{BodyReader, EndlessBody, Output, OwnedRequest};
use crate::table::Key;
use crate::time::Mono;
use std::net::IpAddr;

/// See the module's page.
pub struct Connection {
    /// Its key in the table of connections.
    pub key: Key,
    /// What this client is served.
    pub service: Service,
    /// The address of the peer, if known.
    pub peer: Option<IpAddr>,
    /// See the table on the module's page.
    pub phase: Phase,
    /// Since when the deadline of the phase runs.
    pub since: Mono,
    /// Bytes of incomplete requests, or of requests that are not served yet.
    pub inbox: Box<[u8]>,
    /// Responses that are not sent yet.
    pub output: Output,
    /// The stream, from when it is opened until the driver has dropped the socket.
    pub stream: Option<Box<EventStream>>,
    /// Requests served.
    pub served: u32,
    /// Why the connection will close, once that is decided. `Refused` from the start if marketd refuses it.
    pub reason: Option<CloseReason>,
    /// What the connection adds to the current figures, as last counted.
    pub counted: HeldByClient,
}

/// See the table on the module's page.
pub enum Phase {
    /// Between two requests.
    Idle,
    /// The inbox has a part of a head.
    Head,
    /// A request with a body: the request is kept, the body is dropped.
    Body(Box<(OwnedRequest, BodyReader)>),
    /// The response is deferred.
    Waiting(Box<Pending>),
    /// The output is being sent.
    Writing,
    /// All output is sent, and the requests in the inbox wait for the connection's turn.
    Queued,
    /// The client has a stream, until one side ends it.
    Streaming(EndlessBody),
    /// The last output is being sent.
    Finishing,
    /// Our side is shut. The client has not closed its side.
    Lingering,
    /// The driver is to drop the socket.
    Closed,
}

impl Connection {
    /// A connection that is accepted now.
    pub fn new(key: Key, service: Service, peer: Option<IpAddr>, now: Mono) -> Connection {
        Connection {
            key,
            service,
            peer,
            phase: Phase::Idle,
            since: now,
            inbox: Box::default(),
            output: Output::default(),
            stream: None,
            served: 0,
            reason: None,
            counted: HeldByClient::default(),
        }
    }

    /// Enters a phase. Its deadline runs from now on. Entering `Head`, `Writing` or `Finishing` again does
    /// not renew it: more bytes of a head give no more time, and for output [`Connection::sent`] renews it.
    #[inline]
    pub fn enter(&mut self, phase: Phase, cx: &Context) {
        let is_same = std::mem::discriminant(&self.phase) == std::mem::discriminant(&phase);
        self.phase = phase;
        if !is_same || !matches!(self.phase, Phase::Head | Phase::Writing | Phase::Finishing) {
            self.since = cx.now.mono;
        }
    }

    /// When the phase has lasted too long.
    pub fn deadline(&self, limits: &Limits) -> Mono {
        self.since
            + match self.phase {
                Phase::Idle => limits.idle_timeout,
                Phase::Head => limits.head_timeout,
                Phase::Body(_) => limits.body_timeout,
                Phase::Streaming(_) if self.output.is_empty() => limits.stream_heartbeat,
                Phase::Writing | Phase::Streaming(_) | Phase::Finishing => limits.write_timeout,
                Phase::Lingering => limits.linger,
                Phase::Waiting(_) | Phase::Queued | Phase::Closed => return Mono::NEVER,
            }
    }

    /// True if the driver may read from this client.
    pub fn wants_read(&self) -> bool {
        matches!(
            self.phase,
            Phase::Idle | Phase::Head | Phase::Body(_) | Phase::Streaming(_) | Phase::Lingering
        )
    }

    /// True if a request of this client is being served.
    pub fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_) | Phase::Writing | Phase::Queued | Phase::Finishing)
    }

    /// Takes the deferred response out, to be written now.
    pub fn take_pending(&mut self) -> Option<Pending> {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Waiting(pending) => Some(*pending),
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Updates the current figures. To be called after every change.
    #[inline]
    pub fn recount(&mut self, http: &mut HttpStatus) {
        if self.service == Service::Demo {
            return;
        }
        if self.stream.is_some() || matches!(self.phase, Phase::Body(_) | Phase::Waiting(_)) {
            return self.recount_all(http);
        }
        let held = HeldByClient::of_buffers(self.output.len(), self.inbox.len());
        self.count(held, http);
    }

    /// Like `recount`, for a connection that holds more than its buffers. Few do, so this is not inlined.
    #[inline(never)]
    fn recount_all(&mut self, http: &mut HttpStatus) {
        let (head, making) = match &self.phase {
            Phase::Body(body) => (body.0.head_bytes(), 0),
            Phase::Waiting(pending) => (pending.request.head_bytes(), pending.held()),
            _ => (0, 0),
        };
        let buffers = HeldByClient::of_buffers(self.output.len(), self.inbox.len() + head);
        let streams = self.stream.as_ref().map_or(0, |stream| stream.held());
        self.count(
            HeldByClient { making: small(making), streams: small(streams), ..buffers },
            http,
        );
    }

    /// Counts what the connection holds now, in place of what it held when it was last counted.
    #[inline(always)]
    fn count(&mut self, held: HeldByClient, http: &mut HttpStatus) {
        let held = HeldByClient { is_busy: self.is_busy(), ..held };
        http.held.replace(self.counted, held);
        self.counted = held;
    }

    /// The kernel has taken output. The deadline for the rest runs from now on.
    #[inline]
    pub fn sent(&mut self, count: usize, cx: &mut Context) {
        self.output.advance(count);
        if self.service != Service::Demo {
            cx.stats.http.bytes_out += count as u64;
        }
        if !self.output.is_empty() {
            self.output.shrink();
        }
        if matches!(self.phase, Phase::Writing | Phase::Streaming(_) | Phase::Finishing) {
            self.since = cx.now.mono;
        }
    }

    /// A deferred response or events are written. The client's time to take them begins now. Requests in the
    /// inbox wait for the connection's turn.
    pub fn flush(&mut self, cx: &mut Context) {
        match self.phase {
            Phase::Idle => self.enter(Phase::Writing, cx),
            Phase::Streaming(_) => self.since = cx.now.mono,
            _ => {}
        }
        cx.actions.push_back(Action::Flush(self.key));
    }

    /// Why the connection closes after the next response, if it does.
    #[inline]
    pub fn closes_after(&self, keep_alive: bool, cx: &Context) -> Option<CloseReason> {
        match self.reason {
            None if self.served + 1 >= cx.config.limits.requests_per_connection => {
                Some(CloseReason::RequestLimit)
            }
            None if cx.stats.stopping => Some(CloseReason::Stopping),
            None if !keep_alive => Some(CloseReason::Answered),
            reason => reason,
        }
    }

    /// A response is written. It was the last one if the connection will close. Otherwise, the connection is
    /// `Idle` for the next request. If output is left after the last request, `serve` in `reading` enters
    /// `Writing`.
    #[inline]
    pub fn responded(&mut self, cx: &Context) {
        let is_last = self.reason.is_some();
        self.enter(if is_last { Phase::Finishing } else { Phase::Idle }, cx);
    }

    /// The last response is sent. If bytes may still be on their way to us, the connection lingers: to
    /// close the socket now would reset it, and the reset could overtake the response (RFC 9112, 9.6). A
    /// client that asked for this response to be the last sends no more.
    pub fn finish(&mut self, cx: &mut Context) {
        if self.reason == Some(CloseReason::Answered) && self.inbox.is_empty() {
            return self.close(CloseReason::Answered, cx);
        }
        self.linger(cx);
    }

    /// Shuts our side.
    fn linger(&mut self, cx: &mut Context) {
        self.inbox = Box::default();
        self.enter(Phase::Lingering, cx);
        cx.actions.push_back(Action::Finish(self.key));
    }

    /// The client has sent its last byte. Only `Body` and `Streaming` may have output then. The output of
    /// `Body` is sent before the connection closes. The output of a stream is dropped.
    pub fn ended(&mut self, cx: &mut Context) {
        let reason = self.reason.unwrap_or(match self.phase {
            Phase::Head | Phase::Body(_) => CloseReason::CutShort,
            _ => CloseReason::ClientClosed,
        });
        if matches!(self.phase, Phase::Body(_)) && !self.output.is_empty() {
            self.reason = Some(reason);
            return self.responded(cx);
        }
        self.close(reason, cx);
    }

    /// The connection is broken. In `Lingering`, all output is already sent, so the earlier reason stays.
    pub fn broken(&mut self, cx: &mut Context) {
        let reason = self.reason.filter(|_| matches!(self.phase, Phase::Lingering));
        self.close(reason.unwrap_or(CloseReason::Broken), cx);
    }

    /// The deadline has passed. Returns the close reason if the client is to be sent a 408 first.
    pub fn expire(&mut self, cx: &mut Context) -> Option<CloseReason> {
        match self.phase {
            Phase::Idle => self.half_close(CloseReason::IdleTimeout, cx),
            Phase::Head => return Some(CloseReason::HeadTimeout),
            Phase::Body(_) => return Some(CloseReason::BodyTimeout),
            Phase::Streaming(body) if self.output.is_empty() => {
                if let Some(stream) = &mut self.stream {
                    body.write(self.output.bytes(), |out| stream.write_alive(out, cx.now.unix));
                    cx.stats.streams.events += 1;
                }
                self.flush(cx);
            }
            Phase::Writing | Phase::Streaming(_) | Phase::Finishing => {
                cx.stats.http.timeouts += u64::from(self.service != Service::Demo);
                self.close(CloseReason::WriteTimeout, cx);
            }
            Phase::Lingering => self.close(self.reason.unwrap_or(CloseReason::BadRequest), cx),
            Phase::Waiting(_) | Phase::Queued | Phase::Closed => {}
        }
        None
    }

    /// Ends the connection between two requests, without a reset. A client that is just sending a request
    /// then knows that the request was not served, and may send it again (RFC 9112, 9.3.1 and 9.6).
    pub fn half_close(&mut self, reason: CloseReason, cx: &mut Context) {
        self.reason = Some(reason);
        self.linger(cx);
    }

    /// Has the driver drop the socket. Requests and responses are dropped, and no longer count, at once.
    pub fn close(&mut self, reason: CloseReason, cx: &mut Context) {
        if !matches!(self.phase, Phase::Closed) {
            self.phase = Phase::Closed;
            (self.inbox, self.output) = Default::default();
            self.reason = Some(reason);
            self.recount(&mut cx.stats.http);
            cx.actions.push_back(Action::Close(self.key));
        }
    }
}
