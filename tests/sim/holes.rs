//! Holes in what is known of one market, each made in a way of its own, over the driver of
//! [`year`](super::year): what was missed comes by itself, and until then nothing is called complete
//! that is not.

use super::year::{MINUTE, Year, config};
use crate::support::Rng;
use crate::support::daemon::TempDir;

/// Away for longer than the backfill is deep, and killed again and again while that is fetched: all
/// of it comes by itself in the end, and nothing that lies behind a client's one look into the past.
pub fn killed_while_it_catches_up(rng: &mut Rng) {
    const AWAY: i64 = 12_000;
    const BACKFILL: i64 = 1200;
    let dir = TempDir::new();
    let mut config = config();
    config.history.m1.backfill = BACKFILL;
    let mut year = Year::with(&dir, rng, config);
    year.run(60);
    let left = year.clocks().unix.0 / MINUTE * MINUTE;
    let past = left - 40_000 * MINUTE;
    year.chart("1m", past, past + 400 * MINUTE);
    year.run(60);
    year.die(AWAY * MINUTE);
    for _ in 0..3 {
        // The newest of each interval, and some of what was missed.
        year.last_page = year.pages + 5;
        year.run(10);
        year.die(0);
    }
    year.last_page = u64::MAX;
    year.run(30);
    let fetched = year.pages;
    // From now on there is only what it has.
    year.last_page = 0;
    let count = year.check("1m", left - (BACKFILL - 5) * MINUTE, left + AWAY * MINUTE);
    assert!(count as i64 >= AWAY + BACKFILL - 10, "{count}");
    // With 1000 candles to a page, far fewer than all from that look on would take.
    assert!(fetched < 40, "{fetched} pages");
}

/// The disk takes nothing for a day, more comes than may wait for it, and memory holds little: what
/// had to be let go of is not called known, and comes again by itself when there is room.
pub fn dropped_while_the_disk_is_full(rng: &mut Rng) {
    /// More than may wait.
    const BACKFILL: i64 = 60_000;
    let dir = TempDir::new();
    let mut config = config();
    config.history.m1.backfill = BACKFILL;
    config.limits.candle_bytes = 256 * 1024;
    let mut year = Year::with(&dir, rng, config);
    year.is_full = true;
    let began = year.clocks().unix.0 / MINUTE * MINUTE;
    year.run(86_400);
    let fetched = year.pages;
    assert!(fetched > 60, "{fetched} pages");
    // Without the exchange it can tell of no more than it has.
    year.last_page = 0;
    let mut partial = 0;
    for page in 0..BACKFILL / 1000 {
        let from = began - page * 1000 * MINUTE;
        let to = from + 999 * MINUTE;
        let (is_complete, rows) = year.look("1m", from, to);
        let truth = year.truth("1m", from, to + 1);
        partial += i64::from(!is_complete);
        match is_complete {
            true => assert_eq!(rows, truth, "from {from}"),
            false => assert!(rows.iter().all(|row| truth.contains(row)), "from {from}"),
        }
    }
    assert!(partial > BACKFILL / 2000, "{partial} charts are partial");
    year.last_page = u64::MAX;
    year.is_full = false;
    // Until what was asked in vain is asked once more.
    year.run(1800);
    // What memory holds and the disk did not take comes again after the next start; it is little.
    year.config.limits.candle_bytes = 32 << 20;
    year.die(0);
    let fetched = year.pages;
    year.run(60);
    let again = year.pages - fetched;
    assert!(again < 20, "{again} pages are asked again");
    year.last_page = 0;
    // As deep as it is configured, counted from now.
    let (from, to) = (began - (BACKFILL - 1500) * MINUTE, began + 1440 * MINUTE);
    let count = year.check("1m", from, to);
    assert!(count as i64 >= BACKFILL - 100, "{count}");
}

/// Clients have asked for as many scattered candles as coverage has pieces. One more that is older
/// than all of them is told as far as it is known, and is not asked again and again; what touches
/// them is taken in whole.
pub fn in_as_many_pieces_as_may_be(rng: &mut Rng) {
    /// Pieces of coverage, at most.
    const PIECES: i64 = 512;
    let dir = TempDir::new();
    let mut config = config();
    config.history.m1.backfill = 10;
    config.history.m1.keep = 600_000;
    let mut year = Year::with(&dir, rng, config);
    year.run(60);
    let now = year.clocks().unix.0 / MINUTE * MINUTE;
    let oldest = now - 520_000 * MINUTE;
    for piece in 0..PIECES - 1 {
        // What a page has room for up to the next piece would come along.
        let at = oldest + 1002 * piece * MINUTE;
        assert_eq!(year.chart("1m", at, at).len(), 1);
    }
    let at = oldest - 5000 * MINUTE;
    year.run(60);
    let asked = year.pages;
    let (is_complete, rows) = year.look("1m", at, at + 9 * MINUTE);
    assert!(!is_complete && rows.is_empty(), "{rows:?}");
    assert_eq!(year.pages, asked + 1);
    // The newest candles of three intervals are read again as ever.
    year.run(120);
    assert!(year.pages <= asked + 12, "{} pages", year.pages - asked);
    let from = oldest - 900 * MINUTE;
    let (is_complete, rows) = year.look("1m", from, oldest);
    assert_eq!((is_complete, rows.len()), (true, 901));
}

/// A client looks into the past, and marketd is killed: what lies between that look and now is
/// nobody's outage.
pub fn looked_at_once(rng: &mut Rng) {
    for (backfill, look) in [(0, 5), (600, 700), (1200, 900)] {
        let dir = TempDir::new();
        let mut config = config();
        config.history.m1.backfill = backfill;
        let mut year = Year::with(&dir, rng, config);
        year.run(60);
        let past = year.clocks().unix.0 / MINUTE * MINUTE - 40_000 * MINUTE;
        assert!(!year.chart("1m", past, past + look * MINUTE).is_empty());
        year.run(60);
        let fetched = year.pages;
        year.die(MINUTE);
        year.run(120);
        // With 1000 candles to a page all of it would take 40 more.
        let again = year.pages - fetched;
        assert!(again < 15, "{again} pages, {backfill} and {look}");
    }
}

/// The first that is ever asked of a market that nobody follows yet is a look into the past.
pub fn looked_at_first(rng: &mut Rng) {
    let dir = TempDir::new();
    let mut config = config();
    config.history.m1.backfill = 1500;
    config.history.h1.backfill = 10;
    config.history.d1.backfill = 10;
    config.sources[0].symbols = vec![];
    let mut year = Year::with(&dir, rng, config);
    year.run(60);
    let past = year.clocks().unix.0 / MINUTE * MINUTE - 40_000 * MINUTE;
    let fetched = year.pages;
    assert!(!year.chart("1m", past, past + 400 * MINUTE).is_empty());
    year.run(60);
    let more = year.pages - fetched;
    assert!(more < 15, "{more} pages");
}
