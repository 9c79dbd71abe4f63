//! `marketd probe`: what it prints about an exchange, and about a dialect that is wrong.

use crate::cli::file;
use crate::support;

use std::process::Command;
use support::*;

const MEXC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange/dialects/mexc.json");

/// 2024-05-15 10:37:05.
const NOW: i64 = 1_715_769_425_000;

fn ticker() -> String {
    format!(
        r#"{{"symbol":"BTCUSDT","lastPrice":"64000.50","bidPrice":"64000.0","askPrice":"64001","highPrice":"65000","lowPrice":"62000","volume":"12.50","closeTime":{NOW}}}"#
    )
}

fn answer(asked: &Asked) -> Reply {
    match asked.path() {
        "/api/v3/time" => Reply::json(format!(r#"{{"serverTime":{NOW}}}"#)),
        "/api/v3/ticker/24hr" if asked.param("symbol").is_some() => Reply::json(ticker()),
        "/api/v3/ticker/24hr" => Reply::json(format!("[{}]", ticker())),
        "/api/v3/exchangeInfo" if asked.param("symbols").is_some_and(|it| it.contains("NOSUCH")) => {
            Reply::status(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#)
        }
        "/api/v3/exchangeInfo" => Reply::json(
            r#"{"symbols":[{"symbol":"BTCUSDT","status":"1","baseAsset":"BTC","quoteAsset":"USDT"},
                {"symbol":"X","status":"1","baseAsset":"A B","quoteAsset":"USDT"},{"symbol":"Y"}]}"#,
        )
        .gzipped(),
        "/api/v3/klines" => {
            let from: i64 = asked.param("startTime").expect("a begin").parse().expect("a number");
            // An exchange of milliseconds, whatever it is asked with.
            let from = if from > 100_000_000_000_000 { from / 1000 } else { from };
            Reply::json(format!(r#"[[{from},"1","4","0.5","2.50","9",0,"1"]]"#))
        }
        _ => Reply::status(404, "{}"),
    }
}

/// What the probe of this dialect prints, and its exit code.
fn probe(dialect: &str, symbols: &str) -> (i32, String) {
    let exchange = FakeExchange::start(answer);
    probe_with(&format!("{dialect}={}", exchange.url()), &["--symbols", symbols])
}

/// The same of this source, with these flags.
fn probe_with(source: &str, flags: &[&str]) -> (i32, String) {
    let (code, text, errors) =
        Marketd::run(&[&["probe", "--source", source], flags].concat()).parts();
    (code, text + &errors)
}

#[test]
fn it_shows_each_field_beside_what_was_sent() {
    let (code, text) = probe(MEXC, "BTC/USDT");
    assert_eq!(code, 0, "{text}");
    for line in [
        "budget: 500 in 10000 ms",
        "GET /api/v3/time (costs 1)",
        "clock: 2024-05-15T10:37:05.000Z",
        "GET /api/v3/exchangeInfo?symbols=BTCUSDT (costs 10)",
        "markets: 2, 2 of them active",
        "1 item is rejected",
        "Y: base is missing",
        "1 have names that are no symbols, and are skipped: A B/USDT",
        "    last           64000.50\n",
        "    baseVolume     12.50\n",
        "    open           (nothing)\n",
        "GET /api/v3/ticker/24hr?symbol=BTCUSDT (costs 1)",
        "read: last 64000.5, bid 64000, ask 64001, bidVolume null, askVolume null, open null, high 65000",
        "candles 1h: 1, 1 of the 10 asked for",
        "open 1 high 4 low 0.5 close 2.5 volume 9",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // The fake's clock stands still, years ago.
    assert!(text.contains("LOOKS WRONG: more than a day"), "{text}");
    assert!(!text.contains("CANNOT BE READ"), "{text}");
}

#[test]
fn a_list_that_is_refused_for_the_named_markets_is_read_whole() {
    let (code, text) = probe(MEXC, "BTC/USDT,NO/SUCH");
    let begin = text.find("GET /api/v3/exchangeInfo?symbols=BTCUSDT,NOSUCH (").expect("by names");
    let (_, refused) = text[begin..].split_once("CANNOT BE READ: the body: ").expect("a refusal");
    assert!(refused.contains("refused: Invalid symbol. (-1121)"), "{refused}");
    assert!(refused.contains("GET /api/v3/exchangeInfo (costs 10)"), "{refused}");
    assert!(refused.contains("last           64000.50\n"), "{refused}");
    assert_eq!(code, 1, "{text}");
}

#[test]
fn it_shows_what_answers_cost_beside_what_they_tell() {
    let used = std::sync::atomic::AtomicU32::new(100);
    let exchange = FakeExchange::start(move |asked: &Asked| {
        let cost = if asked.path() == "/api/v3/ticker/24hr" { 80 } else { 20 };
        let used = used.fetch_add(cost, std::sync::atomic::Ordering::Relaxed) + cost;
        answer(asked).field("x-mbx-used-weight-1m", &used.to_string())
    });
    let (_, text) = probe_with(&format!("binance={}", exchange.url()), &[]);
    for line in [
        "budget: 6000 in 60000 ms\ncosts: all 80, one 2, candles 2, markets 20, markets.several 20, time 1, \
         several (of 20) 2, several (of 100) 40\n",
        "(costs 1)\n  status 200, 28 bytes",
        "  x-mbx-used-weight-1m: 120: 120 of 6000 are used\n",
        "  x-mbx-used-weight-1m: 140: 140 of 6000 are used, 20 more than before\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn it_tells_what_is_wrong_with_a_dialect() {
    let text = std::fs::read_to_string(MEXC).expect("a dialect of this build");
    let check = |old: &str, new: &str, code: i32, expected: &str| {
        assert!(text.contains(old), "{old}");
        let name = format!("{}.json", old.len() * 100 + new.len());
        let (ended, told) = probe(&file(&name, &text.replace(old, new)), "BTC/USDT");
        assert!(told.contains(expected), "{expected}\n{told}");
        assert_eq!(ended, code, "{told}");
    };
    check(
        "symbols[]",
        "list[]",
        1,
        "CANNOT BE READ: the body: no market where the body should have one",
    );
    check("symbols[]", "symbols.all[]", 1, "there is no `all` in `symbols`, which is an array");
    check("\"open\": [\"1\", ", "\"open\": [", 0, "no market is active");
    let sides =
        "\"bidPrice\": \"bid\",\n      \"bidQty\": \"bidVolume\",\n      \"askPrice\": \"ask\"";
    let swapped = "\"askPrice\": \"bid\", \"bidPrice\": \"ask\"";
    check(sides, swapped, 0, "bid is above ask");
    let ends = "\"highPrice\": \"high\",\n      \"lowPrice\": \"low\"";
    let swapped = "\"highPrice\": \"low\", \"lowPrice\": \"high\"";
    check(ends, swapped, 0, "last is not between low and high");
    check("\"high\", \"low\", \"close\"", "\"low\", \"high\", \"close\"", 0, "check the columns");
    let units = "\"rows\": 500,\n    \"time\": \"ms\"";
    check(units, "\"rows\": 500,\n    \"time\": \"us\"", 0, "none is of the range");
    check("/api/v3/klines", "/api/v3/none", 1, "status 404");
    let (code, told) = probe("mexc", "FOO/BAR");
    assert!(code == 1 && told.contains("is not in the list"), "{told}");
}

#[test]
fn it_asks_for_several_markets_and_for_old_candles() {
    let text = std::fs::read_to_string(MEXC).expect("a dialect of this build");
    let several = r#""several": { "call": { "target": "/both?of={ids}", "items": "[]" },
        "sizes": [{ "most": 5 }] }, "one": {"#;
    let archive = r#""archive": { "call": { "target": "/old/{id}?startTime={from}", "items": "[]" },
        "behind": { "1h": 500 } }, "intervals": {"#;
    let text = text.replacen("\"one\": {", several, 1).replacen("\"intervals\": {", archive, 1);
    let answers = |asked: &Asked| match asked.path() {
        "/both" => Reply::json(format!("[{}]", ticker())),
        "/old/BTCUSDT" => {
            answer(&Asked::of(&asked.target.replace("/old/BTCUSDT", "/api/v3/klines")))
        }
        _ => answer(asked),
    };
    let exchange = FakeExchange::start(answers);
    let source = format!("{}={}", file("both.json", &text), exchange.url());
    let (code, text) = probe_with(&source, &[]);
    assert_eq!(code, 0, "{text}");
    for line in [
        "GET /both?of=BTCUSDT,X (costs 1)",
        "LOOKS WRONG: 1 of 2 tickers came: check the target and `between`",
        // 510 hours before the fake's clock.
        "GET /old/BTCUSDT?startTime=1713931200000 (costs 1)",
        "  from 2024-04-24T04:00:00.000Z to 2024-04-24T04:00:00.000Z\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(text.matches("/old/").count(), 1, "{text}");
}

#[test]
fn what_looks_wrong_fails_a_strict_probe() {
    let exchange = FakeExchange::start(answer);
    let source = format!("mexc={}", exchange.url());
    let (code, text) = probe_with(&source, &["--symbols", "BTC/USDT", "--strict"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("LOOKS WRONG") && !text.contains("CANNOT BE READ"), "{text}");
}

#[test]
fn recorded_bodies_are_read_without_an_exchange() {
    let bodies = [
        file("tickers.json", &format!("[{}]", ticker())),
        file("1m.json", &format!(r#"[[{},"1","4","0.5","2.50","9",0,"1"]]"#, NOW - 65_000)),
    ];
    let flags = [format!("tickers={}", bodies[0]), format!("1m={}", bodies[1])];
    let flags = ["--strict", "--body", &flags[0], "--body", &flags[1]];
    let (code, text) = probe_with("mexc=http://127.0.0.1:1", &flags);
    assert_eq!(code, 0, "{text}");
    for line in ["read: last 64000.5, bid 64000", "candles 1m: 1,", "close 2.5 volume 9"] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // A unit that is wrong tells its year; what an exchange sends moves no cursor.
    let odd = ticker()
        .replace("64000.50", "\\u001b[2J\\n  LOOKS")
        .replace(&NOW.to_string(), "1715769425");
    let odd =
        format!("tickers={}", file("odd.json", &format!("[{odd},{}]", odd.replace("BTC", "ETH"))));
    let (code, text) = probe_with("mexc=http://127.0.0.1:1", &["--strict", "--body", &odd]);
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains("\n  LOOKS\n"), "{text}");
    let old = ticker().replace(&NOW.to_string(), "1715769425");
    let old = format!("tickers={}", file("old.json", &format!("[{old}]")));
    let (code, text) = probe_with("mexc=http://127.0.0.1:1", &["--strict", "--body", &old]);
    assert!(code == 1 && text.contains("timestamp 1970-01-20T"), "{text}");
    // What nothing reads is told: the exchange has no such call, and one body is enough for a call.
    for unread in [format!("stats={}", bodies[0]), flags[2].to_owned()] {
        let flags = [&flags[1..], &["--body", &unread]].concat();
        let (code, text) = probe_with("mexc=http://127.0.0.1:1", &flags);
        let what = unread.split_once('=').expect("a call").0;
        let told = format!("CANNOT BE READ: --body {what}: nothing reads it");
        assert!(code == 1 && text.contains(&told), "{text}");
    }
    let (code, text) = probe_with("mexc", &["--body", "trades=/dev/null"]);
    assert!(code == 2 && text.contains("expected CALL=FILE"), "{text}");
}

#[test]
fn figures_that_contradict_each_other_fail_a_strict_probe() {
    let sound = r#"{"symbol":"BTCUSDT","priceChange":"-640","priceChangePercent":"-1.0","lastPrice":"63360",
        "bidPrice":"63359","bidQty":"2","askPrice":"63361","askQty":"3","openPrice":"64000","highPrice":"64500",
        "lowPrice":"63000","volume":"100","quoteVolume":"6350000","closeTime":1715769425000}"#;
    let check = |old: &str, new: &str, expected: &str| {
        assert!(sound.contains(old), "{old}");
        let odd = sound.replace(old, new);
        let body = file("figures.json", &format!("[{odd},{}]", odd.replace("BTC", "ETH")));
        let flags = ["--strict", "--body", &format!("tickers={body}")];
        let (code, text) = probe_with("binance=http://127.0.0.1:1", &flags);
        assert_eq!(code, i32::from(!expected.is_empty()), "{old}: {text}");
        assert!(text.contains(expected), "{expected}\n{text}");
    };
    check("-1.0", "-1.0", "");
    check("-1.0", "-0.01", "percentage is not that of change");
    check("\"63359\"", "\"2\"", "bid or ask is far from last");
    check(
        "\"quoteVolume\":\"6350000\"",
        "\"quoteVolume\":\"0.001\"",
        "quoteVolume is not baseVolume",
    );
    check("\"openPrice\"", "\"opened\"", "no item has the member of `open`");
}

#[test]
fn a_fifo_hangs_no_check() {
    let path = format!("{}/probe-fifo.json", env!("CARGO_TARGET_TMPDIR"));
    let _ = std::fs::remove_file(&path);
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo is there").success());
    for flag in ["--source", "--config"] {
        let (code, _, told) = Marketd::run(&[flag, &path, "--check"]).parts();
        assert_eq!(code, 2, "{flag}: {told}");
        assert!(told.contains("a FIFO"), "{flag}: {told}");
    }
}
