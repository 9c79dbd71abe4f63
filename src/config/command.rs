//! Commands: what the command line asks for.
//!
//! Serving and most other tasks need a configuration, which `load` makes. What only one task needs is read
//! here.

use super::dialects::Dialects;
use super::fault::{Fault, Report, wrong};
use super::file::Files;
use super::flags::{self, Flags, Task};
use super::forms::{ADDRESS, Data, ListenAddress, SOURCE_ID, SYMBOL};
use super::load::{LoadedConfig, load};
use super::man::man;
use super::schema::{Config, config_schema};
use super::url::Url;
use crate::interval::Stored;
use crate::time::{UnixMs, digits, iso_8601};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

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
) -> Result<Command, Vec<Fault>> {
    let mut report = Report::default();
    let (subcommand, flags) = flags::parse(words, &mut report);
    // Who asks for help gets it, whatever the other words are.
    if flags.has("--help") {
        return Ok(subcommand.map_or(Command::Help, |it| Command::Print(flags::help_of(it))));
    }
    if flags.has("--version") {
        return Ok(Command::Version);
    }
    let load = |report| load(&flags, variable, (dialects, Files::Any), report);
    match subcommand.map(|it| it.task) {
        None if flags.has("--print-config") => load(report).map(Command::PrintConfig),
        None if flags.has("--check") => load(report).map(Command::Check),
        None => load(report).map(Command::Run),
        Some(Task::Probe) => load(report).map(Command::Probe),
        Some(Task::Man) => report.close().map(|_| Command::Print(man())),
        Some(Task::Schema) => schema(&flags, report),
        Some(Task::Healthcheck) => match flags.words.first() {
            Some(url) => healthcheck(url, report),
            None => Ok(Command::Healthcheck(ready_at(&load(report)?.config))),
        },
        Some(Task::Export) => {
            let export = Export::read(&flags, &mut report);
            let config = load(report)?.config;
            Ok(Command::Export(export.with(config)))
        }
        Some(Task::Prune) => {
            Ok(Command::Prune { config: Box::new(load(report)?.config), yes: flags.has("--yes") })
        }
        Some(Task::Rename) => {
            let [old, new] = renamed(&flags, &mut report);
            let data = load(report)?.config.data;
            Ok(Command::Rename { data, old, new })
        }
    }
}

/// Makes the configuration again while marketd runs. Regular files alone are read.
pub fn reload(
    words: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    dialects: &Dialects,
) -> Result<LoadedConfig, Vec<Fault>> {
    let mut report = Report::default();
    let (_, flags) = flags::parse(words, &mut report);
    load(&flags, variable, (dialects, Files::Regular), report)
}

fn schema(flags: &Flags, mut report: Report) -> Result<Command, Vec<Fault>> {
    let command = match flags.words.first().map_or("", String::as_str) {
        "config" => Command::Print(config_schema()),
        "dialect" => Command::DialectSchema,
        other => {
            report.add(Fault::of("schema", wrong("config or dialect", other)));
            Command::Help
        }
    };
    report.close().map(|_| command)
}

/// `address` is a URL, whose path is `/health/ready` if it has none, or that of a Unix socket.
fn healthcheck(address: &str, mut report: Report) -> Result<Command, Vec<Fault>> {
    const PATH: &str = "/health/ready";
    const EXPECTED: &str = "http://HOST:PORT or unix:PATH, where marketd listens";
    let at = match (ADDRESS.parse(address), Url::parse(address)) {
        (Ok(ListenAddress::Unix(file)), _) => Ok(ReadyAt::Socket { file, path: PATH.to_string() }),
        (_, Ok(mut url)) if !url.https => {
            if url.path.is_empty() {
                url.path = PATH.to_string();
            }
            Ok(ReadyAt::Url(url))
        }
        _ => Err(wrong(EXPECTED, address)),
    };
    match at {
        Ok(at) => report.close().map(|_| Command::Healthcheck(at)),
        Err(message) => {
            report.add(Fault::of("healthcheck", message));
            Err(report.close().err().unwrap_or_default())
        }
    }
}

/// Where a marketd with this configuration says on its own machine whether it is ready.
fn ready_at(config: &Config) -> ReadyAt {
    let path = format!("{}/health/ready", config.base_path);
    let address = match &config.listen {
        ListenAddress::Tcp(address) => *address,
        ListenAddress::Unix(file) => {
            let file = file.clone();
            return ReadyAt::Socket { file, path };
        }
    };
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, address.port());
    let url = Url::parse(&format!("http://{address}{path}"));
    ReadyAt::Url(url.expect("an address is an authority"))
}

/// The two ids of `rename`.
fn renamed(flags: &Flags, report: &mut Report) -> [String; 2] {
    let [old, new] = [0, 1].map(|at| flags.words.get(at).cloned().unwrap_or_default());
    if new.is_empty() {
        let found = flags.words.join(" ");
        report.add(Fault::of("rename", wrong("the ids OLD and NEW", &found)));
    } else if let Err(message) = SOURCE_ID.parse(&new) {
        report.add(Fault::of("rename", message));
    }
    [old, new]
}

impl Export {
    fn read(flags: &Flags, report: &mut Report) -> Export {
        let mut refuse = |name: &str, message: String| report.add(Fault::of(name, message));
        let symbol = match flags.value("--symbol").map(|text| SYMBOL.parse(text)) {
            Some(Ok(symbol)) => symbol,
            Some(Err(message)) => {
                refuse("--symbol", message);
                String::new()
            }
            None => {
                refuse("--symbol", "expected a symbol like BTC/USDT, found nothing".to_string());
                String::new()
            }
        };
        let named = flags.value("--interval").unwrap_or_default();
        let interval = Stored::ALL.into_iter().find(|it| it.name() == named);
        if interval.is_none() {
            let expected = "1m, 1h or 1d, of which all others are made";
            refuse("--interval", wrong(expected, named));
        }
        let mut time =
            |name: &str, other: i64| match flags.value(name).map(|text| (text, time(text))) {
                None => UnixMs(other),
                Some((_, Some(time))) => time,
                Some((text, None)) => {
                    let expected = "2026-11-22, 2026-11-22T09:00:00Z or milliseconds since 1970";
                    refuse(name, wrong(expected, text));
                    UnixMs(other)
                }
            };
        let times = time("--from", 0)..time("--to", i64::MAX);
        let as_json = match flags.value("--format") {
            None | Some("csv") => false,
            Some("json") => true,
            Some(other) => {
                refuse("--format", wrong("csv or json", other));
                false
            }
        };
        Export {
            data: Data::Memory,
            symbol,
            interval: interval.unwrap_or(Stored::M1),
            sources: flags.values("--id").map(str::to_string).collect(),
            times,
            as_json,
        }
    }

    /// Completes what the flags leave open.
    fn with(self, config: Config) -> Export {
        let sources = match self.sources.is_empty() {
            true => config.sources.into_iter().map(|it| it.id).collect(),
            false => self.sources,
        };
        Export { data: config.data, sources, ..self }
    }
}

/// A day, a time, or milliseconds since 1970.
fn time(text: &str) -> Option<UnixMs> {
    let ms = digits(text.as_bytes());
    let day = || iso_8601(format!("{text}T00:00:00").as_bytes());
    let time = || iso_8601(text.strip_suffix('Z')?.as_bytes());
    ms.or_else(day).or_else(time).map(UnixMs)
}
