//! Dialects of files, as marketd runs with them: an exchange without a clock, without a market list, with
//! answers that do not fit, and with a market that is gone.

use crate::cli::file;
use crate::support;

use marketd::time::iso_8601;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use support::*;

/// One ticker a call; the clock is the date of an answer.
const DIALECT: &str = r#"{
    "name": "abacus",
    "baseUrl": "https://abacus.invalid",
    "budget": { "units": 1000, "perMs": 1000 },
    "errors": { "code": "[1]", "message": "[2]", "unknownMarket": ["10020"] },
    "tickers": { "one": { "call": { "target": "/t/{id}", "items": "." } }, "fields": ["last"] },
    "candles": {
        "call": { "target": "/c/{id}/{interval}", "items": "[]" },
        "intervals": { "1m": "1m" },
        "rows": 100,
        "time": "ms",
        "fields": ["time", "open", "close", "high", "low", "volume"]
    },
    "markets": { "pair": ["{base}_{quote}"] },
    "time": { "call": { "target": "/status", "items": "[]" }, "date": true }
}"#;

/// The same with a call for all tickers.
fn with_all() -> String {
    let all =
        r#""all": { "call": { "target": "/t", "items": "[]" }, "fields": ["id", "last"] }, "one""#;
    DIALECT.replacen("\"one\"", all, 1)
}

fn start(dialect: &str, exchange: &FakeExchange, symbols: &[&str]) -> Marketd {
    start_with(&[], dialect, exchange, symbols, json!({}))
}

/// The same, with these flags, and more keys of the source.
fn start_with(
    flags: &[&str],
    dialect: &str,
    exchange: &FakeExchange,
    symbols: &[&str],
    more: Value,
) -> Marketd {
    let launch = Launch::new(flags);
    launch.file("abacus.json", dialect);
    let mut source = json!({
        "dialect": "./abacus.json", "url": exchange.url(), "symbols": symbols, "pollMs": 250,
    });
    let keys = source.as_object_mut().expect("an object");
    keys.extend(more.as_object().expect("an object").clone());
    launch.config(json!({ "sources": [source] })).start()
}

/// The last price of a market, once it is this one.
fn await_last(marketd: &Marketd, market: &str, last: f64) {
    let is_it = || {
        let found = get(marketd.addr(), &format!("/api/v1/quotes/{market}"));
        (found.status == 200 && found.json()["last"] == last).then_some(())
    };
    eventually(LONG, is_it);
}

fn dated(body: &str, date: SystemTime) -> Reply {
    Reply::json(body).field("date", &httpdate::fmt_http_date(date))
}

/// The clock, and candles of a market that nobody trades.
fn other(asked: &Asked) -> Reply {
    match asked.path() {
        "/status" => dated("[1]", SystemTime::now()),
        _ => Reply::json("[]"),
    }
}

#[test]
fn a_source_without_a_list_and_without_symbols_is_not_good() {
    let launch = Launch::new(&["--check"]);
    launch.file("abacus.json", DIALECT);
    let ended = launch.config(json!({ "sources": [{ "dialect": "./abacus.json" }] })).run();
    let told = "abacus has no market list: name its markets in symbols";
    assert!(ended.stderr.contains(told), "{ended:?}");
    assert_ne!(ended.code, Some(0));
}

#[test]
fn the_date_of_answers_is_the_clock_of_an_exchange_that_has_no_other() {
    // Half an hour ago: this machine's clock contradicts it.
    let exchange = FakeExchange::start(move |asked| {
        let date = SystemTime::now() - Duration::from_secs(1800);
        match asked.path() {
            "/status" => dated("[1]", date),
            "/t/BTC_USD" => dated("[64000.5]", date),
            _ => dated("[]", date),
        }
    });
    let marketd = start(DIALECT, &exchange, &["BTC/USD"]);
    let line = marketd.await_log("clock in doubt", LONG);
    let told = |mark| {
        let time = line.split(mark).nth(1).and_then(|rest| rest.split(['Z']).next());
        time.and_then(|text| iso_8601(text.as_bytes())).unwrap_or_else(|| panic!("{line}"))
    };
    let ms = told("this machine ") - told("date ");
    assert!((1_800_000..1_815_000).contains(&ms), "{line}");
}

