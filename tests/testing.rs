//! What tests of other programs rely on: a demo exchange that does what it is told, at the time that it is
//! told, and a start and an end that nobody has to guess.

use crate::loopback::setup::await_error;
use crate::support::daemon::TempDir;
use crate::support::*;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A time that is not the start of any interval.
const AT: i64 = 1_790_000_123_000;
const MINUTE: i64 = 60_000;

/// Bodies that depend on seed, time and script alone.
const TARGETS: &[&str] = &[
    "/api/v1/quotes/BTC/USDT",
    "/api/v1/quotes?symbols=*",
    "/api/v1/categories",
    "/api/v1/categories/usdt/markets",
    "/api/ecosystem/market",
    "/api/ecosystem/market/ETH-BTC",
    "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m",
    "/api/ecosystem/chart?symbol=BTC/USDT&interval=4h&limit=50",
    #[cfg(feature = "page")]
    "/udf/symbols?symbol=BTC/USDT",
    #[cfg(feature = "page")]
    "/udf/history?symbol=BTC/USDT&resolution=60&to=1790000123&countback=30",
];

/// A demo that polls often and backs off little, with these settings and its script.
fn demo(settings: Value, script: &Value) -> (Marketd, PathBuf) {
    let launch = Launch::new(&[]);
    let file = launch.file("script.json", script);
    let mut demo = settings;
    demo["script"] = json!(file.to_string_lossy());
    let source = json!({ "dialect": "demo", "pollMs": 100, "staleAfterMs": 1000 });
    let config = json!({ "data": ":memory:", "sources": [source], "demo": demo,
        "limits": { "backoffMaxMs": 1000 } });
    (launch.config(config).start(), file)
}

#[track_caller]
fn body(addr: SocketAddr, target: &str, is_wanted: impl Fn(&Response) -> bool) -> String {
    let found = || Some(get(addr, target)).filter(|it| it.status == 200 && is_wanted(it));
    eventually(LONG, found).text().to_string()
}

fn is_complete(response: &Response) -> bool {
    response.header("Chart-Coverage").is_none_or(|coverage| coverage == "complete")
}

#[track_caller]
fn await_quote(addr: SocketAddr, symbol: &str, key: &str, expected: &str) {
    let target = format!("/api/v1/quotes/{symbol}");
    let found = |it: &Response| it.exact()[key].to_string();
    body(addr, &target, |it| *expected == found(it));
}

