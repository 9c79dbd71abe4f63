//! The reference: flags and keys as tables of Markdown, made from the tables that read them.
//!
//! A test checks that the documentation holds it.

use crate::config::flags::FLAGS;
use crate::config::schema::Config;
use crate::config::tests::describe::is_made;
use crate::config::values::{FileObject as _, Visit};

const FLAGS_HEAD: &str = "\
### The command line

| flag | variable | key | meaning |
|---|---|---|---|
";

/// Every flag, and every key of the file: its name, what it may be, its default and what it means.
fn reference() -> String {
    let mut out = FLAGS_HEAD.to_string();
    for flag in FLAGS {
        let name = format!("{} {}", flag.name, flag.value);
        let [name, variable, key] = [name.trim_end(), flag.variable, flag.key].map(code);
        let about = flag.about.replace('\n', " ").replace('[', "\\[");
        out += &format!("| {name} | {variable} | {key} | {about} |\n");
    }
    let mut tables = Vec::new();
    add_tables("The file".to_string(), "", &mut tables, &mut |visit| {
        Config::default().keys(visit);
    });
    // Equal neighbours are one table.
    tables.dedup_by(|(next, rows), (title, others)| {
        let is_same = rows == others;
        if is_same {
            *title += &format!(", {next}");
        }
        is_same
    });
    for (title, rows) in tables {
        out += &format!(
            "\n### {title}\n\n| key | value | default | meaning |\n|---|---|---|---|\n{rows}"
        );
    }
    out + "\n"
}

/// Adds the table of the object at a path, and those of the objects in it: title and rows.
fn add_tables(
    title: String,
    path: &str,
    tables: &mut Vec<(String, String)>,
    keys: &mut dyn FnMut(&mut Visit<'_>),
) {
    let (at, mut rows) = (tables.len(), String::new());
    tables.push((title, String::new()));
    keys(&mut |name, about, value| {
        let (expected, default) = (value.expected(), value.print());
        // A default of several lines is left out: the keys in it have a table of their own.
        let is_short = !default.contains('\n') && default != "\"\"";
        let default = code(if is_short { &default } else { "" });
        let (key, about) = (code(name), about.trim());
        rows += &format!("| {key} | {expected} | {default} | {about} |\n");
        if let Some(suffix) = value.inner() {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{name}{suffix}");
            add_tables(code(&path), &path, tables, &mut |visit| value.visit(visit));
        }
    });
    tables[at].1 = rows;
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{text}`"),
    }
}

#[test]
fn the_documentation_holds_the_reference() {
    let made = format!("\n{}", reference());
    is_made("src/docs/configuration.md", Some("reference"), &made);
}
