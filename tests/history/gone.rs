//! The file is removed while it is in use. How one that is replaced is noticed is tried in
//! `tests/store/owners.rs`.

use super::*;
use crate::support::*;
use std::path::Path;

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
