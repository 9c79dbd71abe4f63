//! The marketd command: arguments, configuration, logger, exit code.
//!
//! Owns standard output, standard error and the exit code. It never panics on what a person can
//! mend: that is one clear line and exit code 2.

use arc_swap::ArcSwap;
use env_filter::Filter;
use marketd::config::{self, Command, KnownDialect, Loaded, Url};
use marketd::exchange::{Call, Dialect};
use marketd::log_targets::CONFIG;
use marketd::time::Clock;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Exit code for what a person can mend.
const MEND: u8 = 2;

fn main() -> ExitCode {
    let dialects = dialects();
    let words = std::env::args_os().skip(1);
    match config::command(words, |name| std::env::var_os(name), &dialects) {
        Err(faults) => fail("", &faults),
        Ok(Command::Help) => print(&config::help(&dialects)),
        Ok(Command::Version) => print(concat!("marketd ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Command::Check(loaded)) => {
            tell("warning: ", &loaded.warnings);
            match marketd::net::check(&loaded.config) {
                Ok(()) => print("the configuration is good\n"),
                Err(error) => fail("", &[error]),
            }
        }
        Ok(Command::PrintConfig(loaded)) => {
            tell("warning: ", &loaded.warnings);
            print(&format!("{}\n", loaded.config.to_json()))
        }
        Ok(Command::Run(loaded)) => serve(loaded),
    }
}

/// Starts the logger and runs the service to its end.
fn serve(loaded: Loaded) -> ExitCode {
    start_log(&loaded.filter());
    // The warnings come second: the first line is the address, for scripts that start with port 0.
    let warn = || {
        for warning in &loaded.warnings {
            log::warn!(target: CONFIG, "{warning}");
        }
    };
    match marketd::net::run(loaded.config.clone(), warn, reread) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail("marketd: ", &[error]),
    }
}

/// Reads the configuration again, and lets the log follow its rules. `None`: it has faults, and all stays
/// as it is.
fn reread() -> Option<config::Config> {
    let words = std::env::args_os().skip(1);
    match config::reload(words, |name| std::env::var_os(name), &dialects()) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                log::warn!(target: CONFIG, "{warning}");
            }
            set_rules(&loaded.filter());
            Some(loaded.config)
        }
        Err(faults) => {
            for fault in &faults {
                log::error!(target: CONFIG, "not reloaded: {fault}");
            }
            None
        }
    }
}

/// The exchanges that this build can poll, and what a poll of their quotes costs.
fn dialects() -> Vec<KnownDialect> {
    let known = |dialect: &'static Dialect| {
        let budget = dialect.budget();
        let time_for = |call: &Call<'_>| budget.per * dialect.cost(call) / budget.units;
        let (poll_cost, symbol_cost) = match dialect.tickers_at_once() {
            true => (time_for(&Call::Tickers), Duration::ZERO),
            false => (Duration::ZERO, time_for(&Call::Ticker { id: "" })),
        };
        KnownDialect {
            name: dialect.name(),
            url: Url::parse(dialect.base_url()).expect("a dialect's own address is sound"),
            poll_cost,
            symbol_cost,
        }
    };
    let dialects = Dialect::names().filter_map(Dialect::by_name);
    dialects.map(known).collect()
}

/// The rules that choose the lines of the log. A reload replaces them, also for the disk thread.
static RULES: LazyLock<ArcSwap<Filter>> =
    LazyLock::new(|| ArcSwap::from_pointee(env_filter::Builder::new().build()));

/// Writes the lines that the rules choose.
struct Logger(env_logger::Logger);

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        RULES.load().enabled(metadata)
    }

    fn log(&self, record: &log::Record<'_>) {
        if RULES.load().matches(record) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// Writes log lines to standard error: time, level, target, text.
fn start_log(rules: &str) {
    let clock = Clock::new();
    let lines = env_logger::Builder::new()
        .filter_level(log::LevelFilter::Trace)
        .format(move |out, record| {
            let (time, level) = (clock.now().unix, record.level());
            let (target, text) = (record.target(), record.args());
            writeln!(out, "{time} {level:<5} {target}: {text}")
        })
        .build();
    if log::set_boxed_logger(Box::new(Logger(lines))).is_err() {
        tell("marketd: ", &["the logger runs already"]);
    }
    set_rules(rules);
}

/// Replaces the rules of the log.
fn set_rules(rules: &str) {
    let rules = env_filter::Builder::new().parse(rules).build();
    log::set_max_level(rules.filter());
    RULES.store(Arc::new(rules));
}

/// Writes lines to standard error. If nobody reads it, there is nobody to tell.
fn tell(mark: &str, lines: &[impl fmt::Display]) {
    let mut out = io::stderr().lock();
    for line in lines {
        let _ = writeln!(out, "{mark}{line}");
    }
}

/// Ends with what a person can mend.
fn fail(mark: &str, lines: &[impl fmt::Display]) -> ExitCode {
    tell(mark, lines);
    ExitCode::from(MEND)
}

/// Writes a text to standard output. A closed pipe (`| head`) is no fault, a full disk is.
fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail("standard output: ", &[error])
        }
        _ => ExitCode::SUCCESS,
    }
}
