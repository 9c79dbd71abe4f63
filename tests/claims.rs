//! What a chart and a quote claim is so: complete, gaps, closed candles, staleness.
//!
//! Each test is about one way in which an exchange, the machine or an outage misleads. It happens on
//! [days](world) that are good but for this, and each chart that is looked at is judged by what was traded.

mod clock;
mod holes;
mod lists;
mod world;

use crate::sim::truth::Trading;
use crate::support::naive::length_ms;
use marketd::config::SourceConfig;
use world::*;

#[test]
fn without_backfill_no_candle_of_the_past_is_requested_and_none_since_the_start_is_missing() {
    for are_failing_first in [false, true] {
        let mut world = World::well(0);
        world.run_to_second(10);
        let first = world.current();
        if are_failing_first {
            world.begins(NO_CANDLES);
        }
        world.run(300);
        world.ends();
        world.run(200);
        // The newest known candle is read again, with the one before it.
        let asked = world.pages();
        assert!(asked.iter().all(|(from, _)| *from >= first - 1), "{asked:?}");
        // Nobody has asked for a chart before.
        let last = world.current() - 1;
        assert!(world.minutes(first, last).is_complete());
        assert_eq!(world.pages(), []);
    }
}

/// What was wrong, whether quotes went on, for how many seconds, and within how many seconds all is there.
type Trouble = (Ill, bool, u64, u64);

#[test]
fn what_a_failing_exchange_does_not_tell_hides_and_settles_nothing_and_is_there_once_it_is_over() {
    let troubles: [Trouble; 8] = [
        (EMPTY, true, 61, 180),
        (FROZEN, true, 90, 300),
        (FROZEN, true, 280, 300),
        (FROZEN, true, 390, 300),
        (FROZEN, true, 2400, 300),
        (Ill::Gone, false, 100 * 60, 600),
        (Ill::Gone, false, 1100 * 60, 600),
        (Ill::Gone, false, 2500 * 60, 600),
    ];
    for (ill, quotes_go_on, seconds, heals) in troubles {
        let mut world = World::well(100).settled();
        world.run_to_second(25);
        let first = world.current();
        world.suffers(ill, seconds);
        let last = world.current();
        let chart = world.minutes(first - 50, last - 1);
        // Stored candles stay, and the others are as quotes made them.
        let made = if quotes_go_on { last } else { first + 1 };
        assert_eq!(chart.slots(), (first - 50..made).collect::<Vec<_>>(), "{ill:?}");
        // The minute that was forming then counts as told.
        assert!(!chart.is_complete() || seconds == 90, "{ill:?}: {chart:?}");
        world.run(heals);
        world.whole(first - 50, last);
    }
}

#[test]
fn candles_are_there_after_a_restart_however_long_it_was_away() {
    for minutes in [0, 2, 100, 1100, 2500] {
        let deep = |config: &mut Config| {
            keep_file(config);
            (config.history.h1.backfill, config.history.d1.backfill) = (100, 100);
        };
        let mut world = World::with(100, vec![Trading::Always], deep).settled();
        let (left, left_ms) = (world.current(), world.clock());
        // One silence does not survive as knowledge.
        if minutes == 0 {
            world.suffers(EMPTY, 61);
        }
        world.pages();
        world.restart(minutes);
        world.run(600);
        // What the file holds is not requested.
        for (_, interval, from, _) in std::mem::take(&mut world.hosts[0].asked) {
            let since = left_ms - 60 * length_ms(interval).expect("stored");
            assert!(from > since, "{interval} from {from}, left at {left_ms}");
        }
        world.whole(left - 50, left + minutes as i64);
    }
}

#[test]
fn a_page_that_is_cut_silently_hides_no_candle() {
    for (rows, newest) in [(500, false), (500, true), (100, true), (37, false)] {
        let mut world = World::well(10);
        world.begins(Ill::CandlesCut { rows, newest });
        world.run(30);
        let last = world.current() - 3000;
        let first = last - 1198;
        world.complete(first, last);
        let pages = world.pages().len();
        // The page of the newest candles is cut as well. Up to three rows of each page are read again.
        assert!(pages <= (1199 + 1000) / (rows - 3) + 12, "{pages} pages of {rows}");
    }
}

