//! The command line: the tables of commands and flags, their parser, and `--help`.
//!
//! The parser, `--help`, the manual page and the reference are made from the tables. `load` interprets the
//! values. To add a flag that sets a key of the file, add a row with that key. For any other flag, also use
//! its value in `load`. To add a command, add a row and implement it in `command`.

use super::check::KnownDialect;
use super::fault::{ConfigFault, Report, quoted, suggestion};
use super::schema::DEMO;
use lexopt::Arg;
use std::ffi::{OsStr, OsString};

/// A flag. A variable of the environment or a key of the file may set the same value.
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) short: &'static str,
    /// The name of its value. Empty if it has none.
    pub(super) value: &'static str,
    /// True if it may be given several times.
    is_repeated: bool,
    /// The variable that is read if the flag is not given. Empty if there is none.
    pub(super) variable: &'static str,
    /// The key of the file that it overrides. Empty if there is none.
    pub(super) key: &'static str,
    /// The text for `--help`, with its line breaks.
    pub(super) about: &'static str,
}

/// A flag with only a name, a value and a text.
#[rustfmt::skip]
const fn flag(name: &'static str, value: &'static str, about: &'static str) -> Flag {
    Flag { name, short: "", value, is_repeated: false, variable: "", key: "", about }
}

#[rustfmt::skip]
const CONFIG: Flag =
    Flag { variable: "MARKETD_CONFIG", ..flag("--config", "FILE", "Read this file (JSON)") };

#[rustfmt::skip]
const LISTEN: Flag =
    Flag { variable: "MARKETD_LISTEN", key: "listen", ..flag("--listen", "ADDR", "Listen here\n\
        (127.0.0.1:8080, [::1]:8080 or localhost:8080; :8080 for all of\nIPv4, [::]:8080 for all; \
        unix:PATH; port 0 picks a free one)") };

#[rustfmt::skip]
const DATA: Flag = Flag { variable: "MARKETD_DATA", key: "data",
    ..flag("--data", "FILE", "Keep history here; :memory: keeps none on disk") };

const HELP: Flag = Flag { short: "-h", ..flag("--help", "", "Print this, and exit") };

#[rustfmt::skip]
const DEMO_FLAG: Flag = Flag { key: "demo.script",
    ..flag("--demo", "[FILE]", "Run the demo exchange, even beside other sources; with FILE,\n\
        it follows this script") };

#[rustfmt::skip]
const SOURCE: Flag = Flag { is_repeated: true, ..flag("--source", "DIALECT[=URL]",
    "Poll this exchange; may be repeated, in order of failover.\n\
    DIALECT may be the path of a dialect's file.\nReplaces the file's sources") };

#[rustfmt::skip]
const SYMBOLS: Flag = flag("--symbols", "A,B,...",
    "Markets of the sources given by --source (or of the demo\n\
    exchange alone), like BTC/USDT; without it, all");

const DRY_RUN: Flag = flag("--dry-run", "", "Change nothing, and print what would change");

