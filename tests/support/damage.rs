//! Damage to messages, of the kinds on which parsers stumble.

use super::chance::Rng;

/// Bytes on which parsers stumble, between bars.
const STONES: &[u8] =
    b"\r\n|\n|\r|\r\n\r\n|\n\n| |\t|:|;|,|%|%2e|%00|..|/|?|#|*|\0|\x7f|\x80|\xff|0|5|f|-|+|\
    HTTP/1.1|HTTP/1.|HTTP/1.0|Host: h\r\n|Content-Length: 5\r\n|Content-Length: 70000\r\n|\
    Transfer-Encoding: chunked\r\n|GET |HEAD |POST |@|[|]|\"|Connection: close\r\n|\
    Connection: keep-alive\r\n|Expect: 100-continue\r\n|If-None-Match: *\r\n|0\r\n\r\n|\
    5\r\nhello\r\n|GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n|\
    GET /api/v1/quotes?symbols=* HTTP/1.1\r\nHost: h\r\n\r\n|\
    GET /api/ecosystem/market HTTP/1.1\r\nHost: h\r\n\r\n";

/// These bytes, damaged in up to five places: a byte or a bit of it changed, bytes taken out, said again and again,
/// cut off, or put in.
pub fn damaged(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let stones: Vec<&[u8]> = STONES.split(|byte| *byte == b'|').collect();
    let mut bytes = bytes.to_vec();
    for _ in 0..rng.below(6) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        let end = (at + rng.below(8) as usize).min(bytes.len());
        match rng.below(8) {
            0 if at < bytes.len() => bytes[at] = rng.next() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let times = rng.below(20) as usize;
                bytes.splice(at..at, copy.repeat(times));
            }
            4 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, rng.pick(&stones).iter().copied())),
        }
    }
    bytes
}
