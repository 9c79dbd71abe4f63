//! A source that names an exchange serves its quotes, charts and markets, digit for digit; and what an exchange
//! does not tell, or tells of some of its markets only, is not claimed.

use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::fakes::virtual_time::{Weather, World};
use crate::fakes::{NAMES, fake, fakes};
use crate::support::generated::GeneratedMarket;
use crate::support::*;
use crate::virtual_time::SECOND_US;
use serde_json::json;
use std::cell::OnceCell;
use std::time::Duration;

/// The daemon as somebody starts it who wants one market of one exchange.
pub fn start(fake: &Fake, exchange: &FakeExchange, symbols: &str) -> Marketd {
    let source = format!("{}={}", fake.name, exchange.url());
    Marketd::start(&["--source", &source, "--symbols", symbols, "--data", ":memory:"])
}

/// The quote of a market, once there is one.
#[track_caller]
pub fn await_quote(marketd: &Marketd, symbol: &str) -> Json {
    let target = format!("/api/v1/quotes/{symbol}");
    await_answer(marketd.addr(), &target, |answer| answer.status == 200).exact()
}

/// What a chart of these rows says.
pub fn chart_of(rows: &[Row]) -> Json {
    let row = |row: &Row| {
        let digits = [row.open, row.high, row.low, row.close, row.volume].map(plain);
        let all = std::iter::once(row.open_ms.to_string()).chain(digits);
        Json::Array(all.map(Json::Number).collect())
    };
    Json::Array(rows.iter().map(row).collect())
}

/// Compares these fields of the quote of a market, with blanks between them, with what the exchange sends.
#[track_caller]
pub fn check_quote(quote: &Json, fake: &Fake, market: &GeneratedMarket, fields: &str) {
    let (shop, day) = (Shop::new(0), OnceCell::new());
    for field in fields.split(' ') {
        let sent = naive::plain(&fake.value(&shop, market, &day, field));
        assert_eq!(quote[field], Json::Number(sent), "{field} of {quote}");
    }
}

/// A source that names this exchange serves what it tells.
pub fn check(fake: &'static Fake) {
    // It is one of many, so each is asked for by its name where the exchange allows that.
    let shop = Shop::new(30);
    let market = shop.markets()[0].clone();
    let exchange = open(fake, Shop::new(30));
    let marketd = start(fake, &exchange, "BTC/USDT");

    let whole = |quote: &Json| !fake.sends.contains("high") || !quote["high"].is_null();
    let answer = await_answer(marketd.addr(), "/api/v1/quotes/BTC-USDT", |answer| {
        answer.status == 200 && whole(&answer.exact())
    });
    let quote = answer.exact();
    assert_eq!(quote["source"], fake.name);
    assert_eq!(quote["stale"], Json::Bool(false));
    check_quote(&quote, fake, &market, fake.sends);

    // More than a page of any but KuCoin; Kraken has no more than one.
    let count = match fake.name {
        "kraken" => 720,
        _ => 1500,
    };
    // Days of HTX do not begin at midnight, so it has none.
    let intervals = [("1m", MINUTE_MS), ("1h", HOUR_MS), ("1d", DAY_MS)];
    let stored = if fake.name == "htx" { 2 } else { 3 };
    for (interval, length) in intervals.into_iter().take(stored) {
        let target =
            format!("/api/ecosystem/chart?symbol=BTC/USDT&interval={interval}&limit={count}");
        let answer = await_answer(marketd.addr(), &target, |answer| {
            answer.status == 200 && answer.header("Chart-Coverage") == Some("complete")
        });
        let rows = shop.newest(&market, length, (0, NOW), count);
        assert_eq!(rows.len(), count);
        assert_eq!(answer.exact(), chart_of(&rows), "{interval}");
        assert_eq!(answer.header("Chart-Gaps"), Some("0"), "{interval}");
        assert_eq!(answer.header("Chart-Source"), Some(fake.name));
    }

    let target = "/api/ecosystem/market/BTC-USDT";
    let record = await_answer(marketd.addr(), target, |answer| answer.status == 200).exact();
    assert_eq!(record["symbol"], "BTC/USDT");
    assert_eq!(record["status"], Json::Bool(true));
    let metadata = &record["metadata"];
    let number = |text: &str| Json::Number(text.to_string());
    let told = |silent: &[&str], text: &str| match silent.contains(&fake.name) {
        true => Json::Null,
        false => number(text),
    };
    // Upbit's list is only names.
    let precision = &metadata["precision"];
    assert_eq!(precision["price"], told(&["upbit"], "2"), "{metadata}");
    assert_eq!(precision["amount"], told(&["upbit"], "4"), "{metadata}");
    // Coinbase and MEXC tell no least amount, OKX no least cost, others neither.
    let no_amount = ["coinbase", "mexc", "bitstamp", "cryptocom", "upbit"];
    let no_cost = ["okx", "bitstamp", "cryptocom", "upbit"];
    let limits = &metadata["limits"];
    assert_eq!(limits["amount"]["min"], told(&no_amount, "0.001"));
    assert_eq!(limits["cost"]["min"], told(&no_cost, "5"));

    // Its clock is years behind.
    let line = marketd.await_log("clock differs", LONG);
    assert!(line.contains(" ahead_ms=") && !line.contains("ahead_ms=-"), "{line}");

    let metrics = get(marketd.addr(), "/api/v1/metrics").exact();
    let upstream = &metrics["upstreams"][0];
    assert_eq!(upstream["errors"], 0, "{upstream}\n{}", marketd.log());
}

