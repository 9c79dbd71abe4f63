//! Charts: every interval, range, limit and form, against candles added up by hand.

use crate::loopback::contract::*;
use crate::loopback::naive::{asked_of, body, open_time};
use crate::loopback::setup::*;
use crate::support::binance::KLINES;
use crate::support::naive::rolled_up;
use crate::support::*;
use serde_json::json;
use std::net::SocketAddr;

/// 2024-05-15 10:37:05: a minute, an hour, a day, a week and a month are forming, and none of
/// them ends during a test.
const NOW: i64 = 1_715_769_425_000;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Three made-up markets at a time that stands still, and a daemon that has patience with them:
/// the first answer is complete.
fn made_up() -> (Binance, Marketd) {
    let exchange = Binance::generated(3, 11);
    exchange.set_time(ServerTime::Fixed(NOW));
    let marketd = start(&patient(config(&[source("fake", &exchange)])));
    (exchange, marketd.with_clock())
}

fn patient(config: serde_json::Value) -> serde_json::Value {
    with(config, "limits", json!({ "chartWaitMs": 60_000 }))
}

fn target(query: &str) -> String {
    format!("/api/ecosystem/chart?symbol=BTC/USDT&{query}")
}

/// A complete chart.
#[track_caller]
fn chart(addr: SocketAddr, query: &str) -> Json {
    let answer = get(addr, &target(query));
    let rows = good(&answer, CHART);
    assert_eq!(answer.header("Chart-Coverage"), Some("complete"), "{query}");
    rows
}

fn opens(rows: &Json) -> Vec<i64> {
    let open = |row: &Json| row[0].integer().expect("an open time");
    rows.items().iter().map(open).collect()
}

#[test]
fn the_first_answer_about_a_market_holds_the_forming_candle() {
    let (_exchange, marketd) = made_up();
    for interval in INTERVALS {
        // Of the longest two, so many are not kept.
        let (more, count) =
            if interval == "1w" || interval == "1M" { ("&limit=5", 5) } else { ("", 500) };
        let answer = get(marketd.addr(), &target(&format!("interval={interval}{more}")));
        let opens = opens(&good(&answer, CHART));
        let newest = open_time(interval, NOW);
        assert_eq!((opens.len(), opens.last()), (count, Some(&newest)), "{interval}");
        let is_whole = count < 500 || opens[0] == newest - 499 * (newest - opens[498]);
        assert!(is_whole, "{interval}: {opens:?}");
        for (field, value) in [
            ("Chart-Last-Closed", &*opens[opens.len() - 2].to_string()),
            ("Chart-Coverage", "complete"),
            ("Chart-Interval", interval),
            ("Chart-Source", "fake"),
            ("Chart-Gaps", "0"),
        ] {
            assert_eq!(answer.header(field), Some(value), "{interval}");
        }
    }
}

#[test]
fn a_range_is_read_from_its_ends_and_cut_by_its_limit() {
    let (_exchange, marketd) = made_up();
    let newest = open_time("1h", NOW);
    let at = |slots: i64| newest - slots * HOUR_MS;
    let check = |query: &str, first: i64, last: i64| {
        let rows = chart(marketd.addr(), query);
        let expected: Vec<i64> = (first..=last).step_by(HOUR_MS as usize).collect();
        assert_eq!(opens(&rows), expected, "{query}");
    };
    // The default is one hour. Neither end: the newest.
    check("limit=1", newest, newest);
    check("", at(499), newest);
    check("limit=2", at(1), newest);
    check("limit=5000", at(4999), newest);
    // Only an end: the newest up to it, itself included.
    check(&format!("to={}&limit=4", at(10)), at(13), at(10));
    check(&format!("to={}&limit=4", at(10) + 1), at(13), at(10));
    check(&format!("to={}&limit=4", at(10) - 1), at(14), at(11));
    check(&format!("to={}", at(10)), at(509), at(10));
    check(&format!("to={}&limit=3", NOW + 1_000_000_000), at(2), newest);
    // Only a begin: the oldest from it.
    check(&format!("from={}&limit=4", at(10)), at(10), at(7));
    check(&format!("from={}&limit=4", at(10) + 1), at(9), at(6));
    check(&format!("from={}", at(600)), at(600), at(101));
    check(&format!("from={}", at(3)), at(3), newest);
    // Both: the range, up to 5000 of it, the oldest kept.
    check(&format!("from={}&to={}", at(10), at(5)), at(10), at(5));
    check(&format!("from={}&to={}&limit=2", at(10), at(5)), at(10), at(9));
    check(&format!("from={0}&to={0}", at(10)), at(10), at(10));
    check(&format!("from={}&to={}", at(1000), at(0)), at(1000), at(0));
    check(&format!("from={}&to={}", at(6000), at(0)), at(6000), at(1001));
    // Between two candles, in the future, before the first.
    for query in [
        format!("from={}&to={}", at(10) + 1, at(9) - 1),
        format!("from={}", newest + HOUR_MS),
        "from=9999999999999".to_string(),
        "from=9999999999999999&to=9999999999999999".to_string(),
        format!("from={}&to={}", NOW + DAY_MS, NOW + 2 * DAY_MS),
        "to=1000000000000".to_string(),
        "from=0&to=0".to_string(),
        "from=0&to=100".to_string(),
    ] {
        let answer = get(marketd.addr(), &target(&query));
        assert_eq!(good(&answer, CHART).items().len(), 0, "{query}");
        assert_eq!(answer.header("Link"), None, "{query}");
    }
}

