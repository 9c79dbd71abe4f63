//! The archive alone, without a disk: jobs are taken from it, and answers made up.

use super::*;
use crate::config::{Config, Depth, History as Keep, SourceConfig};
use crate::core::Status;
use crate::core::context::Context;
use crate::decimal::Decimal;
use crate::history::{
    Evicted, Opened, QuoteName, Read, Rows, SavedQuote, SeriesName, Unwritten, Written,
};
use crate::history::{Extent, Head, Loaded, OpenError, StoreError};
use crate::interval::Stored;
use crate::market::{IntervalSet, Market, Reported, SymbolId};
use crate::record::{Candle, Ticker};
use crate::time::UnixMs;
use std::collections::VecDeque;
use std::path::PathBuf;

/// Slots of a minute that the candles of these tests lie in.
const BEGIN: i64 = 28_000_000;

/// Jobs that the disk thread's queue takes.
const QUEUE: usize = 128;

struct Bench {
    cx: Context,
    history: History,
    /// Jobs without an answer.
    jobs: VecDeque<Job>,
}

impl Bench {
    /// An archive whose file is open and empty.
    fn new() -> Bench {
        let mut bench = Bench::unopened(|_| {});
        bench.open();
        bench.tell(Answer::Loaded(Ok(Loaded::default())));
        assert_eq!(bench.history.state, State::On);
        bench
    }

    fn unopened(set: impl FnOnce(&mut Config)) -> Bench {
        let mut source = SourceConfig::of("binance");
        source.symbols = vec!["BTC/USDT".to_string(), "ETH/USDT".to_string()];
        let id = source.id.clone();
        let mut config = Config {
            sources: vec![source],
            ..Config::default()
        };
        set(&mut config);
        let now = Now {
            mono: Mono(0),
            unix: Stored::M1.open_of(BEGIN),
        };
        let mut stats = Status::new(std::iter::once(&*id), now);
        stats.sources[0].clock = Some(now.unix.0);
        let market = Market::new(&config);
        Bench {
            cx: Context::new(config, market, stats, now),
            history: History::new(now),
            jobs: VecDeque::new(),
        }
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

    fn open(&mut self) {
        let opened = Answer::Opened(Opened {
            created: false,
            bytes: 4096,
            log_set_aside: false,
        });
        self.with(|history, cx| history.begin(opened, cx));
        assert_eq!(self.job(), Job::Load);
    }

    fn tell(&mut self, answer: Answer) -> bool {
        let wakes = self.with(|history, cx| history.answered(answer, cx));
        while self.history.has_work() {
            self.with(History::work);
        }
        wakes
    }

    fn job(&mut self) -> Job {
        self.jobs.pop_front().expect("a job")
    }

    fn read_job(&mut self) -> Read {
        match self.job() {
            Job::Read(read) => read,
            other => panic!("no read: {other:?}"),
        }
    }

    fn batch(&mut self) -> (u64, Box<Batch>) {
        match self.job() {
            Job::Write { number, batch } => (number, batch),
            other => panic!("no batch: {other:?}"),
        }
    }

    /// Lets time pass; each deadline is kept, and none lies in the past.
    fn pass(&mut self, seconds: u64) {
        let end = self.cx.now.mono + Duration::from_secs(seconds);
        while let Some(due) = self.history.due().filter(|due| *due <= end) {
            self.at(due.max(self.cx.now.mono));
            self.with(History::handle_timeout);
            while self.history.has_work() {
                self.with(History::work);
            }
            let next = self.history.due();
            assert!(next.is_none_or(|at| at > self.cx.now.mono), "it would spin");
        }
        self.at(end);
    }

    fn at(&mut self, mono: Mono) {
        let passed = mono.since(self.cx.now.mono).as_millis() as i64;
        self.cx.now = Now {
            mono,
            unix: self.cx.now.unix + passed,
        };
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

    /// What the exchange has told of these slots: a candle in each, of this price.
    fn fetched(&mut self, key: SeriesKey, slots: Range<i64>, price: i64) {
        let candles: Vec<Reported> = slots.clone().map(|slot| reported(slot, price)).collect();
        let now = self.cx.now;
        let changes = self.history.changes(key, &self.cx);
        let charts = &mut self.cx.market.charts;
        let written = charts.ingest_whole(key, slots, &candles, now.unix, changes);
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

    fn written(&mut self, number: u64) {
        let written = Written {
            inserted: 1,
            ..Written::default()
        };
        let result = Ok(written);
        self.tell(Answer::Written { number, result });
    }

    fn unwritten(&mut self, number: u64, batch: Box<Batch>) {
        let error = StoreError::Full("no room".to_string());
        let result = Err(Unwritten { error, batch });
        self.tell(Answer::Written { number, result });
    }

    /// What the file holds of the series of this symbol.
    fn head(&mut self, symbol: &str, slots: Range<i64>) {
        let head = Head {
            series: name(symbol, &self.cx.config),
            extent: Extent {
                first: Some(slots.start),
                last: Some(slots.end - 1),
                count: slots.end.abs_diff(slots.start),
            },
            covered: vec![slots],
        };
        self.tell(Answer::Heads(vec![head]));
    }

    fn recall(&mut self, key: SeriesKey, slots: Range<i64>) -> Option<bool> {
        self.with(|history, cx| history.recall(key, &slots, cx))
    }

    /// A page of a read, of which the file knows all; with a candle in every other slot.
    fn rows(&mut self, read: &Read, slots: Range<i64>) -> bool {
        let result = Ok(page(read, slots.clone(), vec![slots]));
        let ticket = read.ticket;
        self.tell(Answer::Rows { ticket, result })
    }
}

fn page(read: &Read, slots: Range<i64>, covered: Vec<Range<i64>>) -> Rows {
    let inside = covered.iter().flat_map(Clone::clone);
    let slots_with = inside.filter(|slot| slot % 2 == 0);
    Rows {
        series: read.series.clone(),
        slots,
        candles: slots_with.map(|slot| reported(slot, 7).candle).collect(),
        covered,
        unsound: Vec::new(),
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
    Reported {
        candle: Candle {
            open_time: Stored::M1.open_of(slot),
            open: Decimal::from(price),
            high: Decimal::from(price + 1),
            low: Decimal::from(price),
            close: Decimal::from(price),
            volume: Decimal::from(1),
        },
        closed: Some(true),
    }
}

fn ago(from: i64, to: i64) -> Range<i64> {
    BEGIN - from..BEGIN - to
}

fn broken(may_pass: bool) -> Answer {
    let path = PathBuf::from("history.db");
    Answer::Failed(match may_pass {
        true => OpenError::Io {
            path,
            error: StoreError::Io("a bad sector".to_string()),
        },
        false => OpenError::Damaged {
            path,
            what: "a page is torn".to_string(),
        },
    })
}

#[test]
fn what_is_written_is_archived_when_it_is_acknowledged() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 0), 5);
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 11);
    assert!(bench.archived(key).is_empty());
    bench.written(number);
    assert_eq!(bench.archived(key), [(-10, 0)]);
    assert_eq!(bench.cx.stats.history.inserted, 1);
    // Nothing has changed: nothing is written.
    bench.pass(5);
    assert!(bench.jobs.is_empty());
}

