//! Categories, and the ecosystem's markets.

use crate::loopback::contract::*;
use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;

fn text<'a>(value: &'a Json, key: &str) -> &'a str {
    value[key].text().unwrap_or_default()
}

#[test]
fn categories_are_the_configured_ones_and_then_one_for_each_quote_asset() {
    let exchange = exchange_of(&["ETH/BTC", "BTC/USDT", "SOL/EUR", "ETH/USDT"]);
    let categories = json!([
        { "id": "majors", "name": "Majors \"<&>\" ₿", "description": "The two",
          "symbols": ["ETH/USDT", "BTC/USDT", "NO/SUCH"] },
        { "id": "empty", "symbols": [] },
    ]);
    let marketd = start(&with(config(&[source("fake", &exchange)]), "categories", categories));
    let addr = marketd.addr();
    let list = good(&get(addr, "/api/v1/categories"));
    let shown: Vec<String> = list["categories"].items().iter().map(Json::to_string).collect();
    let expected = [
        r#"{"id":"majors","name":"Majors \"<&>\" ₿","description":"The two","marketCount":2}"#,
        r#"{"id":"empty","name":"empty","description":null,"marketCount":0}"#,
        r#"{"id":"btc","name":"BTC","description":null,"marketCount":1}"#,
        r#"{"id":"eur","name":"EUR","description":null,"marketCount":1}"#,
        r#"{"id":"usdt","name":"USDT","description":null,"marketCount":2}"#,
    ];
    assert_eq!(shown, expected);
    let markets = |id: &str| {
        let answer = get(addr, &format!("/api/v1/categories/{id}/markets"));
        let body = good(&answer);
        assert_eq!(body["category"]["id"], id);
        let count = body["category"]["marketCount"].integer();
        assert_eq!(count, Some(body["markets"].items().len() as i64), "{id}");
        body["markets"].clone()
    };
    // A configured one in its own order, without what no source tracks.
    assert_eq!(markets("majors").column("symbol"), ["ETH/USDT", "BTC/USDT"]);
    assert_eq!(markets("usdt").column("symbol"), ["BTC/USDT", "ETH/USDT"]);
    assert_eq!(markets("empty").column("symbol"), [""; 0]);
    let market = markets("eur")[0].clone();
    assert_eq!((text(&market, "base"), text(&market, "quote")), ("SOL", "EUR"));
    assert_eq!((market["source"].text(), market["last"].text()), (Some("fake"), Some("1.5")));
    assert_eq!((market["active"].bool(), market["stale"].bool()), (Some(true), Some(false)));
    assert!(market["percentage"].is_null() && market["quoteVolume"].is_null());
}

