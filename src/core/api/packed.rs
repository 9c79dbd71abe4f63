//! Answers that leave in gzip where the client takes it: whatever has a version and more than
//! [`PLAIN_BELOW`] bytes.
//!
//! Owns the choice. What is packed already is sent at once. What is not is packed first, and its
//! client waits, in its place among the requests of its connection: an answer that left as it is
//! would nearly always be the only one of its version, for most lists and charts change between two
//! polls of the same client; so they would be packed and never sent. Where too much waits to be
//! packed already, it leaves as it is: that is right for every client.
//!
//! It never packs anything: [`Packing`](crate::core::api::compressed_cache::Packing) does.

use super::view::View;
use crate::core::api::compressed_cache::Found;
use crate::http::{Coding, ETag, Head, Output, Responder};
use crate::json::Decimals;
use crate::market::{ChartSpec, SeriesKey, SourceId, SymbolId};
use std::sync::Arc;

/// Shorter bodies leave as they are: with its head, such an answer is one segment of TCP or a bit
/// more in any case. One quote is shorter, and is never packed, whatever its length.
pub const PLAIN_BELOW: usize = 1025;

/// What an answer's body says, but for its version: with the tag, all that its bytes depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// The quotes of these symbols; the ready items of `errors`.
    Quotes {
        /// In the order of the answer.
        symbols: Box<[SymbolId]>,
        /// Joined.
        errors: Box<[u8]>,
        /// Of this source alone.
        source: Option<SourceId>,
        /// How they are written.
        decimals: Decimals,
    },
    /// A list of any length.
    List(Rows, Decimals),
    /// The record of a market.
    Market(SymbolId, Decimals),
    /// A chart of a series.
    Chart(SeriesKey, ChartSpec),
    /// What this address answers, given what of its parameters the body depends on.
    Address(&'static str, Box<[u8]>),
}

/// What the rows of a list are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// All known quotes, of one source or each of its first fresh one.
    Quotes(Option<SourceId>),
    /// The markets of a category, by its id.
    Category(Box<str>),
    /// The active markets of the ecosystem.
    Ecosystem,
}

impl Question {
    /// Bytes that it takes in memory.
    pub fn size(&self) -> usize {
        let apart = match self {
            Question::Quotes {
                symbols, errors, ..
            } => size_of_val(&**symbols) + errors.len(),
            Question::List(Rows::Category(id), _) => id.len(),
            Question::Address(_, parameters) => parameters.len(),
            _ => 0,
        };
        size_of::<Question>() + apart
    }
}

/// An answer that is to be packed before it is sent.
pub struct ToPack {
    /// What it says.
    pub question: Question,
    /// What its packed bytes will be called.
    pub tag: ETag,
    /// Its body; `None` where the same is being packed already.
    pub body: Option<Output>,
    /// The answer, but for its packed bytes.
    pub answer: Box<Packed>,
}

impl ToPack {
    fn new(question: Question, tag: ETag, body: Option<Output>, head: &Head<'_>) -> ToPack {
        let answer = Packed {
            head: Head {
                fields: b"",
                ..*head
            },
            fields: head.fields.into(),
            bytes: None,
        };
        ToPack {
            question,
            tag,
            body,
            answer: Box::new(answer),
        }
    }
}

/// An answer whose body leaves in gzip, when it is packed.
pub struct Packed {
    /// Without its fields.
    head: Head<'static>,
    fields: Box<[u8]>,
    /// The body.
    bytes: Option<Arc<[u8]>>,
}

impl Packed {
    /// The body has been packed.
    pub fn ready(&mut self, bytes: &Arc<[u8]>) {
        self.bytes = Some(bytes.clone());
    }

    /// Whether it has.
    pub fn is_ready(&self) -> bool {
        self.bytes.is_some()
    }

    /// Sends it.
    pub fn send(&self, responder: &mut Responder<'_>) {
        let bytes = (self.bytes.as_ref()).expect("it is sent when it is ready");
        let head = Head {
            fields: &self.fields,
            ..self.head
        };
        send_packed(&head, bytes, responder);
    }
}

/// What is to be done with an answer whose client takes gzip.
enum Choice {
    /// Nothing more: it has been sent.
    Sent,
    /// It leaves as it is.
    Plain,
    /// It is packed first.
    Pack {
        question: Question,
        /// Nobody else has asked for the same.
        is_first: bool,
    },
}

/// Sends an answer whose body, so many bytes, is written by `write`; or hands it back to be packed
/// before it is sent.
pub fn send(
    view: &View<'_>,
    responder: &mut Responder<'_>,
    mut head: Head<'_>,
    question: impl FnOnce() -> Question,
    length: usize,
    write: impl FnOnce(&mut Output),
) -> Option<ToPack> {
    responder.weigh(length);
    if length >= PLAIN_BELOW && view.packing.is_on() {
        head.coding = Coding::Plain;
        if let Some(etag) = head.etag
            && responder.takes_gzip()
        {
            let packed = Head {
                etag: Some(etag.packed()),
                coding: Coding::Gzip,
                ..head
            };
            match choose(view, responder, (etag, &packed), question, length) {
                Choice::Sent => return None,
                Choice::Plain => {}
                Choice::Pack { question, is_first } => {
                    let body = is_first.then(|| {
                        let mut body = Output::default();
                        write(&mut body);
                        debug_assert_eq!(body.len(), length);
                        body
                    });
                    return Some(ToPack::new(question, etag.packed(), body, &packed));
                }
            }
        }
    }
    if let Some(out) = responder.begin(&head, length) {
        write(out);
    }
    None
}

/// Sends what can be sent in gzip at once, and says what is to become of the rest. `etag`: of the
/// answer as it is; `head`: of the packed one.
fn choose(
    view: &View<'_>,
    responder: &mut Responder<'_>,
    (etag, head): (ETag, &Head<'_>),
    question: impl FnOnce() -> Question,
    length: usize,
) -> Choice {
    let tag = etag.packed();
    // Who asks for the other one alone must not get this one; for none of both, neither.
    if responder.refuses(tag) {
        return Choice::Plain;
    }
    if responder.has(tag) {
        // It becomes a 304: what it is a word about need not be here.
        responder.begin(head, 0);
        return Choice::Sent;
    }
    // Who has the other one need not get this one.
    if responder.has(etag) {
        return Choice::Plain;
    }
    let question = question();
    let is_first = match view.packing.find(&question, tag, length) {
        Found::Packed(bytes) => {
            send_packed(head, bytes, responder);
            return Choice::Sent;
        }
        Found::Full => return Choice::Plain,
        Found::Coming => false,
        Found::Absent => true,
    };
    Choice::Pack { question, is_first }
}

fn send_packed(head: &Head<'_>, bytes: &Arc<[u8]>, responder: &mut Responder<'_>) {
    if let Some(out) = responder.begin(head, bytes.len()) {
        out.share(bytes, 0..bytes.len());
    }
}
