//! What a file may hold, as a JSON Schema: for the tests that compare it with what is delivered.

use crate::config::Url;
use crate::config::forms::TextForm;
use crate::config::members::{Named, Number};
use crate::interval::Stored;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A file of the repository is what was made from the source: all of it, or what stands between the line
/// `<!-- mark: ... -->` and `<!-- end of mark -->`. With `UPDATE_DOCS=1`, this writes it.
#[track_caller]
pub(crate) fn is_made(file: &str, mark: Option<&str>, made: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).expect("it is part of the repository");
    let part = mark.map_or(0..text.len(), |mark| {
        let line = text.find(&format!("<!-- {mark}: ")).expect("it has the mark");
        let begin = line + text[line..].find('\n').expect("the mark has a line") + 1;
        begin..text.find(&format!("<!-- end of {mark} -->")).expect("it has the end mark")
    });
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = [&text[..part.start], made, &text[part.end..]].concat();
        return std::fs::write(path, text).expect("it can be written");
    }
    let is_current = text[part] == *made;
    assert!(is_current, "{file} is out of date: `UPDATE_DOCS=1 cargo test --lib` writes it");
}

/// What a file may give for a type.
pub(crate) trait Schema {
    fn schema(types: &mut Types) -> Value;
}

/// What the words of an enum mean.
pub(crate) trait Described: Named {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const WORDS: &'static [&'static str];
}

/// The types that have names, and the members of the one that is being described.
#[derive(Default)]
pub(crate) struct Types {
    pub(crate) named: BTreeMap<String, Value>,
    members: Map<String, Value>,
    needed: Vec<&'static str>,
}

impl Types {
    pub(crate) fn object(
        &mut self,
        name: &str,
        about: &str,
        describe: impl FnOnce(&mut Types),
    ) -> Value {
        let outer = (std::mem::take(&mut self.members), std::mem::take(&mut self.needed));
        describe(self);
        let (members, needed) = (
            std::mem::replace(&mut self.members, outer.0),
            std::mem::replace(&mut self.needed, outer.1),
        );
        let mut object = json!({
            "description": about.trim(), "type": "object", "properties": members,
            "additionalProperties": false
        });
        if !needed.is_empty() {
            object["required"] = json!(needed);
        }
        self.name(name, object)
    }

    pub(crate) fn add<T: Schema>(&mut self, key: &'static str, about: &str, is_needed: bool) {
        let mut schema = T::schema(self);
        schema["description"] = json!(about.trim());
        self.members.insert(key.into(), schema);
        self.needed.extend(is_needed.then_some(key));
    }

    /// Writes the rule of a member that was added.
    pub(crate) fn limit(&mut self, key: &str, rule: &dyn Limits) {
        let schema = self.members.get_mut(key).expect("it was added");
        rule.limit(if schema["type"] == "array" { &mut schema["items"] } else { schema });
    }

    pub(crate) fn name(&mut self, name: &str, schema: Value) -> Value {
        self.named.insert(name.into(), schema);
        json!({ "$ref": format!("#/$defs/{name}") })
    }
}

/// A rule of a member, as a schema says it.
pub(crate) trait Limits {
    fn limit(&self, schema: &mut Value);
}

impl Limits for Number {
    fn limit(&self, schema: &mut Value) {
        let number = match schema.get("anyOf") {
            Some(_) => &mut schema["anyOf"][0],
            None => schema,
        };
        (number["minimum"], number["maximum"]) = (json!(self.min), json!(self.max));
    }
}

