//! The endpoints: which address means what, and the JSON that each answers with.
//!
//! Owns the wire format of every answer. It reads the market and the status, and changes neither:
//! read-only is a type here, [`View`]. What cannot be answered within one turn is handed back as a
//! [`Long`], to be made in parts.
//!
//! One file a family: [`quotes`], [`categories`], [`ecosystem`], [`chart`], [`metrics`], [`health`],
//! and `described`, which describes them. Most answers leave by way of `packed`.

pub mod categories;
pub mod chart;
mod described;
pub mod ecosystem;
mod error;
pub mod health;
pub mod metrics;
mod packed;
mod params;
pub mod quotes;
pub mod write;

pub use error::{Error, send_error};
pub use packed::{Packed, Question, ToPack};

use super::packing::Packing;
use super::{Endpoint, ProcessFacts, Service, Status};
use crate::config::Config;
use crate::fingerprint::Fingerprint;
use crate::http::{Cache, ETag, Head, Method, Request, Responder, normal_path};
use crate::market::{Market, SeriesKey, SourceId};
use crate::time::{Mono, Now};
use std::ops::Range;

/// What answers are made from.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Quotes, catalog and charts.
    pub market: &'a Market,
    /// Counters and the state of each source.
    pub status: &'a Status,
    /// Bodies in gzip.
    pub packing: &'a Packing,
    /// Tells the versions of this run from those of another.
    pub boot: u64,
    /// The time of this turn.
    pub now: Now,
    /// How to ask the system about the process.
    pub facts: Option<fn() -> ProcessFacts>,
}

/// What came of a request.
pub enum Outcome {
    /// It is answered.
    Answered,
    /// Its answer is made in parts.
    Later(Long),
    /// Its answer is packed before it is sent.
    Pack(Box<ToPack>),
}

impl From<Option<ToPack>> for Outcome {
    /// What is not handed back has been sent.
    fn from(to_pack: Option<ToPack>) -> Outcome {
        to_pack.map_or(Outcome::Answered, |it| Outcome::Pack(Box::new(it)))
    }
}

/// An answer that is made in parts.
pub enum Long {
    /// A chart that is rolled up, transformed or very long, or that waits for candles.
    Chart(Box<chart::LongChart>),
    /// A list of many quotes or markets.
    List(Box<write::LongList>),
    /// Any answer whose body is being packed.
    Packed(Box<Packed>),
}

impl Long {
    /// The candles that it waits for: of which series, which slots.
    pub fn wants(&self) -> Option<(SeriesKey, Range<i64>)> {
        match self {
            Long::Chart(chart) => chart.wants(),
            Long::List(_) | Long::Packed(_) => None,
        }
    }

    /// The candles that are to be there while it is made.
    pub fn needs(&self) -> Option<(SeriesKey, Range<i64>)> {
        match self {
            Long::Chart(chart) => Some(chart.needs()),
            Long::List(_) | Long::Packed(_) => None,
        }
    }

    /// Those that it waits for and that have not come yet.
    pub fn lacks(&self, view: &View<'_>) -> Option<(SeriesKey, Range<i64>)> {
        match self {
            Long::Chart(chart) => chart.lacks(view),
            Long::List(_) | Long::Packed(_) => None,
        }
    }

    /// Makes one part. `true`: that was the last one.
    pub fn step(&mut self, view: &View<'_>) -> bool {
        match self {
            Long::Chart(chart) => chart.step(view),
            Long::List(list) => list.step(view),
            Long::Packed(packed) => packed.is_ready(),
        }
    }

    /// Sends what was made, unless it is to be packed first.
    pub fn finish(self, view: &View<'_>, responder: &mut Responder<'_>) -> Option<ToPack> {
        match self {
            Long::Chart(chart) => chart.finish(view, responder),
            Long::List(list) => list.finish(view, responder),
            Long::Packed(packed) => {
                packed.finish(responder);
                None
            }
        }
    }
}

