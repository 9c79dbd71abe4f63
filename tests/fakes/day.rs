//! Hours of polling each exchange, in virtual time: no limit of it is ever passed, and quotes are
//! as fresh as promised while it is up.
//!
//! Weather, flights of messages and clients' questions come from the seed; `MARKETD_SEED` replays.
//! There are three hours, or as many as `MARKETD_HOURS` says: `.ci/run` lets a whole day pass.

use crate::fakes::fake;
use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::fakes::virtual_time::{Weather, World};
use crate::support::*;
use crate::virtual_time::SECOND_US;
use marketd::exchange::Dialect;
use marketd::interval::Stored;
use std::time::Duration;

const HOUR_US: u64 = 3_600 * SECOND_US;

/// From the end of an outage to when quotes must be fresh again: the longest back-off, a request
/// that times out, and a round.
const RECOVERY_US: u64 = 45 * SECOND_US;

/// Lets a source with so many markets run for so long, the quotes no older than `fresh_ms` while the exchange
/// is up.
fn run(fake: &'static Fake, markets: usize, poll_ms: u64, long_us: u64, fresh_ms: i64) {
    for_each_seed(1, |seed, rng| {
        let shop = Shop::new(markets);
        let symbols: Vec<String> = shop.markets().iter().map(|market| market.symbol()).collect();
        let mut world = World::new(fake, shop, Duration::from_millis(poll_ms), seed);
        let mut next_outage = rng.between(600, 3600) as u64 * SECOND_US;
        let (mut up_since, mut outage_ends) = (0, None);
        let dialect = Dialect::by_name(fake.name).expect("it is built in");
        let all = [("1m", MINUTE_MS), ("1h", HOUR_MS), ("1d", DAY_MS)];
        // Days of another place are not days of UTC: a dialect leaves them out.
        let intervals = &all[..if dialect.has_interval(Stored::D1) { 3 } else { 2 }];
        let mut asking = Vec::new();
        while world.us < long_us {
            world.run_to(world.us + rng.between(1, 8_000_000) as u64);
            let now = world.us;
            assert!(world.ledger.broken.is_empty(), "at {now} us: {:?}", world.ledger.broken);
            if outage_ends.is_some_and(|ends| ends <= now) {
                world.set_weather(Weather::Fair);
                (outage_ends, up_since) = (None, now);
            } else if outage_ends.is_none() && next_outage <= now {
                world.set_weather(bad_weather(fake, rng));
                let ends = now + rng.between(1, 600) as u64 * SECOND_US;
                outage_ends = Some(ends);
                next_outage = ends + rng.between(60, 5400) as u64 * SECOND_US;
            }
            if outage_ends.is_none() && now >= up_since + RECOVERY_US {
                let symbol = rng.pick(&symbols);
                let quote = world.get(&format!("/api/v1/quotes/{symbol}"));
                let what = format!("{symbol} at {now} us: {quote}");
                assert_eq!(quote["stale"], Json::Bool(false), "{what}");
                let age_ms =
                    NOW + now as i64 / 1000 - quote["receivedAt"].integer().expect("a time");
                assert!(age_ms <= fresh_ms, "{age_ms} ms old: {what}");
            }
            if rng.chance(1, 4) {
                let (symbol, (interval, length)) = (rng.pick(&symbols), *rng.pick(intervals));
                let back = rng.between(0, 12_000) * length;
                let to = NOW + now as i64 / 1000 - if length == DAY_MS { back / 8 } else { back };
                let limit = rng.between(1, 2000);
                asking.push(world.ask_for(&format!(
                    "/api/ecosystem/chart?symbol={symbol}&interval={interval}&to={to}&limit={limit}"
                )));
            }
            asking.retain(|key| {
                let answer = world.answer_to(*key);
                let is_good = answer.as_ref().is_none_or(|it| [200, 503].contains(&it.status));
                assert!(is_good, "a chart: {answer:?}");
                answer.is_none()
            });
            assert!(asking.len() < 20, "charts are not answered");
        }
    });
}

fn bad_weather(fake: &Fake, rng: &mut Rng) -> Weather {
    let down = Reply::status(503, "<html>down</html>");
    // Without a word on how long to wait, and with one.
    let too_many = fake.refuses("RateLimited");
    let asks_to_wait =
        |status| Reply { status, ..fake.refuses("RateLimited").field("Retry-After", "30") };
    match rng.below(8) {
        0 => Weather::Gone,
        1 => Weather::Silent,
        2 => Weather::Cut,
        3 => Weather::Answers(vec![down]),
        4 => Weather::Answers(vec![too_many]),
        5 => Weather::Answers(vec![asks_to_wait(429)]),
        6 => Weather::Answers(vec![asks_to_wait(418)]),
        _ => Weather::Answers(vec![down, too_many, asks_to_wait(429)]),
    }
}

/// Three markets, polled as often as the exchange bears.
pub fn keeps_its_limits(fake: &'static Fake) {
    let (poll_ms, fresh_ms) = match fake.name {
        "kraken" => (2_000, 6_000),
        "coinbase" => (4_000, 5_000),
        _ => (3_000, 4_000),
    };
    let hours = number("MARKETD_HOURS").unwrap_or(3);
    run(fake, 3, poll_ms, hours * HOUR_US, fresh_ms);
}

/// Quotes of 30 markets every two seconds are more than the exchange allows: they take turns with
/// the history of 90 series, and the rounds are as long as that makes them.
#[test]
fn a_round_that_eats_the_whole_budget_of_coinbase_keeps_its_limit_and_its_promise() {
    run(fake("coinbase"), 30, 2_000, HOUR_US, 14_000);
}
