//! The item reader: bodies in pieces of any size, and what is no body.

use super::*;
use crate::rng::Rng;

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

/// The items, the envelope, and whether the body was whole. `caps`: the most bytes of an item, and of the envelope.
fn read<'b>(
    place: &'static Place,
    caps: [usize; 2],
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> Read {
    let mut notes = Vec::new();
    let mut items = Items::new(place, caps[0], caps[1]);
    let mut pieces = pieces.into_iter();
    let fed = pieces.try_for_each(|piece| {
        items.feed(piece, &mut |it| note(place, it, &mut notes))?;
        // Not even of an item that never ends is more held.
        assert!(items.partial.len() <= caps[0].max(caps[1]));
        Ok(())
    });
    let envelope = String::from_utf8_lossy(&items.envelope).into_owned();
    (notes, envelope, fed.map(|()| items.is_whole()))
}

/// A body that is made by chance, and what is to be read of it.
#[derive(Default)]
struct Made {
    /// True if there are blanks between its parts.
    is_wide: bool,
    body: String,
    items: Vec<String>,
    envelope: String,
}

/// Places, and the steps to them: a member, any member, an element, and what is there.
const PLACES: [(&str, &[&str]); 8] = [
    ("[]", &["[]"]),
    ("{}", &["{}"]),
    ("data[]", &["data", "[]"]),
    ("data{}", &["data", "{}"]),
    ("data.list[]", &["data", "list", "[]"]),
    ("list.*[]", &["list", "*", "[]"]),
    ("data[0][]", &["data", "0", "[]"]),
    ("data", &["data", ""]),
];

/// A value of any kind; with `but`, none that begins with this.
fn value(rng: &mut Rng, depth: u64, but: &str) -> String {
    let leaves = ["null", "true", "12", "-1.5e7", r#""x,]""#, r#""}]\"{""#, "[ ]", "{}"];
    let made = match rng.below(4) {
        0 if depth > 0 => format!("[{} , {}]", value(rng, depth - 1, ""), value(rng, 0, "")),
        1 if depth > 0 => format!("{{\"data\" :{}, \"x\": 1}}", value(rng, depth - 1, "")),
        _ => leaves[rng.below(8) as usize].to_string(),
    };
    if but.is_empty() || !made.starts_with(but) { made } else { "7".to_string() }
}

impl Made {
    fn blanks(&self, rng: &mut Rng) -> &'static str {
        ["", " ", "\r\n\t "][if self.is_wide { rng.below(3) as usize } else { 0 }]
    }

    /// Something outside of the items.
    fn add(&mut self, text: &str, rng: &mut Rng) {
        self.body += self.blanks(rng);
        self.body += text;
        self.envelope += text;
    }

    /// The value to which these steps lead, behind the name of its member.
    fn go(&mut self, name: &str, steps: &[&str], rng: &mut Rng) {
        let names =
            ["a", "b", "c"].map(|it| format!("\"{it}\"{}:{}", self.blanks(rng), self.blanks(rng)));
        match *steps {
            [""] => self.add(&(name.to_string() + &value(rng, 2, "")), rng),
            // Something else is there.
            [kind @ ("[]" | "{}")] if !name.is_empty() && rng.below(8) == 0 => {
                self.add(&(name.to_string() + &value(rng, 2, &kind[..1])), rng);
            }
            [kind @ ("[]" | "{}")] => {
                self.add(&(name.to_string() + &kind[..1]), rng);
                let before = self.items.len();
                for name in &names[..rng.below(4) as usize] {
                    let name = if kind == "{}" { name } else { "" };
                    let comma = if self.items.len() > before { "," } else { "" };
                    let item = name.to_string() + &value(rng, 2, "");
                    self.body += &[comma, self.blanks(rng), &item].concat();
                    self.items.push(item);
                }
                self.body += &kind[1..];
                self.envelope += &kind[1..];
            }
            ["0", ref rest @ ..] => {
                self.add(&(name.to_string() + "["), rng);
                self.go("", rest, rng);
                self.add(",", rng);
                self.add(&value(rng, 2, ""), rng);
                self.add("]", rng);
            }
            [step, ref rest @ ..] => {
                self.add(&(name.to_string() + "{"), rng);
                let on_path = rng.below(3) as usize;
                for (at, other) in names.iter().enumerate() {
                    if at > 0 {
                        self.add(",", rng);
                    }
                    let is_any = step == "*" && rng.below(2) == 0;
                    let but = if step == "*" { "[" } else { "" };
                    match at == on_path || is_any {
                        true if step == "*" => self.go(other, rest, rng),
                        true => self.go(&other.replacen(char::is_alphabetic, step, 1), rest, rng),
                        false => self.add(&(other.to_string() + &value(rng, 2, but)), rng),
                    }
                }
                self.add("}", rng);
            }
            [] => unreachable!("a kind ends them"),
        }
    }
}