/// The flags without a command, in the order of `--help`. The file comes first: later flags
/// override its keys.
#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    CONFIG,
    LISTEN,
    Flag { variable: "MARKETD_ECOSYSTEM_LISTEN", key: "ecosystemListen",
        ..flag("--ecosystem-listen", "ADDR", "Serve /api/ecosystem here") },
    DATA,
    DEMO_FLAG,
    Flag { key: "demo.seed", ..flag("--demo-seed", "N", "The same seed gives the same prices") },
    Flag { key: "demo.at", ..flag("--demo-at", "TIME", "Start the demo at this time: 2026-11-22,\n\
        2026-11-22T09:00:00Z, seconds or milliseconds") },
    Flag { key: "demo.speed",
        ..flag("--demo-speed", "N", "Run the clock of the demo N times as fast; 0 stops it") },
    SOURCE,
    SYMBOLS,
    Flag { variable: "MARKETD_CLUSTER", key: "cluster.url",
        ..flag("--cluster", "URL", "Share the polling with other nodes: their Redis\n\
        or Valkey, redis://[USER:PASSWORD@]HOST[:PORT][/DB] or rediss://") },
    Flag { variable: "RUST_LOG", key: "log",
        ..flag("--log", "LEVEL", "off, error, warn, info, debug or trace;\n\
        with commas, TARGET=LEVEL for one component's lines") },
    Flag { variable: "MARKETD_LOG_FORMAT", ..flag("--log-format", "FORMAT", "text or json; the journal \
        of systemd\ngets text without times") },
    flag("--address-file", "FILE", "Write the addresses into this file (JSON) once they are open;\n\
        removed at the end"),
    flag("--check", "", "Check the configuration, report every fault, and exit"),
    flag("--print-config", "", "Print the effective configuration as JSON, and exit"),
    HELP,
    Flag { short: "-V", ..flag("--version", "", "Print the versions of marketd and SQLite, the commit,\n\
        and the features, and exit") },
];

/// A task besides serving. `command` does it.
pub(super) struct Subcommand {
    /// The word after `marketd`.
    pub(super) name: &'static str,
    /// The words that may follow, as `--help` shows them.
    pub(super) words: &'static [&'static str],
    pub(super) flags: &'static [Flag],
    pub(super) about: &'static str,
}

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand { name: "probe", words: &[], flags: &[
            CONFIG, SOURCE, SYMBOLS,
            flag("--strict", "", "Exit with 1 even if something only looks wrong"),
            Flag { is_repeated: true, ..flag("--body", "CALL=FILE",
                "Read this recorded body, and send nothing.\n\
                CALL: time, markets, tickers, ticker, stats, 1m, 1h or 1d") },
            HELP,
        ],
        about: "Ask each source's exchange once for everything, and print what was\nunderstood; \
            exit code 1 if something cannot be read" },
    Subcommand { name: "healthcheck", words: &["[URL]"],
        flags: &[
            CONFIG, LISTEN,
            flag("--wait", "SECONDS", "Wait until it is ready, but at most for this time"),
            HELP,
        ],
        about: "Exit with 0 if a marketd is ready, else with 1 and one line" },
    Subcommand { name: "reload", words: &["PID", "[URL]"],
        flags: &[CONFIG, LISTEN, HELP],
        about: "Make process PID reload its configuration, and wait;\nexit with 1 if it refuses" },
    Subcommand { name: "export", words: &[], flags: &[
            CONFIG, DATA,
            Flag { is_repeated: true, ..flag("--symbol", "A,B,...", "Candles of these markets; * for all") },
            flag("--interval", "INTERVAL", "1m, 1h or 1d, which are stored"),
            flag("--id", "SOURCE", "Candles of this source; without it, of the first with candles:\n\
                first the configured ones, then the others in the file"),
            flag("--from", "TIME", "From this time on: 2026-11-22, 2026-11-22T09:00:00Z,\n\
                seconds or milliseconds"),
            flag("--to", "TIME", "Before this time"),
            flag("--format", "FORMAT", "csv, json or jsonl (JSON lines); csv without it"),
            HELP,
        ],
        about: "Print stored candles, also while marketd runs" },
    Subcommand { name: "backup", words: &["FILE"],
        flags: &[CONFIG, DATA, HELP],
        about: "Copy the history file to FILE, also while marketd runs" },
    Subcommand { name: "prune", words: &[], flags: &[
            CONFIG, DATA, DEMO_FLAG, SOURCE, SYMBOLS,
            flag("--yes", "", "Remove the data; without --yes, nothing is changed"),
            DRY_RUN, HELP,
        ],
        about: "Remove the stored data of markets that no source tracks" },
    Subcommand { name: "rename", words: &["OLD", "NEW"],
        flags: &[CONFIG, DATA, DRY_RUN, HELP],
        about: "Give the stored data of source OLD to source NEW" },
    Subcommand { name: "schema", words: &["config|dialect"], flags: &[HELP],
        about: "Print the JSON Schema of the configuration or of a dialect's file" },
    Subcommand { name: "man", words: &[], flags: &[HELP],
        about: "Print the manual page: marketd man | man -l -" },
    Subcommand { name: "completions", words: &["bash|zsh|fish"],
        flags: &[HELP],
        about: "Print what a shell reads to complete commands and flags" },
];