impl<'a> View<'a> {
    /// A view of the core's parts.
    pub fn new(
        config: &'a Config,
        market: &'a Market,
        status: &'a Status,
        packing: &'a Packing,
        (boot, now): (u64, Now),
    ) -> View<'a> {
        View {
            config,
            market,
            status,
            packing,
            boot,
            now,
            facts: None,
        }
    }

    /// How long an answer with this source's quotes may be kept: until its next poll, in whole
    /// seconds, at least one.
    pub fn until_poll(&self, source: SourceId) -> Cache {
        self.until(self.status.sources[usize::from(source.0)].next_poll)
    }

    /// The same for what any source may change.
    pub fn until_any_poll(&self) -> Cache {
        let next = self.status.sources.iter().map(|source| source.next_poll);
        self.until(next.min().unwrap_or_default())
    }

    fn until(&self, next: Mono) -> Cache {
        let wait_ms = next.0.saturating_sub(self.now.mono.0) / 1000;
        Cache::MaxAge(wait_ms.div_ceil(1000).max(1) as u32)
    }

    /// The tag of a body that is made of these parts.
    pub fn tag(&self, made_of: Fingerprint, variant: u8) -> ETag {
        ETag::of_parts(self.boot, made_of, variant)
    }

    /// The source of this id.
    pub fn source(&self, id: &[u8]) -> Option<SourceId> {
        let at = (self.config.sources.iter()).position(|source| source.id.as_bytes() == id)?;
        Some(SourceId(at as u16))
    }
}

/// An address, and what of it is left to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    Quote(&'a [u8]),
    Quotes,
    Categories,
    CategoryMarkets(&'a [u8]),
    EcosystemMarkets,
    EcosystemMarket(&'a [u8]),
    Chart,
    Metrics,
    Prometheus,
    Health(health::Kind),
    OpenApi,
}

/// What a request asks for, as far as it can be told without the market's figures: the same for
/// the same request, until the catalog changes.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// One quote.
    Quote(quotes::Asked),
    /// A chart.
    Chart(chart::Asked),
    /// How the service does.
    Health(health::Kind),
}

impl Meaning {
    fn endpoint(&self) -> Endpoint {
        match self {
            Meaning::Quote(_) => Endpoint::Quote,
            Meaning::Chart(_) => Endpoint::Chart,
            Meaning::Health(_) => Endpoint::Health,
        }
    }

    /// Answers a request that means this, or says how its answer is to be made.
    fn answer(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
        match self {
            Meaning::Quote(asked) => quotes::one(view, asked, responder),
            Meaning::Chart(asked) => chart::chart(view, asked, responder),
            Meaning::Health(kind) => health::health(view, *kind, responder),
        }
    }
}

impl Route<'_> {
    fn endpoint(self) -> Endpoint {
        match self {
            Route::Quote(_) => Endpoint::Quote,
            Route::Quotes => Endpoint::Quotes,
            Route::Categories => Endpoint::Categories,
            Route::CategoryMarkets(_) => Endpoint::CategoryMarkets,
            Route::EcosystemMarkets => Endpoint::EcosystemMarkets,
            Route::EcosystemMarket(_) => Endpoint::EcosystemMarket,
            Route::Chart => Endpoint::Chart,
            Route::Metrics => Endpoint::Metrics,
            Route::Prometheus => Endpoint::Prometheus,
            Route::Health(_) => Endpoint::Health,
            Route::OpenApi => Endpoint::OpenApi,
        }
    }
}

/// What a request is for.
pub fn endpoint(config: &Config, service: Service, request: &Request<'_>) -> Endpoint {
    if request.method == Method::Options {
        return Endpoint::Options;
    }
    let path = normal_path(request.path);
    route(config, service, &path).map_or(Endpoint::Unknown, Route::endpoint)
}

/// Answers a request that was understood before.
#[inline]
pub fn answer_again(
    view: &View<'_>,
    meaning: &Meaning,
    responder: &mut Responder<'_>,
) -> (Endpoint, Outcome) {
    let outcome = meaning.answer(view, responder).unwrap_or_else(|error| {
        send_error(&error, responder);
        Outcome::Answered
    });
    (meaning.endpoint(), outcome)
}

