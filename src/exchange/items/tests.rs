//! The item reader: bodies in pieces of any size, and what is no body.

use super::*;
use crate::rng::Rng;

/// The most bytes of an item, and of an envelope.
const CAPS: [usize; 2] = [100, 100];

fn place(text: &str) -> &'static Place {
    Box::leak(Box::new(Place::try_from(text.to_owned()).expect(text)))
}

/// Writes an item down as it is.
fn note(place: &Place, item: Option<&mut Cursor<'_>>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let Some(item) = item else {
        notes.push("too long".to_string());
        return Ok(());
    };
    let begin = item.position();
    place.name_of(item)?;
    item.value()?;
    notes.push(String::from_utf8_lossy(item.since(begin)).into_owned());
    Ok(())
}

type Read = (Vec<String>, String, Result<bool, ReadError>);

/// The items, the envelope, and whether the body was whole.
fn read<'b>(
    place: &'static Place,
    caps: [usize; 2],
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> Read {
    let mut notes = Vec::new();
    let mut items = Items::new(place, caps[0], caps[1]);
    let mut pieces = pieces.into_iter();
    let fed = pieces.try_for_each(|piece| items.feed(piece, &mut |it| note(place, it, &mut notes)));
    let envelope = String::from_utf8_lossy(&items.envelope).into_owned();
    (notes, envelope, fed.map(|()| items.is_whole()))
}

/// The same at once, split at every place, and byte by byte. Of a body that is of no use the
/// last item may be missing, and what was both wrong and cut off may be called either.
fn read_split(path: &str, body: &str) -> Read {
    let place = place(path);
    let bytes = body.as_bytes();
    let whole = read(place, CAPS, [bytes]);
    let same = |other: Read, how: &str| match &whole.2 {
        Ok(true) => assert_eq!(other, whole, "{how}: {body}"),
        end => {
            assert!(whole.0.starts_with(&other.0), "{how}: {body}");
            assert!(other.2 == *end || other.2 == Ok(false), "{how}: {body}");
        }
    };
    for at in 0..=bytes.len() {
        let (front, back) = bytes.split_at(at);
        let other = read(place, CAPS, [front, back]);
        same(other, &format!("split at {at}"));
    }
    same(read(place, CAPS, bytes.chunks(1)), "byte by byte");
    whole
}

