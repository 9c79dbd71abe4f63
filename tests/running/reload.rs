//! Reading the configuration again while marketd runs.

use crate::loopback::setup::*;
use crate::running::manager::Manager;
use crate::support::*;
use serde_json::{Value, json};

/// Writes another configuration in place of that one, and has it read.
fn reload(marketd: &Marketd, config: &Value) {
    let path = marketd.dir().path().join("marketd.json");
    // In one step, as a person's editor does.
    let new = path.with_extension("new");
    std::fs::write(&new, config.to_string()).expect("the directory can be written to");
    std::fs::rename(new, path).expect("it can be replaced");
    marketd.signal("HUP");
}

/// How often the log has said this.
fn count(marketd: &Marketd, part: &str) -> usize {
    marketd.log().matches(part).count()
}

/// Reloads, and waits until it is done.
#[track_caller]
fn reload_well(marketd: &Marketd, config: &Value) {
    let part = "config: reloaded";
    let before = count(marketd, part);
    reload(marketd, config);
    eventually(LONG, || (count(marketd, part) > before).then_some(()));
}

/// Waits until a quote is served, by this source.
#[track_caller]
fn await_quote(marketd: &Marketd, symbol: &str, source: &str) {
    await_answer(marketd.addr(), &format!("/api/v1/quotes/{symbol}"), |it| {
        it.status == 200 && it.exact()["source"] == source
    });
}

fn status_of(marketd: &Marketd, target: &str) -> u16 {
    get(marketd.addr(), target).status
}

/// The ids of the sources in the metrics.
fn sources(marketd: &Marketd) -> Vec<String> {
    metrics(marketd)["upstreams"].column("id")
}

/// What clients are told meanwhile, the simulation judges.
#[test]
fn sources_come_and_go_while_another_one_stays_the_same() {
    let (first, second) = (exchange_of(&["BTC/USDT"]), exchange_of(&["ETH/USDT"]));
    let one = config(&[source("a", &first)]);
    let both = config(&[source("a", &first), source("b", &second)]);
    let marketd = start(&one);
    for _ in 0..2 {
        let (polls, spent) = (upstream(&marketd, "ok"), upstream(&marketd, "polls"));
        reload_well(&marketd, &both);
        await_quote(&marketd, "ETH-USDT", "b");
        assert_eq!(sources(&marketd), ["a", "b"]);
        reload_well(&marketd, &one);
        assert_eq!(sources(&marketd), ["a"]);
        eventually(LONG, || (second.connections_open() == 0).then_some(()));
        assert!(upstream(&marketd, "ok") >= polls && upstream(&marketd, "polls") >= spent);
    }
    let asked = second.asked().len();
    await_polls(&marketd, 5);
    assert_eq!(second.asked().len(), asked, "one that has ended is not asked");
    await_health(&marketd, "ok");
    assert_eq!(marketd.stop(LONG).code, Some(0));
}

#[test]
fn markets_and_categories_follow_the_file() {
    let exchange = exchange_of(&["BTC/USDT", "ETH/USDT", "SOL/EUR"]);
    let of = |symbols: &[&str]| config(&[tracking("a", &exchange, symbols)]);
    let marketd = start(&of(&["BTC/USDT", "SOL/EUR"]));
    let majors = json!([{ "id": "majors", "symbols": ["ETH/USDT"] }]);
    reload_well(&marketd, &with(of(&["BTC/USDT", "ETH/USDT"]), "categories", majors));
    assert_eq!(status_of(&marketd, "/api/v1/quotes/BTC-USDT"), 200);
    assert_eq!(status_of(&marketd, "/api/v1/quotes/SOL-EUR"), 404);
    await_quote(&marketd, "ETH-USDT", "a");
    let markets = read(marketd.addr(), "/api/v1/categories/majors/markets");
    assert_eq!(markets["category"]["marketCount"].integer(), Some(1));
    assert_eq!(status_of(&marketd, "/api/v1/categories/eur/markets"), 404);
    // All that the exchange has.
    reload_well(&marketd, &config(&[source("a", &exchange)]));
    await_quote(&marketd, "SOL-EUR", "a");
    assert_eq!(status_of(&marketd, "/api/v1/categories/majors/markets"), 404);
}

