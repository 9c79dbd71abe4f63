//! One address, one tag, one body: for ever, whatever becomes of the market meanwhile.
//!
//! The core runs between two exchanges and many clients in virtual time ([`world`]); what each tag
//! has stood for is written down ([`ledger`]). One seed is one run:
//! `MARKETD_SEED=7 cargo test --test library tags::one_tag` repeats the run of seed 7 alone.

use crate::support;

mod exchange;
mod ledger;
mod world;

use exchange::Exchange;
use ledger::Ledger;
use std::time::Duration;
use support::{Rng, for_each_seed};
use world::{Asked, World, config};

/// Addresses that are asked for again and again.
const ADDRESSES: [&str; 26] = [
    "/api/v1/quotes/M000-USDT",
    "/api/v1/quotes/M000-USDT?source=two",
    "/api/v1/quotes/M000-USDT?decimals=string",
    "/api/v1/quotes?symbols=M000-USDT,M001-USDT,M002-USDT",
    "/api/v1/quotes?symbols=M002-USDT,M000-USDT&source=one",
    "/api/v1/quotes?symbols=M007-USDT,M300-USDT,NOPE,M301-USDT&decimals=string",
    "/api/v1/quotes?symbols=*",
    "/api/v1/quotes?symbols=*&source=two",
    "/api/v1/quotes?symbols=*&decimals=string",
    "/api/v1/categories",
    "/api/v1/categories/usdt/markets",
    "/api/v1/categories/usdt/markets?decimals=string",
    "/api/ecosystem/market",
    "/api/ecosystem/market?decimals=string",
    "/api/ecosystem/market/M000-USDT",
    "/api/ecosystem/market/M300-USDT",
    "/api/ecosystem/market/M001-USDT?decimals=string",
    "/api/ecosystem/chart?symbol=M000-USDT&interval=1m",
    "/api/ecosystem/chart?symbol=M000-USDT&interval=1m&fill=previous",
    "/api/ecosystem/chart?symbol=M000-USDT&interval=1m&limit=1500&source=two",
    "/api/ecosystem/chart?symbol=M000-USDT&interval=5m&fill=previous&limit=90",
    "/api/ecosystem/chart?symbol=M000-USDT&interval=5m&decimals=string",
    "/api/ecosystem/chart?symbol=M001-USDT&interval=1h&fill=previous&decimals=string",
    "/api/ecosystem/chart?symbol=M009-USDT&interval=1d",
    "/api/ecosystem/chart?symbol=M000-USDT&interval=1w",
    "/openapi.json",
];

/// A chart of the last minutes, asked for in the same words for a while.
fn recent_chart(world: &mut World) -> String {
    let minute = 60_000;
    let to = world.time.time() / minute - world.rng.between(0, 3);
    let from = to - *world.rng.pick(&[3, 20, 400]);
    let interval = world.rng.pick(&["1m", "1m", "3m", "5m"]);
    let fill = world.rng.pick(&["previous", "previous", "none"]);
    let symbol = world.rng.pick(&["M000", "M000", "M001", "M005"]);
    let (from, to) = (from * minute, to * minute);
    format!(
        "/api/ecosystem/chart?symbol={symbol}-USDT&interval={interval}&fill={fill}&from={from}&to={to}"
    )
}

/// Something that this service never said.
fn made_up_tag(rng: &mut Rng, known: &str) -> String {
    let mut tag = known.as_bytes().to_vec();
    match rng.below(3) {
        0 => {
            let at = 1 + rng.below(tag.len() as u64 - 2) as usize;
            tag[at] = *rng.pick(b"0123456789abcdef");
        }
        1 => tag.insert(1, b'0'),
        _ => drop(tag.remove(1)),
    }
    String::from_utf8(tag).expect("a tag is ASCII")
}

fn one_request(world: &mut World, ledger: &Ledger, target: &str) {
    let has = match world.rng.below(4) {
        0 | 1 => None,
        _ => {
            let at = world.rng.next();
            ledger.tag_of(target, at)
        }
    };
    let has = has.map(|tag| match world.rng.chance(1, 4) {
        true => made_up_tag(&mut world.rng, &tag),
        false => tag,
    });
    let asked = Asked {
        head_only: world.rng.chance(1, 12),
        target: target.to_string(),
        has,
        takes_gzip: world.rng.chance(1, 3),
    };
    world.ask(asked);
}

fn run(seed: u64, steps: usize, mut rng: Rng) -> Ledger {
    // With long pauses the run sees many lists of markets, with short ones many quotes.
    let pause = Duration::from_secs(*rng.pick(&[20, 300, 300]));
    let exchanges = vec![Exchange::new(seed, 300), Exchange::new(seed ^ 9, 280)];
    let mut world = World::new(config(pause), exchanges, rng);
    let mut ledger = Ledger::default();
    let mut recent: Vec<String> = Vec::new();
    let (mut lists, mut curious) = (0, 0);
    for _ in 0..steps {
        if world.rng.chance(1, 20) {
            let now_ms = world.time.time();
            let at = world.rng.below(2) as usize;
            world.time.all[at].change(&mut world.rng, now_ms);
        }
        if world.time.lists > lists {
            // A list is on its way: this is when lists in the making may change.
            (lists, curious) = (world.time.lists, 60);
        }
        if curious > 0 || world.rng.chance(1, 6) {
            let is_recent = curious == 0 && world.rng.chance(1, 2);
            curious = usize::saturating_sub(curious, 1);
            if recent.len() < 4 || world.rng.chance(1, 60) {
                recent.insert(0, recent_chart(&mut world));
                recent.truncate(4);
            }
            let target = match is_recent {
                true => world.rng.pick(&recent).clone(),
                false => world.rng.pick(&ADDRESSES).to_string(),
            };
            one_request(&mut world, &ledger, &target);
        }
        for (asked, answer) in world.step(Duration::from_secs(15)) {
            if let Err(why) = ledger.enter(&asked, answer) {
                panic!("{why}");
            }
        }
    }
    ledger
}

#[test]
fn one_tag_of_one_address_stands_for_one_body_for_ever() {
    for_each_seed(12, |seed, rng| {
        let ledger = run(seed, 6000, rng.clone());
        let seen = &ledger.seen;
        let is_much = seen.bodies > 300 && seen.again > 50 && seen.not_modified > 20;
        assert!(is_much, "seed {seed} has seen little: {seen:?}");
    });
}

#[test]
fn an_error_and_a_quote_of_a_batch_never_share_a_tag() {
    let mut config = config(Duration::from_secs(20));
    config.sources.truncate(1);
    let mut exchange = Exchange::new(1, 404);
    exchange.prices.remove("M000");
    let mut world = World::new(config, vec![exchange], Rng::new(1));
    world.time.is_in_slices = false;
    world.time.run(10);
    let batch = "/api/v1/quotes?symbols=M000-USDT";
    let error = world.time.fetch(batch);
    assert!(error.body.contains("\"quote_not_found\""), "{}", error.body);
    // 403 quotes were collected before this one: its version is the status of that error.
    world.time.all[0].prices = [("M000".to_string(), 7)].into();
    world.time.run(20);
    let quote = world.time.fetch("/api/v1/quotes/M000-USDT");
    assert_eq!(quote.header("ETag"), "\"7-194-n\"", "0x194 is 404");
    let found = world.time.fetch(batch);
    assert_ne!(found.body, error.body);
    assert_ne!(found.header("ETag"), error.header("ETag"));
}
