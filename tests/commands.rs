//! The commands beside serving, as a person types them: healthcheck, schema, man, log formats, and those
//! for the history file.

use crate::cli::run;
use crate::support::*;
use serde_json::{Value, json};

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
    // It listens only at an address of IPv4, as with `[::]` on a machine without IPv6.
    let all = format!("[::]:{}", marketd.addr().port());
    assert_eq!(run(&["healthcheck", "--listen", &all]), (0, String::new(), String::new()));
    let (code, out, err) = run(&["healthcheck", &format!("{url}/nothing")]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("HTTP/1.1 404 Not Found: {"), "{err}");
    assert_eq!(err.lines().count(), 1);
    // The address of the health itself, a base path, and what listens there but is no marketd.
    assert_eq!(run(&["healthcheck", &format!("{url}/health/live")]).0, 0);
    let drips = FakeExchange::start(|_| Reply::json("H".repeat(600)));
    drips.fault(Fault::Slowly { bytes: 1, pause: std::time::Duration::from_millis(100) });
    let (code, _, err) = run(&["healthcheck", &drips.url()]);
    assert_eq!((code, err.ends_with(": timed out\n")), (1, true), "{err}");
    let based = Launch::new(&["--demo"])
        .config(json!({ "basePath": "/b", "ecosystemBasePath": "/b", "data": ":memory:" }));
    let based = based.start();
    let file = based.dir().path().join("marketd.json").display().to_string();
    let at = format!("http://{}", based.addr());
    eventually(PATIENCE, || (run(&["healthcheck", &format!("{at}/b")]).0 == 0).then_some(()));
    assert_eq!(run(&["healthcheck", "--config", &file, &at]).0, 0);
    assert_eq!(run(&["healthcheck", &at]).0, 1);
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
    let rules = ["--log", "debug,access=info", "--source", &fake.source(), "--data", ":memory:"];
    let marketd = Launch::new(&rules).env("MARKETD_LOG_FORMAT", "json").start();
    let get = get(marketd.addr(), "/health");
    let listens_at = marketd.addr();
    let finished = marketd.stop(PATIENCE);
    assert!(finished.stderr.lines().count() > 1, "{}", finished.stderr);
    let mut accesses = 0;
    for line in finished.stderr.lines() {
        let object: Value = serde_json::from_str(line).expect("a JSON object");
        for key in ["time", "level", "target", "message"] {
            assert!(object[key].is_string(), "{line}");
        }
        // What a line says of its event are members, with the type of their values.
        if object["target"] == "access" {
            assert_eq!(
                (&object["status"], &object["target_"]),
                (&json!(get.status), &json!("/health"))
            );
            accesses += 1;
        }
    }
    assert_eq!(accesses, 1, "{}", finished.stderr);
    let first: Value =
        serde_json::from_str(finished.stderr.lines().next().expect("lines")).expect("JSON");
    let address = format!("listening on http://{}", listens_at);
    assert_eq!(first["message"], address, "whatever the level is, the address comes first");
}

#[cfg(feature = "sqlite")]
mod history {
    use super::*;
    use crate::support::daemon::TempDir;
    use crate::support::manual::{blocks, commands, has_python, matches, page, python};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::Arc;

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

        /// With the history of a marketd that has run.
        fn filled() -> History {
            let history = History::new();
            history.start(&history.config("fake", &history.symbols)).stop(PATIENCE);
            history
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
            Launch::new(words).in_dir(self.dir.clone()).run().parts()
        }

