//! The endpoints: which address means what, and the JSON that each answers with.
//!
//! Owns the wire format of every response, and the table of endpoints below; one file a family of
//! them. An endpoint sees the core through a [`View`], which lets it fill caches and change nothing
//! else: the JSON of a quote is kept with the quote, the rows of a chart with its series, and what a
//! request means with the request's head. What cannot be answered within one turn is handed back as
//! a [`Long`], which is made in parts.
//!
//! `params`, `symbols`, `records`, `list` and `packed` are what endpoints share: the parameters, the
//! symbol that is asked for, JSON of several endpoints, long lists, bodies in gzip.
//!
//! # To add an endpoint
//!
//! 1. In the file of its family, or one of its own: a function that reads its parameters by
//!    `params::read`, sends its body by `packed::send` as a [`Question::Address`], and returns an
//!    [`Error`] for what is wrong. `categories::list` is the shortest to begin with.
//! 2. Here: its name in the metrics, with the next number, and its row in the table.
//! 3. In `openapi.json`: its path, with an example of a response. Tests hold it to the code.
//! 4. A test in `tests/loopback`, where `described.rs` counts the addresses.

mod categories;
pub mod chart;
pub mod compressed_cache;
mod described;
mod ecosystem;
mod error;
mod health;
mod list;
mod metrics;
mod outcome;
mod packed;
mod params;
mod quotes;
pub mod reasons;
mod records;
mod symbols;
mod view;

pub use error::{Error, send_error};
pub use outcome::{Long, Outcome};
pub use packed::{Packed, Question, ToPack};
pub use view::View;

use super::{Endpoint, Service};
use crate::config::Config;
use crate::http::{Head, Method, Request, Responder, normal_path};
use Handler::{Answer, Read};
use Path::{Below, Between, Exactly};
use health::Kind;
use params::Call;

static QUOTE: Endpoint = Endpoint::new(0, "quote");
static QUOTES: Endpoint = Endpoint::new(1, "quotes");
static CATEGORIES: Endpoint = Endpoint::new(2, "categories");
static CATEGORY_MARKETS: Endpoint = Endpoint::new(3, "category_markets");
static ECOSYSTEM_MARKETS: Endpoint = Endpoint::new(4, "ecosystem_markets");
static ECOSYSTEM_MARKET: Endpoint = Endpoint::new(5, "ecosystem_market");
static CHART: Endpoint = Endpoint::new(6, "chart");
static METRICS: Endpoint = Endpoint::new(7, "metrics");
static PROMETHEUS: Endpoint = Endpoint::new(8, "prometheus");
static HEALTH: Endpoint = Endpoint::new(9, "health").without_limit();
static OPENAPI: Endpoint = Endpoint::new(10, "openapi");

/// What is served under `basePath`.
#[rustfmt::skip]
static API: &[Row] = &[
    Row(&QUOTE, Below("/api/v1/quotes/"),
        Read(|view, call| Ok(Meaning::Quote(quotes::read(view, call)?)))),
    Row(&QUOTES, Exactly("/api/v1/quotes"), Answer(quotes::many)),
    Row(&CATEGORIES, Exactly("/api/v1/categories"), Answer(categories::list)),
    Row(&CATEGORY_MARKETS, Between("/api/v1/categories/", "/markets"), Answer(categories::markets)),
    Row(&METRICS, Exactly("/api/v1/metrics"), Answer(|view, _, responder| metrics::json(view, responder))),
];

/// What is served under `ecosystemBasePath`.
#[rustfmt::skip]
static ECOSYSTEM: &[Row] = &[
    Row(&CHART, Exactly("/api/ecosystem/chart"),
        Read(|view, call| Ok(Meaning::Chart(chart::read(view, call)?)))),
    Row(&ECOSYSTEM_MARKETS, Exactly("/api/ecosystem/market"), Answer(ecosystem::list)),
    Row(&ECOSYSTEM_MARKET, Below("/api/ecosystem/market/"), Answer(ecosystem::one)),
];

/// What is served under both.
#[rustfmt::skip]
static COMMON: &[Row] = &[
    Row(&HEALTH, Exactly("/health"), Read(|_, _| Ok(Meaning::Health(Kind::Whole)))),
    Row(&HEALTH, Exactly("/health/live"), Read(|_, _| Ok(Meaning::Health(Kind::Live)))),
    Row(&HEALTH, Exactly("/health/ready"), Read(|_, _| Ok(Meaning::Health(Kind::Ready)))),
    Row(&PROMETHEUS, Exactly("/metrics"), Answer(|view, _, responder| metrics::prometheus(view, responder))),
    Row(&OPENAPI, Exactly("/openapi.json"), Answer(described::document)),
];

