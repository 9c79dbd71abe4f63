//! Parts of heads that are rendered once a second.

use super::head::ETag;
use super::tail::Tail;
use crate::time::UnixMs;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The common fields after the date. A script in a browser can read only the fields that are named
/// here, and no browser takes a body for anything but what its type says.
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
    /// What all fields `ETag` of this run begin with: name, quotation mark, boot id and hyphen.
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

    /// Begins a tail with a field `ETag`, without the end of its line.
    #[inline(always)]
    pub(super) fn tag(&self, etag: ETag, tail: &mut Tail) {
        tail.begin_with(&self.etag);
        tail.hexadecimal(etag.version);
        tail.push(&[b'-', etag.variant, b'"']);
    }

    /// The common fields alone.
    pub(super) fn common(&self) -> &[u8] {
        &self.ok_json[OK_LINE.len()..self.ok_json.len() - JSON.len()]
    }
}