#[test]
fn halted_markets_are_tracked_when_they_are_named_and_not_otherwise() {
    let exchange = Binance::empty();
    exchange.set_markets(&[
        ("BTC/USDT", "TRADING"),
        ("EOS/ETH", "BREAK"),
        ("OLD/ETH", "BREAK"),
        ("LTC/BTC", "TRADING"),
        ("ABCDEFGHIJKLMNOPQRSTU/BTC", "TRADING"),
        ("a币/BTC", "TRADING"),
    ]);
    let ids = ["BTCUSDT", "EOSETH", "OLDETH", "LTCBTC", "ABCDEFGHIJKLMNOPQRSTUBTC", "a币BTC"];
    exchange.set_prices(&ids.map(|id| (id, "1.50")));
    let check = |more: &[(&str, serde_json::Value)], known: &[&str]| {
        let more = more.iter().cloned();
        let source =
            more.fold(source("fake", &exchange), |source, (key, value)| with(source, key, value));
        let marketd = start(&config(&[source]));
        let all = read(marketd.addr(), "/api/v1/quotes?symbols=*");
        assert_eq!(all["quotes"].column("symbol"), known);
        marketd
    };
    let marketd = check(&[], &["BTC/USDT", "LTC/BTC"]);
    // What cannot be named is left out and told once.
    marketd.await_log("ABCDEFGHIJKLMNOPQRSTU", LONG);
    check(&[("quoteAssets", json!(["*"]))], &["BTC/USDT", "LTC/BTC"]);
    check(&[("quoteAssets", json!(["BTC"]))], &["LTC/BTC"]);
    check(&[("symbols", json!(["BTC/USDT"]))], &["BTC/USDT"]);
    let both = [("symbols", json!(["EOS/ETH"])), ("quoteAssets", json!(["BTC"]))];
    let marketd = check(&both, &["EOS/ETH", "LTC/BTC"]);
    let addr = marketd.addr();
    assert_eq!(quote(&marketd, "EOSETH")["last"].text(), Some("1.5"));
    error(&get(addr, "/api/v1/quotes/OLD/ETH"), 404, "symbol_not_found", Some("symbol"));
    // Halted: in its category, not in the ecosystem's list, served there by its id.
    let markets = good(&get(addr, "/api/v1/categories/eth/markets"));
    assert_eq!(markets["markets"][0]["active"].bool(), Some(false));
    let list = good(&get(addr, "/api/ecosystem/market"));
    assert_eq!(list.column("symbol"), ["LTC/BTC"]);
    let record = good(&get(addr, "/api/ecosystem/market/EOS-ETH"));
    assert_eq!(record["status"].bool(), Some(false));
    assert_eq!(record["quote"]["last"].text(), Some("1.5"));
}

