//! gzip bodies (RFC 1952), compressed and decompressed a slice at a time.
//!
//! [`Compressor`] makes one gzip member of a body that a client gets; [`Decompressor`] reads the
//! body of an exchange's response. Both wrap flate2. The caller decides how much is done at a time,
//! so that no body, not even a decompression bomb, holds up the event loop.

use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder};
use std::io::{self, Write};

/// Compressed bytes that one call of [`Decompressor::step`] consumes at most. In a real market list
/// they become some two kilobytes. If all of them are empty blocks, a call takes 0.4 ms.
const SLICE: usize = 256;

/// Plain bytes after which a slice ends early.
const SLICE_PLAIN: usize = 16 * 1024;

/// Compressed bytes between two checks of the output's size. Deflate expands at most 1032 times (zlib,
/// "Technical Details"), so a slice exceeds [`SLICE_PLAIN`] by 16 KiB at most.
const CHECK_EVERY: usize = 16;

/// How many more compressed bytes than plain ones a body may have. Reasonable data is at most a few bytes
/// larger than its plain bytes. A million empty members or blocks would cost seconds.
const SURPLUS: u64 = 64 * 1024;

/// The error of a body with too many more compressed bytes than plain ones.
const LARGER: &str = "the gzip data is larger than what it holds";

/// A limit above the size of all texts that `scripts/build.rs` packs.
const PACKED_MOST: u64 = 1 << 20;

/// The error of a body with more plain bytes than allowed.
const TOO_LARGE: &str = "the decompressed body is too large";

/// The error of a body that ended before the first member or within one, or whose last checksum or length is
/// wrong.
const INCOMPLETE: &str = "the gzip data is cut short, or its checksum or length is wrong";

/// A gzip member that is being made. It takes about 300 KB until it is finished, nearly all of it
/// tables.
///
/// The same body gives the same bytes, however it is split into parts, so a strong entity tag may
/// identify them. The header has no time and no file name.
pub struct Compressor(GzEncoder<Vec<u8>>);

impl Default for Compressor {
    /// A member without data.
    fn default() -> Compressor {
        // Level 1: at level 6, JSON would be a tenth smaller and take six times as long.
        Compressor(GzEncoder::new(Vec::new(), Compression::fast()))
    }
}

impl Compressor {
    /// Compresses the next part of the body. A megabyte takes seven milliseconds.
    pub fn push(&mut self, part: &[u8]) {
        let written = self.0.write_all(part);
        written.expect("a vector takes every byte");
    }

    /// Ends the member and returns all of it.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish().expect("a vector takes every byte")
    }
}

/// A gzip body that is being decompressed.
///
/// Owns the compressed bytes that are not consumed yet, and the plain bytes of the last slice. It
/// never holds more of the body. Several members in a row are one body (RFC 1952, 2.2). After an
/// error it must not be used again.
pub struct Decompressor {
    decoder: MultiGzDecoder<Slice>,
    compressed: Vec<u8>,
    consumed: usize,
    /// Compressed bytes that the body may still have without more plain ones.
    surplus: u64,
}

/// Plain bytes of one slice, and how many the body may still have.
struct Slice {
    bytes: Vec<u8>,
    room: u64,
}

impl Write for Slice {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.checked_sub(bytes.len() as u64);
        self.room = room.ok_or_else(|| io::Error::other(TOO_LARGE))?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decompressor {
    /// Reads a body of at most `most` plain bytes.
    pub fn new(most: u64) -> Decompressor {
        Decompressor {
            decoder: MultiGzDecoder::new(Slice { bytes: Vec::new(), room: most }),
            compressed: Vec::new(),
            consumed: 0,
            surplus: SURPLUS,
        }
    }

    /// Appends compressed bytes. Nothing is decompressed yet.
    pub fn push(&mut self, compressed: &[u8]) {
        self.compressed.extend_from_slice(compressed);
    }

    /// True if [`Decompressor::step`] has compressed bytes to consume.
    pub fn has_more(&self) -> bool {
        !self.compressed.is_empty()
    }

    /// Decompresses one slice, which may be empty.
    pub fn step(&mut self) -> io::Result<&[u8]> {
        self.decoder.get_mut().bytes.clear();
        let end = self.compressed.len().min(self.consumed + SLICE);
        let begin = self.consumed;
        while self.consumed < end && self.decoder.get_ref().bytes.len() < SLICE_PLAIN {
            let bite = &self.compressed[self.consumed..end.min(self.consumed + CHECK_EVERY)];
            self.consumed += self.decoder.write(bite)?;
        }
        let consumed = self.consumed - begin;
        if self.consumed == self.compressed.len() {
            self.compressed.clear();
            self.consumed = 0;
            // flate2 may hold back plain bytes of what it has consumed.
            self.decoder.flush()?;
        }
        let plain = self.decoder.get_ref().bytes.len();
        let surplus = (self.surplus + plain as u64).checked_sub(consumed as u64);
        self.surplus = surplus.ok_or_else(|| io::Error::other(LARGER))?;
        Ok(&self.decoder.get_ref().bytes)
    }

    /// Ends the body. All of it must have been pushed and decompressed.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.decoder.try_finish() {
            Ok(()) if !self.has_more() => Ok(()),
            _ => Err(io::Error::other(INCOMPLETE)),
        }
    }
}

/// A text that `scripts/build.rs` has packed.
pub fn unpacked(packed: &[u8]) -> String {
    let text = decompress(packed, PACKED_MOST).expect("build.rs has made a sound member");
    String::from_utf8(text).expect("the files of the source tree are UTF-8")
}

/// Decompresses a complete gzip body of at most `most` plain bytes.
pub fn decompress(compressed: &[u8], most: u64) -> io::Result<Vec<u8>> {
    let mut decompressor = Decompressor::new(most);
    decompressor.push(compressed);
    let mut plain = Vec::new();
    while decompressor.has_more() {
        plain.extend_from_slice(decompressor.step()?);
    }
    decompressor.finish()?;
    Ok(plain)
}

#[cfg(test)]
mod tests;
