//! Values of the file: how each type is read, printed and described.
//!
//! A [`Value`] is a type that a key can have. A rule says what the file may give for it: the bounds of
//! a number, the form of a text. `Option` and `Vec` are made of other values.
//!
//! An [`Object`] is a struct whose fields are keys; `object!` makes one from a table. It hands each key
//! to a [`Visitor`]. The reader, the printer and the reference are visitors, so they cannot disagree.
//! The keys themselves are in `schema` and `limits`.

use super::fault::{Report, suggestion};
use super::json::{self, Node};
use std::collections::HashMap;

/// A type that a key can have.
pub(super) trait Value: Clone {
    /// What the file may give, beyond what the type says.
    type Rule;

    /// What follows the path of a value in the paths of its keys: nothing, or `[]` for a list. `None`
    /// if it has no keys.
    const INNER: Option<&'static str> = None;

    /// Most values in a list.
    const MOST: usize = usize::MAX;

    /// What the file may give, in words, for messages and the reference.
    fn expected(rule: &Self::Rule) -> String;

    /// Reads a value. An object keeps from the `old` one what the file does not give.
    fn read(rule: &Self::Rule, old: Option<&Self>, node: &Node, report: &mut Report) -> Read<Self>;

    /// The value as JSON that reads back as the same.
    fn print(&self) -> String;

    /// What the file may give, as members of a JSON Schema.
    fn schema(rule: &Self::Rule) -> Schema;

    /// Visits the keys of a value, or of a new one if there is none.
    #[cfg(test)]
    fn visit(_value: Option<&Self>, _visitor: &mut impl Visitor) {}
}

