//! Rows: field lines, those that are ignored, persistence, expectations, conditions.

use crate::requests::table::{Chapter, PROBE};

const REST: &str = "\r\n\r\nGET /probe HTTP/1.1\r\nHost: h\r\n\r\n";

pub const CHAPTERS: &[Chapter] = &[
    Chapter { rows: LINES, before: "GET /health/live HTTP/1.1\r\nHost: h\r\n", after: REST },
    Chapter { rows: FIRST_LINES, before: "GET /health/live HTTP/1.1\r\n", after: REST },
    Chapter { rows: PERSISTENCE, before: "GET /health/live HTTP/1.", after: REST },
    Chapter { rows: IGNORED, before: "GET /health/live HTTP/1.1\r\nHost: h\r\n", after: REST },
    Chapter { rows: EXPECTATIONS, before: "", after: PROBE },
    Chapter {
        rows: CONDITIONS,
        before: "GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-None-Match:",
        after: REST,
    },
    Chapter { rows: OTHER_CONDITIONS, before: "", after: PROBE },
];

/// RFC 9112, 5 and RFC 9110, 5.5.
const LINES: &[&str] = &[
    "9110 5.5 | A: | 200, 404 not_found, open",
    "9110 5.5 | A: \t  | 200, 404 not_found, open",
    "9110 5.5 | A:b\tc d | 200, 404 not_found, open",
    "9110 5.5: obs-text | A: \u{80}\u{e4}\u{ff} | 200, 404 not_found, open",
    "9110 5.1 | !#$%&'*+-.^_`|~9: x | 200, 404 not_found, open",
    "9110 5.3 | A: b\r\nA: c\r\na: d | 200, 404 not_found, open",
    "9112 5.1 | A : b | 400 bad_request, shut",
    "9112 5.1 | A\t: b | 400 bad_request, shut",
    "9112 5.1 | Content-Length : 0 | 400 bad_request, shut",
    "9112 5.1 | Transfer-Encoding : chunked | 400 bad_request, shut",
    "9112 5.2 | A: b\r\n c | 400 bad_request, shut",
    "9112 5.2 | A: b\r\n\tc | 400 bad_request, shut",
    "9112 5.2 | A: b\r\n  | 400 bad_request, shut",
    "9112 5.2 | A:\r\n b | 400 bad_request, shut",
    "9112 5.2 | X: y\r\n Content-Length: 5 | 400 bad_request, shut",
    "9110 5.1 | : b | 400 bad_request, shut",
    "9110 5.1 |  : b | 400 bad_request, shut",
    "9110 5.1 | A | 400 bad_request, shut",
    "9110 5.1 | A b: c | 400 bad_request, shut",
    "9110 5.1 | A(: c | 400 bad_request, shut",
    "9110 5.1 | \"A\": c | 400 bad_request, shut",
    "9110 5.1 | A\u{e4}: c | 400 bad_request, shut",
    "9110 5.1 | A\0: c | 400 bad_request, shut",
    "9110 5.1 | A\u{7f}: c | 400 bad_request, shut",
    "9110 5.1 | GET / HTTP/1.1 | 400 bad_request, shut",
    "9110 5.5 | A: b\0c | 400 bad_request, shut",
    "9110 5.5 | A: \0 | 400 bad_request, shut",
    "9110 5.5 | A: b\rc | 400 bad_request, shut",
    "9110 5.5 | A: b\r | 400 bad_request, shut",
    "9110 5.5 | A: b\rContent-Length: 5 | 400 bad_request, shut",
    "9110 5.5 | A: b\u{1}c | 400 bad_request, shut",
    "9110 5.5 | A: b\u{8}c | 400 bad_request, shut",
    "9110 5.5 | A: b\u{b}c | 400 bad_request, shut",
    "9110 5.5 | A: b\u{1b}[31mc | 400 bad_request, shut",
    "9110 5.5 | A: b\u{7f}c | 400 bad_request, shut",
    "9112 2.2 | A: b\nB: c | 400 bad_request, shut",
    "9112 2.2 | A: b\n\nGET /x HTTP/1.1\r\nHost: h | 400 bad_request, shut",
];

/// The same where no field is before it.
const FIRST_LINES: &[&str] = &[
    "9112 5.2 |  Host: h | 400 bad_request, shut",
    "9112 5.2 | \tHost: h | 400 bad_request, shut",
    "9112 5.1 | Host : h | 400 bad_request, shut",
    "9112 5.2 | Host: h\r\n .example | 400 bad_request, shut",
    "9112 5.2 | Host:\r\n h | 400 bad_request, shut",
    "9110 5.5 | Host: h\0 | 400 bad_request, shut",
    "9110 5.5 | Host: h\rX: y | 400 bad_request, shut",
];

