//! Holes in what is known of one market, each made in a way of its own: what was missed comes by itself, and
//! until then nothing is called complete that is not.

use crate::claims::world::*;
use crate::sim::answers::chart_fields;
use crate::sim::charts::read_rows;
use crate::sim::truth::Trading;
use marketd::config::{Depth, HistoryConfig, Poll};
use std::time::Duration;

/// Days in which a market was traded before the begin.
const BEFORE: i64 = 480;

/// A daemon with a file that is deeper than it is ever away, and this backfill. It polls seldom: this is
/// about candles, which stay as they are once they have closed.
fn deep(backfill: i64, alter: impl FnOnce(&mut Config)) -> World {
    let hours = |count: u64| Duration::from_secs(3600 * count);
    let born_ms = BEGIN_MS - BEFORE * DAY_MS;
    World::at((true, born_ms), backfill, vec![Trading::Always], |config| {
        keep_file(config);
        let source = &mut config.sources[0];
        // Before an hour has passed, for which only what is final may be cached.
        source.poll = Poll::Every(Duration::from_secs(3500));
        source.stale_after = hours(3);
        source.frozen_after = hours(10_000);
        let depth = |keep: i64, backfill: i64| Depth { keep, backfill };
        let (h1, d1) = (depth(20_000, 10), depth(2000, 10));
        config.history = HistoryConfig { m1: depth(600_000, backfill), h1, d1 };
        alter(config);
    })
}

/// Away for longer than the backfill is deep, and killed again and again while that is fetched: all
/// of it comes by itself in the end, and nothing that lies behind a client's one look into the past.
#[test]
fn an_outage_is_filled_by_itself_also_where_the_filling_is_killed() {
    const AWAY: i64 = 12_000;
    const BACKFILL: i64 = 1200;
    let mut world = deep(BACKFILL, |_| {});
    // Without a time of flight, all pages would come before the first kill.
    world.flight_us = (1000, 20_000);
    world.run(60);
    let left = world.current();
    world.complete(left - 40_000, left - 39_600);
    world.run(60);
    world.restart(AWAY as u64);
    let mut fetched = 0;
    for _ in 0..3 {
        // The newest of each interval, and some of what was missed.
        world.pages();
        world.run_for_pages(5);
        world.begins(NO_CANDLES);
        world.run(10);
        fetched += world.hosts[0].asked.len();
        world.restart(0);
        world.ends();
    }
    world.pages();
    world.run(30);
    fetched += world.hosts[0].asked.len();
    // From now on there is only what it has.
    world.begins(NO_CANDLES);
    world.all_whole(left - BACKFILL + 5, left + AWAY - 5);
    // With 1000 candles to a page, far fewer than all from that look on would take.
    assert!(fetched < 60, "{fetched} pages");
}

/// The exchange is away for longer than the backfill is deep, and marketd is not restarted.
#[test]
fn an_outage_of_the_exchange_is_filled_by_itself() {
    const AWAY: i64 = 2880;
    const BACKFILL: i64 = 1200;
    // At the begin, this machine's clock is wrong, and that takes a minute to know. The outage begins before
    // or after it.
    let cases =
        [(200, 0), (86_600, 0), (200, -20 * DAY_MS), (200, 20 * DAY_MS), (30, 3000), (30, -3000)];
    for (seconds, ahead) in cases {
        let mut world = deep(BACKFILL, |_| {});
        world.begins(Ill::TickersUndated);
        world.wall_ahead += ahead;
        world.run(seconds);
        let pages = world.count(Kind::Candles);
        assert!(pages < 20 + seconds / 40, "{pages} pages, {ahead} ms ahead");
        let left = world.current();
        world.begins(Ill::Gone);
        world.run(AWAY as u64 * 60);
        world.ends();
        world.run(600);
        world.begins(NO_CANDLES);
        world.all_whole(left - BACKFILL + 5, left + AWAY - 5);
    }
}