/// Between other candles the exchange is believed in the end: where quotes show no trade, after two answers,
/// and else after ten over an hour.
#[test]
fn a_candle_that_answers_leave_out_stays_until_they_have_said_so_often_enough() {
    let check = |world: &mut World, at: i64| {
        let chart = Chart::read(&world.chart(&format!(
            "&from={}&to={}",
            (at - 10) * MINUTE_MS,
            (at + 10) * MINUTE_MS
        )));
        (chart.slots().contains(&at), chart.is_complete(), chart.fields.gaps)
    };
    let mut world = World::well(100).settled();
    let at = world.current() - 1;
    world.begins(Ill::CandleLacking(at));
    world.run(61);
    assert!(check(&mut world, at).0);
    // When it stays away, it was withdrawn.
    world.run(240);
    assert_eq!(check(&mut world, at), (false, true, 1));

    let mut world = World::well(100).settled();
    let at = world.current() + 1;
    world.begins(Ill::CandleLacking(at));
    world.run(3000);
    assert_eq!(check(&mut world, at), (false, false, 0));
    world.pages();
    world.run(3000);
    assert_eq!(check(&mut world, at), (false, true, 1));
    let pages = world.pages().len();
    assert!(pages <= 58, "{pages} pages in 50 minutes");
}

#[test]
fn flat_candles_at_an_end_of_a_chart_depend_on_candles_outside_of_it() {
    let mut world = World::with(100, vec![market(|slot| slot % 7 == 0)], |_| {});
    world.run(4200);
    // Behind the last trade nothing proves that the exchange's candles go on.
    let last = (world.current() - 1) / 7 * 7;
    world.whole(last - 80, last);
    for (first, end, is_kept) in [(70, 14, true), (69, 14, false), (70, 13, false)] {
        let range = [first, end].map(|slots| (last - slots) * MINUTE_MS);
        let answer = world.chart(&format!("&from={}&to={}&fill=previous", range[0], range[1]));
        let chart = Chart::read(&answer);
        assert!(chart.is_complete());
        assert_eq!(chart.is_kept(), is_kept, "{first} to {end}: {chart:?}");
    }
}

#[test]
fn a_range_older_than_what_is_kept_is_partial_and_not_cached_for_long() {
    let mut world = World::well(100).settled();
    for range in ["&from=1420070400&to=1420074000", "&to=1420074000"] {
        let old = Chart::read(&world.chart(range));
        assert!(old.rows.is_empty() && !old.is_complete() && !old.is_kept(), "{old:?}");
    }
    let floor = world.current() - 43_200;
    for _ in 0..3 {
        let straddling = world.minutes(floor - 50, floor + 50);
        assert!(!straddling.is_complete() && !straddling.is_kept(), "{straddling:?}");
        world.run(5);
    }
    // For as long as a cache may keep it, it is kept here.
    assert!(!world.minutes(floor + 40, floor + 60).is_kept());
    assert!(world.whole(floor + 70, floor + 90).is_kept());
}

#[test]
fn after_a_suspend_charts_end_now_and_quotes_are_stale() {
    let mut world = World::well(100).settled();
    let is_stale = |world: &mut World| world.get("/api/v1/quotes/M00USDT")["stale"].bool();
    assert_eq!(is_stale(&mut world), Some(false));
    world.begins(Ill::Gone);
    world.suspend(2 * HOUR_MS);
    // Before anything else is known.
    let chart = world.newest(50);
    assert!(!chart.is_complete(), "nobody knows how late it is: {chart:?}");
    assert_eq!(is_stale(&mut world), Some(true));
    world.ends();
    world.run(60);
    assert_eq!(is_stale(&mut world), Some(false));
    let last = world.current() - 1;
    let chart = world.newest(50);
    assert!(chart.is_complete() && chart.slots().contains(&last), "{chart:?}");
    world.run(240);
    world.whole(last - 140, last);
}

#[test]
fn a_chart_with_too_few_rows_reads_older_ones_from_the_file_and_requests_no_older_ones() {
    let hole = (BEGIN / MINUTE_MS) - 50;
    let mut world = World::with(1200, vec![market(move |slot| slot != hole)], keep_file);
    world.run(600);
    world.restart(0);
    world.run(5);
    world.pages();
    assert_eq!(world.newest(200).rows.len(), 200);
    world.run(5);
    let (pages, oldest) = (world.pages(), world.current() - 1300);
    assert!(pages.iter().all(|(first, _)| *first > oldest), "{pages:?} and not before {oldest}");
}