#[test]
fn what_changes_while_it_is_written_is_not_archived_before_that_is_written_too() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 0), 5);
    bench.pass(1);
    let (first, _) = bench.batch();
    bench.fetched(key, ago(3, 1), 6);
    bench.pass(5);
    assert!(bench.jobs.is_empty(), "one batch at a time");
    bench.written(first);
    assert_eq!(bench.archived(key), [(-10, -3), (-1, 0)]);
    bench.pass(1);
    let (second, _) = bench.batch();
    assert_eq!(bench.archived(key), [(-10, -3), (-1, 0)]);
    bench.written(second);
    assert_eq!(bench.archived(key), [(-10, 0)]);
}

#[test]
fn a_batch_of_many_series_is_listed_and_taken_slice_by_slice() {
    const COUNT: usize = 300;
    let mut bench = Bench::new();
    let keys = [(); COUNT];
    let mut number = 0;
    let keys = keys.map(|()| {
        number += 1;
        bench.key(&format!("S{number}/USDT"))
    });
    for key in keys {
        assert!(bench.cx.market.charts.open(key));
        bench.fetched(key, ago(10, 5), 5);
    }
    bench.at(bench.cx.now.mono + FLUSH);
    bench.with(History::handle_timeout);
    let mut slices = 0;
    while bench.jobs.is_empty() {
        assert!(bench.history.has_work());
        bench.with(History::work);
        slices += 1;
        // What comes meanwhile is for the next batch.
        bench.fetched(keys[slices], ago(5, 4), 5);
    }
    assert!((4..10).contains(&slices), "{slices} slices");
    let (number, batch) = bench.batch();
    assert_eq!((batch.series.len(), batch.weight()), (COUNT, COUNT * 6));
    let written = Answer::Written {
        number,
        result: Ok(Written::default()),
    };
    bench.with(|history, cx| history.answered(written, cx));
    let archived = |bench: &Bench, key: &SeriesKey| !bench.archived(*key).is_empty();
    let mut known = 0;
    while bench.history.has_work() {
        bench.with(History::work);
        let count = keys.iter().filter(|key| archived(&bench, key)).count();
        assert!(count <= known + COUNT / 4, "{count} after {known}");
        known = count;
        // An older word about what is still to be taken: it is not believed before it is written.
        bench.fetched(keys[20], ago(10, 9), 6);
    }
    for (at, key) in keys.into_iter().enumerate() {
        let expected = match at {
            20 => (-9, -5),
            _ => (-10, -5),
        };
        assert_eq!(bench.archived(key), [expected], "{at}");
    }
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.series.len(), slices + 1);
    bench.written(number);
    assert_eq!(bench.archived(keys[20]), [(-10, -5)]);
    assert_eq!(bench.archived(keys[1]), [(-10, -4)]);
}