#[test]
fn the_addresses_are_in_the_file_as_long_as_it_runs() {
    let launch = Launch::new(&["--demo", "--data", ":memory:"]);
    let file = launch.file("addresses.json", "{\"listen\":null,\"pid\":1}\n");
    let marketd = launch.arg("--address-file").arg(&file.to_string_lossy()).start();
    let found = || serde_json::from_slice::<Value>(&std::fs::read(&file).ok()?).ok();
    let addresses = eventually(LONG, || found().filter(|it| it["pid"] != 1));
    assert_eq!(addresses["listen"], format!("http://{}", marketd.addr()));
    assert_eq!(addresses["ecosystemListen"], Value::Null);
    assert_eq!(addresses["pid"], marketd.pid());
    // The file of a process that runs is not that of another one that cannot start.
    let (listen, name) = (marketd.addr().to_string(), file.to_string_lossy());
    let other = Marketd::run(&["--demo", "--listen", &listen, "--address-file", &name]);
    assert_eq!((other.code, found()), (Some(2), Some(addresses.clone())), "{}", other.stderr);
    let demo = addresses["demo"].as_str().and_then(|it| it.strip_prefix("http://"));
    let demo: SocketAddr = demo.and_then(|it| it.parse().ok()).expect("an address");
    assert_eq!(get(demo, "/api/v3/time").status, 200);
    assert_eq!(marketd.stop(LONG).code, Some(0));
    assert!(!file.exists());
    let missing = Marketd::run(&["--demo", "--address-file", "/no/such/directory/file"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("--address-file: cannot write"), "{}", missing.stderr);
}

#[test]
fn the_addresses_take_the_place_of_nothing_else() {
    let dir = Arc::new(TempDir::new());
    let of = |name: &str| dir.path().join(name);
    std::fs::write(of("marketd.json"), "{\"listen\":\"127.0.0.1:0\"}").expect("it is ours");
    std::os::unix::fs::symlink("nothing", of("link")).expect("it is ours");
    let mut cases = vec![(":memory:", "marketd.json"), (":memory:", "link")];
    cases.extend(cfg!(feature = "sqlite").then_some(("x.db", "x.db")));
    for (data, name) in cases {
        let words = ["--listen", "127.0.0.1:0", "--data", data, "--address-file", name];
        let refused = Launch::new(&words).in_dir(Arc::clone(&dir)).run();
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let why = "it exists, and is not a file of addresses";
        let told = format!("marketd: --address-file: cannot write {name}: {why}\n");
        assert!(refused.stderr.ends_with(&told), "{refused:?}");
    }
    let config = std::fs::read_to_string(of("marketd.json")).expect("it is there");
    assert_eq!(config, "{\"listen\":\"127.0.0.1:0\"}");
    assert!(of("link").is_symlink());
    let is_history = std::fs::read(of("x.db")).is_ok_and(|it| it.starts_with(b"SQLite format 3"));
    assert_eq!(is_history, cfg!(feature = "sqlite"));
    let mut names = std::fs::read_dir(dir.path()).expect("a directory").flatten();
    assert!(names.all(|it| !it.file_name().to_string_lossy().contains("-new-")), "a draft is left");
}

#[test]
fn a_client_of_binance_reads_the_same_from_the_exchange_and_from_marketd() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testing/ccxt_client.py");
    if !manual::has_python("ccxt") {
        return skipped("CCXT against the demo exchange, for want of Python's ccxt");
    }
    let listen = json!({ "seed": 3, "at": AT, "speed": 0, "listen": "127.0.0.1:0" });
    let (marketd, file) = demo(listen, &json!({}));
    let exchange = exchange_of(&marketd);
    let urls = [format!("http://{exchange}"), format!("http://{}", marketd.addr())];
    body(
        marketd.addr(),
        "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=1400",
        is_complete,
    );
    let run = |status: &[&str]| {
        let client = Command::new(manual::python()).arg(script).args(&urls).args(status).output();
        let client = client.expect("it runs");
        assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
    };
    run(&[]);
    for status in ["429", "503"] {
        let fail = json!({ "fail": { "quotes": { "status": status.parse::<u16>().unwrap() } } });
        std::fs::write(&file, fail.to_string()).expect("a file");
        let failing = || (get(exchange, "/api/v3/ticker/24hr").status != 200).then_some(());
        eventually(LONG, failing);
        run(&[status]);
    }
}

/// Where the demo exchange listens.
fn exchange_of(marketd: &Marketd) -> SocketAddr {
    let mark = "demo exchange on http://";
    let line = marketd.await_log(mark, LONG);
    let (_, rest) = line.split_once(mark).expect("it is in the line");
    rest.split(':').take(2).collect::<Vec<_>>().join(":").parse().expect("an address")
}

#[test]
fn a_health_check_waits_until_it_is_ready() {
    // An address that no other test listens at, where loopback has more than one.
    let any = if cfg!(target_os = "linux") { "127.0.0.9:0" } else { "127.0.0.1:0" };
    let free = TcpListener::bind(any).and_then(|it| it.local_addr());
    let free = free.expect("a free port").to_string();
    let url = format!("http://{free}");
    let none = Marketd::run(&["healthcheck", "--wait", "1", &url]);
    assert_eq!((none.code, none.stderr.lines().count()), (Some(1), 1), "{none:?}");
    let asked = url.clone();
    let check = std::thread::spawn(move || Marketd::run(&["healthcheck", "--wait", "100", &asked]));
    let _marketd = Marketd::start(&["--demo", "--data", ":memory:", "--listen", &free]);
    assert_eq!(check.join().expect("it ends").code, Some(0));
    let wrong = Marketd::run(&["healthcheck", "--wait", "soon", &url]);
    assert_eq!(wrong.code, Some(2));
}

