//! The marketd command: words to configuration, logger, run, exit code.
//!
//! Owns the process's ends: standard output and error, and the exit code. It never panics on
//! what a person can mend: that is one clear line, and exit code 2.

use marketd::config::{self, Command, Config, Fault, KnownDialect, Loaded, Url};
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
            print("the configuration is good\n")
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
    start_log(&loaded.log);
    for warning in &loaded.warnings {
        log::warn!("{warning}");
    }
    match run(loaded.config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell("marketd: ", &[error]);
            ExitCode::from(MEND)
        }
    }
}

/// Why the service could not start or go on, for a person.
struct RunError(String);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Serves until a signal asks for the end.
fn run(config: Config) -> Result<(), RunError> {
    Err(RunError(format!(
        "{}: serving is not built yet",
        config.listen
    )))
}

/// The exchanges that this build can poll.
fn dialects() -> Vec<KnownDialect> {
    let url = |text| Url::parse(text).expect("the addresses below are well-formed");
    vec![KnownDialect {
        name: "binance",
        url: url("https://api.binance.com"),
        // All tickers weigh 80 of 6000 a minute.
        poll_cost: Duration::from_millis(800),
        symbol_cost: Duration::ZERO,
    }]
}

/// Log lines go to standard error: time, level, room, text.
fn start_log(filter: &str) {
    let clock = Clock::new();
    let logger = env_logger::Builder::new()
        .parse_filters(filter)
        .format(move |out, record| {
            let room = record.target();
            let room = room.strip_prefix("marketd::").unwrap_or(room);
            let (time, level) = (clock.now().unix, record.level());
            writeln!(out, "{time} {level:<5} {room}: {}", record.args())
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
