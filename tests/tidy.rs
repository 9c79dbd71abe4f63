//! The house's style, held by tests: what is absent where, who may know whom, and how long
//! things may get. Each rule names its reason, and each is tried on a made-up text that breaks it,
//! so that a rule that sees nothing is noticed.
//!
//! A finding is `file:line: what`. A rule that stands in the way for a good reason gets an entry
//! in its table here, with the reason; the code does not get a comment that turns it off.

#[path = "tidy/source.rs"]
mod source;

use source::{Source, Word};

/// The rooms, each with its row and with the neighbours that it may name all the same. A room
/// names itself, those of the rows below it, and nobody else.
///
///     row 4   main  net  store  probe  sockets, files, clock, process
///     row 3   core  demo               decisions; no I/O, no clock
///     row 2   http  market  exchange   messages | meaning | dialects
///     row 1   time  table  rng  decimal  fingerprint  interval  record  history  json  log_targets
///             config  durations
const ROOMS: [(&str, u8, &[&str]); 23] = [
    // Plain tools, in the order in which they stand on each other.
    ("time", 1, &[]),
    ("durations", 1, &["time"]),
    ("table", 1, &[]),
    ("rng", 1, &[]),
    ("decimal", 1, &[]),
    ("fingerprint", 1, &[]),
    ("interval", 1, &["time"]),
    ("record", 1, &["time", "decimal"]),
    ("json", 1, &["time", "decimal"]),
    ("log_targets", 1, &[]),
    (
        "config",
        1,
        &["time", "decimal", "interval", "record", "log_targets"],
    ),
    ("history", 1, &["time", "interval", "record"]),
    ("http", 2, &[]),
    ("market", 2, &[]),
    ("exchange", 2, &[]),
    // It stands beside the core and is used by it, but it is an exchange of its own, which
    // shares no code with those who ask it: it knows as little as the second row does.
    ("demo", 2, &[]),
    ("core", 3, &[]),
    ("net", 4, &["store"]),
    ("store", 4, &[]),
    // Asks once, without the loop.
    ("probe", 4, &["net"]),
    // Puts the house together.
    ("main", 4, &["net", "store", "probe"]),
    // Lists the rooms and names none of them.
    ("lib", 1, &[]),
    // Pages, no code.
    ("docs", 1, &[]),
];

/// Rooms that know less than their row lets them: only what lies below this one. The store is
/// started by the loop and shares no code with those who decide what it is to keep.
const MODEST: [(&str, u8); 1] = [("store", 2)];

/// Files that may use binary floating point, each with its reason. No number between an
/// exchange's text and a client's is one.
const FLOATS: [(&str, &str); 0] = [];

/// Files and rooms that may start threads or block: both sit on the far side of a queue.
/// The probe's requests run without a loop.
const THREADS: [&str; 3] = ["src/net/resolver.rs", "src/net/fetch.rs", "src/store"];

/// Where files and sockets are opened: the top row, and the configuration, which reads its file
/// before anything runs.
const OPENS: [&str; 4] = ["src/main.rs", "src/net", "src/store", "src/config"];

/// Columns of a line. `rustfmt` keeps code within 100; this is for comments and texts.
const MOST_COLUMNS: usize = 110;

/// Lines of a file without its tests. The aim is 400; this is where a room is two rooms.
const MOST_LINES: usize = 500;

/// Lines of a function, from its name to its closing brace. The aim is 70.
const MOST_FUNCTION_LINES: usize = 80;

/// A line, counted from 0, and what is wrong with it.
type Findings = Vec<(usize, String)>;

/// What must not be in a file.
struct Rule(fn(&Source) -> Findings);

impl Rule {
    /// Tries it on a text: it finds something in exactly these lines, counted from 1.
    #[track_caller]
    fn finds(&self, path: &str, text: &str, expected: &[usize]) {
        let findings = (self.0)(&Source::new(path, text));
        let mut lines: Vec<usize> = findings.iter().map(|(line, _)| line + 1).collect();
        lines.dedup();
        assert_eq!(lines, expected, "the rule on {path}:\n{text}");
    }

