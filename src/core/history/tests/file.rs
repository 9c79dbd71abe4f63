//! A file that is damaged, fails for a while, or has gone; its load; the shutdown.

use super::*;

#[test]
fn nothing_of_a_damaged_file_is_believed_and_nothing_is_written_to_it() {
    let (mut bench, key) = Bench::with_btc();
    let other = bench.key("ETH/USDT");
    bench.cx.market.charts.archive(other, ago(9, 0));
    bench.fetched(key, ago(10, 0), 5);
    bench.flush();
    bench.fetched(key, ago(10, 6), 6);
    let batch = bench.due_batch();
    bench.tell(broken(false));
    bench.unwritten(batch);
    let stats = &bench.cx.stats.history;
    assert!(stats.unusable && !stats.write_failed && stats.why.contains("a page is torn"));
    assert!(bench.archived(key).is_empty() && bench.archived(other).is_empty());
    bench.fetched(key, ago(20, 10), 5);
    bench.pass(1000);
    assert!(bench.jobs.is_empty());
    assert_eq!(bench.recall(key, ago(30, 0)), ReadStart::Nothing);
    bench.with(History::shut_down);
    bench.stops();
}

#[test]
fn a_load_is_awaited_as_long_as_it_may_bring_something_and_tried_again_if_it_fails() {
    let mut bench = Bench::loading(|_| {});
    assert_eq!(bench.history.load_stage(), 2);
    let key = bench.key("BTC/USDT");
    bench.head("BTC/USDT", ago(50, 0));
    let lines = logged(|| _ = bench.tell(unloaded()));
    assert_eq!(lines, ["ERROR load failed error=\"the disk failed: a bad sector\""]);
    assert_eq!(bench.history.load_stage(), 0, "nobody waits for a bad disk");
    assert_eq!(bench.archived(key), [], "it cannot be read");
    bench.loads_again_after(30);
    assert_eq!(bench.history.load_stage(), 1);
    bench.loaded();
    assert!(bench.history.keeps(key, &bench.cx));
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
    // Requests do not wait for a slow load.
    bench.tell(broken(true));
    bench.open_again();
    bench.pass(29);
    assert_eq!(bench.history.load_stage(), 2);
    bench.pass(2);
    assert_eq!(bench.history.load_stage(), 1);
    bench.recall_source();
    assert_eq!(bench.history.load_stage(), 1, "a reload does not make them wait again");
    bench.pass(500);
    bench.loaded();
    bench.loaded_with(ago(50, 0));
    assert_eq!((bench.archived(key), bench.history.load_stage()), (vec![(-50, 0)], 0));
}

#[test]
fn requests_for_candles_wait_for_the_loads_of_all_sources_and_of_added_ones() {
    let mut bench = Bench::loading(|_| {});
    bench.recall_source();
    bench.loaded();
    assert_eq!(bench.history.load_stage(), 2, "another load is under way");
    bench.loaded();
    assert_eq!(bench.history.load_stage(), 0);
    let other = SourceId(1);
    bench.cx.stats.sources.push(Default::default());
    bench.with(|history, cx| history.recall(other, cx));
    assert_eq!(bench.job(), DiskJob::Load);
    assert_eq!(bench.history.pace(), Pace::Free);
    assert_eq!([SourceId(0), other].map(|it| bench.history.pace_of(it)), [Pace::Free, Pace::Hold]);
    let key = bench.key("BTC/USDT");
    bench.head("BTC/USDT", ago(50, 0));
    assert_eq!(bench.archived(key), [], "it is none of the added source");
    bench.loaded();
    assert_eq!(bench.history.pace_of(other), Pace::Free);
    // A failing disk delays nothing, and what it reports is not archived where a change waits.
    let key = bench.btc();
    bench.fetched(key, ago(5, 0), 5);
    let batch = bench.due_batch();
    bench.with(|history, cx| history.recall(other, cx));
    assert_eq!((bench.job(), bench.history.load_stage()), (DiskJob::Load, 2));
    bench.unwritten(batch);
    assert_eq!(bench.history.load_stage(), 1);
    bench.recall_source();
    bench.loaded_with(ago(50, 0));
    bench.loaded_with(ago(50, 0));
    assert_eq!(bench.archived(key), [(-50, -5)], "the rest waits to be written");
}

