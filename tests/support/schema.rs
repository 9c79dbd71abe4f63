//! Whether a value is what a JSON schema says (draft 2020-12, as OpenAPI 3.1 uses it), for the
//! words that marketd's description uses. A word that is not known here panics: it would be a rule
//! that is not checked.

use super::pattern;
use serde_json::Value;

/// A document whose schemas refer to each other.
pub struct Schemas<'a>(pub &'a Value);

/// Words that say nothing of a value.
const SILENT: [&str; 9] = [
    "description",
    "default",
    "example",
    "examples",
    "title",
    "deprecated",
    "format",
    "$schema",
    "$defs",
];

impl<'a> Schemas<'a> {
    /// What `{"$ref": "#/..."}` stands for; anything else stands for itself.
    #[track_caller]
    pub fn resolve(&self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            None => value,
            Some(reference) => {
                let place = reference.strip_prefix('#').expect("within the document");
                let found = self.0.pointer(place);
                self.resolve(found.unwrap_or_else(|| panic!("{reference} is not there")))
            }
        }
    }

    /// The faults of a value, each with its place; none when it is as the schema says.
    #[track_caller]
    pub fn faults(&self, schema: &'a Value, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(schema, value, "", &mut faults);
        faults
    }

    fn check(&self, schema: &'a Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let words = schema.as_object().expect("a schema is an object");
        for (word, rule) in words {
            let good = match word.as_str() {
                "$ref" => {
                    self.check(self.resolve(schema), value, at, faults);
                    true
                }
                "type" => match rule {
                    Value::Array(types) => types.iter().any(|it| is_of(value, it)),
                    one => is_of(value, one),
                },
                "const" => value == rule,
                "enum" => rule.as_array().expect("a list").contains(value),
                "pattern" => (value.as_str())
                    .is_none_or(|text| pattern::is_found(rule.as_str().expect("a pattern"), text)),
                "minLength" => (value.as_str())
                    .is_none_or(|text| text.chars().count() as u64 >= number(rule) as u64),
                "minimum" => value.as_f64().is_none_or(|it| it >= number(rule)),
                "maximum" => value.as_f64().is_none_or(|it| it <= number(rule)),
                "minItems" => (value.as_array()).is_none_or(|it| it.len() as f64 >= number(rule)),
                "maxItems" => (value.as_array()).is_none_or(|it| it.len() as f64 <= number(rule)),
                "maxProperties" => {
                    (value.as_object()).is_none_or(|it| it.len() as f64 <= number(rule))
                }
                "required" => {
                    let names = rule.as_array().expect("a list").iter();
                    let mut names = names.filter_map(Value::as_str);
                    value.as_object().is_none_or(|it| names.all(|name| it.contains_key(name)))
                }
                "additionalProperties" => {
                    let known = &schema["properties"];
                    let members = value.as_object().into_iter().flatten();
                    let mut others = members.filter(|(name, _)| known.get(name).is_none());
                    match rule {
                        Value::Bool(false) => others.next().is_none(),
                        rule => {
                            for (name, member) in others {
                                self.check(rule, member, &format!("{at}/{name}"), faults);
                            }
                            true
                        }
                    }
                }
                "properties" => {
                    for (name, rule) in rule.as_object().expect("an object") {
                        if let Some(member) = value.get(name) {
                            self.check(rule, member, &format!("{at}/{name}"), faults);
                        }
                    }
                    true
                }
                "items" | "prefixItems" => {
                    let items = value.as_array().map_or(&[][..], Vec::as_slice);
                    for (place, item) in items.iter().enumerate() {
                        let rule = match rule {
                            Value::Array(rules) => rules.get(place),
                            one => Some(one),
                        };
                        if let Some(rule) = rule {
                            self.check(rule, item, &format!("{at}/{place}"), faults);
                        }
                    }
                    true
                }
                "allOf" => {
                    for rule in rule.as_array().expect("a list") {
                        self.check(rule, value, at, faults);
                    }
                    true
                }
                "oneOf" => {
                    let rules = rule.as_array().expect("a list").iter();
                    rules.filter(|rule| self.faults(rule, value).is_empty()).count() == 1
                }
                "anyOf" => {
                    let rules = rule.as_array().expect("a list").iter();
                    rules.into_iter().any(|rule| self.faults(rule, value).is_empty())
                }
                silent => {
                    assert!(SILENT.contains(&silent), "{silent} is not understood");
                    true
                }
            };
            if !good {
                faults.push(format!("{at}: {value} against {word}: {rule}"));
            }
        }
    }
}

fn number(rule: &Value) -> f64 {
    rule.as_f64().expect("a number")
}

fn is_of(value: &Value, type_: &Value) -> bool {
    match type_.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}
