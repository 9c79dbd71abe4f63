//! Long lists, which are made in parts: all rows in their order, or those that a client picks.
//!
//! If rows are picked, each step looks at some rows, and keeps the best ones so far in a set. Later steps
//! write rows from this set. So thousands of rows are never ranked in one piece, and picking twenty of them
//! costs little.

use super::body::{Body, send_kept};
use super::outcome::{Advance, Deferred, InParts, Outcome, Prepared, send_error};
use super::records::{fragment, write_item, write_market, write_names};
use super::request::ApiRequest;
use super::selection::{Selection, find, match_rank};
use super::view::View;
use crate::core::compressed_cache::CacheKey;
use crate::decimal::Decimal;
use crate::fingerprint::Part;
use crate::http::{Cache, Error, Head, Responder, echo};
use crate::json::{Decimals, Object, Value as _};
use crate::market::{Quote, SourceId, SymbolId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::vec;

/// Rows that are looked at in one part: some 0.1 ms.
const LOOKS_A_PART: usize = 512;

/// Rows that are written in one step: some 0.1 ms. A step ends earlier once a part of the body is full.
const ROWS_A_PART: usize = 128;

/// How often a list is begun again because values that decide its order have changed. A change of the catalog
/// always begins it again: the catalog changes about once an hour, and a response takes some turns.
const MAX_RESTARTS: u8 = 2;

/// What a list lists.
#[derive(Clone, Debug, Hash)]
pub enum ListKind {
    /// All known quotes, of one source or of the best source of each symbol.
    Quotes(Option<SourceId>),
    /// The markets of a category, by its id.
    Category(Box<[u8]>),
    /// The active markets of the ecosystem.
    Ecosystem,
    /// What a charting library searches, of one source or of all: the best match first.
    Found(Option<SourceId>),
}

/// A request for a list.
#[derive(Clone, Debug)]
pub struct ListRequest {
    kind: ListKind,
    /// The rows that are picked, if not all.
    selection: Option<Selection>,
    decimals: Decimals,
    query: Box<[u8]>,
}

impl ListRequest {
    /// Reads the parameters that all lists have.
    pub fn read(call: &ApiRequest<'_>, kind: ListKind) -> Result<ListRequest, Error> {
        let (decimals, selection) = (call.only_decimals()?, Selection::read(call)?);
        Ok(ListRequest { kind, selection, decimals, query: call.request.query.into() })
    }

    /// A search of a charting library.
    pub fn found(source: Option<SourceId>, selection: Selection) -> ListRequest {
        let (kind, selection) = (ListKind::Found(source), Some(selection));
        ListRequest { kind, selection, decimals: Decimals::Number, query: Box::default() }
    }
}

impl Prepared for ListRequest {
    /// Responds at once if the list has only one part. A longer list is not begun before its turn, since it
    /// takes memory for each row.
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let is_short = self.kind.symbols(view).is_none_or(|it| it.len() <= ROWS_A_PART);
        // Nothing but the catalog decides what the list of all markets of the ecosystem says.
        if !is_short && matches!(self.kind, ListKind::Ecosystem) && self.selection.is_none() {
            let mut body = Body::default();
            body.part(Part::Catalog(view.market.catalog.version()));
            let head = Head::json(None, view.until_any_poll());
            let head = body.tagged(head, self.decimals.variant());
            if send_kept(view, responder, head, || self.cache_key()) {
                return Ok(None);
            }
        }
        let mut list = Box::new(LongList { request: self.clone(), restarts: 0, rows: None });
        if is_short && list.step(view) == Advance::Done {
            return Ok(list.finish(view, responder));
        }
        Ok(Some(Deferred::InParts(list)))
    }
}

impl ListRequest {
    fn cache_key(&self) -> CacheKey {
        CacheKey::new("lists", (&self.kind, &self.selection, self.decimals))
    }

