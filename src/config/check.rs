//! The check of a configuration: the rules between its keys.
//!
//! Reports values that are not unique, values that are larger than another key allows, and protocols that
//! this build does not support. Values that are allowed but unwise get a warning. It checks the whole
//! configuration, wherever its values come from: file, environment or flags. A fault names the place where
//! the value was given.
//!
//! A source may name a built-in dialect or a file: a `dialect` with a slash or the ending `.json` is the path
//! of a file. `load` reads its text. A function that the caller passes in parses it, because this module
//! knows no exchange.
//!
//! A value that could not be parsed has its default here. An empty default is not checked: the
//! fault of the value is reported already.

use super::fault::{ConfigFault, Report, suggestion, wrong};
use super::forms::{ListenAddress, Poll};
use super::schema::{Config, DEMO, SourceConfig};
use super::url::{Url, is_loopback};
use crate::interval::Stored;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// True if this build can speak https with exchanges.
pub(super) const HAS_TLS: bool = cfg!(feature = "tls");

/// The dialect of a source, if this build knows it.
pub(super) fn dialect_of<'a>(
    source: &SourceConfig,
    dialects: &'a [KnownDialect],
) -> Option<&'a KnownDialect> {
    dialects.iter().find(|known| known.name == source.dialect)
}

/// Reports every fault between the parts of a configuration, and warns of unwise values.
pub(super) fn check(config: &Config, dialects: &[KnownDialect], report: &mut Report) {
    for (at, source) in config.sources.iter().enumerate() {
        check_source(&format!("sources[{at}]"), source, dialects, report);
    }
    let ids = config.sources.iter().map(|source| source.id.clone());
    check_unique("sources", "id", ids, report);
    warn_of_hosts(config, dialects, report);
    let ids = config.categories.iter().map(|category| category.id.clone());
    check_unique("categories", "id", ids, report);
    check_markets(config, report);
    check_listeners(config, report);
    check_limits(config, report);
    warn_of_trust(config, report);
    warn_of_history(config, report);
    check_cluster(config, report);
    if config.demo.as_ref().is_some_and(|it| it.replay.is_some()) && !cfg!(feature = "sqlite") {
        let message =
            "this build reads no history file (it is made without the feature \"sqlite\")";
        report.fault("demo.replay", message);
    }
    if config.tls.ca_file.is_some() && !HAS_TLS {
        let message = "this build cannot speak https, so the file is not used";
        report.warn("tls.caFile", message);
    }
}

fn check_source(path: &str, source: &SourceConfig, dialects: &[KnownDialect], report: &mut Report) {
    let of = |key: &str| format!("{path}.{key}");
    let all = source.quote_assets.iter().any(|asset| asset == "*");
    if all && source.quote_assets.len() > 1 {
        report.fault(&of("quoteAssets"), "\"*\" means all assets: list nothing beside it");
    }
    if source.dialect == DEMO {
        if source.url.is_some() {
            report
                .fault(&of("url"), "the demo exchange takes no url; demo.listen sets its address");
        }
    } else if let Some(dialect) = dialect_of(source, dialects) {
        let (key, url) = match &source.url {
            Some(url) => ("url", url),
            None => ("dialect", &dialect.url),
        };
        if url.is_tls() && !HAS_TLS && !report.is_faulty_within(&of("url")) {
            let why = "this build cannot speak https (it is made without the feature \"tls\")";
            let message = format!("expected an http address, found {url}: {why}");
            report.fault(&of(key), message);
        }
        if dialect.has_key && !url.is_tls() && !is_loopback(&url.host) {
            let message =
                "without https, the key of the source can be read on the way to the exchange";
            report.warn(&of(key), message);
        }
        if !dialect.has_list && source.symbols.is_empty() {
            let message = format!("{} has no market list: name its markets in symbols", source.id);
            report.fault(&of("symbols"), message);
        }
        warn_of_budget(path, source, dialect, report);
    } else if !source.dialect.is_empty() {
        let names = dialects.iter().map(|dialect| dialect.name.as_str());
        let names: Vec<&str> = names.chain([DEMO]).collect();
        let near = suggestion(&source.dialect, names.iter().copied());
        let expected = format!("one of {}", names.join(", "));
        report.fault(&of("dialect"), wrong(expected, &source.dialect) + &near);
    }
    warn_of_times(path, source, report);
}

/// Reports each entry of a list whose name an earlier entry has. Empty names do not count.
fn check_unique(list: &str, key: &str, names: impl Iterator<Item = String>, report: &mut Report) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (at, name) in names.enumerate() {
        let first = *seen.entry(name.clone()).or_insert(at);
        if first != at && !name.is_empty() {
            let message = format!("\"{name}\" is taken by {list}[{first}]");
            report.fault(&format!("{list}[{at}].{key}"), message);
        }
    }
}

