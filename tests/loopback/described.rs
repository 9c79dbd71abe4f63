//! The description at `/openapi.json` against what marketd really answers, and against the errors
//! and parameters that its source names.

use crate::loopback::contract::*;
use crate::loopback::page::paths as index_paths;
use crate::loopback::setup::*;
use crate::support::*;
use regex_lite::{Captures, Regex};
use serde_json::json;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

/// Looks at the addresses, from the line that names them to the described response of every one: as many as
/// fit into the promised three seconds of an idle machine, where it takes a twentieth of them. On
/// a busy one each look takes longer, and what is looked at does no more meanwhile.
const PROMISED: usize = 1000;

/// Whether what is for people is built in.
const HAS_PAGE: bool = cfg!(feature = "page");

/// A response that the document describes.
struct Described {
    path: &'static str,
    /// `200`, or `default`.
    status: &'static str,
    response: &'static Json,
}

/// All responses of all paths.
fn responses() -> Vec<Described> {
    let schemas = schemas(Decimals::Numbers);
    let of_path = |path: &'static str| {
        let responses = &operation(path)["responses"];
        let resolved = move |status| schemas.resolve(&responses[status]);
        responses.keys().into_iter().map(move |status| Described {
            path,
            status,
            response: resolved(status),
        })
    };
    document()["paths"].keys().into_iter().flat_map(of_path).collect()
}

/// The examples of its body, each with its target.
fn examples_of(response: &'static Json) -> Vec<(&'static str, &'static Json)> {
    let content = response.get("content").and_then(|it| it.get("application/json"));
    let Some(examples) = content.and_then(|it| it.get("examples")) else {
        return Vec::new();
    };
    let one = |name: &str| {
        let example = &examples[name];
        let target = example["summary"].text().and_then(|it| it.strip_prefix("GET "));
        (target.expect("a target"), &example["value"])
    };
    examples.keys().into_iter().map(one).collect()
}

/// The targets of all examples of a good answer.
pub fn good_targets() -> Vec<&'static str> {
    let good = responses().into_iter().filter(|it| it.status == "200");
    good.flat_map(|it| examples_of(it.response)).map(|(target, _)| target).collect()
}

#[test]
fn every_answer_is_as_it_is_described_and_every_example_is_an_answer() {
    let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
    let addr = marketd.addr();
    let looks = Cell::new(0);
    let look_for = |target: &str, wanted: &dyn Fn(&Response) -> bool| {
        await_answer(addr, target, |answer| {
            looks.set(looks.get() + 1);
            assert!(looks.get() <= PROMISED, "{target}");
            wanted(answer)
        })
    };
    look_for("/health", &|it| it.exact()["status"] == "ok");
    for interval in ["1m", "1h", "1d"] {
        let target = format!("/api/ecosystem/chart?symbol=BTC/USDT&interval={interval}");
        look_for(&target, &|it| it.status == 200 && it.exact().items().len() == 500);
    }
    let mut seen = BTreeSet::new();
    for Described { path, status, response } in responses() {
        for (target, value) in examples_of(response) {
            let has_304 = operation(path)["responses"].get("304").is_some();
            let has_tag = has_304 && status == "200";
            let answer = look_for(target, &|answer| {
                let is_good = answer.status == 200;
                is_good == (status == "200") && answer.header("ETag").is_some() == has_tag
            });
            common(&answer);
            as_described(&answer);
            let schema = &response["content"]["application/json"]["schema"];
            let faults = schemas(decimals_of(target)).faults(schema, value);
            assert!(faults.is_empty(), "the example of {target}: {faults:#?}");
            // What does not depend on the time is the same to the last byte.
            if status != "200" {
                assert_eq!(answer.exact(), *value, "{target}");
            }
            seen.insert((path, answer.status));
            if answer.header("ETag").is_some() {
                // A poll may come in between; then the tag is another one.
                let unchanged = eventually(LONG, || {
                    let tag = get(addr, target).header("ETag").unwrap_or("*").to_string();
                    let answer = get_with(addr, target, &format!("If-None-Match: {tag}"));
                    Some(answer).filter(|answer| answer.status == 304)
                });
                as_described(&unchanged);
            }
        }
    }
    for target in ["/metrics", "/openapi.json", "/page/page.css", "/page/config.json", "/udf/time"]
    {
        // A build without the page describes no address of it.
        if let Some(path) = path_of(target) {
            as_described(&get(addr, target));
            seen.insert((path, 200));
        }
    }
    // A stream has no end.
    as_described(&head(addr, "/api/v1/stream?symbols=BTC/USDT"));
    seen.insert(("/api/v1/stream", 200));
    // Each path has been asked for, and answers what is asked for the first time, too.
    for path in document()["paths"].keys() {
        assert!(seen.contains(&(path, 200)), "{path} has no example");
    }
    for (raw, status) in [
        ("POST /health HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        ("BREW /health HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        ("GET /health HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        ("GET /health HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n", 417),
        ("GET /health HTTP/1.1\r\n\r\n", 400),
    ] {
        let answer = request(addr, raw);
        assert_eq!(answer.status, status, "{raw}");
        as_described(&answer);
    }
}

#[test]
fn answers_under_a_rate_limit_are_as_they_are_described() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let targets = [&good_targets()[..], &["/metrics", "/api/ecosystem/market/none"]].concat();
    let limits = json!({ "requestsPerMinute": 1, "requestBurst": targets.len() });
    let marketd = limited(&exchange, limits);
    let mut statuses = BTreeSet::new();
    for target in [&targets[..]; 2].concat() {
        let answer = get(marketd.addr(), target);
        statuses.insert(answer.status);
        let path = path_of(target).expect("it is described");
        let is_limited = operation(path)["responses"].get("429").is_some();
        assert_eq!(answer.header("RateLimit-Remaining").is_some(), is_limited, "{target}");
        as_described(&answer);
    }
    assert!(statuses.is_superset(&BTreeSet::from([200, 404, 429])), "{statuses:?}");
}

#[test]
fn what_is_not_there_yet_is_described_too() {
    let nobody = tracking("gone", &Binance::empty(), &["BTC/USDT"]);
    let nobody = with(nobody, "url", "http://127.0.0.1:9".into());
    let marketd = Marketd::with_config(config(&[nobody]));
    for (target, status) in [
        ("/health", 503),
        ("/health/live", 200),
        ("/health/ready", 503),
        ("/api/ecosystem/chart?symbol=BTCUSDT", 503),
        ("/api/v1/quotes?symbols=BTCUSDT,x!", 200),
        ("/api/v1/categories/usdt/markets", 200),
        ("/api/ecosystem/market", 200),
        ("/api/ecosystem/market/BTC-USDT", 200),
        ("/api/v1/metrics", 200),
    ] {
        let answer = get(marketd.addr(), target);
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
        as_described(&answer);
    }
    for (target, status, code) in [
        ("/api/v1/quotes/BTC/USDT", 503, "quote_not_ready"),
        ("/api/v1/quotes/ETH/USDT", 404, "symbol_not_found"),
    ] {
        error(&get(marketd.addr(), target), status, code, Some("symbol"));
    }
    let both = read(marketd.addr(), "/api/v1/quotes?symbols=BTCUSDT,ETHUSDT");
    assert_eq!(both["errors"].column("code"), ["quote_not_ready", "symbol_not_found"]);
    assert!(get(marketd.addr(), "/health").header("Retry-After").is_some());
}

/// The source files of the addresses, without their tests.
fn sources(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the source") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                let code = text.split("#[cfg(test)]\nmod tests").next();
                found.push(code.unwrap_or_default().to_string());
            }
        }
    }
    found
}

