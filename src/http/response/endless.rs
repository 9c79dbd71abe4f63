//! The framing of a body whose end is not known when it begins.

use super::{Framing, Version};

/// Such a body for a client that speaks this version. To one of HTTP/1.1 it is sent in chunks, of which an
/// empty one is the last (RFC 9112, 7.1). To one of HTTP/1.0 it ends with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndlessBody(pub Version);

/// The size of a chunk that is not known yet: eight digits, of which the first may be zeros.
const SIZE: &[u8] = b"00000000\r\n";

impl EndlessBody {
    /// What the head says.
    pub(super) fn framing(self) -> Framing {
        match self.0 {
            Version::Http10 => Framing::UntilClose,
            Version::Http11 => Framing::Chunked,
        }
    }

    /// Appends what `write` appends, as a part of the body. Nothing if that is nothing.
    pub fn write<R>(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if self.0 == Version::Http10 {
            return write(out);
        }
        let begin = out.len();
        out.extend_from_slice(SIZE);
        let data = out.len();
        let result = write(out);
        match out.len() - data {
            0 => out.truncate(begin),
            length => {
                let digits = format!("{length:08x}");
                out[begin..begin + digits.len()].copy_from_slice(digits.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        result
    }

    /// Appends the end of the body.
    pub fn end(self, out: &mut Vec<u8>) {
        if self.0 == Version::Http11 {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chunks_and_empty_ones_are_left_out() {
        let mut out = b"head".to_vec();
        let body = EndlessBody(Version::Http11);
        assert_eq!(
            body.write(&mut out, |out| {
                out.extend_from_slice(b"data: 1\n\n");
                7
            }),
            7
        );
        body.write(&mut out, |_| ());
        body.write(&mut out, |out| out.resize(out.len() + 300, b'x'));
        body.end(&mut out);
        let expected =
            format!("head00000009\r\ndata: 1\n\n\r\n0000012c\r\n{}\r\n0\r\n\r\n", "x".repeat(300));
        assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
    }

    #[test]
    fn a_client_of_http_1_0_gets_the_bytes_alone() {
        let mut out = Vec::new();
        let body = EndlessBody(Version::Http10);
        body.write(&mut out, |out| out.extend_from_slice(b":\n\n"));
        body.end(&mut out);
        assert_eq!(out, b":\n\n");
    }
}
