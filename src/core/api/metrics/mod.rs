//! `/api/v1/metrics` in JSON, and the same figures at `/metrics` in the text format of Prometheus
//! ("Exposition formats", text version 0.0.4). Both are made from one table. To add a metric: see [`table`].
//! Tests make the schema of the JSON from the table, for `/openapi.json`, and the list in the manual.

mod figures;
#[cfg(test)]
mod manual;
mod table;

use super::outcome::Outcome;
use super::request::ApiRequest;
use super::view::View;
use crate::durations::Histogram;
use crate::http::{Cache, ContentType, Head, Responder};
use crate::json::{Array, Object, Ready};
use crate::time::UnixMs;
use figures::Figures;
use std::fmt::{Display, Formatter, Write};
use table::{METRICS, Metric, ReadMetric};

/// The figures as JSON.
pub fn json(_: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let mut body = Vec::with_capacity(2 * 1024);
    write_rows(Object::open(&mut body), METRICS, &Figures::new(view));
    send(ContentType::Json, &body, responder)
}

/// The figures as Prometheus text.
pub fn prometheus(_: &ApiRequest<'_>, view: &View<'_>, responder: &mut Responder<'_>) -> Outcome {
    let mut page = Page(String::with_capacity(8 * 1024));
    page.rows(METRICS, &[Figures::new(view)]);
    send(ContentType::PROMETHEUS, page.0.as_bytes(), responder)
}

fn send(content_type: ContentType, body: &[u8], responder: &mut Responder<'_>) -> Outcome {
    let head = Head { content_type, ..Head::json(None, Cache::NoStore) };
    // To make the body takes eight times as long as to copy it.
    responder.weigh(8 * body.len());
    responder.send(&head, body);
    Ok(None)
}

/// The figure of a row.
enum Figure<'a> {
    Count(u64),
    Flag(bool),
    /// Milliseconds.
    Millis(u64),
    /// Microseconds.
    Micros(u64),
    Text(&'a str),
}

impl ReadMetric {
    /// The figure. `None` if there is none, and for a row of several.
    fn figure<'a>(&self, it: &Figures<'a>) -> Option<Figure<'a>> {
        let since_epoch = |time: UnixMs| Figure::Millis(time.0.unsigned_abs());
        Some(match self {
            ReadMetric::Count(read) => Figure::Count(read(it)),
            ReadMetric::MaybeCount(read) => Figure::Count(read(it)?),
            ReadMetric::Flag(read) => Figure::Flag(read(it)),
            ReadMetric::Time(read) => since_epoch(read(it)),
            ReadMetric::MaybeTime(read) => since_epoch(read(it)?),
            ReadMetric::Millis(read) => Figure::Millis(read(it)),
            ReadMetric::MaybeMillis(read) => Figure::Millis(read(it)?),
            ReadMetric::Micros(read) => Figure::Micros(read(it)),
            ReadMetric::Text(read) => Figure::Text(read(it)),
            ReadMetric::MaybeText(read) => Figure::Text(read(it)?),
            ReadMetric::OneOf(_, read) => Figure::Text(read(it)),
            _ => return None,
        })
    }
}

/// The figures of each source.
fn of_sources<'a>(it: &Figures<'a>) -> impl Iterator<Item = Figures<'a>> {
    let it = *it;
    it.view.status.running().map(move |(id, _)| Figures { source: Some(id), ..it })
}

fn write_rows(mut object: Object<'_>, rows: &[Metric], it: &Figures<'_>) {
    for row in rows.iter().filter(|row| !row.key.is_empty()) {
        match &row.read {
            ReadMetric::Object(rows) => write_rows(object.object(row.key), rows, it),
            ReadMetric::MaybeObject(is_there, rows) if is_there(it) => {
                write_rows(object.object(row.key), rows, it);
            }
            ReadMetric::Sources(rows) => {
                let mut array = Array::open(object.key(row.key));
                of_sources(it).for_each(|it| write_rows(Object::open(array.item()), rows, &it));
                array.close();
            }
            ReadMetric::Each(_, read) => {
                let mut inner = object.object(row.key);
                read(it).into_iter().for_each(|(value, count)| inner.put(value, count));
                inner.close();
            }
            read => match read.figure(it) {
                None => object.put(row.key, None::<&str>),
                Some(Figure::Count(number) | Figure::Millis(number)) => object.put(row.key, number),
                Some(Figure::Flag(flag)) => object.put(row.key, flag),
                Some(Figure::Text(text)) => object.put(row.key, text),
                Some(Figure::Micros(micros)) => {
                    let text = format!("{}.{:03}", micros / 1000, micros % 1000);
                    let short = text.strip_suffix("00").or(text.strip_suffix('0'));
                    object.put(row.key, Ready(short.unwrap_or(&text).as_bytes()));
                }
            },
        }
    }
    object.close();
}

