//! Quotes: one, many, all; their digits, their versions, and which source answers.

use crate::loopback::contract::*;
use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;

#[test]
fn a_batch_keeps_the_order_of_first_appearance_and_answers_nothing_twice() {
    let (_exchange, marketd) = polled(&["BTC/USDT", "ETH/USDT", "ETH/BTC", "SOL/USDT"]);
    let addr = marketd.addr();
    let check = |list: &str, symbols: &[&str], errors: &[(&str, &str)]| {
        let answer = get(addr, &format!("/api/v1/quotes?symbols={list}"));
        let batch = good(&answer);
        assert_eq!(batch["quotes"].column("symbol"), symbols, "{list}");
        let (failed, codes) = (batch["errors"].column("symbol"), batch["errors"].column("code"));
        assert_eq!(failed, errors.iter().map(|error| error.0).collect::<Vec<_>>(), "{list}");
        assert_eq!(codes, errors.iter().map(|error| error.1).collect::<Vec<_>>(), "{list}");
    };
    check("SOL/USDT,BTC/USDT,ETH/BTC", &["SOL/USDT", "BTC/USDT", "ETH/BTC"], &[]);
    check("ETH/BTC", &["ETH/BTC"], &[]);
    let same = "btcusdt,BTC/USDT,ethbtc,BTC-USDT,Btc_Usdt,ETH%2FBTC,BTCUSDT";
    check(same, &["BTC/USDT", "ETH/BTC"], &[]);
    check("+BTCUSDT+,,%20,ETHBTC%20,", &["BTC/USDT", "ETH/BTC"], &[]);
    let unknown = "symbol_not_found";
    check(
        "nope,BTCUSDT,a.b,NOPE,nope,FOO/BAR,a.b",
        &["BTC/USDT"],
        &[("nope", unknown), ("a.b", "invalid_symbol"), ("FOO/BAR", unknown)],
    );
    check("FOO/BAR", &[], &[("FOO/BAR", unknown)]);
    // A star among others is no symbol; alone it is all of them.
    check("*,BTCUSDT", &["BTC/USDT"], &[("*", "invalid_symbol")]);
    check("*", &["BTC/USDT", "ETH/BTC", "ETH/USDT", "SOL/USDT"], &[]);
    check("%2A", &["BTC/USDT", "ETH/BTC", "ETH/USDT", "SOL/USDT"], &[]);
}

#[test]
fn a_hundred_symbols_are_answered_and_one_more_is_refused() {
    let exchange = Binance::generated(150, 7);
    let marketd = polling(&exchange);
    let addr = marketd.addr();
    let all = exchange.symbols();
    let target = |symbols: &[String]| format!("/api/v1/quotes?symbols={}", symbols.join(","));
    let batch = good(&get(addr, &target(&all[..100])));
    assert_eq!(batch["quotes"].column("symbol"), all[..100]);
    let most = Some("symbols");
    let message = error(&get(addr, &target(&all[..101])), 400, "too_many_symbols", most);
    assert!(message.contains("101") && message.contains("100"), "{message}");
    // Blanks do not count, the same symbol over and over does.
    let blanks = format!("{},,,%20,", target(&all[..100]));
    assert_eq!(get(addr, &blanks).status, 200);
    let same = vec!["BTCUSDT".to_string(); 101];
    error(&get(addr, &target(&same)), 400, "too_many_symbols", most);
    let every = good(&get(addr, "/api/v1/quotes?symbols=*"));
    assert_eq!(every["quotes"].items().len(), 150);
    let few =
        with(config(&[source("fake", &exchange)]), "limits", json!({ "symbolsPerRequest": 2 }));
    let marketd = start(&few);
    assert_eq!(get(marketd.addr(), &target(&all[..2])).status, 200);
    error(&get(marketd.addr(), &target(&all[..3])), 400, "too_many_symbols", most);
}

#[test]
fn the_first_source_answers_and_any_can_be_asked_for() {
    let (one, two) = (exchange_of(&["BTC/USDT", "A/B"]), exchange_of(&["BTC/USDT", "C/D"]));
    two.set_prices(&[("BTCUSDT", "2.5"), ("CD", "2.5")]);
    let marketd = start(&config(&[source("one", &one), source("two", &two)]));
    await_answer(marketd.addr(), "/api/v1/quotes/CD", |answer| answer.status == 200);
    let last_of = |symbol: &str, source: &str| {
        let target = match source {
            "" => format!("/api/v1/quotes/{symbol}"),
            id => format!("/api/v1/quotes/{symbol}?source={id}"),
        };
        let quote = read(marketd.addr(), &target);
        format!("{} {}", quote["source"], quote["last"])
    };
    assert_eq!(last_of("BTCUSDT", ""), "\"one\" 1.5");
    assert_eq!(last_of("BTCUSDT", "one"), "\"one\" 1.5");
    assert_eq!(last_of("BTCUSDT", "two"), "\"two\" 2.5");
    assert_eq!(last_of("CD", ""), "\"two\" 2.5");
    // Quotes and charts say the same of a source that does not track a symbol.
    for target in ["/api/v1/quotes/CD?source=one", "/api/ecosystem/chart?symbol=CD&source=one"] {
        let answer = get(marketd.addr(), target);
        let message = error(&answer, 404, "symbol_not_found", Some("source"));
        assert_eq!(message, "Source \"one\" does not track \"C/D\".", "{target}");
    }
    let batch = read(marketd.addr(), "/api/v1/quotes?symbols=BTCUSDT,AB,CD&source=two");
    assert_eq!(batch["quotes"].column("symbol"), ["BTC/USDT", "C/D"]);
    assert_eq!(batch["errors"][0]["code"], "symbol_not_found");
    let every = read(marketd.addr(), "/api/v1/quotes?symbols=*&source=two");
    assert_eq!(every["quotes"].column("symbol"), ["BTC/USDT", "C/D"]);
    let every = read(marketd.addr(), "/api/v1/quotes?symbols=*");
    assert_eq!(every["quotes"].column("symbol"), ["A/B", "BTC/USDT", "C/D"]);
    assert_eq!(metrics(&marketd)["quotes"]["symbols"], 3);
    assert_eq!(metrics(&marketd)["cachedEntries"], 4);
}
