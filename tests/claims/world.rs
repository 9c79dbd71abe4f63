//! One market at an exchange whose true history is arithmetic, and a core that follows it, in virtual
//! time.
//!
//! Owns the truth: what was traded in which slot, and what time it is at the exchange. The exchange
//! answers at once. A test orders how it misbehaves: [`Exchange`]. A restart needs a history file:
//! [`World::with_file`].

use marketd::config::{Config, Data, Depth, HistoryConfig, Limits, Poll, SourceConfig, Url};
use marketd::core::{Action, Broken, Core, Event, ProcessFacts, Service};
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

/// 2026-01-01T00:00:07Z.
const BEGIN: i64 = 1_767_225_607_000;

pub const MINUTE: i64 = 60_000;
pub const HOUR: i64 = 60 * MINUTE;

/// What a slow disk takes for a job.
#[cfg(feature = "sqlite")]
const SLOW_JOB_US: u64 = 500_000;

/// How the exchange behaves.
pub struct Exchange {
    /// How far its clock is ahead of the true time.
    pub clock_ahead: i64,
    /// Takes no connection.
    pub is_away: bool,
    /// Answers every request for candles with an empty list.
    pub is_mute: bool,
    /// Answers every request for candles with an error.
    pub is_failing: bool,
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

/// See the module's page.
pub struct World {
    pub exchange: Exchange,
    pub core: Core,
    mono_us: u64,
    /// The true time when the monotonic clock was zero.
    began: i64,
    /// How far the machine's wall clock is ahead of the true time.
    pub wall_ahead: i64,
    connections: BTreeMap<Key, Vec<u8>>,
    /// An answer that comes later, and when.
    late: Option<(u64, Key, String)>,
    client: Option<(Key, Vec<u8>)>,
    #[cfg(feature = "sqlite")]
    file: Option<File>,
}

#[cfg(feature = "sqlite")]
struct File {
    store: Option<marketd::store::Store>,
    dir: crate::support::daemon::TempDir,
    config: Config,
    lives: u64,
    /// How long it takes after the begin until it answers, and the jobs until then.
    slow_us: u64,
    jobs: Vec<marketd::history::DiskJob>,
}

/// A chart as it was answered.
#[derive(Debug)]
pub struct Chart {
    head: String,
    /// Slots of its rows, and their volumes.
    pub rows: Vec<(i64, i64)>,
    /// The rows as text.
    pub body: String,
}

impl Chart {
    pub fn is_complete(&self) -> bool {
        self.header("Chart-Coverage") == "complete"
    }

    pub fn gaps(&self) -> &str {
        self.header("Chart-Gaps")
    }

    pub fn header(&self, name: &str) -> &str {
        let line = |line: &&str| line.starts_with(name);
        let found = self.head.lines().find(line).unwrap_or_default();
        found.split_once(": ").map_or("", |(_, value)| value)
    }
}

impl World {
    /// A core that has just been started, with this depth of minutes.
    pub fn new(backfill: i64) -> World {
        let exchange = Exchange {
            clock_ahead: 0,
            is_away: false,
            is_mute: false,
            is_failing: false,
            page: (1000, false),
            every: 1,
            listed: 0,
            ends: i64::MAX,
            holes: Vec::new(),
            frozen_at: None,
            is_other_mute: false,
            moves: false,
            last: 100,
            stamps_ahead: 0,
            has_date: false,
            asked: Vec::new(),
            recent: Vec::new(),
            times: 0,
            is_timeless: false,
            time_said: None,
            time_ahead: 0,
            date_ahead: 0,
            error_date_ahead: 0,
            time_takes_ms: 0,
            stamped: None,
            others: (0, 0),
            is_delisted: false,
            lists: 0,
            tag: None,
            lists_sent: 0,
        };
        let now = Now { mono: Mono(0), unix: UnixMs(BEGIN) };
        World {
            exchange,
            core: Core::new(config(backfill), None, ProcessFacts::default, 1, now),
            mono_us: 0,
            began: BEGIN,
            wall_ahead: 0,
            connections: BTreeMap::new(),
            late: None,
            client: None,
            #[cfg(feature = "sqlite")]
            file: None,
        }
    }

