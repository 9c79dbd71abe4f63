//! The history alone, without a disk: the tests take its jobs, and make up the replies.

mod file;
mod reads;
mod writing;

use super::writer::{FLUSH, HEAVY, PENDING, SLOTS_A_BATCH};
use super::*;
use crate::config::{Config, Depth, HistoryConfig as Keep, SourceConfig};
use crate::core::testing::{SOURCE, context, list};
use crate::decimal::Decimal;
use crate::history::testing::{Model as Kept, candle};
use crate::history::{
    Extent, Loaded, Opened, QuoteName, ReadJob, Rows, SavedQuote, SeriesHead, SeriesName,
    StoreError, Unusable, Written,
};
use crate::interval::Stored;
use crate::market::{IntervalSet, Market, Reported, SourceId, SymbolId};
use crate::record::{Candle, Edge, Ticker};
use crate::rng::Rng;
use crate::time::UnixMs;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Once;

/// The minute slot from which the tests count their slots.
const BEGIN: i64 = 28_000_000;

/// Jobs that the disk thread's queue takes.
const QUEUE: usize = 128;

struct Bench {
    cx: Context,
    history: History,
    /// Jobs without a reply, the oldest first.
    jobs: VecDeque<DiskJob>,
}

impl Bench {
    /// A history whose file is open and empty.
    fn new() -> Bench {
        let mut bench = Bench::loading(|_| {});
        bench.loaded();
        bench
    }

    /// Like `new`, with an open series. Returns its key too.
    fn with_btc() -> (Bench, SeriesKey) {
        let mut bench = Bench::new();
        let key = bench.btc();
        (bench, key)
    }

