//! A JSON tree that keeps every number as it was written and every member in its order.
//!
//! The usual tree turns `64123.45` into a binary number, and then no test can tell whether the
//! digits were right. This one compares digit for digit, and it refuses an object that says the
//! same key twice.

use serde_json::value::RawValue;
use std::fmt;
use std::ops::Index;

/// One JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// The digits as they stood in the text.
    Number(String),
    /// The text without quotes and escapes.
    Text(String),
    /// In order.
    Array(Vec<Json>),
    /// In order, no key twice.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one value, and nothing after it.
    pub fn parse(text: &str) -> Result<Json, String> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        from_raw(raw)
    }

    /// The member `key`; `None` where there is none or this is no object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The keys of an object in their order; empty for anything else.
    pub fn keys(&self) -> Vec<&str> {
        match self {
            Json::Object(members) => members.iter().map(|(key, _)| key.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// The elements of an array; empty for anything else.
    pub fn items(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    /// The texts among the elements of an array.
    pub fn texts(&self) -> Vec<&str> {
        self.items().iter().filter_map(Json::text).collect()
    }

    /// This member of each element of an array, as a text.
    pub fn column(&self, key: &str) -> Vec<String> {
        let text = |item: &Json| item[key].text().unwrap_or_default().to_string();
        self.items().iter().map(text).collect()
    }

    /// The digits of a number, or a text; `None` for anything else.
    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Number(text) | Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, where it is a whole one that fits.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }
}

/// What a test writes with `json!`.
impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        Json::parse(&value.to_string()).expect("a value is JSON")
    }
}

fn from_raw(raw: &RawValue) -> Result<Json, String> {
    let text = raw.get();
    let fault = |fault: serde_json::Error| fault.to_string();
    Ok(match text.as_bytes()[0] {
        b'n' => Json::Null,
        b't' => Json::Bool(true),
        b'f' => Json::Bool(false),
        b'"' => Json::Text(serde_json::from_str(text).map_err(fault)?),
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(fault)?;
            Json::Array(items.into_iter().map(from_raw).collect::<Result<_, _>>()?)
        }
        b'{' => {
            let mut members: Vec<(String, Json)> = Vec::new();
            for (key, value) in raw_members(text).map_err(fault)? {
                if members.iter().any(|(known, _)| *known == key) {
                    return Err(format!("the key {key:?} stands twice in one object"));
                }
                members.push((key, from_raw(value)?));
            }
            Json::Object(members)
        }
        _ => Json::Number(text.to_string()),
    })
}

/// The members of an object in their order, values as they stand in `text`.
fn raw_members(text: &str) -> serde_json::Result<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> serde::de::Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = serde::Deserializer::deserialize_map(&mut reader, Members)?;
    reader.end()?;
    Ok(members)
}

impl Index<&str> for Json {
    type Output = Json;
    #[track_caller]
    fn index(&self, key: &str) -> &Json {
        match self.get(key) {
            Some(value) => value,
            None => panic!("no member {key:?} in {self}"),
        }
    }
}

impl Index<usize> for Json {
    type Output = Json;
    #[track_caller]
    fn index(&self, at: usize) -> &Json {
        match self.items().get(at) {
            Some(value) => value,
            None => panic!("no element {at} in {self}"),
        }
    }
}

/// `json["symbol"] == "BTC/USDT"`: true for a text alone, never for a number.
impl PartialEq<&str> for Json {
    fn eq(&self, other: &&str) -> bool {
        matches!(self, Json::Text(text) if text == other)
    }
}

/// `json["count"] == 3`
impl PartialEq<i64> for Json {
    fn eq(&self, other: &i64) -> bool {
        self.integer() == Some(*other)
    }
}

impl fmt::Display for Json {
    /// The value as JSON again, without white space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(digits) => f.write_str(digits),
            Json::Text(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(Json::to_string).collect();
                write!(f, "[{}]", items.join(","))
            }
            Json::Object(members) => {
                let key = |key: &str| serde_json::Value::from(key);
                let members = members.iter().map(|(name, value)| format!("{}:{value}", key(name)));
                write!(f, "{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }
}
