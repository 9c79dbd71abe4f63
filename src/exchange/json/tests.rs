//! The cursor: what is a value, and where the bytes cut one off.

use super::*;

fn value(text: &str) -> Result<(Raw<'_>, usize), Stop> {
    let mut cursor = Cursor::new(text.as_bytes());
    let value = cursor.value()?;
    Ok((value, cursor.position()))
}

#[test]
fn words_are_read_as_they_are_and_end_where_they_end() {
    let check = |text: &str, expected: Raw<'_>, length: usize| {
        assert_eq!(value(text), Ok((expected, length)), "{text}");
    };
    check(" null,", Raw::Null, 5);
    check("true]", Raw::Bool(true), 4);
    check("false}", Raw::Bool(false), 5);
    check("0,", Raw::Number(b"0"), 1);
    check("-0.50e-07 ", Raw::Number(b"-0.50e-07"), 9);
    check("12E+3]", Raw::Number(b"12E+3"), 5);
    check("NaN,", Raw::NotANumber, 3);
    check("Infinity,", Raw::NotANumber, 8);
    check("-Infinity,", Raw::NotANumber, 9);
    check("\"\"", Raw::Text(b""), 2);
    check("\"a{b]c,\u{fc}\"x", Raw::Text("a{b]c,\u{fc}".as_bytes()), 10);
    check(r#""a\"\\\/\u00fC""#, Raw::Escaped(br#""a\"\\\/\u00fC""#), 15);
    check("[ ]x", Raw::Array(b"[ ]"), 3);
    check(r#"{"a" : {"b":[1, {} ,"}"]}}"#, Raw::Object(br#"{"a" : {"b":[1, {} ,"}"]}}"#), 26);
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    let check = |text: &str, at: usize| match value(text) {
        Err(Stop::Malformed(place, _)) => assert_eq!(place, at, "{text}"),
        other => panic!("{text}: {other:?}"),
    };
    for word in ["nul,", "True ", "nan ", "+1 ", ".5 ", "<html>", "]", ",", "'a'", "-I,"] {
        check(word, 0);
    }
    check("01,", 1);
    check("-01,", 2);
    check("1.,", 2);
    check("1e,", 2);
    check("1e+,", 3);
    check("--1", 1);
    check("-a", 1);
    check("\"a\nb\"", 2);
    check("\"long enough for eight\tbytes\"", 22);
    check(r#""a\x""#, 3);
    check(r#""\u00g0""#, 5);
    check("[1 2]", 3);
    check("[1,]", 3);
    check("[,1]", 1);
    check("[{} 1]", 4);
    check("[1}", 2);
    check(r#"{"a":1]"#, 6);
    check(r#"{"a" 1}"#, 5);
    check(r#"{"a":1,}"#, 7);
    check("{a:1}", 1);
    check("{1:1}", 1);
    check(r#"{"a":}"#, 5);
}

#[test]
fn a_special_byte_is_found_at_every_place_of_a_text() {
    for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
        for before in 0..40 {
            let mut bytes = vec![b' '; before];
            bytes.push(special);
            assert_eq!(plain_bytes(&bytes), before, "{special} at the end");
            bytes.extend_from_slice(b"\"\\\x00 behind it");
            assert_eq!(plain_bytes(&bytes), before, "{special}");
        }
    }
    for plain in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
        assert_eq!(plain_bytes(&[plain; 21]), 21, "{plain}");
    }
}