impl Subcommand {
    /// The words that are typed literally: `bash`, but not `FILE` or `[URL]`.
    pub(super) fn choices(&self) -> impl Iterator<Item = &'static str> {
        let words = self.words.iter().flat_map(|word| word.split('|'));
        words.filter(|word| word.bytes().all(|it| it.is_ascii_lowercase()))
    }

    /// What is typed after `marketd`, without flags.
    pub(super) fn usage(&self) -> String {
        let words = self.words.iter().map(|word| format!(" {word}"));
        self.name.to_string() + &words.collect::<String>()
    }
}

/// The flags that were given with their values as texts, and the words that are no flags.
#[derive(Debug, Default)]
pub(super) struct Flags {
    given: Vec<(&'static str, String)>,
    pub(super) words: Vec<String>,
}

impl Flags {
    /// The word at this place among the words that are no flags. Empty if there are fewer.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

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
        let given = self.given.iter().filter(move |(given, _)| *given == name);
        given.map(|(_, value)| value.as_str())
    }
}

/// Parses the words after the name of the program. The first one may be a subcommand.
pub(super) fn parse(
    words: impl IntoIterator<Item = OsString>,
    report: &mut Report,
) -> (Option<&'static Subcommand>, Flags) {
    let mut words = words.into_iter().peekable();
    let named = |word: &OsString| SUBCOMMANDS.iter().find(|it| *word == *it.name);
    let command = words.peek().and_then(named);
    let words = words.skip(usize::from(command.is_some()));
    let (table, most_words) = command.map_or((FLAGS, 0), |it| (it.flags, it.words.len()));
    let mut parser = lexopt::Parser::from_args(words);
    let mut flags = Flags::default();
    let mut refuse = |name: &str, message: &str| report.add(ConfigFault::by(name, message));
    // The word after an unknown option is most likely its value: one fault, not two.
    let mut after_unknown = false;
    loop {
        let skip = std::mem::take(&mut after_unknown);
        let name = match parser.next() {
            Ok(None) => return (command, flags),
            Ok(Some(Arg::Long(name))) => format!("--{name}"),
            Ok(Some(Arg::Short(short))) => format!("-{short}"),
            Ok(Some(Arg::Value(_))) if skip => continue,
            Ok(Some(Arg::Value(word))) => {
                match word.to_str() {
                    Some(word) if flags.words.len() < most_words => flags.words.push(word.into()),
                    _ if command.is_some() => refuse(&shown(&word), "unexpected, see --help"),
                    _ => refuse(&shown(&word), &unexpected(&word)),
                }
                continue;
            }
            // A value for a flag that takes none: `--demo=yes`.
            Err(lexopt::Error::UnexpectedValue { option, value }) => {
                refuse(&option, &format!("expected no value, found {}", shown(&value)));
                continue;
            }
            Err(error) => {
                refuse("", &error.to_string());
                continue;
            }
        };
        let Some(flag) = table.iter().find(|it| it.name == name || it.short == name) else {
            // The value of `--unknown=value` is taken here, so that it is not a second fault.
            after_unknown = parser.optional_value().is_none();
            let near = suggestion(&name, table.iter().map(|flag| flag.name));
            let near = if near.is_empty() { ", see --help" } else { &near };
            refuse(&name, &format!("unknown option{near}"));
            continue;
        };
        match value_of(flag, &mut parser) {
            Ok(_) if flags.has(flag.name) && !flag.is_repeated => refuse(flag.name, "given twice"),
            Ok(value) => flags.given.push((flag.name, value)),
            Err(message) => refuse(flag.name, &message),
        }
    }
}

