//! Rows: where a body ends, and the ways to make two servers disagree about it.

use crate::requests::table::{Chapter, PROBE};

const GET: &str = "GET /health/live HTTP/1.1\r\nHost: h\r\n";

pub const CHAPTERS: &[Chapter] = &[
    Chapter { rows: LENGTHS, before: GET, after: PROBE },
    Chapter { rows: ENCODINGS, before: GET, after: PROBE },
    Chapter {
        rows: CHUNKS,
        before: "GET /health/live HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
        after: PROBE,
    },
    Chapter { rows: OTHER, before: "", after: PROBE },
];

/// RFC 9112, 6.2 and 6.3.
const LENGTHS: &[(&str, &str, &str)] = &[
    ("9112 6.2", "Content-Length: 0\r\n\r\n", "200, 404 not_found, open"),
    ("9112 6.2", "Content-Length: 5\r\n\r\nhello", "200, 404 not_found, open"),
    ("9112 6.2", "content-length:\t5 \t\r\n\r\nhello", "200, 404 not_found, open"),
    ("9110 8.6: digits", "Content-Length: 0005\r\n\r\nhello", "200, 404 not_found, open"),
    (
        "9112 6.3: the body is no request",
        "Content-Length: 34\r\n\r\nGET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n",
        "200, 404 not_found, open",
    ),
    (
        "9112 6.3: equal values",
        "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "200, 404 not_found, open",
    ),
    ("9112 6.3", "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400 bad_request, shut"),
    ("9112 6.3", "Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello", "400 bad_request, shut"),
    ("9112 6.3", "Content-Length: 5, 6\r\n\r\nhello", "400 bad_request, shut"),
    ("9112 6.3: not digits", "Content-Length: 5, 5\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: +5\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: -5\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: -0\r\n\r\n", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: 0x5\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: 5.0\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: 5e0\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: 5 5\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: 5;\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: 5,\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: \"5\"\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: 1_0\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: \u{b5}\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length:\r\n\r\nhello", "400 bad_request, shut"),
    ("9110 8.6", "Content-Length: five\r\n\r\nhello", "400 bad_request, shut"),
    (
        "9110 8.6: beyond 64 bits",
        "Content-Length: 18446744073709551616\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9110 8.6: 5 modulo 2^64",
        "Content-Length: 18446744073709551621\r\n\r\nhello",
        "400 bad_request, shut",
    ),
    (
        "9110 8.6: beyond the cap",
        "Content-Length: 18446744073709551615\r\n\r\n",
        "413 payload_too_large, shut",
    ),
    ("9110 15.5.14", "Content-Length: 65537\r\n\r\n", "413 payload_too_large, shut"),
];

