//! One market at an exchange whose true history is arithmetic, and a core that follows it, in virtual
//! time.
//!
//! Owns the truth: what was traded in which slot, and what time it is at the exchange. The exchange
//! answers at once. A test orders how it misbehaves: [`Exchange`]. A restart needs a history file:
//! [`World::with_file`].

use crate::sim::charts::read_rows;
#[cfg(feature = "sqlite")]
use crate::support::Rng;
use crate::support::chance::mix;
use crate::support::message::field;
use crate::support::naive::length_ms;
use crate::virtual_time::{Answer, Peers, Request, Response, VirtualTime};
use marketd::config::{Config, Data, Depth, HistoryConfig, Limits, Poll, SourceConfig, Url};
use marketd::core::{Core, ProcessFacts};
#[cfg(feature = "sqlite")]
use marketd::history::{DiskJob, Reply};
#[cfg(feature = "sqlite")]
use marketd::store::Store;
use marketd::time::Now;
use std::net::SocketAddr;
use std::time::{Duration, UNIX_EPOCH};

/// 2026-01-01T00:00:07Z.
pub const BEGIN: i64 = 1_767_225_607_000;

pub const MINUTE: i64 = 60_000;
pub const HOUR: i64 = 60 * MINUTE;

/// What a slow disk takes for a job.
#[cfg(feature = "sqlite")]
const SLOW_JOB_US: u64 = 500_000;

/// How the exchange behaves.
#[derive(Default)]
pub struct Exchange {
    /// How far its clock is ahead of the true time.
    pub clock_ahead: i64,
    /// Takes no connection.
    pub is_away: bool,
    /// Takes every request, and answers none.
    pub is_silent: bool,
    /// Answers every request for candles with an empty list.
    pub is_mute: bool,
    /// Answers every request for candles with an error.
    pub is_failing: bool,
    /// Whether its candles stay as they are once they have closed.
    pub is_prompt: bool,
    /// Pages of candles that were sent, and from how many on none is.
    pub sent_pages: u64,
    pub last_page: u64,
    /// Most rows of a page, whatever is asked, and whether the newest of them come.
    pub page: (usize, bool),
    /// Somebody trades in each slot whose number is a multiple of this.
    pub every: i64,
    /// No trade before this time.
    pub listed: i64,
    /// No trade from this time on.
    pub ends: i64,
    /// Slots that it leaves out.
    pub holes: Vec<i64>,
    /// Every answer with candles is what it was at this time.
    pub frozen_at: Option<i64>,
    /// Every request for candles of the other market gets an empty list, too.
    pub is_other_mute: bool,
    /// Whether the last price of its ticker differs at each poll.
    pub moves: bool,
    /// The last price of its ticker.
    pub last: i64,
    /// How far the times in its tickers are ahead of its clock.
    pub stamps_ahead: i64,
    /// Whether answers carry a `Date`.
    pub has_date: bool,
    /// Requests for candles of BTC/USDT so far: interval, first and last open time.
    pub asked: Vec<(String, i64, i64)>,
    /// Nobody asks for one page more often in a minute.
    pub most_a_minute: usize,
    /// When each of them came, of the last minute.
    recent: Vec<(i64, (String, i64, i64))>,
    /// Requests for its time.
    pub times: usize,
    /// Whether its time cannot be had.
    pub is_timeless: bool,
    /// What its time call says, whatever its clock shows.
    pub time_said: Option<i64>,
    /// How far its time call, and the `Date` of its answers, are ahead of its clock.
    pub time_ahead: i64,
    pub date_ahead: i64,
    /// The same of the `Date` of errors.
    pub error_date_ahead: i64,
    /// How long its time call takes.
    pub time_takes_ms: i64,
    /// The markets beside the first one: those in its list, and those with a ticker.
    pub others: (usize, usize),
    /// Whether its list lacks the first one.
    pub is_delisted: bool,
    /// Requests for its list.
    pub lists: usize,
    /// The tag of its list, if it has one, and how often the list was sent.
    pub tag: Option<&'static str>,
    pub lists_sent: usize,
    /// What the newest ticker says, whatever its clock shows. Without times: `Some(None)`.
    pub stamped: Option<Option<i64>>,
}

