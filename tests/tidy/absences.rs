//! What is absent where: words that must not follow each other in the code.

use super::*;

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
            // In a comment, in a text, within a longer word and in tests it may stand.
            let part = word.replace(|c: char| !c.is_alphanumeric(), "");
            let text = format!(
                "//! {word}\nlet a{part}a = \"{word}\";\nf(a {word}\n);\n#[cfg(test)]\nuse a {{ {word} }}"
            );
            let free = free.split_whitespace().map(|free| (free, &[][..], &[3][..]));
            for (place, inside, beside) in free.chain([(within, &[3][..], &[][..])]) {
                let place = place.trim_end_matches(".rs");
                finds(rule, &format!("{place}.rs"), &text, inside);
                finds(rule, &format!("{place}work.rs"), &text, beside);
            }
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
