//! The exchange's clock, by witnesses that err, lie, fail or take long.

use crate::claims::world::*;

/// Milliseconds of some ten years.
const TEN_YEARS: i64 = 10 * 365 * 24 * HOUR;

/// The newest hundred minutes are all known, and none was requested again since `pages` was called.
#[track_caller]
fn check_untouched(world: &mut World, what: &str) {
    let last = world.current() - 1;
    let chart = world.whole(last - 90, last);
    assert_eq!((chart.rows.len(), chart.gaps()), (91, "0"), "{what}");
}

/// What `/health` says of the clock, if something.
fn doubt(world: &mut World) -> Option<String> {
    let body = world.get("/health");
    let at = body.find("source_clock_in_doubt")?;
    Some(body[at..].to_string())
}

/// A settled world, by hand: a source with this depth that has run for some minutes.
fn settled(has_date: bool) -> World {
    let mut world = World::new(100);
    world.exchange.has_date = has_date;
    world.settled()
}

/// What a time call may say once: zero, seconds in place of milliseconds, ten years ahead, an hour behind.
fn lies(now: i64) -> [i64; 4] {
    [0, now / 1000, now + TEN_YEARS, now - HOUR]
}

#[test]
fn one_wrong_reading_moves_nothing_whatever_else_the_exchange_tells() {
    for (has_date, has_stamps) in [(true, true), (true, false), (false, true), (false, false)] {
        for at in 0..4 {
            let mut world = settled(has_date);
            if !has_stamps {
                world.exchange.stamped = Some(None);
                world.run(10);
            }
            world.pages();
            // The hourly reading lies, and the next one does not.
            let times = world.exchange.times;
            world.exchange.time_said = Some(lies(world.time() + HOUR)[at]);
            let limit = world.time() + 2 * HOUR;
            while world.exchange.times == times && world.time() < limit {
                world.run(1);
            }
            assert_eq!(world.exchange.times, times + 1);
            world.exchange.time_said = None;
            let what = format!("lie {at}, date {has_date}, stamps {has_stamps}");
            let chart = world.chart("&limit=90");
            assert_eq!(chart.rows.len(), 90, "{what}: nothing is hidden");
            world.run(20);
            check_untouched(&mut world, &what);
            assert_eq!(doubt(&mut world), None, "{what}");
            let old = world.current() - 70;
            let again = world.pages().into_iter().filter(|(first, _)| *first < old);
            assert_eq!(again.collect::<Vec<_>>(), [], "{what}: requested again");
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_wrong_first_reading_takes_nothing_from_the_file() {
    for (has_date, at) in [(true, 0), (true, 1), (true, 2), (false, 0), (false, 1), (false, 2)] {
        let mut world = World::with_file(100);
        world.exchange.has_date = has_date;
        world.run(200);
        world.run_to_second(10);
        let last = world.current() - 5;
        let before = world.whole(last - 80, last);
        world.exchange.time_said = Some(lies(world.time())[at]);
        world.exchange.is_failing = true;
        world.restart(0);
        // Longer than from one sweep for old candles to the next.
        world.run(90);
        world.exchange.time_said = None;
        let what = format!("lie {at}, date {has_date}");
        world.run(90);
        let after = world.whole(last - 80, last);
        assert_eq!(after.body, before.body, "{what}");
        world.restart(0);
        world.run(10);
        let after = world.minutes(last - 80, last);
        assert_eq!(after.body, before.body, "{what}: in the file");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn what_a_clock_that_was_ahead_has_stored_is_read_again_after_a_restart() {
    for slow_ms in [0, 3000] {
        let mut world = World::with_file(100);
        world.run(200);
        world.exchange.clock_ahead = 10 * MINUTE;
        world.run(90);
        world.exchange.clock_ahead = 0;
        world.run(4);
        world.restart_on_slow_disk(slow_ms);
        world.run(10);
        world.pages();
        let minute = world.current();
        world.run(150);
        let asked = world.pages();
        let is_read_later = |(from, to): &(i64, i64)| *from <= minute && minute < *to;
        assert!(asked.iter().any(is_read_later), "{minute} of {asked:?} after {slow_ms} ms");
    }
}

/// A world in which these witnesses err by so much.
type Erring = (&'static str, fn(&mut World, i64), &'static [i64]);

#[test]
fn a_witness_that_errs_is_not_heard_or_outvoted() {
    let whole: [Erring; 4] = [
        (
            "there is no time call, and a date",
            |world, _| {
                world.exchange.has_date = true;
                world.exchange.is_timeless = true;
                world.exchange.stamped = Some(None);
            },
            &[0],
        ),
        ("the time call takes three seconds", |world, _| world.exchange.time_takes_ms = 3000, &[0]),
        (
            "the time call takes three seconds, and there is a date",
            |world, _| {
                world.exchange.has_date = true;
                world.exchange.time_takes_ms = 3000;
            },
            &[0],
        ),
        (
            "the last trade was some time ago",
            |world, ago| {
                world.exchange.stamped = Some(Some(world.time() - ago));
            },
            &[10 * MINUTE],
        ),
    ];
    let one_by_one: [Erring; 2] = [
        (
            "the date is wrong",
            |world, ahead| {
                world.exchange.has_date = true;
                world.exchange.date_ahead = ahead;
                world.wall_ahead = 8000;
            },
            &[9 * MINUTE, -9 * MINUTE],
        ),
        (
            "there is no time call, and this machine is wrong",
            |world, ahead| {
                world.exchange.is_timeless = true;
                world.wall_ahead = ahead;
            },
            &[8000, -8000, 90_000],
        ),
    ];
    whole.iter().for_each(|it| check_erring(World::new, it));
    one_by_one.iter().for_each(|it| check_erring(World::market_by_market, it));
}

fn check_erring(begin: fn(i64) -> World, (what, order, aheads): &Erring) {
    for ahead in *aheads {
        let what = format!("{what}: {ahead} ms");
        let mut world = begin(100);
        order(&mut world, *ahead);
        check_ends(&mut world, 200, &what);
        world.run_to_second(10);
        check_untouched(&mut world, &what);
        assert_eq!(doubt(&mut world), None, "{what}");
        let (old, times) = (world.current() - 20_000, world.exchange.times);
        world.minutes(old, old + 50);
        world.whole(old, old + 50);
        world.pages();
        world.run(3700);
        check_untouched(&mut world, &what);
        assert_eq!(doubt(&mut world), None, "{what}");
        let (pages, times) = (world.pages().len(), world.exchange.times - times);
        assert!(pages <= 64 && times <= 2, "{what}: {pages} pages, {times} times in an hour");
    }
}

#[test]
fn the_page_of_a_failing_front_tells_no_time() {
    let mut world = World::new(100);
    world.exchange.has_date = true;
    world.exchange.error_date_ahead = 20 * MINUTE;
    world.exchange.is_timeless = true;
    world.exchange.stamped = Some(None);
    world.run(10);
    for _ in 0..300 {
        world.run(1);
        assert_eq!(doubt(&mut world), None);
    }
    world.run_to_second(10);
    check_untouched(&mut world, "by the date of good responses");
}

#[test]
fn without_any_witness_but_this_machine_only_the_newest_end_is_in_doubt() {
    let mut world = World::new(100);
    world.exchange.is_timeless = true;
    world.exchange.stamped = Some(None);
    world.run(200);
    world.run_to_second(10);
    let old = world.current() - 20_000;
    world.minutes(old, old + 50);
    world.whole(old, old + 50);
    let newest = world.chart("&limit=50");
    assert!(!newest.is_complete(), "{newest:?}");
    let last = newest.rows.last().map_or(0, |row| row.0);
    assert!(newest.rows.len() == 50 && last >= world.current() - 7, "{newest:?}");
    let told = doubt(&mut world).expect("a reason");
    assert!(told.contains("binance") && told.contains("this machine"), "{told}");
}

#[test]
fn a_machine_and_an_exchange_that_disagree_are_settled_by_a_second_reading_a_minute_later() {
    let mut world = World::new(100);
    world.exchange.stamped = Some(None);
    world.wall_ahead = 3 * HOUR;
    world.run(30);
    assert!(!world.chart("&limit=50").is_complete());
    let told = doubt(&mut world).expect("a reason");
    assert!(told.contains("time call 2026-01-01T00:00"), "{told}");
    world.run(120);
    assert_eq!(doubt(&mut world), None);
    let chart = world.chart("&limit=50");
    assert!(chart.is_complete(), "{chart:?}");
    let times = world.exchange.times;
    assert!(times <= 6, "{times} requests for the time");
}

#[test]
fn a_ticker_of_the_year_2100_hides_no_jump() {
    let mut world = settled(true);
    world.exchange.stamped = Some(Some(4_102_444_800_000));
    world.run(600);
    check_untouched(&mut world, "2100");
    let times = world.exchange.times;
    world.run(1200);
    assert_eq!(world.exchange.times, times, "it is outvoted once");
    world.exchange.clock_ahead = 2 * HOUR;
    world.run(60);
    check_untouched(&mut world, "after the jump");
}

#[test]
fn a_clock_that_really_goes_back_deletes_nothing_and_reads_again_what_lies_ahead() {
    let mut world = settled(true);
    let current = world.current();
    world.exchange.clock_ahead = -30 * MINUTE;
    world.run(30);
    let chart = world.minutes(current - 90, current);
    assert!(chart.rows.iter().all(|row| row.0 <= world.current()), "{:?}", chart.rows);
    world.pages();
    world.run(31 * 60);
    let last = world.current() - 3;
    let chart = world.whole(last - 60, last);
    assert!(chart.rows.iter().all(|row| row.1 == 3), "{:?}", chart.rows);
}

/// Lets so many seconds pass, and checks each of them: nothing is called closed before its end.
#[track_caller]
fn check_ends(world: &mut World, seconds: u64, what: &str) {
    for _ in 0..seconds {
        world.run(1);
        let chart = world.chart("&limit=50");
        let ended = world.current() * MINUTE - MINUTE;
        let closed = chart.header("Chart-Last-Closed").parse::<i64>().unwrap_or(0);
        assert!(closed <= ended, "{what}: {closed} is called closed before {ended} is: {chart:?}");
        let last = chart.rows.last().map_or(0, |row| row.0 * MINUTE);
        assert!(!chart.is_complete() || last >= ended, "{what}: {ended} is missing: {chart:?}");
    }
}

#[test]
fn tickers_one_by_one_contradict_a_time_call_that_lies_from_the_begin() {
    for ahead in [TEN_YEARS, 9 * MINUTE, -9 * MINUTE] {
        let mut world = World::market_by_market(100);
        world.exchange.time_ahead = ahead;
        world.wall_ahead = 8000;
        let what = format!("{ahead} ms ahead");
        check_ends(&mut world, 300, &what);
        let told = doubt(&mut world).expect("a reason");
        assert!(told.contains("newest ticker"), "{what}: {told}");
        world.exchange.time_ahead = 0;
        world.run(200);
        world.run_to_second(10);
        check_untouched(&mut world, &what);
        assert_eq!(doubt(&mut world), None, "{what}");
    }
}

#[test]
fn a_date_that_lies_while_no_other_witness_is_heard_is_not_believed() {
    for ahead in [20 * MINUTE, -20 * MINUTE] {
        let mut world = settled(true);
        world.exchange.date_ahead = ahead;
        world.exchange.is_timeless = true;
        world.exchange.stamped = Some(None);
        world.run(200);
        let what = format!("{ahead} ms ahead");
        assert_eq!(world.chart("&limit=90").rows.len(), 90, "{what}: nothing is hidden");
        check_ends(&mut world, 60, &what);
    }
}

#[test]
fn a_time_call_that_lies_all_the_time_is_not_read_all_the_time() {
    let mut world = settled(true);
    world.exchange.time_said = Some(0);
    let times = world.exchange.times;
    world.run(7200);
    let asked = world.exchange.times - times;
    assert!(asked <= 4, "{asked} times in two hours");
    assert_eq!(doubt(&mut world), None);
    world.run_to_second(10);
    check_untouched(&mut world, "outvoted");
}
