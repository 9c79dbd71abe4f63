//! What requests are for, as the rate limit and the metrics distinguish them.

use crate::durations::MOST_ENDPOINTS;

/// What a request is for. The set is closed, so that no client can add a time series to the metrics, which
/// list the endpoints in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/api/v1/quotes/:symbol`.
    Quote,
    /// `/api/v1/quotes`.
    Quotes,
    /// `/api/v1/categories`.
    Categories,
    /// `/api/v1/categories/:categoryId/markets`.
    CategoryMarkets,
    /// `/api/ecosystem/market`.
    EcosystemMarkets,
    /// `/api/ecosystem/market/{id}`.
    EcosystemMarket,
    /// `/api/ecosystem/chart`.
    Chart,
    /// `/api/v1/metrics`.
    Metrics,
    /// `/metrics`.
    Prometheus,
    /// `/health` and what is below it.
    Health,
    /// `/openapi.json`.
    OpenApi,
    /// `/api/v1/stream`.
    Stream,
    /// `/` and `/page/:file`.
    Page,
    /// `/udf/...`.
    Udf,
    /// OPTIONS of any address.
    Options,
    /// An address that does not exist.
    Unknown,
    /// A request that was not read: malformed, incomplete in time, or of a refused client.
    Unread,
}

impl Endpoint {
    /// Their names in the metrics, in their order.
    #[rustfmt::skip]
    pub const NAMES: [&str; Endpoint::Unread as usize + 1] = [
        "quote", "quotes", "categories", "category_markets", "ecosystem_markets", "ecosystem_market", "chart",
        "metrics", "prometheus", "health", "openapi", "stream", "page", "udf", "options", "unknown", "unread",
    ];

    /// True if the rate limit counts its requests.
    pub fn is_limited(self) -> bool {
        !matches!(self, Endpoint::Health | Endpoint::Options)
    }
}

const _: () = assert!(Endpoint::NAMES.len() <= MOST_ENDPOINTS);
