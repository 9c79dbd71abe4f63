//! What an exchange is asked while it refuses, fails in part, or has more markets than its limit allows. In
//! whatever words and with whatever status it refuses, nothing that is served changes.

use crate::fakes::exchanges::EXCHANGES;
use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::fakes::virtual_time::{Weather, World};
use crate::fakes::{fake, fakes};
use crate::support::*;
use crate::virtual_time::SECOND_US;
use marketd::config::{Config, Data, Poll, SourceConfig};
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::time::Duration;

/// Coinbase, if it allowed 120 requests a minute.
static SLOW: LazyLock<Fake> = LazyLock::new(|| {
    let text = EXCHANGES.replace("limit 10 in 1000\n", "limit 120 in 60000\n");
    let fakes = Fake::read(Box::leak(text.into_boxed_str()));
    fakes.into_iter().find(|fake| fake.name == "coinbase").expect("it is there")
});

/// A source of that exchange which collects every market quoted in these assets.
fn slow_source(symbols: Vec<String>, quotes: &[&str]) -> SourceConfig {
    let text = include_str!("../../src/exchange/dialects/coinbase.json");
    let budget = r#""budget": { "units": 10, "perMs": 1000 }"#;
    assert!(text.contains(budget));
    let text = text.replace(budget, r#""budget": { "units": 120, "perMs": 60000 }"#);
    SourceConfig {
        id: "slow".to_string(),
        dialect_text: text,
        symbols,
        quote_assets: quotes.iter().map(|asset| asset.to_string()).collect(),
        poll: Poll::Every(Duration::from_secs(2)),
        ..SourceConfig::new("slow.json")
    }
}

fn names(shop: &Shop) -> Vec<String> {
    shop.markets().iter().map(|market| market.symbol()).collect()
}

/// What is refused, and what of it shows.
struct Trouble {
    exchange: &'static str,
    markets: usize,
    weather: Weather,
    seconds: u64,
    /// How many requests with these words come meanwhile.
    asked: &'static [(&'static str, RangeInclusive<usize>)],
    /// What `/health` names.
    reason: Option<&'static str>,
}

