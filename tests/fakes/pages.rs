//! What an exchange does not tell, and what only some of its markets tell.

use crate::fakes::fake;
use crate::fakes::serves::*;
use crate::fakes::shop::*;
use crate::support::*;

/// A chart of minutes, from and to so many of them back.
fn minutes(marketd: &Marketd, back: (i64, i64)) -> Response {
    let newest = NOW / MINUTE_MS * MINUTE_MS;
    let at = |back: i64| newest - back * MINUTE_MS;
    let target = format!(
        "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&from={}&to={}",
        at(back.0),
        at(back.1)
    );
    let answer = get(marketd.addr(), &target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer
}

#[test]
fn what_kraken_no_longer_tells_is_not_claimed_to_be_covered() {
    let shop = Shop::new(1);
    let market = shop.markets()[0].clone();
    let exchange = open(fake("kraken"), Shop::new(1));
    let marketd = start(fake("kraken"), &exchange, "BTC/USDT");
    let at_hand = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=720";
    await_answer(marketd.addr(), at_hand, |answer| {
        answer.header("Chart-Coverage") == Some("complete")
    });
    let is_of_minutes = |it: &&Asked| it.target.contains("OHLC?pair=XBTUSDT&interval=1&");
    let minutes_asked = || exchange.asked().iter().filter(is_of_minutes).count();
    let asked = minutes_asked();
    for (back, rows) in [((2000, 1500), 0), ((900, 600), 120), ((5000, 710), 10)] {
        let answer = minutes(&marketd, back);
        assert_eq!(answer.header("Chart-Coverage"), Some("partial"), "{back:?}");
        assert_eq!(answer.header("Chart-Gaps"), Some("0"), "{back:?}");
        let (from, to) = (NOW - 720 * MINUTE_MS, NOW - back.1 * MINUTE_MS);
        let expected = shop.rows(&market, MINUTE_MS, from, to);
        assert_eq!(answer.exact().items().len(), rows, "{back:?}");
        let expected = &expected[expected.len() - rows..];
        assert!(answer.exact() == chart_of(expected), "{back:?}");
    }
    // What is known not to come is not asked for.
    assert!(minutes_asked() <= asked + 1);
}

#[test]
fn what_is_too_long_ago_for_gate_is_not_asked_for() {
    let exchange = open(fake("gate"), Shop::new(1));
    let marketd = start(fake("gate"), &exchange, "BTC/USDT");
    await_answer(
        marketd.addr(),
        "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=1500",
        |answer| answer.header("Chart-Coverage") == Some("complete"),
    );
    let answer = minutes(&marketd, (20_000, 19_000));
    assert_eq!(answer.header("Chart-Coverage"), Some("partial"));
    assert_eq!(answer.exact().items().len(), 0);
    let metrics = get(marketd.addr(), "/api/v1/metrics").exact();
    assert_eq!(metrics["upstreams"][0]["errors"], 0, "{}", marketd.log());
}

#[test]
fn a_market_of_coinbase_that_fails_stops_no_other() {
    let (fake, mut shop) = (fake("coinbase"), Shop::new(5));
    let markets = shop.markets().to_vec();
    let broken = &markets[2];
    shop.broken.insert(fake.id(&broken.base, broken.quote));
    let exchange = open(fake, shop);
    let symbols: Vec<String> = markets.iter().map(|market| market.symbol()).collect();
    let marketd = start(fake, &exchange, &symbols.join(","));
    for market in &markets {
        // Round after round, the broken one too.
        let path = format!("/products/{}/ticker", fake.id(&market.base, market.quote));
        exchange.await_asked(&path, 2, LONG);
        let target = format!("/api/v1/quotes/{}", market.symbol());
        if market.id() == broken.id() {
            let answer = get(marketd.addr(), &target);
            assert_eq!(answer.status, 404, "{}", answer.text());
            continue;
        }
        let answer = await_answer(marketd.addr(), &target, |answer| {
            answer.status == 200 && !answer.exact()["open"].is_null()
        });
        check_quote(&answer.exact(), fake, market, fake.sends);
    }
    let metrics = get(marketd.addr(), "/api/v1/metrics").exact();
    assert_ne!(metrics["upstreams"][0]["errors"], 0);
    assert_eq!(metrics["upstreams"][0]["rateLimited"], 0, "{metrics}");
}

#[test]
fn a_quote_of_coinbase_stands_without_its_day_and_is_filled_when_that_comes() {
    let (fake, shop) = (fake("coinbase"), Shop::new(1));
    let (market, exchange) = (shop.markets()[0].clone(), open(fake, shop));
    let stats = "/products/BTC-USDT/stats";
    exchange.fault_on(stats, Fault::Instead(fake.refuses("UnknownMarket")));
    let marketd = start(fake, &exchange, "BTC/USDT");
    exchange.await_asked(stats, 1, LONG);
    exchange.await_asked("/products/BTC-USDT/ticker", 2, LONG);
    let quote = await_quote(&marketd, "BTC-USDT");
    check_quote(&quote, fake, &market, "last bid ask baseVolume");
    for field in ["open", "high", "low", "change", "percentage"] {
        assert!(quote[field].is_null(), "{field} of {quote}");
    }
    assert_eq!(quote["stale"], Json::Bool(false));

    let exchange = open(fake, Shop::new(1));
    let marketd = start(fake, &exchange, "BTC/USDT");
    let answer = await_answer(marketd.addr(), "/api/v1/quotes/BTC-USDT", |answer| {
        answer.status == 200 && !answer.exact()["high"].is_null()
    });
    check_quote(&answer.exact(), fake, &market, fake.sends);
    assert!(!answer.exact()["percentage"].is_null());
}
