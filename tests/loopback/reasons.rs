//! What is wrong, and where marketd says so: the reasons of `/health`, the states of sources, the
//! lines of the log and the rules that choose them, and the signals that change nothing.

use crate::loopback::contract::as_described;
use crate::loopback::setup::*;
use crate::support::binance::{KLINES, TICKERS};
use crate::support::*;
use serde_json::{Value, json};

/// The targets of the log, as printed.
const TARGETS: [&str; 10] = [
    "access", "config", "failover", "fetch", "health", "history", "http", "market", "net", "source",
];

/// A source that is asked often and backs off for a second at most.
fn eager(exchange: &Binance, stale_after_ms: i64) -> Value {
    let source = with(source("fake", exchange), "staleAfterMs", json!(stale_after_ms));
    with(config(&[source]), "limits", json!({ "backoffMaxMs": 1000 }))
}

/// The reasons of a health body, as `code` or `code:source`.
fn codes(health: &Json) -> Vec<String> {
    let code = |reason: &Json| {
        let code = reason["code"].text().expect("it has a code").to_string();
        match reason["source"].text() {
            Some(source) => format!("{code}:{source}"),
            None => code,
        }
    };
    health["reasons"].items().iter().map(code).collect()
}

/// Waits until health, whose status is 503 in the beginning, gives exactly these reasons.
#[track_caller]
fn await_reasons(marketd: &Marketd, expected: &[&str]) -> Json {
    let answer = await_answer(marketd.addr(), "/health", |answer| {
        assert!([200, 503].contains(&answer.status));
        as_described(answer);
        codes(&answer.exact()) == expected
    });
    answer.exact()
}

#[test]
fn a_source_that_was_never_reached_is_not_down_before_its_quotes_would_be_stale() {
    let exchange = exchange_of(&["BTC/USDT"]);
    exchange.refuse();
    let marketd = Marketd::with_config(eager(&exchange, 300_000));
    eventually(LONG, || (upstream(&marketd, "errors") >= 4).then_some(()));
    assert_eq!(metrics(&marketd)["upstreams"][0]["state"], "backoff");
    let health = await_reasons(&marketd, &["starting", "source_backoff:fake"]);
    assert_eq!(health["status"], "starting");
    let message = health["reasons"][1]["message"].text().unwrap_or_default();
    assert!(message.starts_with("Failing since 20"), "{message}");
    assert!(message.contains("refused"), "{message}");
    drop(marketd);
    let marketd = Marketd::with_config(eager(&exchange, 700));
    let health = await_reasons(&marketd, &["starting", "source_down:fake"]);
    let message = health["reasons"][1]["message"].text().unwrap_or_default();
    assert!(message.starts_with("No request has succeeded since the start at 20"), "{message}");
}

#[test]
fn a_source_that_is_not_asked_for_long_is_down_once_its_quotes_are_stale() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let marketd = start(&eager(&exchange, 1500));
    let reply = Reply::status(429, r#"{"code":-1003,"msg":"Too many requests."}"#);
    exchange.fault_times(1, Some(TICKERS), Fault::Instead(reply.field("Retry-After", "3600")));
    let state = || metrics(&marketd)["upstreams"][0]["state"].clone();
    eventually(LONG, || (state() != "up").then_some(()));
    let quote = get(marketd.addr(), "/api/v1/quotes/BTC-USDT");
    let valid_for = quote.header("Cache-Control").unwrap_or_default();
    let by_then_stale = ["public, max-age=1", "public, max-age=2", "no-cache"];
    assert!(by_then_stale.contains(&valid_for), "{valid_for}");
    let health = await_reasons(&marketd, &["quotes_stale", "source_down:fake"]);
    let message = health["reasons"][1]["message"].text().unwrap_or_default();
    assert!(message.starts_with("No request for quotes has succeeded since 20"), "{message}");
    assert!(message.contains("Too many requests."), "{message}");
    // Nothing was asked meanwhile that could have said so.
    assert_eq!(upstream(&marketd, "errors"), 1);
}