    /// A history whose file is open and is being loaded.
    fn loading(set: impl FnOnce(&mut Config)) -> Bench {
        let mut source = SourceConfig::new("binance");
        source.symbols = vec!["BTC/USDT".to_string(), "ETH/USDT".to_string()];
        let mut config = Config { sources: vec![source], ..Config::default() };
        set(&mut config);
        let now = Now { mono: Mono(0), unix: Stored::M1.open_of(BEGIN) };
        let mut cx = context(config, now);
        cx.stats.sources[0].clock = Some(now.unix.0);
        let mut bench = Bench { cx, history: History::new(now), jobs: VecDeque::new() };
        bench.with(|history, cx| history.begin(opened(), cx));
        assert_eq!(bench.job(), DiskJob::Load);
        bench
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut History, &mut Context) -> R) -> R {
        let done = act(&mut self.history, &mut self.cx);
        while let Some(action) = self.cx.actions.pop_front() {
            match action {
                Action::Store(job) => self.jobs.push_back(job),
                other => panic!("what has the history to do with {other:?}?"),
            }
        }
        assert!(self.jobs.len() <= QUEUE, "the queue is full");
        done
    }

    fn open_again(&mut self) {
        self.tell(opened());
        assert_eq!(self.job(), DiskJob::Load);
    }

    /// Ends a load: the file has reported all that it holds.
    fn loaded(&mut self) {
        self.tell(Reply::Loaded(Ok(Loaded::default())));
    }

    /// Checks that a failed load is tried again after this time, and not before.
    fn loads_again_after(&mut self, seconds: u64) {
        self.pass(seconds - 1);
        assert!(self.jobs.is_empty());
        self.pass(1);
        assert_eq!(self.job(), DiskJob::Load);
    }

    /// Checks that nothing is left to be written, and closes the file.
    fn stops(&mut self) {
        self.with(History::close);
        assert_eq!(self.job(), DiskJob::Stop);
        self.tell(Reply::Stopped(Ok(())));
        assert!(self.history.is_closed());
    }

    fn tell(&mut self, answer: Reply) -> bool {
        let wakes = self.with(|history, cx| history.handle(answer, cx));
        self.work();
        wakes
    }

    fn work(&mut self) {
        while self.history.has_work() {
            self.with(History::work);
        }
    }

    fn job(&mut self) -> DiskJob {
        self.jobs.pop_front().expect("a job")
    }

    fn batch(&mut self) -> Box<Batch> {
        match self.job() {
            DiskJob::Write(batch) => batch,
            other => panic!("no batch: {other:?}"),
        }
    }

    /// The batch that is due in a second.
    fn due_batch(&mut self) -> Box<Batch> {
        self.pass(1);
        self.batch()
    }

    /// Lets time pass, and keeps each deadline.
    fn pass(&mut self, seconds: u64) {
        let end = self.cx.now.mono + Duration::from_secs(seconds);
        while let Some(due) = self.history.due().filter(|due| *due <= end) {
            self.at(due.max(self.cx.now.mono));
            self.with(History::handle_timeout);
            self.work();
            let next = self.history.due();
            assert!(next.is_none_or(|at| at > self.cx.now.mono), "it would spin");
        }
        self.at(end);
    }

    fn at(&mut self, mono: Mono) {
        let passed = mono.since(self.cx.now.mono).as_millis() as i64;
        self.cx.now = Now { mono, unix: self.cx.now.unix + passed };
    }

    fn key(&mut self, symbol: &str) -> SeriesKey {
        SeriesKey {
            source: SourceId(0),
            symbol: self.cx.market.catalog.number_of(symbol).expect("a name"),
            interval: Stored::M1,
        }
    }

    /// An open series.
    fn btc(&mut self) -> SeriesKey {
        let key = self.key("BTC/USDT");
        assert!(self.cx.market.charts.open(key));
        key
    }

    /// Applies a response of the exchange with a candle of this price in each of these slots.
    fn fetched(&mut self, key: SeriesKey, slots: Range<i64>, price: i64) {
        let candles: Vec<Reported> = slots.clone().map(|slot| reported(slot, price)).collect();
        let now = self.cx.now;
        let mut changes = Changes::default();
        let charts = &mut self.cx.market.charts;
        let written = charts.ingest_whole(key, slots, &candles, now.unix, Some(&mut changes));
        self.history.note(key, changes, &self.cx);
        assert!(written.is_some(), "the series is open");
    }

    fn archived(&self, key: SeriesKey) -> Vec<(i64, i64)> {
        let spans = self.cx.market.charts.archived(key);
        let spans = spans.into_iter().flat_map(IntervalSet::iter);
        spans.map(|it| (it.start - BEGIN, it.end - BEGIN)).collect()
    }

    fn covered(&self, key: SeriesKey) -> Vec<(i64, i64)> {
        let series = self.cx.market.charts.get(key).expect("it is open");
        let spans = series.covered().iter();
        spans.map(|it| (it.start - BEGIN, it.end - BEGIN)).collect()
    }

    fn candles(&self, key: SeriesKey, slots: &Range<i64>) -> Vec<(i64, Candle)> {
        self.cx.market.charts.get(key).expect("it is open").candles(slots)
    }

    fn written(&mut self, batch: Box<Batch>) {
        self.tell(on_disk(batch));
    }

    fn unwritten(&mut self, batch: Box<Batch>) {
        let result = Err(StoreError::Full("no room".to_string()));
        self.tell(Reply::Written { batch, result });
    }

    /// Writes the batch that is due in a second, and returns it.
    fn flush(&mut self) -> Box<Batch> {
        let batch = self.due_batch();
        self.written(batch.clone());
        batch
    }

    /// Reports that the file holds these slots of a symbol's series.
    fn head(&mut self, symbol: &str, slots: Range<i64>) {
        let head = SeriesHead {
            series: name(symbol, &self.cx.config),
            extent: Extent {
                first: Some(slots.start),
                last: Some(slots.end - 1),
                count: slots.end.abs_diff(slots.start),
            },
            covered: vec![slots],
        };
        self.tell(Reply::Heads(vec![head]));
    }

    /// Reports that the file holds these slots of BTC/USDT, and nothing else.
    fn loaded_with(&mut self, slots: Range<i64>) {
        self.head("BTC/USDT", slots);
        self.loaded();
    }

    /// Loads what the file holds of the source, as if a reload had added it.
    fn recall_source(&mut self) {
        self.with(|history, cx| history.recall(SourceId(0), cx));
        assert_eq!(self.job(), DiskJob::Load);
    }

    fn recall(&mut self, key: SeriesKey, slots: Range<i64>) -> ReadStart {
        self.with(|history, cx| history.read(key, &slots, cx))
    }
}

fn name(symbol: &str, config: &Config) -> SeriesName {
    SeriesName {
        source: config.sources[0].id.as_str().into(),
        symbol: symbol.into(),
        interval: Stored::M1,
    }
}

fn reported(slot: i64, price: i64) -> Reported {
    Reported { candle: candle(Stored::M1, slot, price), is_forming: false }
}

fn ago(from: i64, to: i64) -> Range<i64> {
    BEGIN - from..BEGIN - to
}

fn broken(may_pass: bool) -> Reply {
    let why = match may_pass {
        true => Unusable::Io(StoreError::Io("a bad sector".to_string())),
        false => Unusable::Damaged("a page is torn".to_string()),
    };
    Reply::Failed(why.at(Path::new("history.db")))
}