pub type World = VirtualTime<Market>;

/// What the world owns beside time: the exchange, and the history file, if there is one.
pub struct Market {
    pub exchange: Exchange,
    #[cfg(feature = "sqlite")]
    pub file: Option<File>,
}

/// A history file, and who works on it.
#[cfg(feature = "sqlite")]
pub struct File {
    store: Option<Store>,
    dir: crate::support::daemon::TempDir,
    pub config: Config,
    lives: u64,
    /// How long a job takes, at least and at most.
    pub job_us: (u64, u64),
    /// Whether the disk takes nothing.
    pub is_full: bool,
    /// Size of the file, and candles that have left it.
    pub bytes: u64,
    pub evicted: u64,
    pub rng: Rng,
}

/// A chart as it was answered.
#[derive(Debug)]
pub struct Chart {
    answer: Answer,
    /// Slots of its rows, and how much of their trades was booked.
    pub rows: Vec<(i64, i64)>,
    /// The rows as text.
    pub body: String,
}

impl Chart {
    pub fn is_complete(&self) -> bool {
        self.header("Chart-Coverage") == "complete"
    }

    /// Whether caches may keep it for an hour.
    pub fn is_kept(&self) -> bool {
        self.header("Cache-Control").contains("3600")
    }

    pub fn slots(&self) -> Vec<i64> {
        self.rows.iter().map(|row| row.0).collect()
    }

    pub fn gaps(&self) -> &str {
        self.header("Chart-Gaps")
    }

    pub fn header(&self, name: &str) -> &str {
        self.answer.header(name)
    }
}

fn core(config: &Config, seed: u64, now: Now) -> Core {
    Core::new(config.clone(), None, ProcessFacts::default, seed, now)
}

impl World {
    /// A core that has just been started, with this depth of minutes.
    pub fn new(backfill: i64) -> World {
        World::of(&config(backfill), 0)
    }

    /// A core with this configuration, beside an exchange with so many other markets.
    fn of(config: &Config, others: usize) -> World {
        let exchange = Exchange {
            page: (1000, false),
            every: 1,
            ends: i64::MAX,
            last: 100,
            last_page: u64::MAX,
            most_a_minute: 10,
            others: (others, others),
            ..Exchange::default()
        };
        let market = Market {
            exchange,
            #[cfg(feature = "sqlite")]
            file: None,
        };
        VirtualTime::begin(market, (BEGIN, 0), |now| core(config, 1, now))
    }

    /// The same with another market that is followed, in which somebody trades in each slot.
    pub fn of_two(backfill: i64) -> World {
        World::altered(backfill, 1, |source| source.symbols.push("M0/USDT".to_string()))
    }

    /// The same at an exchange that tells one ticker a call.
    pub fn market_by_market(backfill: i64) -> World {
        World::altered(backfill, 1, |source| {
            source.dialect = "./one.json".to_string();
            source.dialect_text = crate::support::market_by_market(crate::support::BINANCE);
            source.symbols.push("M0/USDT".to_string());
        })
    }

    /// The same with so many other markets, all of which are tracked.
    pub fn with_others(count: usize) -> World {
        World::altered(10, count, |source| {
            source.quote_assets = vec!["USDT".to_string()];
            // Hours of many quotes take long.
            source.poll = Poll::Every(Duration::from_secs(20));
            source.stale_after = Duration::from_secs(60);
        })
    }

    fn altered(backfill: i64, others: usize, alter: impl FnOnce(&mut SourceConfig)) -> World {
        let mut config = config(backfill);
        alter(&mut config.sources[0]);
        World::of(&config, others)
    }

