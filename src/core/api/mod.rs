//! The endpoints: the table of addresses, and the JSON of each response.
//!
//! Owns the wire format of every response, and the table of endpoints below. Each family of endpoints has one
//! file. An endpoint sees the core through a [`View`]. It fills caches and changes nothing else: the JSON of
//! a quote is kept with the quote, the rows of a chart with its series, and a [`Prepared`] request with the
//! request's head. A response that takes more than one turn is handed back as a [`Deferred`].
//!
//! The endpoints share `request` and `view` (what each is given), `records` (JSON of several endpoints),
//! `list` (long lists) and `body`.
//!
//! # To add an endpoint
//!
//! 1. Write a function in the file whose data it serves; for data about the process, in `health.rs`. The
//!    model without parameters is `udf::time`, but JSON is written with `json!(&mut body, { "key": value })`
//!    and sent with `responder.send(&Head::json(None, Cache::NoStore), &body)`. The model with `decimals` is
//!    `markets::categories`, with a symbol in the path `markets::market`, with `?symbol=` `udf::symbols`. A
//!    response with the current time, or with a figure that changes by itself, is `Cache::NoStore`. One that
//!    changes only with the polls has the age of `view.until_any_poll()`. The function reads its parameters
//!    with one `call.params([...])`, or `call.only_decimals()` if `decimals` is the only one, and returns an
//!    [`Error`] that names the wrong one. A body that may have more than 1024 bytes is a `Body`, whose
//!    `CacheKey` has all that the bytes depend on: it may go out in gzip. A smaller one is written with
//!    `responder.send`.
//! 2. Add a row to one of the four tables below, as `Respond`. If clients poll it for quotes, add it as
//!    `Prepare`, so that its response can be kept; the models are `quotes::prepare` and, with a list of
//!    symbols, `quotes::prepare_list`. Add a variant to [`Endpoint`], by which the metrics count it, unless
//!    the variant of another address fits. The metrics list the variants in this order. The rate limit counts
//!    requests of a new variant (`Endpoint::is_limited`). An address that ends in
//!    `metrics` or `/stream` is served from a queue, and its response is never kept (`clients/reading.rs`).
//! 3. Describe it in `openapi.json`; `scripts/openapi.rs` says how. The models are `/health/live` (without
//!    its `limited`), with `decimals` `/api/v1/categories`, with a symbol in the path
//!    `/api/v1/quotes/{symbol}`, with `?symbol=` `/udf/symbols`. A new schema of its body stands in
//!    `schemas`. If no schema in `errors` has exactly its errors, add one. A test starts marketd with the
//!    demo exchange, requests each example, and compares the status, the head and the form of the body; of an
//!    error, the whole body.
//! 4. Add it to the tables of `README.md` and `src/docs/http-api.md`, and a line to `src/docs/changelog.md`
//!    before `Exchanges:`. `cargo test --test daemon docs::` finds a row that is missing.
//! 5. Test what it does in the file of its family in `tests/loopback`, of health and metrics in `watch.rs`.
//!    If it has errors, add them to `CASES` of `errors.rs` (`LIST_CASES` and `CHART_CASES` are tried at each
//!    list and each chart). Errors that come only until the first quotes have come go to the two lists of
//!    `described.rs` instead. The endpoints of `/udf` are tested in `tests/udf.rs`. `cargo test --test daemon
//!    loopback::` runs them.
//! 6. Let the simulation request it (`tests/sim/grammar.rs`): its wrong requests, if it has some, go to `API`
//!    or `ECOSYSTEM`, with the statuses that they may have. Its good requests get an arm in `target`, with a
//!    number that only an arm with `_` had, and a `Kind`, which `tests/sim/answers.rs` judges. A `Kind` with
//!    an ETag also goes to `is_tagged`, one with a long body to `is_long`. `cargo test --test library sim::`
//!    runs it.
//! 7. Run `scripts/check.sh`: format, lints, and all tests.

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
mod request;
mod selection;
pub mod stream;
mod udf;
mod view;

pub use crate::http::error::{self, Error};
pub use endpoint::Endpoint;
pub use outcome::{
    Advance, ChartPlace, Deferred, InParts, Outcome, Position, Prepared, Round, SeriesSlots,
    StreamRequest, StreamedSymbols, send_error,
};
pub use request::{ApiRequest, Handler};
pub use view::View;