    /// The same with another market that is followed, in which somebody trades in each slot.
    pub fn of_two(backfill: i64) -> World {
        let mut world = World::new(backfill);
        let mut config = config(backfill);
        config.sources[0].symbols.push("M0/USDT".to_string());
        world.core = Core::new(config, None, ProcessFacts::default, 1, world.now());
        world.exchange.others = (1, 1);
        world
    }

    /// The same at an exchange that tells one ticker a call.
    pub fn market_by_market(backfill: i64) -> World {
        let mut config = config(backfill);
        let source = &mut config.sources[0];
        source.dialect = "./one.json".to_string();
        source.dialect_text = crate::support::market_by_market(crate::support::BINANCE);
        source.symbols.push("M0/USDT".to_string());
        let mut world = World::new(backfill);
        world.core = Core::new(config, None, ProcessFacts::default, 1, world.now());
        world.exchange.others = (1, 1);
        world
    }

    /// The same with so many other markets, all of which are tracked.
    pub fn with_others(count: usize) -> World {
        let mut config = config(10);
        config.sources[0].quote_assets = vec!["USDT".to_string()];
        let mut world = World::new(10);
        world.core = Core::new(config, None, ProcessFacts::default, 1, world.now());
        world.exchange.others = (count, count);
        world
    }

    /// The true time, in milliseconds.
    pub fn time(&self) -> i64 {
        self.began + (self.mono_us / 1000) as i64
    }

    /// The minute that has not ended by the exchange's clock.
    pub fn current(&self) -> i64 {
        (self.time() + self.exchange.clock_ahead).div_euclid(MINUTE)
    }

    fn now(&self) -> Now {
        Now { mono: Mono(self.mono_us), unix: UnixMs(self.time() + self.wall_ahead) }
    }

    /// The machine sleeps for so long: the monotonic clock stands still, all else goes on.
    pub fn suspend(&mut self, ms: i64) {
        self.began += ms;
    }

    /// Lets so much time pass.
    pub fn run(&mut self, seconds: u64) {
        let until = self.mono_us + seconds * 1_000_000;
        while self.mono_us < until {
            self.step(until);
        }
    }

    /// Lets time pass up to so many seconds behind the begin of a minute of the exchange's.
    pub fn run_to_second(&mut self, second: i64) {
        let here = (self.time() + self.exchange.clock_ahead).rem_euclid(MINUTE);
        let wait = (second * 1000 - here).rem_euclid(MINUTE);
        let until = self.mono_us + wait as u64 * 1000;
        while self.mono_us < until {
            self.step(until);
        }
    }

    fn step(&mut self, until: u64) {
        let next = self.core.poll_timeout().map_or(until, |at| at.0);
        let next = self.late.as_ref().map_or(next, |(due, ..)| next.min(*due));
        #[cfg(feature = "sqlite")]
        let next = next.min(self.disk_due().unwrap_or(until));
        // No faster than a thousand turns a second: a loop without an end shows as one.
        let least = self.mono_us + 1000;
        self.mono_us = next.max(least).min(until.max(least));
        self.turn();
    }

