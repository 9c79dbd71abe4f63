//! Holes in what is known of one market, each made in a way of its own: what was missed comes by itself, and
//! until then nothing is called complete that is not.

use crate::claims::world::*;
use crate::claims::year::{begun, deep, truth};
use crate::support::{Rng, for_each_seed};

#[test]
fn an_outage_is_filled_by_itself_also_where_the_filling_is_killed() {
    for_each_seed(4, |_, rng| killed_while_it_catches_up(rng));
}

#[test]
fn what_a_full_disk_does_not_take_is_not_called_known_and_comes_again() {
    for_each_seed(2, |_, rng| dropped_while_the_disk_is_full(rng));
}

#[test]
fn coverage_in_as_many_pieces_as_may_be_is_told_truly_and_ends() {
    for_each_seed(2, |_, rng| in_as_many_pieces_as_may_be(rng));
}

#[test]
fn a_look_into_the_past_is_no_outage_also_of_a_market_that_nobody_follows() {
    for_each_seed(2, |_, rng| looked_at_first(rng));
}

#[test]
fn a_look_into_the_past_is_no_outage() {
    for_each_seed(2, |_, rng| looked_at_once(rng));
}

/// Away for longer than the backfill is deep, and killed again and again while that is fetched: all
/// of it comes by itself in the end, and nothing that lies behind a client's one look into the past.
fn killed_while_it_catches_up(rng: &mut Rng) {
    const AWAY: i64 = 12_000;
    const BACKFILL: i64 = 1200;
    let mut config = deep();
    config.history.m1.backfill = BACKFILL;
    let mut world = begun(config, rng);
    world.run(60);
    let left = world.time() / MINUTE * MINUTE;
    let past = left - 40_000 * MINUTE;
    world.complete("1m", past, past + 400 * MINUTE);
    world.run(60);
    world.restart(AWAY * MINUTE);
    for _ in 0..3 {
        // The newest of each interval, and some of what was missed.
        world.exchange.last_page = world.exchange.sent_pages + 5;
        world.run(10);
        world.restart(0);
    }
    world.exchange.last_page = u64::MAX;
    world.run(30);
    let fetched = world.exchange.sent_pages;
    // From now on there is only what it has.
    world.exchange.last_page = 0;
    let count = world.check("1m", left - (BACKFILL - 5) * MINUTE, left + AWAY * MINUTE);
    assert!(count as i64 >= AWAY + BACKFILL - 10, "{count}");
    // With 1000 candles to a page, far fewer than all from that look on would take.
    assert!(fetched < 40, "{fetched} pages");
}

/// The disk takes nothing for a day, more comes than may wait for it, and memory holds little: what
/// had to be let go of is not called known, and comes again by itself when there is room.
fn dropped_while_the_disk_is_full(rng: &mut Rng) {
    /// More than may wait.
    const BACKFILL: i64 = 60_000;
    let mut config = deep();
    config.history.m1.backfill = BACKFILL;
    config.limits.candle_bytes = 256 * 1024;
    let mut world = begun(config, rng);
    world.disk().is_full = true;
    // What memory lets go of before it is stored is fetched again.
    world.exchange.most_a_minute = usize::MAX;
    let began = world.time() / MINUTE * MINUTE;
    world.run(86_400);
    let fetched = world.exchange.sent_pages;
    eprintln!("{fetched} pages in a day on a full disk");
    assert!(fetched > 60, "{fetched} pages");
    // Without the exchange it can tell of no more than it has.
    world.exchange.last_page = 0;
    let mut partial = 0;
    for page in 0..BACKFILL / 1000 {
        let from = began - page * 1000 * MINUTE;
        let to = from + 999 * MINUTE;
        let (is_complete, rows) = world.look("1m", from, to);
        let truth = truth("1m", from, to + 1);
        partial += i64::from(!is_complete);
        match is_complete {
            true => assert_eq!(rows, truth, "from {from}"),
            false => assert!(rows.iter().all(|row| truth.contains(row)), "from {from}"),
        }
    }
    assert!(partial > BACKFILL / 2000, "{partial} charts are partial");
    world.exchange.last_page = u64::MAX;
    world.disk().is_full = false;
    // Until what was asked in vain is asked once more.
    world.run(1800);
    // What memory holds and the disk did not take comes again after the next start; it is little.
    let file = world.disk();
    file.config.limits.candle_bytes = 32 << 20;
    world.restart(0);
    let fetched = world.exchange.sent_pages;
    world.run(60);
    let again = world.exchange.sent_pages - fetched;
    assert!(again < 20, "{again} pages are asked again");
    world.exchange.last_page = 0;
    // As deep as it is configured, counted from now.
    let (from, to) = (began - (BACKFILL - 1500) * MINUTE, began + 1440 * MINUTE);
    let count = world.check("1m", from, to);
    assert!(count as i64 >= BACKFILL - 100, "{count}");
}

