//! A JSON writer: objects and arrays, directly into bytes.
//!
//! `json!` writes an object whose keys are known, and looks like JSON. [`Object`] and [`Array`] are for
//! values whose members are known only at run time: they borrow the output, and write the commas. A [`Value`]
//! is written in one call; a function that writes JSON is a [`Value`] too. There is no tree of values: a list
//! of thousands of markets is written a hundred times a minute, and a tree would cost ten times as much. This
//! module does not read JSON.

use crate::decimal::Decimal;
use crate::time::UnixMs;

/// Something that can be written as a JSON value. `None` is null.
pub trait Value {
    /// Appends the value.
    fn write(self, out: &mut Vec<u8>);
}

/// Writes an object: `json!(out, { "key": value, "inner": { "key": value } })`.
macro_rules! json {
    ($out:expr, { $($members:tt)* }) => {{
        let mut object = $crate::json::Object::open($out);
        $crate::json::members!(object, $($members)*);
        object.close();
    }};
}

/// Writes members of an open object: `members!(object, "key": value, "inner": { "key": value })`.
macro_rules! members {
    ($object:ident,) => {};
    ($object:ident, $key:literal: { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::json::json!($object.literal(concat!(",\"", $key, "\":")), { $($inner)* });
        $($crate::json::members!($object, $($rest)*);)?
    };
    ($object:ident, $key:literal: $value:expr $(, $($rest:tt)*)?) => {
        $crate::json::Value::write($value, $object.literal(concat!(",\"", $key, "\":")));
        $($crate::json::members!($object, $($rest)*);)?
    };
}

pub(crate) use {json, members};

/// An open object. Members are written in the order of the calls.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

/// An open array.
pub struct Array<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Opens an object.
    pub fn open(out: &'a mut Vec<u8>) -> Object<'a> {
        out.push(b'{');
        Object { out, is_empty: true }
    }

    /// Writes a key, which must not need escapes. The caller appends its value.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Writes a ready-made `,"key":`, without its comma in front of the first member.
    #[inline]
    pub fn literal(&mut self, key: &'static str) -> &mut Vec<u8> {
        let begin = usize::from(std::mem::take(&mut self.is_empty));
        self.out.extend_from_slice(&key.as_bytes()[begin..]);
        self.out
    }

    /// Writes a member.
    pub fn put(&mut self, key: &str, value: impl Value) {
        value.write(self.key(key));
    }

    /// Opens a member that is an object.
    pub fn object(&mut self, key: &str) -> Object<'_> {
        Object::open(self.key(key))
    }

    /// Closes the object.
    pub fn close(self) {
        self.out.push(b'}');
    }
}

impl<'a> Array<'a> {
    /// Opens an array.
    pub fn open(out: &'a mut Vec<u8>) -> Array<'a> {
        out.push(b'[');
        Array { out, is_empty: true }
    }

    /// Writes the comma, if one is needed. The caller appends the next item.
    pub fn item(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out
    }

    /// Closes the array.
    pub fn close(self) {
        self.out.push(b']');
    }
}

impl<V: Value> Value for Option<V> {
    fn write(self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl<F: FnOnce(&mut Vec<u8>)> Value for F {
    fn write(self, out: &mut Vec<u8>) {
        self(out);
    }
}

impl Value for bool {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self { b"true" } else { b"false" });
    }
}

/// Integers are written by `itoa`: the standard formatter takes ten times as long.
macro_rules! integers {
    ($($type:ty)+) => { $(
        impl Value for $type {
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
            }
        }
    )+ };
}

integers!(u16 u64 i64 usize);

