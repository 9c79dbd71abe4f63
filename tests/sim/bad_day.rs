//! Bad days: three sources on two exchanges that fail in every way that exchanges do, in virtual time.
//!
//! Owns two made-up exchanges, the clients' questions and the file of a core ([`VirtualTime`]). One source
//! asks for all quotes at once, another one on the same host market by market, a third one market by market
//! on a host of its own. What is wrong when is made from the seed, and the exchanges answer accordingly
//! ([`host`]); every claim of marketd is compared with what was traded ([`super::truth`]) by [`judge`].
//!
//! - `complete` lacks nothing that was traded; nothing is called empty that is not; what may be kept for an
//!   hour is final; once all has been well for a while, everything is there
//! - no candle leaves the file before its time
//! - no window of a host's budget is exceeded, nothing is asked within a `Retry-After`, and what is refused is
//!   not asked for again and again
//! - `/health` names what lasts, and is `ok` some time after it is over; each fault costs a few lines of log

pub mod host;
pub mod judge;

use super::charts::ChartAsk;
use super::disk::Disk;
use super::exchange::MINUTE;
use super::quotes::kept;
use super::truth::Trading;
use super::weather::SECOND;
use crate::support::client;
use crate::support::message::MessageHead;
use crate::support::naive::{STORED, length_ms};
use crate::support::{BINANCE, Json, Rng, market_by_market};
use crate::virtual_time::{Peers, Request, Response, VirtualTime};
pub use host::HOUR;
use host::{DAY_MS, HOUR_MS, Host, Ill, Kind, MINUTE_MS};
use judge::{Asked, check};
use marketd::config::{Config, Data, Depth, HistoryConfig, Poll, SourceConfig, Url};
use marketd::core::{Core, ProcessFacts};
use marketd::history::{DiskJob, Reply, SeriesName};
use marketd::time::Now;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// 2026-01-15T00:00:00Z.
pub const BEGIN_MS: i64 = 1_768_435_200_000;

/// The exchanges were founded some days before.
const BORN_MS: i64 = BEGIN_MS - 3 * DAY_MS;

/// Candles of a minute that are kept.
const KEEP: i64 = 3000;

/// A quote is fresh for so long.
const STALE_MS: i64 = 30_000;

/// The daemon is killed after so long at the latest.
const LIFE: u64 = 6 * HOUR;

/// All has been well for so long when everything must be there again: a quote that was polled right after a
/// minute in which nothing was traded contradicts that for an hour.
const CALM: u64 = 90 * MINUTE;

/// What has closed for so long is known to be empty, if it is: quotes may contradict that for an hour.
const SURE_MS: i64 = 80 * MINUTE_MS;

/// With fewer units, quotes alone take all of a budget.
const AMPLE: u64 = 1500;

/// A source: its place among the hosts, and the symbols that it names.
pub struct Source {
    pub id: &'static str,
    pub host: usize,
    pub named: Vec<usize>,
    /// Whether it asks for all quotes at once, and so tracks all markets.
    pub is_whole: bool,
}

