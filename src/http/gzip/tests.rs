//! gzip bodies: made, whole, cut, damaged, and made to do harm.

use super::*;
use crate::rng::Rng;
use flate2::{Compress, Crc, FlushCompress, Status};

/// Optional parts of a member's header (RFC 1952, 2.3.1).
const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;

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

/// Data alone, as RFC 1951 has it.
fn deflated(data: &[u8], level: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 1024);
    let status = Compress::new(Compression::new(level), false).compress_vec(
        data,
        &mut out,
        FlushCompress::Finish,
    );
    assert!(matches!(status, Ok(Status::StreamEnd)));
    out
}

/// A head with these flags and optional parts, packed data, and a trailer for `data`.
fn member_of(flags: u8, parts: &[u8], packed: &[u8], data: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(data);
    let head = [0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 255];
    let ends = [crc.sum().to_le_bytes(), crc.amount().to_le_bytes()];
    [&head[..], parts, packed, &ends.concat()].concat()
}

fn member(data: &[u8]) -> Vec<u8> {
    member_of(0, b"", &deflated(data, 6), data)
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

/// A member of this data whose head has each optional part or not.
fn any_member(data: &[u8], rng: &mut Rng) -> Vec<u8> {
    let flags = rng.below(1 << 5) as u8;
    let mut parts = Vec::new();
    if flags & HAS_EXTRA > 0 {
        let extra = vec![7; [0, 3, 0x1234][rng.below(3) as usize]];
        parts.extend([&(extra.len() as u16).to_le_bytes()[..], &extra].concat());
    }
    for part in [HAS_NAME, HAS_COMMENT].iter().filter(|part| flags & **part > 0) {
        parts.extend_from_slice(&b"what\x00"[usize::from(*part == HAS_NAME)..]);
    }
    if flags & HAS_CHECKSUM > 0 {
        let mut crc = Crc::new();
        crc.update(&member_of(flags, &parts, b"", b"")[..10 + parts.len()]);
        parts.extend_from_slice(&crc.sum().to_le_bytes()[..2]);
    }
    member_of(flags, &parts, &deflated(data, rng.below(10) as u32), data)
}

#[test]
fn members_in_a_row_are_one_body_of_at_most_the_cap_and_nothing_else_may_follow() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (mut packed, mut body, mut ends) = (Vec::new(), Vec::new(), vec![]);
        for _ in 0..=rng.below(4) {
            // The end of a slice may be that of a member.
            let data = match rng.below(5) {
                0 => vec![b' '; 16 * 1024],
                _ => list(rng.below(100) as usize),
            };
            let data = &data[..if rng.below(4) == 0 { 0 } else { data.len() }];
            packed.extend(any_member(data, &mut rng));
            body.extend_from_slice(data);
            ends.push(packed.len());
        }
        let (cut, length) = (rng.below(packed.len() as u64) as usize, body.len() as u64);
        for size in [1, 7, cut + 1, packed.len()] {
            assert_eq!(unpack(packed.chunks(size), length), Ok(body.clone()), "{seed} {size}");
            let less = length.saturating_sub(1);
            let expected = if length > 0 { Err(TOO_LARGE.to_string()) } else { Ok(Vec::new()) };
            assert_eq!(unpack(packed.chunks(size), less), expected, "{seed} {size}");
        }
        if !ends.contains(&cut) {
            assert_eq!(unpack([&packed[..cut]], length), Err(INCOMPLETE.into()), "{seed} {cut}");
        }
        let few = [&b"\0"[..], b"\r\n", b"[]", b"\x1f\x8c", b"\x1fx"][rng.below(5) as usize];
        let with = |more: &[u8]| unpack([&packed[..], few, more], length);
        assert_eq!(with(b""), Err(INCOMPLETE.to_string()), "{seed} {few:?}");
        assert_eq!(with(b"0123456789"), Err("invalid gzip header".to_string()), "{seed} {few:?}");
        if packed[3] & HAS_CHECKSUM > 0 {
            // Otherwise the time of the sender says nothing.
            packed[4 + cut % 4] ^= 1;
            let wrong = "corrupt gzip stream does not have a matching checksum";
            assert_eq!(unpack([&packed[..]], length), Err(wrong.to_string()), "seed {seed}");
        }
    }
}

#[test]
fn what_is_no_gzip_is_refused() {
    let no_gzip = |packed: &[u8]| unpack([packed], CAP).expect_err("it is none");
    assert_eq!(no_gzip(b"[{\"symbol\":\"BTCUSDT\"}]"), "invalid gzip header");
    // zlib, which is another packing of the same data.
    assert_eq!(no_gzip(b"\x78\x9c\x03\0\0\0\0\x01\0\0"), "invalid gzip header");
    // A match that reaches back before the begin, of length 3 and distance 1, finds nothing that anybody has
    // packed.
    assert_eq!(no_gzip(&member_of(0, b"", b"\x03\x02\x00", b"")), INCOMPLETE);
}

#[test]
fn every_damage_is_noticed() {
    let data = list(40);
    let packed = member(&data);
    for at in 0..packed.len() {
        for bit in 0..8 {
            let mut damaged = packed.clone();
            damaged[at] ^= 1 << bit;
            // Time and system of the sender say nothing of the data, and that it is text neither.
            let idle = matches!(at, 4..=9) || at == 3 && bit == 0;
            // What is left of the last byte of the data says nothing at all.
            let spare = at == packed.len() - 9;
            match unpack([&damaged[..]], CAP) {
                Ok(found) => {
                    assert!(idle || spare, "bit {bit} of byte {at}");
                    assert_eq!(found, data);
                }
                Err(error) => {
                    assert!(!idle, "bit {bit} of byte {at}: {error}");
                    assert!(at + 8 < packed.len() || error == INCOMPLETE, "{error}");
                }
            }
        }
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
