//! The structure and the style of the code, held by tests: which module may import which, what is
//! absent where, and how long things may get. Each rule names its reason and is tried on a made-up
//! text that breaks it, so that a rule that sees nothing is noticed.
//!
//! A finding is `file:line: what`. What breaks a rule for a good reason gets an entry in the table
//! of exceptions beside it, with the reason; no comment in the code turns a rule off. An exception
//! that is no longer needed is a finding too.

#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tree.rs"]
mod tree;

use source::{Source, Word};
use tree::Tree;

/// The modules from the lowest layer to the highest. A module may import from the layers below its
/// own and from itself, not from its neighbours. A file belongs to the longest name that fits.
const LAYERS: [&str; 15] = [
    "lib docs time table job_queue rng decimal fingerprint log_targets resp",
    "durations interval record json",
    "config history",
    "http market exchange demo replication",
    "core/event",
    "core/stats",
    "core/context",
    "core/api core/history",
    "core/clients core/sources",
    "core/cluster",
    "core",
    "store",
    "net",
    "probe commands logging",
    "main",
];

/// Modules that know less than their layer lets them: this module and what lies below it.
/// `net` starts the store, which shares no code with those who decide what it keeps.
const CEILINGS: [(&str, &str); 1] = [("store", "history")];

/// Imports against the layers: who names whom, and why.
const UPWARD: [(&str, &str); 0] = [];

/// Directories with a circle between their entries, and which entries it has; `mod` is the
/// directory's own file.
const CIRCLES: [(&str, &str); 0] = [];

/// Names that several public types have. A feature that can be left out has a twin of each of its
/// types; the others are to be renamed.
const SAME_NAMES: [&str; 6] = ["Call", "Fault", "Head", "Job", "Phase", "Read"];

/// Log lines of another form, as `file first-word`: the line is made elsewhere and tried there, or people
/// and scripts wait for it.
const FREE_LINES: [&str; 7] = [
    "src/core/api/health_log.rs {line}",
    "src/core/clients/access_log.rs {line}",
    "src/core/event.rs demo",
    "src/core/event.rs ecosystem",
    "src/core/event.rs listening",
    "src/core/sources/failover.rs {line}",
    "src/main.rs {warning}",
];

/// Keys of log lines whose values are free text.
const FREE_TEXT: [&str; 3] = ["error", "message", "what"];

/// Columns of a line. `rustfmt` keeps code within 100; this is for comments and texts.
const MOST_COLUMNS: usize = 110;

/// Lines of a file without its tests.
const MOST_LINES: usize = 400;

/// Files above that, to be split, by name.
const LONG_FILES: [&str; 0] = [];

/// Lines of a function, from its name to its closing brace.
const MOST_FUNCTION_LINES: usize = 70;

/// Functions above that, to be split, as `file name`.
const LONG_FUNCTIONS: [&str; 0] = [];

/// A line, counted from 0, and what is wrong with it.
type Findings = Vec<(usize, String)>;