/// Statuses and codes of all errors that the source makes. Where another error is passed on, there is no
/// literal.
fn codes_of_source() -> BTreeSet<(u16, String)> {
    let made = r#"Error::(?:bad\(|(?:new|fixed)\(\s*([0-9]+),)\s*"([a-z_]+)""#;
    let made = Regex::new(made).expect("a pattern");
    let code = ["src/core/api", "src/http"].into_iter().flat_map(sources).collect::<String>();
    let status =
        |it: &Captures<'_>| it.get(1).map_or(400, |it| it.as_str().parse().expect("digits"));
    made.captures_iter(&code).map(|it| (status(&it), it[2].to_string())).collect()
}

/// What the document is made of, which has each error once.
#[test]
fn every_error_of_the_source_is_described_and_no_other() {
    let described = Json::parse(include_str!("../../src/core/api/openapi.json")).expect("JSON");
    let (errors, others) = (&described["errors"], described["responses"]["Other"].to_string());
    let mut found = BTreeSet::new();
    let each = errors.keys().into_iter().map(|name| (name, &errors[name]));
    for (name, statuses) in each.chain([("everyError", &described["everyError"])]) {
        for status in statuses.keys() {
            for code in statuses[status].texts() {
                found.insert((status.parse().expect("a status"), code.to_string()));
                let is_named = others.contains(&format!("{status} `{code}`"));
                assert!(name != "Error" || is_named, "{code} is not told of every address");
            }
        }
    }
    assert_eq!(found, codes_of_source());
}

/// Client generators keep a plain object; they drop what `allOf` adds to it, and a constant.
#[test]
fn every_schema_of_an_error_is_a_plain_object() {
    let all = components("schemas");
    let is_error = |name: &&str| {
        let members = all[*name].get("properties").map(Json::keys).unwrap_or_default();
        members == ["status", "code", "message", "param"]
    };
    let errors: Vec<&str> = all.keys().into_iter().filter(is_error).collect();
    assert!(errors.len() > 12, "{errors:?}");
    for name in errors {
        let (schema, text) = (&all[name], all[name].to_string());
        assert_eq!(schema["type"], "object", "{text}");
        assert!(!text.contains("allOf") && !text.contains("const"), "{text}");
        assert_eq!(schema["properties"]["status"]["type"], "integer", "{text}");
        assert_eq!(schema["required"].items().len(), 4, "{text}");
    }
}

