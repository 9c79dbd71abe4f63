//! gzip bodies: made, whole, cut, damaged, and made to do harm.

use super::*;
use crate::rng::Rng;
use flate2::{Compress, FlushCompress, Status};

fn pack(body: &[u8], step: usize) -> Vec<u8> {
    let mut gzip = Compressor::default();
    body.chunks(step).for_each(|part| gzip.push(part));
    gzip.finish()
}

/// Something like a list of tickers.
fn list(items: usize) -> Vec<u8> {
    let item = |n| format!("{{\"symbol\":\"S{n}\",\"lastPrice\":\"{}.{n}\"}}", n * n);
    let items: Vec<String> = (0..items).map(item).collect();
    format!("[{}]", items.join(",")).into_bytes()
}

#[test]
fn what_is_packed_in_whatever_parts_is_the_same_and_unpacks_to_it() {
    let mut noise = Rng::new(3);
    let noise: Vec<u8> = (0..200_000).map(|_| noise.below(256) as u8).collect();
    let bodies = [b"".to_vec(), b"[]".to_vec(), list(4000), noise, vec![b' '; 1 << 20]];
    for body in bodies {
        let packed = pack(&body, 16 * 1024);
        let unpacked = decompress(&packed, 1 << 30).expect("sound");
        assert!(unpacked == body, "{} bytes", body.len());
        for step in [1, 777, 4096, 5000, 1 << 20] {
            assert!(pack(&body, step) == packed, "{step} bytes at a time");
        }
    }
    assert!(pack(&list(4000), 1 << 14).len() < list(4000).len() / 2);
}

fn member(data: &[u8]) -> Vec<u8> {
    pack(data, data.len().max(1))
}

const CAP: u64 = 1 << 20;

/// Everything that comes of these pieces.
fn unpack<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, cap: u64) -> Result<Vec<u8>, String> {
    let text = |error: io::Error| error.to_string();
    let mut gunzip = Decompressor::new(cap);
    let mut out = Vec::new();
    for piece in pieces {
        gunzip.push(piece);
        while gunzip.has_more() {
            out.extend_from_slice(gunzip.step().map_err(text)?);
        }
    }
    gunzip.finish().map(|()| out).map_err(text)
}

#[test]
fn members_in_a_row_are_one_body_of_at_most_the_cap_and_nothing_else_may_follow() {
    let body = [list(100), vec![b' '; 16 * 1024]].concat();
    let packed = [pack(&body[..9], 9), pack(&body[9..], 999)].concat();
    let length = body.len() as u64;
    for size in [1, 7, packed.len()] {
        assert_eq!(unpack(packed.chunks(size), length), Ok(body.clone()), "{size}");
        assert_eq!(unpack(packed.chunks(size), length - 1), Err(TOO_LARGE.to_string()), "{size}");
    }
    assert_eq!(unpack([&packed[..packed.len() - 1]], length), Err(INCOMPLETE.to_string()));
    for (more, why) in [(&b"\r\n"[..], INCOMPLETE), (b"[]0123456789", "invalid gzip header")] {
        assert_eq!(unpack([&packed[..], more], length), Err(why.to_string()), "{more:?}");
    }
}

/// A gigabyte of blanks in a megabyte: one piece of it, again and again.
#[test]
fn a_bomb_is_an_error_and_no_memory() {
    let mut unit = Vec::with_capacity(1 << 16);
    let mut compress = Compress::new(Compression::best(), false);
    let packed = compress.compress_vec(&vec![b' '; 1 << 20], &mut unit, FlushCompress::Full);
    assert!(matches!(packed, Ok(Status::Ok)));
    let mut gunzip = Decompressor::new(48 << 20);
    gunzip.push(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    let (mut pushed, mut made) = (0, 0);
    let error = 'all: loop {
        assert!(pushed < 1024, "it goes off");
        pushed += 1;
        gunzip.push(&unit);
        while gunzip.has_more() {
            match gunzip.step() {
                Ok(slice) => made += slice.len(),
                Err(error) => break 'all error,
            }
        }
    };
    assert_eq!(error.to_string(), TOO_LARGE);
    assert!(made <= 48 << 20, "{made}");
    assert_eq!(pushed, 49);
    assert!(gunzip.compressed.capacity() <= 1 << 16);
}

#[test]
fn one_slice_takes_a_bounded_part_of_what_is_there() {
    // Blocks that hold nothing: ten bits each.
    let (mut bits, mut count, mut packed) = (0_u32, 0, Vec::new());
    while packed.len() < 16 * 1024 {
        bits |= 0b010 << count;
        count += 10;
        while count >= 8 {
            packed.push(bits as u8);
            bits >>= 8;
            count -= 8;
        }
    }
    let mut gunzip = Decompressor::new(CAP);
    gunzip.push(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    gunzip.push(&packed);
    let mut slices = 0;
    while gunzip.has_more() {
        let before = gunzip.consumed;
        assert_eq!(gunzip.step().expect("sound"), b"");
        assert!(!gunzip.has_more() || gunzip.consumed - before <= SLICE);
        slices += 1;
    }
    assert!(slices >= packed.len() / SLICE, "{slices}");
    assert_eq!(gunzip.finish().expect_err("it is cut short").to_string(), INCOMPLETE);
    // A little that unpacks to much.
    let bomb = member(&vec![b' '; 400_000]);
    let mut gunzip = Decompressor::new(CAP);
    gunzip.push(&bomb);
    while gunzip.has_more() {
        let made = gunzip.step().expect("sound").len();
        assert!(made <= 2 * SLICE_PLAIN + 32 * 1024);
    }
    gunzip.finish().expect("whole");
}

#[test]
fn a_body_that_is_larger_than_what_it_holds_is_refused() {
    let empty = member(b"");
    let most = SURPLUS as usize / empty.len();
    let check = |packed: Vec<u8>, expected: Result<&[u8], &str>| {
        let found = decompress(&packed, 1 << 20).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(<[u8]>::to_vec).map_err(str::to_string));
    };
    check(empty.repeat(most), Ok(b""));
    check(empty.repeat(most + 20), Err(LARGER));
    // What cannot be made smaller is hardly larger, however long it is.
    let mut rng = Rng::new(1);
    let noise: Vec<u8> = (0..(1 << 20) / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    check(pack(&noise, noise.len()), Ok(&noise));
}
