//! The marketd command: arguments, configuration, logger, exit code.
//!
//! Owns standard output, standard error and the exit code. It never panics on what a person can
//! mend: that is one clear line and exit code 2.

use marketd::config::{self, Command, Dialects, KnownDialect, Loaded, Url};
use marketd::exchange::{self, Call, Dialect};
use marketd::log_targets::CONFIG;
use marketd::time::Clock;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Exit code for what a person can mend.
const MEND: u8 = 2;

fn main() -> ExitCode {
    let dialects = dialects();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words == ["schema", "dialect"] {
        return print(exchange::SCHEMA);
    }
    let is_probe = words.first().is_some_and(|word| word == "probe");
    let words = words.into_iter().skip(usize::from(is_probe));
    match config::command(words, |name| std::env::var_os(name), &dialects) {
        Err(faults) => fail("", &faults),
        Ok(Command::Help) => print(&config::help(&dialects.built_in)),
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
        Ok(Command::Run(loaded)) if is_probe => ask(&loaded),
        Ok(Command::Run(loaded)) => serve(loaded),
    }
}

/// Asks each source's exchange once for everything, and prints what was understood.
fn ask(loaded: &Loaded) -> ExitCode {
    if loaded.config.demo.is_some() {
        return fail(
            "probe: ",
            &["expected --source, or a configuration with sources"],
        );
    }
    let mut is_good = true;
    for source in &loaded.config.sources {
        let (text, all_read) = marketd::probe::probe(&loaded.config, source);
        print(&text);
        is_good &= all_read;
    }
    ExitCode::from(u8::from(!is_good))
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
    match marketd::net::run(loaded.config, warn) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail("marketd: ", &[error]),
    }
}

/// The exchanges that this build can poll, and how a file's one is read.
fn dialects() -> Dialects {
    let built_in = Dialect::names().filter_map(Dialect::by_name);
    Dialects {
        built_in: built_in.map(known).collect(),
        read: |file, text| Dialect::read(file, text).map(|dialect| known(&dialect)),
    }
}

/// What the configuration has to know of a dialect: its address, and what a poll of quotes costs.
fn known(dialect: &Dialect) -> KnownDialect {
    let budget = dialect.budget();
    let time_for = |call: &Call<'_>| budget.per * dialect.cost(call) / budget.units;
    let (poll_cost, symbol_cost) = match dialect.tickers_at_once() {
        true => (time_for(&Call::Tickers), Duration::ZERO),
        false => (Duration::ZERO, time_for(&Call::Ticker { id: "" })),
    };
    KnownDialect {
        name: dialect.name().to_string(),
        url: Url::parse(dialect.base_url()).expect("a dialect's own address is sound"),
        poll_cost,
        symbol_cost,
    }
}

/// Writes log lines to standard error: time, level, target, text.
fn start_log(filter: &str) {
    let clock = Clock::new();
    let logger = env_logger::Builder::new()
        .parse_filters(filter)
        .format(move |out, record| {
            let (time, level) = (clock.now().unix, record.level());
            let (target, text) = (record.target(), record.args());
            writeln!(out, "{time} {level:<5} {target}: {text}")
        })
        .try_init();
    if logger.is_err() {
        tell("marketd: ", &["the logger runs already"]);
    }
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
