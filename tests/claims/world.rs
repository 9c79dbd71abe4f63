//! A day that a test scripts: one source of one exchange, where something goes wrong when the test says so.
//! Charts are judged as those of [bad days](crate::sim::bad_day) are.

use crate::sim::answers::chart_fields;
pub use crate::sim::bad_day::host::{DAY_MS, HOUR_MS, Host, Ill, Kind, Lie, MINUTE_MS, Spell};
pub use crate::sim::bad_day::{BEGIN_MS, World};
use crate::sim::bad_day::{Source, config};
use crate::sim::charts::{ChartAsk, ChartFields, ChartRow, read_rows};
use crate::sim::truth::Trading;
pub use crate::sim::weather::SECOND;
use crate::support::Response;
use crate::support::{Json, Rng};
pub use marketd::config::Config;
use marketd::config::{Data, Depth, HistoryConfig, Poll};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// The exchange's time when it begins.
pub const BEGIN: i64 = BEGIN_MS + 7000;

/// The first trade of a market is so long before that.
const BEFORE: i64 = 45 * DAY_MS;

/// Candles are answered with an error.
pub const NO_CANDLES: Ill =
    Ill::Refuses { kind: Some(Kind::Candles), status: 500, retry_after: None, every_other: false };
pub const EMPTY: Ill = Ill::CandlesEmpty(None);
pub const FROZEN: Ill = Ill::CandlesFrozen(None);
pub const TIMELESS: Ill = Ill::ClockMissing { date: false };

/// A chart of minutes as it was answered.
#[derive(Debug)]
pub struct Chart {
    pub fields: ChartFields,
    pub rows: Vec<ChartRow>,
    pub body: String,
}

impl Chart {
    pub fn read(answer: &Response) -> Chart {
        assert_eq!(answer.status, 200, "{answer:?}");
        Chart {
            fields: chart_fields(&answer.headers).expect("the fields of a chart"),
            rows: read_rows(&answer.body, false).expect("a list of rows"),
            body: answer.text().to_string(),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.fields.complete
    }

    /// Whether caches may keep it for an hour.
    pub fn is_kept(&self) -> bool {
        self.fields.max_age >= Some(3600)
    }

    pub fn slots(&self) -> Vec<i64> {
        self.rows.iter().map(|row| row.0 / MINUTE_MS).collect()
    }
}

/// A market in which somebody trades in these minutes.
pub fn market(is_traded: impl Fn(i64) -> bool + 'static) -> Trading {
    Trading::In(Rc::new(is_traded))
}

/// Has a history file from its begin on.
pub fn keep_file(config: &mut Config) {
    config.data = Config::default().data;
}

impl World {
    /// A daemon with this depth of minutes, which follows a market with a trade in each of them.
    pub fn well(backfill: i64) -> World {
        World::with(backfill, vec![Trading::Always], |_| {})
    }

    /// The same with a history file.
    pub fn with_file(backfill: i64) -> World {
        World::with(backfill, vec![Trading::Always], keep_file)
    }

    /// The same of these markets, with another configuration.
    pub fn with(backfill: i64, markets: Vec<Trading>, alter: impl FnOnce(&mut Config)) -> World {
        World::at((true, BEGIN_MS - BEFORE), backfill, markets, alter)
    }

    /// The same of two markets, at an exchange that tells one ticker a call.
    pub fn market_by_market(backfill: i64) -> World {
        World::at((false, BEGIN_MS - BEFORE), backfill, vec![Trading::Always; 2], |_| {})
    }

    /// The same of markets that are traded since then, at an exchange that tells all tickers at once or not.
    pub fn at(
        (is_whole, born_ms): (bool, i64),
        backfill: i64,
        markets: Vec<Trading>,
        alter: impl FnOnce(&mut Config),
    ) -> World {
        let named = (0..markets.len().min(2)).collect();
        let mut host = Host::new((0, markets), (born_ms, BEGIN), 6000, &mut Rng::new(1));
        // As late as a candle may change that becomes final.
        host.truth.habits.booked_ms = Some(90_000);
        (host.has_date, host.most_a_minute) = (false, 10);
        let (sources, hosts) = (vec![Source { id: "whole", host: 0, named, is_whole }], vec![host]);
        let mut config = config(&sources, &hosts);
        let source = &mut config.sources[0];
        source.poll = Poll::Every(Duration::from_secs(2));
        source.stale_after = Duration::from_secs(15);
        let depth = |keep: i64, backfill: i64| Depth { keep, backfill };
        // Fewer days than a page has.
        (config.data, config.history) = (
            Data::Memory,
            HistoryConfig {
                m1: depth(43_200, backfill),
                h1: depth(43_800, 10),
                d1: depth(200, 10),
            },
        );
        alter(&mut config);
        // This machine's clock is right.
        let mut world = World::of((sources, hosts), config, (1, BEGIN - BEGIN_MS), Rng::new(1));
        // The exchange and the disk answer at once, and nothing is called closed before its end.
        (world.flight_us, world.job_us, world.tolerance_ms) = ((0, 0), (0, 0), 0);
        world.disk.quotes = Some(BTreeMap::new());
        world
    }

    /// The same, settled down: the configured history is there.
    pub fn settled(mut self) -> World {
        self.run(200);
        self.run_to_second(10);
        self
    }

