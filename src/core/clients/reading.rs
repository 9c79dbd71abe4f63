//! Reads requests from client connections.
//!
//! Owns the order within one connection: requests are served in the order in which they arrive. A turn of
//! the connection ends when it has used its share ([`SHARE`]), when its output has reached the high-water
//! mark, or when a response is deferred. The rest stays in the inbox. No event announces a request that is
//! already in the inbox, so the connection queues for its next turn when its output is sent.
//!
//! It never reads a clock: the driver does so whenever the cost of what was served has risen by enough.
//!
//! A body is read and dropped; then the request is served as if it had none. `responses` writes the
//! responses.

use crate::core::api::View;
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::deferred::SHARE;
use crate::core::clients::head_cache::PreparedHead;
use crate::core::clients::responses::Responses;
use crate::core::{Action, CloseReason, Context, Event};
use crate::http::{
    BodyReader, CONTINUE, Output, OwnedRequest, Request, RequestBody, Responder, empty_lines,
    normal_path, parse,
};
use memchr::memchr;
use std::ops::ControlFlow::{self, Break, Continue};

/// What a request costs besides its response, as a number of bytes of a response: a share has fewer than 64
/// requests.
const REQUEST: u64 = 1024;

/// What a byte of a request's head costs, as a number of bytes of a response: it is parsed, and names
/// in it are looked up.
const HEAD_BYTE: u64 = 4;

/// Output buffers larger than this are not kept for the next response.
const SPARE_BYTES: usize = 256 * 1024;

/// How many bytes are used, and whether to go on behind them.
type Step = ControlFlow<usize, usize>;

impl Responses {
    /// Handles an event of a connection.
    pub fn handle(&mut self, connection: &mut Connection, event: Event<'_>, cx: &mut Context) {
        match event {
            Event::Received(bytes) => self.serve_inbox(connection, bytes, false, cx),
            Event::Sent(0) => connection.output.shrink(),
            Event::Sent(count) => self.sent(connection, count, cx),
            Event::Eof => connection.ended(cx),
            Event::Failed(_) => connection.broken(cx),
            Event::Connected | Event::Secured => {}
        }
    }

    /// Serves one share of a connection whose turn has come.
    pub fn serve_queued(&mut self, connection: &mut Connection, cx: &mut Context) {
        if matches!(connection.phase, Phase::Queued) {
            connection.enter(Phase::Idle, cx);
            // A request for metrics does not count itself as in flight.
            connection.recount(&mut cx.stats.http);
            self.serve_inbox(connection, b"", true, cx);
            // Even if nothing was written: the connection may be read again.
            cx.actions.push_back(Action::Flush(connection.key));
        }
    }

    /// The kernel has taken output.
    fn sent(&mut self, connection: &mut Connection, count: usize, cx: &mut Context) {
        connection.sent(count, cx);
        self.streams.sent(connection, count);
        if !connection.output.is_empty() {
            return;
        }
        // Nearly every response is made and sent within one turn, so that the same buffers serve all of them.
        connection.output.give_back(&mut self.spare, SPARE_BYTES);
        match connection.phase {
            // Also when marketd stops: this client does not know yet that its last response was the last
            // one, and may have sent more. The next sweep closes the connection.
            Phase::Writing if !connection.inbox.is_empty() => self.enqueue(connection, cx),
            Phase::Writing => connection.enter(Phase::Idle, cx),
            Phase::Finishing => connection.finish(cx),
            _ => {}
        }
    }

    fn enqueue(&mut self, connection: &mut Connection, cx: &mut Context) {
        connection.enter(Phase::Queued, cx);
        self.queue.push_back(connection.key);
    }

    /// Serves what is in the inbox, and these bytes behind it. `is_turn`: the connection's turn in the queue
    /// has come.
    #[inline(always)]
    fn serve_inbox(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        is_turn: bool,
        cx: &mut Context,
    ) {
        if connection.inbox.is_empty() {
            let used = self.serve(connection, bytes, is_turn, cx);
            if used < bytes.len() {
                connection.inbox = bytes[used..].into();
            }
            return;
        }
        let mut inbox = std::mem::take(&mut connection.inbox).into_vec();
        inbox.extend_from_slice(bytes);
        let used = self.serve(connection, &inbox, is_turn, cx);
        inbox.drain(..used);
        connection.inbox = inbox.into_boxed_slice();
    }

    /// Serves requests from `bytes` as far as possible. Returns how many bytes are used.
    fn serve(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        is_turn: bool,
        cx: &mut Context,
    ) -> usize {
        let mut used = 0;
        let share_ends = self.spent + SHARE;
        while used < bytes.len() {
            let (rest, pending) = (&bytes[used..], connection.output.len());
            let is_full = pending >= cx.config.limits.output_high_water
                || pending > 0 && self.spent >= share_ends;
            let step = match connection.phase {
                // A body that has begun is read to its end, whatever the limits.
                Phase::Body(_) => self.read_body(connection, rest, cx),
                Phase::Idle | Phase::Head if !is_full => {
                    self.next_request(connection, rest, is_turn, cx)
                }
                // The connection ends without another request: what comes is never served.
                Phase::Streaming(_) | Phase::Lingering | Phase::Closed => Break(rest.len()),
                _ => Break(0),
            };
            let (Continue(count) | Break(count)) = step;
            used += count;
            if step.is_break() {
                break;
            }
        }
        if matches!(connection.phase, Phase::Idle | Phase::Head) && !connection.output.is_empty() {
            connection.enter(Phase::Writing, cx);
        }
        used
    }