#[test]
fn the_ecosystem_shows_the_exchanges_rules_unless_they_are_overridden_field_by_field() {
    let exchange = Binance::generated(4, 1);
    let base = config(&[source("fake", &exchange)]);
    let symbols = exchange.symbols();
    let marketd = start(&base);
    let list = good(&get(marketd.addr(), "/api/ecosystem/market"));
    let mut sorted = symbols.clone();
    sorted.sort();
    assert_eq!(list.column("symbol"), sorted);
    let own = |list: &Json, symbol: &str| {
        let found = list.items().iter().find(|item| text(item, "symbol") == symbol);
        found.unwrap_or_else(|| panic!("no {symbol} in {list}")).clone()
    };
    let plain = own(&list, "BTC/USDT");
    assert_eq!((text(&plain, "id"), text(&plain, "name")), ("BTC-USDT", "BTC/USDT"));
    assert_eq!((text(&plain, "currency"), text(&plain, "pair")), ("BTC", "USDT"));
    let metadata = &plain["metadata"];
    assert_eq!(metadata["precision"].to_string(), r#"{"amount":4,"price":2}"#);
    let limits = r#"{"amount":{"min":0.0001,"max":900000},"price":{"min":0.01,"max":1000000},"cost":{"min":5,"max":9000000}}"#;
    assert_eq!(metadata["limits"].to_string(), limits);
    assert!(metadata["taker"].is_null() && metadata["maker"].is_null());

    let markets = json!([
        { "symbol": "ETH/USDT", "id": "ether", "isTrending": true, "icon": "https://x.example/e.png",
          "metadata": { "precision": { "price": 5 }, "limits": { "cost": { "min": 12.50 } }, "taker": 0.001 } },
        { "symbol": "BTC/USDT", "isHot": true, "metadata": { "limits": { "price": { "min": null } }, "maker": -0.00025 } },
        { "symbol": symbols[2], "status": false },
        { "symbol": "NO/SUCH" },
    ]);
    let marketd = start(&with(base, "ecosystem", json!({ "markets": markets })));
    let addr = marketd.addr();
    // In the order of the configuration, the inactive and the unknown one left out.
    let list = good(&get(addr, "/api/ecosystem/market"));
    assert_eq!(list.column("symbol"), ["ETH/USDT", "BTC/USDT"]);
    let (ether, bitcoin) = (&list[0], &list[1]);
    assert_eq!((text(ether, "id"), text(ether, "icon")), ("ether", "https://x.example/e.png"));
    assert_eq!((ether["isTrending"].bool(), ether["isHot"].bool()), (Some(true), Some(false)));
    let metadata = &ether["metadata"];
    assert_eq!(metadata["precision"].to_string(), r#"{"amount":4,"price":5}"#);
    assert_eq!(metadata["limits"]["cost"].to_string(), r#"{"min":12.5,"max":9000000}"#);
    assert_eq!(metadata["limits"]["amount"].to_string(), r#"{"min":0.0001,"max":900000}"#);
    assert_eq!((metadata["taker"].text(), metadata["maker"].is_null()), (Some("0.001"), true));
    assert_eq!(bitcoin["metadata"]["limits"].to_string(), limits);
    assert_eq!(bitcoin["metadata"]["maker"].text(), Some("-0.00025"));
    assert_eq!(bitcoin["isHot"].bool(), Some(true));
    // One of them: its id first, any form of its symbol then.
    for (asked, id) in [
        ("ether", "ether"),
        ("ETH-USDT", "ether"),
        ("eth%2Fusdt", "ether"),
        ("ETH/USDT", "ether"),
        ("btcusdt", "BTC-USDT"),
    ] {
        let record = good(&get(addr, &format!("/api/ecosystem/market/{asked}")));
        assert_eq!(text(&record, "id"), id, "{asked}");
    }
    for asked in ["Ether", &symbols[3].replace('/', "-"), "NO-SUCH"] {
        error(&get(addr, &format!("/api/ecosystem/market/{asked}")), 404, "market_not_found", None);
    }
    let id = symbols[2].replace('/', "-");
    let inactive = good(&get(addr, &format!("/api/ecosystem/market/{id}")));
    assert_eq!(inactive["status"].bool(), Some(false));
    assert!(!inactive["quote"].is_null());
    // It is still quoted and charted.
    assert_eq!(get(addr, &format!("/api/v1/quotes/{id}")).status, 200);
}

#[test]
fn a_full_record_tells_categories_sources_intervals_and_the_extent_of_charts() {
    let (one, two) = (Binance::generated(2, 1), Binance::generated(2, 2));
    let categories = json!([{ "id": "majors", "symbols": ["BTC/USDT"] }]);
    let symbols = ["BTC/USDT"];
    let sources = [tracking("one", &one, &symbols), source("two", &two)];
    let depth = json!({ "keep": 1000, "backfill": 20 });
    let history = json!({ "1m": depth, "1h": depth, "1d": depth });
    let file = with(with(config(&sources), "categories", categories), "history", history);
    let marketd = start(&file);
    let addr = marketd.addr();
    let filled = |answer: &Response| {
        let record = answer.exact();
        let extents = ["1m", "1h", "1d"].map(|name| record["chart"][name]["count"].integer());
        let is_quoted = record["quote"]["source"] == "one";
        is_quoted && extents.iter().all(|count| *count >= Some(20))
    };
    let answer = await_answer(addr, "/api/ecosystem/market/BTCUSDT", filled);
    let record = good(&answer);
    assert_eq!(record["categories"].to_string(), r#"["majors","usdt"]"#);
    assert_eq!(record["sources"].to_string(), r#"["one","two"]"#);
    assert_eq!(record["intervals"].texts(), naive::INTERVALS);
    for (interval, length) in [("1m", 60_000), ("1h", 3_600_000), ("1d", 86_400_000)] {
        let extent = &record["chart"][interval];
        let (from, to) = (extent["from"].integer(), extent["to"].integer());
        let (from, to) = from.zip(to).expect("both ends are known");
        let count = extent["count"].integer();
        assert_eq!(Some((to - from) / length + 1), count, "{interval}: {extent}");
    }
    // Charts of a market whose chart nobody asked for.
    let other = two.symbols()[1].replace('/', "-");
    let record = read(addr, &format!("/api/ecosystem/market/{other}"));
    let nothing = r#"{"from":null,"to":null,"count":0}"#;
    assert_eq!(record["chart"]["1h"].to_string(), nothing);
    assert_eq!(record["createdAt"], record["updatedAt"]);
}