fn opened() -> Reply {
    Reply::Opened(Opened { created: false, bytes: 4096, log_set_aside: false, upgraded_from: None })
}

/// The reply of a load that has failed.
fn unloaded() -> Reply {
    Reply::Loaded(Err(StoreError::Io("a bad sector".to_string())))
}

fn ticker(price: &Decimal) -> Ticker {
    Ticker::of_last(price.clone())
}

fn gone() -> Reply {
    Reply::Failed(Unusable::Gone.at(Path::new("history.db")))
}

fn on_disk(batch: Box<Batch>) -> Reply {
    let extents = batch.series.keys().map(|name| (name.clone(), Extent::default())).collect();
    Reply::Written { batch, result: Ok(Written { inserted: 1, extents, ..Written::default() }) }
}

thread_local! {
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Keeps the lines of a thread that catches them, and drops all others.
struct Catcher;

impl log::Log for Catcher {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = || format!("{} {}", record.level(), record.args());
        LINES.with_borrow_mut(|lines| lines.iter_mut().for_each(|lines| lines.push(line())));
    }

    fn flush(&self) {}
}

/// The lines of level `info` and above that this logs.
fn logged(act: impl FnOnce()) -> Vec<String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Catcher).expect("no other test sets one");
        log::set_max_level(log::LevelFilter::Info);
    });
    LINES.set(Some(Vec::new()));
    act();
    LINES.take().expect("this function has put it there")
}

/// A disk with one series.
#[derive(Default)]
struct Disk {
    kept: Kept,
    /// True if the disk has failed: the next job finds that it works again.
    is_away: bool,
    /// The candle of each slot that memory took in last.
    taken: BTreeMap<i64, Candle>,
}

impl Disk {
    /// Does the next job, or fails at it.
    fn work(&mut self, bench: &mut Bench, fails: bool) {
        if std::mem::take(&mut self.is_away) {
            bench.tell(opened());
        }
        match bench.job() {
            DiskJob::Load if fails => drop(bench.tell(unloaded())),
            DiskJob::Load => {
                let covered = self.covered(i64::MIN..i64::MAX);
                if !covered.is_empty() {
                    let series = name("BTC/USDT", &bench.cx.config);
                    let head = SeriesHead { series, covered, extent: Extent::default() };
                    bench.tell(Reply::Heads(vec![head]));
                }
                bench.loaded();
            }
            DiskJob::Read(read) => {
                let busy = StoreError::Busy("somebody writes".to_string());
                let result = if fails { Err(busy) } else { Ok(self.page(&read)) };
                assert!(bench.tell(Reply::Rows { ticket: read.ticket, result }), "clients look");
                let (key, loads) = (bench.key("BTC/USDT"), bench.history.load_stage() > 0);
                let waits = bench.history.is_reading(key, &ago(50, 0));
                assert!(!fails || loads || !waits, "nobody waits");
            }
            DiskJob::Write(batch) if fails => bench.unwritten(batch),
            DiskJob::Write(batch) => {
                batch.series.values().for_each(|changes| self.kept.apply(changes));
                bench.written(batch);
            }
            DiskJob::Stop => drop(bench.tell(Reply::Stopped(Ok(())))),
        }
    }

    /// The covered parts of these slots.
    fn covered(&self, slots: Range<i64>) -> Vec<Range<i64>> {
        let covered = self.kept.covered.range(slots).map(|slot| *slot..*slot + 1);
        IntervalSet::from_iter(covered).iter().collect()
    }

    /// The rows of the newest seven requested slots.
    fn page(&self, read: &ReadJob) -> Rows {
        assert_eq!(read.keep, Edge::Newest);
        let slots = read.slots.start.max(read.slots.end - 7)..read.slots.end;
        Rows {
            candles: self.kept.candles.range(slots.clone()).map(|(_, it)| it.clone()).collect(),
            covered: self.covered(slots.clone()),
            unsound: Vec::new(),
            slots,
        }
    }