    /// Takes the request at the start of `bytes`, if its head is complete.
    fn next_request(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        is_turn: bool,
        cx: &mut Context,
    ) -> Step {
        let key = match self.heads.find(bytes) {
            Ok((place, length)) => {
                let head = &bytes[..length];
                if !self.repeat(connection, (place, head), cx) {
                    let request = self.heads.request(place, head);
                    self.respond(connection, &request, Some(place), cx);
                }
                return self.taken(length);
            }
            Err(key) => key,
        };
        let (opening, parsed) = self.heads.parse(bytes, &cx.config.limits);
        match parsed {
            Ok(Some((request, used))) => {
                let mut like = None;
                // Requests for metrics or a stream always wait for their turn, and are not kept in the cache:
                // hundreds of them at once must not delay quotes.
                let is_queued =
                    |path: &[u8]| path.ends_with(b"metrics") || path.ends_with(b"/stream");
                let is_escaped = memchr(b'%', request.path).is_some();
                if is_queued(request.path) || is_escaped && is_queued(&normal_path(request.path)) {
                    if !is_turn {
                        if connection.output.is_empty() {
                            self.enqueue(connection, cx);
                        }
                        return Break(0);
                    }
                } else if used == request.head.len() {
                    like = self.heads.note(key, opening, &request);
                }
                if !like.is_some_and(|like| self.repeat(connection, (like, request.head), cx)) {
                    self.take(connection, &request, like, cx);
                }
                self.taken(used)
            }
            Ok(None) => {
                // Some clients send an empty line after a body. It does not begin a request, and renews no
                // deadline.
                if !matches!(&bytes[empty_lines(bytes)..], [] | [b'\r']) {
                    connection.enter(Phase::Head, cx);
                }
                Break(0)
            }
            Err(error) => {
                self.fail(connection, &error, bytes, CloseReason::BadRequest, cx);
                Break(bytes.len())
            }
        }
    }

    /// Sends the response that is kept for `head`. Returns false, and sends nothing, if a response that is
    /// made now might differ. Debug builds make it and compare.
    #[inline]
    fn repeat(
        &mut self,
        connection: &mut Connection,
        (place, head): (usize, &[u8]),
        cx: &mut Context,
    ) -> bool {
        let valid_for = (connection.service, cx.market.catalog.version());
        let known = self.heads.prepared(place, valid_for).filter(|it| it.has_response(cx));
        let Some(it) = known else {
            return false;
        };
        if connection.closes_after(true, cx).is_some() || !self.admission.is_free(connection.peer) {
            return false;
        }
        debug_assert_eq!(it.bytes.to_vec(), self.made_anew(it, head, cx));
        let endpoint = it.endpoint;
        connection.served += 1;
        connection.output.borrow(&mut self.spare);
        let made = (it.status, connection.output.len());
        connection.output.append(&it.bytes);
        cx.stats.http.requests += 1;
        self.spent += it.weight as u64;
        let line = self.access_log.describe(connection.peer, head);
        let line = (line.as_deref(), cx.now.mono);
        self.complete(connection, endpoint, line, made, cx);
        true
    }

    /// The response to a head on a connection that stays.
    fn made_anew(&self, it: &PreparedHead, head: &[u8], cx: &Context) -> Vec<u8> {
        let Ok(Some((request, _))) = parse(head, &cx.config.limits) else {
            panic!("a head that was parsed is none any more");
        };
        let mut output = Output::default();
        let mut responder = Responder::new(&mut output, &self.stamp, &request, true);
        let deferred = it.respond(&View::new(cx), &mut responder);
        assert!(deferred.is_none(), "a response that is kept is deferred");
        output.to_vec()
    }

    /// Counts the cost of a request with a head of this length.
    fn taken(&mut self, head: usize) -> Step {
        self.spent += REQUEST + HEAD_BYTE * head as u64;
        Continue(head)
    }

    /// Serves a request whose head is complete, or begins to read its body. `like`: the place in the cache of
    /// a head that gets the same response.
    fn take(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        like: Option<usize>,
        cx: &mut Context,
    ) {
        if request.body == RequestBody::None {
            return self.respond(connection, request, like, cx);
        }
        match BodyReader::new(request.body, cx.config.limits.body_bytes as u64) {
            Ok(reader) => {
                if request.expect_continue {
                    connection.output.bytes().extend_from_slice(CONTINUE);
                }
                let body = Box::new((OwnedRequest::new(request), reader));
                connection.enter(Phase::Body(body), cx);
            }
            Err(error) => {
                let reason = CloseReason::BadRequest;
                self.fail(connection, &error.into(), request.head, reason, cx);
            }
        }
    }

    /// Drops a part of a request's body, and serves the request at the end of the body.
    fn read_body(&mut self, connection: &mut Connection, bytes: &[u8], cx: &mut Context) -> Step {
        let Phase::Body(body) = &mut connection.phase else {
            return Break(0);
        };
        let reader = &mut body.1;
        let mut used = 0;
        while used < bytes.len() && !reader.is_done() {
            match reader.decode(&bytes[used..]) {
                Ok(piece) => used += piece.used,
                Err(error) => {
                    self.fail(connection, &error.into(), b"", CloseReason::BadRequest, cx);
                    return Break(bytes.len());
                }
            }
        }
        if reader.is_done()
            && let Phase::Body(body) = std::mem::replace(&mut connection.phase, Phase::Idle)
        {
            connection.enter(Phase::Idle, cx);
            self.respond(connection, &body.0.get(), None, cx);
        }
        Continue(used)
    }
}
