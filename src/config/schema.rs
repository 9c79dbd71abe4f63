//! The schema: every key of the file, object by object.
//!
//! Owns the tables that say which keys there are, what they may be, where their values live and
//! what the documentation says of them; the keys of `limits` alone stand beside the limits. To
//! add a key is to add a row. It never compares one key with another: `check` does.

use super::fault::Report;
use super::forms;
use super::json::{Json, Node};
use super::keys::{Key, Kind, print_object, print_objects, read_object, read_objects};
use super::limits::LIMITS;
use super::network;
use super::rows::{decimal, number, part, places, switch, text, texts};
use super::{
    CategoryConfig, Config, DEMO, DemoConfig, Depth, EcosystemMarket, History, Network,
    SourceConfig, Tls, Url,
};
use crate::decimal::Decimal;
use crate::record::{Bounds, MarketRules};

/// Each source has connections, a table of quotes and a poll of its own.
const SOURCES: usize = 64;

/// Categories are read by people.
const CATEGORIES: usize = 1000;

/// As many markets as a service can have symbols (`limits.symbols`).
const MARKETS: usize = 1_000_000;

// rustfmt gives every argument of a row a line of its own; a table reads by its rows.

/// The whole file.
#[rustfmt::skip]
pub(super) const ROOT: &[Key<Config>] = &[
    text!(Config, listen, "listen", forms::ADDRESS, forms::address,
        "where the service listens; port 0 picks a free one"),
    text!(Config, ecosystem_listen?, "ecosystemListen", forms::ADDRESS, forms::address,
        "where `/api/ecosystem` listens; null: on `listen` as well"),
    text!(Config, base_path, "basePath", forms::BASE_PATH, forms::base_path,
        "path in front of every address; a slash at its end is dropped"),
    text!(Config, ecosystem_base_path, "ecosystemBasePath", forms::BASE_PATH, forms::base_path,
        "the same for the addresses of the ecosystem"),
    text!(Config, data, "data", forms::DATA, forms::data,
        "where history is kept; a relative name starts from the working directory"),
    Key {
        name: "sources",
        about: "the exchanges to poll, in order of failover; none: the demo exchange",
        kind: Kind::Part {
            expected: "a list of objects",
            read: |config, node, report| config.sources = read_sources(node, report),
            print: |config| print_objects(&config.sources, SOURCE),
        },
    },
    part!(Config, history, "history", HISTORY, "how much is kept and fetched, by stored interval"),
    Key {
        name: "demo",
        about: "settings of the demo exchange; they alone do not start it",
        kind: Kind::Part {
            expected: "an object or null",
            read: |config, node, report| config.demo = Some(read_demo(node, report)),
            print: |config| {
                config.demo.as_ref().map_or(Json::NULL, |demo| print_object(demo, DEMO_KEYS))
            },
        },
    },
    Key {
        name: "categories",
        about: "named groups of markets, in the order in which they are listed",
        kind: Kind::Part {
            expected: "a list of objects",
            read: |config, node, report| config.categories = read_categories(node, report),
            print: |config| print_objects(&config.categories, CATEGORY),
        },
    },
    Key {
        name: "ecosystem",
        about: "what `/api/ecosystem` lists",
        kind: Kind::Part {
            expected: "an object",
            read: |config, node, report| read_object(config, ECOSYSTEM, node, report),
            print: |config| print_object(config, ECOSYSTEM),
        },
    },
    Key {
        name: "trustedProxies",
        about: "proxies in front: behind one of them, the client is whom its `X-Forwarded-For` names",
        kind: Kind::Texts {
            each: network::EXPECTED,
            parse: Network::form,
            get: |config| config.trusted_proxies.iter().map(ToString::to_string).collect(),
            set: |config, texts| {
                let networks = texts.iter().filter_map(|text| Network::parse(text));
                config.trusted_proxies = networks.collect();
            },
        },
    },
    switch!(Config, access_log, "accessLog",
        "a line in the log for each answer, as with `--log access=info`"),
    part!(Config, tls, "tls", TLS, "how https is spoken with exchanges"),
    part!(Config, limits, "limits", LIMITS, "every cap and deadline, by name"),
];

