//! Heads of exchanges' answers.

use super::check_prefixes;
use marketd::http::parse_response;

/// Head of an answer, and whether it is one.
pub const RESPONSES: &[(&str, bool)] = &[
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true),
    ("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", true),
    ("HTTP/1.1 200 \r\n\r\n", true),
    ("\r\nHTTP/1.1 200 OK\r\n\r\n", true),
    ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", true),
    ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", true),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=b; c\r\nSet-Cookie: d\r\n\r\n",
        true,
    ),
    ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td\r\nContent-Length: 5\r\n\r\n", true),
    ("HTTP/1.1 200 OK\r\nA:\r\n\r\n", true),
    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true),
    ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", true),
    ("HTTP/1.1 418 I'm a teapot\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", true),
    ("HTTP/1.1 503 \u{e4}\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", true),
    ("HTTP/1.1 101 Switching Protocols\r\n\r\n", false),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", false),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false),
    ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", false),
    ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", false),
    ("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", false),
    ("HTTP/1.1 2000 OK\r\n\r\n", false),
    ("HTTP/1.1  200 OK\r\n\r\n", false),
    ("HTTP/1.1 200 O\0K\r\n\r\n", false),
    ("HTTP/1.2 200 OK\r\n\r\n", false),
    ("HTTP/2 200\r\n\r\n", false),
    ("<html>no HTTP at all</html>", false),
];

pub type OwnedResponse = Result<(String, usize), &'static str>;

fn own_response(bytes: &[u8], most: usize) -> Option<OwnedResponse> {
    match parse_response(bytes, most) {
        Ok(None) => None,
        Ok(Some(response)) => {
            Some(Ok((format!("{:?} {:?}", response.head, response.fields), response.used)))
        }
        Err(error) => Some(Err(error)),
    }
}

/// What these bytes come to, with at most so many of a head: the same in growing prefixes.
pub fn read_in_prefixes(raw: &[u8], most: usize, context: &str) -> Option<OwnedResponse> {
    check_prefixes(raw, context, |bytes| own_response(bytes, most))
}

#[test]
fn every_answer_of_the_table_is_taken_for_what_it_is_wherever_it_is_split() {
    let most = 16 * 1024;
    for &(raw, good) in RESPONSES {
        let whole = own_response(raw.as_bytes(), most).expect("decided");
        assert_eq!(whole.is_ok(), good, "{raw:?}: {whole:?}");
        if let Ok((_, used)) = &whole {
            assert_eq!(*used, raw.len(), "{raw:?}");
        }
        let followed = [raw.as_bytes(), b"{\"body\":1}"].concat();
        let found = read_in_prefixes(&followed, most, raw);
        assert_eq!(found, Some(whole), "{raw:?} followed by its body");
    }
}

#[test]
fn an_answers_head_has_limits_too() {
    let check = |raw: &str, most, expected: Result<usize, &str>| {
        let found = read_in_prefixes(raw.as_bytes(), most, raw);
        let found = found.expect("decided").map(|(_, used)| used);
        assert_eq!(found, expected, "{most} {raw:?}");
    };
    let too_large = Err("the head is too large");
    let raw = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n\r\n";
    let bytes = raw.len();
    check(raw, bytes + 1, Ok(bytes));
    check(raw, bytes, Ok(bytes));
    check(raw, bytes - 1, too_large);
    check(&"\r\n".repeat(100), 100, too_large);
    let with_fields = |count| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
    let raw = with_fields(128);
    check(&raw, 2000, Ok(raw.len()));
    check(&with_fields(129), 2000, Err("the head has more than 128 fields"));
}
