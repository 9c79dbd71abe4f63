//! How long lines, functions and files may get.

use super::*;

/// Columns of a line. `rustfmt` keeps code within 100; this is for comments and texts.
const MOST_COLUMNS: usize = 110;

/// Lines of a file without its tests.
const MOST_LINES: usize = 400;

/// Lines of a function, from its name to its closing brace.
const MOST_FUNCTION_LINES: usize = 70;

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
    fn rule(source: &Source) -> Findings {
        let lines = source.is_test.iter().filter(|is_test| !**is_test).count();
        let is_long = (lines > MOST_LINES).then(|| (0, format!("{lines} lines")));
        is_long.into_iter().collect()
    }
    let full = "a\n".repeat(MOST_LINES);
    finds(rule, "src/a.rs", &format!("{full}#[cfg(test)]\nmod t {{\n{full}}}\n"), &[]);
    finds(rule, "src/a.rs", &format!("{full}a\n"), &[1]);
    holds(rule, "src");
}

#[test]
fn no_function_is_too_long() {
    fn rule(source: &Source) -> Findings {
        let words = source.words();
        let begins = words.windows(2).enumerate().filter(|(_, two)| {
            let is_name = |c: char| c == '_' || c.is_alphabetic();
            two[0].text == "fn" && two[1].text.starts_with(is_name)
        });
        let lines = begins.map(|(at, two)| (two[0].line, function_lines(&words[at..])));
        let long = lines.filter(|(_, lines)| *lines > MOST_FUNCTION_LINES);
        long.map(|(line, lines)| (line, format!("a function of {lines} lines"))).collect()
    }
    let most = "    a;\n".repeat(MOST_FUNCTION_LINES - 2);
    let check = |text: String, expected: &[usize]| finds(rule, "src/a.rs", &text, expected);
    check(format!("fn f() {{\n{most}}}\n"), &[]);
    check(format!("\nfn f(g: fn(u8)) {{\n{most}{{ \"}}\" }}\n}}\nfn g() {{ }}\n"), &[2]);
    check(format!("trait T {{\nfn f() -> [u8; 2];\n{most}\n\n}}\n"), &[]);
    holds(rule, "src");
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
