//! The cursor: what is a value, and where the bytes cut one off.

use super::*;
use crate::rng::Rng;

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
fn every_front_of_a_value_is_cut_and_nothing_else() {
    let text = r#"{"a":[1,-2.5e+7,"x\u00e9\n",true,null,NaN,-Infinity,{}],"bcdefghijkl":"mnopqrstuvwxyz"}"#;
    for at in 0..text.len() {
        assert_eq!(value(&text[..at]), Err(Stop::Cut), "{at}");
    }
    assert_eq!(value(text).map(|(_, length)| length), Ok(text.len()));
    assert_eq!(value("12"), Err(Stop::Cut), "more digits may come");
}

#[test]
fn depth_is_capped() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(value(&nested(MAX_DEPTH)).is_ok());
    let too_deep = Err(Stop::Malformed(MAX_DEPTH, NO_DEEPER));
    assert_eq!(value(&nested(MAX_DEPTH + 1)), too_deep);
    assert_eq!(value(&nested(1_000_000)), too_deep);
    let wide = format!("[{}0]", "[[]],".repeat(1000));
    assert!(value(&wide).is_ok(), "width is no depth");
}

#[test]
fn a_special_byte_is_found_at_every_place_of_a_text() {
    for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
        for before in 0..40 {
            let mut bytes = vec![b' '; before];
            bytes.push(special);
            bytes.extend_from_slice(b"\"\\\x00 behind it");
            assert_eq!(plain_bytes(&bytes), before, "{special}");
        }
    }
    for plain in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
        assert_eq!(plain_bytes(&[plain; 21]), 21, "{plain}");
    }
}

#[test]
fn it_agrees_with_serde_json_on_what_is_json() {
    // Seeded garbage of the bytes that mean something.
    let letters = br#"{}[],:"\ 01.-eE+tfnu"#;
    let words: [&[u8]; 6] = [b"true", b"null", b"\"a\"", b"1.5", b"\\u0041", b"\"k\":"];
    let mut rng = Rng::new(7);
    let mut random = |below: usize| rng.below(below as u64) as usize;
    let mut good = 0;
    for _ in 0..200_000 {
        let mut text = Vec::new();
        for _ in 0..1 + random(8) {
            match random(2) {
                0 => text.push(letters[random(letters.len())]),
                _ => text.extend_from_slice(words[random(words.len())]),
            }
        }
        text.push(b' ');
        let mut cursor = Cursor::new(&text);
        let ours = cursor.value().is_ok() && cursor.peek() == Err(Stop::Cut);
        let theirs = serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok();
        assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&text));
        good += u32::from(ours);
    }
    assert!(good > 1000, "{good}");
}
