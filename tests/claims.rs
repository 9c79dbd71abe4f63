//! What a chart and a quote claim is so: complete, gaps, closed candles, staleness.
//!
//! Each test is about one way in which an exchange, the machine or an outage misleads. The core runs
//! in virtual time beside an exchange whose true history is known: see [`world`].

mod clock;
#[cfg(feature = "sqlite")]
mod holes;
mod lists;
mod world;
#[cfg(feature = "sqlite")]
mod year;

use world::*;

#[test]
fn without_backfill_no_candle_of_the_past_is_requested_and_none_since_the_start_is_missing() {
    for are_failing_first in [false, true] {
        let mut world = World::new(0);
        world.run_to_second(10);
        let first = world.current();
        world.exchange.is_failing = are_failing_first;
        world.run(300);
        world.exchange.is_failing = false;
        world.run(200);
        // The newest known candle is read again, with the one before it.
        let asked = world.pages();
        assert!(asked.iter().all(|(from, _)| *from >= first - 1), "{asked:?}");
        // Nobody has asked for a chart before.
        let chart = world.minutes(first, world.current() - 1);
        assert_eq!(world.pages(), [], "{chart:?}");
        assert_eq!(chart.rows.len() as i64, world.current() - first, "{chart:?}");
    }
}

#[test]
fn an_empty_page_for_a_minute_takes_no_candle_away() {
    let mut world = World::new(100).settled();
    let at = world.current();
    world.exchange.is_mute = true;
    world.run(61);
    let during = world.minutes(at - 50, at);
    world.exchange.is_mute = false;
    let kept = during.rows.iter().filter(|row| row.0 < at).count();
    assert_eq!(kept, 50, "what was stored stays: {:?}", during.rows);
    assert!(!during.is_complete(), "the last one was never told");
    assert_eq!(during.gaps(), "0");
    world.run(180);
    world.check_settled(at - 50, at);
}

#[test]
fn a_page_that_is_cut_silently_hides_no_candle() {
    for (rows, newest) in [(500, false), (500, true), (100, true), (37, false)] {
        let mut world = World::new(10);
        world.exchange.page = (rows, newest);
        world.run(30);
        let last = world.current() - 3000;
        let first = last - 1198;
        for _ in 0..60 {
            let chart = world.minutes(first, last);
            if chart.is_complete() {
                break;
            }
            assert_eq!(chart.gaps(), "0", "{rows} {newest}");
            world.run(1);
        }
        world.check_settled(first, last);
        let pages = world.pages().len();
        // The page of the newest candles is cut as well. Up to three rows of each page are read again.
        assert!(pages <= (1199 + 1000) / (rows - 3) + 12, "{pages} pages of {rows}");
    }
}

#[test]
fn a_stored_candle_that_one_answer_leaves_out_stays() {
    let mut world = World::new(100).settled();
    let at = world.current() - 1;
    world.exchange.holes = vec![at];
    world.run(61);
    let chart = world.minutes(at - 20, at);
    assert!(chart.slots().contains(&at), "{chart:?}");
    // When it stays away, it was withdrawn.
    world.run(240);
    let chart = world.minutes(at - 20, at);
    assert!(!chart.slots().contains(&at), "{chart:?}");
    assert_eq!((chart.is_complete(), chart.gaps()), (true, "1"));
}

#[test]
fn in_a_thin_market_empty_slots_become_known_without_more_requests() {
    let mut world = World::new(100);
    world.exchange.every = 7;
    world.run(600);
    world.run_to_second(10);
    world.pages();
    world.run(3600);
    let pages = world.pages().len();
    assert!(pages <= 62, "{pages} pages an hour");
    // Behind the last trade nothing proves that the exchange's candles go on.
    let last = (world.current() - 1) / 7 * 7;
    let chart = world.whole(last - 80, last);
    let expected = (last - 80..=last).filter(|slot| slot % 7 == 0).count();
    assert_eq!(chart.rows.len(), expected);
    assert_eq!(chart.gaps(), (81 - expected).to_string());
    // Flat candles at an end of a chart depend on candles outside of it.
    for (first, end, is_kept) in [(70, 14, true), (69, 14, false), (70, 13, false)] {
        let range = [first, end].map(|slots| (last - slots) * MINUTE);
        let chart = world.chart(&format!("&from={}&to={}&fill=previous", range[0], range[1]));
        assert!(chart.is_complete());
        assert_eq!(chart.is_kept(), is_kept, "{first} to {end}: {chart:?}");
    }
}

