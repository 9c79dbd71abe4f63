//! Rows: the request line, the empty lines before it, versions and methods.

use crate::requests::table::{Chapter, PROBE};

const REST: &str = "\r\nHost: h\r\n\r\nGET /probe HTTP/1.1\r\nHost: h\r\n\r\n";

pub const CHAPTERS: &[Chapter] = &[
    Chapter { rows: LINES, before: "", after: REST },
    Chapter {
        rows: METHODS,
        before: "",
        after: " /health/live HTTP/1.1\r\nHost: h\r\n\r\nGET /probe HTTP/1.1\r\nHost: h\r\n\r\n",
    },
    Chapter { rows: VERSIONS, before: "GET /health/live ", after: REST },
    Chapter { rows: ENDS_OF_LINES, before: "", after: PROBE },
];

/// RFC 9112, 3: a method, one blank, a target, one blank, a version.
const LINES: &[&str] = &[
    "9112 3 | GET /health/live HTTP/1.1 | 200, 404 not_found, open",
    "9112 3 | GET  /health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health/live  HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health/live HTTP/1.1  | 400 bad_request, shut",
    "9112 3 |  GET /health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | \tGET /health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET\t/health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health/live\tHTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET\u{b}/health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET\u{c}/health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET\r/health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health/live\u{a0}HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health/live HTTP/1.1 x | 400 bad_request, shut",
    "9112 3 | GET | 400 bad_request, shut",
    "9112 3 | GET  | 400 bad_request, shut",
    "9112 3 | GET HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET  HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | /health/live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | HTTP/1.1 200 OK | 400 bad_request, shut",
    "9112 2.3: HTTP/0.9 has no version | GET /health/live | 400 bad_request, shut",
    "9112 3 | GET /health/\0live HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health/live\u{7f} HTTP/1.1 | 400 bad_request, shut",
    "9112 3 | GET /health/\u{1}live HTTP/1.1 | 400 bad_request, shut",
    "8446 5.1: a TLS record | \u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3} | 400 bad_request, shut",
    "1928 3: SOCKS | \u{5}\u{1}\0 | 400 bad_request, shut",
];

/// RFC 9110, 9.1: methods are tokens, and their case counts.
const METHODS: &[&str] = &[
    "9110 9.3.2 | HEAD | 200 head, 404 not_found, open",
    "9110 9.3.7 | OPTIONS | 204, 404 not_found, open",
    "9110 15.5.6 | POST | 405 method_not_allowed, 404 not_found, open",
    "9110 15.5.6 | PUT | 405 method_not_allowed, 404 not_found, open",
    "9110 15.5.6 | DELETE | 405 method_not_allowed, 404 not_found, open",
    "5789 2 | PATCH | 405 method_not_allowed, 404 not_found, open",
    "9110 9.3.8 | TRACE | 405 method_not_allowed, 404 not_found, open",
    "9110 15.5.6 | QUERY | 405 method_not_allowed, 404 not_found, open",
    "9110 9.1 | get | 501 method_not_implemented, shut",
    "9110 9.1 | Get | 501 method_not_implemented, shut",
    "9110 15.6.2 | BREW | 501 method_not_implemented, shut",
    "9110 15.6.2 | PROPFIND | 501 method_not_implemented, shut",
    "9110 15.6.2 | GETT | 501 method_not_implemented, shut",
    "9110 15.6.2 | GE | 501 method_not_implemented, shut",
    "9110 5.6.2 | !#$%&'*+-.^_`|~09az | 501 method_not_implemented, shut",
    "9110 5.6.2 | G@T | 400 bad_request, shut",
    "9110 5.6.2 | GET, | 400 bad_request, shut",
    "9110 5.6.2 | GET: | 400 bad_request, shut",
    "9110 5.6.2 | \"GET\" | 400 bad_request, shut",
    "9110 5.6.2 | G\u{c9}T | 400 bad_request, shut",
    "9110 5.6.2 | G\0T | 400 bad_request, shut",
    "9112 3 |  | 400 bad_request, shut",
];

