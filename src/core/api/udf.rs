//! `/udf/...`: TradingView's protocol for data feeds (UDF), as the adapter of its charting library speaks it.
//!
//! Times are in seconds. An error is `{"s":"error","errmsg":...}` with status 200, because the adapter reads
//! nothing else. Candles, quotes and symbols are the same as at the other addresses, digit for digit.
//!
//! `/udf/symbols` describes a market as a charting library wants it. `/udf/quotes` has the quotes of some
//! markets. `/udf/search` lists the markets whose symbols contain a text: the best match first, then the
//! quote asset with the most markets, then by turnover.

use crate::core::api::body::Body;
use crate::core::api::list::ListRequest;
use crate::core::api::outcome::{Deferred, Outcome, Prepared as _};
use crate::core::api::quotes::served;
use crate::core::api::records::{TYPE, exchange, write_names};
use crate::core::api::request::ApiRequest;
use crate::core::api::selection::Selection;
use crate::core::api::view::{ParamValue, View, count, items, look_up, required};
use crate::core::compressed_cache::CacheKey;
use crate::decimal::Decimal;
use crate::http::{Cache, ContentType, Error, Head, Responder};
use crate::interval::{Interval, Stored};
use crate::json::{Decimals, List, Object, Ready, Value, json, members};
use crate::market::{Quote, SourceId, SymbolId};

pub mod history;

/// The variant of all tags.
pub const VARIANT: u8 = b'u';

/// Responds to `/udf/config`: what this feed can do.
pub fn config(_: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let mut text = Vec::with_capacity(1024);
    let sources = view.status.running().map(|(_, source)| &*source.id);
    let kind =
        |(name, value)| move |out: &mut Vec<u8>| json!(out, { "name": name, "value": value });
    json!(&mut text, {
        "supports_search": true,
        "supports_group_request": false,
        "supports_marks": false,
        "supports_timescale_marks": false,
        "supports_time": true,
        "exchanges": List(std::iter::once("").chain(sources).map(as_exchange)),
        "symbols_types": List([("All types", ""), ("Crypto", TYPE)].map(kind)),
        "supported_resolutions": List(Interval::ALL.map(Interval::resolution)),
    });
    Ok(send(view, responder, Cache::NoCache, CacheKey::new("/udf/config", ()), &text))
}