    /// The same, settled down: the configured history is there.
    pub fn settled(mut self) -> World {
        self.run(200);
        self.run_to_second(10);
        self
    }

    /// The minute that has not ended by the exchange's clock.
    pub fn current(&self) -> i64 {
        (self.time() + self.exchange.clock_ahead).div_euclid(MINUTE)
    }

    /// Lets time pass up to so many seconds behind the begin of a minute of the exchange's.
    pub fn run_to_second(&mut self, second: i64) {
        let here = (self.time() + self.exchange.clock_ahead).rem_euclid(MINUTE);
        let wait = (second * 1000 - here).rem_euclid(MINUTE);
        self.run_to(self.us + wait as u64 * 1000);
    }

    /// Asks for minutes with these parameters.
    pub fn chart(&mut self, parameters: &str) -> Chart {
        let target = chart_target("1m", parameters);
        let answer = self.fetch(&target);
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        let rows = read_rows(answer.body.as_bytes(), false).expect("a chart is a list of rows");
        let rows = rows.iter().map(|(open, figures)| {
            let booked = figures[4].split('.').next().and_then(|whole| whole.parse().ok());
            (open / MINUTE, booked.unwrap_or(0))
        });
        Chart { rows: rows.collect(), body: answer.body.clone(), answer }
    }

    /// Asks for a range of minutes, the last one included.
    pub fn minutes(&mut self, first: i64, last: i64) -> Chart {
        let (from, to) = (first * MINUTE, last * MINUTE);
        self.chart(&format!("&from={from}&to={to}"))
    }

    /// The same, which are all known.
    #[track_caller]
    pub fn whole(&mut self, first: i64, last: i64) -> Chart {
        let chart = self.minutes(first, last);
        assert!(chart.is_complete(), "{first} to {last}: {chart:?}");
        chart
    }

    /// Each of these minutes is there with its last volume, and nothing else.
    #[track_caller]
    pub fn check_settled(&mut self, first: i64, last: i64) {
        for first in (first..last).step_by(500) {
            let last = last.min(first + 499);
            let chart = self.whole(first, last);
            let expected: Vec<(i64, i64)> = (first..=last).map(|slot| (slot, 3)).collect();
            assert_eq!((chart.gaps(), &chart.rows), ("0", &expected), "not there, or not settled");
        }
    }

    /// The body of an answer.
    pub fn get(&mut self, target: &str) -> String {
        self.fetch(target).body
    }

    /// Requests for minutes since the last call: first and last minute of each.
    pub fn pages(&mut self) -> Vec<(i64, i64)> {
        let asked = std::mem::take(&mut self.exchange.asked);
        let minutes = asked.into_iter().filter(|(interval, ..)| interval == "1m");
        let slots = |(_, from, to): (String, i64, i64)| (from / MINUTE, to / MINUTE);
        minutes.map(slots).collect()
    }
}

#[cfg(feature = "sqlite")]
impl World {
    /// The same over a history file.
    pub fn with_file(backfill: i64) -> World {
        World::over_file(config(backfill))
    }

    /// A core with this configuration over a history file.
    pub fn over_file(config: Config) -> World {
        let mut world = World::of(&config, 0);
        world.file = Some(File {
            store: None,
            dir: crate::support::daemon::TempDir::new(),
            config,
            lives: 1,
            job_us: (0, 0),
            is_full: false,
            bytes: 0,
            evicted: 0,
            rng: Rng::new(1),
        });
        world.restart(0);
        world
    }

    /// Who works on the history file.
    pub fn disk(&mut self) -> &mut File {
        self.peers.file.as_mut().expect("there is a file")
    }

    /// Is killed, and begins anew after so long.
    pub fn restart(&mut self, away_ms: i64) {
        self.disk_from = 0;
        self.reopen(away_ms.unsigned_abs() * 1000);
    }

