//! A JSON writer with Binance's number format: prices and amounts are strings with eight decimal
//! places.
//!
//! A [`Value`] appends itself to a body. Nothing here parses JSON or knows what a value means.

/// A JSON value that borrows its parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Bool(bool),
    Int(i64),
    /// A string that needs no escapes.
    Text(&'a str),
    /// `units / 10^scale`, as a string with eight decimal places. `scale` is at most 8.
    Fixed(i64, u32),
    /// A number of thousandths, as a string with three decimal places.
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
    /// Appends the value to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(number) => write_integer(*number, out),
            Value::Text(text) => write_text(text, out),
            Value::Fixed(units, scale) => write_fixed(*units, *scale as usize, 8, out),
            Value::Thousandths(units) => write_fixed(*units, 3, 3, out),
            Value::List(values) => {
                out.push(b'[');
                for (at, value) in values.iter().enumerate() {
                    write_comma(at, out);
                    value.write(out);
                }
                out.push(b']');
            }
            Value::Object(members) => {
                out.push(b'{');
                for (at, (key, value)) in members.iter().enumerate() {
                    write_comma(at, out);
                    write_text(key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Appends a list; `write` appends each item.
pub(super) fn write_list<T>(
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        write_comma(at, out);
        write(item, out);
    }
    out.push(b']');
}

/// Appends the comma in front of the item `at`, which the first one does not have.
fn write_comma(at: usize, out: &mut Vec<u8>) {
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

fn write_integer(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends `units / 10^scale` as a string with `places` decimal places. `scale` is at most
/// `places`.
fn write_fixed(units: i64, scale: usize, places: usize, out: &mut Vec<u8>) {
    let (unit, magnitude) = (TENS[scale], units.unsigned_abs());
    let mut buffer = itoa::Buffer::new();
    out.push(b'"');
    if units < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(buffer.format(magnitude / unit).as_bytes());
    out.push(b'.');
    let fraction = buffer.format(magnitude % unit * TENS[places - scale]);
    out.resize(out.len() + places - fraction.len(), b'0');
    out.extend_from_slice(fraction.as_bytes());
    out.push(b'"');
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
