//! Commands: what the command line asks for.
//!
//! Serving and most other tasks need a configuration, which `load` makes. What only one task needs is read
//! here.

use super::dialects::Dialects;
use super::fault::{ConfigFault, Report, wrong};
use super::file::Files;
use super::flags::{self, CliTask, Flags};
use super::forms::{ADDRESS, Data, ListenAddress, SOURCE_ID, SYMBOL};
use super::load::{LoadedConfig, Loader};
use super::man::man;
use super::schema::Config;
use super::url::Url;
use crate::interval::Stored;
use crate::time::{UnixMs, digits, iso_8601};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::path::PathBuf;

/// The JSON Schema of the file, made from its keys, in gzip. What depends on several keys, `--check` finds.
pub const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/config-schema.json.gz"));

/// Why an `expect` below holds: a value that could not be read was reported, and a report with faults does
/// not close.
const READ: &str = "else it has a fault";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Serve.
    Run(LoadedConfig),
    /// Print the warnings, and that the configuration is good.
    Check(LoadedConfig),
    /// Print [`Config::to_json`].
    PrintConfig(LoadedConfig),
    /// Print [`super::help`].
    Help,
    /// Print name and version.
    Version,
    /// Print this.
    Print(String),
    /// Print the schema of the file.
    ConfigSchema,
    /// Print the schema of a dialect's file.
    DialectSchema,
    /// Ask the exchanges of all sources once for everything.
    Probe(LoadedConfig),
    /// Ask whether a marketd is ready.
    Healthcheck(ReadyAt),
    /// Print stored candles.
    Export(Export),
    /// Remove what is stored of markets that are not tracked, or only count it.
    Prune {
        /// Says what is tracked.
        config: Box<Config>,
        /// True to remove it.
        yes: bool,
    },
    /// Give what is stored of one source to another one.
    Rename {
        /// Where the history is.
        data: Data,
        /// The id that the source had.
        old: String,
        /// The id that it gets.
        new: String,
    },
}

/// Where a marketd says whether it is ready.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadyAt {
    /// At this address.
    Url(Url),
    /// Behind a Unix socket.
    Socket {
        /// Its file.
        file: PathBuf,
        /// The path that is asked for.
        path: String,
    },
}

/// Which stored candles are printed, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// Where the history is.
    pub data: Data,
    /// Of this market.
    pub symbol: String,
    /// Of this interval.
    pub interval: Stored,
    /// Of the first of these sources that has candles.
    pub sources: Vec<String>,
    /// Those that begin at or after the first of these times, and before the second.
    pub times: Range<UnixMs>,
    /// As JSON; else as CSV.
    pub as_json: bool,
}

/// Reads a command line: `words` are those after the program's name, `variable` looks up the
/// environment.
pub fn command(
    words: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    dialects: &Dialects,
) -> Result<Command, Vec<ConfigFault>> {
    let mut report = Report::default();
    let (subcommand, flags) = flags::parse(words, &mut report);
    // Who asks for help gets it, whatever the other words are.
    if flags.has("--help") {
        return Ok(subcommand.map_or(Command::Help, |it| Command::Print(flags::help_of(it))));
    }
    if flags.has("--version") {
        return Ok(Command::Version);
    }
    let (checks, prints) = (flags.has("--check"), flags.has("--print-config"));
    let mut loader = Loader { flags, variable: &variable, dialects, files: Files::Any, report };
    match subcommand.map(|it| it.task) {
        None if prints => loader.load().map(Command::PrintConfig),
        None if checks => loader.load().map(Command::Check),
        None => loader.load().map(Command::Run),
        Some(CliTask::Probe) => loader.load().map(Command::Probe),
        Some(CliTask::Man) => loader.report.close().map(|_| Command::Print(man())),
        Some(CliTask::Schema) => schema(loader),
        Some(CliTask::Healthcheck) => healthcheck(loader),
        Some(CliTask::Export) => export(loader),
        Some(CliTask::Prune) => {
            let yes = loader.flags.has("--yes");
            Ok(Command::Prune { config: Box::new(loader.load()?.config), yes })
        }
        Some(CliTask::Rename) => {
            let [old, new] = renamed(&loader.flags, &mut loader.report);
            Ok(Command::Rename { data: loader.load()?.config.data, old, new })
        }
    }
}

/// Makes the configuration again while marketd runs. Regular files alone are read.
pub fn reload(
    words: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    dialects: &Dialects,
) -> Result<LoadedConfig, Vec<ConfigFault>> {
    let mut report = Report::default();
    let (_, flags) = flags::parse(words, &mut report);
    Loader { flags, variable: &variable, dialects, files: Files::Regular, report }.load()
}

