//! The structure and the style of the code, held by tests: which module may import which, what is
//! absent where, and how long things may get. Each rule names its reason and is tried on a made-up
//! text that breaks it, so that a rule that sees nothing is noticed.
//!
//! A finding is `file:line: what`. What breaks a rule for a good reason gets an entry in the table
//! of exceptions beside it, with the reason; no comment in the code turns a rule off. An exception
//! that is no longer needed is a finding too.

#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/log_lines.rs"]
mod log_lines;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tree.rs"]
mod tree;

use source::{Source, Word};
use tree::Tree;

/// A line, counted from 0, and what is wrong with it.
type Findings = Vec<(usize, String)>;

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
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

/// The findings that are no exception, and the exceptions that are no finding.
fn except(found: &[(String, String)], exceptions: impl IntoIterator<Item = String>) -> Vec<String> {
    let exceptions: Vec<String> = exceptions.into_iter().collect();
    let left = found.iter().filter(|(key, _)| !exceptions.contains(key));
    let left = left.map(|(key, what)| format!("{key}: {what}"));
    let unneeded = exceptions.iter().filter(|key| !found.iter().any(|(found, _)| found == *key));
    let unneeded = unneeded.map(|key| format!("{key}: this exception is no longer needed"));
    left.chain(unneeded).collect()
}

fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(path, text)| Source::new(path, text)).collect()
}

#[test]
fn an_exception_that_is_not_needed_is_a_finding() {
    let found = [("a".to_string(), "wrong".to_string()), ("b".to_string(), "wrong".to_string())];
    let left = except(&found, ["b", "c"].map(str::to_string));
    assert_eq!(left, ["a: wrong", "c: this exception is no longer needed"]);
}

#[test]
fn no_two_shared_types_have_one_name() {
    let sources = made_up(&[
        ("src/a.rs", "pub struct One;\nstruct Two;\npub enum Three {}\npub(super) struct Four;"),
        ("src/b.rs", "pub trait One {}\npub struct Two;\nfn f() -> Three { }\npub type Four = u8;"),
    ]);
    let names: Vec<_> = same_names(&sources).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Four", "One"]);
    let sources = Source::all_below("src");
    none(except(&same_names(sources), []));
}

/// The names that more than one type has that other files may use, each with the files.
fn same_names(sources: &[Source]) -> Vec<(String, String)> {
    let kinds = ["struct", "enum", "trait", "type", "union"];
    let mut places = std::collections::BTreeMap::<String, Vec<&str>>::new();
    for source in sources {
        let words = source.words();
        // A type of `pub` or `pub(super)`.
        let types = words.windows(3).filter(|three| {
            let is_shared = matches!(three[0].text, "pub" | ")");
            is_shared && kinds.contains(&three[1].text) && three[2].text != "$"
        });
        for three in types {
            places.entry(three[2].text.to_string()).or_default().push(&source.path);
        }
    }
    let several = places.into_iter().filter(|(_, files)| files.len() > 1);
    several.map(|(name, files)| (name, files.join(", "))).collect()
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
    holds(rule, "src");
}

#[test]
fn every_expect_says_why_it_cannot_fail() {
    fn rule(source: &Source) -> Findings {
        let words = source.words();
        let expects =
            words.windows(4).filter(|four| four[1].text == "expect" && four[2].text == "(");
        let bare = |four: &&[Word<'_>]| {
            four[3].text.starts_with('"') && four[3].text.split(' ').count() < 3
        };
        let found = expects.filter(bare);
        found.map(|four| (four[1].line, "an `expect` without a sentence".to_string())).collect()
    }
    finds(
        rule,
        "src/a.rs",
        "a.expect(\"a key of this table is live\");\nb.expect(\"failed\");",
        &[2],
    );
    holds(rule, "src");
}

#[test]
fn nothing_is_left_to_be_done() {
    // Spelled in two halves, so that a search for them does not end here.
    let marks = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
    let rule = |source: &Source| {
        let lines = source.lines.iter().enumerate();
        let marked = lines.filter(|(_, text)| marks.iter().any(|mark| text.contains(mark)));
        marked.map(|(line, text)| (line, text.clone())).collect()
    };
    finds(rule, "src/a.rs", &format!("a\n// {}: more\nb {}", marks[0], marks[1]), &[2, 3]);
    holds(rule, "src");
}

#[test]
fn every_file_says_first_what_it_is() {
    fn rule(source: &Source) -> Findings {
        let first = source.lines.first().map_or("", String::as_str);
        let says = first.strip_prefix("//! ").is_some_and(|text| !text.trim().is_empty());
        if says {
            Findings::new()
        } else {
            vec![(0, "no `//!` with words in the first line".to_string())]
        }
    }
    finds(rule, "src/a.rs", "use a;\n//! A page.\n", &[1]);
    holds(rule, "src");
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
        assert!(!claims || root.join("LICENSE").exists(), "{}", file.display());
    }
}

