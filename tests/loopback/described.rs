//! The description at `/openapi.json` against what marketd really answers, and against the errors
//! and parameters that its source names.

use crate::loopback::setup::*;
use crate::support::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

/// Whether what is for people is built in.
const HAS_PAGE: bool = cfg!(feature = "page");

#[track_caller]
fn document(marketd: &Marketd) -> Value {
    let answer = get(marketd.addr(), "/openapi.json");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    answer.json()
}

/// The description of an answer of this status by an operation.
fn described<'a>(schemas: &Schemas<'a>, path: &str, status: u16) -> &'a Value {
    let responses = &schemas.0["paths"][path]["get"]["responses"];
    let found = responses.get(status.to_string());
    schemas.resolve(found.unwrap_or(&responses["default"]))
}

/// An answer is as the description of its path says: status, fields, body.
#[track_caller]
fn check_answer(schemas: &Schemas<'_>, path: &str, target: &str, answer: &Response) {
    let wanted = described(schemas, path, answer.status);
    let fields = wanted["headers"].as_object().expect("headers");
    for (name, field) in fields {
        let field = schemas.resolve(field);
        match answer.header(name) {
            Some(value) => {
                let faults = schemas.faults(&field["schema"], &Value::from(value));
                assert!(faults.is_empty(), "{target}: {name}: {faults:?}");
            }
            None => assert_ne!(field["required"], true, "{target}: {name} is missing"),
        }
    }
    // What OpenAPI says elsewhere, or what is the connection's.
    let own = ["content-type", "content-length", "connection", "transfer-encoding"];
    for (name, _) in &answer.headers {
        let known = fields.keys().any(|it| it.eq_ignore_ascii_case(name));
        let own = own.contains(&name.to_ascii_lowercase().as_str());
        assert!(known || own, "{target}: {name} is not described");
    }
    let Some(content) = wanted.get("content") else {
        return assert!(answer.body.is_empty(), "{target}: a body");
    };
    let found = answer.header("Content-Type").unwrap_or_default();
    let media = found.split(';').next().unwrap_or_default();
    let content = content.get(media).unwrap_or_else(|| panic!("{target}: {media:?} in {content}"));
    let body = match media {
        "application/json" => answer.json(),
        _ => Value::from(answer.text()),
    };
    let faults = schemas.faults(&content["schema"], &body);
    assert!(faults.is_empty(), "{target}: {faults:#?}");
}

/// Every target that an example names, with its path, its status and the body that it shows.
fn examples<'a>(schemas: &Schemas<'a>) -> Vec<(&'a str, u16, &'a str, &'a Value)> {
    let mut found = Vec::new();
    for (path, item) in schemas.0["paths"].as_object().expect("paths") {
        for (status, response) in item["get"]["responses"].as_object().expect("responses") {
            let content = &schemas.resolve(response)["content"]["application/json"];
            for example in content["examples"].as_object().into_iter().flat_map(|it| it.values()) {
                let target = example["summary"].as_str().and_then(|it| it.strip_prefix("GET "));
                let status = status.parse().expect("an example has a status");
                found.push((path.as_str(), status, target.expect("a target"), &example["value"]));
            }
        }
    }
    found
}

