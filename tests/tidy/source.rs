//! A file of Rust as the style test reads it: its lines, its tokens, and which lines are tests. A word
//! in a comment or in a text is no token.

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// One file.
pub struct Source {
    /// From the root of the repository, with `/`: `src/market/mod.rs`.
    pub path: String,
    /// As written.
    pub lines: Vec<String>,
    /// Whether the line belongs to something under `#[cfg(test)]`.
    pub is_test: Vec<bool>,
    tokens: Vec<(usize, String)>,
}

/// The trees that the rules look at, each read once.
static TREES: Mutex<BTreeMap<String, &'static [Source]>> = Mutex::new(BTreeMap::new());

/// One word of code and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// Line, counted from 0.
    pub line: usize,
    /// An identifier, a literal as written, `::`, or a single other character.
    pub text: &'a str,
}

impl Source {
    /// A file with this text.
    #[track_caller]
    pub fn new(path: &str, text: &str) -> Source {
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let mut source = Source {
            path: path.to_string(),
            is_test: vec![false; lines.len()],
            lines,
            tokens: Vec::new(),
        };
        match text.parse() {
            Ok(stream) => source.read(stream),
            Err(error) => panic!("{path}: {error}"),
        }
        source
    }

    /// Every Rust file below a directory of the repository, sorted by path. Files that only
    /// exist under `#[cfg(test)] mod name;` are tests from their first line to their last.
    pub fn all_below(dir: &str) -> &'static [Source] {
        let mut trees = TREES.lock().expect("no reader panics while it holds the lock");
        trees.entry(dir.to_string()).or_insert_with(|| Source::read_below(dir).leak())
    }

    fn read_below(dir: &str) -> Vec<Source> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = Vec::new();
        collect(&root.join(dir), &mut paths);
        paths.sort();
        let read = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).expect("a listed file is readable");
            let shown = path.strip_prefix(root).expect("it was found below the root");
            Source::new(&shown.to_string_lossy().replace('\\', "/"), &text)
        };
        let mut sources: Vec<Source> = paths.iter().map(read).collect();
        let homes: Vec<String> = sources.iter().flat_map(Source::test_files).collect();
        for source in &mut sources {
            if homes.iter().any(|home| source.path.starts_with(home.as_str())) {
                source.is_test.fill(true);
            }
        }
        sources
    }

    /// The words of code in order; those of tests left out.
    pub fn words(&self) -> Vec<Word<'_>> {
        self.all_words(false)
    }

    fn all_words(&self, of_tests: bool) -> Vec<Word<'_>> {
        let tokens = self.tokens.iter();
        let wanted = tokens.filter(|(line, _)| self.is_test[*line] == of_tests);
        wanted.map(|(line, text)| Word { line: *line, text }).collect()
    }

    /// Begins of the paths of files named by `#[cfg(test)] mod name;`.
    fn test_files(&self) -> Vec<String> {
        let home = match self.path.rsplit_once('/') {
            Some((dir, "mod.rs" | "lib.rs" | "main.rs")) => dir.to_string(),
            _ => self.path.trim_end_matches(".rs").to_string(),
        };
        let words = self.all_words(true);
        let named = words.windows(3).filter(|three| three[0].text == "mod" && three[2].text == ";");
        let files = |name: &str| [format!("{home}/{name}.rs"), format!("{home}/{name}/")];
        named.flat_map(|three| files(three[1].text)).collect()
    }

    fn read(&mut self, stream: TokenStream) {
        let mut tokens = stream.into_iter().peekable();
        // Where the item under `#[cfg(test)]` begins that is being read.
        let mut test_from = None;
        let mut is_attribute = false;
        while let Some(token) = tokens.next() {
            let line = token.span().start().line - 1;
            let ends = match &token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            };
            match token {
                TokenTree::Group(group) => {
                    if is_attribute && is_cfg_test(&group) {
                        test_from.get_or_insert(line);
                    }
                    let (open, close) = signs(group.delimiter());
                    self.push(line, open);
                    self.read(group.stream());
                    let end = group.span_close().end().line - 1;
                    self.push(end, close);
                    self.mark(test_from.filter(|_| ends).unwrap_or(end + 1), end);
                }
                TokenTree::Punct(punct)
                    if punct.as_char() == ':' && punct.spacing() == Spacing::Joint =>
                {
                    tokens.next();
                    self.push(line, "::");
                }
                TokenTree::Punct(punct) => self.push(line, &punct.as_char().to_string()),
                other => self.push(line, &other.to_string()),
            }
            let last = self.tokens.last().map_or("", |(_, text)| text.as_str());
            is_attribute = last == "#" || is_attribute && last == "!";
            if ends {
                self.mark(test_from.take().unwrap_or(line + 1), line);
            }
        }
        // `#![cfg(test)]`
        self.mark(test_from.unwrap_or(usize::MAX), self.lines.len().saturating_sub(1));
    }

    fn push(&mut self, line: usize, text: &str) {
        if !text.is_empty() {
            self.tokens.push((line, text.to_string()));
        }
    }

    fn mark(&mut self, from: usize, to: usize) {
        for line in from..=to {
            self.is_test[line] = true;
        }
    }
}

fn signs(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

fn is_cfg_test(attribute: &Group) -> bool {
    let text = attribute.stream().to_string();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    words[0] == "cfg" && words.contains(&"test") && !words.contains(&"not")
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
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

#[test]
fn lines_under_cfg_test_are_known() {
    let check = |text: &str, expected: &str| {
        let source = Source::new("src/a.rs", text);
        let marks: String = source.is_test.iter().map(|t| if *t { 't' } else { '.' }).collect();
        assert_eq!(marks, expected, "{text}");
    };
    check("#[cfg(all(test, unix))]\n#[allow(x)]\nfn f(a: [u8; 2]) {\n}\nb", "tttt.");
    check("#[cfg(not(test))]\nfn f() {}\n#[cfg(unix)]\nfn g() {}", "....");
    let source = Source::new("src/http/mod.rs", "#[cfg(test)]\nmod tests;\nmod body;");
    assert_eq!(source.test_files(), ["src/http/tests.rs", "src/http/tests/"]);
}
