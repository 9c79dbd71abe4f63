//! Candles that are read back for clients.

use super::*;

#[test]
fn many_who_want_the_same_share_one_read_the_newest_first() {
    let (mut bench, key) = Bench::with_btc();
    bench.cx.market.charts.archive(key, ago(2000, 0));
    assert_eq!(bench.recall(key, ago(1000, 500)), ReadStart::Begun);
    let first = bench.read_job();
    assert_eq!(first.slots, ago(1000, 500));
    assert_eq!(bench.recall(key, ago(900, 600)), ReadStart::Begun);
    assert!(bench.jobs.is_empty());
    assert!(bench.rows(&first, ago(800, 500)));
    let second = bench.read_job();
    assert_eq!(second.slots, ago(1000, 800));
    assert!(bench.history.is_reading(key, &ago(900, 890)));
    assert!(!bench.history.is_reading(key, &ago(700, 500)));
    bench.rows(&second, ago(1000, 800));
    assert!(bench.jobs.is_empty());
    assert_eq!(bench.covered(key), [(-1000, -500)]);
    assert_eq!(bench.recall(key, ago(1000, 500)), ReadStart::Nothing);
    assert_eq!(bench.cx.market.charts.get(key).map(|it| it.count()), Some(250));
}

#[test]
fn who_wants_newer_candles_than_the_page_that_is_read_gets_them_too() {
    let (mut bench, key) = Bench::with_btc();
    bench.cx.market.charts.archive(key, ago(2000, 0));
    bench.recall(key, ago(1000, 500));
    let first = bench.read_job();
    bench.recall(key, ago(200, 100));
    bench.rows(&first, ago(800, 500));
    assert!(bench.history.is_reading(key, &ago(200, 100)));
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
    let (mut bench, key) = Bench::with_btc();
    bench.cx.market.charts.archive(key, ago(100, 0));
    bench.recall(key, ago(100, 0));
    let read = bench.read_job();
    let mut rows = page(&read, ago(100, 0), vec![ago(90, 60), ago(50, 10)]);
    rows.unsound = vec![BEGIN - 30];
    rows.candles.retain(|it| it.open_time != Stored::M1.open_of(BEGIN - 30));
    let (ticket, result) = (read.ticket, Ok(rows));
    bench.tell(Reply::Rows { ticket, result });
    let known = [(-90, -60), (-50, -30), (-29, -10)];
    assert_eq!(bench.covered(key), known);
    assert_eq!(bench.archived(key), known);
    assert!(bench.jobs.is_empty(), "it is not read again and again");
    let batch = bench.due_batch();
    let changes = &batch.series[&name("BTC/USDT", &bench.cx.config)];
    let forgotten: Vec<_> = changes.forgotten().collect();
    let slot = BEGIN - 30..BEGIN - 29;
    assert_eq!(forgotten, std::slice::from_ref(&slot));
}

#[test]
fn a_read_that_fails_ends_the_wait() {
    let (mut bench, key) = Bench::with_btc();
    bench.cx.market.charts.archive(key, ago(100, 0));
    bench.recall(key, ago(100, 0));
    let ReadJob { ticket, .. } = bench.read_job();
    let result = Err(StoreError::Busy("somebody writes".to_string()));
    assert!(bench.tell(Reply::Rows { ticket, result }));
    assert!(!bench.history.is_reading(key, &ago(100, 0)));
    assert_eq!(bench.recall(key, ago(100, 0)), ReadStart::Begun);
}

#[test]
fn a_series_that_closes_on_the_way_keeps_what_is_written_and_reads_no_more() {
    let (mut bench, key) = Bench::with_btc();
    bench.cx.market.charts.archive(key, ago(2000, 1000));
    bench.recall(key, ago(2000, 1000));
    let read = bench.read_job();
    bench.fetched(key, ago(10, 0), 5);
    bench.cx.market.charts.close(key);
    bench.rows(&read, ago(1500, 1000));
    assert!(bench.jobs.is_empty());
    let batch = bench.flush();
    assert_eq!(batch.weight(), 11);
    assert_eq!(bench.archived(key), [(-2000, -1000), (-10, 0)]);
    bench.cx.market.charts.open(key);
    assert_eq!(bench.archived(key), [(-2000, -1000), (-10, 0)]);
}

#[test]
fn whatever_is_wanted_the_queue_of_the_disk_has_room_for_it() {
    let mut bench = Bench::unopened(|config| config.limits.candle_series = 500);
    bench.open();
    let keys: Vec<SeriesKey> = (0..200).map(|at| bench.key(&format!("C{at}/USDT"))).collect();
    for key in &keys {
        assert!(bench.cx.market.charts.open(*key));
        bench.cx.market.charts.archive(*key, 10..20_000);
        bench.cx.market.charts.archive(*key, ago(3000, 10));
    }
    bench.loaded();
    let mut wishes = Vec::new();
    for key in &keys {
        bench.fetched(*key, ago(3, 1), 5);
        wishes.push(bench.recall(*key, ago(3000, 2000)));
    }
    bench.pass(100);
    // The harness looks at the length of the queue; here, that it was put to the test.
    assert!(wishes.contains(&ReadStart::Begun) && wishes.contains(&ReadStart::Refused));
    assert!(bench.jobs.len() > 60);
}
