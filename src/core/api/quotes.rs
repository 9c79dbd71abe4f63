//! `/api/v1/quotes/:symbol` and `/api/v1/quotes?symbols=...`.
//!
//! A quote's JSON is made at the first request after the quote has changed, and kept with it. The response
//! with many quotes joins these fragments.

use super::body;
use super::choice::{Choice, ListKind};
use super::compressed_cache::CacheKey;
use super::error::{Error, write_item_error};
use super::list::LongList;
use super::outcome::{Outcome, Prepared};
use super::params::{ApiRequest, decimals};
use super::records::fragment;
use super::symbols::{NamedMarkets, look_up, path_text, served_quote, untracked};
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
pub fn prepare(call: &ApiRequest<'_>) -> Result<Box<dyn Prepared>, Error> {
    let [style, source] = call.params(["decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, call.source(&source)?);
    let symbol = look_up(call.view, &path_text(call)?)?;
    Ok(Box::new(AskedQuote { symbol, source, decimals }))
}

impl Prepared for AskedQuote {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
        let AskedQuote { symbol, source, decimals } = *self;
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
    Named(NamedMarkets),
}

/// Reads a request for `/api/v1/quotes?symbols=...`.
pub fn prepare_list(call: &ApiRequest<'_>) -> Result<Box<dyn Prepared>, Error> {
    let [symbols, style, source] = call.params(["symbols", "decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, call.source(&source)?);
    let asked = symbols.ok_or_else(|| {
        let message = "\"symbols\" is required: a list like BTC/USDT,ETH/USDT, or *.";
        Error::bad("missing_parameter", "symbols", message)
    })?;
    let most = call.view.config.limits.symbols_per_request;
    let wanted = match asked.trim_ascii() {
        b"*" => Wanted::All(Choice::read(call)?),
        names => Wanted::Named(NamedMarkets::read(call.view, names, most)?),
    };
    Ok(Box::new(AskedList { wanted, source, decimals }))
}

impl Prepared for AskedList {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
        match &self.wanted {
            Wanted::Named(markets) => {
                let batch = Batch::new(view, markets, self.source);
                Ok(batch.send(view, self.source, self.decimals, responder))
            }
            Wanted::All(choice) => {
                let choice = choice.as_ref().map(Choice::anew);
                let rows = ListKind::Quotes(self.source);
                let list = LongList::new(view, rows, choice, self.decimals);
                let list = list.expect("there is always a list of all quotes");
                Ok(list.start(view, responder))
            }
        }
    }
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
    fn new(view: &View<'v>, markets: &NamedMarkets, source: Option<SourceId>) -> Batch<'v> {
        let quotes = Vec::with_capacity(markets.len());
        let mut batch = Batch { quotes, errors: Vec::new(), made_of: Fingerprint::new() };
        for (name, symbol) in markets.look_up(view) {
            match symbol.and_then(|symbol| find(view, symbol, source)) {
                Ok(quote) => {
                    batch.made_of.add(Part::Quote(quote.version));
                    batch.quotes.push(quote);
                }
                Err(error) => {
                    let begin = batch.errors.len();
                    write_item_error(&mut batch.errors, name, &error);
                    batch.made_of.add(Part::Text(&batch.errors[begin..]));
                }
            }
        }
        batch
    }

    fn send(
        &self,
        view: &View<'_>,
        source: Option<SourceId>,
        decimals: Decimals,
        responder: &mut Responder<'_>,
    ) -> Outcome {
        let etag = view.tag(self.made_of, decimals.variant());
        let cache = view.until_any_poll_unless(self.quotes.iter().any(|quote| quote.stale()));
        let head = Head::json(Some(etag), cache);
        const OPEN: &[u8] = b"{\"quotes\":[";
        const MIDDLE: &[u8] = b"],\"errors\":[";
        const CLOSE: &[u8] = b"]}";
        let fragments = || {
            let quotes = self.quotes.iter();
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
            out.extend_from_slice(&self.errors);
            out.extend_from_slice(CLOSE);
        };
        let key = || {
            let symbols: Vec<SymbolId> = self.quotes.iter().map(|quote| quote.symbol).collect();
            CacheKey::of("/api/v1/quotes", (symbols, &self.errors, source, decimals))
        };
        // These fragments are not kept, so they are made once.
        if decimals == Decimals::String {
            let mut body = Vec::new();
            write(&mut body);
            return body::send(view, responder, head, key, body.len(), |out| out.give(body));
        }
        let frame = OPEN.len() + MIDDLE.len() + self.errors.len() + CLOSE.len();
        let commas = self.quotes.len().saturating_sub(1);
        let length = frame + commas + fragments().map(|it| it.len()).sum::<usize>();
        body::send(view, responder, head, key, length, |out| {
            let out = out.bytes();
            out.reserve(length);
            write(out);
        })
    }
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
