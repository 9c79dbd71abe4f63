//! Commands: what the command line asks for.
//!
//! Serving and most other tasks need a configuration, which `load` makes. This module parses the arguments
//! that only one task needs.

use super::check::Dialects;
use super::fault::{ConfigFault, Report, wrong};
use super::files::{Files, text_of_regular};
use super::flags::{self, Flags};
use super::forms::{ADDRESS, Data, ListenAddress, SOURCE_ID, STORED, TIME};
use super::load::{LoadedConfig, Loader, LookAtFiles, symbols_of};
use super::members::{Named as _, names};
use super::printed::{Shell, completions, man};
use super::schema::{Config, SourceConfig};
use super::url::Url;
use crate::interval::Stored;
use crate::time::UnixMs;
use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// The JSON Schema of the file, made from its keys, in gzip. It does not express rules between several keys;
/// `--check` checks them.
pub const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/config-schema.json.gz"));

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Serve.
    Run(LoadedConfig),
    /// Print the warnings of a good configuration.
    Check(LoadedConfig),
    /// Print [`Config::to_json`].
    PrintConfig(LoadedConfig),
    /// Print name and version.
    Version,
    /// Print this text.
    Print(String),
    /// Print a JSON Schema.
    Schema(SchemaOf),
    /// Probe the exchanges of all sources.
    Probe(LoadedConfig, ProbeOptions),
    /// Ask whether a marketd is ready. Ask again until it is, or until this time has passed.
    Healthcheck(HttpPlace, Duration),
    /// Make a marketd reload its configuration, and wait.
    Reload {
        /// The process id.
        pid: u32,
        /// The address of its metrics, or the faults of the configuration that names it.
        metrics: Result<HttpPlace, Vec<ConfigFault>>,
    },
    /// Print stored candles.
    Export(Export),
    /// Write a copy of the history file.
    Backup {
        /// Where the history is.
        data: Data,
        /// The copy.
        copy: PathBuf,
    },
    /// Remove the stored data of markets that are not tracked, or only list it.
    Prune {
        /// The configuration with the tracked markets.
        config: Box<Config>,
        /// True to remove it.
        yes: bool,
    },
    /// Give the stored data of one source to another id.
    Rename {
        /// Where the history is.
        data: Data,
        /// The id that the source had.
        old: String,
        /// The id that it gets.
        new: String,
        /// True to list what would be renamed, and change nothing.
        dry_run: bool,
    },
}

names! {
    /// The files that have a JSON Schema.
    pub enum SchemaOf {
        /// The file of the configuration.
        Config "config"
        /// The file of a dialect.
        Dialect "dialect"
    }
}

/// The options of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeOptions {
    /// True if the probe also fails if something only looks wrong.
    pub is_strict: bool,
    /// Recorded bodies, each with the name of its call: `time`, `markets`, `tickers`, `ticker`, `stats`, or
    /// an interval of candles. If there are any, no requests are sent.
    pub bodies: Vec<(String, String)>,
}

/// The names of the calls whose bodies may be recorded.
const PROBE_CALLS: [&str; 8] = ["time", "markets", "tickers", "ticker", "stats", "1m", "1h", "1d"];

/// The address of a request to a running marketd.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpPlace {
    /// The address of the marketd, and the requested path.
    pub url: Url,
    /// The file of the Unix socket, if it listens on one.
    pub socket: Option<PathBuf>,
}

impl fmt::Display for HttpPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(file) => file.display().fmt(f),
            None => f.write_str(&self.url.authority()),
        }
    }
}

/// Which stored candles are printed, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// Where the history is.
    pub data: Data,
    /// The markets. Empty means all markets.
    pub symbols: Vec<String>,
    /// The interval.
    pub interval: Stored,
    /// The sources. The first one with candles is used.
    pub sources: Vec<String>,
    /// True if any other source in the file may be used after these.
    pub any_source: bool,
    /// Candles that begin at or after the first of these times, and before the second.
    pub times: Range<UnixMs>,
    /// The format.
    pub format: ExportFormat,
}

names! {
    /// How candles are written.
    pub enum ExportFormat {
        /// A line for each candle, after a line with the names of the columns.
        Csv "csv"
        /// One array of rows like those of `/api/ecosystem/chart`.
        Json "json"
        /// A line with an object for each candle.
        JsonLines "jsonl"
    }
}

