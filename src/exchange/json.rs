//! A cursor over JSON text: the tokens of RFC 8259 as borrowed bytes.
//!
//! Owns the grammar: what a value is, where it ends, how deeply it may be nested. It tells a cut
//! value ([`Stop::Cut`]) from a wrong one, so that a reader may come back with more bytes.
//!
//! It never copies and never converts numbers. It does not check UTF-8: a caller that needs text
//! does.
//!
//! serde_json is not used: it cannot tell a cut value from a wrong one without reading the value
//! again. Its `RawValue` took twice the time of this cursor for the tickers of all markets.

#[cfg(test)]
mod tests;

use memchr::memchr;

/// The deepest nesting of arrays and objects in one value that the cursor passes. Exchanges stay below ten.
pub(super) const MAX_DEPTH: usize = 32;

/// The `expected` text for a value that is nested too deeply.
pub(super) const NO_DEEPER: &str = "no deeper nesting";

/// Why the cursor stopped. Positions count from the start of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes end inside the value.
    Cut,
    /// Not JSON, or deeper than [`MAX_DEPTH`]. Has the position, and what was expected there.
    Malformed(usize, &'static str),
}

/// A value as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raw<'a> {
    /// No such member.
    Absent,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// The digits.
    Number(&'a [u8]),
    /// `NaN`, `Infinity` and `-Infinity`: not JSON, but some encoders write them. The cursor
    /// accepts them as values, so that one bad market does not spoil the whole body.
    NotANumber,
    /// The text between the quotes, if it has no escapes.
    Text(&'a [u8]),
    /// A text with escapes, quotes included.
    Escaped(&'a [u8]),
    /// An object, brackets included.
    Object(&'a [u8]),
    /// An array, brackets included.
    Array(&'a [u8]),
}

impl Raw<'_> {
    /// The type of the value, for messages.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Raw::Object(_) => "an object",
            Raw::Array(_) => "an array",
            Raw::Text(_) | Raw::Escaped(_) => "a text",
            Raw::Number(_) => "a number",
            Raw::Absent => "no JSON",
            Raw::Null | Raw::Bool(_) | Raw::NotANumber => "a word",
        }
    }
}

/// The values that are words.
const WORDS: [(&[u8], Raw<'static>); 6] = [
    (b"true", Raw::Bool(true)),
    (b"false", Raw::Bool(false)),
    (b"null", Raw::Null),
    (b"NaN", Raw::NotANumber),
    (b"Infinity", Raw::NotANumber),
    (b"-Infinity", Raw::NotANumber),
];

/// A place in JSON text.
///
/// The functions called for each token are inlined explicitly. The compiler does not inline them by
/// itself, and calls that pass a `Result` of a [`Raw`] through memory took a sixth of the time.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// The number of bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The number of bytes passed.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The bytes from an earlier position to the cursor.
    pub(super) fn since(&self, begin: usize) -> &'a [u8] {
        &self.bytes[begin..self.at]
    }

    /// The next byte that is not white space. The cursor stays before it.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Result<u8, Stop> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None => return Err(Stop::Cut),
            }
        }
    }

    /// Passes the byte that was peeked at.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Passes this byte, or fails with what was expected.
    #[inline(always)]
    pub(super) fn pass(&mut self, byte: u8, expected: &'static str) -> Result<(), Stop> {
        if self.peek()? != byte {
            return Err(self.malformed(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// Passes `text` if it comes next, and returns true.
    #[inline(always)]
    pub(super) fn pass_text(&mut self, text: &[u8]) -> bool {
        let same = starts_with(&self.bytes[self.at..], text);
        if same {
            self.at += text.len();
        }
        same
    }

    /// Passes the separator before the next member or element, or the closing bracket. Returns true
    /// if there is a next one.
    #[inline(always)]
    pub(super) fn next(&mut self, first: &mut bool, close: u8) -> Result<bool, Stop> {
        let byte = self.peek()?;
        if byte == close {
            self.at += 1;
            return Ok(false);
        }
        if std::mem::take(first) {
            return Ok(true);
        }
        if byte != b',' {
            return Err(self.malformed("a comma or a closing bracket"));
        }
        self.at += 1;
        if self.peek()? == close {
            return Err(self.malformed("a value after the comma"));
        }
        Ok(true)
    }

    /// Passes the rest of the object that the cursor is in. `first` is true before the first member. If no
    /// container is nested in the rest, only quotes and brackets are checked.
    pub(super) fn rest_of_object(&mut self, mut first: bool) -> Result<(), Stop> {
        let rest = &self.bytes[self.at..];
        let flat = &rest[..memchr(b'}', rest).ok_or(Stop::Cut)?];
        // The bracket closes the object unless it stands in a string or closes another object.
        let (mut is_in_string, mut is_nested) = (false, false);
        for byte in flat {
            is_in_string ^= *byte == b'"';
            is_nested |= (*byte == b'\\') | (*byte == b'{') | (*byte == b'[') | (*byte == b']');
        }
        if !is_in_string && !is_nested {
            self.at += flat.len() + 1;
            return Ok(());
        }
        while self.next(&mut first, b'}')? {
            self.name()?;
            self.value()?;
        }
        Ok(())
    }

    /// Passes a member's name and its colon.
    pub(super) fn name(&mut self) -> Result<Raw<'a>, Stop> {
        if self.peek()? != b'"' {
            return Err(self.malformed("a name in quotes"));
        }
        let name = self.string()?;
        self.pass(b':', "a colon")?;
        Ok(name)
    }

    /// Passes one value of any type.
    #[inline(always)]
    pub(super) fn value(&mut self) -> Result<Raw<'a>, Stop> {
        self.value_in(0)
    }

    /// Passes one value that lies in `depth` arrays and objects.
    #[inline(always)]
    fn value_in(&mut self, depth: usize) -> Result<Raw<'a>, Stop> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.container(depth),
            _ => self.scalar(),
        }
    }

    /// Passes a number or a word.
    fn scalar(&mut self) -> Result<Raw<'a>, Stop> {
        let rest = &self.bytes[self.at..];
        match rest {
            [b'0'..=b'9', ..] => return self.number(),
            [b'-', next, ..] if *next != b'I' => return self.number(),
            _ => {}
        }
        for (word, value) in WORDS {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
            if word.starts_with(rest) {
                return Err(Stop::Cut);
            }
        }
        Err(self.malformed("a value"))
    }

    /// Passes a number (RFC 8259, 6). A number at the end of the bytes is cut: more digits may
    /// come.
    #[inline(always)]
    fn number(&mut self) -> Result<Raw<'a>, Stop> {
        let begin = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        let leading = self.at;
        self.digits()?;
        if self.bytes[leading] == b'0' && self.at > leading + 1 {
            return Err(Stop::Malformed(leading + 1, "no digit after a leading 0"));
        }
        if self.bytes[self.at] == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes[self.at], b'e' | b'E') {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Raw::Number(&self.bytes[begin..self.at]))
    }

    /// Passes one digit or more. The bytes are cut if no other byte follows.
    #[inline(always)]
    fn digits(&mut self) -> Result<(), Stop> {
        let begin = self.at;
        self.at += digits(&self.bytes[begin..]);
        if self.at == self.bytes.len() {
            return Err(Stop::Cut);
        }
        if self.at == begin {
            return Err(self.malformed("a digit"));
        }
        Ok(())
    }

    /// Passes a string; the cursor stands on its opening quote.
    #[inline(always)]
    fn string(&mut self) -> Result<Raw<'a>, Stop> {
        let begin = self.at;
        let mut at = begin + 1;
        let mut escaped = false;
        loop {
            at += plain_bytes(&self.bytes[at..]);
            match self.bytes.get(at) {
                None => return Err(Stop::Cut),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += self.escape_at(at)?;
                }
                Some(_) => return Err(Stop::Malformed(at, "no control character in a string")),
            }
        }
        self.at = at + 1;
        Ok(if escaped {
            Raw::Escaped(&self.bytes[begin..=at])
        } else {
            Raw::Text(&self.bytes[begin + 1..at])
        })
    }

    /// Passes a whole array or object that lies in `depth` others. It is recursive, at most [`MAX_DEPTH`]
    /// times.
    fn container(&mut self, depth: usize) -> Result<Raw<'a>, Stop> {
        if depth == MAX_DEPTH {
            return Err(self.malformed(NO_DEEPER));
        }
        let (begin, is_object) = (self.at, self.bytes[self.at] == b'{');
        let close = if is_object { b'}' } else { b']' };
        self.skip();
        let mut first = true;
        while self.next(&mut first, close)? {
            if is_object {
                self.name()?;
            }
            self.value_in(depth + 1)?;
        }
        let all = self.since(begin);
        Ok(if is_object { Raw::Object(all) } else { Raw::Array(all) })
    }

    /// The length of the escape at a backslash (RFC 8259, 7).
    fn escape_at(&self, at: usize) -> Result<usize, Stop> {
        match self.bytes[at + 1..] {
            [] => Err(Stop::Cut),
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok(2),
            [b'u', ref digits @ ..] => {
                let mut digits = digits.iter().take(4);
                match digits.position(|digit| !digit.is_ascii_hexdigit()) {
                    Some(odd) => Err(Stop::Malformed(at + 2 + odd, "four hexadecimal digits")),
                    None if self.bytes.len() < at + 6 => Err(Stop::Cut),
                    None => Ok(6),
                }
            }
            _ => Err(Stop::Malformed(at + 1, "an escape")),
        }
    }

    fn malformed(&self, expected: &'static str) -> Stop {
        Stop::Malformed(self.at, expected)
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// True if `bytes` start with `text`. It compares words, because texts are short: a library call for it took
/// a tenth of the time.
#[inline(always)]
fn starts_with(bytes: &[u8], text: &[u8]) -> bool {
    let Some(bytes) = bytes.get(..text.len()) else {
        return false;
    };
    // The last eight bytes may overlap the ones before them.
    let ends = (bytes.last_chunk::<8>(), text.last_chunk::<8>());
    let mut eights = bytes.as_chunks::<8>().0.iter().zip(text.as_chunks::<8>().0);
    match ends {
        (Some(end), Some(other)) => end == other && eights.all(|(one, other)| one == other),
        _ => bytes == text,
    }
}

/// The number of digits at the front.
#[inline(always)]
fn digits(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk() {
        // Digits become 0 to 9. The lowest set bit is right; a carry can only spoil the bytes above it.
        let word = u64::from_le_bytes(*eight) ^ (ONES * u64::from(b'0'));
        let others = (word.wrapping_add(ONES * (0x80 - 10)) | word) & TOPS;
        if others != 0 {
            return at + others.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The number of bytes before the first quote, backslash or control character. It reads eight bytes
/// at a time, because strings are most of a body.
#[inline(always)]
fn plain_bytes(bytes: &[u8]) -> usize {
    // Sets the top bit of each byte below `limit`. The lowest set bit is right; a borrow can only
    // spoil the bytes above it ("Bit Twiddling Hacks", hasless).
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & TOPS;
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
        let slashes = below(word ^ (ONES * u64::from(b'\\')), 1);
        let hits = quotes | slashes | below(word, 0x20);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = &bytes[at..];
    let end = rest.iter().position(|b| matches!(b, b'"' | b'\\' | ..0x20));
    at + end.unwrap_or(rest.len())
}