/// The message for a word that is neither a flag nor a command.
fn unexpected(word: &OsStr) -> String {
    let names = SUBCOMMANDS.iter().map(|it| it.name);
    match suggestion(&word.to_string_lossy(), names) {
        _ if SUBCOMMANDS.iter().any(|it| *word == *it.name) => {
            "unexpected; a command comes before all options".to_string()
        }
        near if near.is_empty() => "unexpected; a configuration file needs --config".to_string(),
        near => format!("unknown command{near}"),
    }
}

/// The value of a flag; empty if it has none.
fn value_of(flag: &Flag, parser: &mut lexopt::Parser) -> Result<String, String> {
    if flag.value.is_empty() {
        return Ok(String::new());
    }
    if flag.value.starts_with('[') {
        // An optional value is the next word, unless that is a flag.
        let mut words = parser.try_raw_args();
        let next = words.as_mut().and_then(|words| words.peek());
        let is_value = next.is_some_and(|word| !word.to_string_lossy().starts_with('-'));
        if words.is_some() && !is_value {
            return Ok(String::new());
        }
    }
    let word = parser.value().ok().filter(|it| !it.is_empty() || flag.value.starts_with('['));
    let word = word.ok_or_else(|| format!("expected {}, found nothing", flag.value))?;
    (word.into_string()).map_err(|word| format!("expected UTF-8, found {}", shown(&word)))
}

fn shown(word: &OsStr) -> String {
    quoted(&word.to_string_lossy())
}

/// Lines of `--help`: a name on the left, and its text beside it.
fn rows(name: &str, about: &str) -> String {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    names.zip(about.lines()).map(|(name, line)| format!("{name:<33} {line}\n")).collect()
}

/// Flags as lines of `--help`.
fn shown_flags(flags: &[Flag]) -> String {
    let shown = |flag: &Flag| {
        let comma = if flag.short.is_empty() { "  " } else { ", " };
        let name = format!("  {:2}{comma}{} {}", flag.short, flag.name, flag.value);
        let variable = match flag.variable {
            "" => String::new(),
            variable => format!(" [{variable}]"),
        };
        let (first, rest) = flag.about.split_once('\n').unwrap_or((flag.about, ""));
        rows(&name, &format!("{first}{variable}\n{rest}"))
    };
    flags.iter().map(shown).collect()
}

/// The text of `marketd COMMAND --help`.
pub(super) fn help_of(command: &Subcommand) -> String {
    let (about, options) = (command.about, shown_flags(command.flags));
    let words = command.usage();
    format!("{about}\n\nUsage: marketd {words} [OPTIONS]\n\nOptions:\n{options}")
}

