//! A year of one market, of which the daemon sees a small part: it is away for days, killed while it
//! works, and its exchange is away in its own way. What it shows afterwards is what the exchange has.
//!
//! Owns a driver of its own, the plainest there is: nothing takes any time but waiting, and there is
//! one exchange, the demo's, and one client. The file is a real one. From one deadline of the core to
//! the next, so that a year takes seconds.

use super::charts::{ChartRow, read_rows};
use super::disk;
use super::weather::SECOND;
use crate::support::Rng;
use crate::support::daemon::TempDir;
use crate::support::naive::{base_of, candle_at, length_ms, plain, rolled_up};
use marketd::config::{Config, Depth, HistoryConfig, Limits, Poll, SourceConfig, Url};
use marketd::core::{Action, Broken, Core, Event, ProcessFacts, Service};
use marketd::demo::Demo;
use marketd::history::{DiskJob, Reply, StoreError, Unwritten};
use marketd::store::Store;
use marketd::table::Key;
use marketd::time::{Mono, Now, UnixMs};
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// 2026-01-01T00:00:07Z.
const BEGIN: i64 = 1_767_225_607_000;

pub(super) const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// Minutes that are kept: somewhat more than the quarter after which they are looked at.
const KEEP: i64 = 140_000;

/// How the exchange is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Well,
    Refusing,
    Failing,
    Mute,
}

/// See the module's page.
pub struct Year {
    rng: Rng,
    demo: Demo,
    pub(super) config: Config,
    core: Core,
    /// Microseconds since this life's begin, and the wall clock then.
    now: u64,
    began: i64,
    mood: Mood,
    /// Connections to the exchange, with what was sent of a request.
    links: BTreeMap<Key, Vec<u8>>,
    path: PathBuf,
    store: Option<Store>,
    /// Jobs, and when each is done.
    jobs: VecDeque<(u64, DiskJob)>,
    /// The client, and what it got.
    client: Option<(Key, Vec<u8>)>,
    /// Size of the file, candles that left it, pages that the exchange was asked for, lives.
    pub bytes: u64,
    pub evicted: u64,
    pub pages: u64,
    pub lives: u64,
    /// Pages after which it has no more.
    pub(super) last_page: u64,
    /// Whether the disk takes nothing.
    pub(super) is_full: bool,
}

impl Year {
    pub fn new(dir: &TempDir, rng: &mut Rng) -> Year {
        Year::with(dir, rng, config())
    }

    pub(super) fn with(dir: &TempDir, rng: &mut Rng, config: Config) -> Year {
        let path = dir.path().join("history.db");
        let mut year = Year {
            rng: Rng::new(rng.next()),
            demo: Demo::new(1),
            core: core(&config, 0, BEGIN),
            config,
            now: 0,
            began: BEGIN,
            mood: Mood::Well,
            links: BTreeMap::new(),
            store: Some(disk::open(path.clone())),
            path,
            jobs: VecDeque::new(),
            client: None,
            bytes: 0,
            evicted: 0,
            pages: 0,
            lives: 1,
            last_page: u64::MAX,
            is_full: false,
        };
        year.carry_out();
        year
    }

    pub(super) fn clocks(&self) -> Now {
        Now { mono: Mono(self.now), unix: UnixMs(self.began + (self.now / 1000) as i64) }
    }

    /// Lets time pass until then, in lives of some hours and days without.
    pub fn pass(&mut self, until: i64) {
        while self.clocks().unix.0 < until {
            let life = self.rng.below(5 * 3600) * SECOND;
            let end = self.now + life;
            while self.now < end {
                let spell = self.rng.below(2 * 3600) * SECOND;
                self.run_until(end.min(self.now + spell));
                self.turn_mood();
            }
            let away = self.rng.below(6 * DAY as u64) as i64;
            self.die(away);
        }
        // All is well again, and stays so for a while.
        self.mood = Mood::Well;
        self.run_until(self.now + 3600 * SECOND);
    }

