//! The offsets of a parsed request in its head.
//!
//! With them, an equal head that arrives later need not be parsed again.

use super::head::Fields;
use super::request::{Method, Request, RequestBody, Version};

/// A parsed request without its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RequestOffsets {
    method: Method,
    version: Version,
    keep_alive: bool,
    has_if_match: bool,
    none_match_repeats: bool,
    accept_encoding_repeats: bool,
    expect_continue: bool,
    body: RequestBody,
    path: Range16,
    query: Range16,
    raw_target: Range16,
    lines: Range16,
    if_none_match: Option<Range16>,
    accept_encoding: Option<Range16>,
}

/// Start and end of a part of the head.
type Range16 = (u16, u16);

impl RequestOffsets {
    /// The offsets in `head`, from which `request` was parsed. `None` if a part of the request is not in
    /// the head, or if the head is longer than an offset can be.
    pub fn new(request: &Request<'_>, head: &[u8]) -> Option<RequestOffsets> {
        u16::try_from(head.len()).ok()?;
        let place = |part: &[u8]| {
            let begin = part.as_ptr().addr().wrapping_sub(head.as_ptr().addr());
            let end = begin.wrapping_add(part.len());
            // An empty part may point anywhere.
            if part.is_empty() || end > head.len() {
                return (0, 0);
            }
            (begin as u16, end as u16)
        };
        let kept = RequestOffsets {
            method: request.method,
            version: request.version,
            keep_alive: request.keep_alive,
            has_if_match: request.has_if_match,
            none_match_repeats: request.none_match_repeats,
            accept_encoding_repeats: request.accept_encoding_repeats,
            expect_continue: request.expect_continue,
            body: request.body,
            path: place(request.path),
            query: place(request.query),
            raw_target: place(request.raw_target),
            lines: place(request.fields.lines()),
            if_none_match: request.if_none_match.map(place),
            accept_encoding: request.accept_encoding.map(place),
        };
        // The path of a bare authority is a constant, not a part of the head.
        (kept.request(head) == *request).then_some(kept)
    }

    /// The request that [`super::parse`] would find in `head`, which has the same bytes.
    pub fn request<'a>(&self, head: &'a [u8]) -> Request<'a> {
        let part = |(begin, end): Range16| &head[usize::from(begin)..usize::from(end)];
        Request {
            method: self.method,
            path: part(self.path),
            query: part(self.query),
            raw_target: part(self.raw_target),
            version: self.version,
            keep_alive: self.keep_alive,
            has_if_match: self.has_if_match,
            if_none_match: self.if_none_match.map(part),
            none_match_repeats: self.none_match_repeats,
            accept_encoding_repeats: self.accept_encoding_repeats,
            accept_encoding: self.accept_encoding.map(part),
            expect_continue: self.expect_continue,
            body: self.body,
            fields: Fields::of_parsed(part(self.lines)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::HeadLimits;
    use super::super::parser::{Parsed, parse};
    use super::*;
    use crate::config::Limits;

    #[test]
    fn a_kept_request_is_read_from_other_bytes_as_it_was_parsed() {
        let limits = HeadLimits::from(&Limits::default());
        let check = |raw: &str, is_kept: bool| {
            let head = raw.as_bytes();
            let Ok(Parsed::Complete { request, used }) = parse(head, &limits) else {
                panic!("{raw:?} is a request");
            };
            let kept = RequestOffsets::new(&request, &head[..used]);
            assert_eq!(kept.is_some(), is_kept, "{raw:?}");
            if let Some(kept) = kept {
                let other = [&head[..used], b"GET /and-more"].concat();
                assert_eq!(kept.request(&other), request, "{raw:?}");
            }
        };
        check("GET / HTTP/1.1\r\nHost: h\r\n\r\n", true);
        check("\r\n\r\nHEAD /a?b=%2F HTTP/1.0\r\n\r\n", true);
        check(
            "GET /a?b HTTP/1.1\r\nhost:\r\nif-match: *\r\nif-none-match: \"a\" \r\nIf-None-Match:\r\n\
             Accept-Encoding: gzip\r\norigin: null\r\nConnection: close\r\n\r\nbehind",
            true,
        );
        check(
            "POST http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\
             Expect: 100-continue\r\n\r\n",
            true,
        );
        check("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", false);
    }
}
