//! The framing of bodies: finds the end of a body in the bytes of a connection.
//!
//! Owns the three framings of RFC 9112, 6 and 7: by length, by chunks, and by the end of the connection. It
//! copies nothing: a [`Piece`] borrows the data. Its state is a few bounded counters.

use super::head::{hex_digit, is_field_text, is_token};
use std::fmt;

/// Most bytes of all chunk extensions of a body. They are ignored, and hardly any program sends
/// them. hyper has the same limit.
pub const EXTENSION_BYTES: usize = 16 * 1024;

/// Most bytes of all trailer fields of a body: half the limit of a head. They are ignored.
pub const TRAILER_BYTES: usize = 8 * 1024;

/// Bytes of framing that a body may have beyond its data. A reasonable chunk has more data than framing.
/// Reading a tiny chunk costs as much as reading a large one.
pub const FRAMING_SURPLUS: u64 = 64 * 1024;

/// Most hexadecimal digits of a chunk's size, leading zeros included: as many as fit 64 bits.
const SIZE_DIGITS: u8 = 16;

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks, the last of which is empty.
    Chunked,
    /// All bytes until the peer closes. Only in responses.
    UntilClose,
}

/// Reads a body piece by piece. After an error it must not be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyReader {
    state: State,
    /// Data bytes of the body or the chunk that have not come yet. While a chunk's size is being read, the
    /// size so far.
    left: u64,
    /// How many digits of the size were read.
    digits: u8,
    /// Data bytes that are still allowed, beyond the announced ones.
    room: u64,
    extension_room: u64,
    trailer_room: u64,
    /// Bytes of framing that are still allowed, before there is more data.
    framing_room: u64,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Data of a known length, at least one byte.
    Data,
    /// Data until the connection ends.
    UntilClose,
    /// The digits of a chunk's size.
    Size,
    /// Blanks after the size or an extension. Another extension must follow.
    SizeBlank,
    /// The start of an extension's name. Extensions are ignored.
    NameBegin,
    /// An extension's name.
    Name,
    /// Blanks after the name.
    NameBlank,
    /// The start of an extension's value.
    ValueBegin,
    /// A value without quotation marks.
    Value,
    /// A value in quotation marks.
    Quoted,
    /// A byte after a backslash.
    Escaped,
    /// The end of a value in quotation marks.
    QuotedEnd,
    /// LF after the size.
    SizeLf,
    /// Data of a chunk, at least one byte.
    Chunk,
    /// CR after a chunk's data.
    ChunkCr,
    /// LF after a chunk's data.
    ChunkLf,
    /// Start of a trailer field or of the last line.
    TrailerBegin,
    /// A trailer field's name.
    TrailerName,
    /// A trailer field's value.
    TrailerValue,
    /// LF of a trailer field.
    TrailerLf,
    /// LF of the last line.
    LastLf,
    /// The body has ended.
    Done,
}

/// The result of one call of [`BodyReader::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Bytes of the input that were used: framing and data. Not zero, unless the input is empty or the
    /// body has ended.
    pub used: usize,
    /// The data among these bytes. May be empty.
    pub data: &'a [u8],
    /// True if the body has ended.
    pub done: bool,
}

