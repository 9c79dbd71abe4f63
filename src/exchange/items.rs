//! The item reader: finds one item after another in a JSON body that arrives in pieces.
//!
//! It goes through the body by *entries*. An entry is an item; or a member or an element that is not on
//! the path to the items; or, on that path, the opening bracket of a container, with the member's name.
//! An entry that lies whole in the fed bytes is read there, without a copy.
//!
//! Owns the *partial* entry, the front of one whose end has not arrived yet, and the *envelope*, which is
//! everything outside of the items. Both are limited in size. It never looks back, and does not know
//! what an item means.

use super::error::ReadError;
use super::json::{Cursor, MAX_DEPTH, NO_DEEPER, Stop};
use super::path::{Form, Place, Step};

/// The most bytes of each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// One item, whether it came in pieces or not.
    pub item_bytes: usize,
    /// Everything outside of the items, with the white space inside its values.
    pub envelope_bytes: usize,
}

impl Caps {
    /// An envelope holds codes, a time, perhaps the exchange's own limits: all recorded ones are
    /// below 1 KiB.
    const ENVELOPE_BYTES: usize = 16 * 1024;
}

impl From<&crate::config::Limits> for Caps {
    fn from(limits: &crate::config::Limits) -> Caps {
        Caps { item_bytes: limits.upstream_item_bytes, envelope_bytes: Caps::ENVELOPE_BYTES }
    }
}

/// Takes the item at the cursor, which is an element, or a member's name, colon and value, and moves the
/// cursor after it. After [`Stop::Cut`] the same item comes again with more bytes, so nothing of it may
/// be used before. `None`: an item that is longer than the limit, and was passed unread.
pub(super) type Take<'t> = dyn FnMut(Option<&mut Cursor<'_>>) -> Result<(), Stop> + 't;

/// What follows an entry.
const SEPARATOR: &str = "a comma or a closing bracket";

/// One body on its way through.
pub(super) struct Items {
    place: &'static Place,
    caps: Caps,
    state: State,
    /// The open containers: those on the path, outermost first, and the one that holds the items.
    open: Vec<Container>,
    /// True if there was a container of items.
    found: bool,
    envelope: Vec<u8>,
    partial: Vec<u8>,
    /// True if the partial entry is an item above the limit, of which nothing is kept.
    is_too_long: bool,
    extent: Extent,
    /// The number of bytes of the body before those being fed.
    passed: u64,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// An entry or the end of its container.
    First,
    /// An entry.
    Entry,
    /// After an entry: a comma or the end of the container.
    Next,
    /// The rest of the partial entry.
    Partial,
    /// Nothing: the body's value has ended.
    End,
}

struct Container {
    /// The bracket that closes it.
    close: u8,
    /// The index of the entry that comes or has come last.
    index: u16,
}

/// How far the partial entry goes: enough of the grammar to find its end.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    depth: usize,
    string: bool,
    escape: bool,
}

impl Items {
    pub(super) fn new(place: &'static Place, caps: Caps) -> Items {
        Items {
            place,
            caps,
            state: State::Entry,
            open: Vec::new(),
            found: false,
            envelope: Vec::new(),
            partial: Vec::new(),
            is_too_long: false,
            extent: Extent::default(),
            passed: 0,
        }
    }

    /// Everything outside of the items: JSON, once the body is whole.
    pub(super) fn envelope(&self) -> &[u8] {
        &self.envelope
    }

    /// True if the body's value has ended.
    pub(super) fn is_whole(&self) -> bool {
        self.state == State::End
    }

    /// True if there was a container of items, perhaps an empty one.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Reads the next bytes of the body, in pieces of any size.
    pub(super) fn feed(&mut self, bytes: &[u8], take: &mut Take<'_>) -> Result<(), ReadError> {
        let mut at = 0;
        while at < bytes.len() {
            let (rest, fed) = (&bytes[at..], self.passed + at as u64);
            at += match self.state {
                State::Partial => self.in_partial(rest, fed, take)?,
                _ => self.among_entries(rest, fed, take)?,
            };
        }
        self.passed += bytes.len() as u64;
        Ok(())
    }