#[test]
fn one_seed_and_time_and_script_give_the_same_bodies_for_ever() {
    let script = json!({ "quotes": { "ETH/USDT": { "last": "3000.50", "high": "1e4" } },
        "fail": { "quotes": { "status": 500, "times": 1 } } });
    let bodies = |marketd: &Marketd| -> Vec<String> {
        TARGETS.iter().map(|it| body(marketd.addr(), it, is_complete)).collect()
    };
    let settings = || json!({ "seed": 7, "at": AT, "speed": 0 });
    let runs = [0, 1].map(|_| demo(settings(), &script).0);
    let [one, two] = runs.each_ref().map(bodies);
    assert_eq!(one, two);
    assert!(one[0].contains(&format!("\"receivedAt\":{AT},")), "{}", one[0]);
    assert!(one[1].contains("\"last\":3000.5,"), "{}", one[1]);
    let polls =
        || get(runs[0].addr(), "/api/v1/metrics").exact()["upstreams"][0]["polls"].integer();
    let later = polls().map(|polls| polls + 20);
    eventually(LONG, || (polls() >= later).then_some(()));
    assert_eq!(bodies(&runs[0]), one);
    let other = demo(json!({ "seed": 8, "at": AT, "speed": 0 }), &script).0;
    assert_ne!(bodies(&other)[0], one[0]);
}

#[test]
fn candles_close_each_second_at_sixty_times_the_speed() {
    let (marketd, _) = demo(json!({ "at": AT, "speed": 60 }), &json!({}));
    let begin = Instant::now();
    let closed = |response: &Response| -> i64 {
        response.header("Chart-Last-Closed").and_then(|it| it.parse().ok()).unwrap_or(0)
    };
    let target = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=10";
    for minutes in 1..=4 {
        let until = AT / MINUTE * MINUTE + minutes * MINUTE;
        let answer = eventually(LONG, || {
            Some(get(marketd.addr(), target)).filter(|it| it.status == 200 && closed(it) >= until)
        });
        assert_eq!(answer.header("Chart-Gaps"), Some("0"));
    }
    assert!(begin.elapsed() >= Duration::from_millis(3500), "{:?}", begin.elapsed());
    let health = get(marketd.addr(), "/health").exact();
    assert_eq!(health["status"], "ok", "{health:?}");
}

#[test]
fn a_script_that_changes_changes_what_is_served() {
    let quote = |last: &str| json!({ "quotes": { "BTC/USDT": { "last": last } } });
    let (marketd, file) = demo(json!({ "at": AT, "speed": 0 }), &quote("1.25"));
    let addr = marketd.addr();
    let write = |script: Value| std::fs::write(&file, script.to_string()).expect("a file");
    await_quote(addr, "BTC-USDT", "last", "1.25");
    for last in ["2.5", "3.75", "4.5"] {
        write(quote(last));
        await_quote(addr, "BTC-USDT", "last", last);
    }
    // A file with a fault changes nothing, and the log says where the fault is.
    std::fs::write(&file, "{ \"quotes\": { \"BTC/USDT\": {} } }").expect("a file");
    marketd.await_log("script.json:1: quotes", LONG);
    await_quote(addr, "BTC-USDT", "last", "4.5");
    // The clock is set forward, a market leaves, another one comes.
    write(json!({ "at": AT + MINUTE, "markets": { "XRP/USDT": null, "NEW/USDT": {} },
        "quotes": { "NEW/USDT": { "last": 7, "timestamp": AT } } }));
    await_quote(addr, "NEW-USDT", "receivedAt", &(AT + MINUTE).to_string());
    await_quote(addr, "NEW-USDT", "timestamp", &AT.to_string());
    eventually(LONG, || (get(addr, "/api/v1/quotes/XRP-USDT").status == 404).then_some(()));
    let target = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=1";
    let open = (AT + MINUTE) / MINUTE * MINUTE;
    body(addr, target, |it| it.text().starts_with(&format!("[[{open},")));
}

#[test]
fn a_list_of_candles_owns_its_slots() {
    let open = AT / MINUTE * MINUTE;
    let row = |slots_ago: i64, price: &str| {
        json!([open - slots_ago * MINUTE, price, price, price, price, "0.5"])
    };
    let rows = json!([row(5, "10"), row(4, "11.50"), row(2, "12"), row(0, "13")]);
    let script = json!({ "candles": { "BTC/USDT": { "1m": rows } } });
    let (marketd, _) = demo(json!({ "at": AT, "speed": 0 }), &script);
    let from = open - 5 * MINUTE;
    let target = format!("/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&from={from}");
    let answer = eventually(LONG, || {
        Some(get(marketd.addr(), &target)).filter(|it| it.status == 200 && is_complete(it))
    });
    assert_eq!(answer.header("Chart-Gaps"), Some("2"));
    let opens = answer.exact().items().iter().map(|it| it[0].integer()).collect::<Vec<_>>();
    assert_eq!(opens, [5, 4, 2, 0].map(|ago| Some(open - ago * MINUTE)));
    assert_eq!(answer.exact()[1][1].to_string(), "11.5");
}