#[test]
fn what_is_refused_is_asked_less_and_less_and_all_else_goes_on() {
    let down = || Reply::status(503, "<html>down</html>");
    let too_many = Reply::status(429, r#"{"code":-1003,"msg":"Too many requests."}"#);
    let unknown = fake("binance").refuses("UnknownMarket");
    let troubles = [
        // All with a pause: only what was on its way.
        Trouble {
            exchange: "coinbase",
            markets: 50,
            weather: Weather::Answers(vec![down().field("Retry-After", "120")]),
            seconds: 100,
            asked: &[("", 0..=3)],
            reason: Some("source_down"),
        },
        // Quotes of 50 markets without a word: one at a time, and candles go on.
        Trouble {
            exchange: "coinbase",
            markets: 50,
            weather: Weather::AnswersTo("/ticker", down()),
            seconds: 60,
            asked: &[("/ticker", 2..=12), ("/candles", 50..=1000)],
            reason: Some("source_down"),
        },
        // Candles of all markets: backed off, and quotes go on.
        Trouble {
            exchange: "binance",
            markets: 20,
            weather: Weather::AnswersTo("/klines", down()),
            seconds: 60,
            asked: &[("/klines", 2..=15), ("/ticker", 29..=31)],
            reason: Some("source_candles"),
        },
        // Candles as too many: 2, 4, 8, 16 and then 30 seconds apart, however well quotes are answered between
        // two of them.
        Trouble {
            exchange: "binance",
            markets: 20,
            weather: Weather::AnswersTo("/klines", too_many),
            seconds: 120,
            asked: &[("/klines", 4..=9), ("/ticker", 58..=61)],
            reason: Some("source_candles"),
        },
        // The 24-hour figures, and the market list, which is read hourly, and by the back-off while it fails.
        Trouble {
            exchange: "coinbase",
            markets: 20,
            weather: Weather::AnswersTo("/stats", down()),
            seconds: 120,
            asked: &[("/stats", 5..=30), ("/ticker", 300..=1000)],
            reason: Some("source_stats"),
        },
        Trouble {
            exchange: "binance",
            markets: 20,
            weather: Weather::AnswersTo("/exchangeInfo", down()),
            seconds: 3750,
            asked: &[("/exchangeInfo", 5..=10), ("/ticker", 1800..=1900)],
            reason: Some("source_markets"),
        },
        // Candles of one market: nobody else's trouble.
        Trouble {
            exchange: "binance",
            markets: 20,
            weather: Weather::AnswersTo("/klines?symbol=BTCUSDT", down()),
            seconds: 240,
            asked: &[("/klines?symbol=BTCUSDT", 6..=30), ("/klines", 80..=1000)],
            reason: None,
        },
        Trouble {
            exchange: "binance",
            markets: 20,
            weather: Weather::AnswersTo("/klines?symbol=BTCUSDT", unknown),
            seconds: 240,
            asked: &[("/klines?symbol=BTCUSDT", 2..=30), ("/klines", 80..=1000)],
            reason: None,
        },
    ];
    for Trouble { exchange, markets, weather, seconds, asked, reason } in troubles {
        let poll = Duration::from_secs(if exchange == "coinbase" { 4 } else { 2 });
        let mut world = World::new(fake(exchange), Shop::new(markets), poll, 1);
        let what = format!("{weather:?} of {exchange}");
        // A fair time in which the past is fetched.
        world.run_to(15 * SECOND_US);
        world.set_weather(weather);
        let since = world.us + SECOND_US;
        world.run_to(since + seconds * SECOND_US);
        assert!(world.ledger.broken.is_empty(), "{what}: {:?}", world.ledger.broken);
        for (words, counts) in asked {
            let count = world.count(words, since);
            assert!(counts.contains(&count), "{what}: {count} of {words:?}");
        }
        let reasons = world.reasons();
        let is_named = |reason| reasons.iter().any(|it| it == reason);
        assert_eq!(reasons.is_empty(), reason.is_none(), "{what}: {reasons:?}");
        assert!(reason.is_none_or(is_named), "{what}: {reasons:?}");
        world.set_weather(Weather::Fair);
        world.run_to(world.us + 120 * SECOND_US);
        assert_eq!(world.reasons(), [""; 0], "{what}");
        // The other one is not yet through with so many markets.
        let chart = world.at_once("/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=30");
        let is_complete = chart.header("Chart-Coverage") == Some("complete");
        assert!(is_complete || exchange == "coinbase", "{what}");
    }
}

#[test]
fn three_sources_of_one_host_share_its_limit_and_its_connections() {
    let shop = Shop::new(300);
    let all = names(&shop);
    let of = |at: usize| SourceConfig {
        id: format!("s{at}"),
        symbols: all.clone(),
        poll: Poll::Every(Duration::from_secs(1)),
        ..SourceConfig::new("binance")
    };
    let mut world = World::of(fake("binance"), shop, (0..3).map(of).collect(), 6);
    world.run_to(150 * SECOND_US);
    assert!(world.ledger.broken.is_empty(), "{:?}", &world.ledger.broken[..1]);
    let upstreams = world.get("/api/v1/metrics")["upstreams"].clone();
    let spent: Vec<i64> =
        upstreams.items().iter().map(|it| it["budgetSpent"].integer().expect("a count")).collect();
    // It is used, and each has its share.
    assert!(
        spent.iter().sum::<i64>() > 10_000 && spent.iter().all(|it| *it > 2_500),
        "{spent:?} {upstreams}"
    );
    assert_eq!(world.get("/health")["quotes"]["stale"].integer(), Some(0));
}

#[test]
fn what_the_exchange_says_is_used_is_left_alone_until_its_window_ends() {
    let mut world = World::new(fake("binance"), Shop::new(60), Duration::from_secs(2), 7);
    world.run_to(100 * SECOND_US);
    world.others = 5_990;
    world.run_to(105 * SECOND_US);
    let since = world.us;
    assert!(world.reasons().iter().any(|code| code == "source_budget"), "{:?}", world.reasons());
    world.run_to(155 * SECOND_US);
    assert_eq!(world.count("", since), 0);
    world.others = 0;
    world.run_to(300 * SECOND_US);
    assert_eq!(world.reasons(), [""; 0]);
}

#[test]
fn a_named_market_is_fresh_though_a_round_takes_longer_than_quotes_stay_fresh() {
    check_urgent(true);
}

#[test]
fn a_market_that_a_stream_follows_is_fresh_though_a_round_takes_longer() {
    check_urgent(false);
}

/// 106 markets at 120 requests a minute; the last by name is named, or else followed by a stream.
fn check_urgent(is_named: bool) {
    let shop = Shop::new(106);
    let all = names(&shop);
    let urgent = all.iter().max().expect("there are some").clone();
    let quotes: Vec<&str> = all.iter().filter_map(|name| Some(name.split_once('/')?.1)).collect();
    let named = if is_named { vec![urgent.clone()] } else { Vec::new() };
    let mut world = World::of(&SLOW, shop, vec![slow_source(named, &quotes)], 8);
    if !is_named {
        world.run_to(5 * SECOND_US);
        world.ask_for(&format!("/api/v1/stream?symbols={urgent}"));
    }
    let mut oldest = 0;
    for second in (20..600).step_by(3) {
        world.run_to(second * SECOND_US);
        let quote = world.get(&format!("/api/v1/quotes/{urgent}"));
        assert_eq!(quote["stale"], Json::Bool(false), "{quote} after {second} s");
        let age = NOW + second as i64 * 1000 - quote["receivedAt"].integer().expect("a time");
        oldest = oldest.max(age);
    }
    assert!(oldest < 8_000, "{oldest}");
    assert!(world.ledger.broken.is_empty(), "{:?}", &world.ledger.broken[..1]);
    assert_eq!(world.reasons(), ["source_round"]);
    let round_ms = world.get("/api/v1/metrics")["upstreams"][0]["roundMs"].integer();
    assert!((80_000..200_000).contains(&round_ms.expect("a round has ended")), "{round_ms:?}");
    let (stats, all) = (world.count("/stats", 0), world.count("/ticker", 0));
    assert!(stats * 2 < all, "{stats} readings of a day beside {all} of quotes");
    println!("oldest {oldest} ms, round {round_ms:?}, {stats} stats, {all} quotes");
}

/// What is served of one market, as far as it cannot change by itself within a moment.
fn served(world: &mut World) -> Vec<String> {
    let closed = format!("from={}&to={}", NOW - 10 * HOUR_MS, NOW - 2 * HOUR_MS);
    let targets = [
        "/api/v1/quotes?symbols=*".to_string(),
        "/api/v1/quotes/BTC-USDT".to_string(),
        "/api/ecosystem/market".to_string(),
        format!("/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&{closed}"),
        format!("/api/ecosystem/chart?symbol=BTC/USDT&interval=15m&{closed}"),
        "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=30".to_string(),
    ];
    let read = |target: &String| {
        let answer = world.at_once(target);
        let body = answer.text();
        assert_eq!(answer.status, 200, "{target}: {body}");
        assert!(body.len() > 100, "{target}: {body}");
        body.to_string()
    };
    targets.iter().map(read).collect()
}

fn counted(world: &mut World, counter: &str) -> i64 {
    world.get("/api/v1/metrics")["upstreams"][0][counter].integer().expect("a count")
}

/// Refuses with this from some moment on, and is well again. The refusal counts as one request too many if
/// `is_told`, and is answered by so many requests in ten seconds at most.
fn check(fake: &'static Fake, refusal: Reply, is_told: bool, most: u64) {
    let what = format!("{}: {} {:?}", fake.name, refusal.status, refusal.body.to_vec());
    let shop = Shop::new(2);
    let poll = Poll::Every(Duration::from_secs(2));
    let source = SourceConfig { symbols: names(&shop), poll, ..SourceConfig::new(fake.name) };
    let mut config = Config { sources: vec![source], data: Data::Memory, ..Config::default() };
    // As much history as is served below.
    let history = &mut config.history;
    (history.m1.backfill, history.h1.backfill, history.d1.backfill) = (700, 20, 5);
    let mut world = World::with(fake, shop, config, 3);
    // Long enough for all of it, also where one request a second is let in.
    world.run_to(42 * SECOND_US);
    let before = served(&mut world);
    let (good, bad) = (counted(&mut world, "ok"), counted(&mut world, "errors"));
    let asked = world.ledger.requests;
    // That nothing is asked before its time, the world sees to.
    world.set_weather(Weather::Answers(vec![refusal]));
    // What left before is answered well.
    world.run_to(world.us + 10 * SECOND_US);
    assert_eq!(served(&mut world), before, "{what}");
    assert_eq!(counted(&mut world, "ok"), good, "{what}");
    assert!(counted(&mut world, "errors") > bad, "{what}");
    assert_eq!(counted(&mut world, "rateLimited") > 0, is_told, "{what}");
    let asked = world.ledger.requests - asked;
    assert!(asked <= most, "{what}: {asked} requests in ten seconds");
    world.set_weather(Weather::Fair);
    world.run_to(world.us + 45 * SECOND_US);
    assert!(counted(&mut world, "ok") > good, "{what}");
    assert_ne!(served(&mut world)[1], before[1], "{what}");
}

/// Refusals of all kinds, hidden in a 200 or with a status of their own. Words, a status alone, and a wait that is
/// asked for: each counts as one request too many if it says so, whatever else it says.
#[test]
fn a_refusal_is_an_error_changes_nothing_and_counts_as_too_many_requests_if_it_says_so() {
    for fake in fakes() {
        let by_status = |status| {
            let of_binance = ["binance", "binanceus"].contains(&fake.name) && status < 429;
            status == 429 || of_binance || (fake.name, status) == ("bybit", 403)
        };
        let status = |status| (Reply::status(status, "<html>no</html>"), by_status(status), 8);
        let mut all = [403, 418, 429, 500].map(status).to_vec();
        // A refusal about one market is no reason to leave the others alone.
        let most = if fake.name == "coinbase" { 40 } else { 8 };
        let hidden = fake.refusals.iter().filter(|it| it.status == 200);
        all.extend(hidden.map(|it| (it.reply(), it.kind == "RateLimited", most)));
        let words = |status| Reply { status, ..fake.refuses("RateLimited") };
        all.extend([400, 404, 429, 503].map(|status| (words(status), true, 8)));
        let waits = |reply: Reply| reply.field("Retry-After", "12");
        all.push((waits(words(200)), true, 4));
        all.push((waits(Reply::status(418, "{}")), by_status(418), 4));
        all.into_iter().for_each(|(refusal, is_told, most)| check(fake, refusal, is_told, most));
    }
}
