//! Dialects of files: each fault with its line and member, and no text that is a crash.

use super::testing::Notes;
use crate::config::ConfigFault;
use crate::exchange::{Call, Dialect, Reading};
use crate::interval::Stored;
use crate::rng::Rng;
use crate::time::UnixMs;

const SAMPLE: &str = include_str!("sample.json");

/// The faults of the sample after this is put in the place of that.
#[track_caller]
fn faults(instead: &[(&str, &str)]) -> Vec<String> {
    let mut text = SAMPLE.to_owned();
    for (old, new) in instead {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    let read = Dialect::read("sample.json", &text);
    let faults = read.err().unwrap_or_default();
    let shown = |fault: &ConfigFault| fault.to_string().replacen("sample.json:", "", 1);
    faults.iter().map(shown).collect()
}

/// What is put in the place of what (`+`: behind it), and the fault that this is: `...` stands for what is before
/// it, `ok` for none.
const FAULTS: &str = r#"
sample | sample | ok
"budget": { "units": 10, "perMs": 1000, "left": "x-left" }, |  | 1: budget: missing, expected an object
"units": 10, | "units": "10", | 4: budget.units: expected a whole number from 1 to 1000000000, found "10"
"units": 10, | "units": 0, | 4: budget.units: expected a whole number from 1 to 1000000000, found 0
"ratio": "ratio" | "ratio": "percent" | 24: tickers.fields.ratio: expected one of id, last, bid, ask, bidVolume, askVolume, open, high, low, change, percentage, ratio, baseVolume, quoteVolume, time, found "percent"
result.list{} | result..list{} | 13: tickers.all.call.items: expected a path like "data.list" or ".", found "result..list"
/day | /{day} | 16: tickers.stats.call.target: unknown placeholder {day}: expected one of {id}, {ids}, {interval}, {limit}, {slots}, {back}, {from}, {to}, {page}, {offset}, {cursor}
"/tickers", "cost": 3 | "/tickers", "cost": 11 | 13: tickers.all.call.cost: expected a cost from 1 to that of the budget (10), found 11
"/tickers", "cost": 3 | "/tickers", "limit": { "calls": 1, "perMs": 2000 } | 13: tickers.all.call.limit: expected a cost from 1 to that of the budget (10), found 20
"/tickers" | "/tickers?{id}" | 13: tickers.all.call.target: this call has no value for the placeholder {id}
/products/{id}/ticker | /products/{id}/{interval}/ticker | 14: tickers.one.call.target: this call has no value for the placeholder {interval}
/candles/{id}? | /candles? | 30: candles.call.target: expected the placeholder {id}
https://sample.invalid | sample.invalid | 3: baseUrl: expected http://HOST or https://HOST, found "sample.invalid"
"rows": 300 | "rows": 1000000 | 42: candles.rows: expected a whole number from 1 to 10000, or such numbers by interval, found 1000000
"closed": "1", |  | 28: candles.closed: missing: expected the value of `closed` for yes
"time": "iso", |  | 12: tickers.time: missing: expected the unit of the times
"c": ["last"], |  | 20: tickers.fields: expected a member that is `last`
"left": "x-left" | "left": "X-Left" | 4: budget.left: expected the name of a header field in lower case, found "X-Left"
"intervals": { "1m": "60" | "intervals": { "1m": "6 0" | 41: candles.intervals.1m: expected 1 to 32 of A-Z, a-z, 0-9, -, _, . and /, found "6 0"
# A clock and the names of markets are said in one way.
, "unit": "s" |  | ...time.unit: expected either `unit` or `"date": true`
"unit": "s" | +, "date": true | ...time.unit: expected either `unit` or `"date": true`
"unit": "s" | "date": true | ok
"items": "result{}" }, | + "name": { "a": "id" }, | ...markets.name: expected fields like "id base", of members (`{}`)
"items": "result{}" }, | + "name": "base", | ...markets.fields: expected a member that is `id`
"items": "result{}" }, | + "pair": ["{base}{quote:0}"], | ...found "{base}{quote:0}"
# What a file says in vain.
"c": ["last"], | "c": ["last", "bid"], | ...tickers.fields: two members are `bid`
null, "volume" | "low", "volume" | ...candles.fields: two members are `low`
"high": "high" } | "high": "high", "l": "last" } | ...tickers.stats.fields: `stats` brings no `last`: expected open, high, low, baseVolume and quoteVolume alone
"items": "result{}" }, | + "kinds": ["spot"], | ...markets.kinds: nothing reads it: no member is `kind`
"alt": "candleId" | "alt": "kind" | ...expected the kinds that are taken
"trading": "status", |  | ...markets.open: nothing reads it: no member is `status`
"open": ["true"], |  | ...expected those of a market that trades
"fee": "taker maker", |  | ...nothing reads it: no member is `taker` or `maker`
, "volume", "closed"] | , "volume"] | ...nothing reads it: no column is `closed`
"XBT": "BTC" | "XBT": "b/c" | ...expected an asset of 1 to 20 A-Z and 0-9, found "b/c"
"XBT": "BTC" | "XBT": "XBT" | ...
"XBT": "BTC" | "": "BTC" | ...expected an asset like XBT, found ""
# What takes every market or every error, and none.
"skipped": [".d"] | "skipped": [""] | ...markets.skipped[0]: expected the end of an id, or its beginning with a * behind it, found ""
"skipped": [".d"] | "skipped": [".d", "*"] | ...markets.skipped[1]: expected the end of an id, or its beginning with a * behind it, found "*"
"skipped": [".d"] | "skipped": [".d"], "id": "t{base}" | ...markets.id: expected a form like "t{id}", found "t{base}"
"skipped": [".d"] | "skipped": ["*.d"] | ...markets.skipped[0]: expected the end of an id, or its beginning with a * behind it, found "*.d"
"rateLimited": ["E7"] | "rateLimited": ["*"] | ...errors.rateLimited[0]: expected a code, or words between two *, found "*"
["E:Unknown market"] | ["**"] | ...errors.unknownMarket[0]: expected a code, or words between two *, found "**"
"fees": "percent", | + "pair": [], | ...markets.pair: expected one form at least
"$by": "kind" | "$by": "kind", "$by": "kind" | ...markets.fields.rules."$by": given twice
# An archive has other candles than the other endpoint, of the same intervals.
{ "1m": 100, "1h": 50, "1d": 25 } | {} | ...candles.archive.behind: expected a number for one of `candles.intervals` at least
"1h": "3600", |  | ...candles.archive.behind.1h: nothing reads it: `candles.intervals` has no such interval
&from={from}&to={to}&n={slots}&{from iso}--{to iso} | &n={limit} | ...candles.archive.call.target: expected {from}, {to} or {back}: an archive is asked for a range
# The name in calls for candles is never split.
"fees": "percent", | + "candleId": "{base}{quote}", | ok
"fees": "percent", | + "candleId": "{base:3}-{quote}", | ...markets.candleId: expected a form like "{base}{quote}", found "{base:3}-{quote}"
# A key has a field of its own.
"left": "x-left" }, | + "key": { "header": "authorization", "prefix": "Bearer " }, | ok
"left": "x-left" }, | + "key": {}, | 4: key.header: missing, expected the name of a header field in lower case
"left": "x-left" }, | + "key": { "header": "X-Key" }, | 4: key.header: expected the name of a header field in lower case, found "X-Key"
"left": "x-left" }, | + "key": { "header": "a: b" }, | 4: key.header: expected the name of a header field in lower case, found "a: b"
"left": "x-left" }, | + "key": { "header": "host" }, | 4: key.header: every request has this field already
"left": "x-left" }, | + "key": { "header": "x", "prefix": "a\r\nb" }, | 4: key.prefix: expected printable characters of ASCII, found "a\r\nb"
# Constants are numbers or assets that no member is.
"fees": "percent", | + "constants": { "quote": "USD", "amountMax": "1e3" }, | ok
"time": "iso", | + "constants": { "baseVolume": "0" }, | ok
"rows": 300, | + "constants": { "volume": "0" }, | 42: candles.constants.volume: some member is this field already
"rows": 300, | + "constants": { "time": "0" }, | 42: candles.constants.time: some member is this field already
"rows": 300, | + "constants": { "size": "0" }, | 42: candles.constants.size: expected time or open or high or low or close or volume or closed, found "size"
"fees": "percent", | + "quote": "A", "constants": { "quote": "B" }, | 53: markets.constants.quote: given twice
# Only lists and tickers of all markets have pages.
"/markets" | +, "pages": { "target": "/m?p={page}" } | ok
"/markets" | +, "pages": { "target": "/m?p={cursor}", "cursor": "next", "most": 200 } | ok
"/markets" | +, "pages": { "target": "/m" } | 49: markets.call.pages.target: expected one placeholder: {cursor} if there is a `cursor`, else {page} or {offset}
"/markets" | +, "pages": { "target": "/m?p={cursor}" } | ...expected one placeholder: {cursor} if there is a `cursor`, else {page} or {offset}
"/markets" | +, "pages": { "target": "/m?p={id}" } | ...expected one placeholder: {cursor} if there is a `cursor`, else {page} or {offset}
"/markets" | +, "pages": { "target": "/m?p={page}&o={offset}" } | ...expected one placeholder: {cursor} if there is a `cursor`, else {page} or {offset}
"/markets" | +, "pages": { "target": "/m?{limit}" } | ...expected one placeholder: {cursor} if there is a `cursor`, else {page} or {offset}
"/markets" | +, "pages": { "target": "/m?p={page}", "cursor": "next" } | ...expected one placeholder: {cursor} if there is a `cursor`, else {page} or {offset}
"/markets" | +, "pages": { "target": "/m?p={cursor}", "cursor": "next", "size": 9 } | 49: markets.call.pages.size: nothing reads it: the last page has no cursor
"/markets" | +, "pages": { "target": "/m?p={page}", "most": 201 } | ...pages.most: expected a whole number from 2 to 200, found 201
"/products/{id}/ticker" | +, "pages": { "target": "/m?p={page}" } | 14: tickers.one.call.pages: only the market list and the tickers of all markets have pages
"/markets" | "/markets/{page}" | 49: markets.call.target: this call has no value for the placeholder {page}
# Only members of tickers are named after assets.
"ratio": "ratio" | "x": { "{base}": "baseVolume" } | ok
"ratio": "ratio" | "x": { "{bose}": "baseVolume" } | 24: tickers.fields.x."{bose}": expected {base} or {quote}
"alt": "candleId" | "{base}": "candleId" | 54: markets.fields: only members of tickers are named after assets
# Several markets are asked for in sizes of known costs.
"tickers": { | + "several": { "call": { "target": "/t?m={ids}", "items": "r{}" }, "between": "%2C", "sizes": [{ "most": 5 }, { "most": 9, "cost": 2 }] }, | ok
"tickers": { | + "several": { "call": { "target": "/t?m={id}", "items": "r{}" }, "sizes": [{ "most": 5 }] }, | ...target: this call has no value for the placeholder {id}
"tickers": { | + "several": { "call": { "target": "/t?m={ids}", "items": "r{}" }, "sizes": [{ "most": 5 }, { "most": 5 }] }, | ...sizes: expected the fewest markets first
"tickers": { | + "several": { "call": { "target": "/t?m={ids}", "items": "r{}" }, "sizes": [{ "most": 9, "cost": 11 }] }, | ...sizes: expected costs from 1 to that of the budget (10)
"tickers": { | + "several": { "call": { "target": "/t?m={ids}", "items": "r{}" }, "between": "\u001b", "sizes": [{ "most": 5 }] }, | ...expected the characters of a path and a query, found '\u{1b}'
"tickers": { | + "several": { "call": { "target": "/t?m={ids}", "items": "r{}" } }, | ...expected the sizes of `several`, and of no other call
# A list of some markets needs their ids.
"markets": { | + "several": { "call": { "target": "/p?m={ids}", "items": "r[]" }, "ids": "{quote}-{base}", "most": 9 }, | ok
"markets": { | + "several": { "call": { "target": "/p?m={ids}", "items": "r" }, "ids": "{quote}-{base}", "most": 1 }, | ok
"markets": { | + "several": { "call": { "target": "/p?m=all", "items": "r[]" }, "ids": "{quote}-{base}", "most": 9 }, | ...several.call.target: expected the placeholder {ids}
"markets": { | + "several": { "call": { "target": "/p?m={ids}", "items": "r" }, "ids": "{quote}-{base}", "most": 9 }, | ...several.call.items: expected elements (`[]`) or members (`{}`)
"markets": { | + "several": { "call": { "target": "/p?m={ids}", "items": "r[]" }, "ids": "{quote}", "most": 9 }, | ...ids: expected a form like "{base}{quote}", found "{quote}"
"markets": { | + "several": { "call": { "target": "/p?m={ids}", "items": "r[]" }, "ids": "{quote}-{base}{base}{base}", "most": 9 }, | ...found "{quote}-{base}{base}{base}"
"#;

#[test]
fn a_fault_names_its_line_and_member() {
    for line in FAULTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts: Vec<&str> = line.splitn(3, " | ").collect();
        let [old, new, expected] = parts[..] else { panic!("{line}") };
        let behind = new.strip_prefix('+').map(|more| [old, more].concat());
        let found = faults(&[(old, behind.as_deref().unwrap_or(new))]);
        if expected == "ok" {
            assert_eq!(found, [""; 0], "{line}");
            continue;
        }
        let [fault] = &found[..] else { panic!("{line}: {found:?}") };
        let is_it =
            expected.strip_prefix("...").map_or(fault == expected, |end| fault.ends_with(end));
        assert!(is_it, "{line}: {fault}");
    }
}

#[test]
fn a_fault_may_have_others_of_its_kind() {
    let pair = (
        "\"items\": \"result{}\" },",
        "\"items\": \"result{}\" }, \"pair\": [\"{base}-{quote}\"],",
    );
    let found = faults(&[pair, ("\"pair\": \"pair\",", "")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("markets.pair: nothing reads it: no member is `pair`"), "{found:?}");
    let codes = faults(&[("\"code\": \"error\",", "")]);
    assert_eq!(codes.len(), 4, "{codes:?}");
    let much = "\"fees\": \"percent\", \"constants\": { \"taker\": \"much\" },";
    let found = faults(&[("\"fees\": \"percent\",", much)]);
    assert!(found[0].starts_with("53: markets.constants.taker: expected a number or"), "{found:?}");
}

#[test]
fn every_fault_of_a_file_is_named() {
    let found = faults(&[
        ("\"name\": \"sample\"", "\"name\": \"Sample!\""),
        ("\"perMs\": 1000", "\"per\": 1000"),
        ("result.list{}", "result..list{}"),
        ("\"c\": [\"last\"],", ""),
        ("\"time\", \"low\", \"high\"", "null"),
        ("\"1Dutc\" }", "\"\" }"),
        ("\"unit\": \"s\"", "\"unit\": 1"),
    ]);
    let expected = [
        "2: name: expected 1 to 32 of a-z, 0-9 and -, found \"Sample!\"",
        "4: budget.per: unknown key, expected one of units, perMs, used, left",
        "4: budget.perMs: missing, expected a whole number from 1 to 86400000",
        "13: tickers.all.call.items: expected a path like \"data.list\" or \".\", found \"result..list\"",
        "20: tickers.fields: expected a member that is `last`",
        "41: candles.intervals.1d: expected 1 to 32 of A-Z, a-z, 0-9, -, _, . and /, found \"\"",
        "46: candles.fields: expected members or columns that are time, high, low",
        "69: time.unit: expected one of s, ms, us, ns, iso, isoSeconds or null, found 1",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_target_cannot_leave_its_host_or_its_line() {
    let parts = "tickers|//evil.invalid/|http://evil.invalid/|@evil.invalid|/a b|/a\\r\\nX: y|/\\u00e9|/#a|/{id|/{}\
        |/{{id}}|/{id{id}}|/{from{to}}|/{id }|/{from x}|/{from*}|/}|";
    for target in parts.split('|') {
        let found = faults(&[("\"/markets\"", &format!("\"{target}\""))]);
        assert_eq!(found.len(), 1, "{target}: {found:?}");
        assert!(found[0].contains(" markets.call.target: "), "{target}: {found:?}");
    }
    let long = format!("\"/{}\"", "a".repeat(1000));
    assert_eq!(faults(&[("\"/markets\"", &long)]).len(), 1);
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    let huge = format!("{SAMPLE}{}", " ".repeat(300_000));
    let faults_of =
        |text: &str| Dialect::read("sample.json", text).err().expect("a fault")[0].to_string();
    assert_eq!(faults_of(&huge), "sample.json: larger than 262144 bytes");
    let table = |entry: &dyn Fn(usize) -> String, count: usize| {
        let entries: Vec<String> = (0..count).map(entry).collect();
        SAMPLE.replacen("\"ratio\": \"ratio\"", &entries.join(","), 1)
    };
    let many = table(&|at| format!("\"a{at}\": \"high\""), 200);
    assert!(faults_of(&many).contains("at most 8 tables in each other, of 100 entries each"));
    let deep = |depth: usize| "{\"a\":".repeat(depth) + "\"high\"" + &"}".repeat(depth);
    let nested = |depth: usize| table(&|_| format!("\"x\":{}", deep(depth)), 1);
    assert!(Dialect::read("sample.json", &nested(5)).is_ok());
    assert!(faults_of(&nested(20)).contains("at most 8 tables in each other"));
    assert!(faults_of(&nested(5000)).contains("at most 8 tables in each other"));
    for text in ["", "{}", &"[".repeat(100_000)] {
        assert!(Dialect::read("sample.json", text).is_err(), "{text}");
    }
    for text in ["7", "null", "[]"] {
        let faults = Dialect::read("sample.json", text).err().expect("a fault");
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
    }
    let twice = table(&|_| "\"z\": \"high\"".to_owned(), 2);
    assert!(faults_of(&twice).contains("tickers.fields.z: given twice"));
}

/// Every call with every body; nothing may panic, and every target stays a target.
fn exercise(dialect: &'static Dialect) {
    let candles = Call::Candles {
        id: "A B\r\n",
        interval: Stored::D1,
        from: UnixMs(i64::MIN / 2),
        to: UnixMs(i64::MAX / 2),
        now: UnixMs(i64::MAX / 2),
    };
    let all = dialect.tickers_at_once().then_some(Call::Tickers);
    let one = (!dialect.tickers_at_once()).then(|| dialect.tickers_of(&["A B"]));
    let stats = dialect.has_stats().then_some(Call::Stats { id: "A B" });
    let calls = [Call::Markets { named: &[] }, Call::Time, candles];
    for call in calls.into_iter().chain(all).chain(one).chain(stats) {
        let target = dialect.target(&call, None);
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
        assert!(target.starts_with('/') && target.bytes().all(is_plain), "{target}");
        assert!((1..=dialect.budget().units).contains(&dialect.cost(&call)));
        for body in ["[]", "{}", "[[1]]", "{\"result\":{\"A\":[[1,2,3,4,5,6,7,8]]}}", "[7,null]"] {
            let mut reading = Reading::new(dialect, &call, 100);
            let _ = reading.feed(body.as_bytes(), &mut Notes::default());
            let _ = reading.finish(200);
        }
    }
}

#[test]
fn no_file_crashes_the_reader() {
    for end in 0..SAMPLE.len() - 2 {
        let faults = Dialect::read("sample.json", &SAMPLE[..end]).err().expect("it is cut");
        assert_eq!(faults.len(), 1, "{end}");
    }
    let values = r#"null 0 -1 1e99 "" "{id}" "*" [] {} [[[]]] true 99999999999999999999 "[0]" {"$by":"a"} "last" 4294967295"#;
    let values: Vec<&str> = values.split(' ').collect();
    let letters = br#"{}[]:,"\ 0-.$*e"#;
    let mut rng = Rng::new(11);
    let mut random = |below: usize| rng.below(below as u64) as usize;
    let (mut good, mut bad) = (0, 0);
    for round in 0..20_000 {
        let mut text = SAMPLE.as_bytes().to_vec();
        match round % 2 {
            // Another value of one member.
            0 => {
                let colons: Vec<usize> = (0..text.len()).filter(|at| text[*at] == b':').collect();
                let begin = colons[random(colons.len())] + 1;
                let ends = |at: &usize| b",}".contains(&text[*at]);
                let end = (begin..text.len()).find(ends).unwrap_or(text.len());
                text.splice(begin..end, values[random(values.len())].bytes());
            }
            _ => {
                let at = random(text.len());
                text[at] = letters[random(letters.len())];
            }
        }
        let Ok(text) = String::from_utf8(text) else {
            continue;
        };
        match Dialect::read("sample.json", &text) {
            Ok(dialect) => {
                good += 1;
                exercise(Box::leak(Box::new(dialect)));
            }
            Err(faults) => {
                bad += 1;
                assert!(!faults.is_empty());
                for fault in faults {
                    assert!((1..=80).contains(&fault.line.unwrap_or_default()), "{fault}: {text}");
                    assert!(!fault.message.is_empty() && fault.message.len() < 600, "{fault}");
                }
            }
        }
    }
    assert!(good > 500 && bad > 5000, "{good} {bad}");
}
