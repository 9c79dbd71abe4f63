//! The examples of the manual: commands, and what they print.

/// Commands in blocks of `console`, each with the output that is shown below it.
pub fn commands(text: &str) -> Vec<(String, String)> {
    let blocks = text.split("```console\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let commands = blocks.flat_map(|block| block.split("$ ").skip(1));
    let parts = commands.map(|it| it.split_once('\n').unwrap_or((it, "")));
    parts.map(|(command, output)| (command.to_string(), output.to_string())).collect()
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