#[test]
fn a_stream_is_told_what_a_reload_takes_away_and_what_comes_back() {
    let exchange = Binance::generated(3, 9);
    let symbols = exchange.symbols();
    let [stays, goes, comes] = [&*symbols[0], &*symbols[1], &*symbols[2]];
    let of = |symbols: &[&str]| config(&[tracking("a", &exchange, symbols)]);
    let both = of(&[stays, goes]);
    let marketd = start(&both);
    let quotes = format!("/api/v1/stream?symbols={goes},{stays},{comes}&source=a");
    let candles = format!("/api/v1/stream?charts={goes}:1m,{comes}:1m,{stays}:1m&source=a");
    let open = |target: &str| EventSource::open(marketd.addr(), target);
    let mut all = open("/api/v1/stream?symbols=*");
    let (mut named, mut chart) = (open(&quotes), open(&candles));
    let says = |event: &ServerEvent, name: &str, symbol: &str| {
        event.name == name && event.exact()["symbol"].text() == Some(symbol)
    };
    for (stream, name) in [(&mut named, "quote"), (&mut chart, "candle")] {
        let mut missing = vec![("gone", comes), (name, goes), (name, stays)];
        stream.until(|event| {
            missing.retain(|(name, symbol)| !says(event, name, symbol));
            missing.is_empty() && event.id.is_some()
        });
    }
    all.until(|event| says(event, "quote", goes));
    let id = named.last_id.clone();
    reload_well(&marketd, &of(&[stays, comes]));
    for stream in [&mut named, &mut all] {
        let gone = stream.until(|event| says(event, "gone", goes));
        let expected = format!(r#"{{"symbol":"{goes}","code":"symbol_not_found"}}"#);
        assert_eq!(gone.data, expected);
        stream.until(|event| says(event, "quote", comes));
    }
    let gone = chart.until(|event| says(event, "gone", goes));
    let expected = format!(r#"{{"symbol":"{goes}","interval":"1m","code":"symbol_not_found"}}"#);
    assert_eq!(gone.data, expected);
    chart.until(|event| says(event, "candle", comes));
    // Whoever was away is told too, and once.
    let mut back = EventSource::resume(marketd.addr(), &quotes, &id);
    let mut was_told = false;
    back.until(|event| {
        was_told |= says(event, "gone", goes);
        was_told && event.id.is_some()
    });
    let mut again = EventSource::resume(marketd.addr(), &quotes, &back.last_id);
    again.until(|event| {
        assert_ne!(event.name, "gone");
        says(event, "quote", comes)
    });
    reload_well(&marketd, &both);
    for stream in [&mut named, &mut all, &mut back, &mut again] {
        stream.until(|event| {
            assert!(!says(event, "gone", goes), "it is gone already");
            says(event, "quote", goes)
        });
    }
    chart.until(|event| says(event, "candle", goes));
    // All that a stream has may go.
    reload_well(&marketd, &of(&[comes]));
    for stream in [&mut named, &mut all, &mut chart] {
        stream.until(|event| says(event, "gone", stays));
    }
}

#[test]
fn an_exchange_may_move_and_no_other_takes_its_id() {
    let (old, new) = (exchange_of(&["BTC/USDT"]), exchange_of(&["BTC/USDT"]));
    let marketd = start(&config(&[source("a", &old)]));
    let spent = metrics(&marketd)["upstreams"][0]["budgetSpent"].integer();
    // The old one asks for a pause, which does not concern the new one.
    old.fault(Fault::TooManyRequests(Some("600".to_string())));
    eventually(LONG, || (upstream(&marketd, "rateLimited") > 0).then_some(()));
    reload_well(&marketd, &config(&[source("a", &new)]));
    assert_eq!(status_of(&marketd, "/api/v1/quotes/BTC-USDT"), 200);
    new.await_asked(binance::TICKERS, 2, LONG);
    eventually(LONG, || (old.connections_open() == 0).then_some(()));
    assert!(metrics(&marketd)["upstreams"][0]["budgetSpent"].integer() >= spent);
    await_health(&marketd, "ok");
    // Its candles would be mixed with those of another exchange, also after it has ended.
    let (other, okx) = (source("b", &old), with(source("a", &new), "dialect", json!("okx")));
    let (without, both) = (config(std::slice::from_ref(&other)), config(&[other, okx.clone()]));
    for (at, file) in [config(&[okx]), both].iter().enumerate() {
        reload(&marketd, file);
        let told =
            "has dialect \\\"binance\\\" until marketd ends: another exchange needs another id";
        let line =
            marketd.await_log(&format!("sources[{at}].dialect: source \\\"a\\\" {told}"), LONG);
        assert!(line.contains("marketd.json:1: "), "{line}");
        assert_eq!(sources(&marketd), [["a"], ["b"]][at]);
        reload_well(&marketd, &without);
    }
    reload_well(&marketd, &config(&[source("a", &new)]));
    await_quote(&marketd, "BTC-USDT", "a");
}

#[test]
fn a_file_with_a_fault_changes_nothing() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let good = config(&[source("a", &exchange)]);
    let marketd = start(&good);
    let path = marketd.dir().path().join("marketd.json");
    let refuse = |text: &str, part: &str| {
        std::fs::write(&path, text).expect("the directory can be written to");
        marketd.signal("HUP");
        marketd.await_log(part, LONG);
        assert_eq!(status_of(&marketd, "/api/v1/quotes/BTC-USDT"), 200);
        assert_eq!(sources(&marketd), ["a"]);
    };
    refuse("{ \"listen\": 1 }", "marketd.json:1: listen: expected ADDR:PORT or unix:PATH");
    refuse("{", "not reloaded error=");
    let runs = "sources: the demo exchange runs from the start or not at all";
    refuse("{}", runs);
    std::fs::remove_file(&path).expect("it is there");
    marketd.signal("HUP");
    marketd.await_log("cannot be read", LONG);
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()));
    marketd.signal("HUP");
    marketd.await_log("not a regular file", LONG);
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!(count(&marketd, "config: reloaded"), 0);
    reload_well(&marketd, &good);
    let many: Vec<Value> = (0..18).map(|at| source(&format!("s{at}"), &exchange)).collect();
    reload(&marketd, &config(&many));
    marketd.await_log("too many since the start: 19, at most 17", LONG);
    assert_eq!(sources(&marketd), ["a"]);
}