    /// The exchange goes, or comes back.
    fn turn_mood(&mut self) {
        self.mood =
            *(self.rng).pick(&[Mood::Well, Mood::Well, Mood::Refusing, Mood::Failing, Mood::Mute]);
        if self.mood == Mood::Refusing {
            let now = self.clocks();
            for key in std::mem::take(&mut self.links).into_keys() {
                let why = Broken::Io(ErrorKind::ConnectionReset);
                self.core.handle(key, Event::Failed(&why), now);
            }
            self.carry_out();
        }
    }

    /// Is killed, and begins anew after so long. What was on its way to the file is there or is not.
    pub(super) fn die(&mut self, away: i64) {
        if let Some((_, job)) = self.jobs.pop_front()
            && self.rng.chance(1, 2)
        {
            self.ask_store(job);
        }
        self.jobs.clear();
        self.links.clear();
        if let Some(store) = self.store.take() {
            store.join();
        }
        self.store = Some(disk::open(self.path.clone()));
        self.began = self.clocks().unix.0 + away;
        self.now = 0;
        self.lives += 1;
        self.core = core(&self.config, self.lives, self.began);
        self.mood = Mood::Well;
        self.carry_out();
    }

    /// Lets so much time pass.
    pub(super) fn run(&mut self, seconds: u64) {
        self.run_until(self.now + seconds * SECOND);
    }

    fn run_until(&mut self, until: u64) {
        while self.now < until {
            self.step(until);
        }
    }

    /// To the next deadline, and one turn.
    fn step(&mut self, until: u64) {
        let job = self.jobs.front().map(|(due, _)| *due);
        let timeout = self.core.poll_timeout().map(|at| at.0);
        let next = [job, timeout, Some(until)].into_iter().flatten().min();
        self.now = next.unwrap_or(until).clamp(self.now, until);
        let now = self.clocks();
        while self.jobs.front().is_some_and(|(due, _)| *due <= self.now) {
            let (_, job) = self.jobs.pop_front().expect("it is there");
            for answer in self.ask_store(job) {
                self.core.stored(answer, now);
                self.carry_out();
            }
        }
        self.core.handle_timeout(now);
        self.carry_out();
        while self.core.has_work() {
            self.core.work(now);
            self.carry_out();
        }
    }

    fn ask_store(&mut self, job: DiskJob) -> Vec<Reply> {
        let job = match job {
            DiskJob::Write { number, batch } if self.is_full => {
                let error = StoreError::Full("no room".to_string());
                let result = Err(Unwritten { error, batch });
                return vec![Reply::Written { number, result }];
            }
            job => job,
        };
        let said = disk::ask(self.store.as_ref().expect("it is open"), job);
        for answer in &said {
            if let Reply::Written { result, .. } = answer {
                let written = result.as_ref().expect("a sound disk");
                self.bytes = written.bytes;
                self.evicted += written.evicted;
            }
        }
        said
    }

    fn carry_out(&mut self) {
        let now = self.clocks();
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Connect(key, _) if self.mood == Mood::Refusing => {
                    let why = Broken::Io(ErrorKind::ConnectionRefused);
                    self.core.handle(key, Event::Failed(&why), now);
                }
                Action::Connect(key, _) => {
                    self.links.insert(key, Vec::new());
                    self.core.handle(key, Event::Connected, now);
                    self.pump(key);
                }
                Action::Flush(key) => self.pump(key),
                Action::Store(job) => {
                    let due = self.now + 1000 + self.rng.below(SECOND);
                    self.jobs.push_back((due, job));
                }
                Action::Close(key) => {
                    self.links.remove(&key);
                    self.core.closed(key);
                }
                Action::Finish(_) => {}
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }

    /// Takes what the core sends, and answers.
    fn pump(&mut self, key: Key) {
        let now = self.clocks();
        let bytes = self.core.outgoing(key).to_vec();
        if !bytes.is_empty() {
            self.core.handle(key, Event::Sent(bytes.len()), now);
        }
        if let Some((_, got)) = self.client.as_mut().filter(|(client, _)| *client == key) {
            got.extend(bytes);
            return;
        }
        let Some(sent) = self.links.get_mut(&key) else {
            return;
        };
        sent.extend(bytes);
        if !sent.ends_with(b"\r\n\r\n") || self.mood == Mood::Mute {
            return;
        }
        let request = std::mem::take(sent);
        let line = request.split(|byte| *byte == b' ').nth(1);
        let target = line.expect("a request line");
        let mut body = Vec::new();
        let status = match self.mood {
            Mood::Failing => 500,
            _ => self.answer(target, &mut body),
        };
        let length = body.len();
        let mut answer = format!("HTTP/1.1 {status} .\r\nContent-Length: {length}\r\n\r\n");
        let mut answer = std::mem::take(&mut answer).into_bytes();
        answer.extend(body);
        for piece in answer.chunks(16 * 1024) {
            self.core.handle(key, Event::Received(piece), now);
        }
    }