/// RFC 9112, 9.3.
const PERSISTENCE: &[&str] = &[
    "9112 9.3 | 1\r\nHost: h\r\nConnection: close | 200, shut",
    "9110 7.6.1 | 1\r\nHost: h\r\nconnection: CLOSE | 200, shut",
    "9110 7.6.1 | 1\r\nHost: h\r\nConnection: Upgrade , close | 200, shut",
    "9110 7.6.1 | 1\r\nHost: h\r\nConnection: x\r\nConnection: close | 200, shut",
    "9112 9.3 | 1\r\nHost: h\r\nConnection: keep-alive, close | 200, shut",
    "9112 9.3 | 1\r\nHost: h\r\nConnection: keep-alive | 200, 404 not_found, open",
    "9110 7.6.1 | 1\r\nHost: h\r\nConnection: closed, xclose, close-x | 200, 404 not_found, open",
    "9110 7.6.1 | 1\r\nHost: h\r\nConnection: ,, | 200, 404 not_found, open",
    "9110 7.6.1 | 1\r\nHost: h\r\nConnection: | 200, 404 not_found, open",
    "9112 9.3 | 1\r\nHost: h\r\nKeep-Alive: timeout=5 | 200, 404 not_found, open",
    "9112 9.3 | 0\r\nX: y | 200, shut",
    "9112 9.3 | 0\r\nConnection: keep-alive | 200, 404 not_found, open",
    "9112 9.3 | 0\r\nConnection: Keep-Alive, x | 200, 404 not_found, open",
    "9112 9.3 | 0\r\nConnection: x\r\nConnection: ,keep-alive | 200, 404 not_found, open",
    "9112 9.3 | 0\r\nConnection: keep-alive, close | 200, shut",
    "9112 9.3 | 0\r\nConnection: Upgrade | 200, shut",
];

/// Fields that say nothing to this service.
const IGNORED: &[&str] = &[
    "9110 7.8 | Connection: Upgrade\r\nUpgrade: websocket | 200, 404 not_found, open",
    "9113 3.1 | Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAA | 200, 404 not_found, open",
    "9110 10.1.4 | TE: trailers | 200, 404 not_found, open",
    "9110 10.1.4 | Connection: TE\r\nTE: gzip;q=0.5, trailers | 200, 404 not_found, open",
    "9110 6.6.2 | Trailer: Content-Length, Host | 200, 404 not_found, open",
    "9110 14.2 | Range: bytes=0-1 | 200, 404 not_found, open",
    "9110 14.2 | Range: bytes=999999- | 200, 404 not_found, open",
    "9110 14.2 | If-Range: \"a\"\r\nRange: bytes=0-1 | 200, 404 not_found, open",
    "9110 7.6.2 | Max-Forwards: 0 | 200, 404 not_found, open",
    "9110 12.5.1 | Accept: text/html | 200, 404 not_found, open",
    "9110 12.5.3 | Accept-Encoding: *;q=0 | 200, 404 not_found, open",
    "9110 11.6.2 | Authorization: Basic !!! | 200, 404 not_found, open",
    "6265 5.4 | Cookie: a=b; c | 200, 404 not_found, open",
    "9112 6.1: not this field | Transfer_Encoding: chunked | 200, 404 not_found, open",
    "9112 6.2: not this field | Content_Length: 5 | 200, 404 not_found, open",
    "9112 6.2: not this field | X-Content-Length: 5 | 200, 404 not_found, open",
    "7239 4: not asked for here | X-Original-URL: /metrics\r\nX-HTTP-Method-Override: DELETE | 200, 404 not_found, open",
    "9112 6.1: not this field | Proxy-Connection: close | 200, 404 not_found, open",
];

/// RFC 9110, 10.1.1.
const EXPECTATIONS: &[&str] = &[
    "9110 10.1.1 | POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab | 100, 404 not_found, 404 not_found, open",
    "9110 10.1.1 | POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nab | 100, 404 not_found, 404 not_found, open",
    "9110 10.1.1 | GET /health/live HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n | 100, 200, 404 not_found, open",
    "9110 10.1.1: there is no body | GET /health/live HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n | 200, 404 not_found, open",
    "9110 10.1.1: there is no body | GET /health/live HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n | 200, 404 not_found, open",
    "9110 10.1.1: it is not wanted | POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 65537\r\n\r\n | 413 payload_too_large, shut",
    "9110 10.1.1: ignored of a 1.0 client | POST /x HTTP/1.0\r\nExpect: 100-continue\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nab | 404 not_found, 404 not_found, open",
    "9110 10.1.1 | POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect:\r\n\r\nab | 404 not_found, 404 not_found, open",
    "9110 10.1.1 | GET /health/live HTTP/1.0\r\nExpect: x\r\n\r\n | 417 expectation_failed, shut",
    "9110 10.1.1 | GET /health/live HTTP/1.1\r\nHost: h\r\nExpect: 200-ok\r\n\r\n | 417 expectation_failed, shut",
    "9110 10.1.1 | POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue, gold\r\nContent-Length: 2\r\n\r\nab | 417 expectation_failed, shut",
    "9110 10.1.1 | POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue;a=b\r\nContent-Length: 2\r\n\r\nab | 417 expectation_failed, shut",
    "9110 10.1.1 | POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nExpect: x\r\nContent-Length: 2\r\n\r\nab | 417 expectation_failed, shut",
    "9110 10.1.1 | GET /health/live HTTP/1.1\r\nHost: h\r\nExpect:\r\n\r\n | 200, 404 not_found, open",
];

