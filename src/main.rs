//! The marketd command: arguments, configuration, logger, exit code.
//!
//! Owns standard output, standard error and the exit code. An error that the user can mend never
//! panics: it is a clear line for each fault. The exit code is 2, or 1 if `healthcheck`, `probe` or `reload`
//! fails.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

use marketd::commands::healthcheck;
#[cfg(feature = "sqlite")]
use marketd::commands::history;
use marketd::config::{
    self, Command, ConfigFault, Dialects, KnownDialect, LoadedConfig, ProbeOptions, SchemaOf,
    SourceConfig,
};
use marketd::exchange::{self, Dialect};
use marketd::http::unpacked;
use marketd::log_targets::{CONFIG, NET};
use marketd::logging::{self, LineFormat};
use marketd::time::Clock;
use signal_hook::consts::SIGXFSZ;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// Exit code for an error that the user can mend.
const MEND: u8 = 2;

/// What `--check` says of a configuration without faults.
const GOOD: &str = "the configuration is good\n";

fn main() -> ExitCode {
    // A write beyond the process's file size limit raises SIGXFSZ, which would end the process. With a
    // handler, the write fails instead, as on a full disk. A system that does not accept the handler has no
    // such limit.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let dialects = dialects();
    let words = std::env::args_os().skip(1);
    let command =
        match config::command(words, |name| std::env::var_os(name), &dialects, marketd::net::check)
        {
            Ok(command) => command,
            Err(faults) => return fail("", &faults),
        };
    match command {
        Command::Version => print(&version()),
        Command::Print(text) => print(&text),
        Command::Schema(SchemaOf::Config) => print(&unpacked(config::SCHEMA)),
        Command::Schema(SchemaOf::Dialect) => print(&unpacked(exchange::SCHEMA)),
        Command::Check(loaded) => {
            tell("warning: ", &loaded.warnings);
            print(GOOD)
        }
        Command::PrintConfig(loaded) => {
            tell("warning: ", &loaded.warnings);
            print(&format!("{}\n", loaded.config.to_json()))
        }
        Command::Run(loaded) => serve(loaded),
        Command::Probe(loaded, options) => ask(&loaded, &options),
        Command::Healthcheck(at, wait) => told(healthcheck::ask(&at, wait), 1),
        Command::Reload { pid, metrics } => told(healthcheck::reload(pid, metrics), 1),
        #[cfg(feature = "sqlite")]
        Command::Export(asked) => {
            let unsound = history::export(&asked, &mut io::BufWriter::new(io::stdout().lock()));
            if let Ok(rows @ 1..) = unsound {
                tell("warning: ", &[format!("{rows} damaged rows were left out")]);
            }
            told(unsound.map(|_| String::new()), MEND)
        }
        #[cfg(feature = "sqlite")]
        Command::Prune { config, yes } => told(history::prune(&config, yes), MEND),
        #[cfg(feature = "sqlite")]
        Command::Rename { data, old, new, dry_run } => {
            told(history::rename(&data, &old, &new, dry_run), MEND)
        }
        #[cfg(feature = "sqlite")]
        Command::Backup { data, copy } => told(history::backup(&data, &copy), MEND),
        #[cfg(not(feature = "sqlite"))]
        Command::Export(_)
        | Command::Backup { .. }
        | Command::Prune { .. }
        | Command::Rename { .. } => {
            fail("", &["this marketd was built without the feature `sqlite` and keeps no file"])
        }
    }
}

