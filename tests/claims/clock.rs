//! The exchange's clock, by witnesses that err, lie, fail or take long.

use crate::claims::world::*;

/// Milliseconds of some ten years.
const TEN_YEARS: i64 = 3650 * DAY_MS;

/// 2100-01-01.
const YEAR_2100: i64 = 4_102_444_800_000;

/// There is no time call, whatever else there is.
const NO_CALL: Ill = Ill::ClockMissing { date: true };

/// The newest hundred minutes are all known.
#[track_caller]
fn check_untouched(world: &mut World, what: &str) {
    let last = world.current() - 1;
    let chart = world.minutes(last - 90, last);
    assert!(chart.is_complete() && chart.rows.len() == 91, "{what}: {chart:?}");
}

/// What `/health` says of the clock, if something.
fn doubt(world: &mut World) -> Option<String> {
    let health = world.get("/health");
    let mut reasons = health["reasons"].items().iter();
    let found = reasons.find(|it| it["code"] == "source_clock_in_doubt");
    found.map(ToString::to_string)
}

/// A settled world whose exchange dates its answers, or does not.
fn settled(has_date: bool) -> World {
    let mut world = World::well(100);
    world.hosts[0].has_date = has_date;
    world.settled()
}

#[test]
fn a_clock_that_jumps_or_is_set_is_noticed_and_moves_no_candle() {
    let (forward, back) = (2 * HOUR_MS, -2 * HOUR_MS);
    let (ahead, behind) = (3 * HOUR_MS, -3 * HOUR_MS);
    for (jump, set) in [(forward, 0), (back, 0), (back, ahead), (0, ahead), (0, behind)] {
        let what = format!("the exchange's by {jump}, this machine's by {set}");
        let mut world = settled(false);
        let old = world.current();
        world.wall_ahead += set;
        world.run(1);
        world.jumps(jump);
        world.run(4);
        if jump > 0 {
            // No quote went into a past slot.
            world.minutes(old - 5, old);
        }
        world.run(26);
        let chart = world.newest(50);
        let current = world.current();
        assert!(chart.rows.iter().all(|row| row.0 / MINUTE_MS <= current), "{what}: {chart:?}");
        world.run(100);
        let (chart, last) = (world.newest(50), world.current() - 1);
        assert!(chart.is_complete() && chart.slots().contains(&last), "{what}: {chart:?}");
        assert_eq!(world.get("/api/v1/quotes/M00USDT")["stale"].bool(), Some(false), "{what}");
        world.whole(current - 43, current - 3);
        let times = world.count(Kind::Clock);
        let most = if jump > 0 { 3 } else { 5 };
        assert!(times <= most, "{what}: {times} requests for the time");
    }
}

#[test]
fn a_jump_is_noticed_by_the_date_of_an_answer() {
    let mut world = settled(true);
    world.begins(Ill::TickersUndated);
    world.run(3700);
    let times = world.count(Kind::Clock);
    world.run(10);
    assert_eq!(world.count(Kind::Clock), times, "nothing has moved");
    world.jumps(2 * HOUR_MS);
    world.run(30);
    assert!(world.count(Kind::Clock) > times);
}

#[test]
fn quotes_with_odd_times_hide_no_jump_and_cost_one_request_in_ten_minutes() {
    let mut world = World::well(100);
    world.begins(Ill::TickersDated { off_ms: HOUR_MS, all: true });
    world.run(200);
    world.run_to_second(10);
    assert!(world.newest(50).is_complete());
    let times = world.count(Kind::Clock);
    world.run(540);
    assert!(world.count(Kind::Clock) <= times + 1, "{}", world.count(Kind::Clock));
    world.jumps(2 * HOUR_MS);
    world.run(20);
    assert!(!world.newest(50).is_complete(), "one witness alone moves no clock");
    world.run(80);
    let (chart, last) = (world.newest(50), world.current() - 1);
    assert!(chart.slots().contains(&last), "{chart:?}");
}

