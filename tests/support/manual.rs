//! The examples of the manual: blocks of code, commands, and what they print; and the Python that runs some.

use std::process::Command;

/// The text of a page.
#[track_caller]
pub fn page(name: &str) -> String {
    let file = format!("{}/src/docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).unwrap_or_else(|fault| panic!("{file}: {fault}"))
}

/// The blocks of this language.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let mark = format!("```{language}\n");
    let blocks = text.split(&mark).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_string).collect()
}

/// Commands in blocks of `console`, each with the output that is shown below it.
pub fn commands(text: &str) -> Vec<(String, String)> {
    let blocks = blocks(text, "console");
    let commands = blocks.iter().flat_map(|block| block.split("$ ").skip(1));
    let parts = commands.map(|it| it.split_once('\n').unwrap_or((it, "")));
    parts.map(|(command, output)| (command.to_string(), output.to_string())).collect()
}

/// The Python that the examples run with.
pub fn python() -> String {
    std::env::var("PYTHON").unwrap_or("python3".to_string())
}

/// Whether it has this module.
pub fn has_python(module: &str) -> bool {
    let found = Command::new(python()).args(["-c", &format!("import {module}")]).output();
    found.is_ok_and(|it| it.status.success())
}

/// What an example shows, without what changes from one response to the next: every number is `0`, and
/// blanks and line ends are left out.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut letters = text.chars().filter(|it| !it.is_whitespace()).peekable();
    while let Some(letter) = letters.next() {
        let in_number = |it: &char| it.is_ascii_digit() || *it == '.';
        let begins = letter == '-' && letters.peek().is_some_and(char::is_ascii_digit);
        if begins || letter.is_ascii_digit() {
            while letters.next_if(in_number).is_some() {}
            shape.push('0');
        } else {
            shape.push(letter);
        }
    }
    shape
}

/// Whether a text is as the example shows it, where `...` is anything.
pub fn matches(example: &str, text: &str) -> bool {
    let text = shape(text);
    let mut rest = text.as_str();
    for (at, part) in example.split("...").map(shape).enumerate() {
        let Some(begin) = rest.find(&part).filter(|begin| at > 0 || *begin == 0) else {
            return false;
        };
        rest = &rest[begin + part.len()..];
    }
    rest.is_empty() || example.trim_end().ends_with("...")
}
