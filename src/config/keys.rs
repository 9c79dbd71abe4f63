//! Keys of the file: what an object is, and how one is read and printed.
//!
//! An [`Object`] hands each of its keys to a visitor: name, meaning, and the [`Place`] that holds
//! the value. The reader, the printer and the reference are visitors, so they cannot disagree.
//!
//! This file knows no types and no particular keys: those are in `values`, `schema` and `limits`.

use super::fault::{Report, suggestion};
use super::json::{self, Node};
use std::collections::HashMap;

/// A key of an object.
pub(super) struct Key<'a> {
    pub(super) name: &'static str,
    /// For the reference.
    pub(super) about: &'static str,
    pub(super) place: &'a mut dyn Place,
}

/// Is handed each key of an object.
pub(super) type Visitor<'a> = dyn FnMut(Key<'_>) + 'a;

/// Hands each key of an object to a visitor.
pub(super) type Keys<'a> = dyn FnMut(&mut Visitor<'_>) + 'a;

/// A struct whose fields are keys of the file.
pub(super) trait Object: Clone + Default {
    /// Most of them in a list.
    const ENTRIES: usize = usize::MAX;

    /// The key that has no default.
    const NEEDED: Option<&'static str> = None;

    /// One with its defaults, which may depend on what the file says.
    fn start(_node: Option<&Node<'_>>) -> Self {
        Self::default()
    }

    /// Hands each key to a visitor, in the order of the reference.
    fn keys(&mut self, visitor: &mut Visitor<'_>);
}

/// A place in memory that a key fills.
pub(super) trait Place {
    /// What the file may say, as messages and reference write it.
    fn expected(&self) -> String;
    /// What leads from the path of the value to the keys in it: nothing, or `[]` for a list. `None`
    /// if there are no keys in it.
    fn inner(&self) -> Option<&'static str>;
    /// Takes what the file says, or reports what is wrong with it.
    fn read(&mut self, node: &Node<'_>, report: &mut Report);
    /// The value as JSON that reads back as the same.
    fn print(&self) -> String;
    /// Visits the keys in the value.
    fn visit(&self, visitor: &mut Visitor<'_>);
}

/// Fills an object. Each key that is unknown, given twice or wrong is a fault of its own, and so is
/// the key `needed` if it is missing; the others are read all the same.
pub(super) fn read_object(
    object: &mut Keys<'_>,
    needed: Option<&str>,
    node: &Node<'_>,
    report: &mut Report,
) {
    let Some(members) = node.members() else {
        return node.refuse(None, || "an object".to_string(), report);
    };
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for member in &members {
        let (node, offset) = (&member.value, member.offset);
        let known = with_key(object, &member.name, &mut |place| {
            let line = report.line(offset);
            if let Some(first) = seen.insert(&member.name, line) {
                let message = format!("given twice, first on line {first}");
                return report.fault_at(&node.path, offset, message);
            }
            report.place(&node.path, node.offset);
            place.read(node, report);
        });
        if !known {
            let mut names = Vec::new();
            object(&mut |key| names.push(key.name));
            let near = suggestion(&member.name, names);
            report.fault_at(&node.path, offset, format!("unknown key{near}"));
        }
    }
    if let Some(name) = needed.filter(|name| !seen.contains_key(name)) {
        with_key(object, name, &mut |place| {
            let message = format!("missing, expected {}", place.expected());
            report.fault(&format!("{}.{name}", node.path), message);
        });
    }
}

/// Does something with the value of one key; false if the object has no such key.
pub(super) fn with_key(
    object: &mut Keys<'_>,
    name: &str,
    act: &mut dyn FnMut(&mut dyn Place),
) -> bool {
    let mut known = false;
    object(&mut |key| {
        if key.name == name {
            known = true;
            act(key.place);
        }
    });
    known
}

/// An object as JSON that reads back as the same.
pub(super) fn print_object(object: &mut Keys<'_>) -> String {
    let mut members = Vec::new();
    object(&mut |key| members.push((key.name, key.place.print())));
    json::object(&members)
}
