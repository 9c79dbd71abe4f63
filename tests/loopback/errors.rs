//! Every error of the contract: status, code, parameter, and what becomes of the connection.

use crate::loopback::contract::{common, error};
use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;

const CHART: &str = "/api/ecosystem/chart?symbol=BTC/USDT";

/// Answers of an otherwise good service.
const CASES: &[(&str, u16, &str, Option<&str>)] = &[
    ("/nothing", 404, "not_found", None),
    ("//health", 404, "not_found", None),
    ("/health/", 404, "not_found", None),
    ("/healthy", 404, "not_found", None),
    ("/api", 404, "not_found", None),
    ("/api/v1", 404, "not_found", None),
    ("/api/v1/", 404, "not_found", None),
    ("/api/v2/quotes/BTC/USDT", 404, "not_found", None),
    ("/API/V1/categories", 404, "not_found", None),
    ("/api/v1/categories/", 404, "not_found", None),
    ("/api/v1/categories/usdt", 404, "not_found", None),
    ("/api/v1/categories/usdt/markets/", 404, "not_found", None),
    ("/api/v1/categories/a/b/markets", 404, "not_found", None),
    ("/api/ecosystem", 404, "not_found", None),
    ("/api/ecosystem/charts", 404, "not_found", None),
    ("/api/v1/quotes/", 404, "not_found", None),
    ("/api/v1/quotes/A/B/C", 404, "not_found", None),
    ("/api/v1/quotes/USDT/BTC", 404, "symbol_not_found", Some("symbol")),
    ("/api/ecosystem/market/foobar", 404, "market_not_found", None),
    ("/api/ecosystem/chart?symbol=BTC", 404, "symbol_not_found", Some("symbol")),
    ("/api/ecosystem/chart?symbol=BTC%252FUSDT", 400, "invalid_symbol", Some("symbol")),
    ("/api/ecosystem/chart?symbol=BTC%2F%2FUSDT", 400, "invalid_symbol", Some("symbol")),
    ("/api/v1/categories/nope/markets", 404, "category_not_found", None),
    ("/api/v1/categories/%00/markets", 404, "category_not_found", None),
    ("/api/ecosystem/market/NO-SUCH", 404, "market_not_found", None),
    ("/api/v1/quotes/NO/SUCH", 404, "symbol_not_found", Some("symbol")),
    ("/api/ecosystem/chart?symbol=NO/SUCH", 404, "symbol_not_found", Some("symbol")),
    ("/api/v1/quotes/BTCUSDT?source=x", 404, "source_not_found", Some("source")),
    ("/api/v1/quotes/BTCUSDT?source=", 404, "source_not_found", Some("source")),
    ("/api/v1/quotes?symbols=BTCUSDT&source=x", 404, "source_not_found", Some("source")),
    ("/api/ecosystem/chart?symbol=BTCUSDT&source=x", 404, "source_not_found", Some("source")),
    ("/api/v1/quotes/B$", 400, "invalid_symbol", Some("symbol")),
    ("/api/v1/quotes", 400, "missing_parameter", Some("symbols")),
    ("/api/v1/quotes?", 400, "missing_parameter", Some("symbols")),
    ("/api/v1/quotes?symbol=BTCUSDT", 400, "missing_parameter", Some("symbols")),
    ("/api/v1/quotes?symbols", 400, "empty_parameter", Some("symbols")),
    ("/api/v1/quotes?symbols=", 400, "empty_parameter", Some("symbols")),
    ("/api/v1/quotes?symbols=%20,+,,", 400, "empty_parameter", Some("symbols")),
    ("/api/v1/quotes?symbols=A&symbols=B", 400, "duplicate_parameter", Some("symbols")),
    ("/api/v1/quotes?symbols=A&symb%6fls=B", 400, "duplicate_parameter", Some("symbols")),
    ("/api/ecosystem/chart", 400, "missing_parameter", Some("symbol")),
    ("/api/ecosystem/chart?symbolz=BTCUSDT", 400, "missing_parameter", Some("symbol")),
    ("/api/ecosystem/chart?symbol=", 400, "empty_parameter", Some("symbol")),
    ("/api/ecosystem/chart?symbol=+", 400, "empty_parameter", Some("symbol")),
    ("/api/ecosystem/chart?symbol=A&symbol=A", 400, "duplicate_parameter", Some("symbol")),
    ("/api/v1/quotes/BTCUSDT?decimals=x", 400, "invalid_decimals", Some("decimals")),
    ("/api/v1/quotes/BTCUSDT?decimals=", 400, "invalid_decimals", Some("decimals")),
    ("/api/v1/categories?decimals=x", 400, "invalid_decimals", Some("decimals")),
    ("/api/ecosystem/market?decimals=x", 400, "invalid_decimals", Some("decimals")),
    ("/api/ecosystem/chart?symbols=", 400, "empty_parameter", Some("symbols")),
    ("/api/ecosystem/chart?symbols=+,", 400, "empty_parameter", Some("symbols")),
    ("/api/ecosystem/chart?symbols=BTCUSDT&limit=501", 400, "invalid_limit", Some("limit")),
    ("/api/ecosystem/chart?symbols=BTCUSDT&interval=7m", 400, "invalid_interval", Some("interval")),
    ("/api/ecosystem/chart?symbols=x&from=9&to=8", 400, "invalid_range", Some("from")),
    ("/api/ecosystem/chart?symbols=BTCUSDT&source=x", 404, "source_not_found", Some("source")),
    ("/api/v1/stream", 400, "missing_parameter", Some("symbols")),
    ("/api/v1/stream?symbols=,", 400, "empty_parameter", Some("symbols")),
    ("/api/v1/stream?charts=", 400, "empty_parameter", Some("charts")),
    ("/api/v1/stream?symbols=NOPE", 404, "symbol_not_found", Some("symbols")),
    ("/api/v1/stream?symbols=NOPE,NO-PE", 404, "symbol_not_found", Some("symbols")),
    ("/api/v1/stream?symbols=NOPE&charts=NOPE:1m", 404, "symbol_not_found", Some("symbols")),
    ("/api/v1/stream?symbols=BTCUSDT,a.b", 400, "invalid_symbol", Some("symbols")),
    ("/api/v1/stream?symbols=A,B,C", 400, "too_many_symbols", Some("symbols")),
    ("/api/v1/stream?charts=BTCUSDT:1m,BTCUSDT:1h", 400, "too_many_symbols", Some("charts")),
    ("/api/v1/stream?charts=BTCUSDT", 400, "invalid_interval", Some("charts")),
    ("/api/v1/stream?charts=BTCUSDT:7m", 400, "invalid_interval", Some("charts")),
    ("/api/v1/stream?charts=NOPE:1m", 404, "symbol_not_found", Some("charts")),
    ("/api/v1/stream?symbols=BTCUSDT&symbols=BTCUSDT", 400, "duplicate_parameter", Some("symbols")),
    ("/api/v1/stream?symbols=BTCUSDT&decimals=x", 400, "invalid_decimals", Some("decimals")),
    ("/api/v1/stream?symbols=BTCUSDT&source=x", 404, "source_not_found", Some("source")),
];

