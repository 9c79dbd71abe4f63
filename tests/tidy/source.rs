//! A file of Rust as the style test reads it: its lines, the same lines without comments and
//! texts, and which of them are tests. No parser, just enough of a lexer not to be fooled by a
//! word in a comment, a brace in a text or a quote in a lifetime.

use std::path::Path;

/// One file.
pub struct Source {
    /// From the root of the repository, with `/`: `src/market/mod.rs`.
    pub path: String,
    /// As written.
    pub lines: Vec<String>,
    /// The same with comments and the insides of texts and characters blanked, and as long.
    pub code: Vec<String>,
    /// Whether the line belongs to something under `#[cfg(test)]`.
    pub is_test: Vec<bool>,
}

/// One word of code and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// Line, counted from 0.
    pub line: usize,
    /// An identifier, a number, `::`, or a single other character.
    pub text: &'a str,
}

impl Source {
    /// A file with this text.
    pub fn new(path: &str, text: &str) -> Source {
        let code = blanked(text);
        let is_test = tests_of(&code);
        let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
        let (lines, code) = (lines(text), lines(&code));
        Source {
            path: path.to_string(),
            lines,
            code,
            is_test,
        }
    }

    /// Every Rust file below a directory of the repository, sorted by path. Files that only
    /// exist under `#[cfg(test)] mod name;` are tests from their first line to their last.
    pub fn all_below(dir: &str) -> Vec<Source> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = Vec::new();
        collect(&root.join(dir), &mut paths);
        paths.sort();
        let read = |path: &std::path::PathBuf| {
            let text = std::fs::read_to_string(path).expect("a listed file is readable");
            let shown = path
                .strip_prefix(root)
                .expect("it was found below the root");
            Source::new(&shown.to_string_lossy().replace('\\', "/"), &text)
        };
        let mut sources: Vec<Source> = paths.iter().map(read).collect();
        let homes: Vec<String> = sources.iter().flat_map(Source::test_files).collect();
        for source in &mut sources {
            if homes
                .iter()
                .any(|home| source.path.starts_with(home.as_str()))
            {
                source.is_test.fill(true);
            }
        }
        sources
    }

    /// The words of code in order; those of tests left out.
    pub fn words(&self) -> Vec<Word<'_>> {
        let mut words = Vec::new();
        for (line, code) in self.code.iter().enumerate() {
            if !self.is_test[line] {
                split_words(line, code, &mut words);
            }
        }
        words
    }

    /// Begins of the paths of files named by `#[cfg(test)] mod name;`.
    fn test_files(&self) -> Vec<String> {
        let home = match self.path.rsplit_once('/') {
            Some((dir, "mod.rs" | "lib.rs" | "main.rs")) => dir.to_string(),
            _ => self.path.trim_end_matches(".rs").to_string(),
        };
        let tests = self
            .code
            .iter()
            .zip(&self.is_test)
            .filter(|(_, is_test)| **is_test);
        let named = tests.filter_map(|(code, _)| {
            let name = code.trim().strip_suffix(';')?.rsplit_once("mod ")?.1.trim();
            Some([format!("{home}/{name}.rs"), format!("{home}/{name}/")])
        });
        named.flatten().collect()
    }
}

fn collect(dir: &Path, into: &mut Vec<std::path::PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The text with blanks for every byte of a comment or inside of a text or character; lines stay.
fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let in_word = at > 0 && is_word(bytes[at - 1]);
        let length = match rest[0] {
            b'/' if rest.starts_with(b"//") => line_length(rest),
            b'/' if rest.starts_with(b"/*") => comment_length(rest),
            b'"' => text_length(rest),
            b'r' if !in_word || after_prefix(bytes, at) => raw_text_length(rest),
            b'\'' => char_length(rest),
            _ => 0,
        };
        if length == 0 {
            out.push(rest[0]);
        }
        // The quotes of a text stay, so that its place in the code can be seen.
        let quoted = rest[0] != b'/' && length > 1;
        for (n, byte) in rest[..length].iter().enumerate() {
            let edge = quoted && (n == 0 || n + 1 == length);
            out.push(if *byte == b'\n' || edge { *byte } else { b' ' });
        }
        at += length.max(1);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether the `r` at `at` follows a lone `b` or `c`: `br"..."`, `cr"..."`.
fn after_prefix(bytes: &[u8], at: usize) -> bool {
    let prefix = at > 0 && matches!(bytes[at - 1], b'b' | b'c');
    prefix && (at < 2 || !is_word(bytes[at - 2]))
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(rest.len())
}

/// Comments nest.
fn comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn text_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of `r"..."` or `r#"..."#`; 0 for any other word that begins with `r`.
fn raw_text_length(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let inside = &rest[2 + hashes..];
    let end = inside.windows(close.len()).position(|part| part == close);
    end.map_or(rest.len(), |end| 2 + hashes + end + close.len())
}

/// Length of a character; 0 for a lifetime.
fn char_length(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let end = rest.iter().skip(3).position(|byte| *byte == b'\'');
        return end.map_or(0, |end| end + 4);
    }
    let text = String::from_utf8_lossy(&rest[1..rest.len().min(6)]).into_owned();
    let Some(first) = text.chars().next() else {
        return 0;
    };
    let closed = rest.get(1 + first.len_utf8()) == Some(&b'\'');
    if closed { 2 + first.len_utf8() } else { 0 }
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

fn split_words<'a>(line: usize, code: &'a str, into: &mut Vec<Word<'a>>) {
    let bytes = code.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let length = match bytes[at] {
            byte if is_word(byte) => word_length(&bytes[at..]),
            b':' if bytes[at..].starts_with(b"::") => 2,
            _ => 1,
        };
        if !bytes[at].is_ascii_whitespace() {
            into.push(Word {
                line,
                text: &code[at..at + length],
            });
        }
        at += length;
    }
}

