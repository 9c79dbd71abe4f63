//! The command line: words in, flags out.
//!
//! Owns the list of flags, from which parsing and `--help` are made: a new flag is one row. It
//! never gives a value its meaning; `load` does, with the same forms that the file is read with.

use super::DEMO;
use super::check::KnownDialect;
use super::fault::{Fault, quoted, suggestion};
use lexopt::Arg;
use std::ffi::OsString;
use std::fmt::Write as _;

/// A flag.
struct Flag {
    name: &'static str,
    short: Option<char>,
    /// How its value is called; `None`: it has none.
    value: Option<&'static str>,
    /// May be given several times.
    repeated: bool,
    help: &'static str,
}

const fn flag(name: &'static str, value: Option<&'static str>, help: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        value,
        repeated: false,
        help,
    }
}

#[rustfmt::skip]
const FLAGS: &[Flag] = &[
    flag("--config", Some("FILE"), "Read this file (JSON) [MARKETD_CONFIG]"),
    flag("--listen", Some("ADDR"), "Listen here [MARKETD_LISTEN]\n\
        127.0.0.1:8080, [::1]:8080, localhost:8080 or :8080 (all);\n\
        port 0 picks a free one"),
    flag("--ecosystem-listen", Some("ADDR"), "Serve /api/ecosystem here [MARKETD_ECOSYSTEM_LISTEN]"),
    flag("--data", Some("FILE"), "Keep history here; :memory: keeps none on disk [MARKETD_DATA]"),
    flag("--demo", None, "Run the demo exchange, also beside other sources"),
    Flag { repeated: true, ..flag("--source", Some("DIALECT[=URL]"),
        "Poll this exchange; may be repeated, in order of failover.\n\
        Takes the place of the file's sources") },
    flag("--symbols", Some("A,B,..."), "Markets of the sources given by --source (or of the demo\n\
        exchange alone), like BTC/USDT; without it, all"),
    flag("--log", Some("LEVEL"), "off, error, warn, info, debug or trace [RUST_LOG]; with commas,\n\
        TARGET=LEVEL for one of the words that log lines begin with"),
    flag("--check", None, "Check the configuration, tell every fault, and exit"),
    flag("--print-config", None, "Print the effective configuration as JSON, and exit"),
    Flag { short: Some('h'), ..flag("--help", None, "Print this, and exit") },
    Flag { short: Some('V'), ..flag("--version", None, "Print the version, and exit") },
];

/// What the words of a command line come to.
pub(super) enum Words {
    Help,
    Version,
    /// Flags, and what was wrong with the others.
    Flags(Flags, Vec<Fault>),
}

/// The flags that were given, with their values as they are.
#[derive(Debug, Default)]
pub(super) struct Flags {
    given: Vec<(&'static str, String)>,
}

impl Flags {
    /// Whether a flag was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// The value of a flag that is given at most once.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// All values of a flag, in their order.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let given = self.given.iter().filter(move |(given, _)| *given == name);
        given.map(|(_, value)| value.as_str())
    }
}

/// Takes the words behind the command's name apart. `--help` and `--version` win over every
/// fault: who asks for help has a reason.
pub(super) fn parse(words: impl IntoIterator<Item = OsString>) -> Words {
    let mut parser = lexopt::Parser::from_args(words);
    let (mut flags, mut faults) = (Flags::default(), Vec::new());
    // The word behind an unknown option is most likely its value: one fault, not two.
    let mut after_unknown = false;
    loop {
        let word = next_word(&mut parser);
        let skip = std::mem::take(&mut after_unknown);
        let (key, message) = match word {
            Word::End => return Words::Flags(flags, faults),
            Word::Flag(flag) if flag.name == "--help" => return Words::Help,
            Word::Flag(flag) if flag.name == "--version" => return Words::Version,
            Word::Flag(flag) => match value_of(flag, &mut parser) {
                Ok(_) if flags.has(flag.name) && !flag.repeated => {
                    (flag.name.to_string(), "given twice".to_string())
                }
                Ok(value) => {
                    flags.given.push((flag.name, value));
                    continue;
                }
                Err(message) => (flag.name.to_string(), message),
            },
            Word::Unknown(name) => {
                // Without this the value of `--unknown=value` would be a fault of its own.
                after_unknown = parser.optional_value().is_none();
                let near = suggestion(&name, FLAGS.iter().map(|flag| flag.name));
                let near = if near.is_empty() {
                    ", see --help"
                } else {
                    &near
                };
                (name, format!("unknown option{near}"))
            }
            Word::Stray(_) if skip => continue,
            Word::Stray(word) => {
                let message = "unexpected, a configuration file is named with --config";
                (quoted(&word), message.to_string())
            }
            Word::Fault(key, message) => (key, message),
        };
        faults.push(Fault {
            key,
            message,
            ..Fault::default()
        });
    }
}