/// What a day has cost.
#[derive(Debug, Default)]
pub struct Tally {
    /// By source and kind.
    pub requests: BTreeMap<(&'static str, Kind), u64>,
    pub charts: u64,
    pub log_lines: u64,
    pub spells: u64,
}

pub type World = VirtualTime<Day>;

/// What the world owns beside time.
pub struct Day {
    rng: Rng,
    pub config: Config,
    sources: Vec<Source>,
    pub hosts: Vec<Host>,
    pub disk: Disk,
    /// How long a message is on its way, and a job of the disk takes: at least and at most.
    pub flight_us: (u64, u64),
    pub job_us: (u64, u64),
    /// This machine's clock at the begin of the run.
    machine_ms: i64,
    /// When this life began, and how many there were.
    life: (u64, u64),
    /// Symbols that were served in this life, by source.
    served: Vec<(usize, usize)>,
    /// Looks in a row at which `/health` was `ok` while quotes were stale.
    hidden: u64,
    /// Refused requests, by spell.
    refused: BTreeMap<(usize, usize, Kind), u64>,
    /// How far marketd may be wrong about the exchange's time.
    pub tolerance_ms: i64,
    pub tally: Tally,
}

impl World {
    /// A day that is bad for so many microseconds, and then good.
    pub fn new(bad_us: u64, rng: &mut Rng) -> World {
        let mut rng = Rng::new(rng.next());
        let mut hosts = Vec::new();
        for at in 0..2 {
            let count = 6 + rng.below(6) as usize;
            let off_ms = rng.between(-20_000, 20_000);
            let traded: Vec<Trading> = (0..count)
                .map(|_| match (*rng.pick(&[1000, 1000, 936, 170]), rng.chance(1, 3)) {
                    (often, true) => Trading::Pausing(often),
                    (often, false) => Trading::Often(often),
                })
                .collect();
            let (times, budget) = ((BORN_MS, BEGIN_MS + off_ms), *rng.pick(&[1200, AMPLE, 6000]));
            let mut host = Host::new((10 * at, traded), times, budget, &mut rng);
            if rng.chance(1, 3) {
                host.remove(count - 1, BEGIN_MS + rng.below(bad_us / 1000) as i64);
            }
            host.spells = host::forecast(bad_us, &mut rng);
            hosts.push(host);
        }
        let all = |host: usize| (0..hosts[host].count()).collect::<Vec<_>>();
        let sources = vec![
            Source { id: "whole", host: 0, named: vec![0, 1, 2], is_whole: true },
            Source { id: "beside", host: 0, named: all(0), is_whole: false },
            Source { id: "ones", host: 1, named: all(1), is_whole: false },
        ];
        let config = config(&sources, &hosts);
        let seed = rng.next();
        // How far this machine's clock is off.
        let off_ms = *rng.pick(&[0, 0, 0, 90_000, -3000]);
        World::of((sources, hosts), config, (seed, off_ms), rng)
    }

    /// A daemon with this seed that follows these sources of these hosts, by a clock that is so far off.
    pub fn of(
        (sources, hosts): (Vec<Source>, Vec<Host>),
        config: Config,
        (seed, off_ms): (u64, i64),
        rng: Rng,
    ) -> World {
        let spells = hosts.iter().map(|host| host.spells.len() as u64).sum();
        let day = Day {
            rng,
            config: config.clone(),
            sources,
            hosts,
            disk: Disk::new(true, Rng::new(1)),
            flight_us: (10_000, 59_999),
            job_us: (1000, 30_999),
            machine_ms: BEGIN_MS + off_ms,
            life: (0, 1),
            served: Vec::new(),
            hidden: 0,
            refused: BTreeMap::new(),
            tolerance_ms: 4000,
            tally: Tally { spells, ..Tally::default() },
        };
        VirtualTime::begin(day, (BEGIN_MS, off_ms), |now| core(&config, seed, now))
    }

    /// Lives through the bad time, with clients that look at everything, and through the good time after it.
    pub fn live(&mut self, bad_us: u64) {
        log_lines::begin();
        let mut next_death = self.rng.below(LIFE);
        while self.us < bad_us {
            self.run(30);
            self.look(false);
            if self.us > next_death {
                let away = *self.rng.pick(&[5 * SECOND, 10 * MINUTE, 90 * MINUTE, 30 * HOUR]);
                self.die(away);
                next_death = self.us + self.rng.below(LIFE);
            }
        }
        let calm = self.us + CALM;
        while self.us < calm {
            self.run(30);
            self.look(false);
        }
        for _ in 0..10 {
            self.run(20);
            self.look(true);
        }
        self.look_at_all();
        let told = log_lines::end();
        let (lines, us) = (told.len() as u64, self.us);
        self.tally.log_lines = lines;
        let (spells, lives) = (self.tally.spells, self.life.1);
        // A spell may fail each kind of each source of its host, begin and end.
        let most = 30 * lives + 16 * (spells + self.gone_markets()) + 4 * us / HOUR;
        check(lines <= most, us, || {
            format!("{lines} lines of log, {spells} spells, {lives} lives: {}", told.join("\n"))
        });
    }

    /// Is killed, and begins anew after so long.
    pub fn die(&mut self, away: u64) {
        let is_first_done = self.rng.chance(1, 2);
        self.kill(is_first_done);
        let begin = self.us + away;
        let day = &mut self.peers;
        day.served.clear();
        day.life = (begin, day.life.1 + 1);
        day.hosts.iter_mut().for_each(|host| host.is_met_anew(begin));
        let (config, seed) = (day.config.clone(), day.rng.next());
        self.begin_anew(away, |now| core(&config, seed, now));
    }

