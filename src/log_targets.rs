//! The targets of the log: one word for each component, as printed and as `--log` takes it. Also the form of
//! a line's message.
//!
//! A message is `event key=value ...`: first what happened, in lower-case words, then its details. Free text
//! is [`quoted`]; other values hold no spaces. `tests/tidy.rs` checks every log line of the code.
//!
//! Owns the closed list of targets. Every log line names one of them, so a rule of the log can name any
//! target that a line has shown. The list does not follow the module tree: it does not change when modules
//! move.

use std::fmt::Display;

/// One line for each response to a client.
pub const ACCESS: &str = "access";
/// The cluster: its engine, and which node collects a source.
pub const CLUSTER: &str = "cluster";
/// Warnings about the configuration, at the start and after a reload.
pub const CONFIG: &str = "config";
/// Which source answers for which symbol.
pub const FAILOVER: &str = "failover";
/// Which candles are requested from an exchange, and why.
pub const FETCH: &str = "fetch";
/// Changes of what `/health` says, and reminders while it is not `ok`.
pub const HEALTH: &str = "health";
/// The history file.
pub const HISTORY: &str = "history";
/// Client connections and their limits.
pub const HTTP: &str = "http";
/// Market lists and symbols.
pub const MARKET: &str = "market";
/// The process: addresses, signals, start and end.
pub const NET: &str = "net";
/// Requests to exchanges, their responses, and back-off.
pub const SOURCE: &str = "source";

/// All targets. The logger matches prefixes, so no target is a prefix of another.
pub const ALL: [&str; 11] =
    [ACCESS, CLUSTER, CONFIG, FAILOVER, FETCH, HEALTH, HISTORY, HTTP, MARKET, NET, SOURCE];

/// Free text as the value of a key: in quotes, with escapes, so that one line stays one line.
pub fn quoted(text: impl Display) -> String {
    format!("{:?}", text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_one_target_matches_no_other() {
        for (at, target) in ALL.iter().enumerate() {
            let others = ALL.iter().enumerate().filter(|(other, _)| *other != at);
            for (_, other) in others {
                assert!(!other.starts_with(target), "{target} {other}");
            }
        }
    }
}