    /// Begins the list as the catalog has it now. `None` if there is no such list.
    fn begin(&self, view: &View<'_>) -> Option<Rows> {
        let catalog = &view.market.catalog;
        let mut symbols = self.kind.symbols(view)?.to_vec();
        if let Some(selection) = self.selection.as_ref().filter(|it| it.sort.is_some()) {
            symbols.sort_by(|one, other| catalog.name(*one).cmp(catalog.name(*other)));
            // Descending by value keeps equal values in the ascending order of the symbols.
            if selection.descending && !selection.is_by_value() {
                symbols.reverse();
            }
        }
        let mut body = Body::default();
        match &self.kind {
            ListKind::Quotes(_) => body.fixed(b"{\"quotes\":["),
            ListKind::Category(id) => {
                body.fixed(b"{\"category\":");
                catalog.category(id)?.write(body.part(Part::Catalog(catalog.version())));
                body.fixed(b",\"markets\":[");
            }
            ListKind::Ecosystem | ListKind::Found(_) => {
                body.part(Part::Catalog(catalog.version())).push(b'[');
            }
        }
        let (versions, symbols) = (self.versions(view), symbols.into_iter());
        Some(Rows { versions, symbols, body, ..Rows::default() })
    }

    /// The versions of the catalog and, if they decide the order, of the quotes.
    fn versions(&self, view: &View<'_>) -> (u64, u64) {
        let is_by_value = self.selection.as_ref().is_some_and(Selection::is_by_value);
        let quotes = if is_by_value { view.market.quotes.version() } else { 0 };
        (view.market.catalog.version(), quotes)
    }
}

/// The error of a category that is not there.
pub fn no_category(id: &[u8]) -> Error {
    let message = format!("Unknown category \"{}\".", echo(id));
    Error::new(404, "category_not_found", message)
}

/// The sort key of a row. Greater keys come first, and a row without a value comes last. Rows with equal
/// values have the order of the list.
type Ranked = (Option<Rank>, usize, SymbolId);

/// The value of a row.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Ascending(Reverse<Decimal>),
    Descending(Decimal),
    /// Of a search: how well the row matches; how many markets have its quote asset; that asset; its
    /// turnover. So turnovers are compared only within one quote asset, and the quote asset of most markets
    /// comes first.
    Match(Reverse<u8>, usize, Reverse<Box<str>>, Option<Decimal>),
}

/// A list of any length, made in parts.
struct LongList {
    request: ListRequest,
    restarts: u8,
    /// `None` before the first step, and if there is no such list.
    rows: Option<Rows>,
}

/// The rows of a list, from its beginning on.
#[derive(Default)]
struct Rows {
    /// The versions that the symbols and their order are from.
    versions: (u64, u64),
    /// The rows that are still to be written or, if some are to be picked, looked at.
    symbols: vec::IntoIter<SymbolId>,
    /// The best of the rows that match, as many as may be picked.
    best: BTreeSet<Ranked>,
    /// How many of the rows that were looked at match.
    matching: usize,
    /// How many rows match. `None` until all were looked at, and if all rows are written.
    total: Option<usize>,
    /// Of a search, by quote asset: how many markets have it.
    markets: BTreeMap<Box<str>, usize>,
    /// How many rows were taken, including the rows that are passed over.
    taken: usize,
    has_rows: bool,
    is_stale: bool,
    body: Body,
}

impl Rows {
    /// Looks at some rows, if only some are picked. Returns true once all were looked at.
    fn look(&mut self, view: &View<'_>, request: &ListRequest) -> bool {
        let Some(selection) = request.selection.as_ref().filter(|_| self.total.is_none()) else {
            return true;
        };
        let most = selection.piece().end;
        for _ in 0..LOOKS_A_PART {
            let place = self.symbols.len();
            let Some(symbol) = self.symbols.next() else {
                self.total = Some(self.matching);
                self.body.part(Part::Text(&self.matching.to_le_bytes()));
                return true;
            };
            let matching = request.kind.rank(view, selection, symbol, place, &mut self.markets);
            self.matching += usize::from(matching.is_some());
            self.best.extend(matching);
            if self.best.len() > most {
                self.best.pop_first();
            }
        }
        false
    }

    /// The symbol of the next row: the next one of all, or the best one of the rows that were looked at.
    fn next(&mut self) -> Option<SymbolId> {
        self.symbols.next().or_else(|| self.best.pop_last().map(|(_, _, symbol)| symbol))
    }

