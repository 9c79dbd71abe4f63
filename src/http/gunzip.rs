//! gzip, taken off a body as it arrives (RFC 1952).
//!
//! Owns the packed bytes that are still to be unpacked, the window of 32 KiB that matches reach
//! back into, and the checks of each member: its head, its CRC-32, its length. Unpacking is done in
//! slices, for what a few bytes unpack to has no bound of its own: [`Gunzip::push`] takes bytes in,
//! each call of [`Gunzip::unpack`] does one slice. It never holds more of the body than one slice.
//!
//! Members that follow each other are one body (2.2). A member that is damaged, anything but a
//! member behind a member, and an end before the end of one are faults; so are flags that the RFC
//! has kept for later (2.3.1.2).

use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::fmt;

/// What requests say in `Accept-Encoding`.
pub const ACCEPTED: &str = "gzip";

/// Unpacked bytes of one slice: what a body that is not packed brings at a time.
const SLICE_OUT: usize = 16 * 1024;

/// Packed bytes of one slice. What comes out of them is bounded already; this bounds the rest of
/// the work, for a block that holds nothing takes ten bits and two microseconds: 0.4 ms in all,
/// where an honest list takes three microseconds.
const SLICE_IN: usize = 256;

/// Bytes of a member's head that are always there, and of its end.
const FIXED: u8 = 10;
const TRAILER: u8 = 8;

/// Flags of a member's head (2.3.1). That it is text says nothing about its form.
const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// One body on its way out of its packing. After an error it must not be asked again.
pub struct Gunzip {
    state: State,
    inflate: Decompress,
    /// Of the member's data so far; while its head is read, of the head.
    crc: Crc,
    /// What has been pushed, and up to where it is unpacked.
    packed: Vec<u8>,
    at: usize,
    /// Whether the last slice was full: there may be more to come from what is already unpacked.
    full: bool,
    /// Whether a member has ended well, so that the body may.
    ended: bool,
    /// Unpacked bytes that may still come.
    room: u64,
    slice: Box<[u8]>,
}

/// Where in a member the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the first bytes of its head; `at` 0 is also the end of the member before.
    Fixed { at: u8, flags: u8 },
    /// The length of its extra field.
    ExtraLength { low: Option<u8>, flags: u8 },
    /// Its extra field, at least one byte.
    Extra { left: u16, flags: u8 },
    /// A file's name or a comment: up to a zero.
    Text { flags: u8 },
    /// The lower half of the CRC-32 of the head.
    HeadChecksum { low: Option<u8> },
    /// Its data.
    Data,
    /// CRC-32 and length of its data, lowest byte first.
    Trailer { at: u8, read: u64 },
}

/// The first byte of a member, or the end.
const BEGIN: State = State::Fixed { at: 0, flags: 0 };

/// Why a body cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GunzipError {
    /// It does not begin as gzip does, or has flags that nobody knows.
    Head,
    /// Its packed data is malformed.
    Data,
    /// A member's data, or its head, is not what its sender has packed.
    Checksum,
    /// A member's data is not as long as its sender has packed.
    Length,
    /// More unpacked bytes than the cap.
    TooLarge,
    /// Something follows that is no member.
    Garbage,
    /// It ended within a member, or before the first.
    CutShort,
}

impl fmt::Display for GunzipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GunzipError::Head => "it is not gzip",
            GunzipError::Data => "malformed gzip data",
            GunzipError::Checksum => "the gzip checksum is wrong",
            GunzipError::Length => "the gzip length is wrong",
            GunzipError::TooLarge => "the body is too large when unpacked",
            GunzipError::Garbage => "bytes behind the end of the gzip data",
            GunzipError::CutShort => "the gzip data was cut short",
        })
    }
}

impl std::error::Error for GunzipError {}

impl Gunzip {
    /// Takes gzip off a body of at most `cap` unpacked bytes. Always there in this build.
    pub fn open(cap: u64) -> Option<Box<Gunzip>> {
        Some(Box::new(Gunzip {
            state: BEGIN,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            packed: Vec::new(),
            at: 0,
            full: false,
            ended: false,
            room: cap,
            slice: vec![0; SLICE_OUT].into_boxed_slice(),
        }))
    }

    /// Takes in packed bytes, behind those that are there. Nothing is unpacked yet.
    pub fn push(&mut self, packed: &[u8]) {
        self.packed.extend_from_slice(packed);
    }

    /// Whether [`Gunzip::unpack`] has something to do.
    pub fn has_more(&self) -> bool {
        self.full || !self.packed.is_empty()
    }

    /// Unpacks one slice: at most 16 KiB, and at most what 256 bytes hold. May be empty.
    pub fn unpack(&mut self) -> Result<&[u8], GunzipError> {
        let end = self.packed.len().min(self.at + SLICE_IN);
        let mut made = 0;
        loop {
            if self.state == State::Data {
                made += self.inflate(end, made)?;
                // What is still data now has used up the packed bytes, or the slice.
                if self.state == State::Data {
                    break;
                }
            } else if self.at < end {
                let byte = self.packed[self.at];
                self.at += 1;
                self.state = self.step(byte)?;
            } else {
                break;
            }
        }
        self.full = self.state == State::Data && made == self.slice.len();
        if self.at == self.packed.len() {
            self.packed.clear();
            self.at = 0;
        }
        Ok(&self.slice[..made])
    }