    fn turn(&mut self) {
        let now = self.now();
        #[cfg(feature = "sqlite")]
        self.run_disk();
        if let Some((_, key, answer)) = self.late.take_if(|(due, ..)| *due <= self.mono_us) {
            self.core.handle(key, Event::Received(answer.as_bytes()), now);
        }
        self.core.handle_timeout(now);
        self.carry_out();
        while self.core.has_work() {
            self.core.work(now);
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        let now = self.now();
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Connect(key, _) if self.exchange.is_away => {
                    let why = Broken::Io(ErrorKind::ConnectionRefused);
                    self.core.handle(key, Event::Failed(&why), now);
                }
                Action::Connect(key, _) => {
                    self.connections.insert(key, Vec::new());
                    self.core.handle(key, Event::Connected, now);
                    self.pump(key);
                }
                Action::Flush(key) => self.pump(key),
                Action::Store(job) => self.ask_file(job),
                Action::Close(key) => {
                    self.connections.remove(&key);
                    self.core.closed(key);
                }
                Action::Finish(_) => {}
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }

    /// Takes what the core sends, and answers.
    fn pump(&mut self, key: Key) {
        let now = self.now();
        let bytes = self.core.outgoing(key).to_vec();
        if !bytes.is_empty() {
            self.core.handle(key, Event::Sent(bytes.len()), now);
        }
        if let Some((_, got)) = self.client.as_mut().filter(|(client, _)| *client == key) {
            got.extend(bytes);
            return;
        }
        let Some(sent) = self.connections.get_mut(&key) else {
            return;
        };
        sent.extend(bytes);
        if !sent.ends_with(b"\r\n\r\n") {
            return;
        }
        let request = String::from_utf8(std::mem::take(sent)).expect("a request is text");
        if self.exchange.is_away {
            let why = Broken::Io(ErrorKind::ConnectionReset);
            return self.core.handle(key, Event::Failed(&why), now);
        }
        let target = request.split(' ').nth(1).expect("a request line");
        let time = self.time();
        let (mut status, mut body) = self.exchange.answer(target, time);
        let is_list = target.ends_with("/exchangeInfo") || target.contains("/exchangeInfo?");
        let tag = self.exchange.tag.filter(|_| is_list && status == 200).unwrap_or_default();
        if !tag.is_empty() && request.contains(&format!("If-None-Match: {tag}\r\n")) {
            (status, body) = (304, String::new());
        }
        self.exchange.lists_sent += usize::from(is_list && status == 200);
        let date = match self.exchange.has_date {
            true => {
                let error_ahead = if status < 300 { 0 } else { self.exchange.error_date_ahead };
                let ahead = self.exchange.clock_ahead + self.exchange.date_ahead + error_ahead;
                let shown = time + ahead;
                let since = Duration::from_millis(shown as u64);
                let date = httpdate::HttpDate::from(std::time::UNIX_EPOCH + since);
                format!("Date: {date}\r\n")
            }
            false => String::new(),
        };
        let length = body.len();
        let tag = if tag.is_empty() { String::new() } else { format!("ETag: {tag}\r\n") };
        let head = format!("HTTP/1.1 {status} .\r\n{tag}{date}Content-Length: {length}\r\n\r\n");
        let answer = head + &body;
        if target.ends_with("/time") && self.exchange.time_takes_ms > 0 {
            let due = self.mono_us + self.exchange.time_takes_ms as u64 * 1000;
            self.late = Some((due, key, answer));
            return;
        }
        for piece in answer.as_bytes().chunks(16 * 1024) {
            self.core.handle(key, Event::Received(piece), now);
        }
    }

    /// Asks for minutes with these parameters.
    pub fn chart(&mut self, parameters: &str) -> Chart {
        self.chart_of("1m", parameters)
    }

    pub fn chart_of(&mut self, interval: &str, parameters: &str) -> Chart {
        let target = format!("/api/ecosystem/chart?symbol=BTCUSDT&interval={interval}{parameters}");
        let (head, body) = self.get(&target);
        assert!(head.starts_with("HTTP/1.1 200 "), "{target}: {head}");
        let length = match interval {
            "1h" => HOUR,
            _ => MINUTE,
        };
        let rows = body.split('[').skip(2).map(|row| {
            let mut parts = row.split([',', ']']);
            let mut number = |at: usize| -> i64 {
                let text = parts.nth(at).expect("a figure");
                text.parse().expect("a whole number")
            };
            (number(0).div_euclid(length), number(4))
        });
        let rows = rows.collect();
        Chart { head, rows, body }
    }

    /// Asks for a range of minutes, the last one included.
    pub fn minutes(&mut self, first: i64, last: i64) -> Chart {
        let (from, to) = (first * MINUTE, last * MINUTE);
        self.chart(&format!("&from={from}&to={to}"))
    }

    /// Head and body of an answer.
    pub fn get(&mut self, target: &str) -> (String, String) {
        let now = self.now();
        let key = self.core.accept(None, Service::Both, now).expect("there is room");
        let request = format!("GET {target} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n");
        self.client = Some((key, Vec::new()));
        self.core.handle(key, Event::Received(request.as_bytes()), now);
        let limit = self.mono_us + 10_000_000;
        loop {
            self.pump(key);
            let (_, got) = self.client.as_ref().expect("set above");
            if ends(got) {
                break;
            }
            assert!(self.mono_us < limit, "{target} is not answered");
            self.turn();
            if !self.client.as_ref().is_some_and(|(_, got)| ends(got)) {
                self.step(limit);
            }
        }
        let now = self.now();
        self.core.handle(key, Event::Eof, now);
        self.carry_out();
        let (_, got) = self.client.take().expect("set above");
        let text = String::from_utf8(got).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head.to_string(), body.to_string())
    }

