//! The command line: the table of flags, its parser, and `--help`.
//!
//! The parser, `--help` and the reference are made from the table. `load` gives the values their
//! meaning. To add a flag that sets a key of the file, add a row with that key. For any other flag,
//! also say in `load` what it does.

use super::check::KnownDialect;
use super::fault::{Fault, Report, quoted, suggestion};
use super::schema::DEMO;
use lexopt::Arg;
use std::ffi::{OsStr, OsString};

/// A flag. A variable of the environment or a key of the file may set the same.
pub(super) struct Flag {
    pub(super) name: &'static str,
    short: &'static str,
    /// The name of its value; empty: it has none.
    pub(super) value: &'static str,
    /// True if it may be given several times.
    is_repeated: bool,
    /// The variable that is read if the flag is not given; empty: none.
    pub(super) variable: &'static str,
    /// The key of the file that it overrides; empty: none.
    pub(super) key: &'static str,
    /// For `--help`, which breaks lines as this text does.
    pub(super) about: &'static str,
}

/// A flag that has only a name, a value and a text.
#[rustfmt::skip]
const fn flag(name: &'static str, value: &'static str, about: &'static str) -> Flag {
    Flag { name, short: "", value, is_repeated: false, variable: "", key: "", about }
}

/// In the order of `--help`. The file comes first: flags after it override its keys.
#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    Flag { variable: "MARKETD_CONFIG", ..flag("--config", "FILE", "Read this file (JSON)") },
    Flag { variable: "MARKETD_LISTEN", key: "listen", ..flag("--listen", "ADDR", "Listen here\n\
        (127.0.0.1:8080, [::1]:8080 or localhost:8080; :8080 for all of\nIPv4, [::]:8080 for all; \
        unix:PATH; port 0 picks a free one)") },
    Flag { variable: "MARKETD_ECOSYSTEM_LISTEN", key: "ecosystemListen",
        ..flag("--ecosystem-listen", "ADDR", "Serve /api/ecosystem here") },
    Flag { variable: "MARKETD_DATA", key: "data",
        ..flag("--data", "FILE", "Keep history here; :memory: keeps none on disk") },
    flag("--demo", "", "Run the demo exchange, also beside other sources"),
    Flag { is_repeated: true, ..flag("--source", "DIALECT[=URL]",
        "Poll this exchange; may be repeated, in order of failover.\n\
        Takes the place of the file's sources") },
    flag("--symbols", "A,B,...", "Markets of the sources given by --source (or of the demo\n\
        exchange alone), like BTC/USDT; without it, all"),
    Flag { variable: "RUST_LOG",
        ..flag("--log", "LEVEL", "off, error, warn, info, debug or trace;\n\
        with commas, TARGET=LEVEL for one component's lines") },
    flag("--check", "", "Check the configuration, report every fault, and exit"),
    flag("--print-config", "", "Print the effective configuration as JSON, and exit"),
    Flag { short: "-h", ..flag("--help", "", "Print this, and exit") },
    Flag { short: "-V", ..flag("--version", "", "Print the version, and exit") },
];

