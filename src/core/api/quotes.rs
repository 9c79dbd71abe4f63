//! `/api/v1/quotes/:symbol` and `/api/v1/quotes?symbols=...`.
//!
//! A quote's JSON is made at the first request after the quote has changed, and kept with it. The response
//! with many quotes joins these fragments.

use super::choice::Choice;
use super::compressed_cache::{CacheKey, ListKind};
use super::compression;
use super::error::{Error, write_item_error};
use super::list::LongList;
use super::outcome::Outcome;
use super::params::{Call, decimals};
use super::records::fragment;
use super::symbols::{look_up, served_quote, symbol_in_path, symbol_list, untracked};
use super::view::View;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, ETag, Head, Responder};
use crate::json::Decimals;
use crate::market::{Quote, SourceId, SymbolId};

/// A request for one quote.
#[derive(Clone, Debug)]
pub struct AskedQuote {
    symbol: SymbolId,
    source: Option<SourceId>,
    decimals: Decimals,
}

/// Reads a request for `/api/v1/quotes/:symbol`.
pub fn prepare(call: &Call<'_>) -> Result<AskedQuote, Error> {
    let [style, source] = call.params(["decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, call.source(&source)?);
    let symbol = symbol_in_path(call)?;
    Ok(AskedQuote { symbol, source, decimals })
}

/// Responds to `/api/v1/quotes/:symbol`.
pub fn one(
    view: &View<'_>,
    asked: &AskedQuote,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let AskedQuote { symbol, source, decimals } = *asked;
    let quote = find(view, symbol, source)?;
    let etag = ETag::new(quote.version, decimals.variant());
    let cache = match quote.stale() {
        true => Cache::NoCache,
        false => view.until_poll(quote.source),
    };
    let head = Head::json(Some(etag), cache);
    responder.send(&head, &fragment(view, quote, decimals));
    Ok(Outcome::Sent)
}

/// A request for several quotes.
#[derive(Clone, Debug)]
pub struct AskedList {
    wanted: Wanted,
    source: Option<SourceId>,
    decimals: Decimals,
}

#[derive(Clone, Debug)]
enum Wanted {
    /// What is chosen of all quotes.
    All(Option<Choice>),
    Named(Names),
}

/// The names in a list, each once, in the order of their first appearance.
#[derive(Clone, Debug)]
struct Names {
    /// All of them, joined.
    text: Vec<u8>,
    names: Vec<Name>,
}

/// A name in a list.
#[derive(Clone, Debug)]
struct Name {
    /// Where in the text it is.
    begin: u32,
    end: u32,
    /// `None` if the catalog does not know it.
    symbol: Option<SymbolId>,
}

/// Reads a request for `/api/v1/quotes?symbols=...`.
pub fn read_list(call: &Call<'_>) -> Result<Box<AskedList>, Error> {
    let [symbols, style, source] = call.params(["symbols", "decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, call.source(&source)?);
    let asked = symbols.ok_or_else(|| {
        let message = "\"symbols\" is required: a list like BTC/USDT,ETH/USDT, or *.";
        Error::bad("missing_parameter", "symbols", message)
    })?;
    let wanted = match asked.trim_ascii() {
        b"*" => Wanted::All(Choice::read(call)?),
        names => Wanted::Named(Names::read(call.view, names)?),
    };
    Ok(Box::new(AskedList { wanted, source, decimals }))
}

impl Names {
    fn read(view: &View<'_>, text: &[u8]) -> Result<Names, Error> {
        let all = symbol_list(text, view.config.limits.symbols_per_request)?;
        let mut names =
            Names { text: Vec::with_capacity(text.len()), names: Vec::with_capacity(all.len()) };
        for name in all {
            names.add(name, look_up(view, name).ok());
        }
        Ok(names)
    }

    fn add(&mut self, name: &[u8], symbol: Option<SymbolId>) {
        let is_same = |other: &Name| match symbol {
            Some(_) => other.symbol == symbol,
            None => other.text(&self.text) == name,
        };
        if self.names.iter().any(is_same) {
            return;
        }
        let begin = self.text.len() as u32;
        self.text.extend_from_slice(name);
        let end = self.text.len() as u32;
        self.names.push(Name { begin, end, symbol });
    }
}

impl Name {
    fn text<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.begin as usize..self.end as usize]
    }
}

/// Responds to `/api/v1/quotes?symbols=...`.
pub fn many(
    view: &View<'_>,
    asked: &AskedList,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let (source, decimals) = (asked.source, asked.decimals);
    let names = match &asked.wanted {
        Wanted::Named(names) => names,
        Wanted::All(choice) => {
            let choice = choice.as_ref().map(Choice::anew);
            let list = LongList::new(view, ListKind::Quotes(source), choice, decimals);
            let list = list.expect("there is always a list of all quotes");
            return Ok(list.start(view, responder));
        }
    };
    let batch = Batch::new(view, names, source);
    let etag = view.tag(batch.made_of, decimals.variant());
    let fresh = batch.quotes.iter().all(|quote| !quote.stale());
    let cache = match fresh {
        true => view.until_any_poll(),
        false => Cache::NoCache,
    };
    let head = Head::json(Some(etag), cache);
    let form = (source, decimals);
    Ok(send_batch(view, &batch, form, head, responder))
}

/// Quotes that are asked for together, in the order of their first appearance.
struct Batch<'v> {
    quotes: Vec<&'v Quote>,
    /// The items of the member `errors`, joined.
    errors: Vec<u8>,
    /// The fingerprint of both.
    made_of: Fingerprint,
}

impl<'v> Batch<'v> {
    fn new(view: &View<'v>, asked: &Names, source: Option<SourceId>) -> Batch<'v> {
        let mut batch = Batch {
            quotes: Vec::with_capacity(asked.names.len()),
            errors: Vec::new(),
            made_of: Fingerprint::new(),
        };
        for name in &asked.names {
            let text = name.text(&asked.text);
            let symbol = name.symbol.map_or_else(|| look_up(view, text), Ok);
            match symbol.and_then(|symbol| find(view, symbol, source)) {
                Ok(quote) => {
                    batch.made_of.add(Part::Quote(quote.version));
                    batch.quotes.push(quote);
                }
                Err(error) => batch.add_error(text, &error),
            }
        }
        batch
    }

    fn add_error(&mut self, asked: &[u8], error: &Error) {
        let begin = self.errors.len();
        write_item_error(&mut self.errors, asked, error);
        self.made_of.add(Part::Text(&self.errors[begin..]));
    }
}

fn send_batch(
    view: &View<'_>,
    batch: &Batch<'_>,
    (source, decimals): (Option<SourceId>, Decimals),
    head: Head<'_>,
    responder: &mut Responder<'_>,
) -> Outcome {
    const OPEN: &[u8] = b"{\"quotes\":[";
    const MIDDLE: &[u8] = b"],\"errors\":[";
    const CLOSE: &[u8] = b"]}";
    let fragments = || {
        let quotes = batch.quotes.iter();
        quotes.map(|quote| fragment(view, quote, decimals))
    };
    let write = |out: &mut Vec<u8>| {
        out.extend_from_slice(OPEN);
        for (at, fragment) in fragments().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&fragment);
        }
        out.extend_from_slice(MIDDLE);
        out.extend_from_slice(&batch.errors);
        out.extend_from_slice(CLOSE);
    };
    let key = || CacheKey::Quotes {
        symbols: batch.quotes.iter().map(|quote| quote.symbol).collect(),
        errors: batch.errors.as_slice().into(),
        source,
        decimals,
    };
    // These fragments are not kept, so they are made once.
    if decimals == Decimals::String {
        let mut body = Vec::new();
        write(&mut body);
        return compression::send_bytes(view, responder, head, key, body);
    }
    let frame = OPEN.len() + MIDDLE.len() + batch.errors.len() + CLOSE.len();
    let commas = batch.quotes.len().saturating_sub(1);
    let length = frame + commas + fragments().map(|it| it.len()).sum::<usize>();
    compression::send(view, responder, head, key, length, |out| {
        let out = out.bytes();
        out.reserve(length);
        write(out);
    })
}

/// The quote that is served for a symbol, or why there is none.
fn find<'v>(
    view: &View<'v>,
    symbol: SymbolId,
    source: Option<SourceId>,
) -> Result<&'v Quote, Error> {
    served_quote(view, symbol, source).ok_or_else(|| missing(view, symbol, source))
}

/// Why there is no quote: not collected yet, or the exchange has none.
fn missing(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> Error {
    if let Some(error) = source.and_then(|source| untracked(view, symbol, source)) {
        return error;
    }
    let catalog = &view.market.catalog;
    let name = catalog.name(symbol).as_str();
    let polled = |source: &SourceId| {
        view.status[*source].quotes_polled && !view.market.quotes.is_awaited(*source, symbol)
    };
    let settled = match source {
        Some(source) => polled(&source),
        None => catalog.sources_of(symbol).iter().all(polled),
    };
    let error = if settled {
        let message = format!("No source has a quote for \"{name}\".");
        Error::new(404, "quote_not_found", message)
    } else {
        let message = format!("No quote for \"{name}\" has been collected yet.");
        Error::new(503, "quote_not_ready", message).retry_after(1)
    };
    error.about("symbol")
}
