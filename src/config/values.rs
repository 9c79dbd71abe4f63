//! Values of a file: how each type is read, printed and described.
//!
//! A [`KeyType`] is a type that a key can have. A rule says which values the file may have: the bounds of a
//! number, the form of a text. `Option` and `Vec` are made of other values.
//!
//! A [`FileObject`] is a struct whose fields are keys; `object!` makes one from a table. The reader, the
//! printer, and the tests that write JSON Schema and reference all visit its keys, so they cannot disagree.
//! Reading continues after a fault, so that one run reports all faults. The keys themselves are in `schema`
//! and `limits`. The keys of dialects are in their modules.

use super::fault::Report;
use super::forms::TextForm;
use super::json::{self, Node};
use std::collections::{BTreeMap, HashMap};

/// A type that a key can have.
pub(crate) trait KeyType: Sized {
    /// Which values the file may have, beyond the type.
    type Rule;

    /// The suffix of a value's path in the paths of its keys: empty, or `[]` for a list. `None` if it has no
    /// keys.
    const INNER: Option<&'static str> = None;

    /// Most values in a list.
    const MOST: usize = usize::MAX;

    /// Which values the file may have, as text, for messages and the reference.
    fn expected(rule: &Self::Rule) -> String;

    /// Reads a value.
    fn read(rule: &Self::Rule, node: &Node, report: &mut Report) -> Result<Self, Wrong>;

    /// Reads a value over an old one: an object keeps what the file leaves out.
    fn replace(
        &mut self,
        rule: &Self::Rule,
        node: &Node,
        report: &mut Report,
    ) -> Result<(), Wrong> {
        *self = Self::read(rule, node, report)?;
        Ok(())
    }

    /// The value as JSON. Reading it gives the same value. Empty if the value is never printed.
    fn print(&mut self) -> String {
        String::new()
    }

    /// Visits the keys of a value, or of a new one if there is none.
    fn visit(_value: Option<&mut Self>, _visit: &mut Visit<'_>) {}
}

/// The message for a wrong value. `None` means "expected ..., found ...".
pub(crate) type Wrong = Option<String>;

/// A visitor of keys. It gets the name of a key, its meaning and its value.
pub(crate) type Visit<'v> = dyn FnMut(&'static str, &'static str, &mut dyn KeyValue) + 'v;

/// A struct whose fields are keys of a file.
pub(crate) trait FileObject: Default {
    /// Most objects of this type in a list.
    const ENTRIES: usize = usize::MAX;

    /// The required keys. Empty texts are ignored: a macro puts them in place of keys with a
    /// default.
    const NEEDED: &'static [&'static str] = &[];

    /// An object with its defaults, which may depend on values in the file.
    fn start(_node: &Node) -> Self {
        Self::default()
    }

    /// Visits each key, in the order of the reference.
    fn keys(&mut self, visit: &mut Visit<'_>);
}

/// The value of a key, and the rule of the value.
pub(crate) trait KeyValue {
    fn read(&mut self, node: &Node, report: &mut Report);
    fn print(&mut self) -> String;
    fn expected(&self) -> String;
    fn inner(&self) -> Option<&'static str>;
    fn visit(&mut self, visit: &mut Visit<'_>);
}

impl<T: KeyType> KeyValue for (&mut T, &T::Rule) {
    fn read(&mut self, node: &Node, report: &mut Report) {
        if let Err(message) = self.0.replace(self.1, node, report) {
            node.refuse(message, self.expected(), report);
        }
    }

    fn print(&mut self) -> String {
        self.0.print()
    }

    fn expected(&self) -> String {
        T::expected(self.1)
    }

