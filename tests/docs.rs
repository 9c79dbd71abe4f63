//! The README and the pages of `src/docs`: every link leads somewhere, every example gets the response that
//! it shows, and every list names what there is.
//!
//! The configuration's keys and examples are tested beside the code that reads them.

use crate::loopback::contract::{components, document};
use crate::support::manual::{commands, matches, page};
use crate::support::*;
use marketd::core::CloseReason;
use marketd::http::unpacked;
use marketd::log_targets;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[track_caller]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

/// The README, and every page with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let all = std::fs::read_dir(file("src/docs")).expect("the pages are there");
    let all = all.map(|page| page.expect("a page").path());
    let pages = all.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let mut paths: Vec<PathBuf> = pages.chain([file("README.md")]).collect();
    paths.sort();
    assert!(paths.len() > 7, "{paths:?}");
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// A text without its blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The places that headings can be reached at: `## Slow readers` at `#slow-readers`.
fn anchors(text: &str) -> Vec<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let words = line.trim_start_matches('#').trim().to_lowercase();
        words.chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// The targets of a page's links, and the labels of those that are defined at its end.
fn links(text: &str) -> Vec<(Option<String>, String)> {
    let prose = prose(text);
    let mut links: Vec<_> = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| (None, target.to_string()))
        .collect();
    for line in prose.lines().filter(|line| line.starts_with('[')) {
        if let Some((label, target)) = line.split_once("]: ") {
            links.push((Some(format!("{label}]")), target.to_string()));
        }
    }
    links
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let module = read(&file("src/docs/mod.rs"));
    let mut seen = 0;
    for (path, text) in pages() {
        for (label, target) in links(&text) {
            seen += 1;
            let (name, heading) = target.split_once('#').unwrap_or((&target, ""));
            let place = format!("{}: {target}", path.display());
            let to = match name {
                "" => path.clone(),
                name => path.parent().expect("a file has a folder").join(name),
            };
            assert!(to.is_file(), "{place}: there is no such file");
            let found = heading.is_empty() || anchors(&read(&to)).contains(&heading.to_string());
            assert!(found, "{place}: there is no such heading");
            // `cargo doc` would leave a link to a file as it is, and it would lead nowhere.
            let documented = path.ends_with("README.md") || target.starts_with('#');
            // A private module has no page in the documentation: its link leads to its source.
            let source = format!("../../../src/marketd/{}.html", name.trim_start_matches("../"));
            let is_defined = |at: &str| {
                let defined = |label: &String| format!("#[doc = \"{label}: {at}");
                label.as_ref().map(defined).is_some_and(|it| module.contains(&it))
            };
            let in_module = is_defined("crate") || is_defined(&source);
            assert!(documented || in_module, "{place}: src/docs/mod.rs does not define it");
        }
    }
    assert!(seen > 20, "{seen} links");
}

#[test]
fn every_request_gets_the_response_that_is_shown() {
    assert!(matches("{\"a\":1, ... ,\"b\":-2.5}\n", "{\"a\":7,\"c\":[],\"b\":0}"));
    assert!(!matches("{\"a\":1}", "{\"a\":1,\"b\":2}"));
    assert!(!matches("{\"a\":1, ... }", "{\"b\":1}"));
    let marketd = Marketd::start(&["--data", ":memory:"]);
    let mut seen = 0;
    for (path, text) in pages() {
        for (command, output) in commands(&text) {
            let target = (command.strip_prefix("curl ").unwrap_or_default())
                .trim_start_matches("-i ")
                .trim_matches('\'')
                .strip_prefix("http://127.0.0.1:8080");
            let Some(target) = target else { continue };
            seen += 1;
            // The pages describe marketd with all features.
            let is_page = target == "/" || target.starts_with("/udf/");
            if is_page && !cfg!(feature = "page") {
                continue;
            }
            let (head, body) = match command.contains(" -i ") {
                true => output.split_once("\n\n").expect("a head and a body"),
                false => ("", output.as_str()),
            };
            // The demo has all its candles a moment after the start.
            let mut last = String::new();
            let holds = poll_until(PATIENCE, || {
                let response = get(marketd.addr(), target);
                last = response.text().to_string();
                let fields = head.lines().filter_map(|line| line.split_once(": "));
                let has = |(name, value): (&str, &str)| {
                    response.header(name).is_some_and(|it| matches(value, it))
                };
                (matches(body, &last) && { fields }.all(has)).then_some(())
            });
            assert!(holds.is_some(), "{}: {command}\n{last}", path.display());
        }
    }
    assert!(seen >= 9, "{seen} requests");
}

/// The texts in backticks that stand in one column of a page's tables.
fn column(text: &str, column: usize) -> Vec<String> {
    let prose = prose(text);
    let rows = prose.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|line| line.split('|').nth(column + 1));
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.map(str::to_string).collect()
}

/// The texts of a list.
fn set(list: &Json) -> BTreeSet<String> {
    list.texts().into_iter().map(str::to_string).collect()
}

