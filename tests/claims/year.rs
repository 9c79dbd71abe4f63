//! A year of one market, of which the daemon sees a small part: it is away for days, killed while it works,
//! and its exchange is away in its own way. What it shows afterwards is what the exchange has. From one
//! deadline of the core to the next, so that a year takes seconds.

use crate::claims::world::*;
use crate::sim::charts::{ChartRow, read_rows};
use crate::support::naive::{INTERVALS, base_of, candle_at, length_ms, rolled_up};
use crate::support::{Rng, for_each_seed};
use crate::virtual_time::SECOND_US;
use marketd::config::{Config, Depth, HistoryConfig, Poll};
use std::time::Duration;

const DAY: i64 = 24 * HOUR;

/// Minutes that are kept: somewhat more than the quarter after which they are looked at.
const KEEP: i64 = 140_000;

/// Deeper than it is ever away. It polls seldom: this is about candles.
pub fn deep() -> Config {
    let hours = |count: u64| Duration::from_secs(3600 * count);
    let depth = |keep: i64, backfill: i64| Depth { keep, backfill };
    let mut config = config(0);
    let source = &mut config.sources[0];
    (source.poll, source.stale_after) = (Poll::Every(hours(1)), hours(3));
    source.frozen_after = hours(10_000);
    config.history =
        HistoryConfig { m1: depth(KEEP, 14_400), h1: depth(20_000, 1000), d1: depth(2000, 400) };
    config
}

/// A core with this configuration, beside an exchange that tells candles as they stay.
pub fn begun(config: Config, rng: &mut Rng) -> World {
    let mut world = World::over_file(config);
    world.exchange.is_prompt = true;
    let file = world.disk();
    (file.job_us, file.rng) = ((1000, SECOND_US), Rng::new(rng.next()));
    world
}

impl World {
    /// Asks for a chart once: whether it calls itself complete, and its rows. What calls itself so has no
    /// gaps, as the exchange has none.
    pub fn look(&mut self, interval: &str, from: i64, to: i64) -> (bool, Vec<ChartRow>) {
        let parameters = format!("&from={from}&to={to}&limit=1000&decimals=string");
        let answer = self.fetch(&chart_target(interval, &parameters));
        assert_eq!(answer.status, 200, "{answer:?}");
        let is_complete = answer.header("Chart-Coverage") == "complete";
        assert!(!is_complete || answer.header("Chart-Gaps") == "0", "{answer:?}");
        (is_complete, read_rows(answer.body.as_bytes(), true).expect("rows"))
    }

    /// Asks for a chart, until it calls itself complete.
    pub fn complete(&mut self, interval: &str, from: i64, to: i64) -> Vec<ChartRow> {
        for _ in 0..60 {
            if let (true, rows) = self.look(interval, from, to) {
                return rows;
            }
            self.run(1);
        }
        panic!("{interval} from {from} to {to} is never complete");
    }

    /// The chart from then on is the exchange's own history. Answers how many candles that were.
    pub fn check(&mut self, interval: &'static str, from: i64, to: i64) -> usize {
        let (mut at, mut count) = (candle_at(interval, from).0, 0);
        loop {
            // As many as one answer holds.
            let ends = std::iter::successors(Some(at), |end| Some(candle_at(interval, *end).1));
            let end = ends.take(1001).take_while(|end| *end <= to).last().unwrap_or(at);
            if end == at {
                return count;
            }
            let expected = rolled_up(&truth(base_of(interval), at, end), interval);
            let shown = self.complete(interval, at, end - 1);
            for (shown, expected) in shown.iter().zip(&expected) {
                assert_eq!(shown, expected, "{interval}");
            }
            assert_eq!(shown.len(), expected.len(), "{interval} from {at} to {end}");
            count += shown.len();
            at = end;
        }
    }

    /// Lets time pass until then, in lives of some hours and days without.
    fn pass(&mut self, until: i64, rng: &mut Rng) {
        while self.time() < until {
            let end = self.us + rng.below(5 * 3600) * SECOND_US;
            while self.us < end {
                let spell = rng.below(2 * 3600) * SECOND_US;
                self.run_to(end.min(self.us + spell));
                self.turn(rng.below(5));
            }
            self.turn(0);
            self.restart(rng.below(6 * DAY as u64) as i64);
        }
        self.run(3600);
    }

    /// The exchange goes in its own way, or comes back.
    fn turn(&mut self, way: u64) {
        let exchange = &mut self.exchange;
        (exchange.is_away, exchange.is_silent) = (way == 1, way == 2);
        (exchange.is_failing, exchange.is_timeless) = (way == 3, way == 3);
        if way == 1 {
            self.cut_all();
        }
    }
}

/// What the exchange itself has there.
pub fn truth(base: &str, from: i64, to: i64) -> Vec<ChartRow> {
    let length = length_ms(base).expect("a stored interval");
    let slots = (from + length - 1).div_euclid(length)..(to + length - 1).div_euclid(length);
    slots.map(|slot| (slot * length, figures(slot, length, i64::MAX))).collect()
}

#[test]
fn over_a_year_of_outages_every_chart_becomes_what_the_exchange_has() {
    for_each_seed(1, |_, rng| over_a_year(rng));
}

fn over_a_year(rng: &mut Rng) {
    let mut world = begun(deep(), rng);
    let (mut minutes, mut sizes) = (0, Vec::new());
    for quarter in 1..=4 {
        let from = BEGIN + (quarter - 1) * 365 * DAY / 4;
        let until = BEGIN + quarter * 365 * DAY / 4;
        world.pass(until, rng);
        minutes += world.check("1m", from, until);
        sizes.push(world.disk().bytes);
    }
    let end = BEGIN + 365 * DAY;
    let mut others = 0;
    for interval in INTERVALS {
        let (from, to) = match base_of(interval) {
            // Somewhere in what is kept.
            "1m" => {
                let from = end - (3 + rng.below(90)) as i64 * DAY;
                (from, from + 2 * DAY)
            }
            _ => (BEGIN, end),
        };
        others += world.check(interval, from, to);
    }
    let evicted = world.disk().evicted;
    let pages = world.exchange.sent_pages;
    eprintln!(
        "{minutes} minutes and {others} other candles as the exchange has them, {pages} pages, \
         {evicted} evicted, {sizes:?} bytes"
    );
    assert!(minutes >= 525_600, "{minutes}");
    assert!(evicted > 300_000, "{evicted}");
    // From the second quarter on it holds what is kept, and no more.
    assert!(sizes[3] <= sizes[1] + sizes[1] / 10, "{sizes:?}");
}
