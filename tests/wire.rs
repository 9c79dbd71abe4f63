//! Bytes on the wire: however they are split on their way, they mean the same.
//!
//! Tables of messages, each fed in growing prefixes; limits at one below, at and one above; and
//! seeded garbage, fed in the same ways. One seed is one run: `MARKETD_SEED=7 cargo test --test
//! wire` repeats the garbage of seed 7 alone.

mod bodies;
mod garbage;
mod requests;
mod responses;

use marketd::config::Limits;
use marketd::http::{
    Cache, Error, Framing, Head, HeadLimits, Method, Output, Parsed, RequestBody, Responder, Stamp,
    parse, parse_response, write_request,
};
use std::fmt::Debug;

/// The limits of requests, by default.
fn defaults() -> HeadLimits {
    HeadLimits::from(&Limits::default())
}

/// Feeds growing prefixes: none is decided differently from the whole, and what is decided stays so.
fn check_prefixes<T: PartialEq + Debug>(
    raw: &[u8],
    read: impl Fn(&[u8]) -> Option<T>,
    context: &dyn Debug,
) -> Option<T> {
    let whole = read(raw);
    let mut decided = false;
    for end in 0..raw.len() {
        match read(&raw[..end]) {
            None => assert!(!decided, "{context:?} undone at {end}"),
            found => {
                assert_eq!(found, whole, "{context:?} at {end}");
                decided = true;
            }
        }
    }
    whole
}

#[test]
fn the_server_understands_the_client() {
    let mut out = Vec::new();
    write_request(&mut out, "127.0.0.1:8080", "/api/v3/ticker/24hr?a=b", None);
    let Ok(Parsed::Complete { request, used }) = parse(&out, &defaults()) else {
        panic!("{}", out.escape_ascii());
    };
    assert_eq!(used, out.len());
    assert_eq!(request.method, Method::Get);
    assert!(request.keep_alive);
    assert_eq!(request.body, RequestBody::None);
}

#[test]
fn the_client_understands_the_server() {
    let raw = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let Ok(Parsed::Complete { request, .. }) = parse(raw.as_bytes(), &defaults()) else {
        panic!("a request");
    };
    let stamp = Stamp::new(0);
    let check = |status, length, write: &dyn Fn(&mut Responder)| {
        let mut out = Output::default();
        write(&mut Responder::new(&mut out, &stamp, &request, true));
        let out = out.pending().to_vec();
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
