//! Bodies with their fingerprints, and long lists, which are made in parts.

use super::compressed_cache::{CacheKey, Rows};
use super::compression;
use super::outcome::{Deferred, Outcome};
use super::records::{fragment, write_category, write_item, write_market};
use super::symbols::served_quote;
use super::view::View;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, ETag, Head, Responder};
use crate::json::{Decimals, Object};
use crate::market::{Quote, SymbolId};

/// Rows of one part, and bytes after which it ends in any case: some 0.1 ms.
const ROWS_A_PART: usize = 128;
const PART_BYTES: usize = 32 * 1024;

/// A body that is being written, and its fingerprint. Everything written to it is either the same in all
/// bodies of its address or a part of the fingerprint. So the tag identifies all of its bytes.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    made_of: Fingerprint,
}

impl Body {
    /// Appends text that every body of the address has in this place.
    pub fn fixed(&mut self, text: &'static [u8]) {
        self.bytes.extend_from_slice(text);
    }

    /// The place to write what depends on this part.
    pub fn part(&mut self, part: Part<'_>) -> &mut Vec<u8> {
        self.made_of.add(part);
        &mut self.bytes
    }

    /// Appends a short text that has no version.
    pub fn text(&mut self, text: &[u8]) {
        self.part(Part::Text(text)).extend_from_slice(text);
    }

    /// The bytes, and their tag. `variant`: a letter that distinguishes bodies of one address that are made
    /// of the same parts and written differently, such as [`Decimals::variant`].
    pub fn finish(self, view: &View<'_>, variant: u8) -> (Vec<u8>, ETag) {
        (self.bytes, view.tag(self.made_of, variant))
    }
}

/// How often a list is begun again because the catalog has changed. Market lists come once an hour, and a
/// list takes some turns.
const MAX_RESTARTS: u8 = 2;

/// A list of any length, made in parts.
#[derive(Debug)]
pub struct LongList {
    rows: Rows,
    decimals: Decimals,
    symbols: Vec<SymbolId>,
    /// The version of the catalog that the symbols are from.
    catalog: u64,
    restarts: u8,
    next: usize,
    written: usize,
    stale: bool,
    /// The parts of the body before `body`. One buffer that grows would be copied, and to copy a megabyte
    /// takes longer than a part may take.
    done: Vec<Vec<u8>>,
    body: Body,
}

impl LongList {
    /// The list of these rows, as the catalog has them now. `None` if there is no such list.
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

    /// Responds at once if the first part is all of it.
    pub fn start(self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let mut list = Box::new(self);
        if list.step(view) {
            return list.finish(view, responder);
        }
        Outcome::Deferred(list)
    }

    /// Begins again if the catalog has changed since the last step. If that has happened too often, or if
    /// the list is gone, each row is as the catalog has it when the row is made.
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

    /// Writes the row of a symbol, if there is one.
    fn write_row(&mut self, view: &View<'_>, symbol: SymbolId) {
        let catalog = &view.market.catalog;
        let listed = Part::Catalog(catalog.version());
        match &self.rows {
            Rows::Quotes(source) => {
                let Some(quote) = served_quote(view, symbol, *source) else {
                    return;
                };
                self.stale |= quote.stale();
                let decimals = self.decimals;
                let out = self.begin_row(&[Part::Quote(quote.version)]);
                out.extend_from_slice(&fragment(view, quote, decimals));
            }
            Rows::Category(_) => {
                let quote = served_quote(view, symbol, None);
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

    /// The place to write a row that depends on these parts.
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

impl Deferred for LongList {
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

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
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
        let key = || CacheKey::List(rows, decimals);
        compression::send(view, responder, head, key, length, |out| {
            for part in done.into_iter().chain([last]) {
                out.give(part);
            }
        })
    }
}
