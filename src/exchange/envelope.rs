//! The envelope: everything in a body outside of its items.
//!
//! Owns the path through it, byte by byte, to the items, and a copy of it: without the items,
//! without white space, limited in size. It never looks into an item.
//!
//! States: [`State`] reads as the grammar of JSON. [`State::Items`] lasts until
//! [`Envelope::close_items`]; [`State::End`] follows the body's value. The grammar is checked on
//! the way, except for numbers and words, which are checked once the envelope is whole.

use super::error::ReadError;
use super::json::MAX_DEPTH;
use super::path::{Form, Place, Step};

/// The envelope, as far as it has arrived.
pub(super) struct Envelope {
    place: &'static Place,
    cap: usize,
    state: State,
    /// The open containers, innermost last.
    open: Vec<Container>,
    /// True if the next value is on the path to the items.
    on_path: bool,
    /// True if the items' container was there.
    found: bool,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value begins.
    Value,
    /// After a `[`: a value or the end.
    FirstValue,
    /// After a `{`: a name or the end.
    FirstName,
    /// After a comma in an object.
    Name,
    /// In a string: a name (which starts at this byte of the envelope) or a value.
    String { name: Option<usize>, escape: bool },
    /// After a name.
    Colon,
    /// In a number or a word.
    Scalar,
    /// After a value: a comma or the end of its container.
    Next,
    /// After the bracket that opens the items.
    Items,
    /// After the whole value.
    End,
}

#[derive(Clone, Copy, Debug)]
struct Container {
    object: bool,
    /// True if the steps so far lead to it.
    on_path: bool,
    /// The index of the element that comes or has come last, in an array.
    index: u16,
}

impl Envelope {
    pub(super) fn new(place: &'static Place, cap: usize) -> Envelope {
        Envelope {
            place,
            cap,
            state: State::Value,
            open: Vec::new(),
            on_path: true,
            found: false,
            bytes: Vec::new(),
        }
    }

    /// The bytes so far: JSON, once it is whole.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if the body's value has ended.
    pub(super) fn is_whole(&self) -> bool {
        self.state == State::End
    }

    /// True if what comes next belongs to the items.
    pub(super) fn at_items(&self) -> bool {
        self.state == State::Items
    }