    /// It finds nothing in the house.
    #[track_caller]
    fn holds(&self) {
        let sources = Source::all_below("src");
        assert!(!sources.is_empty(), "no source was found");
        let broken = sources
            .iter()
            .flat_map(|source| report(source, (self.0)(source)));
        let broken: Vec<String> = broken.collect();
        assert!(
            broken.is_empty(),
            "{} findings:\n{}",
            broken.len(),
            broken.join("\n")
        );
    }
}

fn report(source: &Source, findings: Findings) -> Vec<String> {
    let line = |(line, what): &(usize, String)| format!("{}:{}: {what}", source.path, line + 1);
    findings.iter().map(line).collect()
}

/// Whether the file is one of these or lies below one of them (`src/net` is also `src/net.rs`).
fn is_in(source: &Source, places: &[&str]) -> bool {
    places.iter().any(|place| {
        let rest = source.path.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
    })
}

/// Every word of the file's code, tests left out, that `is_bad` says of.
fn named(source: &Source, is_bad: impl Fn(&str) -> bool) -> Findings {
    let words = source.words().into_iter();
    let bad = words.filter(|word| is_bad(word.text));
    bad.map(|word| (word.line, format!("`{}`", word.text)))
        .collect()
}

/// Every place where these words follow each other.
fn sequence(source: &Source, wanted: &[&str]) -> Findings {
    let words = source.words();
    let same = |part: &&[Word<'_>]| {
        part.iter()
            .zip(wanted)
            .all(|(word, text)| word.text == *text)
    };
    let found = words.windows(wanted.len()).filter(same);
    found
        .map(|part| (part[0].line, format!("`{}`", wanted.concat())))
        .collect()
}

#[test]
fn only_net_knows_mio() {
    fn rule(source: &Source) -> Findings {
        let free = is_in(source, &["src/net"]);
        named(source, |word| {
            !free && (word == "mio" || word == "signal_hook_mio")
        })
    }
    let rule = Rule(rule);
    rule.finds("src/net/link.rs", "use mio::Token;", &[]);
    rule.finds(
        "src/core/part.rs",
        "// no mio\nuse mio::Token;\nlet a = \"mio\";",
        &[2],
    );
    rule.finds("src/network.rs", "fn f() { mio::Poll::new() }", &[1]);
    rule.finds(
        "src/main.rs",
        "#[cfg(test)]\nuse mio::Token;\nuse mio::Poll;",
        &[3],
    );
    rule.holds();
}

#[test]
fn the_clock_is_read_only_in_time() {
    fn rule(source: &Source) -> Findings {
        if is_in(source, &["src/time.rs"]) {
            return Findings::new();
        }
        let mut findings = sequence(source, &["Instant", "::", "now"]);
        findings.extend(sequence(source, &["SystemTime", "::", "now"]));
        findings.extend(sequence(source, &["clock_gettime", "("]));
        findings.extend(sequence(source, &[".", "elapsed", "(", ")"]));
        // The driver has the clock, and tells everybody else.
        if !is_in(source, &["src/net", "src/main.rs"]) {
            findings.extend(sequence(source, &["Clock", "::", "new"]));
        }
        findings.sort();
        findings
    }
    let rule = Rule(rule);
    rule.finds("src/time.rs", "Instant::now(); SystemTime::now()", &[]);
    rule.finds(
        "src/net/mod.rs",
        "let clock = Clock::new();\nlet now = Instant::now();",
        &[2],
    );
    rule.finds(
        "src/market/quote.rs",
        "//! Instant::now\nstd::time::SystemTime ::\nnow()\nclock_gettime(ClockId::Realtime)",
        &[2, 4],
    );
    rule.finds(
        "src/core/mod.rs",
        "let age = begin.elapsed();\nlet c = Clock::new();",
        &[1, 2],
    );
    rule.holds();
}

#[test]
fn serde_is_named_only_where_json_comes_in() {
    fn rule(source: &Source) -> Findings {
        let free = is_in(source, &["src/exchange", "src/config"]);
        named(source, |word| {
            !free && (word == "serde" || word == "serde_json")
        })
    }
    let rule = Rule(rule);
    rule.finds("src/exchange/binance.rs", "use serde::Deserialize;", &[]);
    rule.finds("src/core/api/mod.rs", "serde_json::to_vec(&x)", &[1]);
    rule.finds("src/config.rs", "use serde::Deserialize;", &[]);
    rule.finds("src/core/part.rs", "use serde_json::Value;", &[1]);
    rule.finds(
        "src/record.rs",
        "#[derive(serde::Serialize)]\nstruct A;",
        &[1],
    );
    rule.holds();
}

