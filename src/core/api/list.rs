//! Long lists, which are made in parts: all rows in their order, or those that a client picks.
//!
//! Rows that are picked go through a heap, into which each step puts some and from which later steps take
//! some: so thousands of rows are never ranked in one piece, and twenty of them cost no more than they need.

use super::body::{Body, send_kept};
use super::compressed_cache::CacheKey;
use super::error::{Error, echo};
use super::outcome::{Advance, Deferred, Outcome, Prepared, send_error};
use super::params::ApiRequest;
use super::records::{fragment, write_item, write_market};
use super::selection::{Selection, find};
use super::symbols::served_quote;
use super::view::View;
use crate::decimal::Decimal;
use crate::fingerprint::Part;
use crate::http::{Head, Responder};
use crate::json::{Decimals, Object, Value as _};
use crate::market::{Quote, SourceId, SymbolId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::vec;

/// Rows that are looked at in one part: some 0.1 ms.
const LOOKS_A_PART: usize = 512;

/// Rows that are written in one step: some 0.1 ms. It ends earlier once a part of the body is full.
const ROWS_A_PART: usize = 128;

/// How often a list is begun again because the catalog has changed. Market lists come once an hour, and a
/// list takes some turns.
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
}

impl Prepared for ListRequest {
    /// Responds at once if the first part is all of it. A longer list is not begun before its turn, since it
    /// takes memory for each row.
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
        let mut list = Box::new(LongList::new(self.clone()));
        let is_short = self.kind.len(view) <= ROWS_A_PART;
        // Nothing but the catalog decides what the list of all markets of the ecosystem says.
        if !is_short && matches!(self.kind, ListKind::Ecosystem) && self.selection.is_none() {
            let mut begun = LongList::new(self.clone());
            begun.begin(view);
            let head = Head::json(None, view.until_any_poll());
            let head = begun.body.tagged(head, self.decimals.variant());
            if send_kept(view, responder, head, || self.cache_key()) {
                return Ok(Outcome::Sent);
            }
        }
        if is_short && list.step(view) == Advance::Done {
            return Ok(list.finish(view, responder));
        }
        Ok(Outcome::Deferred(list))
    }
}

impl ListRequest {
    fn cache_key(&self) -> CacheKey {
        CacheKey::new("lists", (&self.kind, &self.selection, self.decimals))
    }
}

/// The error of a category that is not there.
pub fn no_category(id: &[u8]) -> Error {
    let message = format!("Unknown category \"{}\".", echo(id));
    Error::new(404, "category_not_found", message)
}

/// A row by what decides its place: the greatest comes first. A row without a value comes last; between equal
/// values the place in the list decides.
type Ranked = (Option<Rank>, usize, SymbolId);

/// The value of a row.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Ascending(Reverse<Decimal>),
    Descending(Decimal),
}

/// A list of any length, made in parts.
#[derive(Debug)]
struct LongList {
    request: ListRequest,
    /// The rows that are still to be written or, if some are to be picked, looked at.
    symbols: vec::IntoIter<SymbolId>,
    /// Those that may be picked.
    matching: BinaryHeap<Ranked>,
    /// How many match; `None` until all were looked at.
    total: Option<usize>,
    /// How many were taken, with those that are passed over.
    taken: usize,
    /// The versions that the symbols and their order are from; `None` before the first step.
    versions: Option<(u64, u64)>,
    restarts: u8,
    is_first: bool,
    stale: bool,
    body: Body,
}

impl LongList {
    /// A list that is not begun.
    fn new(request: ListRequest) -> LongList {
        LongList {
            request,
            symbols: Vec::new().into_iter(),
            matching: BinaryHeap::new(),
            total: None,
            taken: 0,
            versions: None,
            restarts: 0,
            is_first: true,
            stale: false,
            body: Body::default(),
        }
    }

