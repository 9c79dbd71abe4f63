//! What monitoring sees: the series of Prometheus' page, durations, and the access log.

use crate::loopback::contract::common;
use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn clients_make_no_series_that_would_not_be_there_without_them() {
    let (_exchange, marketd) = polled(&["BTC/USDT", "ETH/USDT"]);
    for round in 0..30 {
        for target in [
            format!("/api/v1/quotes/BTCUSDT?x={round}"),
            format!("/nope/{round}"),
            format!("/api/v1/quotes/A{round}-B"),
            format!("/api/v1/categories/c{round}/markets"),
        ] {
            get(marketd.addr(), &target);
        }
        request(marketd.addr(), format!("GET /{round} HTTP/9.9\r\n\r\n"));
        request(marketd.addr(), "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    get(marketd.addr(), "/api/ecosystem/chart?symbol=BTCUSDT");
    let page = get(marketd.addr(), "/metrics");
    common(&page);
    let kind = page.header("Content-Type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    assert_eq!(page.header("Cache-Control"), Some("no-store"));
    let samples = page.text().lines().filter(|line| !line.starts_with('#'));
    let samples: Vec<&str> = samples.filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
    let series: BTreeSet<&str> = samples.iter().copied().collect();
    assert_eq!(series.len(), samples.len(), "a name stands twice with the same labels");
    assert!(series.len() < 600, "{} series", series.len());
    for (route, class, requests) in [
        ("quote", "2xx", 30),
        ("quote", "4xx", 30),
        ("unknown", "4xx", 30),
        ("unread", "5xx", 30),
        ("options", "2xx", 30),
        ("category_markets", "4xx", 30),
        ("chart", "2xx", 1),
    ] {
        let name = "marketd_http_request_duration_seconds_count";
        let name = format!("{name}{{route=\"{route}\",class=\"{class}\"}}");
        assert_eq!(count(page.text(), &name), requests, "{name}");
    }
    let polls = "marketd_source_poll_duration_seconds_count{source=\"fake\"}";
    assert!(count(page.text(), polls) >= 2);
    assert_eq!(page.text().matches("marketd_queue_depth{").count(), 6);
}

/// Asks for some things, and then for `/health` as the last.
fn ask_around(marketd: &Marketd) {
    get(marketd.addr(), "/api/v1/quotes/BTCUSDT");
    head(marketd.addr(), "/metrics?a=%0d%0a\"\\'<>");
    request(marketd.addr(), "PUT /x HTTP/1.1\r\nHost: x\r\n\r\n");
    request(marketd.addr(), "BREW%22 /x HTTP/1.1\r\nHost: x\r\n\r\n");
    request(marketd.addr(), "GET /a\nforged HTTP/1.1\r\nHost: x\r\n\r\n");
    let long = "/api/ecosystem/chart?symbol=BTCUSDT&interval=4h&limit=20";
    get(marketd.addr(), long);
    get(marketd.addr(), &format!("/{}", "y".repeat(3000)));
    get(marketd.addr(), "/health");
}

#[test]
fn the_access_log_has_one_line_an_answer_that_nobody_can_forge_once_it_is_asked_for() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let sources = config(&[source("fake", &exchange)]);
    let asked = with(sources.clone(), "accessLog", json!(true));
    for (launch, is_logged) in [
        (Launch::new(&[]).config(&sources), false),
        (Launch::new(&["--log", "info,access=off"]).config(&asked), false),
        (Launch::new(&["--log", "info,access=info"]).config(&sources), true),
        (Launch::new(&[]).config(&asked), true),
        (Launch::new(&["--log", "info"]).config(&asked), true),
    ] {
        let marketd = launch.start();
        await_health(&marketd, "ok");
        let before = lines_of(&marketd, "access").len();
        ask_around(&marketd);
        if !is_logged {
            let ended = marketd.stop(LONG).stderr;
            assert!(!ended.contains(" access: "), "{ended}");
            continue;
        }
        let lines = eventually(LONG, || {
            let lines = lines_of(&marketd, "access").split_off(before);
            (lines.last()?.contains("\"/health\"") && lines.len() >= 8).then_some(lines)
        });
        // A line that waited for health may still have come behind the count.
        let lines = &lines[lines.len() - 8..];
        let begins = [
            "peer=127.0.0.1 method=GET target=\"/api/v1/quotes/BTCUSDT\" status=200 bytes=",
            "peer=127.0.0.1 method=HEAD target=\"/metrics?a=%0d%0a",
            "peer=127.0.0.1 method=PUT target=\"/x\" status=404 bytes=",
            "peer=127.0.0.1 method=BREW%22 target=\"/x\" status=501 bytes=",
            "peer=127.0.0.1 method=- target=- status=400 bytes=",
            "peer=127.0.0.1 method=GET target=\"/api/ecosystem/chart?symbol=BTCUSDT&interval=4h&limit=20\" \
             status=200 bytes=",
            "peer=127.0.0.1 method=GET target=\"/yyyyyyyyyy",
            "peer=127.0.0.1 method=GET target=\"/health\" status=200 bytes=",
        ];
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}\nis not {begin}");
            let (_, ms) = line.rsplit_once(" ms=").expect("a time");
            let ms: f64 = ms.parse().expect("a number");
            assert!(ms > 0.0 && ms < 30_000.0, "{line}");
            assert!(line.len() < 400, "{line}");
        }
    }
}