#[test]
fn a_date_from_a_cache_is_no_clock() {
    let exchange = FakeExchange::start(|_| dated("[1]", SystemTime::now()).field("age", "7"));
    let marketd = start(DIALECT, &exchange, &["BTC/USD"]);
    let line = marketd.await_log("no current `Date`", LONG);
    assert!(line.contains("what=\"clock\""), "{line}");
}

#[test]
fn a_poll_none_of_whose_tickers_can_be_read_has_failed() {
    let none = "no item can be read, the first: BTC_USD: last is not a finite decimal number";
    for (body, told) in [
        (r#"[["BTC_USD","much"],["OTHER_USD",1]]"#, Some(none)),
        // A refused ticker that nobody tracks is no failure.
        (r#"[["BTC_USD",64000.5],["fUSD","much"],7]"#, None),
    ] {
        let exchange = FakeExchange::start(move |asked| match asked.path() {
            "/t" => Reply::json(body),
            _ => other(asked),
        });
        let marketd = start(&with_all(), &exchange, &["BTC/USD"]);
        exchange.await_asked("/t", 4, LONG);
        let log = marketd.log();
        let failed: Vec<&str> = log.lines().filter(|it| it.contains("what=\"quotes\"")).collect();
        assert_eq!(failed.len(), usize::from(told.is_some()), "{log}");
        assert!(failed.iter().all(|it| told.is_some_and(|told| it.contains(told))), "{log}");
    }
}

#[test]
fn a_market_that_is_gone_is_asked_for_more_and_more_seldom_and_told_once() {
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/t/BTC_USD" => Reply::json("[64000.5]"),
        "/t/OLD_USD" => Reply::json(r#"["error",10020,"symbol: invalid"]"#),
        _ => other(asked),
    });
    let marketd = start(DIALECT, &exchange, &["BTC/USD", "OLD/USD"]);
    exchange.await_asked("/t/BTC_USD", 24, LONG);
    // At once, and 0.5, 1.5 and 3.5 seconds later.
    let asked = exchange.count("/t/OLD_USD");
    assert!((2..=5).contains(&asked), "{asked}");
    let log = marketd.log();
    assert_eq!(log.matches("request failed").count(), 1, "{log}");
    assert!(log.contains("symbol: invalid (10020)"), "{log}");
}

#[test]
fn answers_about_a_market_do_not_read_the_file_of_its_dialect_again() {
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/t/BTC_USD" => Reply::json("[64000.5]"),
        _ => other(asked),
    });
    let marketd = start(DIALECT, &exchange, &["BTC/USD"]);
    let quote =
        || Some(get(marketd.addr(), "/api/v1/quotes/BTC-USD")).filter(|it| it.status == 200);
    eventually(LONG, quote);
    // More than dialects are kept: each answer tells fifteen intervals.
    for _ in 0..100 {
        let answer = get(marketd.addr(), "/api/ecosystem/market/BTC-USD");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let path = marketd.dir().path().join("abacus.json");
    let other = DIALECT.replace("\"rows\": 100", "\"rows\": 99");
    std::fs::write(path, other).expect("the directory can be written to");
    marketd.signal("HUP");
    let line = marketd.await_log("config: reload", LONG);
    assert!(line.contains("reloaded"), "{line}");
}

