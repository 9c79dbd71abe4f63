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
    let open = Open::new(fake("kraken"), Shop::new(1));
    let marketd = start(&open, "BTC/USDT");
    let at_hand = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=720";
    await_answer(marketd.addr(), at_hand, |answer| {
        answer.header("Chart-Coverage") == Some("complete")
    });
    let asked = open.asked_for("OHLC?pair=XBTUSDT&interval=1&");
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
    assert!(open.asked_for("OHLC?pair=XBTUSDT&interval=1&") <= asked + 1);
}

#[test]
fn what_is_too_long_ago_for_gate_is_not_asked_for() {
    let open = Open::new(fake("gate"), Shop::new(1));
    let marketd = start(&open, "BTC/USDT");
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
    let mut shop = Shop::new(5);
    let markets = shop.markets().to_vec();
    let broken = &markets[2];
    shop.broken.insert(fake("coinbase").id(&broken.base, broken.quote));
    let open = Open::new(fake("coinbase"), shop);
    let symbols: Vec<String> = markets.iter().map(|market| market.symbol()).collect();
    let marketd = start(&open, &symbols.join(","));
    let times = |path: &str, times| drop(open.exchange.await_asked(path, times, LONG));
    for market in &markets {
        let (id, symbol) = (
            fake("coinbase").id(&market.base, market.quote),
            format!("{}-{}", market.base, market.quote),
        );
        // Round after round, the broken one too.
        times(&format!("/products/{id}/ticker"), 2);
        if market.id() == broken.id() {
            let answer = get(marketd.addr(), &format!("/api/v1/quotes/{symbol}"));
            assert_eq!(answer.status, 404, "{}", answer.text());
            continue;
        }
        let target = format!("/api/v1/quotes/{symbol}");
        let answer = await_answer(marketd.addr(), &target, |answer| {
            answer.status == 200 && !answer.exact()["open"].is_null()
        });
        check_quote(&answer.exact(), &Shop::new(5).day(market), fake("coinbase").sends);
    }
    let metrics = get(marketd.addr(), "/api/v1/metrics").exact();
    assert_ne!(metrics["upstreams"][0]["errors"], 0);
    assert_eq!(metrics["upstreams"][0]["rateLimited"], 0, "{metrics}");
}

#[test]
fn a_quote_of_coinbase_stands_without_its_day_and_is_filled_when_that_comes() {
    let shop = Shop::new(1);
    let (day, sends) = (shop.day(&shop.markets()[0]), fake("coinbase").sends);
    let open = Open::new(fake("coinbase"), shop);
    let stats = "/products/BTC-USDT/stats";
    open.exchange.fault_on(stats, Fault::Instead(fake("coinbase").refuses("UnknownMarket")));
    let marketd = start(&open, "BTC/USDT");
    open.exchange.await_asked(stats, 1, LONG);
    open.exchange.await_asked("/products/BTC-USDT/ticker", 2, LONG);
    let quote = await_quote(&marketd, "BTC-USDT");
    check_quote(&quote, &day, "last bid ask baseVolume");
    for field in ["open", "high", "low", "change", "percentage"] {
        assert!(quote[field].is_null(), "{field} of {quote}");
    }
    assert_eq!(quote["stale"], Json::Bool(false));

    let open = Open::new(fake("coinbase"), Shop::new(1));
    let marketd = start(&open, "BTC/USDT");
    let answer = await_answer(marketd.addr(), "/api/v1/quotes/BTC-USDT", |answer| {
        answer.status == 200 && !answer.exact()["high"].is_null()
    });
    check_quote(&answer.exact(), &day, sends);
    assert!(!answer.exact()["percentage"].is_null());
}