#[test]
fn a_batch_that_comes_back_waits_longer_each_time_and_takes_in_what_came_since() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.pass(1);
    for (round, pause) in [1, 2, 4, 8, 16, 30, 30].into_iter().enumerate() {
        let (number, batch) = bench.batch();
        bench.unwritten(number, batch);
        assert!(bench.cx.stats.history.write_failed);
        assert_eq!(bench.cx.stats.history.persist_errors, round as u64 + 1);
        bench.fetched(key, ago(5, 4), round as i64 + 1);
        bench.pass(pause - 1);
        assert!(bench.jobs.is_empty(), "it rests for {pause} s");
        bench.pass(1);
    }
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 6 + 1, "six candles in one range");
    bench.written(number);
    assert!(!bench.cx.stats.history.write_failed);
    assert_eq!(bench.archived(key), [(-10, -4)]);
}

#[test]
fn a_disk_that_fails_again_and_again_takes_no_more_memory() {
    let mut bench = Bench::new();
    let key = bench.btc();
    let (mut begin, mut refused) = (BEGIN, 0);
    for _ in 0..40 {
        for _ in 0..8 {
            begin -= 1000;
            bench.fetched(key, begin..begin + 1000, 5);
        }
        bench.pass(30);
        if let Some(Job::Write { number, batch }) = bench.jobs.pop_front() {
            assert!(batch.weight() < PENDING + 2000, "{}", batch.weight());
            // What comes while it is under way counts as well.
            for _ in 0..8 {
                begin -= 1000;
                bench.fetched(key, begin..begin + 1000, 5);
            }
            bench.unwritten(number, batch);
        }
        refused += usize::from(!bench.history.has_room());
    }
    assert!(refused > 20);
    assert!(!bench.keeps(key));
    // What is to be forgotten is said nevertheless.
    let slots = BEGIN..i64::MAX;
    (bench.history).forget(key, slots, &bench.cx);
    let changes = &bench.history.batch.series[&name("BTC/USDT", &bench.cx.config)];
    assert!(changes.ranges().any(|(slots, _)| slots.end == i64::MAX));
}

#[test]
fn nothing_of_a_damaged_file_is_believed_and_nothing_is_written_to_it() {
    let mut bench = Bench::new();
    let key = bench.btc();
    let other = bench.key("ETH/USDT");
    bench.cx.market.charts.archive(other, ago(9, 0));
    bench.fetched(key, ago(10, 0), 5);
    bench.pass(1);
    let (number, _) = bench.batch();
    bench.written(number);
    bench.fetched(key, ago(10, 9), 6);
    bench.pass(1);
    let (number, batch) = bench.batch();
    bench.tell(broken(false));
    bench.unwritten(number, batch);
    assert!(bench.cx.stats.history.unusable);
    assert!(bench.archived(key).is_empty() && bench.archived(other).is_empty());
    bench.fetched(key, ago(20, 10), 5);
    bench.pass(1000);
    assert!(bench.jobs.is_empty());
    assert_eq!(bench.recall(key, ago(30, 0)), Some(false));
    bench.with(History::shut_down);
    bench.with(|history, cx| history.close(cx));
    assert_eq!(bench.job(), Job::Stop);
    bench.tell(Answer::Stopped(Ok(())));
    assert!(bench.history.is_closed());
}

