//! The commands beside serving, as a person types them: healthcheck, schema, man, log formats, and those
//! for the history file.

#[path = "support/mod.rs"]
mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use support::*;

/// Runs marketd with these words, in this directory: exit code, standard output, standard error.
fn run_in(dir: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marketd"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MARKETD_")) {
        command.env_remove(name);
    }
    let output = command.args(words).current_dir(dir).env_remove("RUST_LOG").output();
    let output = output.expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("it speaks UTF-8");
    let code = output.status.code().expect("it ends by itself");
    (code, text(output.stdout), text(output.stderr))
}

fn run(words: &[&str]) -> (i32, String, String) {
    run_in(&std::env::temp_dir(), words)
}

#[test]
fn healthcheck_says_whether_a_marketd_is_ready() {
    let fake = Binance::generated(3, 1);
    let marketd = Marketd::start(&["--source", &fake.source(), "--data", ":memory:"]);
    let url = format!("http://{}", marketd.addr());
    eventually(PATIENCE, || (run(&["healthcheck", &url]).0 == 0).then_some(()));
    assert_eq!(run(&["healthcheck", &url]), (0, String::new(), String::new()));
    // The same without a URL, by the flag that the service has.
    let listen = marketd.addr().to_string();
    assert_eq!(run(&["healthcheck", "--listen", &listen]).0, 0);
    let (code, out, err) = run(&["healthcheck", &format!("{url}/nothing")]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("HTTP/1.1 404 Not Found: {"), "{err}");
    assert_eq!(err.lines().count(), 1);
    let socket = marketd.dir().path().join("s");
    let socket = format!("unix:{}", socket.display());
    let behind = Launch::new(&["--demo", "--data", ":memory:", "--listen", &socket]);
    let behind = behind.listen_as_configured().start_until("listening on unix:");
    eventually(PATIENCE, || (run(&["healthcheck", &socket]).0 == 0).then_some(()));
    behind.stop(PATIENCE);
    marketd.stop(PATIENCE);
    let (code, _, err) = run(&["healthcheck", &url]);
    assert_eq!((code, err.lines().count()), (1, 1));
    assert!(err.contains("refused"), "{err}");
}

#[test]
fn healthcheck_refuses_what_it_cannot_ask() {
    let check = |words: &[&str], expected: &str| {
        let (code, out, err) = run(words);
        assert_eq!((code, out.as_str(), err.as_str()), (2, "", expected), "{words:?}");
    };
    check(
        &["healthcheck", "https://localhost:8080"],
        "healthcheck: expected http://HOST:PORT or unix:PATH, where marketd listens, found \"https://localhost:8080\"\n",
    );
    check(&["healthcheck", "http://a", "b"], "\"b\": unexpected, see --help\n");
}

