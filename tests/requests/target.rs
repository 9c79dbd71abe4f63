//! Rows: targets in their four forms, percent-escapes, dot segments, and the Host field.

use crate::table::Chapter;

const REST: &str = " HTTP/1.1\r\nHost: h\r\n\r\nGET /probe HTTP/1.1\r\nHost: h\r\n\r\n";

pub const CHAPTERS: &[Chapter] = &[
    Chapter {
        rows: FORMS,
        before: "",
        after: REST,
    },
    Chapter {
        rows: PATHS,
        before: "GET ",
        after: REST,
    },
    Chapter {
        rows: SYMBOLS,
        before: "GET /api/v1/quotes",
        after: REST,
    },
    Chapter {
        rows: HOSTS,
        before: "GET /health/live HTTP/1.1\r\n",
        after: "\r\nGET /probe HTTP/1.1\r\nHost: h\r\n\r\n",
    },
    Chapter {
        rows: ABSOLUTES,
        before: "GET http://",
        after: "\r\n\r\nGET /probe HTTP/1.1\r\nHost: h\r\n\r\n",
    },
];

/// RFC 9112, 3.2.
const FORMS: &[(&str, &str, &str)] = &[
    ("9112 3.2.1", "GET /", "200, 404 not_found, open"),
    ("9112 3.2.1", "GET health/live", "400 bad_request, shut"),
    ("9112 3.2.1", "GET ?a=b", "400 bad_request, shut"),
    (
        "9112 3.2.2",
        "GET http://h/health/live",
        "200, 404 not_found, open",
    ),
    (
        "9110 4.2.3",
        "GET HTTP://H:80/health/live",
        "200, 404 not_found, open",
    ),
    (
        "9112 3.2.2",
        "GET https://h/health/live",
        "200, 404 not_found, open",
    ),
    (
        "9112 3.2.2",
        "HEAD http://h/health/live?a",
        "200 head, 404 not_found, open",
    ),
    ("9112 3.2.2", "OPTIONS http://h", "204, 404 not_found, open"),
    (
        "9112 3.2.2",
        "GET ftp://h/health/live",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2.2",
        "GET file:///etc/passwd",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2.2",
        "GET http:/h/health/live",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2.2",
        "GET http:health/live",
        "400 bad_request, shut",
    ),
    ("9112 3.2.3", "GET h:443", "400 bad_request, shut"),
    ("9112 3.2.3", "GET h", "400 bad_request, shut"),
    (
        "9110 9.3.6",
        "CONNECT h:443",
        "405 method_not_allowed, shut",
    ),
    (
        "9110 9.3.6",
        "CONNECT [::1]:443",
        "405 method_not_allowed, shut",
    ),
    ("9112 3.2.3", "CONNECT h", "400 bad_request, shut"),
    ("9112 3.2.3", "CONNECT h:", "400 bad_request, shut"),
    ("9112 3.2.3", "CONNECT h:99999", "400 bad_request, shut"),
    ("9112 3.2.3", "CONNECT u@h:443", "400 bad_request, shut"),
    (
        "9112 3.2.3",
        "CONNECT /health/live",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2.3",
        "CONNECT http://h:80/",
        "400 bad_request, shut",
    ),
    ("9112 3.2.4", "OPTIONS *", "204, 404 not_found, open"),
    ("9112 3.2.4", "GET *", "400 bad_request, shut"),
    ("9112 3.2.4", "HEAD *", "400 bad_request, shut"),
    ("9112 3.2.4", "POST *", "400 bad_request, shut"),
    ("9112 3.2.4", "OPTIONS **", "400 bad_request, shut"),
    ("9112 3.2.4", "OPTIONS *?a", "400 bad_request, shut"),
];