/// A world whose file holds 51 minutes, the last of them, their chart, and an exchange that has no candles
/// any more.
fn stored() -> (World, i64, Chart) {
    let mut world = World::with_file(100);
    world.run(200);
    let last = world.current() - 10;
    let before = world.whole(last - 50, last);
    world.begins(NO_CANDLES);
    (world, last, before)
}

#[test]
fn what_is_requested_before_the_file_has_told_what_it_holds_is_read_from_it() {
    for (slow_ms, is_another_before, is_another_added) in
        [(3000, false, false), (3000, true, false), (3900, false, true)]
    {
        let (mut world, last, before) = stored();
        let mut config = world.config.clone();
        let other = SourceConfig { id: "other".to_string(), ..config.sources[0].clone() };
        config.sources.insert(usize::from(is_another_added), other);
        if is_another_before {
            // From the next begin on, it is before the one that the file knows.
            world.config = config.clone();
        }
        let begin = world.clock();
        world.restart_on_slow_disk(slow_ms);
        world.run(2);
        if is_another_added {
            // Both sources are polled between the two loads.
            let now = world.now();
            let reloaded = world.core.reconfigure(config, Vec::new(), || (), now);
            reloaded.expect("a sound configuration");
            world.settle();
            world.run(1);
        }
        let after = world.whole(last - 50, last);
        assert_eq!((&*after.fields.source, &after.body), ("whole", &before.body));
        assert!(world.clock() - begin >= 3000, "the file had already told it");
    }
}

/// Also where it ended longer ago than the chart is long.
#[test]
fn the_newest_candles_of_the_file_are_told_if_the_exchange_has_none() {
    for ill in [NO_CANDLES, Ill::Gone] {
        let mut world = World::with_file(100);
        world.run(200);
        let (before, known) = (world.newest(20), world.current());
        world.begins(ill);
        world.restart(60);
        world.run(5);
        let newest = world.newest(5);
        assert!(!newest.is_complete() && newest.rows.len() == 5, "{newest:?}");
        assert!(before.rows.contains(&newest.rows[0]), "{newest:?}");
        assert_eq!(world.newest(5).body, newest.body);
        // The file does not say which of its newest candles are final.
        assert!(!world.whole(known - 20, known - 10).is_kept());
        assert!(world.whole(known - 60, known - 40).is_kept());
        world.ends();
        world.run(120);
        assert!(world.whole(known - 20, known - 10).is_kept());
    }
}

/// What is known for sure costs few requests: so many at most in the first ten minutes, which fetch a backfill
/// of this depth, and in the hour after them. By then all is known.
#[test]
fn no_page_is_asked_again_and_again_and_all_is_known_in_ten_minutes() {
    let now = BEGIN / MINUTE_MS;
    let every = |count: i64| market(move |slot| slot % count == 0);
    let until = move |last: i64| market(move |slot| slot <= last);
    let other = || Trading::Always;
    // A market without trades tells by another market that its exchange's candles go on.
    let costs = [
        ("all traded", 1500, vec![every(1)], (16, 62)),
        ("every 3rd", 1500, vec![every(3)], (16, 62)),
        ("every 7th", 100, vec![every(7)], (16, 62)),
        ("every 45th", 1500, vec![every(45)], (20, 62)),
        ("new", 5000, vec![Trading::Always], (22, 62)),
        ("rare", 100, vec![every(1000), other()], (30, 62)),
        ("delisted", 100, vec![until(now - 120), other()], (30, 62)),
        ("never traded", 100, vec![until(0), other()], (30, 62)),
        ("quiet", 100, vec![until(now - 50), other()], (30, 62)),
    ];
    for (what, backfill, markets, most) in costs {
        let is_alone = markets.len() == 1;
        let born = if what == "new" { 30 } else { 45 * 24 * 60 };
        let mut world = World::at((true, (now - born) * MINUTE_MS), backfill, markets, |_| {});
        if what == "new" {
            world.run(20);
            let chart = world.newest(1000);
            assert!(!chart.is_complete() && chart.fields.gaps == 0, "one silence is not proof");
        }
        world.run(600);
        // Behind the last trade nothing else proves that the exchange's candles go on.
        let last = world.current() - if is_alone { 100 } else { 3 };
        world.whole(last - 80, last);
        world.run_to_second(10);
        let first = world.pages().len();
        world.run(3600);
        let hour = world.pages().len();
        eprintln!("{what}: {first} in the first ten minutes, {hour} in an hour");
        assert!(first <= most.0 && hour <= most.1, "{what}: {first}, {hour}");
    }
}