/// What is absent where: words that must not follow each other in the code, the place concerned,
/// the places in it that may, and texts with the lines (counted from 1) that break it.
type Absence = (&'static str, &'static str, &'static str, &'static [Trial]);
type Trial = (&'static str, &'static str, &'static [usize]);

const ABSENCES: [Absence; 11] = [
    // Only the loop knows what it waits with.
    (
        "mio signal_hook_mio",
        "src",
        "src/net",
        &[
            ("src/net/link.rs", "use mio::Token;", &[]),
            (
                "src/a.rs",
                "// no mio\nuse mio::Token;\nlet a = \"mio\";",
                &[2],
            ),
            ("src/network.rs", "fn f() { mio::Poll::new() }", &[1]),
            (
                "src/main.rs",
                "#[cfg(test)]\nuse mio::Token;\nuse mio::Poll;",
                &[3],
            ),
        ],
    ),
    // The driver reads the clock and tells everybody else what time it is.
    (
        "Instant::now SystemTime::now clock_gettime .elapsed",
        "src",
        "src/time.rs",
        &[
            ("src/time.rs", "Instant::now(); SystemTime::now()", &[]),
            (
                "src/net/mod.rs",
                "let c = Clock::new();\nInstant::now();",
                &[2],
            ),
            (
                "src/a.rs",
                "//! Instant::now\nstd::time::SystemTime ::\nnow()",
                &[2],
            ),
            (
                "src/a.rs",
                "begin.elapsed();\nclock_gettime(ClockId::Realtime)",
                &[1, 2],
            ),
        ],
    ),
    (
        "Clock::new",
        "src",
        "src/time.rs src/net src/main.rs",
        &[
            ("src/net/mod.rs", "let clock = Clock::new();", &[]),
            ("src/core/mod.rs", "let clock = Clock::new();", &[1]),
        ],
    ),
    // JSON comes in there and nowhere else.
    (
        "serde serde_json",
        "src",
        "src/exchange src/config",
        &[
            ("src/exchange/binance.rs", "use serde::Deserialize;", &[]),
            ("src/config.rs", "use serde::Deserialize;", &[]),
            ("src/core/api/mod.rs", "serde_json::to_vec(&x)", &[1]),
            (
                "src/record.rs",
                "#[derive(serde::Serialize)]\nstruct A;",
                &[1],
            ),
        ],
    ),
    // Meaning does not know messages, nor messages meaning.
    (
        "http httparse httpdate Request Response ETag",
        "src/market",
        "",
        &[
            (
                "src/market/mod.rs",
                "//! No http.\nuse crate::http::ETag;",
                &[2],
            ),
            ("src/core/mod.rs", "use crate::http::ETag;", &[]),
        ],
    ),
    (
        "market exchange symbol candle ticker",
        "src/http",
        "",
        &[
            (
                "src/http/mod.rs",
                "//! No market.\nuse crate::market::Quote;",
                &[2],
            ),
            (
                "src/http/a.rs",
                "let key = b\"symbol\";\nlet symbol = 1;",
                &[2],
            ),
            ("src/core/mod.rs", "use crate::market::Quote;", &[]),
        ],
    ),
    // One file names each of them.
    (
        "rusqlite",
        "src",
        "src/store/disk/sqlite.rs",
        &[(
            "src/store/mod.rs",
            "//! rusqlite\nfn f() -> rusqlite::Error {}",
            &[2],
        )],
    ),
    (
        "rustls",
        "src",
        "src/net/tls.rs",
        &[("src/net/listen.rs", "use rustls::ClientConnection;", &[1])],
    ),
    // An error comes from outside and is handled; a panic says what the bug broke.
    (
        ".unwrap .unwrap_err ::unwrap todo! unimplemented! dbg!",
        "src",
        "",
        &[
            (
                "src/a.rs",
                "a.unwrap();\nb.unwrap_or(1);\n// c.unwrap()\nd\n    .unwrap()",
                &[1, 5],
            ),
            (
                "src/a.rs",
                "a.map(Option::unwrap);\n#[cfg(test)]\nfn f() { a.unwrap() }",
                &[1],
            ),
            ("src/a.rs", "let todo = 1;\ntodo!();\ndbg !(1);", &[2, 3]),
        ],
    ),
    // Nothing on the loop can block: these are on the far side of a queue.
    (
        "::thread thread:: to_socket_addrs ToSocketAddrs Mutex RwLock Condvar park",
        "src",
        "src/net/resolver.rs src/net/fetch.rs src/store src/commands",
        &[
            (
                "src/net/resolver.rs",
                "std::thread::spawn(f); (a, 1).to_socket_addrs()",
                &[],
            ),
            (
                "src/store/disk.rs",
                "use std::thread;\nthread::sleep(d)",
                &[],
            ),
            (
                "src/a.rs",
                "//! thread::sleep\nuse std::thread::spawn;\nthread::sleep(d);",
                &[2, 3],
            ),
            (
                "src/net/mod.rs",
                "use std::thread;\nlet thread = 1;\nlet m: Mutex<u8>;",
                &[1, 3],
            ),
            ("src/net/link.rs", "let all = host.to_socket_addrs();", &[1]),
        ],
    ),
    // The top layer opens files and sockets, and so does the configuration, which reads its file
    // before anything runs.
    (
        "TcpStream TcpListener UdpSocket socket2 File OpenOptions fs:: std::fs",
        "src",
        "src/main.rs src/commands src/logging.rs src/net src/store src/config",
        &[
            ("src/net/mod.rs", "use std::net::TcpStream;", &[]),
            ("src/config/mod.rs", "std::fs::read_to_string(path)", &[]),
            (
                "src/a.rs",
                "use std::net::{A, TcpStream};\nuse std::fs;\nfs::read(p);",
                &[1, 2, 3],
            ),
            (
                "src/a.rs",
                "use std::net::SocketAddr; // File\nenum Data { FilePath }",
                &[],
            ),
        ],
    ),
];

#[test]
fn what_is_banned_somewhere_is_absent_there() {
    for (banned, within, free, trials) in ABSENCES {
        let rule = |source: &Source| {
            let found = banned
                .split(' ')
                .flat_map(|banned| sequence(source, banned));
            let concerned = is_in(source, within) && !is_in(source, free);
            found.filter(|_| concerned).collect()
        };
        for (path, text, lines) in trials {
            finds(rule, path, text, lines);
        }
        holds(rule, "src");
    }
}

/// Whether the file is one of these or lies below one of them (`src/net` is also `src/net.rs`).
fn is_in(source: &Source, places: &str) -> bool {
    places.split_whitespace().any(|place| {
        let rest = source.path.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
    })
}

/// Every place where the words of this text follow each other.
fn sequence(source: &Source, wanted: &str) -> Findings {
    let wanted_source = Source::new("", wanted);
    let (words, wanted_words) = (source.words(), wanted_source.words());
    let same = |part: &&[Word<'_>]| {
        let mut pairs = part.iter().zip(&wanted_words);
        pairs.all(|(word, wanted)| word.text == wanted.text)
    };
    let found = words.windows(wanted_words.len()).filter(same);
    found
        .map(|part| (part[0].line, format!("`{wanted}`")))
        .collect()
}

/// Tries findings on a text: there are some in exactly these lines, counted from 1.
#[track_caller]
fn finds(rule: impl Fn(&Source) -> Findings, path: &str, text: &str, expected: &[usize]) {
    let findings = rule(&Source::new(path, text));
    let mut lines: Vec<usize> = findings.iter().map(|(line, _)| line + 1).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines, expected, "the rule on {path}:\n{text}");
}

