//! Tests of the way from words, variables and files to a configuration.

pub(crate) mod describe;
mod faults;
mod reference;
mod routes;
mod schema;
mod sources;

use super::check::HAS_TLS;
use super::fault::Report;
use super::flags::Flags;
use super::*;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Exchanges as a build without https could know them, and one that it cannot reach.
fn dialects() -> Dialects {
    let known = |name, url: &str, way| KnownDialect {
        name: str::to_string(name),
        url: Url::parse(url).expect("well-formed"),
        budget: (1000, Duration::from_secs(1)),
        ways: vec![way],
        has_list: true,
        has_key: false,
    };
    let built_in = vec![
        known("binance", "http://api.binance.com", (None, 800)),
        known("okx", "http://www.okx.com", (None, 100)),
        known("coinbase", "http://api.coinbase.com", (Some(1), 100)),
        known("kraken", "https://api.kraken.com", (None, 1000)),
    ];
    Dialects {
        built_in,
        read: |file, text| match text {
            "fine" | "keyed" => Ok(KnownDialect {
                name: String::new(),
                url: Url::parse("http://files.com").expect("well-formed"),
                budget: (3, Duration::from_secs(60)),
                ways: vec![(None, 1)],
                has_list: true,
                has_key: text == "keyed",
            }),
            _ => Err(vec![
                ConfigFault::at(Some(file), Some(1), "a.b", "wrong"),
                ConfigFault::at(Some(file), Some(7), "", "missing"),
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
    let lines = |faults: Vec<ConfigFault>| faults.iter().map(ConfigFault::to_string).collect();
    command(words, variable, &dialects(), |_| Vec::new()).map_err(lines)
}

fn loaded(line: &[&str], variables: &[(&str, &str)]) -> LoadedConfig {
    match run(line, variables) {
        Ok(Command::Run(loaded)) => loaded,
        other => panic!("{line:?} is {other:?}"),
    }
}

/// The configuration of a file alone, and its warnings.
fn from_json(name: &str, text: &str) -> Result<(Config, Vec<ConfigFault>), Vec<ConfigFault>> {
    let (mut config, mut report) = (Config::default(), Report::default());
    load::read_file(&mut config, name, text, &mut report);
    let (none, dialects) = (|_: &str| None, &dialects());
    let loader = load::Loader::new(Flags::default(), &none, dialects, report);
    loader.finish(config)
}

fn faults(text: &str) -> Vec<String> {
    let read = from_json("m.json", text);
    let faults = read.err().unwrap_or_default();
    faults.iter().map(ConfigFault::to_string).collect()
}

#[test]
fn nothing_said_is_the_demo_exchange_with_the_defaults() {
    let found = loaded(&[], &[]);
    assert_eq!(found.log, "info,info");
    assert_eq!(found.warnings, []);
    let config = found.config;
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.data, Data::File(PathBuf::from("marketd.db")));
    assert_eq!(config.demo, Some(DemoConfig { seed: 1, ..DemoConfig::default() }));
    assert_eq!(config.sources, [SourceConfig::new(DEMO)]);
    assert_eq!(config.sources[0].spoken(), "binance");
}

/// One of everything, each unlike its default.
const FULL: &str = r#"{
  "listen": "[::1]:81", "ecosystemListen": "localhost:82", "basePath": "/a/", "ecosystemBasePath": "/b", "data": ":memory:",
  "sources": [
    { "id": "one", "dialect": "binance", "url": "http://10.0.0.1:9/x", "symbols": ["btc_usdt"], "quoteAssets": ["usdt", "BTC"],
      "pollMs": 1500, "staleAfterMs": 20000, "frozenAfterMs": 400000, "timeoutMs": 6000 },
    { "dialect": "demo", "pollMs": "auto" },
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
    assert_eq!(full.sources[1].dialect, DEMO);
    assert_eq!(full.demo.as_ref().map(|demo| demo.seed), Some(u64::MAX));
    assert_eq!(full.sources[1].stale_after, Duration::from_secs(5));
    assert_eq!(full.history.d1, Depth { keep: 100, backfill: 100 });
    assert_eq!(full.trusted_proxies.len(), 3);
    assert!(full.trusted_proxies[0].contains(&std::net::IpAddr::from([10, 9, 8, 7])));
    check(&full);
    check(&loaded(&[], &[]).config);
    check(&loaded(&["--source", "okx", "--demo"], &[]).config);
    check(&loaded(&["--source", "okx", "--symbols", "A/B"], &[]).config);
}

#[test]
fn rules_of_the_log_may_stand_in_the_file() {
    let path = TestFile::new("log.json", "{ \"log\": \"source=debug\" }");
    let check = |line: &[&str], variables: &[(&str, &str)], expected: &str| {
        assert_eq!(loaded(line, variables).log, expected, "{line:?}");
    };
    check(&["--config", &path], &[], "info,source=debug");
    check(&["--config", &path, "--log", "warn"], &[], "info,warn");
    check(&["--config", &path], &[("RUST_LOG", "error")], "info,error");
    check(&[], &[], "info,info");
    // The variable may mean other programs too.
    let warned = |text: &str, expected: &[&str]| {
        let found = loaded(&[], &[("RUST_LOG", text)]).warnings;
        let found: Vec<String> = found.iter().map(ConfigFault::to_string).collect();
        assert_eq!(found, expected, "{text}");
    };
    warned("info,reqwest=debug", &[]);
    let near = "RUST_LOG: unknown target \"sorce\", did you mean \"source\"?: this rule is ignored";
    warned("info,sorce=debug", &[near]);
    let none = "RUST_LOG: malformed, or without a rule for marketd: the variable is ignored";
    warned("loud", &[none]);
    warned("hyper=debug", &[none]);
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
        let found =
            [config.listen.to_string(), ecosystem.unwrap_or_default(), config.data.to_string()];
        assert_eq!(found, expected, "{line:?} {variables:?}");
    };
    let variables = [
        ("MARKETD_CONFIG", &*path),
        ("MARKETD_LISTEN", ":3"),
        ("MARKETD_ECOSYSTEM_LISTEN", ":4"),
        ("MARKETD_DATA", "variable.db"),
    ];
    let flags = ["--listen", ":5", "--ecosystem-listen", ":6", "--data", "flag.db"];
    check(&[], &[], ["127.0.0.1:8080", "", "marketd.db"]);
    check(&["--config", &path], &[], ["0.0.0.0:1", "0.0.0.0:2", "file.db"]);
    check(&[], &variables[..1], ["0.0.0.0:1", "0.0.0.0:2", "file.db"]);
    check(&[], &variables, ["0.0.0.0:3", "0.0.0.0:4", "variable.db"]);
    check(&flags, &variables, ["0.0.0.0:5", "0.0.0.0:6", "flag.db"]);
    check(&["--data", ":memory:"], &[("MARKETD_LISTEN", "")], ["127.0.0.1:8080", "", ":memory:"]);
    assert_eq!(loaded(&[], &[("RUST_LOG", "warn")]).log, "info,warn");
    for variable in ["warn", "loud"] {
        let loaded = loaded(&["--log", "debug"], &[("RUST_LOG", variable)]);
        assert_eq!(loaded.log, "info,debug");
    }
    // A flag makes the variable of no account, its faults too; the flag for the file wins as well.
    check(&["--listen", ":5"], &[("MARKETD_LISTEN", "x")], ["0.0.0.0:5", "", "marketd.db"]);
    let nowhere = [("MARKETD_CONFIG", "/nowhere")];
    check(&["--config", &path], &nowhere, ["0.0.0.0:1", "0.0.0.0:2", "file.db"]);
}

/// The blocks of a text with a line of `---` between them: a file, and the lines that are told of it, each
/// behind `> `.
fn blocks(text: &str) -> impl Iterator<Item = (String, Vec<&str>)> {
    text.trim_matches('\n').split("\n---\n").map(|block| {
        let (told, file): (Vec<_>, Vec<_>) = block.lines().partition(|it| it.starts_with("> "));
        (file.join("\n"), told.iter().map(|line| &line[2..]).collect())
    })
}

/// Words, among them variables as `MARKETD_NAME=value`, and what is wrong with them. FAULTY and GOOD are files.
const WORDS: &str = r#"
--listen x
> --listen: expected ADDR:PORT or unix:PATH, found "x"
---
MARKETD_LISTEN=x
> MARKETD_LISTEN: expected ADDR:PORT or unix:PATH, found "x"
---
--log loud
> --log: expected off, error, warn, info, debug or trace, found "loud"
---
--log reqwest=debug
> --log: unknown target "reqwest", expected one of access, cluster, config, failover, fetch, health, history, http, market, net, source
---
--log info,sorce=debug
> --log: unknown target "sorce", did you mean "source"?
---
--data=
> --data: expected FILE, found nothing
---
--config= --address-file=
> --config: expected FILE, found nothing
> --address-file: expected FILE, found nothing
---
--config /nowhere/m.json
> /nowhere/m.json: cannot be read: No such file or directory (os error 2)
---
--wrong --config FAULTY --data= MARKETD_LISTEN=y
> --wrong: unknown option, see --help
> --data: expected FILE, found nothing
> MARKETD_LISTEN: expected ADDR:PORT or unix:PATH, found "y"
> FAULTY:2: pollMs: unknown key: it is a key of sources[]
> FAULTY:2: sources: expected a list of at most 64 objects, found 7
---
--listen :1 --ecosystem-listen :1
> --ecosystem-listen: 0.0.0.0:1 is already the address of listen, which serves everything without ecosystemListen
---
--source ox --source binnance=http://a
> --source: expected one of binance, okx, coinbase, kraken, demo, found "ox", did you mean "okx"?
> --source: expected one of binance, okx, coinbase, kraken, demo, found "binnance", did you mean "binance"?
---
--source=
> --source: expected DIALECT[=URL], found nothing
---
--source kraken=x
> --source: expected http://HOST or https://HOST, found "x"
---
--source demo=http://a
> --source: the demo exchange takes no url; demo.listen sets its address
---
--source demo --source demo
> --source: "demo" is taken by sources[0]
---
--symbols BTCUSDT,A/B/C
> --symbols: expected BASE/QUOTE, found "BTCUSDT": the joined form does not say where the base ends
> --symbols: expected BASE/QUOTE with 1 to 20 letters and digits on each side, found "A/B/C"
---
--symbols=,
> --symbols: expected symbols like BTC/USDT, found none
---
--config GOOD --symbols A/B
> --symbols: needs --source: sources in the file have their own symbols
"#;

#[test]
fn faults_of_words_and_variables_name_them_and_are_told_beside_those_of_the_file() {
    let text = "{ \"listen\": \":1\",\n\"pollMs\": 5, \"sources\": 7 }";
    let faulty = TestFile::new("faulty.json", text);
    let good = TestFile::new("good.json", "{ \"sources\": [ { \"dialect\": \"okx\" } ] }");
    let named = |text: &str| text.replace("FAULTY", &faulty).replace("GOOD", &good);
    for (line, expected) in blocks(WORDS) {
        let line = named(&line);
        let is_variable = |word: &&str| word.starts_with("MARKETD_");
        let (variables, words): (Vec<&str>, Vec<&str>) = line.split(' ').partition(is_variable);
        let variables: Vec<_> = variables.iter().filter_map(|it| it.split_once('=')).collect();
        let expected: Vec<String> = expected.into_iter().map(named).collect();
        assert_eq!(run(&words, &variables).expect_err(&line), expected);
    }
}

/// Files, and what they are warned of.
const UNWISE: &str = r#"
{ "sources": [ { "dialect": "okx", "pollMs": 20000, "frozenAfterMs": 5000, "timeoutMs": 16000 } ] }
> m.json:1: sources[0].pollMs: 20000 is at least staleAfterMs (15000): every quote turns stale between two polls
> m.json:1: sources[0].pollMs: 20000 is at least frozenAfterMs (5000): the source counts as frozen between two polls
> m.json:1: sources[0].timeoutMs: 16000 is above staleAfterMs (15000): quotes turn stale while one slow request is awaited
---
{ "sources": [ { "dialect": "binance",
"pollMs": 500 } ] }
> m.json:2: sources[0].pollMs: polling every 500 ms exceeds the rate limit of binance: it is polled every 800 ms
---
{ "sources": [ { "dialect": "binance",
"pollMs": 1333 } ] }
> m.json:2: sources[0].pollMs: polling every 1333 ms needs more than 60 % of the rate limit of binance, which quotes get while candles wait: half is a poll every 1600 ms
---
{ "sources": [ { "dialect": "binance", "pollMs": 1334 } ] }
---
{ "sources": [ { "dialect": "coinbase", "staleAfterMs": 200, "pollMs": 100, "timeoutMs": 100, "symbols": ["A/B", "C/D"] } ] }
> m.json:1: sources[0].pollMs: polling every 100 ms exceeds the rate limit of coinbase: it is polled every 200 ms, and quotes turn stale between two polls
---
{ "sources": [ { "dialect": "coinbase", "symbols": ["A/B"],
"quoteAssets": ["USD"] } ] }
> m.json:2: sources[0].quoteAssets: coinbase has no request for all listed markets: with more than 150 markets, quotes turn stale within a round
---
{ "sources": [ { "dialect": "okx" },
{ "id": "b", "dialect": "okx", "url": "http://www.okx.com:80/x" },
{ "id": "c", "dialect": "okx", "url": "http://www.okx.com:81" } ] }
> m.json:2: sources[1].url: www.okx.com:80 is the host of sources[0] too: they share its budget, its pauses and bans, and its connections
---
{ "history": { "1m": { "keep": 10, "backfill": 20 }, "1h": { "keep": 10 } },
"limits": { "candleSeries": 5 } }
> m.json:1: history.1m.backfill: 20 is above keep (10), which is used
> m.json:2: limits.candleSeries: 5 is below the 6 series of the listed symbols: the last symbols get no candles
---
{ "trustedProxies": ["10.0.0.1",
"0.0.0.0/0"] }
> m.json:2: trustedProxies[1]: 0.0.0.0/0 trusts every peer: each client can claim any address
"#;

#[test]
fn what_is_unwise_is_warned_of() {
    for (text, expected) in blocks(UNWISE) {
        let (_, warnings) = from_json("m.json", &text).expect("no fault");
        let warnings: Vec<String> = warnings.iter().map(ConfigFault::to_string).collect();
        assert_eq!(warnings, expected, "{text}");
    }
}

#[test]
fn the_command_says_what_to_do() {
    assert!(matches!(run(&["--check"], &[]), Ok(Command::Check(_))));
    assert!(matches!(run(&["--print-config"], &[]), Ok(Command::PrintConfig(_))));
    assert!(matches!(run(&["--check", "--print-config"], &[]), Ok(Command::PrintConfig(_))));
    assert!(matches!(run(&["--help"], &[("MARKETD_CONFIG", "/nowhere")]), Ok(Command::Print(_))));
    assert!(matches!(run(&["-V"], &[]), Ok(Command::Version)));
    // Whoever asks for help has a reason.
    let help_wins = |line: &[&str]| matches!(run(line, &[]), Ok(Command::Print(_)));
    assert!(help_wins(&["--wrong", "--help"]) && help_wins(&["-h", "--listen", "x"]));
    // Each command of the table is known, whatever it says of its words.
    flags::SUBCOMMANDS.iter().for_each(|it| drop(run(&[it.name], &[])));
    let line = ["--wrong", "x", "-V"];
    assert!(matches!(run(&line, &[]), Ok(Command::Version)));
}

#[test]
fn the_examples_of_the_documentation_are_good() {
    let readme = include_str!("../../README.md");
    for page in [readme, include_str!("../docs/configuration.md")] {
        let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        let (config, _) = from_json("example", example.expect("it is there")).expect("no fault");
        assert_eq!(config.sources.len(), 2);
    }
}
