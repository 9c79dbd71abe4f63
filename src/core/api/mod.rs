//! The endpoints: the table of addresses, and the JSON of each response.
//!
//! Owns the wire format of every response, and the table of endpoints below; one file a family of
//! endpoints. An endpoint sees the core through a [`View`]. It fills caches and changes nothing else: the
//! JSON of a quote is kept with the quote, the rows of a chart with its series, and a [`Prepared`] request
//! with the request's head. A response that takes more than one turn is handed back as an [`Outcome`].
//!
//! The endpoints share `view` (what each is given), `records` (JSON of several endpoints), `list` (long
//! lists) and `body`.
//!
//! # To add an endpoint
//!
//! 1. Write a function, in the file of its family or in a new one (with its `mod NAME;`). The shortest
//!    examples are `markets::categories` and, without a cache, `udf::time`.
//!    - It reads its parameters with `call.params([NAMES])`; a test looks for the literal names there. It
//!      uses `call.only_decimals` if `decimals` is its only one. Unknown parameters are ignored, so an
//!      endpoint without prices and amounts need not take `decimals`.
//!    - It returns an [`Error`] for a wrong request: `Error::bad(CODE, PARAMETER, MESSAGE)` for a wrong
//!      value. Another error names its query parameter with `about`.
//!    - It sends its body with `Body::send`. Whatever can differ between two bodies of one address, with its
//!      query, is written to `body.part(PART)`; the part has the version of what was read, or is the text
//!      itself. `variant` is `decimals.variant()` if the address takes `decimals`, otherwise any letter;
//!      endpoints may share letters. The `CacheKey` has the path, and every parameter that the body depends
//!      on.
//!    - The head says how long the body may be cached: `view.until_poll(SOURCE)` if it has quotes of one
//!      source; `view.until_any_poll()` if any source may change it; `view.until_any_poll_unless(IS_STALE)`
//!      if it says of quotes whether they are stale; `Cache::MaxAge` if only a restart changes it.
//!    - If no cache may keep the response, it sends the body with
//!      `responder.send(&Head::json(None, Cache::NoStore), &body)`.
//! 2. In `endpoint`: add a variant to [`Endpoint`], with its name in the metrics. If the endpoint counts
//!    under its family's name in the metrics, add nothing else there. Here: add a row to one of four tables.
//!    `API` is for what is below `/api/v1/`, `ECOSYSTEM` for what is below `/api/ecosystem/`. `COMMON` is for
//!    what every listener serves. `PEOPLE` is for people and charting libraries: a build without the feature
//!    `page` leaves it out. The handler of a row is `Respond`. Take `Prepare` if clients send the same
//!    request again and again: it reads the parameters into a type of the endpoint's own that implements
//!    [`Prepared`]. The head cache keeps that value, and the same head is answered from it without being read
//!    again.
//! 3. In `openapi.json`, below the name of its table: add its path, with what differs from other paths.
//!    - `id` is its unique `operationId`. `summary` is also what `/` says of it. `200` has a description
//!      (`is`) and a schema (`body`).
//!    - `kind` is `list` for a list with `sort` and `limit`, `packed` for a body with an ETag that may be
//!      long, and `tagged` for a short one. A `kind` adds the parameters, the headers and the 304. A response
//!      that must not be cached has no `kind`. Parameters, headers and schemas that paths share go by their
//!      names there.
//!    - `examples` has a response by its target, `GET /...`. Each path with a JSON body has one of its 200. A
//!      test asks the demo exchange for all of them: a 200 must have the described schema, an error must be
//!      the example to the byte.
//!    - `errors` lists codes by schema and status. Add a new code to the schema that its path names. If the
//!      code belongs to no path, add it to `Error`, and to the description of the response `Other`, which a
//!      test reads.
//!    - `scripts/openapi.rs` says how a schema is written, and adds what every response has.
//! 4. Add its row to the tables of `README.md` and `src/docs/http-api.md`, a new error to "Errors" there, and
//!    a line to `src/docs/changelog.md`.
//! 5. Test it in `tests/loopback`: what it does in the file of its family (`catalog.rs`, `quotes.rs`,
//!    `chart.rs`, `lists.rs`); its errors in `CASES` of `errors.rs`. The order and the types of its members
//!    are tested by its examples: a response must be as the description says, with its members in the order
//!    of the schema. Add
//!    an address to `API`, `ECOSYSTEM` or `COMMON` of `catalog.rs`, to `PACKED` or `PLAIN` of `packed.rs`,
//!    and, if it has an ETag, to `ADDRESSES` of `tests/tags.rs`. In `described.rs`, add an address whose body
//!    is not JSON to `others`. For a new name in braces, add a value to `check_addresses`, which asks each
//!    path without parameters: a required one that is missing must be a 400, never a 404.