/// RFC 9110, 13.1.2: a list or `*`, compared weakly.
const CONDITIONS: &[&str] = &[
    "9110 13.1.2 |  @TAG@ | 304, 404 not_found, open",
    "9110 13.1.2 | @TAG@  | 304, 404 not_found, open",
    "9110 13.1.2 |  W/@TAG@ | 304, 404 not_found, open",
    "9110 13.1.2 |  \"x\", @TAG@ | 304, 404 not_found, open",
    "9110 13.1.2 |  @TAG@,\"x\" | 304, 404 not_found, open",
    "9110 5.6.1 |  , ,W/@TAG@ , | 304, 404 not_found, open",
    "9110 8.8.3: a comma in a tag |  \"a,b\", @TAG@ | 304, 404 not_found, open",
    "9110 13.1.2 |  * | 304, 404 not_found, open",
    "9110 13.1.2 |  \"*\" | 200, 404 not_found, open",
    "9110 13.1.2 |  \"x\" | 200, 404 not_found, open",
    "9110 13.1.2 |  W/\"x\" | 200, 404 not_found, open",
    "9110 13.1.2 |  | 200, 404 not_found, open",
    "9110 8.8.3: case counts |  w/@TAG@ | 200, 404 not_found, open",
    "9110 8.8.3: another tag |  \"x@TAG@ | 200, 404 not_found, open",
    "9110 8.8.3: no quotes |  x | 200, 404 not_found, open",
    "9110 8.8.3: no quotes, and what follows is ignored |  x, @TAG@ | 200, 404 not_found, open",
    "9110 8.8.3: no end |  \"x | 200, 404 not_found, open",
    "9110 8.8.3: no tag |  W/ | 200, 404 not_found, open",
    "9110 13.1.2: alone |  \"x\", * | 200, 404 not_found, open",
    "9110 13.1.2 |  ** | 200, 404 not_found, open",
    "9110 5.3: two lines are one list |  \"x\"\r\nIf-None-Match: @TAG@ | 304, 404 not_found, open",
];

/// RFC 9110, 13.2.2 and others.
const OTHER_CONDITIONS: &[&str] = &[
    "9110 13.1.2 | HEAD /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-None-Match: @TAG@\r\n\r\n | 304, 404 not_found, open",
    "9110 13.2.1: only where it would be a 200 | GET /nope HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n | 404 not_found, 404 not_found, open",
    "9110 13.2.1 | POST /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n | 405 method_not_allowed, 404 not_found, open",
    "9110 13.1.1 | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match: @TAG@\r\n\r\n | 200, 404 not_found, open",
    "9110 13.1.1 | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match: *\r\n\r\n | 200, 404 not_found, open",
    "9110 5.3: two lines are one list | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match: W/\"x\"\r\nif-match: @TAG@\r\n\r\n | 200, 404 not_found, open",
    "9110 13.1.1: no list | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match:\r\n\r\n | 412 precondition_failed, 404 not_found, open",
    "9110 13.1.1: no list | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match: x\r\n\r\n | 412 precondition_failed, 404 not_found, open",
    "9110 13.1.1: there is no tag | GET /health/live HTTP/1.1\r\nHost: h\r\nIf-Match: \"x\"\r\n\r\n | 412 precondition_failed, 404 not_found, open",
    "9110 13.1.1: there is no tag | GET /health/live HTTP/1.1\r\nHost: h\r\nIf-Match: *\r\n\r\n | 200, 404 not_found, open",
    "9110 13.1.1: another tag | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match: \"x\"\r\n\r\n | 412 precondition_failed, 404 not_found, open",
    "9110 13.1.1: compared strongly | HEAD /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match: W/@TAG@\r\n\r\n | 412 head, 404 not_found, open",
    "9110 13.2.2: before If-None-Match | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\nIf-Match: \"x\"\r\n\r\n | 412 precondition_failed, 404 not_found, open",
    "9110 13.2.2: both hold | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-None-Match: @TAG@\r\nIf-Match: *\r\n\r\n | 304, 404 not_found, open",
    "9110 13.2.1: only where it would be a 200 | GET /nope HTTP/1.1\r\nHost: h\r\nIf-Match: \"x\"\r\n\r\n | 404 not_found, 404 not_found, open",
    "9110 13.2.1: nothing is selected | OPTIONS /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Match: \"x\"\r\n\r\n | 204, 404 not_found, open",
    "9110 13.1.3: there is no date to compare with | GET /api/v1/categories HTTP/1.1\r\nHost: h\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n | 200, 404 not_found, open",
    "9110 9.3.2 | HEAD /nope HTTP/1.1\r\nHost: h\r\n\r\n | 404 head, 404 not_found, open",
    "Fetch 4.8: a pre-flight | OPTIONS /api/v1/categories HTTP/1.1\r\nHost: h\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n\r\n | 204, 404 not_found, open",
];