/// Lists, and what stands before their parameters.
const LISTS: [&str; 3] =
    ["/api/v1/quotes?symbols=*&", "/api/v1/categories/usdt/markets?", "/api/ecosystem/market?"];

/// The same for the parameters of each list.
const LIST_CASES: &[(&str, &str, &str)] = &[
    ("sort=price", "invalid_sort", "sort"),
    ("sort=", "invalid_sort", "sort"),
    ("sort=Last", "invalid_sort", "sort"),
    ("order=down", "invalid_order", "order"),
    ("limit=0", "invalid_limit", "limit"),
    ("limit=-1", "invalid_limit", "limit"),
    ("limit=1.5", "invalid_limit", "limit"),
    ("limit=99999999999999999", "invalid_limit", "limit"),
    ("offset=x", "invalid_offset", "offset"),
    ("offset=", "invalid_offset", "offset"),
    ("sort=last&sort=last", "duplicate_parameter", "sort"),
];

/// The same for the parameters of the chart, added to [`CHART`].
const CHART_CASES: &[(&str, &str, &str)] = &[
    ("symbols=BTCUSDT", "duplicate_parameter", "symbol"),
    ("interval=", "invalid_interval", "interval"),
    ("interval=1H", "invalid_interval", "interval"),
    ("interval=1D", "invalid_interval", "interval"),
    ("interval=60", "invalid_interval", "interval"),
    ("interval=2m", "invalid_interval", "interval"),
    ("interval=1m%20", "invalid_interval", "interval"),
    ("interval=1m%00", "invalid_interval", "interval"),
    ("resolution=1h", "invalid_interval", "resolution"),
    ("resolution=7", "invalid_interval", "resolution"),
    ("interval=1h&resolution=60", "duplicate_parameter", "interval"),
    ("interval=1h&interval=1h", "duplicate_parameter", "interval"),
    ("from=", "invalid_time", "from"),
    ("from=x", "invalid_time", "from"),
    ("from=-1", "invalid_time", "from"),
    ("from=%2B1", "invalid_time", "from"),
    ("from=1.5", "invalid_time", "from"),
    ("from=1e9", "invalid_time", "from"),
    ("from=0x10", "invalid_time", "from"),
    ("from=2020-01-01", "invalid_time", "from"),
    ("from=99999999999999999999", "invalid_time", "from"),
    ("startTime=x", "invalid_time", "startTime"),
    ("to=x", "invalid_time", "to"),
    ("endTime=", "invalid_time", "endTime"),
    ("from=1&startTime=1", "duplicate_parameter", "from"),
    ("to=1&endTime=1", "duplicate_parameter", "to"),
    ("from=1&from=1", "duplicate_parameter", "from"),
    ("from=2&to=1", "invalid_range", "from"),
    ("from=1600000000001&to=1600000000000", "invalid_range", "from"),
    ("from=1600000001&to=1600000000000", "invalid_range", "from"),
    ("limit=", "invalid_limit", "limit"),
    ("limit=0", "invalid_limit", "limit"),
    ("limit=-1", "invalid_limit", "limit"),
    ("limit=5001", "invalid_limit", "limit"),
    ("limit=1.0", "invalid_limit", "limit"),
    ("limit=18446744073709551617", "invalid_limit", "limit"),
    ("limit=5&limit=5", "duplicate_parameter", "limit"),
    ("fill=", "invalid_fill", "fill"),
    ("fill=Previous", "invalid_fill", "fill"),
    ("fill=zero", "invalid_fill", "fill"),
    ("fetch=all", "invalid_fetch", "fetch"),
    ("fetch=none", "invalid_fetch", "fetch"),
    ("fill=none&fill=none", "duplicate_parameter", "fill"),
    ("decimals=text", "invalid_decimals", "decimals"),
];