/// Parses a command line. `words` are the words after the program's name. `variable` looks up a
/// variable of the environment. `look` checks the files that a configuration names, for `--check`.
pub fn command(
    words: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    dialects: &Dialects,
    look: LookAtFiles,
) -> Result<Command, Vec<ConfigFault>> {
    let mut report = Report::default();
    let (subcommand, flags) = flags::parse(words, &mut report);
    // `--help` works whatever the other words are.
    if flags.has("--help") {
        let whole = || flags::help(&dialects.built_in);
        return Ok(Command::Print(subcommand.map_or_else(whole, flags::help_of)));
    }
    if flags.has("--version") {
        return Ok(Command::Version);
    }
    let (checks, prints) = (flags.has("--check"), flags.has("--print-config"));
    let mut loader = Loader::new(flags, &variable, dialects, report);
    loader.asks = !prints && subcommand.is_none_or(|it| it.name == "probe");
    match subcommand.map(|it| it.name) {
        None if prints => loader.load().map(Command::PrintConfig),
        None if checks => {
            loader.look = Some(look);
            loader.load().map(Command::Check)
        }
        None => loader.load().map(Command::Run),
        Some("probe") => {
            let options = probed(&loader.flags, &mut loader.report);
            loader.load().map(|loaded| Command::Probe(loaded, options))
        }
        Some("man") => loader.report.close().map(|_| Command::Print(man())),
        Some("schema") => {
            let of = loader.report.accept("schema", SchemaOf::chosen(loader.flags.word(0)));
            loader.report.close().map(|_| Command::Schema(of))
        }
        Some("completions") => {
            let shell = loader.report.accept("completions", Shell::chosen(loader.flags.word(0)));
            loader.report.close().map(|_| Command::Print(completions(shell)))
        }
        Some("healthcheck") => healthcheck(loader),
        Some("reload") => reload_of(loader),
        Some("export") => export(loader),
        Some("backup") => {
            let copy = loader.flags.words.first().filter(|it| !it.is_empty());
            let copy = copy.map(PathBuf::from).ok_or("expected the FILE to write".to_string());
            let copy = loader.report.accept("backup", copy);
            Ok(Command::Backup { data: loader.load()?.config.data, copy })
        }
        Some("prune") => {
            // Without sources, the demo exchange would run, and all stored markets would count as not
            // tracked.
            loader.needs_sources = true;
            let yes = loader.flags.has("--yes") && !loader.flags.has("--dry-run");
            Ok(Command::Prune { config: Box::new(loader.load()?.config), yes })
        }
        Some("rename") => {
            let [old, new] = renamed(&loader.flags, &mut loader.report);
            let dry_run = loader.flags.has("--dry-run");
            let data = loader.load()?.config.data;
            Ok(Command::Rename { data, old, new, dry_run })
        }
        Some(name) => unreachable!("{name} is in the table, and a test tries each of its commands"),
    }
}

/// Makes the configuration again while marketd runs. `running`: its sources since the start. Only regular
/// files are read.
pub fn reload(
    running: &[SourceConfig],
    words: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    dialects: &Dialects,
) -> Result<LoadedConfig, Vec<ConfigFault>> {
    let mut report = Report::default();
    let (_, flags) = flags::parse(words, &mut report);
    let mut loader = Loader::new(flags, &variable, dialects, report);
    (loader.files, loader.running, loader.asks) = (Files::Regular, running, true);
    loader.load()
}

fn healthcheck(mut loader: Loader<'_>) -> Result<Command, Vec<ConfigFault>> {
    let address = loader.flags.words.first().cloned();
    let wait = loader.flags.value("--wait").unwrap_or("0");
    let seconds = wait.parse::<u32>().map_err(|_| wrong("a whole number of seconds", wait));
    let seconds = loader.report.accept("--wait", seconds);
    let place = place(loader, "healthcheck", address, "/health/ready")?;
    Ok(Command::Healthcheck(place, Duration::from_secs(seconds.into())))
}

fn reload_of(mut loader: Loader<'_>) -> Result<Command, Vec<ConfigFault>> {
    let pid = loader.flags.word(0);
    let pid = pid.parse().map_err(|_| wrong("the process id of a marketd", pid));
    let pid = loader.report.accept("reload", pid);
    let address = loader.flags.words.get(1).cloned();
    let metrics = place(loader, "reload", address, "/metrics");
    match metrics {
        Err(faults) if faults.iter().any(|it| it.file.is_none()) => Err(faults),
        metrics => Ok(Command::Reload { pid, metrics }),
    }
}