    /// True if the items' container was there.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Passes the bytes up to the first item and returns their number. `fed` is the place of the
    /// first one in the body.
    pub(super) fn pass(&mut self, bytes: &[u8], fed: u64) -> Result<usize, ReadError> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Items {
            at += match self.state {
                State::String { .. } | State::Scalar => self.in_word(&bytes[at..])?,
                _ => {
                    self.between(bytes[at], fed + at as u64)?;
                    1
                }
            };
        }
        Ok(at)
    }

    /// Passes the bracket that closes the items.
    pub(super) fn close_items(&mut self, bracket: u8) -> Result<(), ReadError> {
        self.keep(bracket)?;
        self.open.pop();
        self.end_value();
        Ok(())
    }

    /// Passes one byte that stands between words.
    fn between(&mut self, byte: u8, fed: u64) -> Result<(), ReadError> {
        if is_white(byte) {
            return Ok(());
        }
        match (self.state, byte) {
            (State::FirstValue | State::Next, b']') | (State::FirstName | State::Next, b'}') => {
                if self.innermost().object != (byte == b'}') {
                    return Err(malformed(fed, "the other bracket"));
                }
                self.open.pop();
                self.end_value();
            }
            (State::Value | State::FirstValue, _) => self.begin_value(byte, fed)?,
            (State::FirstName | State::Name, b'"') => {
                self.state = State::String { name: Some(self.bytes.len() + 1), escape: false };
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::Next, b',') => {
                self.begin_next();
                self.state = match self.innermost().object {
                    true => State::Name,
                    false => State::Value,
                };
            }
            (State::End, _) => return Err(malformed(fed, "nothing after the body's value")),
            (State::Colon, _) => return Err(malformed(fed, "a colon")),
            (State::Next, _) => return Err(malformed(fed, "a comma or a closing bracket")),
            _ => return Err(malformed(fed, "a name in quotes")),
        }
        self.keep(byte)
    }

    fn begin_value(&mut self, byte: u8, fed: u64) -> Result<(), ReadError> {
        let here = self.on_path && self.open.len() == self.place.path.len();
        match (byte, self.place.form) {
            (b'[', Form::Elements) | (b'{', Form::Members) if here => {
                self.enter(byte == b'{', fed)?;
                self.found = true;
                self.state = State::Items;
            }
            (b'{', _) => {
                self.enter(true, fed)?;
                self.state = State::FirstName;
            }
            (b'[', _) => {
                self.enter(false, fed)?;
                self.on_path = self.leads_on(|step| *step == Step::At(0));
                self.state = State::FirstValue;
            }
            _ if self.open.is_empty() => return Err(malformed(fed, "an array or an object")),
            (b'"', _) => {
                self.state = State::String { name: None, escape: false };
            }
            (b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z', _) => self.state = State::Scalar,
            _ => return Err(malformed(fed, "a value")),
        }
        Ok(())
    }

    /// Passes bytes of a string or another word, and returns their number.
    fn in_word(&mut self, bytes: &[u8]) -> Result<usize, ReadError> {
        for (at, byte) in bytes.iter().enumerate() {
            match &mut self.state {
                State::String { escape, .. } if *escape => *escape = false,
                State::String { escape, .. } if *byte == b'\\' => *escape = true,
                State::String { name, .. } if *byte == b'"' => {
                    let name = *name;
                    self.end_string(name);
                    self.keep(*byte)?;
                    return Ok(at + 1);
                }
                State::String { .. } => {}
                _ if is_white(*byte) || matches!(byte, b',' | b']' | b'}' | b':') => {
                    self.end_value();
                    return Ok(at);
                }
                _ => {}
            }
            self.keep(*byte)?;
        }
        Ok(bytes.len())
    }

    fn end_string(&mut self, name: Option<usize>) {
        let Some(begin) = name else {
            return self.end_value();
        };
        let name = &self.bytes[begin..];
        self.on_path = self.leads_on(|step| match step {
            Step::Key(wanted) => wanted.as_bytes() == name,
            Step::AnyKey => true,
            Step::At(_) => false,
        });
        self.state = State::Colon;
    }

    /// True if a value in the innermost container is on the path, if `this` accepts its step.
    fn leads_on(&self, this: impl Fn(&Step) -> bool) -> bool {
        let step = self.place.path.get(self.open.len() - 1);
        self.innermost().on_path && step.is_some_and(this)
    }

    fn enter(&mut self, object: bool, fed: u64) -> Result<(), ReadError> {
        if self.open.len() == MAX_DEPTH {
            return Err(ReadError::TooDeep { at: fed });
        }
        let on_path = self.on_path;
        self.open.push(Container { object, on_path, index: 0 });
        Ok(())
    }

    /// Passes the comma before the next value of the innermost container.
    fn begin_next(&mut self) {
        let innermost = self.open.last_mut();
        let innermost = innermost.expect("a comma is read inside a container alone");
        innermost.index = innermost.index.saturating_add(1);
        let Container { object, index, .. } = *innermost;
        // A name in an object is yet to come.
        self.on_path = !object && self.leads_on(|step| *step == Step::At(index));
    }

    fn end_value(&mut self) {
        self.state = match self.open.is_empty() {
            true => State::End,
            false => State::Next,
        };
    }

    fn innermost(&self) -> Container {
        let innermost = self.open.last();
        *innermost.expect("names, commas and brackets are read inside a container alone")
    }

    fn keep(&mut self, byte: u8) -> Result<(), ReadError> {
        if self.bytes.len() == self.cap {
            return Err(ReadError::EnvelopeTooLong { cap: self.cap });
        }
        self.bytes.push(byte);
        Ok(())
    }
}

pub(super) fn malformed(at: u64, expected: &'static str) -> ReadError {
    ReadError::Malformed { at, expected }
}

pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
