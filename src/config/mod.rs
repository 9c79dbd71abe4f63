//! The configuration: every address, deadline, cap and default, valid by type.
//!
//! Owns what the file, the environment and the command line may say, and what holds when they
//! are silent. It never touches a socket or a clock. Once built, it does not change.
//!
//! From the command line to a [`Config`]: [`command`] (in `load`) takes the words apart with
//! `args`, reads the file with `json` by the tables of `schema` and `limits` (`keys` and `rows`
//! are what the tables are made of, `forms` what a text may say), lays environment and flags on
//! top, and lets `check` compare what only makes sense together. Whatever is wrong becomes a
//! [`Fault`].

mod args;
mod check;
mod fault;
mod forms;
mod json;
mod keys;
mod limits;
mod load;
mod log_rules;
mod network;
mod proxy;
mod reference;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod url;

pub use args::help;
pub use check::{KnownDialect, tls_available};
pub use fault::Fault;
pub use limits::Limits;
pub use load::{Command, Loaded, command};
pub use network::Network;
pub use proxy::{Credentials, Proxy};
pub use reference::reference;
pub use url::Url;

use crate::interval::Stored;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The demo exchange: its name as a dialect in the file and on the command line, and the id of
/// its source.
pub const DEMO: &str = "demo";

/// The dialect that the demo exchange speaks.
const DEMO_DIALECT: &str = "binance";

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
    /// The built-in exchange, when it runs; then one of `sources` has the id [`DEMO`].
    pub demo: Option<DemoConfig>,
    /// In the order in which they are listed.
    pub categories: Vec<CategoryConfig>,
    /// `ecosystem.markets`; `None`: every tracked market.
    pub ecosystem: Option<Vec<EcosystemMarket>>,
    /// Whose word on a client's address (`X-Forwarded-For`) is believed.
    pub trusted_proxies: Vec<Network>,
    /// Whether each answer is told in the log.
    pub access_log: bool,
    /// How https is spoken with exchanges.
    pub tls: Tls,
    /// Every cap and deadline.
    pub limits: Limits,
}

/// How https is spoken with exchanges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// A file of root certificates (PEM) that count besides those of the build.
    pub ca_file: Option<String>,
    /// What that file says; empty where there is none.
    pub ca_text: String,
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
    /// What its connections go through, by the environment's word.
    pub proxy: Option<Proxy>,
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

impl Config {
    /// Which of `sources` polls the demo exchange: the one whose address is known only once the
    /// demo exchange listens.
    pub fn demo_source(&self) -> Option<usize> {
        self.demo.as_ref()?;
        self.sources.iter().position(|source| source.id == DEMO)
    }
}

impl Default for Config {
    /// What holds when nobody says anything, but for the demo exchange, which comes in when
    /// there are no sources.
    fn default() -> Config {
        Config {
            listen: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 8080),
            ecosystem_listen: None,
            base_path: String::new(),
            ecosystem_base_path: String::new(),
            data: Data::File(PathBuf::from("marketd.db")),
            sources: Vec::new(),
            history: History::default(),
            demo: None,
            categories: Vec::new(),
            ecosystem: None,
            trusted_proxies: Vec::new(),
            access_log: false,
            tls: Tls::default(),
            limits: Limits::default(),
        }
    }
}

impl SourceConfig {
    /// A source of this dialect, named after it, with the defaults of everything else.
    pub fn of(dialect: &str) -> SourceConfig {
        SourceConfig {
            id: dialect.to_string(),
            dialect: dialect.to_string(),
            url: None,
            symbols: Vec::new(),
            quote_assets: Vec::new(),
            // A bulk poll of a large exchange is 2 MB: one a second would be rude.
            poll: Duration::from_secs(2),
            // Seven polls: one or two that fail are no news.
            stale_after: Duration::from_secs(15),
            // On a whole exchange something changes every second.
            frozen_after: Duration::from_secs(300),
            // A bulk answer takes below two seconds, also from far away.
            timeout: Duration::from_secs(5),
            proxy: None,
        }
    }

    /// The source that polls the demo exchange: all of its markets, candles of two.
    pub fn demo() -> SourceConfig {
        SourceConfig {
            id: DEMO.to_string(),
            symbols: vec!["BTC/USDT".to_string(), "ETH/USDT".to_string()],
            quote_assets: vec!["*".to_string()],
            // Its prices move each second, and it is next door.
            poll: Duration::from_secs(1),
            stale_after: Duration::from_secs(5),
            ..SourceConfig::of(DEMO_DIALECT)
        }
    }
}

impl Default for DemoConfig {
    fn default() -> DemoConfig {
        DemoConfig { seed: 1 }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::File(path) => write!(f, "{}", path.display()),
            Data::Memory => f.write_str(":memory:"),
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