/// Nothing is found in the files below `dir`.
#[track_caller]
fn holds(rule: impl Fn(&Source) -> Findings, dir: &str) {
    let sources = Source::all_below(dir);
    assert!(!sources.is_empty(), "no source was found");
    none(sources.iter().flat_map(|source| {
        let line = |(line, what): (usize, String)| format!("{}:{}: {what}", source.path, line + 1);
        rule(source).into_iter().map(line).collect::<Vec<_>>()
    }));
}

#[track_caller]
fn none(findings: impl IntoIterator<Item = String>) {
    let findings: Vec<String> = findings.into_iter().collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// The findings that are no exception, and the exceptions that are no finding.
fn except(found: &[(String, String)], exceptions: impl IntoIterator<Item = String>) -> Vec<String> {
    let exceptions: Vec<String> = exceptions.into_iter().collect();
    let left = found.iter().filter(|(key, _)| !exceptions.contains(key));
    let left = left.map(|(key, what)| format!("{key}: {what}"));
    let unneeded = exceptions
        .iter()
        .filter(|key| !found.iter().any(|(found, _)| found == *key));
    let unneeded = unneeded.map(|key| format!("{key}: this exception is no longer needed"));
    left.chain(unneeded).collect()
}

#[test]
fn modules_import_only_from_lower_layers() {
    let others = [
        "time", "record", "http", "market", "exchange", "demo", "core", "net", "store",
    ];
    let check = |path: &str, text: &str, expected: &[&str]| {
        let paths = others.map(|name| format!("src/{name}/mod.rs"));
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
        files.extend([("src/http/body.rs", "")]);
        files.retain(|file| file.0 != path);
        files.push((path, text));
        let found = upward(&made_up(&files));
        let mut found: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
        found.dedup();
        assert_eq!(found, expected, "{path}:\n{text}");
    };
    let http = "src/http/mod.rs";
    check(http, "use crate::time::Mono;\nuse crate::http::body;", &[]);
    check(http, "use crate::market::Market;", &["http -> market"]);
    check(
        http,
        "use super::core;\nuse super::time;",
        &["http -> core"],
    );
    check(
        "src/http/body.rs",
        "use super::market;\nuse super::super::market;",
        &["http -> market"],
    );
    check(
        "src/market/mod.rs",
        "use crate::{time::Mono, exchange::{Dialect, http}};",
        &["market -> exchange"],
    );
    check(
        "src/market/mod.rs",
        "use crate::{\n time::{self, net},\n net::Link,\n};",
        &["market -> net"],
    );
    check(
        "src/demo/mod.rs",
        "use crate::exchange::Dialect;",
        &["demo -> exchange"],
    );
    check(
        "src/core/mod.rs",
        "use crate::{http, market, exchange, demo};",
        &[],
    );
    check(
        "src/core/mod.rs",
        "fn f(l: crate::net::Link) {}",
        &["core -> net"],
    );
    check(
        "src/core/mod.rs",
        "use crate as this;\nuse this::store;",
        &["core -> store"],
    );
    check(
        "src/core/api/mod.rs",
        "use crate::core::clients::Client;",
        &["core/api -> core"],
    );
    check(
        "src/core/clients/mod.rs",
        "use super::api;\nuse crate::demo;",
        &["core/clients -> core"],
    );
    check(
        "src/store/mod.rs",
        "use crate::net::Driver;\nuse crate::time;",
        &["store -> net"],
    );
    check(
        "src/store/mod.rs",
        "use crate::market::Market;",
        &["store -> market"],
    );
    check("src/net/mod.rs", "use crate::store::Store;", &[]);
    check(
        "src/time/mod.rs",
        "#[cfg(test)]\nuse crate::market::Market;",
        &[],
    );
    check(
        "src/time/mod.rs",
        "use crate::record::Ticker;",
        &["time -> record"],
    );
    check("src/main.rs", "use marketd::net::Driver;", &[]);
    check(
        http,
        "struct S {\n pub(super) market: u8,\n}\nfn f(s: S) { s.market::<u8>() }",
        &[],
    );
    check(
        "src/cellar/mod.rs",
        "use crate::time::Mono;",
        &["cellar -> time"],
    );
    let sources = Source::all_below("src");
    let exceptions = UPWARD.iter().map(|(from, to)| format!("{from} -> {to}"));
    none(except(&upward(&sources), exceptions));
}

fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    files
        .iter()
        .map(|(path, text)| Source::new(path, text))
        .collect()
}