/// Members of a JSON Schema: names, and values as JSON.
pub(super) type Schema = Vec<(&'static str, String)>;

/// A value, or the message for what is wrong; `None` for "expected, found".
pub(super) type Read<T> = Result<T, Option<String>>;

/// A struct whose fields are keys of the file.
pub(super) trait Object: Clone + Default {
    /// Most of them in a list.
    const ENTRIES: usize = usize::MAX;

    /// The key that has no default; empty: there is none.
    const NEEDED: &'static str = "";

    /// An object with its defaults, which may depend on what the file gives.
    fn start(_node: &Node) -> Self {
        Self::default()
    }

    /// Hands each key to a visitor, in the order of the reference.
    fn keys(&mut self, visitor: &mut impl Visitor);
}

/// Does something with each key of an object.
pub(super) trait Visitor {
    /// Visits a key: its name, its meaning, its value and the rule of the value.
    fn key<T: Value>(&mut self, name: &'static str, about: &str, value: &mut T, rule: &T::Rule);
}

/// Makes a struct whose fields are keys. A row is a documented field, its type, its default if it is
/// not that of the type, its key, and its rule if the type has one. A row without a key is a field
/// that the file cannot set. Doc comments go into the reference, line comments do not. For an entry of
/// a list, the brackets say how many entries there may be, which key each needs, and which function
/// makes one if not `Default`.
macro_rules! object {
    ($(#[$meta:meta])* pub struct $name:ident $([$entries:literal, $needed:literal $(, $start:path)?])? { $(
        $(#[doc = $about:literal])+
        $field:ident: $type:ty $(= $default:expr)? $(, $key:literal $($rule:expr)?)?;
    )+ }) => {
        $(#[$meta])*
        pub struct $name {
            $( $(#[doc = $about])+ pub $field: $type, )+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $( $field: $crate::config::values::object!(@ $($default)?), )+ }
            }
        }

        impl $crate::config::values::Object for $name {
            $(
                const ENTRIES: usize = $entries;
                const NEEDED: &'static str = $needed;

                $(
                    fn start(node: &$crate::config::json::Node) -> $name {
                        $start(node)
                    }
                )?
            )?

            fn keys(&mut self, visitor: &mut impl $crate::config::values::Visitor) {
                $(
                    let _about = concat!($($about),+);
                    $( visitor.key($key, _about, &mut self.$field, &($($rule)?)); )?
                )+
            }
        }
    };
    (@) => { Default::default() };
    (@ $default:expr) => { $default };
}
pub(super) use object;

/// Reads an object. Each key that is unknown, given twice or wrong is a fault of its own, and so is
/// the needed key if it is missing; all other keys are read.
pub(super) fn read_object<T: Object>(object: &mut T, node: &Node, report: &mut Report) {
    let mut read =
        |name: &str, value: &Node, report: &mut Report| read_key(object, name, value, report);
    let seen = read_members(node, report, &mut read);
    if !T::NEEDED.is_empty() && seen.is_some_and(|seen| !seen.contains_key(T::NEEDED)) {
        let missing = Node::of(format!("{}.{}", node.path, T::NEEDED), "");
        let known = read_key(object, T::NEEDED, &missing, report);
        debug_assert!(known.is_ok(), "what is needed is a key");
    }
}

/// Reads each member by this function, and returns the lines of all names; `None`: it is no object.
// One function for all objects makes the program smaller.
fn read_members(
    node: &Node,
    report: &mut Report,
    read: &mut dyn FnMut(&str, &Node, &mut Report) -> Result<(), String>,
) -> Option<HashMap<String, usize>> {
    let Some(members) = node.members() else {
        node.refuse(None, "an object".to_string(), report);
        return None;
    };
    let mut seen = HashMap::new();
    for (name, value) in members {
        report.place(&value.path, value.offset);
        let line = report.line(value.offset);
        let done = match seen.get(&name) {
            Some(first) => Err(format!("given twice, first on line {first}")),
            None => read(&name, &value, report),
        };
        if let Err(message) = done {
            report.add(report.located(&value.path, message));
        }
        seen.insert(name, line);
    }
    Some(seen)
}

/// Reads the value of one key of an object. The error is the message that there is no such key.
pub(super) fn read_key(
    object: &mut impl Object,
    name: &str,
    node: &Node,
    report: &mut Report,
) -> Result<(), String> {
    let mut known = Vec::new();
    object.keys(&mut Reader {
        name,
        node,
        report,
        known: &mut known,
    });
    match known.contains(&name) {
        true => Ok(()),
        false => Err(format!("unknown key{}", suggestion(name, known))),
    }
}

/// Reads the key that has this name, and collects the names of all keys.
struct Reader<'a> {
    name: &'a str,
    node: &'a Node<'a>,
    report: &'a mut Report,
    known: &'a mut Vec<&'static str>,
}

// One function for each type, not for each key: that is a fortieth of the program.
impl Visitor for Reader<'_> {
    #[inline(never)]
    fn key<T: Value>(&mut self, name: &'static str, _: &str, value: &mut T, rule: &T::Rule) {
        self.known.push(name);
        if name == self.name {
            match T::read(rule, Some(value), self.node, self.report) {
                Ok(read) => *value = read,
                Err(message) => self.node.refuse(message, T::expected(rule), self.report),
            }
        }
    }
}

/// Names of keys, and their values as JSON.
struct Printer(Vec<(&'static str, String)>);

impl Visitor for Printer {
    #[inline(never)]
    fn key<T: Value>(&mut self, name: &'static str, _: &str, value: &mut T, _: &T::Rule) {
        self.0.push((name, value.print()));
    }
}

/// The members of the schema of an object.
pub(super) fn members_of<T: Object>() -> Vec<(&'static str, String)> {
    let mut properties = Properties::default();
    T::default().keys(&mut properties);
    let needed = match T::NEEDED {
        "" => Vec::new(),
        needed => vec![json::text(needed)],
    };
    vec![
        ("type", json::text("object")),
        ("additionalProperties", "false".to_string()),
        ("required", json::list(&needed)),
        ("properties", json::object(&properties.0)),
    ]
}

/// The schema of each key.
#[derive(Default)]
struct Properties(Vec<(&'static str, String)>);

impl Visitor for Properties {
    fn key<T: Value>(&mut self, name: &'static str, about: &str, value: &mut T, rule: &T::Rule) {
        let about = format!("{} Expected: {}.", about.trim(), T::expected(rule));
        let mut members = vec![("description", json::text(&about))];
        members.extend(T::schema(rule));
        // The default of an object is that of its keys.
        if T::INNER != Some("") {
            members.push(("default", value.print()));
        }
        self.0.push((name, json::object(&members)));
    }
}

impl<T: Object> Value for T {
    type Rule = ();
    const INNER: Option<&'static str> = Some("");
    const MOST: usize = T::ENTRIES;

    fn expected((): &()) -> String {
        "an object".to_string()
    }

    fn read((): &(), old: Option<&T>, node: &Node, report: &mut Report) -> Read<T> {
        let mut value = old.cloned().unwrap_or_else(|| T::start(node));
        read_object(&mut value, node, report);
        Ok(value)
    }

    fn schema((): &()) -> Schema {
        members_of::<T>()
    }

    fn print(&self) -> String {
        let mut printer = Printer(Vec::new());
        self.clone().keys(&mut printer);
        json::object(&printer.0)
    }

    #[cfg(test)]
    fn visit(value: Option<&T>, visitor: &mut impl Visitor) {
        value.cloned().unwrap_or_default().keys(visitor);
    }
}

/// `None` is `null`.
impl<T: Value> Value for Option<T> {
    type Rule = T::Rule;
    const INNER: Option<&'static str> = T::INNER;

    fn expected(rule: &T::Rule) -> String {
        T::expected(rule) + " or null"
    }

    fn read(rule: &T::Rule, old: Option<&Self>, node: &Node, report: &mut Report) -> Read<Self> {
        if node.is_null() {
            return Ok(None);
        }
        T::read(rule, old.and_then(Option::as_ref), node, report).map(Some)
    }

    fn schema(rule: &T::Rule) -> Schema {
        let choices = [T::schema(rule), of_type("null")].map(|it| json::object(&it));
        vec![("anyOf", json::list(&choices))]
    }

    fn print(&self) -> String {
        self.as_ref().map_or("null".to_string(), T::print)
    }

    #[cfg(test)]
    fn visit(value: Option<&Self>, visitor: &mut impl Visitor) {
        T::visit(value.and_then(Option::as_ref), visitor);
    }
}

/// Reports a value of a list, of which this is the text, if it is there twice.
fn refuse_second(
    item: &Node,
    at: usize,
    text: String,
    seen: &mut HashMap<String, usize>,
    report: &mut Report,
) {
    let first = *seen.entry(text.clone()).or_insert(at);
    if first != at {
        let text = text.trim_matches('"');
        let message = format!("{text} is given twice, first as [{first}]");
        report.fault(&item.path, message);
    }
}

/// A list of objects, or of texts, each at most once.
impl<T: Value> Value for Vec<T> {
    type Rule = T::Rule;
    const INNER: Option<&'static str> = if T::INNER.is_some() { Some("[]") } else { None };

    fn expected(rule: &T::Rule) -> String {
        match Self::INNER {
            Some(_) => format!("a list of at most {} objects", T::MOST),
            None => format!("a list, each {}", T::expected(rule)),
        }
    }

    fn read(rule: &T::Rule, _: Option<&Self>, node: &Node, report: &mut Report) -> Read<Self> {
        let items = node.items().ok_or(None)?;
        if items.len() > T::MOST {
            let expected = Self::expected(rule);
            return Err(Some(format!("expected {expected}, found {}", items.len())));
        }
        let mut values = Vec::with_capacity(items.len());
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            report.place(&item.path, item.offset);
            match T::read(rule, None, item, report) {
                Err(message) => item.refuse(message, T::expected(rule), report),
                Ok(value) => {
                    // Objects have names, which `check` compares.
                    if T::INNER.is_none() {
                        refuse_second(item, at, value.print(), &mut seen, report);
                    }
                    values.push(value);
                }
            }
        }
        Ok(values)
    }

    fn schema(rule: &T::Rule) -> Schema {
        let mut schema = of_type("array");
        schema.push(("items", json::object(&T::schema(rule))));
        if T::MOST < usize::MAX {
            schema.push(("maxItems", T::MOST.to_string()));
        }
        schema
    }

    fn print(&self) -> String {
        json::list(&self.iter().map(T::print).collect::<Vec<_>>())
    }

    #[cfg(test)]
    fn visit(_: Option<&Self>, visitor: &mut impl Visitor) {
        T::visit(None, visitor);
    }
}

/// The members of the schema of a value that has only a type.
pub(super) fn of_type(name: &str) -> Schema {
    vec![("type", json::text(name))]
}