#[test]
fn while_the_disk_fails_what_clients_see_goes_on_and_what_was_left_out_is_written_from_memory() {
    let mut bench = Bench::loading(|config| config.history.m1.keep = 1_000_000);
    bench.loaded();
    let key = bench.btc();
    let full = PENDING as i64;
    bench.fetched(key, ago(full, 0), 5);
    let batch = bench.due_batch();
    bench.unwritten(batch);
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
    let now = bench.cx.now;
    let quote = ticker(&Decimal::from(5));
    bench.cx.market.quotes.apply(SOURCE, key.symbol, quote, now).expect("a sound quote");
    list(&mut bench.cx.market.catalog, &["BTC/USDT"]);
    bench.pass(302);
    let quotes = bench.batch();
    bench.written(quotes);
    bench.fetched(key, ago(500, 0), 5);
    bench.flush();
    assert_eq!(bench.archived(key), [(-500, 0)]);
    bench.tell(gone());
    assert_eq!(bench.archived(key), []);
    assert!(bench.cx.stats.history.lost && bench.cx.stats.history.stored.is_empty());
    bench.open_again();
    bench.loaded();
    let batch = bench.due_batch();
    assert_eq!((batch.quotes.len(), batch.markets.len(), batch.weight()), (1, 1, 500 + 2 + 2));
    assert!(bench.cx.stats.history.lost);
    bench.written(batch);
    let stats = &bench.cx.stats.history;
    assert!(!stats.lost && !stats.unusable && !stats.write_failed);
    assert_eq!(bench.archived(key), [(-500, 0)]);
    // The file goes after the reply to a write, and is there anew before the written slots are archived.
    bench.fetched(key, ago(600, 500), 5);
    for failure in [gone(), broken(true)] {
        for reply in [on_disk(bench.due_batch()), failure, opened()] {
            bench.with(|history, cx| history.handle(reply, cx));
        }
        assert_eq!(bench.job(), DiskJob::Load);
        bench.loaded();
        assert_eq!(bench.archived(key), []);
    }
}

#[test]
fn the_end_gives_up_a_disk_that_fails_after_one_try_and_one_that_hangs_after_its_deadline() {
    for hangs in [false, true] {
        let (mut bench, key) = Bench::with_btc();
        bench.fetched(key, ago(10, 5), 5);
        bench.with(History::shut_down);
        let batch = bench.batch();
        if !hangs {
            bench.unwritten(batch);
            bench.stops();
            continue;
        }
        bench.with(History::close);
        let deadline = bench.cx.config.limits.shutdown + CLOSING;
        bench.pass(deadline.as_secs() - 1);
        assert!(!bench.history.is_closed());
        bench.pass(1);
        assert!(bench.history.is_closed());
    }
}

/// Checks that this is logged after a pause once what came is read, and not before.
fn is_late_once_read(pause_s: u64, begin: impl FnOnce(&mut Bench), late: &str) {
    let mut bench = Bench::new();
    begin(&mut bench);
    bench.at(bench.cx.now.mono + Duration::from_secs(pause_s));
    for (is_behind, expected) in [(true, vec![]), (false, vec![late])] {
        bench.cx.is_behind = is_behind;
        assert_eq!(logged(|| bench.with(History::handle_timeout)), expected);
    }
}

#[test]
fn no_reply_of_the_disk_is_late_before_what_came_during_a_pause_is_read() {
    let write = |bench: &mut Bench| {
        let key = bench.btc();
        bench.fetched(key, ago(10, 5), 5);
        bench.due_batch();
    };
    is_late_once_read(11, write, "ERROR write stalled after_s=10");
    is_late_once_read(31, Bench::recall_source, "WARN load slow after_s=30 waiting=false");
    let stop = |bench: &mut Bench| bench.with(History::shut_down);
    is_late_once_read(60, stop, "ERROR closing given up lost=true");
}