/// What a module names that its layer does not let it, and where.
fn upward(sources: &[Source]) -> Vec<(String, String)> {
    let fits = |place: &str, name: &str| {
        let rest = place.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let layer = |place: &str| {
        let place = if place.is_empty() { "lib" } else { place };
        let rows = LAYERS.iter().enumerate();
        let names = rows.flat_map(|(row, names)| names.split(' ').map(move |name| (row, name)));
        let fitting = names.filter(|(_, name)| fits(place, name));
        fitting.max_by_key(|(_, name)| name.len())
    };
    let judged = Tree::new(sources).edges().into_iter().filter_map(|edge| {
        let (from, to) = (layer(&edge.from), layer(&edge.to));
        let allowed = from.zip(to).is_some_and(|((row, from), (other, to))| {
            let ceiling = CEILINGS.iter().find(|(name, _)| *name == from);
            let ceiling = ceiling
                .and_then(|(_, highest)| layer(highest))
                .map_or(row, |(row, _)| row + 1);
            from == to || other < row.min(ceiling)
        });
        let name = |place: &str, layer: Option<(usize, &str)>| {
            layer.map_or(place, |(_, name)| name).to_string()
        };
        let key = format!("{} -> {}", name(&edge.from, from), name(&edge.to, to));
        (!allowed).then_some((key, edge.at))
    });
    judged.collect()
}

#[test]
fn no_files_or_directories_import_each_other_in_a_circle() {
    let check = |files: &[(&str, &str)], expected: &[(&str, &str)]| {
        let sources = made_up(files);
        let circles = Tree::new(&sources).circles();
        let circles: Vec<_> = circles
            .iter()
            .map(|c| (c.directory.as_str(), c.entries.join(" ")))
            .collect();
        let expected: Vec<_> = expected.iter().map(|(a, b)| (*a, b.to_string())).collect();
        assert_eq!(circles, expected, "{files:?}");
    };
    let a = ("src/m/a.rs", "use super::b::B;\npub struct A;");
    check(
        &[
            ("src/m/mod.rs", "mod a; mod b;"),
            a,
            ("src/m/b.rs", "pub struct B;"),
        ],
        &[],
    );
    let b = ("src/m/b.rs", "fn f() { super::a::A }");
    check(
        &[("src/m/mod.rs", "mod a; mod b;"), a, b],
        &[("src/m", "a b")],
    );
    // A parent that passes names on depends on nobody; who takes one from it depends on its file.
    let through = ("src/m/b.rs", "use crate::m::A;\npub struct B;");
    let passes_on = (
        "src/m/mod.rs",
        "mod a;\nmod b;\npub use a::A;\npub use b::B;",
    );
    check(&[passes_on, a, through], &[("src/m", "a b")]);
    let lower = ("src/m/b.rs", "pub struct B;");
    check(&[passes_on, ("src/m/a.rs", "use super::B;"), lower], &[]);
    // A parent that uses its child's type, and a child that uses the parent's own.
    let uses = ("src/m.rs", "pub use self::b::B;\npub struct M(B);");
    check(&[uses, ("src/m/b.rs", "pub struct B;")], &[]);
    check(
        &[uses, ("src/m/b.rs", "use super::M;\npub struct B;")],
        &[("src/m", "mod b")],
    );
    // Three files in a circle, and two directories through different files of theirs.
    let three = [
        ("src/a.rs", "crate::b::f()"),
        ("src/b.rs", "crate::c::f()"),
        ("src/c.rs", "crate::a::f()"),
    ];
    check(&three, &[("src", "a b c")]);
    let one = [
        ("src/m/x/mod.rs", ""),
        ("src/m/x/p.rs", "use crate::m::y::q;"),
    ];
    let two = [
        ("src/m/y/mod.rs", ""),
        ("src/m/y/q.rs", ""),
        ("src/m/y/r.rs", "use crate::m::x;"),
        ("src/m/mod.rs", ""),
    ];
    check(
        &[one, [two[0], two[1]], [two[2], two[3]]].concat(),
        &[("src/m", "x y")],
    );
    let of_tests = (
        "src/m/b.rs",
        "pub struct B;\n#[cfg(test)]\nuse super::a::A;",
    );
    check(&[("src/m/mod.rs", "mod a; mod b;"), a, of_tests], &[]);

    let sources = Source::all_below("src");
    let circles = Tree::new(&sources).circles();
    let entries = circles.iter().flat_map(|circle| {
        let key = |entry: &String| {
            (
                format!("{}: {entry}", circle.directory),
                circle.steps.join(", "),
            )
        };
        circle.entries.iter().map(key)
    });
    let exceptions = CIRCLES.iter().flat_map(|(directory, entries)| {
        entries
            .split(' ')
            .map(move |entry| format!("{directory}: {entry}"))
    });
    none(except(&entries.collect::<Vec<_>>(), exceptions));
}

#[test]
fn an_exception_that_is_not_needed_is_a_finding() {
    let found = [
        ("a".to_string(), "wrong".to_string()),
        ("b".to_string(), "wrong".to_string()),
    ];
    let left = except(&found, ["b", "c"].map(str::to_string));
    assert_eq!(left, ["a: wrong", "c: this exception is no longer needed"]);
}

#[test]
fn no_two_public_types_have_one_name() {
    let sources = made_up(&[
        (
            "src/a.rs",
            "pub struct One;\nstruct Two;\npub enum Three {}\npub(super) struct Four;",
        ),
        (
            "src/b.rs",
            "pub trait One {}\npub struct Two;\nfn f() -> Three { }\npub type Four = u8;",
        ),
    ]);
    let names: Vec<_> = same_names(&sources)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["One"]);
    let sources = Source::all_below("src");
    none(except(
        &same_names(&sources),
        SAME_NAMES.map(str::to_string),
    ));
}