#[test]
fn every_dialect_has_a_fake() {
    let mut dialects: Vec<&str> = marketd::exchange::Dialect::names().collect();
    let (mut made, mut tested) = (Vec::from_iter(fakes().iter().map(|it| it.name)), NAMES.to_vec());
    for names in [&mut dialects, &mut made, &mut tested] {
        names.sort_unstable();
    }
    assert_eq!((&made, &tested), (&dialects, &dialects));
}

#[test]
fn a_dialect_in_a_file_serves_as_the_built_in_one_does() {
    let (okx, shop) = (fake("okx"), Shop::new(1));
    let exchange = open(okx, Shop::new(1));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange/dialects/okx.json");
    let source =
        json!([{ "id": "mine", "dialect": file, "url": exchange.url(), "symbols": ["BTC/USDT"] }]);
    let config = json!({ "sources": source, "data": ":memory:" });
    let marketd = Marketd::with_config(config);
    let quote = await_quote(&marketd, "BTC-USDT");
    assert_eq!(quote["source"], "mine");
    check_quote(&quote, okx, &shop.markets()[0], okx.sends);
}

/// A source of all markets of this shop that has fetched their history, in virtual time. No minute ends.
fn fetched(name: &str, shop: Shop, weather: Weather) -> World {
    let mut world = World::new(fake(name), shop, Duration::from_secs(2), 1);
    world.set_weather(weather);
    world.run_to(42 * SECOND_US);
    world
}

/// A chart of minutes, from and to so many of them back.
fn minutes(world: &mut World, back: (i64, i64)) -> Response {
    let newest = NOW / MINUTE_MS * MINUTE_MS;
    let [from, to] = [back.0, back.1].map(|back| newest - back * MINUTE_MS);
    let target = format!("/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&from={from}&to={to}");
    let answer = world.fetch(&target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer
}

#[test]
fn what_kraken_no_longer_tells_is_not_claimed_to_be_covered() {
    let (shop, mut world) = (Shop::new(1), fetched("kraken", Shop::new(1), Weather::Fair));
    let minutes_asked = |world: &World| world.count("OHLC?pair=XBTUSDT&interval=1&", 0);
    let asked = minutes_asked(&world);
    for (back, rows) in [((2000, 1500), 0), ((900, 600), 120), ((5000, 710), 10)] {
        let answer = minutes(&mut world, back);
        assert_eq!(answer.header("Chart-Coverage"), Some("partial"), "{back:?}");
        assert_eq!(answer.header("Chart-Gaps"), Some("0"), "{back:?}");
        let (from, to) = (NOW - 720 * MINUTE_MS, NOW - back.1 * MINUTE_MS);
        let expected = shop.rows(&shop.markets()[0], MINUTE_MS, from, to);
        let expected = chart_of(&expected[expected.len() - rows..]);
        assert_eq!(answer.text(), expected.to_string(), "{back:?}");
    }
    // What is known not to come is not asked for.
    assert!(minutes_asked(&world) <= asked + 1);
}

#[test]
fn what_is_too_long_ago_for_gate_is_not_asked_for() {
    let mut world = fetched("gate", Shop::new(1), Weather::Fair);
    let answer = minutes(&mut world, (20_000, 19_000));
    assert_eq!((answer.header("Chart-Coverage"), answer.text()), (Some("partial"), "[]"));
    assert_eq!(world.get("/api/v1/metrics")["upstreams"][0]["errors"].integer(), Some(0));
}

#[test]
fn a_market_of_coinbase_that_fails_stops_no_other() {
    let mut shop = Shop::new(5);
    shop.frozen = Some(NOW);
    let markets = shop.markets().to_vec();
    let broken = &markets[2];
    shop.broken.insert(fake("coinbase").id(&broken.base, broken.quote));
    let mut world = fetched("coinbase", shop, Weather::Fair);
    for market in &markets {
        // Round after round, the broken one too.
        let id = fake("coinbase").id(&market.base, market.quote);
        assert!(world.count(&format!("/products/{id}/ticker"), 0) > 1, "{id}");
        let answer = world.at_once(&format!("/api/v1/quotes/{}", market.symbol()));
        if market.id() == broken.id() {
            assert_eq!(answer.status, 404, "{}", answer.text());
            continue;
        }
        check_quote(&answer.exact(), fake("coinbase"), market, fake("coinbase").sends);
    }
    let upstream = &world.get("/api/v1/metrics")["upstreams"][0];
    assert_ne!(upstream["errors"], 0);
    assert_eq!(upstream["rateLimited"], 0, "{upstream}");
}

#[test]
fn a_quote_of_coinbase_stands_without_its_day_and_is_filled_when_that_comes() {
    let (fake, mut shop) = (fake("coinbase"), Shop::new(1));
    shop.frozen = Some(NOW);
    let market = shop.markets()[0].clone();
    let refused = Weather::AnswersTo("/stats", fake.refuses("UnknownMarket"));
    let mut world = fetched("coinbase", shop, refused);
    assert!(world.count("/stats", 0) > 0);
    let quote = world.get("/api/v1/quotes/BTC-USDT");
    check_quote(&quote, fake, &market, "last bid ask baseVolume");
    for field in ["open", "high", "low", "change", "percentage"] {
        assert!(quote[field].is_null(), "{field} of {quote}");
    }
    assert_eq!(quote["stale"], Json::Bool(false));
    world.set_weather(Weather::Fair);
    world.run_to(world.us + 600 * SECOND_US);
    let quote = world.get("/api/v1/quotes/BTC-USDT");
    check_quote(&quote, fake, &market, fake.sends);
    assert!(!quote["percentage"].is_null());
}