#[test]
fn a_file_that_can_be_used_again_is_read_anew() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.cx.market.charts.archive(key, ago(50, 0));
    bench.tell(broken(true));
    assert!(bench.cx.stats.history.unusable && bench.archived(key).is_empty());
    let unknown = |bench: &Bench| {
        let series = bench.cx.market.charts.get(key).expect("it is open");
        series.unknown(ago(50, 0)).len()
    };
    assert_eq!(unknown(&bench), 1, "the exchange is asked meanwhile");
    bench.fetched(key, ago(3, 0), 5);
    bench.pass(1);
    let (number, batch) = bench.batch();
    bench.open_again();
    assert!(bench.history.is_loading());
    bench.unwritten(number, batch);
    bench.pass(10);
    assert!(
        bench.jobs.is_empty(),
        "not before it has told what it holds"
    );
    bench.head("BTC/USDT", ago(50, 0));
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    assert!(!bench.cx.stats.history.unusable && !bench.history.is_loading());
    assert_eq!(
        bench.archived(key),
        [(-50, -3)],
        "the rest waits to be written"
    );
    bench.pass(1);
    let (number, _) = bench.batch();
    bench.written(number);
    assert_eq!(bench.archived(key), [(-50, 0)]);
}

impl Bench {
    fn keeps(&self, key: SeriesKey) -> bool {
        self.history.keeps(key, &self.cx)
    }

    fn open_again(&mut self) {
        self.tell(Answer::Opened(Opened {
            created: false,
            bytes: 4096,
            log_set_aside: false,
        }));
        assert_eq!(self.job(), Job::Load);
    }
}

#[test]
fn a_load_that_failed_is_tried_again() {
    let mut bench = Bench::unopened(|_| {});
    bench.open();
    assert!(bench.history.is_loading());
    let error = StoreError::Io("a bad sector".to_string());
    bench.tell(Answer::Loaded(Err(error)));
    assert!(!bench.history.is_loading(), "nobody waits for a bad disk");
    bench.pass(29);
    assert!(bench.jobs.is_empty());
    bench.pass(1);
    assert_eq!(bench.job(), Job::Load);
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    let key = bench.key("BTC/USDT");
    assert!(bench.keeps(key));
}

#[test]
fn a_load_that_takes_long_is_not_waited_for() {
    let mut bench = Bench::unopened(|_| {});
    bench.open();
    bench.pass(29);
    assert!(bench.history.is_loading());
    bench.pass(2);
    assert!(!bench.history.is_loading());
    bench.pass(500);
    bench.head("BTC/USDT", ago(50, 0));
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    let key = bench.key("BTC/USDT");
    assert!(bench.keeps(key));
}

#[test]
fn a_write_that_never_ends_shows() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 0), 5);
    bench.pass(10);
    let (number, _) = bench.batch();
    assert!(!bench.cx.stats.history.write_failed);
    bench.pass(2);
    assert!(bench.cx.stats.history.write_failed);
    bench.written(number);
    assert!(!bench.cx.stats.history.write_failed);
}

#[test]
fn many_who_want_the_same_share_one_read_the_newest_first() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.cx.market.charts.archive(key, ago(2000, 0));
    assert_eq!(bench.recall(key, ago(1000, 500)), Some(true));
    let first = bench.read_job();
    assert_eq!(first.slots, ago(1000, 500));
    assert_eq!(bench.recall(key, ago(900, 600)), Some(true));
    assert!(bench.jobs.is_empty());
    assert!(bench.rows(&first, ago(800, 500)));
    let second = bench.read_job();
    assert_eq!(second.slots, ago(1000, 800));
    assert!(bench.history.is_recalling(key, &ago(900, 890)));
    assert!(!bench.history.is_recalling(key, &ago(700, 500)));
    bench.rows(&second, ago(1000, 800));
    assert!(bench.jobs.is_empty());
    assert_eq!(bench.covered(key), [(-1000, -500)]);
    assert_eq!(bench.recall(key, ago(1000, 500)), Some(false));
    assert_eq!(
        bench.cx.market.charts.get(key).map(|it| it.count()),
        Some(250)
    );
}

#[test]
fn who_wants_newer_candles_than_the_page_that_is_read_gets_them_too() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.cx.market.charts.archive(key, ago(2000, 0));
    bench.recall(key, ago(1000, 500));
    let first = bench.read_job();
    bench.recall(key, ago(200, 100));
    bench.rows(&first, ago(800, 500));
    assert!(bench.history.is_recalling(key, &ago(200, 100)));
    let second = bench.read_job();
    assert_eq!(second.slots, ago(500, 100));
    bench.rows(&second, ago(500, 100));
    let third = bench.read_job();
    assert_eq!(third.slots, ago(1000, 800));
    bench.rows(&third, ago(1000, 800));
    assert!(bench.jobs.is_empty());
    assert_eq!(bench.covered(key), [(-1000, -100)]);
}

