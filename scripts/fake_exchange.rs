//! A Binance-shaped exchange with any number of made-up markets, for load tests.
//!
//!     cargo run --release --example fake_exchange -- --port 9090 --tickers 3500
//!     marketd --source binance=http://127.0.0.1:9090
//!
//! The tests use this exchange, too: prices move each second, candles go back to 2017, and the same
//! seed gives the same markets. It listens only on 127.0.0.1 and runs until it is killed.

#[path = "../tests/support/mod.rs"]
mod support;

use lexopt::prelude::*;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

const HELP: &str = "fake_exchange [--port PORT] [--tickers N] [--seed SEED]
    --port      where to listen on 127.0.0.1; 0 picks a free one (default 9090)
    --tickers   how many markets there are (default 3500)
    --seed      the same seed gives the same markets and prices (default 1)";

struct Options {
    port: u16,
    tickers: usize,
    seed: u64,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(fault) => {
            eprintln!("{fault}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    match support::Binance::generated_on(addr, options.tickers, options.seed) {
        Ok(binance) => {
            println!("{} markets: marketd --source {}", options.tickers, binance.source());
            loop {
                std::thread::park();
            }
        }
        Err(fault) => {
            eprintln!("cannot listen on {addr}: {fault}");
            ExitCode::from(2)
        }
    }
}

/// The command line; `None` asks for help.
fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options { port: 9090, tickers: 3500, seed: 1 };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("port") => options.port = parser.value()?.parse()?,
            Long("tickers") => options.tickers = parser.value()?.parse()?,
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}
