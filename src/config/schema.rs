//! The schema: every key of the file, with the field that holds it.
//!
//! A row has the meaning of a key, its field, type and default, its name in the file and the rule of its
//! value. The reader, `--print-config`, the JSON Schema and the reference are made from the rows. The keys of
//! `limits` are in `limits`.
//!
//! To add a key:
//!
//! 1. Add a row to its struct.
//! 2. If its value is a text of a new form, add the form to `forms`.
//! 3. If it depends on other keys, compare them in `check`. Code that keeps a copy of the value updates it in
//!    its `reconfigure`. If a reload cannot change it, list it in `fixed!` of `reload`, and in the table of
//!    `src/docs/operations.md`, "Signals".
//! 4. Let `UPDATE_DOCS=1 cargo test --lib config` write the reference and the JSON Schema.

use super::files::Secret;
use super::forms::{
    ADDRESS, AMOUNT, BASE_PATH, CATEGORY_ID, DATA, DIALECT, Data, ENGINE, FILE, FRACTION, ICON,
    KEY_PART, LOG, ListenAddress, MARKET_ID, NETWORK, PLACES, Poll, QUOTE_ASSET, SOURCE_ID, SYMBOL,
    TCP_ADDRESS, TIME, URL, WORDS,
};
use super::json::Node;
use super::limits::Limits;
use super::members::{Number, candles, count, millis};
use super::url::Url;
use super::values::{FileObject, KeyType as _, Visit, object};
use crate::interval::Stored;
use crate::record::{Bounds, MarketRules};
use crate::time::UnixMs;
use std::mem::take;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest id that is made of a file's name.
const ID_CHARS: usize = 32;

/// The demo exchange: its name as a dialect, and the id of its source.
pub const DEMO: &str = "demo";

object! {
    /// The configuration of a running marketd.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Where the service listens: an address, or `unix:PATH` for a Unix socket; port 0 picks a free one,
        /// `[::]` is every address of IPv6 and IPv4.
        listen: ListenAddress = (Ipv4Addr::LOCALHOST, 8080).into(), "listen" ADDRESS;
        /// Where `/api/ecosystem` listens; null: on `listen` as well.
        ecosystem_listen: Option<ListenAddress>, "ecosystemListen" ADDRESS;
        /// True: on Linux with SYN cookies, a connection is accepted when its first bytes come, or after a
        /// second. That makes short connections cheaper.
        defer_accept: bool = true, "deferAccept";
        /// Path in front of the path of every endpoint but the ecosystem's; a slash at its end is dropped.
        base_path: String, "basePath" BASE_PATH;
        /// Like `basePath`, for the endpoints of the ecosystem.
        ecosystem_base_path: String, "ecosystemBasePath" BASE_PATH;
        /// File of the history; a relative name starts from the working directory.
        data: Data = Data::File(PathBuf::from("marketd.db")), "data" DATA;
        /// The exchanges to poll, in order of failover; none: the demo exchange.
        sources: Vec<SourceConfig>, "sources";
        /// How much history is kept and fetched, by stored interval.
        history: HistoryConfig, "history";
        /// Settings of the demo exchange. They do not start it.
        // `None` if it does not run. Otherwise one of `sources` has the dialect `DEMO`.
        demo: Option<DemoConfig>, "demo";
        /// Named groups of markets, in the order in which they are listed.
        categories: Vec<CategoryConfig>, "categories";
        /// What `/api/ecosystem` lists.
        ecosystem: Ecosystem, "ecosystem";
        /// Addresses of proxies in front of marketd. Only their `X-Forwarded-For` is believed.
        trusted_proxies: Vec<ipnet::IpNet>, "trustedProxies" NETWORK;
        /// Logs a line for each response, as `--log access=info` does, unless `log` has a rule for `access`.
        access_log: bool, "accessLog";
        /// Which lines the log has, in the form of `--log`; null: level `info`.
        log: Option<String>, "log" LOG;
        /// TLS towards exchanges.
        tls: Tls, "tls";
        /// The Redis or Valkey of a cluster, in which one node polls for all; null: none.
        cluster: Option<ClusterConfig>, "cluster";
        /// Caps and deadlines of the service and of its connections, by name.
        limits: Limits, "limits";
    }
}

