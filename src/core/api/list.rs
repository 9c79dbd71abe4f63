//! Bodies that name what they are made of, and long lists, which are written part by part.

use super::outcome::{Long, Outcome};
use super::packed::{self, Question, Rows, ToPack};
use super::records::{ready, rendered, write_category, write_item, write_market};
use super::symbols::answering;
use super::view::View;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, ETag, Head, Responder};
use crate::json::{Decimals, Object};
use crate::market::{Quote, SymbolId};

/// Rows made in one part, and bytes after which it ends in any case: some 0.1 ms.
const ROWS_A_PART: usize = 128;
const PART_BYTES: usize = 32 * 1024;

/// A body in the making. What is written to it is either the same in all bodies of its address, or
/// a part that is named: so its tag names all of its bytes.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    made_of: Fingerprint,
}

impl Body {
    /// Appends what stands in this place in every body of the address.
    pub fn fixed(&mut self, text: &'static [u8]) {
        self.bytes.extend_from_slice(text);
    }

    /// The place to write what this part shows.
    pub fn part(&mut self, part: Part<'_>) -> &mut Vec<u8> {
        self.made_of.add(part);
        &mut self.bytes
    }

    /// Appends a short text that no version names.
    pub fn text(&mut self, text: &[u8]) {
        self.part(Part::Text(text)).extend_from_slice(text);
    }

    /// The bytes, and their tag.
    pub fn finish(self, view: &View<'_>, variant: u8) -> (Vec<u8>, ETag) {
        (self.bytes, view.tag(self.made_of, variant))
    }
}

/// Times that a list is begun again because the catalog changed on the way. Market lists come once
/// an hour; a list takes some turns.
const MAX_RESTARTS: u8 = 2;

/// A list of any length, made part by part.
#[derive(Debug)]
pub struct LongList {
    rows: Rows,
    decimals: Decimals,
    symbols: Vec<SymbolId>,
    /// The catalog's version that the symbols are of.
    catalog: u64,
    restarts: u8,
    next: usize,
    written: usize,
    stale: bool,
    /// What is made of the body before that which is in `body`: one buffer that grows would be copied
    /// each time, and a copy of a megabyte takes longer than a part is to take.
    done: Vec<Vec<u8>>,
    body: Body,
}

impl LongList {
    /// The list of these rows, as the catalog has them now. `None`: there is no such list.
    pub fn new(view: &View<'_>, rows: Rows, decimals: Decimals) -> Option<LongList> {
        let catalog = &view.market.catalog;
        let mut body = Body::default();
        let symbols = match &rows {
            Rows::Quotes(_) => {
                body.fixed(b"{\"quotes\":[");
                catalog.known().to_vec()
            }
            Rows::Category(id) => {
                let category = catalog.category(id.as_bytes())?;
                body.fixed(b"{\"category\":");
                let out = body.part(Part::Catalog(catalog.version()));
                write_category(out, category);
                body.fixed(b",\"markets\":[");
                category.symbols.clone()
            }
            Rows::Ecosystem => {
                body.part(Part::Catalog(catalog.version())).push(b'[');
                catalog.ecosystem().to_vec()
            }
        };
        Some(LongList {
            rows,
            decimals,
            symbols,
            catalog: catalog.version(),
            restarts: 0,
            next: 0,
            written: 0,
            stale: false,
            done: Vec::new(),
            body,
        })
    }

    /// Answers at once when the first part is all of it.
    pub fn start(self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let mut list = Box::new(self);
        if list.step(view) {
            return list.finish(view, responder).into();
        }
        Outcome::Later(list)
    }

    /// Begins again when the catalog has changed since the last step. Where that has happened too
    /// often, or there is no such list any more, each row is as the catalog has it when it is made.
    fn watch(&mut self, view: &View<'_>) {
        let catalog = view.market.catalog.version();
        if self.catalog == catalog || self.restarts >= MAX_RESTARTS {
            return;
        }
        self.catalog = catalog;
        if let Some(anew) = LongList::new(view, self.rows.clone(), self.decimals) {
            let restarts = self.restarts + 1;
            *self = LongList { restarts, ..anew };
        }
    }

    /// Writes one row, where there is one for this symbol.
    fn write_row(&mut self, view: &View<'_>, symbol: SymbolId) {
        let catalog = &view.market.catalog;
        let listed = Part::Catalog(catalog.version());
        match &self.rows {
            Rows::Quotes(source) => {
                let Some(quote) = answering(view, symbol, *source) else {
                    return;
                };
                self.stale |= quote.stale();
                let decimals = self.decimals;
                let out = self.begin_row(&[Part::Quote(quote.version)]);
                match decimals {
                    Decimals::Number => out.extend_from_slice(ready(view, quote)),
                    Decimals::String => {
                        out.extend_from_slice(&rendered(view, quote, decimals));
                    }
                }
            }
            Rows::Category(_) => {
                let quote = answering(view, symbol, None);
                self.stale |= quote.is_some_and(Quote::stale);
                let shown = quote.map_or(Part::Nothing, |quote| Part::Quote(quote.version));
                let decimals = self.decimals;
                let out = self.begin_row(&[listed, shown]);
                write_market(out, view, symbol, quote, decimals);
            }
            Rows::Ecosystem => {
                let entry = catalog.ecosystem_entry(symbol);
                let Some(entry) = entry.filter(|entry| entry.status) else {
                    self.body.part(Part::Nothing);
                    return;
                };
                let decimals = self.decimals;
                let mut object = Object::open(self.begin_row(&[listed]));
                write_item(&mut object, view, &entry, decimals);
                object.close();
            }
        }
    }

    /// The place to write a row that is made of these parts.
    fn begin_row(&mut self, parts: &[Part<'_>]) -> &mut Vec<u8> {
        if self.written > 0 {
            self.body.fixed(b",");
        }
        self.written += 1;
        for part in parts {
            self.body.made_of.add(*part);
        }
        &mut self.body.bytes
    }
}

impl Long for LongList {
    fn step(&mut self, view: &View<'_>) -> bool {
        self.watch(view);
        let end = self.symbols.len().min(self.next + ROWS_A_PART);
        while self.next < end && self.body.bytes.len() < PART_BYTES {
            self.write_row(view, self.symbols[self.next]);
            self.next += 1;
        }
        let is_done = self.next == self.symbols.len();
        if !is_done && self.body.bytes.len() >= PART_BYTES {
            let next = Vec::with_capacity(PART_BYTES + PART_BYTES / 8);
            let done = std::mem::replace(&mut self.body.bytes, next);
            self.done.push(done);
        }
        is_done
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<ToPack> {
        let LongList {
            rows,
            decimals,
            mut body,
            done,
            stale,
            ..
        } = *self;
        body.fixed(match rows {
            Rows::Quotes(_) => b"],\"errors\":[]}".as_slice(),
            Rows::Category(_) => b"]}",
            Rows::Ecosystem => b"]",
        });
        let (last, etag) = body.finish(view, decimals.variant());
        let cache = match stale {
            true => Cache::NoCache,
            false => view.until_any_poll(),
        };
        let head = Head::json(Some(etag), cache);
        let length = done.iter().map(Vec::len).sum::<usize>() + last.len();
        let question = || Question::List(rows, decimals);
        packed::send(view, responder, head, question, length, |out| {
            for part in done.into_iter().chain([last]) {
                out.give(part);
            }
        })
    }
}
