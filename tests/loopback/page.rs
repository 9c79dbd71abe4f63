//! `/`: an index for programs, a page for people, and the files that the page refers to.

use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;
use std::net::SocketAddr;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const HAS_PAGE: bool = cfg!(feature = "page");

/// The paths that an index names.
pub fn paths(index: &Response) -> Vec<String> {
    let index = index.exact();
    assert_eq!(index.keys(), ["name", "version", "endpoints"]);
    assert_eq!(index["name"].text(), Some("marketd"));
    assert_eq!(index["version"].text(), Some(env!("CARGO_PKG_VERSION")));
    let endpoints = index["endpoints"].items().iter();
    let path = |endpoint: &Json| {
        assert_eq!(endpoint.keys(), ["path", "description"]);
        let about = endpoint["description"].text().expect("a text");
        assert!(about.len() > 5, "{about:?}");
        endpoint["path"].text().expect("a path").to_string()
    };
    endpoints.map(path).collect()
}

#[test]
fn a_client_that_names_html_gets_the_page_unless_it_prefers_json() {
    let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
    let addr = marketd.addr();
    for (accept, is_page) in [
        (BROWSER, true),
        ("text/html", true),
        ("TEXT/HTML;charset=utf-8;q=0.2", true),
        ("application/json, text/html", true),
        ("application/json;q=0.5, text/html;q=0.6", true),
        ("text/html;q=0.5, */*;q=0.5", true),
        ("text/html;q=0.5, application/json", false),
        ("text/html;q=0.5, */*", false),
        ("text/html;q=0", false),
        ("text/html;q=0.0, */*", false),
        ("application/json", false),
        ("text/*", false),
        ("*/*", false),
        ("text/htmlx", false),
        ("", false),
    ] {
        let answer = get_with(addr, "/", &format!("Accept: {accept}"));
        let media = match is_page && HAS_PAGE {
            true => "text/html; charset=utf-8",
            false => "application/json",
        };
        assert_eq!(answer.header("Content-Type"), Some(media), "{accept}");
        let varies = Some("Accept, Accept-Encoding");
        assert_eq!(answer.header("Vary"), varies, "{accept}");
        assert_eq!(answer.header("Cache-Control"), Some("no-cache"));
        let tag = answer.header("ETag").expect("a tag");
        let fields = format!("Accept: {accept}\r\nIf-None-Match: {tag}");
        assert_eq!(get_with(addr, "/", &fields).status, 304, "{accept}");
        let other = get_with(addr, "/", &format!("Accept: text/html;q=0\r\nIf-None-Match: {tag}"));
        assert_eq!(other.status == 200, is_page && HAS_PAGE, "{accept}");
    }
    // Several fields are one list.
    let two = get_with(addr, "/", "Accept: application/json;q=0.1\r\nAccept: text/html");
    assert_eq!(two.text().starts_with("<!doctype html>"), HAS_PAGE);
    let mut client = Client::connect(addr);
    let sent = client.send("HEAD / HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n");
    sent.expect("it is open");
    let head = client.read_head().expect("a head");
    let page = get_with(addr, "/", "Accept: text/html");
    assert_eq!(head.header("Content-Length"), page.header("Content-Length"));
    assert!(head.body.is_empty());
}

/// What a document or a script refers to.
fn references(text: &str) -> Vec<String> {
    let marks = ["href=\"", "src=\"", "from \"./"];
    let found = marks.iter().flat_map(|mark| text.split(mark).skip(1));
    let found = found.filter_map(|rest| rest.split('"').next());
    let found = found.filter(|it| !it.starts_with('#') && !it.starts_with("data:"));
    found.map(str::to_string).collect()
}