object! {
    /// One exchange to poll: an entry of `sources`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SourceConfig [64, &["dialect"], source] {
        /// Unique name; the default is the dialect's.
        id: String, "id" SOURCE_ID;
        /// The exchange, or the path of a dialect's file, relative to this file; "demo": the built-in
        /// exchange; required.
        dialect: String, "dialect" DIALECT;
        /// The text of the dialect's file; empty if the dialect is built in.
        dialect_text: String;
        /// Base address; null: the exchange's own.
        url: Option<Url>, "url" URL;
        /// Markets to track whatever their status; their candles are polled too.
        symbols: Vec<String>, "symbols" SYMBOL;
        /// Assets: every active market quoted in one of them is tracked. Without these and `symbols`: all.
        quote_assets: Vec<String>, "quoteAssets" QUOTE_ASSET;
        /// Time from the start of one poll of quotes to the start of the next. The second poll after the
        /// start may come sooner, so that several sources are not polled at the same moment. "auto": as often
        /// as half of the exchange's budget permits.
        poll: Poll = Poll::Every(Poll::USUAL), "pollMs" millis(100, 3_600_000);
        /// Age at which a quote is stale.
        // Seven polls, so one or two may fail.
        stale_after: Duration = Duration::from_secs(15), "staleAfterMs" millis(1, 86_400_000);
        /// Time without a change of any price or volume after which the whole source is frozen.
        // On any exchange some quote changes every second.
        frozen_after: Duration = Duration::from_secs(300), "frozenAfterMs" millis(1, 604_800_000);
        /// Longest time of one request.
        // A response with all quotes takes less than two seconds, even from far away.
        timeout: Duration = Duration::from_secs(5), "timeoutMs" millis(100, 600_000);
        /// File with the key that the dialect sends; null: the variable of the id (`MARKETD_KEY_TALLY`).
        key_file: Option<String>, "keyFile" FILE;
        /// The key; `None` if the dialect sends none.
        key: Option<Secret>;
        /// Proxy of its connections, from the environment.
        proxy: Option<Url>;
    }
}

object! {
    /// TLS towards exchanges.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Tls {
        /// Root certificates (PEM) besides the built-in ones; relative to the working directory.
        ca_file: Option<String>, "caFile" FILE;
        /// The text of the file; empty if there is none.
        ca_text: String;
    }
}

object! {
    /// The engine that the nodes of a cluster share.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ClusterConfig [1, &["url"]] {
        /// Its address; rediss:// is TLS. User and password are not printed. Required.
        // The key is required, so this default is used only after a fault.
        url: Url = Url::engine("redis://127.0.0.1").expect("this address is sound"), "url" ENGINE;
        /// The name of the cluster, with which all of its keys begin.
        prefix: String = "marketd".to_string(), "prefix" KEY_PART;
        /// Unique name of this node; null: the name of its host with the id of its history file.
        node: Option<String>, "node" KEY_PART;
        /// How long the lease of a collector lasts without a renewal.
        // A node that stalls for a second must not lose its sources. Another node must replace a dead one
        // before quotes become stale.
        lease: Duration = Duration::from_secs(3), "leaseMs"
            Number {
                why: "a lease that is shorter than a reply of the engine always runs out",
                ..millis(200, 60_000)
            };
    }
}

object! {
    /// Kept and fetched history, by stored interval.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HistoryConfig {
        /// Candles of one minute.
        // 30 days.
        m1: Depth = Depth { keep: 43_200, ..Depth::default() }, "1m";
        /// Candles of one hour.
        // Five years.
        h1: Depth = Depth { keep: 43_800, ..Depth::default() }, "1h";
        /// Candles of one day.
        // Twenty years.
        d1: Depth = Depth { keep: 7_300, ..Depth::default() }, "1d";
    }
}