    /// Is killed, and begins anew on a disk that answers nothing for so long, and then one job after another.
    pub fn restart_on_slow_disk(&mut self, slow_ms: u64) {
        let file = self.disk();
        file.job_us = (SLOW_JOB_US, SLOW_JOB_US);
        self.disk_from = self.us + (slow_ms * 1000).saturating_sub(SLOW_JOB_US);
        self.reopen(0);
        self.disk().job_us = (0, 0);
    }

    fn reopen(&mut self, away_us: u64) {
        let file = self.disk();
        let is_first_done = file.rng.chance(1, 2);
        self.kill(is_first_done);
        let file = self.disk();
        file.lives += 1;
        let (config, lives) = (file.config.clone(), file.lives);
        if let Some(store) = file.store.take() {
            store.join();
        }
        file.store = Some(open(file.dir.path().join("history.db")));
        self.begin_anew(away_us, |now| {
            let mut core = core(&config, lives, now);
            core.keep_history(crate::sim::disk::Disk::opened(), now);
            core
        });
    }

    /// From the next begin on, all markets in USDT are tracked, of which there are so many others.
    pub fn track_others(&mut self, count: usize) {
        let config = &mut self.disk().config;
        config.sources[0].quote_assets = vec!["USDT".to_string()];
        self.exchange.others = (count, count);
    }

    /// The configuration with another source of the same exchange at this place.
    pub fn with_another(&mut self, at: usize) -> Config {
        let mut config = self.disk().config.clone();
        let other = SourceConfig { id: "other".to_string(), ..config.sources[0].clone() };
        config.sources.insert(at, other);
        config
    }

    /// Reads a configuration with another source behind the one that the file knows.
    pub fn add_source(&mut self) {
        let (config, now) = (self.with_another(1), self.now());
        self.core.reconfigure(config, Vec::new(), || (), now).expect("a sound configuration");
        self.settle();
    }
}

/// Opens a real file that is sound.
#[cfg(feature = "sqlite")]
fn open(path: std::path::PathBuf) -> Store {
    let store = Store::start(path, Box::new(|| ())).expect("a thread");
    let opened = store.wait(crate::support::PATIENCE);
    assert!(matches!(opened, Some(Reply::Opened(_))), "{opened:?}");
    store
}

/// All that a real file answers to a job.
#[cfg(feature = "sqlite")]
fn ask(store: &Store, job: DiskJob) -> Vec<Reply> {
    store.send(job).expect("nothing else waits");
    let mut said = Vec::new();
    loop {
        said.push(store.wait(crate::support::PATIENCE).expect("an answer"));
        if !matches!(said.last(), Some(Reply::Heads(_) | Reply::Quotes(_) | Reply::Markets(_))) {
            return said;
        }
    }
}

impl Peers for Market {
    fn takes_connection(&mut self, _: SocketAddr, _: u64) -> bool {
        !self.exchange.is_away
    }

    fn answer(&mut self, request: &Request, us: u64) -> Response {
        match &mut self.exchange {
            it if it.is_away => Response::End,
            it if it.is_silent => Response::Silence,
            it => it.respond(request, BEGIN + (us / 1000) as i64),
        }
    }

    #[cfg(feature = "sqlite")]
    fn job_us(&mut self) -> u64 {
        let file = self.file.as_mut().expect("there is a file");
        let (least, most) = file.job_us;
        least + file.rng.below(most - least + 1)
    }

    #[cfg(feature = "sqlite")]
    fn work(&mut self, job: DiskJob, _: u64) -> Vec<Reply> {
        use marketd::history::StoreError;
        let file = self.file.as_mut().expect("there is a file");
        let job = match job {
            DiskJob::Write(batch) if file.is_full => {
                let result = Err(StoreError::Full("no room".to_string()));
                return vec![Reply::Written { batch, result }];
            }
            job => job,
        };
        let said = ask(file.store.as_ref().expect("it is open"), job);
        for it in &said {
            if let Reply::Written { result, .. } = it {
                let written = result.as_ref().expect("a sound disk");
                file.bytes = written.bytes;
                file.evicted += written.evicted;
            }
        }
        said
    }
}