/// Why a body cannot be read, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The body has, or announces, more bytes than allowed.
    TooLarge(&'static str),
    /// The framing is malformed, or the body was cut short.
    Malformed(&'static str),
}

const BAD_SIZE: BodyError = BodyError::Malformed("malformed size of a chunk");

const TOO_MUCH_FRAMING: &str = "the chunks are too small";

const TOO_LARGE: &str = "the body is too large";

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (BodyError::TooLarge(why) | BodyError::Malformed(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for BodyError {}

impl BodyReader {
    /// A reader of at most `cap` bytes of data. [`BodyError::TooLarge`] if the head announces more.
    pub fn new(framing: Framing, cap: u64) -> Result<BodyReader, BodyError> {
        let mut reader = BodyReader {
            state: State::Done,
            left: 0,
            digits: 0,
            room: cap,
            extension_room: EXTENSION_BYTES as u64,
            trailer_room: TRAILER_BYTES as u64,
            framing_room: FRAMING_SURPLUS,
        };
        reader.state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => {
                take(&mut reader.room, length, TOO_LARGE)?;
                reader.left = length;
                State::Data
            }
            Framing::Chunked => State::Size,
            Framing::UntilClose => State::UntilClose,
        };
        Ok(reader)
    }

    /// True if the body has ended. An empty body has ended from the start.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Reads up to the end of the next piece of data. Call it again with the rest until the rest is
    /// empty or the body has ended. Bytes after the body belong to the next message.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, BodyError> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let data = match self.state {
                State::Data | State::Chunk => self.run(rest),
                State::UntilClose => {
                    take(&mut self.room, rest.len() as u64, TOO_LARGE)?;
                    rest
                }
                State::Done => b"",
                _ => match rest.first() {
                    Some(&byte) => {
                        take(&mut self.framing_room, 1, TOO_MUCH_FRAMING)?;
                        self.state = self.step(byte)?;
                        used += 1;
                        continue;
                    }
                    None => b"",
                },
            };
            return Ok(Piece { used: used + data.len(), data, done: self.is_done() });
        }
    }

    /// Ends the body because the peer has closed. An error if the framing does not permit this.
    pub fn finish_at_close(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::UntilClose | State::Done => {
                self.state = State::Done;
                Ok(())
            }
            _ => Err(BodyError::Malformed("the body was cut short")),
        }
    }

    /// The data at the start of `rest`.
    fn run<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let taken = usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
        self.left -= taken as u64;
        self.framing_room = self.framing_room.saturating_add(taken as u64);
        if self.left == 0 {
            let is_chunk = self.state == State::Chunk;
            self.state = if is_chunk { State::ChunkCr } else { State::Done };
        }
        &rest[..taken]
    }

    /// Reads a byte of framing, strictly by RFC 9112, 7.1: programs disagree about a bare LF, a sign or `0x`,
    /// and so about the end of a message. Field lines after the last chunk are checked as in a head, and
    /// ignored.
    fn step(&mut self, byte: u8) -> Result<State, BodyError> {
        use State::*;
        let is_read = self.state != Size || self.digits > 0;
        match (self.state, byte) {
            (Size | Name | Value | QuotedEnd, b'\r') if is_read => Ok(SizeLf),
            (Size | SizeBlank | Name | NameBlank | Value | QuotedEnd, b';') if is_read => {
                self.extension(NameBegin)
            }
            (Size | SizeBlank | Value | QuotedEnd, b' ' | b'\t') if is_read => {
                self.extension(SizeBlank)
            }
            (NameBegin | ValueBegin, b' ' | b'\t') => self.extension(self.state),
            (Name | NameBlank, b' ' | b'\t') => self.extension(NameBlank),
            (Name | NameBlank, b'=') => self.extension(ValueBegin),
            (ValueBegin, b'"') => self.extension(Quoted),
            (NameBegin | Name, _) if is_token(byte) => self.extension(Name),
            (ValueBegin | Value, _) if is_token(byte) => self.extension(Value),
            (Quoted, b'"') => self.extension(QuotedEnd),
            (Quoted, b'\\') => self.extension(Escaped),
            (Quoted | Escaped, _) if is_field_text(byte) => self.extension(Quoted),
            (Size, _) => {
                let digit = hex_digit(byte).filter(|_| self.digits < SIZE_DIGITS);
                let digit = digit.ok_or(BAD_SIZE)?;
                self.left = self.left << 4 | u64::from(digit);
                self.digits += 1;
                Ok(Size)
            }
            (SizeLf, b'\n') if self.left == 0 => Ok(TrailerBegin),
            (SizeLf, b'\n') => take(&mut self.room, self.left, TOO_LARGE).map(|()| Chunk),
            (ChunkCr, b'\r') => Ok(ChunkLf),
            (ChunkLf, b'\n') => {
                self.digits = 0;
                Ok(Size)
            }
            (ChunkCr | ChunkLf, _) => Err(BodyError::Malformed("a chunk does not end with CR LF")),
            (TrailerBegin, b'\r') => Ok(LastLf),
            (LastLf, b'\n') => Ok(Done),
            (TrailerBegin | TrailerName, _) if is_token(byte) => self.trailer(TrailerName),
            (TrailerName, b':') => self.trailer(TrailerValue),
            (TrailerValue, b'\r') => self.trailer(TrailerLf),
            (TrailerValue, _) if is_field_text(byte) => self.trailer(TrailerValue),
            (TrailerLf, b'\n') => self.trailer(TrailerBegin),
            (TrailerBegin | TrailerName | TrailerValue | TrailerLf | LastLf, _) => {
                Err(BodyError::Malformed("malformed trailer field"))
            }
            _ => Err(BAD_SIZE),
        }
    }

    /// Counts a byte of an extension, or of the blanks before it.
    fn extension(&mut self, next: State) -> Result<State, BodyError> {
        take(&mut self.extension_room, 1, "the chunk extensions are too large").map(|()| next)
    }

    /// Counts a byte of a trailer field.
    fn trailer(&mut self, next: State) -> Result<State, BodyError> {
        take(&mut self.trailer_room, 1, "the trailer fields are too large").map(|()| next)
    }
}

