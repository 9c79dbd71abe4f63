//! Bodies of requests: nobody needs to send one, and some do.
//!
//! Owns the way from a request's head to the end of its body, which is read and thrown away; then
//! the request is answered as if it had none. It never keeps a byte of a body.

use crate::core::Context;
use crate::core::clients::Shared;
use crate::core::clients::connection::{PendingBody, Phase, Session};
use crate::http::{BodyReader, CONTINUE, HeadLimits, Parsed, Request, RequestBody, parse};
use crate::table::Key;

impl Shared {
    /// Begins with a request whose head is whole.
    pub fn take(
        &mut self,
        key: Key,
        session: &mut Session,
        request: &Request<'_>,
        head: &[u8],
        cx: &mut Context,
    ) {
        let cap = cx.config.limits.body_bytes as u64;
        let reader = match request.body {
            RequestBody::None => return self.answer(key, session, request, None, cx),
            body => BodyReader::new(body.into(), cap),
        };
        let reader = match reader {
            Ok(reader) => reader,
            Err(error) => return self.reject(session, error.into(), b"", cx),
        };
        if request.expect_continue {
            session.output.bytes().extend_from_slice(CONTINUE);
        }
        let pending = PendingBody {
            head: head.to_vec(),
            reader,
        };
        let phase = Phase::Body(Box::new(pending));
        session.enter(phase, cx.now.mono, &cx.config.limits);
    }

    /// Throws away a part of a request's body, and answers the request at the body's end. `None`
    /// when the body was malformed or too large: the client has been told.
    pub fn read_body(
        &mut self,
        key: Key,
        session: &mut Session,
        mut bytes: &[u8],
        cx: &mut Context,
    ) -> Option<usize> {
        let before = bytes.len();
        let Phase::Body(pending) = &mut session.phase else {
            return Some(0);
        };
        loop {
            match pending.reader.decode(bytes) {
                Ok(piece) => {
                    bytes = &bytes[piece.used..];
                    if piece.done {
                        break;
                    }
                    if bytes.is_empty() || piece.used == 0 {
                        return Some(before - bytes.len());
                    }
                }
                Err(error) => {
                    self.reject(session, error.into(), b"", cx);
                    return None;
                }
            }
        }
        let head = std::mem::take(&mut pending.head);
        session.enter(Phase::Idle, cx.now.mono, &cx.config.limits);
        let head_limits = HeadLimits::from(&cx.config.limits);
        if let Ok(Parsed::Complete { request, .. }) = parse(&head, &head_limits) {
            self.answer(key, session, &request, None, cx);
        }
        Some(before - bytes.len())
    }
}