/// The names that more than one public type has, each with the files.
fn same_names(sources: &[Source]) -> Vec<(String, String)> {
    let kinds = ["struct", "enum", "trait", "type", "union"];
    let mut places = std::collections::BTreeMap::<String, Vec<&str>>::new();
    for source in sources {
        let words = source.words();
        let types = words.windows(3).filter(|three| {
            three[0].text == "pub" && kinds.contains(&three[1].text) && three[2].text != "$"
        });
        for three in types {
            places
                .entry(three[2].text.to_string())
                .or_default()
                .push(&source.path);
        }
    }
    let several = places.into_iter().filter(|(_, files)| files.len() > 1);
    several
        .map(|(name, files)| (name, files.join(", ")))
        .collect()
}

/// No number between an exchange's text and a client's is one.
#[test]
fn no_number_is_binary_floating_point() {
    fn rule(source: &Source) -> Findings {
        let is_digits = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let is_type = |word: &str| word.ends_with("f32") || word.ends_with("f64");
        let mut findings = Findings::new();
        let mut before = "";
        for word in source.words() {
            // `pair.0.1` is a place in a place, not a number.
            let is_literal = is_digits(word.text) && word.text.contains('.') && before != ".";
            if is_literal || is_type(word.text) {
                findings.push((word.line, format!("`{}`", word.text)));
            }
            before = word.text;
        }
        findings
    }
    finds(
        rule,
        "src/a.rs",
        "// f64\nlet a: f64 = b;\nlet c = 1.5;\nlet d = pair.0.1;\nlet e = 0..10;",
        &[2, 3],
    );
    finds(
        rule,
        "src/a.rs",
        "span.as_secs_f32();\nlet a = 1_f64;\nlet sf = 1;",
        &[1, 2],
    );
    holds(rule, "src");
}