/// A number takes its point and places with it; `1..2` and `pair.0.1` have none.
fn word_length(rest: &[u8]) -> usize {
    let length = |rest: &[u8]| rest.iter().take_while(|byte| is_word(**byte)).count();
    let whole = length(rest);
    let is_number = rest[0].is_ascii_digit();
    let places =
        rest.get(whole) == Some(&b'.') && rest.get(whole + 1).is_some_and(u8::is_ascii_digit);
    if is_number && places {
        whole + 1 + length(&rest[whole + 1..])
    } else {
        whole
    }
}

/// For each line whether it lies in an item under `#[cfg(test)]`.
fn tests_of(code: &str) -> Vec<bool> {
    let mut is_test = vec![false; code.lines().count()];
    if code.contains("#![cfg(test)]") {
        is_test.fill(true);
    }
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(") {
        let begin = from + found;
        let attribute = code[begin..]
            .find(']')
            .map_or(code.len(), |end| begin + end + 1);
        let mut words = Vec::new();
        split_words(0, &code[begin..attribute], &mut words);
        let has = |text: &str| words.iter().any(|word| word.text == text);
        from = attribute;
        if has("test") && !has("not") {
            from = item_end(code, attribute);
            let line = |at: usize| code[..at].matches('\n').count();
            let last = line(from.saturating_sub(1)).min(is_test.len() - 1);
            is_test[line(begin)..=last].fill(true);
        }
    }
    is_test
}

/// Where the item that begins at `from`, attributes first, ends: behind its `;` or closing brace.
fn item_end(code: &str, from: usize) -> usize {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b'{' => curly += 1,
            b'}' => {
                curly -= 1;
                if curly <= 0 {
                    return at + 1;
                }
            }
            b';' if round == 0 && curly == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn comments_texts_and_characters_are_blanked() {
    let check = |text: &str, expected: &str| assert_eq!(blanked(text), expected, "{text}");
    check("a // b\nc", "a     \nc");
    check("a /* b /* c */ d */ e", "a                   e");
    check(
        r#"f("a\"{", b'{', '\'', "x")"#,
        r#"f("    ", b' ', '  ', " ")"#,
    );
    check(
        "r#\"a\"b\"# + br\"c\\\" + rest",
        "r      # + br   \" + rest",
    );
    check("fn f<'a>(x: &'a str) -> '{'", "fn f<'a>(x: &'a str) -> ' '");
    check("'\\u{1F600}' 'é' 'a", "'         ' '  ' 'a");
    check("\"two\nlines\"", "\"   \n     \"");
}

#[test]
fn words_are_identifiers_numbers_and_signs() {
    let source = Source::new(
        "src/a.rs",
        "use crate::x; 1.5+2..3; pair.0.1; f(1.max(2))\n",
    );
    let words: Vec<&str> = source.words().iter().map(|word| word.text).collect();
    let expected = "use crate :: x ; 1.5 + 2 . . 3 ; pair . 0.1 ; f ( 1 . max ( 2 ) )";
    assert_eq!(words.join(" "), expected);
}

#[test]
fn lines_under_cfg_test_are_known() {
    let check = |text: &str, expected: &str| {
        let source = Source::new("src/a.rs", text);
        let marks: String = source
            .is_test
            .iter()
            .map(|t| if *t { 't' } else { '.' })
            .collect();
        assert_eq!(marks, expected, "{text}");
    };
    check("a\n#[cfg(test)]\nmod tests {\n fn f() { }\n}\nb", ".tttt.");
    check("#[cfg(test)]\nuse a::{b, c};\nfn f() {}", "tt.");
    check(
        "#[cfg(all(test, unix))]\n#[allow(x)]\nfn f(a: [u8; 2]) {\n}\nb",
        "tttt.",
    );
    check(
        "#[cfg(not(test))]\nfn f() {}\n#[cfg(unix)]\nfn g() {}",
        "....",
    );
    check("// #[cfg(test)]\nfn f() {}", "..");
    check("#![cfg(test)]\nfn f() {}", "tt");
    let source = Source::new("src/http/mod.rs", "#[cfg(test)]\nmod tests;\nmod body;");
    assert_eq!(
        source.test_files(),
        ["src/http/tests.rs", "src/http/tests/"]
    );
}
