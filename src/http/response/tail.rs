//! The short run of bytes by which one head differs from another.
//!
//! Owns the writing of numbers, tags and cache rules. It has a fixed size, which the longest head
//! fits; it never allocates.

use super::{Cache, ETag};

/// What a head ends with, put together on the stack: its pieces are short, and a vector checks its
/// capacity for each.
pub(super) struct Tail {
    bytes: [u8; TAIL_BYTES],
    len: usize,
}

/// The longest: a tag of three numbers (44 bytes with its name), `Cache-Control` (43),
/// `Content-Length` (38), `Connection` (24), the end (2). The longest status line is shorter.
const TAIL_BYTES: usize = 160;

/// The two digits of each number below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The begin of a tag, with its name.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    bytes: [u8; BEGUN_BYTES],
    len: usize,
}

/// Six bytes of the name, a quotation mark, 16 digits and a hyphen, in a power of two.
const BEGUN_BYTES: usize = 32;

impl Tail {
    #[inline]
    pub(super) fn new() -> Tail {
        Tail {
            bytes: [0; TAIL_BYTES],
            len: 0,
        }
    }

    /// What has been put together so far.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    #[inline]
    pub(super) fn cache(&mut self, cache: Cache) {
        match cache {
            Cache::NoStore => self.push(b"Cache-Control: no-store\r\n"),
            Cache::NoCache => self.push(b"Cache-Control: no-cache\r\n"),
            Cache::MaxAge(seconds) => {
                self.push(b"Cache-Control: public, max-age=");
                self.decimal(u64::from(seconds));
                self.push(b"\r\n");
            }
        }
    }

    #[inline]
    pub(super) fn etag(&mut self, etag: ETag) {
        self.push(b"\"");
        self.hexadecimal(etag.boot);
        self.push(b"-");
        self.etag_end(etag);
    }

    /// What is there so far and the begin of a tag, to begin others with.
    pub(super) fn begin_etag(mut self, boot: u64) -> Begun {
        self.push(b"\"");
        self.hexadecimal(boot);
        self.push(b"-");
        let mut bytes = [0; BEGUN_BYTES];
        bytes[..self.len].copy_from_slice(self.text());
        let len = self.len;
        Begun { bytes, len }
    }

    /// A tag whose begin is ready. All of its room is copied, which takes no call.
    #[inline(always)]
    pub(super) fn begun_etag(&mut self, begun: &Begun, etag: ETag) {
        let begin = self.len;
        self.push(&begun.bytes);
        self.len = begin + begun.len;
        self.etag_end(etag);
    }

    /// What follows the boot id.
    #[inline(always)]
    pub(super) fn etag_end(&mut self, etag: ETag) {
        self.hexadecimal(etag.version);
        self.push(&[b'-', etag.variant, b'"']);
    }

    #[inline]
    pub(super) fn decimal(&mut self, number: u64) {
        // Lengths and ages, nearly always: four digits, and those in front that do not count are
        // shifted out.
        if number < 10_000 {
            let (high, low) = (number as usize / 100, number as usize % 100);
            let [[a, b], [c, d]] = [PAIRS[high], PAIRS[low]];
            let zeros = match number {
                0..10 => 3,
                10..100 => 2,
                100..1000 => 1,
                _ => 0,
            };
            let digits = u32::from_le_bytes([a, b, c, d]) >> (8 * zeros);
            self.push(&digits.to_le_bytes());
            self.len -= zeros;
            return;
        }
        self.push(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Without leading zeros.
    #[inline(always)]
    fn hexadecimal(&mut self, number: u64) {
        let (high, low) = ((number >> 32) as u32, number as u32);
        if high == 0 {
            self.short_hexadecimal(low);
        } else {
            self.short_hexadecimal(high);
            self.push(&hex_digits(low));
        }
    }

    /// Without leading zeros: eight digits, the first that counts in front; those behind the last
    /// are written over by what follows.
    #[inline(always)]
    fn short_hexadecimal(&mut self, number: u32) {
        let zeros = (number | 1).leading_zeros() / 4;
        self.push(&hex_digits(number << (4 * zeros)));
        self.len -= zeros as usize;
    }
}

/// The eight digits of a number: its nibbles are spread over the bytes of a word, and each byte
/// above nine is moved from behind `9` to `a`.
#[inline]
fn hex_digits(number: u32) -> [u8; 8] {
    let mut word = u64::from(number);
    word = (word << 16 | word) & 0x0000_ffff_0000_ffff;
    word = (word << 8 | word) & 0x00ff_00ff_00ff_00ff;
    word = (word << 4 | word) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = ((word + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (word + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'9' - 1)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        let check = |number: u64| {
            let mut tail = Tail::new();
            tail.decimal(number);
            tail.push(b" ");
            tail.hexadecimal(number);
            tail.push(b".");
            let expected = format!("{number} {number:x}.");
            assert_eq!(tail.text(), expected.as_bytes());
        };
        for shift in 0..64 {
            for number in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                check(number);
            }
        }
        let mut power = 1u64;
        while let Some(next) = power.checked_mul(10) {
            check(power - 1);
            check(power);
            power = next;
        }
        check(0x1234_5678_9abc_def0);
    }

    #[test]
    fn the_longest_head_fits() {
        let mut tail = Tail::new();
        tail.push(b"ETag: ");
        tail.etag(ETag {
            boot: u64::MAX,
            version: u64::MAX,
            variant: b'z',
        });
        tail.push(b"\r\n");
        tail.cache(Cache::MaxAge(u32::MAX));
        tail.push(b"Content-Length: ");
        tail.decimal(u64::MAX);
        tail.push(b"\r\nConnection: keep-alive\r\n\r\n");
        assert!(tail.text().len() <= TAIL_BYTES);
    }
}
