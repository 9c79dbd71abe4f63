//! The parts of a head. [`Stamp`] is the start of most heads, rendered once a second. [`Tail`] is the end,
//! which differs between responses: entity tag, caching, length, persistence.

use super::head::{Cache, ETag};
use crate::time::UnixMs;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The common fields after the date. A script in a browser can read only the fields that are
/// exposed here. `nosniff` keeps browsers from guessing another media type.
pub(super) const COMMON: &[u8] = b"\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Access-Control-Allow-Origin: *\r\n\
    Access-Control-Expose-Headers: ETag, Date, Link, Retry-After, Chart-Interval, Chart-Source, \
    Chart-Last-Closed, Chart-Gaps, Chart-Coverage, RateLimit-Limit, RateLimit-Remaining, \
    RateLimit-Reset\r\n";

const OK_LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";
const DATE: &[u8] = b"Date: ";
const DATE_BYTES: usize = b"Sun, 06 Nov 1994 08:49:37 GMT".len();
pub(super) const ETAG: &[u8] = b"ETag: ";
pub(super) const JSON: &[u8] = b"Content-Type: application/json\r\n";

/// Rendered lines with the date of the current second.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// The beginning of all `ETag` fields of this run: name, quotation mark, boot id and hyphen.
    etag: Tail,
    /// The milliseconds of the current second.
    span: Range<i64>,
    /// The status line of a 200, the common fields, and the content type of JSON.
    pub(super) ok_json: Vec<u8>,
}

impl Stamp {
    /// Lines for the run with this boot id. Their date is in 1970 until the first [`Stamp::refresh`].
    pub fn new(boot: u64) -> Stamp {
        let mut etag = Tail::new();
        etag.push(ETAG);
        etag.push(b"\"");
        etag.hexadecimal(boot);
        etag.push(b"-");
        let mut stamp = Stamp {
            etag,
            span: 0..0,
            ok_json: [OK_LINE, DATE, &[0; DATE_BYTES], COMMON, JSON].concat(),
        };
        stamp.refresh(UnixMs(0));
        stamp
    }

    /// Sets the date. Returns true if the second has changed; otherwise this does almost nothing.
    #[inline]
    pub fn refresh(&mut self, now: UnixMs) -> bool {
        let is_new = !self.span.contains(&now.0);
        if is_new {
            self.set(now);
        }
        is_new
    }

    #[cold]
    fn set(&mut self, now: UnixMs) {
        let second = now.0.div_euclid(1000);
        // The end of the year 9999, which is the last second that an HTTP date can express.
        const LAST: i64 = 253_402_300_799;
        self.span = second.saturating_mul(1000)..second.saturating_mul(1000).saturating_add(1000);
        let since = Duration::from_secs(second.clamp(0, LAST) as u64);
        let date = httpdate::HttpDate::from(SystemTime::UNIX_EPOCH + since);
        let begin = OK_LINE.len() + DATE.len();
        write!(&mut self.ok_json[begin..begin + DATE_BYTES], "{date}")
            .expect("an HTTP date has 29 bytes");
    }

    /// Appends a field `ETag`, without the end of its line.
    #[inline(always)]
    pub(super) fn tag(&self, etag: ETag, tail: &mut Tail) {
        tail.push(self.etag.text());
        tail.hexadecimal(etag.version);
        tail.push(&[b'-', etag.variant, b'"']);
    }

    /// The common fields alone.
    pub(super) fn common(&self) -> &[u8] {
        &self.ok_json[OK_LINE.len()..self.ok_json.len() - JSON.len()]
    }
}

/// The end of a head, in a fixed buffer: its pieces are short, and a vector would check its
/// capacity for each of them.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    bytes: [u8; TAIL_BYTES],
    len: usize,
}

/// The longest tail: an entity tag (45 bytes with its name), `Cache-Control` (43), `Content-Length`
/// (38), `Connection` (24), the empty line (2). The longest status line is shorter.
pub(super) const TAIL_BYTES: usize = 160;

impl Tail {
    #[inline]
    pub(super) fn new() -> Tail {
        Tail { bytes: [0; TAIL_BYTES], len: 0 }
    }

    /// The bytes so far.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends the bytes so far to `out`. Copies the whole buffer, because a copy of fixed size
    /// needs no call.
    #[inline]
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.len;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }

    #[inline]
    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    #[inline(always)]
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
    pub(super) fn decimal(&mut self, number: u64) {
        self.push(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Appends a number without leading zeros.
    #[inline(always)]
    pub(super) fn hexadecimal(&mut self, number: u64) {
        let (high, low) = ((number >> 32) as u32, number as u32);
        if high == 0 {
            self.short_hexadecimal(low);
        } else {
            self.short_hexadecimal(high);
            self.push(&hex_digits(low));
        }
    }

    /// Appends a number without leading zeros. Writes eight digits, shifted to the left; later bytes
    /// overwrite the surplus ones.
    #[inline(always)]
    fn short_hexadecimal(&mut self, number: u32) {
        let zeros = (number | 1).leading_zeros() / 4;
        self.push(&hex_digits(number << (4 * zeros)));
        self.len -= zeros as usize;
    }
}

/// The eight digits of a number. Spreads its nibbles over the bytes of a word, then adds `0` to each byte.
/// Bytes above nine also get the distance from `9` to `a`.
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
    use super::super::{ETag, Stamp};
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
        Stamp::new(u64::MAX).tag(ETag::new(u64::MAX, b'z'), &mut tail);
        tail.push(b"\r\n");
        tail.cache(Cache::MaxAge(u32::MAX));
        tail.push(b"Content-Length: ");
        tail.decimal(u64::MAX);
        tail.push(b"\r\nConnection: keep-alive\r\n\r\n");
        assert!(tail.text().len() <= TAIL_BYTES);
    }
}