    fn inner(&self) -> Option<&'static str> {
        T::INNER
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        T::visit(Some(self.0), visit);
    }
}

/// Reads the whole of a file of this name and text.
pub(crate) fn read_text(value: &mut dyn KeyValue, file: &str, text: &str, report: &mut Report) {
    // Some editors write a byte order mark, which JSON does not have.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    report.open(file, text);
    match Node::whole(file, text) {
        Ok(node) => value.read(&node, report),
        Err(fault) => report.add(fault),
    }
}

/// Makes a struct whose fields are keys. A row is a documented field, its type, its default if it is not the
/// type's default, its key, and its rule if the type has one. A row without a key is a field that the file
/// cannot set. Doc comments go into the reference, line comments do not. In brackets: the most objects in a
/// list, the required keys, and the function for the defaults.
macro_rules! object {
    ($(#[$meta:meta])* $vis:vis struct $name:ident
        $([$entries:expr, $needed:expr $(, $start:path)?])?
    { $(
        $(#[doc = $about:literal])+
        $field:ident: $type:ty $(= $default:expr)? $(, $key:literal $($rule:expr)?)?;
    )+ }) => {
        $(#[$meta])*
        $vis struct $name {
            $( $(#[doc = $about])+ $vis $field: $type, )+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $( $field: $crate::config::values::object!(@ $($default)?), )+ }
            }
        }

        impl $crate::config::values::FileObject for $name {
            $(
                const ENTRIES: usize = $entries;
                const NEEDED: &'static [&'static str] = $needed;

                $(
                    fn start(node: &$crate::config::Node) -> $name {
                        $start(node)
                    }
                )?
            )?

            fn keys(&mut self, visit: &mut $crate::config::values::Visit<'_>) {
                $(
                    let _about = concat!($($about),+);
                    $(
                        let rule = &$crate::config::values::object!(@ $($rule)?);
                        visit($key, _about, &mut (&mut self.$field, rule));
                    )?
                )+
            }
        }
    };
    (@) => { Default::default() };
    (@ $value:expr) => { $value };
}
pub(crate) use object;

// Code that does not depend on the type of an object or of an item uses `dyn`, so that it is compiled once,
// and not for each of some thirty types.

/// Reads the value of one key of an object. The error is the message that there is no such key.
pub(super) fn read_key(
    object: &mut dyn KeyValue,
    name: &str,
    node: &Node,
    report: &mut Report,
) -> Result<(), String> {
    let mut known = Vec::new();
    object.visit(&mut |key, _, value| {
        known.push(key);
        if key == name {
            value.read(node, report);
        }
    });
    if known.contains(&name) {
        Ok(())
    } else {
        Err(format!("unknown key{}", report.hint(name, &known)))
    }
}

/// Renamed keys, by their old path. A file may still have the old names, which cause a warning.
pub(super) const RENAMED: [(&str, &str); 3] = [
    ("limits.longAnswers", "deferredResponses"),
    ("limits.packedBytes", "compressedBytes"),
    ("limits.lanesPerSource", "connectionsPerSource"),
];

/// Reads the keys of an object. Each key that is unknown, given twice or wrong is a separate fault, and so is
/// each required key that is missing. All other keys are read.
fn read_keys(object: &mut dyn KeyValue, needed: &[&str], node: &Node, report: &mut Report) {
    let Some(members) = node.members() else {
        return node.refuse(None, object.expected(), report);
    };
    let mut seen = HashMap::new();
    for (mut name, mut value) in members {
        report.place(&value.path, value.offset);
        if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == value.path) {
            report.warn(&value.path, format!("renamed to {new}"));
            name = (*new).to_string();
            value.path = node.path_of(new);
            report.place(&value.path, value.offset);
        }
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
    for name in needed.iter().filter(|it| !it.is_empty() && !seen.contains_key(**it)) {
        let missing = node.missing(name);
        report.place(&missing.path, missing.offset);
        let known = read_key(object, name, &missing, report);
        debug_assert!(known.is_ok(), "what is needed is a key");
    }
}

/// Reads one item of a list and keeps it. Returns its text, which the list must not repeat unless it is
/// empty.
type ReadItem<'r> = dyn FnMut(&Node, &mut Report) -> Result<String, Wrong> + 'r;

/// Reads the items of a list.
fn read_items(
    items: &[Node],
    report: &mut Report,
    expected: &dyn Fn() -> String,
    read: &mut ReadItem<'_>,
) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        report.place(&item.path, item.offset);
        match read(item, report) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => {
                let first = *seen.entry(text.clone()).or_insert(at);
                if first != at {
                    let text = text.trim_matches('"');
                    let message = format!("{text} is given twice, first as [{first}]");
                    report.fault(&item.path, message);
                }
            }
            Err(message) => item.refuse(message, expected(), report),
        }
    }
}

fn print_keys(object: &mut dyn KeyValue) -> String {
    let mut members = Vec::new();
    object.visit(&mut |name, _, value| members.push((name, value.print())));
    json::object(&members)
}

/// Lists the keys of this object and of the objects in it: the path of the object of each key, and the name
/// of the key. `path` is the path of this object.
pub(super) fn list_keys(
    path: &str,
    object: &mut dyn KeyValue,
    list: &mut Vec<(String, &'static str)>,
) {
    object.visit(&mut |name, _, value| {
        list.push((path.to_string(), name));
        if let Some(suffix) = value.inner() {
            let dot = if path.is_empty() { "" } else { "." };
            list_keys(&format!("{path}{dot}{name}{suffix}"), value, list);
        }
    });
}

impl<T: FileObject> KeyType for T {
    type Rule = ();
    const INNER: Option<&'static str> = Some("");
    const MOST: usize = T::ENTRIES;

    fn expected((): &()) -> String {
        "an object".to_string()
    }

    fn read(rule: &(), node: &Node, report: &mut Report) -> Result<T, Wrong> {
        let mut object = T::start(node);
        object.replace(rule, node, report)?;
        Ok(object)
    }

    // `read_keys` reports a value that is not an object. This returns `Ok`, so that later items keep their
    // index.
    fn replace(&mut self, rule: &(), node: &Node, report: &mut Report) -> Result<(), Wrong> {
        read_keys(&mut (self, rule), T::NEEDED, node, report);
        Ok(())
    }

    fn print(&mut self) -> String {
        print_keys(&mut (self, &()))
    }

    fn visit(value: Option<&mut T>, visit: &mut Visit<'_>) {
        value.unwrap_or(&mut T::default()).keys(visit);
    }
}

/// `None` is `null`.
impl<T: KeyType> KeyType for Option<T> {
    type Rule = T::Rule;
    const INNER: Option<&'static str> = T::INNER;

    fn expected(rule: &T::Rule) -> String {
        T::expected(rule) + " or null"
    }

    fn read(rule: &T::Rule, node: &Node, report: &mut Report) -> Result<Self, Wrong> {
        if node.is_null() { Ok(None) } else { T::read(rule, node, report).map(Some) }
    }

    fn print(&mut self) -> String {
        self.as_mut().map_or("null".to_string(), T::print)
    }

    fn visit(value: Option<&mut Self>, visit: &mut Visit<'_>) {
        T::visit(value.and_then(Option::as_mut), visit);
    }
}

/// An object whose members have names of a form and values of one type.
impl<K: Ord, T: KeyType> KeyType for BTreeMap<K, T> {
    type Rule = (TextForm<K>, T::Rule);

    fn expected((form, _): &Self::Rule) -> String {
        format!("an object with each name {}", form.expected)
    }

    fn read((form, rule): &Self::Rule, node: &Node, report: &mut Report) -> Result<Self, Wrong> {
        let mut all = BTreeMap::new();
        for (name, node) in node.members().ok_or(None)? {
            report.place(&node.path, node.offset);
            match (form.parse(&name), T::read(rule, &node, report)) {
                (Err(message), _) => report.fault(&node.path, message),
                (_, Err(message)) => node.refuse(message, T::expected(rule), report),
                (Ok(key), _) if all.contains_key(&key) => report.fault(&node.path, "given twice"),
                (Ok(key), Ok(value)) => drop(all.insert(key, value)),
            }
        }
        Ok(all)
    }
}

impl<T: KeyType> KeyType for Vec<T> {
    type Rule = T::Rule;
    const INNER: Option<&'static str> = if T::INNER.is_some() { Some("[]") } else { None };

    fn expected(rule: &T::Rule) -> String {
        match Self::INNER {
            Some(_) => format!("a list of at most {} objects", T::MOST),
            None => format!("a list, each {}", T::expected(rule)),
        }
    }

    fn read(rule: &T::Rule, node: &Node, report: &mut Report) -> Result<Self, Wrong> {
        let items = node.items().ok_or(None)?;
        if items.len() > T::MOST {
            let expected = Self::expected(rule);
            return Err(Some(format!("expected {expected}, found {}", items.len())));
        }
        let mut values = Vec::with_capacity(items.len());
        read_items(&items, report, &|| T::expected(rule), &mut |item, report| {
            let mut value = T::read(rule, item, report)?;
            // Objects have names, which `check` compares.
            let text = if T::INNER.is_none() { value.print() } else { String::new() };
            values.push(value);
            Ok(text)
        });
        Ok(values)
    }

    fn print(&mut self) -> String {
        json::list(&self.iter_mut().map(T::print).collect::<Vec<_>>())
    }

    fn visit(_: Option<&mut Self>, visit: &mut Visit<'_>) {
        T::visit(None, visit);
    }
}