    /// Passes entries and what is between them, up to one that goes on after these bytes, and returns the
    /// number of bytes. `fed` is the place of the first one in the body.
    fn among_entries(
        &mut self,
        bytes: &[u8],
        fed: u64,
        take: &mut Take<'_>,
    ) -> Result<usize, ReadError> {
        let mut cursor = Cursor::new(bytes);
        while let Ok(byte) = cursor.peek() {
            let at = cursor.position();
            let wrong = |expected| Err(malformed(fed + at as u64, expected));
            let close = self.open.last().map(|container| container.close);
            match self.state {
                State::First | State::Next if close == Some(byte) => {
                    cursor.skip();
                    self.open.pop();
                    self.keep(&[byte])?;
                    self.end_entry();
                }
                State::Next if byte == b',' => {
                    cursor.skip();
                    if !self.is_among_items() {
                        self.keep(b",")?;
                    }
                    if let Some(container) = self.open.last_mut() {
                        container.index = container.index.saturating_add(1);
                    }
                    self.state = State::Entry;
                }
                State::Next => return wrong(SEPARATOR),
                State::End => return wrong("nothing after the body's value"),
                _ => match self.entry(&mut cursor, fed, take) {
                    Err(ReadError::CutShort) => {
                        self.state = State::Partial;
                        self.extent = Extent::default();
                        return Ok(at);
                    }
                    read => read?,
                },
            }
        }
        Ok(bytes.len())
    }

    /// Reads the entry at the cursor. After [`ReadError::CutShort`] it comes again with more bytes.
    fn entry(
        &mut self,
        cursor: &mut Cursor<'_>,
        fed: u64,
        take: &mut Take<'_>,
    ) -> Result<(), ReadError> {
        let begin = cursor.position();
        let stopped = |stop| match stop {
            Stop::Cut => ReadError::CutShort,
            Stop::Malformed(at, expected) => malformed(fed + at as u64, expected),
        };
        if self.is_among_items() {
            match self.past_too_long(cursor) {
                Some(past) => {
                    *cursor = past;
                    take(None)
                }
                None => take(Some(cursor)),
            }
            .map_err(stopped)?;
            self.state = State::Next;
            return Ok(());
        }
        let opened = self.pass_outside(cursor).map_err(stopped)?;
        self.keep(cursor.since(begin))?;
        match opened {
            Some(close) => {
                self.open.push(Container { close, index: 0 });
                self.found |= self.is_among_items();
                self.state = State::First;
            }
            None => self.end_entry(),
        }
        Ok(())
    }

    /// The place behind the item at the cursor, if it is longer than the limit.
    fn past_too_long<'a>(&self, cursor: &Cursor<'a>) -> Option<Cursor<'a>> {
        let (begin, cap) = (cursor.position(), self.caps.item_bytes);
        let mut past = cursor.clone();
        if past.left() <= cap {
            return None;
        }
        self.place.name_of(&mut past).ok()?;
        past.value().ok()?;
        (past.position() - begin > cap).then_some(past)
    }

    /// Passes an entry outside of the items. If it is a bracket on the path, returns the one that closes it.
    fn pass_outside(&self, cursor: &mut Cursor<'_>) -> Result<Option<u8>, Stop> {
        let path = &self.place.path;
        let is_on_path = match self.open.last() {
            None => true,
            Some(container) => match &path[self.open.len() - 1] {
                Step::At(index) => *index == container.index,
                step => step.is_to(cursor.name()?),
            },
        };
        let byte = cursor.peek()?;
        if self.open.is_empty() && !matches!(byte, b'[' | b'{') {
            return Err(Stop::Malformed(cursor.position(), "an array or an object"));
        }
        let brackets = match (path.get(self.open.len()), self.place.form) {
            (Some(Step::At(_)), _) | (None, Form::Elements) => Some((b'[', b']')),
            (Some(_), _) | (None, Form::Members) => Some((b'{', b'}')),
            (None, Form::Itself) => None,
        };
        match brackets {
            Some((open, close)) if is_on_path && byte == open => {
                cursor.skip();
                Ok(Some(close))
            }
            _ => cursor.value().map(|_| None),
        }
    }

    /// Copies the rest of the partial entry, and reads it when it is whole.
    fn in_partial(
        &mut self,
        bytes: &[u8],
        fed: u64,
        take: &mut Take<'_>,
    ) -> Result<usize, ReadError> {
        let end = self.extent.end_in(bytes, fed)?;
        let more = &bytes[..end.unwrap_or(bytes.len())];
        let (begin, length) = (fed - self.partial.len() as u64, self.partial.len() + more.len());
        if self.is_among_items() {
            self.is_too_long |= length > self.caps.item_bytes;
        } else {
            self.check_envelope(length)?;
        }
        if self.is_too_long {
            // Only its end matters.
            self.partial.clear();
            if end.is_some() && self.extent.depth == 0 {
                self.is_too_long = false;
                self.state = State::Next;
                let _ = take(None);
            }
            return Ok(more.len());
        }
        self.partial.extend_from_slice(more);
        let Some(end) = end else {
            return Ok(more.len());
        };
        let mut entry = std::mem::take(&mut self.partial);
        let is_open = self.extent.depth > 0;
        if !is_open {
            // A number has no end of its own, so the cursor must see what follows it.
            entry.extend_from_slice(&bytes[end..bytes.len().min(end + 1)]);
        }
        let mut cursor = Cursor::new(&entry);
        match self.entry(&mut cursor, begin, take) {
            // The bracket does not lead to the items.
            Err(ReadError::CutShort) if is_open => {
                self.partial = entry;
                return Ok(end);
            }
            Err(ReadError::CutShort) => return Err(malformed(begin, "a whole value")),
            read => read?,
        }
        let odd = cursor.peek().map_or(length, |_| cursor.position());
        if odd < length {
            return Err(malformed(begin + odd as u64, SEPARATOR));
        }
        entry.clear();
        self.partial = entry;
        Ok(end)
    }

    /// True if the next entry is an item.
    fn is_among_items(&self) -> bool {
        self.open.len() > self.place.path.len()
    }

    fn end_entry(&mut self) {
        self.state = if self.open.is_empty() { State::End } else { State::Next };
    }

    /// Adds to the envelope.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        self.check_envelope(bytes.len())?;
        self.envelope.extend_from_slice(bytes);
        Ok(())
    }

    /// Refuses so many more bytes of the envelope, if they are too many.
    fn check_envelope(&self, length: usize) -> Result<(), ReadError> {
        let cap = self.caps.envelope_bytes;
        match length + self.envelope.len() > cap {
            true => Err(ReadError::EnvelopeTooLong { cap }),
            false => Ok(()),
        }
    }
}

