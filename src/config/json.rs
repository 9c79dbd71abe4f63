//! JSON with places: a value of the file knows its path and its offset.
//!
//! Owns the way in and out of JSON text: [`Node`] reads one value lazily from the very text of
//! the file, [`Json`] writes one. serde_json checks the grammar and splits objects and lists; what
//! the values mean is said elsewhere, in the tables of keys. Numbers stay text in both
//! directions, so that no digit is lost.
//!
//! It never fails on a value of a wrong type: it answers `None`, and the caller, who knows what
//! was expected, tells the fault.

use super::fault::{Fault, Report};
use serde::de::{self, Deserialize, Deserializer, MapAccess};
use serde_json::value::RawValue;
use std::fmt::{self, Write as _};

/// Longest piece of a value that a message repeats.
const ECHO_CHARS: usize = 40;

/// A value of the file.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    /// `sources[0].pollMs`; empty for the whole file.
    pub(super) path: String,
    /// Of its first byte in the file.
    pub(super) offset: usize,
    raw: &'a str,
}

/// A member of an object of the file.
pub(super) struct Member<'a> {
    /// Without its quotes and escapes.
    pub(super) name: String,
    /// Of the name in the file.
    pub(super) offset: usize,
    pub(super) value: Node<'a>,
}

impl<'a> Node<'a> {
    /// The whole file. The fault names line and column where `text` is no JSON.
    pub(super) fn whole(file: &str, text: &'a str) -> Result<Node<'a>, Fault> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
            // Skipping over values finds the place; reading them knows better what is wrong
            // there ("trailing comma").
            let read = serde_json::from_str::<serde_json::Value>(text);
            let same =
                |it: &serde_json::Error| (it.line(), it.column()) == (error.line(), error.column());
            let error = read.err().filter(same).unwrap_or(error);
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            Fault {
                file: Some(file.to_string()),
                line: Some(error.line()),
                column: Some(error.column()),
                key: String::new(),
                message: format!(
                    "not JSON: {}",
                    message.strip_suffix(&place).unwrap_or(&message)
                ),
            }
        })?;
        Ok(Node {
            path: String::new(),
            offset: offset_in(text, raw.get()),
            raw: raw.get(),
        })
    }

    /// The members in their order, duplicates included, when this is an object.
    pub(super) fn members(&self) -> Option<Vec<Member<'a>>> {
        let members: Members<'a> = serde_json::from_str(self.raw).ok()?;
        let members = members.0.into_iter().map(|(key, value)| {
            let name = name_of(key.get());
            let path = if self.path.is_empty() {
                shown(&name, key.get())
            } else {
                format!("{}.{}", self.path, shown(&name, key.get()))
            };
            Member {
                offset: self.offset + offset_in(self.raw, key.get()),
                value: self.inner(path, value.get()),
                name,
            }
        });
        Some(members.collect())
    }

    /// The value of one member, when this is an object that has it.
    pub(super) fn member(&self, name: &str) -> Option<Node<'a>> {
        let member = self.members()?.into_iter().find(|it| it.name == name);
        member.map(|member| member.value)
    }

    /// The elements, when this is a list.
    pub(super) fn items(&self) -> Option<Vec<Node<'a>>> {
        let items: Vec<&'a RawValue> = serde_json::from_str(self.raw).ok()?;
        let path = |at: usize| format!("{}[{at}]", self.path);
        let items = items.into_iter().enumerate();
        Some(
            items
                .map(|(at, item)| self.inner(path(at), item.get()))
                .collect(),
        )
    }

    /// The text, when this is one that Unicode can hold (a lone surrogate is none).
    pub(super) fn text(&self) -> Option<String> {
        serde_json::from_str(self.raw).ok()
    }

    /// The digits, when this is a number.
    pub(super) fn number(&self) -> Option<&'a str> {
        let first = self.raw.bytes().next()?;
        (first == b'-' || first.is_ascii_digit()).then_some(self.raw)
    }

    /// True or false, when this is one of them.
    pub(super) fn switch(&self) -> Option<bool> {
        self.raw.parse().ok()
    }

    /// Whether this is `null`.
    pub(super) fn is_null(&self) -> bool {
        self.raw == "null"
    }

    /// How a message names this value.
    pub(super) fn found(&self) -> String {
        match self.raw.as_bytes().first() {
            Some(b'{') => "an object".to_string(),
            Some(b'[') => "a list".to_string(),
            _ => match self.raw.char_indices().nth(ECHO_CHARS) {
                Some((at, _)) => format!("{}...", &self.raw[..at]),
                None => self.raw.to_string(),
            },
        }
    }

    /// Tells that something else was expected here.
    pub(super) fn refuse(&self, expected: &str, report: &mut Report) {
        let message = format!("expected {expected}, found {}", self.found());
        report.fault(&self.path, message);
    }

    fn inner(&self, path: String, raw: &'a str) -> Node<'a> {
        Node {
            path,
            offset: self.offset + offset_in(self.raw, raw),
            raw,
        }
    }
}

