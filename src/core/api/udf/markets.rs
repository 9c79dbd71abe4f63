//! `/udf/symbols` and `/udf/quotes`: a market as a charting library wants it, and the quotes of some.

use crate::core::api::body::Body;
use crate::core::api::compressed_cache::CacheKey;
use crate::core::api::error::Error;
use crate::core::api::outcome::Outcome;
use crate::core::api::params::{Call, ParamValue};
use crate::core::api::symbols::{look_up, served_quote, symbol_list, untracked};
use crate::core::api::view::View;
use crate::decimal::Decimal;
use crate::http::{Cache, Responder};
use crate::interval::{Interval, Stored};
use crate::json::{Decimals, List, Object, Ready, json, members};
use crate::market::{Quote, SourceId, SymbolId};

/// The type of all markets.
pub const TYPE: &str = "crypto";

/// Digits behind the point of a price scale that still fits an integer.
const MOST_PLACES: u32 = 18;

/// Digits behind the point where neither the exchange nor a quote tells.
const DEFAULT_PLACES: u32 = 8;

/// A market, and the source that a client has named before it: `SOURCE:BASE/QUOTE`.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub symbol: SymbolId,
    pub source: Option<SourceId>,
}

/// Finds a market by its symbol or its ticker, which may name a source.
pub fn find(view: &View<'_>, text: &[u8]) -> Result<Named, Error> {
    let text = text.trim_ascii();
    let colon = text.iter().position(|byte| *byte == b':');
    let parts = colon.map(|at| (&text[..at], &text[at + 1..]));
    let source = parts.and_then(|(id, _)| view.source(&id.to_ascii_lowercase()));
    let symbol = match (parts, source) {
        (Some((_, symbol)), Some(_)) => symbol,
        _ => text,
    };
    let symbol = look_up(view, symbol)?;
    match source.and_then(|source| untracked(view, symbol, source)) {
        Some(error) => Err(error),
        None => Ok(Named { symbol, source }),
    }
}

/// The parameter `symbol`.
pub fn read_symbol(view: &View<'_>, value: &ParamValue<'_>) -> Result<Named, Error> {
    let missing = || Error::bad("missing_parameter", "symbol", "\"symbol\" is required.");
    find(view, value.as_deref().ok_or_else(missing)?)
}

/// The id of the source that a client has named, or else of the first one with the market.
fn exchange<'v>(view: &View<'v>, named: Named) -> &'v str {
    let first = view.market.catalog.sources_of(named.symbol).first();
    let source = named.source.as_ref().or(first);
    source.map_or("", |source| view.id_of(*source))
}

/// Writes what a result of a search and a market have in common.
pub fn write_names(object: &mut Object<'_>, view: &View<'_>, named: Named) {
    let name = view.market.catalog.name(named.symbol);
    let id = exchange(view, named);
    let full_name = format!("{id}:{}", name.as_str());
    let ticker = match named.source {
        Some(_) => full_name.as_str(),
        None => name.as_str(),
    };
    members!(object,
        "symbol": name.as_str(),
        "ticker": ticker,
        "full_name": full_name.as_str(),
        "description": format!("{} / {}", name.base(), name.quote()).as_str(),
        "exchange": id,
        "type": TYPE,
    );
}

/// Responds to `/udf/symbols`.
pub fn symbols(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    let [value] = call.params(["symbol"])?;
    let named = read_symbol(view, &value)?;
    let catalog = &view.market.catalog;
    let name = catalog.name(named.symbol);
    let entry = catalog.ecosystem_entry(named.symbol);
    let rules = entry.map(|entry| entry.rules).unwrap_or_default();
    let quote = served_quote(view, named.symbol, named.source);
    let price_places = match (rules.price_places, quote) {
        (Some(places), _) => u32::from(places),
        (None, Some(quote)) => places_of(quote),
        (None, None) => DEFAULT_PLACES,
    };
    let volume_places = rules.amount_places.map_or(DEFAULT_PLACES, u32::from);
    let sources = match &named.source {
        Some(source) => std::slice::from_ref(source),
        None => catalog.sources_of(named.symbol),
    };
    let of = |is_listed: fn(&Interval) -> bool| {
        let listed = view.intervals(sources).filter(is_listed);
        listed.map(Interval::resolution)
    };
    let is_intraday = |it: &Interval| it.base() != Stored::D1;
    let has_days = of(|it| it.base() == Stored::D1).next().is_some();
    let mut text = Vec::with_capacity(1024);
    let mut object = Object::open(&mut text);
    object.put("name", name.as_str());
    write_names(&mut object, view, named);
    members!(object,
        "listed_exchange": exchange(view, named),
        "currency_code": name.quote(),
        "session": "24x7",
        "timezone": "Etc/UTC",
        "format": "price",
        "minmov": 1u64,
        "pricescale": 10u64.pow(price_places.min(MOST_PLACES)),
        "volume_precision": u64::from(volume_places),
        "has_intraday": of(is_intraday).next().is_some(),
        "has_daily": has_days,
        "has_weekly_and_monthly": has_days,
        "intraday_multipliers": List(of(is_intraday)),
        "daily_multipliers": List(["1", "3"]),
        "weekly_multipliers": List(["1"]),
        "monthly_multipliers": List(["1"]),
        "supported_resolutions": List(of(|_| true)),
        "data_status": "streaming",
    );
    object.close();
    let key = CacheKey::of("/udf/symbols", ());
    Ok(Body::of(&text).send(responder, view, (b'u', Cache::NoCache), key))
}

/// The most digits behind the point of a quote's prices.
fn places_of(quote: &Quote) -> u32 {
    let ticker = &quote.ticker;
    let prices = [&ticker.bid, &ticker.ask, &ticker.high, &ticker.low];
    let prices = prices.into_iter().flatten().chain([&ticker.last]);
    prices.map(Decimal::places).max().unwrap_or(DEFAULT_PLACES)
}

/// Responds to `/udf/quotes`.
pub fn quotes(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let view = call.view;
    let [symbols] = call.params(["symbols"])?;
    let list = symbols.unwrap_or_default();
    let items = symbol_list(&list, view.config.limits.symbols_per_request)?;
    let mut body = Body::default();
    body.fixed(b"{\"s\":\"ok\",\"d\":[");
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            body.fixed(b",");
        }
        let quote = find(view, item).and_then(|named| {
            let quote = served_quote(view, named.symbol, named.source);
            quote.ok_or_else(|| {
                Error::new(404, "quote_not_found", "No quote has been collected yet.")
            })
        });
        let mut text = Vec::with_capacity(512);
        match quote {
            Ok(quote) => write_quote(&mut text, view, item, quote),
            Err(error) => {
                let message = error.message.as_str();
                json!(&mut text, { "s": "error", "n": item, "errmsg": message, "v": Ready(b"{}") });
            }
        }
        body.text(&text);
    }
    body.fixed(b"]}");
    let form = (b'u', view.until_any_poll());
    let key = CacheKey::of("/udf/quotes", ());
    Ok(body.send(responder, view, form, key))
}

fn write_quote(out: &mut Vec<u8>, view: &View<'_>, item: &[u8], quote: &Quote) {
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