#[test]
fn every_expect_says_why_it_cannot_fail() {
    fn rule(source: &Source) -> Findings {
        let words = source.words();
        let expects = words
            .windows(4)
            .filter(|four| four[1].text == "expect" && four[2].text == "(");
        let bare = |four: &&[Word<'_>]| {
            four[3].text.starts_with('"') && four[3].text.split(' ').count() < 3
        };
        let found = expects.filter(bare);
        found
            .map(|four| (four[1].line, "an `expect` without a sentence".to_string()))
            .collect()
    }
    finds(
        rule,
        "src/a.rs",
        "a.expect(\"a key of this table is live\");\nb.expect(\"failed\");",
        &[2],
    );
    finds(
        rule,
        "src/a.rs",
        "parser.expect(b'x');\n// a.expect(\"x\")",
        &[],
    );
    holds(rule, "src");
}

#[test]
fn nothing_is_left_to_be_done() {
    // Spelled in two halves, so that a search for them does not end here.
    let marks = [
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("XX", "X"),
    ];
    let rule = |source: &Source| {
        let lines = source.lines.iter().enumerate();
        let marked = lines.filter(|(_, text)| marks.iter().any(|mark| text.contains(mark)));
        marked.map(|(line, text)| (line, text.clone())).collect()
    };
    finds(
        rule,
        "src/a.rs",
        &format!("a\n// {}: more\nb {}", marks[0], marks[1]),
        &[2, 3],
    );
    holds(rule, "src");
}

#[test]
fn every_file_says_first_what_it_is() {
    fn rule(source: &Source) -> Findings {
        let first = source.lines.first().map_or("", String::as_str);
        let says = first
            .strip_prefix("//! ")
            .is_some_and(|text| !text.trim().is_empty());
        if says {
            Findings::new()
        } else {
            vec![(0, "no `//!` with words in the first line".to_string())]
        }
    }
    finds(rule, "src/a.rs", "//! A page.\n", &[]);
    finds(rule, "src/a.rs", "use a;\n//! A page.\n", &[1]);
    finds(rule, "src/a.rs", "//!\n//! A page.\n", &[1]);
    finds(rule, "src/a.rs", "", &[1]);
    holds(rule, "src");
}

#[test]
fn no_line_is_longer_than_a_screen_is_wide() {
    fn rule(source: &Source) -> Findings {
        // Tables of texts in tests are easier to read unbroken.
        let is_long = |at: &usize| {
            let line = &source.lines[*at];
            let may_be = source.is_test[*at] || line.contains("://");
            line.chars().count() > MOST_COLUMNS && !may_be
        };
        let long = (0..source.lines.len()).filter(is_long);
        long.map(|at| (at, format!("{} columns", source.lines[at].chars().count())))
            .collect()
    }
    let long = "é".repeat(MOST_COLUMNS);
    finds(rule, "src/a.rs", &long, &[]);
    finds(
        rule,
        "src/a.rs",
        &format!("a\n{long}a\n//! https://{long}"),
        &[2],
    );
    let test = format!("#[cfg(test)]\nconst A: &str = \"{long}\";\n//{long}");
    finds(rule, "src/a.rs", &test, &[3]);
    holds(rule, "src");
}

#[test]
fn no_file_is_too_long() {
    let full = "a\n".repeat(MOST_LINES);
    let with_tests = format!("{full}#[cfg(test)]\nmod t {{\n{full}}}\n");
    assert_eq!(long_files(&made_up(&[("src/a.rs", &with_tests)])), []);
    let over = long_files(&made_up(&[("src/a.rs", &format!("{full}a\n"))]));
    assert_eq!(over[0].0, "src/a.rs");
    let sources = Source::all_below("src");
    none(except(
        &long_files(&sources),
        LONG_FILES.map(str::to_string),
    ));
}

