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
        // Half of the bits tell one run from another, and each head is shorter.
        etag.decimal(boot & u64::from(u32::MAX));
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
        tail.decimal(etag.version);
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

/// The longest tail: an entity tag (43 bytes with its name), `Cache-Control` (43), `Content-Length`
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
}

#[cfg(test)]
mod tests {
    use super::super::{ETag, Stamp};
    use super::*;

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
