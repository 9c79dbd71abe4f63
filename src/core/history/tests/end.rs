//! The end: what is gathered is written, and the file is closed.

use super::*;

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
    assert_eq!(bench.job(), DiskJob::Stop);
    assert!(!bench.history.is_closed());
    bench.tell(Reply::Stopped(Ok(())));
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
    bench.tell(Reply::Loaded(Ok(Loaded::default())));
    bench.with(|history, cx| history.close(cx));
    let (number, _) = bench.batch();
    bench.written(number);
    bench.with(|history, cx| history.close(cx));
    assert_eq!(bench.job(), DiskJob::Stop);
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
    assert_eq!(bench.job(), DiskJob::Stop);
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
    bench.tell(Reply::Loaded(Ok(Loaded::default())));
    bench.with(|history, cx| history.close(cx));
    let (number, batch) = bench.batch();
    assert_eq!(batch.weight(), 500 + 2);
    bench.written(number);
    bench.with(|history, cx| history.close(cx));
    assert_eq!(bench.job(), DiskJob::Stop);
}
