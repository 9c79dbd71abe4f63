//! The list of metrics in the manual, made from the table.

use super::*;
use crate::config::tests::describe::is_made;
use crate::core::api::view::View;
use crate::core::testing::{NOW, SOURCE, config_of, context};

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
    is_made("src/docs/operations.md", Some("metrics"), &(made + "\n"));
}
