//! Long lists, which are made in parts.

use super::body::Body;
use super::choice::{Choice, ListKind};
use super::compressed_cache::CacheKey;
use super::outcome::{Deferred, Outcome};
use super::records::{fragment, write_item, write_market};
use super::symbols::served_quote;
use super::view::View;
use crate::fingerprint::Part;
use crate::http::{Head, Responder};
use crate::json::{Decimals, Object, Value as _};
use crate::market::{Quote, SymbolId};

/// Rows of one part, and bytes after which it ends in any case: some 0.1 ms.
const ROWS_A_PART: usize = 128;
const PART_BYTES: usize = 32 * 1024;

/// How often a list is begun again because the catalog has changed. Market lists come once an hour, and a
/// list takes some turns.
const MAX_RESTARTS: u8 = 2;

/// A list of any length, made in parts.
#[derive(Debug)]
pub struct LongList {
    rows: ListKind,
    decimals: Decimals,
    symbols: Vec<SymbolId>,
    /// Which of them are in the list, if not all. The others are gone from `symbols` once that is known.
    choice: Option<Choice>,
    /// The versions that the symbols and their order are from.
    versions: (u64, u64),
    restarts: u8,
    next: usize,
    written: usize,
    stale: bool,
    body: Body,
}

impl LongList {
    /// The list of these rows, as the catalog has them now. `None` if there is no such list.
    pub fn new(
        view: &View<'_>,
        rows: ListKind,
        choice: Option<Choice>,
        decimals: Decimals,
    ) -> Option<LongList> {
        let catalog = &view.market.catalog;
        let mut body = Body::default();
        let mut symbols = match &rows {
            ListKind::Quotes(_) => {
                body.fixed(b"{\"quotes\":[");
                catalog.known().to_vec()
            }
            ListKind::Category(id) => {
                let category = catalog.category(id.as_bytes())?;
                body.fixed(b"{\"category\":");
                category.write(body.part(Part::Catalog(catalog.version())));
                body.fixed(b",\"markets\":[");
                category.symbols.clone()
            }
            ListKind::Ecosystem => {
                body.part(Part::Catalog(catalog.version())).push(b'[');
                catalog.ecosystem().to_vec()
            }
        };
        // The order of the symbols decides between equal values.
        if choice.as_ref().is_some_and(|choice| choice.selection.sort.is_some()) {
            symbols.sort_by(|one, other| catalog.name(*one).cmp(catalog.name(*other)));
        }
        Some(LongList {
            rows,
            decimals,
            symbols,
            versions: versions(view, choice.as_ref()),
            choice,
            restarts: 0,
            next: 0,
            written: 0,
            stale: false,
            body,
        })
    }

    /// Responds at once if the first part is all of it. What is chosen from many rows is not begun before
    /// its turn, since it takes memory for each of them.
    pub fn start(self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let mut list = Box::new(self);
        let is_short = list.choice.is_none() || list.symbols.len() <= ROWS_A_PART;
        if is_short && list.step(view) {
            return list.finish(view, responder);
        }
        Outcome::Deferred(list)
    }

    /// Begins again if the catalog, or the values that decide the order, have changed since the last step. If
    /// that has happened too often, or if the list is gone, each row is as it is when the row is made.
    fn watch(&mut self, view: &View<'_>) {
        let versions = versions(view, self.choice.as_ref());
        if self.versions == versions || self.restarts >= MAX_RESTARTS {
            return;
        }
        self.versions = versions;
        let choice = self.choice.as_ref().map(Choice::anew);
        if let Some(anew) = LongList::new(view, self.rows.clone(), choice, self.decimals) {
            let restarts = self.restarts + 1;
            *self = LongList { restarts, ..anew };
        }
    }

    /// Chooses the rows. Returns true once they are chosen.
    fn choose(&mut self, view: &View<'_>) -> bool {
        let Some(choice) = self.choice.as_mut().filter(|choice| !choice.is_done) else {
            return true;
        };
        choice.step(view, &self.rows, &mut self.symbols);
        if choice.is_done {
            self.body.part(Part::Text(&choice.total.to_le_bytes()));
        }
        choice.is_done
    }

    /// Writes the row of a symbol, if there is one.
    fn write_row(&mut self, view: &View<'_>, symbol: SymbolId) {
        if self.choice.is_some() {
            self.body.part(Part::Symbol(symbol.0));
        }
        let (catalog, decimals) = (&view.market.catalog, self.decimals);
        let listed = Part::Catalog(catalog.version());
        match &self.rows {
            ListKind::Quotes(source) => {
                let Some(quote) = served_quote(view, symbol, *source) else {
                    return;
                };
                self.stale |= quote.stale();
                let out = self.begin_row(&[Part::Quote(quote.version)]);
                out.extend_from_slice(&fragment(view, quote, decimals));
            }
            ListKind::Category(_) => {
                let quote = served_quote(view, symbol, None);
                self.stale |= quote.is_some_and(Quote::stale);
                let shown = quote.map_or(Part::Nothing, |quote| Part::Quote(quote.version));
                let out = self.begin_row(&[listed, shown]);
                write_market(out, view, symbol, quote, decimals);
            }
            ListKind::Ecosystem => {
                let entry = catalog.ecosystem_entry(symbol);
                let Some(entry) = entry.filter(|entry| entry.status) else {
                    self.body.part(Part::Nothing);
                    return;
                };
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
            self.body.part(*part);
        }
        self.body.bytes()
    }
}

/// The versions of the catalog and, if they decide the order, of the quotes.
fn versions(view: &View<'_>, choice: Option<&Choice>) -> (u64, u64) {
    let is_by_value = choice.is_some_and(|choice| choice.selection.is_by_value());
    let quotes = match is_by_value {
        true => view.market.quotes.version(),
        false => 0,
    };
    (view.market.catalog.version(), quotes)
}

impl Deferred for LongList {
    fn step(&mut self, view: &View<'_>) -> bool {
        self.watch(view);
        if !self.choose(view) {
            return false;
        }
        let end = self.symbols.len().min(self.next + ROWS_A_PART);
        while self.next < end && self.body.bytes().len() < PART_BYTES {
            self.write_row(view, self.symbols[self.next]);
            self.next += 1;
        }
        let is_done = self.next == self.symbols.len();
        if !is_done && self.body.bytes().len() >= PART_BYTES {
            self.body.cut(PART_BYTES + PART_BYTES / 8);
        }
        is_done
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let LongList { rows, decimals, mut body, stale, choice, .. } = *self;
        body.fixed(match rows {
            ListKind::Quotes(_) => b"],\"errors\":[]}".as_slice(),
            ListKind::Category(_) => b"]}",
            ListKind::Ecosystem => b"]",
        });
        let cache = view.until_any_poll_unless(stale);
        let fields = choice.as_ref().map_or(String::new(), Choice::fields);
        let head = Head { fields: fields.as_bytes(), ..Head::json(None, cache) };
        body.send_under(head, decimals.variant(), responder, view, || {
            let selection = choice.as_ref().map(|choice| &choice.selection);
            CacheKey::of("lists", (rows, selection, decimals))
        })
    }
}