impl<T> Limits for TextForm<T> {
    fn limit(&self, schema: &mut Value) {
        schema["pattern"] = json!(match self.expected {
            "1 to 32 of a-z, 0-9 and -" => "^[a-z0-9-]{1,32}$",
            "1 to 32 of A-Z, a-z, 0-9, -, _, . and /" => "^[A-Za-z0-9_./-]{1,32}$",
            "an asset of 1 to 20 A-Z and 0-9" => "^[A-Z0-9]{1,20}$",
            "a form like \"t{id}\"" => "[{]id[}]",
            "a form like \"{base}{quote}\"" => "[{]base[}]",
            "the end of an id, or its beginning with a * behind it" => "^[^*]+[*]?$",
            "a code, or words between two *" => "^([^*].*|[*].+[*])$",
            "http://HOST or https://HOST" => "^[Hh][Tt][Tt][Pp][Ss]?://",
            "printable characters of ASCII" => "^[ -~]*$",
            "the characters of a path and a query" => "^[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*$",
            "the name of a header field in lower case" => "^[a-z0-9_.-]+$",
            other => panic!("{other}: a form of dialects has a pattern"),
        });
    }
}

impl<R: Limits> Limits for (TextForm<String>, R) {
    fn limit(&self, schema: &mut Value) {
        self.1.limit(&mut schema["additionalProperties"]);
    }
}

/// Of each stored interval.
impl<R: Limits> Limits for (TextForm<Stored>, R) {
    fn limit(&self, schema: &mut Value) {
        let members = schema["properties"].as_object_mut().expect("it is an object");
        members.values_mut().for_each(|member| self.1.limit(member));
    }
}

impl<T: Schema> Schema for BTreeMap<Stored, T> {
    fn schema(types: &mut Types) -> Value {
        let members = Stored::ALL.map(|interval| (interval.name().to_string(), T::schema(types)));
        let members = Map::from_iter(members);
        json!({ "type": "object", "properties": members, "additionalProperties": false })
    }
}

/// Makes types that JSON has.
macro_rules! plain {
    ($($type:ty = $schema:tt)+) => { $(
        impl Schema for $type {
            fn schema(_: &mut Types) -> Value {
                json!($schema)
            }
        }
    )+ };
}

plain! {
    String = { "type": "string" }
    Url = { "type": "string" }
    Box<str> = { "type": "string" }
    bool = { "type": "boolean" }
    u32 = { "type": "integer", "minimum": 0, "maximum": 4294967295u32 }
    u16 = { "type": "integer", "minimum": 0, "maximum": 65535 }
    BTreeMap<String, String> = { "type": "object", "additionalProperties": { "type": "string" } }
}

impl<T: Schema> Schema for Option<T> {
    fn schema(types: &mut Types) -> Value {
        T::schema(types)
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema(types: &mut Types) -> Value {
        json!({ "type": "array", "items": T::schema(types) })
    }
}

impl<T: Described> Schema for T {
    fn schema(types: &mut Types) -> Value {
        let words = T::NAMES.iter().zip(T::WORDS).map(|(name, about)| match about.trim() {
            "" => json!({ "const": name }),
            about => json!({ "const": name, "description": about }),
        });
        let words: Vec<Value> = words.collect();
        types.name(T::NAME, json!({ "description": T::ABOUT.trim(), "anyOf": words }))
    }
}

/// JSON with what fits on one line on one line.
pub(crate) fn write(value: &Value, indent: &str, out: &mut String) {
    let flat = value.to_string();
    let (brackets, parts): (_, Vec<(String, &Value)>) = match value {
        Value::Object(members) if flat.len() > 120 => {
            let parts = members.iter();
            let parts = parts.map(|(name, it)| (format!("\"{name}\": "), it));
            ("{}", parts.collect())
        }
        Value::Array(items) if flat.len() > 120 => {
            ("[]", items.iter().map(|it| (String::new(), it)).collect())
        }
        _ => return out.push_str(&flat),
    };
    let inner = format!("{indent} ");
    for (at, (name, part)) in parts.into_iter().enumerate() {
        let before = if at == 0 { &brackets[..1] } else { "," };
        *out += &format!("{before}\n{inner}{name}");
        write(part, &inner, out);
    }
    *out += &format!("\n{indent}{}", &brackets[1..]);
}