#[test]
fn every_error_has_its_status_code_and_parameter() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let limits = json!({ "streamSymbols": 2, "streamCharts": 1 });
    let marketd = limited(&exchange, limits);
    let mut client = Client::connect(marketd.addr());
    for (target, status, code, param) in CASES {
        // All on one connection: an error of this kind does not end it.
        let message = error(&client.get(target), *status, code, *param);
        assert!(message.ends_with('.'), "{target}: {message}");
    }
    for (query, code, param) in CHART_CASES {
        let target = format!("{CHART}&{query}");
        let message = error(&client.get(&target), 400, code, Some(param));
        if *code == "invalid_interval" {
            let named = match *param {
                "resolution" => &crate::loopback::contract::RESOLUTIONS,
                _ => &naive::INTERVALS,
            };
            assert!(named.iter().all(|name| message.contains(name)), "{message}");
            assert!(message.starts_with(&format!("Invalid {param} \"")), "{message}");
        }
    }
    let too_many = format!("/api/ecosystem/chart?symbols={}", "A,".repeat(51));
    error(&client.get(&too_many), 400, "too_many_symbols", Some("symbols"));
    for list in LISTS {
        for (query, code, param) in LIST_CASES {
            error(&client.get(&format!("{list}{query}")), 400, code, Some(param));
        }
        // Without a word about pieces, the answer has none.
        let answer = client.get(&format!("{list}x=1"));
        assert_eq!((answer.header("X-Total-Count"), answer.header("Link")), (None, None));
    }
    // Named symbols are no list to choose from.
    assert_eq!(client.get("/api/v1/quotes?symbols=BTCUSDT&sort=price").status, 200);
    // Cache busters and trackers are nobody's fault.
    let harmless = "?_=1795182473&utm_source=x&callback=%zz&%00=1&symbol=&=&&a=b=c";
    assert_eq!(client.get(&format!("/api/v1/quotes/BTCUSDT{harmless}")).status, 200);
    assert_eq!(client.get(&format!("/health{harmless}")).status, 200);
}

