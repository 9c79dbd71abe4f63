//! The rows of a long list that a client picks: `sort`, `order`, `limit`, `offset`, `search`.
//!
//! A [`Selection`] says which rows, in which order, and which piece of them. A [`Choice`] looks at some rows
//! a step. Those that match go into a heap, from which each step takes some: so thousands of rows are never
//! ranked in one piece, and twenty of them cost no more than they need.

use super::error::Error;
use super::params::{ApiRequest, ParamValue, count, either_word, none_of};
use super::symbols::served_quote;
use super::view::View;
use crate::decimal::Decimal;
use crate::market::{Quote, SourceId, SymbolId, SymbolName};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;

/// Rows of one step: some 0.1 ms.
const ROWS_A_STEP: usize = 512;

/// What a list lists.
#[derive(Clone, Debug, Hash)]
pub enum ListKind {
    /// All known quotes, of one source or of the best source of each symbol.
    Quotes(Option<SourceId>),
    /// The markets of a category, by its id.
    Category(Box<str>),
    /// The active markets of the ecosystem.
    Ecosystem,
}

/// The rows that a selection picks, in the making.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub selection: Selection,
    /// The query that has asked for it.
    query: Box<[u8]>,
    /// How many rows were looked at.
    seen: usize,
    matching: BinaryHeap<Ranked>,
    /// How many match; known when all were looked at.
    pub total: usize,
    /// Those that were taken from the heap, with the rows that are passed over.
    taken: Vec<SymbolId>,
    pub is_done: bool,
}

/// A row, by what decides its place: the greatest comes first. A row without a value comes last.
type Ranked = (Option<Rank>, Reverse<usize>, SymbolId);

/// The value of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Ascending(Reverse<Decimal>),
    Descending(Decimal),
}

impl Choice {
    /// What a request picks. `None` if it says nothing about that.
    pub fn read(call: &ApiRequest<'_>) -> Result<Option<Choice>, Error> {
        let params = call.params(["sort", "order", "limit", "offset", "search"])?;
        if params.iter().all(Option::is_none) {
            return Ok(None);
        }
        let [sort, order, limit, offset, search] = params;
        let sort = read_sort(&sort)?;
        let orders = [("asc", false), ("desc", true)];
        let descending = either_word(&order, Error::bad("invalid_order", "order", ""), orders)?;
        let limit = count(&limit, Error::bad("invalid_limit", "limit", ""), 1..=usize::MAX)?;
        let offset = count(&offset, Error::bad("invalid_offset", "offset", ""), 0..=usize::MAX)?;
        let selection = Selection {
            // An order without a value is that of the symbols.
            sort: sort.or(descending.map(|_| Sort::Symbol)),
            descending: descending == Some(true),
            limit,
            offset: offset.unwrap_or(0),
            search: Selection::needle(search.as_deref().unwrap_or_default()),
        };
        Ok(Some(Choice { selection, query: call.request.query.into(), ..Choice::default() }))
    }

    /// The same choice, not begun.
    pub fn anew(&self) -> Choice {
        let (selection, query) = (self.selection.clone(), self.query.clone());
        Choice { selection, query, ..Choice::default() }
    }

    /// The fields of the response.
    pub fn fields(&self) -> String {
        self.selection.fields(&self.query, self.total)
    }

    /// Looks at some of these rows, or takes some that match. Once there are no more, only those that are
    /// chosen are left of the rows.
    pub fn step(&mut self, view: &View<'_>, rows: &ListKind, symbols: &mut Vec<SymbolId>) {
        if self.seen < symbols.len() {
            let end = symbols.len().min(self.seen + ROWS_A_STEP);
            for (place, symbol) in symbols.iter().enumerate().take(end).skip(self.seen) {
                self.look_at(view, rows, *symbol, place);
            }
            self.seen = end;
            self.total = self.matching.len();
            if end < symbols.len() {
                return;
            }
        }
        let Selection { offset, limit, .. } = self.selection;
        let wanted = offset.saturating_add(limit.unwrap_or(usize::MAX));
        for _ in 0..ROWS_A_STEP.min(wanted - self.taken.len()) {
            let next = self.matching.pop();
            self.taken.extend(next.map(|(_, _, symbol)| symbol));
        }
        self.is_done = self.matching.is_empty() || self.taken.len() == wanted;
        if self.is_done {
            *symbols = self.taken.split_off(offset.min(self.taken.len()));
        }
    }