impl Extent {
    /// Where the entry ends in its next bytes: after the bracket that closes it, or before the comma or
    /// bracket that follows it. Its outermost opening bracket counts as an end too, because it may lead
    /// to the items. The content is not checked.
    fn end_in(&mut self, bytes: &[u8], fed: u64) -> Result<Option<usize>, ReadError> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.string {
                match byte {
                    _ if self.escape => self.escape = false,
                    b'\\' => self.escape = true,
                    b'"' => self.string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.string = true,
                b'[' | b'{' if self.depth == MAX_DEPTH => {
                    return Err(malformed(fed + at as u64, NO_DEEPER));
                }
                b'[' | b'{' => {
                    self.depth += 1;
                    if self.depth == 1 {
                        return Ok(Some(at + 1));
                    }
                }
                b']' | b'}' | b',' if self.depth == 0 => return Ok(Some(at)),
                b']' | b'}' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok(Some(at + 1));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

fn malformed(at: u64, expected: &'static str) -> ReadError {
    ReadError::Malformed { at, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps { item_bytes: 100, envelope_bytes: 100 };

    fn place(text: &str) -> &'static Place {
        Box::leak(Box::new(Place::try_from(text.to_owned()).expect(text)))
    }

    /// Writes an item down as it is.
    fn note(
        place: &Place,
        item: Option<&mut Cursor<'_>>,
        notes: &mut Vec<String>,
    ) -> Result<(), Stop> {
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
        caps: Caps,
        pieces: impl IntoIterator<Item = &'b [u8]>,
    ) -> Read {
        let mut notes = Vec::new();
        let mut items = Items::new(place, caps);
        let mut pieces = pieces.into_iter();
        let fed =
            pieces.try_for_each(|piece| items.feed(piece, &mut |it| note(place, it, &mut notes)));
        let envelope = String::from_utf8_lossy(items.envelope()).into_owned();
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
        let body =
            r#"{"code":"0","data":[{"a":[1,2]},"x\\",-1.5, null ],"msg":"\u0041","n":{"o":[]}}"#;
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
                let caps = Caps { item_bytes: item.len().saturating_add_signed(cap), ..CAPS };
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
            let mut items = Items::new(place, CAPS);
            for piece in endless.as_bytes().chunks(16) {
                let fed = items.feed(piece, &mut |it| note(place, it, &mut Vec::new()));
                assert_eq!(fed, Ok(()), "{body}");
                assert!(items.partial.len() <= CAPS.item_bytes, "{body}");
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
            let caps = Caps { envelope_bytes: cap, ..CAPS };
            for size in [1, 3, body.len()] {
                let read = read(place, caps, body.as_bytes().chunks(size));
                let expected =
                    if fits { Ok(true) } else { Err(ReadError::EnvelopeTooLong { cap }) };
                assert_eq!(read.2, expected, "{cap} {size}");
            }
        }
    }

    #[test]
    fn depth_is_capped_in_the_envelope_and_in_the_items() {
        let check = |body: String, expected: Result<bool, u64>| {
            let caps = Caps { item_bytes: 1000, envelope_bytes: 1000 };
            let place = place("d[]");
            for size in [1, 5, body.len()] {
                let read = read(place, caps, body.as_bytes().chunks(size));
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
        let mut items = Items::new(place, CAPS);
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
        let mut seed = 99u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
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
}