/// The type of a metric for Prometheus. The name of a counter ends with `_total`, and no other does.
fn kind(row: &Metric) -> &'static str {
    match row.read {
        ReadMetric::Durations(_) => "histogram",
        _ if row.name.ends_with("_total") => "counter",
        _ => "gauge",
    }
}

/// What the name of a metric begins with: nothing, if it is one that every process has.
fn own(name: &str) -> &'static str {
    if name.starts_with("process_") { "" } else { "marketd_" }
}

/// The text for Prometheus.
struct Page(String);

impl Page {
    /// Writes the families of these rows, with a sample of each of the subjects.
    fn rows(&mut self, rows: &[Metric], subjects: &[Figures<'_>]) {
        for row in rows {
            match &row.read {
                ReadMetric::Object(rows) => self.rows(rows, subjects),
                ReadMetric::MaybeObject(is_there, rows) if subjects.iter().all(is_there) => {
                    self.rows(rows, subjects);
                }
                ReadMetric::MaybeObject(..) => {}
                ReadMetric::Sources(rows) => {
                    let sources: Vec<_> = subjects.iter().flat_map(of_sources).collect();
                    self.rows(rows, &sources);
                }
                _ if row.name.is_empty() => {}
                _ => {
                    let Metric { name, help, .. } = row;
                    let (own, kind) = (own(name), kind(row));
                    self.line(format_args!("# HELP {own}{name} {help}"));
                    self.line(format_args!("# TYPE {own}{name} {kind}"));
                    subjects.iter().for_each(|it| self.samples(row, it));
                }
            }
        }
    }

    fn samples(&mut self, row: &Metric, it: &Figures<'_>) {
        // The id of a source is `[a-z0-9-]`, which needs no escapes. The other labels are ours.
        let source =
            (it.source).map_or(String::new(), |_| format!("source=\"{}\"", it.source().id));
        match &row.read {
            ReadMetric::OneOf(words, read) => {
                let found = read(it);
                for word in *words {
                    let label = format!("{}=\"{word}\"", row.key);
                    self.sample(row.name, &[&source, &label], u8::from(*word == found));
                }
            }
            ReadMetric::Each(label, read) => {
                for (value, count) in read(it) {
                    let label = format!("{label}=\"{value}\"");
                    self.sample(row.name, &[&source, &label], count);
                }
            }
            ReadMetric::Durations(read) => {
                for (labels, histogram) in read(it) {
                    self.histogram(row.name, &[&source, &labels], histogram);
                }
            }
            read => match read.figure(it) {
                None => {}
                Some(Figure::Text(text)) => {
                    let label = format!("{}=\"{text}\"", row.key);
                    self.sample(row.name, &[&source, &label], 1);
                }
                Some(Figure::Count(number)) => self.sample(row.name, &[&source], number),
                Some(Figure::Flag(flag)) => self.sample(row.name, &[&source], u8::from(flag)),
                Some(Figure::Millis(millis)) => {
                    self.sample(row.name, &[&source], Seconds(millis, 3))
                }
                Some(Figure::Micros(micros)) => {
                    self.sample(row.name, &[&source], Seconds(micros, 6))
                }
            },
        }
    }

    fn histogram(&mut self, name: &str, labels: &[&str; 2], durations: &Histogram) {
        let [source, labels] = labels;
        let bucket = format!("{name}_bucket");
        let mut sum = 0;
        for (bound, count) in durations.bounds_us.iter().zip(durations.counts()) {
            sum += count;
            let bound = format!("le=\"{}\"", Seconds(*bound, 6));
            self.sample(&bucket, &[source, labels, &bound], sum);
        }
        let count = durations.count();
        self.sample(&bucket, &[source, labels, "le=\"+Inf\""], count);
        let sum = Seconds(durations.sum_us, 6);
        self.sample(&format!("{name}_sum"), &[source, labels], sum);
        self.sample(&format!("{name}_count"), &[source, labels], count);
    }

    /// Writes one sample, with the labels that are not empty.
    fn sample(&mut self, name: &str, labels: &[&str], value: impl Display) {
        let labels: Vec<&str> = labels.iter().copied().filter(|it| !it.is_empty()).collect();
        let own = own(name);
        match labels.as_slice() {
            [] => self.line(format_args!("{own}{name} {value}")),
            labels => self.line(format_args!("{own}{name}{{{}}} {value}", labels.join(","))),
        }
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.0, "{line}").expect("a string takes every character");
    }
}

