//! The configuration: every address, deadline, cap and default, valid by type.
//!
//! Owns what the file, the environment and the command line may say, and what holds when they
//! are silent. It never touches a socket or a clock. Once built, it does not change.

mod url;

pub use url::Url;

use crate::interval::Stored;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that a running marketd was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where the service listens. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// Where `/api/ecosystem` listens; `None`: on `listen` as well.
    pub ecosystem_listen: Option<SocketAddr>,
    /// Path in front of every address on `listen`: empty, or `/x` without a slash at its end.
    pub base_path: String,
    /// The same for the ecosystem's addresses.
    pub ecosystem_base_path: String,
    /// Where history is kept.
    pub data: Data,
    /// In order of failover.
    pub sources: Vec<SourceConfig>,
    /// How much is kept and fetched of each stored interval.
    pub history: History,
    /// The built-in exchange, when it runs.
    pub demo: Option<DemoConfig>,
    /// In the order in which they are listed.
    pub categories: Vec<CategoryConfig>,
    /// `ecosystem.markets`; `None`: every tracked market.
    pub ecosystem: Option<Vec<EcosystemMarket>>,
    /// Every cap and deadline.
    pub limits: Limits,
}

/// Where history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In this file.
    File(PathBuf),
    /// In memory alone.
    Memory,
}

/// One exchange to poll.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceConfig {
    /// Unique name: `[a-z0-9-]{1,32}`.
    pub id: String,
    /// Which exchange's addresses and JSON it speaks: a name that `exchange::Dialect` knows.
    pub dialect: String,
    /// Base address; `None`: the dialect's own.
    pub url: Option<Url>,
    /// Canonical symbols, tracked whatever their status, whose candles are polled too.
    pub symbols: Vec<String>,
    /// Track every active market quoted in one of these (upper case); `["*"]`: all.
    pub quote_assets: Vec<String>,
    /// From the begin of one poll of quotes to the next.
    pub poll: Duration,
    /// Age from which a quote is stale.
    pub stale_after: Duration,
    /// Time without any change of any quote from which the whole source is frozen.
    pub frozen_after: Duration,
    /// Longest time of one request.
    pub timeout: Duration,
}

/// Kept and fetched history, by stored interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// One minute.
    pub m1: Depth,
    /// One hour.
    pub h1: Depth,
    /// One day.
    pub d1: Depth,
}

/// How deep the history of one interval goes, in slots back from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Kept, and the most that is fetched on request.
    pub keep: i64,
    /// Fetched unasked.
    pub backfill: i64,
}

/// The built-in exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoConfig {
    /// The same seed gives the same prices at the same time.
    pub seed: u64,
}

/// A named group of markets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryConfig {
    /// `[a-z0-9-]{1,64}`.
    pub id: String,
    /// For people.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Canonical symbols.
    pub symbols: Vec<String>,
}

/// An entry of `ecosystem.markets`: `None` leaves what the exchange says.
#[derive(Clone, Debug, PartialEq)]
pub struct EcosystemMarket {
    /// Canonical symbol.
    pub symbol: String,
    /// Stable id; the default is `BTC-USDT`.
    pub id: Option<String>,
    /// For the front page of a shop.
    pub is_trending: bool,
    /// For the front page of a shop.
    pub is_hot: bool,
    /// URL of a picture.
    pub icon: Option<String>,
    /// Overrides whether the market is active.
    pub status: Option<bool>,
    /// Overrides of `metadata`, field by field.
    pub rules: crate::record::MarketRules,
}