    /// Begins the list as the catalog has it now. `None` if there is no such list.
    fn begin(&mut self, view: &View<'_>) -> Option<()> {
        let catalog = &view.market.catalog;
        let mut body = Body::default();
        let request = &self.request;
        let mut symbols = match &request.kind {
            ListKind::Quotes(_) => {
                body.fixed(b"{\"quotes\":[");
                catalog.known().to_vec()
            }
            ListKind::Category(id) => {
                let category = catalog.category(id)?;
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
        if request.selection.as_ref().is_some_and(|it| it.sort.is_some()) {
            symbols.sort_by(|one, other| catalog.name(*one).cmp(catalog.name(*other)));
        }
        let restarts = self.restarts;
        let symbols = symbols.into_iter();
        *self = LongList { symbols, restarts, body, ..LongList::new(self.request.clone()) };
        Some(())
    }

    /// Begins, and begins again if the catalog, or the values that decide the order, have changed since the
    /// last step. If the values have too often, each row is as it is when the row is made.
    fn watch(&mut self, view: &View<'_>) {
        let (catalog, quotes) = versions(view, &self.request);
        let is_same = |begun: (u64, u64)| {
            begun.0 == catalog && (begun.1 == quotes || self.restarts > MAX_RESTARTS)
        };
        if !self.versions.is_some_and(is_same) {
            self.versions = self.begin(view).map(|()| (catalog, quotes));
            self.restarts = self.restarts.saturating_add(1);
        }
    }

    /// Looks at some rows, if only some are picked. Returns true once all were looked at.
    fn look(&mut self, view: &View<'_>) -> bool {
        let Some(selection) = self.request.selection.as_ref().filter(|_| self.total.is_none())
        else {
            return true;
        };
        for _ in 0..LOOKS_A_PART {
            let place = self.symbols.len();
            let Some(symbol) = self.symbols.next() else {
                let total = self.matching.len();
                self.total = Some(total);
                self.body.part(Part::Text(&total.to_le_bytes()));
                return true;
            };
            self.matching.extend(self.request.kind.rank(view, selection, symbol, place));
        }
        false
    }

    /// Writes the row of a symbol, if there is one.
    fn write_row(&mut self, view: &View<'_>, symbol: SymbolId) {
        if self.total.is_some() {
            self.body.part(Part::Symbol(symbol.0));
        }
        let (catalog, decimals) = (&view.market.catalog, self.request.decimals);
        match &self.request.kind {
            kind @ ListKind::Quotes(_) => {
                let Some(quote) = kind.quote(view, symbol) else {
                    return;
                };
                self.stale |= quote.stale();
                self.body.part(Part::Quote(quote.version));
                let out = self.begin_row();
                out.extend_from_slice(&fragment(view, quote, decimals));
            }
            kind @ ListKind::Category(_) => {
                let quote = kind.quote(view, symbol);
                self.stale |= quote.is_some_and(Quote::stale);
                let shown = quote.map_or(Part::Nothing, |quote| Part::Quote(quote.version));
                self.body.part(shown);
                let out = self.begin_row();
                write_market(out, view, symbol, quote, decimals);
            }
            ListKind::Ecosystem => {
                let entry = catalog.ecosystem_entry(symbol);
                let Some(entry) = entry.filter(|entry| entry.status) else {
                    return;
                };
                let mut object = Object::open(self.begin_row());
                write_item(&mut object, view, &entry, decimals);
                object.close();
            }
        }
    }

    /// The place to write a row.
    fn begin_row(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.body.fixed(b",");
        }
        self.body.bytes()
    }
}

impl ListKind {
    /// The id of its category; empty if it is of none.
    fn id(&self) -> &[u8] {
        match self {
            ListKind::Category(id) => id,
            ListKind::Quotes(_) | ListKind::Ecosystem => b"",
        }
    }

