//! `/api/v1/quotes/:symbol` and `/api/v1/quotes?symbols=...`.
//!
//! A quote's JSON is made at the first request after the quote has changed, and kept with it. The response
//! with many quotes joins these fragments.

use super::body;
use super::list::{ListKind, ListRequest};
use super::outcome::{Outcome, Preparation, Prepared};
use super::records::{fragment, write_item_error};
use super::request::ApiRequest;
use super::view::{NamedMarket, View, decimals, look_up, read_markets, required};
use crate::core::compressed_cache::CacheKey;
use crate::fingerprint::{Fingerprint, Part};
use crate::http::{Cache, ETag, Error, Head, Responder};
use crate::json::Decimals;
use crate::market::{Quote, SourceId, SymbolId};

/// A request for one quote.
#[derive(Clone, Debug)]
pub struct QuoteRequest {
    symbol: SymbolId,
    source: Option<SourceId>,
    decimals: Decimals,
}

/// Reads a request for `/api/v1/quotes/:symbol`.
pub fn prepare(call: &ApiRequest<'_>, view: &View<'_>) -> Preparation {
    let [style, source] = call.params(["decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, view.named_source(&source)?);
    let symbol = look_up(view, &call.path_text()?)?;
    Ok(Box::new(QuoteRequest { symbol, source, decimals }))
}

impl Prepared for QuoteRequest {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        let QuoteRequest { symbol, source, decimals } = *self;
        let quote = served(view, symbol, source)?;
        let etag = ETag::new(quote.version, decimals.variant());
        let cache = match quote.stale() {
            true => Cache::NoCache,
            // Also a source that comes before may serve the next quote.
            false => view.until_poll(view.sources_for(symbol, &source).iter().copied()),
        };
        let head = Head::json(Some(etag), cache);
        responder.send(&head, &fragment(view, quote, decimals));
        Ok(None)
    }
}

/// A request for the quotes of some markets.
#[derive(Debug)]
pub struct QuotesRequest {
    markets: Box<[NamedMarket]>,
    source: Option<SourceId>,
    decimals: Decimals,
}

/// Reads a request for `/api/v1/quotes?symbols=...`.
pub fn prepare_list(call: &ApiRequest<'_>, view: &View<'_>) -> Preparation {
    let [symbols, style, source] = call.params(["symbols", "decimals", "source"])?;
    let (decimals, source) = (decimals(&style)?, view.named_source(&source)?);
    let most = view.config.limits.symbols_per_request;
    Ok(match required(&symbols, "symbols", "a list like BTC/USDT,ETH/USDT, or *")? {
        b"*" => Box::new(ListRequest::read(call, ListKind::Quotes(source))?),
        names => {
            let markets = read_markets(view, names, most)?;
            Box::new(QuotesRequest { markets, source, decimals })
        }
    })
}

impl Prepared for QuotesRequest {
    fn respond(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
        const OPEN: &[u8] = b"{\"quotes\":[";
        const MIDDLE: &[u8] = b"],\"errors\":[";
        const CLOSE: &[u8] = b"]}";
        let QuotesRequest { markets, source, decimals } = self;
        let mut quotes = Vec::with_capacity(markets.len());
        // The items of the member `errors`, joined.
        let mut errors = Vec::new();
        let mut made_of = Fingerprint::default();
        let mut is_stale = false;
        for (name, symbol) in markets {
            let symbol = symbol.map_or_else(|| look_up(view, name), Ok);
            match symbol.and_then(|symbol| served(view, symbol, *source)) {
                Ok(quote) => {
                    made_of.add(Part::Quote(quote.version));
                    is_stale |= quote.stale();
                    quotes.push((quote.symbol, fragment(view, quote, *decimals)));
                }
                Err(error) => {
                    let begin = errors.len();
                    write_item_error(&mut errors, name, &error);
                    made_of.add(Part::Text(&errors[begin..]));
                }
            }
        }
        let etag = ETag::new(made_of.number(), decimals.variant());
        let head = Head::json(Some(etag), view.until_any_poll_unless(is_stale));
        let frame = OPEN.len() + MIDDLE.len() + errors.len() + CLOSE.len();
        let commas = quotes.len().saturating_sub(1);
        let length = frame + commas + quotes.iter().map(|(_, json)| json.len()).sum::<usize>();
        let key = || {
            let symbols: Vec<SymbolId> = quotes.iter().map(|(symbol, _)| *symbol).collect();
            CacheKey::new("/api/v1/quotes", (symbols, &errors, source, decimals))
        };
        Ok(body::send(view, responder, head, key, length, |out| {
            let out = out.bytes();
            out.reserve(length);
            out.extend_from_slice(OPEN);
            for (at, (_, json)) in quotes.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(json);
            }
            out.extend_from_slice(MIDDLE);
            out.extend_from_slice(&errors);
            out.extend_from_slice(CLOSE);
        }))
    }
}

/// The quote that is served for a symbol, or why there is none.
pub fn served<'v>(
    view: &View<'v>,
    symbol: SymbolId,
    source: Option<SourceId>,
) -> Result<&'v Quote, Error> {
    view.served_quote(symbol, source).ok_or_else(|| missing(view, symbol, source))
}

/// Why there is no quote: not collected yet, or the exchange has none.
pub fn missing(view: &View<'_>, symbol: SymbolId, source: Option<SourceId>) -> Error {
    if let Err(error) = view.check_tracked(symbol, source) {
        return error;
    }
    let name = view.market.catalog.name(symbol).as_str();
    let polled = |source: &SourceId| {
        view.status[*source].quotes_polled && !view.market.quotes.is_awaited(*source, symbol)
    };
    let error = if view.sources_for(symbol, &source).iter().all(polled) {
        let message = format!("No source has a quote for \"{name}\".");
        Error::new(404, "quote_not_found", message)
    } else {
        let message = format!("No quote for \"{name}\" has been collected yet.");
        Error::new(503, "quote_not_ready", message).retry_after(1)
    };
    error.about("symbol")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Context;
    use crate::core::testing::{SOURCE, listing, request};
    use crate::http::{Output, Stamp};

    #[test]
    fn another_error_of_a_market_has_another_tag() {
        let mut cx = listing(&["A/USDT".to_string()], 0);
        let tag = |cx: &Context| {
            let (view, stamp) = (View::new(cx), Stamp::new(7));
            let request = request(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            let mut out = Output::default();
            let mut responder = Responder::new(&mut out, &stamp, &request, true);
            let markets = read_markets(&view, b"A/USDT", 1).expect("a market");
            let asked = QuotesRequest { markets, source: None, decimals: Decimals::Number };
            asked.respond(&view, &mut responder).expect("an error in the list");
            let text = String::from_utf8_lossy(&out.to_vec()).into_owned();
            let tag = text.split("ETag: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            (tag.expect("a tag").to_string(), text)
        };
        let (before, text) = tag(&cx);
        assert!(text.contains("\"quote_not_ready\""), "{text}");
        cx.stats[SOURCE].quotes_polled = true;
        let (after, text) = tag(&cx);
        assert!(text.contains("\"quote_not_found\"") && after != before, "{text}");
    }
}
