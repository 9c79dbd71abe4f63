//! Tests of the way from words, variables and files to a configuration.

pub(crate) mod describe;
mod reference;

use super::check::tls_available;
use super::fault::Report;
use super::flags::Flags;
use super::proxy::Proxies;
use super::*;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Exchanges as a build without https could know them, and one that it cannot reach.
fn dialects() -> Dialects {
    let known = |name, url: &str, poll_ms, symbol_ms| KnownDialect {
        name: str::to_string(name),
        url: Url::parse(url).expect("well-formed"),
        poll_cost: Duration::from_millis(poll_ms),
        symbol_cost: Duration::from_millis(symbol_ms),
        has_list: true,
    };
    let built_in = vec![
        known("binance", "http://api.binance.com", 800, 0),
        known("okx", "http://www.okx.com", 100, 0),
        known("coinbase", "http://api.coinbase.com", 0, 100),
        known("kraken", "https://api.kraken.com", 1000, 0),
    ];
    Dialects {
        built_in,
        read: |file, text| match text {
            "fine" => Ok(KnownDialect {
                name: String::new(),
                url: Url::parse("http://files.com").expect("well-formed"),
                poll_cost: Duration::from_secs(20),
                symbol_cost: Duration::ZERO,
                has_list: true,
            }),
            _ => Err(vec![
                Fault::at(Some(file), Some(1), "a.b", "wrong"),
                Fault::at(Some(file), Some(7), "", "missing"),
            ]),
        },
    }
}

/// A file in the build's directory for the files of tests. It is deleted with the test.
struct TestFile(String);

impl TestFile {
    fn new(name: &str, text: &str) -> TestFile {
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tmp");
        std::fs::create_dir_all(&place).expect("the directory can be made");
        let path = place.join(format!("marketd-config-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("the directory can be written");
        TestFile(path.display().to_string())
    }
}

impl std::ops::Deref for TestFile {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // A failed test must not panic twice.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run(line: &[&str], variables: &[(&str, &str)]) -> Result<Command, Vec<String>> {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    let words = line.iter().map(OsString::from);
    let variable = |name: &str| variables.get(name).map(OsString::from);
    let lines = |faults: Vec<Fault>| faults.iter().map(Fault::to_string).collect();
    command(words, variable, &dialects()).map_err(lines)
}

fn loaded(line: &[&str], variables: &[(&str, &str)]) -> LoadedConfig {
    match run(line, variables) {
        Ok(Command::Run(loaded)) => loaded,
        other => panic!("{line:?} is {other:?}"),
    }
}

/// The configuration of a file alone, and its warnings.
fn from_json(name: &str, text: &str) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    let (mut config, mut report) = (Config::default(), Report::default());
    load::read_file(&mut config, name, text, &mut report);
    let (flags, proxies) = (Flags::default(), Proxies::default());
    load::finish(
        config,
        &flags,
        &proxies,
        (&dialects(), file::Files::Any),
        report,
    )
}

fn faults(text: &str) -> Vec<String> {
    let read = from_json("m.json", text);
    let faults = read.err().unwrap_or_default();
    faults.iter().map(Fault::to_string).collect()
}

#[test]
fn nothing_said_is_the_demo_exchange_with_the_defaults() {
    let found = loaded(&[], &[]);
    assert_eq!(found.log, "info");
    assert_eq!(found.warnings, []);
    let config = found.config;
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.data, Data::File(PathBuf::from("marketd.db")));
    assert_eq!(config.demo, Some(DemoConfig { seed: 1 }));
    assert_eq!(config.demo_source(), Some(0));
    assert_eq!(config.sources, [SourceConfig::of(DEMO)]);
    assert_eq!(config.sources[0].spoken(), "binance");
}

#[test]
fn an_unknown_key_that_belongs_elsewhere_tells_where() {
    let check = |text: &str, expected: &str| {
        assert_eq!(faults(text), [format!("m.json:1: {expected}")], "{text}");
    };
    check(
        "{ \"staleAfterMs\": 1 }",
        "staleAfterMs: unknown key: it is a key of sources[]",
    );
    check(
        "{ \"limits\": { \"listen\": \":1\" } }",
        "limits.listen: unknown key: it is a key of the file itself",
    );
    check(
        "{ \"keep\": 1 }",
        "keep: unknown key: it is a key of history.1m, history.1h, history.1d",
    );
    // What looks like a slip is more likely than another place.
    check(
        "{ \"categories\": [{ \"id\": \"a\", \"symbol\": [] }] }",
        "categories[0].symbol: unknown key, did you mean \"symbols\"?",
    );
}