    /// Requests for minutes since the last call: first and last minute of each.
    pub fn pages(&mut self) -> Vec<(i64, i64)> {
        let asked = std::mem::take(&mut self.exchange.asked);
        let minutes = asked.into_iter().filter(|(interval, ..)| interval == "1m");
        let slots = |(_, from, to): (String, i64, i64)| (from / MINUTE, to / MINUTE);
        minutes.map(slots).collect()
    }

    #[cfg(not(feature = "sqlite"))]
    fn ask_file(&mut self, job: marketd::history::DiskJob) {
        panic!("there is no file: {job:?}");
    }
}

#[cfg(feature = "sqlite")]
impl World {
    /// The same over a history file.
    pub fn with_file(backfill: i64) -> World {
        let mut world = World::new(backfill);
        world.file = Some(File {
            store: None,
            dir: crate::support::daemon::TempDir::new(),
            config: config(backfill),
            lives: 1,
            slow_us: 0,
            jobs: Vec::new(),
        });
        world.begin(0);
        world
    }

    /// Is killed, and begins anew after so long.
    pub fn restart(&mut self, away_ms: i64) {
        self.begin(away_ms);
    }

    /// Is killed, and begins anew on a disk that answers nothing for so long, and then one job after another.
    pub fn restart_on_slow_disk(&mut self, slow_ms: u64) {
        self.file.as_mut().expect("there is a file").slow_us = slow_ms * 1000;
        self.begin(0);
    }

    /// From the next begin on, another source of the same exchange is before the one that the file knows.
    pub fn put_source_before(&mut self) {
        let config = &mut self.file.as_mut().expect("there is a file").config;
        let other = SourceConfig { id: "other".to_string(), ..config.sources[0].clone() };
        config.sources.insert(0, other);
    }

    /// From the next begin on, all markets in USDT are tracked, of which there are so many others.
    pub fn track_others(&mut self, count: usize) {
        let config = &mut self.file.as_mut().expect("there is a file").config;
        config.sources[0].quote_assets = vec!["USDT".to_string()];
        self.exchange.others = (count, count);
    }

    /// Reads a configuration with another source behind the one that the file knows.
    pub fn add_source(&mut self) {
        let mut config = self.file.as_ref().expect("there is a file").config.clone();
        let other = SourceConfig { id: "other".to_string(), ..config.sources[0].clone() };
        config.sources.push(other);
        let now = self.now();
        self.core.reconfigure(config, Vec::new(), || (), now).expect("a sound configuration");
        self.carry_out();
    }

    /// When the disk answers what it has been asked, if something.
    fn disk_due(&self) -> Option<u64> {
        let file = self.file.as_ref()?;
        (!file.jobs.is_empty()).then_some(file.slow_us)
    }

    fn run_disk(&mut self) {
        if self.disk_due().is_some_and(|due| due <= self.mono_us) {
            let file = self.file.as_mut().expect("it has jobs");
            let job = file.jobs.remove(0);
            if !file.jobs.is_empty() {
                file.slow_us += SLOW_JOB_US;
            }
            self.answer_job(job);
            self.carry_out();
        }
    }

