//! `/api/v1/quotes/:symbol` and `/api/v1/quotes?symbols=...`.
//!
//! A quote's JSON is made at the first read after it has changed and kept with it: many quotes are
//! joined fragments.

use super::error::{Error, echo};
use super::list::LongList;
use super::outcome::Outcome;
use super::packed::{self, Question, Rows, ToPack};
use super::params::{self, Call};
use super::records::{ready, rendered};
use super::symbols::{answering, look_up, symbol_in_path, untracked};
use super::view::View;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, ETag, Head, Output, Responder};
use crate::json::{Decimals, Object};
use crate::market::{Quote, SourceId, SymbolId};

/// Which quote is asked for, and how it is to be written.
#[derive(Clone, Debug)]
pub struct Asked {
    symbol: SymbolId,
    source: Option<SourceId>,
    decimals: Decimals,
}

/// Reads a request for `/api/v1/quotes/:symbol`.
pub fn read(view: &View<'_>, call: &Call<'_>) -> Result<Asked, Error> {
    let query = call.query;
    let [decimals, source] = params::read(query, &["decimals", "source"])?;
    let decimals = params::decimals(&decimals)?;
    let source = params::source(view, &source)?;
    let symbol = symbol_in_path(view, call)?;
    Ok(Asked {
        symbol,
        source,
        decimals,
    })
}

/// Answers `/api/v1/quotes/:symbol`.
pub fn one(
    view: &View<'_>,
    asked: &Asked,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let Asked {
        symbol,
        source,
        decimals,
    } = *asked;
    let quote = find(view, symbol, source)?;
    let etag = ETag::of_version(view.boot, quote.version, decimals.variant());
    let cache = match quote.stale() {
        true => Cache::NoCache,
        false => view.until_poll(quote.source),
    };
    let head = Head::json(Some(etag), cache);
    with_fragment(view, quote, decimals, |fragment| {
        responder.send(&head, fragment)
    });
    Ok(Outcome::Answered)
}

/// Answers `/api/v1/quotes?symbols=...`.
pub fn many(
    view: &View<'_>,
    call: &Call<'_>,
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
    let query = call.query;
    let names = ["symbols", "decimals", "source"];
    let [symbols, decimals, source] = params::read(query, &names)?;
    let decimals = params::decimals(&decimals)?;
    let source = params::source(view, &source)?;
    let asked = symbols.ok_or_else(|| {
        let message = "\"symbols\" is required: a list like BTC/USDT,ETH/USDT, or *.";
        Error::bad("missing_parameter", "symbols", message)
    })?;
    if asked.trim_ascii() == b"*" {
        let list = LongList::new(view, Rows::Quotes(source), decimals);
        let list = list.expect("there is always a list of all quotes");
        return Ok(list.start(view, responder));
    }
    let batch = batch(view, &asked, source)?;
    let etag = view.tag(batch.made_of, decimals.variant());
    let fresh = batch.quotes.iter().all(|quote| !quote.stale());
    let cache = match fresh {
        true => view.until_any_poll(),
        false => Cache::NoCache,
    };
    let head = Head::json(Some(etag), cache);
    Ok(send_batch(view, &batch, (source, decimals), head, responder).into())
}

/// Quotes that were asked for together, in the order of their first appearance.
struct Batch<'v> {
    quotes: Vec<&'v Quote>,
    /// The `errors` member's items, ready and joined.
    errors: Vec<u8>,
    /// The quotes and the items.
    made_of: Fingerprint,
}

impl<'v> Batch<'v> {
    fn add(&mut self, quote: &'v Quote) {
        self.made_of.add(Part::Quote(quote.version));
        self.quotes.push(quote);
    }

    fn add_error(&mut self, asked: &[u8], error: &Error) {
        let begin = self.errors.len();
        write_item_error(&mut self.errors, asked, error);
        self.made_of.add(Part::Text(&self.errors[begin..]));
    }
}

