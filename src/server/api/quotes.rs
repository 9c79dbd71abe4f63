//! `/api/v1/quotes/:symbol` and `/api/v1/quotes?symbols=...`.
//!
//! A quote's JSON is made at the first read after it has changed and kept with it: many quotes are
//! joined fragments.

use super::error::echo;
use super::packed::{self, Question, ToPack};
use super::params;
use super::write::{LongList, Rows};
use super::{Error, Outcome, View};
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, ETag, Head, Output, Responder, decode_segment};
use crate::json::{Decimals, Object};
use crate::market::{Lookup, Quote, SourceId, SymbolId};
use std::borrow::Cow;

/// Which quote is asked for, and how it is to be written.
#[derive(Clone, Debug)]
pub struct Asked {
    symbol: SymbolId,
    source: Option<SourceId>,
    decimals: Decimals,
}

/// Reads a request for `/api/v1/quotes/:symbol`. `path` is what follows the last fixed slash.
pub fn read(view: &View<'_>, path: &[u8], query: &[u8]) -> Result<Asked, Error> {
    let [decimals, source] = params::read(query, &["decimals", "source"])?;
    let decimals = params::decimals(&decimals)?;
    let source = params::source(view, &source)?;
    let symbol = symbol_in_path(view, path)?;
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
    query: &[u8],
    responder: &mut Responder<'_>,
) -> Result<Outcome, Error> {
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

/// The symbol that a path names: one segment, or two of which each is one side of it, since
/// proxies decode `%2F`. Split first, then decoded, each segment once.
pub fn symbol_in_path(view: &View<'_>, path: &[u8]) -> Result<SymbolId, Error> {
    look_up(view, &path_text(path)?)
}

/// The text of one or two raw segments, decoded.
pub fn path_text(path: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    let plain = |byte: &u8| *byte != b'%' && *byte != b'/';
    if path.iter().all(plain) {
        return Ok(Cow::Borrowed(path));
    }
    let decode = |raw| decode_segment(raw).map_err(|_| invalid(path));
    let mut segments = path.splitn(3, |byte| *byte == b'/');
    let first = decode(segments.next().unwrap_or_default())?;
    let Some(second) = segments.next() else {
        return Ok(first);
    };
    if segments.next().is_some() {
        return Err(Error::not_found(path));
    }
    let second = decode(second)?;
    if first.contains(&b'/') || second.contains(&b'/') {
        return Err(invalid(path));
    }
    Ok(Cow::Owned([&first, &b"/"[..], &second].concat()))
}

/// The symbol of a decoded text, in any accepted form.
pub fn look_up(view: &View<'_>, text: &[u8]) -> Result<SymbolId, Error> {
    match view.market.catalog.find(text) {
        Lookup::Known(symbol) => Ok(symbol),
        Lookup::Unknown => {
            let message = format!("Unknown symbol \"{}\".", echo(text));
            let mut error = Error::new(404, "symbol_not_found", message);
            error.param = Some("symbol");
            Err(error)
        }
        Lookup::Malformed => Err(invalid(text)),
    }
}

fn invalid(text: &[u8]) -> Error {
    let message = format!(
        "\"{}\" is no symbol: expected BASE/QUOTE, BASE-QUOTE, BASE_QUOTE or BASEQUOTE, letters \
         and digits, at most 20 each.",
        echo(text)
    );
    Error::bad("invalid_symbol", "symbol", message)
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

/// The same, where there may be none.
pub fn answering<'v>(
    view: &View<'v>,
    symbol: SymbolId,
    source: Option<SourceId>,
) -> Option<&'v Quote> {
    let sources = view.market.catalog.sources_of(symbol);
    match source {
        // What it has told of a market that it does not list any more leaves piece by piece.
        Some(source) if !sources.contains(&source) => None,
        Some(source) => view.market.quotes.of(source, symbol),
        None => view.market.quotes.best(sources, symbol),
    }
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

/// What is said where a source is asked for a symbol that others track, and it does not. `None`: it
/// does, or its list of markets has not come yet and may say so.
pub fn untracked(view: &View<'_>, symbol: SymbolId, source: SourceId) -> Option<Error> {
    let catalog = &view.market.catalog;
    let tracks = catalog.sources_of(symbol).contains(&source);
    if tracks || catalog.may_track(source, symbol) {
        return None;
    }
    let id = &view.config.sources[source.index()].id;
    let name = catalog.name(symbol).as_str();
    let message = format!("Source \"{id}\" does not track \"{name}\".");
    let mut error = Error::new(404, "symbol_not_found", message);
    error.param = Some("source");
    Some(error)
}

/// Gives the JSON of a quote to `use_it`, from the cache where that holds it.
fn with_fragment(view: &View<'_>, quote: &Quote, decimals: Decimals, use_it: impl FnOnce(&[u8])) {
    match decimals {
        Decimals::Number => use_it(ready(view, quote)),
        Decimals::String => use_it(&rendered(view, quote, Decimals::String)),
    }
}

/// The JSON of a quote with decimals as numbers: made once for each change.
pub fn ready<'v>(view: &View<'_>, quote: &'v Quote) -> &'v [u8] {
    quote.rendered(|quote| rendered(view, quote, Decimals::Number).into_boxed_slice())
}

/// The JSON of a quote.
pub fn rendered(view: &View<'_>, quote: &Quote, decimals: Decimals) -> Vec<u8> {
    let mut out = Vec::with_capacity(448);
    let name = view.market.catalog.name(quote.symbol);
    let source = &view.config.sources[quote.source.index()].id;
    let ticker = &quote.ticker;
    let mut object = Object::open(&mut out);
    object.put("symbol", name.as_str());
    object.put("base", name.base());
    object.put("quote", name.quote());
    object.put("source", source.as_str());
    object.put("last", decimals.value(Some(&ticker.last)));
    object.put("bid", decimals.value(ticker.bid.as_ref()));
    object.put("ask", decimals.value(ticker.ask.as_ref()));
    object.put("bidVolume", decimals.value(ticker.bid_volume.as_ref()));
    object.put("askVolume", decimals.value(ticker.ask_volume.as_ref()));
    object.put("open", decimals.value(ticker.open.as_ref()));
    object.put("high", decimals.value(ticker.high.as_ref()));
    object.put("low", decimals.value(ticker.low.as_ref()));
    object.put("change", decimals.value(ticker.change.as_ref()));
    object.put("percentage", decimals.value(ticker.percentage.as_ref()));
    object.put("baseVolume", decimals.value(ticker.base_volume.as_ref()));
    object.put("quoteVolume", decimals.value(ticker.quote_volume.as_ref()));
    object.put("timestamp", ticker.timestamp);
    object.put("receivedAt", quote.received_at);
    object.put("stale", quote.stale());
    object.close();
    out
}