/// What stands next on the command line.
enum Word {
    Flag(&'static Flag),
    Unknown(String),
    /// A word that belongs to no flag.
    Stray(String),
    /// What is wrong, by flag and message.
    Fault(String, String),
    End,
}

fn next_word(parser: &mut lexopt::Parser) -> Word {
    let known = |name: String, flag: Option<&'static Flag>| match flag {
        Some(flag) => Word::Flag(flag),
        None => Word::Unknown(name),
    };
    match parser.next() {
        Ok(None) => Word::End,
        Ok(Some(Arg::Value(word))) => Word::Stray(word.to_string_lossy().into_owned()),
        Ok(Some(Arg::Long(name))) => {
            let name = format!("--{name}");
            let flag = FLAGS.iter().find(|flag| flag.name == name);
            known(name, flag)
        }
        Ok(Some(Arg::Short(short))) => {
            let flag = FLAGS.iter().find(|flag| flag.short == Some(short));
            known(format!("-{short}"), flag)
        }
        // That a flag has a value and should have none is found when the next word is asked
        // for; the parser goes on behind it.
        Err(lexopt::Error::UnexpectedValue { option, value }) => {
            let value = quoted(&value.to_string_lossy());
            Word::Fault(option, format!("expected no value, found {value}"))
        }
        Err(error) => Word::Fault(String::new(), error.to_string()),
    }
}

/// The value of a flag; empty where it has none.
fn value_of(flag: &Flag, parser: &mut lexopt::Parser) -> Result<String, String> {
    let Some(name) = flag.value else {
        return Ok(String::new());
    };
    let word = (parser.value()).map_err(|_| format!("expected {name}, found nothing"))?;
    let shown =
        |word: OsString| format!("expected UTF-8, found {}", quoted(&word.to_string_lossy()));
    word.into_string().map_err(shown)
}

/// The text of `--help`.
pub fn help(dialects: &[KnownDialect]) -> String {
    let mut out = format!(
        "marketd {}: polls exchanges and serves quotes, markets and charts as JSON over HTTP\n\n\
         Usage: marketd [OPTIONS]\n\nOptions:\n",
        env!("CARGO_PKG_VERSION")
    );
    for flag in FLAGS {
        let short = flag
            .short
            .map_or("    ".into(), |short| format!("-{short}, "));
        let value = flag
            .value
            .map_or(String::new(), |value| format!(" {value}"));
        let mut left = format!("  {short}{}{value}", flag.name);
        for line in flag.help.lines() {
            writeln!(out, "{left:<33} {line}").expect("a String takes every text");
            left.clear();
        }
    }
    let names: Vec<&str> = dialects.iter().map(|dialect| dialect.name).collect();
    write!(
        out,
        "\nDialects: {}, {DEMO}\n\n\
        Flags win over the environment (the names in []), the environment over the file, the file\n\
        over defaults. Without sources the demo exchange runs: simulated prices, on 127.0.0.1:8080,\n\
        history in marketd.db in the working directory.\n\n\
        Examples:\n  \
          marketd\n  \
          marketd --source binance --symbols BTC/USDT,ETH/USDT\n  \
          marketd --source binance=http://127.0.0.1:9000 --listen :8080 --data /var/lib/marketd.db\n  \
          marketd --print-config > marketd.json\n  \
          marketd --config marketd.json --check\n\n\
        Exit codes: 0 when all went well, 2 when there is something to mend: one line tells what.\n",
        names.join(", ")
    )
    .expect("a String takes every text");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let words = line.split_whitespace().map(OsString::from);
        let Words::Flags(_, faults) = parse(words) else {
            panic!("{line:?} asks for help");
        };
        let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert_eq!(faults, expected, "{line:?}");
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
        let Words::Flags(flags, faults) = parse(words.map(OsString::from)) else {
            panic!("nobody asks for help");
        };
        assert_eq!(faults, []);
        assert_eq!(flags.value("--listen"), Some(":1"));
        let sources: Vec<&str> = flags.values("--source").collect();
        assert_eq!(sources, ["a=http://b", "c"]);
    }

    #[test]
    fn help_wins_over_faults() {
        let words = |line: &str| parse(line.split(' ').map(OsString::from));
        assert!(matches!(words("--wrong --help"), Words::Help));
        assert!(matches!(words("-h"), Words::Help));
        assert!(matches!(words("--wrong x -V"), Words::Version));
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
        let Words::Flags(_, faults) = parse(words) else {
            panic!("nobody asks for help");
        };
        let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert_eq!(faults, ["--data: expected UTF-8, found \"a\u{fffd}\""]);
    }
}
