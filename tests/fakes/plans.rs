//! Plans: a source reads no more bytes than its markets need, by the fewest units, from any of the exchanges.

use crate::fakes::shop::*;
use crate::fakes::virtual_time::World;
use crate::fakes::{FAKES, binance};
use crate::support::*;
use marketd::config::{Config, Data, Poll, SourceConfig, Url};
use marketd::exchange::{Call, Dialect};
use std::time::{Duration, Instant};

const LISTED: usize = 3500;
const POLL_MS: u64 = 2000;

/// When the plan is settled, and when enough was seen of it.
const FROM_US: u64 = 6_000_000;
const TO_US: u64 = 12_000_000;

/// What a poll takes.
#[derive(Clone, Copy, Debug)]
struct Cost {
    bytes: u64,
    units: u64,
}

/// What a poll of the first markets takes, by each of the exchange's calls whose cost fits into half of the
/// budget that is kept. If none does, the one of the fewest units.
fn possible(fake: &Fake, shop: &Shop, count: usize) -> Vec<Cost> {
    let dialect = Dialect::by_name(fake.name).expect("it is built in");
    let markets = shop.markets().iter().take(count);
    let ids: Vec<String> = markets.map(|it| (fake.id)(&it.base, it.quote)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut all = Vec::new();
    for way in dialect.ways() {
        let parts: Vec<&[&str]> = match way.markets {
            None => vec![&[]],
            Some(most) => ids.chunks(most).collect(),
        };
        let (mut poll, mut cost) = (Cost { bytes: 0, units: 0 }, 0);
        for part in parts {
            let call = match (way.markets, dialect.has_several()) {
                (None, _) => Call::Tickers,
                (_, true) => Call::Several { ids: part },
                _ => Call::Ticker { id: part[0] },
            };
            let asked = Asked {
                peer: None,
                at: Instant::now(),
                connection: 0,
                method: "GET".to_string(),
                target: dialect.target(&call),
                fields: Vec::new(),
            };
            let (reply, charge) = ((fake.answer)(shop, &asked), (fake.charge)(&asked));
            assert_eq!(reply.status, 200, "{}", asked.target);
            poll.bytes += (reply.head(false).len() + reply.body.to_vec().len()) as u64;
            poll.units += u64::from(charge.units);
            cost += u64::from(dialect.cost(&call));
        }
        let budget = dialect.budget();
        let fits = 2 * cost * budget.per.as_millis() as u64 <= u64::from(budget.units) * POLL_MS;
        all.push((fits, poll));
    }
    let fitting: Vec<Cost> = all.iter().filter(|(fits, _)| *fits).map(|(_, poll)| *poll).collect();
    let cheapest = all.iter().map(|(_, poll)| *poll).min_by_key(|it| (it.units, it.bytes));
    if fitting.is_empty() { cheapest.into_iter().collect() } else { fitting }
}

/// A source of these markets of a fake, or of all of them.
fn source_of(fake: &Fake, symbols: Vec<String>) -> SourceConfig {
    let poll = Poll::Every(Duration::from_millis(POLL_MS));
    SourceConfig { symbols, poll, ..SourceConfig::new(fake.name) }
}

/// No candles: only what quotes and lists take is looked at.
fn world_of(fake: &'static Fake, shop: Shop, mut source: SourceConfig) -> World {
    source.url = Some(Url::parse("http://192.0.2.1:80").expect("an address"));
    let mut config = Config { sources: vec![source], data: Data::Memory, ..Config::default() };
    config.limits.candle_series = 0;
    World::with(fake, shop, config, 1)
}

/// A shop whose tickers stand still.
fn frozen(listed: usize) -> Shop {
    let mut shop = Shop::new(listed);
    shop.frozen = Some(NOW);
    shop
}

/// The body of a quote without its times; `None`: it has not come.
fn timeless(world: &mut World, symbol: &str) -> Option<String> {
    let key = world.ask(&format!("/api/v1/quotes/{symbol}"));
    let (status, body) = world.answer(key).expect("it is answered at once");
    let is_time =
        |it: &&str| ["timestamp", "receivedAt", "datetime"].iter().any(|name| it.contains(name));
    let lines = body.split(',').filter(|it| !is_time(it));
    (status == 200).then(|| lines.collect::<Vec<_>>().join(","))
}

/// The quotes of some markets where the tickers of all are read. `None`: there is no such call.
fn quotes_by_all(fake: &'static Fake, listed: usize) -> Option<Vec<String>> {
    let dialect = Dialect::by_name(fake.name).expect("it is built in");
    dialect.ways().iter().find(|way| way.markets.is_none())?;
    let mut world = world_of(fake, frozen(listed), source_of(fake, Vec::new()));
    world.run_to(FROM_US);
    let plan =
        world.get("/api/v1/metrics")["upstreams"].items()[0]["plan"].text().map(str::to_owned);
    assert_eq!(plan.as_deref(), Some("all"));
    let symbols: Vec<String> = world.shop.markets().iter().map(|it| it.symbol()).collect();
    let quotes = symbols.iter().take(1000).map(|it| timeless(&mut world, it).expect("a quote"));
    Some(quotes.collect())
}

/// Polls this many of the listed markets, and compares what that takes with the least, and their quotes with
/// those that are read together with all others.
fn check(fake: &'static Fake, listed: usize, count: usize, by_all: Option<&[String]>) {
    let shop = frozen(listed);
    let possible = possible(fake, &shop, count);
    let least = possible.iter().map(|it| it.bytes).min().expect("it has calls");
    let near = possible.iter().filter(|it| it.bytes * 10 <= least * 13);
    let units = near.map(|it| it.units).min().expect("one is the least");

    let symbols: Vec<_> = shop.markets().iter().take(count).map(|it| it.symbol()).collect();
    let mut world = world_of(fake, shop, source_of(fake, symbols.clone()));
    world.run_to(FROM_US);
    let before = world.asked.len();
    world.run_to(TO_US);
    assert!(world.ledger.broken.is_empty(), "{:?}", world.ledger.broken);
    let polls = (TO_US - FROM_US) / 1000 / POLL_MS;
    let seen = world.asked[before..].iter().zip(&world.costs[before..]);
    let is_quotes =
        |target: &str| ["ticker", "Ticker", "merged"].iter().any(|it| target.contains(it));
    let costs = seen.filter(|((_, target), _)| is_quotes(target)).map(|(_, cost)| *cost);
    let (mut bytes, mut spent) = (0, 0);
    costs.for_each(|(size, units)| (bytes, spent) = (bytes + size, spent + u64::from(units)));
    let (bytes, spent) = (bytes / polls, spent / polls);
    println!(
        "{:<10} {count:>4} of {listed}: {bytes:>8} bytes, {spent:>4} units a poll; the least {least:>8}, {units:>4}",
        fake.name
    );
    assert!(bytes * 10 <= least * 13, "{}: {count} markets: {bytes} bytes, not {least}", fake.name);
    assert!(spent * 10 <= units * 13, "{}: {count} markets: {spent} units, not {units}", fake.name);
    assert!(bytes > 0, "it polls");
    let Some(by_all) = by_all else {
        // Each market is asked for, and a round of many takes longer than this.
        assert!(timeless(&mut world, &symbols[0]).is_some(), "{}", fake.name);
        return;
    };
    for (symbol, expected) in symbols.iter().zip(by_all) {
        assert_eq!(timeless(&mut world, symbol).as_ref(), Some(expected), "{}", fake.name);
    }
    let quote = world.get(&format!("/api/v1/quotes/{}", symbols[0]));
    let silent: Vec<&str> = fake.sends.split(' ').filter(|field| quote[*field].is_null()).collect();
    assert!(silent.is_empty(), "{}: {silent:?}", fake.name);
}

/// The table of the manual: `cargo test --test daemon fakes::plans::no_more -- --nocapture`.
#[test]
fn no_more_is_read_than_any_number_of_markets_needs() {
    for fake in FAKES {
        let by_all = quotes_by_all(fake, LISTED);
        for count in [1, 2, 20, 100, 1000] {
            check(fake, LISTED, count, by_all.as_deref());
        }
    }
}

#[test]
fn no_more_is_read_than_a_few_of_a_few_markets_need() {
    for fake in FAKES {
        let by_all = quotes_by_all(fake, 300);
        for count in [1, 2, 20] {
            check(fake, 300, count, by_all.as_deref());
        }
    }
}

/// As often as half of the budget permits, and ten times a second at most.
#[test]
fn quotes_are_polled_as_often_as_half_of_the_budget_permits() {
    for fake in FAKES {
        for count in [1, 40] {
            let shop = Shop::new(300);
            let symbols = shop.markets().iter().take(count).map(|it| it.symbol()).collect();
            let source = SourceConfig { poll: Poll::Auto, ..source_of(fake, symbols) };
            let mut world = world_of(fake, shop, source);
            let spent = |world: &mut World| {
                let metrics = world.get("/api/v1/metrics");
                metrics["upstreams"].items()[0]["budgetSpent"].integer().expect("a count")
            };
            world.run_to(FROM_US);
            let (before, units) = (world.asked.len(), spent(&mut world));
            let span = Duration::from_secs(40);
            world.run_to(FROM_US + span.as_micros() as u64);
            assert!(world.ledger.broken.is_empty(), "{:?}", world.ledger.broken);
            let (requests, units) = (world.asked.len() - before, spent(&mut world) - units);
            let limit = Dialect::by_name(fake.name).expect("it is built in").budget();
            let share = units as f64 * limit.per.as_secs_f64() / span.as_secs_f64();
            let share = share / f64::from(limit.units);
            println!("{:<10} {count:>3}: {requests} requests, {share:.2} of the budget", fake.name);
            // Figures of the day, where they have a call of their own, come beside.
            assert!(share < 0.62, "{}: {share}", fake.name);
            assert!(share > 0.42 || requests >= 300, "{}: {share}, {requests}", fake.name);
        }
    }
}

/// A market that the exchange knows no more spoils no quote of the others in its request.
#[test]
fn a_market_that_is_gone_costs_the_others_nothing() {
    let mut shop = Shop::new(300);
    let markets: Vec<_> = shop.markets().iter().take(45).cloned().collect();
    shop.gone.insert((binance::FAKE.id)(&markets[27].base, markets[27].quote));
    let source = SourceConfig {
        symbols: markets.iter().map(|it| it.symbol()).collect(),
        poll: Poll::Every(Duration::from_millis(POLL_MS)),
        ..SourceConfig::new("binance")
    };
    let mut world = World::of(&binance::FAKE, shop, vec![source], 1);
    world.run_to(30_000_000);
    for (at, market) in markets.iter().enumerate() {
        let key = world.ask(&format!("/api/v1/quotes/{}", market.symbol()));
        let (status, body) = world.answer(key).expect("it is answered at once");
        assert_eq!(status == 200, at != 27, "{at}: {body}");
        assert!(!body.contains(r#""stale":true"#), "{body}");
    }
    // Once it is known, it is left alone longer and longer.
    let before = world.asked.len();
    world.run_to(60_000_000);
    let refused = world.asked[before..].iter().filter(|(_, it)| it.contains("24hr"));
    assert!(refused.count() <= 15 * 3 + 20, "{:?}", &world.asked[before..]);
}

/// Whoever names a few markets reads no list of thousands, unless the exchange refuses it for one of them.
#[test]
fn a_list_is_read_for_the_named_markets_alone() {
    let listed = |more: &[&str], until_us: u64| {
        let shop = Shop::new(LISTED);
        let mut symbols: Vec<_> = shop.markets().iter().take(2).map(|it| it.symbol()).collect();
        symbols.extend(more.iter().map(|it| it.to_string()));
        let poll = Poll::Every(Duration::from_millis(POLL_MS));
        let source = SourceConfig { symbols, poll, ..SourceConfig::new("binance") };
        let known = source.symbols[0].clone();
        let mut world = World::of(&binance::FAKE, shop, vec![source], 1);
        world.run_to(until_us);
        assert!(world.ledger.broken.is_empty(), "{:?}", world.ledger.broken);
        assert!(!world.get(&format!("/api/v1/quotes/{known}"))["last"].is_null());
        for unknown in more.iter().chain(&["FOO/BAR"]) {
            let key = world.ask(&format!("/api/v1/quotes/{unknown}"));
            assert_eq!(world.answer(key).map(|it| it.0), Some(404), "{unknown}");
        }
        let metrics = world.get("/api/v1/metrics");
        assert_eq!(metrics["upstreams"].items()[0]["plan"].text(), Some("several"));
        let seen = world.asked.iter().zip(&world.costs);
        let lists = seen.filter(|((_, target), _)| target.contains("exchangeInfo"));
        let lists = lists.map(|((_, it), (bytes, _))| (it.contains("symbols="), *bytes));
        lists.collect::<Vec<_>>()
    };
    let hours = 7_500_000_000;
    let of_named = listed(&[], hours);
    assert_eq!(of_named.len(), 3, "{of_named:?}");
    assert!(of_named.iter().all(|(is_named, bytes)| *is_named && *bytes < 2_000), "{of_named:?}");
    let refused = listed(&["NO/SUCH"], hours);
    let is_named: Vec<bool> = refused.iter().map(|it| it.0).collect();
    assert_eq!(is_named, [true, false, false, false], "{refused:?}");
}
