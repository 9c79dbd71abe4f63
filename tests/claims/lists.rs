//! Market lists that lack what is there, and markets that have left.

use crate::claims::world::*;
use crate::sim::truth::{ListChange, Trading};
use crate::support::Json;
use std::time::Duration;

/// A daemon that tracks all of these markets, the first two by name.
fn world_of(count: usize, alter: impl FnOnce(&mut Config)) -> World {
    World::at((true, BEGIN_MS - 3 * HOUR_MS), 10, vec![Trading::Always; count], |config| {
        let source = &mut config.sources[0];
        // Hours of many quotes take long.
        source.poll = marketd::config::Poll::Every(Duration::from_secs(20));
        source.stale_after = Duration::from_secs(60);
        alter(config);
    })
}

/// The number of symbols that are served.
fn served(world: &mut World) -> usize {
    world.get("/api/v1/quotes?symbols=*")["quotes"].items().len()
}

/// The exchange has only so many markets left.
fn leave(world: &mut World, left: usize) {
    let now = world.clock();
    let host = &mut world.hosts[0];
    let there = host.truth.list(now).into_iter().map(|(market, _)| market);
    there.filter(|it| *it >= left).for_each(|market| host.remove(market, now));
}

/// The exchange halts its markets from this one on, or trades them again.
fn trade(world: &mut World, first: usize, active: bool) {
    let at_ms = world.clock();
    let host = &mut world.hosts[0];
    let change =
        |market| ListChange { at_ms, market, active: Some(active), lingers: true, least: 1 };
    host.truth.changes.extend((first..host.count()).map(change));
}

/// The number of markets that are known, and how many of them are active.
fn known(world: &mut World) -> (usize, usize) {
    let body = world.get("/api/v1/categories/usdt/markets");
    let markets = body["markets"].items();
    let is_active = |it: &&Json| it["active"].bool() == Some(true);
    (markets.len(), markets.iter().filter(is_active).count())
}

/// The list has only so many markets, and tickers have all.
fn short(left: usize) -> Ill {
    Ill::ListShort { left, once: false }
}

/// Lets time pass until the market list was read again, and some seconds more.
fn await_list(world: &mut World) {
    let (lists, limit) = (world.count(Kind::List), world.us + 7200 * SECOND);
    while world.count(Kind::List) == lists {
        assert!(world.us < limit, "the list is not read");
        world.run(1);
    }
    world.run(5);
}

