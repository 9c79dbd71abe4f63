//! Writing JSON: objects field by field, and long lists part by part.
//!
//! Answers are written straight into bytes: a list of thousands of markets is made a hundred
//! times a minute, and a tree of values would cost ten times as much.

use super::packed::{self, Question, ToPack};
use super::params::Decimals;
use super::{Long, Outcome, View, categories, ecosystem, quotes};
use crate::decimal::Decimal;
use crate::http::{Cache, ETag, Head, Responder, write_json_string};
use crate::market::{SourceId, SymbolId};
use crate::time::UnixMs;

/// Rows made in one part: some 0.2 ms.
const ROWS_A_PART: usize = 128;

/// One JSON object on its way into bytes.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    decimals: Decimals,
    first: bool,
}

impl<'a> Object<'a> {
    /// Opens an object.
    pub fn open(out: &'a mut Vec<u8>, decimals: Decimals) -> Object<'a> {
        out.push(b'{');
        Object {
            out,
            decimals,
            first: true,
        }
    }

    /// Writes a key; its value is the caller's to write.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A text that may need escaping.
    pub fn text(&mut self, key: &str, value: &str) {
        write_json_string(self.key(key), value.as_bytes());
    }

    /// A text, or null.
    pub fn maybe_text(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => self.null(key),
        }
    }

    /// A decimal, or null.
    pub fn decimal(&mut self, key: &str, value: Option<&Decimal>) {
        let decimals = self.decimals;
        write_decimal(self.key(key), value, decimals);
    }

    /// Milliseconds since the epoch, or null.
    pub fn time(&mut self, key: &str, value: Option<UnixMs>) {
        self.integer(key, value.map(|time| time.0));
    }

    /// An integer, or null.
    pub fn integer(&mut self, key: &str, value: Option<i64>) {
        match value {
            Some(value) => write_integer(self.key(key), value),
            None => self.null(key),
        }
    }

    /// True, false or null.
    pub fn boolean(&mut self, key: &str, value: Option<bool>) {
        let text: &[u8] = match value {
            Some(true) => b"true",
            Some(false) => b"false",
            None => b"null",
        };
        self.key(key).extend_from_slice(text);
    }

    /// Null.
    pub fn null(&mut self, key: &str) {
        self.key(key).extend_from_slice(b"null");
    }

    /// An object inside.
    pub fn object(&mut self, key: &str) -> Object<'_> {
        let decimals = self.decimals;
        Object::open(self.key(key), decimals)
    }

    /// Closes the object.
    pub fn close(self) {
        self.out.push(b'}');
    }
}

/// A decimal as a number or a string, or null.
pub fn write_decimal(out: &mut Vec<u8>, value: Option<&Decimal>, decimals: Decimals) {
    match (value, decimals) {
        (None, _) => out.extend_from_slice(b"null"),
        (Some(value), Decimals::Number) => value.write(out),
        (Some(value), Decimals::String) => {
            out.push(b'"');
            value.write(out);
            out.push(b'"');
        }
    }
}

/// Appends an integer: without the standard formatter, which takes ten times as long.
pub fn write_integer(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A list of texts.
pub fn write_texts<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json_string(out, text.as_bytes());
    }
    out.push(b']');
}

