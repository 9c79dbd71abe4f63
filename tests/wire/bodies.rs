//! Bodies, in both directions.

use marketd::http::body::{EXTENSION_BYTES, TRAILER_BYTES};
use marketd::http::{BodyError, BodyReader, Framing};

const SIZE: BodyError = BodyError::Malformed("malformed size of a chunk");
const END: BodyError = BodyError::Malformed("a chunk does not end with CR LF");
const TRAILER: BodyError = BodyError::Malformed("malformed trailer field");
const CUT: BodyError = BodyError::Malformed("the body was cut short");
const TOO_LARGE: BodyError = BodyError::TooLarge("the body is too large");
const LONG_EXTENSIONS: BodyError = BodyError::TooLarge("the chunk extensions are too large");
const LONG_TRAILERS: BodyError = BodyError::TooLarge("the trailer fields are too large");

pub type Whole = Result<(Vec<u8>, usize), BodyError>;

/// Reads a body whose bytes arrive as `split` cuts them: its data and its length on the wire.
pub fn read_body<'a>(framing: Framing, cap: u64, split: impl Iterator<Item = &'a [u8]>) -> Whole {
    let mut reader = BodyReader::new(framing, cap)?;
    let (mut data, mut used) = (Vec::new(), 0);
    for mut rest in split {
        while !rest.is_empty() && !reader.is_done() {
            let piece = reader.decode(rest)?;
            assert!(piece.used > 0 || piece.done, "no progress");
            assert!(piece.data.len() <= piece.used);
            assert_eq!(piece.done, reader.is_done());
            data.extend_from_slice(piece.data);
            used += piece.used;
            rest = &rest[piece.used..];
        }
    }
    reader.finish_at_close()?;
    Ok((data, used))
}

/// Whole, cut in two everywhere, and byte by byte: always the same.
fn check_body(framing: Framing, cap: u64, raw: &[u8], expected: Result<(&[u8], usize), BodyError>) {
    let expected: Whole = expected.map(|(data, used)| (data.to_vec(), used));
    let context = || format!("{framing:?} {cap} {}", raw.escape_ascii());
    let whole = read_body(framing, cap, [raw].into_iter());
    assert_eq!(whole, expected, "{}", context());
    for at in 0..=raw.len() {
        let (begin, end) = raw.split_at(at);
        let found = read_body(framing, cap, [begin, end].into_iter());
        assert_eq!(found, expected, "{} at {at}", context());
    }
    let found = read_body(framing, cap, raw.chunks(1));
    assert_eq!(found, expected, "{} byte by byte", context());
}

#[test]
fn every_body_is_the_same_wherever_it_is_split() {
    let check = |framing, raw: &str, expected: Result<(&str, usize), BodyError>| {
        let expected = expected.map(|(data, used)| (data.as_bytes(), used));
        check_body(framing, 1000, raw.as_bytes(), expected);
    };
    check(Framing::None, "GET", Ok(("", 0)));
    check(Framing::Length(5), "helloGET", Ok(("hello", 5)));
    check(Framing::Length(5), "hell", Err(CUT));
    check(Framing::UntilClose, "hello", Ok(("hello", 5)));
    check(Framing::UntilClose, "", Ok(("", 0)));

    let chunked = |raw, expected| check(Framing::Chunked, raw, expected);
    chunked("0\r\n\r\n", Ok(("", 5)));
    chunked("5\r\nhello\r\n0\r\n\r\nGET", Ok(("hello", 15)));
    chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", Ok(("hello world", 26)));
    chunked("a\r\n0123456789\r\n00\r\n\r\n", Ok(("0123456789", 21)));
    chunked("A\r\n0123456789\r\n0\r\n\r\n", Ok(("0123456789", 20)));
    chunked("0000000000000005\r\nhello\r\n0\r\n\r\n", Ok(("hello", 30)));
    chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n", Ok(("hello", 21)));
    chunked("5 ; a = \"\t\u{e4}\"\r\nhello\r\n0\r\n\r\n", Ok(("hello", 27)));
    chunked("3\r\n\r\n0\r\n0\r\n\r\n", Ok(("\r\n0", 13)));
    chunked("0\r\nA: b\r\nC:\t\u{e4}\r\n\r\nGET", Ok(("", 18)));

    let size = Err(SIZE);
    chunked("\r\n", size);
    chunked(";a\r\n", size);
    chunked(" 5\r\nhello\r\n0\r\n\r\n", size);
    chunked("5 \r\nhello\r\n0\r\n\r\n", size);
    chunked("5;\r\nhello\r\n0\r\n\r\n", size);
    chunked("5;a=\"b\" \r\nhello\r\n0\r\n\r\n", size);
    chunked("+5\r\n", size);
    chunked("-5\r\n", size);
    chunked("0x5\r\n", size);
    chunked("5,\r\n", size);
    chunked("5\n", size);
    chunked("5\rx", size);
    chunked("g\r\n", size);
    chunked("5;a\nb\r\n", size);
    chunked("5;a\0b\r\n", size);
    chunked("5;a\x7fb\r\n", size);
    chunked("5;a\rb\r\n", size);
    chunked("00000000000000005\r\n", size);
    chunked("10000000000000000\r\n", size);
    chunked("ffffffffffffffff\r\n", Err(TOO_LARGE));
    let end = Err(END);
    chunked("5\r\nhello0\r\n\r\n", end);
    chunked("5\r\nhello\n0\r\n\r\n", end);
    chunked("5\r\nhello\rx", end);
    let trailer = Err(TRAILER);
    chunked("0\r\n\n", trailer);
    chunked("0\r\n\rx", trailer);
    chunked("0\r\n: b\r\n\r\n", trailer);
    chunked("0\r\nA b: c\r\n\r\n", trailer);
    chunked("0\r\nA\r\n\r\n", trailer);
    chunked("0\r\nA: b\r\n c\r\n\r\n", trailer);
    chunked("0\r\nA: b\n\r\n", trailer);
    chunked("0\r\nA: b\rc\r\n\r\n", trailer);
    chunked("0\r\nA: b\0\r\n\r\n", trailer);
    let cut = Err(CUT);
    chunked("", cut);
    chunked("5", cut);
    chunked("5\r\nhello\r\n", cut);
    chunked("0\r\n", cut);
    chunked("0\r\nA: b\r\n", cut);
}

