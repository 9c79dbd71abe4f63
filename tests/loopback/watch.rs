//! What monitoring sees: the rules of Prometheus' page, durations, and the access log.

use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// One line with a value: the name of the metric, its labels as written, and the value.
type Sample<'a> = (&'a str, &'a str, f64);

/// Families by name, each with its type and its samples, in the order of the page; panics where
/// the page is not in the text format 0.0.4.
#[track_caller]
fn families(page: &str) -> BTreeMap<&str, (&str, Vec<Sample<'_>>)> {
    let mut families: BTreeMap<&str, (&str, Vec<Sample<'_>>)> = BTreeMap::new();
    let (mut family, mut help) = ("", "");
    assert!(page.ends_with('\n'));
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').expect("a help text");
            assert!(text.ends_with('.') && text.len() > 8, "{line}");
            help = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, help, "HELP comes before TYPE");
            let other = families.insert(name, (kind, Vec::new()));
            assert!(other.is_none(), "{name} has one HELP and one TYPE");
            family = name;
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
            let labels = labels.strip_suffix('}').expect("closed labels");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let (kind, samples) = families.get_mut(family).expect("a family is open");
            let part = name.strip_prefix(family).unwrap_or_else(|| panic!("{line}"));
            let parts: &[&str] = match *kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(parts.contains(&part), "{line} stands below {family}");
            samples.push((name, labels, value));
        }
    }
    families
}

/// The rules of `promtool check metrics`, and those of the naming of metrics.
#[track_caller]
fn check_page(page: &str) {
    let families = families(page);
    let names: BTreeSet<&str> = families.keys().copied().collect();
    for (name, (kind, samples)) in families {
        // OpenMetrics calls a counter's family by its name without the ending.
        let family = name.strip_suffix("_total").unwrap_or_default();
        assert!(!names.contains(family), "{name} and {family} are of one family");
        let word = name
            .strip_prefix("marketd_")
            .or(name.strip_prefix("process_"))
            .unwrap_or_else(|| panic!("{name}"));
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(word.bytes().all(plain), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}: {kind}");
        assert!(["counter", "gauge", "histogram"].contains(&kind), "{name}: {kind}");
        // Base units, in full, and no type in the name.
        for part in word.split('_') {
            let bad = ["ms", "us", "milliseconds", "minutes", "kb", "megabytes", "percent"];
            let types = ["counter", "gauge", "histogram", "summary", "count", "sum", "bucket"];
            assert!(!bad.contains(&part) && !types.contains(&part), "{name}");
        }
        let mut seen = BTreeSet::new();
        for (sample, labels, value) in &samples {
            assert!(seen.insert((sample, labels)), "{sample}{{{labels}}} twice");
            assert!(kind == "gauge" || *value >= 0.0, "{sample} {value}");
        }
        assert!(samples.len() < 600, "{name} has {} series", samples.len());
        if kind == "histogram" {
            check_histogram(name, &samples);
        }
    }
}

/// Buckets never fall, and the last one, without bound, is the count.
#[track_caller]
fn check_histogram(name: &str, samples: &[Sample<'_>]) {
    let mut series: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (sample, labels, value) in samples {
        let (others, bound) = labels.rsplit_once("le=").unwrap_or((labels, ""));
        let others = others.trim_end_matches(',').to_string();
        let of_it = series.entry(others).or_default();
        if !bound.is_empty() {
            assert!(of_it.last().is_none_or(|last| last <= value), "{name}{{{labels}}}");
            of_it.push(*value);
        }
        if sample.ends_with("_count") {
            assert_eq!(of_it.last(), Some(value), "{name}{{{labels}}}");
        }
    }
}

#[test]
fn the_page_of_metrics_holds_to_the_rules_of_prometheus() {
    let (_exchange, marketd) = polled(&["BTC/USDT", "ETH/USDT"]);
    check_page(get(marketd.addr(), "/metrics").text());
    // Whatever clients do, they make no series that would not be there without them.
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
    let page = page.text();
    check_page(page);
    let families = families(page);
    let count = |name: &str, labels: &str| {
        let (family, _) = name.rsplit_once('_').expect("a part of a histogram");
        let samples = &families[family].1;
        let found = samples.iter().find(|it| it.0 == name && it.1 == labels);
        found.unwrap_or_else(|| panic!("{name}{{{labels}}}")).2
    };
    let requests = "marketd_http_request_duration_seconds_count";
    assert_eq!(count(requests, "route=\"quote\",class=\"2xx\""), 30.0);
    assert_eq!(count(requests, "route=\"quote\",class=\"4xx\""), 30.0);
    assert_eq!(count(requests, "route=\"unknown\",class=\"4xx\""), 30.0);
    assert_eq!(count(requests, "route=\"unread\",class=\"5xx\""), 30.0);
    assert_eq!(count(requests, "route=\"options\",class=\"2xx\""), 30.0);
    assert_eq!(count(requests, "route=\"category_markets\",class=\"4xx\""), 30.0);
    assert_eq!(count(requests, "route=\"chart\",class=\"2xx\""), 1.0);
    let polls = "marketd_source_poll_duration_seconds_count";
    assert!(count(polls, "source=\"fake\"") >= 2.0);
    let depths = &families["marketd_queue_depth"].1;
    assert_eq!(depths.len(), 6);
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