object! {
    /// How much history of an interval is kept and fetched.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Depth {
        /// How many candles are kept, back from now (up to a 64th more in the file). None older is fetched.
        keep: i64, "keep" candles(1, 1_000_000_000);
        /// Candles that are fetched without a request; at most `keep`.
        backfill: i64 = 1500, "backfill" candles(0, 1_000_000_000);
    }
}

object! {
    /// The built-in exchange.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DemoConfig {
        /// The same seed gives the same prices at the same time.
        seed: u64 = 1, "seed" count(0, u64::MAX);
        /// What the clock of the demo exchange shows at the start; null: this machine's time.
        at: Option<UnixMs>, "at" TIME;
        /// How many seconds pass on this clock in one real second; 0: the clock stands still.
        speed: u32 = 1, "speed" count(0, 100_000);
        /// Script that says what the demo exchange serves, read again when it changes; a relative name starts
        /// from the working directory.
        script: Option<String>, "script" FILE;
        /// Where the demo exchange listens, also for other clients; null: on a free port of the loopback.
        listen: Option<ListenAddress>, "listen" TCP_ADDRESS;
        /// Recorded candles that are played instead of generated ones; null: none.
        replay: Option<ReplayConfig>, "replay";
    }
}

object! {
    /// What the demo exchange plays.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReplayConfig [1, &["data"]] {
        /// A history file, which is read at the start; relative to the working directory; required.
        data: String, "data" FILE;
        /// What the clock shows at the start; null: the value of `at`, else the time of the first candle of
        /// the shortest recorded interval.
        from: Option<UnixMs>, "from" TIME;
        /// The speed of the clock; null: the `speed` of `demo`.
        speed: Option<u32>, "speed" count(0, 100_000);
    }
}

impl DemoConfig {
    /// True if its clock is not this machine's. All times in bodies are by its clock.
    pub fn has_clock(&self) -> bool {
        self.at.is_some() || self.speed() != 1
    }

    /// How many seconds pass on its clock in one real second.
    pub fn speed(&self) -> u32 {
        self.replay.as_ref().and_then(|replay| replay.speed).unwrap_or(self.speed)
    }
}

object! {
    /// A named group of markets: an entry of `categories`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CategoryConfig [1000, &["id"], category] {
        /// Unique name, part of addresses; required.
        id: String, "id" CATEGORY_ID;
        /// Name for people; the default is the id.
        name: String, "name" WORDS;
        /// Description for people.
        description: Option<String>, "description" WORDS;
        /// Its markets, in order.
        symbols: Vec<String>, "symbols" SYMBOL;
    }
}

object! {
    /// What `/api/ecosystem` lists.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Ecosystem {
        /// The markets that are listed, in order; null: every tracked one.
        markets: Option<Vec<EcosystemMarket>>, "markets";
    }
}

object! {
    /// An entry of `ecosystem.markets`. `None` does not override the exchange's value.
    #[derive(Clone, Debug, PartialEq)]
    pub struct EcosystemMarket [1_000_000, &["symbol"]] {
        /// The market; unique, required.
        symbol: String, "symbol" SYMBOL;
        /// Unique name, part of addresses; null: like "BTC-USDT".
        id: Option<String>, "id" MARKET_ID;
        /// Passed on to clients.
        is_trending: bool, "isTrending";
        /// Passed on to clients.
        is_hot: bool, "isHot";
        /// Address of a picture, passed on to clients.
        icon: Option<String>, "icon" ICON;
        /// True: active; null: by the exchange's list.
        status: Option<bool>, "status";
        /// Each value that is not null replaces the exchange's value.
        rules: MarketRules, "metadata";
    }
}

object! {
    /// `metadata.precision` of an ecosystem market.
    pub struct Precision {
        /// Decimal places of an amount.
        amount: Option<u8>, "amount" PLACES;
        /// Decimal places of a price.
        price: Option<u8>, "price" PLACES;
    }
}

object! {
    /// `metadata.limits` of an ecosystem market.
    pub struct OrderLimits {
        /// Amount of an order, in base asset.
        amount: Bounds, "amount";
        /// Price of an order.
        price: Bounds, "price";
        /// Cost of an order, in quote asset.
        cost: Bounds, "cost";
    }
}