#[test]
fn every_answer_is_as_it_is_described_and_every_example_is_an_answer() {
    let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
    await_health(&marketd, "ok");
    let document = document(&marketd);
    let schemas = Schemas(&document);
    let examples = examples(&schemas);
    let mut seen = BTreeSet::new();
    for (path, status, target, value) in &examples {
        let has_304 = document["paths"][path]["get"]["responses"].get("304").is_some();
        let has_tag = has_304 && *status == 200;
        let answer = await_answer(marketd.addr(), target, |answer| {
            answer.header("ETag").is_some() == has_tag
        });
        assert_eq!(answer.status, *status, "{target}: {}", answer.text());
        check_answer(&schemas, path, target, &answer);
        let schema = &described(&schemas, path, *status)["content"]["application/json"]["schema"];
        let faults = schemas.faults(schema, value);
        assert!(faults.is_empty(), "the example of {target}: {faults:#?}");
        // What does not depend on the time is the same to the last byte.
        if *status != 200 {
            assert_eq!(answer.json(), **value, "{target}");
        }
        seen.insert((*path, *status));
        if let Some(tag) = answer.header("ETag") {
            // A poll may come in between; then the tag is another one.
            let unchanged = poll_until(LONG, || {
                let tag = get(marketd.addr(), target).header("ETag").map(str::to_string);
                let line = format!(
                    "GET {target} HTTP/1.1\r\nHost: x\r\nIf-None-Match: {}\r\n\r\n",
                    tag.unwrap_or_else(|| "*".into())
                );
                Some(request(marketd.addr(), line)).filter(|answer| answer.status == 304)
            });
            let unchanged = unchanged.unwrap_or_else(|| panic!("{target}: no 304 for {tag}"));
            check_answer(&schemas, path, target, &unchanged);
        }
    }
    let page = "/page/{file}";
    let files = [(page, "/page/page.css"), (page, "/page/config.json"), ("/udf/time", "/udf/time")];
    let files = files.into_iter().filter(|_| HAS_PAGE);
    let others = ["/metrics", "/openapi.json"].map(|target| (target, target));
    for (path, target) in others.into_iter().chain(files) {
        let answer = get(marketd.addr(), target);
        check_answer(&schemas, path, target, &answer);
        seen.insert((path, 200));
    }
    // A stream has no end.
    let (path, target) = ("/api/v1/stream", "/api/v1/stream?symbols=BTC/USDT");
    check_answer(&schemas, path, target, &head(marketd.addr(), target));
    seen.insert((path, 200));
    // Each path has been asked for, and answers what is asked for the first time, too.
    for path in document["paths"].as_object().expect("paths").keys() {
        assert!(seen.contains(&(path.as_str(), 200)), "{path} has no example");
    }
    for (raw, status) in [
        ("POST /health HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        ("BREW /health HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        ("GET /health HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        ("GET /health HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n", 417),
        ("GET /health HTTP/1.1\r\n\r\n", 400),
    ] {
        let answer = request(marketd.addr(), raw);
        assert_eq!(answer.status, status, "{raw}");
        check_answer(&schemas, "/health", raw, &answer);
    }
}

#[test]
fn answers_under_a_rate_limit_are_as_they_are_described() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let limits = serde_json::json!({ "requestsPerMinute": 1, "requestBurst": 14 });
    let marketd = start(&with(config(&[source("fake", &exchange)]), "limits", limits));
    await_health(&marketd, "ok");
    let document = document(&marketd);
    let schemas = Schemas(&document);
    let targets = [
        ("/api/v1/quotes/{symbol}", "/api/v1/quotes/BTCUSDT"),
        ("/api/v1/quotes", "/api/v1/quotes?symbols=BTCUSDT"),
        ("/api/v1/categories", "/api/v1/categories"),
        ("/api/ecosystem/market", "/api/ecosystem/market"),
        ("/api/ecosystem/market/{id}", "/api/ecosystem/market/none"),
        ("/api/ecosystem/chart", "/api/ecosystem/chart?symbol=BTCUSDT"),
        ("/api/v1/metrics", "/api/v1/metrics"),
        ("/metrics", "/metrics"),
    ];
    let mut statuses = BTreeSet::new();
    for (path, target) in targets.iter().cycle().take(2 * targets.len()) {
        let answer = get(marketd.addr(), target);
        statuses.insert(answer.status);
        assert!(answer.header("RateLimit-Remaining").is_some(), "{target}");
        check_answer(&schemas, path, target, &answer);
    }
    assert_eq!(statuses, BTreeSet::from([200, 404, 429]));
    let probe = get(marketd.addr(), "/health");
    assert_eq!(probe.status, 200);
    check_answer(&schemas, "/health", "/health", &probe);
}

#[test]
fn what_is_not_there_yet_is_described_too() {
    let nobody = tracking("gone", &Binance::empty(), &["BTC/USDT"]);
    let nobody = with(nobody, "url", "http://127.0.0.1:9".into());
    let marketd = Marketd::with_config(config(&[nobody]));
    let document = document(&marketd);
    let schemas = Schemas(&document);
    for (path, target, status) in [
        ("/health", "/health", 503),
        ("/health/live", "/health/live", 200),
        ("/health/ready", "/health/ready", 503),
        ("/api/v1/quotes/{symbol}", "/api/v1/quotes/BTCUSDT", 503),
        ("/api/v1/quotes", "/api/v1/quotes?symbols=BTCUSDT,x!", 200),
        ("/api/v1/categories/{categoryId}/markets", "/api/v1/categories/usdt/markets", 200),
        ("/api/ecosystem/market", "/api/ecosystem/market", 200),
        ("/api/ecosystem/market/{id}", "/api/ecosystem/market/BTC-USDT", 200),
        ("/api/v1/metrics", "/api/v1/metrics", 200),
    ] {
        let answer = get(marketd.addr(), target);
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
        check_answer(&schemas, path, target, &answer);
    }
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

/// The text between the first quotes.
fn literal(text: &str) -> &str {
    text.split('"').nth(1).unwrap_or_default()
}

/// Statuses and codes of all errors that the source makes.
fn codes_of_source() -> BTreeSet<(u16, String)> {
    let mut codes = BTreeSet::new();
    for code in ["src/core/api", "src/http"].into_iter().flat_map(sources) {
        for (begin, fixed) in
            [("Error::bad(", Some(400)), ("Error::new(", None), ("Error::fixed(", None)]
        {
            for rest in code.split(begin).skip(1) {
                let rest = rest.trim_start();
                let (status, rest) = match fixed {
                    Some(status) => (Some(status), rest),
                    None => match rest.split_once(',') {
                        Some((status, rest)) => (status.trim().parse().ok(), rest.trim_start()),
                        None => (None, rest),
                    },
                };
                // Where another error is passed on, there is no literal.
                if let Some(status) = status.filter(|_| rest.starts_with('"')) {
                    codes.insert((status, literal(rest).to_string()));
                }
            }
        }
    }
    codes
}

#[test]
fn every_error_of_the_source_is_described_and_no_other() {
    let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
    let document = document(&marketd);
    let schemas = Schemas(&document);
    let codes = codes_of_source();
    assert!(codes.len() > 25, "{codes:?}");
    // As the schema of all errors lists them.
    let listed = |name: &str| -> BTreeSet<String> {
        let values = document["components"]["schemas"]["Error"]["properties"][name]["enum"].clone();
        let values = values.as_array().expect("a list").clone();
        values.iter().map(|it| it.to_string().trim_matches('"').to_string()).collect()
    };
    let named: BTreeSet<String> = codes.iter().map(|(_, code)| code.clone()).collect();
    assert_eq!(listed("code"), named);
    let statuses: BTreeSet<String> = codes.iter().map(|(status, _)| status.to_string()).collect();
    assert_eq!(listed("status"), statuses);
    // As the answers of the paths list them: by status, or in the words of `default`.
    let mut found = BTreeSet::new();
    for item in document["paths"].as_object().expect("paths").values() {
        for (status, response) in item["get"]["responses"].as_object().expect("responses") {
            let response = schemas.resolve(response);
            let schema = &response["content"]["application/json"]["schema"];
            let is_default = status == "default";
            let codes = schemas.resolve(schema)["properties"]["code"]["enum"].as_array();
            if let Some(codes) = codes.filter(|_| !is_default) {
                let codes = codes.iter().filter_map(Value::as_str);
                found.extend(codes.map(|code| (status.parse().unwrap_or(0), code.to_string())));
            }
            if is_default {
                let text = response["description"].as_str().unwrap_or_default();
                let mut status = 0;
                for word in text.split([' ', ',', ':', ';', '.', '`', '(']) {
                    match word.parse() {
                        Ok(number) => status = number,
                        Err(_) if word.contains('_') || word == "internal" => {
                            found.insert((status, word.to_string()));
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }
    assert_eq!(found, codes);
}

/// Client generators keep a plain object; they drop what `allOf` adds to it, and a constant.
#[test]
fn every_schema_of_an_error_is_a_plain_object_of_its_status() {
    let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
    let document = document(&marketd);
    let schemas = Schemas(&document);
    let mut count = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (status, response) in item["get"]["responses"].as_object().expect("responses") {
            let Ok(number) = status.parse::<u16>() else {
                continue;
            };
            let response = schemas.resolve(response);
            let is_error = number >= 400 && !path.starts_with("/health");
            if !is_error {
                continue;
            }
            let schema = schemas.resolve(&response["content"]["application/json"]["schema"]);
            let text = schema.to_string();
            assert_eq!(schema["type"], "object", "{path} {status}: {text}");
            assert!(!text.contains("allOf") && !text.contains("const"), "{text}");
            let own = &schema["properties"]["status"];
            assert_eq!(own["type"], "integer", "{text}");
            assert_eq!(own["enum"], serde_json::json!([number]), "{text}");
            assert_eq!(schema["required"].as_array().map(Vec::len), Some(4));
            count += 1;
        }
    }
    assert!(count > 15, "{count} errors");
}

/// Every address of the document is one: what it says stands in front of it, does. Returns their paths.
#[track_caller]
fn check_addresses(document: &Value, addr: SocketAddr) -> BTreeSet<String> {
    let paths = document["paths"].as_object().expect("paths");
    for (path, item) in paths {
        let servers = item.get("servers").unwrap_or(&document["servers"]);
        let base = servers[0]["url"].as_str().expect("a server");
        let target = path
            .replace("{categoryId}", "usdt")
            .replace("{file}", "app.js")
            .replace("{symbol}", "BTC-USDT")
            .replace("{id}", "BTC-USDT");
        let target = format!("{}{target}", base.trim_end_matches('/'));
        assert_ne!(get(addr, &target).status, 404, "{target} is not there");
    }
    paths.keys().cloned().collect()
}

/// Whether this is health, and says `ok`.
fn is_well(answer: &Response) -> bool {
    answer.text().starts_with(r#"{"status":"ok""#)
}

#[test]
fn the_addresses_of_the_document_are_there_whatever_stands_in_front_of_them() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let plain = config(&[source("fake", &exchange)]);
    let mut all = BTreeSet::new();
    for (api, ecosystem) in [("", ""), ("/a", "/a"), ("/a/b", "/e"), ("", "/e"), ("/a", "")] {
        let config = with(plain.clone(), "basePath", api.into());
        let config = with(config, "ecosystemBasePath", ecosystem.into());
        let marketd = Marketd::with_config(&config);
        await_answer(marketd.addr(), &format!("{api}/health"), is_well);
        for base in [api, ecosystem] {
            let document = get(marketd.addr(), &format!("{base}/openapi.json")).json();
            all = check_addresses(&document, marketd.addr());
            let is_api = |path: &&String| path.starts_with("/api/v1/");
            assert!(all.iter().filter(is_api).count() > 4, "{all:?}");
        }
    }
    // Each of two listeners names its own.
    let config = with(plain, "basePath", "/a".into());
    let config = with(config, "ecosystemBasePath", "/e".into());
    let marketd = Marketd::with_config(with(config, "ecosystemListen", "127.0.0.1:0".into()));
    let (api, ecosystem) = (marketd.addr(), marketd.ecosystem_addr());
    await_answer(api, "/a/health", is_well);
    let document = get(api, "/a/openapi.json").json();
    let of_api = check_addresses(&document, api);
    let document = get(ecosystem, "/e/openapi.json").json();
    let of_ecosystem = check_addresses(&document, ecosystem);
    let is_of = |name: &str| {
        let paths = all.iter().filter(move |path| path.starts_with(name)).cloned();
        paths.collect::<BTreeSet<String>>()
    };
    assert_eq!(&all - &of_api, is_of("/api/ecosystem/"));
    let only_of_api = [is_of("/api/v1/"), is_of("/udf/"), is_of("/page/")];
    assert_eq!(&all - &of_ecosystem, only_of_api.into_iter().flatten().collect());
}

#[test]
fn every_parameter_of_the_source_is_described_and_no_other() {
    let marketd = Marketd::start(&["--demo", "--data", ":memory:"]);
    let document = document(&marketd);
    let schemas = Schemas(&document);
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
    for (path, item) in document["paths"].as_object().expect("paths") {
        let parameters = item["get"]["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            let parameter = schemas.resolve(parameter);
            let name = parameter["name"].as_str().expect("a name").to_string();
            match parameter["in"].as_str() {
                Some("query") => drop(described.insert(name)),
                Some("path") => assert!(path.contains(&format!("{{{name}}}")), "{path}"),
                _ => assert!(
                    ["If-None-Match", "Accept-Encoding", "Last-Event-ID"].contains(&name.as_str()),
                    "{name}"
                ),
            }
            if let Some(example) = parameter.get("example") {
                let faults = schemas.faults(&parameter["schema"], example);
                assert!(faults.is_empty(), "{path}: {faults:?}");
            }
        }
    }
    assert_eq!(described, read);
}