    /// Keeps a row if there is one for the symbol, and it matches.
    fn look_at(&mut self, view: &View<'_>, rows: &ListKind, symbol: SymbolId, place: usize) {
        let catalog = &view.market.catalog;
        let selection = &self.selection;
        if !selection.search.is_empty() && !find(&selection.search, catalog.name(symbol)) {
            return;
        }
        let source = match rows {
            ListKind::Quotes(source) => *source,
            ListKind::Category(_) | ListKind::Ecosystem => None,
        };
        let quote = served_quote(view, symbol, source);
        let is_listed = match rows {
            ListKind::Quotes(_) => quote.is_some(),
            ListKind::Category(_) => true,
            ListKind::Ecosystem => (catalog.ecosystem_entry(symbol)).is_some_and(|it| it.status),
        };
        if !is_listed {
            return;
        }
        let sort = selection.sort.unwrap_or(Sort::Symbol);
        let value = quote.and_then(|quote| sort.value(quote)).cloned();
        let rank = value.map(|value| match selection.descending {
            true => Rank::Descending(value),
            false => Rank::Ascending(Reverse(value)),
        });
        // Only between symbols is the order of equal values turned.
        let place = match selection.descending && sort == Sort::Symbol {
            true => usize::MAX - place,
            false => place,
        };
        self.matching.push((rank, Reverse(place), symbol));
    }
}

fn read_sort(value: &ParamValue<'_>) -> Result<Option<Sort>, Error> {
    let sort = |text: &[u8]| {
        let found = Sort::NAMES.into_iter().find(|(name, _)| name.as_bytes() == text);
        let names = Sort::NAMES.map(|(name, _)| name);
        found
            .map(|(_, sort)| sort)
            .ok_or_else(|| none_of(text, Error::bad("invalid_sort", "sort", ""), names))
    };
    value.as_deref().map(sort).transpose()
}

/// What a client picks of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The order; by default that of the list.
    pub sort: Option<Sort>,
    /// The greatest value comes first.
    pub descending: bool,
    /// The most rows; by default all.
    pub limit: Option<usize>,
    /// How many rows are passed over.
    pub offset: usize,
    /// A part of the symbols, in upper case; by default all.
    pub search: Box<[u8]>,
}

/// What a list is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// The canonical symbol.
    Symbol,
    /// The last price.
    Last,
    /// The change in percent.
    Percentage,
    /// The volume of the last day, in the quote asset.
    QuoteVolume,
}

impl Sort {
    /// Each with its name.
    pub const NAMES: [(&str, Sort); 4] = [
        ("symbol", Sort::Symbol),
        ("last", Sort::Last),
        ("percentage", Sort::Percentage),
        ("quoteVolume", Sort::QuoteVolume),
    ];

    /// The value of a quote. `None` if it is not known, or if the symbol alone counts.
    pub fn value(self, quote: &Quote) -> Option<&Decimal> {
        match self {
            Sort::Symbol => None,
            Sort::Last => Some(&quote.ticker.last),
            Sort::Percentage => quote.ticker.percentage.as_ref(),
            Sort::QuoteVolume => quote.ticker.quote_volume.as_ref(),
        }
    }
}

impl Selection {
    /// What is to be found in symbols: upper case, with a slash for each separator.
    pub fn needle(text: &[u8]) -> Box<[u8]> {
        let letter = |byte: &u8| match byte {
            b'-' | b'_' => b'/',
            byte => byte.to_ascii_uppercase(),
        };
        text.trim_ascii().iter().map(letter).collect()
    }

    /// True if quotes decide the order.
    pub fn is_by_value(&self) -> bool {
        self.sort.is_some_and(|sort| sort != Sort::Symbol)
    }