    /// Looks at health, at a quote and at a chart of each source.
    fn look(&mut self, is_calm: bool) {
        let health = self.fetch("/health").exact();
        let us = self.us;
        self.peers.judge_health(&health, us);
        for source in 0..self.sources.len() {
            let market = match self.sources[source].is_whole {
                true => {
                    let count = self.hosts[self.sources[source].host].count();
                    self.rng.below(count as u64) as usize
                }
                false => self.some_named(source),
            };
            let of = &self.sources[source];
            let host = &self.hosts[of.host];
            let target = format!("/api/v1/quotes/{}?source={}", host.symbol(market), of.id);
            let answer = self.fetch(&target);
            let us = self.us;
            self.peers.judge_quote((source, market), &answer, us);
            let market = self.some_named(source);
            let interval = *self.rng.pick(&["1m", "1m", "1m", "1h", "1d"]);
            let length = length_ms(interval).expect("stored");
            let clock = self.hosts[self.sources[source].host].clock(self.us);
            let reach = *self.rng.pick(&[5, 30, 200, 1000]);
            let from = clock - self.rng.below(reach) as i64 * length;
            let to = self.rng.chance(1, 2).then(|| from + self.rng.below(300) as i64 * length);
            let (from, to) = match is_calm {
                true => (Some(from.max(BORN_MS)), Some(clock - length - SURE_MS)),
                false => (self.rng.chance(4, 5).then_some(from), to),
            };
            self.ask_chart(source, ChartAsk::of(market, interval, (from, to)), is_calm);
        }
        self.look_at_the_past();
    }

    /// What has ended by every witness of the time needs no clock.
    fn look_at_the_past(&mut self) {
        for source in 0..self.sources.len() {
            let host = &self.hosts[self.sources[source].host];
            let since = self.us.saturating_sub(CALM);
            let mut spells = host.spells.iter();
            let is_well =
                spells.all(|it| it.leaves_the_past() || it.until < since || it.from > self.us);
            if self.us > self.life.0 + CALM && is_well {
                let market = self.some_named(source);
                let clock = self.hosts[self.sources[source].host].clock(self.us);
                let range = (Some(clock - 5 * HOUR_MS), Some(clock - 2 * HOUR_MS));
                self.ask_chart(source, ChartAsk::of(market, "1m", range), true);
            }
        }
    }

    /// How many markets have left by now.
    fn gone_markets(&self) -> u64 {
        let markets = |host: &Host| {
            let clock = host.clock(self.us);
            (0..host.count()).filter(|at| host.truth.state(*at, clock).is_none()).count() as u64
        };
        self.hosts.iter().map(markets).sum()
    }

    /// Asks for a chart, and judges it.
    pub fn ask_chart(&mut self, source: usize, chart: ChartAsk, is_calm: bool) -> client::Response {
        let (of, us) = (&self.sources[source], self.us);
        let host = &self.hosts[of.host];
        let (clock, market) = (host.clock(us), chart.market);
        let target = chart.target(&host.symbol(market), of.id);
        // A market that has left is not asked for any more.
        let is_there = host.stays(market) && !host.hides(market, false, us);
        // Without a newer candle of a followed market, nothing proves that there is none of this one.
        let [after, now] =
            [chart.to.unwrap_or(clock), clock - 3 * MINUTE_MS].map(|it| it / MINUTE_MS);
        let goes_on = |at| (after..now).any(|minute| host.truth.traded(at, "1m", minute));
        let is_calm = is_calm && is_there && chart.from.is_some() && host.budget >= AMPLE;
        let is_calm = is_calm && of.named.iter().copied().any(goes_on);
        let asked = Asked { source, chart, clock: (clock, clock), us, is_calm };
        let answer = self.fetch(&target);
        let us = self.us;
        self.peers.judge_chart(asked, &answer, us);
        answer
    }

    /// After all has been well for long, each named market has all that was ever followed of it, as far as that
    /// is kept.
    fn look_at_all(&mut self) {
        for source in 0..self.sources.len() {
            for market in self.sources[source].named.clone() {
                let clock = self.hosts[self.sources[source].host].clock(self.us);
                let minutes = (clock - BEGIN_MS + 9 * HOUR_MS).min(45 * HOUR_MS);
                for (interval, back) in [("1m", minutes), ("1h", DAY_MS), ("1d", 2 * DAY_MS)] {
                    let to = clock - length_ms(interval).expect("stored") - SURE_MS;
                    let range = (Some(clock - back), Some(to));
                    self.ask_chart(source, ChartAsk::of(market, interval, range), true);
                    self.run(3);
                }
            }
        }
    }
}

impl Peers for Day {
    fn takes_connection(&mut self, address: SocketAddr, us: u64) -> bool {
        !self.host(address).has(us, |ill| ill == Ill::Gone)
    }