#[test]
fn no_test_sleeps() {
    // The one place that waits between two looks, and these files, which name what they look for.
    let free = "tests/support/mod.rs tests/tidy";
    let rule = |source: &Source| {
        let found = sequence(&source.words(), "thread::sleep").into_iter();
        found.filter(|_| !is_in(source, free)).collect()
    };
    finds(rule, "tests/cli.rs", "std::thread::sleep(d);", &[1]);
    holds(rule, "tests");
}

/// Columns of a line. `rustfmt` keeps code within 100; this is for comments and texts.
const MOST_COLUMNS: usize = 110;

/// Lines of a file without its tests.
const MOST_LINES: usize = 400;

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
        long.map(|at| (at, format!("{} columns", source.lines[at].chars().count()))).collect()
    }
    let long = "é".repeat(MOST_COLUMNS);
    finds(rule, "src/a.rs", &format!("a\n{long}a\n//! https://{long}"), &[2]);
    holds(rule, "src");
}

#[test]
fn no_file_is_too_long() {
    fn rule(source: &Source) -> Findings {
        let lines = source.is_test.iter().filter(|is_test| !**is_test).count();
        let is_long = (lines > MOST_LINES).then(|| (0, format!("{lines} lines")));
        is_long.into_iter().collect()
    }
    let full = "a\n".repeat(MOST_LINES);
    finds(rule, "src/a.rs", &format!("{full}a\n"), &[1]);
    holds(rule, "src");
}

/// Words that must not follow each other in the code, the place concerned, and the places in it that may.
type Absence = (&'static str, &'static str, &'static str);

const ABSENCES: [Absence; 13] = [
    // Only the loop knows what it waits with.
    ("mio signal_hook_mio", "src", "src/net"),
    // The driver reads the clock and tells everybody else what time it is.
    ("Instant::now SystemTime::now clock_gettime .elapsed", "src", "src/time.rs"),
    ("Clock::new", "src", "src/time.rs src/net src/main.rs"),
    // JSON comes in there and nowhere else.
    ("serde serde_json", "src", "src/exchange src/config"),
    // Meaning does not know messages, nor messages meaning.
    ("http httparse httpdate Request Response ETag", "src/market", ""),
    ("market exchange symbol candle ticker", "src/http", ""),
    // One file names each of them.
    ("rusqlite", "src", "src/store/disk/sqlite.rs"),
    ("rustls", "src", "src/net/tls.rs"),
    // An error comes from outside and is handled; a panic says what the bug broke.
    (".unwrap .unwrap_err ::unwrap todo! unimplemented! dbg!", "src", ""),
    // Nothing on the loop can block: these are on the far side of a queue.
    (
        "::thread thread:: to_socket_addrs ToSocketAddrs Mutex RwLock Condvar park",
        "src",
        "src/net/resolver.rs src/net/fetch.rs src/store src/commands src/logging",
    ),
    // Whoever reads standard error may stop reading. So `log!` hands its line to the log's thread, and
    // nothing else writes there once the loop runs.
    (
        "stderr stdout eprintln! eprint! println! print! set_logger set_boxed_logger env_logger",
        "src",
        "src/main.rs src/logging",
    ),
    ("set_logger set_boxed_logger env_logger", "src/main.rs", ""),
    // The top layer opens files and sockets, and so does the configuration, which reads its file
    // before anything runs.
    (
        "TcpStream TcpListener UdpSocket socket2 File OpenOptions fs:: std::fs",
        "src",
        "src/main.rs src/commands src/logging.rs src/net src/store src/config",
    ),
];

#[test]
fn what_is_banned_somewhere_is_absent_there() {
    for (banned, within, free) in ABSENCES {
        let rule = |source: &Source| {
            if !is_in(source, within) || is_in(source, free) {
                return Findings::new();
            }
            let words = source.words();
            banned.split(' ').flat_map(|banned| sequence(&words, banned)).collect()
        };
        for word in banned.split(' ') {
            let place = format!("{}.rs", within.trim_end_matches(".rs"));
            finds(rule, &place, &format!("f(a {word}\n);"), &[1]);
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
fn sequence(words: &[Word<'_>], wanted: &str) -> Findings {
    let wanted_source = Source::new("", wanted);
    let wanted_words = wanted_source.words();
    let same = |part: &&[Word<'_>]| {
        let mut pairs = part.iter().zip(&wanted_words);
        pairs.all(|(word, wanted)| word.text == wanted.text)
    };
    let found = words.windows(wanted_words.len()).filter(same);
    found.map(|part| (part[0].line, format!("`{wanted}`"))).collect()
}
