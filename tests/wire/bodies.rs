//! Bodies, in both directions.

use marketd::http::{BodyError, BodyReader, Framing};

const SIZE: BodyError = BodyError::Malformed("malformed size of a chunk");
const END: BodyError = BodyError::Malformed("a chunk does not end with CR LF");
const TRAILER: BodyError = BodyError::Malformed("malformed trailer field");
const CUT: BodyError = BodyError::Malformed("the body was cut short");
const TOO_LARGE: BodyError = BodyError::TooLarge("the body is too large");

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
    check(Framing::Length(5), "", Err(CUT));
    check(Framing::UntilClose, "hello", Ok(("hello", 5)));
    check(Framing::UntilClose, "", Ok(("", 0)));

    // What chunks may be: `tests/requests/framing.rs`. In the words of each fault:
    let chunked = |raw, expected| check(Framing::Chunked, raw, expected);
    chunked("5\r\nhello\r\n6\r\n world\r\n0\r\nA: b\r\n\r\nGET", Ok(("hello world", 32)));
    chunked("3\r\n\r\n0\r\n0\r\n\r\n", Ok(("\r\n0", 13)));
    chunked("5,\r\n", Err(SIZE));
    chunked("5\r\nhello\rx", Err(END));
    chunked("0\r\nA b: c\r\n\r\n", Err(TRAILER));
    chunked("ffffffffffffffff\r\n", Err(TOO_LARGE));
    for cut in ["", "5", "5\r\nhello\r\n", "0\r\n", "0\r\n\r", "0\r\nA: b\r\n"] {
        chunked(cut, Err(CUT));
    }
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
