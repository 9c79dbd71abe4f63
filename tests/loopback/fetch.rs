//! Candles that were never asked of the exchange: fetched when somebody wants them, bounded in
//! depth, number and time. (Candles made of quotes, and clients that leave while they wait: the simulation.)

use crate::loopback::contract::good;
use crate::loopback::setup::*;
use crate::support::binance::KLINES;
use crate::support::*;
use serde_json::json;
use std::time::Duration;

fn at(hours: i64) -> i64 {
    NOW / HOUR_MS * HOUR_MS - hours * HOUR_MS
}

fn target(from: i64, to: i64) -> String {
    format!("/api/ecosystem/chart?symbol=BTCUSDT&interval=1h&from={from}&to={to}")
}

fn coverage(answer: &Response) -> &str {
    answer.header("Chart-Coverage").unwrap_or_default()
}

/// The requests for candles of one market and interval that reach back to this time.
fn asked_back_to(exchange: &Binance, interval: &str, from: i64) -> usize {
    let asked = exchange.asked_of(KLINES);
    let number =
        |asked: &Asked, name: &str| asked.param(name).and_then(|text| text.parse::<i64>().ok());
    let fits = |one: &&Asked| {
        one.param("interval").as_deref() == Some(interval)
            && number(one, "startTime").is_some_and(|start| start <= from)
    };
    asked.iter().filter(fits).count()
}

#[test]
fn a_range_that_nobody_asked_for_is_fetched_once_and_kept() {
    let exchange = still(2);
    let marketd = patient(&exchange, json!({ "chartWaitMs": 60_000 }));
    assert_eq!(exchange.count(KLINES), 0, "nothing is followed before it is asked for");
    let (from, to) = (at(5000), at(4000));
    let answer = get(marketd.addr(), &target(from, to));
    assert_eq!(coverage(&answer), "complete");
    let expected = exchange.candles("BTCUSDT", "1h", from, to);
    assert_eq!(expected.len(), 1001);
    assert_eq!(naive::rows_of(&good(&answer)), expected);
    let first = exchange.asked_of(KLINES).first().map(|asked| asked.target.clone());
    let first = first.expect("it was asked");
    assert!(first.contains("symbol=BTCUSDT") && first.contains("interval=1h"), "{first}");
    // The rest of a longer range is all that is still asked for.
    exchange.forget();
    let answer = get(marketd.addr(), &target(from, at(3900)));
    assert_eq!((coverage(&answer), answer.exact().items().len()), ("complete", 1101));
    assert_eq!(asked_back_to(&exchange, "1h", from), 0, "{:?}", exchange.asked_of(KLINES));
    // Another market has candles of its own.
    assert_eq!(metrics(&marketd)["chartsStored"], 1);
    get(marketd.addr(), "/api/ecosystem/chart?symbol=ETHUSDT&interval=4h&limit=5");
    assert_eq!(metrics(&marketd)["chartsStored"], 2);
}

#[test]
fn many_askers_wait_for_one_fetch() {
    let exchange = still(1);
    let marketd = patient(&exchange, json!({ "chartWaitMs": 60_000 }));
    // The answer takes its time: everybody has asked before it is there. In few pieces, for on a
    // busy machine each pause is longer than it was meant.
    let slowly = Fault::Slowly { bytes: 500, pause: Duration::from_millis(150) };
    exchange.fault_on(KLINES, slowly);
    let (from, to) = (at(140), at(100));
    let mut clients: Vec<Client> = (0..40).map(|_| Client::connect(marketd.addr())).collect();
    for client in &mut clients {
        client.send_get(&target(from, to)).expect("it is read");
    }
    // Others are served meanwhile.
    assert_eq!(get(marketd.addr(), "/api/v1/quotes/BTCUSDT").status, 200);
    let mut bodies = Vec::new();
    for client in clients {
        let mut client = client.patience(LONG);
        let answer = client.read().expect("an answer");
        assert_eq!((answer.status, coverage(&answer)), (200, "complete"), "{}", answer.text());
        bodies.push(answer.body);
    }
    assert!(bodies.windows(2).all(|two| two[0] == two[1]));
    assert_eq!(asked_back_to(&exchange, "1h", from), 1, "{:?}", exchange.asked_of(KLINES));
}

