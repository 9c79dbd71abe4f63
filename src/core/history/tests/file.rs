//! A file that is damaged, fails for a while, or has gone.

use super::*;

#[test]
fn nothing_of_a_damaged_file_is_believed_and_nothing_is_written_to_it() {
    let (mut bench, key) = Bench::with_btc();
    let other = bench.key("ETH/USDT");
    bench.cx.market.charts.archive(other, ago(9, 0));
    bench.fetched(key, ago(10, 0), 5);
    bench.flush();
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
    assert_eq!(bench.recall(key, ago(30, 0)), ReadStart::Nothing);
    bench.with(History::shut_down);
    bench.stops();
    bench.tell(Reply::Stopped(Ok(())));
    assert!(bench.history.is_closed());
}

#[test]
fn a_file_that_can_be_used_again_is_read_anew() {
    let (mut bench, key) = Bench::with_btc();
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
    assert!(bench.history.file.is_awaited());
    bench.unwritten(number, batch);
    bench.pass(10);
    assert!(bench.jobs.is_empty(), "not before it has told what it holds");
    bench.loaded_with(ago(50, 0));
    assert!(!bench.cx.stats.history.unusable && !bench.history.file.is_awaited());
    assert_eq!(bench.archived(key), [(-50, -3)], "the rest waits to be written");
    bench.flush();
    assert_eq!(bench.archived(key), [(-50, 0)]);
}

#[test]
fn a_load_that_failed_is_tried_again() {
    let mut bench = Bench::unopened(|_| {});
    bench.open();
    assert!(bench.history.file.is_awaited());
    let key = bench.key("BTC/USDT");
    bench.head("BTC/USDT", ago(50, 0));
    bench.tell(unloaded());
    assert!(!bench.history.file.is_awaited(), "nobody waits for a bad disk");
    assert_eq!(bench.archived(key), [], "it cannot be read");
    bench.loads_again_after(30);
    bench.loaded();
    assert!(bench.keeps(key));
}

#[test]
fn a_load_that_takes_long_is_not_waited_for() {
    let mut bench = Bench::unopened(|_| {});
    bench.open();
    bench.pass(29);
    assert!(bench.history.file.is_awaited());
    bench.pass(2);
    assert!(!bench.history.file.is_awaited());
    bench.pass(500);
    bench.loaded_with(ago(50, 0));
    let key = bench.key("BTC/USDT");
    assert!(bench.keeps(key));
}

#[test]
fn a_file_that_failed_is_tried_again_also_if_nothing_is_to_be_written() {
    let mut bench = Bench::new();
    let key = bench.key("BTC/USDT");
    bench.tell(broken(true));
    bench.loads_again_after(30);
    let lines = logged(|| _ = bench.tell(Reply::Loaded(Err(StoreError::NotOpen))));
    assert_eq!(lines, [""; 0], "it was told when it failed");
    assert!(bench.cx.stats.history.unusable);
    bench.pass(30);
    assert_eq!(bench.job(), DiskJob::Load);
    bench.tell(opened());
    assert!(bench.jobs.is_empty(), "the load has opened it");
    assert!(!bench.cx.stats.history.unusable);
    bench.loaded_with(ago(50, 0));
    assert_eq!(bench.archived(key), [(-50, 0)]);
    assert!(bench.keeps(key));
}

#[test]
fn requests_for_candles_wait_for_the_loads_of_all_sources_and_of_added_ones() {
    let mut bench = Bench::unopened(|_| {});
    bench.open();
    bench.recall_source();
    assert_eq!(bench.history.loads(), [true; 4]);
    bench.loaded();
    assert_eq!(bench.history.loads(), [false, true, false, true]);
    bench.loaded();
    assert_eq!(bench.history.loads(), [false; 4]);
}

#[test]
fn on_a_failing_disk_nobody_waits_for_an_added_source_and_what_it_tells_then_is_not_archived() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(5, 0), 5);
    bench.pass(1);
    let (number, batch) = bench.batch();
    bench.recall_source();
    assert_eq!(bench.history.loads(), [false, true, false, true]);
    bench.unwritten(number, batch);
    assert_eq!(bench.history.loads(), [false, false, false, true]);
    bench.loaded_with(ago(50, 0));
    assert_eq!(bench.archived(key), [(-50, -5)], "the rest waits to be written");
}

#[test]
fn a_load_for_an_added_source_that_failed_is_told_and_tried_again() {
    let mut bench = Bench::new();
    let key = bench.key("BTC/USDT");
    bench.recall_source();
    let lines = logged(|| _ = bench.tell(unloaded()));
    assert_eq!(lines, ["ERROR load failed error=\"the disk failed: a bad sector\""]);
    assert_eq!(bench.history.loads(), [false; 4], "nobody waits for a bad disk");
    assert!(!bench.keeps(key));
    bench.loads_again_after(30);
    bench.loaded_with(ago(50, 0));
    assert_eq!(bench.archived(key), [(-50, 0)]);
    assert!(bench.keeps(key));
}

#[test]
fn while_the_disk_fails_what_clients_see_goes_on_and_what_was_left_out_is_written_from_memory() {
    let mut bench = Bench::unopened(|config| config.history.m1.keep = 1_000_000);
    bench.open_empty();
    let key = bench.btc();
    let full = PENDING as i64;
    bench.fetched(key, ago(full, 0), 5);
    bench.pass(1);
    bench.fail();
    assert_eq!(bench.history.pace(), Pace::NewestAndAsked);
    bench.fetched(key, ago(full + 300, full), 6);
    assert!(bench.history.missing.needs_refill);
    assert_eq!(bench.archived(key), []);
    bench.flush();
    assert_eq!(bench.history.pace(), Pace::Free);
    assert_eq!(bench.archived(key), [(-full, 0)]);
    let batch = bench.flush();
    assert_eq!(batch.weight(), 300 + 2, "what was left out, and that alone");
    assert_eq!(bench.archived(key), [(-full - 300, 0)]);
}

#[test]
fn a_file_that_has_gone_is_written_anew_from_memory_and_counts_as_lost_until_then() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(500, 0), 5);
    bench.flush();
    assert_eq!(bench.archived(key), [(-500, 0)]);
    bench.tell(gone());
    assert_eq!(bench.archived(key), []);
    assert!(bench.cx.stats.history.lost);
    assert!(bench.cx.stats.history.stored.is_empty());
    bench.open_again();
    bench.loaded();
    bench.pass(1);
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 500 + 2);
    assert!(bench.cx.stats.history.lost);
    bench.written(number);
    let stats = &bench.cx.stats.history;
    assert!(!stats.lost && !stats.unusable && !stats.write_failed);
    assert_eq!(bench.archived(key), [(-500, 0)]);
    // It goes between a word about what was written and the look at it.
    bench.fetched(key, ago(600, 500), 5);
    bench.pass(1);
    let (number, _) = bench.batch();
    let result = Ok(bench.on_disk());
    let answer = Reply::Written { number, result };
    bench.with(|history, cx| history.handle(answer, cx));
    bench.tell(gone());
    bench.open_again();
    bench.loaded();
    assert_eq!(bench.archived(key), []);
}
