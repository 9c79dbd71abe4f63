//! Bodies have what Binance's dialect reads, in Binance's types, and nothing else. Refusals have
//! Binance's members and codes.

use super::*;
use crate::time::Mono;
use serde_json::json;

/// The names of the members, in the order of the alphabet.
#[track_caller]
fn keys(object: &Json) -> Vec<&str> {
    let mut keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// What Binance's dialect reads of these bodies.
fn fields(kind: &str) -> Json {
    let dialect = include_str!("../../exchange/dialects/binance.json");
    serde_json::from_str::<Json>(dialect).unwrap()[kind]["fields"].clone()
}

#[test]
fn tickers_have_binances_shape() {
    let demo = Demo::new(1);
    let all = get(&demo, "/api/v3/ticker/24hr", "", NOW);
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 24);
    for (figures, market) in all.iter().zip(&MARKETS) {
        assert_eq!(figures["symbol"], market.symbol);
        assert_eq!(*figures, ticker(&demo, market.symbol, NOW));
        assert_eq!(keys(figures), keys(&fields("tickers")));
        // Binance sends all of them as strings but the time.
        for (key, figure) in figures.as_object().unwrap() {
            assert_eq!(figure.is_string(), key != "closeTime", "{key}");
            assert_eq!(figure.is_i64(), key == "closeTime", "{key}");
        }
    }
}

#[test]
fn the_market_list_has_binances_shape_and_the_prices_keep_its_steps() {
    let demo = Demo::new(1);
    let info = get(&demo, "/api/v3/exchangeInfo", "", NOW);
    assert_eq!(keys(&info), ["serverTime", "symbols", "timezone"]);
    let fields = fields("markets");
    let symbols = info["symbols"].as_array().unwrap();
    assert_eq!(symbols.len(), 24);
    for symbol in symbols {
        assert_eq!(keys(symbol), keys(&fields));
        let name = symbol["symbol"].as_str().unwrap();
        let (base, quote) = (&symbol["baseAsset"], &symbol["quoteAsset"]);
        let joined = format!("{}{}", base.as_str().unwrap(), quote.as_str().unwrap());
        assert_eq!(name, joined);
        assert_eq!(symbol["status"], "TRADING");
        let filter = |kind: &str| {
            let filters = symbol["filters"].as_array().unwrap();
            let found = filters.iter().find(|filter| filter["filterType"] == kind);
            let mut found = found.unwrap().clone();
            found.as_object_mut().unwrap().remove("filterType");
            assert_eq!(keys(&found), keys(&fields["filters"][kind]), "{kind}");
            found
        };
        let (price, lot) = (filter("PRICE_FILTER"), filter("LOT_SIZE"));
        let (tick, step) = (units(&price["tickSize"]), units(&lot["stepSize"]));
        let figures = ticker(&demo, name, NOW);
        for key in ["lastPrice", "openPrice", "highPrice", "lowPrice", "bidPrice", "askPrice"] {
            let figure = units(&figures[key]);
            assert_eq!(figure % tick, 0, "{name} {key}");
            assert!(units(&price["minPrice"]) <= figure && figure <= units(&price["maxPrice"]));
        }
        for key in ["volume", "bidQty", "askQty"] {
            assert_eq!(units(&figures[key]) % step, 0, "{name} {key}");
        }
        assert!(units(&lot["minQty"]) < units(&lot["maxQty"]), "{name}");
        let cost = filter("NOTIONAL");
        let (least, most) = (units(&cost["minNotional"]), units(&cost["maxNotional"]));
        assert!(0 < least && least < most, "{name}");
    }
}

#[test]
fn some_markets_are_those_that_are_named() {
    let demo = Demo::new(1);
    for list in ["[%22ETHBTC%22,%22BTCUSDT%22]", "%5B\"ETHBTC\"%2C\"BTCUSDT\"%5D"] {
        let query = format!("symbols={list}");
        let two = get(&demo, "/api/v3/ticker/24hr", &query, NOW);
        let expected = ["ETHBTC", "BTCUSDT"].map(|name| ticker(&demo, name, NOW));
        assert_eq!(two, json!(expected), "{list}");
        let info = get(&demo, "/api/v3/exchangeInfo", &query, NOW);
        assert_eq!(info["symbols"][1]["symbol"], "BTCUSDT");
        assert_eq!(info["symbols"].as_array().unwrap().len(), 2);
    }
    let one = get(&demo, "/api/v3/exchangeInfo", "symbol=BTCEUR", NOW);
    assert_eq!(one["symbols"][0]["symbol"], "BTCEUR");
    let query = "symbols=[%22BTCUSDT%22,%22NONE%22]";
    assert_eq!(call(&demo, "/api/v3/ticker/24hr", query, NOW).0, 400);
}