/// The disk takes nothing for a day, more comes than may wait for it, and memory holds little: what
/// had to be let go of is not called known, and comes again by itself when there is room.
#[test]
fn what_a_full_disk_does_not_take_is_not_called_known_and_comes_again() {
    /// More than may wait.
    const BACKFILL: i64 = 60_000;
    let mut world = deep(BACKFILL, |config| config.limits.candle_bytes = 256 * 1024);
    world.disk.is_full = true;
    // What memory lets go of before it is stored is fetched again.
    world.hosts[0].most_a_minute = usize::MAX;
    let began = world.current();
    world.run(86_400);
    let fetched = world.pages().len();
    assert!(fetched > 60, "{fetched} pages");
    // Without the exchange it can tell of no more than it has.
    world.begins(NO_CANDLES);
    let parts = (0..BACKFILL / 1000).map(|page| began - page * 1000);
    let partial = parts.filter(|first| !world.minutes(*first, first + 999).is_complete()).count();
    assert!(partial as i64 > BACKFILL / 2000, "{partial} charts are partial");
    world.ends();
    world.disk.is_full = false;
    // Until what was asked in vain is asked once more.
    world.run(1800);
    // What memory holds and the disk did not take comes again after the next start; it is little.
    world.config.limits.candle_bytes = 32 << 20;
    world.restart(0);
    world.pages();
    world.run(60);
    let again = world.pages().len();
    assert!(again < 20, "{again} pages are asked again");
    world.begins(NO_CANDLES);
    // As deep as it is configured, counted from now.
    world.all_whole(began - (BACKFILL - 1500), began + 1440);
}

/// Memory holds some 1500 of the minutes that the file has: parts of them are asked for to and fro.
#[test]
fn what_is_on_disk_is_served_also_where_one_series_fills_the_memory() {
    let mut world = deep(6000, |config| config.limits.candle_bytes = 128 << 10);
    world.run(600);
    let newest = world.current() - 10;
    let held = world.get("/api/v1/metrics")["charts"]["candles"].integer();
    assert!((1000..2000).contains(&held.expect("a count")), "{held:?}");
    world.begins(NO_CANDLES);
    for back in [5900, 2000, 1600, 1300, 1100, 4000, 5900, 500] {
        world.whole(newest - back, newest - back + 499);
    }
}

/// Clients have asked for as many scattered candles as coverage has pieces. One more that is older
/// than all of them is told as far as it is known, and is not asked again and again; what touches
/// them is taken in whole.
#[test]
fn coverage_in_as_many_pieces_as_may_be_is_told_truly_and_ends() {
    /// Pieces of coverage, at most.
    const PIECES: i64 = 512;
    let mut world = deep(10, |_| {});
    world.run(60);
    let oldest = world.current() - 520_000;
    for piece in 0..PIECES - 1 {
        // What a page has room for up to the next piece would come along.
        let at = oldest + 1002 * piece;
        assert_eq!(world.complete(at, at).rows.len(), 1);
    }
    world.run(60);
    world.pages();
    let at = oldest - 5000;
    let chart = world.minutes(at, at + 9);
    assert!(!chart.is_complete() && chart.rows.is_empty(), "{chart:?}");
    assert_eq!(world.pages().len(), 1);
    // The newest candles are read again as ever.
    world.run(120);
    let pages = world.pages().len();
    assert!(pages <= 12, "{pages} pages");
    assert_eq!(world.whole(oldest - 900, oldest).rows.len(), 901);
}

/// A client looks into the past, and marketd is killed: what lies between that look and now is
/// nobody's outage. Nor is it where this is the first that is ever asked of a market that nobody follows yet.
#[test]
fn a_look_into_the_past_is_no_outage() {
    for (backfill, look, is_followed) in
        [(0, 5, true), (600, 700, true), (1200, 900, true), (1500, 400, false)]
    {
        let mut world = deep(backfill, |config| {
            if !is_followed {
                config.sources[0].symbols.clear();
            }
        });
        world.run(60);
        let past = world.current() - 40_000;
        world.pages();
        world.complete(past, past + look);
        world.run(60);
        if is_followed {
            world.pages();
            world.restart(1);
            world.run(120);
        }
        // With 1000 candles to a page all of it would take 40 more.
        let pages = world.pages().len();
        assert!(pages < 15, "{pages} pages, {backfill} and {look}");
    }
}

/// Of ten minutes three without a trade, which follow each other.
fn thin() -> World {
    World::with(400, vec![market(|slot| slot % 10 > 2)], keep_file)
}

