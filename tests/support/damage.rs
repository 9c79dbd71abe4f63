//! Damage to messages, of the kinds on which parsers stumble.

use super::chance::Rng;

/// Bytes on which parsers stumble.
const STONES: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\n\n",
    b" ",
    b"\t",
    b":",
    b";",
    b",",
    b"%",
    b"%2e",
    b"%00",
    b"..",
    b"/",
    b"?",
    b"#",
    b"*",
    b"\0",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"0",
    b"5",
    b"f",
    b"-",
    b"+",
    b"HTTP/1.1",
    b"HTTP/1.",
    b"HTTP/1.0",
    b"Host: h\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 70000\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"@",
    b"[",
    b"]",
    b"\"",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Expect: 100-continue\r\n",
    b"If-None-Match: *\r\n",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /api/v1/quotes?symbols=* HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /api/ecosystem/market HTTP/1.1\r\nHost: h\r\n\r\n",
];

/// These bytes, damaged in up to five places: a byte or a bit of it changed, bytes taken out, said again and again,
/// cut off, or put in.
pub fn damaged(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
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
            _ => drop(bytes.splice(at..at, rng.pick(STONES).iter().copied())),
        }
    }
    bytes
}
