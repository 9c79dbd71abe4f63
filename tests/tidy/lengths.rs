//! How long lines, functions and files may get.

use super::*;

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
    finds(rule, "src/a.rs", &long, &[]);
    finds(rule, "src/a.rs", &format!("a\n{long}a\n//! https://{long}"), &[2]);
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
    none(except(&long_files(sources), LONG_FILES.map(str::to_string)));
}

fn long_files(sources: &[Source]) -> Vec<(String, String)> {
    let lines = |source: &Source| source.is_test.iter().filter(|is_test| !**is_test).count();
    let long = sources.iter().filter(|source| lines(source) > MOST_LINES);
    long.map(|source| {
        (source.path.clone(), format!("{} lines of at most {MOST_LINES}", lines(source)))
    })
    .collect()
}

#[test]
fn no_function_is_too_long() {
    let most = "    a;\n".repeat(MOST_FUNCTION_LINES - 2);
    let check = |text: String, expected: &[&str]| {
        let sources = made_up(&[("src/a.rs", &text)]);
        let names: Vec<_> = long_functions(&sources).into_iter().map(|(key, _)| key).collect();
        assert_eq!(names, expected, "{text}");
    };
    check(format!("fn f() {{\n{most}}}\n"), &[]);
    check(format!("\nfn f(g: fn(u8)) {{\n{most}{{ \"}}\" }}\n}}\nfn g() {{ }}\n"), &["src/a.rs f"]);
    check(format!("trait T {{\nfn f() -> [u8; 2];\n{most}\n\n}}\n"), &[]);
    let sources = Source::all_below("src");
    none(except(&long_functions(sources), LONG_FUNCTIONS.map(str::to_string)));
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
                    format!("{lines} lines of at most {MOST_FUNCTION_LINES}"),
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