/// Milliseconds since 1970.
impl Value for UnixMs {
    fn write(self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

impl Value for &str {
    fn write(self, out: &mut Vec<u8>) {
        self.as_bytes().write(out);
    }
}

/// A string (RFC 8259, 7): quotes, backslashes and control bytes are escaped, and each invalid UTF-8
/// sequence becomes `\ufffd`. DEL is escaped too, so that a part of a request is safe to show in a terminal.
impl Value for &[u8] {
    fn write(self, out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        out.push(b'"');
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        // Nearly every text is plain, and is copied whole.
        let plain = self.iter().take_while(|byte| is_plain(byte)).count();
        out.extend_from_slice(&self[..plain]);
        for chunk in self[plain..].utf8_chunks() {
            for &byte in chunk.valid().as_bytes() {
                match byte {
                    b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    0..=0x1f | 0x7f => {
                        out.extend_from_slice(b"\\u00");
                        out.push(HEX[usize::from(byte >> 4)]);
                        out.push(HEX[usize::from(byte & 15)]);
                    }
                    _ => out.push(byte),
                }
            }
            if !chunk.invalid().is_empty() {
                out.extend_from_slice(b"\\ufffd");
            }
        }
        out.push(b'"');
    }
}

/// An array of these values.
pub struct List<I>(pub I);

impl<I: IntoIterator<Item: Value>> Value for List<I> {
    fn write(self, out: &mut Vec<u8>) {
        let mut array = Array::open(out);
        self.0.into_iter().for_each(|value| value.write(array.item()));
        array.close();
    }
}

/// A value that is JSON text already.
#[derive(Clone, Copy, Debug)]
pub struct Ready<'a>(pub &'a [u8]);

impl Value for Ready<'_> {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }
}

/// How decimals are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decimals {
    /// As JSON numbers.
    Number,
    /// As JSON strings of the same digits.
    String,
}

impl Decimals {
    /// As strings, if they are to be quoted.
    pub fn quoted_if(quoted: bool) -> Decimals {
        if quoted { Decimals::String } else { Decimals::Number }
    }

    /// A decimal as a value.
    pub fn value<'a>(self, decimal: impl Into<Option<&'a Decimal>>) -> impl Value {
        let decimal: Option<&Decimal> = decimal.into();
        decimal.map(|decimal| {
            move |out: &mut Vec<u8>| match self {
                Decimals::Number => decimal.write(out),
                Decimals::String => {
                    out.push(b'"');
                    decimal.write(out);
                    out.push(b'"');
                }
            }
        })
    }

    /// A letter for the entity tag: the two forms have different bodies.
    pub fn variant(self) -> u8 {
        match self {
            Decimals::Number => b'n',
            Decimals::String => b's',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: impl Value, expected: &str) {
        let mut out = Vec::new();
        value.write(&mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }

    #[test]
    fn values_are_written_as_json_has_them() {
        check(i64::MIN, "-9223372036854775808");
        check(u64::MAX, "18446744073709551615");
        check(Some(true), "true");
        check(None::<&str>, "null");
        check(UnixMs(-1), "-1");
        let decimal = Decimal::parse(b"-0.00500").expect("a decimal");
        check(Decimals::Number.value(Some(&decimal)), "-0.005");
        check(Decimals::String.value(Some(&decimal)), r#""-0.005""#);
    }

    #[test]
    fn members_and_items_have_commas_between_them() {
        let mut out = Vec::new();
        let mut object = Object::open(&mut out);
        object.object("a").close();
        object.put("b", List([1u64, 2]));
        let mut array = Array::open(object.key("c"));
        Array::open(array.item()).close();
        "x".write(array.item());
        let mut inner = Object::open(array.item());
        inner.put("d", false);
        inner.close();
        array.close();
        object.put("e", Ready(b"[null]"));
        object.put("f", 0u16);
        object.close();
        let expected = r#"{"a":{},"b":[1,2],"c":[[],"x",{"d":false}],"e":[null],"f":0}"#;
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }

    #[test]
    fn any_bytes_become_a_json_string_that_reads_back() {
        let check = |text: &[u8], expected: &str| {
            let mut out = Vec::new();
            text.write(&mut out);
            let out = String::from_utf8(out).expect("UTF-8");
            assert_eq!(out, expected);
            let back: String = serde_json::from_str(&out).expect("JSON");
            assert_eq!(back, String::from_utf8_lossy(text));
        };
        check(b"", r#""""#);
        check(b"BTC/USDT", r#""BTC/USDT""#);
        check(br#"a"b\c"#, r#""a\"b\\c""#);
        check(b"\0\n\x1f\x7f", r#""\u0000\u000a\u001f\u007f""#);
        check("\u{20ac} \u{1f980}".as_bytes(), "\"\u{20ac} \u{1f980}\"");
        check(b"x\xffy\xe2\x82", r#""x\ufffdy\ufffd""#);
        check(b"\xed\xa0\x80", r#""\ufffd\ufffd\ufffd""#);
        let all: Vec<u8> = (0..=255).collect();
        let mut out = Vec::new();
        all.as_slice().write(&mut out);
        let back: String = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(back, String::from_utf8_lossy(&all));
    }
}