/// An entry of `sources`.
#[rustfmt::skip]
pub(super) const SOURCE: &[Key<SourceConfig>] = &[
    text!(SourceConfig, id, "id", forms::SOURCE_ID, forms::source_id,
        "unique name; the default is the dialect's"),
    text!(SourceConfig, dialect, "dialect", "the name of an exchange", forms::words,
        "which exchange it is; \"demo\": the built-in one; required"),
    text!(SourceConfig, url?, "url", "http://HOST or https://HOST", Url::parse,
        "base address; null: the exchange's own"),
    texts!(SourceConfig, symbols, "symbols", forms::SYMBOL, forms::symbol,
        "tracked whatever their status; their candles are polled too"),
    texts!(SourceConfig, quote_assets, "quoteAssets", forms::QUOTE_ASSET, forms::quote_asset,
        "track every active market quoted in one of these; neither these nor `symbols`: all"),
    number!(SourceConfig, poll, "pollMs", Ms, 100..=3_600_000,
        "from the begin of one poll of quotes to the next"),
    number!(SourceConfig, stale_after, "staleAfterMs", Ms, 1..=86_400_000,
        "age from which a quote is stale"),
    number!(SourceConfig, frozen_after, "frozenAfterMs", Ms, 1..=604_800_000,
        "time without a change of any quote from which the whole source is frozen"),
    number!(SourceConfig, timeout, "timeoutMs", Ms, 100..=600_000,
        "longest time of one request"),
];

/// `history`.
#[rustfmt::skip]
pub(super) const HISTORY: &[Key<History>] = &[
    part!(History, m1, "1m", DEPTH, "candles of one minute"),
    part!(History, h1, "1h", DEPTH, "candles of one hour"),
    part!(History, d1, "1d", DEPTH, "candles of one day"),
];

/// An entry of `history`.
#[rustfmt::skip]
pub(super) const DEPTH: &[Key<Depth>] = &[
    number!(Depth, keep, "keep", Slots, 1..=1_000_000_000,
        "window of time that is kept, in slots; the most that is fetched on request"),
    number!(Depth, backfill, "backfill", Slots, 0..=1_000_000_000,
        "how much of it is fetched unasked; more than `keep` means `keep`"),
];

/// `demo`.
#[rustfmt::skip]
pub(super) const DEMO_KEYS: &[Key<DemoConfig>] = &[
    number!(DemoConfig, seed, "seed", Count, 0..=18_446_744_073_709_551_615,
        "the same seed gives the same prices at the same time"),
];

/// An entry of `categories`.
#[rustfmt::skip]
pub(super) const CATEGORY: &[Key<CategoryConfig>] = &[
    text!(CategoryConfig, id, "id", forms::CATEGORY_ID, forms::category_id,
        "unique, stands in addresses; required"),
    text!(CategoryConfig, name, "name", "a text", forms::words,
        "for people; the default is the id"),
    text!(CategoryConfig, description?, "description", "a text", forms::words, "for people"),
    texts!(CategoryConfig, symbols, "symbols", forms::SYMBOL, forms::symbol,
        "its markets, in their order"),
];

/// `ecosystem`.
#[rustfmt::skip]
pub(super) const ECOSYSTEM: &[Key<Config>] = &[Key {
    name: "markets",
    about: "the markets that are listed, in their order; null: every tracked one",
    kind: Kind::Part {
        expected: "a list of objects or null",
        read: |config, node, report| config.ecosystem = read_markets(node, report),
        print: |config| {
            let markets = config.ecosystem.as_ref();
            markets.map_or(Json::NULL, |markets| print_objects(markets, MARKET))
        },
    },
}];

/// An entry of `ecosystem.markets`.
#[rustfmt::skip]
pub(super) const MARKET: &[Key<EcosystemMarket>] = &[
    text!(EcosystemMarket, symbol, "symbol", forms::SYMBOL, forms::symbol, "unique; required"),
    text!(EcosystemMarket, id?, "id", forms::MARKET_ID, forms::market_id,
        "unique, stands in addresses; null: like \"BTC-USDT\""),
    switch!(EcosystemMarket, is_trending, "isTrending", "passed on"),
    switch!(EcosystemMarket, is_hot, "isHot", "passed on"),
    text!(EcosystemMarket, icon?, "icon", "a text", forms::icon, "URL of a picture, passed on"),
    switch!(EcosystemMarket, status?, "status",
        "whether it is active; null: as the exchange says"),
    part!(EcosystemMarket, rules, "metadata", RULES,
        "overrides what the exchange says, field by field; null leaves it"),
];

