//! Market lists that lack what is there, and markets that have left.

use crate::claims::world::*;

/// The number of symbols that are served.
fn served(world: &mut World) -> usize {
    let body = world.get("/api/v1/quotes?symbols=*");
    body.matches(r#""symbol":"#).count()
}

/// Lets time pass until the market list was read again, and some seconds more.
fn await_list(world: &mut World) {
    let (lists, limit) = (world.exchange.lists, world.time() + 2 * HOUR);
    while world.exchange.lists == lists {
        assert!(world.time() < limit, "the list is not read");
        world.run(1);
    }
    world.run(5);
}

#[test]
fn a_list_that_has_not_changed_is_not_sent_again() {
    let mut world = World::with_others(500);
    world.exchange.tag = Some(r#"W/"1""#);
    world.run(30);
    assert_eq!((served(&mut world), world.exchange.lists_sent), (501, 1));
    await_list(&mut world);
    assert_eq!((served(&mut world), world.exchange.lists_sent), (501, 1));
    let metrics = world.get("/api/v1/metrics");
    assert!(metrics.contains(r#""candles":0,"markets":0"#), "{metrics}");
    world.exchange.others = (490, 490);
    world.exchange.tag = Some(r#""2""#);
    await_list(&mut world);
    assert_eq!((served(&mut world), world.exchange.lists_sent), (491, 2));
    // A list that is doubted is read whole again, though its tag is known.
    world.exchange.others.0 = 5;
    world.exchange.tag = Some(r#""3""#);
    await_list(&mut world);
    await_list(&mut world);
    assert_eq!((served(&mut world), world.exchange.lists_sent), (6, 4));
}

/// The other markets of a list, those with a ticker then, and the symbols that are served after it.
type List = ((usize, usize), usize);

#[test]
fn markets_that_a_list_lacks_leave_at_once_if_they_are_few_and_have_no_ticker_and_else_with_the_next_list()
 {
    let cases: [(&str, &[List]); 3] = [
        ("one short list", &[((5, 500), 501), ((500, 500), 501)]),
        ("one market whose ticker comes", &[((499, 500), 501), ((499, 500), 500)]),
        ("a few, and many", &[((480, 480), 481), ((5, 5), 481), ((5, 5), 6)]),
    ];
    for (what, lists) in cases {
        let mut world = World::with_others(500);
        world.run(30);
        assert_eq!(served(&mut world), 501);
        let mut is_doubted = false;
        for (others, expected) in lists {
            world.exchange.others = *others;
            let begin = world.time();
            await_list(&mut world);
            // A list that is doubted is read again before an hour has passed.
            assert!(!is_doubted || world.time() - begin <= 70_000, "{what}");
            assert_eq!(served(&mut world), *expected, "{what}: {others:?}");
            is_doubted = *expected > 1 + others.0;
        }
        let lists = world.exchange.lists;
        world.run(600);
        assert_eq!(world.exchange.lists, lists, "{what}: hourly again");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_first_list_after_a_restart_that_lacks_some_is_read_again_before_it_removes_them() {
    // What the next list has, and what is served then.
    for ((first, next), expected) in [((5, 500), 501), ((480, 480), 481)] {
        let mut world = World::with_file(100);
        world.track_others(500);
        for slow_ms in [0, 3000] {
            world.exchange.others = (500, 500);
            world.restart(0);
            // Quotes are saved after five minutes.
            world.run(320);
            assert_eq!(served(&mut world), 501);
            world.exchange.others.0 = first;
            world.restart_on_slow_disk(slow_ms);
            world.run(20);
            assert_eq!(served(&mut world), 501, "{first}, {slow_ms} ms");
            // It is read again within a minute.
            world.exchange.others.0 = next;
            world.run(90);
            assert_eq!(served(&mut world), expected, "{first}, {slow_ms} ms");
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn what_is_stored_is_read_after_a_restart_also_of_a_market_that_is_not_listed_or_cannot_be_fetched()
{
    for is_delisted in [true, false] {
        let mut world = World::with_file(100);
        world.run(300);
        world.run_to_second(10);
        let last = world.current() - 1;
        let before = world.whole(last - 50, last);
        world.run(5);
        (world.exchange.is_delisted, world.exchange.is_failing) = (is_delisted, !is_delisted);
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
