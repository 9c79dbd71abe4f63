//! Whether a value is what a JSON schema says (draft 2020-12, as OpenAPI 3.1 uses it), for the
//! words that marketd's descriptions use. A word that is not known here panics: it would be a rule
//! that is not checked.

use super::Json;
use regex_lite::Regex;

/// A document whose schemas refer to each other.
#[derive(Clone, Copy)]
pub struct Schemas<'a> {
    document: &'a Json,
    /// Whether a value is the body of a response: see [`Schemas::of_bodies`].
    decimals: Option<Decimals>,
}

/// How decimals leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Decimals {
    Numbers,
    Texts,
}

/// Words that say nothing of a value.
const SILENT: &str = "description default example examples title deprecated format $schema $defs";

impl<'a> Schemas<'a> {
    /// The schemas of a document.
    pub fn new(document: &'a Json) -> Schemas<'a> {
        Schemas { document, decimals: None }
    }

    /// The same for bodies of marketd's responses, which keep more rules than a schema can say:
    /// members stand in the order of the schema, all decimals leave in one way, and a time in
    /// milliseconds has thirteen digits (from 2001 to 2286).
    pub fn of_bodies(document: &'a Json, decimals: Decimals) -> Schemas<'a> {
        Schemas { document, decimals: Some(decimals) }
    }

    /// What `{"$ref": "#/..."}` stands for; anything else stands for itself.
    #[track_caller]
    pub fn resolve(&self, value: &'a Json) -> &'a Json {
        let Some(reference) = value.get("$ref").and_then(Json::text) else {
            return value;
        };
        let mut parts = reference.split('/');
        assert_eq!(parts.next(), Some("#"), "{reference} is not in the document");
        self.resolve(parts.fold(self.document, |found, part| &found[part]))
    }

    /// The faults of a value, each with its place; none when it is as the schema says.
    #[track_caller]
    pub fn faults(&self, schema: &'a Json, value: &Json) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(schema, value, "", &mut faults);
        faults
    }

    fn check(&self, schema: &'a Json, value: &Json, at: &str, faults: &mut Vec<String>) {
        let Json::Object(words) = schema else {
            panic!("a schema is an object, not {schema}");
        };
        let members = match value {
            Json::Object(members) => &members[..],
            _ => &[],
        };
        let below = |name: &str| format!("{at}/{name}");
        for (word, rule) in words {
            let has_length = |good: fn(usize, usize) -> bool, length: Option<usize>| {
                length.is_none_or(|length| good(length, number(rule) as usize))
            };
            let items = matches!(value, Json::Array(_)).then(|| value.items().len());
            let good = match word.as_str() {
                "$ref" => {
                    self.check(self.resolve(schema), value, at, faults);
                    self.is_of_bodies(rule, value)
                }
                "type" => match rule {
                    Json::Array(types) => types.iter().any(|it| is_of(value, it)),
                    one => is_of(value, one),
                },
                "const" => value == rule,
                "enum" => rule.items().contains(value),
                // Also for the digits of a number, which JSON Schema does not know.
                "pattern" => {
                    let pattern = Regex::new(rule.text().expect("a text")).expect("a pattern");
                    value.text().is_none_or(|text| pattern.is_match(text))
                }
                "minLength" => {
                    let text = value.text().filter(|_| is_text(value));
                    has_length(|it, least| it >= least, text.map(|it| it.chars().count()))
                }
                "minimum" => !is_number(value) || number(value) >= number(rule),
                "maximum" => !is_number(value) || number(value) <= number(rule),
                "minItems" => has_length(|it, least| it >= least, items),
                "maxItems" => has_length(|it, most| it <= most, items),
                "maxProperties" => has_length(|it, most| it <= most, Some(members.len())),
                "required" => {
                    let is_there =
                        |name: &Json| name.text().is_some_and(|it| value.get(it).is_some());
                    !matches!(value, Json::Object(_)) || rule.items().iter().all(is_there)
                }
                "additionalProperties" => {
                    let known = schema.get("properties");
                    let is_known = |name: &str| known.is_some_and(|it| it.get(name).is_some());
                    let mut others = members.iter().filter(|(name, _)| !is_known(name));
                    match rule {
                        Json::Bool(false) => others.next().is_none(),
                        rule => {
                            others
                                .for_each(|(name, it)| self.check(rule, it, &below(name), faults));
                            true
                        }
                    }
                }
                "properties" => {
                    let known = || members.iter().filter(|(name, _)| rule.get(name).is_some());
                    known().for_each(|(name, it)| {
                        self.check(&rule[name.as_str()], it, &below(name), faults)
                    });
                    let in_order = rule.keys().into_iter().filter(|name| value.get(name).is_some());
                    self.decimals.is_none() || known().map(|(name, _)| name.as_str()).eq(in_order)
                }
                "items" | "prefixItems" => {
                    for (place, item) in value.items().iter().enumerate() {
                        let rule = match rule {
                            Json::Array(rules) => rules.get(place),
                            one => Some(one),
                        };
                        if let Some(rule) = rule {
                            self.check(rule, item, &below(&place.to_string()), faults);
                        }
                    }
                    true
                }
                "oneOf" => {
                    let fits = |rule: &&Json| self.faults(rule, value).is_empty();
                    rule.items().iter().filter(fits).count() == 1
                }
                "anyOf" => rule.items().iter().any(|rule| self.faults(rule, value).is_empty()),
                silent => {
                    assert!(SILENT.split(' ').any(|it| it == silent), "{silent} is not understood");
                    true
                }
            };
            if !good {
                faults.push(format!("{at}: {value} against {word}: {rule}"));
            }
        }
    }

    /// What a schema of this name cannot say of a value in a body.
    fn is_of_bodies(&self, name: &Json, value: &Json) -> bool {
        let name = name.text().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
        match (name.trim_end_matches("OrNull"), value, self.decimals) {
            (_, Json::Null, _) | (_, _, None) => true,
            ("Decimal", value, Some(Decimals::Texts)) => is_text(value),
            ("Decimal", value, Some(Decimals::Numbers)) => is_number(value),
            ("Time", value, _) => value.text().is_some_and(|digits| digits.len() == 13),
            _ => true,
        }
    }
}

fn is_text(value: &Json) -> bool {
    matches!(value, Json::Text(_))
}

fn is_number(value: &Json) -> bool {
    matches!(value, Json::Number(_))
}

fn number(rule: &Json) -> f64 {
    rule.text().and_then(|digits| digits.parse().ok()).expect("a number")
}

fn is_of(value: &Json, type_: &Json) -> bool {
    match type_.text().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.bool().is_some(),
        "integer" => value.integer().is_some(),
        "number" => is_number(value),
        "string" => is_text(value),
        "array" => matches!(value, Json::Array(_)),
        "object" => matches!(value, Json::Object(_)),
        other => panic!("{other} is no type"),
    }
}