    fn flight_us(&mut self) -> u64 {
        let (least, most) = self.flight_us;
        least + self.rng.below(most - least + 1)
    }

    fn answer(&mut self, request: &Request, us: u64) -> Response {
        let kind = Kind::of(&request.target);
        let source = self.sources.iter().position(|it| request.target[1..].starts_with(it.id));
        let source = source.expect("a path begins with its source");
        let Source { id, host, .. } = self.sources[source];
        *self.tally.requests.entry((id, kind)).or_default() += 1;
        self.note_refused(host, source, kind, us);
        self.hosts[host].answer(request, us)
    }

    fn was_read(&mut self, address: SocketAddr, head: &MessageHead, us: u64) {
        self.host(address).was_read(head, us);
    }

    fn job_us(&mut self) -> u64 {
        let (least, most) = self.job_us;
        least + self.rng.below(most - least + 1)
    }

    /// What is stored stays until it is too old.
    fn work(&mut self, job: DiskJob, us: u64) -> Vec<Reply> {
        let DiskJob::Write(batch) = &job else {
            return self.disk.work(job, us);
        };
        let mut stored = Vec::new();
        for (name, changes) in &batch.series {
            let Some(kept) = self.disk.series.get(name) else { continue };
            let removed = changes.candles().filter(|(_, candle)| candle.is_none());
            let removed = removed.map(|(slot, _)| slot..slot + 1);
            for slots in changes.forgotten().chain(removed) {
                stored.extend(kept.candles.range(slots).map(|(slot, _)| (name.clone(), *slot)));
            }
        }
        let covered: Vec<_> = (batch.series.iter())
            .map(|(name, changes)| (name.clone(), changes.covered().collect()))
            .collect();
        let said = self.disk.work(job, us);
        if self.disk.is_full {
            return said;
        }
        for (name, slot) in stored {
            self.check_removed(&name, slot, us);
        }
        for (name, slots) in covered {
            self.check_covered(&name, slots, us);
        }
        said
    }
}

impl Day {
    fn some_named(&mut self, source: usize) -> usize {
        *self.rng.pick(&self.sources[source].named)
    }

    fn host(&mut self, address: SocketAddr) -> &mut Host {
        let at = (0..self.hosts.len()).find(|at| address_of(*at) == address);
        &mut self.hosts[at.expect("only hosts are connected to")]
    }

    /// What is refused for long is not asked for again and again.
    fn note_refused(&mut self, host: usize, source: usize, of: Kind, us: u64) {
        let spells = self.hosts[host].spells.iter().enumerate();
        let spell = spells.into_iter().find(|(_, spell)| {
            spell.is_on(us)
                && matches!(spell.ill,
                    Ill::Refuses { kind, every_other: false, .. } if kind.is_none_or(|it| it == of))
        });
        let Some((at, spell)) = spell else { return };
        let count = self.refused.entry((at, source, of)).or_default();
        *count += 1;
        // Steps of a back-off from a poll up to half a minute, on all connections at first.
        let most = 25 * self.life.1 + (us - spell.from) / (10 * SECOND);
        let (count, id) = (*count, self.sources[source].id);
        check(count <= most, us, || {
            format!(
                "{id} asks {count} times for {of:?}, all refused since {} s: {spell:?}",
                (us - spell.from) / SECOND
            )
        });
    }