#[test]
fn every_fault_of_a_file_names_its_place_and_what_was_expected() {
    let check = |text: &str, expected: &[&str]| assert_eq!(faults(text), expected, "{text}");
    check("{}", &[]);
    check("[]", &["m.json: expected an object, found a list"]);
    check("", &["m.json:1:0: not JSON: EOF while parsing a value"]);
    check(
        "{\n \"listen\": \":1\"\n \"data\": \"x\"\n}",
        &["m.json:3:2: not JSON: expected `,` or `}`"],
    );
    check(
        "{ \"lisetn\": 1, \"colour\": 2, \"base_path\": 3,\n \"\\u001b[31m\": 4 }",
        &[
            "m.json:1: lisetn: unknown key, did you mean \"listen\"?",
            "m.json:1: colour: unknown key",
            "m.json:1: base_path: unknown key, did you mean \"basePath\"?",
            "m.json:2: \"\\u001b[31m\": unknown key",
        ],
    );
    check(
        "{ \"listen\": \":1\",\n\n\"listen\": \":2\" }",
        &["m.json:3: listen: given twice, first on line 1"],
    );
    check(
        "{ \"listen\": 1,\n\"listen\": \":2\" }",
        &[
            "m.json:1: listen: expected ADDR:PORT or unix:PATH, found 1",
            "m.json:2: listen: given twice, first on line 1",
        ],
    );
    check(
        "{ \"listen\": 8080,\n\"ecosystemListen\": \"example.com:80\",\n\"basePath\": \"api\",\n\"data\": \"\",\n\"demo\": [],\n\"history\": null }",
        &[
            "m.json:1: listen: expected ADDR:PORT or unix:PATH, found 8080",
            "m.json:2: ecosystemListen: expected ADDR:PORT or unix:PATH, found \"example.com:80\" (no name but localhost is looked up)",
            "m.json:3: basePath: expected an empty text or a path like \"/x\" (letters, digits, '-', '.', '_' and '~' between the slashes), found \"api\"",
            "m.json:4: data: expected a file name or \":memory:\", found \"\"",
            "m.json:5: demo: expected an object, found a list",
            "m.json:6: history: expected an object, found null",
        ],
    );
    check(
        "{ \"listen\": \":1\", \"ecosystemListen\": \":1\" }",
        &[
            "m.json:1: ecosystemListen: 0.0.0.0:1 is taken by listen; leave it out to serve both there",
        ],
    );
    check("{ \"listen\": \":0\", \"ecosystemListen\": \":0\" }", &[]);
    check(
        "{ \"history\": { \"1m\": { \"keep\": 0, \"backfill\": -1 },\n \"5m\": {}, \"1h\": { \"keep\": 1000000001 } } }",
        &[
            "m.json:1: history.1m.keep: expected a whole number of candles from 1 to 1000000000, found 0",
            "m.json:1: history.1m.backfill: expected a whole number of candles from 0 to 1000000000, found -1",
            "m.json:2: history.5m: unknown key",
            "m.json:2: history.1h.keep: expected a whole number of candles from 1 to 1000000000, found 1000000001",
        ],
    );
    check(
        "{ \"demo\": { \"seed\": 1.5 } }",
        &["m.json:1: demo.seed: expected a whole number from 0 to 18446744073709551615, found 1.5"],
    );
}

