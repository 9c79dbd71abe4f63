//! What is absent where: words that must not follow each other in the code.

use super::*;

/// What is absent where: words that must not follow each other in the code, the place concerned,
/// the places in it that may, and texts with the lines (counted from 1) that break it.
type Absence = (&'static str, &'static str, &'static str, &'static [Trial]);

type Trial = (&'static str, &'static str, &'static [usize]);

const ABSENCES: [Absence; 13] = [
    // Only the loop knows what it waits with.
    (
        "mio signal_hook_mio",
        "src",
        "src/net",
        &[
            ("src/net/link.rs", "use mio::Token;", &[]),
            ("src/a.rs", "// no mio\nuse mio::Token;\nlet a = \"mio\";", &[2]),
            ("src/network.rs", "fn f() { mio::Poll::new() }", &[1]),
            ("src/main.rs", "#[cfg(test)]\nuse mio::Token;\nuse mio::Poll;", &[3]),
        ],
    ),
    // The driver reads the clock and tells everybody else what time it is.
    (
        "Instant::now SystemTime::now clock_gettime .elapsed",
        "src",
        "src/time.rs",
        &[
            ("src/time.rs", "Instant::now(); SystemTime::now()", &[]),
            ("src/net/mod.rs", "let c = Clock::new();\nInstant::now();", &[2]),
            ("src/a.rs", "//! Instant::now\nstd::time::SystemTime ::\nnow()", &[2]),
            ("src/a.rs", "begin.elapsed();\nclock_gettime(ClockId::Realtime)", &[1, 2]),
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
            ("src/record.rs", "#[derive(serde::Serialize)]\nstruct A;", &[1]),
        ],
    ),
    // Meaning does not know messages, nor messages meaning.
    (
        "http httparse httpdate Request Response ETag",
        "src/market",
        "",
        &[
            ("src/market/mod.rs", "//! No http.\nuse crate::http::ETag;", &[2]),
            ("src/core/mod.rs", "use crate::http::ETag;", &[]),
        ],
    ),
    (
        "market exchange symbol candle ticker",
        "src/http",
        "",
        &[
            ("src/http/mod.rs", "//! No market.\nuse crate::market::Quote;", &[2]),
            ("src/http/a.rs", "let key = b\"symbol\";\nlet symbol = 1;", &[2]),
            ("src/core/mod.rs", "use crate::market::Quote;", &[]),
        ],
    ),
    // One file names each of them.
    (
        "rusqlite",
        "src",
        "src/store/disk/sqlite.rs",
        &[("src/store/mod.rs", "//! rusqlite\nfn f() -> rusqlite::Error {}", &[2])],
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
            ("src/a.rs", "a.unwrap();\nb.unwrap_or(1);\n// c.unwrap()\nd\n    .unwrap()", &[1, 5]),
            ("src/a.rs", "a.map(Option::unwrap);\n#[cfg(test)]\nfn f() { a.unwrap() }", &[1]),
            ("src/a.rs", "let todo = 1;\ntodo!();\ndbg !(1);", &[2, 3]),
        ],
    ),
    // Nothing on the loop can block: these are on the far side of a queue.
    (
        "::thread thread:: to_socket_addrs ToSocketAddrs Mutex RwLock Condvar park",
        "src",
        "src/net/resolver.rs src/net/fetch.rs src/store src/commands src/logging",
        &[
            ("src/net/resolver.rs", "std::thread::spawn(f); (a, 1).to_socket_addrs()", &[]),
            ("src/store/disk.rs", "use std::thread;\nthread::sleep(d)", &[]),
            ("src/a.rs", "//! thread::sleep\nuse std::thread::spawn;\nthread::sleep(d);", &[2, 3]),
            ("src/net/mod.rs", "use std::thread;\nlet thread = 1;\nlet m: Mutex<u8>;", &[1, 3]),
            ("src/net/link.rs", "let all = host.to_socket_addrs();", &[1]),
        ],
    ),
    // Whoever reads standard error may stop reading. So `log!` hands its line to the log's thread, and
    // nothing else writes there once the loop runs.
    (
        "stderr stdout eprintln! eprint! println! print! set_logger set_boxed_logger env_logger",
        "src",
        "src/main.rs src/logging",
        &[
            ("src/logging.rs", "log::set_logger(l);\nLogWriter::start(io::stderr())", &[]),
            (
                "src/net/turn.rs",
                "// stderr\neprintln!(\"x\");\nlet out = std::io::stderr();",
                &[2, 3],
            ),
            ("src/a.rs", "log::set_boxed_logger(l);\nprintln!();\nlog::info!(\"a\");", &[1, 2]),
        ],
    ),
    (
        "set_logger set_boxed_logger env_logger",
        "src/main.rs",
        "",
        &[("src/main.rs", "log::set_boxed_logger(l);", &[1])],
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
            ("src/a.rs", "use std::net::{A, TcpStream};\nuse std::fs;\nfs::read(p);", &[1, 2, 3]),
            ("src/a.rs", "use std::net::SocketAddr; // File\nenum Data { FilePath }", &[]),
        ],
    ),
];

#[test]
fn what_is_banned_somewhere_is_absent_there() {
    for (banned, within, free, trials) in ABSENCES {
        let rule = |source: &Source| {
            if !is_in(source, within) || is_in(source, free) {
                return Findings::new();
            }
            let words = source.words();
            banned.split(' ').flat_map(|banned| sequence(&words, banned)).collect()
        };
        for (path, text, lines) in trials {
            finds(rule, path, text, lines);
        }
        holds(rule, "src");
    }
}

/// Whether the file is one of these or lies below one of them (`src/net` is also `src/net.rs`).
pub fn is_in(source: &Source, places: &str) -> bool {
    places.split_whitespace().any(|place| {
        let rest = source.path.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
    })
}

/// Every place where the words of this text follow each other.
pub fn sequence(words: &[Word<'_>], wanted: &str) -> Findings {
    let wanted_source = Source::new("", wanted);
    let wanted_words = wanted_source.words();
    let same = |part: &&[Word<'_>]| {
        let mut pairs = part.iter().zip(&wanted_words);
        pairs.all(|(word, wanted)| word.text == wanted.text)
    };
    let found = words.windows(wanted_words.len()).filter(same);
    found.map(|part| (part[0].line, format!("`{wanted}`"))).collect()
}
