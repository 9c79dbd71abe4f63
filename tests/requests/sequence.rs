//! Rows: several requests in one write, and requests that have not come to their end.

use crate::requests::table::Chapter;

pub const CHAPTERS: &[Chapter] = &[Chapter { rows: SEQUENCES, before: "", after: "" }];

/// RFC 9112, 9.3.2: answered in their order.
const SEQUENCES: &[&str] = &[
    "9112 9.3.2 | GET /health/live HTTP/1.1\r\nHost: h\r\n\r\nHEAD /health/live HTTP/1.1\r\nHost: h\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: h\r\n\r\nGET /nope HTTP/1.1\r\nHost: h\r\n\r\n | 200, 200 head, 204, 404 not_found, open",
    "9112 9.6: nothing after the last | GET /health/live HTTP/1.1\r\nHost: h\r\n\r\nGET /nope HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /health/live HTTP/1.1\r\nHost: h\r\n\r\n | 200, 404 not_found, shut",
    "9112 9.3.2: what was right is answered | GET /health/live HTTP/1.1\r\nHost: h\r\n\r\nGARBAGE\r\n\r\nGET /health/live HTTP/1.1\r\nHost: h\r\n\r\n | 200, 400 bad_request, shut",
    "9112 6.3 | POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcPOST /y HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /health/live HTTP/1.1\r\nHost: h\r\n\r\n | 404 not_found, 404 not_found, 200, open",
    "9112 6.3: one byte too many | POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n | 404 not_found, 501 method_not_implemented, shut",
    "9112 9.3 | GET /health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /health/live HTTP/1.1\r\nHost: h\r\n\r\nGET /health/live HTTP/1.0\r\n\r\n | 200, 200, 200, shut",
    "9110 10.1.1: in its place | GET /health/live HTTP/1.1\r\nHost: h\r\n\r\nPOST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na | 200, 100, 404 not_found, open",
    "9112 8: nothing came | \r\n | open",
    "9112 8: half a line | GET /health/li | open",
    "9112 8: half a head | GET /health/live HTTP/1.1\r\nHost: h\r\n | open",
    "9112 8: half a head | GET /health/live HTTP/1.1\r\nHost: h\r\n\r | open",
    "9112 8: no body | POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n | open",
    "9112 8: half a body | POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell | open",
    "9112 8: half a chunk | POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe | open",
    "9112 8: no last chunk | POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n | open",
    "9112 8: a whole one and a half | GET /health/live HTTP/1.1\r\nHost: h\r\n\r\nGET /health/li | 200, open",
    "9112 8: the body is not sent yet | POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n | 100, open",
];