#[test]
fn a_slow_exchange_makes_a_partial_answer_and_a_later_one_is_whole() {
    let exchange = still(1);
    let marketd = patient(&exchange, json!({ "chartWaitMs": 300 }));
    exchange.fault_on(KLINES, Fault::Silence);
    let (from, to) = (at(140), at(100));
    let answer = get(marketd.addr(), &target(from, to));
    assert_eq!(good(&answer).items().len(), 0);
    assert_eq!(coverage(&answer), "partial");
    assert_eq!(answer.header("Chart-Gaps"), Some("0"), "what was not answered is no gap");
    let cache = answer.header("Cache-Control").unwrap_or_default();
    assert!(!cache.contains("3600"), "{cache}");
    // Walking goes on from where it stands.
    assert_eq!(answer.header("Link"), None);
    exchange.heal();
    exchange.cut();
    let answer = await_answer(marketd.addr(), &target(from, to), |a| coverage(a) == "complete");
    assert_eq!(naive::rows_of(&good(&answer)), exchange.candles("BTCUSDT", "1h", from, to));
}

#[test]
fn depth_number_and_queue_are_bounded_and_none_of_it_is_an_error() {
    // No deeper than what is kept.
    let exchange = still(4);
    let source = with(source("fake", &exchange), "timeoutMs", json!(60_000));
    let depth = json!({ "keep": 100, "backfill": 0 });
    let file = with(config(&[source]), "history", json!({ "1m": depth, "1h": depth, "1d": depth }));
    let marketd = start(&with(file, "limits", json!({ "chartWaitMs": 60_000, "candleSeries": 2 })))
        .with_clock();
    let addr = marketd.addr();
    let answer = get(addr, &target(at(300), at(0)));
    let rows = good(&answer);
    assert!((100..=101).contains(&rows.items().len()), "{}", rows.items().len());
    assert!(rows[0][0].integer() >= Some(at(100)));
    let oldest = |asked: &Asked| asked.param("startTime").and_then(|text| text.parse::<i64>().ok());
    let asked = exchange.asked_of(KLINES);
    assert!(asked.iter().filter_map(oldest).all(|start| start >= at(101)), "{asked:?}");
    let before = exchange.count(KLINES);
    assert_eq!(get(addr, &target(at(300), at(200))).text(), "[]");
    assert_eq!(exchange.count(KLINES), before, "what is older is not asked for");
    // No more series than the cap: the third is answered at once, with nothing.
    let chart = |interval: &str| {
        get(addr, &format!("/api/ecosystem/chart?symbol=BTCUSDT&interval={interval}&limit=3"))
    };
    assert_eq!(coverage(&chart("1m")), "complete");
    let third = chart("1d");
    assert_eq!((third.status, third.text(), coverage(&third)), (200, "[]", "partial"));
    assert_eq!(metrics(&marketd)["chartsStored"], 2);

    // A queue that is full is no error either.
    let exchange = still(1);
    let limits = json!({ "chartWaitMs": 60_000, "chartFetches": 1 });
    let marketd = patient(&exchange, limits);
    exchange.fault_on(KLINES, Fault::Silence);
    let mut waiting = Client::connect(marketd.addr());
    waiting.send_get(&target(at(1000), at(900))).expect("it is read");
    exchange.await_asked(KLINES, 1, LONG);
    let answer = get(marketd.addr(), &target(at(500), at(400)));
    assert_eq!((answer.status, answer.text(), coverage(&answer)), (200, "[]", "partial"));
}

#[test]
fn a_market_whose_candles_the_exchange_refuses_is_answered_at_once_and_left_in_peace() {
    let exchange = still(1);
    let marketd = patient(&exchange, json!({ "chartWaitMs": 60_000 }));
    let refusal = Reply::status(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#);
    exchange.fault_on(KLINES, Fault::Instead(refusal));
    let answer = get(marketd.addr(), &target(at(140), at(100)));
    assert_eq!((answer.text(), coverage(&answer)), ("[]", "partial"));
    // Whoever asks again while it rests does not wait, and does not make it ask.
    let asked = exchange.count(KLINES);
    let mut client = Client::connect(marketd.addr());
    for _ in 0..20 {
        assert_eq!(coverage(&client.get(&target(at(140), at(100)))), "partial");
    }
    assert!(exchange.count(KLINES) <= asked + 2, "{} after {asked}", exchange.count(KLINES));
    assert_eq!(get(marketd.addr(), "/health").exact()["status"], "ok");
    let told = metrics(&marketd)["upstreams"][0]["lastError"].clone();
    assert!(told.text().is_some_and(|text| text.contains("Invalid symbol")), "{told}");
}