mod body;
pub mod chart;
mod described;
mod endpoint;
pub mod health;
mod list;
mod markets;
mod metrics;
mod outcome;
mod page;
mod quotes;
mod records;
mod selection;
pub mod stream;
mod udf;
mod view;

pub use crate::http::error::{self, Error};
pub use endpoint::Endpoint;
pub use outcome::{
    Advance, ChartPlace, Deferred, Outcome, Position, Prepared, Round, SeriesSlots, StreamRequest,
    StreamedSymbols, send_error,
};
pub use view::View;

use super::Service;
use crate::config::Config;
use crate::http::{Head, Method, Request, Responder};
use Handler::{Prepare, Respond};
use Path::{Below, Between, Exactly, Root};
use described::Bases;
use health::Kind;
use outcome::send_fault;
use view::ApiRequest;

/// The addresses under `basePath`.
#[rustfmt::skip]
static API: &[Row] = &[
    Row(Endpoint::Quote, Below("/api/v1/quotes/"), Prepare(quotes::prepare)),
    Row(Endpoint::Quotes, Exactly("/api/v1/quotes"), Prepare(quotes::prepare_list)),
    Row(Endpoint::Categories, Exactly("/api/v1/categories"), Respond(markets::categories)),
    Row(Endpoint::CategoryMarkets, Between("/api/v1/categories/", "/markets"), Prepare(markets::category)),
    Row(Endpoint::Metrics, Exactly("/api/v1/metrics"), Respond(metrics::json)),
    Row(Endpoint::Stream, Exactly("/api/v1/stream"), Respond(|call, _| stream::read(call))),
];

/// The addresses under `ecosystemBasePath`.
#[rustfmt::skip]
static ECOSYSTEM: &[Row] = &[
    Row(Endpoint::Chart, Exactly("/api/ecosystem/chart"), Prepare(chart::prepare)),
    Row(Endpoint::EcosystemMarkets, Exactly("/api/ecosystem/market"), Prepare(markets::ecosystem)),
    Row(Endpoint::EcosystemMarket, Below("/api/ecosystem/market/"), Respond(markets::market)),
];

/// The addresses for people and for charting libraries, under `basePath`.
#[rustfmt::skip]
static PEOPLE: &[Row] = if described::HAS_PAGE { &[
    Row(Endpoint::Page, Below("/page/"), Respond(page::file)),
    Row(Endpoint::Udf, Exactly("/udf/config"), Respond(udf::config)),
    Row(Endpoint::Udf, Exactly("/udf/time"), Respond(udf::time)),
    Row(Endpoint::Udf, Exactly("/udf/symbols"), Respond(udf::symbols)),
    Row(Endpoint::Udf, Exactly("/udf/search"), Respond(udf::search)),
    Row(Endpoint::Udf, Exactly("/udf/history"), Respond(|call, _| udf::history::history(call))),
    Row(Endpoint::Udf, Exactly("/udf/quotes"), Respond(udf::quotes)),
] } else { &[] };

/// The addresses under `basePath` and `ecosystemBasePath`.
#[rustfmt::skip]
static COMMON: &[Row] = &[
    Row(Endpoint::Page, Root, Respond(page::root)),
    Row(Endpoint::Health, Exactly("/health"), Prepare(|_| Ok(Box::new(Kind::Whole)))),
    Row(Endpoint::Health, Exactly("/health/live"), Prepare(|_| Ok(Box::new(Kind::Live)))),
    Row(Endpoint::Health, Exactly("/health/ready"), Prepare(|_| Ok(Box::new(Kind::Ready)))),
    Row(Endpoint::Prometheus, Exactly("/metrics"), Respond(metrics::prometheus)),
    Row(Endpoint::OpenApi, Exactly("/openapi.json"), Respond(described::document)),
];

/// A row of the table: an endpoint, its address, and its handler.
pub struct Row(Endpoint, Path, Handler);

