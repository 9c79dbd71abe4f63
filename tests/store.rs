//! The store from outside: real files, real processes, and everything that goes wrong with both.
//!
//! - `bench`: a store whose answers are waited for, one job at a time
//! - `world`: a made-up history, a pure function of the number of the batch
//! - `child`: this very program as a process of its own, to be killed and starved
//! - `faults.c`: a layer between that process and the kernel, which fails the Nth call
//!
//! `MARKETD_SEED=17` asks for one seed alone.
#![allow(
    clippy::result_large_err,
    reason = "an answer that is not the one waited for is handed back whole"
)]
#![cfg(all(feature = "sqlite", target_os = "linux"))]

mod bench;
mod child;
mod cuts;
mod damage;
mod faults;
mod owners;
mod room;
use crate::support;
mod world;

use bench::Bench;
use marketd::history::{Batch, DiskJob, QuoteName, Reply, StoreError, Unusable};
use marketd::store::{NotRenamed, rename};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::daemon::TempDir;
use world::{SERIES, batch};

#[test]
fn a_source_is_renamed_with_all_that_it_has_or_not_at_all() {
    let (_dir, path, mut bench) = Bench::fresh();
    let mut quotes = batch(0).quotes;
    let (name, quote) = quotes.pop_first().expect("a batch has a quote");
    quotes.insert(QuoteName { source: "quiet".into(), ..name }, quote);
    bench.put(Batch { quotes, ..batch(0) });
    bench.stop();
    // How many markets got the other id, and how many candles.
    let rename = |old, new| {
        let moved = rename(&path, old, new).expect("the file is sound")?;
        let candles = moved.values().flat_map(|it| &it.series).map(|(_, count)| count);
        Ok((moved.len(), candles.sum::<u64>()))
    };
    assert_eq!(rename("quiet", "kraken"), Err(NotRenamed::Taken));
    assert_eq!(rename("nobody", "new"), Err(NotRenamed::Nothing));
    // It has a quote, and no candle.
    assert_eq!(rename("quiet", "new"), Ok((1, 0)));
    assert_eq!(rename("quiet", "other"), Err(NotRenamed::Nothing));
    assert!(rename("kraken", "coinbase").is_ok_and(|(_, candles)| candles > 0));
    let (_, quotes, _) = Bench::open(&path).load();
    assert!(matches!(&quotes[..], [(name, _)] if &*name.source == "new"), "{quotes:?}");
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let dir = TempDir::new();
    let path = dir.history();
    for restart in 0..3 {
        // A process that was killed has left these.
        for end in ["marketd-new", "marketd-prune", "marketd-pruned"] {
            let draft = dir.path().join(format!("history.db-{end}"));
            std::fs::write(draft, "half of it").expect("a directory of ours");
        }
        // A person's copy.
        std::fs::write(dir.path().join("history.db-new"), "a copy").expect("a directory of ours");
        let mut bench = Bench::open(&path);
        assert_eq!(bench.opened().created, restart == 0);
        world::check(&mut bench, restart * 10..=restart * 10);
        bench.write_all(restart * 10..(restart + 1) * 10);
        world::check(&mut bench, (restart + 1) * 10..=(restart + 1) * 10);
        bench.stop();
        let left: Vec<_> = (std::fs::read_dir(dir.path()).expect("a directory"))
            .map(|entry| entry.expect("an entry").file_name())
            .filter(|name| name != "history.db" && name != "history.db-lock")
            .collect();
        assert_eq!(left, ["history.db-new"]);
    }
}

#[test]
fn every_answer_wakes_the_loop() {
    let dir = TempDir::new();
    let wakes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&wakes);
    let wake = move || {
        counted.fetch_add(1, Ordering::SeqCst);
    };
    let mut bench = Bench::open_with(&dir.history(), Box::new(wake)).expect("a new file");
    bench.put(batch(0));
    assert!(bench.load().2.is_ok());
    bench.stop();
    // Opened, written, heads, quotes, loaded, stopped.
    assert_eq!(wakes.load(Ordering::SeqCst), 6);
}