/// Mixes one more version into that of an answer made of many: another order or other versions
/// give another number, but for one chance in 2^64.
pub fn mix(versions: u64, version: u64) -> u64 {
    (versions ^ version)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
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

/// A list of any length, made part by part. Its entity tag is made of the versions of what was
/// written, so that it names exactly these bytes.
#[derive(Debug)]
pub struct LongList {
    rows: Rows,
    decimals: Decimals,
    symbols: Vec<SymbolId>,
    next: usize,
    written: usize,
    version: u64,
    stale: bool,
    body: Vec<u8>,
}

impl LongList {
    /// The list of these rows, as the catalog has them now.
    pub fn new(view: &View<'_>, rows: Rows, decimals: Decimals) -> LongList {
        let catalog = &view.market.catalog;
        let mut body = Vec::new();
        let symbols = match &rows {
            Rows::Quotes(_) => {
                body.extend_from_slice(b"{\"quotes\":[");
                catalog.known().to_vec()
            }
            Rows::Category(id) => match catalog.category(id.as_bytes()) {
                Some(category) => {
                    body.extend_from_slice(b"{\"category\":");
                    categories::write_category(&mut body, category);
                    body.extend_from_slice(b",\"markets\":[");
                    category.symbols.clone()
                }
                None => Vec::new(),
            },
            Rows::Ecosystem => {
                body.push(b'[');
                catalog.ecosystem().to_vec()
            }
        };
        LongList {
            rows,
            decimals,
            symbols,
            next: 0,
            written: 0,
            version: mix(0, catalog.version()),
            stale: false,
            body,
        }
    }

    /// Answers at once when the first part is all of it.
    pub fn start(mut self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        if self.step(view) {
            return self.finish(view, responder).into();
        }
        Outcome::Later(Long::List(Box::new(self)))
    }

    /// Makes one part. `true`: that was the last one.
    pub fn step(&mut self, view: &View<'_>) -> bool {
        let end = self.symbols.len().min(self.next + ROWS_A_PART);
        for at in self.next..end {
            let symbol = self.symbols[at];
            let begin = self.body.len();
            if self.written > 0 {
                self.body.push(b',');
            }
            if self.write_row(view, symbol) {
                self.written += 1;
            } else {
                self.body.truncate(begin);
            }
        }
        self.next = end;
        end == self.symbols.len()
    }

    /// Writes one row. `false`: there is none for this symbol.
    fn write_row(&mut self, view: &View<'_>, symbol: SymbolId) -> bool {
        let catalog = &view.market.catalog;
        let best = || {
            let sources = catalog.sources_of(symbol);
            match &self.rows {
                Rows::Quotes(Some(source)) => view.market.quotes.of(*source, symbol),
                _ => view.market.quotes.best(sources, symbol),
            }
        };
        match &self.rows {
            Rows::Quotes(_) => {
                let Some(quote) = best() else {
                    return false;
                };
                self.version = mix(self.version, quote.version);
                self.stale |= quote.stale();
                match self.decimals {
                    Decimals::Number => self.body.extend_from_slice(quotes::ready(view, quote)),
                    Decimals::String => {
                        let made = quotes::rendered(view, quote, Decimals::String);
                        self.body.extend_from_slice(&made);
                    }
                }
            }
            Rows::Category(_) => {
                let quote = best();
                self.version = mix(self.version, quote.map_or(0, |quote| quote.version));
                self.stale |= quote.is_some_and(|quote| quote.stale());
                categories::write_market(&mut self.body, view, symbol, quote, self.decimals);
            }
            Rows::Ecosystem => {
                let entry = catalog.ecosystem_entry(symbol);
                let Some(entry) = entry.filter(|entry| entry.status) else {
                    return false;
                };
                let mut object = Object::open(&mut self.body, self.decimals);
                ecosystem::write_item(&mut object, view, &entry);
                object.close();
            }
        }
        true
    }

    /// Sends the list, unless it is to be packed first.
    pub fn finish(mut self, view: &View<'_>, responder: &mut Responder<'_>) -> Option<ToPack> {
        self.body.extend_from_slice(match self.rows {
            Rows::Quotes(_) => b"],\"errors\":[]}".as_slice(),
            Rows::Category(_) => b"]}",
            Rows::Ecosystem => b"]",
        });
        let etag = ETag {
            boot: view.boot,
            version: self.version,
            variant: self.decimals.variant(),
        };
        let cache = match self.stale {
            true => Cache::NoCache,
            false => view.until_any_poll(),
        };
        let LongList {
            rows,
            decimals,
            body,
            ..
        } = self;
        packed::send(
            view,
            responder,
            Head::json(Some(etag), cache),
            || Question::List(rows, decimals),
            body.len(),
            |out| out.give(body),
        )
    }
}
