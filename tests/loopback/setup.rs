//! Daemons that poll fakes, and what is asked of them again and again.

use crate::support::*;
use serde_json::{Value, json};

/// A source of this id that polls a fake ten times a second.
pub fn source(id: &str, exchange: &Binance) -> Value {
    json!({ "id": id, "dialect": "binance", "url": exchange.url(), "pollMs": 100 })
}

/// The same, tracking these symbols alone.
pub fn tracking(id: &str, exchange: &Binance, symbols: &[&str]) -> Value {
    with(source(id, exchange), "symbols", json!(symbols))
}

/// A value with one more member, or another value for it.
pub fn with(mut value: Value, key: &str, member: Value) -> Value {
    value[key] = member;
    value
}

/// A configuration of these sources, without backfill: a candle is there because it was needed.
pub fn config(sources: &[Value]) -> Value {
    let depth = |keep: i64| json!({ "keep": keep, "backfill": 0 });
    json!({
        "sources": sources,
        "data": ":memory:",
        "history": { "1m": depth(100_000_000), "1h": depth(10_000_000), "1d": depth(100_000) },
    })
}

/// A daemon with this configuration whose health is `ok`: every source has been polled.
#[track_caller]
pub fn start(config: &Value) -> Marketd {
    let marketd = Marketd::with_config(config);
    await_health(&marketd, "ok");
    marketd
}

/// The same of one whose addresses are below this base path.
#[track_caller]
pub fn start_at(config: &Value, base: &str) -> Marketd {
    let marketd = Marketd::with_config(config);
    let is_well = |answer: &Response| answer.text().starts_with(r#"{"status":"ok""#);
    await_answer(marketd.addr(), &format!("{base}/health"), is_well);
    marketd
}

/// One that polls this exchange.
#[track_caller]
pub fn polling(exchange: &Binance) -> Marketd {
    start(&config(&[source("fake", exchange)]))
}

/// The same with these limits.
#[track_caller]
pub fn limited(exchange: &Binance, limits: Value) -> Marketd {
    start(&with(config(&[source("fake", exchange)]), "limits", limits))
}

/// One that polls an exchange with these markets.
#[track_caller]
pub fn polled(symbols: &[&str]) -> (Binance, Marketd) {
    let exchange = exchange_of(symbols);
    let marketd = polling(&exchange);
    (exchange, marketd)
}

/// 2024-05-15 10:37:05: a minute, an hour, a day, a week and a month are forming, and none of
/// them ends during a test.
pub const NOW: i64 = 1_715_769_425_000;

pub const HOUR_MS: i64 = 3_600_000;

/// Made-up markets at this time, which stands still.
pub fn still(count: usize) -> Binance {
    let exchange = Binance::generated(count, 4);
    exchange.set_time(ServerTime::Fixed(NOW));
    exchange
}

/// One that has patience with such an exchange and knows its time.
#[track_caller]
pub fn patient(exchange: &Binance, limits: Value) -> Marketd {
    let source = with(source("fake", exchange), "timeoutMs", json!(60_000));
    start(&with(config(&[source]), "limits", limits)).with_clock()
}

/// The quote of a symbol.
#[track_caller]
pub fn quote(marketd: &Marketd, symbol: &str) -> Json {
    read(marketd.addr(), &format!("/api/v1/quotes/{symbol}"))
}

/// A counter of the only source.
#[track_caller]
pub fn upstream(marketd: &Marketd, key: &str) -> i64 {
    let value = metrics(marketd)["upstreams"][0][key].integer();
    value.unwrap_or_else(|| panic!("{key} is null"))
}

/// What the first source says of its last fault.
pub fn last_error(marketd: &Marketd) -> String {
    let told = metrics(marketd)["upstreams"][0]["lastError"].clone();
    told.text().unwrap_or_default().to_string()
}

/// Lines of the log with this target, without time, level and target.
pub fn lines_of(marketd: &Marketd, target: &str) -> Vec<String> {
    let mark = format!(" {target}: ");
    let log = marketd.log();
    let lines = log.lines().filter_map(|line| line.split_once(&mark));
    lines.map(|(_, text)| text.to_string()).collect()
}

/// Waits until it says this of it.
#[track_caller]
pub fn await_error(marketd: &Marketd, part: &str) {
    let caller = std::panic::Location::caller();
    let found = poll_until(LONG, || last_error(marketd).contains(part).then_some(()));
    assert!(found.is_some(), "{caller}: the last error is {:?}", last_error(marketd));
}

/// Waits until the only source has been polled so many times more with success.
#[track_caller]
pub fn await_polls(marketd: &Marketd, more: i64) {
    let before = upstream(marketd, "ok");
    eventually(LONG, || (upstream(marketd, "ok") >= before + more).then_some(()));
}

/// Lets an exchange fall silent, and waits until its last answer is in place: nothing changes any
/// more. (A poll is asked once the answer before it has been taken in.)
pub fn silence(exchange: &Binance) {
    exchange.fault(Fault::Silence);
    exchange.forget();
    exchange.cut();
    exchange.await_asked(binance::TICKERS, 1, LONG);
}

/// A fake with these active markets, each `BASE/QUOTE` at the price 1.5.
pub fn exchange_of(symbols: &[&str]) -> Binance {
    let exchange = Binance::empty();
    let markets: Vec<_> = symbols.iter().map(|symbol| (*symbol, "TRADING")).collect();
    let ids: Vec<String> = symbols.iter().map(|symbol| symbol.replace('/', "")).collect();
    let prices: Vec<_> = ids.iter().map(|id| (id.as_str(), "1.50000000")).collect();
    exchange.set_markets(&markets);
    exchange.set_prices(&prices);
    exchange
}
