//! Faults of the file: each names its place, and what was expected there.

use super::*;
use crate::rng::Rng;

/// Files, and their faults behind `>`.
const FILES: &str = r#"
{}
---
{ "staleAfterMs": 1 }
> m.json:1: staleAfterMs: unknown key: it is a key of sources[]
---
{ "limits": { "listen": ":1" } }
> m.json:1: limits.listen: unknown key: it is a key of the file itself, demo
---
{ "keep": 1 }
> m.json:1: keep: unknown key: it is a key of history.1m, history.1h, history.1d
---
{ "categories": [{ "id": "a", "symbol": [] }] }
> m.json:1: categories[0].symbol: unknown key, did you mean "symbols"?
---
{ "ecosystem": { "markets": 5 } }
> m.json:1: ecosystem.markets: expected a list of at most 1000000 objects or null, found 5
---
[]
> m.json: expected an object, found a list
---

> m.json:1:0: not JSON: EOF while parsing a value
---
{
 "listen": ":1"
 "data": "x"
}
> m.json:3:2: not JSON: expected `,` or `}`
---
{ "lisetn": 1, "colour": 2, "base_path": 3,
 "\u001b[31m": 4 }
> m.json:1: lisetn: unknown key, did you mean "listen"?
> m.json:1: colour: unknown key
> m.json:1: base_path: unknown key, did you mean "basePath"?
> m.json:2: "\u001b[31m": unknown key
---
{ "listen": ":1",

"listen": ":2" }
> m.json:3: listen: given twice, first on line 1
---
{ "listen": 1,
"listen": ":2" }
> m.json:1: listen: expected ADDR:PORT or unix:PATH, found 1
> m.json:2: listen: given twice, first on line 1
---
{ "listen": 8080,
"ecosystemListen": "example.com:80",
"basePath": "api",
"data": "",
"demo": [],
"history": null }
> m.json:1: listen: expected ADDR:PORT or unix:PATH, found 8080
> m.json:2: ecosystemListen: expected ADDR:PORT or unix:PATH, found "example.com:80" (localhost is the only name that is accepted)
> m.json:3: basePath: expected an empty text or a path like "/x" (letters, digits, '-', '.', '_' and '~' between the slashes), found "api"
> m.json:4: data: expected a file name or ":memory:", found ""
> m.json:5: demo: expected an object, found a list
> m.json:6: history: expected an object, found null
---
{ "listen": ":1", "ecosystemListen": ":1" }
> m.json:1: ecosystemListen: 0.0.0.0:1 is already the address of listen, which serves everything without ecosystemListen
---
{ "listen": ":0", "ecosystemListen": ":0" }
---
{ "history": { "1m": { "keep": 0, "backfill": -1 },
 "5m": {}, "1h": { "keep": 1000000001 } } }