#[test]
fn options_tell_a_browser_what_it_may_send() {
    let (_exchange, marketd) = polled(&["BTC/USDT"]);
    let mut client = Client::connect(marketd.addr());
    let origin = "Origin: https://a.example\r\nAccess-Control-Request-Method: GET";
    let asked = format!("OPTIONS /api/v1/quotes/BTC/USDT HTTP/1.1\r\nHost: x\r\n{origin}\r\n\r\n");
    let answer = client.send(asked).and_then(|()| client.read()).expect("an answer");
    assert_eq!((answer.status, answer.text()), (204, ""));
    common(&answer);
    assert_eq!(answer.header("Access-Control-Max-Age"), Some("86400"));
    for (field, allowed) in [
        ("Methods", "GET"),
        ("Methods", "HEAD"),
        ("Methods", "OPTIONS"),
        ("Headers", "*"),
        ("Headers", "Authorization"),
    ] {
        let field = format!("Access-Control-Allow-{field}");
        assert!(answer.header_lists(&field, allowed), "{field}");
    }
    let posted = client
        .send("POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
        .and_then(|()| client.read());
    error(&posted.expect("an answer"), 404, "not_found", None);
}

#[test]
fn an_error_repeats_at_most_64_bytes_of_what_was_asked_and_escapes_them() {
    let (_exchange, marketd) = polled(&["BTC/USDT"]);
    let long = "Z".repeat(300);
    for target in [
        format!("/api/v1/quotes/{long}"),
        format!("/{long}"),
        format!("/api/v1/categories/{long}/markets"),
        format!("/api/ecosystem/market/{long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&interval={long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&from={long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&limit={long}"),
        format!("/api/ecosystem/chart?symbol=BTCUSDT&fill={long}"),
        format!("/api/v1/quotes/BTCUSDT?source={long}"),
        format!("/api/v1/quotes/BTCUSDT?decimals={long}"),
    ] {
        let answer = get(marketd.addr(), &target);
        assert!((400..500).contains(&answer.status), "{target}");
        let message = answer.exact()["message"].text().unwrap_or_default().to_string();
        let repeated = message.matches('Z').count();
        assert!((50..=64).contains(&repeated), "{target}: {message}");
    }
    let message = error(
        &get(marketd.addr(), "/api/v1/quotes/%22%5C%3C%E2%82%AC"),
        400,
        "invalid_symbol",
        Some("symbol"),
    );
    assert!(message.contains("\"\\<"), "{message}");
    assert!(message.is_ascii(), "{message}");
}