#[test]
fn whatever_the_body_its_items_are_found_at_their_place_and_left_out_of_the_envelope() {
    for seed in 0..5000 {
        let mut made = Made { is_wide: seed % 2 == 0, ..Made::default() };
        let mut rng = Rng::new(seed);
        let (path, steps) = PLACES[rng.below(8) as usize];
        made.go("", steps, &mut rng);
        let (place, body) = (place(path), made.body.as_bytes());
        // An item above its cap is passed unread, and an envelope above its own is an error. Blanks behind
        // what is cut may count.
        let (fits, blanks) = (rng.below(2) == 0, if made.is_wide { 4 } else { 0 });
        let cap = made.envelope.len() + blanks;
        let caps = [2 + rng.below(40) as usize, if fits { cap } else { made.envelope.len() - 1 }];
        let shown = |it: &String| if it.len() > caps[0] { "too long" } else { it }.to_string();
        let items: Vec<String> = made.items.iter().map(shown).collect();
        let cut = rng.below(body.len() as u64) as usize;
        for size in [1, 2, 7, cut + 1, body.len()] {
            let (found, envelope, end) = read(place, caps, body.chunks(size));
            if !fits {
                assert_eq!(end, Err(ReadError::EnvelopeTooLong { cap: caps[1] }), "{seed} {size}");
                continue;
            }
            assert_eq!((found, envelope), (items.clone(), made.envelope.clone()), "{seed} {size}");
            assert_eq!(end, Ok(true), "{seed} {size}");
        }
        // A front of it is cut short. With one byte more, or another one, it is what serde_json says, and its fault
        // is where the cursor finds it.
        let of = |body: &[u8]| read(place, [1000, 1000], body.chunks(1 + cut % 5)).2;
        assert_eq!(of(&body[..cut]), Ok(false), "seed {seed} at {cut}");
        let more = br#"{}[]:,"\ 0a1-"#[rng.below(13) as usize];
        let damaged = [&body[..cut], &[more], &body[cut + rng.below(2) as usize..]].concat();
        let (text, end) = (String::from_utf8_lossy(&damaged), of(&damaged));
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&damaged).is_ok();
        assert_eq!(end == Ok(true), is_json, "{text}");
        if let Err(ReadError::Malformed { at, expected }) = end
            && expected != "an array or an object"
        {
            let mut cursor = Cursor::new(&damaged);
            let place = match cursor.value() {
                Err(Stop::Malformed(place, _)) => place,
                _ => cursor.peek().map(|_| cursor.position()).expect("something more"),
            };
            assert_eq!(at, place as u64, "{text}");
        }
    }
}

#[test]
fn what_is_no_body_is_an_error_at_its_place() {
    for (body, at) in [
        ("<html>", 0),
        ("nothing", 0),
        ("7", 0),
        ("\"text\"", 0),
        ("\u{feff}[]", 0),
        ("[1] x", 4),
        ("[1]{", 3),
    ] {
        for size in [1, 2, body.len()] {
            match read(place("[]"), [100, 100], body.as_bytes().chunks(size)).2 {
                Err(ReadError::Malformed { at: place, .. }) => assert_eq!(place, at, "{body}"),
                other => panic!("{body}: {other:?}"),
            }
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