/// Every cap and deadline, by name. `Limits::default()` is the table of defaults; each has its
/// reason beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Client connections in all.
    pub max_connections: usize,
    /// Bytes of a request line.
    pub request_line_bytes: usize,
    /// Bytes of a request head, line included.
    pub head_bytes: usize,
    /// Header fields of a request.
    pub head_fields: usize,
    /// From the first byte of a head to its last; later bytes do not renew it.
    pub head_timeout: Duration,
    /// A connection without a request, and a new one without a byte.
    pub idle_timeout: Duration,
    /// Without progress of a pending answer.
    pub write_timeout: Duration,
    /// From the head to the last byte of a request's body.
    pub body_timeout: Duration,
    /// Bytes of a request's body that are read and thrown away.
    pub body_bytes: usize,
    /// Time for a client to read the last answer of a closing connection.
    pub linger: Duration,
    /// Pending output of one connection above which it gets no further answer.
    pub output_high_water: usize,
    /// Requests answered on one connection before it is closed.
    pub requests_per_connection: u32,
    /// Symbols in one request for quotes.
    pub symbols_per_request: usize,
    /// Answers that are being made over several turns, at once.
    pub long_answers: usize,
    /// Time that a chart request waits for candles that were never asked of the exchange.
    pub chart_wait: Duration,
    /// Ranges of candles asked by clients and not yet answered by the exchange.
    pub chart_fetches: usize,
    /// Candle series in all.
    pub candle_series: usize,
    /// Bytes of rendered candles in memory, over all series.
    pub candle_bytes: usize,
    /// Distinct symbols over all sources.
    pub symbols: usize,
    /// Bytes of one upstream answer after decoding.
    pub upstream_body_bytes: usize,
    /// Bytes of one item (ticker, candle, market) in it.
    pub upstream_item_bytes: usize,
    /// Bytes of an upstream answer's head.
    pub upstream_head_bytes: usize,
    /// Connections to one source.
    pub lanes_per_source: usize,
    /// Longest wait between tries of a failing source.
    pub backoff_max: Duration,
    /// Time to finish what is in flight after SIGTERM.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // About 100 B each while idle; above it, accept queues in the kernel.
            max_connections: 16_384,
            // RFC 9112, 3: at least 8000 octets are recommended.
            request_line_bytes: 8 * 1024,
            // Room for a browser's cookies, which are not ours to read.
            head_bytes: 16 * 1024,
            // A browser sends about 20, a proxy adds about 10.
            head_fields: 64,
            // A head is one packet; ten seconds let a lost one be sent again three times.
            head_timeout: Duration::from_secs(10),
            // Longer than the usual 60 s of a proxy in front would hold sockets for nothing.
            idle_timeout: Duration::from_secs(75),
            // Renewed by progress: only a dead or hostile reader meets it.
            write_timeout: Duration::from_secs(30),
            // 64 KiB in ten seconds is slower than any living client.
            body_timeout: Duration::from_secs(10),
            // No request has a use for a body; this is for libraries that send one anyway.
            body_bytes: 64 * 1024,
            // A reset must not overtake the answer; one round trip around the world is 0.4 s.
            linger: Duration::from_secs(2),
            // About one chart of 1000 candles: bounds what one slow reader holds.
            output_high_water: 64 * 1024,
            // Lets balancers move clients about; costs one connection in ten thousand requests.
            requests_per_connection: 10_000,
            // About 35 KB of answer.
            symbols_per_request: 100,
            // Each holds its body while it is made.
            long_answers: 64,
            // One round trip to an exchange is below half a second; people wait two.
            chart_wait: Duration::from_secs(2),
            // A page takes about 0.2 s: what is behind this in the queue would time out.
            chart_fetches: 256,
            // 200 symbols in three intervals: about ten requests a second to poll.
            candle_series: 600,
            // About 500,000 candles.
            candle_bytes: 32 * 1024 * 1024,
            // Eight exchanges with 3,500 markets each share most of their symbols.
            symbols: 20_000,
            // The largest known body, a full market list, is below 20 MB.
            upstream_body_bytes: 48 * 1024 * 1024,
            // The largest known item, a market with its permission sets, is below 8 KB.
            upstream_item_bytes: 64 * 1024,
            // Exchanges behind firewalls send several KB of cookies and policies.
            upstream_head_bytes: 16 * 1024,
            // One for quotes, two for the rest: a slow market list delays no quote.
            lanes_per_source: 3,
            // Long enough to be polite, short enough to return soon.
            backoff_max: Duration::from_secs(30),
            // Service managers kill after ten seconds or more.
            shutdown: Duration::from_secs(5),
        }
    }
}

impl History {
    /// The depth of one interval.
    pub fn of(&self, interval: Stored) -> Depth {
        match interval {
            Stored::M1 => self.m1,
            Stored::H1 => self.h1,
            Stored::D1 => self.d1,
        }
    }
}

impl Default for History {
    /// 30 days of minutes, five years of hours, twenty years of days.
    fn default() -> History {
        let depth = |keep| Depth {
            keep,
            backfill: 1500,
        };
        History {
            m1: depth(43_200),
            h1: depth(43_800),
            d1: depth(7_300),
        }
    }
}