impl Exchange {
    /// Answers at this true time.
    fn respond(&mut self, request: &Request, time: i64) -> Response {
        let (mut status, mut body) = self.answer(request, time);
        let is_list = request.target.contains("/exchangeInfo");
        let mut fields = String::new();
        if let Some(tag) = self.tag.filter(|_| is_list && status == 200) {
            fields = format!("ETag: {tag}\r\n");
            if field(&request.fields, "If-None-Match") == Some(tag) {
                (status, body) = (304, String::new());
            }
        }
        self.lists_sent += usize::from(is_list && status == 200);
        if self.has_date {
            let error_ahead = if status < 300 { 0 } else { self.error_date_ahead };
            let shown = time + self.clock_ahead + self.date_ahead + error_ahead;
            let date = UNIX_EPOCH + Duration::from_millis(shown.unsigned_abs());
            fields += &format!("Date: {}\r\n", httpdate::fmt_http_date(date));
        }
        let is_time = request.target.ends_with("/time");
        let slow_ms = if is_time { self.time_takes_ms } else { 0 };
        Response::new(status, &fields, &body).after(slow_ms.unsigned_abs() * 1000)
    }

    /// What it says to that at this true time.
    fn answer(&mut self, request: &Request, time: i64) -> (u16, String) {
        let (path, _) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let now = time + self.clock_ahead;
        let body = match path {
            "/api/v3/time" if self.is_timeless => return (500, String::new()),
            "/api/v3/time" => {
                self.times += 1;
                let said = self.time_said.unwrap_or(now + self.time_ahead);
                format!(r#"{{"serverTime":{said}}}"#)
            }
            "/api/v3/exchangeInfo" => {
                self.lists += 1;
                let market = |base: String| {
                    let assets = format!(r#""baseAsset":"{base}","quoteAsset":"USDT""#);
                    format!(r#"{{"symbol":"{base}USDT","status":"TRADING",{assets},"filters":[]}}"#)
                };
                let first = if self.is_delisted { "GONE" } else { "BTC" };
                let others = (0..self.others.0).map(|at| format!("M{at}"));
                let markets = std::iter::once(first.to_string()).chain(others).map(market);
                format!(r#"{{"symbols":[{}]}}"#, markets.collect::<Vec<_>>().join(","))
            }
            "/api/v3/ticker/24hr" => {
                let moved = if self.moves { now / 1000 % 97 } else { 0 };
                let time = self.stamped.unwrap_or(Some(now + self.stamps_ahead));
                let time = time.map_or(String::new(), |time| format!(r#","closeTime":{time}"#));
                let ticker = |base: String| {
                    let last = self.last + if base == "BTC" { moved } else { 0 };
                    format!(r#"{{"symbol":"{base}USDT","lastPrice":"{last}"{time}}}"#)
                };
                if let Some(id) = request.parameter("symbol") {
                    return (200, ticker(id.trim_end_matches("USDT").to_string()));
                }
                let others = (0..self.others.1).map(|at| format!("M{at}"));
                let tickers = std::iter::once("BTC".to_string()).chain(others).map(ticker);
                format!("[{}]", tickers.collect::<Vec<_>>().join(","))
            }
            _ if self.is_failing || self.sent_pages >= self.last_page => {
                return (500, String::new());
            }
            _ => {
                self.sent_pages += 1;
                let is_other = request.parameter("symbol") != Some("BTCUSDT");
                let body = self.klines(request, is_other, self.frozen_at.unwrap_or(now));
                if !is_other {
                    self.check_pace(time);
                }
                body
            }
        };
        (200, body)
    }

    /// Nobody asks for one page again and again.
    fn check_pace(&mut self, time: i64) {
        self.recent.retain(|(at, _)| *at > time - MINUTE);
        let last = self.asked.last().expect("it was just asked").clone();
        self.recent.push((time, last.clone()));
        let same = self.recent.iter().filter(|(_, page)| *page == last).count();
        assert!(same <= self.most_a_minute, "{same} times in a minute: {last:?}");
    }

    fn klines(&mut self, request: &Request, is_other: bool, now: i64) -> String {
        let parameter = |name: &str| request.parameter(name).expect("a parameter").to_string();
        let number = |name: &str| parameter(name).parse::<i64>().expect("a number");
        let (interval, from, to) = (parameter("interval"), number("startTime"), number("endTime"));
        if !is_other {
            self.asked.push((interval.clone(), from, to));
        }
        if self.is_mute && (!is_other || self.is_other_mute) {
            return "[]".to_string();
        }
        let length = length_ms(&interval).expect("a stored interval");
        let (listed, ends) = if is_other { (0, i64::MAX) } else { (self.listed, self.ends) };
        let slots = (from.max(listed) + length - 1).div_euclid(length)
            ..to.min(now).min(ends).div_euclid(length) + 1;
        let is_there = |slot: &i64| {
            let is_traded = slot % self.every == 0 && !self.holes.contains(slot);
            is_other || length != MINUTE || is_traded
        };
        let slots: Vec<i64> = slots.filter(is_there).collect();
        let (most, newest) = self.page;
        let left = slots.len().saturating_sub(most.min(number("limit") as usize));
        let slots = match newest {
            true => &slots[left..],
            false => &slots[..slots.len() - left],
        };
        let rows = slots.iter().map(|slot| {
            let has_closed = self.is_prompt && (slot + 1) * length <= now;
            let by = if has_closed { i64::MAX } else { now };
            let [open, high, low, close, volume] = figures(*slot, length, by);
            format!(r#"[{},"{open}","{high}","{low}","{close}","{volume}"]"#, slot * length)
        });
        format!("[{}]", rows.collect::<Vec<_>>().join(","))
    }
}

pub fn chart_target(interval: &str, parameters: &str) -> String {
    format!("/api/ecosystem/chart?symbol=BTCUSDT&interval={interval}{parameters}")
}

/// One source, and this depth of minutes.
pub fn config(backfill: i64) -> Config {
    let depth = |keep: i64, backfill: i64| Depth { keep, backfill };
    let source = SourceConfig {
        url: Some(Url::parse("http://192.0.2.1:80").expect("an address")),
        symbols: vec!["BTC/USDT".to_string()],
        poll: Poll::Every(Duration::from_secs(2)),
        stale_after: Duration::from_secs(15),
        frozen_after: Duration::from_secs(1_000_000),
        ..SourceConfig::new("binance")
    };
    Config {
        sources: vec![source],
        data: Data::Memory,
        history: HistoryConfig {
            m1: depth(43_200, backfill),
            h1: depth(43_800, 10),
            // Fewer than a page has.
            d1: depth(200, 10),
        },
        limits: Limits { chart_wait: Duration::from_secs(2), ..Limits::default() },
        ..Config::default()
    }
}

/// The figures of a candle by this time. The whole part of its volume tells how much is booked of it: trades
/// are booked up to one and a half slots after its end.
pub fn figures(slot: i64, length: i64, now: i64) -> [String; 5] {
    let booked = match now.saturating_sub((slot + 1) * length) {
        late if late < 0 => 1,
        late if late < length + length / 2 => 2,
        _ => 3,
    };
    let some = |purpose: u64| mix(mix((slot ^ length << 40) as u64) ^ purpose) % 900;
    let [open, high, low, close] = [3, 6, 2, 4].map(|whole| format!("{whole}.{}1", some(whole)));
    [open, high, low, close, format!("{booked}.{}1", some(0))]
}
