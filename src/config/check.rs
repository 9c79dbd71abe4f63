//! The check: what only makes sense together.
//!
//! Owns the rules between keys: what must be unique, what must not be larger than something else,
//! what this build can speak, and what is allowed but unwise. It never reads a value, and runs on
//! the whole, whoever said the parts; a fault still names the place of the part.
//!
//! A part that could not be read stands as its default, and is passed over where that is empty:
//! its own fault has been told already.

use super::fault::{Report, suggestion};
use super::{Config, DEMO, EcosystemMarket, SourceConfig, Url};
use crate::interval::Stored;
use std::collections::HashMap;
use std::collections::HashSet;
use std::time::Duration;

/// An exchange that this build knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDialect {
    /// As `dialect` in the file and `--source` name it.
    pub name: &'static str,
    /// Where the exchange is.
    pub url: Url,
    /// Time in which the exchange's public limit gives back what one poll of all quotes costs.
    pub poll_cost: Duration,
    /// The same for each symbol, where the exchange has no call for all quotes; else zero.
    pub symbol_cost: Duration,
}

/// Whether this build speaks https with exchanges.
pub fn tls_available() -> bool {
    cfg!(feature = "tls")
}

/// What this build can do.
#[derive(Clone, Copy)]
pub(super) struct Build<'a> {
    pub(super) dialects: &'a [KnownDialect],
    pub(super) tls: bool,
}

impl Build<'_> {
    pub(super) fn dialect(&self, name: &str) -> Option<&KnownDialect> {
        self.dialects.iter().find(|dialect| dialect.name == name)
    }
}

/// Tells every fault between the parts of a configuration, and what is unwise.
/// The demo exchange's source still has the dialect `demo` here.
pub(super) fn check(config: &Config, build: Build<'_>, report: &mut Report) {
    for (at, source) in config.sources.iter().enumerate() {
        check_source(&format!("sources[{at}]"), source, build, report);
    }
    let ids = config.sources.iter().map(|source| source.id.clone());
    check_unique("sources", "id", ids, report);
    let ids = config.categories.iter().map(|category| category.id.clone());
    check_unique("categories", "id", ids, report);
    check_markets(config.ecosystem.as_deref().unwrap_or_default(), report);
    check_listeners(config, report);
    check_limits(config, report);
    warn_of_trust(config, report);
    warn_of_history(config, report);
    if config.tls.ca_file.is_some() && !build.tls {
        report.warn(
            "tls.caFile",
            "this build cannot speak https, nobody needs it",
        );
    }
}

fn check_source(path: &str, source: &SourceConfig, build: Build<'_>, report: &mut Report) {
    let of = |key: &str| format!("{path}.{key}");
    if source.quote_assets.len() > 1 && source.quote_assets.iter().any(|asset| asset == "*") {
        report.fault(&of("quoteAssets"), "\"*\" means all, it stands alone");
    }
    if source.dialect == DEMO {
        if source.id != DEMO {
            let message = format!("the source of the demo exchange has the id \"{DEMO}\"");
            report.fault(&of("id"), message);
        }
        if source.url.is_some() {
            report.fault(&of("url"), "the demo exchange has no address of its own");
        }
    } else if let Some(dialect) = build.dialect(&source.dialect) {
        check_tls(path, source, dialect, build, report);
        warn_of_budget(path, source, dialect, report);
    } else if !source.dialect.is_empty() {
        let names = build.dialects.iter().map(|dialect| dialect.name);
        let names: Vec<&str> = names.chain([DEMO]).collect();
        let near = suggestion(&source.dialect, names.iter().copied());
        let (names, found) = (names.join(", "), super::fault::quoted(&source.dialect));
        let message = format!("expected one of {names}, found {found}{near}");
        report.fault(&of("dialect"), message);
    }
    warn_of_times(path, source, report);
}

fn check_tls(
    path: &str,
    source: &SourceConfig,
    dialect: &KnownDialect,
    build: Build<'_>,
    report: &mut Report,
) {
    let url = source.url.as_ref().unwrap_or(&dialect.url);
    if !url.https || build.tls || report.is_faulty(&format!("{path}.url")) {
        return;
    }
    let key = if source.url.is_some() {
        "url"
    } else {
        "dialect"
    };
    let message = format!(
        "expected an http address, found {url}: this build cannot speak https (it is made without \
         the feature \"tls\")"
    );
    report.fault(&format!("{path}.{key}"), message);
}

/// Tells every later one of two parts of a list with the same name.
fn check_unique(list: &str, key: &str, names: impl Iterator<Item = String>, report: &mut Report) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (at, name) in names.enumerate() {
        if name.is_empty() {
            continue;
        }
        if let Some(first) = seen.get(&name) {
            let message = format!("\"{name}\" is taken by {list}[{first}]");
            report.fault(&format!("{list}[{at}].{key}"), message);
        } else {
            seen.insert(name, at);
        }
    }
}

