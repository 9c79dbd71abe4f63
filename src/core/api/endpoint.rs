//! The purposes of requests that the rate limit and the metrics distinguish.

use crate::durations::MOST_ENDPOINTS;
use crate::named::named;

named! {
    /// What a request is for. The set is closed, so that no client can add a time series to the metrics,
    /// which list the endpoints in this order.
    pub enum Endpoint {
        /// `/api/v1/quotes/:symbol`.
        Quote "quote"
        /// `/api/v1/quotes`.
        Quotes "quotes"
        /// `/api/v1/categories`.
        Categories "categories"
        /// `/api/v1/categories/:categoryId/markets`.
        CategoryMarkets "category_markets"
        /// `/api/ecosystem/market`.
        EcosystemMarkets "ecosystem_markets"
        /// `/api/ecosystem/market/{id}`.
        EcosystemMarket "ecosystem_market"
        /// `/api/ecosystem/chart`.
        Chart "chart"
        /// `/api/v1/metrics`.
        Metrics "metrics"
        /// `/metrics`.
        Prometheus "prometheus"
        /// `/health` and what is below it.
        Health "health"
        /// `/openapi.json`.
        OpenApi "openapi"
        /// `/api/v1/stream`.
        Stream "stream"
        /// `/` and `/page/:file`.
        Page "page"
        /// `/udf/...`.
        Udf "udf"
        /// OPTIONS of any address.
        Options "options"
        /// An address that does not exist.
        Unknown "unknown"
        /// A request that was not read: malformed, incomplete in time, or of a refused client.
        Unread "unread"
    }
}

impl Endpoint {
    /// True if the rate limit counts its requests.
    pub fn is_limited(self) -> bool {
        !matches!(self, Endpoint::Health | Endpoint::Options)
    }
}

const _: () = assert!(Endpoint::NAMES.len() <= MOST_ENDPOINTS);