#[test]
fn market_does_not_know_that_http_exists() {
    fn rule(source: &Source) -> Findings {
        let words = [
            "http", "httparse", "httpdate", "Request", "Response", "ETag",
        ];
        let concerned = is_in(source, &["src/market"]);
        named(source, |word| concerned && words.contains(&word))
    }
    let rule = Rule(rule);
    rule.finds(
        "src/market/mod.rs",
        "//! Knows no http.\nuse crate::http::ETag;",
        &[2],
    );
    rule.finds("src/core/mod.rs", "use crate::http::ETag;", &[]);
    rule.holds();
}

#[test]
fn http_does_not_know_that_markets_exist() {
    fn rule(source: &Source) -> Findings {
        let words = ["market", "exchange", "symbol", "candle", "ticker"];
        let concerned = is_in(source, &["src/http"]);
        named(source, |word| concerned && words.contains(&word))
    }
    let rule = Rule(rule);
    rule.finds(
        "src/http/mod.rs",
        "//! Knows no market.\nuse crate::market::Quote;",
        &[2],
    );
    rule.finds(
        "src/http/query.rs",
        "let key = b\"symbol\";\nlet symbol = 1;",
        &[2],
    );
    rule.finds("src/core/mod.rs", "use crate::market::Quote;", &[]);
    rule.holds();
}

#[test]
fn rooms_know_only_the_rooms_below_them() {
    let rule = Rule(knowledge);
    rule.finds(
        "src/http/mod.rs",
        "use crate::time::Mono;\nuse crate::http::body;",
        &[],
    );
    rule.finds("src/http/mod.rs", "use crate::market::Market;", &[1]);
    rule.finds(
        "src/http/mod.rs",
        "use super::core;\nuse super::time;",
        &[1],
    );
    rule.finds(
        "src/http/body.rs",
        "use super::market;\nuse super::super::market;",
        &[2],
    );
    rule.finds(
        "src/market/mod.rs",
        "use crate::{time::Mono, exchange::{Dialect, http}};",
        &[1],
    );
    rule.finds(
        "src/market/mod.rs",
        "use crate::{\n time::{self, net},\n net::Link,\n};",
        &[3],
    );
    rule.finds("src/demo/mod.rs", "use crate::exchange::Dialect;", &[1]);
    rule.finds(
        "src/core/api/mod.rs",
        "use crate::{http, market, exchange, demo};",
        &[],
    );
    rule.finds("src/core/mod.rs", "fn f(l: crate::net::Link) {}", &[1]);
    rule.finds("src/store/mod.rs", "use crate::net::Driver;", &[1]);
    rule.finds(
        "src/store/read.rs",
        "use crate::history::Job;\nuse crate::market::Market;",
        &[2],
    );
    rule.finds("src/core/mod.rs", "use crate::store::Store;", &[1]);
    rule.finds("src/net/mod.rs", "use crate::store::Store;", &[]);
    rule.finds(
        "src/time.rs",
        "#[cfg(test)]\nuse crate::market::Market;",
        &[],
    );
    rule.finds(
        "src/time.rs",
        "use crate::record::Ticker;\nuse crate::*;",
        &[1, 2],
    );
    rule.finds(
        "src/main.rs",
        "use marketd::net::Driver;\nuse marketd::cellar::Wine;",
        &[2],
    );
    rule.finds(
        "src/http/mod.rs",
        "struct S {\n pub(super) market: u8,\n}\nmod a { use super::S; }",
        &[],
    );
    rule.finds(
        "src/core/mod.rs",
        "use crate::demo::Demo;\nuse crate::store::Store;",
        &[2],
    );
    rule.finds("src/cellar/mod.rs", "//! Wine.", &[1]);
    rule.holds();
}

