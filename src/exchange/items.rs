//! The item reader: finds one item after another in a JSON body that arrives in pieces.
//!
//! It goes through the body by *entries*. An entry is an item, or a member or an element that is not on the
//! path to the items. On the path, an entry is the opening bracket of a container, with the member's name. An
//! entry that is complete in the fed bytes is read there, without a copy.
//!
//! Owns the *partial* entry, which is the front of an entry whose end has not arrived yet, and the
//! *envelope*, which is everything outside of the items. Both are limited in size. The reader never goes
//! back, and does not know what an item means.

#[cfg(test)]
mod tests;

use super::error::ReadError;
use super::json::{Cursor, MAX_DEPTH, NO_DEEPER, Stop};
use super::path::{Form, Place, Step};

/// Takes the item at the cursor, which is an element, or a member's name, colon and value, and moves the
/// cursor after it. After [`Stop::Cut`] the same item comes again with more bytes, so no part of a cut item
/// may be used. `None` stands for an item above the limit, which was skipped unread.
pub(super) type Take<'t> = dyn FnMut(Option<&mut Cursor<'_>>) -> Result<(), Stop> + 't;

/// What follows an entry.
const SEPARATOR: &str = "a comma or a closing bracket";

/// The reader of one body.
pub(super) struct Items {
    place: &'static Place,
    /// The most bytes of one item.
    item_bytes: usize,
    /// The most bytes of the envelope, white space inside of values included.
    envelope_bytes: usize,
    state: State,
    /// The open containers, outermost first: the ones on the path, and the one that holds the
    /// items.
    open: Vec<Container>,
    /// True if there was a container of items, perhaps an empty one.
    pub(super) found: bool,
    /// Everything outside of the items. It is JSON once the body is complete.
    pub(super) envelope: Vec<u8>,
    partial: Vec<u8>,
    /// How far the scan for the end of the partial entry has come, if there is one.
    cut: Option<Extent>,
    /// True if the partial entry is an item above the limit. None of its bytes are kept.
    is_too_long: bool,
    /// The number of bytes of the body before the bytes that are being fed.
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
    /// Nothing: the body's value has ended.
    End,
}

struct Container {
    /// The bracket that closes it.
    close: u8,
    /// The index of the entry that comes or has come last.
    index: u16,
}

/// The state of the scan for the end of the partial entry.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    depth: usize,
    string: bool,
    escape: bool,
}

impl Items {
    pub(super) fn new(place: &'static Place, item_bytes: usize, envelope_bytes: usize) -> Items {
        Items {
            place,
            item_bytes,
            envelope_bytes,
            state: State::Entry,
            open: Vec::new(),
            found: false,
            envelope: Vec::new(),
            partial: Vec::new(),
            cut: None,
            is_too_long: false,
            passed: 0,
        }
    }

    /// True if the body's value has ended.
    pub(super) fn is_whole(&self) -> bool {
        self.state == State::End
    }

    /// Reads the next bytes of the body, in pieces of any size.
    pub(super) fn feed(&mut self, bytes: &[u8], take: &mut Take<'_>) -> Result<(), ReadError> {
        let mut at = 0;
        while at < bytes.len() {
            let (rest, fed) = (&bytes[at..], self.passed + at as u64);
            if let Some(extent) = self.cut {
                at += self.in_partial(extent, rest, fed, take)?;
            } else {
                let read = self.among_entries(rest, fed, take)?;
                self.cut = (read < rest.len()).then(Extent::default);
                at += read;
            }
        }
        self.passed += bytes.len() as u64;
        Ok(())
    }

    /// Reads entries and what is between them, up to an entry that these bytes cut. Returns the number of
    /// bytes read. `fed` is the place of the first byte in the body.
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
                    Err(ReadError::CutShort) => return Ok(at),
                    read => read?,
                },
            }
        }
        Ok(bytes.len())
    }

    /// Reads the entry at the cursor. After [`ReadError::CutShort`] the entry comes again with more
    /// bytes.
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
        let (begin, cap) = (cursor.position(), self.item_bytes);
        let mut past = cursor.clone();
        if past.left() <= cap {
            return None;
        }
        self.place.name_of(&mut past).ok()?;
        past.value().ok()?;
        (past.position() - begin > cap).then_some(past)
    }

    /// Passes an entry outside of the items. If it is an opening bracket on the path, returns the closing
    /// one.
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

    /// Copies more of the partial entry, and reads the copy where the entry may end.
    fn in_partial(
        &mut self,
        mut extent: Extent,
        bytes: &[u8],
        fed: u64,
        take: &mut Take<'_>,
    ) -> Result<usize, ReadError> {
        let end = extent.end_in(bytes, fed)?;
        let (held, more) = (self.partial.len(), end.unwrap_or(bytes.len()));
        let is_ended = end.is_some() && extent.depth == 0;
        self.cut = Some(extent);
        if !self.is_among_items() {
            self.check_envelope(held + more)?;
        } else if self.is_too_long || held + more > self.item_bytes {
            // Only the end of the item matters.
            self.partial.clear();
            self.is_too_long = !is_ended;
            if is_ended {
                self.cut = None;
                self.state = State::Next;
                let _ = take(None);
            }
            return Ok(more);
        }
        // Only the byte after a number shows that the number has ended.
        let more = if is_ended { bytes.len().min(more + 1) } else { more };
        self.partial.extend_from_slice(&bytes[..more]);
        if end.is_none() {
            return Ok(more);
        }
        let mut copy = std::mem::take(&mut self.partial);
        let read = self.among_entries(&copy, fed - held as u64, take)?;
        if read == 0 {
            // The bracket does not lead to the items.
            self.partial = copy;
            return Ok(more);
        }
        self.cut = None;
        copy.clear();
        self.partial = copy;
        Ok(read - held)
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

    /// Fails if the envelope gets too long with this many more bytes.
    fn check_envelope(&self, length: usize) -> Result<(), ReadError> {
        let cap = self.envelope_bytes;
        match length + self.envelope.len() > cap {
            true => Err(ReadError::EnvelopeTooLong { cap }),
            false => Ok(()),
        }
    }
}

impl Extent {
    /// Where the entry ends in its next bytes: after the bracket that closes it, or before the comma or
    /// bracket that follows it. The outermost opening bracket counts as an end too, because it may lead to
    /// the items. The content is not checked.
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