        fn file(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn bytes(&self) -> Vec<u8> {
            std::fs::read(self.file("history.db")).expect("it is there")
        }

        /// The names of all files in the directory.
        fn files(&self) -> Vec<String> {
            let list = std::fs::read_dir(self.dir.path()).expect("a directory of ours");
            let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let mut names: Vec<String> =
                list.map(|entry| name(entry.expect("it is there"))).collect();
            names.sort();
            names
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
        let expected = "--from: expected 2026-11-22, 2026-11-22T09:00:00Z, or seconds or milliseconds from 1970 to 9999, found \"yesterday\"\n";
        assert_eq!(err, expected);
        let seconds = from.strip_suffix("000").expect("a full hour");
        let in_seconds = history.export(symbol, &["--from", seconds, "--to", &to]);
        assert_eq!((in_seconds.0, &in_seconds.1), (0, &csv));
        // A market that is named twice is one market, and `*` is all of them.
        let twice = format!("{symbol},{symbol}");
        assert_eq!(history.export(&twice, &[&range[..], &["csv"]].concat()).1, csv);
        assert_eq!(history.export("*,NO/NE", &[]), history.export("*", &[]));
        let (code, _, err) = history.export(symbol, &["--from", &to, "--to", &from]);
        assert_eq!((code, &*err), (2, "--from: expected a time that is not later than --to\n"));
        let (code, _, err) = history.export("NO/NE", &[]);
        assert_eq!(code, 2);
        assert_eq!(err, "no candles of NO/NE 1h from fake; stored of NO/NE: nothing\n");
    }

    /// The columns of a view.
    fn columns(shell: &rusqlite::Connection, view: &str) -> Vec<String> {
        let mut all = shell.prepare(&format!("SELECT * FROM {view}")).expect("a view");
        all.query([])
            .expect("a view")
            .as_ref()
            .expect("it is there")
            .column_names()
            .map(str::to_string)
            .collect()
    }

    #[test]
    fn the_page_on_data_describes_every_column_and_its_queries_and_scripts_run() {
        let history = History::filled();
        let page = page("data.md");
        let shell = rusqlite::Connection::open(history.file("history.db")).expect("it is there");
        for view in ["candles", "quotes", "coverage"] {
            let (_, rest) = page.split_once(&format!("view `{view}`")).expect("it is described");
            let table = rest.split("\n\n").nth(1).expect("a table").lines().skip(2);
            let cells: String = table.map(|row| row.split('|').nth(1).expect("a cell")).collect();
            let told: Vec<&str> = cells.split('`').skip(1).step_by(2).collect();
            let all = columns(&shell, view);
            assert!(
                told.iter().all(|it| all.iter().any(|column| column == it)),
                "{view}: {told:?}"
            );
            let plain = all.iter().filter(|it| !it.ends_with("_text"));
            for column in plain {
                assert!(told.contains(&&**column), "{view}: {column} is not described");
            }
        }
        let queries = blocks(&page, "sql");
        assert!(queries.len() >= 4);
        for query in queries {
            assert!(query.contains("SELECT source, symbol, "), "sources are mixed: {query}");
            let rows = shell
                .prepare(query.trim().trim_end_matches(';'))
                .and_then(|mut it| it.query([])?.next().map(|row| row.is_some()));
            assert_eq!(rows, Ok(true), "{query}");
        }
        drop(shell);
        let all = "*".to_string();
        let words = ["export", "--data", "history.db", "--interval", "1h", "--symbol", &all];
        let (code, csv, err) = history.run(&words);
        assert_eq!((code, &*err), (0, ""));
        std::fs::write(history.file("candles.csv"), csv).expect("a file");
        std::fs::rename(history.file("history.db"), history.file("marketd.db"))
            .expect("it is there");
        let scripts = blocks(&page, "python");
        assert_eq!(scripts.len(), 3);
        for script in scripts {
            if let Some(module) =
                ["duckdb", "pandas"].into_iter().find(|it| script.contains(it) && !has_python(it))
            {
                skipped(&format!("a script of the page on data, for want of Python's {module}"));
                continue;
            }
            let mut command = Command::new(python());
            command.args(["-c", &script]).current_dir(history.dir.path());
            let ran = command.output().expect("it runs");
            assert!(ran.status.success(), "{script}\n{}", String::from_utf8_lossy(&ran.stderr));
            assert!(script.contains("show()") || !ran.stdout.is_empty(), "{script}");
        }
    }

    #[test]
    fn the_commands_of_the_manual_print_what_it_shows() {
        let history = History::new();
        let config = |symbols: &[String]| {
            let mut config = history.config("binance", symbols);
            config["data"] = "marketd.db".into();
            config
        };
        history.start(&config(&history.symbols)).stop(PATIENCE);
        let tracked = config(&history.symbols[..1]).to_string();
        std::fs::write(history.file("marketd.json"), tracked).expect("a file");
        let program = env!("CARGO_BIN_EXE_marketd");
        std::os::unix::fs::symlink(program, history.file("marketd")).expect("a link");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", history.dir.path().display());
        let mut ran = 0;
        for name in ["data.md", "charts-and-history.md", "backup.md"] {
            let mut text = page(name);
            for (named, symbol) in ["BTC/USDT", "ETH/USDT"].into_iter().zip(&history.symbols) {
                text = text.replace(named, symbol);
            }
            for (mut command, shown) in commands(&text) {
                // There is no damage to recover from, and not every sqlite3 can.
                if command.contains("mended.db") {
                    continue;
                }
                if command == "marketd" {
                    command += " --config marketd.json --check";
                }
                let mut shell = Command::new("sh");
                shell.args(["-c", &command]).current_dir(history.dir.path()).env("PATH", &path);
                let output = shell.output().expect("a shell");
                let [out, err] =
                    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
                if output.status.code() == Some(127) && !command.starts_with("marketd") {
                    skipped(&format!("a command of the manual: {}", err.trim()));
                    continue;
                }
                assert!(output.status.success(), "{name}: {command}\n{err}");
                let is_as_shown = shown.is_empty() || matches(&shown, &out);
                assert!(is_as_shown, "{name}: {command}\n{out}");
                ran += 1;
            }
        }
        assert!(ran >= 9, "{ran} commands");
    }

    #[test]
    fn an_export_has_several_markets_of_any_source_in_three_forms() {
        let history = History::filled();
        let [first, second] = &history.symbols[..] else { panic!("two symbols") };
        let export = |symbol: &str, more: &[&str]| {
            let words = ["export", "--data", "history.db", "--interval", "1d", "--symbol", symbol];
            history.run(&[&words[..], more].concat())
        };
        // No source is configured, but the file has one.
        let (code, one, _) = export(first, &[]);
        assert_eq!((code, one.lines().next()), (0, Some("time,open,high,low,close,volume")));
        let (code, both, err) = export(&format!("{first},{second}"), &[]);
        assert_eq!((code, &*err), (0, ""));
        let mut lines = both.lines();
        assert_eq!(lines.next(), Some("source,symbol,time,open,high,low,close,volume"));
        let of_first = lines.by_ref().take(one.lines().count() - 1);
        for (line, alone) in of_first.zip(one.lines().skip(1)) {
            assert_eq!(line, format!("fake,{first},{alone}"));
        }
        assert!(
            lines.clone().count() > 50
                && lines.all(|it| it.starts_with(&format!("fake,{second},")))
        );
        assert_eq!(export("*", &[]).1.lines().count(), both.lines().count());
        let (_, rows, _) = export("*", &["--format", "json"]);
        let rows: Value = serde_json::from_str(&rows).expect("JSON");
        let (_, objects, _) = export("*", &["--format", "jsonl"]);
        assert_eq!(objects.lines().count(), both.lines().count() - 1);
        for (line, row) in objects.lines().zip(rows.as_array().expect("an array")) {
            let object: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(object["interval"], "1d");
            let keys = ["source", "symbol", "time", "open", "high", "low", "close", "volume"];
            assert_eq!(json!(keys.map(|key| object[key].clone())), *row);
        }
        let (code, _, err) = export(&format!("{first},NO/NE"), &[]);
        let expected = "no candles of NO/NE 1d from any source; stored of NO/NE: nothing\n";
        assert_eq!((code, &*err), (2, expected));
        let (code, _, err) = history.run(&["export", "--data", "history.db", "--interval", "1d"]);
        let expected = "--symbol: expected symbols like BTC/USDT, found none\n";
        assert_eq!((code, &*err), (2, expected));
    }

    #[test]
    fn prune_counts_first_and_then_removes_what_no_source_tracks() {
        let history = History::filled();
        let one = history.config("fake", &history.symbols[..1]).to_string();
        std::fs::write(history.dir.path().join("one.json"), one).expect("a file");
        let (code, counted, err) = history.run(&["prune", "--config", "one.json"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let last = counted.lines().last().unwrap_or_default();
        assert!(last.starts_with("--yes removes 1 market, 3 series with "), "{counted}");
        // The removal fails half-way, and nothing is gone.
        let before = history.export(&history.symbols[1], &[]);
        let in_the_way = history.dir.path().join("history.db-marketd-pruned");
        std::fs::create_dir(&in_the_way).expect("a directory of ours");
        let (code, out, err) = history.run(&["prune", "--config", "one.json", "--yes"]);
        assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
        assert_eq!(history.export(&history.symbols[1], &[]), before);
        std::fs::remove_dir(&in_the_way).expect("it is empty");
        let (code, removed, err) = history.run(&["prune", "--config", "one.json", "--yes"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let expected = counted.replace("--yes removes", "removed");
        assert!(removed.starts_with(expected.trim_end()), "{removed}");
        assert_eq!(history.files(), ["history.db", "history.db-lock", "marketd.json", "one.json"]);
        assert_eq!(history.export(&history.symbols[1], &[]).0, 2);
        assert_eq!(history.export(&history.symbols[0], &[]).0, 0);
        // It is a history as before.
        history.start(&history.config("fake", &history.symbols)).stop(PATIENCE);
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
        let last = out.lines().last().unwrap_or_default();
        assert!(last.starts_with("2 markets, 6 series with "), "{out}");
        assert!(last.ends_with(" candles of fake belong to other now"), "{out}");
        for symbol in &history.symbols {
            let told = out.lines().find(|line| line.starts_with(&format!("other {symbol}: ")));
            assert!(told.is_some_and(|it| it.ends_with(", last quote, rules")), "{out}");
        }
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

    #[test]
    fn prune_needs_to_be_told_what_is_tracked_and_a_rename_lists_what_it_would_do() {
        let history = History::filled();
        std::fs::write(history.dir.path().join("none.json"), "{}").expect("a file");
        let expected = "expected --config or --source: they name the markets to keep\n";
        let none = ["--yes", "--config", "none.json"];
        for words in [&[][..], &["--yes"], &["--yes", "--demo"], &none] {
            let words = [&["prune", "--data", "history.db"], words].concat();
            assert_eq!(history.run(&words), (2, String::new(), expected.to_string()));
        }
        let all = ["prune", "--data", "history.db", "--source"];
        let (code, out, _) = history.run(&[&all[..], &["binance", "--dry-run", "--yes"]].concat());
        let last = out.lines().last().unwrap_or_default();
        assert!(code == 0 && last.starts_with("--yes removes 2 markets, 6 series"), "{out}");
        assert_eq!(history.export(&history.symbols[0], &[]).0, 0);
        // A rename lists first what it would do, and joins nothing.
        let (before, words) = (history.bytes(), ["rename", "--data", "history.db", "--dry-run"]);
        let (code, out, _) = history.run(&[&words[..], &["fake", "other"]].concat());
        let last = out.lines().last().unwrap_or_default();
        assert!(code == 0 && last.starts_with("2 markets, 6 series with "), "{out}");
        assert!(last.ends_with(" would belong to other"), "{out}");
        for dry_run in [&words[..], &words[..3]] {
            let (code, _, err) = history.run(&[dry_run, &["fake", "fake"]].concat());
            assert!(code == 2 && err.contains("two sources cannot become one"), "{err}");
        }
        assert!(history.bytes() == before, "the file has changed");
    }

    #[test]
    fn a_backup_is_whole_while_marketd_runs_and_overwrites_nothing() {
        let history = History::new();
        let config = history.config("fake", &history.symbols);
        let marketd = history.start(&config);
        let stored = |data: &str| {
            let words = ["export", "--id", "fake", "--interval", "1d", "--data", data, "--symbol"];
            history.run(&[&words[..], &[&history.symbols[0]]].concat())
        };
        let backup = ["backup", "copy.db", "--data", "history.db"];
        eventually(PATIENCE, || (stored("history.db").1.lines().count() > 50).then_some(()));
        let (code, out, err) = history.run(&backup);
        assert_eq!((code, err.as_str()), (0, ""));
        let copy = history.dir.path().join("copy.db");
        let bytes = std::fs::metadata(&copy).expect("it was made").len();
        assert_eq!(out, format!("copy.db has {bytes} bytes\n"));
        assert_eq!(stored("copy.db"), stored("history.db"));
        let refused = (2, String::new(), "copy.db: it exists, and is left untouched\n".into());
        assert_eq!(history.run(&backup), refused);
        marketd.stop(PATIENCE);
        // This name is no URI.
        let (_, out, _) = history.run(&["backup", "file:copy.db", "--data", "history.db"]);
        assert_eq!(out, format!("file:copy.db has {bytes} bytes\n"));
        let (code, _, err) = history.run(&["backup", "no/where", "--data", "history.db"]);
        let expected = "no/where: No such file or directory (os error 2)\n";
        assert_eq!((code, err.as_str()), (2, expected));
        let (code, _, err) = history.run(&["backup", "", "--data", "history.db"]);
        assert_eq!((code, err.as_str()), (2, "backup: expected the FILE to write\n"));
        let files = ["copy.db", "file:copy.db", "history.db", "history.db-lock", "marketd.json"];
        assert_eq!(history.files(), files);
    }

    #[test]
    fn a_copy_that_the_disk_has_no_space_for_leaves_nothing() {
        let history = History::filled();
        let (before, files) = (history.export(&history.symbols[0], &[]), history.files());
        let prune = ["prune", "--data", "history.db", "--source", "okx", "--yes"];
        let serve = ["--data", ":memory:", "--listen", "127.0.0.1:0", "--address-file", "a.json"];
        let backup = ["backup", "copy.db", "--data", "history.db"];
        let many = [1, 8, 100];
        for (words, limits) in [(&backup[..], &many[..]), (&prune, &many), (&serve, &[0])] {
            for blocks in limits {
                let limit = format!("ulimit -f {blocks} && exec \"$0\" \"$@\"");
                let words = [&["-c", &limit, env!("CARGO_BIN_EXE_marketd")], words].concat();
                let shell = Launch::new(&words).program("sh").in_dir(history.dir.clone());
                assert_eq!(shell.run().code, Some(2), "{words:?} {blocks}");
                // These two belong to the file, whatever happens.
                let is_own = |name: &String| name.ends_with("-wal") || name.ends_with("-shm");
                let left: Vec<_> = history.files().into_iter().filter(|it| !is_own(it)).collect();
                assert_eq!(left, files, "{words:?} {blocks}");
            }
        }
        assert_eq!(history.export(&history.symbols[0], &[]), before);
    }

    #[test]
    fn who_may_only_read_the_file_and_who_may_all_leave_nothing_of_theirs_beside_it() {
        if !rustix::process::geteuid().is_root() {
            return skipped("what one user leaves for another is tried by root alone");
        }
        let history = History::filled();
        let words =
            ["export", "--id", "fake", "--interval", "1h", "--data", "history.db", "--symbol"];
        let words = [&words[..], &[&history.symbols[0]]].concat();
        // A directory that cargo made may be closed to others.
        let program = history.file("marketd");
        // Written by another process: one that is started beside would keep this file open for writing.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_marketd")).arg(&program).status();
        assert!(copied.expect("cp runs").success());
        let mut other = Command::new(&program);
        other.args(&words).current_dir(history.dir.path()).uid(65534).gid(65534);
        let before = history.files();
        let (expected, found) = (history.run(&words).1, other.output().expect("it runs"));
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        assert!(expected.as_bytes() == found.stdout && expected.len() > 1000);
        assert_eq!(history.files(), before);
        // What root does to the file of another leaves nothing of root.
        let (file, lock) = (history.file("history.db"), history.file("history.db-lock"));
        std::os::unix::fs::chown(&file, Some(65534), Some(65534)).expect("root may");
        std::fs::remove_file(&lock).expect("it is there");
        let words = ["prune", "--data", "history.db", "--source", "okx", "--yes"];
        assert_eq!(history.run(&words).0, 0);
        for name in history.files().iter().filter(|name| name.starts_with("history.db")) {
            let about = std::fs::metadata(history.file(name)).expect("it is there");
            assert_eq!((about.uid(), about.gid()), (65534, 65534), "{name}");
        }
        // A lock that somebody else has left is named.
        std::os::unix::fs::chown(history.dir.path(), Some(65534), None).expect("root may");
        std::fs::remove_file(&lock).expect("it is there");
        std::fs::write(&lock, "").expect("root may");
        for words in [&words[..], &["--check", "--data", "history.db", "--demo"]] {
            let mut other = Command::new(&program);
            other.args(words).current_dir(history.dir.path()).uid(65534).gid(65534);
            let output = other.output().expect("it runs");
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(err.contains("history.db-lock: Permission denied"), "{words:?}: {err}");
            assert_eq!(output.status.code(), Some(2), "{words:?}");
        }
    }
}
