//! Bodies and refusals have Binance's shape.

use super::*;

#[track_caller]
fn keys(object: &Json) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
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
        let mut expected = [
            "askPrice",
            "askQty",
            "bidPrice",
            "bidQty",
            "closeTime",
            "count",
            "firstId",
            "highPrice",
            "lastId",
            "lastPrice",
            "lastQty",
            "lowPrice",
            "openPrice",
            "openTime",
            "prevClosePrice",
            "priceChange",
            "priceChangePercent",
            "quoteVolume",
            "symbol",
            "volume",
            "weightedAvgPrice",
        ];
        let mut found = keys(figures);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        for key in ["openTime", "closeTime", "firstId", "lastId", "count"] {
            assert!(figures[key].is_i64(), "{key}");
        }
    }
}

#[test]
fn klines_have_binances_shape() {
    let body = get(&Demo::new(1), "/api/v3/klines", "symbol=XRPBTC&interval=1h&limit=3", NOW);
    for row in body.as_array().unwrap() {
        let types: String = row
            .as_array()
            .unwrap()
            .iter()
            .map(|value| if value.is_string() { 's' } else { 'n' })
            .collect();
        assert_eq!(types, "nsssssnsnsss");
    }
}

#[test]
fn the_market_list_has_binances_shape_and_the_prices_keep_its_steps() {
    let demo = Demo::new(1);
    let info = get(&demo, "/api/v3/exchangeInfo", "", NOW);
    assert_eq!(info["serverTime"], NOW);
    assert_eq!(info["timezone"], "UTC");
    assert!(info["rateLimits"].is_array() && info["exchangeFilters"].is_array());
    let symbols = info["symbols"].as_array().unwrap();
    assert_eq!(symbols.len(), 24);
    for symbol in symbols {
        let name = symbol["symbol"].as_str().unwrap();
        let (base, quote) = (&symbol["baseAsset"], &symbol["quoteAsset"]);
        let joined = format!("{}{}", base.as_str().unwrap(), quote.as_str().unwrap());
        assert_eq!(name, joined);
        assert_eq!(symbol["status"], "TRADING");
        let filter = |kind: &str| {
            let filters = symbol["filters"].as_array().unwrap();
            let found = filters.iter().find(|filter| filter["filterType"] == kind);
            found.unwrap().clone()
        };
        let (price, lot) = (filter("PRICE_FILTER"), filter("LOT_SIZE"));
        let (tick, step) = (units(&price["tickSize"]), units(&lot["stepSize"]));
        let figures = ticker(&demo, name, NOW);
        for key in ["lastPrice", "openPrice", "highPrice", "lowPrice", "bidPrice", "askPrice"] {
            let figure = units(&figures[key]);
            assert_eq!(figure % tick, 0, "{name} {key}");
            assert!(units(&price["minPrice"]) <= figure && figure <= units(&price["maxPrice"]));
        }
        for key in ["volume", "lastQty", "bidQty", "askQty"] {
            assert_eq!(units(&figures[key]) % step, 0, "{name} {key}");
        }
        assert!(units(&lot["minQty"]) < units(&lot["maxQty"]), "{name}");
        assert!(units(&filter("NOTIONAL")["minNotional"]) > 0, "{name}");
    }
    let one = get(&demo, "/api/v3/exchangeInfo", "symbol=SOLETH", NOW);
    assert_eq!(one["symbols"].as_array().unwrap().len(), 1);
    assert_eq!(one["symbols"][0]["symbol"], "SOLETH");
}

#[test]
fn time_and_ping_answer() {
    let demo = Demo::new(1);
    let expected = (200, r#"{"serverTime":1790000123456}"#.to_owned());
    assert_eq!(call(&demo, "/api/v3/time", "", NOW), expected);
    assert_eq!(call(&demo, "/api/v3/ping", "", NOW), (200, "{}".to_owned()));
}

#[test]
fn what_is_wrong_is_refused_as_binance_refuses_it() {
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
    check(klines, "interval=1m", 400, -1102);
    check(klines, "symbol=&interval=1m", 400, -1102);
    check(klines, "symbol=BTCUSDT", 400, -1102);
    check(klines, "symbol=BTCUSDT&interval=", 400, -1102);
    check(klines, "symbol=BTCUSDT&interval=7m", 400, -1120);
    check(klines, "symbol=BTCUSDT&interval=1H", 400, -1120);
    check(klines, "symbol=BTCUSD&interval=1m", 400, -1121);
    check(klines, "symbol=btcusdt&interval=1m", 400, -1100);
    check(klines, "symbol=BTC%2FUSDT&interval=1m", 400, -1100);
    check("/api/v3/ticker/24hr", "symbol=FOO", 400, -1121);
    check("/api/v3/ticker/24hr", "symbol=", 400, -1102);
    check("/api/v3/exchangeInfo", "symbol=FOO", 400, -1121);
    let good = "symbol=BTCUSDT&interval=1m";
    for bad in ["startTime=x", "endTime=-1", "startTime=", "limit=1e3"] {
        check(klines, &format!("{good}&{bad}"), 400, -1100);
    }
    check(klines, &format!("{good}&limit=0"), 400, -1130);
    let (_, body) = call(&Demo::new(1), klines, "symbol=FOO&interval=1m", NOW);
    assert_eq!(body, r#"{"code":-1121,"msg":"Invalid symbol."}"#);
}

#[test]
fn parameters_are_found_by_their_whole_name() {
    let check = |query: &str, expected: Option<&str>| {
        let found = parameter(query.as_bytes(), b"symbol");
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
