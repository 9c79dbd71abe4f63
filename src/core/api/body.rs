//! Bodies with their fingerprints, and how a body is sent: in gzip if the client accepts that and the body is
//! longer than [`PLAIN_BELOW`].
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
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, Coding, Head, Output, Responder};
use crate::market::ChartPlan;
use std::sync::Arc;

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
    let may_compress = length >= PLAIN_BELOW && view.compressed.is_on();
    if may_compress {
        head.coding = Coding::Plain;
    }
    if may_compress
        && let Some(etag) = head.etag
        && responder.takes_gzip()
    {
        let tag = etag.gzip();
        let has_compressed = responder.has(tag);
        // A client that wants or has only the plain body must not, or need not, get this one.
        if responder.is_wanted(Some(tag)) && (has_compressed || !responder.has(etag)) {
            let head = Head { etag: Some(tag), coding: Coding::Gzip, ..head };
            if has_compressed {
                // A 304 has no body, so the body need not be cached.
                responder.begin(&head, 0);
                return Outcome::Sent;
            }
            let key = key();
            let found = view.compressed.find(&key, tag, length);
            if let Found::Compressed(bytes) = found {
                CompressedResponse::new(&head).send(bytes, responder);
                return Outcome::Sent;
            }
            if !matches!(found, Found::Full) {
                let body = matches!(found, Found::Absent).then(|| {
                    let mut body = Output::default();
                    write(&mut body);
                    debug_assert_eq!(body.len(), length);
                    body
                });
                let response = CompressedResponse::new(&head);
                return Outcome::ToCompress(Box::new(ToCompress { key, tag, body, response }));
            }
        }
    }
    if let Some(out) = responder.begin(&head, length) {
        write(out);
    }
    Outcome::Sent
}

/// A body that is being written, and its fingerprint. Everything written to it is either the same in all
/// bodies of its address or a part of the fingerprint. So the tag identifies all of its bytes.
#[derive(Debug, Default)]
pub struct Body {
    /// What is before `bytes`, in parts. One buffer that grows would be copied, and to copy a megabyte takes
    /// longer than a part of a response may take.
    parts: Vec<BodyPart>,
    bytes: Vec<u8>,
    made_of: Fingerprint,
}

#[derive(Debug)]
enum BodyPart {
    Written(Vec<u8>),
    /// The rows of a chart, which are shared with its series.
    Chart(Arc<ChartPlan>),
}

impl Body {
    /// A text that has no version.
    pub fn of(text: &[u8]) -> Body {
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

    /// Appends a text that has no version.
    pub fn text(&mut self, text: &[u8]) {
        self.part(Part::Text(text)).extend_from_slice(text);
    }

    /// Ends a part of the body. The next one takes so many bytes.
    pub fn cut(&mut self, room: usize) {
        let part = std::mem::replace(&mut self.bytes, Vec::with_capacity(room));
        self.parts.push(BodyPart::Written(part));
    }

    /// Appends the rows of a chart without copying them. What they are made of is added by [`Body::part`].
    pub fn chart(&mut self, plan: Arc<ChartPlan>) {
        self.cut(0);
        self.parts.push(BodyPart::Chart(plan));
    }

    /// Sends it as JSON. `variant`: a letter that distinguishes bodies of one address that are made of the
    /// same parts and written differently, such as `Decimals::variant`.
    pub fn send(
        self,
        responder: &mut Responder<'_>,
        view: &View<'_>,
        (variant, cache): (u8, Cache),
        key: CacheKey,
    ) -> Outcome {
        self.send_under(Head::json(None, cache), variant, responder, view, || key)
    }

    /// The same with another head, to which the tag is added.
    pub fn send_under(
        mut self,
        mut head: Head<'_>,
        variant: u8,
        responder: &mut Responder<'_>,
        view: &View<'_>,
        key: impl FnOnce() -> CacheKey,
    ) -> Outcome {
        head.etag = Some(view.tag(self.made_of, variant));
        self.parts.push(BodyPart::Written(self.bytes));
        let lengths = self.parts.iter().map(|part| match part {
            BodyPart::Written(bytes) => bytes.len(),
            BodyPart::Chart(plan) => plan.body_len(),
        });
        let length = lengths.sum();
        send(view, responder, head, key, length, |out| {
            self.parts.into_iter().for_each(|part| match part {
                BodyPart::Written(bytes) => out.give(bytes),
                BodyPart::Chart(plan) => share(&plan, out),
            });
        })
    }
}

/// Appends the body of a chart, without a copy of its rows.
pub fn share(plan: &ChartPlan, out: &mut Output) {
    out.bytes().push(b'[');
    out.share_all(plan.pieces(), plan.body_len() - 2);
    out.bytes().push(b']');
}