#[test]
fn seconds_milliseconds_and_the_other_names_mean_the_same() {
    let (_exchange, marketd) = made_up();
    let (from, to) = (open_time("4h", NOW) - 400 * HOUR_MS, open_time("4h", NOW) - HOUR_MS);
    let plain = chart(marketd.addr(), &format!("interval=4h&from={from}&to={to}"));
    assert!(plain.items().len() > 90);
    let (from_s, to_s) = (from / 1000, to / 1000);
    for query in [
        format!("interval=4h&from={from_s}&to={to_s}"),
        format!("interval=4h&from={from}&to={to_s}"),
        format!("interval=4h&startTime={from}&endTime={to}"),
        format!("interval=4h&startTime={from_s}&to={to}"),
        format!("resolution=240&from={from}&endTime={to_s}"),
        format!("to={to}&from={from}&interval=4h&limit=5000&fill=none&decimals=number&source=fake"),
    ] {
        assert_eq!(chart(marketd.addr(), &query), plain, "{query}");
    }
    // The names that TradingView has for what is served.
    for (resolution, interval) in [
        ("1", "1m"),
        ("3", "3m"),
        ("5", "5m"),
        ("15", "15m"),
        ("30", "30m"),
        ("60", "1h"),
        ("120", "2h"),
        ("240", "4h"),
        ("360", "6h"),
        ("480", "8h"),
        ("720", "12h"),
        ("D", "1d"),
        ("1D", "1d"),
        ("3D", "3d"),
        ("W", "1w"),
        ("1W", "1w"),
        ("M", "1M"),
        ("1M", "1M"),
    ] {
        let answer = get(marketd.addr(), &target(&format!("resolution={resolution}&limit=2")));
        assert_eq!(answer.status, 200, "{resolution}: {}", answer.text());
        assert_eq!(answer.header("Chart-Interval"), Some(interval), "{resolution}");
    }
}

/// Hours of which some are missing: 3 of every 10, and the first and the last of a day.
fn with_holes() -> (Binance, Marketd, Vec<i64>) {
    let exchange = Binance::generated(1, 5);
    exchange.set_time(ServerTime::Fixed(NOW));
    let newest = open_time("1h", NOW);
    let begin = newest - 200 * HOUR_MS;
    let hours = (begin..=newest).step_by(HOUR_MS as usize);
    let is_there = |(at, open): &(usize, i64)| {
        !matches!(at % 10, 3..=5) && open / DAY_MS != newest / DAY_MS - 2
    };
    let there: Vec<i64> = hours.enumerate().filter(is_there).map(|(_, open)| open).collect();
    let row = |(at, open): (usize, &i64)| {
        let (low, high) = (100 + at, 103 + at);
        format!(
            r#"[{open},"{low}.50","{high}.00","{low}.00","{high}.00","{at}.25",{},"0",1,"0","0","0"]"#,
            open + HOUR_MS - 1
        )
    };
    let rows: Vec<String> = there.iter().enumerate().map(row).collect();
    exchange.set_klines("BTCUSDT", "1h", &format!("[{}]", rows.join(",")));
    exchange.patch_ticker("BTCUSDT", "lastPrice", &format!("\"{}\"", 102 + there.len()));
    let marketd = start(&patient(config(&[source("fake", &exchange)])));
    (exchange, marketd.with_clock(), there)
}

