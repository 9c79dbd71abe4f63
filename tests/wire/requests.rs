//! Heads of requests.

use super::{check_prefixes, defaults};
use marketd::http::{Error, HeadLimits, Parsed, Version, parse};

/// Head of a request, and the status of the refusal, or what it is taken for.
pub const REQUESTS: &[(&str, &str)] = &[
    // The four forms of a target: RFC 9112, 3.2.
    ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "Get /  keep None"),
    ("HEAD /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n", "Head /a b=c keep None"),
    (
        "GET /api/v1/quotes/BTC%2FUSDT HTTP/1.1\r\nHost: h\r\n\r\n",
        "Get /api/v1/quotes/BTC%2FUSDT  keep None",
    ),
    ("GET http://h:80/a?b HTTP/1.1\r\nHost: h:80\r\n\r\n", "Get /a b keep None"),
    ("GET HTTP://h HTTP/1.1\r\nHost: x\r\n\r\n", "Get /  keep None"),
    ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "Options *  keep None"),
    ("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", "Other h:443  close None"),
    ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET a HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET h:443 HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /a?b#c HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /%2e%2E/b HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /\u{e4} HTTP/1.1\r\nHost: h\r\n\r\n", "Get /\u{e4}  keep None"),
    // The request line: RFC 9112, 3.
    ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /  HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", "400"),
    ("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /\tHTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET / a HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    (" GET / HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET\r\n\r\n", "400"),
    ("GET /\r\n\r\n", "400"),
    ("GET /\r\nHost: h\r\n\r\n", "400"),
    ("GET HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    // Methods: RFC 9110, 9.1. Their case counts.
    ("POST / HTTP/1.1\r\nHost: h\r\n\r\n", "Other /  keep None"),
    ("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", "Other /  keep None"),
    ("get / HTTP/1.1\r\nHost: h\r\n\r\n", "501"),
    ("BREW / HTTP/1.1\r\nHost: h\r\n\r\n", "501"),
    ("GETT / HTTP/1.1\r\nHost: h\r\n\r\n", "501"),
    // Versions: RFC 9112, 2.3.
    ("GET / HTTP/1.0\r\n\r\n", "Get /  close None 1.0"),
    ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Get /  keep None 1.0"),
    ("GET / HTTP/1.2\r\nHost: h\r\n\r\n", "505"),
    ("GET / HTTP/0.9\r\nHost: h\r\n\r\n", "505"),
    ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", "505"),
    ("GET / HTTP/2\r\nHost: h\r\n\r\n", "505"),
    ("GET / HTTP/1.10\r\nHost: h\r\n\r\n", "505"),
    ("GET / HTTP/11.1\r\nHost: h\r\n\r\n", "505"),
    ("GET / HTTP/1.11111111111111111\r\nHost: h\r\n\r\n", "505"),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
    ("GET / HTTP/\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.x\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1x\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/ 1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET / http/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTPS/1.1\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTP/1.1\r\nHost: h\r\n\r\n", "400"),
    // Line ends: RFC 9112, 2.2.
    ("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "Get /  keep None"),
    ("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "Get /  keep None"),
    ("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("\r\n\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
    ("\rGET / HTTP/9.9\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\nHost: h\n\n", "400"),
    ("GET / HTTP/1.1\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h \n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA:\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\n\n", "400"),
    ("GET / HTTP/1.0\n\n", "400"),
    ("GET / HTTP/1.1\rHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\rA: b\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\n\rX\r\n", "400"),
    // Field lines: RFC 9112, 5 and RFC 9110, 5.5 and 5.6.2.
    ("GET / HTTP/1.1\r\nHost: h\r\nA:\r\nB: \t \r\nC:d\r\n\r\n", "Get /  keep None"),
    ("GET / HTTP/1.1\r\nHost:\t h \t\r\n\r\n", "Get /  keep None"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: \u{e4} b\tc\r\n\r\n", "Get /  keep None"),
    ("GET / HTTP/1.1\r\nHost: h\r\n!#$%&'*+-.^_`|~9: x\r\n\r\n", "Get /  keep None"),
    ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost\t: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\n Host: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\n : h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc: d\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA B: c\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA(: c\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\n\u{e4}: c\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\x01c\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\x7fc\r\n\r\n", "400"),
    // Host: RFC 9112, 3.2.
    ("GET / HTTP/1.1\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "Get /  keep None"),
    ("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "Get /  keep None"),
    ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h?\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\\\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h:99999\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h:8x\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "400"),
    ("GET / HTTP/1.0\r\nHost: h/\r\n\r\n", "400"),
    ("GET http://h/ HTTP/1.1\r\n\r\n", "400"),
    // Framing: RFC 9112, 6.
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", "Other /  keep Length(5)"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "Get /  keep None"),
    (
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n",
        "Get /  keep Length(5)",
    ),
    (
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n",
        "Get /  keep Length(18446744073709551615)",
    ),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5 \t\r\n\r\n", "Get /  keep Length(5)"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "Get /  keep Chunked"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n", "Get /  keep Chunked"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", "501"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", "501"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n", "400"),
    (
        "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "400",
    ),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", "400"),
    ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    // Expectations: RFC 9110, 10.1.1.
    (
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "Other /  keep Length(5) expects",
    ),
    ("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n", "Get /  keep None"),
    ("GET / HTTP/1.1\r\nHost: h\r\nExpect: 200-ok\r\n\r\n", "417"),
    ("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue, x\r\n\r\n", "417"),
    ("GET / HTTP/1.0\r\nExpect: x\r\n\r\n", "417"),
];

fn summary(found: &Result<Parsed, Error>) -> String {
    let request = match found {
        Ok(Parsed::Partial) => return "partial".into(),
        Ok(Parsed::Complete { request, .. }) => request,
        Err(error) => return error.status.to_string(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let keep = if request.keep_alive { "keep" } else { "close" };
    let mut summary = format!(
        "{:?} {} {} {keep} {:?}",
        request.method,
        text(request.path),
        text(request.query),
        request.body
    );
    if request.version == Version::Http10 {
        summary += " 1.0";
    }
    if request.expect_continue {
        summary += " expects";
    }
    summary
}

/// A request in a form that does not borrow, so that prefixes can be compared.
pub fn own(found: Result<Parsed, Error>) -> Option<Result<(String, usize), Error>> {
    match found {
        Ok(Parsed::Partial) => None,
        Ok(Parsed::Complete { request, used }) => Some(Ok((format!("{request:?}"), used))),
        Err(error) => Some(Err(error)),
    }
}

#[test]
fn every_request_of_the_table_is_taken_for_what_it_is_wherever_it_is_split() {
    for &(raw, expected) in REQUESTS {
        let limits = defaults();
        let whole = parse(raw.as_bytes(), &limits);
        assert_eq!(summary(&whole), expected, "{raw:?}");
        if let Ok(Parsed::Complete { used, .. }) = whole {
            assert_eq!(used, raw.len(), "{raw:?}");
        }
        let followed = [raw.as_bytes(), b"\0GET / HTTP/1.1\r\n\r\n"].concat();
        let found = check_prefixes(&followed, |bytes| own(parse(bytes, &limits)), &raw);
        assert_eq!(found, own(whole), "{raw:?} followed by other bytes");
    }
}

#[test]
fn a_request_is_not_complete_before_its_last_byte() {
    for &(raw, _) in REQUESTS {
        if let Ok(Parsed::Complete { used, .. }) = parse(raw.as_bytes(), &defaults()) {
            for end in 0..used {
                assert_eq!(parse(&raw.as_bytes()[..end], &defaults()), Ok(Parsed::Partial));
            }
        }
    }
}

/// Checks one raw request, whole and in prefixes, against limits.
fn check_limits(raw: &str, limits: HeadLimits, expected: &str) {
    let whole = parse(raw.as_bytes(), &limits);
    assert_eq!(summary(&whole), expected, "{limits:?} {raw:?}");
    check_prefixes(raw.as_bytes(), |bytes| own(parse(bytes, &limits)), &(raw, limits));
}

#[test]
fn the_line_has_a_limit_that_counts_it_alone() {
    let limits = HeadLimits { line_bytes: 40, ..defaults() };
    let line = |bytes: usize, end: &str| {
        let target = "a".repeat(bytes - "GET / HTTP/1.1".len());
        format!("GET /{target} HTTP/1.1{end}")
    };
    let rest = "\r\nHost: h\r\n\r\n";
    let taken = |bytes: usize| format!("Get /{}  keep None", "a".repeat(bytes - 14));
    check_limits(&line(39, rest), limits, &taken(39));
    check_limits(&line(40, rest), limits, &taken(40));
    check_limits(&line(41, rest), limits, "414");
    check_limits(&line(400, rest), limits, "414");
    check_limits(&format!("\r\n{}", line(40, rest)), limits, &taken(40));
    check_limits(&format!("\r\n{}", line(41, rest)), limits, "414");
    // A fault within the limit comes first, one behind it never counts.
    check_limits(&"a".repeat(41), limits, "414");
    check_limits(&"a".repeat(40), limits, "partial");
    check_limits(&format!("G\0T /{rest}"), limits, "400");
    check_limits(&format!("G\0T /{}", "a".repeat(80)), limits, "400");
    check_limits(&format!("GET /{}\0", "a".repeat(80)), limits, "414");
    check_limits(&line(60, "\r\nBad field\r\n\r\n"), limits, "414");
    check_limits(&line(38, "0\r\n\r\n"), limits, "505");
    check_limits(&line(39, "0\r\n\r\n"), limits, "505");
    check_limits(&line(40, "0\r\n\r\n"), limits, "414");
    check_limits(&line(40, "0x\r\n\r\n"), limits, "414");
    check_limits(&format!("GET / HTTP/1.{}", "1".repeat(80)), limits, "414");
}

#[test]
fn the_head_has_a_limit_that_counts_all_of_it() {
    let head = |bytes: usize| {
        let fixed = "GET / HTTP/1.1\r\nHost: h\r\nA: \r\n\r\n";
        let value = "v".repeat(bytes - fixed.len());
        format!("GET / HTTP/1.1\r\nHost: h\r\nA: {value}\r\n\r\n")
    };
    for head_bytes in [60, 61, 200] {
        let limits = HeadLimits { head_bytes, ..defaults() };
        check_limits(&head(head_bytes - 1), limits, "Get /  keep None");
        check_limits(&head(head_bytes), limits, "Get /  keep None");
        check_limits(&head(head_bytes + 1), limits, "431");
        check_limits(&head(2 * head_bytes), limits, "431");
        check_limits(&format!("\r\n{}", head(head_bytes - 2)), limits, "Get /  keep None");
        check_limits(&format!("\r\n{}", head(head_bytes - 1)), limits, "431");
        check_limits(&"\r\n".repeat(head_bytes), limits, "431");
        check_limits(&format!("GET /{}", "a".repeat(head_bytes)), limits, "431");
        let bad = format!("{}\0", "GET / HTTP/1.1\r\nHost: h\r\nA: ");
        check_limits(&format!("{bad}{}", "v".repeat(head_bytes)), limits, "400");
        check_limits(&format!("{}\0", head(head_bytes + 20)), limits, "431");
    }
}

#[test]
fn the_fields_have_a_limit_that_counts_them() {
    let head = |fields: usize| {
        let others: String = (1..fields).map(|n| format!("A{n}: x\r\n")).collect();
        format!("GET / HTTP/1.1\r\nHost: h\r\n{others}\r\n")
    };
    let check = |fields: usize, limit: usize, expected: &str| {
        let limits = HeadLimits { fields: limit, ..defaults() };
        check_limits(&head(fields), limits, expected);
    };
    for limit in [1, 2, 64, 256] {
        check(limit.max(2) - 1, limit, "Get /  keep None");
        check(limit, limit, "Get /  keep None");
        check(limit + 1, limit, "431");
        check(limit + 2, limit, "431");
    }
    // The ceiling of all limits.
    check(257, 1000, "431");
}

#[test]
fn a_batch_is_read_one_head_at_a_time() {
    let heads = [
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
        "\r\nGET /b?c HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n",
        "HEAD /d HTTP/1.1\r\nHost: h\r\n\r\n",
    ];
    let batch = heads.concat();
    let mut rest = batch.as_bytes();
    for head in heads {
        match parse(rest, &defaults()) {
            Ok(Parsed::Complete { used, .. }) => assert_eq!(used, head.len()),
            other => panic!("{other:?}"),
        }
        rest = &rest[head.len()..];
    }
    assert_eq!(parse(rest, &defaults()), Ok(Parsed::Partial));
}