/// The address of a path below its server.
fn target_of(path: &str, server: &str) -> String {
    let path = path.replace("{categoryId}", "usdt").replace("{file}", "app.js");
    let path = path.replace("{symbol}", "BTC-USDT").replace("{id}", "BTC-USDT");
    format!("{}{path}", server.trim_end_matches('/'))
}

/// Every address of a document is there, where it says, and nowhere else; the index names the same. Returns
/// its paths.
#[track_caller]
fn check_addresses(addr: SocketAddr, base: &str, bases: [&str; 2]) -> BTreeSet<String> {
    let document = get(addr, &format!("{base}/openapi.json")).exact();
    let paths = &document["paths"];
    let mut all = BTreeSet::new();
    for path in paths.keys() {
        let servers = paths[path].get("servers").unwrap_or(&document["servers"]);
        let server = servers[0]["url"].text().expect("a server").trim_end_matches('/');
        all.insert(format!("{server}{path}"));
        let target = target_of(path, server);
        assert_ne!(get(addr, &target).status, 404, "{target} is not there");
        // What is common to both services is below both.
        let others = bases.into_iter().filter(|it| *it != server && path.starts_with("/api/"));
        for other in others.chain(["/x", "/ax", "/"]) {
            let target = format!("{other}{}", target_of(path, ""));
            assert_eq!(get(addr, &target).status, 404, "{target} is there");
        }
    }
    let index = index_paths(&get(addr, &format!("{base}/")));
    assert_eq!(index.into_iter().collect::<BTreeSet<_>>(), all);
    paths.keys().into_iter().map(str::to_string).collect()
}

#[test]
fn the_addresses_of_the_document_are_there_whatever_stands_in_front_of_them() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let plain = config(&[source("fake", &exchange)]);
    let mut all = BTreeSet::new();
    let with_bases = |[api, ecosystem]: [&str; 2]| {
        with(with(plain.clone(), "basePath", api.into()), "ecosystemBasePath", ecosystem.into())
    };
    for bases in [["", ""], ["/a", "/a"], ["/a/b", "/e"], ["", "/e"], ["/a", ""]] {
        let marketd = start_at(&with_bases(bases), bases[0]);
        for base in bases {
            all = check_addresses(marketd.addr(), base, bases);
        }
        let is_api = |path: &&String| path.starts_with("/api/v1/");
        assert!(all.iter().filter(is_api).count() > 4, "{all:?}");
    }
    // Each of two listeners has its own, and names them.
    let config = with(with_bases(["/a", "/e"]), "ecosystemListen", "127.0.0.1:0".into());
    let marketd = start_at(&config, "/a");
    let of_api = check_addresses(marketd.addr(), "/a", ["/a", "/e"]);
    let of_ecosystem = check_addresses(marketd.ecosystem_addr(), "/e", ["/a", "/e"]);
    for (addr, own) in [(marketd.addr(), &of_api), (marketd.ecosystem_addr(), &of_ecosystem)] {
        for (path, base) in
            (&all - own).iter().flat_map(|it| [(it.clone(), "/a"), (it.clone(), "/e")])
        {
            assert_eq!(get(addr, &target_of(&path, base)).status, 404, "{base}{path}");
        }
    }
    assert_eq!(&of_api | &of_ecosystem, all);
}

#[test]
fn every_parameter_of_the_source_is_described_and_no_other() {
    let schemas = schemas(Decimals::Numbers);
    let mut read: BTreeSet<String> = BTreeSet::new();
    // A build without the page describes no address of it.
    let is_built = |code: &String| HAS_PAGE || !code.starts_with("//! `/udf/");
    for code in sources("src/core/api").into_iter().filter(is_built) {
        for rest in code.split(".params([").skip(1) {
            let names = rest.split(']').next().unwrap_or_default();
            read.extend(names.split('"').skip(1).step_by(2).map(str::to_string));
        }
    }
    let mut described = BTreeSet::new();
    for path in document()["paths"].keys() {
        for parameter in operation(path).get("parameters").into_iter().flat_map(Json::items) {
            let parameter = schemas.resolve(parameter);
            let name = parameter["name"].text().expect("a name");
            match parameter["in"].text() {
                Some("query") => drop(described.insert(name.to_string())),
                Some("path") => assert!(path.contains(&format!("{{{name}}}")), "{path}"),
                _ => assert!(["If-None-Match", "Accept-Encoding", "Last-Event-ID"].contains(&name)),
            }
            if let Some(example) = parameter.get("example") {
                let faults = schemas.faults(&parameter["schema"], example);
                assert!(faults.is_empty(), "{path}: {faults:?}");
            }
        }
    }
    let (lacks, has) = (&read - &described, &described - &read);
    assert!(lacks.is_empty() && has.is_empty(), "openapi.json lacks {lacks:?} and has {has:?}");
}