#[test]
fn a_list_that_has_not_changed_is_not_sent_again() {
    let mut world = world_of(501, |_| {});
    let told = |world: &mut World| (served(world), world.hosts[0].lists_sent);
    world.hosts[0].tag = Some(r#"W/"1""#);
    world.run(30);
    assert_eq!(told(&mut world), (501, 1));
    await_list(&mut world);
    assert_eq!(told(&mut world), (501, 1));
    let failing = &world.get("/api/v1/metrics")["upstreams"][0]["failing"];
    assert_eq!(failing["markets"].integer(), Some(0), "{failing}");
    leave(&mut world, 491);
    world.hosts[0].tag = Some(r#""2""#);
    await_list(&mut world);
    assert_eq!(told(&mut world), (491, 2));
    // A list that is doubted is read whole again, though its tag is known.
    world.begins(short(6));
    world.hosts[0].tag = Some(r#""3""#);
    await_list(&mut world);
    await_list(&mut world);
    assert_eq!(told(&mut world), (6, 4));
}

/// What happens before a list is read, and the symbols that are served after it.
type List<'a> = (&'a dyn Fn(&mut World), usize);

#[test]
fn markets_that_a_list_lacks_leave_at_once_if_they_are_few_and_have_no_ticker_and_else_with_the_next_list()
 {
    let is_short = |left: usize| move |world: &mut World| world.begins(short(left));
    let leaves = |left: usize| move |world: &mut World| leave(world, left);
    let cases: [(&str, &[List]); 3] = [
        ("one short list", &[(&is_short(6), 501), (&World::ends, 501)]),
        ("one market whose ticker comes", &[(&is_short(500), 501), (&|_| {}, 500)]),
        ("a few, and many", &[(&leaves(481), 481), (&leaves(6), 481), (&|_| {}, 6)]),
    ];
    for (what, lists) in cases {
        let mut world = world_of(501, |_| {});
        world.run(30);
        assert_eq!(served(&mut world), 501);
        for (at, (happens, expected)) in lists.iter().enumerate() {
            happens(&mut world);
            let begin = world.us;
            await_list(&mut world);
            // A list that is doubted is read again before an hour has passed.
            let is_again = at + 1 == lists.len();
            assert!(!is_again || world.us - begin <= 70 * SECOND, "{what}");
            assert_eq!(served(&mut world), *expected, "{what}: {at}");
        }
        let lists = world.count(Kind::List);
        world.run(600);
        assert_eq!(world.count(Kind::List), lists, "{what}: hourly again");
    }
}

#[test]
fn a_first_list_after_a_restart_that_lacks_some_is_read_again_before_it_removes_them() {
    // Whether the markets have left, and what is served in the end.
    for (have_left, expected) in [(false, 501), (true, 481)] {
        for slow_ms in [0, 3000] {
            let mut world = world_of(501, keep_file);
            // Quotes are saved after five minutes.
            world.run(320);
            match have_left {
                true => leave(&mut world, 481),
                false => world.begins(short(6)),
            }
            world.restart_on_slow_disk(slow_ms);
            world.run(20);
            assert_eq!(served(&mut world), 501, "{expected}, {slow_ms} ms");
            // It is read again within a minute.
            world.ends();
            world.run(90);
            assert_eq!(served(&mut world), expected, "{slow_ms} ms");
        }
    }
}

#[test]
fn what_is_stored_is_read_after_a_restart_also_of_a_market_that_is_not_listed_or_cannot_be_fetched()
{
    for is_delisted in [true, false] {
        let mut world = World::with_file(100);
        world.run(300);
        world.run_to_second(10);
        let last = world.current() - 1;
        let before = world.minutes(last - 50, last);
        world.run(5);
        match is_delisted {
            true => leave(&mut world, 0),
            false => world.begins(NO_CANDLES),
        }
        world.restart(0);
        world.run(10);
        let after = world.minutes(last - 50, last);
        assert_eq!(after.body, before.body);
        assert!(after.is_complete() || !is_delisted, "{after:?}");
        // Nor is a market that is not listed asked for with each look.
        world.pages();
        world.run(60);
        assert!(world.pages().is_empty() || !is_delisted);
    }
}

#[test]
fn halted_markets_stay_known_and_are_active_again_soon_after_all_were_halted() {
    // How often the list is read while all markets are halted: more and more seldom.
    for (hours, lists) in [(0, 14..25), (2, 30..50), (15, 50..75)] {
        let mut world = world_of(21, keep_file);
        world.run(30);
        assert_eq!(known(&mut world), (21, 21));
        trade(&mut world, 20, false);
        await_list(&mut world);
        assert_eq!(known(&mut world), (21, 20));
        let before = world.count(Kind::List);
        world.run(3500);
        assert_eq!(world.count(Kind::List), before, "one market alone costs nothing");
        trade(&mut world, 0, false);
        await_list(&mut world);
        world.run(1200 + hours * 3600);
        assert_eq!(known(&mut world), (21, 0));
        let read = world.count(Kind::List) - before;
        assert!(lists.contains(&read), "{read} lists in {hours} hours");
        world.restart(0);
        world.run(30);
        assert_eq!((served(&mut world), known(&mut world)), (21, (21, 0)), "{hours} hours");
        trade(&mut world, 10, true);
        world.run(90);
        assert_eq!(known(&mut world), (21, 11), "{hours} hours");
        trade(&mut world, 0, true);
        await_list(&mut world);
        assert_eq!(known(&mut world), (21, 21), "{hours} hours");
    }
}