    /// The exchange of a series, its market, and the interval with its length.
    fn place_of(&self, name: &SeriesName) -> (&Host, usize, (&'static str, i64)) {
        let source = self.sources.iter().find(|it| *it.id == *name.source);
        let host = &self.hosts[source.expect("a source of this run").host];
        let market = (0..host.count()).find(|at| *host.symbol(*at) == *name.symbol);
        let interval = STORED.into_iter().find(|it| *it == name.interval.name()).expect("stored");
        let length = length_ms(interval).expect("stored");
        (host, market.expect("a market of this run"), (interval, length))
    }

    /// A candle has been removed from the file, and perhaps been put back at once.
    fn check_removed(&self, name: &SeriesName, slot: i64, us: u64) {
        let (host, market, (interval, length)) = self.place_of(name);
        // While no witness tells the exchange's time, this machine's clock is it.
        let clock = host.clock(us).max(self.machine_ms + (us / 1000) as i64);
        let oldest = clock.div_euclid(length) - self.config.history.depth(name.interval).keep;
        let is_true = host.truth.traded(market, interval, slot)
            && (slot + 1) * length <= clock
            && slot >= oldest;
        let is_there = self.disk.series[name].candles.contains_key(&slot);
        check(is_there || !is_true, us, || {
            format!("{name:?} loses {slot} at {clock}; {oldest} and later are kept")
        });
    }

    /// Nothing that the file calls empty was traded in, and nothing in it lies ahead.
    fn check_covered(&self, name: &SeriesName, covered: Vec<Range<i64>>, us: u64) {
        let (host, market, (interval, length)) = self.place_of(name);
        let clock = host.clock(us);
        let kept = &self.disk.series[name];
        let born = host.truth.habits.born_ms.unwrap_or(0);
        let ends = (born / length, (clock + 2 * DAY_MS) / length);
        for slot in covered.into_iter().flat_map(|it| it.start.max(ends.0)..it.end.min(ends.1)) {
            let is_closed = (slot + 1) * length <= clock + 4000;
            let is_empty = !kept.candles.contains_key(&slot);
            let is_so = !is_empty || !host.truth.traded(market, interval, slot);
            check(is_closed && is_so, us, || {
                format!("{name:?} {slot} is stored as closed, empty: {is_empty}, at {clock}")
            });
        }
    }

    pub fn judge_chart(&mut self, mut asked: Asked, answer: &client::Response, us: u64) {
        let host = &self.hosts[self.sources[asked.source].host];
        asked.clock = (asked.clock.0 - self.tolerance_ms, host.clock(us) + self.tolerance_ms);
        self.tally.charts += 1;
        // A chart ends with the time that is believed.
        if host.deceives(us) {
            return;
        }
        let (stored, status) = (self.stored(&asked, us), answer.status);
        if status == 200 {
            let keep = kept(&self.config.history, asked.chart.interval);
            return judge::chart(&asked, host, (&stored, keep), answer);
        }
        check(status != 404 || stored.is_empty(), us, || {
            format!("{asked:?}: {status}, and the file has candles")
        });
        self.judge_missing(status, (asked.source, asked.chart.market), us);
    }

    fn judge_quote(
        &mut self,
        (source, market): (usize, usize),
        answer: &client::Response,
        us: u64,
    ) {
        if answer.status != 200 {
            return self.judge_missing(answer.status, (source, market), us);
        }
        let host = &self.hosts[self.sources[source].host];
        let (quote, clock) = (answer.exact(), host.clock(us));
        judge::quote(&quote, (&host.truth, market), (clock, STALE_MS + self.tolerance_ms), us);
        self.served.push((source, market));
    }

    /// The slots of a chart that the file has candles of, as far as nobody can take them for new.
    fn stored(&self, asked: &Asked, us: u64) -> Vec<i64> {
        let of = &self.sources[asked.source];
        let ask = &asked.chart;
        let symbol = self.hosts[of.host].symbol(ask.market);
        let length = length_ms(ask.interval).expect("stored");
        let mut series = self.disk.series.iter();
        let series = series.find(|(name, _)| {
            *name.source == *of.id
                && *name.symbol == *symbol
                && name.interval.name() == ask.interval
        });
        let old = (asked.clock.0 - HOUR_MS).div_euclid(length);
        let from = ask.from.map_or(i64::MAX, |from| (from + length - 1).div_euclid(length));
        let end = ask.to.map_or(old, |to| old.min(to.div_euclid(length) + 1));
        match series.filter(|_| us > self.life.0 + MINUTE && from < end) {
            Some((_, kept)) => kept.candles.range(from..end).map(|(slot, _)| *slot).collect(),
            None => Vec::new(),
        }
    }

    /// A market that was served and is still listed does not become unknown. A list that is short again and
    /// again is believed, until the next one an hour later.
    fn judge_missing(&mut self, status: u16, (source, market): (usize, usize), us: u64) {
        let of = &self.sources[source];
        let host = &self.hosts[of.host];
        let is_listed =
            host.truth.state(market, host.clock(us)).is_some() && !host.hides(market, true, us);
        let was_served = self.served.contains(&(source, market));
        check(status != 404 || !is_listed || !was_served, us, || {
            format!("{} of {} is {status}, and the exchange has it", host.symbol(market), of.id)
        });
    }

    fn judge_health(&mut self, health: &Json, us: u64) {
        let begun = self.life.0;
        let is_ok = health["status"] == "ok";
        let calm = self.hosts.iter().map(|host| host.calm_since(us));
        let calm = calm.reduce(|one, other| Some(one?.max(other?))).flatten();
        let is_calm = calm.is_some_and(|since| us > since.max(begun) + 20 * MINUTE);
        check(is_ok || !is_calm, us, || {
            format!("all has been well for long, and health is {health}")
        });
        for source in 0..self.sources.len() {
            let of = &self.sources[source];
            let lasting = self.hosts[of.host].spells.iter().find(|spell| {
                spell.is_on(us)
                    && us > spell.from.max(begun) + 5 * MINUTE
                    && match spell.ill {
                        Ill::Gone => true,
                        Ill::Refuses { kind, every_other: false, .. } => {
                            kind.is_none_or(|kind| matches!(kind, Kind::Candles | Kind::Quotes))
                        }
                        _ => false,
                    }
            });
            let mut reasons = health["reasons"].items().iter();
            // Sources of one host wait for each other.
            let of_host = self.sources.iter().filter(|it| it.host == of.host);
            let is_named =
                reasons.any(|reason| of_host.clone().any(|it| reason["source"] == it.id));
            check(lasting.is_none() || is_named, us, || {
                format!("{} is not named, and {lasting:?} lasts: {health}", of.id)
            });
        }
        let stale = health["quotes"]["stale"].integer().unwrap_or(0);
        let all_there = self
            .hosts
            .iter()
            .all(|host| (0..host.count()).all(|at| host.stays(at) && !host.hides(at, false, us)));
        self.hidden = if is_ok && stale > 0 && all_there { self.hidden + 1 } else { 0 };
        let hidden = self.hidden;
        check(hidden < 4, us, || {
            format!("{stale} quotes have been stale for long, and health is {health}")
        });
    }
}

fn address_of(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 80))
}

