//! Bytes on the wire, for their parsers alone: however they are split on their way, they mean the same.
//! (Requests: `tests/requests`.)
//!
//! Tables of messages, each fed in growing prefixes; limits at one below, at and one above; and
//! seeded garbage, fed in the same ways. One seed is one run: `MARKETD_SEED=7 cargo test --test
//! library wire::` repeats the garbage of seed 7 alone.

mod bodies;
mod garbage;
mod responses;

use marketd::config::Limits;
use marketd::http::{
    Cache, Error, Framing, Head, Method, Output, RequestBody, Responder, Stamp, parse,
    parse_response, write_request,
};
use std::fmt::Debug;

/// Feeds growing prefixes to a parser: none is decided differently from the whole, and what is decided stays
/// so. Returns what the whole comes to; `None` if it is not decided.
pub fn check_prefixes<'a, T: PartialEq + Debug>(
    bytes: &'a [u8],
    context: &str,
    parse: impl Fn(&'a [u8]) -> Option<T>,
) -> Option<T> {
    let whole = parse(bytes);
    let mut decided = false;
    for end in 0..bytes.len() {
        match parse(&bytes[..end]) {
            None => assert!(!decided, "{context}: undone at {end}"),
            found => {
                assert_eq!(found, whole, "{context}: at {end}");
                decided = true;
            }
        }
    }
    whole
}

#[test]
fn the_client_and_the_server_understand_each_other() {
    let mut raw = Vec::new();
    write_request(&mut raw, "127.0.0.1:8080", "/api/v3/ticker/24hr?a=b", None);
    let Ok(Some((request, used))) = parse(&raw, &Limits::default()) else {
        panic!("{}", raw.escape_ascii());
    };
    assert_eq!((used, request.method, request.body), (raw.len(), Method::Get, RequestBody::None));
    assert_eq!((request.path, request.query), (&b"/api/v3/ticker/24hr"[..], &b"a=b"[..]));
    assert!(request.keep_alive);
    let stamp = Stamp::new(0);
    let check = |status, length, write: &dyn Fn(&mut Responder)| {
        let mut out = Output::default();
        write(&mut Responder::new(&mut out, &stamp, &request, true));
        let out = out.to_vec();
        let found = parse_response(&out, 16 * 1024).expect("an answer").expect("a whole head");
        assert_eq!(found.head.status, status);
        assert_eq!(out.len() - found.used, length);
        let framing = match length {
            0 => Framing::None,
            _ => Framing::Length(length as u64),
        };
        assert_eq!(found.head.framing, framing);
        assert!(found.head.keep_alive);
    };
    check(200, 2, &|to| to.send(&Head::json(None, Cache::MaxAge(1)), b"[]"));
    check(204, 0, &|to| to.send(&Head::options(), b""));
    let error = Error::new(404, "not_found", "\r\n\r\nHTTP/1.1 200 OK\r\n");
    check(404, 110, &|to| to.error(&error));
}