// `MarketRules` and `Bounds` are types of `record`, so their keys are listed by hand.
#[rustfmt::skip]
impl FileObject for MarketRules {
    fn keys(&mut self, visit: &mut Visit<'_>) {
        let mut precision = Precision { amount: self.amount_places, price: self.price_places };
        visit("precision", "Decimal places.", &mut (&mut precision, &()));
        (self.amount_places, self.price_places) = (precision.amount, precision.price);
        let [amount, price, cost] = [&mut self.amount, &mut self.price, &mut self.cost].map(take);
        let mut limits = OrderLimits { amount, price, cost };
        visit("limits", "The least and the most of an order.", &mut (&mut limits, &()));
        (self.amount, self.price, self.cost) = (limits.amount, limits.price, limits.cost);
        visit("taker", "Fee of a taker; 0.001 is 0.1 %.", &mut (&mut self.taker, &FRACTION));
        visit("maker", "Fee of a maker; below zero: a rebate.", &mut (&mut self.maker, &FRACTION));
    }
}

impl FileObject for Bounds {
    fn keys(&mut self, visit: &mut Visit<'_>) {
        visit("min", "The least.", &mut (&mut self.min, &AMOUNT));
        visit("max", "The most.", &mut (&mut self.max, &AMOUNT));
    }
}

/// A source with the defaults of its dialect.
fn source(node: &Node) -> SourceConfig {
    SourceConfig::new(&text_of("dialect", node))
}

/// A category that is named after its id.
fn category(node: &Node) -> CategoryConfig {
    CategoryConfig { name: text_of("id", node), ..CategoryConfig::default() }
}

/// The text of a key of an entry on which other defaults depend.
fn text_of(name: &str, entry: &Node) -> String {
    entry.member(name).and_then(|value| value.text()).unwrap_or_default()
}

impl Config {
    /// This configuration as the text of a file. Reading it gives the same configuration.
    pub fn to_json(&self) -> String {
        self.clone().print()
    }
}

impl SourceConfig {
    /// A source of this dialect, named after it, with defaults for everything else.
    pub fn new(dialect: &str) -> SourceConfig {
        let mut source = SourceConfig {
            id: dialect.to_string(),
            dialect: dialect.to_string(),
            ..SourceConfig::default()
        };
        if source.names_file() {
            source.id = id_of_file(dialect);
        }
        if dialect == DEMO {
            // Quotes of all markets, and candles of two. Prices move each second; the exchange is near.
            source.symbols = vec!["BTC/USDT".to_string(), "ETH/USDT".to_string()];
            source.quote_assets = vec!["*".to_string()];
            source.poll = Poll::Every(Duration::from_secs(1));
            source.stale_after = Duration::from_secs(5);
        }
        source
    }

    /// True if its dialect is the path of a file.
    pub(super) fn names_file(&self) -> bool {
        self.dialect.contains(['/', '\\']) || self.dialect.ends_with(".json")
    }

    /// True if this symbol is tracked as soon as the exchange lists it.
    pub fn may_track(&self, symbol: &str) -> bool {
        let (named, assets) = (&self.symbols, &self.quote_assets);
        let quote = symbol.split_once('/').map_or("", |(_, quote)| quote);
        named.iter().any(|it| it == symbol)
            || assets.iter().any(|it| it == "*" || it == quote)
            || named.is_empty() && assets.is_empty()
    }

    /// The dialect that its exchange uses. The demo exchange uses the dialect of another exchange.
    pub fn spoken(&self) -> &str {
        match &*self.dialect {
            DEMO => "binance",
            dialect => dialect,
        }
    }
}

/// The id of a source whose dialect is this file: its name without the ending.
fn id_of_file(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
    let stem = stem.to_ascii_lowercase();
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
    stem.chars().map(plain).take(ID_CHARS).collect()
}

impl HistoryConfig {
    /// The depth of one interval.
    pub fn depth(&self, interval: Stored) -> Depth {
        [self.m1, self.h1, self.d1][interval as usize]
    }
}