/// The value of a parameter. A library sends the parameters that it does not need without a value.
pub fn given(value: ParamValue<'_>) -> ParamValue<'_> {
    value.filter(|text| !text.trim_ascii().is_empty())
}

/// Sends a text.
pub fn send(
    view: &View<'_>,
    responder: &mut Responder<'_>,
    cache: Cache,
    key: CacheKey,
    text: &[u8],
) -> Option<Deferred> {
    Body::from_text(text).send(view, responder, Head::json(None, cache), VARIANT, key)
}

/// An exchange as the library lists it. The empty id stands for all exchanges.
fn as_exchange(id: &str) -> impl Value {
    move |out: &mut Vec<u8>| {
        let name = if id.is_empty() { "All exchanges" } else { id };
        json!(out, { "value": id, "name": name, "desc": id });
    }
}

/// Responds to `/udf/time`: the time in seconds.
pub fn time(_: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let seconds = view.now().unix.0.div_euclid(1000).to_string();
    let head = Head { content_type: ContentType::TEXT, ..Head::json(None, Cache::NoStore) };
    responder.send(&head, seconds.as_bytes());
    Ok(None)
}

/// Digits behind the point of the largest price scale below 2^53: scripts round greater integers.
const MOST_PLACES: u32 = 15;

/// Digits behind the point if neither the exchange nor a quote tells.
const DEFAULT_PLACES: u32 = 8;

/// A market, and the source that a client has named before it: `SOURCE:BASE/QUOTE`.
pub type MarketOfSource = (SymbolId, Option<SourceId>);

/// Finds a market by its symbol or its ticker, which may name a source.
pub fn find(view: &View<'_>, text: &[u8]) -> Result<MarketOfSource, Error> {
    let text = text.trim_ascii();
    let colon = text.iter().position(|byte| *byte == b':');
    let source = colon.and_then(|at| view.source(&text[..at].to_ascii_lowercase()));
    // Without a source, a colon belongs to the symbol, which is then malformed.
    let begin = colon.filter(|_| source.is_some()).map_or(0, |at| at + 1);
    let symbol = look_up(view, &text[begin..])?;
    view.check_tracked(symbol, source)?;
    Ok((symbol, source))
}

/// The parameter `symbol`.
pub fn read_symbol(view: &View<'_>, value: &ParamValue<'_>) -> Result<MarketOfSource, Error> {
    find(view, required(value, "symbol", "a market like BTC/USDT")?)
}

/// Responds to `/udf/symbols`.
pub fn symbols(call: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let [value] = call.params(["symbol"])?.map(given);
    let (symbol, source) = read_symbol(view, &value)?;
    let catalog = &view.market.catalog;
    let name = catalog.name(symbol);
    // A configured rule replaces the exchanges', and not that of a source which is named.
    let entry = catalog.ecosystem_entry(symbol).filter(|_| source.is_none());
    let listed = || catalog.rules(symbol, view.sources_for(symbol, &source)).cloned();
    let rules = entry.map(|entry| entry.rules).or_else(listed).unwrap_or_default();
    let quote = view.served_quote(symbol, source);
    let price_places = match (rules.price_places, quote) {
        (Some(places), _) => u32::from(places),
        (None, Some(quote)) => places_of(quote),
        (None, None) => DEFAULT_PLACES,
    };
    let volume_places = rules.amount_places.map_or(DEFAULT_PLACES, u32::from);
    let intervals = view.intervals(view.sources_for(symbol, &source));
    let (days, intraday): (Vec<_>, Vec<_>) = intervals.partition(|it| it.base() == Stored::D1);
    let resolutions = |of: Vec<Interval>| of.into_iter().map(Interval::resolution);
    let has_days = !days.is_empty();
    let mut text = Vec::with_capacity(1024);
    let mut object = Object::open(&mut text);
    object.put("name", name.as_str());
    write_names(&mut object, view, symbol, source);
    members!(object,
        "listed_exchange": exchange(view, symbol, source),
        "currency_code": name.quote(),
        "session": "24x7",
        "timezone": "Etc/UTC",
        "format": "price",
        "minmov": 1u64,
        "pricescale": 10u64.pow(price_places.min(MOST_PLACES)),
        "volume_precision": u64::from(volume_places),
        "has_intraday": !intraday.is_empty(),
        "has_daily": has_days,
        "has_weekly_and_monthly": has_days,
        "intraday_multipliers": List(resolutions(intraday.clone())),
        "daily_multipliers": List(["1", "3"]),
        "weekly_multipliers": List(["1"]),
        "monthly_multipliers": List(["1"]),
        "supported_resolutions": List(resolutions([intraday, days].concat())),
        "data_status": "streaming",
    );
    object.close();
    let key = CacheKey::new("/udf/symbols", (symbol, source));
    Ok(send(view, responder, Cache::NoCache, key, &text))
}

/// The most digits behind the point of a quote's prices.
fn places_of(quote: &Quote) -> u32 {
    let ticker = &quote.ticker;
    let prices = [&ticker.bid, &ticker.ask, &ticker.high, &ticker.low];
    let prices = prices.into_iter().flatten().chain([&ticker.last]);
    prices.map(Decimal::places).max().unwrap_or(DEFAULT_PLACES)
}

/// Responds to `/udf/quotes`.
pub fn quotes(call: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let [symbols] = call.params(["symbols"])?.map(given);
    let list = required(&symbols, "symbols", "a list like BTC/USDT,ETH/USDT")?;
    let items = items(list, "symbols", view.config.limits.symbols_per_request)?;
    let mut text = Vec::with_capacity(512 * items.len());
    let find = |item| find(view, item).and_then(|(symbol, source)| served(view, symbol, source));
    let found: Vec<_> = items.into_iter().map(|item| (item, find(item))).collect();
    let is_stale = found.iter().any(|(_, quote)| quote.as_ref().is_ok_and(|it| it.stale()));
    let quotes = found.iter().map(|(item, quote)| {
        move |out: &mut Vec<u8>| write_quote(out, view, item, quote.as_ref().copied())
    });
    json!(&mut text, { "s": "ok", "d": List(quotes) });
    let cache = view.until_any_poll_unless(is_stale);
    Ok(send(view, responder, cache, CacheKey::new("/udf/quotes", list), &text))
}

/// Writes the quote of the market that `item` names, or why there is none.
fn write_quote(out: &mut Vec<u8>, view: &View<'_>, item: &[u8], quote: Result<&Quote, &Error>) {
    let quote = match quote {
        Ok(quote) => quote,
        Err(error) => {
            let message = &*error.message;
            return json!(out, { "s": "error", "n": item, "errmsg": message, "v": Ready(b"{}") });
        }
    };
    let name = view.market.catalog.name(quote.symbol);
    let ticker = &quote.ticker;
    let spread =
        (ticker.ask.as_ref().zip(ticker.bid.as_ref())).and_then(|(ask, bid)| ask.checked_sub(bid));
    let decimals = Decimals::Number;
    json!(out, {
        "s": "ok",
        "n": item,
        "v": {
            "lp": decimals.value(&ticker.last),
            "ch": decimals.value(&ticker.change),
            "chp": decimals.value(&ticker.percentage),
            "bid": decimals.value(&ticker.bid),
            "ask": decimals.value(&ticker.ask),
            "spread": decimals.value(&spread),
            "open_price": decimals.value(&ticker.open),
            "high_price": decimals.value(&ticker.high),
            "low_price": decimals.value(&ticker.low),
            "prev_close_price": decimals.value(&ticker.open),
            "volume": decimals.value(&ticker.base_volume),
            "short_name": name.as_str(),
            "exchange": view.id_of(quote.source),
            "description": name.as_str(),
        },
    });
}

/// The most results: some screens.
const MAX_RESULTS: usize = 200;

/// The most results if the client does not say how many it wants.
const DEFAULT_RESULTS: usize = 30;

/// Responds to `/udf/search`.
pub fn search(call: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let [query, kind, exchange, limit] =
        call.params(["query", "type", "exchange", "limit"])?.map(given);
    let limit = count(&limit, Error::bad("invalid_limit", "limit", ""), 1..=usize::MAX)?;
    let source = exchange.map(|id| view.source(&id.to_ascii_lowercase()));
    // There is no other type, and nothing on an exchange that is not configured.
    let is_empty = kind.is_some_and(|kind| *kind != *TYPE.as_bytes()) || source == Some(None);
    let limit = if is_empty { 0 } else { limit.unwrap_or(DEFAULT_RESULTS).min(MAX_RESULTS) };
    let search = Selection::needle(query.as_deref().unwrap_or_default());
    let found = Selection { limit: Some(limit), search, ..Selection::default() };
    ListRequest::found(source.flatten(), found).respond(view, responder)
}