#[test]
fn a_part_that_the_file_does_not_know_is_no_market_without_trades() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.cx.market.charts.archive(key, ago(100, 0));
    bench.recall(key, ago(100, 0));
    let read = bench.read_job();
    let mut rows = page(&read, ago(100, 0), vec![ago(90, 60), ago(50, 10)]);
    rows.unsound = vec![BEGIN - 30];
    rows.candles
        .retain(|it| it.open_time != Stored::M1.open_of(BEGIN - 30));
    let (ticket, result) = (read.ticket, Ok(rows));
    bench.tell(Answer::Rows { ticket, result });
    let known = [(-90, -60), (-50, -30), (-29, -10)];
    assert_eq!(bench.covered(key), known);
    assert_eq!(bench.archived(key), known);
    assert!(bench.jobs.is_empty(), "it is not read again and again");
    bench.pass(1);
    let (_, batch) = bench.batch();
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    let forgotten: Vec<_> = changes.ranges().map(|(slots, _)| slots).collect();
    let slot = BEGIN - 30..BEGIN - 29;
    assert_eq!(forgotten, std::slice::from_ref(&slot));
}

#[test]
fn a_read_that_fails_ends_the_wait() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.cx.market.charts.archive(key, ago(100, 0));
    bench.recall(key, ago(100, 0));
    let Read { ticket, .. } = bench.read_job();
    let result = Err(StoreError::Busy("somebody writes".to_string()));
    assert!(bench.tell(Answer::Rows { ticket, result }));
    assert!(!bench.history.is_recalling(key, &ago(100, 0)));
    assert_eq!(bench.recall(key, ago(100, 0)), Some(true));
}

#[test]
fn a_series_that_closes_on_the_way_keeps_what_is_written_and_reads_no_more() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.cx.market.charts.archive(key, ago(2000, 1000));
    bench.recall(key, ago(2000, 1000));
    let read = bench.read_job();
    bench.fetched(key, ago(10, 0), 5);
    bench.cx.market.charts.close(key);
    bench.rows(&read, ago(1500, 1000));
    assert!(bench.jobs.is_empty());
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 11);
    bench.written(number);
    assert_eq!(bench.archived(key), [(-2000, -1000), (-10, 0)]);
    bench.cx.market.charts.open(key);
    assert_eq!(bench.archived(key), [(-2000, -1000), (-10, 0)]);
}

#[test]
fn what_a_clock_that_ran_ahead_has_judged_is_taken_back_also_on_its_way() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 4), 5);
    bench.pass(1);
    let (first, _) = bench.batch();
    bench.fetched(key, ago(4, 0), 5);
    let since = Stored::M1.open_of(BEGIN - 6);
    let cut = bench.cx.market.charts.doubt(SourceId(0), since);
    assert_eq!(cut, [(key, BEGIN - 6)]);
    for (key, slot) in cut {
        (bench.history).forget(key, slot..i64::MAX, &bench.cx);
    }
    bench.written(first);
    assert_eq!(bench.archived(key), [(-10, -6)]);
    bench.pass(1);
    let (second, batch) = bench.batch();
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    assert_eq!(changes.candles().count(), 0);
    bench.written(second);
    assert_eq!(bench.archived(key), [(-10, -6)]);
}

#[test]
fn what_is_evicted_is_archived_no_longer_and_tried_again_when_that_fails() {
    let mut bench = Bench::unopened(|config| {
        config.history = Keep {
            m1: Depth {
                keep: 1000,
                backfill: 0,
            },
            ..Keep::default()
        };
    });
    bench.open();
    bench.head("BTC/USDT", ago(3000, 10));
    bench.head("ETH/USDT", ago(990, 10));
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    let key = bench.key("BTC/USDT");
    bench.pass(61);
    let before = BEGIN + 1 - 1000;
    let evict = Job::Evict {
        series: name("BTC/USDT", &bench.cx.config),
        before,
    };
    assert_eq!(bench.jobs, [evict]);
    assert_eq!(bench.archived(key), [(-999, -10)]);
    bench.pass(200);
    assert_eq!(bench.jobs.len(), 1, "it is under way");
    let series = name("BTC/USDT", &bench.cx.config);
    let error = StoreError::Full("no room".to_string());
    let result = Err(error);
    bench.jobs.clear();
    bench.tell(Answer::Evicted {
        series: series.clone(),
        before,
        result,
    });
    bench.pass(60);
    assert!(matches!(&bench.jobs[0], Job::Evict { series: it, .. } if *it == series));
    let result = Ok(Evicted {
        count: 2001,
        ..Evicted::default()
    });
    bench.jobs.clear();
    bench.tell(Answer::Evicted {
        series,
        before,
        result,
    });
    assert_eq!(bench.cx.stats.history.evicted, 2001);
    bench.pass(60);
    assert!(bench.jobs.is_empty());
}