#[test]
fn the_weight_of_a_minute_is_told() {
    let mut demo = Demo::new(1);
    let mut used = |path: &str, query: &str, mono_ms: u64| {
        let now = Now { mono: Mono(mono_ms * 1000), unix: UnixMs(NOW) };
        let head = demo.serve(path.as_bytes(), query.as_bytes(), now, &mut Vec::new()).unwrap();
        assert_eq!(head.status, 200);
        head.fields
    };
    let told = |used: u32| format!("X-MBX-USED-WEIGHT-1M: {used}\r\n");
    assert_eq!(used("/api/v3/ticker/24hr", "", 59_000), told(80));
    assert_eq!(used("/api/v3/ticker/24hr", "symbol=BTCUSDT", 59_999), told(82));
    assert_eq!(used("/api/v3/exchangeInfo", "", 60_000), told(20));
    assert_eq!(used("/api/v3/klines", "symbol=BTCUSDT&interval=1m", 61_000), told(22));
    assert_eq!(used("/api/v3/ping", "", 119_999), told(23));
}

#[test]
fn the_time_is_told() {
    let expected = (200, r#"{"serverTime":1790000123456}"#.to_owned());
    assert_eq!(call(&Demo::new(1), "/api/v3/time", "", NOW), expected);
}

#[test]
fn what_is_wrong_is_refused_with_the_codes_of_binance() {
    let check = |path: &str, query: &str, status: u16, code: i64| {
        let (found, body) = call(&Demo::new(1), path, query, NOW);
        assert_eq!(found, status, "{path}?{query}: {body}");
        let body: Json = serde_json::from_str(&body).unwrap();
        assert_eq!(body["code"], code, "{path}?{query}");
        assert!(body["msg"].is_string());
        assert_eq!(keys(&body), ["code", "msg"]);
    };
    let klines = "/api/v3/klines";
    check("/", "", 404, -1000);
    check("/api/v3/klines/", "", 404, -1000);
    check("/api/v3/order", "", 404, -1000);
    for bad in ["symbol=&", "symbol=BTCUSD&", "symbol=btcusdt&", "symbol=BTC%2FUSDT&"] {
        check(klines, &format!("{bad}interval=1m"), 400, -1121);
    }
    for bad in ["&interval=", "&interval=7m", "&interval=1H"] {
        check(klines, &format!("symbol=BTCUSDT{bad}"), 400, -1120);
    }
    check(klines, "interval=1m", 400, -1102);
    check(klines, "symbol=BTCUSDT", 400, -1102);
    check("/api/v3/ticker/24hr", "symbol=FOO", 400, -1121);
    check("/api/v3/ticker/24hr", "symbol=", 400, -1121);
    let good = "symbol=BTCUSDT&interval=1m";
    for bad in
        ["startTime=x", "endTime=-1", "startTime=", "limit=1e3", "startTime=99999999999999999999"]
    {
        check(klines, &format!("{good}&{bad}"), 400, -1100);
        let (_, body) = call(&Demo::new(1), klines, &format!("{good}&{bad}"), NOW);
        let (name, _) = bad.split_once('=').unwrap();
        assert!(body.contains(&format!("'{name}'")), "{body}");
    }
    let (_, body) = call(&Demo::new(1), klines, "symbol=FOO&interval=1m", NOW);
    assert_eq!(body, r#"{"code":-1121,"msg":"Invalid symbol."}"#);
}

#[test]
fn parameters_are_found_by_their_whole_name() {
    let check = |query: &str, expected: Option<&str>| {
        let found = parameter(query.as_bytes(), "symbol");
        assert_eq!(found, expected.map(str::as_bytes), "{query}");
    };
    check("", None);
    check("symbol=A", Some("A"));
    check("a=b&symbol=A&symbol=B", Some("A"));
    check("symbols=A", None);
    check("xsymbol=A", None);
    check("symbol", Some(""));
    check("symbol=A=B", Some("A=B"));
    check("&&symbol=", Some(""));
    let odd = "type=FULL&symbol=BTCUSDT&timeZone=0";
    assert_eq!(call(&Demo::new(1), "/api/v3/ticker/24hr", odd, NOW).0, 200);
}