#[test]
fn the_schema_of_the_configuration_takes_what_marketd_prints_and_refuses_what_it_refuses() {
    let (code, text, err) = run(&["schema", "config"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    let faults = |value: &Value| Schemas(&schema).faults(&schema, value);
    let (_, printed, _) = run(&["--print-config"]);
    let printed = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(faults(&printed), Vec::<String>::new());
    let file = json!({
        "sources": [{ "dialect": "okx", "symbols": ["BTC/USDT"] }],
        "ecosystem": { "markets": [{ "symbol": "A/B", "metadata": { "taker": "0.1", "maker": 0.2 } }] },
    });
    assert_eq!(faults(&file), Vec::<String>::new());
    for wrong in [
        json!({ "lisen": ":80" }),
        json!({ "sources": [{ "id": "a" }] }),
        json!({ "limits": { "maxConnections": 0 } }),
        json!({ "accessLog": 1 }),
        json!({ "ecosystem": { "markets": [{ "id": "x" }] } }),
    ] {
        assert_eq!(faults(&wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn schemas_and_the_manual_page_go_to_standard_output() {
    let (code, dialect, _) = run(&["schema", "dialect"]);
    assert_eq!(code, 0);
    assert!(serde_json::from_str::<Value>(&dialect).expect("JSON").is_object());
    let (code, page, _) = run(&["man"]);
    assert_eq!(code, 0);
    assert!(page.starts_with(".TH MARKETD 1 "), "{page}");
    let (code, out, err) = run(&["schema", "x"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(err, "schema: expected config or dialect, found \"x\"\n");
}

#[test]
fn a_log_as_json_has_one_object_a_line() {
    let fake = Binance::generated(3, 1);
    let launch = Launch::new(&["--source", &fake.source(), "--data", ":memory:"]);
    let marketd = launch.env("MARKETD_LOG_FORMAT", "json").start();
    get(marketd.addr(), "/health");
    let finished = marketd.stop(PATIENCE);
    assert!(finished.stderr.lines().count() > 1, "{}", finished.stderr);
    for line in finished.stderr.lines() {
        let object: Value = serde_json::from_str(line).expect("a JSON object");
        for key in ["time", "level", "target", "message"] {
            assert!(object[key].is_string(), "{line}");
        }
    }
}

#[cfg(feature = "sqlite")]
mod history {
    use super::*;
    use std::sync::Arc;
    use support::daemon::TempDir;

    /// A directory with the history of two symbols of a source that is called `fake`.
    struct History {
        dir: Arc<TempDir>,
        fake: Binance,
        symbols: Vec<String>,
    }

    impl History {
        fn new() -> History {
            let fake = Binance::generated(2, 1);
            let symbols = fake.symbols();
            History { dir: Arc::new(TempDir::new()), fake, symbols }
        }

        fn source(&self, id: &str, symbols: &[String]) -> Value {
            json!({ "id": id, "dialect": "binance", "url": self.fake.url(), "pollMs": 100, "symbols": symbols })
        }

        fn config(&self, id: &str, symbols: &[String]) -> Value {
            let depth = json!({ "keep": 1000, "backfill": 100 });
            json!({
                "sources": [self.source(id, symbols)], "data": "history.db",
                "history": { "1m": depth, "1h": depth, "1d": depth },
            })
        }

        /// A marketd whose backfill is done and written.
        fn start(&self, config: &Value) -> Marketd {
            let marketd = Launch::new(&[]).in_dir(self.dir.clone()).config(config).start();
            eventually(PATIENCE, || {
                let metrics = get(marketd.addr(), "/api/v1/metrics").json();
                let backfill = &metrics["upstreams"][0]["backfill"];
                let is_done = backfill["done"] == backfill["wanted"];
                (is_done && backfill["wanted"].as_i64() > Some(0)).then_some(())
            });
            marketd
        }

        fn run(&self, words: &[&str]) -> (i32, String, String) {
            run_in(self.dir.path(), words)
        }

        fn export(&self, symbol: &str, more: &[&str]) -> (i32, String, String) {
            let mut words = vec!["export", "--data", "history.db", "--id", "fake"];
            words.extend(["--interval", "1h", "--symbol", symbol].iter().chain(more));
            self.run(&words)
        }
    }

    #[test]
    fn an_export_has_the_candles_of_the_chart_digit_for_digit_also_while_marketd_runs() {
        let history = History::new();
        let config = history.config("fake", &history.symbols);
        let marketd = history.start(&config);
        let symbol = &history.symbols[0];
        let now = history.fake.now();
        let to = now - now % 3_600_000;
        let from = to - 50 * 3_600_000;
        let target = format!(
            "/api/ecosystem/chart?symbol={symbol}&interval=1h&limit=50&from={from}&to={}",
            to - 1
        );
        let chart = get(marketd.addr(), &target);
        assert_eq!(chart.header("Chart-Coverage"), Some("complete"), "{}", chart.text());
        let (from, to) = (from.to_string(), to.to_string());
        let range = ["--from", &from, "--to", &to, "--format"];
        let exported = || {
            let (code, exported, err) = history.export(symbol, &[&range[..], &["json"]].concat());
            assert_eq!((code, err.as_str()), (0, ""));
            exported.replace('\n', "")
        };
        // What has come last is in the file within a second.
        eventually(PATIENCE, || (exported() == chart.text()).then_some(()));
        let (_, csv, _) = history.export(symbol, &[&range[..], &["csv"]].concat());
        let mut lines = csv.lines();
        assert_eq!(lines.next(), Some("time,open,high,low,close,volume"));
        let rows: Vec<Json> = chart.exact().items().to_vec();
        assert_eq!(lines.clone().count(), rows.len());
        for (line, row) in lines.zip(&rows) {
            let cells: Vec<&str> = line.split(',').skip(1).collect();
            let expected: Vec<String> = row.items()[1..].iter().map(Json::to_string).collect();
            assert_eq!(cells, expected);
        }
        marketd.stop(PATIENCE);
        assert_eq!(exported(), chart.text());
        let (code, _, err) = history.export(symbol, &["--from", "yesterday"]);
        assert_eq!(code, 2);
        let expected = "--from: expected 2026-11-22, 2026-11-22T09:00:00Z or milliseconds since 1970, found \"yesterday\"\n";
        assert_eq!(err, expected);
        let (code, _, err) = history.export("NO/NE", &[]);
        assert_eq!(code, 2);
        assert_eq!(err, "no candles of NO/NE 1h from fake; stored of NO/NE: nothing\n");
    }

    #[test]
    fn prune_counts_first_and_then_removes_what_no_source_tracks() {
        let history = History::new();
        let all = history.config("fake", &history.symbols);
        history.start(&all).stop(PATIENCE);
        let one = history.config("fake", &history.symbols[..1]).to_string();
        std::fs::write(history.dir.path().join("one.json"), one).expect("a file");
        let (code, counted, err) = history.run(&["prune", "--config", "one.json"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let last = counted.lines().last().unwrap_or_default();
        assert!(last.starts_with("3 series with ") && last.ends_with("by --yes"), "{counted}");
        let (code, removed, err) = history.run(&["prune", "--config", "one.json", "--yes"]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(removed.starts_with("removed 3 series with "), "{removed}");
        assert_eq!(history.export(&history.symbols[1], &[]).0, 2);
        assert_eq!(history.export(&history.symbols[0], &[]).0, 0);
        // It is a history as before.
        history.start(&all).stop(PATIENCE);
        assert_eq!(history.export(&history.symbols[1], &[]).0, 0);
    }

    #[test]
    fn a_source_that_is_renamed_keeps_its_candles_and_is_asked_for_none_of_them_again() {
        let history = History::new();
        let marketd = history.start(&history.config("fake", &history.symbols));
        let (code, _, err) = history.run(&["rename", "fake", "other", "--data", "history.db"]);
        assert_eq!(code, 2, "a marketd is using the file");
        assert!(err.contains("is in use by another marketd"), "{err}");
        marketd.stop(PATIENCE);
        let before = history.export(&history.symbols[0], &[]).1;
        let (code, out, err) = history.run(&["rename", "fake", "other", "--data", "history.db"]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.ends_with(" candles of fake belong to other now\n"), "{out}");
        let words =
            ["export", "--data", "history.db", "--id", "other", "--interval", "1h", "--symbol"];
        let after = history.run(&[&words[..], &[&history.symbols[0]]].concat());
        assert_eq!((after.0, after.1), (0, before));
        history.fake.forget();
        let marketd = history.start(&history.config("other", &history.symbols));
        let days = history.fake.asked();
        let days = days.iter().filter(|asked| asked.target.contains("interval=1d")).count();
        assert!(days <= history.symbols.len(), "{days} requests for days that are stored");
        marketd.stop(PATIENCE);
        let (code, _, err) = history.run(&["rename", "fake", "x", "--data", "history.db"]);
        assert_eq!((code, err.as_str()), (2, "nothing is stored of source \"fake\"\n"));
    }
}
