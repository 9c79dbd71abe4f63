//! Exchanges that stop, freeze, refuse and return: what clients see of it, and how often the
//! exchange is asked meanwhile.

use crate::loopback::contract::{error, good};
use crate::loopback::hostile::for_each;
use crate::loopback::setup::*;
use crate::support::binance::{self, TICKERS};
use crate::support::*;
use serde_json::{Value, json};
use std::time::Duration;

/// From one poll to the next, and the first step of a back-off.
const POLL_MS: i64 = 300;

/// The longest step of a back-off.
const STEP_MS: i64 = 1000;

/// No good answer takes that long, also where all stands still for some seconds.
const PATIENT_MS: i64 = 30_000;

/// The same as far as an exchange that says nothing lets us wait for it.
const IMPATIENT_MS: i64 = 1200;

fn watched(exchange: &Binance, timeout_ms: i64) -> Value {
    let mut source = source("fake", exchange);
    for (key, value) in [("pollMs", POLL_MS), ("staleAfterMs", 700), ("timeoutMs", timeout_ms)] {
        source = with(source, key, json!(value));
    }
    with(config(&[source]), "limits", json!({ "backoffMaxMs": STEP_MS }))
}

/// Lets an exchange stop and return, and looks at everything that clients see in between and after.
fn outlives((timeout_ms, hears, stop): &Outage) {
    let exchange = exchange_of(&["BTC/USDT", "ETH/USDT"]);
    let mut marketd = start(&watched(&exchange, *timeout_ms));
    let addr = marketd.addr();
    await_answer(addr, "/health/ready", |answer| answer.status == 200);
    stop(&exchange);
    exchange.forget();
    exchange.cut();
    // The second failure from here on was asked after the stop: no answer is on its way any more.
    let errors = upstream(&marketd, "errors");
    eventually(LONG, || (upstream(&marketd, "errors") >= errors + 2).then_some(()));
    let last_seen = quote(&marketd, "BTCUSDT");

    let stale = |answer: &Response| answer.exact()["stale"].bool() == Some(true);
    let answer = await_answer(addr, "/api/v1/quotes/BTCUSDT", stale);
    assert_eq!(answer.header("Cache-Control"), Some("no-cache"));
    let shown = good(&answer);
    // The same but for what an outage may change.
    let fresh = |quote: &Json| quote.to_string().replace("\"stale\":true", "\"stale\":false");
    assert_eq!(fresh(&shown), fresh(&last_seen));
    let batch = get(addr, "/api/v1/quotes?symbols=BTCUSDT,ETHUSDT");
    assert_eq!(batch.header("Cache-Control"), Some("no-cache"));
    for quote in good(&batch)["quotes"].items() {
        assert_eq!(quote["stale"].bool(), Some(true), "{quote}");
    }
    #[cfg(feature = "page")]
    {
        let feed = get(addr, "/udf/quotes?symbols=NOPE,BTCUSDT");
        assert_eq!(feed.header("Cache-Control"), Some("no-cache"));
    }
    let markets = good(&get(addr, "/api/v1/categories/usdt/markets"));
    assert_eq!(markets["markets"][0]["stale"].bool(), Some(true));
    let record = good(&get(addr, "/api/ecosystem/market/BTC-USDT"));
    assert_eq!(record["quote"]["stale"].bool(), Some(true));

    let health = get(addr, "/health");
    assert_eq!(health.status, 200, "{}", health.text());
    let health = good(&health);
    assert_eq!((health["status"].text(), health["ready"].bool()), (Some("degraded"), Some(false)));
    assert_eq!(health["quotes"].to_string(), r#"{"cached":2,"fresh":0,"stale":2}"#);
    assert_eq!(health["upstreams"].to_string(), r#"{"up":0,"total":1}"#);
    assert_eq!(get(addr, "/health/live").status, 200);
    assert_eq!(get(addr, "/health/ready").status, 503);

    // The longest step is reached after three failures, and never exceeded.
    let enough = || (upstream(&marketd, "errors") >= 4).then_some(());
    eventually(LONG, enough);
    if *hears {
        // Between four tries lie steps of 270, 540 and 900 ms at least.
        let asked = exchange.await_asked(TICKERS, 4, LONG);
        let span = asked[asked.len() - 1].at - asked[asked.len() - 4].at;
        assert!(span >= Duration::from_millis(855), "four tries within {span:?}");
    }
    let counted = metrics(&marketd);
    assert_eq!(counted["quotes"]["stale"], 2);
    let source = &counted["upstreams"][0];
    assert!(["backoff", "down"].contains(&source["state"].text().unwrap_or_default()), "{source}");
    assert!(source["lastError"].text().is_some_and(|text| !text.is_empty()), "{source}");
    let (until, since) = (source["backoffUntil"].integer(), source["lastErrorAt"].integer());
    let step = until.zip(since).map(|(until, since)| until - since).expect("it backs off");
    assert!((STEP_MS * 8 / 10..=STEP_MS).contains(&step), "{source}");
    assert!(marketd.is_running());

    exchange.heal();
    exchange.open();
    exchange.cut();
    let errors = upstream(&marketd, "errors");
    await_health(&marketd, "ok");
    // At most the try that was under way when it returned.
    assert!(upstream(&marketd, "errors") <= errors + 1);
    let fresh = |answer: &Response| answer.exact()["stale"].bool() == Some(false);
    let quote = await_answer(addr, "/api/v1/quotes/BTCUSDT", fresh).exact();
    assert!(quote["receivedAt"].integer() > last_seen["receivedAt"].integer());
    let source = metrics(&marketd)["upstreams"][0].clone();
    assert!(source["state"] == "up" && source["backoffUntil"].is_null(), "{source}");
    await_answer(addr, "/health/ready", |answer| answer.status == 200);
    marketd.await_log("answers again", LONG);
}

/// The longest time for an answer, whether the exchange hears what it is asked, and how it stops.
type Outage = (i64, bool, fn(&Binance));

const OUTAGES: [Outage; 4] = [
    (PATIENT_MS, false, |exchange| exchange.refuse()),
    (PATIENT_MS, false, |exchange| exchange.hang_up()),
    (IMPATIENT_MS, true, |exchange| exchange.fault(Fault::Silence)),
    (PATIENT_MS, true, |exchange| exchange.fault_on(TICKERS, Fault::Status(503))),
];

#[test]
fn an_exchange_that_stops_in_any_way_is_outlived_and_asked_once_for_each_step() {
    for_each(OUTAGES.to_vec(), outlives);
}

#[test]
fn an_exchange_that_is_down_at_the_start_is_waited_for() {
    let exchange = exchange_of(&["BTC/USDT"]);
    exchange.refuse();
    let marketd = Marketd::with_config(watched(&exchange, PATIENT_MS));
    eventually(LONG, || (upstream(&marketd, "errors") >= 2).then_some(()));
    let health = get(marketd.addr(), "/health");
    assert_eq!((health.status, health.exact()["status"].text()), (503, Some("starting")));
    error(&get(marketd.addr(), "/api/v1/quotes/BTC/USDT"), 404, "symbol_not_found", Some("symbol"));
    // The list alone is not enough.
    exchange.fault_on(TICKERS, Fault::Status(500));
    exchange.open();
    exchange.await_asked(TICKERS, 1, LONG);
    let answer = await_answer(marketd.addr(), "/api/v1/quotes/BTC/USDT", |a| a.status == 503);
    error(&answer, 503, "quote_not_ready", Some("symbol"));
    assert_eq!(get(marketd.addr(), "/health").status, 503);
    exchange.heal();
    await_health(&marketd, "ok");
    assert_eq!(exchange.count(binance::MARKETS), 1, "a list that was read is not asked for again");
}

#[test]
fn a_named_market_is_unready_while_every_poll_has_failed() {
    let exchange = exchange_of(&["BTC/USDT", "ETH/USDT"]);
    exchange.fault_on(TICKERS, Fault::Status(500));
    let marketd =
        Marketd::with_config(config(&[tracking("fake", &exchange, &["BTC/USDT", "ETH/USDT"])]));
    exchange.await_asked(TICKERS, 2, LONG);
    let answer = get(marketd.addr(), "/api/v1/quotes/BTC/USDT");
    error(&answer, 503, "quote_not_ready", Some("symbol"));
}

#[test]
fn a_source_that_lists_none_of_its_markets_is_polled_nevertheless() {
    let exchange = exchange_of(&["BTC/USDT"]);
    let _marketd = Marketd::with_config(config(&[tracking("fake", &exchange, &["NO/SUCH"])]));
    exchange.await_asked(TICKERS, 4, LONG);
}

#[test]
fn a_source_is_up_once_its_quotes_are_there_and_not_when_its_list_is() {
    let (one, two) = (exchange_of(&["BTC/USDT"]), exchange_of(&["ETH/USDT"]));
    two.fault_on(TICKERS, Fault::Silence);
    let silent = with(source("two", &two), "timeoutMs", json!(60_000));
    let marketd = Marketd::with_config(config(&[source("one", &one), silent]));
    two.await_asked(TICKERS, 1, LONG);
    let health = await_health(&marketd, "degraded");
    assert_eq!(health["upstreams"].to_string(), r#"{"up":1,"total":2}"#);
    assert_eq!(metrics(&marketd)["upstreams"][1]["state"], "starting");
    two.heal();
    two.cut();
    await_health(&marketd, "ok");
    assert_eq!(quote(&marketd, "ETHUSDT")["source"], "two");
}

/// The return, which takes its time, is tested beside `core/sources/failover.rs` and by the simulation, which
/// also judges that nobody is told of a stale quote while another source has a fresh one.
#[test]
fn a_switch_to_another_source_is_told_once_and_counted() {
    let symbols = ["BTC/USDT", "ETH/USDT", "SOL/USDT"];
    let (one, two) = (exchange_of(&symbols), exchange_of(&symbols));
    let fast = |id: &str, exchange: &Binance| {
        let source = with(source(id, exchange), "staleAfterMs", json!(2500));
        with(source, "pollMs", json!(200))
    };
    let marketd = start(&config(&[fast("one", &one), fast("two", &two)]));
    let addr = marketd.addr();
    let goes_on = |id: &'static str| {
        move |answer: &Response| good(answer)["quotes"].column("source") == [id; 3]
    };
    let asked = "/api/v1/quotes?symbols=*";
    await_answer(addr, asked, goes_on("one"));
    one.refuse();
    one.cut();
    await_answer(addr, asked, goes_on("two"));
    let away = marketd.await_log("moved from=", LONG);
    assert!(away.contains("moved from=one to=two markets=3 reason=stale"), "{away}");
    let counted = metrics(&marketd);
    assert_eq!(counted["quotes"]["failovers"], 3);
    assert_eq!(counted["upstreams"].column("failovers"), ["3", "0"]);
    assert_eq!(counted["upstreams"].column("returns"), ["0", "0"]);
    let line = "marketd_source_failovers_total{source=\"one\"} 3\n";
    assert!(get(addr, "/metrics").text().contains(line));
    // The first is stale, and still there for those who ask for it.
    let first = read(addr, "/api/v1/quotes/BTCUSDT?source=one");
    assert_eq!((first["stale"].bool(), first["source"].text()), (Some(true), Some("one")));
    await_answer(addr, "/health/ready", |it| it.status == 200);
    let log = marketd.stop(LONG).stderr;
    assert_eq!(log.matches("moved from=").count(), 1, "{log}");
}
