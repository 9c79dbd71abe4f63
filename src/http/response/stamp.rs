//! Parts of heads that are rendered once a second.

use super::head::ETag;
use crate::time::UnixMs;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The common fields after the date. A script in a browser can read only the fields that are named
/// here.
pub(super) const COMMON: &[u8] = b"\r\n\
    Access-Control-Allow-Origin: *\r\n\
    Access-Control-Expose-Headers: ETag, Date, Link, Retry-After, Chart-Interval, Chart-Source, \
    Chart-Last-Closed, Chart-Gaps, Chart-Coverage, RateLimit-Limit, RateLimit-Remaining, \
    RateLimit-Reset\r\n";

const OK_LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";
const DATE: &[u8] = b"Date: ";
const DATE_BYTES: usize = b"Sun, 06 Nov 1994 08:49:37 GMT".len();
pub(super) const JSON: &[u8] = b"Content-Type: application/json\r\n";

/// Rendered lines with the date of the current second.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// What all entity tags of this run begin with: quotation mark, boot id and hyphen.
    tag_start: Box<[u8]>,
    /// The milliseconds of the current second.
    span: Range<i64>,
    /// The status line of a 200, the common fields, and the content type of JSON.
    pub(super) ok_json: Vec<u8>,
}

impl Stamp {
    /// Lines for the run with this boot id. Their date is in 1970 until the first [`Stamp::refresh`].
    pub fn new(boot: u64) -> Stamp {
        let mut stamp = Stamp {
            tag_start: format!("\"{boot:x}-").into_bytes().into(),
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

    /// Appends an entity tag.
    #[inline]
    pub(super) fn write_tag(&self, out: &mut Vec<u8>, etag: ETag) {
        out.extend_from_slice(&self.tag_start);
        write_number::<16>(out, etag.version);
        out.extend_from_slice(&[b'-', etag.variant, b'"']);
    }

    /// The common fields alone.
    pub(super) fn common(&self) -> &[u8] {
        &self.ok_json[OK_LINE.len()..self.ok_json.len() - JSON.len()]
    }
}

/// Appends a number without leading zeros.
#[inline]
pub(super) fn write_number<const RADIX: u64>(out: &mut Vec<u8>, mut number: u64) {
    let begin = out.len();
    loop {
        out.push(b"0123456789abcdef"[(number % RADIX) as usize]);
        number /= RADIX;
        if number == 0 {
            break;
        }
    }
    out[begin..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        let check = |number: u64| {
            let mut out = Vec::new();
            write_number::<10>(&mut out, number);
            out.push(b' ');
            write_number::<16>(&mut out, number);
            assert_eq!(out, format!("{number} {number:x}").into_bytes());
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
}