/// The address for a request for `path` to a running marketd: the given one, or else the one on which marketd
/// listens by the configuration.
fn place(
    mut loader: Loader<'_>,
    command: &str,
    address: Option<String>,
    path: &str,
) -> Result<HttpPlace, Vec<ConfigFault>> {
    const ASKED: [&str; 4] = ["/health", "/health/live", "/health/ready", "/metrics"];
    let named = address.and_then(|it| loader.report.accept(command, named(&it).map(Some)));
    let config = loader.load()?.config;
    let own = format!("{}{path}", config.base_path);
    let mut place = named.unwrap_or_else(|| listens_at(config.listen));
    let asked = &mut place.url.path;
    if asked.is_empty() {
        *asked = own;
    } else if !ASKED.iter().any(|known| asked.ends_with(known)) {
        *asked += path;
    }
    Ok(place)
}

fn named(address: &str) -> Result<HttpPlace, String> {
    match (ADDRESS.parse(address), Url::parse(address)) {
        (Ok(unix @ ListenAddress::Unix(_)), _) => Ok(listens_at(unix)),
        (_, Ok(url)) if !url.is_tls() => Ok(HttpPlace { url, socket: None }),
        _ => Err(wrong("http://HOST:PORT or unix:PATH, where marketd listens", address)),
    }
}

/// The address by which a marketd that listens here can be reached on its own machine.
fn listens_at(address: ListenAddress) -> HttpPlace {
    let (host, port, socket) = match address {
        ListenAddress::Unix(file) => ("localhost".to_string(), 80, Some(file)),
        ListenAddress::Tcp(address) => {
            let host = match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
                // All addresses of this name are tried: a machine may be without IPv6.
                IpAddr::V6(ip) if ip.is_unspecified() => "localhost".to_string(),
                ip => ip.to_string(),
            };
            (host, address.port(), None)
        }
    };
    HttpPlace { url: Url { scheme: "http", host, port, ..Url::default() }, socket }
}

/// Reads the recorded bodies: `--body CALL=FILE`.
fn probed(flags: &Flags, report: &mut Report) -> ProbeOptions {
    let mut options = ProbeOptions { is_strict: flags.has("--strict"), bodies: Vec::new() };
    for text in flags.values("--body") {
        let known = |(call, _): &(&str, &str)| PROBE_CALLS.contains(call);
        let Some((call, file)) = text.split_once('=').filter(known) else {
            let what = format!("CALL=FILE, and for CALL one of {}", PROBE_CALLS.join(", "));
            report.accept::<()>("--body", Err(wrong(what, text)));
            continue;
        };
        match text_of_regular(file) {
            Ok(body) => options.bodies.push((call.to_owned(), body)),
            Err(fault) => report.add(fault),
        }
    }
    options
}

/// The two ids of `rename`.
fn renamed(flags: &Flags, report: &mut Report) -> [String; 2] {
    let [old, new] = [0, 1].map(|at| flags.word(at).to_string());
    let read = match new.is_empty() {
        true => Err(wrong("the ids OLD and NEW", &flags.words.join(" "))),
        false => SOURCE_ID.parse(&new),
    };
    [old, report.accept("rename", read)]
}

/// Reads which candles to export. The configuration has the values that the flags do not give.
fn export(mut loader: Loader<'_>) -> Result<Command, Vec<ConfigFault>> {
    let Loader { flags, report, .. } = &mut loader;
    // All markets are those of which none is named.
    let is_all = flags.values("--symbol").any(|it| it.split(',').any(|it| it == "*"));
    let symbols = match is_all {
        true => Vec::new(),
        false => symbols_of("--symbol", flags.values("--symbol"), report),
    };
    let interval = STORED.parse(flags.value("--interval").unwrap_or_default());
    let interval = interval.map_err(|message| message + ": only these are stored");
    let interval = report.accept("--interval", interval);
    let time = |name: &str, other: i64| match flags.value(name) {
        Some(text) => TIME.parse(text),
        None => Ok(UnixMs(other)),
    };
    let (from, to) = (time("--from", 0), time("--to", i64::MAX));
    if from.is_ok() && to.is_ok() && from > to {
        report.add(ConfigFault::by("--from", "expected a time that is not later than --to"));
    }
    let times = report.accept("--from", from)..report.accept("--to", to);
    let format = ExportFormat::chosen(flags.value("--format").unwrap_or("csv"));
    let format = report.accept("--format", format);
    let mut sources: Vec<String> = flags.values("--id").map(str::to_string).collect();
    let any_source = sources.is_empty();
    let config = loader.load()?.config;
    if any_source {
        sources = config.sources.into_iter().map(|it| it.id).collect();
    }
    let data = config.data;
    Ok(Command::Export(Export { data, symbols, interval, sources, any_source, times, format }))
}