/// A provider of stock prices: a key in a header, and bars of days that begin in the morning of New York.
const KEYED: &str = r#"{
    "name": "ticks",
    "baseUrl": "https://ticks.invalid",
    "key": { "header": "authorization", "prefix": "Token " },
    "budget": { "units": 1000, "perMs": 1000 },
    "errors": { "code": "code", "message": "detail" },
    "tickers": {
        "one": { "call": { "target": "/last/{id}", "items": "." } },
        "time": "isoSeconds",
        "fields": { "price": "last", "at": "time" }
    },
    "candles": {
        "call": { "target": "/bars/{id}?by={interval}&from={from}&to={to}", "items": "bars[]" },
        "intervals": { "1m": "1min", "1d": "1day" },
        "rows": 100,
        "time": "s",
        "fields": { "t": "time", "o": "open", "h": "high", "l": "low", "c": "close", "v": "volume" }
    },
    "markets": { "pair": ["{base}.{quote}"] },
    "time": { "call": { "target": "/status", "items": "[]" }, "date": true }
}"#;

/// The answers of that provider to who has this key.
fn ticks(asked: &Asked, key: &str) -> Reply {
    let sent = asked.field("authorization").unwrap_or_default();
    match asked.path() {
        _ if sent != format!("Token {key}") => {
            Reply::status(401, format!(r#"{{"code":"denied","detail":"no such key: {sent}"}}"#))
        }
        "/last/ACME.USD" => Reply::json(r#"{"price":"12.50","at":"2024-05-15T10:37:05"}"#),
        "/bars/ACME.USD" => {
            // Of days, those of the range, each at five o'clock.
            let from = asked.param("from").and_then(|it| it.parse::<i64>().ok()).expect("a begin");
            let begin =
                if asked.param("by").as_deref() == Some("1day") { from + 18_000 } else { from };
            let bar = |day: i64| json!({ "t": begin + day * 86_400, "o": "1", "h": "1", "l": "1", "c": "1", "v": "1" });
            Reply::json(json!({ "bars": [bar(0), bar(1)] }).to_string())
        }
        _ => other(asked),
    }
}

#[test]
fn a_key_is_sent_in_its_header_read_again_by_a_reload_and_told_nowhere() {
    let now = std::sync::Arc::new(std::sync::Mutex::new("hunter2-first"));
    let known = now.clone();
    let exchange = FakeExchange::start(move |asked| ticks(asked, &known.lock().expect("a key")));
    let file = file("dialects-key", "hunter2-first\n");
    let key_file = json!({ "keyFile": file });
    let marketd = start_with(&["--log", "debug"], KEYED, &exchange, &["ACME/USD"], key_file);
    await_last(&marketd, "ACME-USD", 12.5);
    // Days that begin at another hour are no days of the charts.
    exchange.await_asked("/bars/ACME.USD", 2, LONG);
    let chart = |interval: &str| {
        let target = format!("/api/ecosystem/chart?symbol=ACME/USD&interval={interval}");
        let chart = get(marketd.addr(), &target);
        (chart.text().to_owned(), chart.header("Chart-Coverage").map(str::to_owned))
    };
    let (rows, coverage) = chart("1d");
    assert!(!rows.contains(",1,1,1,1,1]"), "{rows}");
    assert_eq!(coverage.as_deref(), Some("partial"));
    // The exchange takes another key from now on, and repeats the old one.
    *now.lock().expect("a key") = "hunter2-second";
    let line = marketd.await_log("no such key", LONG);
    assert!(line.contains("no such key: Token (hidden)"), "{line}");
    let shown = |marketd: &Marketd| {
        let paths = ["/health", "/metrics", "/api/v1/metrics", "/page/config.json"];
        let bodies = paths.map(|path| get(marketd.addr(), path).text().to_owned());
        bodies.join("\n") + &marketd.log()
    };
    let told = shown(&marketd);
    assert!(told.contains("no such key: Token (hidden)") && !told.contains("hunter2"), "{told}");
    std::fs::write(&file, "hunter2-second\n").expect("the directory can be written to");
    marketd.signal("HUP");
    marketd.await_log("reloaded", LONG);
    exchange.forget();
    let is_taken = || {
        let asked = exchange.asked_of("/last/ACME.USD");
        asked
            .iter()
            .any(|it| it.field("authorization") == Some("Token hunter2-second"))
            .then_some(())
    };
    eventually(LONG, is_taken);
    assert!(!shown(&marketd).contains("hunter2"));
    assert!(exchange.asked().iter().all(|it| !it.target.contains("hunter2")));
    // A reload that finds no key changes nothing.
    std::fs::write(&file, "").expect("the directory can be written to");
    marketd.signal("HUP");
    let line = marketd.await_log("not reloaded", LONG);
    assert!(line.contains("expected a key, found nothing"), "{line}");
}

/// The value of this key of the quote of a market, as it is served.
fn shown(marketd: &Marketd, market: &str, key: &str) -> Value {
    get(marketd.addr(), &format!("/api/v1/quotes/{market}")).json()[key].clone()
}

/// A provider whose market list goes on by a cursor, and whose prices of all markets come in numbered pages.
const PAGED: &str = r#"{
    "name": "leaves",
    "baseUrl": "https://leaves.invalid",
    "budget": { "units": 1000, "perMs": 1000 },
    "errors": { "code": "error" },
    "tickers": {
        "all": { "call": {
            "target": "/prices?page=1", "items": "rows[]",
            "pages": { "target": "/prices?page={page}", "size": 2, "most": 5 }
        } },
        "fields": ["id", "last"]
    },
    "candles": {
        "call": { "target": "/bars/{id}/{interval}", "items": "rows[]" },
        "intervals": { "1m": "1m" },
        "rows": 100,
        "time": "ms",
        "fields": ["time", "open", "high", "low", "close", "volume"]
    },
    "markets": {
        "call": {
            "target": "/markets", "items": "rows[]",
            "pages": { "target": "/markets?after={cursor}", "cursor": "next" }
        },
        "constants": { "quote": "USD" },
        "fields": { "name": "id base" }
    },
    "time": { "call": { "target": "/status", "items": "[]" }, "date": true }
}"#;

/// The answers of that provider, which has five markets.
fn leaves(asked: &Asked) -> Reply {
    let all = ["A1", "B2", "C3", "D4", "E5"];
    let page = |page: usize| all.iter().skip(2 * page).take(2);
    match asked.path() {
        "/markets" => {
            let after = asked.param("after").map_or(0, |it| it.len());
            let rows: Vec<_> = page(after).map(|name| json!({ "name": name })).collect();
            let next = (after < 2).then(|| "+".repeat(after + 1));
            Reply::json(json!({ "rows": rows, "next": next }).to_string())
        }
        "/prices" => {
            let number =
                asked.param("page").and_then(|it| it.parse::<usize>().ok()).expect("a page");
            let price = |name: &&str| json!([name, format!("{}.5", &name[1..])]);
            let rows: Vec<_> = page(number - 1).map(price).collect();
            Reply::json(json!({ "rows": rows }).to_string())
        }
        _ => other(asked),
    }
}

#[test]
fn lists_and_tickers_may_come_in_pages() {
    let exchange = FakeExchange::start(leaves);
    let marketd = start(PAGED, &exchange, &[]);
    await_last(&marketd, "E5-USD", 5.5);
    await_last(&marketd, "A1-USD", 1.5);
    let count = |marketd: &Marketd| {
        get(marketd.addr(), "/api/v1/quotes?symbols=*").text().matches("\"last\"").count()
    };
    assert_eq!(count(&marketd), 5);
    let asked: Vec<String> =
        exchange.asked_of("/markets").into_iter().map(|it| it.target).collect();
    assert_eq!(asked, ["/markets", "/markets?after=%2B", "/markets?after=%2B%2B"]);
    let pages = exchange.await_asked("/prices", 6, LONG).into_iter().map(|it| it.target);
    let pages: Vec<String> = pages.take(6).collect();
    let poll = ["/prices?page=1", "/prices?page=2", "/prices?page=3"];
    assert_eq!(pages, [poll, poll].concat(), "one poll after the other");
    assert!(!marketd.log().contains("request failed"), "{}", marketd.log());
}

#[test]
fn nothing_of_a_list_or_of_tickers_is_served_if_one_page_fails_and_the_first_one_comes_next() {
    for (broken, body, told, what, pages) in [
        (
            "/markets",
            r#"{"rows":[{"name":"A1"}],"next":"x"}"#,
            "cursor of the next page repeats",
            "market list",
            "",
        ),
        ("/prices?page=3", r#"{"error":"late"}"#, "refused: late", "quotes", "123123"),
    ] {
        let exchange = FakeExchange::start(move |asked| match asked.target.starts_with(broken) {
            true => Reply::json(body),
            false => leaves(asked),
        });
        let marketd = start(PAGED, &exchange, &[]);
        let line = marketd.await_log(told, LONG);
        assert!(line.contains(&format!("what=\"{what}\"")), "{line}");
        exchange.await_asked("/prices", pages.len(), LONG);
        let asked = exchange.asked_of("/prices");
        let numbers: String = asked.iter().filter_map(|it| it.param("page")).collect();
        assert!(numbers.starts_with(pages) && numbers.is_empty() == pages.is_empty(), "{numbers}");
        assert_ne!(get(marketd.addr(), "/api/v1/quotes/A1-USD").status, 200);
    }
}

/// A provider with prices of all markets in one call, and volumes of one market in another.
const MERGED: &str = r#"{
    "name": "gem",
    "baseUrl": "https://gem.invalid",
    "budget": { "units": 1000, "perMs": 1000 },
    "tickers": {
        "all": { "call": { "target": "/feed", "items": "[]" }, "fields": { "pair": "id", "price": "last" } },
        "stats": {
            "call": { "target": "/day/{id}", "items": "." },
            "fields": { "high": "high", "volume": { "{base}": "baseVolume", "{quote}": "quoteVolume" } }
        }
    },
    "candles": {
        "call": { "target": "/bars/{id}/{interval}", "items": "[]" },
        "intervals": { "1m": "1m" },
        "rows": 100,
        "time": "ms",
        "fields": ["time", "open", "high", "low", "close", "volume"]
    },
    "markets": {
        "call": { "target": "/symbols", "items": "[]" },
        "pair": ["{base}{quote:3}"], "lowerCase": true, "fields": "id pair"
    },
    "time": { "call": { "target": "/status", "items": "[]" }, "date": true }
}"#;

fn gem(asked: &Asked) -> Reply {
    match asked.path() {
        "/symbols" => Reply::json(r#"["btcusd","ethusd"]"#),
        "/feed" => {
            Reply::json(r#"[{"pair":"btcusd","price":"64000.5"},{"pair":"ethusd","price":"3000"}]"#)
        }
        "/day/btcusd" => Reply::json(
            r#"{"high":"65000","volume":{"BTC":"12.5","USD":"800000.25","timestamp":1}}"#,
        ),
        "/day/ethusd" => Reply::json(r#"{"high":"3100","volume":{"ETH":"7","USD":"21000"}}"#),
        _ => other(asked),
    }
}

#[test]
fn a_list_of_some_markets_that_has_none_of_them_is_read_whole() {
    let some = r#""several": { "call": { "target": "/some/{ids}", "items": "[]" },
        "ids": "{base}{quote}", "between": "+", "most": 2 }, "pair""#;
    let dialect = MERGED.replacen("\"pair\": [", &format!("{some}: ["), 1);
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/some/ethusd+btcusd" => Reply::json("[]"),
        _ => gem(asked),
    });
    let marketd = start(&dialect, &exchange, &["ETH/USD", "BTC/USD"]);
    await_last(&marketd, "ETH-USD", 3000.0);
    assert_eq!((exchange.count("/some/ethusd+btcusd"), exchange.count("/symbols")), (1, 1));
    marketd.await_log("market list widened source=abacus error=", LONG);
    assert!(!marketd.log().contains("request failed"), "{}", marketd.log());
}

#[test]
fn tickers_of_all_markets_are_completed_market_by_market() {
    let exchange = FakeExchange::start(gem);
    let marketd = start(MERGED, &exchange, &[]);
    await_last(&marketd, "BTC-USD", 64000.5);
    let is = |market, volume: f64| shown(&marketd, market, "baseVolume") == volume;
    eventually(LONG, || (is("ETH-USD", 7.0) && is("BTC-USD", 12.5)).then_some(()));
    assert_eq!(shown(&marketd, "ETH-USD", "quoteVolume"), 21000);
    assert_eq!(shown(&marketd, "BTC-USD", "quoteVolume"), 800_000.25);
    assert_eq!(shown(&marketd, "BTC-USD", "high"), 65000);
    // Prices are those of each poll, figures of the day are read once a minute.
    exchange.await_asked("/feed", 8, LONG);
    assert_eq!((exchange.count("/day/btcusd"), exchange.count("/day/ethusd")), (1, 1));
}

#[test]
fn a_probe_shows_the_merged_quote_and_every_page() {
    let probe = |name: &str, dialect: &str, exchange: &FakeExchange, symbol: &str| {
        let path = file(&format!("dialects-{name}.json"), dialect);
        let source = format!("{path}={}", exchange.url());
        Marketd::run(&["probe", "--source", &source, "--symbols", symbol]).stdout
    };
    let text = probe("gem", MERGED, &FakeExchange::start(gem), "ETH/USD");
    for line in [
        "    baseVolume     7\n",
        "  read: last 3000, bid null",
        "  merged: last 3000, bid null, ask null, bidVolume null, askVolume null, open null, high 3100",
        "baseVolume 7, quoteVolume 21000",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let text = probe("leaves", PAGED, &FakeExchange::start(leaves), "E5/USD");
    for line in [
        "GET /markets?after=%2B%2B (costs 1)",
        "markets: 5, 5 of them active",
        "  raw: {\"name\":\"E5\"}",
        "GET /prices?page=3 (costs 1)",
        "tickers: 5",
        "  read: last 5.5",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn one_market_a_call_and_five_requests_a_minute_are_enough_for_two_markets() {
    let slow = DIALECT
        .replace("\"units\": 1000, \"perMs\": 1000", "\"units\": 5, \"perMs\": 60000")
        .replace("\"name\": \"abacus\"", "\"name\": \"slow\"");
    let exchange = FakeExchange::start(|asked| match asked.path() {
        "/t/EUR_USD" => Reply::json("[1.0825]"),
        _ => other(asked),
    });
    let more = json!({ "pollMs": 60_000, "staleAfterMs": 300_000 });
    let marketd = start_with(&[], &slow, &exchange, &["EUR/USD"], more);
    await_last(&marketd, "EUR-USD", 1.0825);
    let asked = exchange.asked().len();
    assert!((2..=4).contains(&asked), "{asked}");
    assert_eq!(shown(&marketd, "EUR-USD", "stale"), false);
    let log = marketd.log();
    assert!(!log.contains("exceeds the rate limit"), "{log}");
    // Polls that the budget does not permit are told, by the call that polls make.
    let told = |dialect: &str| {
        let launch = Launch::new(&["--check"]);
        launch.file("slow.json", dialect);
        let (url, symbols) = ("http://127.0.0.1:9", ["EUR/USD", "GBP/USD"]);
        let source = json!({ "dialect": "./slow.json", "url": url, "symbols": symbols });
        launch.config(json!({ "sources": [source] })).run().stderr
    };
    let spaced = "it is polled every 24000 ms, and quotes turn stale between two polls";
    assert!(told(&slow).contains(spaced), "{}", told(&slow));
    let several = r#""several": { "call": { "target": "/t?m={ids}", "items": "[]" }, "fields": ["id", "last"],
        "sizes": [{ "most": 10 }] }, "one""#;
    let told = told(&slow.replacen("\"one\"", several, 1));
    assert!(told.contains("it is polled every 12000 ms\n"), "{told}");
}
