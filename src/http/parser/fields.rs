//! The fields that matter for every request: host, framing, persistence, expectation, preconditions.
//!
//! Owns the rules of each field, and the rules between them.

use super::super::error::Error;
use super::super::head::{Persistence, digits, is_token, members};
use super::super::request::{ListField, Lists, RequestBody, Version};
use super::super::target::is_authority;

const BAD_HOST: Error = Error::bad_request("Malformed Host field.");
const BAD_LENGTH: Error = Error::bad_request("Malformed Content-Length field.");

/// The values of these fields so far.
#[derive(Default)]
pub(super) struct KnownFields<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: bool,
    pub(super) persistence: Persistence,
    pub(super) expects: bool,
    pub(super) lists: Lists<'a>,
}

impl<'a> KnownFields<'a> {
    /// Notes a field. The length of its name is compared first, which excludes most fields.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Error> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is(b"host") => self.host(value)?,
            6 if is(b"expect") => self.expect(value)?,
            10 if is(b"connection") => self.persistence.note(value),
            14 if is(b"content-length") => self.content_length(value)?,
            17 if is(b"transfer-encoding") => self.transfer_encoding(value)?,
            8 | 13 | 15 => {
                if let Some(at) = ListField::NAMES.into_iter().position(is) {
                    let first = &mut self.lists.first[at];
                    self.lists.repeat |= first.replace(first.unwrap_or(value)).is_some();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// At most one, in both versions (RFC 9112, 3.2).
    fn host(&mut self, value: &'a [u8]) -> Result<(), Error> {
        if self.host.is_some() || !is_authority(value) {
            return Err(BAD_HOST);
        }
        self.host = Some(value);
        Ok(())
    }

    /// The same length may be repeated (RFC 9110, 8.6).
    fn content_length(&mut self, value: &[u8]) -> Result<(), Error> {
        let length = digits(value).ok_or(BAD_LENGTH)?;
        if self.length.is_some_and(|before| before != length) {
            return Err(BAD_LENGTH);
        }
        self.length = Some(length);
        Ok(())
    }

    /// An unknown coding is a 501 (RFC 9112, 6.1). If a coding follows `chunked`, the length of the body
    /// is unknown: that is a 400 (RFC 9112, 6.3), and so is a malformed name.
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Error> {
        let mut is_known = true;
        for coding in value.split(|byte| *byte == b',') {
            let coding = coding.trim_ascii();
            let is_name = !coding.is_empty() && coding.iter().all(|byte| is_token(*byte));
            if self.chunked || !is_name {
                return Err(Error::bad_request("Transfer-Encoding must end with \"chunked\"."));
            }
            self.chunked = coding.eq_ignore_ascii_case(b"chunked");
            is_known &= self.chunked;
        }
        if is_known { Ok(()) } else { Err(Error::UNKNOWN_CODING) }
    }

    /// RFC 9110, 10.1.1.
    fn expect(&mut self, value: &[u8]) -> Result<(), Error> {
        for member in members(value) {
            if !member.eq_ignore_ascii_case(b"100-continue") {
                return Err(Error::EXPECTATION_FAILED);
            }
            self.expects = true;
        }
        Ok(())
    }

    /// Checks the rules between the fields, after the last of them.
    pub(super) fn check(&self, version: Version) -> Result<(), Error> {
        if self.host.is_none() && version == Version::Http11 {
            return Err(Error::bad_request("The Host field is missing."));
        }
        // RFC 9112, 6.1: this and the next are used for request smuggling.
        if self.chunked && self.length.is_some() {
            return Err(Error::bad_request(
                "Content-Length and Transfer-Encoding exclude each other.",
            ));
        }
        if self.chunked && version == Version::Http10 {
            return Err(Error::bad_request("HTTP/1.0 has no Transfer-Encoding."));
        }
        Ok(())
    }

    pub(super) fn body(&self) -> RequestBody {
        match self.length {
            _ if self.chunked => RequestBody::Chunked,
            None | Some(0) => RequestBody::None,
            Some(length) => RequestBody::Length(length),
        }
    }
}