#[test]
fn a_demo_whose_clock_stands_still_stays_as_it_is() {
    let demo = |speed: u32| {
        let source =
            json!({ "dialect": "demo", "frozenAfterMs": 1000, "staleAfterMs": 500, "pollMs": 100 });
        with(config(&[source]), "demo", json!({ "speed": speed, "at": "2026-11-22" }))
    };
    let marketd = start(&demo(0));
    reload_well(&marketd, &demo(1));
    marketd.await_log("restart needed keys=", LONG);
    // Two seconds, and no quote changes.
    await_polls(&marketd, 20);
    assert_eq!(get(marketd.addr(), "/health").json()["status"], "ok", "{}", marketd.log());
}

#[test]
fn what_holds_until_the_end_is_told_in_one_line() {
    let (first, second) = (exchange_of(&["BTC/USDT"]), exchange_of(&["ETH/USDT"]));
    let (a, b) = (source("a", &first), source("b", &second));
    let marketd = start(&config(&[a.clone(), b.clone()]));
    let other = with(config(&[b.clone(), a.clone()]), "data", json!("other.db"));
    let other = with(other, "limits", json!({ "maxConnections": 7, "symbolsPerRequest": 1 }));
    reload_well(&marketd, &other);
    let line = marketd.await_log("restart needed keys=", LONG);
    let keys = "keys=\"data, limits.maxConnections, the order of sources\"\n";
    assert!(line.ends_with(keys), "{line}");
    let two = "/api/v1/quotes?symbols=BTC-USDT,ETH-USDT";
    assert_eq!(status_of(&marketd, two), 400, "other limits have changed");
    // What needs a restart is compared with what runs, and not with what was read last.
    reload_well(&marketd, &other);
    for _ in 0..2 {
        reload_well(&marketd, &config(&[a.clone(), b.clone()]));
    }
    assert_eq!(count(&marketd, "restart needed"), 2);
    assert!(!marketd.dir().path().join("other.db").exists());
}