#[test]
fn a_body_has_a_cap_that_counts_its_data() {
    let check = |framing, cap, raw: &str, expected: Option<&str>| {
        let expected = expected.map(|data| (data.as_bytes(), raw.len()));
        check_body(framing, cap, raw.as_bytes(), expected.ok_or(TOO_LARGE));
    };
    for (cap, expected) in [(6, Some("hello")), (5, Some("hello")), (4, None), (0, None)] {
        check(Framing::Length(5), cap, "hello", expected);
        check(Framing::UntilClose, cap, "hello", expected);
        check(Framing::Chunked, cap, "5\r\nhello\r\n0\r\n\r\n", expected);
        check(Framing::Chunked, cap, "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", expected);
    }
    check(Framing::Chunked, 0, "0\r\n\r\n", Some(""));
}

#[test]
fn extensions_and_trailers_have_caps() {
    let read = |raw: String| {
        let whole = read_body(Framing::Chunked, 1000, [raw.as_bytes()].into_iter());
        let cut = read_body(Framing::Chunked, 1000, raw.as_bytes().chunks(7));
        assert_eq!(whole, cut);
        whole.map(|(data, _)| data.len())
    };
    let extension = |bytes: usize| format!("0;{}\r\n\r\n", "x".repeat(bytes - 1));
    assert_eq!(read(extension(EXTENSION_BYTES - 1)), Ok(0));
    assert_eq!(read(extension(EXTENSION_BYTES)), Ok(0));
    assert_eq!(read(extension(EXTENSION_BYTES + 1)), Err(LONG_EXTENSIONS));
    // Over all chunks, not in each.
    let many = |chunks: usize| format!("{}0\r\n\r\n", "1;abc\r\nx\r\n".repeat(chunks));
    assert_eq!(read(many(1000)), Ok(1000));
    let chunk = format!("1;{}\r\nx\r\n", "x".repeat(EXTENSION_BYTES / 8 - 1));
    assert_eq!(read(format!("{}0\r\n\r\n", chunk.repeat(8))), Ok(8));
    assert_eq!(read(format!("{}0;\r\n\r\n", chunk.repeat(8))), Err(LONG_EXTENSIONS));

    let trailer = |bytes: usize| format!("0\r\nA:{}\r\n\r\n", "x".repeat(bytes - 4));
    assert_eq!(read(trailer(TRAILER_BYTES - 1)), Ok(0));
    assert_eq!(read(trailer(TRAILER_BYTES)), Ok(0));
    assert_eq!(read(trailer(TRAILER_BYTES + 1)), Err(LONG_TRAILERS));
    let line = format!("A:{}\r\n", "x".repeat(TRAILER_BYTES / 2 - 4));
    assert_eq!(read(format!("0\r\n{}\r\n", line.repeat(2))), Ok(0));
    assert_eq!(read(format!("0\r\n{}B:\r\n\r\n", line.repeat(2))), Err(LONG_TRAILERS));
}
