//! `/udf/...`: TradingView's protocol for data feeds (UDF), as the adapter of its charting library speaks it.
//!
//! Times are in seconds. What cannot be answered is `{"s":"error","errmsg":...}` with status 200, because the
//! adapter reads nothing else. Candles, quotes and symbols are those of the other addresses, digit for digit.

mod history;
mod markets;
mod search;

use super::compressed_cache::CacheKey;
use super::error::Error;
use super::list::Body;
use super::outcome::Outcome;
use super::params::Call;
use crate::http::{Cache, ContentType, Head, Responder};
use crate::interval::Interval;
use crate::json::Object;
pub use history::history;
pub use markets::{quotes, symbols};
pub use search::search;

/// Responds to `/udf/config`: what this feed can do.
pub fn config(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let mut text = Vec::with_capacity(1024);
    let mut object = Object::open(&mut text);
    for (feature, is_there) in [
        ("supports_search", true),
        ("supports_group_request", false),
        ("supports_marks", false),
        ("supports_timescale_marks", false),
        ("supports_time", true),
    ] {
        object.put(feature, is_there);
    }
    let mut exchanges = object.array("exchanges");
    let sources = call.view.status.running().map(|(_, source)| &*source.id);
    for id in std::iter::once("").chain(sources) {
        let mut exchange = exchanges.object();
        exchange.put("value", id);
        exchange.put("name", if id.is_empty() { "All exchanges" } else { id });
        exchange.put("desc", id);
        exchange.close();
    }
    exchanges.close();
    let mut types = object.array("symbols_types");
    for (name, value) in [("All types", ""), ("Crypto", markets::TYPE)] {
        let mut kind = types.object();
        kind.put("name", name);
        kind.put("value", value);
        kind.close();
    }
    types.close();
    let resolutions = Interval::ALL.map(Interval::resolution);
    object.list("supported_resolutions", resolutions);
    object.close();
    let key = CacheKey::of("/udf/config", ());
    Ok(Body::of(&text).send(responder, call.view, (b'u', Cache::NoCache), key))
}

/// Responds to `/udf/time`: the time in seconds.
pub fn time(call: &Call<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
    let seconds = call.view.now.unix.0.div_euclid(1000).to_string();
    let head = Head { content_type: ContentType::Text, ..Head::json(None, Cache::NoStore) };
    responder.send(&head, seconds.as_bytes());
    Ok(Outcome::Sent)
}