    /// How many rows the list may have; 0 if there is no such list.
    fn len(&self, view: &View<'_>) -> usize {
        let catalog = &view.market.catalog;
        match self {
            ListKind::Quotes(_) => catalog.known().len(),
            ListKind::Category(id) => catalog.category(id).map_or(0, |it| it.symbols.len()),
            ListKind::Ecosystem => catalog.ecosystem().len(),
        }
    }

    /// The quote in the row of a symbol.
    fn quote<'v>(&self, view: &View<'v>, symbol: SymbolId) -> Option<&'v Quote> {
        let source = match self {
            ListKind::Quotes(source) => *source,
            ListKind::Category(_) | ListKind::Ecosystem => None,
        };
        served_quote(view, symbol, source)
    }

    /// The row of a symbol; `place` rows are left from it to the end, itself included. `None` if there is
    /// none, or it does not match.
    fn rank(
        &self,
        view: &View<'_>,
        selection: &Selection,
        symbol: SymbolId,
        place: usize,
    ) -> Option<Ranked> {
        let catalog = &view.market.catalog;
        if !find(&selection.search, catalog.name(symbol)) {
            return None;
        }
        let quote = self.quote(view, symbol);
        let is_listed = match self {
            ListKind::Quotes(_) => quote.is_some(),
            ListKind::Category(_) => true,
            ListKind::Ecosystem => (catalog.ecosystem_entry(symbol)).is_some_and(|it| it.status),
        };
        if !is_listed {
            return None;
        }
        let value = quote.and_then(|quote| selection.value(quote)).cloned();
        let rank = value.map(|value| {
            if selection.descending {
                Rank::Descending(value)
            } else {
                Rank::Ascending(Reverse(value))
            }
        });
        // Descending by symbol reverses the list. Descending by value keeps equal values in the order of
        // symbols.
        let place = if selection.descending && !selection.is_by_value() {
            usize::MAX - place
        } else {
            place
        };
        Some((rank, place, symbol))
    }
}

/// The versions of the catalog and, if they decide the order, of the quotes.
fn versions(view: &View<'_>, request: &ListRequest) -> (u64, u64) {
    let is_by_value = request.selection.as_ref().is_some_and(Selection::is_by_value);
    let quotes = if is_by_value { view.market.quotes.version() } else { 0 };
    (view.market.catalog.version(), quotes)
}

impl Deferred for LongList {
    fn held(&self) -> usize {
        let symbols = self.symbols.len() * size_of::<SymbolId>();
        let matching = self.matching.capacity() * size_of::<Ranked>();
        size_of::<LongList>() + symbols + matching + self.body.held()
    }

    fn step(&mut self, view: &View<'_>) -> Advance {
        self.watch(view);
        if self.versions.is_none() {
            return Advance::Done;
        }
        if !self.look(view) {
            return Advance::More;
        }
        let piece = self.request.selection.as_ref().map_or(0..usize::MAX, Selection::piece);
        for _ in 0..ROWS_A_PART {
            let next = match self.total {
                None => self.symbols.next(),
                Some(_) => self.matching.pop().map(|(_, _, symbol)| symbol),
            };
            let Some(symbol) = next.filter(|_| self.taken < piece.end) else {
                return Advance::Done;
            };
            if self.taken >= piece.start {
                self.write_row(view, symbol);
            }
            self.taken += 1;
            if self.body.cut() {
                break;
            }
        }
        let is_empty = match self.total {
            None => self.symbols.len() == 0,
            Some(_) => self.matching.is_empty(),
        };
        if is_empty || self.taken == piece.end { Advance::Done } else { Advance::More }
    }