> m.json:1: history.1m.keep: expected a whole number of candles from 1 to 1000000000, found 0
> m.json:1: history.1m.backfill: expected a whole number of candles from 0 to 1000000000, found -1
> m.json:2: history.5m: unknown key
> m.json:2: history.1h.keep: expected a whole number of candles from 1 to 1000000000, found 1000000001
---
{ "demo": { "seed": 1.5,
"at": 253402300800000 } }
> m.json:1: demo.seed: expected a whole number from 0 to 18446744073709551615, found 1.5
> m.json:2: demo.at: expected 2026-11-22, 2026-11-22T09:00:00Z, or seconds or milliseconds from 1970 to 9999 or null, found 253402300800000
---
{ "sources": [] }
---
{ "sources": {} }
> m.json:1: sources: expected a list of at most 64 objects, found an object
---
{ "sources": [5] }
> m.json:1: sources[0]: expected an object, found 5
---
{ "sources": [
{}] }
> m.json:2: sources[0].dialect: missing, expected the name of an exchange
---
{ "sources": [{ "dialect": 5,
"pollMs": "fast",
"staleAfterMs": 0, "timeoutMs": 1e3 }] }
> m.json:1: sources[0].dialect: expected the name of an exchange, found 5
> m.json:2: sources[0].pollMs: expected a whole number of milliseconds from 100 to 3600000, or "auto", found "fast"
> m.json:3: sources[0].staleAfterMs: expected a whole number of milliseconds from 1 to 86400000, found 0
> m.json:3: sources[0].timeoutMs: expected a whole number of milliseconds from 100 to 600000, found 1e3
---
{ "sources": [{ "dialect": "binanse" }] }
> m.json:1: sources[0].dialect: expected one of binance, okx, coinbase, kraken, demo, found "binanse", did you mean "binance"?
---
{ "sources": [{ "dialect": "okx" }, { "dialect": "okx" },
{ "dialect": "binance", "id": "okx" }, { "dialect": "okx", "id": "Okx 2" }] }
> m.json:1: sources[1].id: "okx" is taken by sources[0]
> m.json:2: sources[3].id: expected 1 to 32 of a-z, 0-9 and -, found "Okx 2"
> m.json:2: sources[2].id: "okx" is taken by sources[0]
---
{ "sources": [{ "dialect": "okx", "symbols": ["BTC/USDT",
"btc-usdt", "ETHUSDT", 7],
"quoteAssets": ["usdt", "*"] }] }
> m.json:2: sources[0].symbols[1]: BTC/USDT is given twice, first as [0]
> m.json:2: sources[0].symbols[2]: expected BASE/QUOTE, found "ETHUSDT": the joined form does not say where the base ends
> m.json:2: sources[0].symbols[3]: expected BASE/QUOTE, found 7
> m.json:3: sources[0].quoteAssets: "*" means all assets: list nothing beside it
---
{ "sources": [{ "dialect": "okx", "symbols": "BTC/USDT", "quoteAssets": null, "url": "www.okx.com" }] }
> m.json:1: sources[0].symbols: expected a list, each BASE/QUOTE, found "BTC/USDT"
> m.json:1: sources[0].quoteAssets: expected a list, each an asset like "USDT" or "*", found null
> m.json:1: sources[0].url: expected http://HOST or https://HOST, found "www.okx.com"
---
{ "sources": [{ "dialect": "demo", "id": "x", "url": "http://a" }] }
> m.json:1: sources[0].url: the demo exchange takes no url; demo.listen sets its address
---
{ "sources": [{ "dialect": "demo" }, { "dialect": "binance", "id": "demo" }] }
> m.json:1: sources[1].id: "demo" is taken by sources[0]
---
{ "categories": [ { "id": "a" }, {},
{ "id": "a", "name": "", "description": 5, "symbols": [null] } ] }
> m.json:1: categories[1].id: missing, expected 1 to 64 of a-z, 0-9 and -
> m.json:2: categories[2].name: expected a text of 1 to 1024 bytes without control characters, found ""
> m.json:2: categories[2].description: expected a text or null, found 5
> m.json:2: categories[2].symbols[0]: expected BASE/QUOTE, found null
> m.json:2: categories[2].id: "a" is taken by categories[0]
---
{ "ecosystem": { "markets": [ { "symbol": "BTC/USDT" }, { "symbol": "btc-usdt" },
{ "symbol": "ETH/USDT", "id": "BTC-USDT", "isHot": 1, "status": "on" }, {} ] } }
> m.json:1: ecosystem.markets[1].symbol: "BTC/USDT" is taken by ecosystem.markets[0]
> m.json:2: ecosystem.markets[2].isHot: expected true or false, found 1
> m.json:2: ecosystem.markets[2].status: expected true or false or null, found "on"
> m.json:2: ecosystem.markets[3].symbol: missing, expected BASE/QUOTE
> m.json:2: ecosystem.markets[2].id: "BTC-USDT" is taken by ecosystem.markets[0]
---
{"ecosystem": {"markets": [{"symbol": "A/B", "metadata": { "taker": 1, "maker": -0.0001, "precision": { "amount": 65, "price": 2.5 },
"limits": { "amount": { "min": 2, "max": "1.5" }, "cost": { "min": -1, "max": "x" } } }}]}}
> m.json:1: ecosystem.markets[0].metadata.taker: expected a decimal fraction between -1 and 1 or null, found 1
> m.json:1: ecosystem.markets[0].metadata.precision.amount: expected a whole number from 0 to 64 or null, found 65
> m.json:1: ecosystem.markets[0].metadata.precision.price: expected a whole number from 0 to 64 or null, found 2.5
> m.json:2: ecosystem.markets[0].metadata.limits.cost.min: expected a decimal of 0 or more or null, found -1
> m.json:2: ecosystem.markets[0].metadata.limits.cost.max: expected a decimal of 0 or more or null, found "x"
> m.json:2: ecosystem.markets[0].metadata.limits.amount.max: expected at least min (2), found 1.5
---
{ "limits": { "headTimeout": 5, "headBytes": 100000,
"connectionsPerSource": 0, "symbols": 1 },
"sources": [{ "dialect": "okx", "symbols": ["A/B", "C/D"] }] }
> m.json:1: limits.headTimeout: unknown key, did you mean "headTimeoutMs"?
> m.json:1: limits.headBytes: expected a whole number of bytes from 256 to 65536 (a head is held whole, by every connection that is slow to send it), found 100000
> m.json:2: limits.connectionsPerSource: expected a whole number from 1 to 16 (exchanges count connections), found 0
> m.json:2: limits.symbols: expected at least the 2 symbols that the sources list, found 1
---
{ "limits": { "requestLineBytes": 20000, "upstreamBodyBytes": 1024 } }
> m.json:1: limits.requestLineBytes: expected at most headBytes (16384), found 20000
> m.json:1: limits.upstreamItemBytes: expected at most upstreamBodyBytes (1024), found 65536
---
{ "limits": { "outputHighWaterBytes": 2000000, "outputTotalBytes": 1048576 },
"trustedProxies": ["10.0.0.0/8", "10.0.0.0/33", 7, "::1", "::1/128", "h"] }
> m.json:1: limits.outputHighWaterBytes: expected at most outputTotalBytes (1048576), found 2000000
> m.json:2: trustedProxies[1]: expected an address or a network like "10.0.0.0/8", found "10.0.0.0/33"
> m.json:2: trustedProxies[2]: expected an address or a network like "10.0.0.0/8", found 7
> m.json:2: trustedProxies[4]: ::1 is given twice, first as [3]
> m.json:2: trustedProxies[5]: expected an address or a network like "10.0.0.0/8", found "h"
"#;