#[test]
fn a_clock_that_the_exchange_has_not_confirmed_evicts_nothing() {
    let mut bench = Bench::unopened(|_| {});
    bench.cx.stats.sources[0].clock = None;
    bench.cx.now.unix = UnixMs(bench.cx.now.unix.0 * 3);
    bench.open();
    bench.head("BTC/USDT", ago(3000, 10));
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    bench.pass(200);
    assert!(bench.jobs.is_empty());
}

#[test]
fn whatever_is_wanted_the_queue_of_the_disk_has_room_for_it() {
    let mut bench = Bench::unopened(|config| config.limits.candle_series = 500);
    bench.open();
    let keys: Vec<SeriesKey> = (0..200)
        .map(|at| bench.key(&format!("C{at}/USDT")))
        .collect();
    for key in &keys {
        assert!(bench.cx.market.charts.open(*key));
        bench.cx.market.charts.archive(*key, 10..20_000);
        bench.cx.market.charts.archive(*key, ago(3000, 10));
    }
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    let mut wishes = Vec::new();
    for key in &keys {
        bench.fetched(*key, ago(3, 1), 5);
        wishes.push(bench.recall(*key, ago(3000, 2000)));
    }
    bench.pass(100);
    // The harness looks at the length of the queue; here, that it was put to the test.
    assert!(wishes.contains(&Some(true)) && wishes.contains(&None));
    let evictions = bench
        .jobs
        .iter()
        .filter(|it| matches!(it, Job::Evict { .. }));
    assert!(evictions.count() > 10);
    assert!(bench.jobs.len() > 100);
}

#[test]
fn the_end_writes_what_waits_and_closes_the_file() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.with(History::shut_down);
    let (first, _) = bench.batch();
    bench.fetched(key, ago(5, 0), 5);
    bench.with(|history, cx| history.close(cx));
    assert!(bench.jobs.is_empty(), "the batch is under way");
    bench.written(first);
    bench.with(|history, cx| history.close(cx));
    let (second, batch) = bench.batch();
    assert_eq!(batch.weight(), 6);
    bench.written(second);
    bench.with(|history, cx| history.close(cx));
    assert_eq!(bench.job(), Job::Stop);
    assert!(!bench.history.is_closed());
    bench.tell(Answer::Stopped(Ok(())));
    assert!(bench.history.is_closed());
    assert_eq!(bench.history.due(), None);
}

#[test]
fn the_end_while_the_file_still_tells_what_it_holds_loses_nothing() {
    let mut bench = Bench::unopened(|_| {});
    bench.open();
    let key = bench.btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.with(History::shut_down);
    bench.with(|history, cx| history.close(cx));
    assert!(bench.jobs.is_empty());
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    bench.with(|history, cx| history.close(cx));
    let (number, _) = bench.batch();
    bench.written(number);
    bench.with(|history, cx| history.close(cx));
    assert_eq!(bench.job(), Job::Stop);
}

#[test]
fn the_end_waits_for_a_disk_that_hangs_no_longer_than_its_deadline() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.with(History::shut_down);
    bench.with(|history, cx| history.close(cx));
    let deadline = bench.cx.config.limits.shutdown + CLOSING;
    bench.pass(deadline.as_secs() - 1);
    assert!(!bench.history.is_closed());
    bench.pass(1);
    assert!(bench.history.is_closed());
}

#[test]
fn the_end_with_a_disk_that_fails_gives_up_after_one_try() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.with(History::shut_down);
    let (number, batch) = bench.batch();
    bench.unwritten(number, batch);
    bench.with(|history, cx| history.close(cx));
    assert_eq!(bench.job(), Job::Stop);
}