/// What a room names of the crate that its row does not let it. An unknown room is a finding
/// too, so that a new one gets its row.
fn knowledge(source: &Source) -> Findings {
    let path = source
        .path
        .trim_start_matches("src/")
        .trim_end_matches(".rs");
    let modules: Vec<&str> = path.split('/').filter(|part| *part != "mod").collect();
    let row_of = |name: &str| ROOMS.iter().find(|(known, ..)| *known == name);
    let Some((room, row, neighbours)) = row_of(modules[0]) else {
        return vec![(
            0,
            format!("the room `{}` has no row in this test", modules[0]),
        )];
    };
    let modest = MODEST.iter().find(|(known, _)| known == room);
    let ceiling = modest.map_or(*row, |(_, ceiling)| *ceiling);
    let judge = |(line, name): (usize, &str), unknown_is_fine: bool| {
        let below = row_of(name).map_or(unknown_is_fine, |(_, other, _)| *other < ceiling);
        let fine = name == *room || below || neighbours.contains(&name);
        (!fine).then(|| (line, format!("`{room}` names `{name}`")))
    };
    let words = source.words();
    let mut findings = Findings::new();
    for at in 0..words.len() {
        let begins = |text: &str| words[at].text == text && next(&words, at) == "::";
        let roots = if begins("crate") || begins("marketd") {
            roots_of(&words, at + 2)
        } else if begins("super") && (at == 0 || words[at - 1].text != "::") {
            let ups = words[at..]
                .chunks(2)
                .take_while(|pair| pair[0].text == "super")
                .count();
            // Any fewer, and the path stays inside of the room.
            let leaves = ups == modules.len();
            if leaves {
                roots_of(&words, at + 2 * ups)
            } else {
                Vec::new()
            }
        } else {
            continue;
        };
        // A module inside of a file has one `super` more, which leads to any name of the file.
        let unknown_is_fine = begins("super");
        findings.extend(
            roots
                .into_iter()
                .filter_map(|root| judge(root, unknown_is_fine)),
        );
    }
    findings
}

fn next<'a>(words: &[Word<'a>], at: usize) -> &'a str {
    words.get(at + 1).map_or("", |word| word.text)
}

