//! What the fields of a request say, together.
//!
//! Owns the rules of those fields that matter to every request: host, framing, persistence,
//! expectation. It never sees the request line but for its version.

use super::super::error::RequestError;
use super::super::head::{digits, is_token, members};
use super::super::target::is_authority;
use super::{RequestBody, Version};

const BAD_HOST: RequestError = RequestError::BadRequest("Malformed Host field.");
const BAD_LENGTH: RequestError = RequestError::BadRequest("Malformed Content-Length field.");

/// What the fields have said so far.
#[derive(Default)]
pub(super) struct Seen<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    pub(super) expects: bool,
    pub(super) has_if_match: bool,
    pub(super) if_none_match: Option<&'a [u8]>,
    pub(super) none_match_repeats: bool,
    pub(super) accept_encoding: Option<&'a [u8]>,
    pub(super) accept_encoding_repeats: bool,
    pub(super) origin: Option<&'a [u8]>,
}

impl<'a> Seen<'a> {
    /// Notes one field. Its length comes first: most fields are done with by it.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), RequestError> {
        match name.len() {
            4 if is(name, b"host") => self.host(value),
            6 | 8 | 10 | 13 | 14 | 15 | 17 => self.seldom(name, value),
            _ => Ok(()),
        }
    }

    /// Notes a field whose name may be one of these. Then comes its first letter: browsers send
    /// many that are as long.
    #[inline(never)]
    fn seldom(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), RequestError> {
        match (name.len(), name[0] | CASE) {
            (6, b'e') if is(name, b"expect") => return self.expect(value),
            (6, b'o') if is(name, b"origin") => keep_first(&mut self.origin, value),
            (8, b'i') if is(name, b"if-match") => self.has_if_match = true,
            (10, b'c') if is(name, b"connection") => self.connection(value),
            (13, b'i') if is(name, b"if-none-match") => {
                self.none_match_repeats = self.if_none_match.is_some();
                keep_first(&mut self.if_none_match, value);
            }
            (14, b'c') if is(name, b"content-length") => return self.content_length(value),
            (15, b'a') if is(name, b"accept-encoding") => {
                self.accept_encoding_repeats = self.accept_encoding.is_some();
                keep_first(&mut self.accept_encoding, value);
            }
            (17, b't') if is(name, b"transfer-encoding") => return self.transfer_encoding(value),
            _ => {}
        }
        Ok(())
    }

    /// RFC 9112, 3.2: never more than one, whatever the version.
    fn host(&mut self, value: &'a [u8]) -> Result<(), RequestError> {
        if self.host.is_some() || !is_authority(value) {
            return Err(BAD_HOST);
        }
        self.host = Some(value);
        Ok(())
    }

    /// RFC 9110, 8.6. The same length said twice is one length.
    fn content_length(&mut self, value: &[u8]) -> Result<(), RequestError> {
        let length = digits(value).ok_or(BAD_LENGTH)?;
        if self.length.is_some_and(|before| before != length) {
            return Err(BAD_LENGTH);
        }
        self.length = Some(length);
        Ok(())
    }

    /// RFC 9112, 6.1: a coding that is not understood is 501. Where something follows `chunked`, nobody
    /// knows how long the body is: that is 400 (RFC 9112, 6.3), as is what names no coding.
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), RequestError> {
        let mut is_known = true;
        for coding in value.split(|byte| *byte == b',') {
            let coding = coding.trim_ascii();
            let is_name = !coding.is_empty() && coding.iter().all(|byte| is_token(*byte));
            if self.chunked || !is_name {
                return Err(RequestError::BadRequest(
                    "Transfer-Encoding must end with \"chunked\".",
                ));
            }
            self.chunked = coding.eq_ignore_ascii_case(b"chunked");
            is_known &= self.chunked;
        }
        match is_known {
            true => Ok(()),
            false => Err(RequestError::UnknownCoding),
        }
    }

    /// RFC 9110, 10.1.1.
    fn expect(&mut self, value: &[u8]) -> Result<(), RequestError> {
        for member in members(value) {
            if !member.eq_ignore_ascii_case(b"100-continue") {
                return Err(RequestError::ExpectationFailed);
            }
            self.expects = true;
        }
        Ok(())
    }

    /// RFC 9110, 7.6.1.
    fn connection(&mut self, value: &[u8]) {
        for option in members(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// What can only be said of all fields together.
    pub(super) fn check(&self, version: Version) -> Result<(), RequestError> {
        if self.host.is_none() && version == Version::Http11 {
            return Err(RequestError::BadRequest("The Host field is missing."));
        }
        // RFC 9112, 6.1: either is how requests are smuggled.
        if self.chunked && self.length.is_some() {
            return Err(RequestError::BadRequest(
                "Content-Length and Transfer-Encoding exclude each other.",
            ));
        }
        if self.chunked && version == Version::Http10 {
            return Err(RequestError::BadRequest(
                "HTTP/1.0 has no Transfer-Encoding.",
            ));
        }
        Ok(())
    }

    pub(super) fn keeps_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    pub(super) fn body(&self) -> RequestBody {
        match self.length {
            _ if self.chunked => RequestBody::Chunked,
            None | Some(0) => RequestBody::None,
            Some(length) => RequestBody::Length(length),
        }
    }
}

/// The bit that tells small letters from capitals. It is set in a hyphen too, and no token holds the
/// byte that differs from a hyphen by it.
const CASE: u8 = 0x20;

/// Whether a field's name is this one, which is of small letters and hyphens. Eight bytes at a
/// time: a browser's request has a dozen names to compare.
#[inline(always)]
fn is<const N: usize>(name: &[u8], known: &[u8; N]) -> bool {
    const CASES: u64 = u64::from_ne_bytes([CASE; 8]);
    let Ok(name) = <&[u8; N]>::try_from(name) else {
        return false;
    };
    let (words, rest) = name.as_chunks();
    let (known_words, known_rest) = known.as_chunks();
    let words_are = words
        .iter()
        .zip(known_words)
        .all(|(&word, &known)| u64::from_ne_bytes(word) | CASES == u64::from_ne_bytes(known));
    let mut pairs = rest.iter().zip(known_rest);
    words_are && pairs.all(|(byte, known)| byte | CASE == *known)
}

fn keep_first<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8]) {
    place.get_or_insert(value);
}