#[test]
fn what_the_exchange_does_not_have_is_counted_and_can_be_filled() {
    let (_exchange, marketd, there) = with_holes();
    let (first, newest) = (there[0], there[there.len() - 1]);
    let whole = format!("interval=1h&from={}&to={}", first, NOW);
    let plain = chart(marketd.addr(), &whole);
    assert_eq!(opens(&plain), there);
    let gaps = 201 - there.len();
    let answer = get(marketd.addr(), &target(&whole));
    assert_eq!(answer.header("Chart-Gaps"), Some(gaps.to_string().as_str()));
    let filled = chart(marketd.addr(), &format!("{whole}&fill=previous"));
    let expected: Vec<i64> = (first..=newest).step_by(HOUR_MS as usize).collect();
    assert_eq!(opens(&filled), expected);
    let mut close = Json::Null;
    for row in filled.items() {
        let stored = plain.items().iter().find(|stored| stored[0] == row[0]);
        let flat = || {
            let price = close.clone();
            let zero = Json::Number("0".to_string());
            let prices = [price.clone(), price.clone(), price.clone(), price, zero];
            Json::Array(std::iter::once(row[0].clone()).chain(prices).collect())
        };
        assert_eq!(*row, stored.cloned().unwrap_or_else(flat));
        close = row[4].clone();
    }
    let answer = get(marketd.addr(), &target(&format!("{whole}&fill=previous")));
    assert_eq!(answer.header("Chart-Gaps"), Some(gaps.to_string().as_str()));
    // Never past the newest, and nothing before the oldest.
    let beyond = format!("interval=1h&from={}&to={}&fill=previous", first - DAY_MS, NOW + DAY_MS);
    let answer = get(marketd.addr(), &target(&beyond));
    assert_eq!(good(&answer, CHART), filled);
    // One answer that begins later is no proof that nobody traded on the day before.
    assert_eq!(answer.header("Chart-Coverage"), Some("partial"));
    // A limit counts the filled ones too.
    let limited = format!("{whole}&fill=previous&limit=6");
    assert_eq!(opens(&chart(marketd.addr(), &limited)), expected[..6]);
    // A day without any hour in it has no candle of two hours either.
    let rolled = chart(marketd.addr(), &format!("interval=2h&from={first}&to={NOW}"));
    let empty = newest / DAY_MS * DAY_MS - 2 * DAY_MS;
    let inside = |open: &i64| (empty..empty + DAY_MS).contains(open);
    assert!(!opens(&rolled).iter().any(inside));
    let parts = asked_of(&_exchange, "BTCUSDT", "1h", first, NOW);
    let mut by_hand = rolled_up(&parts, "2h");
    by_hand.retain(|candle| candle.0 >= first);
    assert_eq!(rolled, body(&by_hand));
    let filled = chart(marketd.addr(), &format!("interval=2h&from={first}&to={NOW}&fill=previous"));
    assert_eq!(opens(&filled).iter().filter(|open| inside(open)).count(), 12);
}

#[test]
fn links_walked_to_the_end_give_the_one_big_answer() {
    let (_holes, holey, there) = with_holes();
    let (_exchange, marketd) = made_up();
    let oldest = there[0];
    let check = |addr: SocketAddr, query: &str, limit: usize| {
        let whole = get(addr, &target(&format!("{query}&limit=5000")));
        let wanted = whole.exact();
        let mut walked: Vec<Json> = Vec::new();
        let mut next = Some(target(&format!("{query}&limit={limit}")));
        let mut pages = 0;
        while let Some(page) = next {
            let answer = get(addr, &page);
            assert_eq!(answer.status, 200, "{page}: {}", answer.text());
            let rows = answer.exact();
            assert!(rows.items().len() <= limit, "{page}");
            walked.extend(rows.items().iter().cloned());
            next = answer.header("Link").map(|link| follow(link, &page));
            pages += 1;
            assert!(pages < 1000, "{page} has no end");
        }
        assert_eq!(Json::Array(walked), wanted, "{query} by {limit}");
        assert!(pages >= wanted.items().len() / limit, "{query}");
    };
    let from = |interval: &str, count: i64| open_time(interval, NOW - count);
    let minute = from("1m", 3 * HOUR_MS);
    let week = from("1w", 100 * DAY_MS);
    check(marketd.addr(), &format!("interval=1m&from={minute}&to={NOW}"), 7);
    check(marketd.addr(), &format!("interval=1m&from={minute}"), 60);
    check(marketd.addr(), &format!("interval=15m&from={}&to={}", minute / 1000, NOW / 1000), 5);
    check(marketd.addr(), &format!("interval=1w&from={week}&to={NOW}&decimals=string"), 4);
    check(marketd.addr(), &format!("resolution=1M&startTime={week}&source=fake"), 1);
    for query in ["", "&fill=previous", "&fill=previous&decimals=string", "&source=fake"] {
        for interval in ["1h", "2h", "1d"] {
            let query = format!("interval={interval}&from={oldest}&to={NOW}{query}");
            check(holey.addr(), &query, 9);
        }
    }
}