/// RFC 9112, 6.1: `chunked` alone, never beside a length, never in 1.0.
const ENCODINGS: &[(&str, &str, &str)] = &[
    ("9112 6.1", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200, 404 not_found, open"),
    (
        "9112 7: case does not count",
        "transfer-encoding:\tCHUNKED \r\n\r\n0\r\n\r\n",
        "200, 404 not_found, open",
    ),
    (
        "9112 6.1: CL.TE",
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: TE.CL",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: CL.0",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: TE.TE",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: TE.TE",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "501 transfer_coding_not_implemented, shut",
    ),
    (
        "9112 6.1: twice",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    ("9112 6.1", "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400 bad_request, shut"),
    (
        "9112 6.1",
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "501 transfer_coding_not_implemented, shut",
    ),
    ("9112 6.1", "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 6.1", "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 6.1", "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 6.1", "Transfer-Encoding: gzip\r\n\r\n", "501 transfer_coding_not_implemented, shut"),
    (
        "9112 6.1",
        "Transfer-Encoding: identity\r\n\r\n",
        "501 transfer_coding_not_implemented, shut",
    ),
    ("9112 6.1", "Transfer-Encoding:\r\n\r\n", "400 bad_request, shut"),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "501 transfer_coding_not_implemented, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding: chunked x\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding: 'chunked'\r\n\r\n0\r\n\r\n",
        "501 transfer_coding_not_implemented, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding: chun\u{ca}ed\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1: obfuscated",
        "Transfer-Encoding\0: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
];

/// RFC 9112, 7.1.
const CHUNKS: &[(&str, &str, &str)] = &[
    ("9112 7.1", "5\r\nhello\r\n0\r\n\r\n", "200, 404 not_found, open"),
    ("9112 7.1", "00005\r\nhello\r\n000\r\n\r\n", "200, 404 not_found, open"),
    ("9112 7.1", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "200, 404 not_found, open"),
    ("9112 7.1", "1\r\n0\r\n1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", "200, 404 not_found, open"),
    ("9112 7.1.1", "5;a=b;c=\"d e\"\r\nhello\r\n0;x\r\n\r\n", "200, 404 not_found, open"),
    ("9112 7.1.1", "5 ; a\r\nhello\r\n0\t;x\r\n\r\n", "200, 404 not_found, open"),
    (
        "9112 7.1.1",
        "5; a = b ;c\t=\"\\\"]; \" ; d;e=f\r\nhello\r\n0\r\n\r\n",
        "200, 404 not_found, open",
    ),
    ("9112 7.1.2", "0\r\nA: b\r\nExpires: x\r\n\r\n", "200, 404 not_found, open"),
    (
        "9112 7.1.2: dropped",
        "0\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\nHost: x\r\n\r\n",
        "200, 404 not_found, open",
    ),
    ("9112 7.1", "+5\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "-5\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "0x5\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "5h\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "g\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "1_0\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", " 5\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "5 \r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "5\0\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", ";a=b\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    (
        "9112 7.1: beyond 64 bits",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 7.1: beyond 64 bits",
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 7.1: beyond the cap",
        "ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "413 payload_too_large, shut",
    ),
    ("9112 7.1: beyond the cap", "10001\r\nhello\r\n0\r\n\r\n", "413 payload_too_large, shut"),
    ("9112 7.1", "5\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "5\rhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "5\r\nhello\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "5\r\nhello0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1: too short", "4\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1: too long", "6\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5; \r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;;a\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;=a\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a=\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a=b=c\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a b\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;bad[=x\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a=x]\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a=\"x\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a=\"x\"y\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a=\"\\\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a\nb\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.1", "5;a\0\r\nhello\r\n0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "0\n\r\n", "400 bad_request, shut"),
    ("9112 7.1", "0\r\n\n", "400 bad_request, shut"),
    ("9112 7.1", "0\r\n\rX", "400 bad_request, shut"),
    ("9112 7.1.2", "0\r\nA : b\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.2", "0\r\n A: b\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.2", "0\r\nA: b\r\n c\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.2", "0\r\nA: b\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.2", "0\r\nA: \0\r\n\r\n", "400 bad_request, shut"),
    ("9112 7.1.2: the probe is no trailer", "0\r\n", "400 bad_request, shut"),
];

/// The same with other methods and versions.
const OTHER: &[(&str, &str, &str)] = &[
    ("9110 9.3.2", "HEAD / HTTP/1.1\r\n\r\n", "400 head, shut"),
    ("9110 9.3.2", "\r\nHEAD / HTTP/1.1\r\nHost: h\r\nA B: c\r\n\r\n", "400 head, shut"),
    ("9110 9.3.2", "HEAD / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", "417 head, shut"),
    ("9110 9.3.2", "HEAD / HTTP/2.0\r\nHost: h\r\n\r\n", "505 head, shut"),
    (
        "9110 9.3.2",
        "HEAD / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
        "501 head, shut",
    ),
    (
        "9110 9.3.2",
        "HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n",
        "413 head, shut",
    ),
    (
        "9110 9.3.2",
        "HEAD / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx",
        "400 head, shut",
    ),
    (
        "9112 6.1",
        "GET /health/live HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.1",
        "GET /health/live HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 6.3",
        "GET /health/live HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nab",
        "200, 404 not_found, open",
    ),
    (
        "9110 9.3.1",
        "GET /health/live HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab",
        "200, shut",
    ),
    (
        "9110 9.3.2",
        "HEAD /health/live HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
        "200 head, 404 not_found, open",
    ),
    (
        "9110 9.3.7",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
        "204, 404 not_found, open",
    ),
    (
        "9110 9.3.3",
        "POST /health/live HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        "405 method_not_allowed, 404 not_found, open",
    ),
    (
        "9110 15.6.2",
        "BREW / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
        "501 method_not_implemented, shut",
    ),
    (
        "9110 9.3.6: what follows is the tunnel's",
        "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\nContent-Length: 2\r\n\r\nab",
        "405 method_not_allowed, shut",
    ),
];