    /// What the exchange says to that.
    fn answer(&mut self, target: &[u8], body: &mut Vec<u8>) -> u16 {
        let at = target.iter().position(|byte| *byte == b'?');
        let (path, query) = target.split_at(at.unwrap_or(target.len()));
        if path.ends_with(b"klines") {
            if self.pages >= self.last_page {
                return 500;
            }
            self.pages += 1;
        }
        let now = self.clocks().unix;
        (self.demo).respond(path, query.strip_prefix(b"?").unwrap_or(b""), now, body)
    }

    /// Asks for a chart, until it calls itself complete.
    pub(super) fn chart(&mut self, interval: &str, from: i64, to: i64) -> Vec<ChartRow> {
        for _ in 0..60 {
            if let (true, rows) = self.look(interval, from, to) {
                return rows;
            }
            self.run(1);
        }
        panic!("{interval} from {from} to {to} is never complete");
    }

    /// Asks for a chart once: whether it calls itself complete, and its rows. What calls itself so
    /// has no gaps, as the exchange has none.
    pub(super) fn look(&mut self, interval: &str, from: i64, to: i64) -> (bool, Vec<ChartRow>) {
        let target = format!(
            "/api/ecosystem/chart?symbol=BTC/USDT&interval={interval}&from={from}&to={to}\
             &limit=1000&decimals=string"
        );
        let answer = self.get(&target);
        let split = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = answer.split_at(split.expect("a head") + 4);
        let head = String::from_utf8_lossy(head);
        assert!(head.starts_with("HTTP/1.1 200 "), "{target}: {head}");
        let is_complete = head.contains("Chart-Coverage: complete");
        let has_gaps = !head.contains("Chart-Gaps: 0\r\n");
        assert!(!(is_complete && has_gaps), "{target}: {head}");
        (is_complete, read_rows(body, true).expect("rows"))
    }

    fn get(&mut self, target: &str) -> Vec<u8> {
        let now = self.clocks();
        let key = self.core.accept(None, Service::Both, now).expect("there is room");
        let request = format!("GET {target} HTTP/1.1\r\nHost: year\r\nConnection: close\r\n\r\n");
        self.client = Some((key, Vec::new()));
        let event = Event::Received(request.as_bytes());
        self.core.handle(key, event, now);
        let limit = self.now + 10 * SECOND;
        loop {
            self.pump(key);
            let (_, got) = self.client.as_ref().expect("set above");
            if ends(got) {
                break;
            }
            assert!(self.now < limit, "{target} is not answered");
            self.step(limit);
        }
        self.core.handle(key, Event::Eof, now);
        self.carry_out();
        self.client.take().expect("set above").1
    }

    /// The chart from then on is the exchange's own history. Answers how many candles that were.
    pub fn check(&mut self, interval: &'static str, from: i64, to: i64) -> usize {
        let base = base_of(interval);
        let (mut at, mut count) = (candle_at(interval, from).0, 0);
        while at < to {
            // As many as one answer holds.
            let mut end = at;
            for _ in 0..1000 {
                let next = candle_at(interval, end).1;
                if next > to {
                    break;
                }
                end = next;
            }
            if end == at {
                break;
            }
            let expected = rolled_up(&self.truth(base, at, end), interval);
            let shown = self.chart(interval, at, end - 1);
            for (shown, expected) in shown.iter().zip(&expected) {
                assert_eq!(shown, expected, "{interval}");
            }
            assert_eq!(shown.len(), expected.len(), "{interval} from {at} to {end}");
            count += shown.len();
            at = end;
        }
        count
    }

