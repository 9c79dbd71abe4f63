//! Sends a body, in gzip if the client accepts that and the body is longer than [`PLAIN_BELOW`].
//!
//! Owns that choice. A body that is compressed already is sent at once. Any other is compressed first, and
//! its client waits: most lists and charts change between two polls of a client, so a body that is sent as
//! it is while it is being compressed for later would be compressed for nobody. If too much waits to be
//! compressed, the body is sent as it is, which every client accepts.
//!
//! It compresses nothing itself: [`CompressedBodies`](super::compressed_cache::CompressedBodies) does.

use super::compressed_cache::{CacheKey, Found};
use super::outcome::{CompressedResponse, Outcome, ToCompress};
use super::view::View;
use crate::http::{Coding, Head, Output, Responder};

/// Shorter bodies are not compressed: with its head, such a response takes about one TCP segment in any
/// case. A single quote is shorter.
const PLAIN_BELOW: usize = 1025;

/// Sends a body of `length` bytes that `write` writes, or hands it back to be compressed first.
pub fn send(
    view: &View<'_>,
    responder: &mut Responder<'_>,
    mut head: Head<'_>,
    key: impl FnOnce() -> CacheKey,
    length: usize,
    write: impl FnOnce(&mut Output),
) -> Outcome {
    responder.weigh(length);
    if length >= PLAIN_BELOW && view.compressed.is_on() {
        head.coding = Coding::Plain;
        if let Some(etag) = head.etag
            && responder.takes_gzip()
        {
            let tag = etag.packed();
            let has_compressed = responder.has(tag);
            let head = Head { etag: Some(tag), coding: Coding::Gzip, ..head };
            // A client that wants or has only the plain body must not, or need not, get this one.
            if responder.is_wanted(Some(tag)) && (has_compressed || !responder.has(etag)) {
                if has_compressed {
                    // A 304 has no body, so the body need not be cached.
                    responder.begin(&head, 0);
                    return Outcome::Sent;
                }
                let key = key();
                match view.compressed.find(&key, tag, length) {
                    Found::Full => {}
                    Found::Compressed(bytes) => {
                        if let Some(out) = responder.begin(&head, bytes.len()) {
                            out.share(bytes, 0..bytes.len());
                        }
                        return Outcome::Sent;
                    }
                    found => {
                        let is_first = matches!(found, Found::Absent);
                        let body = is_first.then(|| written(length, write));
                        let response = CompressedResponse::new(&head);
                        return Outcome::ToCompress(Box::new(ToCompress {
                            key,
                            tag,
                            body,
                            response,
                        }));
                    }
                }
            }
        }
    }
    if let Some(out) = responder.begin(&head, length) {
        write(out);
    }
    Outcome::Sent
}

/// The same for a body that is written already.
pub fn send_bytes(
    view: &View<'_>,
    responder: &mut Responder<'_>,
    head: Head<'_>,
    key: impl FnOnce() -> CacheKey,
    body: Vec<u8>,
) -> Outcome {
    send(view, responder, head, key, body.len(), |out| out.give(body))
}

fn written(length: usize, write: impl FnOnce(&mut Output)) -> Output {
    let mut body = Output::default();
    write(&mut body);
    debug_assert_eq!(body.len(), length);
    body
}