fn core(config: &Config, seed: u64, now: Now) -> Core {
    let mut core = Core::new(config.clone(), None, ProcessFacts::default, seed, now);
    if config.data != Data::Memory {
        core.keep_history(Disk::opened(), now);
    }
    core
}

pub fn config(sources: &[Source], hosts: &[Host]) -> Config {
    let source = |of: &Source| {
        let host = &hosts[of.host];
        let mut text = BINANCE.replace("\"units\": 6000", &format!("\"units\": {}", host.budget));
        if !of.is_whole {
            text = market_by_market(&text);
        }
        let symbols = of.named.iter().map(|at| host.symbol(*at));
        SourceConfig {
            id: of.id.to_string(),
            dialect: format!("./{}.json", of.id),
            dialect_text: text,
            url: Url::parse(&format!("http://{}/{}", address_of(of.host).ip(), of.id)).ok(),
            symbols: symbols.collect(),
            quote_assets: if of.is_whole { vec!["USDT".to_string()] } else { Vec::new() },
            poll: Poll::Every(Duration::from_secs(5)),
            stale_after: Duration::from_millis(STALE_MS as u64),
            // Nobody trades for hours.
            frozen_after: Duration::from_secs(7 * 86_400),
            ..SourceConfig::default()
        }
    };
    let depth = |keep: i64| Depth { keep, backfill: 600 };
    Config {
        sources: sources.iter().map(source).collect(),
        history: HistoryConfig { m1: depth(KEEP), h1: depth(1000), d1: depth(1000) },
        ..Config::default()
    }
}

/// The lines of the log of this thread.
mod log_lines {
    use std::cell::RefCell;

    thread_local! {
        static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    struct Lines;

    impl log::Log for Lines {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            let line = record.args().to_string();
            // Answers, progress, and reminders: none of them tells a new fault.
            let is_known = ["backfill goes on", "still "].iter().any(|it| line.starts_with(it));
            if !is_known && !record.target().ends_with("access") {
                LINES.with_borrow_mut(|lines| lines.push(line));
            }
        }

        fn flush(&self) {}
    }

    pub fn begin() {
        // Another run of this process may have done so.
        if log::set_logger(&Lines).is_ok() {
            log::set_max_level(log::LevelFilter::Info);
        }
        LINES.take();
    }

    pub fn end() -> Vec<String> {
        LINES.take()
    }
}

/// So much of a bad day.
pub fn run(bad_us: u64, rng: &mut Rng) -> World {
    let mut world = World::new(bad_us, rng);
    world.live(bad_us);
    world
}

/// A whole day: prints what it has cost.
pub fn day(seed: u64) {
    let world = run(24 * HOUR, &mut Rng::new(seed));
    println!("seed {seed}, {} hours: {:#?}", world.us / HOUR, world.tally);
}