    /// What the exchange itself has there.
    pub(super) fn truth(&self, base: &str, mut from: i64, to: i64) -> Vec<ChartRow> {
        let length = length_ms(base).expect("a stored interval");
        let mut rows = Vec::new();
        while from < to {
            let end = to.min(from + 1000 * length) - 1;
            let query =
                format!("symbol=BTCUSDT&interval={base}&startTime={from}&endTime={end}&limit=1000");
            let (mut body, now) = (Vec::new(), self.clocks().unix);
            let path = b"/api/v3/klines";
            let status = (self.demo).respond(path, query.as_bytes(), now, &mut body);
            assert_eq!(status, 200, "{query}");
            let text = String::from_utf8(body).expect("JSON is text");
            for row in text.trim_matches(['[', ']']).split("],[") {
                let mut parts = row.split(',');
                let open = parts.next().and_then(|open| open.parse().ok());
                let mut figure = || plain(parts.next().expect("a figure").trim_matches('"'));
                let figures = [(); 5].map(|()| figure());
                rows.push((open.expect("a time"), figures));
            }
            from = end + 1;
        }
        rows
    }
}

/// Whether an answer has come to its end.
fn ends(got: &[u8]) -> bool {
    let Some(head) = got.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let text = String::from_utf8_lossy(&got[..head]);
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.and_then(|text| text.parse().ok()).expect("a length");
    got.len() >= head + 4 + length
}

fn core(config: &Config, seed: u64, unix_ms: i64) -> Core {
    let now = Now { mono: Mono(0), unix: UnixMs(unix_ms) };
    let mut core = Core::new(config.clone(), None, ProcessFacts::default, seed, now);
    core.keep_history(disk::Disk::opened(), now);
    core
}

pub(super) fn config() -> Config {
    let hours = |count: u64| Duration::from_secs(3600 * count);
    let depth = |keep: i64, backfill: i64| Depth { keep, backfill };
    let source = SourceConfig {
        url: Some(Url {
            https: false,
            host: "10.0.0.1".to_string(),
            port: 80,
            path: String::new(),
        }),
        symbols: vec!["BTC/USDT".to_string()],
        // This is about candles.
        poll: Poll::Every(hours(1)),
        stale_after: hours(3),
        frozen_after: hours(10_000),
        ..SourceConfig::new("binance")
    };
    Config {
        sources: vec![source],
        history: HistoryConfig {
            // Deeper than it is ever away.
            m1: depth(KEEP, 14_400),
            h1: depth(20_000, 1000),
            d1: depth(2000, 400),
        },
        limits: Limits { chart_wait: Duration::from_secs(2), ..Limits::default() },
        ..Config::default()
    }
}

/// See the module's page.
pub fn over_a_year(rng: &mut Rng) {
    const INTERVALS: [&str; 15] = crate::support::naive::INTERVALS;
    let dir = TempDir::new();
    let mut year = Year::new(&dir, rng);
    let (mut minutes, mut sizes) = (0, Vec::new());
    for quarter in 1..=4 {
        let from = BEGIN + (quarter - 1) * 365 * DAY / 4;
        let until = BEGIN + quarter * 365 * DAY / 4;
        year.pass(until);
        minutes += year.check("1m", from, until);
        sizes.push(year.bytes);
    }
    let end = BEGIN + 365 * DAY;
    let mut others = 0;
    for interval in INTERVALS {
        let from = match base_of(interval) {
            // Somewhere in what is kept.
            "1m" => end - (3 + rng.below(90)) as i64 * DAY,
            _ => BEGIN,
        };
        let to = match base_of(interval) {
            "1m" => from + 2 * DAY,
            _ => end,
        };
        others += year.check(interval, from, to);
    }
    let Year { evicted, pages, lives, .. } = year;
    eprintln!(
        "{minutes} minutes and {others} other candles as the exchange has them, {lives} lives, \
         {pages} pages, {evicted} evicted, {sizes:?} bytes"
    );
    assert!(minutes >= 525_600, "{minutes}");
    assert!(evicted > 300_000, "{evicted}");
    // From the second quarter on it holds what is kept, and no more.
    assert!(sizes[3] <= sizes[1] + sizes[1] / 10, "{sizes:?}");
}