#[test]
fn the_empty_past_of_a_new_market_is_asked_about_twice_and_no_more() {
    let mut world = World::new(5000);
    world.exchange.listed = (world.current() - 30) * MINUTE;
    world.run(20);
    let chart = world.chart("&limit=1000");
    assert!(!chart.is_complete(), "one silence is not proof");
    assert_eq!(chart.gaps(), "0");
    world.run(300);
    let chart = world.chart("&limit=1000");
    assert!(chart.is_complete());
    world.run_to_second(10);
    let pages = world.pages().len();
    assert!(pages <= 22, "{pages} pages for 5 of empty slots");
    world.run(1800);
    let pages = world.pages().len();
    assert!(pages <= 31, "{pages} pages in half an hour");
}

#[test]
fn a_range_older_than_what_is_kept_is_partial_and_not_cached_for_long() {
    let mut world = World::new(100).settled();
    let old = world.chart("&from=1420070400&to=1420074000");
    assert_eq!(old.body, "[]");
    assert!(!old.is_complete(), "{old:?}");
    assert!(!old.is_kept(), "{old:?}");
    let now = world.time();
    let floor = now / MINUTE - 43_200;
    let (from, to) = ((floor - 50) * MINUTE, (floor + 50) * MINUTE);
    for _ in 0..3 {
        let straddling = world.chart(&format!("&from={from}&to={to}"));
        assert!(!straddling.is_complete(), "{straddling:?}");
        let cache = straddling.header("Cache-Control");
        assert!(!cache.contains("3600"), "{straddling:?}");
        world.run(5);
    }
    // For as long as a cache may keep it, it is kept here.
    let edge = world.minutes(floor + 40, floor + 60);
    assert!(!edge.is_kept(), "{edge:?}");
    let from = floor + 70;
    let inside = world.whole(from, from + 20);
    assert!(inside.is_kept());
    let before = world.chart("&to=1420074000");
    assert!(!before.is_complete(), "nobody knows what was before: {before:?}");
}