/// RFC 3986, 2 and 3.3 to 3.5: escapes are decoded once, dot segments never resolved.
const PATHS: &[(&str, &str, &str)] = &[
    (
        "3986 6.2.2.2",
        "/%68ealth/liv%65",
        "200, 404 not_found, open",
    ),
    (
        "3986 6.2.2.2",
        "/api%2Fv1/categories",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 6.2.2.2",
        "/%2568ealth/live",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/health/live%",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/health/live%zz",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/health/live%00",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/health/live%0d%0aX:%20y",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 3.3",
        "/health/live/",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 3.3",
        "//health/live",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 3.3",
        "//h/health/live",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 3.3",
        "/health//live",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 3.3",
        "/health/live;a=b",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 6.2.2.1: case counts",
        "/HEALTH/live",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3986 3.3",
        "/health\\live",
        "404 not_found, 404 not_found, open",
    ),
    ("3986 3.3", "/...", "404 not_found, 404 not_found, open"),
    (
        "3986 3.3",
        "/.a/a./..b",
        "404 not_found, 404 not_found, open",
    ),
    ("3986 5.2.4", "/.", "400 bad_request, shut"),
    ("3986 5.2.4", "/..", "400 bad_request, shut"),
    ("3986 5.2.4", "/./health/live", "400 bad_request, shut"),
    ("3986 5.2.4", "/x/../health/live", "400 bad_request, shut"),
    ("3986 5.2.4", "/health/live/..", "400 bad_request, shut"),
    (
        "3986 6.2.2.2",
        "/x/%2e%2e/health/live",
        "400 bad_request, shut",
    ),
    (
        "3986 6.2.2.2",
        "/x/%2E./health/live",
        "400 bad_request, shut",
    ),
    (
        "3986 6.2.2.2",
        "/x/.%2e/health/live",
        "400 bad_request, shut",
    ),
    (
        "3986 2.1: once",
        "/x/%252e%252e/health/live",
        "404 not_found, 404 not_found, open",
    ),
    (
        "3629 10: overlong",
        "/x/%c0%ae%c0%ae/health/live",
        "404 not_found, 404 not_found, open",
    ),
    ("3986 3.4", "/health/live?", "200, 404 not_found, open"),
    ("3986 3.4", "/health/live?../..", "200, 404 not_found, open"),
    (
        "3986 3.4",
        "/health/live??&&==%&a=%zz;/?",
        "200, 404 not_found, open",
    ),
    (
        "3986 3.4",
        "/health/live?%00%0d%0a%ff%c0%af",
        "200, 404 not_found, open",
    ),
    (
        "3986 3.4",
        "/health/live?<\"'`{}|\\^>",
        "200, 404 not_found, open",
    ),
    (
        "9112 3.2.1: no fragment",
        "/health/live#a",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2.1: no fragment",
        "/health/live?a#b",
        "400 bad_request, shut",
    ),
];

/// Decoded once, and checked after that.
const SYMBOLS: &[(&str, &str, &str)] = &[
    (
        "3986 2.2",
        "/BTC%2FUSDT",
        "503 quote_not_ready, 404 not_found, open",
    ),
    (
        "3986 6.2.2.1",
        "/btc%2fusdt",
        "503 quote_not_ready, 404 not_found, open",
    ),
    (
        "3986 6.2.2.2",
        "/%42TC-USDT",
        "503 quote_not_ready, 404 not_found, open",
    ),
    (
        "3986 3.3",
        "/BTC/USDT",
        "503 quote_not_ready, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC%252FUSDT",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/%00",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC-USDT%00",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC%0aUSDT",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC%7fUSDT",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC%",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC%2",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC%gg",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1",
        "/BTC%%32%46USDT",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3629 10: overlong",
        "/BTC%c0%afUSDT",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.5",
        "/BTC\u{c3}\u{a4}",
        "400 invalid_symbol, 404 not_found, open",
    ),
    (
        "3986 2.1: a plus is a plus",
        "/BTC+USDT",
        "400 invalid_symbol, 404 not_found, open",
    ),
    ("3986 5.2.4", "/%2e%2e", "400 bad_request, shut"),
    ("3986 5.2.4", "/../categories", "400 bad_request, shut"),
    ("3986 3.4", "?symbols=%zz", "200, 404 not_found, open"),
    (
        "3986 3.4",
        "?symbols=BTC%2FUSDT&symbols=%42",
        "400 duplicate_parameter, 404 not_found, open",
    ),
    (
        "3986 3.4",
        "?%73ymbols=",
        "400 empty_parameter, 404 not_found, open",
    ),
];

