//! The form of log lines: an event and its values, under a target.

use super::*;

/// Log lines of another form, as `file first-word`: the line is made elsewhere and tried there, or people
/// and scripts wait for it.
const FREE_LINES: [&str; 7] = [
    "src/core/api/health/log.rs {line}",
    "src/core/clients/access_log.rs {line}",
    "src/core/event.rs demo",
    "src/core/event.rs ecosystem",
    "src/core/event.rs listening",
    "src/core/sources/failover.rs {line}",
    "src/main.rs {warning}",
];

/// Keys of log lines whose values are free text.
const FREE_TEXT: [&str; 3] = ["error", "message", "what"];

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
        found.map(|six| (six[0].line, "no target".to_string())).collect()
    }
    finds(
        rule,
        "src/a.rs",
        "log::info!(target: NET, \"a\");\nlog::warn!(\"b\");\nlog::debug!(\n  \"{c}\");\nlog::max_level();",
        &[2, 3],
    );
    holds(rule, "src");
}

#[test]
fn every_log_line_is_an_event_and_its_values() {
    let check = |line: &str, expected: &[&str]| {
        let text = format!("fn f() {{\n log::info!(target: NET, {line});\n}}");
        let found = odd_log_lines(&made_up(&[("src/a.rs", &text)]));
        let found: Vec<_> = found.iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(found, expected, "{line}");
    };
    check("\"not used \\\n    path={path}\"", &[]);
    check(r#""cannot be read: {error}""#, &["src/a.rs:2: `read:` is no event"]);
    check(r#""source={id}""#, &["src/a.rs:2: no event"]);
    check(r#""moved from= to={b}""#, &["src/a.rs:2: `from=` has no value"]);
    check(r#""moved maxRows={rows}""#, &["src/a.rs:2: `maxRows` is no key"]);
    check(r#""load failed error={error}""#, &["src/a.rs:2: `error` is not quoted"]);
    let sources = Source::all_below("src");
    none(except(&odd_log_lines(sources), FREE_LINES.map(str::to_string)));
}

/// Log lines that are not `event key=value ...`, as `file first-word`.
fn odd_log_lines(sources: &[Source]) -> Vec<(String, String)> {
    let mut odd = Vec::new();
    for source in sources {
        let words = source.words();
        let is_begin = |four: &[Word<'_>]| {
            four[0].text == "log" && four[1].text == "::" && four[3].text == "!"
        };
        let begins = words.windows(4).enumerate();
        for (at, _) in begins.filter(|(_, four)| is_begin(four)) {
            let end = words[at..].iter().position(|word| word.text == ";");
            let end = end.map_or(words.len(), |end| at + end);
            let literals = words[at..end].iter().take_while(|word| word.text != "}");
            let Some(line) = literals.clone().find(|word| word.text.starts_with('"')) else {
                continue;
            };
            // A line that goes on in the next line of the code begins there behind the spaces.
            let text = line.text[1..line.text.len() - 1].split("\\\n");
            let text: String = text.map(str::trim_start).collect();
            let is_quoted = literals.clone().any(|word| word.text == "quoted");
            if let Some(what) = odd_log_line(&text, is_quoted) {
                let first = text.split(' ').next().unwrap_or_default();
                let place = format!("{}:{}", source.path, words[at].line + 1);
                odd.push((format!("{} {first}", source.path), format!("{place}: {what}")));
            }
        }
    }
    odd
}

/// What is wrong with a log line. `is_quoted`: its values go through `quoted`.
fn odd_log_line(text: &str, is_quoted: bool) -> Option<String> {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        !name.is_empty() && name.chars().all(is_plain)
    };
    // What stands between quotes is one value.
    let parts = text.split("\\\"").enumerate();
    let text: String = parts.map(|(at, part)| if at % 2 == 1 { "\"\"" } else { part }).collect();
    let mut words = text.split(' ').peekable();
    let mut events = 0;
    while let Some(word) = words.next_if(|word| !word.contains('=')) {
        events += 1;
        if !is_name(word) && word != "{event}" {
            return Some(format!("`{word}` is no event"));
        }
    }
    if events == 0 {
        return Some("no event".to_string());
    }
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_safe = is_quoted || value.starts_with('"');
        let what = match () {
            () if value.is_empty() => format!("`{word}` has no value"),
            () if !is_name(key) => format!("`{key}` is no key"),
            () if FREE_TEXT.contains(&key) && !is_safe => format!("`{key}` is not quoted"),
            () => continue,
        };
        return Some(what);
    }
    None
}