#[test]
fn quotes_are_saved_when_they_have_changed_and_put_back_as_stale() {
    let mut bench = Bench::new();
    let symbol = bench.key("BTC/USDT").symbol;
    let price = Decimal::from(5);
    let quote = ticker(&price);
    let now = bench.cx.now;
    let applied = (bench.cx.market.quotes).apply(SourceId(0), symbol, quote.clone(), now);
    assert!(applied.is_ok());
    bench.pass(302);
    let (number, batch) = bench.batch();
    assert_eq!(batch.quotes.len(), 1);
    bench.written(number);
    bench.pass(302);
    assert!(bench.jobs.is_empty(), "it has not changed");

    let mut later = Bench::unopened(|_| {});
    later.open();
    let list: Vec<(QuoteName, SavedQuote)> = batch.quotes.into_iter().collect();
    later.tell(Answer::Quotes(list));
    later.tell(Answer::Loaded(Ok(Loaded::default())));
    let symbol: SymbolId = later.key("BTC/USDT").symbol;
    let restored = later.cx.market.quotes.of(SourceId(0), symbol);
    assert!(restored.is_some_and(|it| it.stale() && it.ticker.last == price));
}

#[test]
fn markets_that_only_a_list_tells_of_are_back_with_their_quotes_until_it_comes() {
    let mut bench = Bench::unopened(|config| {
        config.sources[0].symbols.clear();
        config.sources[0].quote_assets = vec!["USDT".to_string()];
    });
    bench.open();
    let now = bench.cx.now.unix;
    let saved = |symbol: &str, received_at: UnixMs| {
        let (source, symbol) = ("binance".into(), symbol.into());
        let ticker = ticker(&Decimal::from(5));
        let quote = SavedQuote {
            ticker,
            received_at,
        };
        (QuoteName { source, symbol }, quote)
    };
    // Not wanted any more; and one that had left the list before.
    let others = vec![
        saved("ETH/BTC", now),
        saved("LUNA/USDT", now - quotes::LEFT_MS),
    ];
    let list = vec![saved("BTC/USDT", now), saved("SOL/USDT", now - 300_000)];
    bench.tell(Answer::Quotes(others));
    bench.tell(Answer::Quotes(list));
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    let shown = |bench: &Bench| {
        let Market {
            catalog, quotes, ..
        } = &bench.cx.market;
        let known = catalog.known().iter();
        let quote = |symbol: &SymbolId| quotes.of(SourceId(0), *symbol).map(|it| it.stale());
        known
            .map(|symbol| (catalog.name(*symbol).as_str().to_string(), quote(symbol)))
            .collect::<Vec<_>>()
    };
    let stale = |symbol: &str| (symbol.to_string(), Some(true));
    assert_eq!(shown(&bench), [stale("BTC/USDT"), stale("SOL/USDT")]);
}

#[test]
fn many_quotes_come_back_in_slices_behind_their_markets() {
    let mut bench = Bench::unopened(|config| config.sources[0].symbols.clear());
    bench.open();
    let count = 300;
    let saved = |at: usize| {
        let (source, symbol) = ("binance".into(), format!("M{at}/USDT").into());
        let quote = SavedQuote {
            ticker: ticker(&Decimal::from(5)),
            received_at: bench.cx.now.unix,
        };
        (QuoteName { source, symbol }, quote)
    };
    let list: Vec<(QuoteName, SavedQuote)> = (0..count).map(saved).collect();
    bench.tell(Answer::Quotes(list));
    let loaded = Answer::Loaded(Ok(Loaded::default()));
    bench.with(|history, cx| history.answered(loaded, cx));
    let (mut back, mut slices) = (0, 0);
    while bench.history.has_work() {
        bench.with(History::work);
        let (known, counts) = (
            bench.cx.market.catalog.known().len(),
            bench.cx.market.quotes.counts(),
        );
        assert!(
            known == count || (known, counts.cached) == (0, 0),
            "{known}"
        );
        let came = counts.cached - back;
        (back, slices) = (counts.cached, slices + usize::from(came > 0));
        assert!(came < count / 2, "{came} at once");
    }
    assert_eq!((back, slices), (count, 3));
}

fn ticker(price: &Decimal) -> Ticker {
    Ticker::of_last(price.clone())
}

