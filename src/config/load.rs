//! The loading: command line, environment and file become one configuration, or faults.
//!
//! Owns the order of precedence (flags, environment, file, defaults) and which sources run. It
//! never reads the environment of the process itself: it is given a way to ask.

use super::args::{self, Flags, Words};
use super::check::{Build, KnownDialect, check, tls_available};
use super::fault::{Fault, Report, quoted};
use super::json::Node;
use super::keys::{Key, Kind, print_object, read_object};
use super::proxy::Proxies;
use super::schema::ROOT;
use super::{Config, DEMO, DEMO_DIALECT, SourceConfig, Url, forms, log_rules};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

/// Largest file that is read: a thousand categories of a thousand symbols are 10 MB, and the
/// name of an endless device must not eat the memory.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Flag, variable and key that say the same.
const OVERRIDES: &[(&str, &str, &str)] = &[
    ("--listen", "MARKETD_LISTEN", "listen"),
    (
        "--ecosystem-listen",
        "MARKETD_ECOSYSTEM_LISTEN",
        "ecosystemListen",
    ),
    ("--data", "MARKETD_DATA", "data"),
];

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Serve.
    Run(Loaded),
    /// Tell that the configuration is good, and its warnings.
    Check(Loaded),
    /// Print [`Config::to_json`].
    PrintConfig(Loaded),
    /// Print [`super::help`].
    Help,
    /// Print name and version.
    Version,
}

/// A configuration without fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// What is logged, in the syntax of `RUST_LOG`.
    pub log: String,
    /// What is allowed and unwise.
    pub warnings: Vec<Fault>,
}

impl Loaded {
    /// The filter of the log: as `accessLog` says of the target `access`, except where [`Loaded::log`]
    /// says something of it.
    pub fn filter(&self) -> String {
        let is_access = |rule: &str| rule.trim().split('=').next() == Some("access");
        let access = match self.config.access_log {
            _ if self.log.split(',').any(is_access) => return self.log.clone(),
            true => "access=info",
            false => "access=off",
        };
        format!("{access},{}", self.log)
    }
}

/// Reads a command line: `words` are those behind the command's name, `variable` looks up the
/// environment (an empty variable counts as unset). Every fault that can be found is told, those
/// of flags and variables first, then those of the file from top to bottom.
pub fn command(
    words: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    dialects: &[KnownDialect],
) -> Result<Command, Vec<Fault>> {
    let (flags, faults) = match args::parse(words) {
        Words::Help => return Ok(Command::Help),
        Words::Version => return Ok(Command::Version),
        Words::Flags(flags, faults) => (flags, faults),
    };
    let mut report = Report::default();
    faults.into_iter().for_each(|fault| report.add(fault));
    let variable = |name: &'static str, report: &mut Report| text_of(name, &variable, report);
    let mut config = Config::default();
    let file = flags.value("--config").map(str::to_string);
    if let Some(file) = file.or_else(|| variable("MARKETD_CONFIG", &mut report)) {
        match text_of_file(&file) {
            Ok(text) => read_file(&mut config, &file, &text, &mut report),
            Err(fault) => report.add(fault),
        }
    }
    for (flag, name, key) in OVERRIDES {
        let flag = flags.value(flag).map(|text| (*flag, text.to_string()));
        let given = flag.or_else(|| variable(name, &mut report).map(|text| (*name, text)));
        if let Some((by, text)) = given {
            override_key(&mut config, key, by, &text, &mut report);
        }
    }
    let log = log_of(&flags, |report| variable("RUST_LOG", report), &mut report);
    settle_sources(&mut config, &flags, &mut report);
    let build = Build {
        dialects,
        tls: tls_available(),
    };
    let proxies = Proxies::read(|name| variable(name, &mut report));
    let (config, warnings) = finish(config, build, &proxies, report)?;
    let loaded = Loaded {
        config,
        log,
        warnings,
    };
    Ok(if flags.has("--print-config") {
        Command::PrintConfig(loaded)
    } else if flags.has("--check") {
        Command::Check(loaded)
    } else {
        Command::Run(loaded)
    })
}