fn check_markets(config: &Config, report: &mut Report) {
    let list = "ecosystem.markets";
    let markets = config.ecosystem.markets.as_deref().unwrap_or_default();
    let symbols = markets.iter().map(|market| market.symbol.clone());
    check_unique(list, "symbol", symbols, report);
    // A market whose symbol is taken has a fault already, so its id is not compared.
    let mut seen = HashSet::new();
    let ids = markets.iter().map(|market| {
        let own = || market.symbol.replace('/', "-");
        let id = || market.id.clone().unwrap_or_else(own);
        seen.insert(&market.symbol).then(id).unwrap_or_default()
    });
    check_unique(list, "id", ids, report);
    for (at, market) in markets.iter().enumerate() {
        let rules = &market.rules;
        let bounds = [&rules.amount, &rules.price, &rules.cost];
        for (name, bounds) in ["amount", "price", "cost"].iter().zip(bounds) {
            if let (Some(min), Some(max)) = (&bounds.min, &bounds.max)
                && min > max
            {
                let path = format!("{list}[{at}].metadata.limits.{name}.max");
                report.fault(&path, format!("expected at least min ({min}), found {max}"));
            }
        }
    }
}

fn check_listeners(config: &Config, report: &mut Report) {
    let listen = &config.listen;
    // Port 0 picks another port each time.
    let is_free = matches!(listen, ListenAddress::Tcp(address) if address.port() == 0);
    if config.ecosystem_listen.as_ref() == Some(listen) && !is_free {
        let message = format!(
            "{listen} is already the address of listen, which serves everything without ecosystemListen"
        );
        report.fault("ecosystemListen", message);
    }
}

fn check_cluster(config: &Config, report: &mut Report) {
    let Some(cluster) = &config.cluster else {
        return;
    };
    if !cfg!(feature = "cluster") {
        let message = "this build has no clusters (it is made without the feature \"cluster\")";
        report.fault("cluster", message);
    } else if cluster.url.is_tls() && !HAS_TLS {
        let message = "this build cannot speak TLS (it is made without the feature \"tls\")";
        report.fault("cluster.url", message);
    }
}

fn check_limits(config: &Config, report: &mut Report) {
    let limits = &config.limits;
    let mut at_most = |key: &str, value: usize, of: &str, most: usize| {
        if value > most {
            let message = format!("expected at most {of} ({most}), found {value}");
            report.fault(&format!("limits.{key}"), message);
        }
    };
    let (line, head) = (limits.request_line_bytes, limits.head_bytes);
    at_most("requestLineBytes", line, "headBytes", head);
    let (pending, total) = (limits.output_high_water, limits.output_total);
    at_most("outputHighWaterBytes", pending, "outputTotalBytes", total);
    let (item, body) = (limits.upstream_item_bytes, limits.upstream_body_bytes);
    at_most("upstreamItemBytes", item, "upstreamBodyBytes", body);
    let sources = config.sources.iter();
    let symbols = sources.clone().flat_map(|source| &source.symbols);
    let listed = symbols.collect::<HashSet<_>>().len();
    if listed > limits.symbols {
        let expected = format!("at least the {listed} symbols that the sources list");
        let message = format!("expected {expected}, found {}", limits.symbols);
        report.fault("limits.symbols", message);
    }
    // A series belongs to one source.
    let symbols: usize = sources.map(|source| source.symbols.len()).sum();
    let (series, most) = (symbols * Stored::ALL.len(), limits.candle_series);
    if series > most {
        let then = "the last symbols get no candles";
        let message = format!("{most} is below the {series} series of the listed symbols: {then}");
        report.warn("limits.candleSeries", message);
    }
}

/// Warns of a trusted network with every address, because clients are in it too.
fn warn_of_trust(config: &Config, report: &mut Report) {
    for (at, network) in config.trusted_proxies.iter().enumerate() {
        if network.prefix_len() == 0 {
            let message = format!("{network} trusts every peer: each client can claim any address");
            report.warn(&format!("trustedProxies[{at}]"), message);
        }
    }
}

fn warn_of_times(path: &str, source: &SourceConfig, report: &mut Report) {
    let times = [source.poll.usual(), source.stale_after, source.frozen_after, source.timeout];
    let [poll, stale, frozen, timeout] = times.map(|time| time.as_millis());
    let mut warn = |is_odd: bool, key: &str, is: String, then: &str| {
        if is_odd {
            report.warn(&format!("{path}.{key}"), format!("{is}: {then}"));
        }
    };
    let is_set = source.poll != Poll::Auto;
    let is = format!("{poll} is at least staleAfterMs ({stale})");
    warn(is_set && poll >= stale, "pollMs", is, "every quote turns stale between two polls");
    let is = format!("{poll} is at least frozenAfterMs ({frozen})");
    warn(is_set && poll >= frozen, "pollMs", is, "the source counts as frozen between two polls");
    let is = format!("{timeout} is above staleAfterMs ({stale})");
    let then = "quotes turn stale while one slow request is awaited";
    warn(timeout > stale, "timeoutMs", is, then);
}