/// The flags that were given, and their values as texts.
#[derive(Debug, Default)]
pub(super) struct Flags(Vec<(&'static str, String)>);

impl Flags {
    /// True if a flag was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The value of a flag that is given at most once.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// All values of a flag, in their order.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let given = self.0.iter().filter(move |(given, _)| *given == name);
        given.map(|(_, value)| value.as_str())
    }
}

/// Parses the words after the name of the command.
pub(super) fn parse(words: impl IntoIterator<Item = OsString>, report: &mut Report) -> Flags {
    let mut parser = lexopt::Parser::from_args(words);
    let mut flags = Flags::default();
    let mut refuse = |name: &str, message: &str| report.add(Fault::of(name, message));
    // The word after an unknown option is most likely its value: one fault, not two.
    let mut after_unknown = false;
    loop {
        let skip = std::mem::take(&mut after_unknown);
        let name = match parser.next() {
            Ok(None) => return flags,
            Ok(Some(Arg::Long(name))) => format!("--{name}"),
            Ok(Some(Arg::Short(short))) => format!("-{short}"),
            Ok(Some(Arg::Value(_))) if skip => continue,
            Ok(Some(Arg::Value(word))) => {
                let message = "unexpected, a configuration file is named with --config";
                refuse(&shown(&word), message);
                continue;
            }
            // A flag that takes no value has one: `--demo=yes`.
            Err(lexopt::Error::UnexpectedValue { option, value }) => {
                refuse(
                    &option,
                    &format!("expected no value, found {}", shown(&value)),
                );
                continue;
            }
            Err(error) => {
                refuse("", &error.to_string());
                continue;
            }
        };
        let Some(flag) = FLAGS.iter().find(|it| it.name == name || it.short == name) else {
            // The value of `--unknown=value` is taken here, or it would be a second fault.
            after_unknown = parser.optional_value().is_none();
            let near = suggestion(&name, FLAGS.iter().map(|flag| flag.name));
            let near = if near.is_empty() {
                ", see --help"
            } else {
                &near
            };
            refuse(&name, &format!("unknown option{near}"));
            continue;
        };
        match value_of(flag, &mut parser) {
            Ok(_) if flags.has(flag.name) && !flag.is_repeated => refuse(flag.name, "given twice"),
            Ok(value) => flags.0.push((flag.name, value)),
            Err(message) => refuse(flag.name, &message),
        }
    }
}

/// The value of a flag; empty if it has none.
fn value_of(flag: &Flag, parser: &mut lexopt::Parser) -> Result<String, String> {
    if flag.value.is_empty() {
        return Ok(String::new());
    }
    let word = parser.value();
    let word = word.map_err(|_| format!("expected {}, found nothing", flag.value))?;
    (word.into_string()).map_err(|word| format!("expected UTF-8, found {}", shown(&word)))
}

fn shown(word: &OsStr) -> String {
    quoted(&word.to_string_lossy())
}

/// The text of `--help`.
pub fn help(dialects: &[KnownDialect]) -> String {
    let mut options = String::new();
    for flag in FLAGS {
        let comma = if flag.short.is_empty() { "  " } else { ", " };
        let mut left = format!("  {:2}{comma}{} {}", flag.short, flag.name, flag.value);
        for (at, line) in flag.about.lines().enumerate() {
            let variable = match flag.variable {
                variable if at == 0 && !variable.is_empty() => format!(" [{variable}]"),
                _ => String::new(),
            };
            options.push_str(&format!("{left:<33} {line}{variable}\n"));
            left.clear();
        }
    }
    let names: Vec<&str> = dialects.iter().map(|dialect| dialect.name).collect();
    let (version, names) = (env!("CARGO_PKG_VERSION"), names.join(", "));
    format!(
        "marketd {version}: polls exchanges and serves quotes, markets and charts as JSON over HTTP

Usage: marketd [OPTIONS]

Options:
{options}
Dialects: {names}, {DEMO}

Flags win over the environment (the names in []), the environment over the file, the file
over defaults. Without sources the demo exchange runs: simulated prices, on 127.0.0.1:8080,
history in marketd.db in the working directory.

Examples:
  marketd
  marketd --source binance --symbols BTC/USDT,ETH/USDT
  marketd --source binance=http://127.0.0.1:9000 --listen :8080 --data /var/lib/marketd.db
  marketd --print-config > marketd.json
  marketd --config marketd.json --check

Exit codes: 0 when all went well, 2 when there is something to mend: one line says what.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, json::Node, values::read_key};

    fn faults(words: impl IntoIterator<Item = OsString>) -> Vec<String> {
        let mut report = Report::default();
        parse(words, &mut report);
        let faults = report.close().err().unwrap_or_default();
        faults.iter().map(Fault::to_string).collect()
    }

    fn check(line: &str, expected: &[&str]) {
        let words = line.split_whitespace().map(OsString::from);
        assert_eq!(faults(words), expected, "{line:?}");
    }

    #[test]
    fn wrong_words_are_told_one_by_one() {
        check("--demo --check --listen :1 --source a --source b", &[]);
        check("--listen=:1 --symbols=A/B", &[]);
        check(
            "--lisetn :1",
            &["--lisetn: unknown option, did you mean \"--listen\"?"],
        );
        check("--wrong", &["--wrong: unknown option, see --help"]);
        check("--wrong=1 --demo", &["--wrong: unknown option, see --help"]);
        check("-x", &["-x: unknown option, see --help"]);
        check(
            "marketd.json",
            &["\"marketd.json\": unexpected, a configuration file is named with --config"],
        );
        check("--listen", &["--listen: expected ADDR, found nothing"]);
        check("--demo=yes", &["--demo: expected no value, found \"yes\""]);
        check(
            "--demo --demo --data a --data b",
            &["--demo: given twice", "--data: given twice"],
        );
        check(
            "--wr\u{1b}ong",
            &["--wr\\u{1b}ong: unknown option, see --help"],
        );
    }

    #[test]
    fn values_come_in_both_spellings() {
        let words = ["--listen=:1", "--source", "a=http://b", "--source=c"];
        let mut report = Report::default();
        let flags = parse(words.map(OsString::from), &mut report);
        assert_eq!(report.close(), Ok(Vec::new()));
        assert_eq!(flags.value("--listen"), Some(":1"));
        let sources: Vec<&str> = flags.values("--source").collect();
        assert_eq!(sources, ["a=http://b", "c"]);
    }

    #[test]
    fn every_flag_overrides_a_key_that_is_there() {
        for flag in FLAGS.iter().filter(|flag| !flag.key.is_empty()) {
            let node = Node::of(flag.key.to_string(), "");
            let known = read_key(
                &mut Config::default(),
                flag.key,
                &node,
                &mut Report::default(),
            );
            assert_eq!(known, Ok(()), "{}", flag.name);
        }
    }

    #[test]
    fn the_help_names_every_flag_and_fits_a_screen() {
        let text = help(&[]);
        for flag in FLAGS {
            assert!(text.contains(flag.name), "{}", flag.name);
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn words_that_are_no_text_are_a_fault() {
        use std::os::unix::ffi::OsStringExt;
        let words = ["--data".into(), OsString::from_vec(vec![b'a', 0xff])];
        assert_eq!(
            faults(words),
            ["--data: expected UTF-8, found \"a\u{fffd}\""]
        );
    }
}