#[test]
fn every_fault_of_a_source_is_told() {
    let check = |sources: &str, expected: &[&str]| {
        let text = format!("{{ \"sources\": {sources} }}");
        assert_eq!(faults(&text), expected, "{text}");
    };
    check("[]", &[]);
    check(
        "{}",
        &["m.json:1: sources: expected a list of at most 64 objects, found an object"],
    );
    check(
        "[5]",
        &["m.json:1: sources[0]: expected an object, found 5"],
    );
    check(
        "[\n{}]",
        &["m.json:2: sources[0].dialect: missing, expected the name of an exchange"],
    );
    check(
        "[{ \"dialect\": 5,\n\"pollMs\": \"fast\",\n\"staleAfterMs\": 0, \"timeoutMs\": 1e3 }]",
        &[
            "m.json:1: sources[0].dialect: expected the name of an exchange, found 5",
            "m.json:2: sources[0].pollMs: expected a whole number of milliseconds from 100 to 3600000, found \"fast\"",
            "m.json:3: sources[0].staleAfterMs: expected a whole number of milliseconds from 1 to 86400000, found 0",
            "m.json:3: sources[0].timeoutMs: expected a whole number of milliseconds from 100 to 600000, found 1e3",
        ],
    );
    check(
        "[{ \"dialect\": \"binanse\" }]",
        &[
            "m.json:1: sources[0].dialect: expected one of binance, okx, coinbase, kraken, demo, found \"binanse\", did you mean \"binance\"?",
        ],
    );
    check(
        "[{ \"dialect\": \"okx\" }, { \"dialect\": \"okx\" },\n{ \"dialect\": \"binance\", \"id\": \"okx\" }, { \"dialect\": \"okx\", \"id\": \"Okx 2\" }]",
        &[
            "m.json:1: sources[1].id: \"okx\" is taken by sources[0]",
            "m.json:2: sources[3].id: expected 1 to 32 of a-z, 0-9 and -, found \"Okx 2\"",
            "m.json:2: sources[2].id: \"okx\" is taken by sources[0]",
        ],
    );
    check(
        "[{ \"dialect\": \"okx\", \"symbols\": [\"BTC/USDT\",\n\"btc-usdt\", \"ETHUSDT\", 7],\n\"quoteAssets\": [\"usdt\", \"*\"] }]",
        &[
            "m.json:2: sources[0].symbols[1]: BTC/USDT is given twice, first as [0]",
            "m.json:2: sources[0].symbols[2]: expected BASE/QUOTE, found \"ETHUSDT\": the joined form does not say where the base ends",
            "m.json:2: sources[0].symbols[3]: expected BASE/QUOTE, found 7",
            "m.json:3: sources[0].quoteAssets: \"*\" means all, it stands alone",
        ],
    );
    check(
        "[{ \"dialect\": \"okx\", \"symbols\": \"BTC/USDT\", \"quoteAssets\": null, \"url\": \"www.okx.com\" }]",
        &[
            "m.json:1: sources[0].symbols: expected a list, each BASE/QUOTE, found \"BTC/USDT\"",
            "m.json:1: sources[0].quoteAssets: expected a list, each an asset like \"USDT\" or \"*\", found null",
            "m.json:1: sources[0].url: expected http://HOST or https://HOST, found \"www.okx.com\"",
        ],
    );
    check(
        "[{ \"dialect\": \"demo\", \"id\": \"x\", \"url\": \"http://a\" }]",
        &[
            "m.json:1: sources[0].id: the source of the demo exchange has the id \"demo\"",
            "m.json:1: sources[0].url: the demo exchange has no address of its own",
        ],
    );
    check(
        "[{ \"dialect\": \"demo\" }, { \"dialect\": \"binance\", \"id\": \"demo\" }]",
        &["m.json:1: sources[1].id: \"demo\" is taken by sources[0]"],
    );
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_says_that_it_cannot_speak_https() {
    let why = "this build cannot speak https (it is made without the feature \"tls\")";
    let text = "{ \"sources\": [ { \"dialect\": \"okx\",\n\"url\": \"https://x.com\" }, { \"dialect\": \"kraken\" },\n { \"dialect\": \"kraken\", \"id\": \"k\", \"url\": \"http://y.com\" } ] }";
    assert_eq!(
        faults(text),
        [
            format!(
                "m.json:2: sources[0].url: expected an http address, found https://x.com: {why}"
            ),
            format!(
                "m.json:2: sources[1].dialect: expected an http address, found https://api.kraken.com: {why}"
            ),
        ]
    );
    assert_eq!(
        run(&["--source", "kraken"], &[]),
        Err(vec![format!(
            "--source: expected an http address, found https://api.kraken.com: {why}"
        )])
    );
}

#[test]
fn a_file_of_roots_is_read_and_its_faults_name_the_key() {
    let pem = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
    let good = TestFile::new("roots.pem", pem);
    let text = |path: &str| format!("{{\n\"tls\": {{ \"caFile\": {path:?} }} }}");
    let (config, warnings) = from_json("m.json", &text(&good)).expect("good");
    assert_eq!(config.tls.ca_file.as_deref(), Some(&*good));
    assert_eq!(config.tls.ca_text, pem);
    assert_eq!(warnings.len(), usize::from(!tls_available()));
    let check = |path: &str, expected: &str| {
        let fault = format!("m.json:2: tls.caFile: {expected}");
        assert_eq!(faults(&text(path)), [fault], "{path}");
    };
    check(
        "/nowhere",
        "\"/nowhere\": cannot be read: No such file or directory (os error 2)",
    );
    check("", "expected a file name, found \"\"");
    let other = TestFile::new("key.pem", "-----BEGIN PRIVATE KEY-----\n");
    let name = format!("{:?}", &*other);
    check(&other, &format!("{name} holds no certificate in PEM form"));
    std::fs::write(&*other, [0x30, 0x82, 0xff]).expect("the file can be written");
    check(&other, &format!("{name}: not UTF-8"));
    assert!(faults("{ \"tls\": { \"caFile\": null } }").is_empty());
}

#[test]
fn proxies_come_from_the_environment_and_are_never_printed() {
    let line = [
        "--source",
        "binance",
        "--source",
        "okx=http://127.0.0.1:1",
        "--source",
        "okx=http://okx.corp",
        "--demo",
    ];
    let secret = "http://me:hunter2@proxy:3128";
    let variables = [("HTTP_PROXY", secret), ("NO_PROXY", "corp")];
    let config = loaded(&line, &variables).config;
    let through = |source: &SourceConfig| source.proxy.as_ref().map(Proxy::to_string);
    let found: Vec<_> = config.sources.iter().map(through).collect();
    assert_eq!(found, [Some("proxy:3128".to_string()), None, None, None]);
    assert!(!config.to_json().contains("hunter2"));
    assert!(!format!("{config:?}").contains("hunter2"));
    let plain = loaded(&line, &[]).config;
    assert_eq!(config.to_json(), plain.to_json());
    // Told once, and only where somebody needs it.
    let wrong = [("http_proxy", "socks5://me:hunter2@proxy:3128")];
    let expected = "http_proxy: expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (no other sort of proxy is spoken with)";
    assert_eq!(run(&line, &wrong), Err(vec![expected.to_string()]));
    assert!(run(&["--demo"], &wrong).is_ok());
}

#[test]
fn passwords_in_addresses_are_not_repeated() {
    let check = |flag: &str, expected: &str| {
        assert_eq!(
            run(&["--source", flag], &[]),
            Err(vec![format!("--source: {expected}")])
        );
    };
    let url = "expected an address without user, query and fragment, found";
    check(
        "okx=http://me:hunter2@okx.com/x",
        &format!("{url} \"http://(hidden) okx.com/x\""),
    );
    check(
        "okx=me:hunter2@okx.com",
        "expected http://HOST or https://HOST, found \"(hidden) okx.com\"",
    );
    let text = "{ \"sources\": [ { \"dialect\": \"okx\", \"url\": \"http://m:hunter2@x\" } ] }";
    let expected = format!("m.json:1: sources[0].url: {url} \"http://(hidden) x\"");
    assert_eq!(faults(text), [expected]);
}

#[cfg(feature = "tls")]
#[test]
fn a_build_with_tls_takes_https() {
    assert!(run(&["--source", "kraken"], &[]).is_ok());
}

#[test]
fn every_fault_of_categories_markets_and_limits_is_told() {
    let check = |text: &str, expected: &[&str]| assert_eq!(faults(text), expected, "{text}");
    check(
        "{ \"categories\": [ { \"id\": \"a\" }, {},\n{ \"id\": \"a\", \"name\": \"\", \"description\": 5, \"symbols\": [null] } ] }",
        &[
            "m.json:1: categories[1].id: missing, expected 1 to 64 of a-z, 0-9 and -",
            "m.json:2: categories[2].name: expected a text of 1 to 1024 bytes without control characters, found \"\"",
            "m.json:2: categories[2].description: expected a text or null, found 5",
            "m.json:2: categories[2].symbols[0]: expected BASE/QUOTE, found null",
            "m.json:2: categories[2].id: \"a\" is taken by categories[0]",
        ],
    );
    check(
        "{ \"ecosystem\": { \"markets\": [ { \"symbol\": \"BTC/USDT\" }, { \"symbol\": \"btc-usdt\" },\n{ \"symbol\": \"ETH/USDT\", \"id\": \"BTC-USDT\", \"isHot\": 1, \"status\": \"on\" }, {} ] } }",
        &[
            "m.json:1: ecosystem.markets[1].symbol: \"BTC/USDT\" is taken by ecosystem.markets[0]",
            "m.json:2: ecosystem.markets[2].isHot: expected true or false, found 1",
            "m.json:2: ecosystem.markets[2].status: expected true or false or null, found \"on\"",
            "m.json:2: ecosystem.markets[3].symbol: missing, expected BASE/QUOTE",
            "m.json:2: ecosystem.markets[2].id: \"BTC-USDT\" is taken by ecosystem.markets[0]",
        ],
    );
    let rules = |rules: &str| {
        format!(
            "{{\"ecosystem\": {{\"markets\": [{{\"symbol\": \"A/B\", \"metadata\": {rules}}}]}}}}"
        )
    };
    check(
        &rules(
            "{ \"taker\": 1, \"maker\": -0.0001, \"precision\": { \"amount\": 65, \"price\": 2.5 },\n\"limits\": { \"amount\": { \"min\": 2, \"max\": \"1.5\" }, \"cost\": { \"min\": -1, \"max\": \"x\" } } }",
        ),
        &[
            "m.json:1: ecosystem.markets[0].metadata.taker: expected a decimal fraction between -1 and 1 or null, found 1",
            "m.json:1: ecosystem.markets[0].metadata.precision.amount: expected a whole number from 0 to 64 or null, found 65",
            "m.json:1: ecosystem.markets[0].metadata.precision.price: expected a whole number from 0 to 64 or null, found 2.5",
            "m.json:2: ecosystem.markets[0].metadata.limits.cost.min: expected a decimal of 0 or more or null, found -1",
            "m.json:2: ecosystem.markets[0].metadata.limits.cost.max: expected a decimal of 0 or more or null, found \"x\"",
            "m.json:2: ecosystem.markets[0].metadata.limits.amount.max: expected at least min (2), found 1.5",
        ],
    );
    check(
        "{ \"limits\": { \"headTimeout\": 5, \"headBytes\": 100000,\n\"lanesPerSource\": 0, \"symbols\": 1 },\n\"sources\": [{ \"dialect\": \"okx\", \"symbols\": [\"A/B\", \"C/D\"] }] }",
        &[
            "m.json:1: limits.headTimeout: unknown key, did you mean \"headTimeoutMs\"?",
            "m.json:1: limits.headBytes: expected a whole number of bytes from 256 to 65536 (a head is held whole, by every connection that is slow to send it), found 100000",
            "m.json:2: limits.lanesPerSource: expected a whole number from 1 to 16 (exchanges count connections), found 0",
            "m.json:2: limits.symbols: expected at least the 2 symbols that the sources list, found 1",
        ],
    );
    check(
        "{ \"limits\": { \"requestLineBytes\": 20000, \"upstreamBodyBytes\": 1024 } }",
        &[
            "m.json:1: limits.requestLineBytes: expected at most headBytes (16384), found 20000",
            "m.json:1: limits.upstreamItemBytes: expected at most upstreamBodyBytes (1024), found 65536",
        ],
    );
    check(
        "{ \"limits\": { \"outputHighWaterBytes\": 2000000, \"outputTotalBytes\": 1048576 },\n\"trustedProxies\": [\"10.0.0.0/8\", \"10.0.0.0/33\", 7, \"::1\", \"::1/128\", \"h\"] }",
        &[
            "m.json:1: limits.outputHighWaterBytes: expected at most outputTotalBytes (1048576), found 2000000",
            "m.json:2: trustedProxies[1]: expected an address or a network like \"10.0.0.0/8\", found \"10.0.0.0/33\"",
            "m.json:2: trustedProxies[2]: expected an address or a network like \"10.0.0.0/8\", found 7",
            "m.json:2: trustedProxies[4]: ::1 is given twice, first as [3]",
            "m.json:2: trustedProxies[5]: expected an address or a network like \"10.0.0.0/8\", found \"h\"",
        ],
    );
}

#[test]
fn digits_in_a_text_are_good_wherever_a_decimal_is() {
    let metadata = r#"{ "precision": { "amount": "8" }, "taker": "0.001", "limits": { "cost": { "min": "5" } } }"#;
    let markets = format!(r#"[{{ "symbol": "A/B", "metadata": {metadata} }}]"#);
    let text = format!(r#"{{ "ecosystem": {{ "markets": {markets} }} }}"#);
    let (config, _) = from_json("m.json", &text).expect("no fault");
    let rules = &config.ecosystem.markets.expect("it is there")[0].rules;
    let decimals = [&rules.taker, &rules.cost.min].map(|it| it.as_ref().map(ToString::to_string));
    assert_eq!(rules.amount_places, Some(8));
    assert_eq!(decimals, [Some("0.001".into()), Some("5".into())]);
}

#[test]
fn what_may_be_null_says_so_when_it_is_wrong() {
    let expected = "expected a list of at most 1000000 objects or null, found 5";
    let found = faults("{ \"ecosystem\": { \"markets\": 5 } }");
    assert_eq!(found, [format!("m.json:1: ecosystem.markets: {expected}")]);
}

/// One of everything, each unlike its default.
const FULL: &str = r#"{
  "listen": "[::1]:81", "ecosystemListen": "localhost:82", "basePath": "/a/", "ecosystemBasePath": "/b", "data": ":memory:",
  "sources": [
    { "id": "one", "dialect": "binance", "url": "http://10.0.0.1:9/x", "symbols": ["btc_usdt"], "quoteAssets": ["usdt", "BTC"],
      "pollMs": 1000, "staleAfterMs": 20000, "frozenAfterMs": 400000, "timeoutMs": 6000 },
    { "dialect": "demo", "pollMs": 700 },
    { "dialect": "okx" } ],
  "history": { "1m": { "keep": 1000, "backfill": 1 }, "1d": { "keep": 100 } },
  "demo": { "seed": 18446744073709551615 },
  "categories": [ { "id": "c", "name": "C \"c\"\n", "symbols": ["X/Y"] } ],
  "ecosystem": { "markets": [ { "symbol": "BTC/USDT", "id": "b", "isTrending": true, "isHot": true, "icon": "/b.png", "status": false,
    "metadata": { "precision": { "amount": 8 }, "limits": { "cost": { "min": 0.00000001, "max": "12345678901234567890.5" } }, "taker": -0.001 } } ] },
  "trustedProxies": ["10.0.0.0/8", "fd00::/8", "192.0.2.1"],
  "limits": { "maxConnections": 7, "shutdownMs": 0, "requestsPerMinute": 600 }
}"#;

#[test]
fn what_is_printed_reads_back_as_the_same() {
    let check = |config: &Config| {
        let text = config.to_json();
        let (again, _) = from_json("printed", &text).expect("no fault");
        assert_eq!(&again, config, "{text}");
        assert_eq!(again.to_json(), text);
    };
    let text = FULL.replace("\\n", "");
    let (full, warnings) = from_json("m.json", &text).expect("no fault");
    assert_eq!(warnings, []);
    assert_eq!(full.sources[0].symbols, ["BTC/USDT"]);
    assert_eq!(full.base_path, "/a");
    assert_eq!(full.demo_source(), Some(1));
    assert_eq!(full.demo.map(|demo| demo.seed), Some(u64::MAX));
    assert_eq!(full.sources[1].stale_after, Duration::from_secs(5));
    assert_eq!(
        full.history.d1,
        Depth {
            keep: 100,
            backfill: 100
        }
    );
    assert_eq!(full.trusted_proxies.len(), 3);
    assert!(full.trusted_proxies[0].holds([10, 9, 8, 7].into()));
    check(&full);
    check(&loaded(&[], &[]).config);
    check(&loaded(&["--source", "okx", "--demo"], &[]).config);
    check(&loaded(&["--source", "okx", "--symbols", "A/B"], &[]).config);
}

#[test]
fn a_control_character_in_a_name_is_a_fault_that_shows_it_escaped() {
    assert_eq!(
        faults(FULL),
        [
            "m.json:10: categories[0].name: expected a text of 1 to 1024 bytes without control characters, found \"C \\\"c\\\"\\n\""
        ]
    );
}

#[test]
fn rules_of_the_log_may_stand_in_the_file() {
    let path = TestFile::new("log.json", "{ \"log\": \"source=debug\" }");
    let check = |line: &[&str], variables: &[(&str, &str)], expected: &str| {
        assert_eq!(loaded(line, variables).log, expected, "{line:?}");
    };
    check(&["--config", &path], &[], "info,source=debug");
    check(&["--config", &path, "--log", "warn"], &[], "warn");
    check(&["--config", &path], &[("RUST_LOG", "error")], "error");
    check(&[], &[], "info");
}

#[test]
fn flags_win_over_variables_over_the_file_over_defaults() {
    let path = TestFile::new(
        "order.json",
        "{ \"listen\": \":1\", \"ecosystemListen\": \":2\", \"data\": \"file.db\" }",
    );
    let check = |line: &[&str], variables: &[(&str, &str)], expected: [&str; 3]| {
        let config = loaded(line, variables).config;
        let ecosystem = config.ecosystem_listen.map(|it| it.to_string());
        let found = [
            config.listen.to_string(),
            ecosystem.unwrap_or_default(),
            config.data.to_string(),
        ];
        assert_eq!(found, expected, "{line:?} {variables:?}");
    };
    let variables = [
        ("MARKETD_CONFIG", &*path),
        ("MARKETD_LISTEN", ":3"),
        ("MARKETD_ECOSYSTEM_LISTEN", ":4"),
        ("MARKETD_DATA", "variable.db"),
    ];
    let flags = [
        "--listen",
        ":5",
        "--ecosystem-listen",
        ":6",
        "--data",
        "flag.db",
    ];
    check(&[], &[], ["127.0.0.1:8080", "", "marketd.db"]);
    check(
        &["--config", &path],
        &[],
        ["0.0.0.0:1", "0.0.0.0:2", "file.db"],
    );
    check(&[], &variables[..1], ["0.0.0.0:1", "0.0.0.0:2", "file.db"]);
    check(&[], &variables, ["0.0.0.0:3", "0.0.0.0:4", "variable.db"]);
    check(&flags, &variables, ["0.0.0.0:5", "0.0.0.0:6", "flag.db"]);
    check(
        &["--data", ":memory:"],
        &[("MARKETD_LISTEN", "")],
        ["127.0.0.1:8080", "", ":memory:"],
    );
    assert_eq!(loaded(&[], &[("RUST_LOG", "warn")]).log, "warn");
    for variable in ["warn", "loud"] {
        let loaded = loaded(&["--log", "debug"], &[("RUST_LOG", variable)]);
        assert_eq!(loaded.log, "debug");
    }
    // A flag makes the variable of no account, its faults too; the flag for the file wins as well.
    check(
        &["--listen", ":5"],
        &[("MARKETD_LISTEN", "x")],
        ["0.0.0.0:5", "", "marketd.db"],
    );
    check(
        &["--config", &path],
        &[("MARKETD_CONFIG", "/nowhere")],
        ["0.0.0.0:1", "0.0.0.0:2", "file.db"],
    );
}

#[test]
fn faults_of_flags_and_variables_are_told_beside_those_of_the_file() {
    let path = TestFile::new(
        "faulty.json",
        "{ \"listen\": \":1\",\n\"pollMs\": 5, \"sources\": 7 }",
    );
    let check = |line: &[&str], variables: &[(&str, &str)], expected: &[&str]| {
        let found = run(line, variables).expect_err("a fault");
        assert_eq!(found, expected, "{line:?} {variables:?}");
    };
    check(
        &["--listen", "x"],
        &[],
        &["--listen: expected ADDR:PORT or unix:PATH, found \"x\""],
    );
    check(
        &[],
        &[("MARKETD_LISTEN", "x")],
        &["MARKETD_LISTEN: expected ADDR:PORT or unix:PATH, found \"x\""],
    );
    check(
        &["--log", "loud"],
        &[],
        &["--log: expected off, error, warn, info, debug or trace, found \"loud\""],
    );
    check(
        &["--data", ""],
        &[],
        &["--data: expected a file name or \":memory:\", found \"\""],
    );
    check(
        &["--config", "/nowhere/m.json"],
        &[],
        &["/nowhere/m.json: cannot be read: No such file or directory (os error 2)"],
    );
    check(
        &["--wrong", "--config", &path, "--data="],
        &[("MARKETD_LISTEN", "y")],
        &[
            "--wrong: unknown option, see --help",
            "MARKETD_LISTEN: expected ADDR:PORT or unix:PATH, found \"y\"",
            "--data: expected a file name or \":memory:\", found \"\"",
            &format!(
                "{}:2: pollMs: unknown key: it is a key of sources[]",
                &*path
            ),
            &format!(
                "{}:2: sources: expected a list of at most 64 objects, found 7",
                &*path
            ),
        ],
    );
    check(
        &["--listen", ":1", "--ecosystem-listen", ":1"],
        &[],
        &["--ecosystem-listen: 0.0.0.0:1 is taken by listen; leave it out to serve both there"],
    );
}

#[test]
fn files_that_are_no_text_or_endless_are_told() {
    let check = |path: &str, expected: &str| {
        assert_eq!(
            run(&["--config", path], &[]),
            Err(vec![format!("{path}{expected}")])
        );
    };
    let path = TestFile::new("latin.json", "");
    std::fs::write(&*path, b"{\n\"listen\": \"\xe4\" }").expect("the directory can be written");
    check(&path, ":2: not UTF-8");
    std::fs::write(&*path, b"\xef\xbb\xbf{ \"x\": 1 }").expect("the directory can be written");
    check(&path, ":1: x: unknown key");
    check("/dev/zero", ": larger than 16777216 bytes");
    check("/", ": cannot be read: Is a directory (os error 21)");
}

#[test]
fn a_file_of_brackets_is_a_fault_and_no_overflow_of_the_stack() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let expected = "m.json: expected an object, found a list";
    assert_eq!(faults(&deep), [expected]);
    let expected = "m.json:1: sources[0]: expected an object, found a list";
    assert_eq!(faults(&format!("{{\"sources\": [{deep}]}}")), [expected]);
    let expected = "m.json:1:200000: not JSON: EOF while parsing a list";
    assert_eq!(faults(&"[".repeat(200_000)), [expected]);
}

/// 4000 files that are nearly good, from one seed.
#[test]
fn a_damaged_file_is_read_to_its_end_and_every_fault_is_one_line() {
    let mut state: u64 = 1;
    let mut random = |below: usize| {
        // Knuth's MMIX generator: its high bits are good enough to choose damage.
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let pieces = [
        "", "\"", "{", "}", "[", "]", ",", ":", "null", "-1", "1e999", "\\ud800", "\u{9b}",
        "\u{7f}", "x",
    ];
    let good = FULL.replace("\\n", "");
    for round in 0..4000 {
        let mut text = good.clone().into_bytes();
        for _ in 0..=random(3) {
            let from = random(text.len());
            let to = (from + random(12)).min(text.len());
            text.splice(from..to, pieces[random(pieces.len())].bytes());
        }
        for line in faults(&String::from_utf8_lossy(&text)) {
            assert!(!line.contains(char::is_control), "round {round}: {line:?}");
            assert!(line.starts_with("m.json"), "round {round}: {line:?}");
        }
    }
}

/// Id, dialect, url, symbols and quote assets of each source.
fn sources(config: &Config) -> Vec<String> {
    let each = config.sources.iter().map(|it| {
        let url = it.url.as_ref().map_or(String::new(), Url::to_string);
        let (symbols, assets) = (it.symbols.join(","), it.quote_assets.join(","));
        format!("{}|{}|{url}|{symbols}|{assets}", it.id, it.spoken())
    });
    each.collect()
}

#[test]
fn sources_come_from_flags_else_from_the_file_else_the_demo_exchange_runs() {
    let path = TestFile::new(
        "sources.json",
        "{ \"sources\": [ { \"dialect\": \"okx\", \"symbols\": [\"X/Y\"] } ], \"demo\": { \"seed\": 7 } }",
    );
    let check = |line: &[&str], demo: Option<u64>, expected: &[&str]| {
        let config = loaded(line, &[]).config;
        assert_eq!(sources(&config), expected, "{line:?}");
        assert_eq!(config.demo.map(|demo| demo.seed), demo, "{line:?}");
        assert_eq!(config.demo_source().is_some(), demo.is_some(), "{line:?}");
    };
    let demo = "demo|binance||BTC/USDT,ETH/USDT|*";
    check(&[], Some(1), &[demo]);
    check(&["--demo"], Some(1), &[demo]);
    check(
        &["--symbols", "sol-usdt, A/B,,A_B"],
        Some(1),
        &["demo|binance||SOL/USDT,A/B|"],
    );
    check(&["--config", &path], None, &["okx|okx||X/Y|"]);
    check(
        &["--config", &path, "--demo"],
        Some(7),
        &["okx|okx||X/Y|", demo],
    );
    check(
        &["--config", &path, "--source", "binance"],
        None,
        &["binance|binance|||"],
    );
    check(
        &[
            "--source",
            "binance",
            "--source",
            "okx=http://a:1/",
            "--source=binance=http://b",
            "--symbols",
            "A/B",
            "--demo",
        ],
        Some(1),
        &[
            "binance|binance||A/B|",
            "okx|okx|http://a:1|A/B|",
            "binance-2|binance|http://b|A/B|",
            demo,
        ],
    );
    check(&["--source", "demo", "--demo"], Some(1), &[demo]);
    check(
        &["--source", "demo", "--source", "okx"],
        Some(1),
        &[demo, "okx|okx|||"],
    );
}

#[test]
fn faults_of_source_flags_name_the_flag() {
    let path = TestFile::new("own.json", "{ \"sources\": [ { \"dialect\": \"okx\" } ] }");
    let check = |line: &[&str], expected: &[&str]| {
        assert_eq!(run(line, &[]).expect_err("a fault"), expected, "{line:?}");
    };
    let one_of = "expected one of binance, okx, coinbase, kraken, demo, found";
    check(
        &["--source", "ox", "--source", "binnance=http://a"],
        &[
            &format!("--source: {one_of} \"ox\", did you mean \"okx\"?"),
            &format!("--source: {one_of} \"binnance\", did you mean \"binance\"?"),
        ],
    );
    check(
        &["--source", ""],
        &["--source: expected DIALECT[=URL], found \"\""],
    );
    check(
        &["--source", "kraken=x"],
        &["--source: expected http://HOST or https://HOST, found \"x\""],
    );
    check(
        &["--source", "demo=http://a"],
        &["--source: the demo exchange has no address of its own"],
    );
    check(
        &["--source", "demo", "--source", "demo"],
        &["--source: \"demo\" is taken by sources[0]"],
    );
    check(
        &["--symbols", "BTCUSDT,A/B/C"],
        &[
            "--symbols: expected BASE/QUOTE, found \"BTCUSDT\": the joined form does not say where the base ends",
            "--symbols: expected BASE/QUOTE with 1 to 20 letters and digits on each side, found \"A/B/C\"",
        ],
    );
    check(
        &["--symbols", " ,"],
        &["--symbols: expected symbols like BTC/USDT, found none"],
    );
    check(
        &["--config", &path, "--symbols", "A/B"],
        &["--symbols: needs --source: the file's sources say their own symbols"],
    );
}

#[test]
fn what_is_unwise_is_warned_of() {
    let check = |text: &str, expected: &[&str]| {
        let (_, warnings) = from_json("m.json", text).expect("no fault");
        let warnings: Vec<String> = warnings.iter().map(Fault::to_string).collect();
        assert_eq!(warnings, expected, "{text}");
    };
    let source = |rest: &str| format!("{{ \"sources\": [ {{ {rest} }} ] }}");
    check(
        &source(
            "\"dialect\": \"okx\", \"pollMs\": 20000, \"frozenAfterMs\": 5000, \"timeoutMs\": 16000",
        ),
        &[
            "m.json:1: sources[0].pollMs: 20000 is not below staleAfterMs (15000): every quote turns stale between two polls",
            "m.json:1: sources[0].pollMs: 20000 is not below frozenAfterMs (5000): the source counts as frozen between two polls",
            "m.json:1: sources[0].timeoutMs: 16000 is above staleAfterMs (15000): quotes turn stale while one slow request is awaited",
        ],
    );
    check(
        &source("\"dialect\": \"binance\",\n\"pollMs\": 500"),
        &[
            "m.json:2: sources[0].pollMs: 500 is more than the limit of binance carries: polls are spaced to 800 ms",
        ],
    );
    check(
        &source(
            "\"dialect\": \"coinbase\", \"staleAfterMs\": 200, \"pollMs\": 100, \"timeoutMs\": 100, \"symbols\": [\"A/B\", \"C/D\"]",
        ),
        &[
            "m.json:1: sources[0].pollMs: 100 is more than the limit of coinbase carries: polls are spaced to 200 ms, and quotes turn stale between them",
        ],
    );
    check(
        "{ \"history\": { \"1m\": { \"keep\": 10, \"backfill\": 20 }, \"1h\": { \"keep\": 10 } },\n\"limits\": { \"candleSeries\": 5 } }",
        &[
            "m.json:1: history.1m.backfill: 20 is clipped to keep (10)",
            "m.json:2: limits.candleSeries: 5 is below the 6 series of the listed symbols: the last ones get no candles",
        ],
    );
    check(
        "{ \"trustedProxies\": [\"10.0.0.1\",\n\"0.0.0.0/0\"] }",
        &["m.json:2: trustedProxies[1]: 0.0.0.0/0 is everybody: each client may name any address"],
    );
}

#[test]
fn the_command_says_what_to_do() {
    assert!(matches!(run(&["--check"], &[]), Ok(Command::Check(_))));
    assert!(matches!(
        run(&["--print-config"], &[]),
        Ok(Command::PrintConfig(_))
    ));
    assert!(matches!(
        run(&["--check", "--print-config"], &[]),
        Ok(Command::PrintConfig(_))
    ));
    assert!(matches!(
        run(&["--help"], &[("MARKETD_CONFIG", "/nowhere")]),
        Ok(Command::Help)
    ));
    assert!(matches!(run(&["-V"], &[]), Ok(Command::Version)));
    // Whoever asks for help has a reason.
    let help_wins = |line: &[&str]| matches!(run(line, &[]), Ok(Command::Help));
    assert!(help_wins(&["--wrong", "--help"]) && help_wins(&["-h", "--listen", "x"]));
    let line = ["--wrong", "x", "-V"];
    assert!(matches!(run(&line, &[]), Ok(Command::Version)));
}

#[test]
fn the_examples_of_the_documentation_are_good() {
    let readme = include_str!("../../README.md");
    for page in [readme, include_str!("../docs/configuration.md")] {
        let example = page
            .split("```json\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let (config, _) = from_json("example", example.expect("it is there")).expect("no fault");
        assert_eq!(config.sources.len(), 2);
    }
}

#[test]
fn the_dialect_of_a_source_may_be_a_file() {
    let fine = TestFile::new("My_Exchange.json", "fine");
    let name = std::path::Path::new(&*fine);
    let name = name.file_name().expect("a name").to_string_lossy();
    let config = format!(
        "{{ \"sources\": [\n{{ \"dialect\": \"./{name}\" }}, {{ \"dialect\": \"./no.json\" }} ] }}"
    );
    let own = TestFile::new("dialects.json", &config);
    // Relative to the configuration's file, from the command line to the working directory.
    let found = run(&["--config", &own], &[]).expect_err("a file is missing");
    let [fault] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(
        fault.contains("dialects.json:2: sources[1].dialect: "),
        "{fault}"
    );
    assert!(fault.contains("no.json\": cannot be read: "), "{fault}");
    let twice = [
        "--source",
        &fine,
        "--source",
        &format!("{}=http://10.0.0.1", &*fine),
    ];
    let found = loaded(&twice, &[]);
    let [one, two] = &found.config.sources[..] else {
        panic!("{found:?}");
    };
    assert_eq!((&*one.dialect_text, &*two.dialect_text), ("fine", "fine"));
    let id = name
        .trim_end_matches(".json")
        .to_ascii_lowercase()
        .replace('_', "-");
    let id: String = id.chars().take(32).collect();
    assert_eq!((&*one.id, &two.id), (&*id, &format!("{id}-2")));
    assert_eq!(found.warnings.len(), 2, "the budget: {:?}", found.warnings);
    // Everything that is wrong with it, by its own lines.
    let faulty = TestFile::new("faulty.json", "no dialect");
    let found = run(&["--source", &faulty], &[]).expect_err("it is faulty");
    assert!(found[1].ends_with("faulty.json:1: a.b: wrong"), "{found:?}");
    assert!(found[2].ends_with("faulty.json:7: missing"), "{found:?}");
    assert!(
        found[0].ends_with("is not a dialect: it has 2 faults"),
        "{found:?}"
    );
    assert_eq!(found.len(), 3);
}
