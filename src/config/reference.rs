//! The reference: flags and keys as tables of Markdown, made from the rows that read them.
//!
//! A test holds the documentation to it.

use super::flags::FLAGS;
use super::keys::{Keys, Object as _};
use super::schema::Config;

const FLAGS_HEAD: &str = "\
### The command line

| flag | variable | key | meaning |
|---|---|---|---|
";

/// The title of a table, and its rows.
type Table = (String, String);

/// Every flag, and every key of the file: its name, what it may be, its default and what it means.
pub fn reference() -> String {
    let mut out = FLAGS_HEAD.to_string();
    for flag in FLAGS {
        let name = format!("{} {}", flag.name, flag.value);
        let [name, variable, key] = [name.trim_end(), flag.variable, flag.key].map(code);
        let about = flag.about.replace('\n', " ");
        out += &format!("| {name} | {variable} | {key} | {about} |\n");
    }
    let (mut config, mut tables) = (Config::default(), Vec::new());
    collect("", &mut |visitor| config.keys(visitor), &mut tables);
    // Neighbours that say the same are one table.
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

/// Appends the table of an object, then those of the objects in it.
fn collect(path: &str, object: &mut Keys<'_>, tables: &mut Vec<Table>) {
    let at = tables.len();
    let title = if path.is_empty() {
        "The file".to_string()
    } else {
        code(path)
    };
    tables.push((title, String::new()));
    object(&mut |key| {
        let (expected, default) = (key.place.expected(), key.place.print());
        // What takes several lines has a table of its own.
        let is_short = !default.contains('\n') && default != "\"\"";
        let default = code(if is_short { &default } else { "" });
        let (name, about) = (code(key.name), key.about.trim());
        tables[at].1 += &format!("| {name} | {expected} | {default} | {about} |\n");
        if let Some(suffix) = key.place.inner() {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{}{suffix}", key.name);
            collect(&path, &mut |visitor| key.place.visit(visitor), tables);
        }
    });
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- reference: made from the source, `UPDATE_DOCS=1 cargo test reference` writes it -->\n";
    const END: &str = "<!-- end of reference -->";

    #[test]
    fn the_documentation_holds_the_reference() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
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
