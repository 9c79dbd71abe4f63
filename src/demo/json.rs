//! JSON as Binance writes it: numbers that matter are texts with eight decimal places.
//!
//! Owns how a value looks in a body. It never knows what a value means, and reads nothing.

/// A value, as a tree that borrows its parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Bool(bool),
    Int(i64),
    /// A text without anything that JSON would escape.
    Text(&'a str),
    /// `units / 10^scale`, as a text with eight decimal places. `scale` is at most 8.
    Fixed(i64, u32),
    /// Thousandths, as a text with three decimal places.
    Thousandths(i64),
    List(&'a [Value<'a>]),
    Object(&'a [(&'a str, Value<'a>)]),
}

/// Powers of ten.
const TENS: [u64; 9] = {
    let mut tens = [1; 9];
    let mut at = 1;
    while at < tens.len() {
        tens[at] = tens[at - 1] * 10;
        at += 1;
    }
    tens
};

impl Value<'_> {
    /// Appends the value to a body.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(number) => write_int(*number, out),
            Value::Text(text) => write_text(text, out),
            Value::Fixed(units, scale) => write_fixed(*units, *scale as usize, 8, out),
            Value::Thousandths(units) => write_fixed(*units, 3, 3, out),
            Value::List(values) => {
                out.push(b'[');
                for (at, value) in values.iter().enumerate() {
                    separate(at, out);
                    value.write(out);
                }
                out.push(b']');
            }
            Value::Object(members) => {
                out.push(b'{');
                for (at, (key, value)) in members.iter().enumerate() {
                    separate(at, out);
                    write_text(key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Appends a list of things, each written by `write`.
pub(super) fn write_list<T>(
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        separate(at, out);
        write(item, out);
    }
    out.push(b']');
}

/// A comma in front of all but the first.
fn separate(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    debug_assert!(
        text.bytes()
            .all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
    );
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut text = Tail::new();
    text.digits(number.unsigned_abs(), 1);
    if number < 0 {
        text.push(b'-');
    }
    out.extend_from_slice(text.bytes());
}

/// `units / 10^scale`, as a text with so many places.
fn write_fixed(units: i64, scale: usize, places: usize, out: &mut Vec<u8>) {
    let (unit, size) = (TENS[scale], units.unsigned_abs());
    let mut text = Tail::new();
    text.push(b'"');
    text.digits(size % unit * TENS[places - scale], places);
    text.push(b'.');
    text.digits(size / unit, 1);
    if units < 0 {
        text.push(b'-');
    }
    text.push(b'"');
    out.extend_from_slice(text.bytes());
}

/// A short text that is written from its end.
struct Tail {
    text: [u8; Tail::SIZE],
    begin: usize,
}

impl Tail {
    /// Of an `i64` with eight places: 19 digits in front, 8 behind, point, sign and two quotes.
    const SIZE: usize = 31;

    fn new() -> Tail {
        Tail {
            text: [0; Tail::SIZE],
            begin: Tail::SIZE,
        }
    }

    fn push(&mut self, byte: u8) {
        self.begin -= 1;
        self.text[self.begin] = byte;
    }

    /// A number in at least `least` digits.
    fn digits(&mut self, number: u64, least: usize) {
        let (mut rest, mut written) = (number, 0);
        while rest > 0 || written < least {
            self.push(b'0' + (rest % 10) as u8);
            rest /= 10;
            written += 1;
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.text[self.begin..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: Value, expected: &str) {
        let mut out = Vec::new();
        value.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_are_written_as_binance_writes_them() {
        check(Value::Fixed(6_412_345, 2), r#""64123.45000000""#);
        check(Value::Fixed(1234, 8), r#""0.00001234""#);
        check(Value::Fixed(-16_682, 2), r#""-166.82000000""#);
        check(Value::Fixed(-5, 2), r#""-0.05000000""#);
        check(Value::Fixed(7, 0), r#""7.00000000""#);
        check(Value::Fixed(0, 0), r#""0.00000000""#);
        check(Value::Fixed(i64::MAX, 8), r#""92233720368.54775807""#);
        check(Value::Thousandths(-2427), r#""-2.427""#);
        check(Value::Thousandths(0), r#""0.000""#);
        check(Value::Int(0), "0");
        check(Value::Int(i64::MIN), "-9223372036854775808");
        check(Value::Bool(true), "true");
    }

    #[test]
    fn trees_have_commas_between_their_parts() {
        let list = [Value::Int(1), Value::Bool(false), Value::List(&[])];
        let object = [("a", Value::List(&list)), ("b", Value::Text("x"))];
        check(Value::Object(&object), r#"{"a":[1,false,[]],"b":"x"}"#);
        check(Value::Object(&[]), "{}");
        let mut out = Vec::new();
        write_list(0..3, &mut out, |number, out| Value::Int(number).write(out));
        assert_eq!(out, b"[0,1,2]");
    }
}