    /// Writes the row of a symbol, if there is one.
    fn write(&mut self, view: &View<'_>, request: &ListRequest, symbol: SymbolId) {
        if self.total.is_some() {
            self.body.part(Part::Symbol(symbol.0));
        }
        let decimals = request.decimals;
        match &request.kind {
            ListKind::Quotes(source) => {
                let Some(quote) = view.served_quote(symbol, *source) else {
                    return;
                };
                self.is_stale |= quote.stale();
                self.body.part(Part::Quote(quote.version));
                self.begin_row().extend_from_slice(&fragment(view, quote, decimals));
            }
            ListKind::Category(_) => {
                let quote = view.served_quote(symbol, None);
                self.is_stale |= quote.is_some_and(Quote::stale);
                self.body.part(quote.map_or(Part::Nothing, |quote| Part::Quote(quote.version)));
                write_market(self.begin_row(), view, symbol, quote, decimals);
            }
            ListKind::Ecosystem => {
                let entry = view.market.catalog.ecosystem_entry(symbol);
                let Some(entry) = entry.filter(|entry| entry.status) else {
                    return;
                };
                let mut object = Object::open(self.begin_row());
                write_item(&mut object, view, &entry, decimals);
                object.close();
            }
            ListKind::Found(source) => {
                let mut object = Object::open(self.begin_row());
                write_names(&mut object, view, symbol, *source);
                object.close();
            }
        }
    }

    /// The place to write a row.
    fn begin_row(&mut self) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.has_rows, true) {
            self.body.fixed(b",");
        }
        self.body.bytes()
    }
}

impl ListKind {
    /// The symbols that the list may have. `None` if there is no such list.
    fn symbols<'v>(&self, view: &View<'v>) -> Option<&'v [SymbolId]> {
        let catalog = &view.market.catalog;
        match self {
            ListKind::Quotes(_) | ListKind::Found(_) => Some(catalog.known()),
            ListKind::Category(id) => catalog.category(id).map(|it| &*it.symbols),
            ListKind::Ecosystem => Some(catalog.ecosystem()),
        }
    }

    /// The row of a symbol; `place` rows are left from it to the end, itself included. `None` if the symbol
    /// has no row, or the row does not match. `markets`: how many markets have each quote asset, as far as it
    /// was asked.
    fn rank(
        &self,
        view: &View<'_>,
        selection: &Selection,
        symbol: SymbolId,
        place: usize,
        markets: &mut BTreeMap<Box<str>, usize>,
    ) -> Option<Ranked> {
        let (catalog, name) = (&view.market.catalog, view.market.catalog.name(symbol));
        if !find(&selection.search, name) {
            return None;
        }
        let source = match self {
            ListKind::Quotes(source) | ListKind::Found(source) => *source,
            ListKind::Category(_) | ListKind::Ecosystem => None,
        };
        let quote = view.served_quote(symbol, source);
        let is_listed = match self {
            ListKind::Quotes(_) => quote.is_some(),
            ListKind::Category(_) => true,
            ListKind::Ecosystem => (catalog.ecosystem_entry(symbol)).is_some_and(|it| it.status),
            ListKind::Found(_) => source.is_none_or(|it| catalog.sources_of(symbol).contains(&it)),
        };
        let value = quote.and_then(|quote| selection.value(quote)).cloned();
        let rank = match self {
            ListKind::Found(_) => {
                let asset = name.quote();
                let count = || {
                    let category = catalog.category(asset.to_ascii_lowercase().as_bytes());
                    category.map_or(0, |category| category.symbols.len())
                };
                let count = *markets.entry(asset.into()).or_insert_with(count);
                let turnover = quote.and_then(|quote| quote.ticker.quote_volume.clone());
                let rank = Reverse(match_rank(&selection.search, name));
                Some(Rank::Match(rank, count, Reverse(asset.into()), turnover))
            }
            _ if selection.descending => value.map(Rank::Descending),
            _ => value.map(|value| Rank::Ascending(Reverse(value))),
        };
        is_listed.then_some((rank, place, symbol))
    }
}

impl InParts for LongList {
    fn held(&self) -> usize {
        let held = |it: &Rows| {
            let symbols = it.symbols.len() * size_of::<SymbolId>();
            symbols + it.best.len() * size_of::<Ranked>() + it.body.held()
        };
        size_of::<LongList>() + self.rows.as_ref().map_or(0, held)
    }

