//! More candles than a disk takes at once: a fast exchange, many symbols, kill -9 at any moment. What
//! was told as stored is in the file, nothing in it changes any more, and in the end it is all that the
//! exchange has.
//!
//! `scripts/kills.sh` runs it in full: 60 symbols with 270,000 candles, twenty kills.

use super::{FILE, LONG, file, kill, metrics};
use crate::support::daemon::TempDir;
use crate::support::naive::Row;
use crate::support::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Closed candles of each symbol by the default configuration: 1,500 in each of three intervals.
const EACH: i64 = 4500;

/// The whole run on a slow machine.
const ALL: Duration = Duration::from_secs(600);

#[test]
fn what_is_told_as_stored_survives_a_kill_and_all_that_was_fetched_is_written() {
    let symbols = number("MARKETD_SYMBOLS").unwrap_or(12);
    let kills = number("MARKETD_KILLS").unwrap_or(6);
    for_each_seed(1, |_, rng| flood(rng, symbols as usize, kills));
}

fn flood(rng: &mut Rng, symbols: usize, kills: u64) {
    let exchange = Binance::generated(symbols, 7);
    exchange.set_time(ServerTime::Fixed(1_700_000_030_000));
    let config = json!({
        "sources": [{
            "id": "fake", "dialect": "binance", "url": exchange.url(), "symbols": exchange.symbols(),
        }],
        "data": FILE,
    });
    let dir = Arc::new(TempDir::new());
    let path = dir.path().join(FILE);
    let launch = || Launch::new(&[]).in_dir(dir.clone()).config(&config);
    let all = EACH * symbols as i64;
    let mut on_disk = BTreeMap::new();
    for number in 0..kills {
        let marketd = launch().start();
        let moment = Duration::from_millis(rng.below(2500));
        let mut told = 0;
        let _ = poll_until(moment, || {
            told = read_count(&marketd, "candlesStored");
            None::<()>
        });
        let records = records(&marketd, &exchange.symbols());
        kill(marketd);
        let found = file::number(&path, "SELECT count(*) FROM candle");
        assert!(found >= told, "{found} of {told} candles are there");
        let before = std::mem::replace(&mut on_disk, file::candles(&path));
        for (key, figures) in before {
            assert_eq!(on_disk.get(&key), Some(&figures), "{key:?} was on disk");
        }
        for (symbol, interval, from, to, count) in records {
            let there = count_in(&path, &symbol, &interval, from, to);
            assert!(there >= count, "{symbol} {interval}: {there} of {count}");
        }
        eprintln!("kill {number} after {moment:?}: {told} were told, {found} are there");
        if found == all {
            // There is nothing left to write: the next one begins with an empty file.
            for name in [FILE, "history.db-wal", "history.db-shm"] {
                let _ = std::fs::remove_file(dir.path().join(name));
            }
            on_disk.clear();
        }
    }
    let marketd = launch().start();
    let mut last = String::new();
    let done = poll_until(ALL, || {
        let metrics = metrics(&marketd);
        let backfill = &metrics["upstreams"][0]["backfill"];
        let stored = metrics["candlesStored"].integer();
        last = format!("{stored:?} {backfill}");
        assert_eq!(metrics["charts"]["persistErrors"], 0);
        (stored >= Some(all) && backfill["done"] == backfill["wanted"]).then_some(())
    });
    done.unwrap_or_else(|| panic!("{all} were to be stored, and {last} are"));
    let told = records(&marketd, &exchange.symbols());
    kill(marketd);
    assert_eq!(file::number(&path, "SELECT sum(candles) FROM series"), all);
    let mut series: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for ((_, symbol, interval, time), figures) in file::candles(&path) {
        series.entry((symbol, interval)).or_default().push((time, figures));
    }
    for ((symbol, interval), rows) in series {
        assert_eq!(rows.len() as i64, EACH / 3, "{symbol} {interval}");
        let id = symbol.replace('/', "");
        let truth = exchange.candles(&id, &interval, rows[0].0, rows[rows.len() - 1].0);
        assert_eq!(rows, truth, "{symbol} {interval}");
    }
    // After a restart the figures tell what the file holds. Memory holds none of it.
    exchange.fault_on(binance::KLINES, Fault::Status(500));
    let marketd = launch().start();
    eventually(LONG, || (read_count(&marketd, "candlesStored") >= all).then_some(()));
    assert_eq!(read_count(&marketd, "chartsStored"), 3 * symbols as i64);
    assert_eq!(records(&marketd, &exchange.symbols()), told);
    assert_eq!(metrics(&marketd)["charts"]["candles"].integer().unwrap_or(9), 0);
}

fn read_count(marketd: &Marketd, key: &str) -> i64 {
    metrics(marketd)[key].integer().expect("a count")
}

/// What the records of the first markets tell of each interval.
fn records(marketd: &Marketd, symbols: &[String]) -> Vec<(String, String, i64, i64, i64)> {
    let mut records = Vec::new();
    for symbol in symbols.iter().take(5) {
        let target = format!("/api/ecosystem/market/{}", symbol.replace('/', "-"));
        let answer = get(marketd.addr(), &target);
        if answer.status != 200 {
            continue;
        }
        for interval in ["1m", "1h", "1d"] {
            let extent = &answer.exact()["chart"][interval];
            let ends = (extent["from"].integer(), extent["to"].integer());
            let count = extent["count"].integer().expect("a count");
            if let (Some(from), Some(to)) = ends {
                records.push((symbol.clone(), interval.to_string(), from, to, count));
            }
        }
    }
    records
}

fn count_in(path: &Path, symbol: &str, interval: &str, from: i64, to: i64) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM candle JOIN series ON series.id = candle.series
         WHERE symbol = '{symbol}' AND interval = '{interval}' AND time BETWEEN {} AND {}",
        from / 1000,
        to / 1000
    );
    file::number(path, &sql)
}