/// The name, the version, the commit if it is known, the features of this build, and the version of SQLite.
fn version() -> String {
    let features = [
        ("cluster", cfg!(feature = "cluster")),
        ("page", cfg!(feature = "page")),
        ("sqlite", cfg!(feature = "sqlite")),
        ("tls", cfg!(feature = "tls")),
    ];
    let features = features.into_iter().filter_map(|(name, is_on)| is_on.then_some(name));
    let features = features.collect::<Vec<_>>().join(", ");
    #[cfg(feature = "sqlite")]
    let sqlite = format!("SQLite {}\n", marketd::store::sqlite_version());
    #[cfg(not(feature = "sqlite"))]
    let sqlite = "";
    let commit = match env!("MARKETD_COMMIT") {
        "" => String::new(),
        commit => format!("commit: {commit}\n"),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("marketd {version}\n{commit}features: {features}\n{sqlite}")
}

/// Asks each source's exchange once for everything, and prints what was understood.
fn ask(loaded: &LoadedConfig, options: &ProbeOptions) -> ExitCode {
    if loaded.config.demo.is_some() {
        return fail("probe: ", &["expected --source, or a configuration with sources"]);
    }
    let mut is_good = true;
    for source in &loaded.config.sources {
        let (text, all_read) = marketd::probe::probe(&loaded.config, source, options);
        is_good &= print(&text) == ExitCode::SUCCESS && all_read;
    }
    ExitCode::from(u8::from(!is_good))
}

/// Starts the logger and runs the service to its end.
fn serve(loaded: LoadedConfig) -> ExitCode {
    let stream = std::env::var("JOURNAL_STREAM").ok();
    let format = LineFormat::of(loaded.log_format, stream.as_deref());
    // The first line tells the address, whatever the rules say. They apply after that line, and so does the
    // pattern that may end them.
    let rules = loaded.filter();
    let rules = format!("{},{NET}=info", rules.split('/').next().unwrap_or_default());
    if let Err(error) = logging::start(format, Clock::new(), &rules) {
        return fail("log: ", &[error]);
    }
    let ended = marketd::net::run(loaded, reread, take, logging::figures);
    log::logger().flush();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail("marketd: ", &[error]),
    }
}

/// Applies the log rules of a configuration that is now in force, and logs its warnings.
fn take(loaded: &LoadedConfig) {
    logging::set_rules(&loaded.filter());
    for warning in &loaded.warnings {
        log::warn!(target: CONFIG, "{warning}");
    }
}

/// Reads the configuration again.
fn reread(running: &[SourceConfig]) -> Result<LoadedConfig, Vec<ConfigFault>> {
    let words = std::env::args_os().skip(1);
    config::reload(running, words, |name| std::env::var_os(name), &dialects())
}

/// The built-in dialects, and the function that reads a dialect from a file.
fn dialects() -> Dialects {
    let built_in = Dialect::names().filter_map(Dialect::by_name);
    Dialects {
        built_in: built_in.map(known).collect(),
        read: |file, text| Dialect::read(file, text).map(|dialect| known(&dialect)),
    }
}

/// What the configuration needs to know of a dialect: its address, its budget and costs, and whether it has a
/// list and a key.
fn known(dialect: &Dialect) -> KnownDialect {
    let budget = dialect.budget();
    let ways = dialect.ways().into_iter().map(|way| (way.markets, way.cost));
    KnownDialect {
        name: dialect.name().to_string(),
        url: dialect.base_url().clone(),
        budget: (budget.units, budget.per),
        ways: ways.collect(),
        has_list: dialect.has_list(),
        has_key: dialect.has_key(),
    }
}

/// Writes lines to standard error. A failure is ignored: it could not be reported anywhere.
fn tell(mark: &str, lines: &[impl fmt::Display]) {
    let mut out = io::stderr().lock();
    for line in lines {
        let _ = writeln!(out, "{mark}{line}");
    }
}

/// Writes an error that the user can mend, and returns its exit code.
fn fail(mark: &str, lines: &[impl fmt::Display]) -> ExitCode {
    tell(mark, lines);
    ExitCode::from(MEND)
}

/// Writes the text that a command returns, or a line for each of its faults, with this exit code.
fn told(done: Result<String, impl fmt::Display>, code: u8) -> ExitCode {
    match done {
        Ok(text) => print(&text),
        Err(error) => {
            tell("", &[error]);
            ExitCode::from(code)
        }
    }
}

/// Writes a text to standard output. A full disk is an error; a closed pipe (`| head`) is not.
fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail("standard output: ", &[error])
        }
        _ => ExitCode::SUCCESS,
    }
}