    /// The body is over, and all of it unpacked: whether it was whole.
    pub fn finish(&self) -> Result<(), GunzipError> {
        match self.state {
            BEGIN if self.ended && !self.has_more() => Ok(()),
            _ => Err(GunzipError::CutShort),
        }
    }

    /// Unpacks data from the packed bytes up to `end`, into the slice behind the `made` bytes that
    /// it has. How many it has made.
    fn inflate(&mut self, end: usize, made: usize) -> Result<usize, GunzipError> {
        let (input, output) = (&self.packed[self.at..end], &mut self.slice[made..]);
        if output.is_empty() {
            return Ok(0);
        }
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(input, output, FlushDecompress::None)
            .map_err(|_| GunzipError::Data)?;
        let used = (self.inflate.total_in() - before.0) as usize;
        let count = (self.inflate.total_out() - before.1) as usize;
        // Would go on for ever: it has what it needs, and does nothing.
        if status != Status::StreamEnd && used + count == 0 && !input.is_empty() {
            return Err(GunzipError::Data);
        }
        self.at += used;
        let room = self.room.checked_sub(count as u64);
        self.room = room.ok_or(GunzipError::TooLarge)?;
        self.crc.update(&output[..count]);
        if status == Status::StreamEnd {
            self.inflate.reset(false);
            self.state = State::Trailer { at: 0, read: 0 };
        }
        Ok(count)
    }

    /// Reads one byte of a member's head or end.
    fn step(&mut self, byte: u8) -> Result<State, GunzipError> {
        if self.state == BEGIN {
            self.crc.reset();
        }
        if !matches!(
            self.state,
            State::HeadChecksum { .. } | State::Trailer { .. }
        ) {
            self.crc.update(&[byte]);
        }
        Ok(match self.state {
            State::Fixed { at, flags } => {
                let flags = if at == 3 { byte } else { flags };
                match (at, byte) {
                    (0, 0x1f) | (1, 0x8b) | (2, 8) => {}
                    (0 | 1, _) if self.ended => return Err(GunzipError::Garbage),
                    (0..=2, _) => return Err(GunzipError::Head),
                    _ if flags & RESERVED != 0 => return Err(GunzipError::Head),
                    _ => {}
                }
                match at + 1 {
                    FIXED => self.optional(flags),
                    at => State::Fixed { at, flags },
                }
            }
            State::ExtraLength { low: None, flags } => State::ExtraLength {
                low: Some(byte),
                flags,
            },
            State::ExtraLength {
                low: Some(low),
                flags,
            } => match u16::from_le_bytes([low, byte]) {
                0 => self.optional(flags),
                left => State::Extra { left, flags },
            },
            State::Extra { left: 1, flags } => self.optional(flags),
            State::Extra { left, flags } => State::Extra {
                left: left - 1,
                flags,
            },
            State::Text { flags } if byte == 0 => self.optional(flags),
            text @ State::Text { .. } => text,
            State::HeadChecksum { low: None } => State::HeadChecksum { low: Some(byte) },
            State::HeadChecksum { low: Some(low) } => {
                if u16::from_le_bytes([low, byte]) != self.crc.sum() as u16 {
                    return Err(GunzipError::Checksum);
                }
                self.optional(0)
            }
            State::Data => State::Data,
            State::Trailer { at, read } => {
                let read = read | u64::from(byte) << (8 * at);
                match at + 1 {
                    TRAILER => self.end_member(read)?,
                    at => State::Trailer { at, read },
                }
            }
        })
    }

    /// What follows in a head that is to have these parts: in the order of the RFC.
    fn optional(&mut self, flags: u8) -> State {
        let without = |part: u8| flags & !part;
        if flags & HAS_EXTRA != 0 {
            let flags = without(HAS_EXTRA);
            State::ExtraLength { low: None, flags }
        } else if flags & HAS_NAME != 0 {
            let flags = without(HAS_NAME);
            State::Text { flags }
        } else if flags & HAS_COMMENT != 0 {
            let flags = without(HAS_COMMENT);
            State::Text { flags }
        } else if flags & HAS_CHECKSUM != 0 {
            State::HeadChecksum { low: None }
        } else {
            self.crc.reset();
            State::Data
        }
    }

    fn end_member(&mut self, trailer: u64) -> Result<State, GunzipError> {
        if trailer as u32 != self.crc.sum() {
            return Err(GunzipError::Checksum);
        }
        // Of data beyond 4 GiB both count what is left over (2.3.1).
        if (trailer >> 32) as u32 != self.crc.amount() {
            return Err(GunzipError::Length);
        }
        self.ended = true;
        Ok(BEGIN)
    }
}

#[cfg(test)]
mod tests;
