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

/// Reads the rules of `--log`, and returns them as the logger takes them.
pub(super) fn read(text: &str, report: &mut Report) -> String {
    of_flag(text).unwrap_or_else(|message| {
        report.fault("log", message);
        String::new()
    })
}

/// Reads the rules of `RUST_LOG`, which may be meant for other programs. Returns `None`, as if the variable
/// were not set, if it is malformed or has no rule for marketd. Both cause a warning, never a fault.
pub(super) fn read_variable(text: &str, report: &mut Report) -> Option<String> {
    let (rules, warnings) = of_variable(text);
    for warning in warnings {
        report.warn("log", format!("{warning}: this rule is ignored"));
    }
    if rules.is_none() {
        report.warn("log", "malformed, or without a rule for marketd: the variable is ignored");
    }
    rules
}

/// The rules of `--log`: a level, or `TARGET=LEVEL`, or several of them with commas.
pub(super) fn of_flag(text: &str) -> Result<String, String> {
    let mut rules = Rules::default();
    for rule in text.split(',').map(str::trim) {
        let (target, level) = rule.split_once('=').unwrap_or((WHOLE, rule));
        if target.is_empty() || !is_level(level) {
            return Err(wrong(LEVEL, text));
        }
        rules.add(target, level)?;
    }
    Ok(rules.text(""))
}

/// The rules of `RUST_LOG`, if it is well-formed and has a rule for this program. Also returns warnings.
/// Rules for the targets of other programs are skipped, but a target that looks misspelt causes a warning.
fn of_variable(text: &str) -> (Option<String>, Vec<String>) {
    let is_sound = env_filter::Builder::new().try_parse(text).is_ok();
    let (list, pattern) = text.split_at(text.find('/').unwrap_or(text.len()));
    let (mut rules, mut warnings, mut is_ours) = (Rules::default(), Vec::new(), false);
    for rule in list.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (target, level) = match rule.split_once('=') {
            Some((target, level)) => (target.trim(), level.trim()),
            None if is_level(rule) => (WHOLE, rule),
            None => (rule, ""),
        };
        // A rule without a level logs everything.
        let level = if level.is_empty() { "trace" } else { level };
        let added = rules.add(target, level);
        let is_within = target.starts_with(WHOLE);
        is_ours |= added.is_ok() || is_within;
        warnings.extend(added.err().filter(|_| is_within || !near(target).is_empty()));
    }
    ((is_sound && is_ours).then(|| rules.text(pattern)), warnings)
}

/// The rules for targets of this program, in their order.
#[derive(Default)]
struct Rules {
    default: Option<String>,
    targets: Vec<String>,
}

impl Rules {
    /// Adds a rule for a target. The error is a message that there is no such target.
    fn add(&mut self, target: &str, level: &str) -> Result<(), String> {
        if target == WHOLE {
            self.default = Some(level.to_string());
            return Ok(());
        }
        let inside = target.strip_prefix(WHOLE);
        let name = inside.and_then(|rest| rest.strip_prefix("::"));
        let name = name.unwrap_or(target);
        if !log_targets::ALL.contains(&name) {
            return Err(unknown(target));
        }
        self.targets.push(format!("{name}={level}"));
        Ok(())
    }

    /// The rules in the syntax of the logger.
    fn text(self, pattern: &str) -> String {
        let default = self.default.unwrap_or_else(|| DEFAULT.to_string());
        let all: Vec<String> = [default].into_iter().chain(self.targets).collect();
        all.join(",") + pattern
    }
}

fn unknown(target: &str) -> String {
    let (found, all) = (quoted(target), log_targets::ALL.join(", "));
    match near(target) {
        near if near.is_empty() => format!("unknown target {found}, expected one of {all}"),
        near => format!("unknown target {found}{near}"),
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
            assert_eq!(of_variable(text).0.is_some(), good, "{text:?}");
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
        let check = |text: &str, expected: &str| {
            assert_eq!(of_flag(text).as_deref(), Ok(expected), "{text:?}");
            let (filter, warnings) = of_variable(text);
            assert_eq!((filter.as_deref(), warnings.len()), (Some(expected), 0), "{text:?}");
        };
        check("debug", "debug");
        check("source=debug", "info,source=debug");
        check("source=debug,warn", "warn,source=debug");
        check("http=off, net=trace", "info,http=off,net=trace");
        check("marketd=debug", "debug");
        check("marketd::net=debug", "info,net=debug");
        let check = |text: &str, expected: &str| {
            assert_eq!(of_variable(text).0.as_deref(), Some(expected), "{text:?}");
        };
        check("access", "info,access=trace");
        check("source=debug/BTC", "info,source=debug/BTC");
        check("marketd::server::poller=debug,hyper=off", "info");
        check("warn,hyper=trace", "warn");
    }
}