/// An address behind the base path.
enum Path {
    /// This one.
    Exactly(&'static str),
    /// Everything that begins with this and goes on.
    Below(&'static str),
    /// One segment between these two.
    Between(&'static str, &'static str),
    /// The base path itself, with or without a slash.
    Root,
}

enum Handler {
    /// Responds, or returns how the response comes about.
    Respond(fn(&ApiRequest<'_>, &mut Responder<'_>) -> Result<Outcome, Error>),
    /// Prepares a request that is worth keeping until the same request comes again.
    Prepare(fn(&ApiRequest<'_>) -> Result<Box<dyn Prepared>, Error>),
}

impl Path {
    /// The part of the path that this address leaves open. `None` if the path is another address.
    #[inline]
    fn rest<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Root => matches!(path, b"" | b"/").then_some(path),
            Exactly(whole) => (path == whole.as_bytes()).then_some(b""),
            Below(start) => path.strip_prefix(start.as_bytes()).filter(|it| !it.is_empty()),
            Between(start, end) => {
                let rest = path.strip_prefix(start.as_bytes())?;
                let segment = rest.strip_suffix(end.as_bytes())?;
                (!segment.is_empty() && !segment.contains(&b'/')).then_some(segment)
            }
        }
    }
}

/// What a request is for.
pub enum Destination<'a> {
    /// The same as an earlier request.
    Prepared(Endpoint, &'a dyn Prepared),
    /// OPTIONS of any address.
    Options,
    /// An address in the table, on a listener of this service, and the part of the path that it leaves open.
    Found(&'static Row, Service, &'a [u8]),
    /// An address of this endpoint, or the target of a CONNECT, with a method that is not served.
    NotAllowed(Endpoint),
    /// No address.
    NotFound,
}

/// Looks up what a request is for. `path`: its path, normalized.
pub fn route<'a>(
    config: &Config,
    service: Service,
    request: &Request<'_>,
    path: &'a [u8],
) -> Destination<'a> {
    if request.method == Method::Options {
        return Destination::Options;
    }
    match find(config, service, path) {
        // A target without a leading slash is that of CONNECT, which is not served.
        None if !path.starts_with(b"/") => Destination::NotAllowed(Endpoint::Unknown),
        None => Destination::NotFound,
        Some((row, _)) if !request.method.is_served() => Destination::NotAllowed(row.0),
        Some((row, rest)) => Destination::Found(row, service, rest),
    }
}

impl Destination<'_> {
    /// The endpoint, for the rate limit and the metrics.
    #[inline]
    pub fn endpoint(&self) -> Endpoint {
        match self {
            Destination::Prepared(endpoint, _) => *endpoint,
            Destination::Options => Endpoint::Options,
            Destination::Found(row, ..) => row.0,
            Destination::NotAllowed(endpoint) => *endpoint,
            Destination::NotFound => Endpoint::Unknown,
        }
    }

    /// Responds to the request, or returns how its response comes about. `newly_prepared`: takes the
    /// prepared request, if it is worth keeping.
    #[inline]
    pub fn respond(
        self,
        view: &View<'_>,
        request: &Request<'_>,
        responder: &mut Responder<'_>,
        newly_prepared: &mut Option<Box<dyn Prepared>>,
    ) -> Outcome {
        let result = match self {
            Destination::Prepared(_, prepared) => prepared.respond(view, responder),
            Destination::Options => {
                responder.send(&Head::options(), b"");
                Ok(Outcome::Sent)
            }
            Destination::NotAllowed(_) => Err(Error::METHOD_NOT_ALLOWED),
            Destination::NotFound => Err(Error::not_found(request.path)),
            Destination::Found(Row(endpoint, _, handler), service, rest) => {
                let call = ApiRequest { view, service, request, rest };
                match handler {
                    Respond(respond) => match respond(&call, responder) {
                        Err(error) if *endpoint == Endpoint::Udf => {
                            Ok(send_fault(&error.message, responder))
                        }
                        result => result,
                    },
                    Prepare(prepare) => prepare(&call).and_then(|prepared| {
                        newly_prepared.insert(prepared).respond(view, responder)
                    }),
                }
            }
        };
        result.unwrap_or_else(|error| send_error(&error, responder))
    }
}

/// The row of an address on a listener of this service, and the part of the path that it leaves open.
fn find<'a>(config: &Config, service: Service, path: &'a [u8]) -> Option<(&'static Row, &'a [u8])> {
    let bases = Bases::new(config, service);
    let under = |base: Option<&str>| path.strip_prefix(base?.as_bytes());
    let (api, ecosystem) = (under(bases.api), under(bases.ecosystem));
    let own = [(api, API), (ecosystem, ECOSYSTEM)];
    let shared = [(api, COMMON), (ecosystem, COMMON), (api, PEOPLE)];
    let mut tables = own.into_iter().chain(shared);
    tables.find_map(|(path, rows)| rows.iter().find_map(|row| Some((row, row.1.rest(path?)?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_described_and_every_path_leads_somewhere() {
        let tables =
            [("api", API), ("ecosystem", ECOSYSTEM), ("people", PEOPLE), ("common", COMMON)];
        let paths = described::paths();
        for (table, rows) in tables {
            let paths = paths.iter().filter(|(of, _)| of == table);
            let paths = paths.map(|(_, path)| path.replace('{', "a").replace('}', "z"));
            // The row of each path, in this table.
            let mut found: Vec<usize> = paths
                .map(|path| {
                    let row = rows.iter().position(|row| row.1.rest(path.as_bytes()).is_some());
                    row.unwrap_or_else(|| panic!("{path} leads nowhere in {table}"))
                })
                .collect();
            found.sort();
            assert_eq!(found, (0..rows.len()).collect::<Vec<_>>(), "{table}");
        }
        assert!(paths.iter().all(|(of, _)| tables.iter().any(|(table, _)| of == table)));
    }
}