impl Config {
    /// Reads the text of a file as if it were named by `--config` and nothing else was said.
    /// `name` is what faults call it. Answers the warnings too. Of files, only `tls.caFile` is read.
    pub fn from_json(
        name: &str,
        text: &str,
        dialects: &[KnownDialect],
    ) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
        let (mut config, mut report) = (Config::default(), Report::default());
        read_file(&mut config, name, text, &mut report);
        settle_sources(&mut config, &Flags::default(), &mut report);
        let build = Build {
            dialects,
            tls: tls_available(),
        };
        finish(config, build, &Proxies::default(), report)
    }

    /// This configuration as a file that reads back as the same.
    pub fn to_json(&self) -> String {
        let mut written = self.clone();
        if let Some(at) = self.demo_source() {
            written.sources[at].dialect = DEMO.to_string();
        }
        print_object(&written, ROOT).to_string()
    }
}

/// A variable of the environment; an empty one counts as unset.
fn text_of(
    name: &'static str,
    variable: &impl Fn(&str) -> Option<OsString>,
    report: &mut Report,
) -> Option<String> {
    let value = variable(name).filter(|value| !value.is_empty())?;
    let text = value.into_string();
    if text.is_err() {
        report.add(Fault {
            key: name.to_string(),
            message: "expected UTF-8".to_string(),
            ..Fault::default()
        });
    }
    text.ok()
}

fn text_of_file(name: &str) -> Result<String, Fault> {
    let fault = |message: String| Fault {
        file: Some(name.to_string()),
        message,
        ..Fault::default()
    };
    let mut bytes = Vec::new();
    File::open(name)
        .and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| fault(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(fault(format!("larger than {FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        Fault {
            line: Some(line),
            ..fault("not UTF-8".to_string())
        }
    })
}

fn read_file(config: &mut Config, name: &str, text: &str, report: &mut Report) {
    // Some editors put the mark in front; no JSON begins with it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    report.open(name, text);
    match Node::whole(name, text) {
        Ok(node) => read_object(config, ROOT, &node, report),
        Err(fault) => report.add(fault),
    }
}

/// Sets a key of the file from a flag or variable, by the form that the file's key has.
fn override_key(config: &mut Config, key: &str, by: &'static str, text: &str, report: &mut Report) {
    report.give(key, by);
    let row: &Key<Config> = (ROOT.iter().find(|row| row.name == key))
        .expect("OVERRIDES names keys of the file alone, a test sees to it");
    if let Kind::Text { set, .. } = &row.kind
        && let Err(message) = set(config, text)
    {
        report.fault(key, message);
    }
}

/// What is logged: what the flag says, else what `RUST_LOG` does.
fn log_of(
    flags: &Flags,
    variable: impl Fn(&mut Report) -> Option<String>,
    report: &mut Report,
) -> String {
    let (by, rules) = match flags.value("--log") {
        Some(text) => ("--log", log_rules::of_flag(text).map(|it| (it, Vec::new()))),
        None => match variable(report) {
            Some(text) => ("RUST_LOG", log_rules::of_variable(&text)),
            None => return "info".to_string(),
        },
    };
    report.give("log", by);
    match rules {
        Ok((filter, warnings)) => {
            for warning in warnings {
                report.warn("log", warning);
            }
            filter
        }
        Err(message) => {
            report.fault("log", message);
            String::new()
        }
    }
}

/// Which sources run: those of the flags, else those of the file, else the demo exchange; and the
/// demo exchange beside them when `--demo` asks for it.
fn settle_sources(config: &mut Config, flags: &Flags, report: &mut Report) {
    let by_flags = flags.has("--source");
    if by_flags {
        report.give("sources", "--source");
        config.sources.clear();
        for text in flags.values("--source") {
            let source = source_of(text, &config.sources, report);
            config.sources.push(source);
        }
    }
    let is_demo = |source: &SourceConfig| source.dialect == DEMO;
    let asked = flags.has("--demo") && !config.sources.iter().any(is_demo);
    if asked || config.sources.is_empty() {
        if flags.has("--demo") {
            report.give(&format!("sources[{}]", config.sources.len()), "--demo");
        }
        config.sources.push(SourceConfig {
            dialect: DEMO.to_string(),
            ..SourceConfig::demo()
        });
    }
    let Some(text) = flags.value("--symbols") else {
        return;
    };
    report.give("symbols", "--symbols");
    let symbols = symbols_of(text, report);
    let alone = config.sources.len() == 1 && is_demo(&config.sources[0]);
    let own = flags.values("--source").count();
    let count = if alone { 1 } else { own };
    if count == 0 {
        let message = "needs --source: the file's sources say their own symbols";
        report.fault("symbols", message);
    }
    for source in &mut config.sources[..count] {
        source.symbols.clone_from(&symbols);
        source.quote_assets.clear();
    }
}

/// `DIALECT[=URL]` as a source, named after its dialect: `binance`, then `binance-2`.
fn source_of(text: &str, others: &[SourceConfig], report: &mut Report) -> SourceConfig {
    let (dialect, url) = match text.split_once('=') {
        Some((dialect, url)) => (dialect, Some(url)),
        None => (text, None),
    };
    let mut source = match dialect {
        DEMO => SourceConfig {
            dialect: DEMO.to_string(),
            ..SourceConfig::demo()
        },
        dialect => SourceConfig::of(dialect),
    };
    if dialect.is_empty() {
        let found = quoted(text);
        report.fault("sources", format!("expected DIALECT[=URL], found {found}"));
    }
    match url.map(Url::parse) {
        None => {}
        Some(Ok(url)) => source.url = Some(url),
        Some(Err(message)) => {
            report.fault("sources", message);
            // Told once is enough: the check passes over a source without dialect.
            source.dialect.clear();
        }
    }
    let same = others.iter().filter(|it| it.dialect == dialect).count();
    if same > 0 && dialect != DEMO {
        source.id = format!("{dialect}-{}", same + 1);
    }
    source
}

fn symbols_of(text: &str, report: &mut Report) -> Vec<String> {
    let mut symbols = Vec::new();
    for part in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        match forms::symbol(part) {
            // What is typed by hand is forgiven to be typed twice.
            Ok(symbol) if symbols.contains(&symbol) => {}
            Ok(symbol) => symbols.push(symbol),
            Err(message) => report.fault("symbols", message),
        }
    }
    if text.replace(',', "").trim().is_empty() {
        report.fault("symbols", "expected symbols like BTC/USDT, found none");
    }
    symbols
}

