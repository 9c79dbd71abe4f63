//! JSON with positions: values of the file that know their path and their offset.
//!
//! A [`Node`] is the part of the file's text that is one value. serde_json checks the grammar and
//! reads texts. Numbers stay text, so no digit is lost. [`object`], [`list`] and [`text`] write
//! values.
//!
//! A read of a value with another type returns `None`. The caller knows what was expected, and
//! reports it.

use super::fault::{ConfigFault, Report};
pub(super) use crate::log_targets::quoted as text;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// Longest piece of a value that a message repeats.
const ECHO_CHARS: usize = 40;

/// A value of the file.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// `sources[0].pollMs`; empty for the whole file.
    pub path: String,
    /// Offset of its first byte in the file.
    pub offset: usize,
    raw: &'a str,
}

impl<'a> Node<'a> {
    /// The whole file. If it is not JSON, the fault names line and column.
    pub fn whole(file: &str, text: &'a str) -> Result<Node<'a>, ConfigFault> {
        let raw: Result<&RawValue, _> = serde_json::from_str(text);
        let raw = raw.map_err(|error| not_json(file, text, error))?;
        Ok(Node::unplaced(String::new(), text).inner(String::new(), raw.get()))
    }

    /// A value that is in no file. `raw` is its JSON; it is empty for a missing value.
    pub fn unplaced(path: String, raw: &'a str) -> Node<'a> {
        let offset = 0;
        Node { path, offset, raw }
    }

    /// The members, if this is an object: names and values in their order, duplicates included.
    pub fn members(&self) -> Option<Vec<(String, Node<'a>)>> {
        let Members(members) = serde_json::from_str(self.raw).ok()?;
        let member = |(key, value): (&'a RawValue, &'a RawValue)| {
            let key = key.get();
            // A key with a lone surrogate stays as it is written. No known key is equal to it.
            let name = unquoted(key).unwrap_or_else(|| key.to_string());
            let path = self.path_of(shown(&name, key));
            (name, self.inner(path, value.get()))
        };
        Some(members.into_iter().map(member).collect())
    }

    /// The value of a member that is missing.
    pub fn missing(&self, name: &str) -> Node<'a> {
        Node { path: self.path_of(name), offset: self.offset, raw: "" }
    }

    /// The path of a member.
    pub fn path_of(&self, name: impl fmt::Display) -> String {
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("{}{dot}{name}", self.path)
    }

    /// The value of one member, if this is an object that has it.
    pub fn member(&self, name: &str) -> Option<Node<'a>> {
        let mut members = self.members()?.into_iter();
        members.find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The elements, if this is a list.
    pub fn items(&self) -> Option<Vec<Node<'a>>> {
        let items: Vec<&RawValue> = serde_json::from_str(self.raw).ok()?;
        let items = items.into_iter().enumerate();
        let node = |(at, raw): (usize, &'a RawValue)| {
            self.inner(format!("{}[{at}]", self.path), raw.get())
        };
        Some(items.map(node).collect())
    }

    /// The text, if this is a text without a lone surrogate.
    pub fn text(&self) -> Option<String> {
        unquoted(self.raw)
    }

    /// The digits, if this is a number.
    pub fn number(&self) -> Option<&'a str> {
        let is_number = |raw: &&str| raw.starts_with(|first| matches!(first, '-' | '0'..='9'));
        Some(self.raw).filter(is_number)
    }

    /// True or false, if this is one of them.
    pub fn switch(&self) -> Option<bool> {
        self.raw.parse().ok()
    }

    /// True if this is `null`.
    pub fn is_null(&self) -> bool {
        self.raw == "null"
    }

    /// Reports that this value is wrong. The message is `why`, or else says what was expected here.
    pub fn refuse(&self, why: Option<String>, expected: String, report: &mut Report) {
        let found = match self.raw.as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            // The text may be an address with a password in the wrong place.
            Some(b'"') if self.raw.contains('@') => "a text",
            _ => &cut(self.raw),
        };
        let message = why.unwrap_or_else(|| match self.raw {
            "" => format!("missing, expected {expected}"),
            _ => format!("expected {expected}, found {found}"),
        });
        report.fault(&self.path, message);
    }

    fn inner(&self, path: String, raw: &'a str) -> Node<'a> {
        // `raw` is borrowed from this node's text, so it begins inside it.
        let offset = self.offset + raw.as_ptr().addr() - self.raw.as_ptr().addr();
        Node { path, offset, raw }
    }
}

