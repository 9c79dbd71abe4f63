//! `/udf/...`: TradingView's protocol for data feeds (UDF), as the adapter of its charting library speaks it.
//!
//! Times are in seconds. What cannot be answered is `{"s":"error","errmsg":...}` with status 200, because the
//! adapter reads nothing else. Candles, quotes and symbols are those of the other addresses, digit for digit.

pub mod history;
pub mod markets;

use crate::core::api::body::Body;
use crate::core::api::outcome::Outcome;
use crate::core::api::params::{ApiRequest, ParamValue};
use crate::core::api::view::View;
use crate::core::compressed_cache::CacheKey;
use crate::http::{Cache, ContentType, Error, Head, Responder};
use crate::interval::Interval;
use crate::json::{List, Value, json};

/// The type of all markets.
pub const TYPE: &str = "crypto";

/// The variant of all tags.
pub const VARIANT: u8 = b'u';

/// Responds to `/udf/config`: what this feed can do.
pub fn config(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let mut text = Vec::with_capacity(1024);
    let sources = call.view.status.running().map(|(_, source)| &*source.id);
    let kind =
        |(name, value)| move |out: &mut Vec<u8>| json!(out, { "name": name, "value": value });
    json!(&mut text, {
        "supports_search": true,
        "supports_group_request": false,
        "supports_marks": false,
        "supports_timescale_marks": false,
        "supports_time": true,
        "exchanges": List(std::iter::once("").chain(sources).map(exchange)),
        "symbols_types": List([("All types", ""), ("Crypto", TYPE)].map(kind)),
        "supported_resolutions": List(Interval::ALL.map(Interval::resolution)),
    });
    Ok(send(call.view, responder, Cache::NoCache, CacheKey::new("/udf/config", ()), &text))
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
) -> Outcome {
    Body::from_text(text).send(view, responder, Head::json(None, cache), VARIANT, key)
}

/// An exchange as the library lists them. The empty id stands for all exchanges.
fn exchange(id: &str) -> impl Value {
    move |out: &mut Vec<u8>| {
        let name = if id.is_empty() { "All exchanges" } else { id };
        json!(out, { "value": id, "name": name, "desc": id });
    }
}

/// Responds to `/udf/time`: the time in seconds.
pub fn time(call: &ApiRequest<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let seconds = call.view.now().unix.0.div_euclid(1000).to_string();
    let head = Head { content_type: ContentType::TEXT, ..Head::json(None, Cache::NoStore) };
    responder.send(&head, seconds.as_bytes());
    Ok(Outcome::Sent)
}