#[test]
fn the_tables_of_the_interface_are_complete() {
    let paths = document()["paths"].keys().into_iter();
    let mut paths: BTreeSet<String> = paths.map(str::to_string).collect();
    // The pages describe marketd with all features.
    let feed = ["config", "time", "symbols", "search", "history", "quotes"];
    paths.extend(feed.map(|name| format!("/udf/{name}")));
    paths.insert("/page/{file}".into());
    for page in ["README.md", "src/docs/http-api.md"] {
        let listed = column(&read(&file(page)), 0).into_iter();
        let listed = listed.filter(|it| it.starts_with('/')).map(|address| {
            let path = address.split('?').next().unwrap_or_default().split('/');
            let part = |part: &str| match part.strip_prefix(':') {
                Some(name) => format!("{{{name}}}"),
                None => part.to_string(),
            };
            path.map(part).collect::<Vec<_>>().join("/")
        });
        let listed = listed.collect::<BTreeSet<_>>();
        let (lacks, has) = (&paths - &listed, &listed - &paths);
        assert!(lacks.is_empty() && has.is_empty(), "{page} lacks {lacks:?} and has {has:?}");
    }
    let schemas = components("schemas");
    let codes = set(&schemas["Error"]["properties"]["code"]["enum"]);
    let page = page("http-api.md");
    let listed: BTreeSet<String> = column(&page, 2).into_iter().collect();
    assert!(listed.is_superset(&codes), "{:?}", codes.difference(&listed));
    let fields = set(&schemas["Quote"]["required"]);
    let listed: BTreeSet<String> = column(&page, 0).into_iter().collect();
    assert!(listed.is_superset(&fields), "{:?}", fields.difference(&listed));
}

#[test]
fn the_types_that_a_request_passes_are_in_the_files_that_are_named() {
    let page = page("architecture.md");
    let section = page.split("## The way of a request\n").nth(1).expect("it is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let (mut last, mut seen) = (String::new(), 0);
    for quoted in section.split('`').skip(1).step_by(2) {
        if quoted.ends_with(".rs") {
            let paths = ["src/core/clients", "src"].map(|root| file(root).join(quoted));
            let path = paths.iter().find(|path| path.is_file());
            let path = path.unwrap_or_else(|| panic!("{quoted}: there is no such file"));
            let text = read(path);
            let is_here = |kind| text.contains(&format!("{kind} {last}"));
            let is_defined = ["struct", "enum", "trait", "fn"].into_iter().any(is_here);
            assert!(is_defined, "{last} is not defined in {quoted}");
            seen += 1;
        } else if quoted.starts_with(|first: char| first.is_ascii_uppercase()) {
            last = quoted.rsplit("::").next().unwrap_or_default().to_string();
        }
    }
    assert!(seen > 15, "{seen} files");
}

#[test]
fn the_tables_of_operations_are_complete() {
    let page = page("operations.md");
    let listed = column(&page, 0);
    for name in CloseReason::NAMES {
        assert!(listed.iter().any(|it| it == name), "the reason {name}");
    }
    for target in log_targets::ALL {
        assert!(listed.iter().any(|it| it == target), "the log target {target}");
    }
    let reasons = &components("schemas")["Health"]["properties"]["reasons"];
    for code in set(&reasons["items"]["properties"]["code"]["enum"]) {
        assert!(listed.contains(&code), "the reason {code}");
    }
}

/// The schema that `marketd schema config` prints takes the configurations that are delivered, and tells what is
/// none.
#[test]
fn the_schema_of_the_configuration_takes_every_file() {
    let schema = Marketd::run(&["schema", "config"]).stdout;
    let schema = Json::parse(&schema).expect("it is JSON");
    let schemas = Schemas::new(&schema);
    let printed = Marketd::run(&["--print-config"]).stdout;
    let delivered = ["small", "large"].map(|it| read(&file(&format!("scripts/deploy/{it}.json"))));
    let market = json!({ "symbol": "A/B", "metadata": { "taker": "0.1", "maker": 0.2 } });
    let overridden = json!({ "ecosystem": { "markets": [market] } }).to_string();
    for text in delivered.into_iter().chain([printed, overridden]) {
        let config = Json::parse(&text).expect("it is JSON");
        assert_eq!(schemas.faults(&schema, &config), [""; 0], "{text}");
    }
    for wrong in [
        json!({ "listen": 8080 }),
        json!({ "limits": { "headBytes": 1 } }),
        json!({ "limits": { "headByte": 1000 } }),
        json!({ "sources": [{ "id": "a" }] }),
        json!({ "sources": [{ "dialect": "okx", "symbols": "BTC/USDT" }] }),
        json!({ "categories": {} }),
        json!({ "accessLog": 1 }),
        json!({ "ecosystem": { "markets": [{ "id": "x" }] } }),
        json!({ "cluster": { "url": 1 } }),
    ] {
        assert_eq!(schemas.faults(&schema, &wrong.into()).len(), 1);
    }
}

/// The schema that `marketd schema dialect` prints takes every dialect of this build, and tells what is
/// no dialect.
#[test]
fn the_schema_of_dialects_takes_every_file() {
    let schema = Json::parse(&unpacked(marketd::exchange::SCHEMA)).expect("it is JSON");
    let schemas = Schemas::new(&schema);
    for name in marketd::exchange::Dialect::names() {
        let text = read(&file(&format!("src/exchange/dialects/{name}.json")));
        let dialect: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(schemas.faults(&schema, &dialect.clone().into()), [""; 0], "{name}");
        for (member, wrong) in [
            ("budget", Value::Null),
            ("tickers", json!({ "fields": { "last": "lst" } })),
            ("candles", json!({ "rows": 1 })),
            ("more", json!(1)),
        ] {
            let mut faulty = dialect.clone();
            faulty[member] = wrong;
            assert_ne!(schemas.faults(&schema, &faulty.into()), [""; 0], "{name} {member}");
        }
    }
}
