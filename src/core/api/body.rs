//! Bodies with their fingerprints, and how a body is sent: in gzip if the client accepts that and the body is
//! not shorter than [`PLAIN_BELOW`].
//!
//! Owns the choice. A body that is compressed already is sent at once. Any other body is compressed first,
//! and its client waits. It is not sent plain and compressed for later: most lists and charts change before a
//! client asks again, so the compressed body would serve nobody. If too much waits to be compressed, the body
//! is sent plain, which every client accepts.
//!
//! It compresses nothing itself: [`CompressedBodies`](crate::core::compressed_cache::CompressedBodies) does.

use super::outcome::{Deferred, ToCompress, send_shared};
use super::view::View;
use crate::core::compressed_cache::CacheKey;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Coding, ETag, Head, Output, Responder};

/// Shorter bodies are not compressed: with its head, such a response takes about one TCP segment in any
/// case. A single quote is shorter.
const PLAIN_BELOW: usize = 1025;

/// Bytes after which a part of a body ends.
const PART_BYTES: usize = 32 * 1024;

/// Sends a body of `length` bytes that `write` writes, or hands it back to be compressed first.
pub fn send(
    view: &View<'_>,
    responder: &mut Responder<'_>,
    mut head: Head<'_>,
    key: impl Fn() -> CacheKey,
    length: usize,
    write: impl FnOnce(&mut Output),
) -> Option<Deferred> {
    responder.weigh(length);
    if length >= PLAIN_BELOW && view.compressed.is_on() {
        head.coding = Coding::Plain;
        if let Some((tag, gzip)) = in_gzip(responder, &head) {
            if send_kept(view, responder, head, &key) {
                return None;
            }
            let key = key();
            // There may be room at one request and none at the next, so the response must not be repeated.
            view.now();
            if view.compressed.has_room(&key, tag, length) {
                let mut body = Output::default();
                write(&mut body);
                debug_assert_eq!(body.len(), length);
                let (head, fields) = (Head { fields: b"", ..gzip }, gzip.fields.into());
                let response = ToCompress { key, tag, body, compressed: None, head, fields };
                return Some(Deferred::ToCompress(Box::new(response)));
            }
        }
    }
    if let Some(out) = responder.begin(&head, length) {
        write(out);
    }
    None
}

/// Responds with a long body that need not be made: the client has it, or it is kept in gzip. Returns false
/// if it must be made.
pub fn send_kept(
    view: &View<'_>,
    responder: &mut Responder<'_>,
    mut head: Head<'_>,
    key: impl Fn() -> CacheKey,
) -> bool {
    if view.compressed.is_on() {
        head.coding = Coding::Plain;
        if let Some((tag, gzip)) = in_gzip(responder, &head) {
            head = gzip;
            if !responder.has(tag)
                && let Some(bytes) = view.compressed.find(&key(), tag)
            {
                send_shared(&head, bytes, responder);
                return true;
            }
        }
    }
    let is_known = head.etag.is_some_and(|tag| responder.has(tag));
    if is_known {
        // A 304 has no body.
        responder.begin(&head, 0);
    }
    is_known
}

/// The tag and the head of the body in gzip, unless the client does not accept that, or wants or has only the
/// plain body.
fn in_gzip<'h>(responder: &Responder<'_>, head: &Head<'h>) -> Option<(ETag, Head<'h>)> {
    let etag = head.etag.filter(|_| responder.takes_gzip())?;
    let tag = etag.gzip();
    let is_wanted = responder.is_wanted(Some(tag));
    let is_wanted = is_wanted && (responder.has(tag) || !responder.has(etag));
    is_wanted.then_some((tag, Head { etag: Some(tag), coding: Coding::Gzip, ..*head }))
}

/// A body that is being written, and its fingerprint. Everything written to it is either the same in all
/// bodies of its address (with its query) or a part of the fingerprint. So the tag identifies all of its
/// bytes.
#[derive(Debug, Default)]
pub struct Body {
    /// What is before `bytes`, in parts. One buffer that grows would be copied, and to copy a megabyte takes
    /// longer than a part of a response may take.
    parts: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    made_of: Fingerprint,
}

impl Body {
    /// The bytes of memory that it takes.
    pub fn held(&self) -> usize {
        self.parts.iter().map(Vec::capacity).sum::<usize>() + self.bytes.capacity()
    }

    /// A text that has no version.
    pub fn from_text(text: &[u8]) -> Body {
        let mut body = Body::default();
        body.text(text);
        body
    }

    /// Appends text that every body of the address has in this place.
    pub fn fixed(&mut self, text: &'static [u8]) {
        self.bytes.extend_from_slice(text);
    }

    /// The place to write what depends on this part.
    pub fn part(&mut self, part: Part<'_>) -> &mut Vec<u8> {
        self.made_of.add(part);
        &mut self.bytes
    }

    /// The place to write what depends on the parts that were added.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends bytes that depend on the parts that were added, without copying them.
    pub fn give(&mut self, bytes: Vec<u8>) {
        self.parts.push(std::mem::take(&mut self.bytes));
        self.parts.push(bytes);
    }

    /// Appends a text that has no version.
    pub fn text(&mut self, text: &[u8]) {
        self.part(Part::Text(text)).extend_from_slice(text);
    }

    /// Ends a part of the body if it is long enough. Returns true if it was.
    pub fn cut(&mut self) -> bool {
        let is_long = self.bytes.len() >= PART_BYTES;
        if is_long {
            let next = Vec::with_capacity(PART_BYTES + PART_BYTES / 8);
            self.parts.push(std::mem::replace(&mut self.bytes, next));
        }
        is_long
    }

    /// The head with the tag of what was written.
    pub fn tagged<'h>(&self, head: Head<'h>, variant: u8) -> Head<'h> {
        Head { etag: Some(ETag::new(self.made_of.number(), variant)), ..head }
    }

    /// Sends it with this head, to which its tag is added. `variant`: a letter that distinguishes bodies of
    /// one address that are made of the same parts and written differently: `Decimals::variant` if the
    /// address takes `decimals`, otherwise any letter. `key`: the path and every parameter that the body
    /// depends on.
    pub fn send(
        mut self,
        view: &View<'_>,
        responder: &mut Responder<'_>,
        head: Head<'_>,
        variant: u8,
        key: CacheKey,
    ) -> Option<Deferred> {
        let head = self.tagged(head, variant);
        self.parts.push(self.bytes);
        let length = self.parts.iter().map(Vec::len).sum();
        send(
            view,
            responder,
            head,
            || key,
            length,
            |out| {
                self.parts.into_iter().for_each(|part| out.give(part));
            },
        )
    }
}