    fn begin(&mut self, away_ms: i64) {
        self.began = self.time() + away_ms;
        self.mono_us = 0;
        self.connections.clear();
        self.late = None;
        let file = self.file.as_mut().expect("there is a file");
        file.lives += 1;
        let (config, lives) = (file.config.clone(), file.lives);
        if let Some(store) = file.store.take() {
            store.join();
        }
        let path = file.dir.path().join("history.db");
        file.store = Some(crate::sim::disk::open(path));
        let now = self.now();
        self.core = Core::new(config, None, ProcessFacts::default, lives, now);
        self.core.keep_history(crate::sim::disk::Disk::opened(), now);
        self.carry_out();
    }

    fn ask_file(&mut self, job: marketd::history::DiskJob) {
        let file = self.file.as_mut().expect("there is a file");
        match self.mono_us < file.slow_us {
            true => file.jobs.push(job),
            false => self.answer_job(job),
        }
    }

    fn answer_job(&mut self, job: marketd::history::DiskJob) {
        let file = self.file.as_ref().expect("there is a file");
        let said = crate::sim::disk::ask(file.store.as_ref().expect("it is open"), job);
        let now = self.now();
        for answer in said {
            self.core.stored(answer, now);
        }
    }
}

impl Exchange {
    /// What it says to that at this true time.
    fn answer(&mut self, target: &str, time: i64) -> (u16, String) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
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
                if let Some(id) = query.strip_prefix("symbol=") {
                    return (200, ticker(id.trim_end_matches("USDT").to_string()));
                }
                let others = (0..self.others.1).map(|at| format!("M{at}"));
                let tickers = std::iter::once("BTC".to_string()).chain(others).map(ticker);
                format!("[{}]", tickers.collect::<Vec<_>>().join(","))
            }
            _ if self.is_failing => return (500, String::new()),
            _ => {
                let is_other = !query.contains("symbol=BTCUSDT");
                let body = self.klines(query, is_other, self.frozen_at.unwrap_or(now));
                if !is_other {
                    self.check_pace(time);
                }
                body
            }
        };
        (200, body)
    }

    /// Nobody asks for the same page again and again.
    fn check_pace(&mut self, time: i64) {
        self.recent.retain(|(at, _)| *at > time - MINUTE);
        let last = self.asked.last().expect("it was just asked").clone();
        self.recent.push((time, last.clone()));
        let same = self.recent.iter().filter(|(_, page)| *page == last).count();
        assert!(same <= 10, "{same} times in a minute: {last:?}");
    }

    fn klines(&mut self, query: &str, is_other: bool, now: i64) -> String {
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.rfind(|(key, _)| *key == name);
            found.expect("a parameter").1.to_string()
        };
        let number = |name: &str| parameter(name).parse::<i64>().expect("a number");
        let (interval, from, to) = (parameter("interval"), number("startTime"), number("endTime"));
        if !is_other {
            self.asked.push((interval.clone(), from, to));
        }
        if self.is_mute && (!is_other || self.is_other_mute) {
            return "[]".to_string();
        }
        let length = match interval.as_str() {
            "1m" => MINUTE,
            "1h" => HOUR,
            _ => 24 * HOUR,
        };
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
            let (open, volume) = (slot * length, volume(*slot, length, now));
            format!(r#"[{open},"5","9","2","7","{volume}"]"#)
        });
        format!("[{}]", rows.collect::<Vec<_>>().join(","))
    }
}

/// One source, and this depth of minutes.
fn config(backfill: i64) -> Config {
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

/// The volume of a candle by this time: trades are booked up to one and a half slots after its end.
pub fn volume(slot: i64, length: i64, now: i64) -> i64 {
    match now - (slot + 1) * length {
        late if late < 0 => 1,
        late if late < length + length / 2 => 2,
        _ => 3,
    }
}

/// Whether an answer has come to its end.
fn ends(got: &[u8]) -> bool {
    let text = String::from_utf8_lossy(got);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length = length.map(|text| text.parse::<usize>().expect("a length"));
    length.is_none_or(|length| body.len() >= length)
}
