//! The reference: every key of the file as tables of Markdown, made from the rows that read it.
//!
//! Owns the words around the tables' cells, nothing else. A test holds the documentation to it.

use super::keys::{Key, Kind};
use super::limits::LIMITS;
use super::schema::{
    BOUNDS, CATEGORY, DEMO_KEYS, DEPTH, ECOSYSTEM, HISTORY, MARKET, ORDER_LIMITS, PRECISION, ROOT,
    RULES, SOURCE, TLS,
};
use super::{Config, DemoConfig, SourceConfig};
use crate::record::{Bounds, MarketRules};
use std::fmt::Write as _;

/// Every key of the file: its name, what it may say, its default and what it means.
pub fn reference() -> String {
    let config = Config::default();
    let rules = MarketRules::default();
    let mut out = String::new();
    table("The file", ROOT, Some(&config), &mut out);
    table("`sources[]`", SOURCE, Some(&SourceConfig::of("")), &mut out);
    table("`history`", HISTORY, Some(&config.history), &mut out);
    table(
        "`history.1m`, `history.1h`, `history.1d`",
        DEPTH,
        None,
        &mut out,
    );
    table("`demo`", DEMO_KEYS, Some(&DemoConfig::default()), &mut out);
    table("`categories[]`", CATEGORY, None, &mut out);
    table("`ecosystem`", ECOSYSTEM, Some(&config), &mut out);
    table("`ecosystem.markets[]`", MARKET, None, &mut out);
    table(
        "`ecosystem.markets[].metadata`",
        RULES,
        Some(&rules),
        &mut out,
    );
    table("`metadata.precision`", PRECISION, Some(&rules), &mut out);
    table("`metadata.limits`", ORDER_LIMITS, Some(&rules), &mut out);
    table(
        "`metadata.limits.amount`, `.price`, `.cost`",
        BOUNDS,
        Some(&Bounds::default()),
        &mut out,
    );
    table("`tls`", TLS, Some(&config.tls), &mut out);
    table("`limits`", LIMITS, Some(&config.limits), &mut out);
    out
}

/// One table; the column of defaults is there when there is a value to take them from.
fn table<T>(title: &str, keys: &[Key<T>], defaults: Option<&T>, out: &mut String) {
    let (name, line) = match defaults {
        Some(_) => (" default |", "---|"),
        None => ("", ""),
    };
    let head = format!("### {title}\n\n| key | value |{name} meaning |\n|---|---|{line}---|\n");
    out.push_str(&head);
    for key in keys {
        let default = defaults.map_or(String::new(), |owner| match &key.kind {
            Kind::Part { .. } => " |".to_string(),
            _ => format!(" `{}` |", key.print(owner)).replace(" `\"\"` |", " |"),
        });
        let (name, expected, about) = (key.name, key.expected(), phrase(key.about));
        writeln!(out, "| `{name}` | {expected} |{default} {about} |")
            .expect("a String takes every text");
    }
    out.push('\n');
}

/// What a row says of its key. The limits take theirs from sentences.
fn phrase(about: &str) -> String {
    let about = about.trim().trim_end_matches('.');
    let (first, rest) = about.split_at(about.chars().next().map_or(0, char::len_utf8));
    // "URL" stays as it is.
    match rest.starts_with(char::is_uppercase) {
        true => about.to_string(),
        false => first.to_lowercase() + rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- reference: made from the source, `UPDATE_DOCS=1 cargo test reference` writes it -->\n";
    const END: &str = "<!-- end of reference -->";

    #[test]
    fn the_documentation_holds_the_reference() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs/configuration.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        let begin = page.find(BEGIN).expect("the page has the mark") + BEGIN.len();
        let end = page.find(END).expect("the page has the end mark");
        let expected = format!("\n{}", reference());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let page = format!("{}{expected}{}", &page[..begin], &page[end..]);
            std::fs::write(path, page).expect("the page can be written");
            return;
        }
        assert_eq!(&page[begin..end], expected, "UPDATE_DOCS=1 writes it anew");
    }
}