    fn finish(self: Box<Self>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        if self.versions.is_none() {
            // A category that has gone since it was asked for.
            return send_error(&no_category(self.request.kind.id()), responder);
        }
        let LongList { request, total, stale, mut body, .. } = *self;
        let ListRequest { kind, selection, query, .. } = &request;
        body.fixed(match kind {
            ListKind::Quotes(_) => b"],\"errors\":[]}".as_slice(),
            ListKind::Category(_) => b"]}",
            ListKind::Ecosystem => b"]",
        });
        let fields = selection.as_ref().zip(total).map(|(it, total)| it.fields(query, total));
        let fields = fields.unwrap_or_default();
        let cache = view.until_any_poll_unless(stale);
        let head = Head { fields: fields.as_bytes(), ..Head::json(None, cache) };
        body.send(view, responder, head, request.decimals.variant(), request.cache_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Limits, SourceConfig};
    use crate::core::api::compressed_cache::CompressedBodies;
    use crate::core::{Context, Status};
    use crate::http::{HeadLimits, Output, Parsed, Stamp, parse};
    use crate::market::Market;
    use crate::market::testing::info;
    use crate::time::{Mono, Now, UnixMs};

    const SOURCE: SourceId = SourceId(0);

    /// More markets than one part has.
    fn context() -> Context {
        let now = Now { mono: Mono(1), unix: UnixMs(1) };
        let symbols: Vec<String> = (0..2 * ROWS_A_PART).map(|n| format!("A{n}/USDT")).collect();
        let source = SourceConfig { symbols: symbols.clone(), ..SourceConfig::new("binance") };
        let config = Config { sources: vec![source], ..Config::default() };
        let mut market = Market::new(&config);
        market.catalog.begin_list(SOURCE);
        symbols.iter().for_each(|symbol| market.catalog.list(SOURCE, info(symbol)));
        market.catalog.end_list(SOURCE).expect("a usable list");
        market.catalog.refresh_list(SOURCE, now.unix);
        let stats = Status::new(["binance"].into_iter(), now);
        Context::new(config, market, stats, now)
    }

    #[test]
    fn the_list_of_all_markets_is_made_only_for_who_lacks_it() {
        let cx = context();
        let mut compressed = CompressedBodies::new(1 << 20);
        let ask = |fields: &str, compressed: &CompressedBodies| {
            let raw = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let limits = HeadLimits::from(&Limits::default());
            let Ok(Parsed::Complete { request, .. }) = parse(raw.as_bytes(), &limits) else {
                panic!("a request");
            };
            let (view, stamp) = (View::new(&cx, compressed), Stamp::new(7));
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
            if let Outcome::Deferred(mut rows) = outcome {
                while rows.step(&view) != Advance::Done {
                    is_made = true;
                }
                outcome = rows.finish(&view, &mut responder);
            }
            let text = String::from_utf8_lossy(&out.pending().to_vec()).into_owned();
            (outcome, text, is_made)
        };
        let (_, text, is_made) = ask("", &compressed);
        assert!(text.starts_with("HTTP/1.1 200") && is_made);
        assert_eq!(text.matches("\"name\":").count(), 2 * ROWS_A_PART, "{text}");
        let tag = text.split("ETag: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let has = format!("If-None-Match: {}\r\n", tag.expect("a tag"));
        let (_, text, is_made) = ask(&has, &compressed);
        assert!(text.starts_with("HTTP/1.1 304") && !is_made, "{text}");
        let gzip = "Accept-Encoding: gzip\r\n";
        let (outcome, _, is_made) = ask(gzip, &compressed);
        let Outcome::ToCompress(it) = outcome else { panic!("it is to be compressed") };
        assert!(is_made);
        let client = crate::table::Table::new(1).insert(()).expect("room");
        compressed.insert(it.key, it.tag, it.body, client);
        while compressed.has_work() {
            compressed.step(|_| true);
        }
        let (_, text, is_made) = ask(gzip, &compressed);
        assert!(text.contains("Content-Encoding: gzip") && !is_made, "{text}");
        let (_, text, is_made) = ask("If-Match: \"x\"\r\n", &compressed);
        assert!(text.starts_with("HTTP/1.1 412") && is_made, "{text}");
    }
}