/// Seconds, exactly: a number of units of 10^-n seconds, and n.
struct Seconds(u64, usize);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Seconds(number, places) = *self;
        let unit = 10u64.pow(places as u32);
        write!(f, "{}.{:0places$}", number / unit, number % unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::describe::is_made;
    use crate::core::api::view::View;
    use crate::core::testing::{NOW, SOURCE, config_of, context};
    use crate::json::{List, Value, json, members};

    /// The schema of the JSON. It refers to the schemas in `openapi.json`.
    fn schema() -> String {
        let cx = context(config_of("binance"), NOW);
        let view = View::new(&cx);
        let figures = Figures { source: Some(SOURCE), ..Figures::new(&view) };
        let mut out = Vec::new();
        describe_rows(Object::open(&mut out), "object", METRICS, &figures);
        // A line for each row.
        String::from_utf8(out)
            .expect("the table is ASCII")
            .replace("\"description\"", "\n\"description\"")
            + "\n"
    }

    /// Writes the schema of an object of these rows.
    fn describe_rows(mut schema: Object<'_>, kind: impl Value, rows: &[Metric], it: &Figures<'_>) {
        let rows = rows.iter().filter(|row| !row.key.is_empty());
        members!(schema,
            "type": kind,
            "additionalProperties": false,
            "required": List(rows.clone().map(|row| row.key)),
        );
        let mut properties = schema.object("properties");
        for row in rows {
            let mut schema = properties.object(row.key);
            schema.put("description", row.help);
            describe(schema, &row.read, it);
        }
        properties.close();
        schema.close();
    }

    /// Writes the rest of a row's schema.
    fn describe(mut schema: Object<'_>, read: &ReadMetric, it: &Figures<'_>) {
        match read {
            ReadMetric::Object(rows) => return describe_rows(schema, "object", rows, it),
            ReadMetric::MaybeObject(_, rows) => {
                return describe_rows(schema, List(["object", "null"]), rows, it);
            }
            ReadMetric::Sources(rows) => {
                schema.put("type", "array");
                describe_rows(schema.object("items"), "object", rows, it);
            }
            ReadMetric::Each(_, read) => {
                let counts = read(it);
                let keys = counts.iter().map(|(value, _)| *value);
                members!(schema,
                    "type": "object",
                    "additionalProperties": false,
                    "required": List(keys.clone()),
                );
                let mut properties = schema.object("properties");
                for key in keys {
                    json!(properties.key(key), { "$ref": "#/components/schemas/Count" });
                }
                properties.close();
            }
            ReadMetric::Count(_) | ReadMetric::Millis(_) => {
                schema.put("$ref", "#/components/schemas/Count")
            }
            ReadMetric::Time(_) => schema.put("$ref", "#/components/schemas/Time"),
            ReadMetric::MaybeTime(_) => schema.put("$ref", "#/components/schemas/TimeOrNull"),
            ReadMetric::MaybeCount(_) | ReadMetric::MaybeMillis(_) => {
                members!(schema, "type": List(["integer", "null"]), "minimum": 0u64);
            }
            ReadMetric::Micros(_) => {
                members!(schema, "type": "number", "minimum": 0u64);
            }
            ReadMetric::Flag(_) => schema.put("type", "boolean"),
            ReadMetric::Text(_) => schema.put("type", "string"),
            ReadMetric::MaybeText(_) => schema.put("type", List(["string", "null"])),
            ReadMetric::OneOf(words, _) => {
                members!(schema, "type": "string", "enum": List(words.iter().copied()));
            }
            ReadMetric::Durations(_) => {}
        }
        schema.close();
    }

    #[test]
    fn the_schema_is_that_of_the_table() {
        is_made("src/core/api/metrics/schema.json", None, &schema());
    }
}