#[test]
fn no_page_is_asked_again_and_again_however_it_is_cut() {
    for rows in [1, 5, 8, 10, 37, 100] {
        for newest in [false, true] {
            for every in [1, 3, 17, 45] {
                let market = market(move |slot| slot % every == 0);
                let mut world = World::with(300, vec![market], |_| {});
                world.begins(Ill::CandlesCut { rows, newest });
                world.run(120);
                for back in [2000, 700, 300] {
                    let last = world.current() - back;
                    for _ in 0..20 {
                        let range = [last - 150, last].map(|slot| slot * MINUTE_MS);
                        world.chart(&format!("&from={}&to={}", range[0], range[1]));
                        world.run(1);
                    }
                }
                // An outage, of a machine with the same page.
                world.ends();
                world.begins(Ill::Gone);
                world.run(1800);
                world.ends();
                world.begins(Ill::CandlesCut { rows, newest });
                world.run(600);
                world.pages();
                world.run_to_second(10);
                world.run(600);
                let pages = world.pages().len();
                // No exchange has pages of a few rows: such a page does not look cut. Of one row, its candle
                // has no newer one beside it, which would prove it final.
                // Five of a thousand candles leave a hole in each page of the past. Each of these holes gets a
                // request a minute, which brings some more of them.
                let most = match (rows, newest, every) {
                    (5, true, 1) => 415,
                    (1, ..) => 30,
                    (5, ..) => 22,
                    _ => 16,
                };
                assert!(pages <= most, "{pages} pages in ten minutes: {rows} {newest} {every}");
            }
        }
    }
}

#[test]
fn an_old_page_that_is_always_refused_is_requested_rarely_also_while_others_succeed() {
    let mut world = World::with(3000, vec![market(|_| true)], |_| {});
    world.begins(Ill::CandlesSince(world.current() - 1500));
    world.run(600);
    world.pages();
    world.run(600);
    let pages = world.pages().len();
    assert!((10..20).contains(&pages), "{pages} pages in ten minutes");
}

/// Nothing but quotes tells of these minutes.
#[track_caller]
fn check_unknown(chart: &Chart, what: &str) {
    let is_told = chart.is_complete() || chart.fields.gaps > 0 || chart.is_kept();
    assert!(!is_told, "{what}: {chart:?}");
}

#[test]
fn an_exchange_without_any_candle_is_never_complete_and_not_hammered() {
    let mut world = World::with(1500, vec![Trading::Always, Trading::Always], |_| {});
    world.begins(EMPTY);
    let begin = world.current();
    world.run(14);
    for _ in 0..8 {
        world.run(5);
        check_unknown(&world.minutes(begin - 700, begin - 1), "after the start");
        check_unknown(&world.minutes(begin - 1400, begin - 1300), "after the start");
    }
    world.run(3600);
    let chart = world.minutes(begin - 100, begin + 50);
    check_unknown(&chart, "no candles");
    assert_eq!(chart.slots(), (begin..=begin + 50).collect::<Vec<_>>(), "as quotes made them");
    world.run_to_second(10);
    world.pages();
    world.run(3600);
    let pages = world.pages().len();
    assert!(pages <= 72, "{pages} pages an hour");
    world.ends();
    world.run(1200);
    world.whole(begin - 1300, begin + 1);
}

/// The candles of one market alone stand still: those of the other one speak for none that quotes contradict.
#[test]
fn a_slot_in_which_quotes_moved_is_not_empty_by_the_word_of_another_market() {
    let mut world = World::with(100, vec![Trading::Always, Trading::Always], |_| {});
    world.run(200);
    world.run_to_second(5);
    let first = world.current();
    world.suffers(Ill::CandlesFrozen(Some(0)), 1800);
    let last = world.current() - 3;
    let chart = world.minutes(first + 1, last);
    check_unknown(&chart, "moved");
    assert_eq!(chart.rows.len() as i64, last - first, "provisional");
    world.run(400);
    world.whole(first - 20, last);
}