    /// Begins the list. Begins it again if the catalog, or the values that decide the order, have changed
    /// since the last step. After `MAX_RESTARTS` the order stays, and each row is written with its values of
    /// that moment.
    fn step(&mut self, view: &View<'_>) -> Advance {
        let LongList { request, restarts, rows } = self;
        let (catalog, quotes) = request.versions(view);
        let is_same = |it: &Rows| {
            it.versions.0 == catalog && (it.versions.1 == quotes || *restarts > MAX_RESTARTS)
        };
        if !rows.as_ref().is_some_and(is_same) {
            *rows = request.begin(view);
            *restarts = restarts.saturating_add(1);
        }
        let Some(rows) = rows else {
            return Advance::Done;
        };
        if !rows.look(view, request) {
            return Advance::More;
        }
        let piece = request.selection.as_ref().map_or(0..usize::MAX, Selection::piece);
        for _ in 0..ROWS_A_PART {
            let Some(symbol) = rows.next().filter(|_| rows.taken < piece.end) else {
                return Advance::Done;
            };
            if rows.taken >= piece.start {
                rows.write(view, request, symbol);
            }
            rows.taken += 1;
            if rows.body.cut() {
                break;
            }
        }
        let is_empty = rows.symbols.len() == 0 && rows.best.is_empty();
        if is_empty || rows.taken == piece.end { Advance::Done } else { Advance::More }
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Option<Deferred> {
        let LongList { request, rows, .. } = *self;
        let ListRequest { kind, selection, query, decimals } = &request;
        let Some(Rows { total, is_stale, mut body, .. }) = rows else {
            // The category has gone since it was asked for.
            let id = if let ListKind::Category(id) = kind { id } else { b"".as_slice() };
            return send_error(&no_category(id), responder);
        };
        body.fixed(match kind {
            ListKind::Quotes(_) => b"],\"errors\":[]}".as_slice(),
            ListKind::Category(_) => b"]}",
            ListKind::Ecosystem | ListKind::Found(_) => b"]",
        });
        let is_search = matches!(kind, ListKind::Found(_));
        let cache = match is_search {
            true => Cache::NoCache,
            false => view.until_any_poll_unless(is_stale),
        };
        let told = selection.as_ref().zip(total).filter(|_| !is_search);
        let fields = told.map(|(it, total)| it.fields(query, total)).unwrap_or_default();
        let head = Head { fields: fields.as_bytes(), ..Head::json(None, cache) };
        body.send(view, responder, head, decimals.variant(), request.cache_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Context;
    use crate::core::testing::{listing, request};
    use crate::http::{Output, Stamp};

    #[test]
    fn the_list_of_all_markets_is_made_only_for_who_lacks_it() {
        // More markets than one part has.
        let symbols: Vec<String> = (0..2 * ROWS_A_PART).map(|n| format!("A{n}/USDT")).collect();
        let mut cx = listing(&symbols, 0);
        let ask = |fields: &str, cx: &Context| {
            let raw = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let request = request(raw.as_bytes());
            let (view, stamp) = (View::new(cx), Stamp::new(7));
            let mut out = Output::default();
            let mut responder = Responder::new(&mut out, &stamp, &request, true);
            let (selection, query) = (None, b"".as_slice().into());
            let list = ListRequest {
                kind: ListKind::Ecosystem,
                selection,
                decimals: Decimals::Number,
                query,
            };
            let mut outcome = list.respond(&view, &mut responder).expect("a list");
            let mut is_made = false;
            if let Some(Deferred::InParts(mut rows)) = outcome {
                while rows.step(&view) != Advance::Done {
                    is_made = true;
                }
                outcome = rows.finish(&view, &mut responder);
            }
            let text = String::from_utf8_lossy(&out.to_vec()).into_owned();
            (outcome, text, is_made)
        };
        let (_, text, is_made) = ask("", &cx);
        assert!(text.starts_with("HTTP/1.1 200") && is_made);
        assert_eq!(text.matches("\"name\":").count(), 2 * ROWS_A_PART, "{text}");
        let tag = text.split("ETag: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let has = format!("If-None-Match: {}\r\n", tag.expect("a tag"));
        let (_, text, is_made) = ask(&has, &cx);
        assert!(text.starts_with("HTTP/1.1 304") && !is_made, "{text}");
        let gzip = "Accept-Encoding: gzip\r\n";
        let (outcome, _, is_made) = ask(gzip, &cx);
        let Some(Deferred::ToCompress(it)) = outcome else { panic!("it is to be compressed") };
        assert!(is_made);
        let client = crate::table::Table::new(1).insert(()).expect("room");
        cx.compressed.insert(it.key, it.tag, it.body, client);
        while cx.compressed.depth() > 0 {
            cx.compressed.step(|_| true);
        }
        let (_, text, is_made) = ask(gzip, &cx);
        assert!(text.contains("Content-Encoding: gzip") && !is_made, "{text}");
        let (_, text, is_made) = ask("If-Match: \"x\"\r\n", &cx);
        assert!(text.starts_with("HTTP/1.1 412") && is_made, "{text}");
    }
}