/// `tls`.
#[rustfmt::skip]
pub(super) const TLS: &[Key<Tls>] = &[
    text!(Tls, ca_file?, "caFile", forms::FILE, forms::file,
        "root certificates (PEM) that count besides the built-in ones; a relative name starts from \
         the working directory"),
];

/// `metadata` of an ecosystem market.
#[rustfmt::skip]
pub(super) const RULES: &[Key<MarketRules>] = &[
    Key {
        name: "precision",
        about: "decimal places",
        kind: Kind::Part {
            expected: "an object",
            read: |rules, node, report| read_object(rules, PRECISION, node, report),
            print: |rules| print_object(rules, PRECISION),
        },
    },
    Key {
        name: "limits",
        about: "the least and the most of an order",
        kind: Kind::Part {
            expected: "an object",
            read: |rules, node, report| read_object(rules, ORDER_LIMITS, node, report),
            print: |rules| print_object(rules, ORDER_LIMITS),
        },
    },
    decimal!(MarketRules, taker, "taker", "a decimal fraction between -1 and 1", is_fraction,
        "fee of a taker; 0.001 is 0.1 %"),
    decimal!(MarketRules, maker, "maker", "a decimal fraction between -1 and 1", is_fraction,
        "fee of a maker; below zero: a rebate"),
];

/// `metadata.precision`.
#[rustfmt::skip]
pub(super) const PRECISION: &[Key<MarketRules>] = &[
    places!(MarketRules, amount_places, "amount", "of an amount"),
    places!(MarketRules, price_places, "price", "of a price"),
];

/// `metadata.limits`.
#[rustfmt::skip]
pub(super) const ORDER_LIMITS: &[Key<MarketRules>] = &[
    part!(MarketRules, amount, "amount", BOUNDS, "base asset of an order"),
    part!(MarketRules, price, "price", BOUNDS, "price of an order"),
    part!(MarketRules, cost, "cost", BOUNDS, "quote asset of an order"),
];

/// An entry of `metadata.limits`.
#[rustfmt::skip]
pub(super) const BOUNDS: &[Key<Bounds>] = &[
    decimal!(Bounds, min, "min", "a decimal of 0 or more", is_amount, "the least"),
    decimal!(Bounds, max, "max", "a decimal of 0 or more", is_amount, "the most"),
];

fn read_demo(node: &Node<'_>, report: &mut Report) -> DemoConfig {
    let mut demo = DemoConfig::default();
    if !node.is_null() {
        read_object(&mut demo, DEMO_KEYS, node, report);
    }
    demo
}

fn read_sources(node: &Node<'_>, report: &mut Report) -> Vec<SourceConfig> {
    let start = |node: &Node<'_>| match node.member("dialect").and_then(|it| it.text()) {
        Some(dialect) if dialect == DEMO => SourceConfig {
            dialect,
            ..SourceConfig::demo()
        },
        dialect => SourceConfig::of(dialect.as_deref().unwrap_or_default()),
    };
    read_objects(SOURCE, "dialect", SOURCES, start, node, report)
}

fn read_categories(node: &Node<'_>, report: &mut Report) -> Vec<CategoryConfig> {
    let start = |node: &Node<'_>| CategoryConfig {
        id: String::new(),
        name: (node.member("id").and_then(|id| id.text())).unwrap_or_default(),
        description: None,
        symbols: Vec::new(),
    };
    read_objects(CATEGORY, "id", CATEGORIES, start, node, report)
}

fn read_markets(node: &Node<'_>, report: &mut Report) -> Option<Vec<EcosystemMarket>> {
    if node.is_null() {
        return None;
    }
    let start = |_: &Node<'_>| EcosystemMarket {
        symbol: String::new(),
        id: None,
        is_trending: false,
        is_hot: false,
        icon: None,
        status: None,
        rules: MarketRules::default(),
    };
    let markets = read_objects(MARKET, "symbol", MARKETS, start, node, report);
    Some(markets)
}

fn is_amount(value: &Decimal) -> bool {
    !value.is_negative()
}

fn is_fraction(value: &Decimal) -> bool {
    Decimal::from(-1) < *value && *value < Decimal::from(1)
}
