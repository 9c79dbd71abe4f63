//! Bytes on the wire, for their parsers alone: however they are split on their way, they mean the same.
//! (Requests: `tests/requests`.)
//!
//! Tables of messages, each fed in growing prefixes; limits at one below, at and one above; and
//! seeded garbage, fed in the same ways. One seed is one run: `MARKETD_SEED=7 cargo test --test
//! library wire::` repeats the garbage of seed 7 alone.

pub mod bodies;
mod garbage;
mod responses;

use marketd::config::Limits;
use marketd::http::{
    Cache, Error, Framing, Head, Output, Parsed, Responder, Stamp, parse, parse_response,
};

#[test]
fn the_client_understands_the_server() {
    let raw = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let limits = Limits::default();
    let Ok(Parsed::Complete { request, .. }) = parse(raw.as_bytes(), &limits) else {
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
