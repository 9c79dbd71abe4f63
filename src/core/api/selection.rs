//! What a client picks of a long list: `sort`, `order`, `limit`, `offset`, `search`.
//!
//! A [`Selection`] says which rows, in which order, and which piece of them; `list` looks at the rows.

use super::request::ApiRequest;
use super::view::{count, one_of};
use crate::decimal::Decimal;
use crate::http::{Error, query_pairs};
use crate::market::{Quote, SymbolName};
use std::ops::Range;

/// What a client picks of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The order; by default the order of the list.
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

impl Selection {
    /// What a request picks. `None` if it says nothing about that.
    pub fn read(call: &ApiRequest<'_>) -> Result<Option<Selection>, Error> {
        let params = call.params(["sort", "order", "limit", "offset", "search"])?;
        if params.iter().all(Option::is_none) {
            return Ok(None);
        }
        let [sort, order, limit, offset, search] = params;
        let sorts = [
            ("symbol", Sort::Symbol),
            ("last", Sort::Last),
            ("percentage", Sort::Percentage),
            ("quoteVolume", Sort::QuoteVolume),
        ];
        let sort = one_of(&sort, Error::bad("invalid_sort", "sort", ""), sorts)?;
        let orders = [("asc", false), ("desc", true)];
        let descending = one_of(&order, Error::bad("invalid_order", "order", ""), orders)?;
        let limit = count(&limit, Error::bad("invalid_limit", "limit", ""), 1..=usize::MAX)?;
        let offset = count(&offset, Error::bad("invalid_offset", "offset", ""), 0..=usize::MAX)?;
        Ok(Some(Selection {
            // An order without a value to sort by is the order of the symbols.
            sort: sort.or(descending.map(|_| Sort::Symbol)),
            descending: descending == Some(true),
            limit,
            offset: offset.unwrap_or(0),
            search: Selection::needle(search.as_deref().unwrap_or_default()),
        }))
    }

    /// The text to find in symbols: in upper case, with a slash for each separator.
    pub fn needle(text: &[u8]) -> Box<[u8]> {
        let letter = |byte: &u8| match byte {
            b'-' | b'_' => b'/',
            byte => byte.to_ascii_uppercase(),
        };
        text.trim_ascii().iter().map(letter).collect()
    }

    /// The rows that are shown, of those that match.
    pub fn piece(&self) -> Range<usize> {
        self.offset..self.offset.saturating_add(self.limit.unwrap_or(usize::MAX))
    }

    /// True if quotes decide the order.
    pub fn is_by_value(&self) -> bool {
        !matches!(self.sort, None | Some(Sort::Symbol))
    }

    /// The value that decides the place of a quote, if it is known.
    pub fn value<'q>(&self, quote: &'q Quote) -> Option<&'q Decimal> {
        match self.sort? {
            Sort::Symbol => None,
            Sort::Last => Some(&quote.ticker.last),
            Sort::Percentage => quote.ticker.percentage.as_ref(),
            Sort::QuoteVolume => quote.ticker.quote_volume.as_ref(),
        }
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
        let links = links.into_iter().filter_map(|(name, offset)| {
            Some(format!("<?{kept}offset={}>; rel=\"{name}\"", offset?))
        });
        fields += &format!("Link: {}\r\n", links.collect::<Vec<_>>().join(", "));
        fields
    }
}

/// True if an upper-case text is a part of a symbol, or of its two assets without the slash.
pub fn find(needle: &[u8], name: &SymbolName) -> bool {
    let is_in = |text: &[u8]| memchr::memmem::find(text, needle).is_some();
    needle.is_empty()
        || is_in(name.as_str().as_bytes())
        || (needle.len() > 1 && is_in([name.base(), name.quote()].concat().as_bytes()))
}

/// How well a symbol that has this part matches. Less is better.
pub fn match_rank(needle: &[u8], name: &SymbolName) -> u8 {
    let joined = [name.base(), name.quote()].concat();
    let text = if needle.contains(&b'/') { name.as_str() } else { &joined };
    match text.as_bytes() {
        _ if name.base().as_bytes() == needle => 0,
        text if text == needle => 0,
        text if text.starts_with(needle) => 1,
        _ => 2,
    }
}

/// The pairs of a query but for `offset`, each with its ampersand, percent-encoded.
fn without_offset(query: &[u8]) -> String {
    let mut kept = String::with_capacity(query.len() + 16);
    let pairs = query.split(|byte| *byte == b'&');
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        if query_pairs(pair).all(|(key, _)| *key == *b"offset") {
            continue;
        }
        for byte in pair {
            // What RFC 3986 lets stand in a query, and the escapes that are there already.
            if byte.is_ascii_alphanumeric() || b"-._~!$'()*+,;:@/?=%".contains(byte) {
                kept.push(char::from(*byte));
            } else {
                kept += &format!("%{byte:02X}");
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
            let query = b"symbols=*&off=1&offset=7&%6Fffset=7&limit=10&search=a%2Fb\"<";
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