/// Clients have asked for as many scattered candles as coverage has pieces. One more that is older
/// than all of them is told as far as it is known, and is not asked again and again; what touches
/// them is taken in whole.
fn in_as_many_pieces_as_may_be(rng: &mut Rng) {
    /// Pieces of coverage, at most.
    const PIECES: i64 = 512;
    let mut config = deep();
    config.history.m1.backfill = 10;
    config.history.m1.keep = 600_000;
    let mut world = begun(config, rng);
    world.run(60);
    let now = world.time() / MINUTE * MINUTE;
    let oldest = now - 520_000 * MINUTE;
    for piece in 0..PIECES - 1 {
        // What a page has room for up to the next piece would come along.
        let at = oldest + 1002 * piece * MINUTE;
        assert_eq!(world.complete("1m", at, at).len(), 1);
    }
    let at = oldest - 5000 * MINUTE;
    world.run(60);
    let asked = world.exchange.sent_pages;
    let (is_complete, rows) = world.look("1m", at, at + 9 * MINUTE);
    assert!(!is_complete && rows.is_empty(), "{rows:?}");
    assert_eq!(world.exchange.sent_pages, asked + 1);
    // The newest candles of three intervals are read again as ever.
    world.run(120);
    assert!(world.exchange.sent_pages <= asked + 12, "{} pages", world.exchange.sent_pages - asked);
    let from = oldest - 900 * MINUTE;
    let (is_complete, rows) = world.look("1m", from, oldest);
    assert_eq!((is_complete, rows.len()), (true, 901));
}

/// A client looks into the past, and marketd is killed: what lies between that look and now is
/// nobody's outage.
fn looked_at_once(rng: &mut Rng) {
    for (backfill, look) in [(0, 5), (600, 700), (1200, 900)] {
        let mut config = deep();
        config.history.m1.backfill = backfill;
        let mut world = begun(config, rng);
        world.run(60);
        let past = world.time() / MINUTE * MINUTE - 40_000 * MINUTE;
        assert!(!world.complete("1m", past, past + look * MINUTE).is_empty());
        world.run(60);
        let fetched = world.exchange.sent_pages;
        world.restart(MINUTE);
        world.run(120);
        // With 1000 candles to a page all of it would take 40 more.
        let again = world.exchange.sent_pages - fetched;
        assert!(again < 15, "{again} pages, {backfill} and {look}");
    }
}

/// The first that is ever asked of a market that nobody follows yet is a look into the past.
fn looked_at_first(rng: &mut Rng) {
    let mut config = deep();
    config.history.m1.backfill = 1500;
    config.history.h1.backfill = 10;
    config.history.d1.backfill = 10;
    config.sources[0].symbols = vec![];
    let mut world = begun(config, rng);
    world.run(60);
    let past = world.time() / MINUTE * MINUTE - 40_000 * MINUTE;
    let fetched = world.exchange.sent_pages;
    assert!(!world.complete("1m", past, past + 400 * MINUTE).is_empty());
    world.run(60);
    let more = world.exchange.sent_pages - fetched;
    assert!(more < 15, "{more} pages");
}