#[test]
fn items_are_found_at_their_place_and_left_out_of_the_envelope() {
    let check = |path: &str, body: &str, items: &[&str], envelope: &str| {
        let read = read_split(path, body);
        assert_eq!(read.0, items, "{body}");
        assert_eq!((&*read.1, read.2), (envelope, Ok(true)), "{body}");
    };
    check("[]", "[]", &[], "[]");
    check("[]", " [ ] \n", &[], "[]");
    check(
        "[]",
        r#" [ {"a":"}]\"{"} ,[1,[2]], "x,]" ,12 ,-1.5e7,null,{}, [ ] ]  "#,
        &[r#"{"a":"}]\"{"}"#, "[1,[2]]", r#""x,]""#, "12", "-1.5e7", "null", "{}", "[ ]"],
        "[]",
    );
    check(
        "data[]",
        r#"{"code": "0\"[", "data":[[1],[2]],"m":{"data":[3]}, "n":[true,{"data":[[4]]}] }"#,
        &["[1]", "[2]"],
        r#"{"code": "0\"[","data":[],"m":{"data":[3]},"n":[true,{"data":[[4]]}]}"#,
    );
    check(
        "result.list[]",
        r#"{"list":[1],"result":{"x":{"list":[2]},"list":[3],"z":0},"list":[4]}"#,
        &["3"],
        r#"{"list":[1],"result":{"x":{"list":[2]},"list":[],"z":0},"list":[4]}"#,
    );
    check(
        "result{}",
        r#"{"error":[],"result":{ "A" : {"a":1} ,"B":[2], "C":3 ,"D":"}" }}"#,
        &[r#""A" : {"a":1}"#, r#""B":[2]"#, r#""C":3"#, r#""D":"}""#],
        r#"{"error":[],"result":{}}"#,
    );
    check(
        "result.*[]",
        r#"{"result":{"last":7,"XBT":[[1],[2]],"deep":{"x":[9]},"more":[[3]]}}"#,
        &["[1]", "[2]", "[3]"],
        r#"{"result":{"last":7,"XBT":[],"deep":{"x":[9]},"more":[]}}"#,
    );
    check(
        "data[0][]",
        r#"{"data":[[1,2],[3]],"x":[[4]]}"#,
        &["1", "2"],
        r#"{"data":[[],[3]],"x":[[4]]}"#,
    );
    check("data", r#"{"data":{"a":[1 , 2]} }"#, &[], r#"{"data":{"a":[1 , 2]}}"#);
    check("data[]", r#"{"data":{"a":1}}"#, &[], r#"{"data":{"a":1}}"#);
    check("data{}", r#"{"data":[1]}"#, &[], r#"{"data":[1]}"#);
}

#[test]
fn what_breaks_the_grammar_is_an_error_at_its_place() {
    let check = |path: &str, body: &str, at: u64| match read_split(path, body).2 {
        Err(ReadError::Malformed { at: place, .. }) => assert_eq!(place, at, "{body}"),
        other => panic!("{body}: {other:?}"),
    };
    let elements = |body, at| check("[]", body, at);
    elements("[1 2]", 3);
    elements("[{} {}]", 4);
    elements("[1,]", 3);
    elements("[,1]", 1);
    elements("[1,,2]", 3);
    elements("[1}", 2);
    elements("[1]]", 3);
    elements("[1] x", 4);
    elements("[{]}]", 2);
    elements(r#"[{"a":01}]"#, 7);
    elements("[\"a\nb\"]", 3);
    elements("<html>", 0);
    elements("nothing", 0);
    elements("7", 0);
    elements("\"text\"", 0);
    elements("\u{feff}[]", 0);
    let members = |body, at| check("r{}", body, at);
    members(r#"{"r":{"a",1}}"#, 9);
    members(r#"{"r":{"a":}}"#, 10);
    members(r#"{"r":{7:1}}"#, 6);
    members(r#"{"r":{"a":1]}"#, 11);
    members(r#"{"r" {}}"#, 5);
    members(r#"{"r":{} "x":1}"#, 8);
    members(r#"{"r":{},}"#, 8);
    members(r#"{r:{}}"#, 1);
    members(r#"{"x":[1,],"r":{}}"#, 8);
    members(r#"{"x":[1},"r":{}}"#, 7);
    members(r#"{"x":1]"#, 6);
    members(r#"{"x":1 2}"#, 7);
    members(r#"{"x":?}"#, 5);
    members(r#"{"r":{}}{"#, 8);
}

#[test]
fn every_front_of_a_body_is_cut_short_and_no_error() {
    let body = r#"{"code":"0","data":[{"a":[1,2]},"x\\",-1.5, null ],"msg":"\u0041","n":{"o":[]}}"#;
    for at in 0..body.len() {
        let read = read_split("data[]", &body[..at]);
        assert_eq!(read.2, Ok(false), "{at}");
    }
}

#[test]
fn an_item_above_the_cap_is_passed_unread_and_those_around_it_are_read() {
    let check = |item: String, form| {
        let place = place(if form == Form::Members { "{}" } else { "[]" });
        let body = match form {
            Form::Members => format!(r#"{{{item},"b":1}}"#),
            _ => format!("[1,{item},[2]]"),
        };
        for (cap, fits) in [(-1isize, false), (0, true), (1, true)] {
            let caps = [item.len().saturating_add_signed(cap), 100];
            for size in [1, 2, 7, item.len(), item.len() + 1, body.len()] {
                let read = read(place, caps, body.as_bytes().chunks(size));
                let item = if fits { &*item } else { "too long" };
                let expected: &[&str] = match form {
                    Form::Members => &[item, r#""b":1"#],
                    _ => &["1", item, "[2]"],
                };
                assert_eq!(read.0, expected, "{cap} {size}");
                assert_eq!(read.2, Ok(true), "{item} {cap} {size}");
            }
        }
    };
    check(r#"{"a":[1,2,"xyz"]}"#.into(), Form::Elements);
    check(r#""abcdefgh""#.into(), Form::Elements);
    check("1234567890".into(), Form::Elements);
    check(r#""name":{"a":[1,2,"xyz"]}"#.into(), Form::Members);
}

#[test]
fn of_an_item_that_never_ends_nothing_is_kept_above_the_cap() {
    for body in ["[\"", "[[", "[{\"", "[1"] {
        let place = place("[]");
        let endless = body.to_owned() + &"1".repeat(1000);
        let mut items = Items::new(place, CAPS[0], CAPS[1]);
        for piece in endless.as_bytes().chunks(16) {
            let fed = items.feed(piece, &mut |it| note(place, it, &mut Vec::new()));
            assert_eq!(fed, Ok(()), "{body}");
            assert!(items.partial.len() <= CAPS[0], "{body}");
        }
        assert!(!items.is_whole() && items.partial.is_empty(), "{body}");
    }
}

#[test]
fn the_envelope_may_be_as_long_as_the_cap_and_no_longer() {
    let place = place("d[]");
    let body = r#"{"d":[[1],[2],[3]], "x":"yz" , "n":12}"#;
    let kept = r#"{"d":[],"x":"yz","n":12}"#.len();
    for (cap, fits) in [(kept - 1, false), (kept, true), (kept + 1, true)] {
        let caps = [100, cap];
        for size in [1, 3, body.len()] {
            let read = read(place, caps, body.as_bytes().chunks(size));
            let expected = if fits { Ok(true) } else { Err(ReadError::EnvelopeTooLong { cap }) };
            assert_eq!(read.2, expected, "{cap} {size}");
        }
    }
}

#[test]
fn depth_is_capped_in_the_envelope_and_in_the_items() {
    let check = |body: String, expected: Result<bool, u64>| {
        let place = place("d[]");
        for size in [1, 5, body.len()] {
            let read = read(place, [1000, 1000], body.as_bytes().chunks(size));
            let expected = expected.map_err(|at| malformed(at, NO_DEEPER));
            assert_eq!(read.2, expected, "{body}");
        }
    };
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let depth = MAX_DEPTH;
    check(format!("{{\"d\":[{}]}}", nested(depth)), Ok(true));
    check(format!("{{\"d\":[{}]}}", nested(depth + 1)), Err(6 + depth as u64));
    check(format!("{{\"x\":{}}}", nested(depth)), Ok(true));
    check(format!("{{\"x\":{}}}", nested(depth + 1)), Err(5 + depth as u64));
}

#[test]
fn only_the_front_of_a_cut_item_is_held() {
    let place = place("[]");
    let mut items = Items::new(place, CAPS[0], CAPS[1]);
    let mut notes = Vec::new();
    let mut feed = |items: &mut Items, piece: &str, held: &str| {
        let fed = items.feed(piece.as_bytes(), &mut |it| note(place, it, &mut notes));
        assert_eq!((fed, &*items.partial), (Ok(()), held.as_bytes()), "{piece}");
    };
    feed(&mut items, "[{\"a\":1},{\"b\":2}", "");
    feed(&mut items, ",{\"c\"", "{\"c\"");
    feed(&mut items, "", "{\"c\"");
    feed(&mut items, ":3},4", "4");
    feed(&mut items, "5", "45");
    feed(&mut items, ",6]", "");
    assert_eq!(notes, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "45", "6"]);
    assert!(items.is_whole());
}

#[test]
fn seeded_garbage_ends_in_the_same_items_however_it_is_split() {
    let letters = br#"{{}}[[]]::,,"" \0a1-"#;
    let mut rng = Rng::new(99);
    let mut random = |below: usize| rng.below(below as u64) as usize;
    for round in 0..3000 {
        let mut body = String::from(["[", "{\"d\":[", "{\"d\":{"][round % 3]);
        for _ in 0..random(24) {
            body.push(char::from(letters[random(letters.len())]));
        }
        let path = match round % 3 {
            0 => "[]",
            1 => "d[]",
            _ => "d{}",
        };
        let _ = read_split(path, &body);
    }
}
