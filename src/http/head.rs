//! The common parts of the heads of requests and responses.
//!
//! Owns the iterator over the fields of a head, and the grammars of simple field values. `parser`
//! and `upstream` interpret the fields.

/// Most fields of a head, whatever the configuration says: while a head is parsed, its fields are
/// on the stack.
pub(super) const FIELDS_CEILING: usize = 256;

/// The fields of a parsed head in their order, as (name, value) pairs. Values have no blanks around
/// them. A folded value, which only a response may have, contains its line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    lines: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields in these lines. The parser has checked that each has a name, a colon and an LF.
    pub(super) fn of_parsed(lines: &'a [u8]) -> Fields<'a> {
        Fields { lines }
    }

    /// The lines themselves.
    pub(super) fn lines(self) -> &'a [u8] {
        self.lines
    }

    /// The value of the first field with this name, ignoring case.
    pub fn get(mut self, name: &str) -> Option<&'a [u8]> {
        self.find_map(|(found, value)| found.eq_ignore_ascii_case(name.as_bytes()).then_some(value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let mut end = 0;
        // A line that begins with a blank continues the previous one (RFC 9112, 5.2).
        loop {
            end += self.lines[end..].iter().position(|&byte| byte == b'\n')? + 1;
            if !matches!(self.lines.get(end), Some(b' ' | b'\t')) {
                break;
            }
        }
        let (line, rest) = self.lines.split_at(end);
        self.lines = rest;
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    }
}

/// The members of a comma-separated list, without blanks around them and without empty members
/// (RFC 9110, 5.6.1). Not for lists with quoted strings.
pub(super) fn members(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// The options of the `Connection` fields of a head (RFC 9110, 7.6.1).
#[derive(Default)]
pub(super) struct Persistence {
    close: bool,
    keep_alive: bool,
}

impl Persistence {
    /// Notes the options of a field.
    pub(super) fn note(&mut self, value: &[u8]) {
        for option in members(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// True if the connection stays open. A peer that speaks HTTP/1.0 must ask for it.
    pub(super) fn holds(&self, is_http11: bool) -> bool {
        !self.close && (is_http11 || self.keep_alive)
    }
}

/// The value of a hexadecimal digit.
pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// True if the byte is allowed in a method or a field name (RFC 9110, 5.6.2: tchar).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// True if the byte is allowed, unescaped, in a host name (RFC 3986, 2.2 and 2.3: unreserved and
/// sub-delims).
pub(super) fn is_host_name(byte: u8) -> bool {
    HOST_NAME[usize::from(byte)]
}

/// [`is_host_name`] by byte. A table, because each request has a host.
static HOST_NAME: [bool; 256] = {
    let (mut all, mut byte) = ([false; 256], 0u8);
    while byte < 128 {
        all[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&'..=b',' | b';' | b'=');
        byte += 1;
    }
    all
};

/// True if the byte is allowed in a field value, a chunk extension or a trailer (RFC 9110, 5.5): any byte
/// except control bytes.
pub(super) fn is_field_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_walked_in_order_and_found_in_any_case() {
        let fields = Fields::of_parsed(b"A: 1\r\nB:\r\nlong: x\r\n  y\r\nA: 2\r\nLast:\t z \r\n");
        let pairs: Vec<(&[u8], &[u8])> = fields.collect();
        let expected: [(&[u8], &[u8]); 5] =
            [(b"A", b"1"), (b"B", b""), (b"long", b"x\r\n  y"), (b"A", b"2"), (b"Last", b"z")];
        assert_eq!(pairs, expected);
        assert_eq!(fields.get("a"), Some(&b"1"[..]));
        assert_eq!(fields.get("LAST"), Some(&b"z"[..]));
        assert_eq!(fields.get("las"), None);
        assert_eq!(Fields::of_parsed(b"").next(), None);
    }
}