/// The text of `--help`.
pub(super) fn help(dialects: &[KnownDialect]) -> String {
    let options = shown_flags(FLAGS);
    let commands = SUBCOMMANDS.iter().map(|it| rows(&format!("  {}", it.usage()), it.about));
    let commands: String = commands.collect();
    let names = dialects.iter().map(|dialect| dialect.name.as_str());
    let names: Vec<&str> = names.collect();
    let (version, names) = (env!("CARGO_PKG_VERSION"), names.join(", "));
    format!(
        "marketd {version}: polls exchanges and serves quotes, markets and charts as JSON over HTTP

Usage: marketd [OPTIONS]
       marketd COMMAND [OPTIONS]

Commands (marketd COMMAND --help tells more; without one, marketd serves):
{commands}
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

Exit codes: 0 for success; 1 if healthcheck, probe or reload fails; 2 for a fault of the
configuration (--check too), of an address or of a file: one line for each fault says what it is.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::json::Node;
    use crate::config::values::{KeyValue, read_key};
    use crate::config::{ClusterConfig, Config, DemoConfig};

    fn faults(words: impl IntoIterator<Item = OsString>) -> Vec<String> {
        let mut report = Report::default();
        parse(words, &mut report);
        let faults = report.close().err().unwrap_or_default();
        faults.iter().map(ConfigFault::to_string).collect()
    }

    fn check(line: &str, expected: &[&str]) {
        let words = line.split_whitespace().map(OsString::from);
        assert_eq!(faults(words), expected, "{line:?}");
    }

    #[test]
    fn wrong_words_are_told_one_by_one() {
        check("--demo --check --listen :1 --source a --source b", &[]);
        check("--listen=:1 --symbols=A/B", &[]);
        check("--lisetn :1", &["--lisetn: unknown option, did you mean \"--listen\"?"]);
        check("--wrong", &["--wrong: unknown option, see --help"]);
        check("--wrong=1 --demo", &["--wrong: unknown option, see --help"]);
        check("-x", &["-x: unknown option, see --help"]);
        check(
            "marketd.json",
            &["\"marketd.json\": unexpected; a configuration file needs --config"],
        );
        check("--listen", &["--listen: expected ADDR, found nothing"]);
        check("--check=yes", &["--check: expected no value, found \"yes\""]);
        check("--demo --demo --data a --data b", &["--demo: given twice", "--data: given twice"]);
        check("--wr\u{1b}ong", &["--wr\\u{1b}ong: unknown option, see --help"]);
    }

    #[test]
    fn a_command_has_its_own_flags_and_words() {
        check("export --symbol A/B --data x", &[]);
        check("rename a b --data x", &[]);
        check("rename a b c", &["\"c\": unexpected, see --help"]);
        check("prune --listen :1", &["--listen: unknown option, see --help"]);
        check("exprot", &["\"exprot\": unknown command, did you mean \"export\"?"]);
        check("--data x export", &["\"export\": unexpected; a command comes before all options"]);
    }

    #[test]
    fn a_value_in_brackets_may_be_left_out() {
        let check = |line: &str, expected: &str| {
            let mut report = Report::default();
            let (_, flags) = parse(line.split(' ').map(OsString::from), &mut report);
            assert_eq!((report.close(), flags.value("--demo")), (Ok(vec![]), Some(expected)));
        };
        for line in ["--demo", "--demo --check", "--check --demo"] {
            check(line, "");
        }
        for line in ["--demo x.json", "--demo=x.json --check", "--demo x.json --check"] {
            check(line, "x.json");
        }
    }

    #[test]
    fn every_flag_overrides_a_key_that_is_there() {
        for flag in FLAGS.iter().filter(|flag| !flag.key.is_empty()) {
            let node = Node::unplaced(flag.key.to_string(), "");
            let report = &mut Report::default();
            let (object, key) = flag.key.split_once('.').unwrap_or(("", flag.key));
            let object: &mut dyn KeyValue = match object {
                "demo" => &mut (&mut DemoConfig::default(), &()),
                "cluster" => &mut (&mut ClusterConfig::default(), &()),
                _ => &mut (&mut Config::default(), &()),
            };
            let known = read_key(object, key, &node, report);
            assert_eq!(known, Ok(()), "{}", flag.name);
        }
    }

    #[test]
    fn the_help_names_every_flag_and_fits_a_screen() {
        let text = help(&[]);
        for flag in FLAGS {
            assert!(text.contains(flag.name), "{}", flag.name);
        }
        let texts = SUBCOMMANDS.iter().map(help_of).chain([text]);
        for line in texts.collect::<String>().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn words_that_are_no_text_are_a_fault() {
        use std::os::unix::ffi::OsStringExt;
        let words = ["--data".into(), OsString::from_vec(vec![b'a', 0xff])];
        assert_eq!(faults(words), ["--data: expected UTF-8, found \"a\u{fffd}\""]);
    }
}
