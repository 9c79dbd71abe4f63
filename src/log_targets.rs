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

/// Free text as the value of a key: a text of JSON, so that one line stays one line. Characters that are not
/// printed are escaped, because they could move the cursor of a terminal.
pub fn quoted(text: impl Display) -> String {
    let mut out = String::from("\"");
    for char in text.to_string().chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            char if char != '\'' && char.escape_debug().len() > 1 => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out += &format!("\\u{unit:04x}");
                }
            }
            char => out.push(char),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_is_one_of_json_and_moves_no_cursor() {
        let text = "a\"b\\c\nd\u{7}e\u{7f}f\u{202e}g\u{e0001}'\u{e9}\u{4e2d}";
        let told = quoted(text);
        assert_eq!(serde_json::from_str::<String>(&told).expect("JSON"), text);
        let expected = r#""a\"b\\c\nd\u0007e\u007ff\u202eg\udb40\udc01'"#;
        assert_eq!(told, expected.to_string() + "\u{e9}\u{4e2d}\"");
    }

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