fn not_json(file: &str, text: &str, skipped: serde_json::Error) -> ConfigFault {
    // Reading the values gives a better message ("trailing comma") than skipping them, but stops
    // early if they are nested too deeply.
    let place = |error: &serde_json::Error| (error.line(), error.column());
    let read = serde_json::from_str::<Value>(text).err();
    let error = read.filter(|read| place(read) == place(&skipped));
    let error = error.unwrap_or(skipped);
    let (line, column) = place(&error);
    let place = format!(" at line {line} column {column}");
    let message = format!("not JSON: {error}");
    let message = message.trim_end_matches(&place);
    ConfigFault { column: Some(column), ..ConfigFault::at(Some(file), Some(line), "", message) }
}

/// A key as a path shows it: without quotes if it is a plain word.
fn shown(name: &str, raw: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.len() <= ECHO_CHARS && name.bytes().all(plain) {
        name.to_string()
    } else {
        cut(raw)
    }
}

fn cut(raw: &str) -> String {
    match raw.char_indices().nth(ECHO_CHARS) {
        Some((at, _)) => format!("{}...", &raw[..at]),
        None => raw.to_string(),
    }
}

/// The members of an object: keys and values as they are written.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'a> Deserialize<'a> for Members<'a> {
    fn deserialize<D: Deserializer<'a>>(json: D) -> Result<Members<'a>, D::Error> {
        json.deserialize_map(Members(Vec::new()))
    }
}

impl<'a> Visitor<'a> for Members<'a> {
    type Value = Members<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut members: M) -> Result<Members<'a>, M::Error> {
        while let Some(member) = members.next_entry()? {
            self.0.push(member);
        }
        Ok(self)
    }
}

/// The text of a string.
pub fn unquoted(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}

/// Values as a list: on one line if none of them is an object or a list.
pub(super) fn list(items: &[String]) -> String {
    if items.iter().all(|item| is_leaf(item)) {
        format!("[{}]", items.join(", "))
    } else {
        block('[', items, ']')
    }
}

/// Members as an object: one or two on one line if none of them is an object or a list.
pub(super) fn object(members: &[(&str, String)]) -> String {
    let is_flat = members.len() <= 2 && members.iter().all(|(_, value)| is_leaf(value));
    let members = members.iter();
    let members: Vec<String> = (members.map(|(name, it)| format!("\"{name}\": {it}"))).collect();
    match is_flat {
        true if members.is_empty() => "{}".to_string(),
        true => format!("{{ {} }}", members.join(", ")),
        false => block('{', &members, '}'),
    }
}

fn is_leaf(value: &str) -> bool {
    !value.starts_with(['{', '['])
}

/// Puts each part on its own line. Line breaks in texts are escaped, so every `\n` is layout.
fn block(begin: char, parts: &[String], end: char) -> String {
    let lines = parts.join(",\n").replace('\n', "\n  ");
    format!("{begin}\n  {lines}\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_path_and_their_offset() {
        let text = "{ \"a\": [ {\"b\": 1}, 2 ],\n \"\\u0063\": null, \"a\": 3, \"x\\ny\": 4 }";
        let whole = Node::whole("m.json", text).expect("it is JSON");
        let members = whole.members().expect("it is an object");
        let seen: Vec<(&str, &str, usize)> =
            members.iter().map(|(name, it)| (name.as_str(), it.path.as_str(), it.offset)).collect();
        assert_eq!(
            seen,
            [("a", "a", 7), ("c", "c", 35), ("a", "a", 46), ("x\ny", "\"x\\ny\"", 57)]
        );
        let items = members[0].1.items().expect("it is a list");
        let inner = items[0].member("b").expect("it has this member");
        assert_eq!((inner.path.as_str(), inner.offset), ("a[0].b", 15));
        assert_eq!(inner.number(), Some("1"));
        assert!(members[1].1.is_null());
    }

    #[test]
    fn what_is_written_reads_back() {
        let hard = "a\"b\\c\nd\u{7}e\u{7f}f\u{202e}";
        let text = object(&[
            ("text", text(hard)),
            ("list", list(&["1.50".into(), "null".into()])),
            ("empty", object(&[])),
            ("none", list(&[])),
        ]);
        let whole = Node::whole("m.json", &text).expect("it is JSON");
        assert_eq!(whole.member("text").and_then(|it| it.text()).as_deref(), Some(hard));
        assert_eq!(
            text,
            "{\n  \"text\": \"a\\\"b\\\\c\\nd\\u0007e\\u007ff\\u202e\",\n  \"list\": [1.50, null],\n  \"empty\": {},\n  \"none\": []\n}"
        );
    }
}