/// Checks the whole and gives it its last form.
fn finish(
    mut config: Config,
    build: Build<'_>,
    proxies: &Proxies,
    mut report: Report,
) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    check(&config, build, &mut report);
    read_roots(&mut config, &mut report);
    settle_proxies(&mut config, build, proxies, &mut report);
    let warnings = report.close()?;
    let demo = config.sources.iter_mut().find(|it| it.dialect == DEMO);
    config.demo = demo.map(|source| {
        source.dialect = DEMO_DIALECT.to_string();
        config.demo.unwrap_or_default()
    });
    for depth in [
        &mut config.history.m1,
        &mut config.history.h1,
        &mut config.history.d1,
    ] {
        depth.backfill = depth.backfill.min(depth.keep);
    }
    Ok((config, warnings))
}

/// Reads the file of root certificates. Whether they are good, those say who understand them; here
/// it is enough that there are some, and that they are text.
fn read_roots(config: &mut Config, report: &mut Report) {
    const KEY: &str = "tls.caFile";
    let Some(name) = &config.tls.ca_file else {
        return;
    };
    match text_of_file(name) {
        Ok(text) if text.contains("-----BEGIN CERTIFICATE-----") => config.tls.ca_text = text,
        Ok(_) => {
            let message = format!("{} holds no certificate in PEM form", quoted(name));
            report.fault(KEY, message);
        }
        Err(fault) => report.fault(KEY, format!("{}: {}", quoted(name), fault.message)),
    }
}

/// Says of every source what it is reached through. The demo exchange is next door.
fn settle_proxies(config: &mut Config, build: Build<'_>, proxies: &Proxies, report: &mut Report) {
    let mut told = Vec::new();
    for source in config.sources.iter_mut().filter(|it| it.dialect != DEMO) {
        let own = build.dialect(&source.dialect).map(|dialect| &dialect.url);
        let Some(url) = source.url.as_ref().or(own) else {
            continue;
        };
        match proxies.of(url) {
            Ok(proxy) => source.proxy = proxy,
            Err((by, _)) if told.contains(&by) => {}
            Err((by, message)) => {
                told.push(by);
                report.add(Fault {
                    key: by.to_string(),
                    message,
                    ..Fault::default()
                });
            }
        }
    }
}
