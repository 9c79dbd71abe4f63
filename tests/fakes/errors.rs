//! An exchange that refuses, in whatever words and with whatever status, changes nothing that is
//! served, and is counted as failing.

use crate::fakes::fakes;
use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::fakes::virtual_time::{Weather, World};
use crate::support::*;
use std::time::Duration;

const SECOND_US: u64 = 1_000_000;

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
        let key = world.ask(target);
        let (status, body) = world
            .answer(key)
            .unwrap_or_else(|| panic!("{target} of {} is not at hand", world.fake.name));
        assert_eq!(status, 200, "{target}: {body}");
        assert!(body.len() > 100, "{target}: {body}");
        body
    };
    targets.iter().map(read).collect()
}

fn counted(world: &mut World, counter: &str) -> i64 {
    let key = world.ask("/api/v1/metrics");
    let (_, body) = world.answer(key).expect("metrics are at hand");
    let metrics = Json::parse(&body).expect("they are JSON");
    let value = metrics["upstreams"][0][counter].integer();
    value.unwrap_or_else(|| panic!("{counter} of {metrics}"))
}

/// Refuses with this from some moment on, and is well again.
fn check(fake: &'static Fake, refusal: Reply) {
    let what = format!("{}: {:?}", fake.name, refusal.body.to_vec());
    let mut world = World::new(fake, Shop::new(2), Duration::from_secs(2), 3);
    // Long enough for all of the configured history, also where one request a second is let in.
    world.run_to(42 * SECOND_US);
    let before = served(&mut world);
    let (good, bad) = (counted(&mut world, "ok"), counted(&mut world, "errors"));
    let asked = world.ledger.requests;
    world.set_weather(Weather::Answers(vec![refusal]));
    // What left before is answered well.
    world.run_to(world.now_us() + 10 * SECOND_US);
    assert_eq!(served(&mut world), before, "{what}");
    assert_eq!(counted(&mut world, "ok"), good, "{what}");
    assert!(counted(&mut world, "errors") > bad, "{what}");
    let asked = world.ledger.requests - asked;
    // A refusal about one market is no reason to leave the others alone.
    let most = if fake.name == "coinbase" { 40 } else { 8 };
    assert!(asked <= most, "{what}: {asked} requests in ten seconds");
    world.set_weather(Weather::Fair);
    world.run_to(world.now_us() + 45 * SECOND_US);
    assert!(counted(&mut world, "ok") > good, "{what}");
    assert_ne!(served(&mut world)[1], before[1], "{what}");
}

#[test]
fn a_refusal_hidden_in_a_200_is_an_error_and_changes_nothing() {
    for fake in fakes() {
        for refusal in fake.refusals.iter().filter(|it| it.status == 200) {
            check(fake, refusal.reply());
        }
    }
}

#[test]
fn a_refusal_with_its_own_status_is_an_error_and_changes_nothing() {
    for fake in fakes() {
        check(fake, fake.refuses("RateLimited"));
        check(fake, Reply::status(418, "{}").field("Retry-After", "12"));
        check(fake, Reply::status(403, "<html>blocked</html>"));
        check(fake, Reply::status(500, ""));
    }
}

/// Refuses everything with this for a while: requests meanwhile, and how many of them were
/// counted as too many.
fn refused(fake: &'static Fake, refusal: Reply) -> (u64, i64) {
    let mut world = World::new(fake, Shop::new(2), Duration::from_secs(2), 5);
    world.run_to(20 * SECOND_US);
    let asked = world.ledger.requests;
    world.set_weather(Weather::Answers(vec![refusal]));
    world.run_to(world.now_us() + 10 * SECOND_US);
    assert!(counted(&mut world, "errors") > 0, "{}", fake.name);
    let limited = counted(&mut world, "rateLimited");
    (world.ledger.requests - asked, limited)
}

#[test]
fn words_of_too_many_requests_count_as_such_whatever_the_status() {
    for fake in fakes() {
        let words = fake.refuses("RateLimited");
        for status in [400, 404, 429, 503] {
            let reply = Reply { status, ..words.clone() };
            let (asked, limited) = refused(fake, reply);
            assert!(limited > 0, "{}: {status}", fake.name);
            // Those under way when it began, and a growing wait from then on.
            assert!(asked <= 8, "{}: {status}, {asked} requests", fake.name);
        }
    }
}

#[test]
fn a_wait_that_is_asked_for_is_kept_also_where_the_status_says_that_all_is_well() {
    for fake in fakes() {
        let words = Reply { status: 200, ..fake.refuses("RateLimited") };
        // That nothing is asked before its time, the world sees to.
        let (asked, limited) = refused(fake, words.field("Retry-After", "30"));
        assert!(limited > 0, "{}", fake.name);
        assert!(asked <= 4, "{}: {asked} requests", fake.name);
    }
}

#[test]
fn a_429_without_words_is_a_rate_limit_and_what_shuts_out_stops_the_source() {
    for fake in fakes() {
        for status in [403, 418, 429] {
            let (asked, limited) = refused(fake, Reply::status(status, "<html>no</html>"));
            assert!(asked <= 8, "{}: {status}, {asked} requests", fake.name);
            let told = matches!(
                (fake.name, status),
                (_, 429) | ("binance" | "binanceus", _) | ("bybit", 403)
            );
            assert_eq!(limited > 0, told, "{}: {status}", fake.name);
        }
    }
}