#[test]
fn degraded_names_every_reason_and_the_log_each_change_once() {
    let (one, two) = (exchange_of(&["BTC/USDT"]), exchange_of(&["BTC/USDT"]));
    let patient =
        |id: &str, exchange: &Binance| with(source(id, exchange), "staleAfterMs", json!(60_000));
    let file = config(&[patient("one", &one), patient("two", &two)]);
    let marketd = start(&with(file, "limits", json!({ "backoffMaxMs": 1000 })));
    let health = await_reasons(&marketd, &[]);
    assert_eq!(health["status"], "ok");
    marketd.await_log("health: ok reasons=-", LONG);
    two.refuse();
    two.cut();
    let health = await_reasons(&marketd, &["source_backoff:two"]);
    assert_eq!((health["status"].text(), health["ready"].bool()), (Some("degraded"), Some(true)));
    marketd.await_log("health: degraded reasons=source_backoff:two", LONG);
    let finished = marketd.stop(LONG);
    assert!(finished.stderr.contains("health: stopping reasons=stopping"), "{finished:?}");
}

#[test]
fn a_frozen_source_is_a_reason_and_the_metrics_say_which_and_how_many_quotes_are_stale() {
    let symbols = ["BTC/USDT", "ETH/USDT", "SOL/USDT"];
    let (still, other) = (exchange_of(&symbols), exchange_of(&["BTC/USDT"]));
    let frozen = with(source("still", &still), "frozenAfterMs", json!(1500));
    let marketd = Marketd::with_config(config(&[frozen, source("other", &other)]));
    let health = await_reasons(&marketd, &["source_frozen:still"]);
    assert_eq!(health["status"], "degraded");
    let message = health["reasons"][0]["message"].text().unwrap_or_default();
    assert!(message.starts_with("No figure of this source has changed since 20"), "{message}");
    let upstreams = metrics(&marketd)["upstreams"].clone();
    let told = |at: usize| {
        let source = &upstreams[at];
        let state = source["state"].text().map(str::to_string);
        (state, source["stale"].integer(), source["frozen"].bool())
    };
    let up = Some("up".to_string());
    assert_eq!(told(0), (up.clone(), Some(3), Some(true)));
    assert_eq!(told(1), (up, Some(0), Some(false)));
    let page = get(marketd.addr(), "/metrics").text().to_string();
    for line in [
        "marketd_source_frozen{source=\"still\"} 1\n",
        "marketd_source_frozen{source=\"other\"} 0\n",
        "marketd_source_quotes_stale{source=\"still\"} 3\n",
        "marketd_source_quotes_stale{source=\"other\"} 0\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
}

/// Serves some requests, suffers an outage of its exchange, and tells its log.
fn eventful(rules: &[&str]) -> String {
    let exchange = exchange_of(&["BTC/USDT"]);
    let file = eager(&exchange, 60_000);
    let marketd = Launch::new(rules).config(file).start();
    await_health(&marketd, "ok");
    get(
        marketd.addr(),
        "/api/ecosystem/chart?symbol=BTCUSDT&interval=1h&from=1700000000&to=1700360000",
    );
    exchange.await_asked(KLINES, 1, LONG);
    exchange.fault_on(TICKERS, Fault::Status(503));
    await_health(&marketd, "degraded");
    marketd.await_log("503", LONG);
    exchange.heal();
    await_health(&marketd, "ok");
    marketd.stop(LONG).stderr
}

#[test]
fn debug_tells_what_is_requested_answered_and_decided_one_line_an_event() {
    let log = eventful(&["--log", "debug"]);
    for part in [
        " source: connect source=fake address=127.0.0.1:",
        " source: request source=fake what=\"market list\" target=\"/api/v3/exchangeInfo",
        " source: request source=fake what=\"quotes\" target=\"/api/v3/ticker/24hr",
        " source: response source=fake what=\"quotes\" status=200 bytes=",
        " source: planned source=fake what=\"quotes\" in_ms=",
        " source: failed source=fake what=\"quotes\" blame=kind ms=",
        " source: back-off source=fake kind=\"quotes\" failures=1 wait_ms=",
        " fetch: wanted by a client source=fake symbol=BTC/USDT interval=1h from=",
        " fetch: applied source=fake symbol=BTC/USDT interval=1h ",
        " http: accepted peer=127.0.0.1 service=both open=",
        " http: closed peer=127.0.0.1 reason=",
    ] {
        assert!(log.contains(part), "{part:?} is not in\n{log}");
    }
    for line in log.lines() {
        let mut words = line.split_whitespace().skip(1);
        let level = words.next().unwrap_or_default();
        assert!(["DEBUG", "INFO", "WARN", "ERROR"].contains(&level), "{line}");
        let target = words.next().and_then(|word| word.strip_suffix(':'));
        assert!(target.is_some_and(|it| TARGETS.contains(&it)), "{line}");
        if level == "DEBUG" {
            let text = line.split_once(": ").map_or("", |(_, text)| text);
            assert!(text.contains('='), "no key=value: {line}");
        }
    }
    let quiet = eventful(&[]);
    assert!(!quiet.contains("DEBUG"), "{quiet}");
    assert!(log.lines().count() > 2 * quiet.lines().count(), "{log}\n{quiet}");
}

/// Asks until the log's reader, which does not read, has made it lose lines. Each request is answered.
fn fill_log(marketd: &Marketd) {
    let target = format!("/health/live?{}", "x".repeat(200));
    let mut client = Client::connect(marketd.addr());
    let before = metrics(marketd)["process"]["logLinesLost"].integer();
    eventually(LONG, || {
        let answers = (0..500).map(|_| client.get(&target).status);
        assert!(answers.into_iter().all(|status| status == 200));
        (metrics(marketd)["process"]["logLinesLost"].integer() > before).then_some(())
    });
}

#[test]
fn a_log_that_nobody_reads_holds_up_nobody_and_what_was_lost_is_told() {
    for format in ["text", "json"] {
        let exchange = exchange_of(&["BTC/USDT"]);
        let limits = json!({ "requestsPerConnection": 1_000_000 });
        let file = with(config(&[source("fake", &exchange)]), "limits", limits);
        let rules = ["--log", "debug,access=info", "--log-format", format];
        let marketd = Launch::new(&rules).config(file).start();
        await_health(&marketd, "ok");
        marketd.stall_log(true);
        fill_log(&marketd);
        let health = await_reasons(&marketd, &["log_loses_lines"]);
        assert_eq!(health["status"], "degraded");
        let message = health["reasons"][0]["message"].text().unwrap_or_default();
        assert!(message.starts_with("Log lines could not be written: "), "{message}");
        let page = get(marketd.addr(), "/metrics").text().to_string();
        assert!(page.contains("\nmarketd_log_lines_lost_total "), "{page}");
        marketd.stall_log(false);
        // It tells in the same form as all lines, once it flows.
        let line = marketd.await_log("log lines lost", LONG);
        assert_eq!(line.starts_with("{\"time\":"), format == "json", "{line}");
        marketd.stall_log(true);
        fill_log(&marketd);
        // The signal is heard, though nobody reads that it is.
        assert_eq!(marketd.stop(LONG).code, Some(0));
    }
}

#[test]
fn a_closed_terminal_and_other_signals_end_nothing() {
    let (_exchange, mut marketd) = polled(&["BTC/USDT"]);
    for signal in ["HUP", "USR1", "USR2"] {
        marketd.signal(signal);
        let line = match signal {
            "HUP" => "config: reloaded sources=1 begun=0 ended=0 changed=0".to_string(),
            _ => format!("net: signal ignored name=SIG{signal}"),
        };
        let told = poll_until(LONG, || {
            let is_over = !marketd.is_running();
            (is_over || marketd.log().contains(&line)).then_some(())
        });
        assert!(told.is_some() && marketd.is_running(), "{signal}: {}", marketd.log());
        assert_eq!(get(marketd.addr(), "/health").status, 200, "{signal}");
    }
    assert_eq!(marketd.stop(LONG).code, Some(0));
}
