//! What is older than the window leaves the file.

use super::*;

#[test]
fn what_is_evicted_is_archived_no_longer_and_tried_again_when_that_fails() {
    let mut bench = Bench::unopened(|config| {
        config.history = Keep { m1: Depth { keep: 1000, backfill: 0 }, ..Keep::default() };
    });
    bench.open();
    bench.head("BTC/USDT", ago(3000, 10));
    bench.head("ETH/USDT", ago(990, 10));
    bench.tell(Reply::Loaded(Ok(Loaded::default())));
    let key = bench.key("BTC/USDT");
    bench.pass(61);
    let before = BEGIN + 1 - 1000;
    let evict = DiskJob::Evict { series: name("BTC/USDT", &bench.cx.config), before };
    assert_eq!(bench.jobs, [evict]);
    assert_eq!(bench.archived(key), [(-999, -10)]);
    bench.pass(200);
    assert_eq!(bench.jobs.len(), 1, "it is under way");
    let series = name("BTC/USDT", &bench.cx.config);
    let error = StoreError::Full("no room".to_string());
    let result = Err(error);
    bench.jobs.clear();
    bench.tell(Reply::Evicted { series: series.clone(), before, result });
    bench.pass(60);
    assert!(matches!(&bench.jobs[0], DiskJob::Evict { series: it, .. } if *it == series));
    let result = Ok(Evicted { count: 2001, ..Evicted::default() });
    bench.jobs.clear();
    bench.tell(Reply::Evicted { series, before, result });
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
    bench.tell(Reply::Loaded(Ok(Loaded::default())));
    bench.pass(200);
    assert!(bench.jobs.is_empty());
}