/// The target that a `Link: <?...>; rel="next"` leads to from a page.
#[track_caller]
fn follow(link: &str, page: &str) -> String {
    let query = link.strip_prefix('<').and_then(|rest| rest.strip_suffix(">; rel=\"next\""));
    let query = query.unwrap_or_else(|| panic!("a strange link: {link}"));
    assert!(query.starts_with('?'), "{link} is not relative");
    let path = page.split('?').next().unwrap_or_default();
    format!("{path}{query}")
}

#[test]
fn a_settled_chart_is_kept_for_an_hour_and_a_living_one_until_the_next_poll() {
    let (exchange, marketd) = made_up();
    let newest = open_time("1h", NOW);
    let at = |slots: i64| newest - slots * HOUR_MS;
    let cache = |query: &str| {
        let answer = get(marketd.addr(), &target(query));
        answer.header("Cache-Control").map(str::to_string).unwrap_or_default()
    };
    let hour = "public, max-age=3600";
    // Once the newest candle is known, it is known what lies far enough behind it.
    let first = format!("from={}&to={}", at(50), at(10));
    eventually(LONG, || (cache(&first) == hour).then_some(()));
    assert_eq!(cache(&format!("from={}&to={}", at(50), at(10))), hour);
    assert_eq!(cache(&format!("from={}&to={}&decimals=string", at(50), at(10))), hour);
    assert_eq!(cache(&format!("interval=4h&from={}&to={}", at(90), at(50))), hour);
    // Cut by the limit, it ends in the closed past.
    assert_eq!(cache(&format!("from={}&limit=20", at(50))), hour);
    for query in [
        String::new(),
        format!("from={}", at(50)),
        format!("from={}&limit=50", at(50)),
        format!("from={}&to={}", at(50), at(0)),
        format!("from={}&to={}", at(50), at(1)),
    ] {
        assert_ne!(cache(&query), hour, "{query}");
        assert!(cache(&query).starts_with("public, max-age="), "{query}: {}", cache(&query));
    }
    // What was asked once is not asked again.
    let asked = exchange.count(KLINES);
    for _ in 0..20 {
        chart(marketd.addr(), &format!("from={}&to={}", at(50), at(10)));
    }
    assert_eq!(exchange.count(KLINES), asked);
}

#[test]
fn intervals_that_no_exchange_of_a_market_has_are_not_listed_and_an_error() {
    let dialect = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange/dialects/binance.json");
    let dialect = std::fs::read_to_string(dialect).expect("a dialect");
    let hours_only = dialect.replace(r#""1m": "1m", "1h": "1h", "1d": "1d""#, r#""1h": "1h""#);
    assert_ne!(hours_only, dialect);
    let exchange = Binance::generated(3, 11);
    exchange.set_time(ServerTime::Fixed(NOW));
    let launch = Launch::new(&[]);
    let path = launch.file("hours.json", hours_only);
    let mut hours = source("hours", &exchange);
    hours["dialect"] = json!(path);
    let marketd = launch.config(patient(config(&[hours]))).start().with_clock();
    let record = await_answer(marketd.addr(), "/api/ecosystem/market/BTC-USDT", |answer| {
        answer.status == 200
    });
    let listed = ["1h", "2h", "4h", "6h", "8h", "12h"];
    let found = record.exact()["intervals"].clone();
    let found: Vec<&str> = found.items().iter().filter_map(Json::text).collect();
    assert_eq!(found, listed);
    assert!(!chart(marketd.addr(), "interval=4h&limit=10").items().is_empty());
    let message =
        "No source of this market has candles of 1d: expected one of 1h, 2h, 4h, 6h, 8h, 12h.";
    let answer = get(marketd.addr(), &target("interval=1d"));
    assert_eq!(answer.status, 400);
    let error = answer.exact();
    assert_eq!(error["code"].text(), Some("invalid_interval"));
    assert_eq!(error["message"].text(), Some(message));
    if cfg!(not(feature = "page")) {
        return;
    }
    let symbol = get(marketd.addr(), "/udf/symbols?symbol=BTC/USDT").exact();
    assert_eq!(symbol["has_daily"].bool(), Some(false));
    let found = symbol["supported_resolutions"].items().iter();
    let found: Vec<&str> = found.filter_map(Json::text).collect();
    assert_eq!(found, ["60", "120", "240", "360", "480", "720"]);
}
