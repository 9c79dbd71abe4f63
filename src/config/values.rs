//! Values of the file: how each type is read, printed and described.
//!
//! A [`Value`] is a type that a key can have. A rule says what the file may give for it: the bounds of
//! a number, the form of a text. `Option` and `Vec` are made of other values.
//!
//! An [`Object`] is a struct whose fields are keys; `object!` makes one from a table. The reader, the
//! printer, and the tests that write JSON Schema and reference all visit its [`Keys`], so they cannot
//! disagree.
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
    fn read(
        rule: &Self::Rule,
        old: Option<&Self>,
        node: &Node,
        report: &mut Report,
    ) -> ValueResult<Self>;

    /// The value as JSON that reads back as the same.
    fn print(&self) -> String;

    /// Visits the keys of a value, or of a new one if there is none.
    fn visit(_value: Option<&Self>, _visit: &mut Visit<'_>) {}
}

/// A value, or the message for what is wrong; `None` for "expected, found".
pub(super) type ValueResult<T> = Result<T, Option<String>>;

/// What has keys of the file.
pub(super) trait Keys {
    /// Visits each key, in the order of the reference.
    fn keys(&mut self, visit: &mut Visit<'_>);
}

/// Does something with a key: its name, its meaning and its value.
pub(super) type Visit<'v> = dyn FnMut(&'static str, &'static str, &mut dyn Key) + 'v;

/// A struct whose fields are keys of the file.
pub(super) trait Object: Keys + Clone + Default {
    /// Most of them in a list.
    const ENTRIES: usize = usize::MAX;

    /// The key that has no default; empty: there is none.
    const NEEDED: &'static str = "";

    /// An object with its defaults, which may depend on what the file gives.
    fn start(_node: &Node) -> Self {
        Self::default()
    }
}

/// The value of a key, and the rule of the value.
pub(super) trait Key {
    fn read(&mut self, node: &Node, report: &mut Report);
    fn print(&self) -> String;
    fn expected(&self) -> String;
    fn inner(&self) -> Option<&'static str>;
    fn visit(&self, visit: &mut Visit<'_>);
}

impl<T: Value> Key for (&mut T, &T::Rule) {
    fn read(&mut self, node: &Node, report: &mut Report) {
        match T::read(self.1, Some(self.0), node, report) {
            Ok(read) => *self.0 = read,
            Err(message) => node.refuse(message, self.expected(), report),
        }
    }

    fn print(&self) -> String {
        self.0.print()
    }

    fn expected(&self) -> String {
        T::expected(self.1)
    }

    fn inner(&self) -> Option<&'static str> {
        T::INNER
    }

    fn visit(&self, visit: &mut Visit<'_>) {
        T::visit(Some(self.0), visit);
    }
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