#[test]
fn a_heavy_batch_does_not_wait_for_its_second() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(1000, 0), 5);
    let light = bench.history.due().expect("a flush is due");
    assert_eq!(light, bench.cx.now.mono + FLUSH);
    bench.fetched(key, ago(HEAVY as i64 + 1000, 1000), 5);
    // The change after the one that makes it heavy.
    bench.fetched(key, ago(HEAVY as i64 + 1001, HEAVY as i64 + 1000), 5);
    assert_eq!(bench.history.due(), Some(bench.cx.now.mono));
    bench.pass(0);
    let (number, batch) = bench.batch();
    assert!(batch.weight() > HEAVY);
    // So is the next one, as soon as this one is on disk.
    let next = HEAVY as i64 + 1001;
    bench.fetched(key, ago(next + HEAVY as i64, next), 5);
    bench.pass(0);
    assert!(bench.jobs.is_empty(), "one batch at a time");
    bench.written(number);
    bench.pass(0);
    bench.batch();
}

#[test]
fn candles_are_not_asked_for_while_too_many_wait_and_those_that_come_find_a_place() {
    let mut bench = Bench::new();
    let key = bench.btc();
    assert_eq!(bench.history.pace(), Pace::Free);
    let full = PENDING as i64;
    bench.fetched(key, ago(full, 0), 5);
    assert_eq!(bench.history.pace(), Pace::Hold);
    // This was asked for before there was too much.
    bench.fetched(key, ago(full + 1500, full), 5);
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight() as i64, full + 1500 + 1);
    assert_eq!(bench.history.pace(), Pace::Hold, "it is not on disk yet");
    bench.written(number);
    assert_eq!(bench.history.pace(), Pace::Free);
    assert_eq!(bench.archived(key), [(-full - 1500, 0)]);
}

#[test]
fn while_the_disk_fails_what_clients_see_goes_on_and_what_was_left_out_is_written_from_memory() {
    let mut bench = Bench::unopened(|config| config.history.m1.keep = 1_000_000);
    bench.open();
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    let key = bench.btc();
    let full = PENDING as i64;
    bench.fetched(key, ago(full, 0), 5);
    bench.pass(1);
    let (number, batch) = bench.batch();
    bench.unwritten(number, batch);
    assert_eq!(bench.history.pace(), Pace::Seen);
    bench.fetched(key, ago(full + 300, full), 6);
    assert!(bench.history.missed);
    assert_eq!(bench.archived(key), []);
    bench.pass(1);
    let (number, _) = bench.batch();
    bench.written(number);
    assert_eq!(bench.history.pace(), Pace::Free);
    assert_eq!(bench.archived(key), [(-full, 0)]);
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 300 + 1, "what was left out, and that alone");
    bench.written(number);
    assert_eq!(bench.archived(key), [(-full - 300, 0)]);
}

fn gone() -> Answer {
    let path = PathBuf::from("history.db");
    Answer::Failed(OpenError::Gone { path })
}

#[test]
fn a_file_that_has_gone_is_written_anew_from_memory_and_counts_as_lost_until_then() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(500, 0), 5);
    bench.pass(1);
    let (number, _) = bench.batch();
    bench.written(number);
    assert_eq!(bench.archived(key), [(-500, 0)]);
    bench.tell(gone());
    assert_eq!(bench.archived(key), []);
    assert!(bench.cx.stats.history.lost);
    assert_eq!(bench.cx.stats.history.stored.candles(), 0);
    bench.open_again();
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 500 + 1);
    assert!(bench.cx.stats.history.lost);
    bench.written(number);
    assert!(
        !bench.cx.stats.history.lost
            && !bench.cx.stats.history.unusable
            && !bench.cx.stats.history.write_failed
    );
    assert_eq!(bench.archived(key), [(-500, 0)]);
}

#[test]
fn what_was_acknowledged_and_has_gone_is_not_archived() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(500, 0), 5);
    bench.pass(1);
    let (number, _) = bench.batch();
    let result = Ok(Written::default());
    let answer = Answer::Written { number, result };
    bench.with(|history, cx| history.answered(answer, cx));
    bench.tell(gone());
    bench.open_again();
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    assert_eq!(bench.archived(key), []);
}

#[test]
fn the_end_waits_for_a_new_file_to_hold_what_memory_does() {
    let mut bench = Bench::new();
    let key = bench.btc();
    bench.fetched(key, ago(500, 0), 5);
    bench.pass(1);
    let (number, _) = bench.batch();
    bench.written(number);
    bench.with(History::shut_down);
    bench.tell(gone());
    bench.open_again();
    bench.with(|history, cx| history.close(cx));
    assert!(bench.jobs.is_empty(), "the file still tells what it holds");
    bench.tell(Answer::Loaded(Ok(Loaded::default())));
    bench.with(|history, cx| history.close(cx));
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 500 + 1);
    bench.written(number);
    bench.with(|history, cx| history.close(cx));
    assert_eq!(bench.job(), Job::Stop);
}