fn check_markets(markets: &[EcosystemMarket], report: &mut Report) {
    let list = "ecosystem.markets";
    let symbols = markets.iter().map(|market| market.symbol.clone());
    check_unique(list, "symbol", symbols, report);
    // A market whose symbol is taken has been told already, whatever its id is.
    let mut seen = HashSet::new();
    let ids = markets.iter().map(|market| {
        let fresh = seen.insert(&market.symbol);
        let own = || market.symbol.replace('/', "-");
        let id = market.id.clone().unwrap_or_else(own);
        if fresh { id } else { String::new() }
    });
    check_unique(list, "id", ids, report);
    for (at, market) in markets.iter().enumerate() {
        let rules = &market.rules;
        let bounds = [
            ("amount", &rules.amount),
            ("price", &rules.price),
            ("cost", &rules.cost),
        ];
        for (name, bounds) in bounds {
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
    // Port 0 is another one each time.
    if config.ecosystem_listen == Some(config.listen) && config.listen.port() != 0 {
        let message = format!(
            "{} is taken by listen; leave it out to serve both there",
            config.listen
        );
        report.fault("ecosystemListen", message);
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
    at_most(
        "requestLineBytes",
        limits.request_line_bytes,
        "headBytes",
        limits.head_bytes,
    );
    at_most(
        "outputHighWaterBytes",
        limits.output_high_water,
        "outputTotalBytes",
        limits.output_total,
    );
    at_most(
        "upstreamItemBytes",
        limits.upstream_item_bytes,
        "upstreamBodyBytes",
        limits.upstream_body_bytes,
    );
    let listed: HashSet<&String> = (config.sources.iter())
        .flat_map(|source| &source.symbols)
        .collect();
    if listed.len() > limits.symbols {
        let message = format!(
            "expected at least the {} symbols that the sources list, found {}",
            listed.len(),
            limits.symbols
        );
        report.fault("limits.symbols", message);
    }
    // A series belongs to one source.
    let series: usize = (config.sources.iter())
        .map(|source| source.symbols.len() * Stored::ALL.len())
        .sum();
    if series > limits.candle_series {
        let message = format!(
            "{} is below the {series} series of the listed symbols: the last ones get no candles",
            limits.candle_series
        );
        report.warn("limits.candleSeries", message);
    }
}

/// Trust in everybody is trust in whatever a client says.
fn warn_of_trust(config: &Config, report: &mut Report) {
    for (at, network) in config.trusted_proxies.iter().enumerate() {
        if network.is_everything() {
            let message = format!("{network} is everybody: each client may name any address");
            report.warn(&format!("trustedProxies[{at}]"), message);
        }
    }
}

fn warn_of_times(path: &str, source: &SourceConfig, report: &mut Report) {
    let ms = |time: Duration| time.as_millis();
    let (poll, stale) = (source.poll, source.stale_after);
    let of = |key: &str| format!("{path}.{key}");
    if poll >= stale {
        let message = format!(
            "{} is not below staleAfterMs ({}): every quote turns stale between two polls",
            ms(poll),
            ms(stale)
        );
        report.warn(&of("pollMs"), message);
    }
    if poll >= source.frozen_after {
        let message = format!(
            "{} is not below frozenAfterMs ({}): the source counts as frozen between two polls",
            ms(poll),
            ms(source.frozen_after)
        );
        report.warn(&of("pollMs"), message);
    }
    if source.timeout > stale {
        let message = format!(
            "{} is above staleAfterMs ({}): quotes turn stale while one slow request is awaited",
            ms(source.timeout),
            ms(stale)
        );
        report.warn(&of("timeoutMs"), message);
    }
}

/// Polls that the exchange's limit cannot carry are spaced: allowed, and worth a word.
fn warn_of_budget(path: &str, source: &SourceConfig, dialect: &KnownDialect, report: &mut Report) {
    let symbols = u32::try_from(source.symbols.len()).unwrap_or(u32::MAX);
    let round = dialect.symbol_cost.saturating_mul(symbols);
    let round = round.saturating_add(dialect.poll_cost);
    if round <= source.poll {
        return;
    }
    let name = dialect.name;
    let (round_ms, poll_ms) = (round.as_millis(), source.poll.as_millis());
    let stale = if round >= source.stale_after {
        ", and quotes turn stale between them"
    } else {
        ""
    };
    let message = format!(
        "{poll_ms} is more than the limit of {name} carries: polls are spaced to {round_ms} ms{stale}"
    );
    report.warn(&format!("{path}.pollMs"), message);
}

fn warn_of_history(config: &Config, report: &mut Report) {
    for interval in Stored::ALL {
        let depth = config.history.of(interval);
        let path = format!("history.{}.backfill", interval.name());
        // A default that is clipped is what everybody expects.
        if depth.backfill > depth.keep && report.said(&path) {
            let message = format!("{} is clipped to keep ({})", depth.backfill, depth.keep);
            report.warn(&path, message);
        }
    }
}