        impl $crate::config::values::Keys for $name {
            fn keys(&mut self, visit: &mut $crate::config::values::Visit<'_>) {
                $(
                    let _about = concat!($($about),+);
                    $( visit($key, _about, &mut (&mut self.$field, &($($rule)?))); )?
                )+
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
        }
    };
    (@) => { Default::default() };
    (@ $default:expr) => { $default };
}
pub(super) use object;

/// Reads an object. Each key that is unknown, given twice or wrong is a fault of its own, and so is
/// the needed key if it is missing (empty: none is needed); all other keys are read.
pub(super) fn read_object(
    object: &mut dyn Keys,
    needed: &'static str,
    node: &Node,
    report: &mut Report,
) {
    let Some(members) = node.members() else {
        return node.refuse(None, "an object".to_string(), report);
    };
    let mut seen = HashMap::new();
    for (name, value) in members {
        report.place(&value.path, value.offset);
        let line = report.line(value.offset);
        let done = match seen.get(&name) {
            Some(first) => Err(format!("given twice, first on line {first}")),
            None => read_key(object, &name, &value, report),
        };
        if let Err(message) = done {
            report.add(report.located(&value.path, message));
        }
        seen.insert(name, line);
    }
    if !needed.is_empty() && !seen.contains_key(needed) {
        let missing = Node::of(format!("{}.{needed}", node.path), "");
        let known = read_key(object, needed, &missing, report);
        debug_assert!(known.is_ok(), "what is needed is a key");
    }
}

/// Reads the value of one key of an object. The error is the message that there is no such key.
pub(super) fn read_key(
    object: &mut dyn Keys,
    name: &str,
    node: &Node,
    report: &mut Report,
) -> Result<(), String> {
    let mut known = Vec::new();
    object.keys(&mut |key, _, value| {
        known.push(key);
        if key == name {
            value.read(node, report);
        }
    });
    match known.contains(&name) {
        true => Ok(()),
        false => {
            let hint = match suggestion(name, known) {
                near if near.is_empty() => report.owners_of(name).unwrap_or_default(),
                near => near,
            };
            Err(format!("unknown key{hint}"))
        }
    }
}

/// Calls `each` with every key of the file: the path of its object and its name. `path`: that of these
/// keys.
pub(super) fn walk(
    path: &str,
    keys: &mut dyn FnMut(&mut Visit<'_>),
    each: &mut dyn FnMut(&str, &'static str),
) {
    keys(&mut |name, _, value| {
        each(path, name);
        if let Some(suffix) = value.inner() {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{name}{suffix}");
            walk(&path, &mut |visit| value.visit(visit), each);
        }
    });
}

fn print_keys(object: &mut dyn Keys) -> String {
    let mut members = Vec::new();
    object.keys(&mut |name, _, value| members.push((name, value.print())));
    json::object(&members)
}

impl<T: Object> Value for T {
    type Rule = ();
    const INNER: Option<&'static str> = Some("");
    const MOST: usize = T::ENTRIES;

    fn expected((): &()) -> String {
        "an object".to_string()
    }

    fn read((): &(), old: Option<&T>, node: &Node, report: &mut Report) -> ValueResult<T> {
        let mut value = old.cloned().unwrap_or_else(|| T::start(node));
        read_object(&mut value, T::NEEDED, node, report);
        Ok(value)
    }

    fn print(&self) -> String {
        print_keys(&mut self.clone())
    }

    fn visit(value: Option<&T>, visit: &mut Visit<'_>) {
        value.cloned().unwrap_or_default().keys(visit);
    }
}

/// `None` is `null`.
impl<T: Value> Value for Option<T> {
    type Rule = T::Rule;
    const INNER: Option<&'static str> = T::INNER;

    fn expected(rule: &T::Rule) -> String {
        T::expected(rule) + " or null"
    }

    fn read(
        rule: &T::Rule,
        old: Option<&Self>,
        node: &Node,
        report: &mut Report,
    ) -> ValueResult<Self> {
        if node.is_null() {
            return Ok(None);
        }
        T::read(rule, old.and_then(Option::as_ref), node, report).map(Some)
    }

    fn print(&self) -> String {
        self.as_ref().map_or("null".to_string(), T::print)
    }

    fn visit(value: Option<&Self>, visit: &mut Visit<'_>) {
        T::visit(value.and_then(Option::as_ref), visit);
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

    fn read(
        rule: &T::Rule,
        _: Option<&Self>,
        node: &Node,
        report: &mut Report,
    ) -> ValueResult<Self> {
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
                        let text = value.print();
                        let first = *seen.entry(text.clone()).or_insert(at);
                        if first != at {
                            let text = text.trim_matches('"');
                            let message = format!("{text} is given twice, first as [{first}]");
                            report.fault(&item.path, message);
                        }
                    }
                    values.push(value);
                }
            }
        }
        Ok(values)
    }

    fn print(&self) -> String {
        json::list(&self.iter().map(T::print).collect::<Vec<_>>())
    }

    fn visit(_: Option<&Self>, visit: &mut Visit<'_>) {
        T::visit(None, visit);
    }
}