/// Takes bytes from the bytes that are still allowed. `why` is the error if fewer are left.
fn take(room: &mut u64, bytes: u64, why: &'static str) -> Result<(), BodyError> {
    *room = room.checked_sub(bytes).ok_or(BodyError::TooLarge(why))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_point_at_the_data_and_skip_the_framing() {
        let mut reader = BodyReader::new(Framing::Chunked, 100).expect("nothing announced");
        let input = b"5;a=b\r\nhello\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\nGET";
        let piece = |used, data: &'static [u8], done| Ok(Piece { used, data, done });
        assert_eq!(reader.decode(input), piece(12, b"hello", false));
        assert_eq!(reader.decode(&input[12..]), piece(8, b"abc", false));
        assert_eq!(reader.decode(&input[20..]), piece(13, b"", true));
        assert_eq!(&input[33..], b"GET");
        assert_eq!(reader.decode(&input[33..]), piece(0, b"", true));
    }

    #[test]
    fn a_body_of_too_many_small_chunks_is_refused() {
        let check = |data: &str, count: u64, expected: Result<u64, BodyError>| {
            let chunk = format!("{:x}\r\n{data}\r\n", data.len());
            let mut reader = BodyReader::new(Framing::Chunked, 1 << 30).expect("nothing announced");
            let mut read = || {
                let mut taken = 0;
                for _ in 0..count {
                    let mut rest = chunk.as_bytes();
                    while !rest.is_empty() {
                        let piece = reader.decode(rest)?;
                        taken += piece.data.len() as u64;
                        rest = &rest[piece.used..];
                    }
                }
                Ok(taken)
            };
            assert_eq!(read(), expected, "{count} of {data:?}");
        };
        // Each has five bytes of framing.
        check("a", FRAMING_SURPLUS / 4, Ok(FRAMING_SURPLUS / 4));
        check("a", FRAMING_SURPLUS / 4 + 2, Err(BodyError::TooLarge(TOO_MUCH_FRAMING)));
        check("abcde", FRAMING_SURPLUS, Ok(5 * FRAMING_SURPLUS));
    }

    #[test]
    fn a_body_without_bytes_is_done_from_the_start() {
        for framing in [Framing::None, Framing::Length(0)] {
            let mut reader = BodyReader::new(framing, 0).expect("nothing announced");
            assert!(reader.is_done());
            let piece = reader.decode(b"GET").expect("nothing to read");
            assert_eq!((piece.used, piece.data, piece.done), (0, &b""[..], true));
        }
    }
}