#[test]
fn after_a_suspend_charts_end_now_and_quotes_are_stale() {
    let mut world = World::new(100).settled();
    let quote = |world: &mut World| world.get("/api/v1/quotes/BTCUSDT");
    assert!(quote(&mut world).contains(r#""stale":false"#));
    world.exchange.is_away = true;
    world.suspend(2 * HOUR);
    // Before anything else is known.
    let chart = world.chart("&limit=50");
    assert!(!chart.is_complete(), "nobody knows how late it is: {chart:?}");
    assert!(quote(&mut world).contains(r#""stale":true"#));
    world.exchange.is_away = false;
    world.run(60);
    assert!(quote(&mut world).contains(r#""stale":false"#));
    let last = world.current() - 1;
    let chart = world.chart("&limit=50");
    assert!(chart.slots().contains(&last), "{chart:?}");
    assert!(chart.is_complete(), "{chart:?}");
    world.run(240);
    world.check_settled(last - 140, last);
}

#[test]
fn an_exchange_s_clock_that_jumps_forward_is_noticed() {
    let mut world = World::new(100).settled();
    let old = world.current();
    world.exchange.last = 101;
    world.run(4);
    world.exchange.clock_ahead = 2 * HOUR;
    world.exchange.last = 4321;
    world.run(4);
    let chart = world.chart("&limit=50");
    let late = chart.body.split("],[").filter(|row| row.contains("4321"));
    let slots: Vec<&str> = late.map(|row| row.trim_matches(['[', ']'])).collect();
    let begin = (old * MINUTE).to_string();
    assert!(
        slots.iter().all(|row| !row.starts_with(&begin)),
        "a quote went into a past slot: {slots:?}"
    );
    world.run(60);
    let chart = world.chart("&limit=50");
    let last = world.current() - 1;
    assert!(chart.slots().contains(&last), "{chart:?}");
    assert!(chart.is_complete());
    let times = world.exchange.times;
    assert!(times <= 3, "{times} requests for the time");
}

#[test]
fn an_exchange_s_clock_that_jumps_back_is_noticed_also_when_this_machine_s_was_just_set() {
    for is_set in [false, true] {
        let mut world = World::new(100).settled();
        if is_set {
            world.wall_ahead = 3 * HOUR;
            world.run(1);
        }
        world.exchange.clock_ahead = -2 * HOUR;
        world.run(30);
        let chart = world.chart("&limit=50");
        let current = world.current();
        assert!(chart.rows.iter().all(|row| row.0 <= current), "{:?}", chart.rows);
        let last = current - 3;
        world.run(100);
        let chart = world.whole(last - 40, last);
        assert_eq!(chart.rows.len(), 41);
    }
}

#[test]
fn a_wall_clock_that_is_set_moves_no_candle() {
    for ahead in [3 * HOUR, -3 * HOUR] {
        let mut world = World::new(100).settled();
        world.wall_ahead = ahead;
        world.run(30);
        let current = world.current();
        let chart = world.chart("&limit=50");
        assert!(chart.is_complete(), "{chart:?}");
        assert_eq!(chart.rows.last().map(|row| row.0), Some(current));
        let quote = world.get("/api/v1/quotes/BTCUSDT");
        assert!(quote.contains(r#""stale":false"#), "{quote}");
    }
}

#[test]
fn a_jump_is_noticed_by_the_date_of_an_answer() {
    let mut world = World::new(100).settled();
    world.exchange.has_date = true;
    world.run(3700);
    let times = world.exchange.times;
    world.exchange.last = 0;
    world.run(10);
    assert_eq!(world.exchange.times, times, "nothing has moved");
    world.exchange.clock_ahead = 2 * HOUR;
    world.run(30);
    assert!(world.exchange.times > times);
}

#[test]
fn quotes_with_odd_times_hide_no_jump_and_cost_one_request_in_ten_minutes() {
    let mut world = World::new(100);
    world.exchange.stamps_ahead = HOUR;
    world.run(200);
    world.run_to_second(10);
    assert!(world.chart("&limit=50").is_complete());
    let times = world.exchange.times;
    world.run(540);
    assert!(world.exchange.times <= times + 1, "{}", world.exchange.times);
    world.exchange.clock_ahead = 2 * HOUR;
    world.run(20);
    assert!(!world.chart("&limit=50").is_complete(), "one witness alone moves no clock");
    world.run(80);
    let (chart, last) = (world.chart("&limit=50"), world.current() - 1);
    assert!(chart.slots().contains(&last), "{chart:?}");
}

#[test]
fn before_the_exchange_has_told_its_time_nothing_up_to_now_is_complete() {
    let mut world = World::new(100);
    world.exchange.is_timeless = true;
    world.wall_ahead = -2 * HOUR;
    world.run(30);
    let chart = world.chart("&limit=50");
    assert!(!chart.is_complete(), "{chart:?}");
}

#[test]
fn candles_are_settled_after_an_outage_of_any_length() {
    check_after(
        &[100, 1100, 2500],
        || World::new(100),
        |world, minutes| {
            world.exchange.is_away = true;
            world.run(minutes * 60);
            world.exchange.is_away = false;
        },
    );
}

#[cfg(feature = "sqlite")]
#[test]
fn candles_are_settled_after_a_restart_however_long_it_was_away() {
    check_after(
        &[0, 2, 100, 1100, 2500],
        || World::with_file(100),
        |world, minutes| {
            world.restart(minutes as i64 * MINUTE);
        },
    );
}

/// After so many minutes of this, all of them are there.
fn check_after(minutes: &[u64], begin: fn() -> World, what: fn(&mut World, u64)) {
    for minutes in minutes {
        let mut world = begin().settled();
        let left = world.current();
        what(&mut world, *minutes);
        world.run(600);
        world.check_settled(left - 20, left + *minutes as i64);
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn one_silence_does_not_survive_a_restart_as_knowledge() {
    let mut world = World::with_file(100).settled();
    let at = world.current();
    world.exchange.is_mute = true;
    world.run(61);
    world.restart(0);
    world.exchange.is_mute = false;
    world.run(300);
    world.check_settled(at - 50, at);
}

#[cfg(feature = "sqlite")]
#[test]
fn a_chart_with_too_few_rows_reads_older_ones_from_the_file_and_requests_no_older_ones() {
    let mut world = World::with_file(1200);
    world.exchange.holes = vec![world.current() - 50];
    world.run(600);
    world.restart(1000);
    world.run(5);
    world.pages();
    assert_eq!(world.chart("&limit=200").rows.len(), 200);
    world.run(5);
    let pages = world.pages();
    let oldest = world.current() - 1300;
    assert!(pages.iter().all(|(first, _)| *first > oldest), "{pages:?} and not before {oldest}");
}

/// A world whose file holds 51 minutes, the last of them, their chart, and an exchange that has no candles
/// any more.
#[cfg(feature = "sqlite")]
fn stored() -> (World, i64, Chart) {
    let mut world = World::with_file(100);
    world.run(200);
    let last = world.current() - 10;
    let before = world.whole(last - 50, last);
    world.exchange.is_failing = true;
    (world, last, before)
}

#[cfg(feature = "sqlite")]
#[test]
fn what_is_requested_before_the_file_has_told_what_it_holds_is_read_from_it() {
    for (slow_ms, is_another_before, is_another_added) in
        [(3000, false, false), (3000, true, false), (3900, false, true)]
    {
        let (mut world, last, before) = stored();
        if is_another_before {
            // From the next begin on, it is before the one that the file knows.
            world.disk().config = world.with_another(0);
        }
        let begin = world.time();
        world.restart_on_slow_disk(slow_ms);
        world.run(2);
        if is_another_added {
            // Both sources are polled between the two loads.
            world.add_source();
            world.run(1);
        }
        let after = world.whole(last - 50, last);
        assert_eq!((after.header("Chart-Source"), &after.body), ("binance", &before.body));
        assert!(world.time() - begin >= 3000, "the file had already told it");
    }
}

/// Also where it ended longer ago than the chart is long.
#[cfg(feature = "sqlite")]
#[test]
fn the_newest_candles_of_the_file_are_told_if_the_exchange_has_none() {
    for is_away in [false, true] {
        let mut world = World::with_file(100);
        world.run(200);
        let before = world.chart("&limit=20");
        (world.exchange.is_away, world.exchange.is_failing) = (is_away, true);
        world.restart(HOUR);
        world.run(5);
        let newest = world.chart("&limit=5");
        assert!(!newest.is_complete(), "{newest:?}");
        assert_eq!(newest.rows.len(), 5, "{newest:?}");
        assert!(before.rows.contains(&newest.rows[0]), "{newest:?}");
        assert_eq!(world.chart("&limit=5").body, newest.body);
    }
}

/// Requests for minutes in a steady hour, and for a backfill of 1500.
#[test]
fn what_is_known_for_sure_costs_few_requests() {
    let cost = |every: i64, listed_ago: i64| {
        let mut world = World::new(1500);
        world.exchange.every = every;
        world.exchange.listed = (world.current() - listed_ago) * MINUTE;
        world.run(600);
        world.run_to_second(10);
        let first = world.pages().len();
        world.run(3600);
        (first, world.pages().len())
    };
    let costs = [
        ("all traded", cost(1, 100_000), (16, 62)),
        ("every 3rd", cost(3, 100_000), (16, 62)),
        ("every 45th", cost(45, 100_000), (20, 62)),
        ("new", cost(1, 30), (20, 62)),
    ];
    for (market, (first, hour), most) in costs {
        eprintln!("{market}: {first} in the first ten minutes, {hour} in an hour");
        assert!(first <= most.0 && hour <= most.1, "{market}: {first}, {hour}");
    }
}

#[test]
fn no_page_is_asked_again_and_again_however_it_is_cut() {
    for rows in [1, 5, 8, 10, 37, 100] {
        for newest in [false, true] {
            for every in [1, 3, 17, 45] {
                let mut world = World::new(300);
                world.exchange.page = (rows, newest);
                world.exchange.every = every;
                world.run(120);
                for back in [2000, 700, 300] {
                    let last = world.current() - back;
                    for _ in 0..20 {
                        world.minutes(last - 150, last);
                        world.run(1);
                    }
                }
                // An outage, of a machine with the same page.
                world.exchange.is_away = true;
                world.run(1800);
                world.exchange.is_away = false;
                world.run(600);
                world.pages();
                world.run_to_second(10);
                world.run(600);
                let pages = world.pages().len();
                // No exchange has pages of a few rows: such a page does not look cut. Of one row, its candle
                // has no newer one beside it, which would prove it final.
                let most = match rows {
                    1 => 30,
                    5 => 22,
                    _ => 16,
                };
                assert!(pages <= most, "{pages} pages in ten minutes: {rows} {newest} {every}");
            }
        }
    }
}

/// A market without trades tells by another market that its exchange's candles go on.
#[test]
fn what_the_other_market_proves_is_complete_within_ten_minutes() {
    let check = |what: &str, order: &dyn Fn(&mut World), first_back: i64| {
        let mut world = World::of_two(100);
        order(&mut world);
        world.run(600);
        let last = world.current() - 3;
        let chart = world.whole(last - first_back, last);
        let truly =
            |slot: &i64| slot % world.exchange.every == 0 && slot * MINUTE <= world.exchange.ends;
        let expected: Vec<i64> = (last - first_back..=last).filter(truly).collect();
        let got: Vec<i64> = chart.slots();
        assert_eq!(got, expected, "{what}");
        world.pages();
        world.run_to_second(10);
        world.run(3600);
        let pages = world.pages().len();
        assert!(pages <= 62, "{what}: {pages} pages an hour");
    };
    check("rare", &|world| world.exchange.every = 1000, 80);
    check("delisted", &|world| world.exchange.ends = world.time() - 2 * HOUR, 80);
    check("never traded", &|world| world.exchange.ends = 0, 80);
    let of_hours = |world: &mut World| world.exchange.ends = world.time() - 50 * MINUTE;
    check("quiet", &of_hours, 80);
}

/// Every row that is served as it truly was or from quotes, and no claim but of what was told.
#[track_caller]
fn check_unknown(chart: &Chart, what: &str) {
    assert!(!chart.is_complete(), "{what}: {chart:?}");
    assert_eq!(chart.gaps(), "0", "{what}: {chart:?}");
    assert!(!chart.is_kept(), "{what}: {chart:?}");
}

#[test]
fn empty_answers_after_the_start_prove_nothing() {
    let mut world = World::of_two(1500);
    (world.exchange.is_mute, world.exchange.is_other_mute) = (true, true);
    world.exchange.moves = true;
    let begin = world.current();
    world.run(14);
    for _ in 0..8 {
        world.run(5);
        check_unknown(&world.minutes(begin - 700, begin - 1), "mute");
        check_unknown(&world.minutes(begin - 1400, begin - 1300), "mute");
    }
    (world.exchange.is_mute, world.exchange.is_other_mute) = (false, false);
    world.run(400);
    world.check_settled(begin - 1400, begin + 1);
}

#[test]
fn an_exchange_without_any_candle_is_never_complete_and_not_hammered() {
    let mut world = World::of_two(1500);
    (world.exchange.is_mute, world.exchange.is_other_mute) = (true, true);
    world.exchange.moves = true;
    let begin = world.current();
    world.run(3600);
    let chart = world.minutes(begin - 100, begin + 50);
    check_unknown(&chart, "no candles");
    let provisional: Vec<i64> = chart.slots();
    assert_eq!(provisional, (begin..=begin + 50).collect::<Vec<_>>(), "as quotes made them");
    world.run_to_second(10);
    world.pages();
    world.run(3600);
    let pages = world.pages().len();
    assert!(pages <= 72, "{pages} pages an hour");
}

#[test]
fn a_frozen_candle_service_hides_and_settles_nothing() {
    for seconds in [90, 280, 390, 2400] {
        let mut world = World::new(100).settled();
        world.exchange.moves = true;
        world.run(90);
        world.run_to_second(25);
        let frozen = world.current();
        world.exchange.frozen_at = Some(world.time());
        for _ in 0..seconds / 30 {
            world.run(30);
            let now = world.current();
            if now > frozen + 1 {
                let chart = world.minutes(frozen + 1, now - 1);
                check_unknown(&chart, "frozen");
                let rows: Vec<i64> = chart.slots();
                assert_eq!(rows, (frozen + 1..now).collect::<Vec<_>>(), "provisional");
            }
        }
        let cache = world.minutes(frozen - 10, frozen);
        assert!(!cache.is_kept(), "{cache:?}");
        let last = world.current();
        world.exchange.frozen_at = None;
        world.run(300);
        world.check_settled(frozen - 20, last + 1);
    }
}

/// The candles of one market alone stand still: those of the other one speak for none that quotes contradict.
#[test]
fn a_slot_in_which_quotes_moved_is_not_empty_by_the_word_of_another_market() {
    let mut world = World::of_two(100);
    world.exchange.moves = true;
    world.run(200);
    world.run_to_second(5);
    let first = world.current();
    world.exchange.ends = first * MINUTE - 1;
    world.run(1800);
    let last = world.current() - 3;
    let chart = world.minutes(first, last);
    check_unknown(&chart, "moved");
    assert_eq!(chart.rows.len() as i64, last - first + 1, "provisional");
    world.exchange.ends = i64::MAX;
    world.run(400);
    world.check_settled(first - 20, last);
}

/// Between other candles the exchange is believed in the end.
#[test]
fn a_slot_in_which_quotes_moved_is_empty_after_ten_answers_over_an_hour() {
    let mut world = World::new(100).settled();
    world.exchange.moves = true;
    world.run(120);
    world.run_to_second(10);
    let hole = world.current() + 1;
    world.exchange.holes = vec![hole];
    world.run(3000);
    let chart = world.minutes(hole - 10, hole + 10);
    check_unknown(&chart, "vetoed");
    assert_eq!(chart.rows.len(), 20);
    world.pages();
    world.run(3000);
    let chart = world.minutes(hole - 10, hole + 10);
    assert_eq!((chart.is_complete(), chart.gaps(), chart.rows.len()), (true, "1", 20), "{chart:?}");
    let pages = world.pages().len();
    assert!(pages <= 58, "{pages} pages in 50 minutes");
}