/// The first names of the paths at `at`: one, or those of a group in braces.
fn roots_of<'a>(words: &[Word<'a>], at: usize) -> Vec<(usize, &'a str)> {
    let Some(first) = words.get(at) else {
        return Vec::new();
    };
    if first.text != "{" {
        return vec![(first.line, first.text)];
    }
    let (mut roots, mut depth, mut fresh) = (Vec::new(), 0, true);
    for word in &words[at..] {
        match word.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => fresh = true,
            text if depth == 1 && fresh => {
                roots.push((word.line, text));
                fresh = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    roots
}

#[test]
fn no_number_is_binary_floating_point() {
    fn rule(source: &Source) -> Findings {
        if FLOATS.iter().any(|(path, _)| source.path == *path) {
            return Findings::new();
        }
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
    let rule = Rule(rule);
    rule.finds(
        "src/a.rs",
        "// f64\nlet a: f64 = b;\nlet c = 1.5;\nlet d = pair.0.1;\nlet e = 0..10;",
        &[2, 3],
    );
    rule.finds(
        "src/a.rs",
        "span.as_secs_f32();\nlet a = 1_f64;\nlet sf = 1;",
        &[1, 2],
    );
    rule.holds();
}

#[test]
fn sqlite_and_tls_are_each_named_in_one_file() {
    fn homes<'a>(sources: &'a [Source], name: &str) -> Vec<&'a str> {
        let naming = sources
            .iter()
            .filter(|source| !named(source, |word| word == name).is_empty());
        naming.map(|source| source.path.as_str()).collect()
    }
    let two = [
        Source::new("src/store/file.rs", "use rusqlite::Connection;"),
        Source::new(
            "src/store/mod.rs",
            "//! rusqlite\nfn f() -> rusqlite::Error {}",
        ),
    ];
    assert_eq!(homes(&two, "rusqlite").len(), 2);
    assert_eq!(homes(&two, "rustls").len(), 0);
    let sources = Source::all_below("src");
    for name in ["rusqlite", "rustls"] {
        let homes = homes(&sources, name);
        assert!(homes.len() <= 1, "{name} is named in {homes:?}");
    }
}

#[test]
fn nothing_is_unwrapped_outside_of_tests() {
    fn rule(source: &Source) -> Findings {
        let mut findings = sequence(source, &[".", "unwrap", "("]);
        findings.extend(sequence(source, &[".", "unwrap_err", "("]));
        findings.extend(sequence(source, &["::", "unwrap"]));
        findings
    }
    let rule = Rule(rule);
    rule.finds(
        "src/a.rs",
        "a.unwrap();\nb.unwrap_or(1);\n// c.unwrap()\nd\n    .unwrap()",
        &[1, 5],
    );
    rule.finds(
        "src/a.rs",
        "a.map(Option::unwrap);\n#[cfg(test)]\nmod t {\n fn f() { a.unwrap() }\n}",
        &[1],
    );
    rule.holds();
}

#[test]
fn every_expect_says_why_it_cannot_fail() {
    fn rule(source: &Source) -> Findings {
        let bare = |line: &usize| {
            let begin = source.code[*line].find(".expect(\"").map(|at| at + 9);
            let text = begin.and_then(|at| source.lines[*line].get(at..)?.split('"').next());
            text.is_some_and(|text| text.split(' ').count() < 3)
        };
        let lines = (0..source.lines.len()).filter(|line| !source.is_test[*line]);
        lines
            .filter(bare)
            .map(|line| (line, "an `expect` without a sentence".to_string()))
            .collect()
    }
    let rule = Rule(rule);
    rule.finds(
        "src/a.rs",
        "a.expect(\"a key of this table is live\");\nb.expect(\"failed\");",
        &[2],
    );
    rule.finds("src/a.rs", "parser.expect(b'x');\n// a.expect(\"x\")", &[]);
    rule.holds();
}

#[test]
fn nothing_is_left_to_be_done() {
    fn rule(source: &Source) -> Findings {
        let macros = ["todo", "unimplemented", "dbg"];
        let words = source.words();
        let is_macro = |two: &&[Word<'_>]| macros.contains(&two[0].text) && two[1].text == "!";
        let found = words.windows(2).filter(is_macro);
        let mut findings: Findings = found
            .map(|two| (two[0].line, two[0].text.to_string()))
            .collect();
        for (line, text) in source.lines.iter().enumerate() {
            let marks = ["FIXME", "TODO", "XXX"]
                .into_iter()
                .filter(|mark| text.contains(mark));
            findings.extend(marks.map(|mark| (line, mark.to_string())));
        }
        findings.sort();
        findings
    }
    // Spelled in two halves, so that a search for them does not end here.
    let marks = format!(
        "let todo = 1;\n{}!();\ndbg !(1);\n// {}: more",
        "todo",
        concat!("FIX", "ME")
    );
    let rule = Rule(rule);
    rule.finds("src/a.rs", &marks, &[2, 3, 4]);
    rule.holds();
}

#[test]
fn nothing_on_the_loop_can_block() {
    fn rule(source: &Source) -> Findings {
        if is_in(source, &THREADS) {
            return Findings::new();
        }
        let words = source.words();
        let is_path = |three: &&[Word<'_>]| {
            three[1].text == "thread" && (three[0].text == "::" || three[2].text == "::")
        };
        let paths = words.windows(3).filter(is_path);
        let mut findings: Findings = paths
            .map(|three| (three[1].line, "`thread`".to_string()))
            .collect();
        let blocking = [
            "to_socket_addrs",
            "ToSocketAddrs",
            "Mutex",
            "RwLock",
            "Condvar",
            "park",
        ];
        findings.extend(named(source, |word| blocking.contains(&word)));
        findings.sort();
        findings
    }
    let rule = Rule(rule);
    rule.finds(
        "src/net/resolver.rs",
        "std::thread::spawn(f); (a, 1).to_socket_addrs()",
        &[],
    );
    rule.finds(
        "src/store/disk.rs",
        "use std::thread;\nthread::sleep(d)",
        &[],
    );
    rule.finds(
        "src/net/mod.rs",
        "//! thread::sleep\nuse std::thread::spawn;\nlet a = 1;\nthread::sleep(d);",
        &[2, 4],
    );
    rule.finds(
        "src/net/mod.rs",
        "use std::thread;\nlet thread = 1;\nlet m: Mutex<u8>;",
        &[1, 3],
    );
    rule.finds("src/net/link.rs", "let all = host.to_socket_addrs();", &[1]);
    rule.holds();
}

#[test]
fn files_and_sockets_are_opened_only_at_the_top() {
    fn rule(source: &Source) -> Findings {
        if is_in(source, &OPENS) {
            return Findings::new();
        }
        let sockets = [
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "socket2",
            "File",
            "OpenOptions",
        ];
        let mut findings = named(source, |word| sockets.contains(&word));
        findings.extend(sequence(source, &["fs", "::"]));
        findings.extend(sequence(source, &["std", "::", "fs"]));
        findings.sort();
        findings
    }
    let rule = Rule(rule);
    rule.finds("src/net/mod.rs", "use std::net::TcpStream;", &[]);
    rule.finds("src/config/mod.rs", "std::fs::read_to_string(path)", &[]);
    rule.finds(
        "src/core/mod.rs",
        "use std::net::{SocketAddr, TcpStream};\nuse std::fs;\nfs::read(p);",
        &[1, 2, 3],
    );
    rule.finds(
        "src/core/mod.rs",
        "use std::net::SocketAddr; // File\nenum Data { FilePath }",
        &[],
    );
    rule.holds();
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
    let rule = Rule(rule);
    rule.finds("src/a.rs", "//! A room.\n", &[]);
    rule.finds("src/a.rs", "use a;\n//! A room.\n", &[1]);
    rule.finds("src/a.rs", "//!\n//! A room.\n", &[1]);
    rule.finds("src/a.rs", "", &[1]);
    rule.holds();
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
    let rule = Rule(rule);
    rule.finds("src/a.rs", &long, &[]);
    rule.finds("src/a.rs", &format!("a\n{long}a\n//! https://{long}"), &[2]);
    let test = format!("#[cfg(test)]\nconst A: &str = \"{long}\";\n//{long}");
    rule.finds("src/a.rs", &test, &[3]);
    rule.holds();
}

#[test]
fn no_file_is_longer_than_a_room_may_be() {
    fn rule(source: &Source) -> Findings {
        let lines = source.is_test.iter().filter(|is_test| !**is_test).count();
        if lines <= MOST_LINES {
            return Findings::new();
        }
        vec![(0, format!("{lines} lines without its tests"))]
    }
    let full = "a\n".repeat(MOST_LINES);
    let rule = Rule(rule);
    rule.finds(
        "src/a.rs",
        &format!("{full}#[cfg(test)]\nmod t {{\n{full}}}\n"),
        &[],
    );
    rule.finds("src/a.rs", &format!("{full}a\n"), &[1]);
    rule.holds();
}

#[test]
fn no_function_is_longer_than_one_can_see() {
    fn rule(source: &Source) -> Findings {
        let words = source.words();
        let is_function = |two: &&[Word<'_>]| {
            two[0].text == "fn"
                && two[1]
                    .text
                    .starts_with(|c: char| c == '_' || c.is_alphabetic())
        };
        let begins = words
            .windows(2)
            .enumerate()
            .filter(|(_, two)| is_function(two));
        let lengths =
            begins.map(|(at, two)| (two[0].line, two[1].text, function_lines(&words[at..])));
        let long = lengths.filter(|(_, _, lines)| *lines > MOST_FUNCTION_LINES);
        long.map(|(line, name, lines)| (line, format!("`{name}` has {lines} lines")))
            .collect()
    }
    let most = "    a;\n".repeat(MOST_FUNCTION_LINES - 2);
    let rule = Rule(rule);
    rule.finds("src/a.rs", &format!("fn f() {{\n{most}}}\n"), &[]);
    rule.finds(
        "src/a.rs",
        &format!("\nfn f(g: fn(u8)) {{\n{most}{{ \"}}\" }}\n}}\nfn g() {{ }}\n"),
        &[2],
    );
    rule.finds(
        "src/a.rs",
        &format!("trait T {{\nfn f() -> [u8; 2];\n{most}\n\n}}\n"),
        &[],
    );
    rule.holds();
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
    let rule = Rule(rule);
    rule.finds(
        "src/a.rs",
        "log::info!(target: NET, \"a\");\nlog::warn!(\"b\");\nlog::debug!(\n  \"{c}\");\nlog::max_level();",
        &[2, 3],
    );
    rule.holds();
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
    let free = ["tests/support/mod.rs", "tests/tidy.rs"];
    for source in Source::all_below("tests") {
        let sleeps = sequence(&source, &["thread", "::", "sleep"]);
        let fine = sleeps.is_empty() || free.contains(&source.path.as_str());
        assert!(fine, "{:?}", report(&source, sleeps));
    }
}