/// RFC 9112, 2.3 and RFC 9110, 15.6.6.
const VERSIONS: &[&str] = &[
    "9112 9.3 | HTTP/1.0 | 200, shut",
    "9110 15.6.6 | HTTP/1.2 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/1.9 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/0.9 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/2.0 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/3.0 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/9.9 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/2 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/1.10 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/1.01 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/01.1 | 505 http_version_not_supported, shut",
    "9110 15.6.6 | HTTP/11.1 | 505 http_version_not_supported, shut",
    "9112 2.3 | http/1.1 | 400 bad_request, shut",
    "9112 2.3 | Http/1.1 | 400 bad_request, shut",
    "9112 2.3 | HTTP/1.1x | 400 bad_request, shut",
    "9112 2.3 | HTTP/1.x | 400 bad_request, shut",
    "9112 2.3 | HTTP/-1.1 | 400 bad_request, shut",
    "9112 2.3 | HTTP/+1.1 | 400 bad_request, shut",
    "9112 2.3 | HTTP/ | 400 bad_request, shut",
    "9112 2.3 | HTTP | 400 bad_request, shut",
    "9112 2.3 | HTTP 1.1 | 400 bad_request, shut",
    "9112 2.3 | HTTP/ 1.1 | 400 bad_request, shut",
    "9112 2.3 | HTTP//1.1 | 400 bad_request, shut",
    "9112 2.3 | HTTPS/1.1 | 400 bad_request, shut",
    "9112 2.3 | HTCPCP/1.0 | 400 bad_request, shut",
    "9112 2.3 | ICY/1.1 | 400 bad_request, shut",
    "9112 2.3 | 1.1 | 400 bad_request, shut",
    "9112 2.3 | HTTP/1.\u{b9} | 400 bad_request, shut",
];

/// RFC 9112, 2.2: CR LF ends a line; an empty line before a request is ignored.
const ENDS_OF_LINES: &[&str] = &[
    "9112 2.2 | \r\n | 404 not_found, open",
    "9112 2.2 | \r\n\r\n\r\n\r\n | 404 not_found, open",
    "9112 2.2 | GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n\r\n | 200, 404 not_found, open",
    "9112 2.2 | POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab\r\n | 405 method_not_allowed, 404 not_found, open",
    "9112 2.2 | \n | 400 bad_request, shut",
    "9112 2.2 | \r | 400 bad_request, shut",
    "9112 2.2 | \r\r\n | 400 bad_request, shut",
    "9112 2.2 | \r\n\n | 400 bad_request, shut",
    "9112 2.2 |  \r\n | 400 bad_request, shut",
    "9112 2.2 | GET /health/live HTTP/1.1\nHost: h\n\n | 400 bad_request, shut",
    "9112 2.2 | GET /health/live HTTP/1.1\nHost: h\r\n\r\n | 400 bad_request, shut",
    "9112 2.2 | GET /health/live HTTP/1.1\r\nHost: h\n\r\n | 400 bad_request, shut",
    "9112 2.2 | GET /health/live HTTP/1.1\r\nHost: h\r\n\n | 400 bad_request, shut",
    "9112 2.2 | GET /health/live HTTP/1.1\rHost: h\r\n\r\n | 400 bad_request, shut",
    "9112 2.2 | GET /health/live HTTP/1.1\r\r\nHost: h\r\n\r\n | 400 bad_request, shut",
    "9112 2.2 | GET /health/live HTTP/1.1\r\nHost: h\r\n\r | 400 bad_request, shut",
    "9112 2.2: blanks before the first field | GET /health/live HTTP/1.1\r\n \r\nHost: h\r\n\r\n | 400 bad_request, shut",
    "9113 3.4: the preface of HTTP/2 | PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n | 505 http_version_not_supported, shut",
];