fn schema(mut loader: Loader<'_>) -> Result<Command, Vec<ConfigFault>> {
    let command = match loader.flags.words.first().map_or("", String::as_str) {
        "config" => Ok(Command::ConfigSchema),
        "dialect" => Ok(Command::DialectSchema),
        other => Err(wrong("config or dialect", other)),
    };
    let command = loader.report.accept("schema", command);
    loader.report.close().map(|_| command.expect(READ))
}

fn healthcheck(mut loader: Loader<'_>) -> Result<Command, Vec<ConfigFault>> {
    let Some(address) = loader.flags.words.first() else {
        return Ok(Command::Healthcheck(ready_at(loader.load()?.config)));
    };
    let at = loader.report.accept("healthcheck", named(address));
    loader.report.close().map(|_| Command::Healthcheck(at.expect(READ)))
}

/// `address` is a URL, whose path is `/health/ready` if it has none, or that of a Unix socket.
fn named(address: &str) -> Result<ReadyAt, String> {
    const PATH: &str = "/health/ready";
    match (ADDRESS.parse(address), Url::parse(address)) {
        (Ok(ListenAddress::Unix(file)), _) => Ok(ReadyAt::Socket { file, path: PATH.to_string() }),
        (_, Ok(mut url)) if !url.https => {
            if url.path.is_empty() {
                url.path = PATH.to_string();
            }
            Ok(ReadyAt::Url(url))
        }
        _ => Err(wrong("http://HOST:PORT or unix:PATH, where marketd listens", address)),
    }
}

/// Where a marketd with this configuration says on its own machine whether it is ready.
fn ready_at(config: Config) -> ReadyAt {
    let path = format!("{}/health/ready", config.base_path);
    let address = match config.listen {
        ListenAddress::Tcp(address) => address,
        ListenAddress::Unix(file) => return ReadyAt::Socket { file, path },
    };
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        ip => ip.to_string(),
    };
    ReadyAt::Url(Url { https: false, host, port: address.port(), path })
}

/// The two ids of `rename`.
fn renamed(flags: &Flags, report: &mut Report) -> [String; 2] {
    let [old, new] = [0, 1].map(|at| flags.words.get(at).cloned().unwrap_or_default());
    let read = match new.is_empty() {
        true => Err(wrong("the ids OLD and NEW", &flags.words.join(" "))),
        false => SOURCE_ID.parse(&new),
    };
    report.accept("rename", read);
    [old, new]
}

/// Reads what is printed. The configuration says what the flags leave open.
fn export(mut loader: Loader<'_>) -> Result<Command, Vec<ConfigFault>> {
    let Loader { flags, report, .. } = &mut loader;
    let symbol = match flags.value("--symbol") {
        Some(text) => SYMBOL.parse(text),
        None => Err("expected a symbol like BTC/USDT, found nothing".to_string()),
    };
    let symbol = report.accept("--symbol", symbol);
    let named = flags.value("--interval").unwrap_or_default();
    let interval = Stored::ALL.into_iter().find(|it| it.name() == named);
    let expected = "1m, 1h or 1d, of which all others are made";
    let interval = report.accept("--interval", interval.ok_or_else(|| wrong(expected, named)));
    let mut time = |name: &str, other: i64| match flags.value(name) {
        Some(text) => report.accept(name, time(text)),
        None => Some(UnixMs(other)),
    };
    let (from, to) = (time("--from", 0), time("--to", i64::MAX));
    let as_json = match flags.value("--format").unwrap_or("csv") {
        "csv" => Ok(false),
        "json" => Ok(true),
        other => Err(wrong("csv or json", other)),
    };
    let as_json = report.accept("--format", as_json);
    let mut sources: Vec<String> = flags.values("--id").map(str::to_string).collect();
    let config = loader.load()?.config;
    if sources.is_empty() {
        sources = config.sources.into_iter().map(|it| it.id).collect();
    }
    Ok(Command::Export(Export {
        data: config.data,
        symbol: symbol.expect(READ),
        interval: interval.expect(READ),
        sources,
        times: from.expect(READ)..to.expect(READ),
        as_json: as_json.expect(READ),
    }))
}

/// A day, a time, or milliseconds since 1970.
fn time(text: &str) -> Result<UnixMs, String> {
    let ms = digits(text.as_bytes());
    let day = || iso_8601(format!("{text}T00:00:00").as_bytes());
    let time = || iso_8601(text.strip_suffix('Z')?.as_bytes());
    let expected = "2026-11-22, 2026-11-22T09:00:00Z or milliseconds since 1970";
    let read = ms.or_else(day).or_else(time).map(UnixMs);
    read.ok_or_else(|| wrong(expected, text))
}
