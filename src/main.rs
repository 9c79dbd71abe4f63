//! The marketd command: words to configuration, logger, run, exit code.
//!
//! Owns the process's ends: standard output and error, and the exit code. It never panics on
//! what a person can mend: that is one clear line, and exit code 2.

use marketd::config::{self, Command, Fault, KnownDialect, Loaded, Url};
use marketd::exchange::{Call, Dialect};
use marketd::log_targets::CONFIG;
use marketd::time::Clock;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// For everything that a person can mend.
const MEND: u8 = 2;

fn main() -> ExitCode {
    let dialects = dialects();
    let words = std::env::args_os().skip(1);
    let command = config::command(words, |name| std::env::var_os(name), &dialects);
    match command {
        Err(faults) => {
            tell("", &faults);
            ExitCode::from(MEND)
        }
        Ok(Command::Help) => print(&config::help(&dialects)),
        Ok(Command::Version) => print(concat!("marketd ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Command::Check(loaded)) => {
            tell("warning: ", &loaded.warnings);
            match marketd::net::check(&loaded.config) {
                Ok(()) => print("the configuration is good\n"),
                Err(error) => {
                    tell("", &[error]);
                    ExitCode::from(MEND)
                }
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
    // The first line names the address, for whoever started this with port 0 and reads it.
    let warn = || {
        for warning in &loaded.warnings {
            log::warn!(target: CONFIG, "{warning}");
        }
    };
    match marketd::net::run(loaded.config, warn) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell("marketd: ", &[error]);
            ExitCode::from(MEND)
        }
    }
}

/// The exchanges that this build can poll, and how fast their limits give back what a round of
/// polls costs.
fn dialects() -> Vec<KnownDialect> {
    let known = |dialect: &'static Dialect| {
        let budget = dialect.budget();
        let time_for = |cost: u32| budget.per * cost / budget.units;
        let (poll_cost, symbol_cost) = match dialect.tickers_at_once() {
            true => (time_for(dialect.cost(&Call::Tickers)), Duration::ZERO),
            false => (
                Duration::ZERO,
                time_for(dialect.cost(&Call::Ticker { id: "" })),
            ),
        };
        KnownDialect {
            name: dialect.name(),
            url: Url::parse(dialect.base_url()).expect("a dialect's own address is sound"),
            poll_cost,
            symbol_cost,
        }
    };
    Dialect::names()
        .filter_map(Dialect::by_name)
        .map(known)
        .collect()
}

/// Log lines go to standard error: time, level, target, text.
fn start_log(filter: &str) {
    let clock = Clock::new();
    let logger = env_logger::Builder::new()
        .parse_filters(filter)
        .format(move |out, record| {
            let (time, level) = (clock.now().unix, record.level());
            writeln!(
                out,
                "{time} {level:<5} {}: {}",
                record.target(),
                record.args()
            )
        })
        .try_init();
    if logger.is_err() {
        tell("marketd: ", &["the logger runs already"]);
    }
}

/// Writes lines to standard error. Where nobody listens there is nobody to tell.
fn tell(mark: &str, lines: &[impl fmt::Display]) {
    let mut out = io::stderr().lock();
    for line in lines {
        let _ = writeln!(out, "{mark}{line}");
    }
}

/// Writes a text to standard output. A reader that has seen enough (`| head`) is no fault, a full
/// disk is.
fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let fault = Fault {
                key: "standard output".to_string(),
                message: error.to_string(),
                ..Fault::default()
            };
            tell("", &[fault]);
            ExitCode::from(MEND)
        }
        _ => ExitCode::SUCCESS,
    }
}