/// Warns of sources with the same host, because they share its limits.
fn warn_of_hosts(config: &Config, dialects: &[KnownDialect], report: &mut Report) {
    let host = |source: &SourceConfig| {
        let own = dialect_of(source, dialects).map(|dialect| &dialect.url);
        source.url.as_ref().or(own).map(|url| (url.host.clone(), url.port))
    };
    let hosts: Vec<_> = config.sources.iter().map(host).collect();
    for (at, place) in hosts.iter().enumerate() {
        let first = hosts.iter().position(|it| it == place).filter(|first| *first < at);
        if let (Some((name, port)), Some(first)) = (place, first) {
            let what = "they share its budget, its pauses and bans, and its connections";
            let message = format!("{name}:{port} is the host of sources[{first}] too: {what}");
            report.warn(&format!("sources[{at}].url"), message);
        }
    }
}

/// How much of a rate limit quotes may use while candles wait, in percent: three quarters of the pace, which
/// is 80 % of the limit.
const PERCENT_QUOTES: u32 = 60;

/// Warns of polls that would exceed the rate limit of the exchange, so that they are spaced, and of polls
/// that leave too little of the limit for candles.
fn warn_of_budget(path: &str, source: &SourceConfig, dialect: &KnownDialect, report: &mut Report) {
    let (name, (units, per)) = (&dialect.name, dialect.budget);
    let time_for = |cost: u32| per * cost / units;
    let has_all = dialect.ways.iter().any(|(most, _)| most.is_none());
    let is_named = !source.symbols.is_empty() && source.quote_assets.is_empty();
    if !has_all && !is_named {
        let within = |(most, cost): &(Option<usize>, u32)| {
            let requests = source.stale_after.as_micros() / time_for(*cost).as_micros().max(1);
            requests * most.unwrap_or(1) as u128
        };
        let most = dialect.ways.iter().map(within).max().unwrap_or(0);
        let what = format!("{name} has no request for all listed markets");
        let then = format!("with more than {most} markets, quotes turn stale within a round");
        report.warn(&format!("{path}.quoteAssets"), format!("{what}: {then}"));
    }
    // The named markets are requested alone, if that costs less.
    let ways = dialect.ways.iter().filter(|(most, _)| most.is_none() || is_named || !has_all);
    let costs = ways.map(|(most, cost)| {
        let requests = most.map_or(1, |most| source.symbols.len().div_ceil(most));
        cost.saturating_mul(u32::try_from(requests).unwrap_or(u32::MAX))
    });
    let cost = costs.min().unwrap_or(0);
    // How long a poll takes by the whole budget, and by half of it.
    let (round, half) = (time_for(cost), time_for(cost.saturating_mul(2)));
    let pace = |pause: Duration| {
        let is_late = pause >= source.stale_after;
        let then = if is_late { ", and quotes turn stale between two polls" } else { "" };
        format!("{} ms{then}", pause.as_micros().div_ceil(1000))
    };
    let message = match source.poll {
        Poll::Every(poll) if round > poll => {
            let (poll, round) = (poll.as_millis(), pace(round));
            format!(
                "polling every {poll} ms exceeds the rate limit of {name}: it is polled every {round}"
            )
        }
        Poll::Every(poll) if round * 100 / PERCENT_QUOTES > poll => {
            let (poll, half) = (poll.as_millis(), pace(half));
            let what = format!("polling every {poll} ms needs more than {PERCENT_QUOTES} %");
            let then = "which quotes get while candles wait";
            format!("{what} of the rate limit of {name}, {then}: half is a poll every {half}")
        }
        Poll::Auto if half >= source.stale_after => {
            format!("the rate limit of {name} permits a poll every {}", pace(half))
        }
        _ => return,
    };
    report.warn(&format!("{path}.pollMs"), message);
}

fn warn_of_history(config: &Config, report: &mut Report) {
    for interval in Stored::ALL {
        let depth = config.history.depth(interval);
        let path = format!("history.{}.backfill", interval.name());
        // A default is clipped without a warning.
        if depth.backfill > depth.keep && report.is_given(&path) {
            let message =
                format!("{} is above keep ({}), which is used", depth.backfill, depth.keep);
            report.warn(&path, message);
        }
    }
}

/// An exchange that can be polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDialect {
    /// The name that `dialect` in the file and `--source` take.
    pub name: String,
    /// Address of the exchange.
    pub url: Url,
    /// The units that the exchange allows, and the period in which it allows them.
    pub budget: (u32, Duration),
    /// The ways to request quotes: the most markets of a request (`None`: all that the exchange has), and its
    /// cost.
    pub ways: Vec<(Option<usize>, u32)>,
    /// False if the exchange has no market list. Then its markets are the ones in `symbols`.
    pub has_list: bool,
    /// True if its requests carry a key.
    pub has_key: bool,
}

/// The dialects that a source may have.
pub struct Dialects {
    /// The dialects that are built in.
    pub built_in: Vec<KnownDialect>,
    /// Parses a dialect's file. Takes its name and its text.
    pub read: fn(&str, &str) -> Result<KnownDialect, Vec<ConfigFault>>,
}