/// RFC 9112, 3.2 and RFC 3986, 3.2.2: exactly one, and within the grammar.
const HOSTS: &[(&str, &str, &str)] = &[
    ("9112 3.2", "", "400 bad_request, shut"),
    (
        "9112 3.2",
        "Host: h\r\nHost: h\r\n",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2",
        "Host: h\r\nX: y\r\nhost: other\r\n",
        "400 bad_request, shut",
    ),
    ("9112 3.2", "Host: a, b\r\n", "400 bad_request, shut"),
    ("9112 3.2", "X-Host: h\r\n", "400 bad_request, shut"),
    ("9110 7.2", "Host:\r\n", "200, 404 not_found, open"),
    ("9110 7.2", "hOsT:h\r\n", "200, 404 not_found, open"),
    (
        "9110 7.2",
        "Host: \t h:80 \t\r\n",
        "200, 404 not_found, open",
    ),
    (
        "3986 3.2.2",
        "Host: a-b_c.d~e\r\n",
        "200, 404 not_found, open",
    ),
    (
        "3986 3.2.2",
        "Host: 127.0.0.1:8080\r\n",
        "200, 404 not_found, open",
    ),
    ("3986 3.2.2", "Host: [::1]\r\n", "200, 404 not_found, open"),
    (
        "3986 3.2.2",
        "Host: [2001:db8::1]:8080\r\n",
        "200, 404 not_found, open",
    ),
    (
        "3986 3.2.2",
        "Host: [v1.a:b]\r\n",
        "200, 404 not_found, open",
    ),
    ("3986 3.2.2", "Host: a%2Db\r\n", "200, 404 not_found, open"),
    ("3986 3.2.3", "Host: h:\r\n", "200, 404 not_found, open"),
    (
        "3986 3.2.3",
        "Host: h:65535\r\n",
        "200, 404 not_found, open",
    ),
    ("3986 3.2.3", "Host: h:65536\r\n", "400 bad_request, shut"),
    (
        "3986 3.2.3",
        "Host: h:99999999999999999999\r\n",
        "400 bad_request, shut",
    ),
    ("3986 3.2.3", "Host: h:8x\r\n", "400 bad_request, shut"),
    ("3986 3.2.3", "Host: h:-1\r\n", "400 bad_request, shut"),
    ("3986 3.2.3", "Host: h:+80\r\n", "400 bad_request, shut"),
    ("3986 3.2.3", "Host: h:80:80\r\n", "400 bad_request, shut"),
    ("3986 3.2.3", "Host: h: 80\r\n", "400 bad_request, shut"),
    ("9110 4.2.1", "Host: :80\r\n", "400 bad_request, shut"),
    ("3986 3.2.1", "Host: u@h\r\n", "400 bad_request, shut"),
    ("3986 3.2.1", "Host: u:p@h:80\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: ::1\r\n", "400 bad_request, shut"),
    (
        "3986 3.2.2",
        "Host: 2001:db8::1\r\n",
        "400 bad_request, shut",
    ),
    ("3986 3.2.2", "Host: [::1\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: ::1]\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: []\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: [h]\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: [::1]x\r\n", "400 bad_request, shut"),
    (
        "3986 3.2.2",
        "Host: [::1%25eth0]\r\n",
        "400 bad_request, shut",
    ),
    ("3986 3.2.2", "Host: h/\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: h/path\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: h?\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: h#\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: h\\\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: a b\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: a\tb\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: http://h\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: h%\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: h%4\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: \"h\"\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: <h>\r\n", "400 bad_request, shut"),
    ("3986 3.2.2", "Host: h\u{e4}\r\n", "400 bad_request, shut"),
];

/// RFC 9112, 3.2.2: a server ignores the Host field where the target has a host, and a request
/// of 1.1 without the field is wrong all the same.
const ABSOLUTES: &[(&str, &str, &str)] = &[
    (
        "9112 3.2.2",
        "h/health/live HTTP/1.1\r\nHost: other",
        "200, 404 not_found, open",
    ),
    (
        "9112 3.2.2",
        "h/health/live HTTP/1.1\r\nHost:",
        "200, 404 not_found, open",
    ),
    (
        "9112 3.2",
        "h/health/live HTTP/1.1\r\nX: y",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2",
        "h/health/live HTTP/1.1\r\nHost: h\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2",
        "h/health/live HTTP/1.1\r\nHost: u@h",
        "400 bad_request, shut",
    ),
    ("9112 3.2.2", "h/health/live HTTP/1.0", "200, shut"),
    (
        "9110 4.2.3",
        "h?a HTTP/1.1\r\nHost: h",
        "200, 404 not_found, open",
    ),
    (
        "3986 3.2.2",
        "[::1]:80/health/live HTTP/1.1\r\nHost: h",
        "200, 404 not_found, open",
    ),
    (
        "9110 4.2.1",
        "/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "9110 4.2.4",
        "u@h/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "9110 4.2.4",
        "u:p@h/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "3986 3.2.2",
        "[::1/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "3986 3.2.2",
        "::1/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "3986 3.2.3",
        "h:x/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "3986 3.2.3",
        "h:65536/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "3986 3.2.2",
        "h\\health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "3986 5.2.4",
        "h/../health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
    (
        "9112 3.2.1: no fragment",
        "h#/health/live HTTP/1.1\r\nHost: h",
        "400 bad_request, shut",
    ),
];