    /// The exchange's time.
    pub fn clock(&self) -> i64 {
        self.hosts[0].clock(self.us)
    }

    /// The minute that has not ended by it.
    pub fn current(&self) -> i64 {
        self.clock().div_euclid(MINUTE_MS)
    }

    /// Lets time pass up to so many seconds behind the begin of a minute of the exchange's.
    pub fn run_to_second(&mut self, second: i64) {
        let wait = (second * 1000 - self.clock()).rem_euclid(MINUTE_MS);
        self.run_to(self.us + wait as u64 * 1000);
    }

    /// This is wrong from now on.
    pub fn begins(&mut self, ill: Ill) {
        let (from, until) = (self.us, u64::MAX);
        self.hosts[0].spells.push(Spell { from, until, ill });
        if ill == Ill::Gone {
            self.cut_all();
        }
    }

    /// Nothing is wrong from now on.
    pub fn ends(&mut self) {
        let us = self.us;
        self.hosts[0].spells.iter_mut().for_each(|it| it.until = it.until.min(us));
    }

    /// This is wrong for so many seconds, in which charts are looked at.
    pub fn suffers(&mut self, ill: Ill, seconds: u64) {
        self.begins(ill);
        let (first, until) = (self.current(), self.us + seconds * SECOND);
        while self.us < until {
            self.run_to(until.min(self.us + SECOND * (seconds / 60).max(30)));
            let last = self.current();
            self.minutes(first - 50, first);
            self.minutes(first - 50, last);
            self.newest(50);
        }
        self.ends();
    }

    /// The exchange's clock is set.
    pub fn jumps(&mut self, ms: i64) {
        self.hosts[0].truth.off_ms += ms;
    }

    /// A range of minutes, the last one included.
    pub fn minutes(&mut self, first: i64, last: i64) -> Chart {
        self.judged(first, last, false)
    }

    /// The same, all of which is known, and final where it has closed.
    #[track_caller]
    pub fn whole(&mut self, first: i64, last: i64) -> Chart {
        let chart = self.judged(first, last, true);
        assert!(chart.is_complete(), "{first} to {last}: {chart:?}");
        chart
    }

    /// The same of more minutes than a chart has.
    #[track_caller]
    pub fn all_whole(&mut self, first: i64, last: i64) {
        for first in (first..=last).step_by(5000) {
            self.whole(first, last.min(first + 4999));
        }
    }

    /// The same, once it is complete.
    #[track_caller]
    pub fn complete(&mut self, first: i64, last: i64) -> Chart {
        for _ in 0..60 {
            if self.minutes(first, last).is_complete() {
                break;
            }
            self.run(1);
        }
        self.whole(first, last)
    }

    fn judged(&mut self, first: i64, last: i64, is_calm: bool) -> Chart {
        let range = (Some(first * MINUTE_MS), Some(last * MINUTE_MS));
        let answer = self.ask_chart(0, ChartAsk::of(0, "1m", range), is_calm);
        Chart::read(&answer)
    }

    /// So many of the newest minutes.
    pub fn newest(&mut self, count: usize) -> Chart {
        let chart = ChartAsk { limit: count, ..ChartAsk::of(0, "1m", (None, None)) };
        Chart::read(&self.ask_chart(0, chart, false))
    }

    /// Minutes with these parameters, as they are.
    pub fn chart(&mut self, parameters: &str) -> Response {
        self.fetch(&format!("/api/ecosystem/chart?symbol=M00USDT&interval=1m{parameters}"))
    }

    /// The body of an answer.
    pub fn get(&mut self, target: &str) -> Json {
        self.fetch(target).exact()
    }

    /// Requests for minutes of the first market since the last call: first and last minute of each.
    pub fn pages(&mut self) -> Vec<(i64, i64)> {
        let asked = std::mem::take(&mut self.hosts[0].asked).into_iter();
        let minutes = asked.filter(|it| (it.0, it.1) == (0, "1m"));
        minutes.map(|(_, _, from, to)| (from / MINUTE_MS, to / MINUTE_MS)).collect()
    }

    /// Lets time pass until so many further pages of candles were asked for.
    pub fn run_for_pages(&mut self, count: usize) {
        let (until, limit) = (self.hosts[0].asked.len() + count, self.us + 60 * SECOND);
        while self.hosts[0].asked.len() < until {
            assert!(self.step(limit), "no more pages are asked for");
        }
    }

    /// Requests of this kind so far.
    pub fn count(&self, kind: Kind) -> u64 {
        self.tally.requests.get(&("whole", kind)).copied().unwrap_or_default()
    }

    /// Is killed, and begins anew after so many minutes.
    pub fn restart(&mut self, away: u64) {
        self.disk_from = 0;
        self.die(away * 60 * SECOND);
    }

    /// Is killed, and begins anew on a disk that answers nothing for so long, and then one job after another.
    pub fn restart_on_slow_disk(&mut self, slow_ms: u64) {
        const JOB_US: u64 = 500_000;
        self.job_us = (JOB_US, JOB_US);
        self.disk_from = self.us + (slow_ms * 1000).saturating_sub(JOB_US);
        self.die(0);
        self.job_us = (0, 0);
    }
}
