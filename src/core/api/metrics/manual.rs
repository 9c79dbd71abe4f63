//! The list of metrics in the manual, made from the table.

use super::*;
use crate::core::api::view::View;
use crate::core::testing::{NOW, SOURCE, config_of, context};

/// The list stands between these two lines.
const BEGIN: &str =
    "<!-- metrics: made from their table, `UPDATE_DOCS=1 cargo test --lib metrics` writes it -->\n";
const END: &str = "<!-- end of metrics -->";

/// Appends a row for each of these metrics: name, kind, labels, what it means. `source`: the label of the
/// source, if they are of one.
fn list(rows: &[Metric], source: &str, it: &Figures<'_>, out: &mut String) {
    for row in rows {
        let Metric { name, help, read, .. } = row;
        match read {
            ReadMetric::Object(rows) | ReadMetric::MaybeObject(_, rows) => {
                list(rows, source, it, out)
            }
            ReadMetric::Sources(rows) => list(rows, "`source`", it, out),
            _ if name.is_empty() => {}
            _ => {
                let labels = [source.to_string(), labels(row, it)];
                let labels: Vec<_> = labels.into_iter().filter(|it| !it.is_empty()).collect();
                let (own, kind, labels) = (own(name), kind(row), labels.join(", "));
                writeln!(out, "| `{own}{name}` | {kind} | {labels} | {help} |")
                    .expect("a string takes every character");
            }
        }
    }
}

/// The labels of a metric of its own. Of a closed set of values, the values.
fn labels(row: &Metric, it: &Figures<'_>) -> String {
    let closed = |label: &str, values: Vec<&str>| format!("`{label}`: `{}`", values.join("` `"));
    match &row.read {
        ReadMetric::Text(_) => format!("`{}`", row.key),
        ReadMetric::OneOf(words, _) => closed(row.key, words.to_vec()),
        ReadMetric::Each(label, read) => {
            closed(label, read(it).into_iter().map(|(value, _)| value).collect())
        }
        ReadMetric::Durations(read) => {
            let labels = read(it).swap_remove(0).0;
            let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
            pairs.map(|(label, _)| format!("`{label}`")).collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    }
}

#[test]
fn the_list_is_that_of_the_table() {
    let mut cx = context(config_of("binance"), NOW);
    // A request, for the labels of its duration.
    cx.stats.http.durations.note_deferred(0, 200, 1);
    let view = View::new(&cx);
    let figures = Figures { source: Some(SOURCE), ..Figures::new(&view) };
    let mut made = "\n| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_string();
    list(METRICS, "", &figures, &mut made);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs/operations.md");
    let page = std::fs::read_to_string(file).expect("the page");
    let (front, rest) = page.split_once(BEGIN).expect("the page has the mark");
    let (written, back) = rest.split_once(END).expect("the page has the end mark");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let page = format!("{front}{BEGIN}{made}\n{END}{back}");
        return std::fs::write(file, page).expect("the file can be written");
    }
    let why =
        "src/docs/operations.md is out of date: `UPDATE_DOCS=1 cargo test --lib metrics` writes it";
    assert!(written == made + "\n", "{why}");
}