    /// Checks that archived slots are on disk, that memory and disk have the candles that were taken in last,
    /// and that there is one write and one read at a time.
    fn check(&self, bench: &Bench, key: SeriesKey, seed: u64) {
        for slot in slots(&bench.archived(key)) {
            let (here, candle) = (slot - BEGIN, self.kept.candles.get(&slot));
            assert!(self.kept.covered.contains(&slot), "seed {seed}: {here} is not on disk");
            assert_eq!(candle, self.taken.get(&slot), "seed {seed}: {here}");
        }
        for (slot, candle) in bench.candles(key, &ago(50, 0)) {
            assert_eq!(Some(&candle), self.taken.get(&slot), "seed {seed}: {}", slot - BEGIN);
        }
        let count = |is_it: fn(&DiskJob) -> bool| bench.jobs.iter().filter(|it| is_it(it)).count();
        assert!(count(|it| matches!(it, DiskJob::Write(_))) <= 1, "seed {seed}");
        assert!(count(|it| matches!(it, DiskJob::Read(_))) <= 1, "seed {seed}");
    }
}

/// The slots of these ranges, which count from `BEGIN`.
fn slots(spans: &[(i64, i64)]) -> impl Iterator<Item = i64> {
    spans.iter().flat_map(|(from, to)| BEGIN + from..BEGIN + to)
}

#[test]
fn whatever_fails_what_is_archived_is_on_disk_and_in_the_end_all_is() {
    for seed in 0..400 {
        let (mut rng, mut disk) = (Rng::new(seed), Disk::default());
        let (mut bench, key) = Bench::with_btc();
        let mut wanted = BTreeSet::new();
        for step in 0..60 {
            let from = rng.below(40) as i64 + 1;
            let some = ago(from, (from - 9).max(0));
            match rng.below(24) {
                0 => {
                    // The file is removed, and a new one is created.
                    (disk.kept, disk.is_away) = (Kept::default(), true);
                    wanted.clear();
                    bench.tell(gone());
                }
                1 => {
                    disk.is_away = true;
                    if rng.below(2) == 0 {
                        // Nobody has seen that the file was replaced meanwhile.
                        disk.kept = Kept::default();
                    }
                    wanted.clear();
                    bench.tell(broken(true));
                }
                3 => bench.with(|history, cx| history.recall(SourceId(0), cx)),
                4..9 => {
                    bench.fetched(key, some.clone(), step);
                    disk.taken.extend(bench.candles(key, &some));
                }
                9..12 => bench.pass(rng.below(4)),
                12 => {
                    // Memory loses the series.
                    bench.cx.market.charts.close(key);
                    bench.cx.market.charts.open(key);
                    wanted.clear();
                }
                13..16 => match bench.recall(key, some.clone()) {
                    // What only the next batch has is not in the file yet.
                    ReadStart::Begun => {
                        let archived: BTreeSet<i64> = slots(&bench.archived(key)).collect();
                        wanted.extend(archived.range(some));
                    }
                    start => assert_ne!(start, ReadStart::Refused),
                },
                _ if bench.jobs.is_empty() => {}
                _ => {
                    let fails = rng.below(4) == 0;
                    disk.work(&mut bench, fails);
                    if fails {
                        wanted.clear();
                    }
                }
            }
            disk.check(&bench, key, seed);
        }
        let is_open = bench.history.keeps(key, &bench.cx) || bench.history.load_stage() == 2;
        if seed % 2 == 0 && is_open && !bench.cx.stats.history.write_failed {
            bench.with(History::shut_down);
            while !bench.history.is_closed() {
                bench.work();
                bench.with(History::close);
                while !bench.jobs.is_empty() {
                    disk.work(&mut bench, false);
                }
            }
            for (slot, candle) in bench.candles(key, &ago(50, 0)) {
                assert_eq!(disk.kept.candles.get(&slot), Some(&candle), "seed {seed}");
            }
            continue;
        }
        for _ in 0..20 {
            while !bench.jobs.is_empty() {
                disk.work(&mut bench, false);
            }
            bench.pass(10);
        }
        disk.check(&bench, key, seed);
        let covered: BTreeSet<i64> = slots(&bench.covered(key)).collect();
        let archived: BTreeSet<i64> = slots(&bench.archived(key)).collect();
        assert!(covered.is_subset(&archived) && bench.jobs.is_empty(), "seed {seed}");
        // Every wanted slot is in memory, unless the file has lost it.
        let is_read = |it: &i64| covered.contains(it) || !archived.contains(it);
        assert!(wanted.iter().all(is_read), "seed {seed}");
        assert!(!bench.history.is_reading(key, &ago(50, 0)), "seed {seed}");
        bench.recall(key, ago(50, 0));
        while !bench.jobs.is_empty() {
            disk.work(&mut bench, false);
        }
        assert_eq!(bench.archived(key), bench.covered(key), "seed {seed}");
        assert!(!bench.cx.stats.history.lost && !bench.cx.stats.history.write_failed);
    }
}