    /// The fields of the response to a request with this query: how many rows match, and links to the
    /// other pieces (RFC 8288), which are relative, so that they hold under any base path.
    pub fn fields(&self, query: &[u8], total: usize) -> String {
        let mut fields =
            format!("Access-Control-Expose-Headers: X-Total-Count\r\nX-Total-Count: {total}\r\n");
        let Some(limit) = self.limit else {
            return fields;
        };
        let last = total.saturating_sub(1) / limit * limit;
        let previous = self.offset.saturating_sub(limit).min(last);
        let next = self.offset.saturating_add(limit);
        let kept = without_offset(query);
        let links = [
            ("first", Some(0)),
            ("prev", (self.offset > 0).then_some(previous)),
            ("next", (next < total).then_some(next)),
            ("last", Some(last)),
        ];
        let mut before = "Link: ";
        for (name, offset) in links {
            if let Some(offset) = offset {
                let link = write!(fields, "{before}<?{kept}offset={offset}>; rel=\"{name}\"");
                link.expect("a string takes everything");
                before = ", ";
            }
        }
        fields.push_str("\r\n");
        fields
    }
}

/// True if an upper-case text is a part of a symbol, or of its two assets without the slash.
pub fn find(needle: &[u8], name: &SymbolName) -> bool {
    let is_in = |text: &[u8]| memchr::memmem::find(text, needle).is_some();
    is_in(name.as_str().as_bytes())
        || (needle.len() > 1 && is_in([name.base(), name.quote()].concat().as_bytes()))
}

/// The pairs of a query but for `offset`, each with its ampersand, percent-encoded.
fn without_offset(query: &[u8]) -> String {
    let mut kept = String::with_capacity(query.len() + 16);
    let pairs = query.split(|byte| *byte == b'&');
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        if pair.split(|byte| *byte == b'=').next() == Some(b"offset") {
            continue;
        }
        for byte in pair {
            // What RFC 3986 lets stand in a query, and the escapes that are there already.
            match byte.is_ascii_alphanumeric() || b"-._~!$'()*+,;:@/?=%".contains(byte) {
                true => kept.push(char::from(*byte)),
                false => write!(kept, "%{byte:02X}").expect("a string takes everything"),
            }
        }
        kept.push('&');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_other_pieces_and_keep_the_other_parameters() {
        let check = |offset: usize, limit: Option<usize>, total: usize, expected: &str| {
            let selection = Selection { offset, limit, ..Selection::default() };
            let query = b"symbols=*&off=1&offset=7&limit=10&search=a%2Fb\"<";
            let fields = selection.fields(query, total);
            let links = fields.split_once("Link: ").map_or("", |(_, links)| links);
            let pieces = links.split(", ").map(|link| {
                let (target, relation) = link.split_once(">; rel=").unwrap_or((link, ""));
                let kept = "<?symbols=*&off=1&limit=10&search=a%2Fb%22%3C&offset=";
                let offset = target.strip_prefix(kept).unwrap_or(target);
                format!("{}={offset}", relation.trim().trim_matches('"'))
            });
            let pieces: Vec<String> = pieces.collect();
            assert_eq!(pieces.join(" "), expected, "{offset} {limit:?} of {total}");
            assert!(fields.contains(&format!("X-Total-Count: {total}\r\n")));
        };
        check(0, None, 25, "=");
        check(0, Some(10), 25, "first=0 next=10 last=20");
        check(10, Some(10), 25, "first=0 prev=0 next=20 last=20");
        check(20, Some(10), 25, "first=0 prev=10 last=20");
        check(20, Some(10), 30, "first=0 prev=10 last=20");
        check(5, Some(10), 30, "first=0 prev=0 next=15 last=20");
        check(900, Some(10), 25, "first=0 prev=20 last=20");
        check(0, Some(10), 0, "first=0 last=0");
        check(usize::MAX, Some(usize::MAX), 3, "first=0 prev=0 last=0");
    }
}