/// Where `part`, which was borrowed from `whole`, begins in it.
fn offset_in(whole: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// What a key says. One that Unicode cannot hold stays as it is written: no known key is like it.
fn name_of(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_else(|_| raw.to_string())
}

/// A key as a path shows it: plain where it is a plain word, else as it is written.
fn shown(name: &str, raw: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.len() <= ECHO_CHARS && name.bytes().all(plain) {
        return name.to_string();
    }
    match raw.char_indices().nth(ECHO_CHARS) {
        Some((at, _)) => format!("{}...", &raw[..at]),
        None => raw.to_string(),
    }
}

/// An object as its members, unlike a map in which the last of two duplicates would win.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// A value to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    /// A number, `true`, `false` or `null`, as it is.
    Plain(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub(super) const NULL: Json = Json::Plain(String::new());

    /// Texts as a list.
    pub(super) fn texts(texts: &[String]) -> Json {
        Json::List(texts.iter().cloned().map(Json::Text).collect())
    }

    /// Appends the value: what is flat on one line, all else indented by two blanks.
    fn write(&self, indent: usize, out: &mut String) {
        let parts: Vec<(Option<&str>, &Json)> = match self {
            Json::Plain(text) if text.is_empty() => return out.push_str("null"),
            Json::Plain(text) => return out.push_str(text),
            Json::Text(text) => return write_text(text, out),
            Json::List(items) => items.iter().map(|item| (None, item)).collect(),
            Json::Object(members) => members.iter().map(|(key, it)| (Some(*key), it)).collect(),
        };
        let object = matches!(self, Json::Object(_));
        let (begin, end) = if object { ('{', '}') } else { ('[', ']') };
        let flat = self.is_flat();
        let line = |indent: usize, out: &mut String| {
            if !flat {
                out.push('\n');
                out.extend(std::iter::repeat_n("  ", indent));
            } else if object && !parts.is_empty() {
                out.push(' ');
            }
        };
        out.push(begin);
        for (at, (key, value)) in parts.iter().enumerate() {
            match at {
                0 => {}
                _ if flat && !object => out.push_str(", "),
                _ => out.push(','),
            }
            line(indent + 1, out);
            if let Some(key) = key {
                write_text(key, out);
                out.push_str(": ");
            }
            value.write(indent + 1, out);
        }
        line(indent, out);
        out.push(end);
    }

    /// Whether this fits one line: a leaf, leaves in a list, or one or two leaves in an object.
    fn is_flat(&self) -> bool {
        let leaf = |json: &Json| matches!(json, Json::Plain(_) | Json::Text(_));
        match self {
            Json::Plain(_) | Json::Text(_) => true,
            Json::List(items) => items.iter().all(leaf),
            Json::Object(members) => members.len() <= 2 && members.iter().all(|it| leaf(&it.1)),
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(0, &mut out);
        f.write_str(&out)
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            char if char.is_control() => {
                write!(out, "\\u{:04x}", char as u32).expect("a String takes every text");
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_json_is_told_with_line_and_column() {
        let check = |text: &str, expected: &str| {
            let fault = Node::whole("m.json", text).unwrap_err();
            assert_eq!(fault.to_string(), expected, "{text:?}");
        };
        check("", "m.json:1:0: not JSON: EOF while parsing a value");
        check("{\n  \"a\": 1,\n}", "m.json:3:1: not JSON: trailing comma");
        check("{} x", "m.json:1:4: not JSON: trailing characters");
        check("{'a': 1}", "m.json:1:2: not JSON: key must be a string");
        check("[1, 01]", "m.json:1:6: not JSON: invalid number");
    }

    #[test]
    fn values_know_their_path_and_their_offset() {
        let text = "{ \"a\": [ {\"b\": 1}, 2 ],\n \"\\u0063\": null, \"a\": 3, \"x\\ny\": 4 }";
        let whole = Node::whole("m.json", text).expect("it is JSON");
        let members = whole.members().expect("it is an object");
        let seen: Vec<(&str, &str, usize)> = members
            .iter()
            .map(|it| (it.name.as_str(), it.value.path.as_str(), it.value.offset))
            .collect();
        assert_eq!(
            seen,
            [
                ("a", "a", 7),
                ("c", "c", 35),
                ("a", "a", 46),
                ("x\ny", "\"x\\ny\"", 57)
            ]
        );
        let items = members[0].value.items().expect("it is a list");
        let inner = items[0].member("b").expect("it has this member");
        assert_eq!((inner.path.as_str(), inner.offset), ("a[0].b", 15));
        assert_eq!(inner.number(), Some("1"));
        assert!(members[1].value.is_null());
    }

    #[test]
    fn what_is_written_reads_back() {
        let hard = "a\"b\\c\nd\u{7}e\u{7f}f\u{202e}";
        let json = Json::Object(vec![
            ("text", Json::Text(hard.into())),
            (
                "list",
                Json::List(vec![Json::Plain("1.50".into()), Json::NULL]),
            ),
            ("empty", Json::Object(Vec::new())),
            ("none", Json::List(Vec::new())),
        ]);
        let text = json.to_string();
        let whole = Node::whole("m.json", &text).expect("it is JSON");
        assert_eq!(
            whole.member("text").and_then(|it| it.text()).as_deref(),
            Some(hard)
        );
        assert_eq!(
            text,
            "{\n  \"text\": \"a\\\"b\\\\c\\nd\\u0007e\\u007ff\u{202e}\",\n  \"list\": [1.50, null],\n  \"empty\": {},\n  \"none\": []\n}"
        );
    }
}