fn long_files(sources: &[Source]) -> Vec<(String, String)> {
    let lines = |source: &Source| source.is_test.iter().filter(|is_test| !**is_test).count();
    let long = sources.iter().filter(|source| lines(source) > MOST_LINES);
    long.map(|source| (source.path.clone(), format!("{} lines", lines(source))))
        .collect()
}

#[test]
fn no_function_is_too_long() {
    let most = "    a;\n".repeat(MOST_FUNCTION_LINES - 2);
    let check = |text: String, expected: &[&str]| {
        let sources = made_up(&[("src/a.rs", &text)]);
        let names: Vec<_> = long_functions(&sources)
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(names, expected, "{text}");
    };
    check(format!("fn f() {{\n{most}}}\n"), &[]);
    check(
        format!("\nfn f(g: fn(u8)) {{\n{most}{{ \"}}\" }}\n}}\nfn g() {{ }}\n"),
        &["src/a.rs f"],
    );
    check(
        format!("trait T {{\nfn f() -> [u8; 2];\n{most}\n\n}}\n"),
        &[],
    );
    let sources = Source::all_below("src");
    none(except(
        &long_functions(&sources),
        LONG_FUNCTIONS.map(str::to_string),
    ));
}

fn long_functions(sources: &[Source]) -> Vec<(String, String)> {
    let mut long = Vec::new();
    for source in sources {
        let words = source.words();
        let begins = words.windows(2).enumerate().filter(|(_, two)| {
            let is_name = |c: char| c == '_' || c.is_alphabetic();
            two[0].text == "fn" && two[1].text.starts_with(is_name)
        });
        for (at, two) in begins {
            let lines = function_lines(&words[at..]);
            if lines > MOST_FUNCTION_LINES {
                long.push((
                    format!("{} {}", source.path, two[1].text),
                    format!("{lines} lines"),
                ));
            }
        }
    }
    long
}

