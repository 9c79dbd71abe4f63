//! The end: what is gathered is written, and the file is closed.

use super::*;

#[test]
fn the_end_writes_what_waits_and_closes_the_file() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.with(History::shut_down);
    let (first, _) = bench.batch();
    bench.fetched(key, ago(5, 0), 5);
    bench.close();
    assert!(bench.jobs.is_empty(), "the batch is under way");
    bench.written(first);
    bench.close();
    let batch = bench.write();
    assert_eq!(batch.weight(), 6);
    bench.stops();
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
    bench.close();
    assert!(bench.jobs.is_empty());
    bench.loaded();
    bench.close();
    bench.write();
    bench.stops();
}

#[test]
fn the_end_waits_for_a_disk_that_hangs_no_longer_than_its_deadline() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.with(History::shut_down);
    bench.close();
    let deadline = bench.cx.config.limits.shutdown + CLOSING;
    bench.pass(deadline.as_secs() - 1);
    assert!(!bench.history.is_closed());
    bench.pass(1);
    assert!(bench.history.is_closed());
}

#[test]
fn the_end_with_a_disk_that_fails_gives_up_after_one_try() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(10, 5), 5);
    bench.with(History::shut_down);
    bench.fail();
    bench.stops();
}

#[test]
fn the_end_waits_for_a_new_file_to_hold_what_memory_does() {
    let (mut bench, key) = Bench::with_btc();
    bench.fetched(key, ago(500, 0), 5);
    bench.flush();
    bench.with(History::shut_down);
    bench.tell(gone());
    bench.open_again();
    bench.close();
    assert!(bench.jobs.is_empty(), "the file still tells what it holds");
    bench.loaded();
    bench.close();
    let batch = bench.write();
    assert_eq!(batch.weight(), 500 + 2);
    bench.stops();
}
