//! An exchange that refuses, in whatever words and with whatever status, changes nothing that is
//! served, and is counted as failing.

use crate::fakes::fakes;
use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::fakes::virtual_time::{Weather, World};
use crate::support::*;
use crate::virtual_time::Answer;
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
        let Answer { status, body, .. } = world.at_once(target);
        assert_eq!(status, 200, "{target}: {body}");
        assert!(body.len() > 100, "{target}: {body}");
        body
    };
    targets.iter().map(read).collect()
}

fn counted(world: &mut World, counter: &str) -> i64 {
    world.get("/api/v1/metrics")["upstreams"][0][counter].integer().expect("a count")
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
    world.run_to(world.us + 10 * SECOND_US);
    assert_eq!(served(&mut world), before, "{what}");
    assert_eq!(counted(&mut world, "ok"), good, "{what}");
    assert!(counted(&mut world, "errors") > bad, "{what}");
    let asked = world.ledger.requests - asked;
    // A refusal about one market is no reason to leave the others alone.
    let most = if fake.name == "coinbase" { 40 } else { 8 };
    assert!(asked <= most, "{what}: {asked} requests in ten seconds");
    world.set_weather(Weather::Fair);
    world.run_to(world.us + 45 * SECOND_US);
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

/// Words, a status alone, and a wait that is asked for: each counts as one request too many if it says so,
/// whatever else it says, and is answered by fewer requests.
#[test]
fn a_refusal_counts_as_too_many_requests_if_its_words_or_its_status_say_so() {
    for fake in fakes() {
        let words = |status| Reply { status, ..fake.refuses("RateLimited") };
        // Those under way when it began, and a growing wait from then on.
        let mut all = [400, 404, 429, 503].map(|status| (words(status), true, 8)).to_vec();
        // That nothing is asked before its time, the world sees to.
        all.push((words(200).field("Retry-After", "30"), true, 4));
        for status in [403, 418, 429] {
            let is_told = matches!(
                (fake.name, status),
                (_, 429) | ("binance" | "binanceus", _) | ("bybit", 403)
            );
            all.push((Reply::status(status, "<html>no</html>"), is_told, 8));
        }
        for (refusal, is_told, most) in all {
            let what = format!("{}: {} {:?}", fake.name, refusal.status, refusal.body.to_vec());
            let mut world = World::new(fake, Shop::new(2), Duration::from_secs(2), 5);
            world.run_to(20 * SECOND_US);
            let asked = world.ledger.requests;
            world.set_weather(Weather::Answers(vec![refusal]));
            world.run_to(world.us + 10 * SECOND_US);
            assert!(counted(&mut world, "errors") > 0, "{what}");
            assert_eq!(counted(&mut world, "rateLimited") > 0, is_told, "{what}");
            let asked = world.ledger.requests - asked;
            assert!(asked <= most, "{what}: {asked} requests");
        }
    }
}
