//! The table once more, against the parsers alone: what they refuse is what is refused, and no prefix of a row
//! means something else than the row.

use crate::requests::table::table;
use crate::wire::bodies::{CUT, read_body};
use marketd::config::Limits;
use marketd::http::{Error, Method, Parsed, RequestBody, parse, write_request};

/// Statuses with which a request is refused before anybody asks what it wants.
const REFUSALS: [u16; 7] = [400, 413, 414, 417, 431, 501, 505];

/// Feeds growing prefixes: none is decided differently from the whole, and what is decided stays so. Returns
/// whether the whole is decided.
pub fn check_prefixes(bytes: &[u8], limits: &Limits, context: &str) -> bool {
    let whole = parse(bytes, limits);
    let mut decided = false;
    for end in 0..bytes.len() {
        match parse(&bytes[..end], limits) {
            Ok(Parsed::Partial) => assert!(!decided, "{context}: undone at {end}"),
            found => {
                assert_eq!(found, whole, "{context}: at {end}");
                decided = true;
            }
        }
    }
    whole != Ok(Parsed::Partial)
}

/// Requests that are taken whole from the front of these bytes, and the status with which the next one is
/// refused, if it is.
fn take_all(mut bytes: &[u8], limits: &Limits) -> (usize, Option<u16>) {
    let mut taken = 0;
    loop {
        let request = match parse(bytes, limits) {
            Ok(Parsed::Partial) => return (taken, None),
            Err(error) => return (taken, Some(error.status)),
            Ok(Parsed::Complete { request, used }) => {
                bytes = &bytes[used..];
                request
            }
        };
        match read_body(request.body, limits.body_bytes as u64, [bytes].into_iter()) {
            Ok((_, used)) => bytes = &bytes[used..],
            Err(CUT) => return (taken, None),
            Err(fault) => return (taken, Some(Error::from(fault).status)),
        }
        taken += 1;
        if !request.keep_alive {
            return (taken, None);
        }
    }
}

#[test]
fn the_parsers_take_and_refuse_what_the_table_says() {
    let limits = Limits::default();
    for row in table() {
        let shown = row.bytes.escape_ascii().to_string();
        check_prefixes(&row.bytes, &limits, &shown);
        let (answers, end) = row.expected.rsplit_once(", ").unwrap_or(("", row.expected));
        let statuses = answers.split(", ").filter_map(|answer| answer.get(..3)?.parse().ok());
        let statuses: Vec<u16> = statuses.filter(|status| *status != 100).collect();
        let refusal = statuses.last().filter(|last| end == "shut" && REFUSALS.contains(last));
        let taken = statuses.len() - usize::from(refusal.is_some());
        assert_eq!(take_all(&row.bytes, &limits), (taken, refusal.copied()), "{shown}");
    }
}

#[test]
fn the_server_understands_the_client() {
    let mut out = Vec::new();
    write_request(&mut out, "127.0.0.1:8080", "/api/v3/ticker/24hr?a=b", None);
    let Ok(Parsed::Complete { request, used }) = parse(&out, &Limits::default()) else {
        panic!("{}", out.escape_ascii());
    };
    assert_eq!((used, request.method, request.body), (out.len(), Method::Get, RequestBody::None));
    assert_eq!((request.path, request.query), (&b"/api/v3/ticker/24hr"[..], &b"a=b"[..]));
    assert!(request.keep_alive);
}