#[test]
fn what_fails_does_so_as_often_and_as_long_as_the_script_says() {
    let fail = |what: Value| json!({ "fail": what });
    let (marketd, file) = demo(json!({ "at": AT, "speed": 1 }), &json!({}));
    let addr = marketd.addr();
    let write = |script: Value| std::fs::write(&file, script.to_string()).expect("a file");
    let source = || get(addr, "/api/v1/metrics").exact()["upstreams"][0].clone();
    await_quote(addr, "BTC-USDT", "stale", "false");
    write(fail(json!({ "quotes": { "status": 503 } })));
    await_error(&marketd, "503");
    await_quote(addr, "BTC-USDT", "stale", "true");
    write(fail(json!({ "quotes": { "status": 429, "retryAfter": 1, "times": 1 } })));
    await_quote(addr, "BTC-USDT", "stale", "false");
    assert!(source()["rateLimited"].integer() >= Some(1));
    write(fail(json!({ "quotes": { "drop": true } })));
    await_error(&marketd, "closed");
    write(fail(json!({ "quotes": { "delayMs": 700 } })));
    let slow = || source()["lastLatencyMs"].integer().filter(|ms| *ms >= 700);
    eventually(LONG, slow);
    write(fail(json!({ "quotes": { "empty": true } })));
    await_quote(addr, "BTC-USDT", "stale", "true");
    write(json!({}));
    await_quote(addr, "BTC-USDT", "stale", "false");
}