#[test]
fn lines_of_the_log_and_limits_follow_the_file() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let quiet = config(&[source("a", &exchange)]);
    let marketd = start(&quiet);
    assert_eq!(count(&marketd, "access: "), 0);
    let loud = with(with(quiet.clone(), "accessLog", json!(true)), "log", json!("debug"));
    let limits = json!({ "requestsPerMinute": 1, "requestBurst": 1 });
    reload_well(&marketd, &with(loud, "limits", limits));
    assert_eq!(status_of(&marketd, "/api/v1/quotes/BTC-USDT"), 200);
    assert_eq!(status_of(&marketd, "/api/v1/quotes/BTC-USDT"), 429);
    marketd.await_log("access: peer=127.0.0.1 method=GET", LONG);
    marketd.await_log("DEBUG source: response source=a", LONG);
    reload_well(&marketd, &quiet);
    let before = count(&marketd, "access: ");
    for _ in 0..3 {
        assert_eq!(status_of(&marketd, "/api/v1/quotes/BTC-USDT"), 200);
    }
    await_polls(&marketd, 1);
    assert_eq!(count(&marketd, "access: "), before);
}

#[test]
fn a_reload_that_is_refused_changes_nothing_and_is_told() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let good = with(config(&[source("a", &exchange)]), "basePath", json!("/base"));
    let marketd = start(&good);
    let health = || read(marketd.addr(), "/base/health");
    eventually(LONG, || (health()["status"] == "ok").then_some(()));
    let (pid, url) = (marketd.pid().to_string(), format!("http://{}/base", marketd.addr()));
    let wait = || Launch::new(&["reload", &pid, &url]).run();
    // Sound by itself, but with more sources than one process takes.
    let many: Vec<Value> = (0..30).map(|at| source(&format!("s{at}"), &exchange)).collect();
    let many = with(good.clone(), "sources", json!(many));
    reload(&marketd, &with(with(many, "log", json!("debug")), "accessLog", json!(true)));
    marketd.await_log("not reloaded error=\"sources: too many", LONG);
    let page = || get(marketd.addr(), "/base/metrics").text().to_string();
    for refused in 1..3 {
        let health = health();
        assert_eq!(
            (health["status"].text(), health["ready"].bool()),
            (Some("degraded"), Some(true))
        );
        assert_eq!(health["reasons"][0]["code"], "reload_refused");
        let page = page();
        assert!(page.contains("\nmarketd_config_last_reload_successful 0\n"), "{page}");
        let count = format!("\nmarketd_config_reloads_total{{result=\"refused\"}} {refused}\n");
        assert!(page.contains(&count), "{page}");
        let told = wait();
        let expected = "the configuration was refused, and nothing has changed: see the log\n";
        assert_eq!((told.code, told.stderr.as_str()), (Some(1), expected));
    }
    assert_eq!((count(&marketd, "DEBUG"), count(&marketd, "access: ")), (0, 0));
    let file = marketd.dir().path().join("marketd.json");
    // The one that asks for the reload finds the fault as well, and the one that runs is told all the same.
    std::fs::write(&file, "{\n  1").expect("a file");
    let named = file.to_str().expect("UTF-8");
    let told = Launch::new(&["reload", &pid, "--config", named]).run();
    assert_eq!((told.code, told.stderr.lines().count()), (Some(1), 1), "{}", told.stderr);
    assert!(told.stderr.starts_with(&format!("{named}:2:3: ")), "{}", told.stderr);
    let refused = "\nmarketd_config_reloads_total{result=\"refused\"} 4\n";
    eventually(LONG, || page().contains(refused).then_some(()));
    std::fs::write(&file, good.to_string()).expect("a file");
    assert_eq!((wait().code, wait().stdout.as_str()), (Some(0), "reloaded\n"));
    assert_eq!(health()["status"], "ok");
    assert!(page().contains("\nmarketd_config_last_reload_successful 1\n"));
    // Neither another program nor one that listens elsewhere is sent a signal, which would end it.
    let mut other = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
    let told = Launch::new(&["reload", &other.id().to_string(), &url]).run();
    let expected = format!("process {} is sleep, and no marketd\n", other.id());
    assert_eq!((told.code, told.stderr.as_str()), (Some(1), &*expected));
    assert!(other.try_wait().is_ok_and(|ended| ended.is_none()), "it runs on");
    other.kill().and_then(|()| other.wait()).expect("it is ours");
    let reloads = || count(&marketd, "config: reloaded");
    let before = reloads();
    let told = Launch::new(&["reload", &pid, &format!("{url}/elsewhere")]).run();
    let end = format!("; process {pid} was told nothing\n");
    assert!(told.code == Some(1) && told.stderr.ends_with(&end), "{}", told.stderr);
    assert_eq!(reloads(), before);
    let told = Launch::new(&["reload", "x"]).run();
    let expected = "reload: expected the process id of a marketd, found \"x\"\n";
    assert_eq!((told.code, told.stderr.as_str()), (Some(2), expected));
}

