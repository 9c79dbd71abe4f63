//! RESP, version 2: the protocol of Redis and Valkey ("Redis serialization protocol specification").
//!
//! [`parse`] reads one reply from the beginning of a buffer, without copying; [`write_command`] appends a
//! command. Lengths, nesting and the number of elements are bounded, so that no peer can make the parser use
//! more memory or time than an expected reply needs.
//!
//! The crate `redis-protocol` is not used: it brings six other crates, and this program needs only the five
//! types of a reply.

/// Deepest nesting of arrays: a reply of `XREAD` has four levels.
const MOST_DEPTH: usize = 6;

/// Most elements of one reply, over all of its arrays: some hundred entries of streams have a thousand.
const MOST_ELEMENTS: usize = 16_384;

/// Most bytes of a reply: a market list of 20,000 markets has some 4 MB.
pub const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Longest line: an error or a length.
const MOST_LINE: usize = 4 * 1024;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespValue<'a> {
    /// A text like `OK`.
    Simple(&'a [u8]),
    /// An error: a word in capitals, and a sentence.
    Error(&'a [u8]),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(&'a [u8]),
    /// Null, in place of bytes or of a list.
    Null,
    /// A list.
    Array(Vec<RespValue<'a>>),
}

/// The error for bytes that do not begin like a reply, or that have a malformed number.
const MALFORMED: &str = "it does not speak the protocol of Redis";

/// The error for bytes that exceed a bound.
const TOO_LARGE: &str = "its reply is too large";

impl<'a> RespValue<'a> {
    /// The bytes of a text.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            RespValue::Simple(bytes) | RespValue::Bulk(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements of a list. Any other value has none.
    pub fn list(&self) -> &[RespValue<'a>] {
        match self {
            RespValue::Array(list) => list,
            _ => &[],
        }
    }

    /// The bytes of an element. Empty if the element has none.
    pub fn bytes_at(&self, at: usize) -> &'a [u8] {
        self.list().get(at).and_then(RespValue::bytes).unwrap_or_default()
    }

    /// The element as a number.
    pub fn number_at(&self, at: usize) -> Option<i64> {
        self.list().get(at)?.number()
    }

    /// The absolute value of the element as a number; 0 if it is no number.
    pub fn count_at(&self, at: usize) -> u64 {
        self.number_at(at).unwrap_or(0).unsigned_abs()
    }

    /// The value as a number. A text of digits is a number too: scripts return the numbers of a
    /// hash as text.
    pub fn number(&self) -> Option<i64> {
        match self {
            RespValue::Integer(number) => Some(*number),
            _ => std::str::from_utf8(self.bytes()?).ok()?.parse().ok(),
        }
    }
}

/// Reads the first reply, and returns it with its length in bytes. Returns `None` if more bytes must come,
/// and an error if the bytes are malformed or exceed a bound.
pub fn parse(bytes: &[u8]) -> Result<Option<(RespValue<'_>, usize)>, &'static str> {
    let mut parser = Parser { bytes, at: 0, elements: 0 };
    match parser.reply(0) {
        Ok(reply) => Ok(Some((reply, parser.at))),
        Err(None) if bytes.len() <= MOST_BYTES => Ok(None),
        Err(error) => Err(error.unwrap_or(TOO_LARGE)),
    }
}

/// Appends a command.
pub fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    let length = |sign: u8, length: usize, out: &mut Vec<u8>| {
        out.push(sign);
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        out.extend_from_slice(b"\r\n");
    };
    length(b'*', words.len(), out);
    for word in words {
        length(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    elements: usize,
}

/// A value that the bytes begin with. The error `None` says that more bytes must come.
type Parsed<T> = Result<T, Option<&'static str>>;

impl<'a> Parser<'a> {
    fn reply(&mut self, depth: usize) -> Parsed<RespValue<'a>> {
        self.elements += 1;
        if depth > MOST_DEPTH || self.elements > MOST_ELEMENTS {
            Err(TOO_LARGE)?;
        }
        let (sign, line) = self.line()?;
        Ok(match sign {
            b'+' => RespValue::Simple(line),
            b'-' => RespValue::Error(line),
            b':' => RespValue::Integer(number(line)?),
            _ if line == b"-1" => RespValue::Null,
            b'$' => {
                let end = self.at + length(line, MOST_BYTES)? + 2;
                let bulk = self.bytes.get(self.at..end).ok_or(None)?;
                self.at = end;
                RespValue::Bulk(bulk.strip_suffix(b"\r\n").ok_or(MALFORMED)?)
            }
            _ => {
                let elements = 0..length(line, MOST_ELEMENTS)?;
                let list: Parsed<Vec<_>> = elements.map(|_| self.reply(depth + 1)).collect();
                RespValue::Array(list?)
            }
        })
    }

    /// The sign of a line, and the rest of it.
    fn line(&mut self) -> Parsed<(u8, &'a [u8])> {
        let (sign, rest) = self.bytes[self.at..].split_first().ok_or(None)?;
        let end = memchr::memchr(b'\r', &rest[..rest.len().min(MOST_LINE)]);
        if !b"+-:$*".contains(sign) || end.is_none() && rest.len() > MOST_LINE {
            Err(MALFORMED)?;
        }
        let end = end.ok_or(None)?;
        if *rest.get(end + 1).ok_or(None)? != b'\n' {
            Err(MALFORMED)?;
        }
        self.at += end + 3;
        Ok((*sign, &rest[..end]))
    }
}

fn number(line: &[u8]) -> Result<i64, &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| MALFORMED)?;
    text.parse().map_err(|_| MALFORMED)
}

fn length(line: &[u8], most: usize) -> Result<usize, &'static str> {
    match usize::try_from(number(line)?) {
        Ok(length) if length <= most => Ok(length),
        Ok(_) => Err(TOO_LARGE),
        Err(_) => Err(MALFORMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_and_every_prefix_waits_for_more() {
        let all: &[u8] = b"*6\r\n+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*1\r\n*-1\r\n";
        let expected = RespValue::Array(vec![
            RespValue::Simple(b"OK"),
            RespValue::Error(b"ERR no"),
            RespValue::Integer(-7),
            RespValue::Bulk(b"a\r\n"),
            RespValue::Null,
            RespValue::Array(vec![RespValue::Null]),
        ]);
        assert_eq!(parse(all), Ok(Some((expected, all.len()))));
        for end in 0..all.len() {
            assert_eq!(parse(&all[..end]), Ok(None), "{end}");
        }
        let two = b"+a\r\n+b\r\n";
        assert_eq!(parse(two), Ok(Some((RespValue::Simple(b"a"), 4))));
    }

    #[test]
    fn what_is_no_reply_or_exceeds_a_bound_is_refused() {
        let malformed: [&[u8]; 6] = [
            b"HTTP/1.1 400 Bad Request\r\n",
            b"\x16\x03\x01",
            b":x\r\n",
            b"$2\r\nabc\r\n",
            b"$-2\r\n",
            b"+a\rb\r\n",
        ];
        for bytes in malformed {
            assert_eq!(parse(bytes), Err(MALFORMED), "{bytes:?}");
        }
        assert_eq!(parse(&[b'+'; MOST_LINE + 2]), Err(MALFORMED));
        for bytes in
            ["*16385\r\n", "$33554433\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+a\r\n"]
        {
            assert_eq!(parse(bytes.as_bytes()), Err(TOO_LARGE), "{bytes}");
        }
    }

    #[test]
    fn a_command_is_written_as_a_list_of_bulks() {
        let mut out = Vec::new();
        write_command(&mut out, &[b"GET", b"a\r\nb"]);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n");
    }
}