use super::Service;
use crate::config::Config;
use crate::http::{Head, Method, Request};
use Handler::{Prepare, Respond};
use Path::{Below, Between, Exactly, Root};
use described::Bases;
use health::Kind;

/// The addresses under `basePath`.
#[rustfmt::skip]
static API: &[Row] = &[
    Row(Endpoint::Quote, Below("/api/v1/quotes/"), Prepare(quotes::prepare)),
    Row(Endpoint::Quotes, Exactly("/api/v1/quotes"), Prepare(quotes::prepare_list)),
    Row(Endpoint::Categories, Exactly("/api/v1/categories"), Respond(markets::categories)),
    Row(Endpoint::CategoryMarkets, Between("/api/v1/categories/", "/markets"), Prepare(markets::category)),
    Row(Endpoint::Metrics, Exactly("/api/v1/metrics"), Respond(metrics::json)),
    Row(Endpoint::Stream, Exactly("/api/v1/stream"), Respond(|call, view, _| stream::read(call, view))),
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
    Row(Endpoint::Udf, Exactly("/udf/history"), Respond(|call, view, _| udf::history::history(call, view))),
    Row(Endpoint::Udf, Exactly("/udf/quotes"), Respond(udf::quotes)),
] } else { &[] };

/// The addresses under `basePath` and `ecosystemBasePath`.
#[rustfmt::skip]
static COMMON: &[Row] = &[
    Row(Endpoint::Page, Root, Respond(page::root)),
    Row(Endpoint::Health, Exactly("/health"), Prepare(|_, _| Ok(Box::new(Kind::Whole)))),
    Row(Endpoint::Health, Exactly("/health/live"), Prepare(|_, _| Ok(Box::new(Kind::Live)))),
    Row(Endpoint::Health, Exactly("/health/ready"), Prepare(|_, _| Ok(Box::new(Kind::Ready)))),
    Row(Endpoint::Prometheus, Exactly("/metrics"), Respond(metrics::prometheus)),
    Row(Endpoint::OpenApi, Exactly("/openapi.json"), Respond(described::document)),
];

/// A row of the table: an endpoint, its address, and its handler.
struct Row(Endpoint, Path, Handler);

/// An address behind the base path.
enum Path {
    /// This address.
    Exactly(&'static str),
    /// Every address that begins with this and goes on.
    Below(&'static str),
    /// One segment between these two.
    Between(&'static str, &'static str),
    /// The base path itself, with or without a slash.
    Root,
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

/// Finds what responds to a request. `path`: its path, normalized.
pub fn route<'a>(
    config: &Config,
    service: Service,
    request: &'a Request<'a>,
    path: &'a [u8],
) -> ApiRequest<'a> {
    const OPTIONS: Handler = Respond(|_, _, responder| {
        responder.send(&Head::options(), b"");
        Ok(None)
    });
    const NOT_ALLOWED: Handler = Respond(|_, _, _| Err(Error::METHOD_NOT_ALLOWED));
    const NOT_FOUND: Handler = Respond(|call, _, _| Err(Error::not_found(call.request.path)));
    let (endpoint, handler, rest) = match find(config, service, path) {
        _ if request.method == Method::Options => (Endpoint::Options, OPTIONS, path),
        // Only CONNECT, which is not served, has a target without a leading slash.
        None if !path.starts_with(b"/") => (Endpoint::Unknown, NOT_ALLOWED, path),
        None => (Endpoint::Unknown, NOT_FOUND, path),
        Some((row, rest)) if !request.method.is_served() => (row.0, NOT_ALLOWED, rest),
        Some((Row(endpoint, _, handler), rest)) => (*endpoint, *handler, rest),
    };
    ApiRequest { endpoint, handler, service, request, rest }
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
            let mut rows = 0..rows.len();
            let lacks = rows.find(|row| !found.contains(row));
            assert_eq!(lacks, None, "openapi.json does not describe this row of {table}");
            assert_eq!(found.len(), rows.end, "a row of {table} is described twice");
        }
        assert!(paths.iter().all(|(of, _)| tables.iter().any(|(table, _)| of == table)));
    }
}