/// A configuration of sources of the demo exchange with these ids.
fn several(ids: &[&str], data: &str, demo: Value) -> Value {
    let source = |id: &&str| {
        json!({ "dialect": "demo", "id": id, "symbols": ["BTC/USDT"],
        "pollMs": 100 })
    };
    let sources: Vec<Value> = ids.iter().map(source).collect();
    json!({ "data": data, "sources": sources, "demo": demo })
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_build_without_a_store_says_that_it_plays_nothing() {
    let config = several(&["a"], ":memory:", json!({ "replay": { "data": "x.db" } }));
    let ended = Launch::new(&["--check"]).config(config).run();
    assert_eq!(ended.code, Some(2));
    let why = "demo.replay: this build reads no history file";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}

#[cfg(feature = "sqlite")]
mod replay {
    use super::*;
    use crate::support::daemon::TempDir;
    use std::sync::Arc;

    const IDS: [&str; 2] = ["alpha", "beta"];

    fn chart(addr: SocketAddr, source: &str, query: &str) -> Vec<Json> {
        let target = format!("/api/ecosystem/chart?symbol=BTC/USDT&source={source}&{query}");
        let answer = eventually(LONG, || {
            Some(get(addr, &target)).filter(|it| it.status == 200 && is_complete(it))
        });
        answer.exact().items().to_vec()
    }

    fn time_of(row: &Json) -> i64 {
        row[0].integer().expect("a time")
    }

    /// A history file of two exchanges that ends at [`AT`], and the minutes of each.
    fn recorded() -> (Arc<TempDir>, String, [Vec<Json>; 2]) {
        let dir = Arc::new(TempDir::new());
        let file = dir.path().join("recorded.db").to_string_lossy().into_owned();
        let minutes = IDS.map(|id| {
            let demo = json!({ "seed": id.len(), "at": AT, "speed": 0 });
            let marketd = Launch::new(&[]).config(several(&[id], &file, demo)).start();
            let mut minutes = chart(marketd.addr(), id, "interval=1m&limit=1440");
            for interval in ["1h", "1d"] {
                chart(marketd.addr(), id, &format!("interval={interval}&limit=100"));
            }
            assert_eq!(marketd.stop(LONG).code, Some(0));
            minutes.retain(|row| time_of(row) < AT / MINUTE * MINUTE);
            minutes
        });
        (dir, file, minutes)
    }

    #[test]
    fn what_was_recorded_is_played_in_step_and_what_cannot_be_played_is_refused() {
        let (_dir, file, recorded) = recorded();
        let from = AT / MINUTE * MINUTE - 120 * MINUTE;
        let replay = json!({ "replay": { "data": file, "from": from, "speed": 1200 } });
        let marketd = Launch::new(&[]).config(several(&IDS, ":memory:", replay)).start();
        let addr = marketd.addr();
        let until = AT / MINUTE * MINUTE;
        for (id, recorded) in IDS.into_iter().zip(&recorded) {
            let query = format!("interval=1m&from={from}&to={}", until - 1);
            let recorded: Vec<_> = recorded.iter().filter(|it| time_of(it) >= from).collect();
            // The last minute forms until its end is played.
            let played = eventually(LONG, || {
                let played = chart(addr, id, &query);
                (played.last() == recorded.last().copied()).then_some(played)
            });
            assert_eq!(played.len(), 120);
            assert_eq!(played.iter().collect::<Vec<_>>(), recorded, "{id}");
        }
        // A file that cannot be played is refused at the start.
        let check = |data: &str, replay: &str, why: &str| {
            let config = several(&["a"], data, json!({ "replay": { "data": replay } }));
            for words in [&["--check"][..], &["--listen", "127.0.0.1:0"]] {
                let ended = Launch::new(words).config(config.clone()).run();
                assert_eq!(ended.code, Some(2), "{}", ended.stderr);
                assert!(ended.stderr.contains("demo.replay.data: "), "{}", ended.stderr);
                assert!(ended.stderr.contains(why), "{}", ended.stderr);
            }
        };
        check(":memory:", "/no/such/file.db", "/no/such/file.db");
        check(&file, &file, "expected another file");
    }
}

/// The examples of the manual's page, run as a reader would run them.
mod examples {
    use super::manual::{has_python, page, python};
    use super::*;
    use std::path::Path;

    /// The part of pytest that the examples need, for machines without it.
    const PYTEST: &str = "import types\n\
        fixture = lambda made: made\n\
        def parametrize(name, values, indirect):\n    \
            return lambda test: setattr(test, 'param', values[0]) or test\n\
        mark = types.SimpleNamespace(parametrize=parametrize)\n\
        def main():\n    \
            import conftest, pathlib, tempfile, test_it\n    \
            for name, test in list(vars(test_it).items()):\n        \
                if name.startswith('test_'):\n            \
                    folder = pathlib.Path(tempfile.mkdtemp(dir='.'))\n            \
                    words = conftest.marketd.__code__.co_varnames[:conftest.marketd.__code__.co_argcount]\n            \
                    it = conftest.marketd(*[folder, test][:len(words)])\n            \
                    test(next(it)); list(it); print('passed', name)\n\
        if __name__ == '__main__': main()\n";

    fn blocks(language: &str) -> Vec<String> {
        super::manual::blocks(&page("testing-your-program.md"), language)
    }

    fn helper(name: &str) -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/testing").join(name);
        let text = std::fs::read_to_string(file).expect("the helper");
        assert!(text.lines().count() <= 40, "{name}");
        text
    }

    #[test]
    fn a_marketd_that_does_not_become_ready_is_stopped() {
        const PYTHON: &str = "import conftest, pathlib\n\
            try: next(conftest.marketd(pathlib.Path('.'), None))\n\
            except Exception: pass\n\
            else: raise SystemExit('it is ready')\n";
        const NODE: &str = "import { startMarketd } from './marketd.mjs';\n\
            startMarketd().then(() => process.exit(1), () => process.exit());\n";
        for (program, name, test) in [
            (&*python(), "conftest.py", PYTHON),
            ("node", "marketd.mjs", NODE),
            ("sh", "marketd.sh", ". ./marketd.sh; ! marketd_start\n"),
        ] {
            let files = Launch::new(&[]);
            files.file(name, helper(name));
            files.file("pytest.py", PYTEST);
            files.file("test.mjs", test);
            let marketd = format!(
                "#!/bin/sh\n[ \"$1\" != healthcheck ] || exit 1\necho $$ >pid\nexec {} \"$@\" >log 2>&1\n",
                env!("CARGO_BIN_EXE_marketd")
            );
            let marketd = files.file("marketd", marketd);
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&marketd, mode).expect("it is ours");
            if run(program, &["test.mjs"], &files) {
                let pid = std::fs::read_to_string(marketd.with_file_name("pid"));
                let process = Path::new("/proc").join(pid.expect("it was started").trim());
                assert!(!process.exists(), "{name}");
            }
        }
    }

    /// Runs a program among these files, with marketd in its path. Returns false if it is not here.
    fn run(program: &str, words: &[&str], files: &Launch) -> bool {
        let path = std::env::var("PATH").unwrap_or_default();
        let here = files.file("here", "");
        let folder = here.parent().expect("it is in the folder");
        let marketd = folder.join("marketd");
        if !marketd.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_marketd"), marketd).expect("a link");
        }
        let path = format!("{}:{path}", folder.display());
        let mut command = Command::new(program);
        command.args(words).current_dir(folder).env("PATH", path).env_remove("MARKETD");
        let ran = command.output();
        match &ran {
            Ok(ran) => {
                let [out, err] = [&ran.stdout, &ran.stderr].map(|it| String::from_utf8_lossy(it));
                assert!(ran.status.success(), "{program}: {out}\n{err}");
            }
            Err(_) => skipped(&format!("the helper for {program}, which is not here")),
        }
        ran.is_ok()
    }

    fn run_pytest(conftest: &str, tests: &str, files: &Launch) {
        files.file("conftest.py", conftest);
        files.file("test_it.py", tests);
        if has_python("pytest") {
            run(&python(), &["-m", "pytest", "-q", "-p", "no:cacheprovider"], files);
        } else {
            files.file("pytest.py", PYTEST);
            run(&python(), &["pytest.py"], files);
        }
    }

    #[test]
    fn each_example_for_pytest_passes() {
        let files = Launch::new(&[]);
        let [tests, crash, conftest, ..] = &blocks("python")[..] else { panic!("three blocks") };
        let first = "def test_it(marketd):\n    script, get = marketd\n    \
            script({'quotes': {'BTC/USDT': {'last': '64000.5'}}})\n    \
            while get('/api/v1/quotes/BTC-USDT')['last'] != 64000.5: pass\n";
        assert!(conftest.lines().filter(|line| !line.is_empty()).count() <= 15);
        run_pytest(conftest, first, &Launch::new(&[]));
        #[cfg(feature = "sqlite")]
        record_a_crash(&files.file("crash.db", ""));
        let crash = if cfg!(feature = "sqlite") { crash } else { "" };
        run_pytest(&helper("conftest.py"), &format!("{tests}{crash}"), &files);
    }

    /// The price falls by 30 % in the last hour before the time of the examples.
    #[cfg(feature = "sqlite")]
    fn record_a_crash(file: &Path) {
        std::fs::remove_file(file).expect("it is there");
        let at = 1_795_338_000_000;
        let row = |minute: i64| {
            let cents = 10_000 - 50 * (minute + 60).max(0);
            let price = |more: i64| format!("{}e-2", cents + more);
            json!([at + minute * MINUTE, price(0), price(9), price(-9), price(1), "2.5"])
        };
        let rows: Vec<Value> = (-1600..1).map(row).collect();
        let script = json!({ "candles": { "BTC/USDT": { "1m": rows } } });
        let launch = Launch::new(&[]);
        let script = launch.file("script.json", script).to_string_lossy().into_owned();
        let demo = json!({ "at": at, "speed": 0, "script": script });
        let mut config = several(&["demo"], &file.to_string_lossy(), demo);
        config["history"] = json!({ "1h": { "backfill": 0 }, "1d": { "backfill": 0 } });
        let marketd = launch.config(config).start();
        let target = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=1450";
        body(marketd.addr(), target, |it| is_complete(it) && it.exact().items().len() == 1450);
        assert_eq!(marketd.stop(LONG).code, Some(0));
    }

    #[test]
    fn the_examples_for_node_and_the_shell_pass() {
        let files = Launch::new(&[]);
        files.file("marketd.mjs", helper("marketd.mjs"));
        files.file("it.test.mjs", &blocks("javascript")[0]);
        run("node", &["--test", "it.test.mjs"], &files);
        files.file("marketd.sh", helper("marketd.sh"));
        files.file("it.sh", &blocks("sh")[0]);
        run("sh", &["-e", "it.sh"], &files);
    }
}
