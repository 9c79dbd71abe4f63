//! Plans: a source reads no more bytes than its markets need, by the fewest units, from any of the exchanges.

use crate::fakes::places::Fake;
use crate::fakes::shop::*;
use crate::fakes::virtual_time::World;
use crate::fakes::{fake, fakes};
use crate::support::*;
use marketd::config::{Config, Data, Poll, SourceConfig};
use marketd::exchange::{Call, Dialect};
use std::collections::HashMap;
use std::time::Duration;

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
    let ids: Vec<String> = markets.map(|it| fake.id(&it.base, it.quote)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut all = Vec::new();
    for way in dialect.ways() {
        let parts: Vec<&[&str]> = match way.markets {
            None => vec![&[]],
            Some(most) => ids.chunks(most).collect(),
        };
        let (mut poll, mut cost) = (Cost { bytes: 0, units: 0 }, 0);
        for part in parts {
            let call = way.markets.map_or(Call::Tickers, |_| dialect.tickers_of(part));
            let asked = Asked::of(&dialect.target(&call, None));
            let (reply, charge) = (fake.answer(shop, &asked), fake.charge(&asked));
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
fn world_of(fake: &'static Fake, shop: Shop, source: SourceConfig) -> World {
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
    let answer = world.at_once(&format!("/api/v1/quotes/{symbol}"));
    let is_time =
        |it: &&str| ["timestamp", "receivedAt", "datetime"].iter().any(|name| it.contains(name));
    let lines = answer.text().split(',').filter(|it| !is_time(it));
    (answer.status == 200).then(|| lines.collect::<Vec<_>>().join(","))
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
    for fake in fakes() {
        for (listed, counts) in [(LISTED, &[1, 2, 20, 100, 1000][..]), (300, &[1, 2, 20])] {
            let by_all = quotes_by_all(fake, listed);
            counts.iter().for_each(|count| check(fake, listed, *count, by_all.as_deref()));
        }
    }
}

/// As often as half of the budget permits, and ten times a second at most.
#[test]
fn quotes_are_polled_as_often_as_half_of_the_budget_permits() {
    for fake in fakes() {
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
    shop.gone.insert(fake("binance").id(&markets[27].base, markets[27].quote));
    let source = SourceConfig {
        symbols: markets.iter().map(|it| it.symbol()).collect(),
        poll: Poll::Every(Duration::from_millis(POLL_MS)),
        ..SourceConfig::new("binance")
    };
    let mut world = World::of(fake("binance"), shop, vec![source], 1);
    world.run_to(30_000_000);
    for (at, market) in markets.iter().enumerate() {
        let answer = world.at_once(&format!("/api/v1/quotes/{}", market.symbol()));
        let body = answer.text();
        assert_eq!(answer.status == 200, at != 27, "{at}: {body}");
        assert!(!body.contains(r#""stale":true"#), "{body}");
    }
    // Once it is known, it is left alone longer and longer.
    let before = world.asked.len();
    world.run_to(60_000_000);
    let refused = world.asked[before..].iter().filter(|(_, it)| it.contains("24hr"));
    assert!(refused.count() <= 15 * 3 + 20, "{:?}", &world.asked[before..]);
}

/// The requests for lists so far: of which markets (empty: of all), and the bytes of the response.
fn lists(world: &World, symbols: &[String]) -> Vec<(Vec<String>, u64)> {
    let dialect = Dialect::by_name(world.fake.name).expect("it is built in");
    let subsets = (1..1_usize << symbols.len()).map(|set| {
        let chosen = (0..symbols.len()).filter(|at| set >> at & 1 == 1);
        chosen.map(|at| symbols[at].clone()).collect::<Vec<String>>()
    });
    let mut targets = HashMap::new();
    for names in subsets {
        let ids = dialect.list_ids(&names).expect("they can be named");
        // Of several requests, this is the first.
        targets.entry(dialect.target(&Call::MarketsOf { ids: &ids }, None)).or_insert(names);
    }
    targets.insert(dialect.target(&Call::Markets { named: &[] }, None), Vec::new());
    let seen = world.asked.iter().zip(&world.costs);
    let found =
        seen.filter_map(|((_, target), (bytes, _))| Some((targets.get(target)?.clone(), *bytes)));
    found.collect()
}

/// The same without their bytes.
fn names_of_lists(world: &World, symbols: &[String]) -> Vec<Vec<String>> {
    lists(world, symbols).into_iter().map(|it| it.0).collect()
}

/// Those fakes whose list can be requested for some markets, and how many of three a request takes.
fn named_fakes() -> impl Iterator<Item = (&'static Fake, usize)> {
    fakes().iter().filter_map(|fake| {
        let dialect = Dialect::by_name(fake.name).expect("it is built in");
        let ids = dialect.list_ids(&["A/B", "C/D", "E/F"].map(String::from))?;
        let target = dialect.target(&Call::MarketsOf { ids: &ids }, None);
        Some((fake, ids.iter().filter(|id| target.contains(*id)).count()))
    })
}

/// The first three markets.
fn three() -> Vec<String> {
    Shop::new(3).markets().iter().map(|it| it.symbol()).collect()
}

/// A source of these markets that polls once a minute, beside 600 listed ones.
fn slow_world(fake: &'static Fake, symbols: &[String]) -> World {
    let minute = Duration::from_secs(60);
    let source = SourceConfig {
        poll: Poll::Every(minute),
        stale_after: 3 * minute,
        ..source_of(fake, symbols.to_vec())
    };
    world_of(fake, Shop::new(600), source)
}

const HOUR_US: u64 = 3_600_000_000;

/// A little after so many hours, when the list of that hour has come.
fn hours(count: u64) -> u64 {
    count * HOUR_US + 300_000_000
}

fn has_quote(world: &mut World, symbol: &str) -> bool {
    timeless(world, symbol).is_some_and(|it| it.contains(r#""stale":false"#))
}

/// Whoever names a few markets reads no list of thousands.
#[test]
fn a_list_is_read_for_the_named_markets_alone() {
    let (symbols, mut takes) = (three(), Vec::new());
    for (fake, most) in named_fakes() {
        let mut world = slow_world(fake, &symbols);
        world.run_to(hours(2));
        assert!(world.ledger.broken.is_empty(), "{:?}", world.ledger.broken);
        for symbol in &symbols {
            assert!(has_quote(&mut world, symbol), "{symbol} of {}", fake.name);
        }
        assert!(!has_quote(&mut world, "FOO/BAR"));
        let lists = lists(&world, &symbols);
        let parts: Vec<_> = symbols.chunks(most).map(<[String]>::to_vec).collect();
        let names: Vec<_> = lists.iter().map(|it| it.0.clone()).collect();
        assert_eq!(names, vec![parts; 3].concat(), "{}", fake.name);
        assert!(lists.iter().all(|it| it.1 < 2_500), "{}: {lists:?}", fake.name);
        let metrics = world.get("/api/v1/metrics");
        assert_eq!(metrics["upstreams"].items()[0]["errors"].integer(), Some(0), "{}", fake.name);
        takes.push((fake.name, most));
    }
    let several = ["binance", "kraken", "binanceus", "mexc"].map(|name| (name, 3));
    let one = ["okx", "bybit", "coinbase", "kucoin", "gate", "bitget"].map(|name| (name, 1));
    let mut expected = [&several[..], &one[..]].concat();
    expected.sort_unstable();
    takes.sort_unstable();
    assert_eq!(takes, expected);
}

/// One name that the exchange does not know costs a list of all once, and a refused request an hour. Without a name
/// that is known, the list of all is read each hour.
#[test]
fn a_name_that_is_unknown_is_left_out_of_the_list() {
    let all = three();
    for ((fake, most), known) in named_fakes().flat_map(|it| [(it, &all[..2]), (it, &all[..0])]) {
        let symbols = [&["NO/SUCH".to_owned()], known].concat();
        let mut world = slow_world(fake, &symbols);
        world.run_to(hours(2));
        for symbol in &symbols {
            assert_eq!(has_quote(&mut world, symbol), known.contains(symbol), "{symbol}");
        }
        let parts = |it: &[String]| it.chunks(most).map(<[String]>::to_vec).collect::<Vec<_>>();
        let (refused, whole) = (vec![parts(&symbols)[0].clone()], vec![Vec::new()]);
        let expected = match (fake.name, known) {
            (_, []) => vec![[refused, whole].concat(); 3].concat(),
            // It leaves out what it does not know.
            ("bybit", _) => vec![parts(&symbols); 3].concat(),
            _ => {
                let hour = [refused.clone(), parts(known)].concat();
                [refused, whole, vec![hour; 2].concat()].concat()
            }
        };
        assert_eq!(names_of_lists(&world, &symbols), expected, "{}", fake.name);
    }
}

/// A market that leaves the list is noticed within the hour, and so is one that comes.
#[test]
fn a_named_market_that_leaves_its_list_and_comes_back_is_noticed() {
    let symbols = three();
    let (first, others) = (&symbols[0], &symbols[1..]);
    for (fake, most) in named_fakes() {
        let mut world = slow_world(fake, &symbols);
        world.run_to(HOUR_US / 2);
        assert!(has_quote(&mut world, first));
        world.shop.delisted.insert(first.clone());
        world.run_to(hours(1));
        assert!(!has_quote(&mut world, first), "{}", fake.name);
        world.run_to(hours(2));
        for other in others {
            assert!(has_quote(&mut world, other), "{other} of {}", fake.name);
        }
        world.shop.delisted.clear();
        world.run_to(hours(3));
        assert!(symbols.iter().all(|it| has_quote(&mut world, it)), "{}", fake.name);
        let parts = |it: &[String]| it.chunks(most).map(<[String]>::to_vec).collect::<Vec<_>>();
        let all = parts(&symbols);
        let refused = vec![all[0].clone()];
        let whole = [refused.clone(), vec![Vec::new()]].concat();
        // That it is gone is believed when a second list has told it.
        let expected = match fake.name {
            // It leaves out what it does not know.
            "bybit" => vec![all; 5].concat(),
            _ => [all.clone(), vec![whole; 2].concat(), refused, parts(others), all].concat(),
        };
        assert_eq!(names_of_lists(&world, &symbols), expected, "{}", fake.name);
    }
}