/// Answers one request, or says how its answer is to be made; and what it was for. What it means is
/// left in `meant`, where that is worth to be kept.
pub fn answer(
    view: &View<'_>,
    service: Service,
    request: &Request<'_>,
    responder: &mut Responder<'_>,
    meant: &mut Option<Meaning>,
) -> (Endpoint, Outcome) {
    if request.method == Method::Options {
        responder.send(&Head::options(), b"");
        return (Endpoint::Options, Outcome::Answered);
    }
    let path = normal_path(request.path);
    let route = route(view.config, service, &path);
    let endpoint = route.map_or(Endpoint::Unknown, Route::endpoint);
    let result = match route {
        // No address at all, but the far end of a tunnel: CONNECT.
        None if !path.starts_with(b"/") => Err(Error::method_not_allowed()),
        None => Err(Error::not_found(request.path)),
        Some(_) if !request.method.is_served() => Err(Error::method_not_allowed()),
        Some(Route::Quote(symbol)) => {
            let asked = quotes::read(view, symbol, request.query);
            asked.and_then(|asked| meant.insert(Meaning::Quote(asked)).answer(view, responder))
        }
        Some(Route::Quotes) => quotes::many(view, request.query, responder),
        Some(Route::Categories) => categories::list(view, request.query, responder),
        Some(Route::CategoryMarkets(id)) => categories::markets(view, id, request.query, responder),
        Some(Route::EcosystemMarkets) => ecosystem::list(view, request.query, responder),
        Some(Route::EcosystemMarket(id)) => ecosystem::one(view, id, request.query, responder),
        Some(Route::Chart) => {
            let asked = chart::read(view, request.query);
            asked.and_then(|asked| meant.insert(Meaning::Chart(asked)).answer(view, responder))
        }
        Some(Route::Metrics) => metrics::json(view, responder),
        Some(Route::Prometheus) => metrics::prometheus(view, responder),
        Some(Route::Health(kind)) => (meant.insert(Meaning::Health(kind))).answer(view, responder),
        Some(Route::OpenApi) => described::document(view, service, responder),
    };
    let outcome = result.unwrap_or_else(|error| {
        // Below, only the end of the address is seen.
        let error = match error.code {
            "not_found" => Error::not_found(request.path),
            _ => error,
        };
        send_error(&error, responder);
        Outcome::Answered
    });
    (endpoint, outcome)
}

/// What an address means on a listener of this service.
fn route<'a>(config: &Config, service: Service, path: &'a [u8]) -> Option<Route<'a>> {
    let api = matches!(service, Service::Api | Service::Both);
    let ecosystem = matches!(service, Service::Ecosystem | Service::Both);
    let under = |base: &str| path.strip_prefix(base.as_bytes());
    let in_api = api.then(|| under(&config.base_path)).flatten();
    let found = in_api.and_then(|path| api_route(path).or_else(|| common_route(path)));
    found.or_else(|| {
        let in_ecosystem = ecosystem
            .then(|| under(&config.ecosystem_base_path))
            .flatten();
        in_ecosystem.and_then(|path| ecosystem_route(path).or_else(|| common_route(path)))
    })
}

fn api_route(path: &[u8]) -> Option<Route<'_>> {
    let rest = path.strip_prefix(b"/api/v1/")?;
    if let Some(symbol) = rest.strip_prefix(b"quotes/") {
        return (!symbol.is_empty()).then_some(Route::Quote(symbol));
    }
    if let Some(rest) = rest.strip_prefix(b"categories/") {
        let id = rest.strip_suffix(b"/markets")?;
        return (!id.is_empty() && !id.contains(&b'/')).then_some(Route::CategoryMarkets(id));
    }
    match rest {
        b"quotes" => Some(Route::Quotes),
        b"categories" => Some(Route::Categories),
        b"metrics" => Some(Route::Metrics),
        _ => None,
    }
}

fn ecosystem_route(path: &[u8]) -> Option<Route<'_>> {
    let rest = path.strip_prefix(b"/api/ecosystem/")?;
    if let Some(id) = rest.strip_prefix(b"market/") {
        return (!id.is_empty()).then_some(Route::EcosystemMarket(id));
    }
    match rest {
        b"market" => Some(Route::EcosystemMarkets),
        b"chart" => Some(Route::Chart),
        _ => None,
    }
}

fn common_route(path: &[u8]) -> Option<Route<'_>> {
    match path {
        b"/health" => Some(Route::Health(health::Kind::Whole)),
        b"/health/live" => Some(Route::Health(health::Kind::Live)),
        b"/health/ready" => Some(Route::Health(health::Kind::Ready)),
        b"/metrics" => Some(Route::Prometheus),
        b"/openapi.json" => Some(Route::OpenApi),
        _ => None,
    }
}