#[test]
fn a_chart_and_the_pages_that_follow_it_leave_out_no_candle_that_nobody_has_read_yet() {
    for (form, step, is_filled) in [
        ("interval=1m&from", 1, false),
        ("interval=1m&decimals=string&from", 1, false),
        ("interval=3m&from", 3, false),
        ("resolution=3&source=whole&startTime", 3, false),
        ("interval=1m&fill=previous&source=whole&from", 1, true),
    ] {
        let mut world = thin();
        world.run(300);
        let from = world.current() / 30 * 30 - 8997;
        let mut target = format!("?symbol=M00USDT&limit=30&{form}={}", from * MINUTE_MS);
        let (mut slots, mut pages) = (Vec::new(), 0);
        while pages < 4 {
            let answer = world.fetch(&format!("/api/ecosystem/chart{target}"));
            let fields = chart_fields(&answer.headers).expect("the fields of a chart");
            let rows = read_rows(&answer.body, form.contains("string")).expect("a list of rows");
            slots.extend(rows.iter().map(|row| row.0 / MINUTE_MS));
            let link = fields.next.expect("it goes on");
            let query = link.strip_prefix('<').and_then(|it| it.strip_suffix(">; rel=\"next\""));
            target = query.expect("a link to the next page").to_string();
            pages += 1;
        }
        let last = *slots.last().expect("a candle");
        let traded = |slot: &i64| is_filled || (*slot..slot + step).any(|it| it % 10 > 2);
        let whole = (from..=last).step_by(step as usize).filter(traded);
        assert_eq!(slots, whole.collect::<Vec<_>>(), "{form}");
        assert!(slots.len() > 70, "{form} {}", slots.len());
    }
}

#[test]
fn several_charts_and_bars_back_have_as_many_candles_as_one_chart_after_a_restart() {
    let mut world = thin();
    world.run(300);
    let closed = format!("&limit=150&to={}", (world.current() - 3) * MINUTE_MS);
    let before = world.chart(&closed);
    assert_eq!(Chart::read(&before).rows.len(), 150);
    world.begins(NO_CANDLES);
    world.restart(0);
    world.run(30);
    assert_eq!(world.chart(&closed).text(), before.text());
    let target = "/api/ecosystem/chart?symbols=M00USDT&interval=1m&limit=100";
    let several = world.get(target)["M00/USDT"]["candles"].items().len();
    assert_eq!((several, world.newest(140).rows.len()), (100, 140));
    if cfg!(feature = "page") {
        let bars = world.get("/udf/history?symbol=M00/USDT&resolution=1&countback=120");
        assert_eq!(bars["t"].items().len(), 120);
    }
}

#[test]
fn a_chart_that_begins_long_before_the_first_candle_has_the_first_ones() {
    // Traded since half an hour before the begin: nobody has asked for what is 30 days older.
    let mut world = World::at((true, BEGIN_MS - 1_800_000), 20, vec![Trading::Always], |_| {});
    world.run(120);
    let first = Chart::read(&world.chart(&format!("&from={}&limit=5", BEGIN_MS - 30 * DAY_MS)));
    assert_eq!((first.rows.len(), first.is_complete()), (5, false), "{first:?}");
}

#[test]
fn a_chart_that_has_not_changed_keeps_its_tag() {
    let mut world = World::well(400);
    world.run(300);
    let (first, last) = (world.current() - 390, world.current() - 260);
    for form in ["", "&decimals=string", "&fill=previous"] {
        let times = (first * MINUTE_MS, last * MINUTE_MS);
        let parameters = format!("&from={}&to={}{form}", times.0, times.1);
        let tag = |world: &mut World| world.chart(&parameters).header("ETag").map(str::to_string);
        let before = tag(&mut world);
        world.run(120);
        assert_eq!((before.is_some(), before), (true, tag(&mut world)), "{form}");
    }
}

#[test]
fn a_chart_is_read_to_the_end_of_its_last_bucket() {
    // Nobody trades in every second quarter of an hour.
    let mut world = World::with(400, vec![market(|slot| slot % 30 < 15)], keep_file);
    world.run(300);
    world.begins(NO_CANDLES);
    world.restart(0);
    world.run(30);
    let from = (world.current() - 300) / 60 * 60;
    let (from, to) = (from * MINUTE_MS, (from + 67) * MINUTE_MS);
    let target = format!("symbol=M00USDT&interval=15m&from={from}&to={to}&limit=4");
    let answer = world.fetch(&format!("/api/ecosystem/chart?{target}"));
    let chart = Chart::read(&answer);
    assert_eq!((chart.rows.len(), chart.is_complete(), chart.fields.next), (3, true, None));
}

#[test]
fn a_chart_of_which_nothing_is_known_goes_on_with_the_next_known_candles() {
    let mut world = World::with_file(20);
    world.run(60);
    let looked = world.current() - 9000;
    world.complete(looked, looked + 50);
    world.run(60);
    world.begins(NO_CANDLES);
    world.restart(0);
    world.run(30);
    let chart =
        Chart::read(&world.chart(&format!("&from={}&limit=10", (looked - 3000) * MINUTE_MS)));
    // What the first request brought along is known, too.
    let first = *chart.slots().first().expect("a row");
    assert!((looked - 999..=looked).contains(&first), "{first} {looked} {chart:?}");
    assert!(!chart.is_complete());
}