/// Lines from a function's name to its closing brace; 1 where it has no body.
fn function_lines(words: &[Word<'_>]) -> usize {
    let (mut round, mut curly) = (0, 0);
    for word in words {
        match word.text {
            "(" | "[" => round += 1,
            ")" | "]" => round -= 1,
            "{" => curly += 1,
            "}" => curly -= 1,
            _ => {}
        }
        let ends =
            (word.text == "}" && curly == 0) || (word.text == ";" && curly == 0 && round == 0);
        if ends {
            return word.line - words[0].line + 1;
        }
    }
    1
}

#[test]
fn every_log_line_names_its_target() {
    fn rule(source: &Source) -> Findings {
        let words = source.words();
        let levels = ["error", "warn", "info", "debug", "trace", "log"];
        let bare = |six: &&[Word<'_>]| {
            six[0].text == "log"
                && six[1].text == "::"
                && levels.contains(&six[2].text)
                && six[3].text == "!"
                && six[5].text != "target"
        };
        let found = words.windows(6).filter(bare);
        found
            .map(|six| (six[0].line, "no target".to_string()))
            .collect()
    }
    finds(
        rule,
        "src/a.rs",
        "log::info!(target: NET, \"a\");\nlog::warn!(\"b\");\nlog::debug!(\n  \"{c}\");\nlog::max_level();",
        &[2, 3],
    );
    holds(rule, "src");
}

#[test]
fn every_log_line_is_an_event_and_its_values() {
    let check = |line: &str, expected: &[&str]| {
        let text = format!("fn f() {{\n log::info!(target: NET, {line});\n}}");
        let found = odd_log_lines(&made_up(&[("src/a.rs", &text)]));
        let found: Vec<_> = found.iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(found, expected, "{line}");
    };
    check(r#""stopped""#, &[]);
    check(r#""page size learned source={id} rows={}", rows"#, &[]);
    check(r#""{event} open={open:?} reason=cap""#, &[]);
    check(r#""not used reason=\"no such file\" bytes=5""#, &[]);
    check(r#""load failed error={error:?}""#, &[]);
    check(r#""load failed error={}", quoted(error)"#, &[]);
    check("\"not used \\\n    path={path}\"", &[]);
    check(
        r#""{id}: answers again""#,
        &["src/a.rs:2: `{id}:` is no event"],
    );
    check(
        r#""cannot be read: {error}""#,
        &["src/a.rs:2: `read:` is no event"],
    );
    check(r#""Stopped""#, &["src/a.rs:2: `Stopped` is no event"]);
    check(r#""source={id}""#, &["src/a.rs:2: no event"]);
    check(
        r#""moved from={a} to {b}""#,
        &["src/a.rs:2: `to` has no value"],
    );
    check(
        r#""moved from= to={b}""#,
        &["src/a.rs:2: `from=` has no value"],
    );
    check(
        r#""moved maxRows={rows}""#,
        &["src/a.rs:2: `maxRows` is no key"],
    );
    check(
        r#""load failed error={error}""#,
        &["src/a.rs:2: `error` is not quoted"],
    );
    let sources = Source::all_below("src");
    none(except(
        &odd_log_lines(&sources),
        FREE_LINES.map(str::to_string),
    ));
}

/// Log lines that are not `event key=value ...`, as `file first-word`.
fn odd_log_lines(sources: &[Source]) -> Vec<(String, String)> {
    let mut odd = Vec::new();
    for source in sources {
        let words = source.words();
        let is_begin = |four: &[Word<'_>]| {
            four[0].text == "log" && four[1].text == "::" && four[3].text == "!"
        };
        let begins = words.windows(4).enumerate();
        for (at, _) in begins.filter(|(_, four)| is_begin(four)) {
            let end = words[at..].iter().position(|word| word.text == ";");
            let end = end.map_or(words.len(), |end| at + end);
            let literals = words[at..end].iter().take_while(|word| word.text != "}");
            let Some(line) = literals.clone().find(|word| word.text.starts_with('"')) else {
                continue;
            };
            // A line that goes on in the next line of the code begins there behind the spaces.
            let text = line.text[1..line.text.len() - 1].split("\\\n");
            let text: String = text.map(str::trim_start).collect();
            let is_quoted = literals.clone().any(|word| word.text == "quoted");
            if let Some(what) = odd_log_line(&text, is_quoted) {
                let first = text.split(' ').next().unwrap_or_default();
                let place = format!("{}:{}", source.path, words[at].line + 1);
                odd.push((
                    format!("{} {first}", source.path),
                    format!("{place}: {what}"),
                ));
            }
        }
    }
    odd
}

/// What is wrong with a log line. `is_quoted`: its values go through `quoted`.
fn odd_log_line(text: &str, is_quoted: bool) -> Option<String> {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        !name.is_empty() && name.chars().all(is_plain)
    };
    // What stands between quotes is one value.
    let parts = text.split("\\\"").enumerate();
    let text: String = parts
        .map(|(at, part)| if at % 2 == 1 { "\"\"" } else { part })
        .collect();
    let mut words = text.split(' ').peekable();
    let mut events = 0;
    while let Some(word) = words.next_if(|word| !word.contains('=')) {
        events += 1;
        if !is_name(word) && word != "{event}" {
            return Some(format!("`{word}` is no event"));
        }
    }
    if events == 0 {
        return Some("no event".to_string());
    }
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_safe = is_quoted || value.ends_with(":?}") || value.starts_with('"');
        let what = match () {
            () if value.is_empty() => format!("`{word}` has no value"),
            () if !is_name(key) => format!("`{key}` is no key"),
            () if FREE_TEXT.contains(&key) && !is_safe => format!("`{key}` is not quoted"),
            () => continue,
        };
        return Some(what);
    }
    None
}

#[test]
fn no_licence_is_claimed_that_nobody_has_named() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = std::fs::read_dir(root.join("src/docs")).expect("the pages are there");
    let mut files: Vec<_> = pages.map(|page| page.expect("a page").path()).collect();
    let others = ["Cargo.toml", "src/core/api/openapi.json", "README.md"];
    files.extend(others.map(|file| root.join(file)));
    for file in files {
        let text = std::fs::read_to_string(&file).expect("it is part of the tree");
        let text = text.to_ascii_lowercase();
        let claims = text.contains("license") || text.contains("licence");
        assert!(
            !claims || root.join("LICENSE").exists(),
            "{}",
            file.display()
        );
    }
}

#[test]
fn no_test_sleeps() {
    // The one place that waits between two looks, and this file, which names what it looks for.
    let free = "tests/support/mod.rs tests/tidy.rs";
    let rule = |source: &Source| {
        let found = sequence(source, "thread::sleep").into_iter();
        found.filter(|_| !is_in(source, free)).collect()
    };
    finds(rule, "tests/cli.rs", "std::thread::sleep(d);", &[1]);
    holds(rule, "tests");
}