#[test]
fn all_that_the_page_refers_to_is_there_under_any_base_path() {
    if !HAS_PAGE {
        return;
    }
    let exchange = exchange_of(&["BTC/USDT"]);
    for base in ["", "/deep/base"] {
        let config = with(config(&[source("fake", &exchange)]), "basePath", json!(base));
        let config = with(config, "ecosystemBasePath", json!(base));
        let marketd = start_at(&config, base);
        let addr = marketd.addr();
        let page = get_with(addr, &format!("{base}/"), &format!("Accept: {BROWSER}"));
        assert!(page.text().starts_with("<!doctype html>"));
        let mut wanted = references(page.text());
        let mut seen = Vec::new();
        while let Some(name) = wanted.pop() {
            if seen.contains(&name) {
                continue;
            }
            let answer = get_with(addr, &format!("{base}/{name}"), "Accept: */*");
            assert_eq!(answer.status, 200, "{name}");
            if let Some(file) = name.strip_prefix("page/") {
                let media = match file.split_once('.') {
                    Some((_, "css")) => "text/css; charset=utf-8",
                    Some((_, "json")) => "application/json",
                    _ => "text/javascript; charset=utf-8",
                };
                assert_eq!(answer.header("Content-Type"), Some(media), "{name}");
                let others = references(answer.text());
                wanted.extend(others.iter().map(|other| format!("page/{other}")));
                check_file(addr, &format!("{base}/{name}"), &answer);
            }
            seen.push(name);
        }
        assert!(seen.len() > 13, "{seen:?}");
        check_file(addr, &format!("{base}/"), &page);
        let preloads = page.header("Link").expect("the scripts").split(", ");
        let preloads = preloads
            .filter_map(|link| link.strip_prefix('<')?.strip_suffix(">; rel=modulepreload"));
        let preloads: Vec<_> = preloads.collect();
        let scripts = seen.iter().filter(|name| name.ends_with(".js"));
        let preloaded = scripts.filter(|name| preloads.contains(&name.as_str())).count();
        assert!(preloaded > 10, "{preloads:?}");
        for name in ["page/", "page/none.js", "page/index.html", "page/app.js/"] {
            assert_eq!(get(addr, &format!("{base}/{name}")).status, 404, "{name}");
        }
    }
}

/// A file may be kept, but is asked about; it comes compressed unless it is small, and may do nothing that
/// is not said.
fn check_file(addr: SocketAddr, target: &str, plain: &Response) {
    let policy = plain.header("Content-Security-Policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    assert_eq!(plain.header("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(plain.header("Cache-Control"), Some("no-cache"));
    let tag = plain.header("ETag").expect("a tag");
    let accept = format!("Accept: {BROWSER}");
    let same = get_with(addr, target, &format!("{accept}\r\nIf-None-Match: {tag}"));
    assert_eq!(same.status, 304, "{target}");
    let packed = get_with(addr, target, &format!("{accept}\r\nAccept-Encoding: gzip, br"));
    if plain.body.len() <= 1024 {
        return assert_eq!(packed.body, plain.body, "{target}");
    }
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"), "{target}");
    assert!(packed.body.len() < plain.body.len(), "{target}");
    assert_ne!(packed.header("ETag"), Some(tag));
    assert!(packed.header_lists("Vary", "Accept-Encoding"), "{target}");
}

#[test]
fn the_configuration_in_effect_is_told_without_secrets() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let mut config = with(config(&[source("fake", &exchange)]), "limits", json!({"streams": 77}));
    if cfg!(feature = "cluster") {
        config = with(config, "cluster", json!({"url": "redis://me:hunter2@127.0.0.1:1/0"}));
    }
    let marketd = Marketd::with_config(&config);
    let answer = get(marketd.addr(), "/page/config.json");
    if !HAS_PAGE {
        return assert_eq!(answer.status, 404);
    }
    check_file(marketd.addr(), "/page/config.json", &answer);
    let told = answer.json();
    assert_eq!(
        (&told["limits"]["streams"], &told["sources"][0]["id"]),
        (&json!(77), &json!("fake"))
    );
    assert!(!answer.text().contains("hunter2"));
}

#[test]
fn the_base_path_without_its_slash_leads_to_it() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let config = with(config(&[source("fake", &exchange)]), "basePath", json!("/deep/base"));
    let marketd = start_at(&config, "/deep/base");
    for (target, location) in
        [("/deep/base", "base/"), ("/deep/base?x=1&y", "base/?x=1&y"), ("/deep/b%61se", "b%61se/")]
    {
        for accept in ["Accept: text/html", "X: 1"] {
            let answer = get_with(marketd.addr(), target, accept);
            assert_eq!(answer.status, 308, "{target}");
            assert_eq!(answer.header("Location"), Some(location), "{target}");
        }
    }
    for target in ["/deep/bas", "/deep/basex", "/deep/", "/deep/base//"] {
        assert_eq!(get(marketd.addr(), target).status, 404, "{target}");
    }
}

#[test]
fn a_listener_without_quotes_has_an_index_and_no_page() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let config =
        with(config(&[source("fake", &exchange)]), "ecosystemListen", json!("127.0.0.1:0"));
    let marketd = start(&config);
    let browser = format!("Accept: {BROWSER}");
    let index = get_with(marketd.ecosystem_addr(), "/", &browser);
    assert!(paths(&index).contains(&"/api/ecosystem/chart".to_string()));
    assert_eq!(get(marketd.ecosystem_addr(), "/page/app.js").status, 404);
    let page = get_with(marketd.addr(), "/", &browser);
    assert_eq!(page.text().starts_with("<!doctype html>"), HAS_PAGE);
}