#[test]
fn one_wrong_reading_moves_nothing_whatever_else_the_exchange_tells() {
    for (has_date, has_stamps) in [(true, true), (true, false), (false, true), (false, false)] {
        for lie in [Lie::Zero, Lie::SecondsForMs, Lie::Off(TEN_YEARS), Lie::Off(-HOUR_MS)] {
            let mut world = settled(has_date);
            if !has_stamps {
                world.begins(Ill::TickersUndated);
                world.run(10);
            }
            world.pages();
            // The hourly reading lies, and the next one does not.
            world.begins(Ill::ClockLies { lie, once: true });
            let (times, limit) = (world.count(Kind::Clock), world.us + 7200 * SECOND);
            while world.count(Kind::Clock) == times {
                assert!(world.us < limit, "the time is not read");
                world.run(1);
            }
            let what = format!("{lie:?}, date {has_date}, stamps {has_stamps}");
            let chart = world.newest(90);
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

#[test]
fn a_wrong_first_reading_takes_nothing_from_the_file() {
    for has_date in [true, false] {
        for lie in [Lie::Zero, Lie::SecondsForMs, Lie::Off(TEN_YEARS)] {
            let mut world = World::with_file(100);
            world.hosts[0].has_date = has_date;
            world.run(200);
            world.run_to_second(10);
            let last = world.current() - 5;
            let before = world.whole(last - 80, last);
            world.begins(Ill::ClockLies { lie, once: false });
            world.begins(NO_CANDLES);
            world.restart(0);
            // Longer than from one sweep for old candles to the next.
            world.run(90);
            world.ends();
            world.begins(NO_CANDLES);
            world.run(90);
            let what = format!("{lie:?}, date {has_date}");
            let after = world.whole(last - 80, last);
            assert_eq!(after.body, before.body, "{what}");
            world.restart(0);
            world.run(10);
            let after = world.minutes(last - 80, last);
            assert_eq!(after.body, before.body, "{what}: in the file");
        }
    }
}

#[test]
fn what_a_clock_that_was_ahead_has_stored_is_read_again_after_a_restart() {
    for slow_ms in [0, 3000] {
        let mut world = World::with_file(100);
        world.run(200);
        world.jumps(10 * MINUTE_MS);
        world.run(90);
        world.jumps(-10 * MINUTE_MS);
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

/// Whether all tickers come in one answer, whether answers are dated, what errs, and by how much this machine
/// is ahead.
type Erring<'a> = (bool, bool, &'a [Ill], i64);

#[test]
fn a_witness_that_errs_is_not_heard_or_outvoted() {
    const OFF: i64 = 9 * MINUTE_MS;
    let erring: [Erring; 11] = [
        (true, true, &[NO_CALL, Ill::TickersUndated], 0),
        // Nor does the page of a failing front tell the time.
        (true, true, &[NO_CALL, Ill::TickersUndated, Ill::ErrorsDated(20 * MINUTE_MS)], 0),
        (true, false, &[Ill::ClockSlow], 0),
        (true, true, &[Ill::ClockSlow], 0),
        (true, true, &[Ill::ClockLies { lie: Lie::Zero, once: false }], 0),
        // The last trade was some time ago.
        (true, false, &[Ill::TickersStand(BEGIN - 10 * MINUTE_MS)], 0),
        (false, true, &[Ill::DateOff(OFF)], 8000),
        (false, true, &[Ill::DateOff(-OFF)], 8000),
        (false, false, &[TIMELESS], 8000),
        (false, false, &[TIMELESS], -8000),
        (false, false, &[TIMELESS], 90_000),
    ];
    for (is_whole, has_date, ills, ahead) in erring {
        let what = format!("{ills:?}, date {has_date}, ahead {ahead}");
        let mut world = if is_whole { World::well(100) } else { World::market_by_market(100) };
        world.hosts[0].has_date = has_date;
        world.wall_ahead += ahead;
        ills.iter().for_each(|ill| world.begins(*ill));
        check_ends(&mut world, 100);
        for _ in 0..100 {
            check_ends(&mut world, 1);
            assert_eq!(doubt(&mut world), None, "{what}");
        }
        world.run_to_second(10);
        check_untouched(&mut world, &what);
        let (old, times) = (world.current() - 20_000, world.count(Kind::Clock));
        world.complete(old, old + 50);
        world.pages();
        world.run(3700);
        check_untouched(&mut world, &what);
        assert_eq!(doubt(&mut world), None, "{what}");
        let (pages, times) = (world.pages().len(), world.count(Kind::Clock) - times);
        // A call that fails is made once a minute.
        let most = if ills.iter().any(|it| [NO_CALL, TIMELESS].contains(it)) { 62 } else { 2 };
        assert!(pages <= 64 && times <= most, "{what}: {pages} pages, {times} times in an hour");
    }
}

#[test]
fn without_any_witness_but_this_machine_only_the_newest_end_is_in_doubt() {
    let mut world = World::well(100);
    world.begins(TIMELESS);
    world.begins(Ill::TickersUndated);
    world.run(200);
    world.run_to_second(10);
    let old = world.current() - 20_000;
    world.complete(old, old + 50);
    let newest = world.newest(50);
    assert!(!newest.is_complete(), "{newest:?}");
    let last = newest.slots().last().copied();
    assert!(newest.rows.len() == 50 && last >= Some(world.current() - 7), "{newest:?}");
    let told = doubt(&mut world).expect("a reason");
    assert!(told.contains("whole") && told.contains("this machine"), "{told}");
}

#[test]
fn a_machine_and_an_exchange_that_disagree_are_settled_by_a_second_reading_a_minute_later() {
    let mut world = World::well(100);
    world.begins(Ill::TickersUndated);
    world.wall_ahead += 3 * HOUR_MS;
    world.run(30);
    assert!(!world.newest(50).is_complete());
    let told = doubt(&mut world).expect("a reason");
    assert!(told.contains("time call 2026-01-15T00:00"), "{told}");
    world.run(120);
    assert_eq!(doubt(&mut world), None);
    let chart = world.newest(50);
    assert!(chart.is_complete(), "{chart:?}");
    let times = world.count(Kind::Clock);
    assert!(times <= 6, "{times} requests for the time");
}

#[test]
fn a_ticker_of_the_year_2100_hides_no_jump() {
    let mut world = settled(true);
    world.begins(Ill::TickersStand(YEAR_2100));
    world.run(600);
    check_untouched(&mut world, "2100");
    let times = world.count(Kind::Clock);
    world.run(1200);
    assert_eq!(world.count(Kind::Clock), times, "it is outvoted once");
    world.jumps(2 * HOUR_MS);
    world.run(60);
    check_untouched(&mut world, "after the jump");
}

#[test]
fn a_clock_that_really_goes_back_deletes_nothing_and_reads_again_what_lies_ahead() {
    let mut world = settled(true);
    let current = world.current();
    world.jumps(-30 * MINUTE_MS);
    world.run(30);
    let chart = world.minutes(current - 90, current);
    assert!(chart.slots().last() <= Some(&world.current()), "{:?}", chart.rows);
    world.run(31 * 60);
    let last = world.current() - 3;
    world.whole(last - 60, last);
}

/// Lets so many seconds pass, and looks in each of them: nothing is called closed before its end.
fn check_ends(world: &mut World, seconds: u64) {
    for _ in 0..seconds {
        world.run(1);
        world.newest(50);
    }
}

#[test]
fn tickers_one_by_one_contradict_a_time_call_that_lies_from_the_begin() {
    for ahead in [TEN_YEARS, 9 * MINUTE_MS, -9 * MINUTE_MS] {
        let mut world = World::market_by_market(100);
        world.begins(Ill::ClockLies { lie: Lie::Off(ahead), once: false });
        world.wall_ahead += 8000;
        let what = format!("{ahead} ms ahead");
        check_ends(&mut world, 300);
        let told = doubt(&mut world).expect("a reason");
        assert!(told.contains("newest ticker"), "{what}: {told}");
        world.ends();
        world.run(200);
        world.run_to_second(10);
        check_untouched(&mut world, &what);
        assert_eq!(doubt(&mut world), None, "{what}");
    }
}

#[test]
fn a_date_that_lies_while_no_other_witness_is_heard_is_not_believed() {
    for ahead in [20 * MINUTE_MS, -20 * MINUTE_MS] {
        let mut world = settled(true);
        let ills = [NO_CALL, Ill::DateOff(ahead), Ill::TickersUndated];
        ills.into_iter().for_each(|ill| world.begins(ill));
        world.run(200);
        assert_eq!(world.newest(90).rows.len(), 90, "{ahead} ms ahead: nothing is hidden");
        check_ends(&mut world, 60);
    }
}
