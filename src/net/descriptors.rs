//! How many files this process may have open, and how many of them clients may take.
//!
//! Owns the reserve: what the loop, the exchanges and the history need whatever clients do. The
//! limit is raised to the most that the system allows without asking anybody (`RLIMIT_NOFILE`,
//! getrlimit(2)). It never opens anything.

use crate::config::Config;
use crate::core;
use crate::log_targets::NET;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Standard streams, poller, waker, signals, listeners, the history's file with its log and its
/// lock, a look-up of a name, a look at the process's own figures: some twenty, and as many again.
const RESERVE: usize = 40;

/// Clients that are served however low the limit is: with fewer, nobody can see what is wrong.
const LEAST: usize = 8;

/// Of the reserve, what is used all the time.
const USED: usize = 20;

/// Raises the limit, and lowers the cap on connections to what it carries. The error is the limit,
/// and how many files it takes to serve anybody at all.
pub fn settle(config: &mut Config) -> Result<(), (u64, usize)> {
    let Some(limit) = raise() else {
        return Ok(());
    };
    let needed = needed(config);
    if limit < needed as u64 {
        return Err((limit, needed));
    }
    let cap = cap(config, limit);
    let most = &mut config.limits.max_connections;
    if cap < *most {
        log::info!(
            target: NET,
            "at most {cap} connections instead of {most}: only {limit} files may be open"
        );
        *most = cap;
    }
    Ok(())
}

/// Files without which nothing can be served: with fewer, exchanges could never be asked, and nobody
/// would be told.
fn needed(config: &Config) -> usize {
    let lanes = config.limits.lanes_per_source * config.sources.len();
    // The demo exchange is in the same process: both ends count.
    let ends = if config.demo.is_some() { 2 } else { 1 };
    USED + ends * lanes + LEAST
}

/// The limit after raising it; `None` where there is none.
fn raise() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => now.maximum,
        // Some systems have a most beyond the most that they say (macOS, setrlimit(2)).
        Err(_) => now.current,
    }
}

/// How many clients this many files carry. Those that are refused need one each, to be told so.
fn cap(config: &Config, limit: u64) -> usize {
    // A lane that reconnects holds two until the old one is let go.
    let lanes = 2 * config.limits.lanes_per_source * config.sources.len();
    let demo = match config.demo {
        Some(_) => core::DEMO_CLIENTS,
        None => 0,
    };
    let taken = RESERVE + lanes + demo + core::LOBBY;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    limit.saturating_sub(taken).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceConfig;

    #[test]
    fn the_cap_leaves_room_for_all_that_is_not_a_client() {
        let mut config = Config {
            sources: vec![SourceConfig::of("binance"); 2],
            demo: None,
            ..Config::default()
        };
        config.limits.lanes_per_source = 3;
        assert_eq!(cap(&config, 1024), 1024 - 40 - 12 - 64);
        assert_eq!(cap(&config, 100), LEAST);
        assert_eq!(cap(&config, 0), LEAST);
        config.demo = Some(crate::config::DemoConfig::default());
        assert_eq!(cap(&config, 1024), 1024 - 40 - 12 - 64 - 32);
    }

    #[test]
    fn the_least_number_of_files_is_known() {
        let mut config = Config {
            sources: vec![SourceConfig::of("binance"); 2],
            demo: None,
            ..Config::default()
        };
        config.limits.lanes_per_source = 3;
        assert_eq!(needed(&config), 20 + 6 + 8);
        config.demo = Some(crate::config::DemoConfig::default());
        assert_eq!(needed(&config), 20 + 12 + 8);
    }

    #[test]
    fn the_limit_is_raised_to_its_most() {
        let raised = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, raised);
        assert_eq!(now.current, now.maximum);
    }
}