#[test]
fn every_fault_of_a_file_names_its_place_and_what_was_expected() {
    for (text, expected) in blocks(FILES) {
        assert_eq!(faults(&text), expected, "{text}");
    }
}

#[test]
fn digits_in_a_text_are_good_wherever_a_decimal_is() {
    let metadata = r#"{ "precision": { "amount": "8" }, "taker": "0.001", "limits": { "cost": { "min": "5" } } }"#;
    let markets = format!(r#"[{{ "symbol": "A/B", "metadata": {metadata} }}]"#);
    let text = format!(r#"{{ "ecosystem": {{ "markets": {markets} }} }}"#);
    let (config, _) = from_json("m.json", &text).expect("no fault");
    let rules = &config.ecosystem.markets.expect("it is there")[0].rules;
    let decimals = [&rules.taker, &rules.cost.min].map(|it| it.as_ref().map(ToString::to_string));
    assert_eq!(rules.amount_places, Some(8));
    assert_eq!(decimals, [Some("0.001".into()), Some("5".into())]);
}

#[test]
fn a_control_character_in_a_name_is_a_fault_that_shows_it_escaped() {
    assert_eq!(
        faults(FULL),
        [
            "m.json:10: categories[0].name: expected a text of 1 to 1024 bytes without control characters, found \"C \\\"c\\\"\\n\""
        ]
    );
}

#[test]
fn files_that_are_no_text_or_endless_are_told() {
    let check = |path: &str, expected: &str| {
        assert_eq!(run(&["--config", path], &[]), Err(vec![format!("{path}{expected}")]));
    };
    let path = TestFile::new("latin.json", "");
    std::fs::write(&*path, b"{\n\"listen\": \"\xe4\" }").expect("the directory can be written");
    check(&path, ":2: not UTF-8");
    std::fs::write(&*path, b"\xef\xbb\xbf{ \"x\": 1 }").expect("the directory can be written");
    check(&path, ":1: x: unknown key");
    check("/dev/zero", ": larger than 16777216 bytes");
    check("/", ": cannot be read: Is a directory (os error 21)");
}

#[test]
fn a_file_of_brackets_is_a_fault_and_no_overflow_of_the_stack() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let expected = "m.json: expected an object, found a list";
    assert_eq!(faults(&deep), [expected]);
    let expected = "m.json:1: sources[0]: expected an object, found a list";
    assert_eq!(faults(&format!("{{\"sources\": [{deep}]}}")), [expected]);
    let expected = "m.json:1:200000: not JSON: EOF while parsing a list";
    assert_eq!(faults(&"[".repeat(200_000)), [expected]);
}

/// 4000 files that are nearly good, from one seed.
#[test]
fn a_damaged_file_is_read_to_its_end_and_every_fault_is_one_line() {
    let mut rng = Rng::new(1);
    let mut random = |below: usize| rng.below(below as u64) as usize;
    let pieces = [
        "", "\"", "{", "}", "[", "]", ",", ":", "null", "-1", "1e999", "\\ud800", "\u{9b}",
        "\u{7f}", "x",
    ];
    let good = FULL.replace("\\n", "");
    for round in 0..4000 {
        let mut text = good.clone().into_bytes();
        for _ in 0..=random(3) {
            let from = random(text.len());
            let to = (from + random(12)).min(text.len());
            text.splice(from..to, pieces[random(pieces.len())].bytes());
        }
        for line in faults(&String::from_utf8_lossy(&text)) {
            assert!(!line.contains(char::is_control), "round {round}: {line:?}");
            assert!(line.starts_with("m.json"), "round {round}: {line:?}");
        }
    }
}
