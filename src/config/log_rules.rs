//! The rules of the log: translates `--log` and `RUST_LOG` for the logger.
//!
//! A rule names a target as the log prints it ([`crate::log_targets`]). A rule for one target never changes
//! the level of other targets. Their level comes from the rule without a target, or is `info`.

use super::fault::{Report, quoted, suggestion, wrong};
use crate::log_targets;
use log::LevelFilter;

/// The level of all targets if no rule sets it.
const DEFAULT: &str = "info";

/// The levels, as messages list them.
const LEVEL: &str = "off, error, warn, info, debug or trace";

/// The target of everything in this program, by the custom of Rust programs.
const WHOLE: &str = "marketd";

/// The rules of `--log`, as the logger takes them: a level, or `TARGET=LEVEL`, or several of them with
/// commas.
pub(super) fn of_flag(text: &str) -> Result<String, String> {
    let mut rules = DEFAULT.to_string();
    for rule in text.split(',').map(str::trim) {
        let (target, level) = rule.split_once('=').unwrap_or((WHOLE, rule));
        if target.is_empty() || !is_level(level) {
            return Err(wrong(LEVEL, text));
        }
        rules += &rule_for(target, level)?;
    }
    Ok(rules)
}

/// Reads the rules of `RUST_LOG`, which may be meant for other programs. Returns `None`, as if the variable
/// were not set, if it is malformed or has no rule for marketd. Both cause a warning, never a fault. Rules
/// for the targets of other programs are skipped, but a target that looks misspelt causes a warning.
pub(super) fn read_variable(text: &str, by: &'static str, report: &mut Report) -> Option<String> {
    report.give("log", by);
    let (list, pattern) = text.split_at(text.find('/').unwrap_or(text.len()));
    let (mut rules, mut is_ours) = (DEFAULT.to_string(), false);
    for rule in list.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (target, level) = match rule.split_once('=') {
            Some((target, level)) => (target.trim(), level.trim()),
            None if is_level(rule) => (WHOLE, rule),
            None => (rule, ""),
        };
        // A rule without a level logs everything.
        let added = rule_for(target, if level.is_empty() { "trace" } else { level });
        let is_within = target.starts_with(WHOLE);
        is_ours |= added.is_ok() || is_within;
        match added {
            Ok(rule) => rules += &rule,
            Err(warning) if is_within || !near(target).is_empty() => {
                report.warn("log", format!("{warning}: this rule is ignored"));
            }
            Err(_) => {}
        }
    }
    if is_ours && env_filter::Builder::new().try_parse(text).is_ok() {
        return Some(rules + pattern);
    }
    report.warn("log", "malformed, or without a rule for marketd: the variable is ignored");
    None
}

/// The rule for a target in the syntax of the logger, behind a comma. It replaces an earlier rule for the
/// same target. The error is a message that there is no such target.
fn rule_for(target: &str, level: &str) -> Result<String, String> {
    match target.strip_prefix("marketd::").unwrap_or(target) {
        WHOLE => Ok(format!(",{level}")),
        name if log_targets::ALL.contains(&name) => Ok(format!(",{name}={level}")),
        _ => {
            let hint = match near(target) {
                near if near.is_empty() => {
                    format!(", expected one of {}", log_targets::ALL.join(", "))
                }
                near => near,
            };
            Err(format!("unknown target {}{hint}", quoted(target)))
        }
    }
}

/// Suggests the most similar known target. Empty if none is similar.
fn near(target: &str) -> String {
    suggestion(target, log_targets::ALL)
}

fn is_level(word: &str) -> bool {
    word.parse::<LevelFilter>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_filters_are_levels_or_levels_of_targets() {
        let check = |text: &str, good: bool| assert_eq!(of_flag(text).is_ok(), good, "{text:?}");
        check("info", true);
        check("WARN", true);
        check("info,marketd::net=debug", true);
        for text in ["", "loud", "info,", "=info", "net=", "info;debug"] {
            check(text, false);
        }
    }

    #[test]
    fn the_variable_of_the_log_is_what_the_logger_understands_and_says_something_of_this() {
        let check = |text: &str, good: bool| {
            let read = read_variable(text, "RUST_LOG", &mut Report::default());
            assert_eq!(read.is_some(), good, "{text:?}");
        };
        for text in ["info", "Warn,", "marketd", "access", "info/BTC", " , marketd = debug"] {
            check(text, true);
        }
        for text in ["marketd::net=debug,hyper", "info,hyper,tower=", "info,hyper=off"] {
            check(text, true);
        }
        for text in ["loud", "info;debug", "info=loud", "a=b=c", "hyper,loud", "hyper=debug"] {
            check(text, false);
        }
        for text in [" , ", "info/a/b"] {
            check(text, false);
        }
    }

    #[test]
    fn a_rule_for_one_target_leaves_the_others_as_they_are() {
        let check_variable = |text: &str, expected: &str| {
            let mut report = Report::default();
            let rules = read_variable(text, "RUST_LOG", &mut report);
            assert_eq!(rules.as_deref(), Some(expected), "{text:?}");
            report.close().map(|warnings| warnings.len())
        };
        let check = |text: &str, expected: &str| {
            assert_eq!(of_flag(text).as_deref(), Ok(expected), "{text:?}");
            assert_eq!(check_variable(text, expected), Ok(0), "{text:?}");
        };
        check("debug", "info,debug");
        check("source=debug", "info,source=debug");
        check("source=debug,warn", "info,source=debug,warn");
        check("http=off, net=trace", "info,http=off,net=trace");
        check("marketd=debug", "info,debug");
        check("marketd::net=debug", "info,net=debug");
        let check = |text: &str, expected: &str, warnings: usize| {
            assert_eq!(check_variable(text, expected), Ok(warnings), "{text:?}");
        };
        check("access", "info,access=trace", 0);
        check("source=debug/BTC", "info,source=debug/BTC", 0);
        check("marketd::server::poller=debug,hyper=off", "info", 1);
        check("warn,hyper=trace", "info,warn", 0);
    }
}
