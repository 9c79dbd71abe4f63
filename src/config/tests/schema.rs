//! The JSON Schema of the configuration: made from the keys that are read, as the reference is.

use crate::config::fault::Report;
use crate::config::forms::{AMOUNT, FRACTION, PLACES};
use crate::config::json::{Node, list, object, text};
use crate::config::schema::Config;
use crate::config::tests::describe::is_made;
use crate::config::values::{FileObject as _, KeyValue, Visit};

/// Members of a JSON Schema: names, and values as JSON.
type Members = Vec<(&'static str, String)>;

/// The schema (json-schema.org, draft 2020-12) of the file, for editors.
fn schema() -> String {
    let mut members = vec![
        ("$schema", text("https://json-schema.org/draft/2020-12/schema")),
        ("title", text("The configuration of marketd")),
    ];
    members.extend(of_object(&[], &mut |visit| Config::default().keys(visit)));
    object(&members) + "\n"
}

/// The schema of an object that needs these keys.
fn of_object(needed: &[String], keys: &mut dyn FnMut(&mut Visit<'_>)) -> Members {
    let mut properties = Vec::new();
    keys(&mut |name, about, value| {
        let (expected, default) = (value.expected(), value.print());
        let about = format!("{} Expected: {expected}.", about.trim());
        let mut members = vec![("description", text(about))];
        members.extend(of_value(&expected, value));
        // The default of an object is that of its keys.
        if value.inner() != Some("") {
            members.push(("default", default));
        }
        properties.push((name, object(&members)));
    });
    vec![
        ("type", text("object")),
        ("additionalProperties", "false".to_string()),
        ("required", list(needed)),
        ("properties", object(&properties)),
    ]
}

/// The schema of a value of which this is expected.
fn of_value(expected: &str, value: &mut dyn KeyValue) -> Members {
    let inner = |json: &str, value: &mut dyn KeyValue| {
        let needed = needed(json, value);
        of_object(&needed, &mut |visit| value.visit(visit))
    };
    let of_type = |name: &str| vec![("type", text(name))];
    if let Some(expected) = expected.strip_suffix(" or null") {
        let choices = [of_value(expected, value), of_type("null")].map(|it| object(&it));
        return vec![("anyOf", list(&choices))];
    }
    if let Some((expected, word)) = expected.split_once(", or ").filter(|it| it.1.starts_with('"'))
    {
        let choices = [of_value(expected, value), vec![("const", word.to_string())]];
        return vec![("anyOf", list(&choices.map(|it| object(&it))))];
    }
    let words: Vec<&str> = expected.split(' ').collect();
    match words[..] {
        ["true", "or", "false"] => of_type("boolean"),
        ["an", "object"] => inner("{}", value),
        ["a", "list", "of", "at", "most", most, "objects"] => {
            let items = object(&inner("[{}]", value));
            [of_type("array"), vec![("items", items), ("maxItems", most.to_string())]].concat()
        }
        ["a", "list,", "each", ..] => {
            let items = object(&of_value(&words[3..].join(" "), value));
            [of_type("array"), vec![("items", items)]].concat()
        }
        // Their digits may also stand in a text.
        _ if [PLACES.expected, FRACTION.expected, AMOUNT.expected].contains(&expected) => {
            vec![("type", r#"["string", "number"]"#.to_string())]
        }
        ["a", "whole", "number", ..] => {
            let numbers = words.iter().filter(|word| word.parse::<u64>().is_ok());
            let bounds = ["minimum", "maximum"].into_iter().zip(numbers);
            let bounds = bounds.map(|(name, number)| (name, number.to_string()));
            of_type("integer").into_iter().chain(bounds).collect()
        }
        _ => of_type("string"),
    }
}

/// The keys that are missing in a value of this JSON, as JSON.
fn needed(json: &str, value: &mut dyn KeyValue) -> Vec<String> {
    let mut report = Report::default();
    value.read(&Node::unplaced(String::new(), json), &mut report);
    let faults = report.close().err().unwrap_or_default();
    faults.iter().filter_map(|it| it.key.rsplit('.').next()).map(text).collect()
}

#[test]
fn the_schema_is_that_of_the_keys() {
    is_made("src/config/schema.json", None, &schema());
}