#[test]
fn a_raised_limit_makes_room_for_as_many_streams() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let of = |streams: usize| {
        with(config(&[source("a", &exchange)]), "limits", json!({ "streams": streams }))
    };
    let marketd = start(&of(1));
    await_quote(&marketd, "BTC-USDT", "a");
    let target = "/api/v1/stream?symbols=BTC/USDT";
    let mut open = vec![EventSource::open(marketd.addr(), target)];
    for streams in [3, 2, 4] {
        assert_eq!(status_of(&marketd, target), 503);
        reload_well(&marketd, &of(streams));
        while open.len() < streams {
            open.push(EventSource::open(marketd.addr(), target));
        }
    }
    assert_eq!(status_of(&marketd, target), 503);
    for stream in &mut open {
        stream.next().expect("it is still open");
    }
}

#[test]
fn the_manager_is_told_that_the_file_is_read_again() {
    let (manager, name) = Manager::new();
    let exchange = exchange_of(&["BTC/USDT"]);
    let launch = Launch::new(&[]).env("NOTIFY_SOCKET", &name);
    let marketd = launch.config(config(&[source("a", &exchange)])).start();
    assert_eq!(manager.next_but(&["STATUS="]), "READY=1");
    for text in [None, Some("{")] {
        if let Some(text) = text {
            let path = marketd.dir().path().join("marketd.json");
            std::fs::write(path, text).expect("the directory can be written to");
        }
        marketd.signal("HUP");
        let told = manager.next_but(&["STATUS="]);
        let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        assert!(time.is_some_and(|it| it.parse::<u64>().is_ok()), "{told}");
        assert_eq!(manager.next_but(&["STATUS="]), "READY=1");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn candles_of_a_source_that_ends_stay_in_the_file_and_are_there_when_it_comes_back() {
    let (first, second) = (exchange_of(&["BTC/USDT"]), Binance::generated(1, 7));
    let symbol = second.symbols()[0].clone();
    let kept = |sources: &[Value]| with(config(sources), "data", json!("kept.db"));
    let (a, b) = (source("a", &first), tracking("b", &second, &[&symbol]));
    let (one, both) = (kept(std::slice::from_ref(&a)), kept(&[a, b]));
    let marketd = start(&both);
    let target = format!("/api/ecosystem/chart?symbol={symbol}&interval=1h&limit=200&source=b");
    let is_there = |marketd: &Marketd| get(marketd.addr(), &target).text().len() > 5000;
    eventually(LONG, || is_there(&marketd).then_some(()));
    eventually(LONG, || (metrics(&marketd)["candlesStored"].integer() > Some(190)).then_some(()));
    // Nobody else can tell of these candles.
    second.fault_on(binance::KLINES, Fault::Status(500));
    reload_well(&marketd, &one);
    assert_eq!(status_of(&marketd, &target), 404);
    reload_well(&marketd, &both);
    eventually(LONG, || is_there(&marketd).then_some(()));
    // What an earlier run has stored is there too.
    let dir = marketd.dir();
    assert_eq!(marketd.stop(LONG).code, Some(0));
    let marketd = Launch::new(&[]).in_dir(dir).config(&one).start();
    await_health(&marketd, "ok");
    assert_eq!(status_of(&marketd, &target), 404);
    reload_well(&marketd, &both);
    eventually(LONG, || is_there(&marketd).then_some(()));
}