#[test]
fn a_full_queue_hands_the_job_back() {
    let dir = TempDir::new();
    let (wake, wait) = std::sync::mpsc::sync_channel(0);
    // The thread stands still in its first wake-up, until the test lets it go on.
    let stand = Box::new(move || wake.send(()).unwrap_or(()));
    let mut bench = Bench::start(&dir.history(), stand).expect("a thread");
    for _ in 0..marketd::store::JOBS {
        bench.store().send(DiskJob::Load).expect("room in the queue");
    }
    let back = bench.store().send(DiskJob::Load);
    assert_eq!(back, Err(DiskJob::Load));
    drop(wait);
    let done = (0..marketd::store::JOBS).all(|_| {
        bench.wait(|answer| match answer {
            Reply::Loaded(result) => Ok(result.map(|_| ())),
            other => Err(other),
        }) == Ok(())
    });
    assert!(done);
}

#[test]
fn a_person_reads_the_file_while_it_is_written() {
    let (_dir, path, mut bench) = Bench::fresh();
    let shell = Bench::shell(&path);
    let lines = |sql: &str| -> Vec<String> {
        let mut statement = shell.prepare(sql).expect("sql");
        let columns = statement.column_count();
        let line = |row: &rusqlite::Row<'_>| {
            let cell = |at| row.get::<_, String>(at);
            Ok((0..columns).map(cell).collect::<Result<Vec<_>, _>>()?.join("|"))
        };
        let lines = statement.query_map([], line).expect("a query");
        lines.collect::<Result<_, _>>().expect("texts alone")
    };
    let texts = "SELECT source, symbol, interval, time, open_text, high_text, low_text, close_text,
        volume_text FROM candles LIMIT 3";
    for number in 0..25 {
        bench.put(batch(number));
        assert_eq!(lines(texts).len(), 3);
    }
    let first = world::expected(0, 25);
    let mut first = first.values();
    for line in lines(texts) {
        let candle = first.next().expect("more than three");
        let time = candle.open_time.to_string();
        let time = format!("{}Z", &time[..19]);
        let (source, symbol, interval) = SERIES[0];
        let interval = interval.name();
        let (open, high, low) = (&candle.open, &candle.high, &candle.low);
        let (close, volume) = (&candle.close, &candle.volume);
        let expected =
            format!("{source}|{symbol}|{interval}|{time}|{open}|{high}|{low}|{close}|{volume}");
        assert_eq!(line, expected);
    }
    let quotes = lines("SELECT source, symbol, last_text, received FROM quotes");
    assert_eq!(quotes, ["binance|BTC/USDT|25|2025-01-01T00:00:24Z"]);
    let coverage = lines(
        "SELECT source, symbol, interval, first_ms || '', until_ms || '', first, until
        FROM coverage WHERE interval = '1m'",
    );
    let (ms, texts) = ("1735689600000|1735701600000", "2025-01-01T00:00:00Z|2025-01-01T03:20:00Z");
    assert_eq!(coverage, [format!("binance|BTC/USDT|1m|{ms}|{texts}")]);
    // A reader that stays where it is keeps the log from being emptied, and nothing else.
    let mut reading = shell.prepare("SELECT time FROM candle").expect("sql");
    let mut rows = reading.query([]).expect("a query");
    rows.next().expect("a step");
    bench.write_all(25..50);
    world::check(&mut bench, 50..=50);
    let stopped = bench.stopped();
    assert!(matches!(stopped, Err(StoreError::Busy(_))), "{stopped:?}");
    drop(rows);
    drop(reading);
    drop(shell);
    world::check(&mut Bench::open(&path), 50..=50);
}

#[test]
fn a_person_who_writes_makes_one_batch_wait() {
    let (_dir, path, mut bench) = Bench::fresh();
    bench.put(batch(0));
    let shell = Bench::shell(&path);
    shell.execute_batch("BEGIN IMMEDIATE; CREATE TABLE notes (text)").expect("sql");
    let (error, back) = bench.write(batch(1)).expect_err("somebody is writing");
    assert!(matches!(error, StoreError::Busy(_)), "{error:?}");
    assert_eq!(*back, batch(1), "the batch comes back");
    let other = Bench::try_open(&path).err().map(|error| error.why);
    assert_eq!(other, Some(Unusable::InUse(Some(std::process::id()))), "it is still in use");
    world::check(&mut bench, 1..=1);
    shell.execute_batch("COMMIT").expect("sql");
    bench.put(*back);
    world::check(&mut bench, 2..=2);
    bench.stop();
    drop(shell);
    world::check(&mut Bench::open(&path), 2..=2);
}