fn batch<'v>(view: &View<'v>, asked: &[u8], source: Option<SourceId>) -> Result<Batch<'v>, Error> {
    let most = view.config.limits.symbols_per_request;
    let mut items: Vec<&[u8]> = Vec::with_capacity(most.min(64));
    let all = asked.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    items.extend(all.filter(|item| !item.is_empty()));
    let count = items.len();
    if count == 0 {
        let message = "\"symbols\" names no symbol.";
        return Err(Error::bad("empty_parameter", "symbols", message));
    }
    if count > most {
        let message = format!("\"symbols\" names {count} symbols; at most {most} are answered.");
        return Err(Error::bad("too_many_symbols", "symbols", message));
    }
    let mut seen: Vec<SymbolId> = Vec::with_capacity(count);
    let mut refused: Vec<&[u8]> = Vec::new();
    let mut batch = Batch {
        quotes: Vec::with_capacity(count),
        errors: Vec::new(),
        made_of: Fingerprint::new(),
    };
    for item in items {
        let error = match look_up(view, item) {
            Ok(symbol) if seen.contains(&symbol) => continue,
            Ok(symbol) => {
                seen.push(symbol);
                match find(view, symbol, source) {
                    Ok(quote) => {
                        batch.add(quote);
                        continue;
                    }
                    Err(error) => error,
                }
            }
            Err(_) if refused.contains(&item) => continue,
            Err(error) => error,
        };
        refused.push(item);
        batch.add_error(item, &error);
    }
    Ok(batch)
}

fn write_item_error(out: &mut Vec<u8>, asked: &[u8], error: &Error) {
    if !out.is_empty() {
        out.push(b',');
    }
    let mut object = Object::open(out);
    object.put("symbol", echo(asked).as_str());
    object.put("code", error.code);
    object.put("message", error.message.as_str());
    object.close();
}

fn send_batch(
    view: &View<'_>,
    batch: &Batch<'_>,
    (source, decimals): (Option<SourceId>, Decimals),
    head: Head<'_>,
    responder: &mut Responder<'_>,
) -> Option<ToPack> {
    const OPEN: &[u8] = b"{\"quotes\":[";
    const MIDDLE: &[u8] = b"],\"errors\":[";
    const CLOSE: &[u8] = b"]}";
    let made: Vec<Vec<u8>>;
    let fragments: Vec<&[u8]> = match decimals {
        Decimals::Number => batch
            .quotes
            .iter()
            .map(|quote| ready(view, quote))
            .collect(),
        Decimals::String => {
            made = (batch.quotes.iter())
                .map(|quote| rendered(view, quote, Decimals::String))
                .collect();
            made.iter().map(Vec::as_slice).collect()
        }
    };
    let commas = fragments.len().saturating_sub(1);
    let length = OPEN.len()
        + fragments
            .iter()
            .map(|fragment| fragment.len())
            .sum::<usize>()
        + commas
        + MIDDLE.len()
        + batch.errors.len()
        + CLOSE.len();
    let question = || Question::Quotes {
        symbols: batch.quotes.iter().map(|quote| quote.symbol).collect(),
        errors: batch.errors.as_slice().into(),
        source,
        decimals,
    };
    let write = |out: &mut Output| {
        let out = out.bytes();
        out.reserve(length);
        out.extend_from_slice(OPEN);
        for (at, fragment) in fragments.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(fragment);
        }
        out.extend_from_slice(MIDDLE);
        out.extend_from_slice(&batch.errors);
        out.extend_from_slice(CLOSE);
    };
    packed::send(view, responder, head, question, length, write)
}

/// The quote that answers for a symbol: of that source, or the first fresh one in the order of
/// failover.
fn find<'v>(
    view: &View<'v>,
    symbol: SymbolId,
    source: Option<SourceId>,
) -> Result<&'v Quote, Error> {
    let sources = view.market.catalog.sources_of(symbol);
    answering(view, symbol, source).ok_or_else(|| missing(view, symbol, source, sources))
}

/// Why there is no quote: not collected yet, or the exchange has none.
fn missing(
    view: &View<'_>,
    symbol: SymbolId,
    source: Option<SourceId>,
    sources: &[SourceId],
) -> Error {
    if let Some(error) = source.and_then(|source| untracked(view, symbol, source)) {
        return error;
    }
    let name = view.market.catalog.name(symbol).as_str();
    let polled = |source: &SourceId| view.status.sources[source.index()].quotes_polled;
    let settled = match source {
        Some(source) => polled(&source),
        None => sources.iter().all(polled),
    };
    let mut error = if settled {
        let message = format!("No source has a quote for \"{name}\".");
        Error::new(404, "quote_not_found", message)
    } else {
        let message = format!("No quote for \"{name}\" has been collected yet.");
        let mut error = Error::new(503, "quote_not_ready", message);
        error.retry_after = Some(1);
        error
    };
    error.param = Some("symbol");
    error
}

/// Gives the JSON of a quote to `use_it`, from the cache where that holds it.
fn with_fragment(view: &View<'_>, quote: &Quote, decimals: Decimals, use_it: impl FnOnce(&[u8])) {
    match decimals {
        Decimals::Number => use_it(ready(view, quote)),
        Decimals::String => use_it(&rendered(view, quote, Decimals::String)),
    }
}