/// A row of the table: an endpoint, its address, and who answers.
struct Row(&'static Endpoint, Path, Handler);

/// An address without what stands in front of it.
enum Path {
    /// This one.
    Exactly(&'static str),
    /// Whatever begins with this and goes on.
    Below(&'static str),
    /// One segment between these two.
    Between(&'static str, &'static str),
}

enum Handler {
    /// Answers, or says how the response is to be made.
    Answer(fn(&View<'_>, &Call<'_>, &mut Responder<'_>) -> Result<Outcome, Error>),
    /// Reads what a request means: that is worth to be kept until the same request comes again.
    Read(fn(&View<'_>, &Call<'_>) -> Result<Meaning, Error>),
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
    Health(Kind),
}

impl Meaning {
    fn endpoint(&self) -> &'static Endpoint {
        match self {
            Meaning::Quote(_) => &QUOTE,
            Meaning::Chart(_) => &CHART,
            Meaning::Health(_) => &HEALTH,
        }
    }

    /// Answers a request that means this, or says how its response is to be made.
    #[inline]
    fn answer(&self, view: &View<'_>, responder: &mut Responder<'_>) -> Result<Outcome, Error> {
        match self {
            Meaning::Quote(asked) => quotes::one(view, asked, responder),
            Meaning::Chart(asked) => chart::chart(view, asked, responder),
            Meaning::Health(kind) => health::health(view, *kind, responder),
        }
    }
}

impl Path {
    /// What of this path is left open, if it is such an address.
    #[inline]
    fn rest<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Exactly(whole) => (path == whole.as_bytes()).then_some(b""),
            Below(start) => path
                .strip_prefix(start.as_bytes())
                .filter(|it| !it.is_empty()),
            Between(start, end) => {
                let rest = path.strip_prefix(start.as_bytes())?;
                let segment = rest.strip_suffix(end.as_bytes())?;
                (!segment.is_empty() && !segment.contains(&b'/')).then_some(segment)
            }
        }
    }
}

/// What a request is for.
pub fn endpoint(config: &Config, service: Service, request: &Request<'_>) -> &'static Endpoint {
    if request.method == Method::Options {
        return &Endpoint::OPTIONS;
    }
    let path = normal_path(request.path);
    find(config, service, &path).map_or(&Endpoint::UNKNOWN, |(row, _)| row.0)
}

/// Answers a request that was understood before.
#[inline]
pub fn answer_again(
    view: &View<'_>,
    meaning: &Meaning,
    responder: &mut Responder<'_>,
) -> (&'static Endpoint, Outcome) {
    let outcome = or_error(meaning.answer(view, responder), responder);
    (meaning.endpoint(), outcome)
}

/// Answers one request, or says how its response is to be made; and what it was for. What it means
/// is left in `meant`, where that is worth to be kept.
pub fn answer(
    view: &View<'_>,
    service: Service,
    request: &Request<'_>,
    responder: &mut Responder<'_>,
    meant: &mut Option<Meaning>,
) -> (&'static Endpoint, Outcome) {
    if request.method == Method::Options {
        responder.send(&Head::options(), b"");
        return (&Endpoint::OPTIONS, Outcome::Answered);
    }
    let path = normal_path(request.path);
    let found = find(view.config, service, &path);
    let endpoint = found.map_or(&Endpoint::UNKNOWN, |(row, _)| row.0);
    let result = match found {
        // No address at all, but the far end of a tunnel: CONNECT.
        None if !path.starts_with(b"/") => Err(Error::method_not_allowed()),
        None => Err(Error::not_found(request.path)),
        Some(_) if !request.method.is_served() => Err(Error::method_not_allowed()),
        Some((Row(_, _, handler), rest)) => {
            let call = Call {
                service,
                path: request.path,
                rest,
                query: request.query,
            };
            match handler {
                Answer(answer) => answer(view, &call, responder),
                Read(read) => read(view, &call)
                    .and_then(|meaning| meant.insert(meaning).answer(view, responder)),
            }
        }
    };
    (endpoint, or_error(result, responder))
}

/// Sends the error, where there is one.
#[inline]
fn or_error(result: Result<Outcome, Error>, responder: &mut Responder<'_>) -> Outcome {
    result.unwrap_or_else(|error| {
        send_error(&error, responder);
        Outcome::Answered
    })
}

/// The row of an address on a listener of this service, and what of the path it leaves open.
fn find<'a>(config: &Config, service: Service, path: &'a [u8]) -> Option<(&'static Row, &'a [u8])> {
    let under = |base: &str| match base {
        "" => Some(path),
        base => path.strip_prefix(base.as_bytes()),
    };
    let is_api = matches!(service, Service::Api | Service::Both);
    let is_ecosystem = matches!(service, Service::Ecosystem | Service::Both);
    let api = is_api.then(|| under(&config.base_path)).flatten();
    let ecosystem = (is_ecosystem.then(|| under(&config.ecosystem_base_path))).flatten();
    // Most rows are not looked at: what they begin with is compared first.
    if let Some(path) = api
        && path.starts_with(b"/api/v1/")
        && let Some(found) = among(API, path)
    {
        return Some(found);
    }
    if let Some(path) = ecosystem
        && path.starts_with(b"/api/ecosystem/")
        && let Some(found) = among(ECOSYSTEM, path)
    {
        return Some(found);
    }
    let mut common = [api, ecosystem].into_iter().flatten();
    common.find_map(|path| among(COMMON, path))
}

#[inline]
fn among<'a>(rows: &'static [Row], path: &'a [u8]) -> Option<(&'static Row, &'a [u8])> {
    for row in rows {
        if let Some(rest) = row.1.rest(path) {
            return Some((row, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_endpoint_is_described_and_every_path_leads_somewhere() {
        let document = described::file();
        let paths = document["paths"].as_object().expect("paths");
        let config = Config::default();
        let mut found = BTreeSet::new();
        for path in paths.keys() {
            let asked = path.replace('{', "a").replace('}', "z");
            let row = find(&config, Service::Both, asked.as_bytes());
            let (row, _) = row.unwrap_or_else(|| panic!("{path} leads nowhere"));
            found.insert(std::ptr::from_ref(row));
        }
        let rows = [API, ECOSYSTEM, COMMON].into_iter().flatten();
        assert_eq!(found, rows.map(std::ptr::from_ref).collect());
        assert_eq!(paths.len(), found.len());
    }

    #[test]
    fn endpoints_of_one_number_are_the_same() {
        let rows = || [API, ECOSYSTEM, COMMON].into_iter().flatten();
        for (one, other) in rows().flat_map(|one| rows().map(move |other| (one.0, other.0))) {
            let (names, numbers) = (one.name() == other.name(), one.number() == other.number());
            assert_eq!(names, numbers, "{} {}", one.name(), other.name());
        }
    }
}
