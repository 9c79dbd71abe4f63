//! The file is removed, or replaced by another one, while it is in use.

use super::*;
use crate::support::*;
use std::path::Path;
use std::sync::Arc;

/// A daemon with 1,800 candles on disk.
fn filled(exchange: &Binance) -> (Marketd, Value) {
    exchange.set_time(ServerTime::Fixed(1_700_000_030_000));
    let config = config(&[source(exchange, &["BTC/USDT"])], 600);
    let marketd = Launch::new(&[]).config(&config).start();
    eventually(LONG, || (history(&marketd, "inserted") >= 1800).then_some(()));
    await_health(&marketd, "ok");
    (marketd, config)
}

/// Something to be written, before which the file is looked at: a look further into the past than the page
/// of 1,000 candles that has come already.
fn look_back(marketd: &Marketd) {
    let target = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=1500";
    await_complete(marketd, target);
}

fn count(path: &Path) -> i64 {
    match path.exists() {
        true => file::number(path, "SELECT count(*) FROM candle"),
        false => 0,
    }
}

#[test]
fn a_file_that_is_removed_is_noticed_and_written_anew_from_memory() {
    let exchange = Binance::generated(3, 7);
    let (marketd, config) = filled(&exchange);
    let dir = marketd.dir();
    let path = dir.path().join(FILE);
    std::fs::remove_file(&path).expect("it is there");
    // It may be mended before anybody has looked twice: the log tells of it in any case.
    look_back(&marketd);
    let line = marketd.await_log("was removed or replaced", LONG);
    assert!(line.contains("ERROR"), "{line}");
    marketd.await_log("file refilled", LONG);
    await_health(&marketd, "ok");
    assert!(count(&path) >= 1800, "{}", count(&path));
    let stored = metrics(&marketd)["candlesStored"].integer();
    assert_eq!(stored, Some(count(&path)));
    let lines = marketd.log();
    let told = lines.lines().filter(|line| line.contains("ERROR")).count();
    assert_eq!(told, 1, "{lines}");
    kill(marketd);
    // What is in it now is all that is needed.
    exchange.fault_on(binance::KLINES, Fault::Status(500));
    let marketd = launch(&dir, &config).start();
    let target = "/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=500";
    // The last one is forming: it begins with the first quotes.
    eventually(LONG, || {
        let count = await_complete(&marketd, target).exact().items().len();
        (count == 500).then_some(())
    });
}

#[test]
fn a_copy_that_is_put_in_its_place_is_taken_up_and_brought_up_to_date() {
    let exchange = Binance::generated(3, 7);
    let (marketd, _) = filled(&exchange);
    let dir: Arc<_> = marketd.dir();
    let path = dir.path().join(FILE);
    let copy = dir.path().join("copy.db");
    let shell = rusqlite::Connection::open(&path).expect("anybody may read");
    let copied = shell.execute("VACUUM INTO ?1", [copy.to_str().expect("a text")]);
    copied.expect("a copy");
    drop(shell);
    let shell = rusqlite::Connection::open(&copy).expect("a copy");
    let emptied = "DELETE FROM candle; DELETE FROM span; UPDATE series SET candles = 0";
    shell.execute_batch(emptied).expect("sql");
    drop(shell);
    std::fs::rename(&copy, &path).expect("a directory of ours");
    look_back(&marketd);
    marketd.await_log("file refilled", LONG);
    await_health(&marketd, "ok");
    assert!(count(&path) >= 1800);
    let finished = marketd.stop(LONG);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(count(&path) >= 1800);
    let whole = rusqlite::Connection::open(&path).expect("it is there");
    let sound = whole.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(sound.as_deref(), Ok("ok"));
}
