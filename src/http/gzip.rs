//! gzip, put around a body part by part (RFC 1952).
//!
//! Owns one member in the making: its head, its data as far as it is packed, its CRC-32 and its
//! length. How much is packed at a time is the caller's: a megabyte takes seven milliseconds. The
//! same body packs to the same bytes, in whatever parts it comes: a strong entity tag may name them.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Whether there is gzip in this build.
pub const AVAILABLE: bool = true;

/// Head of a member (2.3): deflate, no flags, no time, made by the fastest way, on no known system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// Room made for packed bytes at a time: about what 16 KiB of JSON pack to.
const ROOM: usize = 4096;

/// See the module's page. Takes some 300 KB until it is finished, nearly all of it tables.
pub struct Gzip {
    compress: Compress,
    crc: Crc,
    out: Vec<u8>,
}

impl Gzip {
    /// Begins with a body. Always there in this build.
    pub fn open() -> Option<Box<Gzip>> {
        // Level 1: JSON packs a tenth smaller at level 6, which takes six times as long.
        let compress = Compress::new(Compression::fast(), false);
        Some(Box::new(Gzip {
            compress,
            crc: Crc::new(),
            out: HEAD.to_vec(),
        }))
    }

    /// Packs the next part.
    pub fn push(&mut self, part: &[u8]) {
        self.crc.update(part);
        self.deflate(part, FlushCompress::None);
    }

    /// Ends the member: all of it.
    pub fn finish(mut self) -> Vec<u8> {
        self.deflate(b"", FlushCompress::Finish);
        self.out.extend_from_slice(&self.crc.sum().to_le_bytes());
        self.out.extend_from_slice(&self.crc.amount().to_le_bytes());
        self.out
    }

    fn deflate(&mut self, mut part: &[u8], flush: FlushCompress) {
        loop {
            self.out.reserve(ROOM);
            let before = self.compress.total_in();
            let status = (self.compress).compress_vec(part, &mut self.out, flush);
            let used = (self.compress.total_in() - before) as usize;
            part = &part[used..];
            let is_done = match flush {
                FlushCompress::Finish => !matches!(status, Ok(Status::Ok)),
                // Room is left: nothing waits for it.
                _ => part.is_empty() && self.out.len() < self.out.capacity(),
            };
            debug_assert!(status.is_ok(), "deflate takes whatever comes");
            if is_done || status.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gunzip;
    use super::*;
    use crate::rng::Rng;

    fn pack(body: &[u8], step: usize) -> Vec<u8> {
        let mut gzip = Gzip::open().expect("built in");
        body.chunks(step).for_each(|part| gzip.push(part));
        gzip.finish()
    }

    fn unpack(packed: &[u8]) -> Vec<u8> {
        let mut gunzip = Gunzip::open(1 << 30).expect("built in");
        gunzip.push(packed);
        let mut body = Vec::new();
        while gunzip.has_more() {
            body.extend_from_slice(gunzip.unpack().expect("sound"));
        }
        gunzip.finish().expect("whole");
        body
    }

    /// Rows as a chart has them.
    fn rows(count: usize) -> Vec<u8> {
        let mut rng = Rng::new(7);
        let row = |at: usize, rng: &mut Rng| {
            let price = 9_000_000 + rng.below(90_000);
            format!("[{},{}.{:02}],", at * 60_000, price / 100, price % 100)
        };
        (0..count)
            .flat_map(|at| row(at, &mut rng).into_bytes())
            .collect()
    }

    #[test]
    fn what_is_packed_unpacks_to_the_same() {
        let mut noise = Rng::new(3);
        let noise: Vec<u8> = (0..200_000).map(|_| noise.below(256) as u8).collect();
        let bodies = [
            b"".to_vec(),
            b"[]".to_vec(),
            rows(4000),
            noise,
            vec![b' '; 1 << 20],
        ];
        for body in bodies {
            let packed = pack(&body, 16 * 1024);
            assert!(unpack(&packed) == body, "{} bytes", body.len());
        }
        assert!(pack(&rows(4000), 1 << 14).len() < rows(4000).len() / 2);
    }

    #[test]
    fn a_body_packs_to_the_same_bytes_in_whatever_parts_it_comes() {
        let body = rows(5000);
        let whole = pack(&body, body.len());
        for step in [1, 777, 4096, 5000, 16 * 1024] {
            assert!(pack(&body, step) == whole, "{step} bytes at a time");
        }
    }
}
